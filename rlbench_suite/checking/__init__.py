"""Checks of the whole contract on one task."""
