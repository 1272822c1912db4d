"""Deduction: who tells the truth, who lives where, and what follows from what."""
