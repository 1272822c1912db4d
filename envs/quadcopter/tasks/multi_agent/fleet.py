"""What tasks of many vehicles share: wakes, wrecks, neighbours.

Dynamics of each vehicle: ``dynamics.py`` with rotor drag, one Runge-Kutta step of 10 ms a step of the episode. Vehicles
push those below them with their wake (``aerodynamics.downwash``, gym-pybullet-drones, arXiv:2103.02142, eq. 7), held
over the step. That formula grows without bound where the vehicle below is hardly below; here a wake needs 0.2 m to
form (it fades linearly to nothing at equal height), pushes no harder than the weight of the vehicle that makes it, and
all wakes together no harder than three weights.

=========================  =================================================================================
action ``(n, 4)``          commanded speed of rotor 1..4 of each vehicle: -1 is standstill, +1 is 21,702 RPM
observation ``(n, m)``     of each vehicle: from it to its goal (3, m, world frame), rotation matrix body to world (9,
                           row by row), velocity in the world frame (3, m/s), angular velocity in the body frame (3,
                           rad/s), rotor speeds (4, on the action's scale), 1 if it is wrecked, else 0 (1); then of its
                           nearest, second nearest, ... neighbour, four of them where there are, place (3, m) and
                           velocity (3, m/s) less its own, zeros where fewer still fly. Wrecks are not seen
cost                       vehicles wrecked in the step
wrecked                    two vehicles that came nearer than 0.13 m (spheres about their propellers' tips touch) at
                           any time of the step, both having moved straight; one that went astray, which a task
                           defines; one that turns faster than 2,000 deg/s about an axis. A wreck stays where it is,
                           pushes no air and is in nobody's way
terminated                 all are wrecked
=========================  =================================================================================

Vehicles are rows of arrays ``(n,)``; what they do to each other are arrays ``(n, n)``, the other vehicle first.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.component import Component
from rlbench_suite.task import Task

from ...physics import dynamics
from ...physics.aerodynamics import downwash
from ...physics.dynamics import HOVER_ACTION, STEP, Airframe, Quadcopter, Rotors
from ...physics.rigid_body import GRAVITY, RigidBody, Scalar, rotation_matrix, squared_length
from ...physics.vehicles import CRAZYFLIE_AIR
from ...rendering import picture
from ...rendering.picture import Pictured, Shot
from ...rendering.scene import Ball, Line, Thing
from ...sensing import motion
from .. import flight

COLLISION = 0.13
"""m between centres: twice the arm, 0.0397 m, and the propeller's radius, 0.0231 m."""
FORMED = 0.2
"""m below a vehicle where its wake is formed."""
MOST_WAKES = 3.0
"""Weights: the hardest push of all wakes on a vehicle."""
NEIGHBOURS = 4
"""Seen, where there are so many."""


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
    """A task of many vehicles; what is not here is its own."""

    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE
    frame: float
    """m from the middle to the edge of a picture"""

    def set_spaces(self, reach: float, to_goal: float, speed: float) -> None:
        """Spaces, where vehicles are at most so far from the middle and from their goals (m), and so fast (m/s)."""
        n = self.card.agents
        self.seen = min(NEIGHBOURS, n - 1)
        own = [to_goal] * 3 + motion.attitude_and_rates_bound(speed) + [1.0]
        near = [2 * reach] * 3 + [2 * speed] * 3
        bound = np.array([own + near * self.seen] * n)
        self.observation_space = self.box(-bound, bound)
        self.action_space = self.box(-1, 1, (n, 4))
        self.reward_space = self.box(0, 1, (n,))

    @abc.abstractmethod
    def astray(self, body: RigidBody, params: Params) -> jax.Array:
        """Which vehicles are where they are lost, bool ``(n,)``."""

    def noop_action(self) -> np.ndarray:
        """The nominal vehicle's hover command."""
        return np.full((self.card.agents, 4), HOVER_ACTION, self.dtype)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """One Runge-Kutta step of all under constant commands and wakes, then a look who came too near to whom."""
        wrecked = state.wrecked
        command = Rotors(*(dynamics.rotor_speed(action[:, rotor]) for rotor in range(4)))
        push = wakes(state.vehicles.body, wrecked, params.airframe)
        moved = dynamics.step(state.vehicles, command, params.airframe, STEP, CRAZYFLIE_AIR, push=push)
        vehicles = jax.tree.map(lambda now, after: jnp.where(wrecked, now, after), state.vehicles, moved)
        body = vehicles.body
        lost = self.astray(body, params) | motion.spins(body)
        near = nearest_approaches(state.vehicles.body, body) < COLLISION**2
        hit = (near & ~wrecked[:, None] & ~wrecked).any(0)
        return State(vehicles, wrecked | hit | lost)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """What each vehicle sees, ``(n, m)``; see the table."""
        vehicles, wrecked = state.vehicles, state.wrecked
        body = vehicles.body
        own = [*to_goals(body, params), *motion.attitude_and_rates(vehicles), wrecked]
        unseen = wrecked[:, None] | np.eye(self.card.agents, dtype=bool)
        apart, which = nearest(jnp.where(unseen, jnp.inf, squared_length(*between(body))), self.seen)
        moving = jnp.stack([body.x, body.y, body.z, body.vx, body.vy, body.vz], 1)
        near = jnp.where((apart < jnp.inf)[:, :, None], moving[which] - moving[:, None], 0)
        shown = jnp.stack([jnp.asarray(value, self.dtype) for value in own], 1)
        return jnp.concatenate([shown, near.reshape(self.card.agents, 6 * self.seen)], 1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each vehicle."""
        neighbours = (
            part
            for rank in range(1, self.seen + 1)
            for part in (
                motion.offset(f"neighbour_{rank}", f"from the vehicle to its neighbour number {rank} by distance"),
                Component(f"neighbour_{rank}_velocity", "velocity of that neighbour minus its own", "m/s", (3,)),
            )
        )
        return (
            motion.offset("goal", "from the vehicle to its goal"),
            *motion.ATTITUDE_AND_RATES,
            Component("wrecked", "whether it is wrecked"),
            *neighbours,
        )

    def action_components(self) -> tuple[Component, ...]:
        """Rotor commands of each vehicle."""
        return flight.COMMANDS

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Vehicles wrecked in this step."""
        return (next_state.wrecked & ~state.wrecked).sum().astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Whether none flies any more."""
        return state.wrecked.all()

    # -- text and pixels ---------------------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """The only end there is."""
        return "all vehicles are wrecked"

    def how_to_act(self) -> str:
        """Four numbers a vehicle."""
        return (
            f"Answer with {4 * self.card.agents} numbers from -1 to 1, agent_0 first: the commanded speeds of rotors 1 "
            "to 4 (front right, rear right, rear left, front left) of each vehicle: -1 is standstill, 1 full speed, "
            f"about {HOVER_ACTION} carries the weight."
        )

    def describe(self, state: State, params: Params) -> str:
        """Of each vehicle place, goal and how it flies, a line each, with units."""
        lines = [
            "Each vehicle: place (m), from there to its goal (m), velocity (m/s), rows of the rotation matrix body to "
            "world, angular velocity (rad/s), rotor speeds on the action's scale."
        ]
        vehicles, wrecked = jax.tree.map(np.asarray, (state.vehicles, state.wrecked))
        body = vehicles.body
        goals = np.stack([np.asarray(part) for part in to_goals(body, params)])
        turned, rotors = np.array(rotation_matrix(body)), dynamics.rotor_action(np.array(vehicles.rotors))
        shown = np.concatenate([np.array(body[:3]), goals, np.array(body[7:10]), turned, np.array(body[10:]), rotors])
        for i, values in enumerate(shown.T):
            words = " ".join(f"{value:.2f}" for value in values)
            lines.append(f"agent_{i}{' (wrecked)' if wrecked[i] else ''}: {words}")
        return "\n".join(lines)

    def shot(self, state: State, params: Params) -> Shot:
        """The vehicles (wrecks black), their goals in their colours, and the ways to them."""
        goals, places = (np.array(parts, float).T for parts in (params[1:], state.vehicles.body[:3]))
        colours = [picture.COLOURS[i % len(picture.COLOURS)] for i in range(len(goals))]
        things: list[Thing] = [Ball(goal[None], colour, 0.06) for goal, colour in zip(goals, colours, strict=True)]
        things += [Line(np.stack(ends), "silver") for ends in zip(places, goals, strict=True)]
        flying = ["black" if wreck else colour for wreck, colour in zip(state.wrecked, colours, strict=True)]
        return Shot(state.vehicles, self.frame, things, colours=flying, larger=4.0)


def to_goals(body: RigidBody, params: Params) -> tuple[Scalar, Scalar, Scalar]:
    """From each vehicle to its goal (m)."""
    return params.x - body.x, params.y - body.y, params.z - body.z


def distances(body: RigidBody, params: Params) -> Scalar:
    """From each vehicle to its goal (m)."""
    return jnp.sqrt(squared_length(*to_goals(body, params)))


def between(body: RigidBody) -> tuple[Scalar, Scalar, Scalar]:
    """``(n, n)`` m: entry ``[i, j]`` leads from vehicle ``j`` to vehicle ``i``."""
    return tuple(part[:, None] - part for part in (body.x, body.y, body.z))


def wakes(body: RigidBody, wrecked: jax.Array, airframe: Airframe) -> jax.Array:
    """Force along world z (N) on each vehicle, ``(n,)``, from the wakes of all that fly above it."""
    dx, dy, dz = between(body)
    share = jnp.clip(dz * (1 / FORMED), 0, 1)
    force = share * downwash(dx, dy, jnp.maximum(dz, FORMED), CRAZYFLIE_AIR)
    weight = airframe.inertia.mass * GRAVITY
    force = jnp.where(wrecked[:, None], 0, jnp.maximum(force, -weight))
    return jnp.maximum(added(force), -MOST_WAKES * weight)


def nearest(apart: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Of each column of squared distances ``(n, n)`` the least ones and their rows, ``(n, count)``, nearest first.

    As ``jax.lax.top_k``, which sorts each row by itself on CPUs; here all columns are looked through side by side.
    """
    rows = np.arange(apart.shape[0], dtype=np.int32)[:, None]
    found = []
    for _ in range(count):
        least = apart.min(0)
        which = jnp.where(apart == least, rows, apart.shape[0]).min(0)
        apart = jnp.where(rows == which, jnp.inf, apart)
        found.append((least, which))
    distances, numbers = zip(*found, strict=True)
    return jnp.stack(distances, 1), jnp.stack(numbers, 1)


def nearest_approaches(before: RigidBody, after: RigidBody) -> jax.Array:
    """``(n, n)`` m^2: the least squared distance of each two, both moving straight and evenly; infinite to itself."""
    (x, y, z), end = between(before), between(after)
    dx, dy, dz = end[0] - x, end[1] - y, end[2] - z
    moved = squared_length(dx, dy, dz)
    when = jnp.clip(-(x * dx + y * dy + z * dz) / jnp.maximum(moved, 1e-20), 0, 1)
    apart = squared_length(x + when * dx, y + when * dy, z + when * dz)
    return jnp.where(np.eye(apart.shape[0], dtype=bool), jnp.inf, apart)


def added(values: jax.Array) -> jax.Array:
    """The sum over the first axis in a fixed order, halves onto halves: the same bits in every program."""
    while (n := values.shape[0]) > 1:
        half = n // 2
        rest = values[2 * half :]
        values = values[:half] + values[half : 2 * half]
        values = jnp.concatenate([values, rest]) if n % 2 else values
    return values[0]
