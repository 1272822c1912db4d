"""Cross a swarm: every vehicle flies through the middle to the other side, and none hits another.

Dynamics of each vehicle: ``dynamics.py`` with rotor drag, one Runge-Kutta step of 10 ms a step of the episode. Vehicles
push those below them with their wake (``aerodynamics.downwash``, gym-pybullet-drones, arXiv:2103.02142, eq. 7), held
over the step. That formula grows without bound where the vehicle below is hardly below; here a wake needs 0.2 m to
form (it fades linearly to nothing at equal height), pushes no harder than the weight of the vehicle that makes it, and
all wakes together no harder than three weights. Nothing is random after the start. Source of the task: swap places
through the middle, as in van den Berg, Guy, Lin & Manocha 2011 (Reciprocal n-body collision avoidance),
doi:10.1007/978-3-642-19457-3_1, and with rotor commands as in Huang et al. 2024 (QuadSwarm), arXiv:2306.09537.

=========================  =================================================================================
action ``(n, 4)``          commanded speed of rotor 1..4 of each vehicle: -1 is standstill, +1 is 21,702 RPM
observation ``(n, m)``     of each vehicle: from it to its goal (3, m, world frame), rotation matrix body to world (9,
                           row by row), velocity in the world frame (3, m/s), angular velocity in the body frame (3,
                           rad/s), rotor speeds (4, on the action's scale), 1 if it is wrecked, else 0 (1); then of its
                           nearest, second nearest, ... neighbour, four of them where there are, place (3, m) and
                           velocity (3, m/s) less its own, zeros where fewer still fly. Wrecks are not seen
reward                     of each vehicle: 1 / (1 + e / 0.5 m), e its distance from its goal after the step; 0 of a
                           wreck. Never negative, and a wreck earns nothing more: no crash ever pays
cost                       vehicles wrecked in the step
wrecked                    two vehicles that came nearer than 0.13 m (spheres about their propellers' tips touch) at
                           any time of the step, both having moved straight; one that is more than 3 m farther from the
                           middle than the goals are; one that turns faster than 2,000 deg/s about an axis. A wreck
                           stays where it is, pushes no air and is in nobody's way
terminated                 all are wrecked
success                    no wreck, and every vehicle within 0.2 m of its goal
start                      on a sphere about the middle, spread evenly and turned at random, each within 0.15 m of
                           its place along each axis, level, slow (0.1 m/s and 0.1 rad/s an axis), rotors at the
                           speed of hovering. Nearest starts are about 2 m apart for 8 vehicles
goals                      opposite to the starts' places: all straight ways meet in the middle
context                    how the sphere is turned; the vehicle, as in hover and all alike: mass +-20 % (train and
                           test in alternating bands of 1 %), inertia +-20 %, thrust coefficient +-10 %, torque
                           coefficient +-20 %, motor time constant +-25 %
=========================  =================================================================================

Vehicles are rows of arrays ``(n,)``; what they do to each other are arrays ``(n, n)``, the other vehicle first.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.card import TaskCard
from rlbench_suite.policy import View
from rlbench_suite.task import Task

from . import dynamics, flight, picture
from .aerodynamics import downwash
from .dynamics import Airframe, Quadcopter, Rotors
from .flight import HOVER_ACTION, STEP, squared
from .geometric_control import GeometricControl, SetPoint
from .rigid_body import GRAVITY, RigidBody, Scalar, rotation_matrix
from .scene import Ball, Line, Thing
from .vehicles import CRAZYFLIE_AIR

COLLISION = 0.13
"""m between centres: twice the arm, 0.0397 m, and the propeller's radius, 0.0231 m."""
FORMED = 0.2
"""m below a vehicle where its wake is formed."""
MOST_WAKES = 3.0
"""Weights: the hardest push of all wakes on a vehicle."""
NEIGHBOURS = 4
"""Seen, where there are so many."""
HALVING_ERROR = 0.5
"""m: distance from the goal at which the reward is one half."""
ARRIVED = 0.2
"""m"""
JITTER = 0.15
"""m along each axis, of starts."""
BEYOND = 3.0
"""m farther out than the goals: lost."""


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


class QuadcopterSwarm(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "wrecks": "vehicles wrecked so far",
        "arrived": "share of the vehicles that fly and are at their goals",
        "distance": "mean distance of the vehicles from their goals, m",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        n = card.agents
        self.radius = float(card.settings["radius"])
        self.places = self.radius * evenly_spread(n)
        self.seen = min(NEIGHBOURS, n - 1)
        # Rotors, gravity and wakes accelerate a vehicle by at most 71 m/s^2, over the diameter of where it can fly. One
        # step may lead beyond.
        self.reach = self.radius + BEYOND
        speed = math.sqrt(2 * 75 * 2 * self.reach)
        reach = self.reach + speed * STEP
        own = [reach + self.radius] * 3 + flight.attitude_and_rates_bound(speed) + [1.0]
        near = [2 * reach] * 3 + [2 * speed] * 3
        bound = np.array([own + near * self.seen] * n)
        self.observation_space = self.box(-bound, bound)
        self.action_space = self.box(-1, 1, (n, 4))
        self.reward_space = self.box(0, 1, (n,))

    def noop_action(self) -> np.ndarray:
        """The nominal vehicle's hover command."""
        return np.full((self.card.agents, 4), HOVER_ACTION, self.dtype)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """A vehicle, and the sphere's turn."""
        u = self.uniform(key, 8)
        # A uniform rotation: Shoemake 1992, doi:10.1016/B978-0-08-050755-2.50036-1.
        one, other, first, second = jnp.sqrt(1 - u[5]), jnp.sqrt(u[5]), 2 * math.pi * u[6], 2 * math.pi * u[7]
        quaternion = one * jnp.sin(first), one * jnp.cos(first), other * jnp.sin(second), other * jnp.cos(second)
        zero = jnp.zeros((), self.dtype)
        rows = rotation_matrix(RigidBody(zero, zero, zero, *quaternion, *(zero,) * 6))
        x, y, z = self.places.T.astype(self.dtype)
        goals = (rows[i] * x + rows[i + 1] * y + rows[i + 2] * z for i in (0, 3, 6))
        return Params(flight.sample_airframe(u[:5], split), *goals)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Every vehicle opposite to its goal, nearly at rest."""
        n = self.card.agents
        u = self.uniform(key, 9 * n).reshape(9, n)
        jitter, slow = JITTER * (2 * u[:3] - 1), 0.1 * (2 * u[3:] - 1)
        x, y, z = (part - goal for part, goal in zip(jitter, params[1:], strict=True))
        # Level: of any other attitude a program may round the rotation matrix as it likes.
        one, zero = jnp.ones(n, self.dtype), jnp.zeros(n, self.dtype)
        body = RigidBody(x, y, z, one, zero, zero, zero, *slow)
        hover = jnp.broadcast_to(dynamics.hover_speed(params.airframe), (n,))
        return State(Quadcopter(body, Rotors(hover, hover, hover, hover)), jnp.zeros(n, bool))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """One Runge-Kutta step of all under constant commands and wakes, then a look who came too near to whom."""
        wrecked = state.wrecked
        command = Rotors(*(flight.rotor_speed(action[:, rotor]) for rotor in range(4)))
        push = wakes(state.vehicles.body, wrecked, params.airframe)
        moved = dynamics.step(state.vehicles, command, params.airframe, STEP, CRAZYFLIE_AIR, push=push)
        vehicles = jax.tree.map(lambda now, after: jnp.where(wrecked, now, after), state.vehicles, moved)
        body = vehicles.body
        lost = (squared(body.x, body.y, body.z) > self.reach**2) | flight.spins(body)
        near = nearest_approaches(state.vehicles.body, body) < COLLISION**2
        hit = (near & ~wrecked[:, None] & ~wrecked).any(0)
        return State(vehicles, wrecked | hit | lost)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """What each vehicle sees, ``(n, m)``; see the table."""
        vehicles, wrecked = state.vehicles, state.wrecked
        body = vehicles.body
        own = [*to_goals(body, params), *flight.attitude_and_rates(vehicles), wrecked]
        unseen = wrecked | np.eye(self.card.agents, dtype=bool)
        nearness, which = jax.lax.top_k(jnp.where(unseen, -jnp.inf, -squared(*between(body))), self.seen)
        moving = jnp.stack([body.x, body.y, body.z, body.vx, body.vy, body.vz], 1)
        near = jnp.where((nearness > -jnp.inf)[:, :, None], moving[which] - moving[:, None], 0)
        shown = jnp.stack([jnp.asarray(value, self.dtype) for value in own], 1)
        return jnp.concatenate([shown, near.reshape(self.card.agents, 6 * self.seen)], 1)

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """Of each vehicle, ``(n,)``."""
        error = distances(next_state.vehicles.body, params)
        return jnp.where(next_state.wrecked, 0, HALVING_ERROR / (HALVING_ERROR + error))

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Vehicles wrecked in this step."""
        return (next_state.wrecked & ~state.wrecked).sum().astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Whether none flies any more."""
        return state.wrecked.all()

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """``success`` and the measures."""
        n = self.card.agents
        distance = distances(state.vehicles.body, params)
        arrived = (distance < ARRIVED) & ~state.wrecked
        return {
            "success": arrived.all(),
            "wrecks": state.wrecked.sum(),
            "arrived": arrived.sum().astype(self.dtype) * (1 / n),
            "distance": added(distance) * (1 / n),
        }

    # -- text and pixels ---------------------------------------------------------------------------------------

    def why_over(self, state: State, params: Params) -> str:
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
        turned, rotors = np.array(rotation_matrix(body)), flight.rotor_action(np.array(vehicles.rotors))
        shown = np.concatenate([np.array(body[:3]), goals, np.array(body[7:10]), turned, np.array(body[10:]), rotors])
        for i, values in enumerate(shown.T):
            words = " ".join(f"{value:.2f}" for value in values)
            lines.append(f"agent_{i}{' (wrecked)' if wrecked[i] else ''}: {words}")
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """The vehicles (wrecks black), their goals in their colours, and the ways to them."""
        goals, places = (np.array(parts, float).T for parts in (params[1:], state.vehicles.body[:3]))
        colours = [picture.COLOURS[i % len(picture.COLOURS)] for i in range(len(goals))]
        things: list[Thing] = [Ball(goal[None], colour, 0.06) for goal, colour in zip(goals, colours, strict=True)]
        things += [Line(np.stack(ends), "silver") for ends in zip(places, goals, strict=True)]
        flying = ["black" if wreck else colour for wreck, colour in zip(state.wrecked, colours, strict=True)]
        return picture.draw(state.vehicles, self.radius + 0.3, things, colours=flying, larger=4.0)


def evenly_spread(n: int) -> np.ndarray:
    """``(n, 3)`` points on the unit sphere, about equally far from their neighbours (a Fibonacci spiral)."""
    height = 1 - (2 * np.arange(n) + 1) / n
    longitude = math.pi * (3 - math.sqrt(5)) * np.arange(n)
    across = np.sqrt(1 - height * height)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), height], 1)


def to_goals(body: RigidBody, params: Params) -> tuple[Scalar, Scalar, Scalar]:
    """From each vehicle to its goal (m)."""
    return params.x - body.x, params.y - body.y, params.z - body.z


def distances(body: RigidBody, params: Params) -> Scalar:
    """From each vehicle to its goal (m)."""
    return jnp.sqrt(squared(*to_goals(body, params)))


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


def nearest_approaches(before: RigidBody, after: RigidBody) -> jax.Array:
    """``(n, n)`` m^2: the least squared distance of each two, both moving straight and evenly; infinite to itself."""
    (x, y, z), end = between(before), between(after)
    dx, dy, dz = end[0] - x, end[1] - y, end[2] - z
    moved = squared(dx, dy, dz)
    when = jnp.clip(-(x * dx + y * dy + z * dz) / jnp.maximum(moved, 1e-20), 0, 1)
    apart = squared(x + when * dx, y + when * dy, z + when * dz)
    return jnp.where(np.eye(apart.shape[0], dtype=bool), jnp.inf, apart)


def added(values: jax.Array) -> jax.Array:
    """The sum over the first axis in a fixed order, halves onto halves: the same bits in every program."""
    while (n := values.shape[0]) > 1:
        half = n // 2
        rest = values[2 * half :]
        values = values[:half] + values[half : 2 * half]
        values = jnp.concatenate([values, rest]) if n % 2 else values
    return values[0]


class SwarmPilot(NamedTuple):
    """The reference player: each vehicle by itself, a velocity to its goal, away from whom it would meet.

    A neighbour on a course that would pass nearer than ``clear`` is evaded by a velocity away from where it would be at
    the closest approach, after the collision cones of Fiorini & Shiller 1998 (doi:10.1177/027836499801700706); it does
    the same. Who meet head-on both go to the right, about the vertical. Geometric control holds the velocity, with the
    push of others' wakes, which it knows, balanced.
    """

    control: GeometricControl
    speed: Any = 1.6
    """m/s"""
    braking: Any = 2.0
    """m/s^2"""
    clear: Any = 0.6
    """m"""
    horizon: Any = 1.5
    """s"""
    evasion: Any = 1.2
    """Of the velocity that would open the gap in time."""
    right: Any = 0.15
    """m by which a neighbour ahead is taken to be more to the left than it is."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> SwarmPilot:
        """Geometric control of a vehicle that leans further than in hover."""
        return cls(GeometricControl(position=3.0, lean=0.8, least_thrust=0.5))

    def initial(self, params: Params) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Commands of all vehicles, ``(n, 4)``, in [-1, 1]."""
        state, params = view.state, view.params
        body = state.vehicles.body
        gx, gy, gz = to_goals(body, params)
        far = jnp.maximum(jnp.sqrt(squared(gx, gy, gz)), 1e-6)
        speed = jnp.minimum(jnp.minimum(jnp.sqrt(2 * self.braking * far), 2 * far), self.speed) / far
        vx, vy, vz = speed * gx, speed * gy, speed * gz

        # Closest approach of each two at the velocities they have.
        x, y, z = between(body)
        ux, uy, uz = (part[:, None] - part for part in (body.vx, body.vy, body.vz))
        apart = jnp.maximum(jnp.sqrt(squared(x, y, z)), 0.05)
        when = -(x * ux + y * uy + z * uz) / jnp.maximum(squared(ux, uy, uz), 1e-4)
        when = jnp.clip(when, 0, self.horizon)
        # Taken to be more to the left: who meets head-on passes to the right.
        mx = x + when * ux - self.right * y / apart
        my = y + when * uy + self.right * x / apart
        mz = z + when * uz
        miss = jnp.maximum(jnp.sqrt(squared(mx, my, mz)), 0.05)
        flying = ~state.wrecked[:, None] & ~np.eye(len(body.x), dtype=bool)
        gap = jnp.where(flying, jnp.maximum(self.clear - miss, 0), 0)
        away = self.evasion * gap / jnp.maximum(when, 0.3) / miss
        ex, ey, ez = (-added(away * part) for part in (mx, my, mz))
        evasive = jnp.sqrt(squared(ex, ey, ez))
        share = jnp.minimum(1, 1.5 * self.speed / jnp.maximum(evasive, 1e-6))
        goal = SetPoint(body.x, body.y, body.z, vx + share * ex, vy + share * ey, vz + share * ez)
        # The wake of others is known as the air is, and balanced.
        lift = -wakes(body, state.wrecked, params.airframe) / params.airframe.inertia.mass
        return self.control.command(state.vehicles, params.airframe, goal._replace(az=lift)).T, memory
