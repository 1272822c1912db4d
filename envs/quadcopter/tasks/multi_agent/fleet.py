"""The base class of tasks of many vehicles: wakes, wrecks, neighbours.

Dynamics of each vehicle: ``physics/dynamics.py`` with rotor drag, one Runge-Kutta step of 10 ms a
step of the episode. A vehicle pushes those below it with its wake (``aerodynamics.downwash``,
gym-pybullet-drones, arXiv:2103.02142, eq. 7), held over the step. That formula grows without bound
as the heights become equal. So a wake here needs 0.2 m to form (it fades linearly to nothing at
equal height), pushes no harder than the weight of the vehicle that makes it, and all wakes together
push no harder than three weights.

=========================  =========================================================================
action ``(n, 4)``          commanded speed of rotor 1..4 of each vehicle: -1 is standstill, +1 is
                           21,702 RPM
observation ``(n, m)``     of each vehicle: vector to its goal (3, m, world frame), rotation matrix
                           body to world (9, row by row), velocity in the world frame (3, m/s),
                           angular velocity in the body frame (3, rad/s), rotor speeds (4, on the
                           action's scale), 1 if it is wrecked, else 0 (1); then of its nearest,
                           second nearest, ... neighbour, at most four, place (3, m) and velocity
                           (3, m/s) minus its own, zeros if fewer still fly. Wrecks are not seen
cost                       vehicles wrecked in the step
wrecked                    two vehicles that came nearer than 0.13 m (spheres about their
                           propellers' tips touch) at any time of the step, if both moved straight;
                           one that went astray, which a task defines; one that turns faster than
                           2,000 deg/s about an axis. A wreck stays where it is, pushes no air and
                           is in nobody's way
terminated                 all are wrecked
=========================  =========================================================================

Each field of the vehicles is an array ``(n,)``. Effects between vehicles are arrays ``(n, n)``
whose first axis is the vehicle that causes them.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task

from ...physics import dynamics
from ...physics.aerodynamics import downwash
from ...physics.dynamics import HOVER_ACTION, STEP, Airframe, Quadcopter, Rotors
from ...physics.rigid_body import GRAVITY, RigidBody, Scalar, rotation_matrix, squared_length
from ...physics.vehicles import CRAZYFLIE_AIR
from ...rendering import picture
from ...rendering.picture import Pictured, Shot
from ...rendering.scene import Ball, Line, Shape
from ...sensing import motion
from .. import flight

COLLISION = 0.13
"""m between centres: twice the arm, 0.0397 m, and the propeller's radius, 0.0231 m."""
WAKE_DEPTH = 0.2
"""m below a vehicle at which its wake is fully formed."""
MAX_WAKES = 3.0
"""Hardest push of all wakes on a vehicle, in weights."""
MAX_NEIGHBOURS = 4
"""Most neighbours that a vehicle sees."""


class Params(NamedTuple):
    """The context."""

    airframe: Airframe
    x: jax.Array
    """``(n,)`` m: the goals."""
    y: jax.Array
    z: jax.Array


class State(NamedTuple):
    """The vehicles, each field ``(n,)``, and which of them are wrecked."""

    vehicles: Quadcopter
    wrecked: jax.Array
    """bool ``(n,)``"""


class Fleet(Pictured, Task[Params, State]):
    """A task of many vehicles; a subclass adds goals, starts and reward."""

    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE
    period = STEP
    errors = ("goal",)
    halving_error: ClassVar[float]
    """m: distance from the goal at which the reward is one half"""
    frame: float
    """m from the middle to the edge of a picture"""

    def set_spaces(self, reach: float, to_goal: float, speed: float) -> None:
        """Set the spaces.

        ``reach`` and ``to_goal`` are the largest distances from the middle and from the goals (m),
        ``speed`` is the highest speed (m/s).
        """
        n = self.card.agents
        self.neighbour_count = min(MAX_NEIGHBOURS, n - 1)
        self_bound = [to_goal] * 3 + motion.attitude_and_rates_bound(speed) + [1.0]
        neighbour_bound = [2 * reach] * 3 + [2 * speed] * 3
        bound = np.array([self_bound + neighbour_bound * self.neighbour_count] * n)
        self.observation_space = self.box(-bound, bound)
        self.action_space = self.box(-1, 1, (n, 4))
        self.reward_space = self.box(0, 1, (n,))

    @abc.abstractmethod
    def is_astray(self, body: RigidBody, params: Params) -> jax.Array:
        """Say which vehicles are lost, bool ``(n,)``."""

    def noop_action(self) -> np.ndarray:
        """Return the nominal vehicle's hover command."""
        return np.full((self.card.agents, 4), HOVER_ACTION, self.dtype)

    def level_start(
        self, positions: tuple[Scalar, Scalar, Scalar], rates: jax.Array, params: Params
    ) -> State:
        """Return level vehicles with hovering rotors at ``positions`` (m), none of them wrecked.

        ``rates``: ``(6, n)``, velocities (m/s) and angular velocities (rad/s).
        """
        # Level, because programs may round the rotation matrix of any other attitude differently.
        n = self.card.agents
        unit_scalars, zeros = jnp.ones(n, self.dtype), jnp.zeros(n, self.dtype)
        body = RigidBody(*positions, unit_scalars, zeros, zeros, zeros, *rates)
        hover = jnp.broadcast_to(dynamics.hover_speed(params.airframe), (n,))
        return State(Quadcopter(body, Rotors(hover, hover, hover, hover)), jnp.zeros(n, bool))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make one Runge-Kutta step of all vehicles, then find collisions.

        Commands and wakes are constant during the step.
        """
        wrecked = state.wrecked
        command = Rotors(*(dynamics.rotor_speed(action[:, rotor]) for rotor in range(4)))
        push = wakes(state.vehicles.body, wrecked, params.airframe)
        stepped = dynamics.step(
            state.vehicles, command, params.airframe, STEP, CRAZYFLIE_AIR, push=push
        )
        vehicles = jax.tree.map(
            lambda frozen, moving: jnp.where(wrecked, frozen, moving), state.vehicles, stepped
        )
        body = vehicles.body
        lost = self.is_astray(body, params) | motion.spins_too_fast(body)
        too_close = nearest_approaches(state.vehicles.body, body) < COLLISION**2
        hit = (too_close & ~wrecked[:, None] & ~wrecked).any(0)
        return State(vehicles, wrecked | hit | lost)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the observation of each vehicle, ``(n, m)``; see the table."""
        vehicles, wrecked = state.vehicles, state.wrecked
        body = vehicles.body
        self_entries = [*goal_offsets(body, params), *motion.attitude_and_rates(vehicles), wrecked]
        unseen = wrecked[:, None] | np.eye(self.card.agents, dtype=bool)
        all_distances = jnp.where(unseen, jnp.inf, squared_length(*separations(body)))
        squared_distances, neighbours = nearest_rows(all_distances, self.neighbour_count)
        moving = jnp.stack([body.x, body.y, body.z, body.vx, body.vy, body.vz], 1)
        relative_motion = jnp.where(
            (squared_distances < jnp.inf)[:, :, None], moving[neighbours] - moving[:, None], 0
        )
        self_observation = jnp.stack([jnp.asarray(value, self.dtype) for value in self_entries], 1)
        relative_motion = relative_motion.reshape(self.card.agents, 6 * self.neighbour_count)
        return jnp.concatenate([self_observation, relative_motion], 1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each vehicle."""
        neighbours = (
            component
            for rank in range(1, self.neighbour_count + 1)
            for component in (
                motion.offset(
                    f"neighbour_{rank}",
                    f"from the vehicle to its neighbour number {rank} by distance",
                ),
                Component(
                    f"neighbour_{rank}_velocity",
                    "velocity of that neighbour minus its own",
                    "m/s",
                    (3,),
                ),
            )
        )
        return (
            motion.offset("goal", "from the vehicle to its goal"),
            *motion.ATTITUDE_AND_RATES,
            Component("wrecked", "whether it is wrecked"),
            *neighbours,
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the rotor commands of each vehicle."""
        return flight.COMMANDS

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of each vehicle, ``(n,)``: one at its goal, zero for a wreck."""
        error = distances(next_state.vehicles.body, params)
        return jnp.where(next_state.wrecked, 0, self.halving_error / (self.halving_error + error))

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Count the vehicles wrecked in this step."""
        return (next_state.wrecked & ~state.wrecked).sum().astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether no vehicle flies any more."""
        return state.wrecked.all()

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is."""
        return "all vehicles are wrecked"

    def how_to_act(self) -> str:
        """Tell a text player how to answer: four numbers a vehicle."""
        return (
            f"Answer with {4 * self.card.agents} numbers from -1 to 1, agent_0 first: the "
            "commanded speeds of rotors 1 "
            "to 4 (front right, rear right, rear left, front left) of each vehicle: -1 is "
            "standstill, 1 full speed, "
            f"about {HOVER_ACTION} carries the weight."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe place, goal and motion of each vehicle, a line each, with units."""
        lines = [
            "Each vehicle: place (m), from there to its goal (m), velocity (m/s), rows of the "
            "rotation matrix body to world, angular velocity (rad/s), rotor speeds on the action's "
            "scale."
        ]
        vehicles, wrecked = jax.tree.map(np.asarray, (state.vehicles, state.wrecked))
        body = vehicles.body
        goals = np.stack([np.asarray(coordinate) for coordinate in goal_offsets(body, params)])
        turned = np.array(rotation_matrix(body))
        rotors = dynamics.rotor_action(np.array(vehicles.rotors))
        columns = np.concatenate(
            [np.array(body[:3]), goals, np.array(body[7:10]), turned, np.array(body[10:]), rotors]
        )
        for i, values in enumerate(columns.T):
            words = " ".join(f"{value:.2f}" for value in values)
            lines.append(f"agent_{i}{' (wrecked)' if wrecked[i] else ''}: {words}")
        return "\n".join(lines)

    def shot(self, state: State, params: Params) -> Shot:
        """Show the vehicles (wrecks black), their goals, and lines between them.

        A goal has its vehicle's colour.
        """
        goals, positions = (
            np.array(points, float).T for points in (params[1:], state.vehicles.body[:3])
        )
        colours = [picture.COLOURS[i % len(picture.COLOURS)] for i in range(len(goals))]
        things: list[Shape] = [
            Ball(goal[None], colour, 0.06) for goal, colour in zip(goals, colours, strict=True)
        ]
        things += [Line(np.stack(ends), "silver") for ends in zip(positions, goals, strict=True)]
        flying = [
            "black" if wreck else colour
            for wreck, colour in zip(state.wrecked, colours, strict=True)
        ]
        return Shot(state.vehicles, self.frame, things, colours=flying, larger=4.0)


def goal_offsets(body: RigidBody, params: Params) -> tuple[Scalar, Scalar, Scalar]:
    """Return the vector from each vehicle to its goal (m)."""
    return params.x - body.x, params.y - body.y, params.z - body.z


def distances(body: RigidBody, params: Params) -> Scalar:
    """Return the distance from each vehicle to its goal (m)."""
    return jnp.sqrt(squared_length(*goal_offsets(body, params)))


def separations(body: RigidBody) -> tuple[Scalar, Scalar, Scalar]:
    """Return vectors ``(n, n)`` (m): entry ``[i, j]`` leads from vehicle ``j`` to vehicle ``i``."""
    return tuple(coordinate[:, None] - coordinate for coordinate in (body.x, body.y, body.z))


def wakes(body: RigidBody, wrecked: jax.Array, airframe: Airframe) -> jax.Array:
    """Return the force along world z (N) on each vehicle, ``(n,)``, by wakes from above."""
    dx, dy, dz = separations(body)
    share = jnp.clip(dz * (1 / WAKE_DEPTH), 0, 1)
    force = share * downwash(dx, dy, jnp.maximum(dz, WAKE_DEPTH), CRAZYFLIE_AIR)
    weight = airframe.inertia.mass * GRAVITY
    force = jnp.where(wrecked[:, None], 0, jnp.maximum(force, -weight))
    return jnp.maximum(ordered_sum(force), -MAX_WAKES * weight)


def nearest_rows(squared_distances: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Find the least squared distances of each column of ``(n, n)``, and their rows.

    Both are ``(n, count)``, nearest first.

    ``jax.lax.top_k`` does the same, but sorts row by row on CPUs; here all columns are searched
    side by side.
    """
    rows = np.arange(squared_distances.shape[0], dtype=np.int32)[:, None]
    pairs = []
    for _ in range(count):
        smallest = squared_distances.min(0)
        row = jnp.where(squared_distances == smallest, rows, squared_distances.shape[0]).min(0)
        squared_distances = jnp.where(rows == row, jnp.inf, squared_distances)
        pairs.append((smallest, row))
    smallest_distances, numbers = zip(*pairs, strict=True)
    return jnp.stack(smallest_distances, 1), jnp.stack(numbers, 1)


def nearest_approaches(start: RigidBody, end: RigidBody) -> jax.Array:
    """Return the least squared distance (m^2) between every two vehicles, ``(n, n)``.

    Vehicles move straight and evenly.

    A vehicle's distance to itself is infinite.
    """
    (x, y, z), end_offset = separations(start), separations(end)
    dx, dy, dz = end_offset[0] - x, end_offset[1] - y, end_offset[2] - z
    squared_path = squared_length(dx, dy, dz)
    when = jnp.clip(-(x * dx + y * dy + z * dz) / jnp.maximum(squared_path, 1e-20), 0, 1)
    squared_distances = squared_length(x + when * dx, y + when * dy, z + when * dz)
    return jnp.where(np.eye(squared_distances.shape[0], dtype=bool), jnp.inf, squared_distances)


def ordered_sum(values: jax.Array) -> jax.Array:
    """Sum over the first axis in a fixed order, half onto half.

    So every program gives the same bits.
    """
    while (n := values.shape[0]) > 1:
        half = n // 2
        odd_end = values[2 * half :]
        values = values[:half] + values[half : 2 * half]
        values = jnp.concatenate([values, odd_end]) if n % 2 else values
    return values[0]
