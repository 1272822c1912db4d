"""Reference signals, and what is asked of each machine."""
