"""CO2 and fuel of a passenger car from its speed and acceleration, in closed form. All functions take arrays.

CO2 is the polynomial that SUMO uses for the class PC_G_EU4 of the Handbook Emission Factors for Road Transport 3.1
(petrol, Euro 4; coefficients of ``HelpersHBEFA3``, https://sumo.dlr.de/docs/Models/Emissions/HBEFA3-based.html):

    CO2 = max(0, 9449 + 938.4 a v - 467.1 v + 28.26 v^2) g/h

SUMO has no emission at any deceleration, however small, which pays for trembling; here the polynomial counts there too.
Its second term is the rate of kinetic energy, a v = d(v^2 / 2)/dt: the emission for a change of speed does not depend
on how fast the speed changes, as long as the maximum does not bind.

Fuel is the model VT-CPFM-1 (Rakha et al. 2011, doi:10.1016/j.trd.2011.05.008) in SI units:

    R = rho / 2 Cd Ch Af v^2 + g m Cr / 1000 (c1 3.6 v + c2),   P = (R + 1.04 m a) v / 0.92
    fuel = a0 + a1 P + a2 P^2 L/s,  P in kW, at least 0

Implementations that feed speeds in m/s to the rolling resistance, whose coefficients are for km/h, or masses in pounds,
are wrong by tens of percent.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

IDLE, KINETIC, LINEAR, SQUARE = 9449 / 3.6, 938.4 / 3.6, -467.1 / 3.6, 28.26 / 3.6
"""mg/s, mg s^2/m^2, mg/m and mg s/m^2: coefficients of CO2."""
FUEL_IDLE, FUEL_LINEAR, FUEL_SQUARE = 7.8e-4, 1.9556e-5, 1e-6
"""L/s, L/kJ and L s/kJ^2."""
MASS = 1430.0
"""kg"""
DRAG = 0.6128 * 0.6 * 0.98 * 3.28
"""kg/m: half the density of air, drag coefficient, correction for altitude, frontal area in m^2."""
ROLLING, ROLLING_SPEED = 9.8066 * MASS * 0.00175 * 4.575, 9.8066 * MASS * 0.00175 * 0.0328 * 3.6
"""N and kg/s: rolling resistance and its growth with speed."""
INERTIA, EFFICIENCY = 1.04 * MASS, 0.92
"""kg, rotating parts included; of the driveline."""


def co2(speed: Any, acceleration: Any) -> Any:
    """Return the emission of CO2, mg/s."""
    return jnp.maximum(IDLE + speed * (KINETIC * acceleration + LINEAR + SQUARE * speed), 0)


def fuel(speed: Any, acceleration: Any) -> Any:
    """Return the consumption of petrol, L/s."""
    force = DRAG * speed * speed + ROLLING_SPEED * speed + ROLLING + INERTIA * acceleration
    power = jnp.maximum(force * speed * (1e-3 / EFFICIENCY), 0)
    return FUEL_IDLE + power * (FUEL_LINEAR + FUEL_SQUARE * power)
