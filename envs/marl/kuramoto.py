"""Synchronise coupled oscillators with little effort, where their coupling alone is too weak.

Each agent is an oscillator with a natural frequency of its own, and may speed itself up or slow
itself down. The equations are those of Kuramoto 1975 (doi:10.1007/BFb0013365), as reviewed by
Strogatz 2000 (doi:10.1016/S0167-2789(00)00094-4), with a push in addition:

    d phase_i / dt = frequency_i + push_i + coupling * order * sin(mean phase - phase_i)

in rad/s, where ``order`` and ``mean phase`` are length and direction of the mean unit vector of all
phases. That is the same as the mean over agents j of coupling * sin(phase_j - phase_i). Without
pushes, infinitely many oscillators synchronise only if the coupling exceeds 2 / (pi * density of
frequencies at their centre).

=============  ====================================================================================
observation    one row an agent, ``Box(-1, 1, (16, 5))``: cosine and sine of the mean phase relative
               to its own, the order, its natural frequency relative to the mean of all, in parts of
               10 rad/s, and the coupling, in parts of the largest one of this difficulty
action         ``Box(-1, 1, (16, 1))``: each agent's push, in parts of 4 rad/s
reward         each agent: cosine of its phase relative to the mean phase, less twice the square of
               its action. The mean over agents is the order less the mean effort
termination    never: the time limit truncates after 10 s
success        at the end the order is at least 0.85
context        width of the frequencies, 0.5 to 1.5 rad/s, in bands that belong to train and test in
               turn, and all frequencies. They have Cauchy's (Lorentz's) distribution without its
               tails, a tenth on each side
difficulty     coupling, in parts of the critical one of infinitely many such oscillators: 0.5, easy
               0.75, hard 0.25
=============  ====================================================================================

A step takes 0.1 s and is integrated by the classical Runge-Kutta method. Phases are those in a
frame that turns with the mean natural frequency. A step costs time in proportion to the number of
agents.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component, scaled_component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once

from ..shared.alternating_bands import alternating_bands
from ..shared.runge_kutta import rk4
from .vicsek import NO_DIRECTION, angle, mean_heading, tree_sum, wrap_angle

PERIOD = 0.1
"""s"""
MAX_PUSH = 4.0
"""rad/s"""
EFFORT = 2.0
"""Weight of the squared action in the reward."""
WIDTH = (0.5, 1.5)
"""Half width at half maximum of the distribution of frequencies, rad/s."""
BANDS = 8
TAIL = 0.1
"""Part of Cauchy's distribution that is cut off on each side."""
CRITICAL_COUPLING = 2 * (1 - 2 * TAIL)
"""Critical coupling, in widths: 2 / (pi g(0)), where g(0) = 1 / (pi width) / (1 - 2 tails)."""
FREQUENCY_SCALE = 10.0
"""rad/s that are shown as 1; the largest difference of two frequencies is 9.2."""
MAX_COUPLING = 4.0
"""Largest difficulty, in critical couplings."""
SYNCHRONOUS = 0.85
"""Order from which the oscillators count as synchronous; sixteen random phases reach it once in
100,000 times."""


class Params(NamedTuple):
    """The context."""

    frequencies: Float
    """``(n,)`` natural frequencies relative to their mean, rad/s."""
    coupling: Float
    """rad/s"""


class State(NamedTuple):
    """The oscillators' phases."""

    phases: Float
    """``(n,)`` rad in [-pi, pi]"""


class Kuramoto(Task[Params, State]):
    """The task of this file's docstring."""

    period = PERIOD
    measures: ClassVar[dict[str, str]] = {
        "order": "length of the mean unit vector of the phases, in [0, 1]"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 < difficulty <= MAX_COUPLING:
            raise ValueError(
                f"The difficulty of {card.id} is the coupling in parts of the critical one, above "
                f"0 and up to {MAX_COUPLING:g}, or one of {', '.join(card.difficulties)}; got "
                f"{difficulty!r}."
            )
        self.coupling_per_width = float(difficulty) * CRITICAL_COUPLING
        self.coupling_scale = self.coupling_per_width * WIDTH[1]
        count = card.agents
        self.observation_space = self.box(-1.0, 1.0, (count, 5))
        self.action_space = self.box(-1.0, 1.0, (count, 1))
        self.reward_space = self.box(-1.0 - EFFORT, 1.0, (count,))
        self._see = jax.jit(self.observation)  # for the text view

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the width, in a band of the split, and the frequencies."""
        u = self.uniform(key, 1 + self.card.agents)
        width = alternating_bands(u[0], split, *WIDTH, BANDS)
        frequencies = width * jnp.tan(np.pi * (1 - 2 * TAIL) * (u[1:] - 0.5))
        mean = tree_sum(frequencies) / self.card.agents
        return Params(frequencies - mean, self.coupling_per_width * width)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample uniform phases."""
        return State(angle(self.uniform(key, self.card.agents)))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Integrate the equation of motion for a period."""
        speeds = params.frequencies + MAX_PUSH * action[:, 0]
        return State(wrap_angle(step_phases(state.phases, speeds, params.coupling, PERIOD)))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(16, 5)``; see the table."""
        order, mean_phase = mean_field(state.phases)
        ahead = mean_phase - state.phases
        entries = (
            jnp.cos(ahead),
            jnp.sin(ahead),
            jnp.broadcast_to(order, ahead.shape),
            params.frequencies * (1 / FREQUENCY_SCALE),
            jnp.broadcast_to(params.coupling * (1 / self.coupling_scale), ahead.shape),
        )
        return jnp.clip(jnp.stack(entries, 1), -1, 1)  # rounding alone can pass the bounds

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return each agent's share of the order less its effort, ``(16,)``."""
        order, mean_phase = mean_field(next_state.phases)
        share = jnp.clip(jnp.cos(next_state.phases - mean_phase), -1, 1)
        effort = EFFORT * jnp.square(action[:, 0])
        return jnp.where(order > NO_DIRECTION, share, 0) - effort

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, whether the oscillators are synchronous, and the ``order``."""
        order, _ = mean_heading(state.phases)
        return {"success": order >= SYNCHRONOUS, "order": order}

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each agent; see the table."""
        return (
            Component("cosine", "cosine of the mean phase, relative to its own"),
            Component("sine", "sine of the mean phase, relative to its own"),
            Component("order", "length of the mean unit vector of all phases"),
            scaled_component(
                "frequency",
                "its natural frequency, relative to the mean of all",
                FREQUENCY_SCALE,
                "rad/s",
            ),
            scaled_component(
                "coupling", "how strongly the mean phase pulls", self.coupling_scale, "rad/s"
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the entry of an agent."""
        return (scaled_component("push", "by how much it turns faster", MAX_PUSH, "rad/s"),)

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe what each agent sees, in degrees and rad/s."""
        rows = np.asarray(self._see(state, None, params), np.float64)
        lines = [
            f"Order {rows[0, 2]:.2f}, coupling {rows[0, 4] * self.coupling_scale:.2f} rad/s. Each "
            "agent sees:"
        ]
        for i, (cosine, sine, _, frequency, _) in enumerate(rows):
            ahead = np.degrees(np.arctan2(sine, cosine))
            side = "ahead" if ahead >= 0 else "behind"
            lines.append(
                f"agent_{i}: mean phase {abs(ahead):.0f} degrees {side}, "
                f"natural frequency {frequency * FREQUENCY_SCALE:+.2f} rad/s from the mean"
            )
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer: one number an agent."""
        return (
            f"Answer with {self.card.agents} numbers in [-1, 1], agent_0 first: each agent's push, "
            f"1 for {MAX_PUSH:g} rad/s faster. Pushes cost {EFFORT:g} times their square."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw phases on a circle, fast ones red and slow ones blue, and their mean vector."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        x, y, radius = width / 2, height / 2, 0.4 * height
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), outline="gainsboro")
        phases = np.asarray(state.phases, np.float64)
        mean = radius * np.exp(1j * phases).mean()
        canvas.line((x, y, x + mean.real, y - mean.imag), fill="black", width=5)
        for phase, frequency in zip(phases, np.asarray(params.frequencies), strict=True):
            px, py = x + radius * np.cos(phase), y - radius * np.sin(phase)
            share = 0.5 + 0.5 * np.tanh(float(frequency))
            colour = (int(220 * share), 60, int(220 * (1 - share)))
            canvas.ellipse((px - 8, py - 8, px + 8, py + 8), fill=colour, outline="black")
        return np.asarray(image)


def mean_field(phases: Float) -> tuple[Float, Float]:
    """Return the order and the mean phase of phases ``(n,)``, computed once for all agents."""
    order, mean_phase = computed_once(mean_heading)(phases)
    return order, mean_phase


def pulled_speeds(phases: Float, speeds: Float, pull: Float, mean_phase: Float) -> Float:
    """Return the derivative of phases ``(n,)``, rad/s."""
    return speeds + pull * jnp.sin(mean_phase - phases)


def step_phases(phases: Float, speeds: Float, coupling: Float, period: float) -> Float:
    """Return phases ``(n,)`` a period later, not wrapped.

    Args:
        phases: rad.
        speeds: natural frequencies and pushes, rad/s, constant during the period.
        coupling: rad/s.
        period: s.
    """

    def derivative(_: float, phases: Float) -> Float:
        order, mean_phase = mean_field(phases)
        return computed_once(pulled_speeds)(phases, speeds, coupling * order, mean_phase)

    return rk4(derivative, phases, period)


class Regulator(NamedTuple):
    """Operating point and gain of the best linear regulator of an oscillator near the mean phase.

    Its phase x relative to the mean moves by x' = frequency - pull * x + push, and costs
    x^2 / 2 + EFFORT * (push / MAX_PUSH)^2 a step.
    """

    lag: Float
    """x at which the oscillator is kept, rad"""
    push: Float
    """rad/s there"""
    gain: Float
    """Push for each rad from there, 1/s"""


def best_regulator(frequency: Float, pull: Float) -> Regulator:
    """Return the linear-quadratic regulator; its Riccati equation is quadratic."""
    weight = EFFORT / MAX_PUSH**2
    share = 1 / (1 + 2 * weight * jnp.square(pull))
    gain = jnp.sqrt(jnp.square(pull) + 1 / (2 * weight)) - pull
    return Regulator(2 * weight * pull * frequency * share, -frequency * share, gain)


class LinearRegulator(eqx.Module):
    """Lets the coupling carry the part of a frequency that it carries cheaply, and pushes the rest.

    It is the linear-quadratic regulator of an oscillator that the mean phase pulls with coupling *
    order (:func:`best_regulator`), with the sine of the phase for the phase. Far from synchrony,
    where the linear model is wrong, a larger gain pays. Each agent reads only what it sees.
    """

    boost: Float = 1.5
    """Factor on the gain"""
    coupling_scale: float = eqx.field(static=True, default=1.0)
    """rad/s"""

    @classmethod
    def for_task(cls, task: Kuramoto) -> LinearRegulator:
        """Return the player that knows the unit of the coupling."""
        return cls(coupling_scale=task.coupling_scale)

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the pushes of all agents, ``(16, 1)``."""
        _, sine, order, frequency, coupling = jnp.moveaxis(view.observation, 1, 0)
        pull = self.coupling_scale * coupling * order
        regulator = best_regulator(FREQUENCY_SCALE * frequency, pull)
        offset = sine + jnp.clip(regulator.lag, -1, 1)  # the sine is that of minus its phase
        push = regulator.push + self.boost * regulator.gain * offset
        return jnp.clip(push * (1 / MAX_PUSH), -1, 1)[:, None], memory
