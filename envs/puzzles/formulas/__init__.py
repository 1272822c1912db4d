"""Propositional formulas: satisfiability, its optimisation and its refutation."""
