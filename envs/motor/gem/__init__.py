"""Drives as gym-electric-motor 3.0.3 has them."""
