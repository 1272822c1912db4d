"""Crops under glass: climate, growth and the money in it."""
