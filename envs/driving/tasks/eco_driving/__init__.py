"""Saving CO2 at traffic lights: one junction, its single car, its cities, its lanes."""
