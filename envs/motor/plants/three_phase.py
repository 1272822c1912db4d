"""Three-phase machines on two-level bridges: what all share, and the synchronous ones.

One of these has six phases.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp

from ..machines import synchronous
from ..machines.frames import (
    DQ,
    AlphaBeta,
    Phases,
    Scalar,
    Values,
    clarke,
    inverse_clarke,
    inverse_park,
    park,
)
from .plant import Base, Plant

MIN_FREE_VOLTAGE = 0.05
"""Part of a converter's voltage that is always available to change a current."""


def shorten_to_unit_circle(d: Scalar, q: Scalar) -> tuple[Scalar, Scalar]:
    """Return a vector, shortened to length one in its own direction if it is longer."""
    share = 1 / jnp.maximum(1, jnp.sqrt(d * d + q * q))
    return d * share, q * share


class ThreePhase(Plant):
    """Properties that three-phase machines share: two voltages within a circle.

    The voltages are in field coordinates.
    """

    currents: tuple[str, ...] = ("i_d", "i_q")
    measured_names: tuple[str, ...] = ("i_d", "i_q")
    voltages: tuple[str, ...] = ("u_d", "u_q")
    converters: tuple[tuple[str, int], ...] = (("stator", 8),)
    turning = 1

    @property
    def link(self) -> float:
        """Voltage of the inverter's direct-current link, V."""
        return self.unit * math.sqrt(3)

    def directions(self, electrical: Any, angle: Scalar) -> Values:
        """Return the rotor's direction."""
        return jnp.cos(angle), jnp.sin(angle)

    def limit_action(self, action: Values) -> Values:
        """Shorten the vector to the unit circle in its own direction."""
        return shorten_to_unit_circle(action[0], action[1])

    def length(self, electrical: Any) -> Scalar:
        """Return the length of the current's vector."""
        d, q = self.measure(electrical)[:2]
        return jnp.sqrt(d * d + q * q)

    def phases(self, legs: Values) -> AlphaBeta:
        """Return the bridge's voltage in the stator's coordinates, V."""
        return clarke(self.terminals(legs))

    def terminals(self, legs: Values) -> Phases:
        """Return the voltages, V, of a bridge's phases against the link's middle.

        The first leg is phase c's.
        """
        c, b, a = legs
        return Phases(self.link * (a - 0.5), self.link * (b - 0.5), self.link * (c - 0.5))

    @property
    def rating(self) -> float:
        """Rating of the stator, VA."""
        return 1.5 * self.unit * self.nominal_current

    def _base(
        self,
        resistance: float,
        currents: tuple[float, float],
        flux: tuple[float, float],
        inductance: float,
    ) -> Base:
        """Return the base for nominal d and q currents (A) and the stator's flux at them (V s).

        Its speed solves |R i + p w J psi| = U, a quadratic equation.
        """
        (d, q), (flux_d, flux_q) = currents, flux
        torque = 1.5 * self.pole_pairs * (flux_d * q - flux_q * d)
        a, b = flux_d * flux_d + flux_q * flux_q, 2 * resistance * (q * flux_d - d * flux_q)
        c = (resistance * self.nominal_current) ** 2 - self.unit**2
        speed = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a * self.pole_pairs)
        return Base(torque, speed, self.unit / inductance)


class Coupled(ThreePhase):
    """Windings of two converters on one flux.

    If one lacks voltage for its share, the other's current runs away.
    """

    @abc.abstractmethod
    def shares(self, volts: Values) -> tuple[Values, Values]:
        """Return each converter's voltage in parts of its largest."""

    def limit_changes(self, changing: Values, holding: Values) -> Values:
        """Scale all by one share, the largest that keeps both converters within their limits."""
        share = attainable_share(zip(self.shares(holding), self.shares(changing), strict=True))
        return tuple(volts * share for volts in changing)

    def lack_per_integrator(self, lacking: Values) -> Values:
        """Stop all integrators while one converter lacks voltage.

        A voltage that one winding alone has learnt is large for the flux that they share.
        """
        max_lack: Scalar = 0.0
        for lack in lacking:
            max_lack = jnp.maximum(max_lack, jnp.abs(lack))
        return (max_lack,) * len(lacking)


def attainable_share(voltages: Iterable[tuple[Values, Values]]) -> Scalar:
    """Return the largest share of a change, up to one, that each converter's voltage allows.

    The share solves |holding + share changing| = 1, so too large a current may use the whole range
    on its way back.

    Args:
        voltages: what holds the currents and what changes them, for each converter, in parts of its
            largest voltage.
    """
    share: Scalar = 1.0
    for holding, changing in voltages:
        free = jnp.maximum(1 - _product(holding, holding), MIN_FREE_VOLTAGE)
        along = _product(holding, changing)
        reach = along + jnp.sqrt(along * along + free * _product(changing, changing))
        share = jnp.minimum(share, free / jnp.maximum(reach, free))
    return share


def _product(first_values: Values, second_values: Values) -> Scalar:
    """Return the scalar product of two vectors."""
    first_product, *more_products = (
        a * b for a, b in zip(first_values, second_values, strict=True)
    )
    return sum(more_products, first_product)


class Synchronous(ThreePhase):
    """A machine in rotor coordinates."""

    vector: Any = DQ
    """Type of its currents and voltages."""

    def state_at_rest(self, machine: Any) -> Any:
        """Return no currents."""
        return self.vector(*(jnp.zeros_like(machine.inertia) for _ in self.vector._fields))

    def measure(self, electrical: Any) -> Values:
        """Return the currents."""
        per = 1 / self.current_limit
        return tuple(current * per for current in electrical)

    def electrical_of(self, measured: Values, directions: Values = ()) -> Any:
        """Return the currents, A."""
        return self.vector(*(value * self.current_limit for value in measured))

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """Return a voltage that is constant in rotor coordinates over a step."""
        return self.vector(*(unit * share for unit, share in zip(self.units, applied, strict=True)))

    def voltage_of_legs(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the voltage in rotor coordinates."""
        return park(self.phases(legs), angle)

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Return the currents of phases c, b and a."""
        return inverse_clarke(inverse_park(DQ(electrical.d, electrical.q), angle))[::-1]

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Return the power of three phases."""
        return 1.5 * (voltage.d * electrical.d + voltage.q * electrical.q)

    def resistances(self) -> tuple[float, ...]:
        """Return the resistance of a phase for both axes."""
        return self.nominal.resistance, self.nominal.resistance

    def inductances(self) -> tuple[float, ...]:
        """Return the inductances of the axes."""
        return self.nominal.inductance_d, self.nominal.inductance_q


class PMSM(Synchronous):
    """A machine with permanent magnets, on a 300 V link."""

    nominal = synchronous.PermanentMagnet()
    tolerance = synchronous.PermanentMagnet(0.2, 0.15, 0.15, 0.1, 0, 0.0)
    current_limit = 400.0
    nominal_current = 240.0
    speed_limit = 4000 * math.pi / 30
    unit = 300 / math.sqrt(3)
    pole_pairs = 3

    def base(self) -> Base:
        """Return the base at maximum torque per ampere."""
        machine, current = self.nominal, self.nominal_current
        saliency, d = machine.inductance_q - machine.inductance_d, 0.0
        if saliency:
            flux = machine.magnet_flux
            d = (flux - math.sqrt(flux * flux + 8 * (saliency * current) ** 2)) / (4 * saliency)
        currents = d, math.sqrt(current * current - d * d)
        smaller = min(machine.inductance_d, machine.inductance_q)
        return self._base(machine.resistance, currents, machine.flux(DQ(*currents)), smaller)

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltage that each axis gets by the other's flux."""
        electric, linked = self.pole_pairs * speed, self.nominal.flux(electrical)
        return -electric * linked.q, electric * linked.d

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return the currents of maximum torque per ampere.

        Source: Morimoto et al. 1990, doi:10.1109/28.60058, eq. 9.

        i_d of an i_q is closed form; the i_q of a torque by Newton's method, from the side where
        the torque is convex.
        """
        machine = self.nominal
        saliency = machine.inductance_q - machine.inductance_d
        if not saliency:
            return 0.0 * torque, torque / (1.5 * self.pole_pairs * machine.magnet_flux)
        half = machine.magnet_flux / (2 * saliency)
        q_flux = torque * (1 / (1.5 * self.pole_pairs))
        i_q = q_flux / machine.magnet_flux
        for _ in range(5):
            root = jnp.sqrt(half * half + i_q * i_q)
            linked = machine.magnet_flux - saliency * (half - root)
            i_q = i_q - (linked * i_q - q_flux) / (linked + saliency * i_q * i_q / root)
        return half - jnp.sqrt(half * half + i_q * i_q), i_q


class SynRM(Synchronous):
    """A machine without magnets, on an 80 V link."""

    nominal = synchronous.Reluctance()
    tolerance = synchronous.Reluctance(0.2, 0.15, 0.15, 0, 0.0)
    current_limit = 18.0
    nominal_current = 10.0
    speed_limit = 4300 * math.pi / 30
    unit = 80 / math.sqrt(3)
    pole_pairs = 4

    def base(self) -> Base:
        """Return the base at |i_q| = i_d, maximum torque per ampere."""
        machine, current = self.nominal, self.nominal_current / math.sqrt(2)
        flux = machine.inductance_d * current, machine.inductance_q * current
        return self._base(machine.resistance, (current, current), flux, machine.inductance_q)

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltage that each axis gets by the other's flux."""
        electric, machine = self.pole_pairs * speed, self.nominal
        return (
            -electric * machine.inductance_q * electrical.q,
            electric * machine.inductance_d * electrical.d,
        )

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return |i_q| = i_d, the least current for a torque.

        i_d is never small, so that torque responds quickly.
        """
        constant = 1.5 * self.pole_pairs * (self.nominal.inductance_d - self.nominal.inductance_q)
        i_d = jnp.maximum(jnp.sqrt(jnp.abs(torque) / constant), 0.2 * self.nominal_current)
        return i_d, torque / (constant * i_d)


class EESM(Synchronous, Coupled):
    """Externally excited, on a 300 V link with a four-quadrant converter for the field.

    The peer's mutual inductance is impossible (see :class:`~.synchronous.ExternallyExcited`); here
    it is divided by sqrt(3/2), and bears little tolerance, for the leakage is what it leaves. The
    inertia is a tenth of the peer's, as that of the PMSM, a machine of its size.
    """

    nominal = synchronous.ExternallyExcited(
        mutual_inductance=1.589e-3 / math.sqrt(1.5), inertia=0.03883
    )
    tolerance = synchronous.ExternallyExcited(0.2, 0.0, 0.15, 0.02, 0.2, 0.0, 0.0, 0, 0.0)
    currents = ("i_d", "i_q", "i_e")
    measured_names = ("i_d", "i_q", "i_e")
    voltages = ("u_d", "u_q", "u_e")
    converters = (("stator", 8), ("field", 4))
    current_limit = 150.0
    nominal_current = 120.0
    speed_limit = 12000 * math.pi / 30
    unit = 300 / math.sqrt(3)
    pole_pairs = 3
    vector = synchronous.Excited
    FIELD = 60.0
    """A, of the field at the start."""
    MIN_FIELD = 40.0
    """A: least requested field current, so that torque responds quickly."""
    MAX_FIELD = 110.0
    """A: largest requested i_q."""

    @property
    def units(self) -> tuple[float, ...]:
        """Unit of each part of the action, V."""
        return self.unit, self.unit, self.link

    def state_at_rest(self, machine: Any) -> Any:
        """Return a magnetised machine."""
        zero = jnp.zeros_like(machine.inertia)
        return synchronous.Excited(zero, zero, zero + self.FIELD)

    def length(self, electrical: Any) -> Scalar:
        """Return the length of the stator's vector or the field's current, whichever is longer."""
        return jnp.maximum(super().length(electrical), jnp.abs(self.measure(electrical)[2]))

    def limit_action(self, action: Values) -> Values:
        """Shorten the stator's vector to the unit circle."""
        return *shorten_to_unit_circle(action[0], action[1]), action[2]

    def voltage_of_legs(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the bridge's voltage in rotor coordinates, then that of the field's converter."""
        return synchronous.Excited(
            *park(self.phases(legs[:3]), angle), self.link * (legs[3] - legs[4])
        )

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Return the currents of the bridge, then that of the field's converter."""
        return *super().leg_currents(electrical, angle), electrical.field, -electrical.field

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Return the power of stator and field."""
        return super().power(voltage, electrical) + voltage.field * electrical.field

    def shares(self, volts: Values) -> tuple[Values, Values]:
        """Return the stator's and the field's."""
        d, q, field = (volt * (1 / unit) for volt, unit in zip(volts, self.units, strict=True))
        return (d, q), (field,)

    def resistances(self) -> tuple[float, ...]:
        """Return the resistance of a phase for both axes, then the field's."""
        return self.nominal.resistance, self.nominal.resistance, self.nominal.field_resistance

    def inductances(self) -> tuple[float, ...]:
        """Return the inductance of each winding by itself."""
        return self.nominal.inductance_d, self.nominal.inductance_q, self.nominal.field_inductance

    def changing_voltages(self, errors: Values, period: float, speed: Scalar) -> Values:
        """Let d axis and field change each other's flux.

        Half of what the rotor's turning adds on the way is added.
        """
        d, q, field = super().changing_voltages(errors, period, speed)
        mutual = self.nominal.mutual_inductance / period
        turning_d, turning_q, _ = self.induced_voltages(
            synchronous.Excited(*(0.5 * error for error in errors)), speed
        )
        return d + mutual * errors[2] + turning_d, q + turning_q, field + 1.5 * mutual * errors[0]

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltage that each axis gets by the other's flux."""
        electric, machine = self.pole_pairs * speed, self.nominal
        linked = machine.inductance_d * electrical.d + machine.mutual_inductance * electrical.field
        return -electric * machine.inductance_q * electrical.q, electric * linked, 0.0 * speed

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return the currents of least losses, with i_q at the present flux.

        The losses are 3/2 R (i_d^2 + i_q^2) + r_e i_e^2, and their least is in closed form.

        With the flux psi = l_m i_e + (L_d - L_q) i_d they are least where i_d / i_e = (L_d - L_q) 2
        r_e / (3 R l_m), and then where the losses of i_d and i_e equal those of i_q.
        """
        machine = self.nominal
        saliency = machine.inductance_d - machine.inductance_q
        ratio = (
            saliency
            * 2
            * machine.field_resistance
            / (3 * machine.resistance * machine.mutual_inductance)
        )
        per_field = machine.mutual_inductance + saliency * ratio
        copper = 1.5 * machine.resistance
        balance = math.sqrt(ratio * ratio + machine.field_resistance / copper)  # i_q / i_e
        constant = 1.5 * self.pole_pairs * per_field
        field = jnp.maximum(jnp.sqrt(jnp.abs(torque) * (1 / (constant * balance))), self.MIN_FIELD)
        return (
            ratio * field,
            self._across(torque, self._flux_across(electrical.d, electrical.field)),
            field,
        )

    def currents_within(self, period: float, torque: Scalar, electrical: Any) -> Values:
        """Take i_q at the flux of one period later, which full voltage bounds.

        At the present flux a rise overshoots.
        """
        d, _, field = self.currents_for(torque, electrical)
        present_flux = self._flux_across(electrical.d, electrical.field)
        next_flux = self._flux_across(d, field)
        reach = self.unit * period
        return (
            d,
            self._across(torque, jnp.clip(next_flux, present_flux - reach, present_flux + reach)),
            field,
        )

    def _flux_across(self, d: Scalar, field: Scalar) -> Scalar:
        """Return the flux, V s, that makes torque with i_q: 3/2 p psi i_q."""
        machine = self.nominal
        return machine.mutual_inductance * field + (machine.inductance_d - machine.inductance_q) * d

    def _across(self, torque: Scalar, flux: Scalar) -> Scalar:
        """Return i_q, A, for a torque at a flux (V s), at least that of the least field."""
        flux = jnp.maximum(flux, self.nominal.mutual_inductance * self.MIN_FIELD)
        return jnp.clip(torque / (1.5 * self.pole_pairs * flux), -self.MAX_FIELD, self.MAX_FIELD)


class SixPhasePMSM(Synchronous):
    """A machine with permanent magnets and two three-phase windings.

    Each winding has a bridge on a 60 V link.

    The peer's 300 V would move the x and y currents beyond their limit within its step of 0.1 ms;
    on 60 V the machine reaches its nominal 150 A up to 150 rad/s.
    """

    nominal = synchronous.SixPhase()
    tolerance = synchronous.SixPhase(0.2, 0.15, 0.15, 0.15, 0.15, 0.1, 0, 0.0)
    currents = ("i_d", "i_q", "i_x", "i_y")
    measured_names = ("i_d", "i_q", "i_x", "i_y")
    voltages = ("u_d", "u_q", "u_x", "u_y")
    converters = (("first winding", 8), ("second winding", 8))
    current_limit = 400.0
    nominal_current = 150.0
    speed_limit = 4000 * math.pi / 30
    unit = 60 / math.sqrt(3)
    pole_pairs = 5
    vector = synchronous.DQXY

    def length(self, electrical: Any) -> Scalar:
        """Return the length of the vector of all four."""
        d, q, x, y = self.measure(electrical)
        return jnp.sqrt(d * d + q * q + (x * x + y * y))

    def limit_action(self, action: Values) -> Values:
        """Shorten each winding's vector, (d + x, q - y) and (d - x, q + y), to the unit circle."""
        d, q, x, y = action
        first_square = (d + x) * (d + x) + (q - y) * (q - y)
        second_square = (d - x) * (d - x) + (q + y) * (q + y)
        share = 1 / jnp.maximum(1, jnp.sqrt(jnp.maximum(first_square, second_square)))
        return d * share, q * share, x * share, y * share

    def voltage_of_legs(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the voltage of both windings' bridges."""
        return synchronous.six_phase_vector(
            self.terminals(legs[:3]), self.terminals(legs[3:]), angle
        )

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Return the currents of both windings' bridges."""
        first, second = synchronous.six_phases(electrical, angle)
        return *first[::-1], *second[::-1]

    @property
    def rating(self) -> float:
        """Rating of six phases, VA."""
        return 2 * super().rating

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Return the power of six phases."""
        torque_making = voltage.d * electrical.d + voltage.q * electrical.q
        return 3 * (torque_making + (voltage.x * electrical.x + voltage.y * electrical.y))

    def resistances(self) -> tuple[float, ...]:
        """Return the resistance of a phase for each axis."""
        return (self.nominal.resistance,) * 4

    def inductances(self) -> tuple[float, ...]:
        """Return the inductances of the axes."""
        machine = self.nominal
        return (
            machine.inductance_d,
            machine.inductance_q,
            machine.inductance_x,
            machine.inductance_y,
        )

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltage that each axis gets by the other's flux; x and y turn backwards."""
        electric, machine = self.pole_pairs * speed, self.nominal
        linked = machine.inductance_d * electrical.d + machine.magnet_flux
        return (
            -electric * machine.inductance_q * electrical.q,
            electric * linked,
            electric * machine.inductance_y * electrical.y,
            -electric * machine.inductance_x * electrical.x,
        )

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Make the torque by i_q alone: the axes differ by one per cent."""
        none = 0.0 * torque
        return none, torque / (3 * self.pole_pairs * self.nominal.magnet_flux), none, none
