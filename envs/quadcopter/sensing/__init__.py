"""Measurements of a vehicle: its motion as observation entries and text,
and the image of its camera.
"""
