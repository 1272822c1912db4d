"""Reference players: controllers and observers."""
