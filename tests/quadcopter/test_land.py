"""Landing: what the end is worth, and that the ground is felt."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.tasks import land

TEST = ContextSource(np.int32(1), np.int32(-1))
DOWN = 0.012
"""m: just lower than the legs."""


@pytest.fixture(scope="module")
def task() -> Any:
    return card("QuadcopterLand-v0").build()


@pytest.fixture(scope="module")
def start(task: Any) -> Any:
    return jax.device_get(jax.jit(lambda s: begin(task, s, 0, TEST)[0])(seed_key(0)))


def state_at(start: Any, **fields: float) -> Any:
    still = dict.fromkeys(start.state.body._fields, 0.0) | {"qw": 1.0} | fields
    return start.state._replace(
        body=type(start.state.body)(**{k: np.float32(v) for k, v in still.items()})
    )


@pytest.mark.parametrize(
    ("fields", "prize", "success"),
    [
        ({}, 12.0, True),
        ({"vz": -0.25}, 12 * np.exp(-0.25), True),
        ({"vz": -0.5}, 12 * np.exp(-1), False),
        ({"x": 0.1}, 12 * np.exp(-1 / 9), True),
        ({"y": -0.3}, 12 * np.exp(-1), False),
        ({"vz": -5.0}, 0.0, False),
    ],
)
def test_touch_down_is_worth_what_the_table_says(
    task: Any, start: Any, fields: dict[str, float], prize: float, success: bool
) -> None:
    before, after = state_at(start, z=0.5), state_at(start, z=DOWN, **fields)
    assert task.terminal(after, None, start.params)
    reward = float(task.reward(before, np.zeros(4, np.float32), after, None, start.params))
    assert reward == pytest.approx(0.5 - 3 + prize, abs=1e-4)
    assert bool(task.info(after, start.params)["success"]) is success
    assert ("landed" if success else "crash") in task.why_over(
        after, start.params, task.info(after, start.params)
    )


def test_a_tilted_vehicle_touches_with_its_lowest_rotor(task: Any, start: Any) -> None:
    tilt = np.radians(30)
    turned = {"qw": np.cos(tilt / 2), "qx": np.sin(tilt / 2)}
    lowest = 0.028 * np.sin(tilt)
    assert task.terminal(state_at(start, z=lowest + 0.0120, **turned), None, start.params)
    assert not task.terminal(state_at(start, z=lowest + 0.0130, **turned), None, start.params)
    assert not task.info(state_at(start, z=lowest, **turned), start.params)["success"]


def test_in_the_air_only_progress_pays_and_success_needs_the_ground(task: Any, start: Any) -> None:
    action = np.zeros(4, np.float32)
    there = (state_at(start, x=0.3, z=0.4), state_at(start, z=1.0))
    back = (state_at(start, z=1.0), state_at(start, x=0.3, z=0.4))
    forth = float(task.reward(*(there[0], action, there[1]), None, start.params))
    assert forth == pytest.approx(0.5 - 1.0, abs=1e-6)
    assert forth + float(
        task.reward(*(back[0], action, back[1]), None, start.params)
    ) == pytest.approx(0, abs=1e-6)
    assert not task.info(state_at(start, z=0.02), start.params)["success"]


def test_the_end_costs_the_same_however_a_flight_fails(task: Any, start: Any) -> None:
    action = np.zeros(4, np.float32)
    before = state_at(start, z=1.0)
    for fields in (
        {"z": 2.6},
        {"x": 2.1, "z": 1.0},
        {"z": 0.3, "wx": 40.0},
        {"z": DOWN, "vz": -4.0},
    ):
        end = state_at(start, **fields)
        assert task.terminal(end, None, start.params)
        assert float(task.reward(before, action, end, None, start.params)) == pytest.approx(
            1.0 - 3.0, abs=1e-4
        )


def test_the_ground_carries_a_part_of_the_weight(task: Any, start: Any) -> None:
    """At hover speed near the ground the first step accelerates upwards.

    The acceleration is g times the closed form.
    """
    params = start.params
    hover = np.sqrt(params.airframe.inertia.mass * 9.81 / (4 * params.airframe.thrust_coefficient))
    action = np.full(4, 2 * hover / (21702 * 2 * np.pi / 60) - 1, np.float32)
    state = state_at(start, z=0.06)
    end = task.transition(
        state._replace(rotors=type(state.rotors)(*[np.float32(hover)] * 4)), action, None, params
    )
    expected = 9.81 * float(params.ground) * (2.31348e-2 / (4 * 0.06)) ** 2
    assert float(end.body.vz) / 0.01 == pytest.approx(expected, rel=0.02)


def test_without_knowing_the_ground_effect_the_reference_floats(task: Any) -> None:
    """The cushion matters: the same player, told of none, is still in the air after six seconds."""

    class Ignorant(land.LandingPilot):
        def act(self, memory: Any, view: Any, key: Any) -> Any:
            none = view.params._replace(ground=0.0 * view.params.ground)
            return super().act(memory, view._replace(params=none), key)

    pilot = reference_player(task)
    flights = play(task, Ignorant(*pilot), range(32), split="test")
    assert flights.info["success"].mean() < 0.5
