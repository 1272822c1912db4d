"""Memory tasks: an agent must retain or overwrite what it saw;
optima and memoryless ceilings are exact.
"""
