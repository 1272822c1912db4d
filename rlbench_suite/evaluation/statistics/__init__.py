"""Aggregate scores with intervals and tests, on plain arrays."""
