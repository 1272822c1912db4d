"""Geometry and signals of roads, and scenarios that describe them."""
