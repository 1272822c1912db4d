"""Vehicles together on roads: following, lane changes, yielding, replay."""
