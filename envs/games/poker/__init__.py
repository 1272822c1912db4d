"""Kuhn and Leduc poker: the betting tree, the task, its players, and exact exploitability."""
