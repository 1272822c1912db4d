"""Mechanical loads on the shaft."""
