"""Define tasks, players and agents, and the engine that runs an episode."""
