"""Games of two sides: against opponents of graded strength, and with all sides as agents."""
