"""Endgames of chess against a perfect defender, with tables of every position."""
