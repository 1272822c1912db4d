"""Driving among human-like drivers, with car following and lane changing from the literature."""
