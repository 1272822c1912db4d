"""Drive a car so that a specification in signal temporal logic holds: reach, avoid, order, stay, deadlines.

The car is the kinematic bicycle with the reference point on the rear axle:

    dx/dt = v cos(theta),   dy/dt = v sin(theta),   dtheta/dt = v tan(delta) / L,   dv/dt = a

Each of the seven specifications says G free & ..., where ``free`` is the distance to the nearest hazard or wall, and
A, B, C are the distances within the edges of three regions, negative outside:

====  ==========================================================
0     F A
1     F A | F B
2     F A & F B
3     F (A & F (B & F C))
4     (!B U A) & F B
5     F G[0,2] A
6     F[0,15] A & F B
====  ==========================================================

Robustness is that of Donze & Maler 2010 on samples 0.2 s apart, in m (``signal_temporal_logic.py``). The trace begins
2 s before the first action, the car standing, and ends after 30 s of driving.

======================  ====================================================================================
action                  five times a second, ``(2,)`` in [-1, 1]: acceleration (2 m/s2), which stops at -1 and 3 m/s;
                        angle of the front wheels (0.6 rad) to the left
observation ``(46,)``   x, y (by 20 m), cos(theta), sin(theta), v (by 3 m/s); place of A, B, C from the car, forwards
                        and to the left (by 20 m); place of four hazards, likewise, and their radii (by 2 m); which
                        specification (one-hot 7); memory of its monitor (by 20 m, cut off at +-1, padded to 13);
                        distance to what is forbidden and robustness so far (by 20 m); part of the time gone
reward                  change of min(robustness, 0) / 10 m, at least -2; plus 1 at the end if the specification is
                        satisfied; minus 1 for a collision
terminated              after 150 steps; or in a hazard or beyond a wall, which no future can mend
success                 the specification is satisfied by the whole trace: its robustness is positive after 150 steps
start                   standing
context                 specification; start, regions (radius 1.2 m) and hazards (1 to 1.5 m) in different cells of a
                        4 x 4 grid of 5 m, each up to 0.6 m from the cell's centre. The numbers of the three regions'
                        cells have an even sum in training, an odd one in tests
======================  ====================================================================================

The rewards of an episode add up to final minus first min(robustness, 0) / 10, and the payment at the end. So nothing is
earned by going to and fro.

Sources: Donze & Maler 2010, doi:10.1007/978-3-642-15297-9_9 (robustness); Maler & Nickovic 2004,
doi:10.1007/978-3-540-30206-3_12 (the logic); Kurtz & Lin 2022, doi:10.1109/LCSYS.2022.3172857 (such
specifications); Rajamani 2012, section 2.2 (kinematic bicycle).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Component
from rlbench_suite.task import Task

from ..runge_kutta import rk4
from .signal_temporal_logic import (
    NEVER,
    Always,
    And,
    Eventually,
    Formula,
    In,
    Memory,
    Monitor,
    Not,
    Or,
    Until,
    in_words,
    written,
)

Scalar = Any

STEP = 0.2
"""s"""
STEPS = 150
BEFORE = 10
"""Samples before the first action."""
SIDE, CELL = 20.0, 5.0
"""m: of the arena and of a cell."""
WHEELBASE, HARDEST, SLOWEST, FASTEST, SHARPEST = 1.0, 2.0, -1.0, 3.0, 0.6
"""L in m; limits of acceleration, m/s2, speed, m/s, and steering, rad."""
REGIONS, HAZARDS = 3, 4
RADIUS, SMALLEST, LARGEST = 1.2, 1.0, 1.5
"""m: of regions; of hazards."""
SHIFT = 0.6
"""m"""
UNIT = 10.0
"""m of robustness that pay 1."""
A, B, C = (In(name) for name in "ABC")
SAFE = Always(In("free"))
SPECIFICATIONS: tuple[Formula, ...] = tuple(
    And((SAFE, *parts))
    for parts in (
        (Eventually(A),),
        (Or((Eventually(A), Eventually(B))),),
        (Eventually(A), Eventually(B)),
        (Eventually(And((A, Eventually(And((B, Eventually(C))))))),),
        (Until(Not(B), A), Eventually(B)),
        (Eventually(Always(A, BEFORE)),),
        (Eventually(A, 75), Eventually(B)),
    )
)
MONITORS = tuple(Monitor(formula) for formula in SPECIFICATIONS)
MEMORY = max(monitor.size for monitor in MONITORS)


class Pose(NamedTuple):
    """The car."""

    x: Scalar
    """m, as y"""
    y: Scalar
    theta: Scalar
    """rad"""
    v: Scalar
    """m/s"""


class Params(NamedTuple):
    """The context."""

    specification: jax.Array
    """int32: index in SPECIFICATIONS."""
    start: Pose
    region_x: jax.Array
    """``(3,)`` m, as region_y: centres of A, B, C."""
    region_y: jax.Array
    hazard_x: jax.Array
    """``(4,)`` m, as hazard_y."""
    hazard_y: jax.Array
    hazard_radius: jax.Array
    """``(4,)`` m."""


class State(NamedTuple):
    """The car and the memory of the monitor."""

    car: Pose
    memory: Memory
    """MEMORY scalars of the monitor of the specification, padded."""
    robustness: Scalar
    """m, of the trace so far."""
    safety: Scalar
    """m: least distance to what is forbidden, so far."""
    steps: Scalar
    """int32"""


def predicates(car: Pose, params: Params) -> dict[str, Scalar]:
    """Return the values of A, B, C and free, m."""

    def away(x: Scalar, y: Scalar) -> Scalar:
        return jnp.sqrt((car.x - x) ** 2 + (car.y - y) ** 2)

    values = {name: RADIUS - away(params.region_x[i], params.region_y[i]) for i, name in enumerate("ABC")}
    free = jnp.minimum(jnp.minimum(car.x, SIDE - car.x), jnp.minimum(car.y, SIDE - car.y))
    for i in range(HAZARDS):
        free = jnp.minimum(free, away(params.hazard_x[i], params.hazard_y[i]) - params.hazard_radius[i])
    return {**values, "free": free}


def drive(car: Pose, acceleration: Scalar, steering: Scalar) -> Pose:
    """Return the car 0.2 s later; the acceleration ends at the limits of speed."""
    v = jnp.clip(car.v + STEP * acceleration, SLOWEST, FASTEST)
    a, turn = (v - car.v) / STEP, jnp.tan(steering) / WHEELBASE

    def slopes(_: float, now: Pose) -> Pose:
        return Pose(now.v * jnp.cos(now.theta), now.v * jnp.sin(now.theta), now.v * turn, a)

    return rk4(slopes, car, STEP)._replace(v=v)


def observed(memory: Memory, values: Mapping[str, Scalar], sample: Scalar, chosen: Scalar) -> tuple[Scalar, Memory]:
    """Return robustness and memory after one more sample, of the chosen specification."""
    found, kept = jnp.zeros_like(values["free"]), memory
    for index, monitor in enumerate(MONITORS):
        value, rest = monitor.step(memory[: monitor.size], values, sample)
        mine = chosen == index
        found = jnp.where(mine, value, found)
        padded = (*rest, *memory[monitor.size :])
        kept = tuple(jnp.where(mine, new, old) for new, old in zip(padded, kept, strict=True))
    return found, kept


class TemporalLogic(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "robustness": "of the trace so far, m",
        "specification": "number of the specification in the table",
        "collided": "whether the car was in a hazard or beyond a wall",
    }
    picture_shape = (320, 320, 3)
    period = STEP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1, -1], [1, 1])
        low = -np.ones(26 + len(MONITORS) + MEMORY)
        low[[0, 1, -1]] = 0
        low[5 + 2 * REGIONS + 2 * HAZARDS : 5 + 2 * REGIONS + 3 * HAZARDS + len(MONITORS)] = 0
        self.observation_space = self.box(low, np.ones(len(low)))
        self.reward_space = self.box(-3, 3)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a specification, and cells for start, regions and hazards."""
        u = self.uniform(key, 16 + 2 * (1 + REGIONS + HAZARDS) + HAZARDS + 2)
        cells = jnp.argsort(u[:16]).astype(jnp.int32)
        fits = ((cells[1] + cells[2] + cells) % 2 == split) & (np.arange(16) >= 3)
        third = jnp.argmax(fits)
        cells = jnp.where(np.arange(16) == third, cells[3], cells).at[3].set(cells[third])
        shift = SHIFT * (2 * u[16 : 16 + 2 * (1 + REGIONS + HAZARDS)].reshape(2, -1) - 1)
        used = cells[: 1 + REGIONS + HAZARDS]
        x = CELL * (0.5 + (used % 4).astype(self.dtype)) + shift[0]
        y = CELL * (0.5 + (used // 4).astype(self.dtype)) + shift[1]
        rest = u[16 + 2 * (1 + REGIONS + HAZARDS) :]
        chosen = jnp.minimum(jnp.floor(len(MONITORS) * rest[0]).astype(jnp.int32), len(MONITORS) - 1)
        middle = 1 + REGIONS
        return Params(
            chosen,
            Pose(x[0], y[0], 2 * math.pi * rest[1], jnp.zeros((), self.dtype)),
            x[1:middle],
            y[1:middle],
            x[middle:],
            y[middle:],
            SMALLEST + (LARGEST - SMALLEST) * rest[2:],
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Stand for the samples before the first action."""
        values = predicates(params.start, params)
        memory: Memory = (jnp.full((), NEVER, self.dtype),) * MEMORY

        def stand(sample: Scalar, now: tuple[Scalar, Memory]) -> tuple[Scalar, Memory]:
            return observed(now[1], values, sample, params.specification)

        robustness, memory = jax.lax.fori_loop(0, BEFORE + 1, stand, (jnp.zeros((), self.dtype), memory))
        return State(params.start, memory, robustness, values["free"], jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive, then show the monitor the new sample."""
        car = drive(state.car, HARDEST * action[0], SHARPEST * action[1])
        values = predicates(car, params)
        steps = state.steps + 1
        robustness, memory = observed(state.memory, values, steps + BEFORE, params.specification)
        return State(car, memory, robustness, jnp.minimum(state.safety, values["free"]), steps)

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the change of robustness, and the payment at the end; see the table."""
        before, after = (worth(value.robustness) for value in (state, next_state))
        paid = (satisfied(next_state) & ~satisfied(state)).astype(self.dtype)
        lost = ((next_state.safety <= 0) & (state.safety > 0)).astype(self.dtype)
        return after - before + paid - lost

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the trace is over, or the car in a hazard."""
        return (state.steps >= STEPS) | (state.safety <= 0)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": satisfied(state),
            "robustness": state.robustness,
            "specification": params.specification,
            "collided": state.safety <= 0,
        }

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(46,)``; see the table."""
        car = state.car
        cosine, sine = jnp.cos(car.theta), jnp.sin(car.theta)

        def seen(x: jax.Array, y: jax.Array) -> list[jax.Array]:
            forwards = cosine * (x - car.x) + sine * (y - car.y)
            return [forwards / SIDE, (cosine * (y - car.y) - sine * (x - car.x)) / SIDE]

        size = len(MONITORS)
        chosen = (params.specification == np.arange(size)).astype(self.dtype)
        shown = jnp.concatenate([
            self.stack(car.x / SIDE, car.y / SIDE, cosine, sine, car.v / FASTEST),
            *seen(params.region_x, params.region_y),
            *seen(params.hazard_x, params.hazard_y),
            params.hazard_radius / 2,
            chosen,
            self.stack(*state.memory) / SIDE,
            self.stack(state.safety / SIDE, state.robustness / SIDE, state.steps.astype(self.dtype) / STEPS),
        ])  # fmt: skip
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(shown, low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        metres = f"{SIDE:g} m"
        return (
            Component("x", "place of the rear axle from the western wall", metres),
            Component("y", "place of the rear axle from the southern wall", metres),
            Component("cos_theta", "cosine of the car's direction, from the east to the left"),
            Component("sin_theta", "sine of the car's direction"),
            Component("v", "speed, negative backwards", f"{FASTEST:g} m/s"),
            Component("region_forwards", "of the regions A, B, C from the car", metres, (REGIONS,)),
            Component("region_left", "of the regions A, B, C from the car", metres, (REGIONS,)),
            Component("hazard_forwards", "of each hazard from the car", metres, (HAZARDS,)),
            Component("hazard_left", "of each hazard from the car", metres, (HAZARDS,)),
            Component("hazard_radius", "size of each hazard", "2 m", (HAZARDS,)),
            Component("specification", "one-hot: which of the seven is to hold", shape=(len(MONITORS),)),
            Component("memory", "of the specification's monitor, padded", metres, (MEMORY,)),
            Component("safety", "least distance to hazards and walls so far", metres),
            Component("robustness", "of the trace so far", metres),
            Component("time", "part of the trace that is gone"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List pedals and wheel."""
        return (
            Component("acceleration", "forwards, which ends at the limits of speed", f"{HARDEST:g} m/s2"),
            Component("steering", "angle of the front wheels to the left", f"{SHARPEST:g} rad"),
        )

    # -- text and pixels ---------------------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Say the specification, then where everything is."""
        formula = SPECIFICATIONS[int(params.specification)]
        car = Pose(*(float(value) for value in state.car))
        places = [
            f"{name} ({float(x):.2f}, {float(y):.2f})"
            for name, x, y in zip("ABC", params.region_x, params.region_y, strict=True)
        ]
        hazards = [
            f"({float(x):.2f}, {float(y):.2f}) radius {float(r):.2f}"
            for x, y, r in zip(params.hazard_x, params.hazard_y, params.hazard_radius, strict=True)
        ]
        memory = " ".join(f"{float(value):.2f}" for value in state.memory[: MONITORS[int(params.specification)].size])
        return (
            f"Specification, to hold over {(STEPS + BEFORE) * STEP:g} s, of which {BEFORE * STEP:g} s have passed at "
            f"the start: {in_words(formula, STEP)}.\nAs a formula: {written(formula, STEP)}. Free means out of "
            f"hazards and within the walls, 0 to {SIDE:g} m in x and y.\n\n"
            f"Regions of radius {RADIUS:g} m: {', '.join(places)}. Hazards: {', '.join(hazards)}.\n\n"
            f"The car is at ({car.x:.2f}, {car.y:.2f}), heading {math.degrees(car.theta):.1f} degrees from the x axis "
            f"to the left, at {car.v:.2f} m/s. Robustness so far: {float(state.robustness):.2f} m; least distance to "
            f"what is forbidden: {float(state.safety):.2f} m; memory of the monitor: {memory}. Step {int(state.steps)} "
            f"of {STEPS}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with two numbers from -1 to 1, for {STEP:g} s: acceleration (1: {HARDEST:g} m/s2) and angle of "
            f"the front wheels (1: {SHARPEST:g} rad to the left)."
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the car collided, or the trace is judged."""
        if info["collided"]:
            return "the car ran into a hazard or a wall"
        return f"the trace is over, and the specification is {'satisfied' if info['success'] else 'not satisfied'}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the arena from above, the formula and the car; north up."""
        scale = self.picture_shape[0] / SIDE
        image = Image.new("RGB", self.picture_shape[1::-1], (236, 236, 228))
        canvas = ImageDraw.Draw(image)

        def circle(x: float, y: float, radius: float, fill: Any, name: str = "") -> None:
            column, row = scale * x, self.picture_shape[0] - scale * y
            reach = scale * radius
            canvas.ellipse((column - reach, row - reach, column + reach, row + reach), fill=fill, outline="black")
            canvas.text((column - 3, row - 5), name, fill="black")

        colours = ("lightgreen", "skyblue", "plum")
        for name, x, y, fill in zip("ABC", params.region_x, params.region_y, colours, strict=True):
            circle(float(x), float(y), RADIUS, fill, name)
        for x, y, radius in zip(params.hazard_x, params.hazard_y, params.hazard_radius, strict=True):
            circle(float(x), float(y), float(radius), "indianred")
        car = Pose(*(float(value) for value in state.car))
        cosine, sine = math.cos(car.theta), math.sin(car.theta)
        corners = [
            (scale * (car.x + a * cosine - b * sine), self.picture_shape[0] - scale * (car.y + a * sine + b * cosine))
            for a, b in ((-0.3, -0.35), (-0.3, 0.35), (1.3, 0.0))
        ]
        canvas.polygon(corners, fill="red" if state.safety <= 0 else "black")
        canvas.text((4, 2), written(SPECIFICATIONS[int(params.specification)], STEP), fill="black")
        canvas.text((4, 14), f"robustness {float(state.robustness):.2f} m, step {int(state.steps)}", fill="black")
        return np.asarray(image)


def worth(robustness: Scalar) -> Scalar:
    """Return the pay of a robustness: that below zero counts."""
    return jnp.clip(robustness, -2 * UNIT, 0) / UNIT


def satisfied(state: State) -> Scalar:
    """Say whether the whole trace satisfies the specification."""
    return (state.steps >= STEPS) & (state.robustness > 0)
