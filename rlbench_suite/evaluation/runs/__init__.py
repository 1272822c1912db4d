"""Plan, run, store and read cells."""
