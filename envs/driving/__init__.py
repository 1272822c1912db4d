"""Driving: traffic of human-like drivers on a road,
car following and lane changing from the literature.
"""
