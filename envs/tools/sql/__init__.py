"""Databases, questions about them, and the SQL queries that answer."""
