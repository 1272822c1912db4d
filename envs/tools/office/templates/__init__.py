"""Templates of instructions: a file a tier for the compiled office,
a file an app for the large one.
"""
