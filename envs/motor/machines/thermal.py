"""Temperatures of a machine by a lumped-parameter network, and their effects on copper and magnets.

    coolant --G_c-- stator iron --G_w-- winding
                        |
                        +-------G_m---- magnets

Each node has one temperature and one heat capacity. Copper losses warm the winding. Iron losses
warm the stator, and a share of them, by eddy currents, warms the magnets. Resistance rises and
magnet flux falls in proportion to temperature.

Sources: Wallscheid & Boecker 2016, doi:10.1109/TEC.2015.2473673 (low-order networks of a traction
machine); IEC 60028 (copper, 0.393 %/K); Krishnan 2010, Permanent Magnet Synchronous and Brushless
DC Motor Drives (neodymium magnets, -0.11 %/K). The values are of the size of a water-cooled machine
of 50 kW, not one machine's own.
"""

from __future__ import annotations

from typing import NamedTuple

from .frames import Scalar

ROOM_TEMPERATURE = 20.0
"""Degrees Celsius: temperature of data sheets."""
COPPER_COEFFICIENT = 3.93e-3
"""1/K"""
MAGNET_COEFFICIENT = -1.1e-3
"""1/K"""


def resistance(at_room: Scalar, winding: Scalar) -> Scalar:
    """Return the resistance of a winding, Ohm, at a temperature in degrees Celsius."""
    return at_room * (1 + COPPER_COEFFICIENT * (winding - ROOM_TEMPERATURE))


def magnet_flux(at_room: Scalar, magnets: Scalar) -> Scalar:
    """Return the flux of magnets, V s, at a temperature in degrees Celsius.

    Cooled magnets regain what they lost.
    """
    return at_room * (1 + MAGNET_COEFFICIENT * (magnets - ROOM_TEMPERATURE))


class Temperatures(NamedTuple):
    """Degrees Celsius; as a rate, K/s."""

    winding: Scalar
    iron: Scalar
    magnets: Scalar


class Network(NamedTuple):
    """Heat capacities and conductances between the nodes."""

    winding: Scalar = 2000.0
    """J/K"""
    iron: Scalar = 6000.0
    """J/K"""
    magnets: Scalar = 1500.0
    """J/K"""
    winding_to_iron: Scalar = 40.0
    """G_w, W/K"""
    iron_to_coolant: Scalar = 100.0
    """G_c, W/K"""
    magnets_to_iron: Scalar = 5.0
    """G_m, W/K"""
    coolant: Scalar = 72.0
    """Degrees Celsius"""
    in_magnets: Scalar = 0.1
    """Share of the iron losses that warms the magnets"""

    def rate(self, temperatures: Temperatures, copper: Scalar, iron: Scalar) -> Temperatures:
        """Return the rates, K/s, under copper and iron losses, W."""
        from_winding = self.winding_to_iron * (temperatures.winding - temperatures.iron)
        from_magnets = self.magnets_to_iron * (temperatures.magnets - temperatures.iron)
        to_coolant = self.iron_to_coolant * (temperatures.iron - self.coolant)
        return Temperatures(
            (copper - from_winding) / self.winding,
            (iron * (1 - self.in_magnets) + from_winding + from_magnets - to_coolant) / self.iron,
            (iron * self.in_magnets - from_magnets) / self.magnets,
        )

    def steady(self, copper: Scalar, iron: Scalar) -> Temperatures:
        """Return the temperatures that constant losses, W, lead to.

        All heat leaves through the coolant.
        """
        stator = self.coolant + (copper + iron) / self.iron_to_coolant
        return Temperatures(
            stator + copper / self.winding_to_iron,
            stator,
            stator + iron * self.in_magnets / self.magnets_to_iron,
        )
