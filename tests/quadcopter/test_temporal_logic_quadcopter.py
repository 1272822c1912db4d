"""Check TemporalLogicQuadcopter against robustness over whole traces, and other flights.

A plain evaluator computes the robustness; the flights are the family's.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from robustness_by_definition import robustness

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody
from rlbench_suite.envs.quadcopter.tasks import waypoints
from rlbench_suite.envs.quadcopter.tasks.specification_pilot import SpecificationPilot
from rlbench_suite.envs.quadcopter.tasks.temporal_logic import SUBSTEPS
from rlbench_suite.envs.shared.temporal_logic.specifications import FORMULAS, LEAD_IN, STEPS

pytestmark = pytest.mark.of_variants
CARD = card("TemporalLogicQuadcopter-v0")


def plain_values(place: Any, params: Any) -> dict[str, float]:
    """Return the predicates at a place, by Python's own distances."""
    place = [float(coordinate) for coordinate in place]
    params = jax.tree.map(np.asarray, params)
    regions = np.stack([params.region_x, params.region_y, params.region_z], 1).tolist()
    hazards = np.stack([params.hazard_x, params.hazard_y], 1).tolist()
    radii = params.hazard_radius.tolist()
    walls = [
        side for axis, size in zip(place, (8, 8, 3), strict=True) for side in (axis, size - axis)
    ]
    pillars = [math.dist(place[:2], hazards[i]) - radii[i] for i in (0, 1)]
    balls = [math.dist(place, [*hazards[i], params.ball_z[i - 2]]) - radii[i] for i in (2, 3)]
    values = {
        name: 0.5 - math.dist(place, middle) for name, middle in zip("ABC", regions, strict=True)
    }
    return {**values, "free": min(*walls, *pillars, *balls)}


def test_returns_are_final_robustness_of_whole_traces() -> None:
    """Rewards of the pilot's episodes telescope, and success is satisfaction.

    Every specification is played at float64.
    """
    env, player = TaskEnv(CARD.build(dtype="float64"), split="test"), SpecificationPilot()
    act = jax.jit(player.act)
    flown_specifications, successes = set(), 0
    for seed in range(60):
        observation, _ = env.reset(seed=seed)
        params = env.params
        if (specification := int(params.specification)) in flown_specifications:
            continue
        flown_specifications.add(specification)
        np.testing.assert_allclose(
            observation[:3] + observation[22:25],
            [params.region_x[0], params.region_y[0], params.region_z[0]],
        )
        with jax.enable_x64():
            memory = player.initial(jax.tree.map(jax.numpy.asarray, params))
        start = plain_values((params.start_x, params.start_y, params.start_z), params)
        trace = {name: [value] * (LEAD_IN + 1) for name, value in start.items()}
        first, total, over = robustness(FORMULAS[specification], trace), 0.0, False
        while not over:
            with jax.enable_x64():
                view = View(
                    None, None, *jax.tree.map(jax.numpy.asarray, (env.episode.state, params))
                )
                action, memory = act(memory, view, jax.random.key(0))
            _, reward, over, _, info = env.step(np.clip(np.asarray(action), -1, 1))
            total += reward
            for name, value in plain_values(env.episode.state.vehicle.body[:3], params).items():
                trace[name].append(value)
        last = robustness(FORMULAS[specification], trace)
        assert float(env.episode.state.robustness) == pytest.approx(last, abs=1e-9)
        assert info["success"] == (last > 0 and len(trace["free"]) == LEAD_IN + 1 + STEPS)
        telescoped = (
            (np.clip(last, -8, 0) - np.clip(first, -8, 0)) / 4
            + info["success"]
            - (min(trace["free"]) <= 0)
        )
        assert total == pytest.approx(telescoped, abs=1e-9)
        successes += info["success"]
    assert flown_specifications == set(range(len(FORMULAS)))
    assert successes >= len(flown_specifications) - 1


def test_a_step_is_ten_steps_of_waypoints_by_rates() -> None:
    """The vehicle moves as under the same thrust and rates in waypoints.

    That task's dynamics are tested against SciPy.
    """
    task = CARD.build(dtype="float64")
    waypoint_task = card("QuadcopterWaypointsRates-v0").build(dtype="float64")
    action = np.array([0.15, 0.2, -0.3, 0.4])
    with jax.enable_x64():
        key = jax.random.key(5)
        params = task.sample_params(key, np.int32(0))
        state = task.initial(key, params)
        moved = jax.jit(task.transition)(state, action, key, params).vehicle
        tour = waypoints.Tour(params.airframe, params.region_x, params.region_y, params.region_z)
        flight = waypoints.State(state.vehicle, np.int32(0))
        for _ in range(SUBSTEPS):
            flight = jax.jit(waypoint_task.transition)(flight, action, key, tour)
    for leaf, flight_leaf in zip(
        jax.tree.leaves(moved), jax.tree.leaves(flight.vehicle), strict=True
    ):
        np.testing.assert_allclose(leaf, flight_leaf, rtol=1e-9, atol=1e-12)
    assert abs(float(moved.body.vz)) > 0.05


def test_a_hazard_ends_the_flight_and_is_told_by_its_kind() -> None:
    """Full thrust straight up ends at the ceiling, none on the floor."""
    env = TaskEnv(CARD.build(), split="test")
    for thrust, above in ((1.0, True), (-1.0, False)):
        env.reset(seed=3)
        over = False
        while not over:
            _, reward, over, _, info = env.step(np.array([thrust, 0, 0, 0], np.float32))
        body: RigidBody = env.episode.state.vehicle.body
        assert (float(body.z) >= 3) == above
        assert (float(body.z) <= 0) != above
        assert info["collided"]
        assert not info["success"]
        assert reward < -0.9


def test_the_pilot_satisfies_most_specifications_and_hovering_none() -> None:
    task = CARD.build()
    record = play(task, SpecificationPilot(), range(210), split="test")
    of = record.info["specification"]
    rates = [record.info["success"][of == index].mean() for index in range(len(FORMULAS))]
    assert min(rates) > 0.8, rates
    assert not record.info["success"][record.info["collided"]].any()
    assert task.scores["noop"].success == task.scores["random"].success == 0


def test_splits_differ_in_the_sum_of_cells() -> None:
    task = CARD.build()
    draw = jax.jit(jax.vmap(task.sample_params, (0, None)))
    for split in (0, 1):
        params = draw(jax.random.split(jax.random.key(1), 200), np.int32(split))
        cells = np.asarray(params.region_x) // 2 + 4 * (np.asarray(params.region_y) // 2)
        assert (cells.sum(1) % 2 == split).all()
        x = np.concatenate(
            [np.asarray(params.start_x)[:, None], params.region_x, params.hazard_x], 1
        )
        y = np.concatenate(
            [np.asarray(params.start_y)[:, None], params.region_y, params.hazard_y], 1
        )
        assert all(len(set(row)) == 8 for row in x // 2 + 4 * (y // 2))
