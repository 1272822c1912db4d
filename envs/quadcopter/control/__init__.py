"""Controllers and observers, from rotor commands up to positions."""
