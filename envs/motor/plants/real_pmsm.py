"""A permanent-magnet synchronous machine that saturates, loses power in its iron and gets warm.

It is fed by an inverter.

    d psi / dt = u - R(T_w) i - p w J psi,  i = i(psi, T_m),  T_shaft = 3/2 p (psi_d i_q - psi_q
    i_d) - T_iron

The flux map (``saturation.py``), the iron's losses (``iron_losses.py``) and the thermal network
(``thermal.py``) have files of their own in ``machines/``. Near zero current and at 20 degrees
Celsius the machine is the linear one of ``synchronous.py``.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..machines import synchronous, thermal
from ..machines.frames import DQ, Scalar, Values
from ..machines.iron_losses import IronLosses
from ..machines.saturation import Iron, Saturation, saturation_of
from ..machines.thermal import Network, Temperatures
from .three_phase import PMSM

_LINEAR = synchronous.PermanentMagnet()
AMPLITUDES = np.linspace(0.0, 400.0, 81)
"""A, of the table of currents."""


class Warm(NamedTuple):
    """State with the measured currents first, then the quantities that determine them."""

    d: Scalar
    """A"""
    q: Scalar
    """A"""
    flux_d: Scalar
    """V s"""
    flux_q: Scalar
    """V s"""
    winding: Scalar
    """Degrees Celsius"""
    iron: Scalar
    """Degrees Celsius"""
    magnets: Scalar
    """Degrees Celsius"""

    @property
    def flux(self) -> DQ:
        """Flux linkages, V s."""
        return DQ(self.flux_d, self.flux_q)

    @property
    def temperatures(self) -> Temperatures:
        """Temperatures, degrees Celsius."""
        return Temperatures(self.winding, self.iron, self.magnets)


class RealPermanentMagnet(NamedTuple):
    """Parameters; those that depend on temperature are given at 20 degrees Celsius."""

    resistance: Scalar = _LINEAR.resistance
    """Ohm, of a phase"""
    inductance_d: Scalar = _LINEAR.inductance_d
    """H, near zero current"""
    inductance_q: Scalar = _LINEAR.inductance_q
    """H, near zero current"""
    magnet_flux: Scalar = _LINEAR.magnet_flux
    """V s"""
    pole_pairs: Scalar = _LINEAR.pole_pairs
    inertia: Scalar = _LINEAR.inertia
    """kg m^2"""
    saturation: Scalar = Iron().qq
    """a_qq, A / (V s)^6"""
    hysteresis: Scalar = IronLosses().hysteresis
    """k_h, W s / (V s)^2"""
    eddy: Scalar = IronLosses().eddy
    """k_e, W s^2 / (V s)^2"""
    coolant: Scalar = Network().coolant
    """Degrees Celsius"""
    warm: Scalar = 40.0
    """K, of the winding above the coolant at the start"""

    def flux_map(self, magnets: Scalar) -> Saturation:
        """Return the flux map with magnets at this temperature, degrees Celsius."""
        iron = saturation_of(
            self.inductance_d,
            self.inductance_q,
            self.magnet_flux,
            Iron()._replace(qq=self.saturation),
        )
        return iron.with_magnets(thermal.magnet_flux(self.magnet_flux, magnets))

    def inner_torque(self, flux: DQ, current: DQ) -> Scalar:
        """Return the torque between stator and rotor, N m."""
        return 1.5 * self.pole_pairs * (flux.d * current.q - flux.q * current.d)

    def torque(self, electrical: Warm) -> Scalar:
        """Return the inner torque, N m."""
        return self.inner_torque(electrical.flux, DQ(electrical.d, electrical.q))

    def iron_torque(self, flux: DQ, speed: Scalar) -> Scalar:
        """Return the torque by which the iron brakes, N m."""
        return IronLosses(self.hysteresis, self.eddy).torque(flux, speed, self.pole_pairs)

    def shaft_torque(self, electrical: Warm, speed: Scalar) -> Scalar:
        """Return the torque of the shaft, N m."""
        return self.torque(electrical) - self.iron_torque(electrical.flux, speed)

    def copper_losses(self, current: DQ, winding: Scalar) -> Scalar:
        """Return the losses, W, at the winding's temperature, degrees Celsius."""
        square = current.d * current.d + current.q * current.q
        return 1.5 * thermal.resistance(self.resistance, winding) * square

    def flux_rate(self, flux: DQ, current: DQ, voltage: DQ, speed: Scalar, winding: Scalar) -> DQ:
        """Return d psi / dt, V, under a voltage (V) at a mechanical speed (rad/s)."""
        electrical, ohm = self.pole_pairs * speed, thermal.resistance(self.resistance, winding)
        return DQ(
            voltage.d - ohm * current.d + electrical * flux.q,
            voltage.q - ohm * current.q - electrical * flux.d,
        )

    def warm_up(
        self, electrical: Warm, next_flux: DQ, current: DQ, speed: Scalar, duration: Scalar
    ) -> Warm:
        """Return the state with this flux and current after ``duration`` s of losses.

        The losses warm the machine.
        """
        copper = self.copper_losses(current, electrical.winding)
        iron = self.iron_torque(next_flux, speed) * speed
        rate = Network(coolant=self.coolant).rate(electrical.temperatures, copper, iron)
        return Warm(
            *current,
            *next_flux,
            *(
                t + duration * change
                for t, change in zip(electrical.temperatures, rate, strict=True)
            ),
        )


class RealPMSM(PMSM):
    """The machine on a 300 V link, with a thermocouple in its winding."""

    nominal: Any = RealPermanentMagnet()
    tolerance: Any = RealPermanentMagnet(0.1, 0.1, 0.1, 0.05, 0, 0.0, 0.2, 0.3, 0.3, 1 / 6, 0.4)

    def state_at_rest(self, machine: RealPermanentMagnet) -> Warm:
        """Return no currents, and temperatures as after long copper losses alone."""
        zero = jnp.zeros_like(machine.inertia)
        copper = machine.warm / (1 / Network().winding_to_iron + 1 / Network().iron_to_coolant)
        warm = Network(coolant=machine.coolant).steady(copper, zero)
        flux = thermal.magnet_flux(machine.magnet_flux, warm.magnets)
        return Warm(zero, zero, flux, zero, *warm)

    def measure(self, electrical: Warm) -> Values:
        """Return the currents."""
        per = 1 / self.current_limit
        return electrical.d * per, electrical.q * per

    @property
    def nominal_map(self) -> Saturation:
        """Flux map of the data sheet, with magnets at 80 degrees Celsius.

        That is the middle of their range.
        """
        return self.nominal.flux_map(80.0)

    @cached_property
    def table(self) -> tuple[np.ndarray, DQ]:
        """Return the largest torque of each current of ``AMPLITUDES``, N m, with its d and q, A.

        It is computed on the host.
        """
        angle = np.linspace(0, 0.5 * np.pi, 2001)[:, None]
        current = DQ(-AMPLITUDES * np.sin(angle), AMPLITUDES * np.cos(angle))
        torque = self.nominal.inner_torque(self.nominal_map.flux(current), current)
        best = torque.argmax(0), np.arange(AMPLITUDES.size)
        return torque[best], DQ(current.d[best], current.q[best])

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return the currents of maximum torque per ampere on the data sheet's flux map.

        They come from a table.
        """
        torques, currents = self.table
        size = jnp.abs(torque)
        return jnp.interp(size, torques, currents.d), jnp.sign(torque) * jnp.interp(
            size, torques, currents.q
        )
