"""The tasks of the family, with the players that read one task only."""
