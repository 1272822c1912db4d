"""Apps of the compiled office."""
