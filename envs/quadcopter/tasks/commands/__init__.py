"""Tasks whose actions are set points of a flight controller, and their reference players."""
