"""Things to put into order, or to turn back, move by move."""
