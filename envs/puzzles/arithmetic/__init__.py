"""Numbers to combine, magic squares, letters that stand for digits, and points of the plane."""
