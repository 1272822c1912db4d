"""Check flights with latency against commands that are shifted by hand, to the bit.

Observations show the commands that wait, and the noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest

import rlbench_suite  # noqa: F401 - registers the ids
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics.vehicles import CF2P, CF2X, CRAZYFLIE
from rlbench_suite.envs.quadcopter.tasks.latency import INERTIA, UNCERTAIN_SHEET
from rlbench_suite.envs.quadcopter.tasks.with_latency import MOTION_NOISE, PLACE_NOISE

pytestmark = pytest.mark.of_variants


class Unaware(NamedTuple):
    """The player of the flight without latency."""

    pilot: Any

    def initial(self, params: Any) -> Any:
        return self.pilot.initial(params)

    def act(self, memory: Any, view: View, key: Any) -> Any:
        return self.pilot.act(memory, view._replace(state=view.state.inner), key)


@pytest.mark.parametrize(("name", "late"), [("QuadcopterHover-v0", 3), ("QuadcopterGates-v0", 1)])
def test_latency_is_the_same_flight_with_commands_shifted_by_hand(name: str, late: int) -> None:
    steps, rng = 60, np.random.default_rng(0)
    flight = gymnasium.make(f"rlsuite/{name}", latency=f"{10 * late}")
    calm = gymnasium.make(f"rlsuite/{name}")
    observation, _ = flight.reset(seed=5)
    calm_observation, _ = calm.reset(seed=5)
    pending = np.array(flight.unwrapped.episode.state.commands, np.float32)  # type: ignore[attr-defined]
    actions = rng.uniform(0.2, 0.5, (steps, 4)).astype(np.float32)
    shifted = np.concatenate([pending, actions])
    np.testing.assert_array_equal(observation, np.concatenate([calm_observation, pending.ravel()]))
    for step in range(steps):
        observation, reward, ended, *_ = flight.step(actions[step])
        calm_observation, calm_reward, over, *_ = calm.step(shifted[step])
        np.testing.assert_array_equal(
            observation,
            np.concatenate([calm_observation, shifted[step + 1 : step + 1 + late].ravel()]),
        )
        assert (reward, ended) == (calm_reward, over)
        if over:
            break
    assert step > 20


def test_noise_is_that_of_the_docstring_and_of_one_measurement() -> None:
    env: Any = gymnasium.make("rlsuite/QuadcopterTrajectoryLatency-v0")
    env.reset(seed=0)
    task, off = env.unwrapped.task, []
    for _ in range(20):
        for _ in range(8):
            observation, _, over, *_ = env.step(
                np.full(4, task.inner.sheet.hover_action, np.float32)
            )
            calm, params = env.unwrapped.episode.state.inner, env.unwrapped.params
            x, y, z = (
                axis.amplitude * np.sin(axis.rate * 0.01 * calm.steps + axis.phase)
                for axis in params.path
            )
            body = calm.vehicle.body
            off.append(
                [
                    *(np.array([x - body.x, y - body.y, z - body.z]) - observation[:3]),
                    *(observation[30:33] - body[7:10]),
                ]
            )
            assert not over
            # Place and preview come from one measurement: their difference has no noise.
            later = params.path.x.amplitude * np.sin(
                params.path.x.rate * (0.01 * calm.steps + 0.1) + params.path.x.phase
            )
            assert observation[3] - observation[0] == pytest.approx(later - x, abs=1e-5)
        env.reset()
    place, velocity = np.std(np.array(off)[:, :3]), np.std(np.array(off)[:, 3:])
    assert place == pytest.approx(PLACE_NOISE, rel=0.15)  # 480 numbers: 3 % standard error
    assert velocity == pytest.approx(MOTION_NOISE, rel=0.15)


def test_the_inertia_range_contains_the_published_identifications() -> None:
    low, high = INERTIA
    published = [3.85e-6, 1.657171e-5, *(v.inertia.jx for v in (CF2X, CF2P, CRAZYFLIE))]
    assert low < min(published)
    assert max(published) < high
    middle, side = UNCERTAIN_SHEET.nominal.inertia.jx, UNCERTAIN_SHEET.spread.inertia.jx
    assert (middle * (1 - side), middle * (1 + side)) == pytest.approx(INERTIA)


def test_the_reference_survives_20_ms_by_observations_alone() -> None:
    task: Any = card("QuadcopterHoverLatency-v0").build()
    assert task.noisy
    assert task.delay == 2
    record = play(task, reference_player(task), range(128))
    assert record.terminated.mean() < 0.05
    assert record.info["success"].mean() > 0.9


def test_without_the_predictor_the_reference_crashes() -> None:
    task: Any = card("QuadcopterHover-v0", latency="10").build()
    pilot = Unaware(reference_player(task).pilot)  # type: ignore[attr-defined]
    record = play(task, pilot, range(64), limit=200)
    assert record.terminated.mean() > 0.9
