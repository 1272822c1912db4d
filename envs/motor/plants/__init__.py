"""Machines with their converters, as tasks and controllers use them."""
