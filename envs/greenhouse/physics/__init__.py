"""Equations of greenhouses, crops and devices."""
