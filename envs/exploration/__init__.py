"""Exploration: worlds that are unknown at first and that an agent sees only around itself."""
