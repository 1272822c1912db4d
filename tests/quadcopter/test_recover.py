"""Recovery: its starts, reward, success and ends."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics.rigid_body import rotation_matrix
from rlbench_suite.envs.quadcopter.tasks import recover

TEST = ContextSource(np.int32(1), np.int32(-1))


@pytest.fixture(scope="module")
def task() -> Any:
    return card("QuadcopterRecover-v0").build()


@pytest.fixture(scope="module")
def starts(task: Any) -> Any:
    seeds = np.stack([seed_key(s) for s in range(4000)])
    return jax.device_get(jax.jit(jax.vmap(lambda s: begin(task, s, 0, TEST)[0]))(seeds))


def vehicle_at(starts: Any, **fields: float) -> tuple[Any, Any]:
    """One vehicle, level and still at the starting height but for ``fields``, and its context."""
    state, params = jax.tree.map(lambda leaf: leaf[0], (starts.state, starts.params))
    still = dict.fromkeys(state.body._fields, 0.0) | {"qw": 1.0, "z": recover.START_HEIGHT} | fields
    return state._replace(
        body=type(state.body)(**{k: np.float32(v) for k, v in still.items()})
    ), params


def test_starts_reach_upside_down_and_fill_their_ranges(starts: Any) -> None:
    body = starts.state.body
    tilt = np.arccos(np.clip(np.asarray(rotation_matrix(body)[8]), -1, 1))
    assert tilt.max() > np.radians(170)
    angle = 2 * np.arccos(np.clip(body.qw, -1, 1))
    assert angle.mean() == pytest.approx(np.pi / 2, rel=0.03)
    for names, limit in (("vx vy vz", 2.0), ("wx wy wz", 10.0)):
        for name in names.split():
            values = getattr(body, name)
            assert np.abs(values).max() <= limit
            assert values.std() == pytest.approx(limit / np.sqrt(3), rel=0.05)


def test_reward_is_one_when_level_and_still_and_has_the_form_of_the_table(
    task: Any, starts: Any
) -> None:
    def reward(**fields: float) -> float:
        state, params = vehicle_at(starts, **fields)
        return float(task.reward(state, np.zeros(4, np.float32), state, None, params))

    assert reward() == 1
    assert reward(qw=0.0, qx=1.0) == pytest.approx(np.exp(-4), rel=1e-5)
    # Any heading will do.
    assert reward(qw=np.cos(0.5), qz=np.sin(0.5)) == pytest.approx(1, rel=1e-6)
    assert reward(vx=1.0, vz=-2.0) == pytest.approx(np.exp(-1), rel=1e-5)
    assert reward(wy=10.0) == pytest.approx(np.exp(-1), rel=1e-5)


def test_success_and_ends(task: Any, starts: Any) -> None:
    def is_success(**fields: float) -> bool:
        return bool(task.info(*vehicle_at(starts, **fields))["success"])

    assert is_success()
    assert is_success(x=11.0, z=1.0, vx=0.19, wz=0.4)
    assert not is_success(vx=0.21)
    assert not is_success(wx=0.51)
    assert not is_success(qw=np.cos(np.radians(2.6)), qy=np.sin(np.radians(2.6)))
    for fields, words in (
        ({"z": -0.01}, "ground"),
        ({"x": 12.1}, "12 m"),
        ({"z": 12.1}, "above"),
        ({"wx": 36.0}, "spin"),
    ):
        state, params = vehicle_at(starts, **fields)
        assert task.terminal(state, None, params)
        assert words in task.why_over(state, params, {})
    assert not task.terminal(*vehicle_at(starts)[:1], None, vehicle_at(starts)[1])


def test_from_exactly_upside_down_the_reference_turns_over(task: Any, starts: Any) -> None:
    """An error on SO(3) vanishes at half a turn, where this test starts.

    A thousandth of a degree tells which way.
    """
    from rlbench_suite.core.policy import View

    state, params = vehicle_at(starts, qw=1e-5, qx=1.0)
    player = recover.RecoveryControl.for_task(task)

    def control(state: Any, _: None) -> tuple[Any, None]:
        action, _ = player.act((), View(None, None, state, params), None)
        return task.transition(state, action, None, params), None

    end = jax.device_get(jax.jit(lambda s: jax.lax.scan(control, s, length=400)[0])(state))
    assert bool(task.info(end, params)["success"])
    assert end.body.z > 3
