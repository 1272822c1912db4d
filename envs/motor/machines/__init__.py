"""Electric machines: their equations, and the laws of their iron, heat and faults."""
