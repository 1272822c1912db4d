"""Exploration: worlds that are unknown at first and seen only from where one stands."""
