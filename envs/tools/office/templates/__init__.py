"""Templates of instructions, by the app in which they act."""
