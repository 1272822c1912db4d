"""Bargaining over a car by alternating offers."""
