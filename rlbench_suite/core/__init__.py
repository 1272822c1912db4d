"""The contract and the engine: what tasks, players and agents are,
and the functions that run an episode.
"""
