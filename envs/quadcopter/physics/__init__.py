"""Physics of a quadcopter: rigid body, rotors, air,
wind, battery, payload; it knows nothing of tasks.
"""
