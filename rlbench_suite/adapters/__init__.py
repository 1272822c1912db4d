"""Derive every API from one contract.

There are single, batched, text, PettingZoo and multi-objective environments, and fused rollouts.
"""
