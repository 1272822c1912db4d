"""Things to put into order, or to undo, move by move."""
