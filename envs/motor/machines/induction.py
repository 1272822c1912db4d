"""Induction machines: squirrel cage and doubly fed, in the stator's coordinates.

State: stator current and rotor flux linkage, rotor quantities seen from the stator. With L_s, L_r
the stator's and rotor's inductances, sigma = 1 - L_m^2 / (L_s L_r), and J a quarter turn:

    d psi_r = u_r - R_r i_r + p w J psi_r,            i_r = (psi_r - L_m i_s) / L_r
    sigma L_s d i_s = u_s - R_s i_s - L_m / L_r d psi_r

A machine is its parameters, with the data sheet's values as defaults, and two functions of its
electrical state.

Equations: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), asynchronous
machine. Parameters: gym-electric-motor 3.0.3 (doi:10.21105/joss.02498); squirrel cage: Wallscheid
et al. 2018, doi:10.1109/EPEPEMC.2018.8522008.
"""

from __future__ import annotations

from typing import NamedTuple

from .frames import AlphaBeta, Scalar


class Electrical(NamedTuple):
    """The electrical state."""

    current: AlphaBeta
    """Stator current, A"""
    flux: AlphaBeta
    """Linked with the rotor, V s"""


class Voltages(NamedTuple):
    """Voltages of both windings, V; the rotor of a squirrel cage is short-circuited."""

    stator: AlphaBeta
    rotor: AlphaBeta


class Induction(NamedTuple):
    """A machine; the defaults are those of the squirrel cage (SCIM)."""

    stator_resistance: Scalar = 2.9338
    """Ohm"""
    rotor_resistance: Scalar = 1.355
    """Ohm"""
    mutual_inductance: Scalar = 143.75e-3
    """L_m, H"""
    stator_leakage: Scalar = 5.87e-3
    """H"""
    rotor_leakage: Scalar = 5.87e-3
    """H"""
    pole_pairs: Scalar = 2
    inertia: Scalar = 1.1e-3
    """kg m^2"""

    def stator_inductance(self) -> Scalar:
        """Stator inductance L_s, H."""
        return self.mutual_inductance + self.stator_leakage

    def rotor_inductance(self) -> Scalar:
        """Rotor inductance L_r, H."""
        return self.mutual_inductance + self.rotor_leakage

    def transient_inductance(self) -> Scalar:
        """Transient inductance sigma L_s, H."""
        mutual = self.mutual_inductance
        return self.stator_inductance() - mutual * mutual / self.rotor_inductance()

    def rotor_current(self, state: Electrical) -> AlphaBeta:
        """Return the rotor's current, A, seen from the stator."""
        mutual, inductance = self.mutual_inductance, self.rotor_inductance()
        return AlphaBeta(
            (state.flux.alpha - mutual * state.current.alpha) / inductance,
            (state.flux.beta - mutual * state.current.beta) / inductance,
        )

    def derivative(self, state: Electrical, voltage: Voltages, speed: Scalar) -> Electrical:
        """Return the rates of current (A/s) and flux (V) at a mechanical speed (rad/s)."""
        electrical = self.pole_pairs * speed
        rotor = self.rotor_current(state)
        flux = AlphaBeta(
            voltage.rotor.alpha
            - self.rotor_resistance * rotor.alpha
            - electrical * state.flux.beta,
            voltage.rotor.beta - self.rotor_resistance * rotor.beta + electrical * state.flux.alpha,
        )
        coupling = self.mutual_inductance / self.rotor_inductance()
        transient = self.transient_inductance()
        drop = self.stator_resistance
        current = AlphaBeta(
            (voltage.stator.alpha - drop * state.current.alpha - coupling * flux.alpha) / transient,
            (voltage.stator.beta - drop * state.current.beta - coupling * flux.beta) / transient,
        )
        return Electrical(current, flux)

    def torque(self, state: Electrical) -> Scalar:
        """Return the torque, N m: 3/2 p L_m / L_r psi_r x i_s."""
        cross = state.flux.alpha * state.current.beta - state.flux.beta * state.current.alpha
        return 1.5 * self.pole_pairs * (self.mutual_inductance / self.rotor_inductance()) * cross


class Currents(NamedTuple):
    """The electrical state in quantities that slip rings make measurable."""

    current: AlphaBeta
    """Stator current, A"""
    rotor: AlphaBeta
    """Rotor current seen from the stator, A"""


class DoublyFed(Induction):
    """The same machine with slip rings to the rotor's windings.

    Its state holds the currents of both windings.
    """

    __slots__ = ()

    def with_flux(self, state: Currents) -> Electrical:
        """Return the state of :class:`Induction`."""
        mutual, rotor_inductance = self.mutual_inductance, self.rotor_inductance()
        stator, rotor = state
        flux = AlphaBeta(
            mutual * stator.alpha + rotor_inductance * rotor.alpha,
            mutual * stator.beta + rotor_inductance * rotor.beta,
        )
        return Electrical(stator, flux)

    def derivative(  # type: ignore[override]  # of another state
        self, state: Currents, voltage: Voltages, speed: Scalar
    ) -> Currents:
        """Return dI/dt, A/s, at a mechanical speed (rad/s)."""
        rate = super().derivative(self.with_flux(state), voltage, speed)
        return Currents(rate.current, self.rotor_current(rate))

    def torque(self, state: Currents) -> Scalar:  # type: ignore[override]
        """Return the torque, N m: 3/2 p L_m i_r x i_s."""
        stator, rotor = state
        cross = rotor.alpha * stator.beta - rotor.beta * stator.alpha
        return 1.5 * self.pole_pairs * self.mutual_inductance * cross


DOUBLY_FED = DoublyFed(4.42, 3.51, 297.5e-3, 25.71e-3, 25.71e-3, 2, 13.695e-3)
"""DFIM"""
