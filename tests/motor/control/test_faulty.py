"""A machine of which a phase breaks: its equations, its detection, and what that saves.

The equations of its three windings are integrated by SciPy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.control.fault_tolerant import FaultTolerant, Suspicion
from rlbench_suite.envs.motor.machines.frames import Phases
from rlbench_suite.envs.motor.machines.open_phase import Currents
from rlbench_suite.envs.motor.tasks.faulty import Broken, from_phase, phases_of
from rlbench_suite.numerics.process import precision

NAMES = ["PMSMTorqueFaulty-v0"]
each = pytest.mark.parametrize("name", NAMES)
THIRDS = 2 * np.pi / 3 * np.arange(3)


def park_matrix(angle: float) -> np.ndarray:
    """Phases to d, q and zero."""
    return 2 / 3 * np.stack([np.cos(angle - THIRDS), -np.sin(angle - THIRDS), np.full(3, 0.5)])


@pytest.mark.parametrize("broken", [0.0, 1.0])
@each
def test_transition_equals_three_windings_by_scipy(name: str, broken: float) -> None:
    """Integrate u = R i + d(L(angle) i + psi(angle))/dt in phases.

    The equation and the current of the open phase are struck out.

    One Runge-Kutta step of 0.1 ms leaves less than 1e-5 of the limits.
    """
    task: Any = card(name).build(dtype="float64")
    with precision(task):
        episode = jax.jit(partial(begin, task))(
            seed_key(2), 0, ContextSource(np.int32(1), np.int32(-1))
        )[0]
    phase, angle, speed = 1, 0.7, 110.0
    params = episode.params._replace(
        machine=episode.params.machine._replace(
            phase=np.float64(phase), onset=np.float64(0.0 if broken else 9.0)
        )
    )
    m = jax.tree.map(float, params.machine)
    current = np.array([30.0, 0.0, -50.0]) if broken else np.array([30.0, -45.0, -50.0])
    currents = Currents(*park_matrix(angle) @ current)
    state = episode.state._replace(
        electrical=Broken(*current, *currents, np.float64(broken), np.float64(0.0)),
        angle=angle,
        speed=speed,
    )
    live = [0, 2] if broken else [0, 1, 2]

    def inductances(angle: float) -> np.ndarray:
        diagonal = np.diag([m.inductance_d, m.inductance_q, m.inductance_zero])
        return np.linalg.inv(park_matrix(angle)) @ diagonal @ park_matrix(angle)

    step, rng, h = jax.jit(task.transition), np.random.default_rng(0), 1e-5
    for k in range(30):
        action = rng.uniform(-0.2, 0.2, 3)
        with precision(task):
            state = step(state, action, jax.random.key(k), params)

        def rate(
            t: float, i: np.ndarray, volts: np.ndarray = 150 * action, start: float = angle
        ) -> np.ndarray:
            at, turning = start + 3 * speed * t, 3 * speed
            change = (inductances(at + h) - inductances(at - h)) / (2 * h) * turning
            induced = -m.magnet_flux * np.sin(at - THIRDS) * turning
            drop = volts - m.resistance * i - change @ i - induced
            slope = np.zeros(3)
            slope[live] = np.linalg.solve(inductances(at)[np.ix_(live, live)], drop[live])
            return slope

        current = solve_ivp(rate, (0, 1e-4), current, "DOP853", rtol=1e-10, atol=1e-10).y[:, -1]
        angle += 3 * speed * 1e-4
    assert float(state.electrical.broken) == broken
    np.testing.assert_allclose([float(i) for i in state.electrical[:3]], current, atol=1e-5 * 400)
    assert np.abs(current[live]).min() > 5


def test_phases_add_up_to_the_neutral_current_and_turn_in_order() -> None:
    phases = phases_of(Currents(-20.0, 70.0, 4.0), 0.4)
    np.testing.assert_allclose(park_matrix(0.4) @ np.array(phases, float), [-20, 70, 4], rtol=1e-6)
    letters = Phases(1.0, 2.0, 3.0)
    turned = [[float(i) for i in from_phase(letters, np.float32(k))] for k in range(3)]
    assert turned == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@each
def test_faulty_is_another_id(name: str) -> None:
    env = gymnasium.make("rlsuite/PMSMTorque-v0", conditions="faulty").unwrapped
    assert env.card.id == f"rlsuite/{name}"
    assert env.action_space.shape == (3,)
    assert env.observation_space.shape == (12,)


@each
def test_a_phase_is_believed_open_after_five_silent_steps_and_for_ever(name: str) -> None:
    player = FaultTolerant.for_task(card(name).build())
    memory = Suspicion(Phases(40.0, -80.0, 10.0), Phases(0, 0, 0))
    for step in range(1, 8):
        memory = memory._replace(steps=player.count_suspicions(memory, Phases(38.0, 1.0, 0.0)))
        assert [int(count) for count in memory.steps] == [0, step, 0]
    memory = memory._replace(steps=player.count_suspicions(memory, Phases(38.0, -80.0, 0.0)))
    assert [int(count) for count in memory.steps] == [0, 8, 0]


class Unaware(FaultTolerant):
    """The same player, without detection."""

    def count_suspicions(self, memory: Suspicion, carried: Phases) -> Phases:
        return memory.steps


@each
def test_the_reference_goes_on_where_one_without_detection_fails(name: str) -> None:
    task, seeds = card(name).build(), range(256)
    tolerant, unaware = (
        play(task, player.for_task(task), seeds) for player in (FaultTolerant, Unaware)
    )
    assert tolerant.info["success"].mean() >= 0.94
    assert not tolerant.terminated.any()
    broken = tolerant.info["broken"] > 0
    assert 0.8 < broken.mean() < 1
    assert unaware.info["success"][broken].mean() < 0.75
    # No false alarm: where nothing breaks both play the same.
    np.testing.assert_array_equal(tolerant.total[~broken], unaware.total[~broken])
    chance = replay(
        task,
        np.random.default_rng(0).uniform(-1, 1, tolerant.actions.shape).astype(np.float32),
        seeds,
    )
    assert np.quantile(tolerant.total, 0.05) > np.quantile(chance.total, 0.95)
