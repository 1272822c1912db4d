"""The game of Go for two sides, and one side of it against a player."""
