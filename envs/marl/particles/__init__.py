"""Particle worlds: discs that coast, push and talk in a plane."""
