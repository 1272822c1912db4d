"""One contract, every API: single, batched, text,
PettingZoo and multi-objective environments, fused rollouts.
"""
