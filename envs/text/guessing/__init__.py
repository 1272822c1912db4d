"""Guessing games by yes/no questions, on tables of facts."""
