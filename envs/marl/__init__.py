"""Multi-agent tasks: many agents, one world."""
