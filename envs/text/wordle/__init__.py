"""Wordle, its players, and the list of words with its licence."""
