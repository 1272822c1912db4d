"""Tasks: crops to grow for profit."""
