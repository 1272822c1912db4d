"""A stream of queries, and experts at a price."""
