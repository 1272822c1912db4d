"""Motion, collisions, paths and emissions of single vehicles."""
