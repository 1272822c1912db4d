"""Tasks of offline reinforcement learning: cheap to simulate,
with planners that make data of any quality.
"""
