"""Drive a car so that a specification in signal temporal logic holds.

Specifications ask it to reach and to avoid regions, in an order, to stay, and to meet deadlines.

The car is the kinematic bicycle with the reference point on the rear axle:

    dx/dt = v cos(theta),   dy/dt = v sin(theta),   dtheta/dt = v tan(delta) / L,   dv/dt = a

Each of the seven specifications says G free & ..., where ``free`` is the distance to the nearest
hazard or wall, and A, B, C are the distances within the edges of three regions, negative outside:

====  ==========================================================
0     F A & G !B
1     F A | F B
2     F A & F B & G !C
3     F (A & F (B & F C))
4     (!A U B) & F A
5     F G[0,2] A & G !B
6     F[0,15] A & F B
====  ==========================================================

Robustness is that of Donze & Maler 2010 on samples 0.2 s apart, in m (``shared/temporal_logic``).
The trace begins 2 s before the first action, the car standing, and ends after 30 s of driving; so
the deadline of 15 s is at 13 s of driving.

======================  ============================================================================
action                  five times a second, ``(2,)`` in [-1, 1]: acceleration (2 m/s2), which stops
                        at -1 and 3 m/s; angle of the front wheels (0.6 rad) to the left
observation ``(47,)``   x, y (by 20 m), cos(theta), sin(theta), v (by 3 m/s); place of A, B, C from
                        the car, forwards and to the left (by 20 m); place of four hazards,
                        likewise, and their radii (by 2 m); which specification (one-hot 7); memory
                        of its monitor (by 20 m, cut off at +-1, padded to 14); least distance to
                        hazards and walls and robustness so far (by 20 m); part of the time gone
reward                  change of min(robustness, 0) / 10 m, at least -2; plus 1 at the end if the
                        specification is satisfied; minus 1 for a collision
terminated              after 150 steps; or in a hazard or beyond a wall, which no future can mend
success                 the specification is satisfied by the whole trace: its robustness is
                        positive after 150 steps
start                   standing
context                 specification; start, regions (radius 1.2 m) and hazards (1 to 1.5 m) in
                        different cells of a 4 x 4 grid of 5 m, each up to 0.6 m from the cell's
                        centre. The numbers of the three regions' cells have an even sum in
                        training, an odd one in tests
======================  ============================================================================

The rewards of an episode add up to final minus first min(robustness, 0) / 10, and the payment at
the end. So nothing is earned by going to and fro.

Sources: Donze & Maler 2010, doi:10.1007/978-3-642-15297-9_9 (robustness); Maler & Nickovic 2004,
doi:10.1007/978-3-540-30206-3_12 (the logic); Kurtz & Lin 2022, doi:10.1109/LCSYS.2022.3172857 (such
specifications); Rajamani 2012, section 2.2 (kinematic bicycle).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..shared.runge_kutta import rk4
from ..shared.temporal_logic.formula import in_symbols
from ..shared.temporal_logic.monitor import Memory
from ..shared.temporal_logic.specifications import (
    FORMULAS,
    HAZARDS,
    LEAD_IN,
    MEMORY,
    MONITORS,
    REGIONS,
    SpecifiedTask,
    monitor_lead_in,
    monitored_components,
    sample_cells,
    sample_specification,
    step_monitor,
)

Scalar = Any

STEP = 0.2
"""s"""
SIDE = 20.0
"""m: side of the arena."""
CELL_SIDE = 5.0
"""m: side of a cell of the arena."""
WHEELBASE = 1.0
"""m: L of the equations."""
MAX_ACCELERATION = 2.0
"""m/s2, forwards and backwards."""
MIN_SPEED = -1.0
"""m/s, negative backwards."""
MAX_SPEED = 3.0
"""m/s"""
MAX_STEERING = 0.6
"""rad: largest angle of the front wheels, either way."""
REGION_RADIUS = 1.2
"""m"""
MIN_HAZARD_RADIUS = 1.0
"""m"""
MAX_HAZARD_RADIUS = 1.5
"""m"""
MAX_SHIFT = 0.6
"""m along each axis, of what is placed in a cell, from the cell's centre."""


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
    """int32: index in SPECS."""
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
    """m: least distance to hazards and walls, so far."""
    steps: Scalar
    """int32"""


def predicates(car: Pose, params: Params) -> dict[str, Scalar]:
    """Return the values of A, B, C and free, m."""

    def distance_to(x: Scalar, y: Scalar) -> Scalar:
        return jnp.sqrt((car.x - x) ** 2 + (car.y - y) ** 2)

    values = {
        name: REGION_RADIUS - distance_to(params.region_x[i], params.region_y[i])
        for i, name in enumerate("ABC")
    }
    free = jnp.minimum(jnp.minimum(car.x, SIDE - car.x), jnp.minimum(car.y, SIDE - car.y))
    for i in range(HAZARDS):
        free = jnp.minimum(
            free, distance_to(params.hazard_x[i], params.hazard_y[i]) - params.hazard_radius[i]
        )
    return {**values, "free": free}


def drive(car: Pose, acceleration: Scalar, steering: Scalar) -> Pose:
    """Return the car 0.2 s later; the acceleration ends at the limits of speed."""
    v = jnp.clip(car.v + STEP * acceleration, MIN_SPEED, MAX_SPEED)
    a, turn = (v - car.v) / STEP, jnp.tan(steering) / WHEELBASE

    def slopes(_: float, pose: Pose) -> Pose:
        return Pose(pose.v * jnp.cos(pose.theta), pose.v * jnp.sin(pose.theta), pose.v * turn, a)

    return rk4(slopes, car, STEP)._replace(v=v)


class TemporalLogic(SpecifiedTask[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "robustness": "of the trace so far, m",
        "specification": "number of the specification in the table",
        "collided": "whether the car was in a hazard or beyond a wall",
    }
    picture_shape = (320, 320, 3)
    period = STEP
    unit = 10.0

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1, -1], [1, 1])
        low = -np.ones(26 + len(MONITORS) + MEMORY)
        low[[0, 1, -1]] = 0
        low[5 + 2 * REGIONS + 2 * HAZARDS : 5 + 2 * REGIONS + 3 * HAZARDS + len(MONITORS)] = 0
        self.observation_space = self.box(low, np.ones(len(low)))
        self.reward_space = self.box(-3, 3)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a specification, and cells for start, regions and hazards."""
        u = self.uniform(key, 16 + 2 * (1 + REGIONS + HAZARDS) + HAZARDS + 2)
        columns, rows = sample_cells(u[:16], split)
        shift = MAX_SHIFT * (2 * u[16 : 16 + 2 * (1 + REGIONS + HAZARDS)].reshape(2, -1) - 1)
        x = CELL_SIDE * (0.5 + columns.astype(self.dtype)) + shift[0]
        y = CELL_SIDE * (0.5 + rows.astype(self.dtype)) + shift[1]
        units = u[16 + 2 * (1 + REGIONS + HAZARDS) :]
        middle = 1 + REGIONS
        return Params(
            sample_specification(units[0]),
            Pose(x[0], y[0], 2 * math.pi * units[1], jnp.zeros((), self.dtype)),
            x[1:middle],
            y[1:middle],
            x[middle:],
            y[middle:],
            MIN_HAZARD_RADIUS + (MAX_HAZARD_RADIUS - MIN_HAZARD_RADIUS) * units[2:],
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Stand for the samples before the first action."""
        values = predicates(params.start, params)
        robustness, memory = monitor_lead_in(values, params.specification)
        return State(params.start, memory, robustness, values["free"], jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive, then show the monitor the new sample."""
        car = drive(state.car, MAX_ACCELERATION * action[0], MAX_STEERING * action[1])
        values = predicates(car, params)
        steps = state.steps + 1
        robustness, memory = step_monitor(
            state.memory, values, steps + LEAD_IN, params.specification
        )
        return State(car, memory, robustness, jnp.minimum(state.safety, values["free"]), steps)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(47,)``; see the table."""
        car = state.car
        cosine, sine = jnp.cos(car.theta), jnp.sin(car.theta)

        def relative_position(x: jax.Array, y: jax.Array) -> list[jax.Array]:
            forwards = cosine * (x - car.x) + sine * (y - car.y)
            return [forwards / SIDE, (cosine * (y - car.y) - sine * (x - car.x)) / SIDE]

        entries = jnp.concatenate([
            self.stack(car.x / SIDE, car.y / SIDE, cosine, sine, car.v / MAX_SPEED),
            *relative_position(params.region_x, params.region_y),
            *relative_position(params.hazard_x, params.hazard_y),
            params.hazard_radius / 2,
            *self.monitor_observation(state, params, SIDE),
        ])  # fmt: skip
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(entries, low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        metres = f"{SIDE:g} m"
        return (
            Component("x", "place of the rear axle from the western wall", metres),
            Component("y", "place of the rear axle from the southern wall", metres),
            Component("cos_theta", "cosine of the car's direction, from the east to the left"),
            Component("sin_theta", "sine of the car's direction"),
            Component("v", "speed, negative backwards", f"{MAX_SPEED:g} m/s"),
            Component("region_forwards", "of the regions A, B, C from the car", metres, (REGIONS,)),
            Component("region_left", "of the regions A, B, C from the car", metres, (REGIONS,)),
            Component("hazard_forwards", "of each hazard from the car", metres, (HAZARDS,)),
            Component("hazard_left", "of each hazard from the car", metres, (HAZARDS,)),
            Component("hazard_radius", "size of each hazard", "2 m", (HAZARDS,)),
            *monitored_components(metres),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List pedals and wheel."""
        return (
            Component(
                "acceleration",
                "forwards, which ends at the limits of speed",
                f"{MAX_ACCELERATION:g} m/s2",
            ),
            Component("steering", "angle of the front wheels to the left", f"{MAX_STEERING:g} rad"),
        )

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Say the specification, then where everything is."""
        car = Pose(*(float(value) for value in state.car))
        regions = [
            f"{name} ({float(x):.2f}, {float(y):.2f})"
            for name, x, y in zip("ABC", params.region_x, params.region_y, strict=True)
        ]
        hazards = [
            f"({float(x):.2f}, {float(y):.2f}) radius {float(r):.2f}"
            for x, y, r in zip(params.hazard_x, params.hazard_y, params.hazard_radius, strict=True)
        ]
        return (
            f"{self.describe_specification(state, params)} Free means out of hazards and within "
            "the walls, "
            f"0 to {SIDE:g} m in x and y."
            "\n\n"
            f"Regions of radius {REGION_RADIUS:g} m: {', '.join(regions)}. Hazards: "
            f"{', '.join(hazards)}.\n\n"
            f"The car is at ({car.x:.2f}, {car.y:.2f}), heading {math.degrees(car.theta):.1f} "
            "degrees from the x axis "
            f"to the left, at {car.v:.2f} m/s. {self.describe_monitor(state, params)}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with two numbers from -1 to 1, for {STEP:g} s: acceleration "
            f"(1: {MAX_ACCELERATION:g} m/s2) and angle of the front wheels "
            f"(1: {MAX_STEERING:g} rad to the left)."
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the car collided, or the trace is judged."""
        if info["collided"]:
            return "the car ran into a hazard or a wall"
        return (
            "the trace is over, and the specification is "
            f"{'satisfied' if info['success'] else 'not satisfied'}"
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the arena from above, the formula and the car; north up."""
        scale = self.picture_shape[0] / SIDE
        image = Image.new("RGB", self.picture_shape[1::-1], (236, 236, 228))
        canvas = ImageDraw.Draw(image)

        def circle(x: float, y: float, radius: float, fill: Any, name: str = "") -> None:
            column, row = scale * x, self.picture_shape[0] - scale * y
            reach = scale * radius
            canvas.ellipse(
                (column - reach, row - reach, column + reach, row + reach),
                fill=fill,
                outline="black",
            )
            canvas.text((column - 3, row - 5), name, fill="black")

        colours = ("lightgreen", "skyblue", "plum")
        for name, x, y, fill in zip("ABC", params.region_x, params.region_y, colours, strict=True):
            circle(float(x), float(y), REGION_RADIUS, fill, name)
        for x, y, radius in zip(
            params.hazard_x, params.hazard_y, params.hazard_radius, strict=True
        ):
            circle(float(x), float(y), float(radius), "indianred")
        car = Pose(*(float(value) for value in state.car))
        cosine, sine = math.cos(car.theta), math.sin(car.theta)
        corners = [
            (
                scale * (car.x + a * cosine - b * sine),
                self.picture_shape[0] - scale * (car.y + a * sine + b * cosine),
            )
            for a, b in ((-0.3, -0.35), (-0.3, 0.35), (1.3, 0.0))
        ]
        canvas.polygon(corners, fill="red" if state.safety <= 0 else "black")
        canvas.text((4, 2), in_symbols(FORMULAS[int(params.specification)], STEP), fill="black")
        canvas.text(
            (4, 14),
            f"robustness {float(state.robustness):.2f} m, step {int(state.steps)}",
            fill="black",
        )
        return np.asarray(image)
