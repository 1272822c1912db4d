"""Specifications in signal temporal logic.

They have formulas and monitors, and make tasks and plans.
"""
