"""The reference player of the formation.

Each vehicle tracks its slot, learns wind and lag, and evades neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float, FloatArray
from rlbench_suite.core.policy import View

from .flock_formation import (
    HORIZONTAL_ACCELERATION,
    SCALE,
    STEP,
    TURN_RATE,
    VERTICAL_ACCELERATION,
    Entries,
    FlockFormation,
    Params,
    accelerations,
)

LAG = 0.15
"""s: the middle of the shipped range."""
MAX_LAG = 0.2
"""s: for longer lags the loop is slowed."""
LAG_CONFIDENCE = 0.01
"""(m/s^2)^2: weight of that assumption against measurements."""


class Memory(NamedTuple):
    """Memory of :class:`FormationControl`: each vehicle's last step and what it has learned.

    Arrays are ``(n, 3)`` where the field says nothing else.
    """

    velocity: jax.Array
    """m/s"""
    acceleration: jax.Array
    """m/s^2"""
    command: jax.Array
    """m/s^2"""
    disturbance: jax.Array
    """m/s^2: estimated acceleration by wind and drag."""
    response: jax.Array
    """``(n, 1)``: sum of changes of the acceleration times the commanded changes."""
    requested: jax.Array
    """``(n, 1)``: sum of the squares of the commanded changes."""
    steps: jax.Array
    """int32"""


class FormationControl(NamedTuple):
    """Control of each vehicle by itself, from what it observes.

    It has a speed profile to its slot, a disturbance observer, and evasion of neighbours.

    The vehicle closes in on its slot at the speed from which it can brake in time, and near the
    slot in proportion to the distance; this asks for an acceleration. The slot's own acceleration
    is fed forward. Wind and drag are estimated as the part of the acceleration that the thrust does
    not explain, and compensated (a disturbance observer, Chen, Yang, Guo & Li 2016,
    doi:10.1109/TIE.2015.2478397). The lag is measured by least squares from the responses to
    commands, and inverted as far as ``lead`` allows.

    Evasion has two parts: the gradient of Khatib's potential (1986, doi:10.1177/027836498600500106)
    at close range, and a sidestep. The sidestep leads away from the place of the closest approach
    to a neighbour on a colliding course, after the collision cones of Fiorini & Shiller 1998
    (doi:10.1177/027836499801700706). Vehicles that meet head-on both go to the right. The
    controller uses the vehicles' own observations only.

    Its numbers are the best of a random search on training episodes
    (``benchmarks/audits/yardsticks.py``).
    """

    agents: np.ndarray
    """Zero for each vehicle, in the dtype of the task."""
    limits: FloatArray = np.array(
        [HORIZONTAL_ACCELERATION, HORIZONTAL_ACCELERATION, VERTICAL_ACCELERATION], np.float32
    )
    """m/s^2"""
    turn_scale: Float = TURN_RATE
    """rad/s that an observation shows as 1"""
    lag: Float = LAG
    """s: lag that the controller assumes until it has measured it, the middle of its range"""
    pace: Float = 1.0
    """Part of the shipped speed of the loop, for vehicles with a longer lag"""
    braking: Float = 1.6
    """m/s^2: deceleration that the speed profile plans with"""
    fastest: Float = 1.6
    """m/s: largest speed relative to the slot"""
    slope: Float = 5.0
    """1/s: speed a metre near the slot"""
    stiffness: Float = 8.0
    """1/s: acceleration for a speed that is wrong by 1 m/s"""
    lead: Float = 4.0
    """Largest factor by which a wanted change of the acceleration is exaggerated against the lag"""
    trust: Float = 0.5
    """Weight of the last step in the estimate of the disturbance"""
    near: Float = 0.55
    """m: neighbours nearer than this repel"""
    push: Float = 1.0
    """m^4/s^2: strength of that potential"""
    clear: Float = 0.82
    """m: the vehicle leaves a course that passes a neighbour nearer than this"""
    horizon: Float = 2.1
    """s: how far ahead courses are compared"""
    gain: Float = 4.0
    """Gain of the sidestep, relative to the least constant acceleration that opens the gap in time
    """

    @classmethod
    def for_task(cls, task: FlockFormation) -> FormationControl:
        """Make the controller for the air and the limits of a task."""
        agents = np.zeros(task.card.agents, task.dtype)
        if not task.own_constants.changed:
            return cls(agents)
        limits = np.array([task.horizontal, task.horizontal, task.vertical], np.float32)
        lag = task.own_constants.range("lag")
        return cls(agents, limits, task.turn_scale, 0.5 * sum(lag), min(1.0, MAX_LAG / lag[1]))

    def initial(self, params: Params) -> Memory:
        """Return the memory at the start: nothing is known about air and lag."""
        zeros = jnp.zeros((len(self.agents), 3), self.agents.dtype)
        guess = jnp.full((len(self.agents), 1), LAG_CONFIDENCE, zeros.dtype)
        return Memory(
            zeros, zeros, zeros, zeros, guess * (1 - jnp.exp(-STEP / self.lag)), guess, jnp.int32(0)
        )

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Return the commands of all vehicles."""
        observation = view.observation
        error = SCALE * observation[:, Entries.SLOT]
        rate = SCALE * observation[:, Entries.SLOT_VELOCITY]
        velocity = SCALE * observation[:, Entries.VELOCITY]
        acceleration = self.limits * observation[:, Entries.ACCELERATION]
        learned = self._learn(memory, velocity, acceleration)

        slot_velocity = velocity + rate
        turn_rate = self.turn_scale * observation[:, Entries.TURN_RATE]
        # A slot moves on a circle at the leader's turn rate: its acceleration is turn rate x
        # velocity.
        forward = turn_rate * jnp.stack(
            [-slot_velocity[:, 1], slot_velocity[:, 0], 0 * slot_velocity[:, 2]], 1
        )
        distance = jnp.maximum(_length(error), 1e-3)
        closing = jnp.minimum(
            jnp.minimum(self.pace * self.slope * distance, jnp.sqrt(2 * self.braking * distance)),
            self.fastest,
        )
        acceleration_goal = (
            forward
            - learned.disturbance
            + self.pace * self.stiffness * (rate + closing * error / distance)
        )
        first, second = (
            self._evasion(SCALE * observation[:, place], SCALE * observation[:, speed])
            for place, speed in Entries.NEIGHBOURS
        )
        # Evasion comes first: the way to the slot gets what it leaves of the thrust.
        evasion = _limit_length(first + second, self.limits[0])
        acceleration_goal = evasion + _limit_length(
            acceleration_goal, self.limits[0] - _length(evasion)
        )
        # A change is exaggerated against the lag.
        lead = jnp.minimum(learned.requested / jnp.maximum(learned.response, 1e-6), self.lead)
        action = jnp.clip(
            (acceleration + lead * (acceleration_goal - acceleration)) / self.limits, -1, 1
        )
        command = jnp.stack(accelerations(action, self.limits[0], self.limits[2]), 1)
        return action, learned._replace(
            velocity=velocity, acceleration=acceleration, command=command, steps=memory.steps + 1
        )

    def _learn(self, memory: Memory, velocity: jax.Array, acceleration: jax.Array) -> Memory:
        """Return the memory with new estimates of disturbance and lag, from the last step."""
        started = memory.steps > 0
        thrust = 0.5 * (memory.acceleration + acceleration)
        disturbed = (velocity - memory.velocity) * (1 / STEP) - thrust
        # The first estimate counts in full.
        trust = jnp.where(memory.steps == 1, 1, self.trust)
        requested = memory.command - memory.acceleration
        changed = acceleration - memory.acceleration
        return memory._replace(
            disturbance=jnp.where(
                started, memory.disturbance + trust * (disturbed - memory.disturbance), 0
            ),
            response=memory.response
            + jnp.where(started, (requested * changed).sum(1, keepdims=True), 0),
            requested=memory.requested
            + jnp.where(started, (requested * requested).sum(1, keepdims=True), 0),
        )

    def _evasion(self, offset: jax.Array, velocity: jax.Array) -> jax.Array:
        """Return the acceleration ``(n, 3)`` away from a neighbour, whose motion is relative."""
        distance = jnp.maximum(_length(offset), 0.05)
        push = jnp.where(
            distance < self.near,
            self.push * (1 / distance - 1 / self.near) / (distance * distance),
            0,
        )
        rightward = jnp.stack([offset[:, 1], -offset[:, 0], 0 * offset[:, 2]], 1) / distance
        # Time to the closest approach at these velocities, and the neighbour's place then.
        squared_speed = (velocity * velocity).sum(1, keepdims=True)
        time = -(offset * velocity).sum(1, keepdims=True) / jnp.maximum(squared_speed, 1e-6)
        miss = offset + time * velocity - 0.1 * rightward
        length = jnp.maximum(_length(miss), 0.05)
        meets = (time > 0) & (time < self.horizon) & (length < self.clear)
        sidestep = jnp.where(
            meets, self.gain * (self.clear - length) / jnp.maximum(time, 0.3) ** 2, 0
        )
        return -push * offset / distance - sidestep * miss / length


def _length(vectors: jax.Array) -> jax.Array:
    return jnp.sqrt((vectors * vectors).sum(1, keepdims=True))


def _limit_length(vectors: jax.Array, max_length: Any) -> jax.Array:
    """Return vectors ``(n, 3)`` of at most this length."""
    return vectors * jnp.minimum(1, max_length / jnp.maximum(_length(vectors), 1e-3))
