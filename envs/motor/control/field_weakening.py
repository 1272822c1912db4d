"""The reference player of wide-speed drives.

It is the cascade of ``cascade.py`` with currents that the voltage can hold.

At speed the voltage leaves the flux linkage |psi| <= |u - R i| / (p w), an ellipse of currents. The
player takes the least currents for a torque (MTPA) where they lie within it. Otherwise it moves
along the ellipse towards lower i_d (flux weakening), no further than to its largest torque (MTPV)
or to the circle of the nominal current. A resistance takes from the voltage, in steady state

    (p w |psi|)^2 = |u|^2 - (R |i|)^2 - 2 R p w T / (3/2 p),

which leaves more of it while the machine brakes. An induction machine lowers its flux by i_d
instead.

``VOLTAGE_MARGIN`` of the voltage is left to change currents. If a change wants more, it is
shortened, and the voltage that holds the currents is not. A machine may need more voltage than its
data sheet says: a slow integrator of the voltage beyond that margin lowers the flux. The speed's
integrator waits while less torque is made than is requested.

Sources: Morimoto, Takeda, Hirasa & Taniguchi 1990, doi:10.1109/28.60058 (ellipse, MTPA and MTPV);
Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), flux weakening of induction
machines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task

from ..machines.frames import DQ, Scalar, Values
from ..machines.synchronous import PermanentMagnet
from ..plants.induction_plant import SCIM
from ..plants.plant import Plant
from ..plants.three_phase import SynRM, attainable_share
from ..tasks.drive import Params, State
from ..tasks.wide import WideDrive
from .cascade import SPEED_PERIODS, Cascade

VOLTAGE_MARGIN = 0.05
"""Part of the voltage that holding the currents leaves free."""
MIN_VOLTAGE = 0.3
"""Part of the voltage that is always counted on for the flux."""
MAX_CURRENT = 0.97
"""Part of the nominal current, and of its torque, that is requested."""
VOLTAGE_GAIN = 0.02
"""Gain of the voltage's integrator a step."""
MIN_SHARE = 0.7
"""Least value of that integrator, in parts of the data sheet's flux."""
HALVINGS = 16
"""Halvings of the angle along the ellipse, which leave 2e-5 of a right angle."""
FLUX_GAIN = 5.0
"""Gain of an induction machine's flux, in parts of the current that holds it."""


def currents_within_flux(
    machine: PermanentMagnet, torque: Scalar, free_current: DQ, flux: Scalar, max_current: Scalar
) -> DQ:
    """Return the currents, A, within a flux and a current that come nearest to a torque.

    With the flux at an angle delta from the d axis, L_d i_d + psi = flux cos(delta) and L_q i_q =
    flux sin(delta). Both torque and current grow with delta from i_d = 0 (without magnets: from
    zero) to the largest torque, where cos(delta) = 2 b / (a + sqrt(a^2 + 8 b^2)) with a = psi L_q /
    L_d and b = (1 - L_q / L_d) flux.

    Args:
        machine: the machine; without magnets for a reluctance machine.
        torque: N m, of either sign.
        free_current: the currents of maximum torque per ampere for it, A, without both limits.
        flux: largest flux linkage, V s.
        max_current: largest current, A.
    """
    magnets, per_d, per_q = machine.magnet_flux, 1 / machine.inductance_d, 1 / machine.inductance_q
    a, b = magnets * machine.inductance_q * per_d, (1 - machine.inductance_q * per_d) * flux
    steepest = 2 * b / jnp.maximum(a + jnp.sqrt(a * a + 8 * b * b), 1e-12)
    magnitude = jnp.abs(torque)

    def at(angle: Scalar) -> DQ:
        return DQ((flux * jnp.cos(angle) - magnets) * per_d, flux * jnp.sin(angle) * per_q)

    def halve_interval(_: int, ends: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = ends
        middle = 0.5 * (low + high)
        current = at(middle)
        below = (machine.torque(current) < magnitude) & (
            current.d * current.d + current.q * current.q < max_current * max_current
        )
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    first_angle = jnp.arccos(jnp.minimum(magnets / flux, 1.0)) if magnets else 0.0 * flux
    best = at(
        jax.lax.fori_loop(
            0, HALVINGS, halve_interval, (first_angle, jnp.arccos(jnp.clip(steepest, -1, 1)))
        )[0]
    )
    linked = machine.flux(free_current)
    inside = (linked.d * linked.d + linked.q * linked.q) <= flux * flux
    sign = jnp.where(torque < 0, -1.0, 1.0)
    return DQ(
        jnp.where(inside, free_current.d, best.d), jnp.where(inside, free_current.q, sign * best.q)
    )


def voltage_for_flux(plant: Plant, resistance: float, electrical: Any, speed: Scalar) -> Scalar:
    """Return p w |psi|, V, that the resistance leaves at the present current and torque.

    The file's docstring has the formula.
    """
    current = plant.length(electrical) * (plant.current_limit * resistance)
    resistive = 2 * resistance * speed * plant.nominal.torque(electrical) / 1.5
    squared_voltage = ((1 - VOLTAGE_MARGIN) * plant.unit) ** 2 - current * current - resistive
    return jnp.sqrt(jnp.maximum(squared_voltage, (MIN_VOLTAGE * plant.unit) ** 2))


class Memory(NamedTuple):
    """Integrators."""

    voltage: Values
    """V, of each current's loop"""
    torque: Scalar
    """N m"""
    share: Scalar
    """Part of the data sheet's flux that the voltage holds"""


class WeakeningCascade(Cascade):
    """The player of one wide-speed drive."""

    def initial(self, params: Params) -> Any:
        """Begin with the data sheet."""
        start = super().initial(params)
        return Memory(start.voltage, start.torque, jnp.ones_like(params.speed))

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return voltages."""
        state: State = view.state
        applied = jnp.sqrt(
            state.applied[0] * state.applied[0] + state.applied[1] * state.applied[1]
        )
        share = jnp.clip(
            memory.share + VOLTAGE_GAIN * (1 - VOLTAGE_MARGIN - applied), MIN_SHARE, 1.0
        )
        currents, torque = self._limited_currents(memory.torque, share, state)
        action, voltage = self._voltages(currents, memory.voltage, state, state)
        return jnp.stack(action), Memory(voltage, torque, share)

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> WeakeningCascade:
        """Return the player of such a drive.

        Raises:
            TypeError: another kind of task.
        """
        if not isinstance(task, WideDrive):
            raise TypeError(
                f"WeakeningCascade controls wide-speed drives, got {type(task).__name__}."
            )
        return cls(task)

    def _limited_currents(
        self, integral: Scalar, share: Scalar, state: State
    ) -> tuple[Values, Scalar]:
        """Return the currents to reach, A, and the integrator's next value."""
        task = self.task
        base = task.plant.base()
        assert base is not None
        max_torque = MAX_CURRENT * base.torque
        gain = 1.5 * task.plant.nominal.inertia / (SPEED_PERIODS * task.period)
        request = gain * (state.setpoint[0] - state.speed)
        torque = jnp.clip(request + integral, -max_torque, max_torque)
        currents, torque_given = self._currents_and_torque(torque, share, state)
        is_reached = jnp.abs(request + integral - torque_given) < 0.01 * max_torque
        return currents, integral + jnp.where(is_reached, 0.1 / SPEED_PERIODS * request, 0.0)

    def _currents_and_torque(
        self, torque: Scalar, share: Scalar, state: State
    ) -> tuple[Values, Scalar]:
        """Return currents, A, and their torque, N m."""
        plant, electrical = self.task.plant, state.electrical
        turning = jnp.maximum(plant.pole_pairs * jnp.abs(state.speed), 1.0)
        max_current = MAX_CURRENT * plant.nominal_current
        if isinstance(plant, SCIM):
            return self._induction(plant, torque, share, state, max_current)
        flux = (
            share
            * voltage_for_flux(plant, plant.nominal.resistance, electrical, state.speed)
            / turning
        )
        machine = plant.nominal.without_magnets() if isinstance(plant, SynRM) else plant.nominal
        current = currents_within_flux(
            machine, torque, DQ(*plant.currents_for(torque, electrical)), flux, max_current
        )
        return tuple(current), machine.torque(current)

    def _induction(
        self, plant: SCIM, torque: Scalar, share: Scalar, state: State, max_current: float
    ) -> tuple[Values, Scalar]:
        """Lower the flux to what the voltage holds besides i_q, and control it by i_d."""
        machine, nominal = plant.nominal, plant.nominal_flux
        current = plant.to_field(state.electrical.current, state.electrical)
        flux = plant.field(state.electrical)[0]
        coupling = machine.mutual_inductance / machine.rotor_inductance()
        flux = jnp.maximum(flux, 0.1 * nominal)
        slip = machine.rotor_resistance * coupling * current.q / flux
        turning = jnp.maximum(jnp.abs(plant.pole_pairs * state.speed + slip), 1.0)
        flux_limit = (
            share
            * voltage_for_flux(plant, machine.stator_resistance, state.electrical, state.speed)
            / turning
        )
        across = machine.transient_inductance() * current.q
        along = jnp.sqrt(
            jnp.maximum(flux_limit * flux_limit - across * across, (0.1 * nominal) ** 2)
        )
        aim = jnp.minimum(
            along * (machine.mutual_inductance / machine.stator_inductance()), nominal
        )
        d = jnp.clip(
            (aim + FLUX_GAIN * (aim - flux)) * (1 / machine.mutual_inductance),
            0.0,
            0.8 * max_current,
        )
        per = 1.5 * plant.pole_pairs * coupling * flux
        reach = jnp.sqrt(max_current * max_current - d * d)
        q = jnp.clip(torque / per, -reach, reach)
        return (d, q), q * per

    def _limit_changes(self, changing: Values, holding: Values) -> Values:
        """Shorten the change to what the holding voltage leaves."""
        per = 1 / self.task.plant.unit
        share = attainable_share(
            [(tuple(volts * per for volts in holding), tuple(volts * per for volts in changing))]
        )
        return tuple(volts * share for volts in changing)
