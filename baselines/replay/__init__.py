"""Agents that learn from a replay buffer: ``dqn`` and ``sac``."""
