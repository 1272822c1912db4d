"""Multi-objective tasks with known Pareto fronts."""
