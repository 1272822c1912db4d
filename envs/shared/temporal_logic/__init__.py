"""Specifications in signal temporal logic: formulas,
their monitors, and tasks and plans made of them.
"""
