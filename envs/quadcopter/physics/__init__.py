"""Physics of a quadcopter, without knowledge of tasks.

It has a rigid body, rotors, air, wind, battery and payload.
"""
