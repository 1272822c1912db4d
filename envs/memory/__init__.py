"""Memory tasks: what an agent must retain, and what it must overwrite, with exact optima and memoryless ceilings."""
