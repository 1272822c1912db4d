"""Synchronous machines in rotor coordinates (d along the excitation, q ahead of it).

A machine is its parameters, with the data sheet's values as defaults, and two functions of its
currents: ``derivative`` (A/s, at a mechanical speed in rad/s) and ``torque`` (inner torque, N m).
Fundamental wave, constant inductances, no iron losses.

Equations: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015). Parameters:
gym-electric-motor 3.0.3 (doi:10.21105/joss.02498) and the sources named there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp

from .frames import DQ, HALF_ROOT3, Phases, Scalar


class PermanentMagnet(NamedTuple):
    """PMSM: L_d di_d = u_d - R i_d + p w L_q i_q; L_q di_q = u_q - R i_q - p w (L_d i_d + psi)."""

    resistance: Scalar = 18e-3
    """Ohm, of a phase"""
    inductance_d: Scalar = 0.37e-3
    """H"""
    inductance_q: Scalar = 1.2e-3
    """H"""
    magnet_flux: Scalar = 66e-3
    """V s"""
    pole_pairs: Scalar = 3
    inertia: Scalar = 0.03883
    """kg m^2"""

    def flux(self, current: DQ) -> DQ:
        """Return flux linkages, V s."""
        return DQ(self.inductance_d * current.d + self.magnet_flux, self.inductance_q * current.q)

    def derivative(self, current: DQ, voltage: DQ, speed: Scalar) -> DQ:
        """Return dI/dt, A/s."""
        electrical = self.pole_pairs * speed
        linked = self.flux(current)
        per_d, per_q = 1 / self.inductance_d, 1 / self.inductance_q
        return DQ(
            (voltage.d - self.resistance * current.d + electrical * linked.q) * per_d,
            (voltage.q - self.resistance * current.q - electrical * linked.d) * per_q,
        )

    def torque(self, current: DQ) -> Scalar:
        """Return the torque, N m: 3/2 p (psi + (L_d - L_q) i_d) i_q."""
        reluctance = self.inductance_d - self.inductance_q
        return 1.5 * self.pole_pairs * (self.magnet_flux + reluctance * current.d) * current.q


class Reluctance(NamedTuple):
    """SynRM: a machine without magnets, d along the larger inductance."""

    resistance: Scalar = 0.57
    """Ohm, of a phase"""
    inductance_d: Scalar = 10.1e-3
    """H"""
    inductance_q: Scalar = 4.1e-3
    """H"""
    pole_pairs: Scalar = 4
    inertia: Scalar = 0.8e-3
    """kg m^2"""

    def without_magnets(self) -> PermanentMagnet:
        """Return the same machine as one whose magnets have no flux."""
        return PermanentMagnet(
            self.resistance,
            self.inductance_d,
            self.inductance_q,
            0.0,
            self.pole_pairs,
            self.inertia,
        )

    def derivative(self, current: DQ, voltage: DQ, speed: Scalar) -> DQ:
        """Return dI/dt, A/s."""
        return self.without_magnets().derivative(current, voltage, speed)

    def torque(self, current: DQ) -> Scalar:
        """Return the torque, N m."""
        return self.without_magnets().torque(current)


class Excited(NamedTuple):
    """Currents (A) or voltages (V) of stator and field winding, at its terminals.

    Those of the stator are in rotor coordinates.
    """

    d: Scalar
    q: Scalar
    field: Scalar


class ExternallyExcited(NamedTuple):
    """EESM: a field winding on the rotor, seen from the stator through ``turns_ratio`` k.

    Seen from there (capitals) i_E = 2 i_e / (3 k), u_E = k u_e, R_E = 3/2 k^2 r_e, L_E = 3/2 k^2
    l_e, L_M = 3/2 k l_m, and psi_d = L_d i_d + L_M i_E, psi_E = L_M i_d + L_E i_E: two coupled
    circuits on the d axis.

    Parameters: Nguyen & Hofmann 2014, doi:10.1109/ICELMACH.2014.6960287, as gym-electric-motor
    3.0.3 has them. In these equations they couple the d axis and the field by more than one, 3/2
    l_m^2 > L_d l_e: no machine can, the energy of the inductances is not positive, and currents run
    away. Good for comparison with the peer only; with l_m divided by sqrt(3/2) the leakage is 13 %.
    """

    resistance: Scalar = 15.55e-3
    """Ohm, of a phase"""
    inductance_d: Scalar = 1.66e-3
    """H"""
    inductance_q: Scalar = 0.35e-3
    """H"""
    mutual_inductance: Scalar = 1.589e-3
    """l_m, H"""
    field_resistance: Scalar = 7.2e-3
    """r_e, Ohm"""
    field_inductance: Scalar = 1.74e-3
    """l_e, H"""
    turns_ratio: Scalar = 65.21
    pole_pairs: Scalar = 3
    inertia: Scalar = 0.3883
    """kg m^2"""

    def field_seen_from_stator(self, field: Scalar) -> Scalar:
        """Return i_E, A, of a field current i_e."""
        return field * (2 / 3) / self.turns_ratio

    def magnetising_inductance(self) -> Scalar:
        """Magnetising inductance L_M, H."""
        return 1.5 * self.turns_ratio * self.mutual_inductance

    def derivative(self, current: Excited, voltage: Excited, speed: Scalar) -> Excited:
        """Return dI/dt, A/s."""
        electrical = self.pole_pairs * speed
        squared = 1.5 * self.turns_ratio * self.turns_ratio
        coupling = self.magnetising_inductance()
        excitation = self.field_seen_from_stator(current.field)
        inductance = squared * self.field_inductance
        linked_d = self.inductance_d * current.d + coupling * excitation
        flux_d = (
            voltage.d - self.resistance * current.d + electrical * self.inductance_q * current.q
        )
        flux_field = self.turns_ratio * voltage.field - squared * self.field_resistance * excitation
        determinant = self.inductance_d * inductance - coupling * coupling
        rate = (self.inductance_d * flux_field - coupling * flux_d) / determinant
        return Excited(
            (inductance * flux_d - coupling * flux_field) / determinant,
            (voltage.q - self.resistance * current.q - electrical * linked_d) / self.inductance_q,
            rate * 1.5 * self.turns_ratio,
        )

    def torque(self, current: Excited) -> Scalar:
        """Return the torque, N m: 3/2 p (L_M i_E + (L_d - L_q) i_d) i_q."""
        linked = self.magnetising_inductance() * self.field_seen_from_stator(current.field)
        return (
            1.5
            * self.pole_pairs
            * (linked + (self.inductance_d - self.inductance_q) * current.d)
            * current.q
        )


class DQXY(NamedTuple):
    """Six phases decomposed: d and q make torque, x and y (turning backwards) only losses.

    A or V.
    """

    d: Scalar
    q: Scalar
    x: Scalar
    y: Scalar


class SixPhase(NamedTuple):
    """Two three-phase windings 30 degrees apart, with neutral points not connected.

    Power is 3 (u_d i_d + ... + u_y i_y).

    Vector space decomposition: Zhao & Lipo 1995, doi:10.1109/28.464525. Parameters: IEEE Xplore
    document 10372153, as gym-electric-motor 3.0.3 has them.
    """

    resistance: Scalar = 64.3e-3
    """Ohm, of a phase"""
    inductance_d: Scalar = 125e-6
    """H"""
    inductance_q: Scalar = 126e-6
    """H"""
    inductance_x: Scalar = 39e-6
    """H"""
    inductance_y: Scalar = 35e-6
    """H"""
    magnet_flux: Scalar = 4.7e-3
    """V s"""
    pole_pairs: Scalar = 5
    inertia: Scalar = 0.0110
    """kg m^2"""

    def derivative(self, current: DQXY, voltage: DQXY, speed: Scalar) -> DQXY:
        """Return dI/dt, A/s."""
        electrical = self.pole_pairs * speed
        linked_d = self.inductance_d * current.d + self.magnet_flux
        back_x = electrical * self.inductance_y * current.y
        back_y = electrical * self.inductance_x * current.x
        return DQXY(
            (voltage.d - self.resistance * current.d + electrical * self.inductance_q * current.q)
            / self.inductance_d,
            (voltage.q - self.resistance * current.q - electrical * linked_d) / self.inductance_q,
            (voltage.x - self.resistance * current.x - back_x) / self.inductance_x,
            (voltage.y - self.resistance * current.y + back_y) / self.inductance_y,
        )

    def torque(self, current: DQXY) -> Scalar:
        """Return the torque, N m: 3 p (psi + (L_d - L_q) i_d) i_q.

        It is twice a three-phase machine's, as power balances.
        """
        reluctance = self.inductance_d - self.inductance_q
        return 3 * self.pole_pairs * (self.magnet_flux + reluctance * current.d) * current.q


def six_phase_vector(first: Phases, second: Phases, angle: Scalar) -> DQXY:
    """Turn the phases of both windings into rotor coordinates at the electrical angle (rad)."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    along = first.a - 0.5 * (first.b + first.c)
    across = HALF_ROOT3 * (first.b - first.c)
    shifted_along = HALF_ROOT3 * (second.a - second.b)
    shifted_across = 0.5 * (second.a + second.b) - second.c
    alpha, beta = (along + shifted_along) * (1 / 3), (across + shifted_across) * (1 / 3)
    x, y = (along - shifted_along) * (1 / 3), (shifted_across - across) * (1 / 3)
    return DQXY(
        cos * alpha + sin * beta, cos * beta - sin * alpha, cos * x - sin * y, cos * y + sin * x
    )


def six_phases(vector: DQXY, angle: Scalar) -> tuple[Phases, Phases]:
    """Invert :func:`six_phase_vector`; each winding's phases add up to zero."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    alpha, beta = cos * vector.d - sin * vector.q, cos * vector.q + sin * vector.d
    x, y = cos * vector.x + sin * vector.y, cos * vector.y - sin * vector.x
    along, across = alpha + x, beta - y
    shifted_along, shifted_across = alpha - x, beta + y
    first = Phases(along, HALF_ROOT3 * across - 0.5 * along, -HALF_ROOT3 * across - 0.5 * along)
    second = Phases(
        HALF_ROOT3 * shifted_along + 0.5 * shifted_across,
        0.5 * shifted_across - HALF_ROOT3 * shifted_along,
        -shifted_across,
    )
    return first, second


def max_torque_angle(machine: PermanentMagnet, length: float) -> float:
    """Return the angle of the current of ``length`` A with the most torque, rad from q towards -d.

    It is computed on the host.

    Morimoto et al. 1990, doi:10.1109/28.60058, eq. 9.
    """
    reluctance = machine.inductance_q - machine.inductance_d
    if reluctance == 0:
        return 0.0
    root = math.sqrt(machine.magnet_flux**2 + 8 * (reluctance * length) ** 2)
    return math.asin((root - machine.magnet_flux) / (4 * reluctance * length))
