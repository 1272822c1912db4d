"""Set point signals, and the goals of each machine."""
