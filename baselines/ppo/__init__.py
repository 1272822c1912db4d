"""Proximal policy optimisation: without a memory,
with one, beside simulators, and in learned models.
"""
