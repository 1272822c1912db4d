"""Templates of instructions.

The compiled office has a file for each tier, the large one a file for each app.
"""
