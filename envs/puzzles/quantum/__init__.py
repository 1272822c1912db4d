"""Quantum circuits to undo or to compile, a gate a step."""
