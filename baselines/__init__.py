"""Baseline agents: one readable file an algorithm, hyperparameters as data."""
