"""Rules to find from examples, and to apply."""
