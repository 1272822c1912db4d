"""Reference players, and what several of them share."""
