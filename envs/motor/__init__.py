"""Electric drives in SI units.

Each sub-package imports only what stands before it: machines; power_electronics and loads; set
points; plants (machines with their converters); tasks (drives, with their cards); control
(reference players) and gem (drives as gym-electric-motor has them).
"""
