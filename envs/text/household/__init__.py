"""Errands in a house of rooms and containers."""
