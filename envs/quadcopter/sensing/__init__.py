"""Measurements of a vehicle.

They are its motion as observation entries and text, and the image of its camera.
"""
