"""Trajectories: paths are what their names say, previews show where the reference will be."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.tasks import trajectory
from rlbench_suite.envs.quadcopter.tasks.trajectory import PREVIEW

TEST = ContextSource(np.int32(1), np.int32(-1))


@pytest.fixture(scope="module")
def task() -> Any:
    return card("QuadcopterTrajectory-v0").build()


@pytest.fixture(scope="module")
def starts(task: Any) -> Any:
    seeds = np.stack([seed_key(s) for s in range(600)])
    return jax.device_get(jax.jit(jax.vmap(lambda s: begin(task, s, 0, TEST)[0]))(seeds))


def entry(tree: Any, i: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[i], tree)


def sample_positions(path: Any, times: np.ndarray) -> np.ndarray:
    """Places ``(times, 3)`` at float64, from the definition."""
    return np.stack(
        [float(a.amplitude) * np.sin(float(a.rate) * times + float(a.phase)) for a in path], 1
    )


def test_each_shape_is_as_frequent_and_what_its_name_says(starts: Any) -> None:
    counts = {"eight": 0, "helix": 0, "lissajous": 0}
    times = np.linspace(0, 10, 50)
    for i in range(600):
        path = entry(starts.params.path, i)
        x, y, _ = sample_positions(path, times).T
        if path.z.amplitude == 0:
            counts["eight"] += 1
            a = float(path.x.amplitude)
            # Gerono: x^4 = a^2 (x^2 - y^2), with y = a / 2 sin(2 w t) = x sqrt(1 - x^2 / a^2).
            np.testing.assert_allclose(x**4, a**2 * (x**2 - y**2), atol=1e-5)
        elif path.z.rate == pytest.approx(path.x.rate / 8):
            counts["helix"] += 1
            np.testing.assert_allclose(np.hypot(x, y), float(path.x.amplitude), rtol=1e-5)
        else:
            counts["lissajous"] += 1
            assert path.y.amplitude == path.x.amplitude
    assert min(counts.values()) > 160, counts


def test_speed_never_passes_the_top_speed_and_derivatives_are_derivatives(starts: Any) -> None:
    times, step = np.linspace(0, 20, 2000), 1e-5
    for i in range(100):
        path = entry(starts.params.path, i)
        velocity = (sample_positions(path, times + step) - sample_positions(path, times - step)) / (
            2 * step
        )
        assert np.linalg.norm(velocity, axis=1).max() <= trajectory.TOP_SPEED + 1e-4
        assert np.linalg.norm(velocity, axis=1).max() > 0.4
        second = (
            sample_positions(path, times + 1e-3)
            - 2 * sample_positions(path, times)
            + sample_positions(path, times - 1e-3)
        ) / 1e-6
        for axis, (v, a) in enumerate(zip(velocity.T, second.T, strict=True)):
            np.testing.assert_allclose(path[axis].velocity(times), v, atol=2e-4)
            np.testing.assert_allclose(path[axis].acceleration(times), a, atol=2e-4)


def test_start_is_beside_the_reference_and_as_fast(starts: Any) -> None:
    body, path = starts.state.vehicle.body, starts.params.path
    for name, axis in zip("xyz", path, strict=True):
        offset = getattr(body, name) - axis.amplitude * np.sin(axis.phase)
        assert 0.09 < np.abs(offset).max() <= 0.1 + 1e-6
        slip = getattr(body, f"v{name}") - axis.amplitude * axis.rate * np.cos(axis.phase)
        assert 0.09 < np.abs(slip).max() <= 0.1 + 1e-6


def test_preview_shows_where_the_reference_will_be(task: Any, starts: Any) -> None:
    state, params = entry(starts.state, 7), entry(starts.params, 7)
    state = state._replace(steps=np.int32(321))
    observation = np.asarray(task.observation(state, None, params))
    body = state.vehicle.body
    ahead = sample_positions(params.path, 3.21 + np.array(PREVIEW)) - [body.x, body.y, body.z]
    np.testing.assert_allclose(observation[:18].reshape(6, 3), ahead, atol=1e-5)
    slip = (
        sample_positions(params.path, np.array([3.21 + 1e-5]))
        - sample_positions(params.path, np.array([3.21 - 1e-5]))
    )[0] / 2e-5
    np.testing.assert_allclose(observation[18:21], slip - [body.vx, body.vy, body.vz], atol=1e-4)


def test_reward_success_and_loss(task: Any, starts: Any) -> None:
    state, params = entry(starts.state, 3), entry(starts.params, 3)
    x, y, z = sample_positions(params.path, np.zeros(1))[0]

    def state_beside(error: float, mean_error: float = 0.0) -> Any:
        body = state.vehicle.body._replace(
            x=np.float32(x + error), y=np.float32(y), z=np.float32(z)
        )
        return state._replace(
            vehicle=state.vehicle._replace(body=body), mean_error=np.float32(mean_error)
        )

    for error, expected in ((0.0, 1.0), (0.1, 0.5), (0.3, 0.1)):
        reward = task.reward(state, np.zeros(4, np.float32), state_beside(error), None, params)
        assert float(reward) == pytest.approx(expected, abs=1e-4)
    assert bool(task.info(state_beside(0.0, 0.04), params)["success"])
    assert not bool(task.info(state_beside(0.0, 0.06), params)["success"])
    assert not task.terminal(state_beside(1.49), None, params)
    assert task.terminal(state_beside(1.51), None, params)
    assert "1.5 m" in task.why_over(state_beside(1.51), params, {})
    assert (
        not starts.state.mean_error.min() < trajectory.LOST_DISTANCE
    )  # nothing is proven at the start
