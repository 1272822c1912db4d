"""Quadcopters: rigid-body flight with motor lag, in SI units."""
