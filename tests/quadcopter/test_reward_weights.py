"""Check own weights of the reward's terms.

Rewards are the sums of the page, written out with NumPy and SciPy's rotations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics.data_sheet import SHIPPED
from rlbench_suite.envs.quadcopter.physics.dynamics import Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody
from rlbench_suite.envs.quadcopter.tasks import gates, waypoints
from rlbench_suite.envs.quadcopter.tasks.with_latency import Delayed

PAGE = Path(__file__).parents[2] / "docs" / "details" / "contexts.md"
COURSE = {"progress": 2.0, "prize": 5.0, "loss": 3.0}
TASKS = {
    "QuadcopterHover-v0": ("position", "attitude", "velocity", "effort"),
    "QuadcopterRecover-v0": ("tilt", "velocity", "angular_velocity"),
    "QuadcopterWaypoints-v0": tuple(COURSE),
    "QuadcopterGates-v0": tuple(COURSE),
    "QuadcopterLand-v0": tuple(COURSE),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path))


def task_with_weights(name: str, weights: dict[str, float]) -> Any:
    return card(name, context={"reward": weights}).build()


def vehicle(
    place: Any, turn: Any = (0, 0, 0), velocity: Any = (0, 0, 0), spin: Any = (0, 0, 0)
) -> Quadcopter:
    x, y, z, w = Rotation.from_rotvec(turn).as_quat()
    body = [*place, w, x, y, z, *velocity, *spin]
    return Quadcopter(
        RigidBody(*(np.float32(value) for value in body)), Rotors(*[np.float32(0)] * 4)
    )


def reward_of(
    task: Any, before: Any, after: Any, params: Any = None, action: Any = (0, 0, 0, 0)
) -> float:
    reward = task.reward(before, np.array(action, np.float32), after, None, params)
    assert task.reward_space.contains(np.asarray(reward, np.float32))
    return float(reward)


@pytest.mark.parametrize("term", ["", *TASKS["QuadcopterHover-v0"]])
def test_hover_pays_by_its_weights(term: str) -> None:
    """All weights are others than the shipped ones, or all but one are zero."""
    context_weights = {"position": 2.0, "attitude": 3.0, "velocity": 0.3, "effort": 0.2}
    weights = {
        name: weight if term in ("", name) else 0.0 for name, weight in context_weights.items()
    }
    task, rng = task_with_weights("QuadcopterHover-v0", weights), np.random.default_rng(0)
    place, turn, velocity = rng.uniform(-0.5, 0.5, (3, 3))
    action = rng.uniform(-1, 1, 4)
    penalties = {
        "position": place @ place,
        "attitude": np.sin(0.5 * np.linalg.norm(turn)) ** 2,
        "velocity": velocity @ velocity,
        "effort": ((action - SHIPPED.hover_action) ** 2).sum(),
    }
    after = vehicle(place, turn, velocity)
    cost = sum(weights[name] * penalty for name, penalty in penalties.items())
    assert reward_of(task, after, after, action=action) == pytest.approx(np.exp(-cost), rel=1e-5)
    assert task.card.scores() == {}  # those of other weights do not count


@pytest.mark.parametrize("term", ["", *TASKS["QuadcopterRecover-v0"]])
def test_recovery_pays_by_its_weights(term: str) -> None:
    context_weights = {"tilt": 1.0, "velocity": 0.5, "angular_velocity": 0.1}
    weights = {
        name: weight if term in ("", name) else 0.0 for name, weight in context_weights.items()
    }
    task, rng = task_with_weights("QuadcopterRecover-v0", weights), np.random.default_rng(1)
    turn, velocity, spin = rng.uniform(-1, 1, (3, 3))
    penalties = {
        "tilt": 1 - Rotation.from_rotvec(turn).apply([0, 0, 1])[2],
        "velocity": velocity @ velocity,
        "angular_velocity": spin @ spin,
    }
    after = vehicle((0, 0, 6), turn, velocity, spin)
    cost = sum(weights[name] * penalty for name, penalty in penalties.items())
    assert reward_of(task, after, after) == pytest.approx(np.exp(-cost), rel=1e-5)


@pytest.mark.parametrize("name", ["Waypoints-v0", "Gates-v0"])
def test_courses_pay_by_their_weights(name: str) -> None:
    task = task_with_weights(f"Quadcopter{name}", COURSE)
    x, zero = np.array([3.0, 6.0, 0.0, 0.0, 0.0, 0.0], np.float32), np.zeros(6, np.float32)
    if name == "Gates-v0":
        params: Any = gates.Track(None, x, zero, zero, zero)
        lost = gates.LOST_DISTANCE

        def state(moving: Quadcopter, done: int, hit: bool = False) -> Any:
            return gates.State(moving, np.int32(done), np.bool_(hit))

        crashed = state(vehicle((2.5, 0, 0)), 0, hit=True)
    else:
        params, lost = waypoints.Tour(None, x, zero, zero), waypoints.LOST_DISTANCE

        def state(moving: Quadcopter, done: int, hit: bool = False) -> Any:
            return waypoints.State(moving, np.int32(done))

        crashed = state(vehicle((2.5, 0, 0), spin=(40, 0, 0)), 0)
    away = state(vehicle((2.6, 0.3, 0)), 0)
    assert reward_of(task, away, state(vehicle((2.5, 0, 0)), 0), params) == pytest.approx(
        2 * (0.5 - 0.5), abs=1e-5
    )
    assert reward_of(task, away, state(vehicle((2.7, 0, 0.4)), 0), params) == pytest.approx(
        0, abs=1e-5
    )
    assert reward_of(task, away, state(vehicle((2.8, 0, 0)), 0), params) == pytest.approx(
        2 * (0.5 - 0.2), rel=1e-4
    )
    assert reward_of(task, away, state(vehicle((2.9, 0, 0)), 1), params) == pytest.approx(
        2 * (0.5 - 0.1) + 5, rel=1e-4
    )
    assert reward_of(task, away, crashed, params) == pytest.approx(-3 * (lost - 0.5), rel=1e-5)
    there = state(vehicle((3, 0, 0)), 0)  # the worst that can happen
    assert reward_of(task, there, crashed, params) == pytest.approx(task.reward_space.low, rel=1e-5)


def test_a_landing_pays_by_its_weights() -> None:
    task = task_with_weights("QuadcopterLand-v0", COURSE)
    above = vehicle((0.3, 0, 0.4))
    assert reward_of(task, above, vehicle((0, 0, 0.4))) == pytest.approx(2 * (0.5 - 0.4), rel=1e-5)
    soft = vehicle((0.1, 0, 0.01), (0.1, 0, 0), (0.2, 0, 0))
    prize = 5 * np.exp(-((0.2 / 0.5) ** 2) - (0.1 / np.radians(20)) ** 2 - (0.1 / 0.3) ** 2)
    assert reward_of(task, above, soft) == pytest.approx(prize - 3 * (3 - 0.5), rel=1e-5)
    assert reward_of(task, above, vehicle((0.3, 0, 2.6))) == pytest.approx(-3 * (3 - 0.5), rel=1e-5)
    corner = vehicle((2, 2, 2.5))  # farther from the pad than an end counts as
    assert reward_of(task, corner, vehicle((2.1, 2, 2.5))) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("name", TASKS)
def test_weights_are_shown_with_their_present_values_and_named_on_the_page(name: str) -> None:
    shipped: Any = card(name).build()
    terms = [
        c.name.removeprefix("reward.") for c in shipped.constants() if c.name.startswith("reward.")
    ]
    assert tuple(terms) == TASKS[name]
    reweighed = task_with_weights(name, {terms[0]: 7.0})
    assert [c.low for c in reweighed.constants() if c.name == f"reward.{terms[0]}"] == [7.0]
    page = PAGE.read_text()
    assert all(f"`{term}`" in page for term in terms)


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        (
            "QuadcopterHover-v0",
            {"position": -1},
            "reward.position must be at least 0 and at most 1e+06, got -1",
        ),
        (
            "QuadcopterHover-v0",
            {"effort": 1e39},
            "reward.effort must be at least 0 and at most 1e+06",
        ),
        ("QuadcopterLand-v0", {"prise": 1}, "Did you mean 'reward.prize'?"),
        ("QuadcopterTrajectory-v0", {"error": 1}, "Unknown constant 'reward'"),
        ("QuadcopterHoverRates-v0", {"position": 1}, "takes no context"),
    ],
)
def test_weights_that_make_no_sense_are_refused(
    name: str, weights: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        task_with_weights(name, weights)
    assert message in str(caught.value)


def test_a_late_flight_is_paid_for_the_command_that_arrives() -> None:
    weights = {"position": 0.0, "attitude": 0.0, "velocity": 0.0, "effort": 2.0}
    task, at = task_with_weights("QuadcopterHover-v0?latency=10", weights), vehicle((0, 0, 0))
    arriving = (np.float32(0.5),) * 4
    before, after = (Delayed(at, (commands,)) for commands in (arriving, (np.float32(0),) * 4))
    reward = reward_of(task, before, after, action=(-1, -1, -1, -1))
    assert reward == pytest.approx(np.exp(-2 * 4 * (0.5 - SHIPPED.hover_action) ** 2), rel=1e-5)
