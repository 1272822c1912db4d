"""Mazes that are told in words."""
