"""Fly a quadcopter so that a specification in signal temporal logic holds.

Specifications ask it to reach and to avoid regions, in an order, to stay, and to meet deadlines.

The specifications, their monitors, rewards and success are those of ``TemporalLogic-v0``, in
``shared/temporal_logic``; the values of A, B, C and ``free`` are distances in space. Samples are
0.1 s apart: the trace begins 1 s before the first action, the vehicle hovering, and ends after 15 s
of flight; a stay takes 1 s, and the deadline of 7.5 s is at 6.5 s of flight.

Dynamics: ``physics/dynamics.py`` with rotor drag, ten Runge-Kutta steps of 10 ms a step of the
episode. The flight controller (``control/flight_controller.py``) turns body rates into rotor
commands before each of them. Nothing is random after the start.

======================  ============================================================================
action ``(4,)``         ten times a second, in [-1, 1]: collective thrust (-1 none, 0 what hovers, 1
                        twice that), body rates about forward and left (10 rad/s) and up (5 rad/s)
observation ``(69,)``   place (3, m), rotation matrix body to world (9, row by row), velocity in the
                        world frame (3, m/s), angular velocity in the body frame (3, rad/s), rotor
                        speeds (4, from -1 to 1); vectors to the middles of A, B, C (3 each, m), to
                        the axes of two pillars (2 each, m) and to the middles of two balls (3 each,
                        m); radii of pillars and balls (4, m); which specification (one-hot 7);
                        memory of its monitor (m, cut off at +-8, padded to 14); least distance to
                        hazards and walls and robustness so far (m); part of the time gone
reward                  change of min(robustness, 0) / 4 m, at least -2; plus 1 at the end if the
                        specification is satisfied; minus 1 for a collision
terminated              after 150 steps; or in a hazard or beyond a wall, floor or ceiling, which no
                        future can mend
success                 the specification is satisfied by the whole trace: its robustness is
                        positive after 150 steps
start                   hovering, level, the nose along x
context                 specification; start, regions (balls of radius 0.5 m) and hazards (two
                        pillars from floor to ceiling and two balls, radius 0.35 to 0.55 m) in
                        different cells of a 4 x 4 grid of 2 m, each up to 0.25 m from the cell's
                        centre; all but pillars 0.8 to 2.2 m high, below a ceiling at 3 m. The
                        numbers of the three regions' cells have an even sum in training, an odd one
                        in tests. The vehicle, as in hover: mass +-20 % (train and test in
                        alternating bands of 1 %), inertia +-20 %, thrust coefficient +-10 %, torque
                        coefficient +-20 %, motor time constant +-25 %
======================  ============================================================================

Distances are those of the centre of mass.

Sources: Donze & Maler 2010, doi:10.1007/978-3-642-15297-9_9 (robustness); Pant, Abbas, Quaye &
Mangharam 2018, Fly-by- logic, doi:10.1109/ICCPS.2018.00026 (quadcopters under such specifications);
Kaufmann, Bauersfeld & Scaramuzza 2022, arXiv:2202.10796 (collective thrust and body rates).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ...shared.temporal_logic.monitor import Memory
from ...shared.temporal_logic.specifications import (
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
from ..physics import dynamics
from ..physics.dynamics import STEP, Airframe, Quadcopter
from ..physics.rigid_body import RigidBody, Scalar
from ..physics.sampling import sample_airframe
from ..rendering.picture import Shot
from ..rendering.scene import Ball, Line, Shape, prism
from ..sensing import motion
from .commands.by_command import ByRates

SUBSTEPS = 10
SIDE = 8.0
"""m: side of the arena."""
CEILING = 3.0
"""m: height of the arena."""
CELL_SIDE = 2.0
"""m: side of a cell of the arena."""
PILLARS = 2
"""Hazards that are pillars; the others are balls."""
REGION_RADIUS = 0.5
"""m"""
MIN_HAZARD_RADIUS = 0.35
"""m"""
MAX_HAZARD_RADIUS = 0.55
"""m"""
MAX_SHIFT = 0.25
"""m along x and y, of what is placed in a cell, from the cell's centre."""
MIN_HEIGHT = 0.8
"""m: smallest height of start, regions and balls."""
MAX_HEIGHT = 2.2
"""m: largest height of start, regions and balls."""
# Rotors and gravity accelerate it by at most 41 m/s^2, over a diagonal of 11.7 m.
VELOCITY_BOUND = 35.0
COLOURS = ("green", "royalblue", "purple")
"""Colours of A, B, C."""


class Params(NamedTuple):
    """The context."""

    airframe: Airframe
    specification: jax.Array
    """int32: index in SPECS."""
    start_x: Scalar
    """m, as start_y and start_z"""
    start_y: Scalar
    start_z: Scalar
    region_x: jax.Array
    """``(3,)`` m, as region_y and region_z: middles of A, B, C."""
    region_y: jax.Array
    region_z: jax.Array
    hazard_x: jax.Array
    """``(4,)`` m, as hazard_y: two pillars and two balls."""
    hazard_y: jax.Array
    hazard_radius: jax.Array
    """``(4,)`` m."""
    ball_z: jax.Array
    """``(2,)`` m."""


class State(NamedTuple):
    """The vehicle and the memory of the monitor."""

    vehicle: Quadcopter
    memory: Memory
    """MEMORY scalars of the monitor of the specification, padded."""
    robustness: Scalar
    """m, of the trace so far."""
    safety: Scalar
    """m: least distance to hazards and walls, so far."""
    steps: Scalar
    """int32"""


def predicates(x: Scalar, y: Scalar, z: Scalar, params: Params) -> dict[str, Scalar]:
    """Return the values of A, B, C and free at a place, m."""

    def length_of(dx: Scalar, dy: Scalar, dz: Scalar) -> Scalar:
        return jnp.sqrt(dx * dx + dy * dy + dz * dz)

    values = {
        name: REGION_RADIUS
        - length_of(params.region_x[i] - x, params.region_y[i] - y, params.region_z[i] - z)
        for i, name in enumerate("ABC")
    }
    free = jnp.minimum(jnp.minimum(x, SIDE - x), jnp.minimum(y, SIDE - y))
    free = jnp.minimum(free, jnp.minimum(z, CEILING - z))
    for i in range(HAZARDS):
        above = 0.0 if i < PILLARS else params.ball_z[i - PILLARS] - z
        free = jnp.minimum(
            free,
            length_of(params.hazard_x[i] - x, params.hazard_y[i] - y, above)
            - params.hazard_radius[i],
        )
    return {**values, "free": free}


class TemporalLogicQuadcopter(SpecifiedTask[Params, State], ByRates[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "robustness": "of the trace so far, m",
        "specification": "number of the specification in the table",
        "collided": "whether the vehicle was in a hazard or beyond a wall, floor or ceiling",
    }
    period = SUBSTEPS * STEP
    unit = 4.0

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        arena = [SIDE, SIDE, CEILING]
        balls = HAZARDS - PILLARS
        motion_bound = self.body_observation_bound(VELOCITY_BOUND)
        offsets = arena * REGIONS + [SIDE] * 2 * PILLARS + arena * balls
        values = [SIDE] * (MEMORY + 2)
        high = [
            *arena,
            *motion_bound,
            *offsets,
            *[MAX_HAZARD_RADIUS] * HAZARDS,
            *[1.0] * len(MONITORS),
            *values,
            1.0,
        ]
        zeros = [0.0] * (HAZARDS + len(MONITORS))
        low = (
            [0.0] * 3
            + [-bound for bound in motion_bound + offsets]
            + zeros
            + [-bound for bound in values]
            + [0.0]
        )
        self.observation_space = self.box(low, high)
        self.reward_space = self.box(-3, 3)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a vehicle, a specification, and cells for start, regions and hazards."""
        num_cells = 1 + REGIONS + HAZARDS
        u = self.uniform(key, 16 + 3 * num_cells + HAZARDS + 6)
        columns, rows = sample_cells(u[:16], split)
        across, along, height = u[16 : 16 + 3 * num_cells].reshape(3, num_cells)
        x = CELL_SIDE * (0.5 + columns.astype(self.dtype)) + MAX_SHIFT * (2 * across - 1)
        y = CELL_SIDE * (0.5 + rows.astype(self.dtype)) + MAX_SHIFT * (2 * along - 1)
        z = MIN_HEIGHT + (MAX_HEIGHT - MIN_HEIGHT) * height
        more_units = u[16 + 3 * num_cells :]
        hazards = 1 + REGIONS
        return Params(
            sample_airframe(more_units[:5], split, self.sheet),
            sample_specification(more_units[5]),
            x[0],
            y[0],
            z[0],
            x[1:hazards],
            y[1:hazards],
            z[1:hazards],
            x[hazards:],
            y[hazards:],
            MIN_HAZARD_RADIUS + (MAX_HAZARD_RADIUS - MIN_HAZARD_RADIUS) * more_units[6:],
            z[hazards + PILLARS :],
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Hover for the samples before the first action."""
        zero = jnp.zeros((), self.dtype)
        start = params.start_x, params.start_y, params.start_z
        body = RigidBody(*start, zero + 1, *[zero] * 9)
        values = predicates(*start, params)
        robustness, memory = monitor_lead_in(values, params.specification)
        vehicle = Quadcopter(body, dynamics.hovering_rotors(params.airframe))
        return State(vehicle, memory, robustness, values["free"], jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Fly under the flight controller, then show the monitor the new sample."""

        def fly(_: int, vehicle: Quadcopter) -> Quadcopter:
            command = self.commands(state._replace(vehicle=vehicle), action, params)
            return self.step_vehicle(vehicle, command, params.airframe, air=self.sheet.air)

        return self.next_state(state, jax.lax.fori_loop(0, SUBSTEPS, fly, state.vehicle), params)

    def next_state(self, state: State, vehicle: Quadcopter, params: Params) -> State:
        """Return the vehicle, and the monitor after a sample of its place."""
        body, steps = vehicle.body, state.steps + 1
        values = predicates(body.x, body.y, body.z, params)
        robustness, memory = step_monitor(
            state.memory, values, steps + LEAD_IN, params.specification
        )
        return State(vehicle, memory, robustness, jnp.minimum(state.safety, values["free"]), steps)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(69,)``; see the table."""
        body = state.vehicle.body
        regions = params.region_x - body.x, params.region_y - body.y, params.region_z - body.z
        pillars = params.hazard_x[:PILLARS] - body.x, params.hazard_y[:PILLARS] - body.y
        balls = (
            params.hazard_x[PILLARS:] - body.x,
            params.hazard_y[PILLARS:] - body.y,
            params.ball_z - body.z,
        )
        entries = jnp.concatenate([
            self.stack(body.x, body.y, body.z, *self.body_observation(state.vehicle)),
            *(jnp.stack(offsets, 1).ravel() for offsets in (regions, pillars, balls)),
            params.hazard_radius,
            *self.monitor_observation(state, params, 1.0),
        ])  # fmt: skip
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(entries, low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            motion.offset("place", "of the vehicle, from the corner of the floor"),
            *motion.ATTITUDE_AND_RATES,
            *(
                motion.offset(f"region_{name}", f"from the vehicle to the middle of region {name}")
                for name in "ABC"
            ),
            Component(
                "pillars",
                "from the vehicle to the axis of each, along x, y of the world",
                "m",
                (PILLARS, 2),
            ),
            Component(
                "balls",
                "from the vehicle to the middle of each, along x, y, z of the world",
                "m",
                (2, 3),
            ),
            Component("radii", "of the pillars, then of the balls", "m", (HAZARDS,)),
            *monitored_components("m"),
        )

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Say the specification, then where everything is."""
        regions = zip("ABC", params.region_x, params.region_y, params.region_z, strict=True)
        regions_text = ", ".join(
            f"{name} {motion.format_point(tuple(position))}" for name, *position in regions
        )
        hazards = [
            [float(number) for number in hazard]
            for hazard in zip(params.hazard_x, params.hazard_y, params.hazard_radius, strict=True)
        ]
        pillars = ", ".join(
            f"x {x:.3f}, y {y:.3f}, radius {radius:.3f}" for x, y, radius in hazards[:PILLARS]
        )
        balls = ", ".join(
            f"{motion.format_point((x, y, z))} radius {radius:.3f}"
            for (x, y, radius), z in zip(hazards[PILLARS:], params.ball_z, strict=True)
        )
        return (
            f"{self.describe_specification(state, params)} Free means out of hazards and within "
            f"the arena, 0 to {SIDE:g} m in x and y and 0 to {CEILING:g} m in z.\n\nRegions are "
            f"balls of radius {REGION_RADIUS:g} m: {regions_text}. Hazards: pillars {pillars}; "
            f"balls {balls}.\n\nThe vehicle is at {motion.format_point(state.vehicle.body[:3])}. "
            f"{self.describe_vehicle(state.vehicle)} {self.describe_monitor(state, params)}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"{super().how_to_act()} They hold for {self.period:g} s."

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the vehicle collided, or the trace is judged."""
        if info["collided"]:
            return "crash: it flew into a hazard, a wall, the floor or the ceiling"
        return (
            "the trace is over, and the specification is "
            f"{'satisfied' if info['success'] else 'not satisfied'}"
        )

    def shot(self, state: State, params: Params) -> Shot:
        """Show the vehicle, regions as hoops (A green, B blue, C purple), and hazards in red."""
        things: list[Shape] = []
        for colour, *middle in zip(
            COLOURS, params.region_x, params.region_y, params.region_z, strict=True
        ):
            things += hoops(np.array(middle, float), REGION_RADIUS, colour)
        hazards = np.array([params.hazard_x, params.hazard_y, params.hazard_radius], float).T
        for x, y, radius in hazards[:PILLARS]:
            things += prism(x, y, radius, CEILING, ("indianred", "lightcoral"))
        for (x, y, radius), z in zip(
            hazards[PILLARS:], np.asarray(params.ball_z, float), strict=True
        ):
            things.append(Ball(np.array([[x, y, z]]), "indianred", radius))
        centre = (0.5 * SIDE, 0.5 * SIDE, 0.5 * CEILING)
        return Shot(state.vehicle, 0.5 * SIDE, things, centre=centre, below=0.5 * CEILING)


def hoops(middle: np.ndarray, radius: float, colour: str) -> list[Line]:
    """Return three great circles of a ball, ``middle`` ``(3,)`` (m)."""
    angles = np.linspace(0, 2 * math.pi, 25)
    circle = radius * np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1)
    return [Line(middle + np.roll(circle, turn, 1), colour, 0.03) for turn in range(3)]
