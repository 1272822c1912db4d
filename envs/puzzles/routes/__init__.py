"""Ways to find through mazes, road maps and graphs."""
