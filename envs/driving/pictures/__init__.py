"""Drawings of roads and rings from above."""
