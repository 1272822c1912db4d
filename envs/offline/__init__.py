"""Tasks of offline reinforcement learning.

They are cheap to simulate, and have planners that make data of any quality.
"""
