"""Greenhouses: climate, crop growth and their economics."""
