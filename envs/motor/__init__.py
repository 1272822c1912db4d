"""Electric drives: machine, inverter, load, reference and controller, in SI units."""
