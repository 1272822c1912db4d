"""Board games: the best move in a position."""
