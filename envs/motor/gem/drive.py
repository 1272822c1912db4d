"""The sixty drives as gym-electric-motor 3.0.3 has them.

Timing, frames, scales, set points and reward are the peer's.

For people who come from there: ``gymnasium.make("rlsuite/PMSMCurrent-v0", gem_compat=True)`` is its
Cont-CC-PMSM-v0. Equations: ``environment.py``; set points: ``walk_setpoint.py``. Every quantity is
in parts of its limit.

======================  ============================================================================
action                  the peer's: a duty a phase or direct-current converter in [-1, 1]; finite: a
                        switch state of each converter
observation             the peer's tuple as one vector: its state, then its set points. Bounds are
                        those that hold: 16 of the peer's ids begin outside their own bounds, and no
                        rule keeps a speed within them
reward                  minus the sum over the controlled quantities of weight |next value - set
                        point shown before the step| / (highest - lowest value); -10 (currents of
                        the six-phase machine: -20) where a limit is violated
terminated              a guarded current is beyond its limit
success                 every error is within 5 % of the nominal value (of a speed, 1 %), and no
                        limit violated
set point               random walks within the nominal values, in sub-episodes of 500 to 1999 steps
start                   no currents, angle zero, speed zero where it is controlled; bridges at the
                        link's lower end
context                 a single one
======================  ============================================================================

The peer's episodes are endless; here the id's time limit holds unless ``max_episode_steps`` says
otherwise.

Source: gym-electric-motor 3.0.3, doi:10.21105/joss.02498.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component, scaled_component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..parts import components
from ..tasks import scope
from . import environment, walk_setpoint
from .walk_setpoint import Walk

ROUNDING = 1e-5
"""Rounding by which a quantity may pass a bound that holds in exact arithmetic."""
UNITS = {"omega": "rad/s", "torque": "N m", "epsilon": "rad", "i": "A", "u": "V"}
MEANINGS = {
    "omega": "mechanical speed of the shaft",
    "torque": "torque of the machine",
    "epsilon": "electrical angle of the rotor, within half a turn",
}


class Params(NamedTuple):
    """The context: nothing differs between episodes."""


class State(NamedTuple):
    """State of the peer's drive, its observation, and set points."""

    drive: environment.State
    observed: jax.Array
    """All that the peer shows, shape ``(len(state_names),)``, in parts of the limits"""
    setpoints: tuple[Walk, ...]


def peer_id(card: TaskCard) -> str:
    """Return the id in gym-electric-motor of the drive with these settings."""
    control = "Finite" if card.settings["control"] == "finite" else "Cont"
    goal = {"current": "CC", "torque": "TC", "speed": "SC"}[card.settings["goal"]]
    machine = "SIXPMSM" if card.settings["machine"] == "SixPhasePMSM" else card.settings["machine"]
    return f"{control}-{goal}-{machine}-v0"


class GemDrive(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "error": "largest error of a controlled quantity, in parts of its limit",
        "current": "root of the largest sum of squares that a limit guards, in parts of the limit",
        "torque": "N m",
        "speed": "rad/s",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.peer = peer_id(card)
        self.env = env = environment.environment(self.peer)
        self.period = env.tau
        machine = self.peer.split("-")[2]
        self.limits = dict(zip(env.state_names, env.limits, strict=True))
        self.controlled = [env.state_names.index(name) for name in env.weights]
        self.wieners = [
            walk_setpoint.setpoint(self.peer, name, env.low[i])
            for name, i in zip(env.weights, self.controlled, strict=True)
        ]
        self.tolerances = [
            (0.01 if name == "omega" else 0.05) * walk_setpoint.nominal(machine, name)
            for name in env.weights
        ]
        bounds = [self._bounds(name) for name in env.state_names]
        bounds += [(wiener.low, wiener.high) for wiener in self.wieners]
        self.observation_space = self.box(*zip(*bounds, strict=True))
        self.action_space = self._actions()
        self.reward_space = self.box(-np.inf, 0)

    def _bounds(self, name: str) -> tuple[float, float]:
        """Return the bounds of one quantity.

        The supply bounds voltages, wrapping bounds the angle, and nothing bounds the others.
        """
        if name == "epsilon":
            return -1 - ROUNDING, 1 + ROUNDING
        if not name.startswith("u"):
            return -np.inf, np.inf
        # A bridge's vector is shorter: 2/3 of it.
        max_voltage = (1 + ROUNDING) * self.env.supply / self.limits[name]
        return 0.0 if name == "u_sup" else -max_voltage, max_voltage

    def _actions(self) -> spaces.Space[Any]:
        terminals = self.env.system.terminals
        if not self.env.finite:
            count = sum(3 if kind == "bridge" else 1 for kind in terminals)
            return self.box([-1] * count, [1] * count)
        states = [8 if kind == "bridge" else 4 for kind in terminals]
        return spaces.Discrete(states[0]) if len(states) == 1 else spaces.MultiDiscrete(states)

    # -- an episode --------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the empty context."""
        return Params()

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin at rest, or at the speed of the bench."""
        start = self.env.initial(self.dtype)
        return State(
            start,
            self.env.first_observation(start),
            walk_setpoint.begin(self.wieners, key, self.dtype),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make the peer's step, then draw the next set points."""
        drive, observed = self.env.step(state.drive, jnp.atleast_1d(action))
        return State(drive, observed, walk_setpoint.step(self.wieners, state.setpoints, key))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Show the state and the set points; see the table."""
        return jnp.concatenate(
            [state.observed, self.stack(*(walk.value for walk in state.setpoints))]
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Compare with the set points that the action was chosen for."""
        setpoints = {
            name: walk.value for name, walk in zip(self.env.weights, state.setpoints, strict=True)
        }
        return self.env.reward(next_state.observed, setpoints)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Tell whether a guarded current is beyond its limit."""
        return self.env.is_violated(state.observed)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        errors = [
            jnp.abs(state.observed[i] - walk.value)
            for i, walk in zip(self.controlled, state.setpoints, strict=True)
        ]
        tolerances = jnp.stack(
            [error < tolerance for error, tolerance in zip(errors, self.tolerances, strict=True)]
        ).all()
        return {
            "success": tolerances & ~self.env.is_violated(state.observed),
            "error": jnp.stack(errors).max(),
            "current": jnp.sqrt(jnp.stack(self.env.guarded_squares(state.observed)).max()),
            "torque": state.observed[1] * self.limits["torque"],
            "speed": state.drive.speed,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the currents that tripped it."""
        squares, names = max(
            zip(self.env.guarded_squares(state.observed), self.env.system.guarded, strict=True)
        )
        return f"over-current: {', '.join(names)} at {float(squares) ** 0.5:.3f} of the limit"

    def observation_components(self) -> tuple[Component, ...]:
        """Name the components as the peer does, in the order of :meth:`observation`."""
        return (
            *(
                scaled_component(name, self._meaning(name), *self._scale(name))
                for name in self.env.state_names
            ),
            *(
                scaled_component(
                    f"setpoint_{name}", f"what {name} should be now", *self._scale(name)
                )
                for name in self.env.weights
            ),
        )

    def _scale(self, name: str) -> tuple[float, str]:
        return self.limits[name], UNITS.get(name) or UNITS[name[0]]

    def _meaning(self, name: str) -> str:
        return MEANINGS.get(name) or components.electrical(name, self.card.settings["machine"])

    def action_components(self) -> tuple[Component, ...]:
        """Describe duties, or switch states of each converter."""
        terminals = [
            (kind, f"converter_{i}") for i, kind in enumerate(self.env.system.terminals, start=1)
        ]
        states = [(name, 8 if kind == "bridge" else 4) for kind, name in terminals]
        if self.env.finite and len(states) == 1:
            return components.switch_states(tuple(states))
        if self.env.finite:
            return tuple(
                Component(name, f"switch state: {components.STATE_EFFECTS[count]}")
                for name, count in states
            )
        half, full = f"{self.env.supply / 2:g} V", f"{self.env.supply:g} V"
        entries = []
        for kind, name in terminals:
            if kind == "bridge":
                meaning = "duty of phase {}: its voltage against the middle of the link"
                entries += [
                    Component(f"{name}_{phase}", meaning.format(phase), half) for phase in "abc"
                ]
            else:
                entries.append(
                    Component(name, "duty of a direct-current converter: its voltage", full)
                )
        return tuple(entries)

    def _in_units(self, name: str, value: Any) -> str:
        unit = UNITS.get(name) or UNITS[name[0]]
        return f"{name} {float(value) * self.limits[name]:+.4g} {unit}"

    def describe(self, state: State, params: Params) -> str:
        """Describe all that is shown, with units."""
        setpoints = "; ".join(
            self._in_units(name, walk.value)
            for name, walk in zip(self.env.weights, state.setpoints, strict=True)
        )
        observed = ", ".join(
            self._in_units(*pair) for pair in zip(self.env.state_names, state.observed, strict=True)
        )
        return f"Set points: {setpoints}. Measured: {observed}."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw currents and gauges; see ``scope.py``."""
        at = dict(zip(self.env.state_names, np.asarray(state.observed, float), strict=True))
        gauges = [
            scope.Gauge(
                f"{name} ({UNITS.get(name) or UNITS[name[0]]})",
                at[name] * self.limits[name],
                float(walk.value) * self.limits[name],
                wiener.low * self.limits[name],
                wiener.high * self.limits[name],
            )
            for name, walk, wiener in zip(
                self.env.weights, state.setpoints, self.wieners, strict=True
            )
        ]
        vector = (at["i_sd"], at["i_sq"]) if "i_sd" in at else None
        share = float(max(self.env.guarded_squares(state.observed))) ** 0.5
        voltages = tuple(
            at[name] * self.limits[name] / self.env.supply for name in self.env.system.voltages
        )
        return scope.picture(vector, share, 1.1, gauges, voltages)
