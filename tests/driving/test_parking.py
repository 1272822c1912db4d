"""Parking, with the arc against an integrator and rewards by hand.

Plans are compared with their own integration and with known lengths.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.tasks import parking
from rlbench_suite.envs.driving.tasks.parking import Params, State
from rlbench_suite.envs.driving.vehicle import bicycle, reeds_shepp
from rlbench_suite.envs.driving.vehicle.bicycle import Pose
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants


@cache
def task() -> Any:
    return card("Parking-v0").build()


def test_a_step_is_that_of_the_bicycle_forwards_and_backwards() -> None:
    """Integrate the kinematic bicycle (Polack et al. 2017) by a method of high order."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        heading, speed, push = rng.uniform(-3, 3), rng.uniform(-5, 5), rng.uniform(-3, 3)
        wheel = rng.uniform(-1, 1) * math.pi / 4
        beta = math.atan(0.5 * math.tan(wheel))

        def slopes(_: float, y: np.ndarray, beta: float = beta, push: float = push) -> list[float]:
            _, _, psi, v = y
            return [
                v * math.cos(psi + beta),
                v * math.sin(psi + beta),
                v / 1.5 * math.sin(beta),
                push,
            ]

        end = solve_ivp(slopes, (0, 0.2), [1.0, 2.0, heading, speed], rtol=1e-10, atol=1e-12).y[
            :, -1
        ]
        with precision(card("Parking-v0").build(dtype="float64")):
            start = Pose(*(jnp.float64(v) for v in (1.0, 2.0, heading, speed)))
            pose = parking.roll(
                start, jnp.float64(push), bicycle.slip_of_steering(jnp.float64(wheel)), 0.2
            )
        end[2] = (end[2] + math.pi) % (2 * math.pi) - math.pi
        np.testing.assert_allclose(np.array(pose), end, atol=1e-9)


def test_plans_lead_to_the_goal_and_are_the_shortest_where_that_is_known() -> None:
    """Integrate each plan, and compare those of which the shortest length is known.

    Straight lines, single arcs and the turn on the spot (three arcs, pi in all) are optimal.
    """
    plan = jax.jit(reeds_shepp.shortest_path)
    rng = np.random.default_rng(1)
    goals = [
        *rng.uniform((-6, -6, -3.1), (6, 6, 3.1), (60, 3)),
        (5, 0, 0),
        (-3, 0, 0),
        (1, 1, math.pi / 2),
    ]
    for goal in goals:
        path = plan(*goal)
        x = y = heading = 0.0
        for turn, length in zip(map(float, path.turns), map(float, path.lengths), strict=True):
            next_heading = heading + turn * length
            if turn:
                x += turn * (math.sin(next_heading) - math.sin(heading))
                y -= turn * (math.cos(next_heading) - math.cos(heading))
            else:
                x, y = x + length * math.cos(heading), y + length * math.sin(heading)
            heading = next_heading
        missed = (
            math.hypot(x - goal[0], y - goal[1]),
            abs(math.remainder(heading - goal[2], 2 * math.pi)),
        )
        assert max(missed) < 3 * reeds_shepp.MIN_PIECE
        assert (
            sum(abs(float(v)) for v in path.lengths)
            >= math.hypot(goal[0], goal[1]) - 3 * reeds_shepp.MIN_PIECE
        )
    for goal, length in (
        (goals[-3], 5),
        (goals[-2], 3),
        (goals[-1], math.pi / 2),
        ((0, 0, math.pi - 1e-3), math.pi),
    ):
        assert sum(abs(float(v)) for v in plan(*goal).lengths) == pytest.approx(length, abs=0.05)
    assert float(plan(*goals[-2]).direction) == -1


@pytest.mark.parametrize(
    ("x", "y", "turn", "speed", "crashed", "reward"),
    [
        (0.4, 0.2, 0.05, 0.0, False, 1.0),
        (
            0.4,
            0.2,
            0.05,
            1.0,
            False,
            0.05 * math.exp(-(math.hypot(0.4, 0.2) + 0.1) / 5),
        ),  # drives through
        (0.0, 0.4, 0.0, 0.0, False, 0.05 * math.exp(-0.4 / 5)),
        (0.0, 0.0, math.pi, 0.0, False, 0.05 * math.exp(-2 * math.pi / 5)),  # the wrong way round
        (5.0, 0.0, 0.0, 0.0, False, 0.05 * math.exp(-1)),
        (0.0, 0.0, 0.0, 0.0, True, -7.0),
    ],
)
def test_reward_by_hand(
    x: float, y: float, turn: float, speed: float, crashed: bool, reward: float
) -> None:
    goal = Params(*(np.float32(v) for v in (2.0, -10.0, 0.0, 0.0)))
    pose = Pose(*(np.float32(v) for v in (2.0 + x, -10.0 + y, turn, speed)))
    state = State(pose, np.float32(7), np.bool_(False))
    next_state = State(pose, np.float32(7), np.bool_(crashed))
    assert float(task().reward(state, None, next_state, None, goal)) == pytest.approx(
        reward, abs=1e-5
    )


def test_the_reference_parks_always_and_nothing_cheap_pays() -> None:
    """Compare standing, circling and racing with the reference.

    Each of them, and circling in both directions, earns at most a twentieth of it.
    """
    best = play(task(), reference_player(task()), range(200), split="test")
    assert best.info["success"].mean() > 0.99
    assert not best.info["collision"].any()
    for action in ((0, 0), (0.3, 1), (-0.3, 1), (0.2, 0.5), (1, 0)):
        record = play(task(), Constant(jnp.array(action, jnp.float32)), range(100), split="test")
        assert record.total.mean() < 0.05 * best.total.mean()
        assert not record.info["success"].any()
        np.testing.assert_allclose(record.total[record.terminated], 0, atol=1e-3)
