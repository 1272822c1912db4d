"""The U-turn, with whole steps in the plane against plain NumPy, and the ring by hand.

There is no cheap way to a reward.
"""

from __future__ import annotations

import json
import math
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import plain_traffic
import pytest
from plain_traffic import NODES, SAMPLES, SUBSTEP, WEIGHTS, PlainTraffic, corners, overlap, take

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import routes
from rlbench_suite.envs.driving.tasks.highway import (
    ACTIONS,
    FASTER,
    IDLE,
    LANE_LEFT,
    LANE_RIGHT,
    SLOWER,
)
from rlbench_suite.envs.driving.tasks.u_turn import UTurn, UTurnDriver
from rlbench_suite.envs.driving.traffic import bent_road
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
R = 22.0  # m, of the line between both lanes
BEND = 22 * math.pi  # m
STEPS = 20
EPISODES = 16


class PlainRing(PlainTraffic):
    """The ring by hand.

    Its straights are at y = -22 and y = 22 in the plane, with half circles around their ends.
    """

    def place(self, s: np.ndarray, d: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a point of the plane, and the direction of the road there.

        The point is at ``s`` along the middle line and ``d`` to the left of it.
        """
        half = self.ring / 4 - BEND / 2
        lap = np.mod(s, self.ring)
        second = lap >= self.ring / 2
        u = np.where(second, lap - self.ring / 2, lap)
        turn = np.clip((u - half) / R, 0, math.pi)
        x = np.where(u < half, u, half) + (R - d) * np.sin(turn) - np.maximum(u - half - BEND, 0)
        y = -(R - d) * np.cos(turn)
        return np.where(second, -x, x), np.where(second, -y, y), turn + np.where(second, math.pi, 0)

    def find(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the place along the middle line, and the distance to the left of it, of points.

        The points are given in the plane.
        """
        half = self.ring / 4 - BEND / 2
        angle = np.arctan2(y, np.abs(x) - half)
        bend = np.abs(x) > half
        first = np.where(
            bend, half + R * (angle + math.pi / 2), np.where(y < 0, x, 2 * half + BEND - x)
        )
        second = np.where(bend, 3 * half + BEND + R * (math.pi / 2 - angle), first)
        s = np.where(bend & (x < 0), second, first)
        return s, R - np.where(bend, np.hypot(np.abs(x) - half, y), np.abs(y))

    def substep(self, ego: Any) -> None:  # noqa: PLR0915
        """Move everyone by a sub-step.

        ``ego(course, limit)`` gives acceleration, and sine of the slip angle without that of the
        bend.
        """
        length, width = self.fleet.length, self.fleet.width
        half = self.ring / 4 - BEND / 2
        s = np.mod(self.travelled[:, None] + self.x, self.ring)
        u = np.mod(s, self.ring / 2)
        bend = (u >= half) & (u < half + BEND)
        distance_to_bend = np.where(u < half, half - u, np.where(bend, 0, half + self.ring / 2 - u))
        v0 = self.fleet.driver.desired_speed
        slow = 0.55 * v0
        slow[:, 0] = 8
        limit = np.sqrt(slow**2 + 4 * distance_to_bend)
        forward = self.speed * np.cos(self.heading)
        driver = (np.minimum(v0, limit), *tuple(self.fleet.driver)[1:])
        pull = np.full_like(self.x, np.inf)
        for leader, around in self.leaders:
            gap = self.gap(take(self.x, leader) - self.x + around, length, take(length, leader))
            pull = np.minimum(pull, self.idm(driver, self.speed, gap, take(forward, leader)))
        pull = np.maximum(pull, -9)
        radius = np.where(bend, R - (self.y - 4), np.inf)
        along = 0.3 * length / radius
        course = self.heading + along
        slip = plain_traffic.steer(self.y, course, self.speed, 4 * (self.target + 0.5), length)
        pull[:, 0], slip[:, 0] = ego(self.y[:, 0], course[:, 0], self.speed[:, 0], limit[:, 0])
        bound = plain_traffic.slip_bound(self.speed, length)
        slip = np.clip(slip + along, -bound, bound)

        x, y, road = self.place(s, self.y - 4)
        rear = 0.3 * length
        beta = np.arcsin(slip)
        first = road + self.heading
        driven = np.zeros_like(x)
        for k in range(1, SAMPLES + 1):
            t = k * SUBSTEP / SAMPLES
            stop = np.where(pull < 0, -self.speed / np.minimum(pull, -1e-300), np.inf)
            rolling = np.minimum(t, stop)
            distance = self.speed * rolling + pull * rolling**2 / 2
            for node, weight in zip(NODES, WEIGHTS, strict=True):
                angle = first + beta + (driven + (distance - driven) * (1 + node) / 2) * slip / rear
                x = x + weight / 2 * (distance - driven) * np.cos(angle)
                y = y + weight / 2 * (distance - driven) * np.sin(angle)
            driven = distance
            heading = first + driven * slip / rear
            bodies = np.stack([x, y, heading, length, width], -1)
            is_close = np.hypot(x - x[:, :1], y - y[:, :1]) < 8
            is_close[:, 0] = False
            which, vehicle = np.nonzero(is_close)
            hit = overlap(corners(bodies[which, 0]), corners(bodies[which, vehicle]))
            self.touched[which[hit]] = True
        edge = corners(bodies[:, 0])
        off = np.abs(self.find(edge[..., 0], edge[..., 1])[1]).max(-1) > 4
        then, d = self.find(x, y)
        moved = np.mod(then - s + self.ring / 2, self.ring) - self.ring / 2
        self.x, self.y = self.x + moved, d + 4
        turn = heading - self.place(then, 0.0)[2]
        self.heading = np.mod(turn + math.pi, 2 * math.pi) - math.pi
        self.speed = np.maximum(self.speed + pull * SUBSTEP, 0)
        self.touched |= off | (np.abs(self.heading[:, 0]) > math.pi / 2)


@cache
def hostile_episodes() -> Any:
    """Return params, states before, actions and states after of episodes under random actions.

    They are computed at float64.
    """
    which = card("UTurn-v0").build(dtype="float64")

    def step(episode: Any, actions: Any) -> Any:
        next_episode = jax.vmap(lambda e, a: advance(which, e, a, np.int32(STEPS))[0])(
            episode, actions
        )
        return next_episode, (episode.state, next_episode.state)

    shares = (0.2, 0.1, 0.2, 0.35, 0.15)
    actions = np.random.default_rng(2).choice(
        np.arange(5, dtype=np.int32), (STEPS, EPISODES), p=shares
    )
    with precision(which):
        seeds = np.stack([seed_key(seed) for seed in range(EPISODES)])
        start = jax.jit(
            jax.vmap(
                lambda seed: begin(which, seed, 0, ContextSource(np.int32(1), np.int32(-1)))[0]
            )
        )(seeds)
        _, run = jax.jit(lambda episode: jax.lax.scan(step, episode, actions))(start)
        return (*jax.tree.map(np.asarray, (start.params, *run)), actions)


def plain_step(params: Any, state: Any, action: np.ndarray) -> PlainRing:
    """Make one step of the task's docstring in plain NumPy."""
    lane, target = state.traffic.lane.copy(), state.traffic.target.copy()
    road = PlainRing(params, *state.traffic.pose, lane, target, state.travelled, lanes=2)
    aside = np.select([action == LANE_LEFT, action == LANE_RIGHT], [1, -1], 0)
    target_lane, in_target_lane = target[:, 0] + aside, lane[:, 0] == target[:, 0]
    back = (aside != 0) & ~in_target_lane & (target_lane == lane[:, 0])
    lane[back, 0], target[back, 0] = target[back, 0], lane[back, 0]
    target[:, 0] += np.where((target_lane >= 0) & (target_lane < 2) & in_target_lane, aside, 0)
    speed = 4 + 5 * np.clip(state.level + (action == FASTER) - (action == SLOWER), 0, 4)
    y = 4 * target[:, 0] + 2

    def ego(at: Any, course: Any, v: Any, limit: Any) -> Any:
        return np.clip((np.minimum(speed, limit) - v) / 0.6, -6, 3), plain_traffic.steer(
            at, course, v, y, 5.0
        )

    for direction, substeps in ((1, 8), (-1, 7)):
        road.weigh_lanes(np.full(len(action), direction))
        road.choose_leaders()
        for _ in range(substeps):
            road.substep(ego)
        road.settle()
    return road


def test_every_step_is_that_of_a_plain_simulation() -> None:
    """Compare positions to a nanometre and lanes exactly with bicycles in the plane.

    These are integrated by quadrature. No crash is missed.
    """
    params, states, next_states, actions = hostile_episodes()
    at = lambda tree, *index: jax.tree.map(lambda leaf: leaf[index], tree)  # noqa: E731
    close = partial(np.testing.assert_allclose, rtol=0, atol=1e-9)
    compared = bends = crashes = 0
    for t in range(STEPS):
        running = np.flatnonzero(~states.crashed[t])
        road = plain_step(at(params, running), at(states, t, running), actions[t, running])
        simulated = at(next_states, t, running)
        assert not (road.touched & ~simulated.crashed).any()
        unbroken = ~simulated.crashed
        for name in ("x", "y", "heading", "speed"):
            close(getattr(simulated.traffic.pose, name)[unbroken], getattr(road, name)[unbroken])
        np.testing.assert_array_equal(simulated.traffic.lane[unbroken], road.lane[unbroken])
        np.testing.assert_array_equal(simulated.traffic.target[unbroken], road.target[unbroken])
        compared += unbroken.sum()
        crashes += road.touched.sum()
        half = road.ring[:, 0] / 4 - BEND / 2
        bends += (
            unbroken & (simulated.travelled > half) & (simulated.travelled < half + BEND)
        ).sum()
    assert compared > 150
    assert bends > 30
    assert crashes >= 2


def test_the_ring_closes_and_its_lanes_have_the_stated_radii() -> None:
    """Compare points beside the middle line with those by hand.

    Both lanes' lengths differ by 2 pi 4 m in a whole turn.
    """
    ring = 619.0
    plain = PlainRing.__new__(PlainRing)
    plain.ring = np.array(ring)
    with jax.enable_x64(True):
        route = routes.Route(
            *(np.asarray(value) for value in bent_road.centre_line(jnp.float64(ring)))
        )
    s = np.linspace(0, ring, 20001)
    lengths = []
    for d in (-2.0, 2.0):
        ours = routes.points(route, s, d)
        x, y, heading = plain.place(s, d)
        np.testing.assert_allclose(ours[:-1, :2], np.stack([x, y], 1)[:-1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(np.cos(ours[:, 2] - heading), 1, rtol=0, atol=1e-12)
        np.testing.assert_allclose(ours[0, :2], ours[-1, :2], rtol=0, atol=1e-9)
        lengths.append(np.hypot(*np.diff(ours[:, :2], axis=0).T).sum())
    assert lengths[0] - lengths[1] == pytest.approx(2 * math.pi * 4, abs=1e-3)


def test_who_never_looks_scores_less_than_a_fifth_of_the_reference() -> None:
    """Compare random play and IDLE at every difficulty, and every constant action.

    The reference keeps the cost's limit.
    """
    folder = Path(str(sys.modules[UTurn.__module__].__file__)).parent
    scores = json.loads((folder / "reference_scores.json").read_text())["rlsuite/UTurn-v0"]
    limit = card("UTurn-v0").constraint.limit
    for line in scores.values():
        assert (
            max(line[name]["mean"] for name in ("noop", "random")) < 0.2 * line["reference"]["mean"]
        )
        assert line["reference"]["cost"] < limit
    for action in range(len(ACTIONS)):
        record = play(
            card("UTurn-v0").build(), Constant(jnp.int32(action)), range(60), split="test"
        )
        assert record.total.mean() < 0.2 * scores["medium"]["reference"]["mean"], ACTIONS[action]


def test_a_driver_who_never_hangs_back_in_bends_earns_a_tenth_less() -> None:
    """Check that whoever hurries through a bend earns less, because no speed pays there.

    It gains only a place behind slow vehicles.
    """
    task: Any = card("UTurn-v0").build()
    hurried = UTurnDriver.for_task(task)._replace(hang_back_from=0.0)
    record = play(task, hurried, range(60), split="test")
    assert record.total.mean() < 0.9 * task.scores["reference"].mean


def test_success_is_a_return_that_hardly_any_follower_earns() -> None:
    """Success takes six points without a crash behind the bend.

    The reference nearly always earns them, random play and constants rarely, and a driver who
    follows and overtakes nobody in about half of the episodes.
    """
    for tier in ("medium", "hard"):
        task: Any = card("UTurn-v0").build(difficulty=tier)
        driver = UTurnDriver.for_task(task)
        players = driver, Follower(driver), Uniform(task.action_space), Constant(jnp.int32(FASTER))
        reference, follower, random, fast = (
            play(task, player, range(100), split="test") for player in players
        )
        assert reference.info["success"].mean() > 0.8
        assert follower.info["success"].mean() < reference.info["success"].mean() - 0.2
        assert random.info["success"].mean() <= 0.05
        assert fast.info["success"].mean() < 0.2
        for record in (reference, follower, random, fast):
            assert not (record.info["success"] & record.info["collision"]).any()
            assert not (record.info["success"] & (record.total < 6 - 1e-4)).any()


class Follower(NamedTuple):
    """The reference without its lane changes."""

    driver: UTurnDriver

    def initial(self, params: Any) -> Any:
        return self.driver.initial(params)

    def act(self, memory: Any, view: Any, key: jax.Array) -> Any:
        action, memory = self.driver.act(memory, view, key)
        return jnp.where((action == LANE_LEFT) | (action == LANE_RIGHT), IDLE, action), memory
