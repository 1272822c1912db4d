"""Chess: rules, notation, players, and whole games against an opponent of graded strength."""
