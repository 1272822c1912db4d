"""CO2 and fuel of a passenger car from its speed and acceleration, in closed form.

All functions take arrays.

CO2 is the polynomial that SUMO uses for the class PC_G_EU4 of the Handbook Emission Factors for
Road Transport 3.1 (petrol, Euro 4; coefficients of ``HelpersHBEFA3``,
https://sumo.dlr.de/docs/Models/Emissions/HBEFA3-based.html):

    CO2 = max(0, 9449 + 938.4 a v - 467.1 v + 28.26 v^2) g/h

Trucks have that of the class HDV_D_EU4 (diesel, Euro 4) from the same source:

    CO2 = max(0, 24290 + 7180 a v + 1835 v) g/h

A petrol car whose engine is cold emits 1.47 - 0.009 T times as much at a temperature T of -10..30
degrees Celsius. The share of cold cars is 0.6474 - 0.02545 l - (0.00974 - 0.000385 l) T for
journeys of l = 12 km on average. Both are those of the EMEP/EEA air pollutant emission inventory
guidebook (chapter 1.A.3.b, tier 3: ratio of cold to hot fuel consumption of petrol cars, beta
parameter), which has no cold starts of trucks. The ratio is one of fuel; CO2 is in proportion.

SUMO has no emission at any deceleration, however small, which pays for trembling; here the
polynomial counts there too. Its second term is the rate of kinetic energy, a v = d(v^2 / 2)/dt: the
emission for a change of speed does not depend on how fast the speed changes, as long as the maximum
does not bind.

Fuel is the model VT-CPFM-1 (Rakha et al. 2011, doi:10.1016/j.trd.2011.05.008) in SI units:

    R = rho / 2 Cd Ch Af v^2 + g m Cr / 1000 (c1 3.6 v + c2),   P = (R + 1.04 m a) v / 0.92
    fuel = a0 + a1 P + a2 P^2 L/s,  P in kW, at least 0

Implementations that feed speeds in m/s to the rolling resistance, whose coefficients are for km/h,
or masses in pounds, are wrong by tens of percent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar


class Engine(NamedTuple):
    """Coefficients of CO2."""

    idle: Scalar  # mg/s
    kinetic: Scalar  # mg s^2/m^2
    linear: Scalar  # mg/m
    square: Scalar  # mg s/m^2


CAR = Engine(9449 / 3.6, 938.4 / 3.6, -467.1 / 3.6, 28.26 / 3.6)
TRUCK = Engine(24290 / 3.6, 7180 / 3.6, 1835 / 3.6, 0.0)
JOURNEY = 12.0  # km
FUEL_IDLE = 7.8e-4  # L/s
FUEL_LINEAR = 1.9556e-5  # L/kJ
FUEL_SQUARE = 1e-6  # L s/kJ^2
MASS = 1430.0  # kg
# kg/m: half the density of air, drag coefficient, correction for altitude, frontal area in m^2.
DRAG = 0.6128 * 0.6 * 0.98 * 3.28
ROLLING = 9.8066 * MASS * 0.00175 * 4.575  # N: rolling resistance
ROLLING_SPEED = 9.8066 * MASS * 0.00175 * 0.0328 * 3.6  # kg/s: its growth with speed
INERTIA = 1.04 * MASS  # kg, rotating parts included
EFFICIENCY = 0.92  # of the driveline


def co2(speed: Any, acceleration: Any, engine: Engine = CAR) -> Any:
    """Return the emission of CO2, mg/s."""
    return jnp.maximum(
        engine.idle
        + speed * (engine.kinetic * acceleration + engine.linear + engine.square * speed),
        0,
    )


def cold_ratio(temperature: Any) -> Any:
    """Return the emission of a car with a cold engine by that of the same car with a warm one."""
    return 1.47 - 0.009 * temperature


def cold_share(temperature: Any) -> Any:
    """Return the share of cars with a cold engine."""
    return 0.6474 - 0.02545 * JOURNEY - (0.00974 - 0.000385 * JOURNEY) * temperature


def fuel(speed: Any, acceleration: Any) -> Any:
    """Return the consumption of petrol, L/s."""
    force = DRAG * speed * speed + ROLLING_SPEED * speed + ROLLING + INERTIA * acceleration
    power = jnp.maximum(force * speed * (1e-3 / EFFICIENCY), 0)
    return FUEL_IDLE + power * (FUEL_LINEAR + FUEL_SQUARE * power)
