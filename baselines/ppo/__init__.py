"""Train by proximal policy optimisation.

There are variants with a memory, beside simulators, and in learned models.
"""
