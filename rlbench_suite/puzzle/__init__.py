"""Puzzles in one-shot form: seeded instances, prompts and verifiers, and banks of instances."""
