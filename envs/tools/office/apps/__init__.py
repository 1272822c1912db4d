"""Apps of the large office."""
