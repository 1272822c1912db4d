"""Reference player of Minecart: it plays drives to each mine and home on the known motion."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, FlagArray, Float, FloatArray, Int, IntArray
from rlbench_suite.core.policy import View, no_memory

from .minecart import (
    ACCELERATE,
    ACCELERATION,
    ACCELERATION_FUEL,
    BRAKE,
    CAPACITY,
    DIG,
    HEADINGS,
    IDLE_FUEL,
    LEFT,
    MIN_SPEED,
    MINE_RADIUS,
    MINES,
    MINING_FUEL,
    NONE,
    RIGHT,
    SUBSTEPS,
    Minecart,
    Params,
    State,
)

HOME = MINES
"""Target of a drive home; smaller numbers are mines."""
CRUISES = (1, 2)
"""Times that a drive accelerates."""
BRAKING_DISTANCES = (0.09, 0.135)
"""Distances from a mine below which a drive brakes."""
LONGEST_DRIVE = 40
"""Steps of a drive that does not come home."""


class Drives(NamedTuple):
    """Rules that each drive to a target and home, with one entry for each drive."""

    target: IntArray
    """Number of a mine, or :data:`HOME`."""
    cruise: FloatArray
    """Speed below which the drive accelerates."""
    braking_distance: FloatArray


_PLANS = [
    *product(range(MINES), CRUISES, BRAKING_DISTANCES),
    *product([HOME], CRUISES, BRAKING_DISTANCES[:1]),
]
DRIVES = Drives(
    np.array([target for target, _, _ in _PLANS]),
    np.array([SUBSTEPS * ACCELERATION * (cruise - 0.5) for _, cruise, _ in _PLANS]),
    np.array([distance for _, _, distance in _PLANS]),
)


class Rollout(NamedTuple):
    """Carts that follow the drives, with one entry for each drive."""

    step: Int
    """Steps so far, a scalar"""
    state: State
    goes_home: FlagArray
    """True once the cart has mined enough."""
    first_action: IntArray
    value: FloatArray
    """Weighted return so far"""


class RoutePlanner(eqx.Module):
    """Plays every drive to its end in each step, and takes the first action of the best.

    A mine yields its mean in these drives. This is one step of policy iteration over a set of
    rules, a rollout (Bertsekas, Tsitsiklis & Wu 1997, doi:10.1023/A:1009635226865).
    """

    task: Minecart = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Minecart) -> RoutePlanner:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the first action of the best drive."""
        state, params = self.task.read_observation(view.observation)
        params = self.expect(params)
        count = len(DRIVES.target)
        carts = State(*(jnp.broadcast_to(field, (count,)) for field in state))
        start = Rollout(
            jnp.int32(0),
            carts,
            jnp.asarray(DRIVES.target == HOME),
            jnp.full(count, NONE, jnp.int32),
            jnp.zeros(count, self.task.dtype),
        )
        last = jax.lax.while_loop(
            lambda rollout: jnp.any(~rollout.state.is_back) & (rollout.step < LONGEST_DRIVE),
            lambda rollout: self.advance(rollout, params),
            start,
        )
        value = jnp.where(last.state.is_back, last.value, -jnp.inf)
        return last.first_action[jnp.argmax(value)], memory

    def expect(self, params: Params) -> Params:
        """Return the mines with the means of what they yield, which is never below 0."""
        spread = self.task.spread
        if not spread:
            return params

        def mean(center: FloatArray) -> FloatArray:
            ratio = center * (1 / spread)
            density = jnp.exp(-0.5 * ratio * ratio) * (1 / np.sqrt(2 * np.pi))
            probability = 0.5 + 0.5 * jax.lax.erf(ratio * np.sqrt(0.5).astype(self.task.dtype))
            return (center * probability + spread * density).astype(self.task.dtype)

        return params._replace(
            first_yield=mean(params.first_yield), second_yield=mean(params.second_yield)
        )

    def advance(self, rollout: Rollout, params: Params) -> Rollout:
        """Move every cart that is not home by a step."""
        action, goes_home = self.choose(rollout.state, rollout.goes_home, params)
        noise = np.zeros(2 * SUBSTEPS, self.task.dtype)
        state = self.task.drive(rollout.state, action, noise, params)
        was_back = rollout.state.is_back
        extra = jnp.where(action == ACCELERATE, ACCELERATION_FUEL, 0) + jnp.where(
            action == DIG, MINING_FUEL, 0
        )
        gain = (
            params.first_weight * state.first_sold
            + params.second_weight * state.second_sold
            - params.fuel_weight * (IDLE_FUEL + extra)
        )
        return Rollout(
            rollout.step + 1,
            State(
                *(
                    jnp.where(was_back, before, after)
                    for before, after in zip(rollout.state, state, strict=True)
                )
            ),
            goes_home,
            jnp.where(rollout.step == 0, action, rollout.first_action),
            jnp.where(was_back, rollout.value, rollout.value + gain).astype(self.task.dtype),
        )

    def choose(
        self, state: State, goes_home: FlagArray, params: Params
    ) -> tuple[IntArray, FlagArray]:
        """Return the action of each drive, and whether it goes home from here."""
        site = np.minimum(DRIVES.target, MINES - 1)
        x, y = params.mine_x[site], params.mine_y[site]
        distance = jnp.sqrt((state.x - x) ** 2 + (state.y - y) ** 2)
        stands = state.speed < MIN_SPEED
        is_there = (distance <= MINE_RADIUS) & stands
        goes_home = goes_home | (is_there & ~self.pays_to_mine(state, site, params))
        error = heading_error(
            state, jnp.where(goes_home, 0, x) - state.x, jnp.where(goes_home, 0, y) - state.y
        )
        action = jnp.where(state.speed < DRIVES.cruise, ACCELERATE, NONE)
        action = jnp.where(error > HALF_TURN, RIGHT, jnp.where(error < -HALF_TURN, LEFT, action))
        brakes = ~goes_home & ~stands & (distance <= DRIVES.braking_distance)
        action = jnp.where(brakes, BRAKE, action)
        action = jnp.where(~goes_home & is_there, DIG, action)
        return action.astype(jnp.int32), goes_home

    @staticmethod
    def pays_to_mine(state: State, site: IntArray, params: Params) -> Flag:
        """Return whether a step of mining brings more than its fuel costs."""
        first = SUBSTEPS * params.first_yield[site]
        second = SUBSTEPS * params.second_yield[site]
        room = jnp.maximum(CAPACITY - state.first - state.second, 0)
        share = jnp.minimum(room / (first + second), 1)
        gain = share * (params.first_weight * first + params.second_weight * second)
        return gain > params.fuel_weight * (IDLE_FUEL + MINING_FUEL)


HALF_TURN = 2.01
"""Half of what an action turns, in units of 10 degrees, and a little more: no turn is a tie."""


def heading_error(state: State, right: Float, down: Float) -> Float:
    """Return the turn to the right that points at a place, in [-18, 18) units of 10 degrees.

    Args:
        state: the cart.
        right: way to the place along the x axis.
        down: the same along the y axis.
    """
    angle = jnp.arctan2(down, right) * (18 / np.pi) - 4.5
    error = angle - state.heading
    return error - HEADINGS * jnp.floor((error + HEADINGS / 2) * (1 / HEADINGS))
