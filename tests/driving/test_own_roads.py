"""Scenarios against closed forms, recorded points and brute force, and their refusals.

Lanes have closed forms, replay passes through recorded points, overlaps are found by brute force,
and refusals are clear.
"""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_traffic import corners, overlap
from scipy.interpolate import CubicHermiteSpline

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import routes, scenario
from rlbench_suite.envs.driving.traffic import replay
from rlbench_suite.envs.driving.vehicle import collision
from rlbench_suite.envs.driving.vehicle.collision import Body
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants

BEND = {
    "version": 1,
    "units": "m, s, rad",
    "name": "bend",
    "duration": 200.0,
    "lanes": [
        {
            "name": "in",
            "start": {"x": 0.0, "y": 0.0, "heading": 0.0},
            "pieces": [{"length": 50.0}, {"length": 10 * math.pi, "radius": 20.0}],
            "speed_limit": 10.0,
            "next": ["out", "dead_end"],
        },
        {
            "name": "out",
            "start": {"x": 70.0, "y": 20.0, "heading": math.pi / 2},
            "pieces": [{"length": 10 * math.pi, "radius": -20.0}, {"length": 60.0}],
            "speed_limit": 8.0,
        },
        {
            "name": "dead_end",
            "start": {"x": 70.0, "y": 20.0, "heading": math.pi / 2},
            "pieces": [{"length": 5.0}],
            "speed_limit": 8.0,
        },
    ],
    "ego": {"start": {"lane": "in", "s": 5.0}, "goal": {"lane": "out", "s": 80.0}},
    "trajectories": [
        {
            "time": [3.0, 4.0, 6.5],
            "x": [100.0, 108.0, 110.0],
            "y": [40.0, 40.0, 45.0],
            "heading": [0.0, 0.1, 1.5],
            "speed": [8.0, 6.0, 1.0],
        },
        {
            "time": [7.0, 8.0],
            "x": [0.0, 5.0],
            "y": [3.5, 3.5],
            "heading": [6.3, 0.1],
            "speed": [5.0, 5.0],
            "length": 9.0,
        },
        {
            "time": [3.5, 7.5],
            "x": [90.0, 70.0],
            "y": [9.0, 9.0],
            "heading": [3.2, -3.1],
            "speed": [5.0, 5.0],
        },
    ],
}
"""A quarter circle to the left, one to the right, and a straight."""


def document_with(**changes: Any) -> dict[str, Any]:
    """Return the scenario of the tests with other fields."""
    return copy.deepcopy(BEND) | changes


@cache
def own_task() -> Any:
    return card("OwnRoads-v0", context={"scenario": BEND}).build(dtype="float64")


# -- roads -----------------------------------------------------------------------------------------


def test_ways_are_straights_and_arcs_around_their_centres() -> None:
    """Compute the way of BEND by hand.

    It has arcs around (50, 20) and (90, 20), then a straight at y = 40.
    """
    route, limits, start, goal = scenario.route_of(scenario.read(BEND))
    quarter = 10 * math.pi
    assert (start, goal) == (5.0, 50 + quarter + 80)
    assert limits.tolist() == [10, 10, 8, 8]
    for angle in np.linspace(0, math.pi / 2, 7):
        first, second = (routes.points(route, 50 + k * quarter + 20 * angle)[0] for k in (0, 1))
        truth = 50 + 20 * math.sin(angle), 20 - 20 * math.cos(angle), angle
        np.testing.assert_allclose(first, truth, rtol=0, atol=1e-9)
        truth = 90 - 20 * math.cos(angle), 20 + 20 * math.sin(angle), math.pi / 2 - angle
        np.testing.assert_allclose(second, truth, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        routes.points(route, 50 + 2 * quarter + 7)[0], (97, 40, 0), rtol=0, atol=1e-9
    )
    assert scenario.way_of(scenario.read(BEND)) == ["in", "out"]


def test_the_limiter_brakes_in_time() -> None:
    """Check that speed is at most the limit and that of bends, before which it falls by 2 m/s^2.

    The speed in a bend needs 65 % of 4.905 m/s^2 on 20 m.
    """
    task = own_task()
    bend = math.sqrt(0.65 * 0.5 * 9.81 * 20)
    with precision(task):
        for s, truth in ((0, 10), (49, math.sqrt(bend**2 + 4)), (60, bend), (100, bend), (115, 8)):
            assert float(task.limiter(jnp.float64(s))) == pytest.approx(truth, abs=1e-12)
        params, state = task.sample_params(jax.random.key(1), 0), None
        state = task.initial(jax.random.key(1), params)
        step = jax.jit(task.transition)
        while not (state.arrived or state.crashed):
            state = step(state, jnp.array([1.0]), jax.random.key(0), params)
            # A loop of 0.6 s follows a ramp of 2 m/s^2.
            assert state.speed <= task.limiter(state.s) + 2 * 0.6 + 1e-9


# -- replay ----------------------------------------------------------------------------------------


def test_vehicles_pass_through_their_points_and_move_on_hermite_curves() -> None:
    """Compare recorded points to 1e-9, and SciPy's cubic Hermite splines between them.

    Before and after them a vehicle is away.
    """
    trajectories = scenario.read(BEND).trajectories
    recording = replay.recording_of(trajectories)
    assert recording.time.shape[0] == 2
    with jax.enable_x64(True):
        at = jax.jit(lambda time: replay.vehicles_at(recording, time))
        for trajectory in trajectories:
            wrapped = np.unwrap(trajectory.heading)
            between = np.random.default_rng(0).uniform(trajectory.time[0], trajectory.time[-1], 20)
            for time in (*trajectory.time, *between):
                speed, heading = np.array(trajectory.speed), trajectory.heading
                truth = [
                    CubicHermiteSpline(trajectory.time, trajectory.x, speed * np.cos(heading))(
                        time
                    ),
                    CubicHermiteSpline(trajectory.time, trajectory.y, speed * np.sin(heading))(
                        time
                    ),
                ]
                truth += [
                    np.interp(time, trajectory.time, wrapped),
                    np.interp(time, trajectory.time, trajectory.speed),
                ]
                vehicles = at(jnp.float64(time))
                poses = np.stack(vehicles.pose)[:, np.asarray(vehicles.present)].T
                poses[:, 2] += 2 * math.pi * np.round((truth[2] - poses[:, 2]) / (2 * math.pi))
                assert np.abs(poses - truth).max(1).min() < 1e-9
        for time, count in ((2.9, 0), (3.0, 1), (3.6, 2), (6.8, 1), (7.2, 2), (7.6, 1), (8.1, 0)):
            assert int(at(jnp.float64(time)).present.sum()) == count


def test_every_recorded_vehicle_of_the_shipped_scenario_is_replayed() -> None:
    """Count as many vehicles as trajectories last at random times, with their own points."""
    trajectories = scenario.load_shipped().trajectories
    recording = replay.recording_of(trajectories)
    with jax.enable_x64(True):
        at = jax.jit(lambda time: replay.vehicles_at(recording, time))
        for second in range(7, 400, 23):
            vehicles = at(jnp.float64(second))
            points = ((trajectory, second - int(trajectory.time[0])) for trajectory in trajectories)
            truth = [
                (trajectory.x[k], trajectory.y[k])
                for trajectory, k in points
                if 0 <= k < len(trajectory.x)
            ]
            present = np.asarray(vehicles.present)
            replayed = sorted(np.stack(vehicles.pose[:2], 1)[present].tolist())
            np.testing.assert_allclose(replayed, sorted(map(list, truth)), rtol=0, atol=1e-9)


def test_overlap_is_that_of_rectangles() -> None:
    """Look by brute force, at random poses, for points of one body inside the other.

    The points are those of a fine grid. Sides that cross are found too.
    """
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 41)] * 2), -1).reshape(-1, 2)
    num_overlaps = 0

    def inside(points: np.ndarray, body: np.ndarray) -> bool:
        c, s = math.cos(body[2]), math.sin(body[2])
        d = points - body[:2]
        return bool(
            ((np.abs(d @ [c, s]) <= body[3] / 2) & (np.abs(d @ [-s, c]) <= body[4] / 2)).any()
        )

    def sample_points(body: np.ndarray) -> np.ndarray:
        c, s = math.cos(body[2]), math.sin(body[2])
        return body[:2] + (grid * body[3:]) @ np.array([[c, s], [-s, c]])

    bodies = np.column_stack(
        [
            rng.uniform(-5, 5, (400, 2)),
            rng.uniform(-7, 7, 400),
            rng.uniform(2, 12, 400),
            rng.uniform(0.5, 3, 400),
        ]
    )
    ego = np.array([0.0, 0.0, 0.7, 5.0, 2.0])
    with jax.enable_x64(True):
        overlaps = np.asarray(collision.overlap(Body(*ego), Body(*bodies.T)))
        wider, narrower = (
            np.asarray(collision.overlap(Body(*ego[:3], *(ego[3:] + d)), Body(*bodies.T)))
            for d in (0.4, -0.4)
        )
    for k, body in enumerate(bodies):
        brute = inside(sample_points(ego), body) or inside(sample_points(body), ego)
        assert overlaps[k] >= brute
        # The grid misses corners that are closer than its step.
        assert overlaps[k] == brute or wider[k] != narrower[k]
        num_overlaps += brute
    assert 100 < num_overlaps < 350


def test_every_step_is_that_of_a_plain_simulation() -> None:
    """Compare places and speeds with closed forms under random pedals.

    Crashes and near misses are compared with rectangles on the recorded curves.
    """
    task = card("OwnRoads-v0").build(dtype="float64")
    route, limits, _, goal = scenario.route_of(task.scenario)
    limits = np.minimum(
        limits, np.sqrt(0.65 * 0.5 * 9.81 / np.maximum(np.abs(route.curvature), 1e-9))
    )
    ends = np.append(route.start[1:], np.inf)
    curves = [
        (
            trajectory.time,
            *(
                CubicHermiteSpline(
                    trajectory.time, v, np.array(trajectory.speed) * f(trajectory.heading)
                )
                for v, f in ((trajectory.x, np.cos), (trajectory.y, np.sin))
            ),
            np.unwrap(trajectory.heading),
        )
        for trajectory in task.scenario.trajectories
    ]

    def touches(s: float, time: float) -> bool:
        ego = corners(np.array([[*routes.points(route, s)[0], 5, 2]]))
        bodies = [
            (x(time), y(time), np.interp(time, times, heading), 5, 2)
            for times, x, y, heading in curves
            if times[0] <= time <= times[-1]
        ]
        bodies = [row for row in bodies if math.dist(row[:2], routes.points(route, s)[0, :2]) < 8]
        return bool(bodies) and bool(
            overlap(np.repeat(ego, len(bodies), 0), corners(np.array(bodies))).any()
        )

    compared, crashes, num_near_misses = 0, 0, 0
    rng = np.random.default_rng(0)
    with precision(task):
        step = jax.jit(task.transition)
        for seed in range(8):
            params = task.sample_params(jax.random.key(seed), jnp.int32(1))
            state = task.initial(jax.random.key(seed), params)
            assert float(params.begin) >= 200
            while not (state.crashed or state.arrived) and state.steps < 60:
                pedal = rng.uniform(-0.2, 1)
                substate, time = state, float(params.begin) + 0.2 * int(state.steps)
                state = step(state, jnp.array([pedal]), jax.random.key(0), params)
                s, v, hit = float(substate.s), float(substate.speed), False
                for k in range(1, 5):
                    limit = min(
                        math.sqrt(max_speed**2 + 4 * max(begin - s, 0))
                        for max_speed, begin, end in zip(limits, route.start, ends, strict=True)
                        if end > s
                    )
                    pull = min(max((limit - v) / 0.6, -6), pedal * (3 if pedal > 0 else 6))
                    duration = min(0.05, v / -pull) if pull < 0 else 0.05
                    s, v = s + v * duration + pull * duration**2 / 2, max(v + pull * 0.05, 0)
                    hit = touches(s, time + 0.05 * k)
                    if hit or s >= goal:
                        break
                assert float(state.s) == pytest.approx(s, abs=1e-9)
                assert float(state.speed) == pytest.approx(v, abs=1e-9)
                assert bool(state.crashed) == hit
                assert bool(state.arrived) == (not hit and s >= goal)
                if not hit and not state.arrived:
                    soon = any(
                        touches(s + v * 0.25 * k, time + 0.2 + 0.25 * k) for k in range(1, 7)
                    )
                    assert bool(state.near_miss) == soon
                    num_near_misses += soon
                compared += 1
                crashes += hit
    assert compared > 150
    assert crashes >= 2
    assert num_near_misses > 10


# -- files -----------------------------------------------------------------------------------------

STRAIGHT = {"x": [0.0, 8.0], "y": [0.0, 0.0], "heading": [0.0, 0.0], "speed": [8.0, 8.0]}
FAULTS = {
    "version: input should be 1": {"version": 2},
    "Did you mean 'trajectories'?": {"trajectory": []},
    "duration: input should be less than or equal to": {"duration": 1e300},
    "duration: input should be greater than 0, got -3": {"duration": -3.0},
    "duration: input should be a valid number": {"duration": "long"},
    "at least 120 s": {"duration": 50.0},
    "Unknown lane 'inn'. Did you mean 'in'?": {
        "ego": {**BEND["ego"], "start": {"lane": "inn", "s": 0.0}}
    },
    "lane 'in' is 81.4159 m long, got 90": {
        "ego": {**BEND["ego"], "start": {"lane": "in", "s": 90.0}}
    },
    "no way leads": {
        "ego": {"start": {"lane": "dead_end", "s": 0.0}, "goal": {"lane": "out", "s": 9.0}}
    },
    "time must increase": {"trajectories": [{**BEND["trajectories"][1], "time": [7.0, 7.0]}]},
    "it has 2 values, and time has 3": {
        "trajectories": [{**BEND["trajectories"][1], "time": [7.0, 7.5, 8.0]}]
    },
    "at most 100 m/s from point to point, got 5000": {
        "trajectories": [{**BEND["trajectories"][1], "x": [0.0, 5000.0]}]
    },
    "the vehicle moves at 8.0 m/s on average, and its speeds say 28.8 m/s": {
        "trajectories": [
            {**BEND["trajectories"][1], "time": [7.0, 8.0], **STRAIGHT, "speed": [28.8, 28.8]}
        ]
    },
    "the vehicle drives backwards after point 0": {
        "trajectories": [
            {
                **BEND["trajectories"][1],
                "time": [7.0, 8.0],
                **STRAIGHT,
                "heading": [math.pi, math.pi],
            }
        ]
    },
    "finite number": {"trajectories": [{**BEND["trajectories"][1], "x": [0.0, math.inf]}]},
    "Did you mean 'speed_limit'?": {
        "lanes": [{**BEND["lanes"][0], "speed_limits": 3.0}, *BEND["lanes"][1:]]
    },
    "and 'out' begins 1.00 m and 0.000 rad from there": {
        "lanes": [
            BEND["lanes"][0],
            {**BEND["lanes"][1], "start": {"x": 71.0, "y": 20.0, "heading": math.pi / 2}},
            BEND["lanes"][2],
        ]
    },
    "at least 2 m to either side, got 1": {
        "lanes": [
            {**BEND["lanes"][0], "pieces": [{"length": 5.0, "radius": 1.0}]},
            *BEND["lanes"][1:],
        ]
    },
    "two of them are called": {"lanes": [BEND["lanes"][0]] * 2},
}
"""Parts of the sentence that refuses a scenario with these fields."""


@pytest.mark.parametrize("message", FAULTS)
def test_bad_scenarios_are_refused_in_one_sentence(message: str) -> None:
    with pytest.raises(ValueError, match=r"scenario|recording") as error:
        card("OwnRoads-v0", context={"scenario": document_with(**FAULTS[message])}).build()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(BEND).replace("200.0", "NaN"), "NaN is no number of JSON"),
        (json.dumps(BEND).replace("200.0", "1e999"), "duration: input should be a finite number"),
        (json.dumps(BEND)[:-1] + ', "name": "again"}', "'name' twice"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "it is not a JSON object"),
        ("{", "Expecting property name"),
        ("{}" + " " * 2**24, "larger than 16,777,216 bytes"),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "town.json").write_text(text)
    with pytest.raises(ValueError, match="scenario") as error:
        card("OwnRoads-v0", context={"scenario": str(tmp_path / "town.json")})
    assert message in str(error.value)
    assert len(str(error.value)) < 400


def test_a_file_has_an_id_of_its_own_and_the_command_line_refuses_with_2(tmp_path: Path) -> None:
    """Check that the hash is that of what the file says, whatever its layout.

    The cache brings the scenario back by its label.
    """
    (tmp_path / "town.json").write_text(json.dumps(BEND, indent=3, sort_keys=True))
    (tmp_path / "mine.yaml").write_text("scenario: town.json\n")
    by_file = card(f"OwnRoads-v0?context={tmp_path / 'mine.yaml'}")
    by_mapping = card("OwnRoads-v0", context={"scenario": BEND})
    assert by_file.id.startswith("rlsuite/OwnRoads-v0?context=mine-")
    assert by_file.id.rpartition("-")[2] == by_mapping.id.rpartition("-")[2]
    moved = document_with(duration=201.0)
    assert (
        card("OwnRoads-v0", context={"scenario": moved}).id.rpartition("-")[2]
        != by_file.id.rpartition("-")[2]
    )
    (tmp_path / "town.json").unlink()
    assert card(by_file.id).build().goal == by_mapping.build().goal
    (tmp_path / "town.json").write_text(json.dumps(document_with(lane=[])))
    program = Path(sys.executable).with_name("rlsuite")
    arguments = "show", f"OwnRoads-v0?context={tmp_path / 'mine.yaml'}"
    finished = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert "Did you mean 'lanes'?" in finished.stderr


def test_the_page_shows_a_scenario_and_names_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs" / "extend" / "scenarios.md").read_text()
    example = page.partition("```json\n")[2].partition("```")[0]
    assert scenario.way_of(scenario.read(json.loads(example))) == ["in", "out"]
    for model in (
        scenario.Scenario,
        scenario.Lane,
        scenario.Ego,
        scenario.OnLane,
        scenario.Trajectory,
        scenario.Piece,
    ):
        assert all(f"{name}`" in page or f'{name}"' in page for name in model.model_fields), model


# -- players ---------------------------------------------------------------------------------------


def test_no_held_pedal_earns_a_third_of_what_the_reference_does() -> None:
    """Check that blind driving meets the recorded traffic.

    The reference arrives and keeps the cost's limit.
    """
    task, own_card = card("OwnRoads-v0").build(), card("OwnRoads-v0")
    best = play(task, reference_player(task), range(40), split="test")
    assert best.info["success"].mean() > 0.9
    assert best.cost.mean() < own_card.constraint.limit
    for pedal in (-1.0, -0.2, 0.0, 0.3, 1.0):
        record = play(task, Constant(jnp.array([pedal], jnp.float32)), range(100), split="test")
        assert record.total.mean() < best.total.mean() / 3, pedal


def test_a_crash_costs_as_much_as_a_second_of_near_miss() -> None:
    """Otherwise a crash in every episode would keep the limit of one step of 0.2 s."""
    task = card("OwnRoads-v0").build()
    params = task.sample_params(jax.random.key(0), jnp.int32(1))
    state = task.initial(jax.random.key(0), params)
    for crashed, near_miss, price in (
        (False, False, 0),
        (False, True, 1),
        (True, False, 5),
        (True, True, 5),
    ):
        next_state = state._replace(crashed=jnp.bool_(crashed), near_miss=jnp.bool_(near_miss))
        assert float(task.cost(state, None, next_state, params)) == price
    blind = play(task, Constant(jnp.ones(1, jnp.float32)), range(100), split="test")
    assert (blind.cost[blind.info["collision"]] >= 5).all()
    assert task.card.violates(5 * 0.06)  # a crash in six of a hundred episodes, and no near miss
    assert task.card.violates(float(blind.cost.mean()))
