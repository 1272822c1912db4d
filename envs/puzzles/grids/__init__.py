"""Grids to fill in, a cell a step: Sudoku, Minesweeper and the like."""
