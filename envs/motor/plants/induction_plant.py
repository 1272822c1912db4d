"""Induction machines on two-level bridges: squirrel cage and doubly fed."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from ..machines import induction
from ..machines.frames import DQ, AlphaBeta, Scalar, Values, inverse_clarke, inverse_park, park
from .plant import Base
from .three_phase import Coupled, ThreePhase, shorten_to_unit_circle

MIN_FLUX = 1e-3
"""V s: the direction of a smaller rotor flux is not computed."""


class SCIM(ThreePhase):
    """Squirrel cage, on a 420 V link; field coordinates turn with the rotor's flux."""

    nominal: Any = induction.Induction()
    tolerance: Any = induction.Induction(0.2, 0.2, 0.1, 0.1, 0.1, 0, 0.0)
    current_limit = 5.5
    nominal_current = 3.9
    speed_limit = 4000 * math.pi / 30
    unit = 420 / math.sqrt(3)
    measured_names: tuple[str, ...] = ("i_d", "i_q", "psi_r")
    pole_pairs = 2
    magnetising_current: float = 2.2
    """A: i_d while torque is requested."""

    @property
    def nominal_flux(self) -> float:
        """Nominal flux of the rotor, V s."""
        return float(self.nominal.mutual_inductance * self.magnetising_current)

    def base(self) -> Base | None:
        """Return the base at the nominal flux."""
        machine, d = self.nominal, self.magnetising_current
        q = math.sqrt(max(self.nominal_current**2 - d * d, 0.0))
        flux = machine.stator_inductance() * d, machine.transient_inductance() * q
        return self._base(machine.stator_resistance, (d, q), flux, machine.transient_inductance())

    def state_at_rest(self, machine: Any) -> Any:
        """Return the nominal flux of the rotor, along alpha, and the current that holds it."""
        zero = jnp.zeros_like(machine.inertia)
        return induction.Electrical(
            AlphaBeta(zero + self.magnetising_current, zero),
            AlphaBeta(machine.mutual_inductance * self.magnetising_current, zero),
        )

    def flux(self, electrical: Any) -> AlphaBeta:
        """Return the flux linked with the rotor, V s, in the stator's coordinates."""
        return electrical.flux

    def field(self, electrical: Any) -> tuple[Scalar, Scalar, Scalar]:
        """Return the length (V s) of the rotor's flux, and cosine and sine of its angle."""
        flux = self.flux(electrical)
        length = jnp.sqrt(flux.alpha * flux.alpha + flux.beta * flux.beta)
        per = 1 / jnp.maximum(length, MIN_FLUX)
        return length, flux.alpha * per, flux.beta * per

    def directions(self, electrical: Any, angle: Scalar) -> Values:
        """Return the direction of the rotor's flux.

        The stator's switches depend on it, and not on the rotor's angle.
        """
        return self.field(electrical)[1:]

    def to_field(self, vector: AlphaBeta, electrical: Any) -> DQ:
        """Return a vector of the stator's coordinates in field coordinates."""
        _, cos, sin = self.field(electrical)
        return DQ(cos * vector.alpha + sin * vector.beta, cos * vector.beta - sin * vector.alpha)

    def from_field(self, vector: DQ, electrical: Any) -> AlphaBeta:
        """Invert :meth:`to_field`."""
        _, cos, sin = self.field(electrical)
        d, q = vector
        return AlphaBeta(cos * d - sin * q, sin * d + cos * q)

    def measure(self, electrical: Any) -> Values:
        """Return the currents and the rotor's flux."""
        current, per = self.to_field(electrical.current, electrical), 1 / self.current_limit
        return current.d * per, current.q * per, self.field(electrical)[0] * (1 / self.nominal_flux)

    def electrical_of(self, measured: Values, directions: Values = ()) -> Any:
        """Return currents and flux. The flux lies along alpha unless its direction is given."""
        (d, q, flux), (cos, sin, *_) = measured, directions or (1.0, 0.0)
        length = flux * self.nominal_flux
        return induction.Electrical(
            self._ahead_of(d, q, cos, sin), AlphaBeta(cos * length, sin * length)
        )

    def _ahead_of(self, d: Scalar, q: Scalar, cos: Scalar, sin: Scalar) -> AlphaBeta:
        """Return a current, A, in the stator's coordinates.

        ``d`` and ``q`` are its parts along and across a direction, in parts of the limit.
        """
        limit = self.current_limit
        return AlphaBeta((cos * d - sin * q) * limit, (sin * d + cos * q) * limit)

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """Turn the voltage with the field's angle at the start of a step.

        It then stays constant in the stator's coordinates.
        """
        return self._short_circuited(
            self.from_field(DQ(self.unit * applied[0], self.unit * applied[1]), electrical)
        )

    def voltage_of_legs(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the voltage in the stator's coordinates."""
        return self._short_circuited(self.phases(legs))

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Return the currents of phases c, b and a."""
        return inverse_clarke(electrical.current)[::-1]

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Return the power of the stator."""
        stator, current = voltage.stator, electrical.current
        return 1.5 * (stator.alpha * current.alpha + stator.beta * current.beta)

    def _short_circuited(self, stator: AlphaBeta) -> induction.Voltages:
        return induction.Voltages(stator, AlphaBeta(0.0 * stator.alpha, 0.0 * stator.beta))

    def resistances(self) -> tuple[float, ...]:
        """Return the resistance of the stator for both axes."""
        return self.nominal.stator_resistance, self.nominal.stator_resistance

    def inductances(self) -> tuple[float, ...]:
        """Return the transient inductance for both axes."""
        return self.nominal.transient_inductance(), self.nominal.transient_inductance()

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltage by the rotor's flux and the turning of the coordinates."""
        machine, current = self.nominal, self.to_field(electrical.current, electrical)
        flux = self.field(electrical)[0]
        coupling = machine.mutual_inductance / machine.rotor_inductance()
        slip = (
            machine.rotor_resistance
            * coupling
            * current.q
            / jnp.maximum(flux, 0.1 * self.nominal_flux)
        )
        turning = self.pole_pairs * speed + slip
        decay = (
            machine.rotor_resistance
            / machine.rotor_inductance()
            * (machine.mutual_inductance * current.d - flux)
        )
        transient = machine.transient_inductance()
        return coupling * decay - turning * transient * current.q, turning * (
            transient * current.d + coupling * flux
        )

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return the torque's current at the present flux; the magnetising current is constant."""
        machine = self.nominal
        flux = jnp.maximum(self.field(electrical)[0], 0.1 * self.nominal_flux)
        coupling = machine.mutual_inductance / machine.rotor_inductance()
        return self.magnetising_current + 0.0 * torque, torque / (
            1.5 * self.pole_pairs * coupling * flux
        )


class DFIM(SCIM, Coupled):
    """Doubly fed: stator and rotor each with a bridge on a 420 V link.

    Field coordinates turn with the rotor's flux as the data sheet's machine has it from the
    currents, which are all measured. In them i_rq is -L_m / L_r i_sq: three currents are free, and
    u_rq sets how fast the field turns, which divides the induced voltage between the bridges.
    """

    nominal = induction.DOUBLY_FED
    tolerance = induction.DoublyFed(0.2, 0.2, 0.1, 0.1, 0.1, 0, 0.0)
    currents = ("i_sd", "i_sq", "i_rd")
    measured_names = ("i_sd", "i_sq", "i_rd", "i_rq", "psi_r")
    voltages = ("u_sd", "u_sq", "u_rd", "u_rq")
    converters = (("stator", 8), ("rotor", 8))
    turning = 2
    current_limit = 9.0
    nominal_current = 7.5
    speed_limit = 1800 * math.pi / 30
    unit = 420 / math.sqrt(3)
    magnetising_current: float = 1.2
    """A: i_sd and i_rd while torque is requested."""

    @property
    def nominal_flux(self) -> float:
        """Nominal flux of the rotor, V s: both windings magnetise it."""
        return float(
            (self.nominal.mutual_inductance + self.nominal.rotor_inductance())
            * self.magnetising_current
        )

    def base(self) -> None:
        """Return None: its data sheet cannot be replaced."""

    def state_at_rest(self, machine: Any) -> Any:
        """Magnetise both windings alike, along alpha."""
        zero = jnp.zeros_like(machine.inertia)
        along = AlphaBeta(zero + self.magnetising_current, zero)
        return induction.Currents(along, along)

    def flux(self, electrical: Any) -> AlphaBeta:
        """Return the flux, V s, by the data sheet's inductances."""
        machine, (stator, rotor) = self.nominal, electrical
        mutual, rotor_inductance = machine.mutual_inductance, machine.rotor_inductance()
        return AlphaBeta(
            mutual * stator.alpha + rotor_inductance * rotor.alpha,
            mutual * stator.beta + rotor_inductance * rotor.beta,
        )

    def directions(self, electrical: Any, angle: Scalar) -> Values:
        """Return the directions of the rotor's flux and of the rotor.

        The rotor's switches turn with the rotor.
        """
        return *self.field(electrical)[1:], jnp.cos(angle), jnp.sin(angle)

    def measure(self, electrical: Any) -> Values:
        """Return the currents of stator and rotor, and the rotor's flux."""
        stator = self.to_field(electrical.current, electrical)
        rotor = self.to_field(electrical.rotor, electrical)
        per = 1 / self.current_limit
        flux = self.field(electrical)[0] * (1 / self.nominal_flux)
        return stator.d * per, stator.q * per, rotor.d * per, rotor.q * per, flux

    def electrical_of(self, measured: Values, directions: Values = ()) -> Any:
        """Return the currents of stator and rotor.

        The flux lies along alpha unless its direction is given.
        """
        (d, q, rotor_d, rotor_q, _), (cos, sin, *_) = measured, directions or (1.0, 0.0)
        return induction.Currents(
            self._ahead_of(d, q, cos, sin), self._ahead_of(rotor_d, rotor_q, cos, sin)
        )

    def length(self, electrical: Any) -> Scalar:
        """Return the length of the longer vector of both windings."""
        rotor = electrical.rotor
        longer = jnp.sqrt(rotor.alpha * rotor.alpha + rotor.beta * rotor.beta) * (
            1 / self.current_limit
        )
        return jnp.maximum(super().length(electrical), longer)

    def limit_action(self, action: Values) -> Values:
        """Shorten each winding's vector to the unit circle."""
        return *shorten_to_unit_circle(action[0], action[1]), *shorten_to_unit_circle(
            action[2], action[3]
        )

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """Turn the voltages with the field's angle at the start of a step.

        They then stay constant in the stator's coordinates.
        """
        stator = DQ(self.unit * applied[0], self.unit * applied[1])
        rotor = DQ(self.unit * applied[2], self.unit * applied[3])
        return induction.Voltages(
            self.from_field(stator, electrical), self.from_field(rotor, electrical)
        )

    def voltage_of_legs(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """Turn the rotor's voltage with the rotor, as it is at the start of a step."""
        rotor = inverse_park(DQ(*self.phases(legs[3:])), angle)
        return induction.Voltages(self.phases(legs[:3]), rotor)

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Return the currents of the stator's bridge, then of the rotor's, which turns with it."""
        rotor = inverse_clarke(AlphaBeta(*park(electrical.rotor, angle)))
        return *super().leg_currents(electrical, angle), *rotor[::-1]

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Return the power of stator and rotor."""
        rotor, current = voltage.rotor, electrical.rotor
        return super().power(voltage, electrical) + 1.5 * (
            rotor.alpha * current.alpha + rotor.beta * current.beta
        )

    def shares(self, volts: Values) -> tuple[Values, Values]:
        """Return the stator's and the rotor's."""
        d, q, rotor_d, rotor_q = (share * (1 / self.unit) for share in volts)
        return (d, q), (rotor_d, rotor_q)

    def resistances(self) -> tuple[float, ...]:
        """Return the resistances of stator and rotor."""
        stator, rotor = self.nominal.stator_resistance, self.nominal.rotor_resistance
        return stator, stator, rotor, rotor

    def inductances(self) -> tuple[float, ...]:
        """Return the inductances of the free currents.

        Along the flux it is each winding's own, across it the transient one.
        """
        machine = self.nominal
        return (
            machine.stator_inductance(),
            machine.transient_inductance(),
            machine.rotor_inductance(),
        )

    def changing_voltages(self, errors: Values, period: float, speed: Scalar) -> Values:
        """Let the windings change each other's current along the flux.

        The voltage u_rq changes no free current.
        """
        d, q, rotor_d = super().changing_voltages(errors, period, speed)
        mutual = self.nominal.mutual_inductance / period
        return d + mutual * errors[2], q, rotor_d + mutual * errors[0], 0.0 * q

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltages in a field that turns half as fast as the rotor.

        So both bridges give the same voltage.
        """
        half, machine = 0.5 * self.pole_pairs * speed, self.nominal
        stator = self.to_field(electrical.current, electrical)
        rotor = self.to_field(electrical.rotor, electrical)
        mutual, stator_inductance = machine.mutual_inductance, machine.stator_inductance()
        linked = DQ(
            stator_inductance * stator.d + mutual * rotor.d,
            stator_inductance * stator.q + mutual * rotor.q,
        )
        return -half * linked.q, half * linked.d, 0.0 * speed, -half * self.field(electrical)[0]

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return the torque's current at the present flux, and constant magnetising currents."""
        magnetising, i_q = super().currents_for(torque, electrical)
        return magnetising, i_q, magnetising
