"""Reference signals, and the goals of each machine."""
