"""Memory tasks, in which an agent must retain or overwrite what it saw.

The optima and the ceilings of players without a memory are exact.
"""
