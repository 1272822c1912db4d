"""Track d and q current set points of a permanent-magnet synchronous machine with its voltages.

Dynamics: ``pmsm.py`` at constant speed, one Runge-Kutta step of 0.1 ms a step of the episode; the
voltage is constant in rotor coordinates over it, as in gym-electric-motor 3.0.3
(doi:10.21105/joss.02498), whose task this follows. This task is written for speed. If a part is not
the usual one (``card.choices``), the id makes the general task of ``drive.py``.

======================  ============================================================================
action ``(2,)``         d and q voltage: 1 is U/sqrt(3) = 173.2 V, the longest vector that
                        space-vector modulation of a 300 V link reaches at every angle. A vector
                        outside this circle, towards the square's corners, is shortened to it in its
                        own direction: the inverter gives no more
observation ``(7,)``    i_d, i_q (by the limit of 400 A), speed (by 150 rad/s), set points of i_d,
                        i_q (by 400 A), the d and q voltages applied in the last step (by 173.2 V)
reward                  mean over d and q of 1 / (1 + |error| / 12 A), in (0, 1]: the error is taken
                        at the end of the step, against the set point shown at its beginning. Every
                        step pays, so that ending early never does; 5 % of the nominal current
                        halves it
cost                    excess of the current vector over the nominal current, in parts of it
terminated              over-current: the current vector is longer than 400 A
success                 both errors below 5 % of the nominal current (12 A), within the current
                        limit
set point               a random walk: each component moves by N(0, s^2) a step, s of the episode
                        log-uniform in 0.4..8 A, and stays in the half disc i_d <= 0, |i| <= 240 A
                        (the nominal current)
start                   no current; the set point anywhere in the half disc
context                 speed in +-150 rad/s, where every set point can be held; resistance +-20 %,
                        inductances +-15 %, magnet flux +-10 %. Train and test speeds lie in
                        alternating bands of 7.5 rad/s, so a test asks for interpolation
======================  ============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component, KeyFigure, scaled_component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ..machines import pmsm
from ..machines.pmsm import DQ, Machine, Scalar
from ..parts import components
from ..parts.quantity import joint_length, range_and_accuracy
from .drive import Drive

STEP = 1e-4
"""s"""
VOLTAGE_LIMIT = pmsm.SUPPLY_VOLTAGE / math.sqrt(3)
"""V"""
SPEED_LIMIT = 150.0
"""rad/s, mechanical"""
MIN_SETPOINT_DEVIATION = 0.4
"""A: smallest standard deviation of the set point's move a step."""
MAX_SETPOINT_DEVIATION = 8.0
"""A: largest standard deviation of the set point's move a step.

The voltage moves i_q by 14 A a step at most.
"""
HALVING_ERROR = 0.05 * pmsm.NOMINAL_CURRENT
"""A: the error at which a component's reward is one half, and below which it counts as tracked."""
CURRENT_BOUND = 1.5
"""Bound of the observed currents, in parts of the current limit.

A single step beyond the limit adds at most 145 A (d axis, smallest inductance, highest speed).
"""
ROUNDING = 1e-5
"""Rounding by which normalised voltages and set points on their circle may pass it."""


class Params(NamedTuple):
    """The context: a machine, its speed, and how fast its set point moves."""

    machine: Machine
    speed: Scalar
    """rad/s, mechanical"""
    deviation: Scalar
    """A a step"""


class State(NamedTuple):
    """Present state of the drive, and its set point."""

    current: DQ
    """A"""
    setpoint: DQ
    """A"""
    applied: DQ
    """Voltage of the last step, in parts of ``VOLTAGE_LIMIT``."""


class PMSMCurrent(Task[Params, State]):
    """The task of this file's docstring."""

    period = STEP
    measures: ClassVar[dict[str, str]] = {
        "error_d": "i_d minus its set point, A",
        "error_q": "i_q minus its set point, A",
        "torque": "N m",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        bound = np.array([CURRENT_BOUND] * 2 + [1 + ROUNDING] * 5)
        self.observation_space = self.box(-bound, bound)
        self.action_space = self.box([-1] * 2, [1] * 2)
        self.reward_space = self.box(0, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return a machine within its tolerances, at a speed in the bands of the split."""
        resistance, inductance_d, inductance_q, flux, speed, deviation = self.uniform(key, 6)

        def within_tolerance(nominal: float, spread: float, unit: Scalar) -> Scalar:
            return nominal * (1 - spread + 2 * spread * unit)

        return Params(
            Machine(
                within_tolerance(pmsm.RESISTANCE, 0.2, resistance),
                within_tolerance(pmsm.INDUCTANCE_D, 0.15, inductance_d),
                within_tolerance(pmsm.INDUCTANCE_Q, 0.15, inductance_q),
                within_tolerance(pmsm.MAGNET_FLUX, 0.1, flux),
            ),
            speed=alternating_bands(speed, split, -SPEED_LIMIT, SPEED_LIMIT, bands=40),
            deviation=MIN_SETPOINT_DEVIATION
            * jnp.exp(math.log(MAX_SETPOINT_DEVIATION / MIN_SETPOINT_DEVIATION) * deviation),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin without current, at a set point uniform over the half disc."""
        u = self.uniform(key, 2)
        length, angle = pmsm.NOMINAL_CURRENT * jnp.sqrt(u[0]), math.pi * (0.5 + u[1])
        zero = jnp.zeros((), self.dtype)
        return State(
            DQ(zero, zero), DQ(length * jnp.cos(angle), length * jnp.sin(angle)), DQ(zero, zero)
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move the currents by one Runge-Kutta step, then draw a new set point."""
        applied = shorten_to_unit_circle(DQ(action[0], action[1]))
        voltage = DQ(VOLTAGE_LIMIT * applied.d, VOLTAGE_LIMIT * applied.q)
        current = pmsm.step(state.current, voltage, params.speed, params.machine, STEP)
        move = params.deviation * self.normal(key, 2)
        d = jnp.clip(state.setpoint.d + move[0], -pmsm.NOMINAL_CURRENT, 0)
        max_q = jnp.sqrt(pmsm.NOMINAL_CURRENT**2 - d * d)
        q = jnp.clip(state.setpoint.q + move[1], -max_q, max_q)
        return State(current, DQ(d, q), applied)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Show currents, speed, set points and voltages, shape ``(7,)``; see the table."""
        per_current = 1 / pmsm.CURRENT_LIMIT
        return self.stack(
            state.current.d * per_current,
            state.current.q * per_current,
            params.speed * (1 / SPEED_LIMIT),
            state.setpoint.d * per_current,
            state.setpoint.q * per_current,
            state.applied.d,
            state.applied.q,
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return a reward for the distance from the set points that the action was chosen for."""
        error_d = jnp.abs(next_state.current.d - state.setpoint.d)
        error_q = jnp.abs(next_state.current.q - state.setpoint.q)
        return 0.5 * HALVING_ERROR * (1 / (HALVING_ERROR + error_d) + 1 / (HALVING_ERROR + error_q))

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return the excess over the nominal current, in parts of it."""
        d, q = next_state.current
        return jnp.maximum(jnp.sqrt(d * d + q * q) * (1 / pmsm.NOMINAL_CURRENT) - 1, 0)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Tell whether the current is too large."""
        return self._has_tripped(state)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        error_d, error_q = state.current.d - state.setpoint.d, state.current.q - state.setpoint.q
        is_near = (jnp.abs(error_d) < HALVING_ERROR) & (jnp.abs(error_q) < HALVING_ERROR)
        return {
            "success": is_near & ~self._has_tripped(state),
            "error_d": error_d,
            "error_q": error_q,
            "torque": pmsm.torque(state.current, params.machine),
        }

    def _has_tripped(self, state: State) -> jax.Array:
        d, q = state.current
        return d * d + q * q > pmsm.CURRENT_LIMIT**2

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the current that tripped it."""
        current = math.hypot(state.current.d, state.current.q)
        return f"over-current: {current:.0f} A, the limit is {pmsm.CURRENT_LIMIT:.0f} A"

    def how_to_act(self) -> str:
        """Tell a text player in one line what an action looks like."""
        return (
            "Answer with two numbers from -1 to 1: d and q voltage in parts of "
            f"{VOLTAGE_LIMIT:.1f} V."
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe each entry, in the order of :meth:`observation`."""
        limit = pmsm.CURRENT_LIMIT
        at = {"d": "along the rotor (d axis)", "q": "across the rotor (q axis)"}
        return (
            *(
                scaled_component(f"i_{axis}", f"current {where}", limit, "A")
                for axis, where in at.items()
            ),
            scaled_component("speed", "mechanical speed of the shaft", SPEED_LIMIT, "rad/s"),
            *(
                scaled_component(f"setpoint_i_{axis}", f"what i_{axis} should be now", limit, "A")
                for axis in at
            ),
            *(
                replace(
                    component,
                    name=f"applied_{component.name}",
                    meaning=f"{component.meaning} that was applied in the last step",
                )
                for component in self._voltages()
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the two voltages."""
        meaning = "; a vector longer than one is shortened to it"
        return tuple(
            replace(component, meaning=component.meaning + meaning)
            for component in self._voltages()
        )

    def key_figures(self) -> tuple[KeyFigure, ...]:
        """Return the ranges of the set points, and the halving error."""
        nominal = pmsm.NOMINAL_CURRENT
        return (
            *range_and_accuracy("i_d", "A", -nominal, 0.0, HALVING_ERROR),
            *range_and_accuracy("i_q", "A", -nominal, nominal, HALVING_ERROR),
            joint_length("i_d", "i_q", nominal),
        )

    def energy(self, quantities: Mapping[str, np.ndarray]) -> float | None:
        """Return the electrical energy, J."""
        return components.energy(quantities, ("u_d", "u_q"), STEP)

    def _voltages(self) -> tuple[Component, ...]:
        return (
            scaled_component("u_d", "voltage along the rotor (d axis)", VOLTAGE_LIMIT, "V"),
            scaled_component("u_q", "voltage across the rotor (q axis)", VOLTAGE_LIMIT, "V"),
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe currents, set points, speed and voltages, with units."""
        (i_d, i_q), (r_d, r_q), (u_d, u_q) = jax.tree.map(float, state)
        return (
            f"Current i_d {i_d:+.1f} A, i_q {i_q:+.1f} A; "
            f"set point i_d {r_d:+.1f} A, i_q {r_q:+.1f} A. "
            f"Speed {float(params.speed):+.1f} rad/s. "
            f"Last voltage u_d {VOLTAGE_LIMIT * u_d:+.1f} V, u_q {VOLTAGE_LIMIT * u_q:+.1f} V."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the plane of currents.

        It shows the limit (black), the set points' half disc (grey), the set point (green) and the
        current (red).
        """
        size, _, _ = self.picture_shape
        image = Image.new("RGB", (size, size), "white")
        canvas = ImageDraw.Draw(image)
        scale = 0.5 * size / (1.1 * pmsm.CURRENT_LIMIT)

        def pixel(current: DQ) -> tuple[float, float]:
            return size / 2 + scale * float(current.d), size / 2 - scale * float(current.q)

        def box(length: float) -> tuple[float, float, float, float]:
            half = scale * length
            return size / 2 - half, size / 2 - half, size / 2 + half, size / 2 + half

        canvas.pieslice(box(pmsm.NOMINAL_CURRENT), 90, 270, fill="gainsboro")
        canvas.ellipse(box(pmsm.CURRENT_LIMIT), outline="black")
        canvas.line((0, size / 2, size, size / 2), fill="silver")
        canvas.line((size / 2, 0, size / 2, size), fill="silver")
        canvas.text((size - 24, size / 2 + 4), "i_d", fill="gray")
        canvas.text((size / 2 + 4, 2), "i_q", fill="gray")
        x, y = pixel(state.setpoint)
        canvas.ellipse((x - 6, y - 6, x + 6, y + 6), outline="green", width=2)
        x, y = pixel(state.current)
        canvas.line((size / 2, size / 2, x, y), fill="red", width=2)
        canvas.ellipse((x - 3, y - 3, x + 3, y + 3), fill="red")
        return np.asarray(image)


def make(card: TaskCard, *, difficulty: float | None, dtype: str) -> Task[Any, Any]:
    """Make this file's task, or the general drive for a part that this task lacks."""
    plain = all(card.settings[name] == allowed[0] for name, allowed in card.choices.items())
    kind: type[Task[Any, Any]] = PMSMCurrent if plain else Drive
    return kind(card, difficulty=difficulty, dtype=dtype)


def shorten_to_unit_circle(vector: DQ) -> DQ:
    """Return the vector, shortened to length one in its own direction if it is longer."""
    share = 1 / jnp.maximum(1, jnp.sqrt(vector.d * vector.d + vector.q * vector.q))
    return DQ(vector.d * share, vector.q * share)
