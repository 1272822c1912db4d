"""A small language of programs on lists: its machine, and specifications to program."""
