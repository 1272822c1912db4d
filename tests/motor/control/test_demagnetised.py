"""A machine whose magnets fail: its equations by SciPy, and what shows of the loss.

Observing the loss is worth something.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.control.flux_observing import FluxObserving
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
NAME = "PMSMTorqueDemagnetised-v0"


@pytest.mark.parametrize("onset", [0.0, 9.0])
def test_transition_equals_the_equations_by_scipy(onset: float) -> None:
    """L di/dt = u - R i - w x psi, written out, with the flux that is left."""
    task: Any = card(NAME).build(dtype="float64")
    with precision(task):
        episode = jax.jit(partial(begin, task))(
            seed_key(2), 0, ContextSource(np.int32(1), np.int32(-1))
        )[0]
    params = episode.params._replace(
        machine=episode.params.machine._replace(onset=np.float64(onset))
    )
    m = jax.tree.map(float, params.machine)
    flux_share = 1.0 if onset else 1 - m.loss
    state = episode.state._replace(
        speed=np.float64(120.0),
        electrical=episode.state.electrical._replace(flux_share=np.float64(flux_share)),
    )
    step = jax.jit(task.transition)
    rng = np.random.default_rng(0)
    current = np.zeros(2)
    electrical = 360.0
    for k in range(30):
        action = rng.uniform(-0.25, 0.25, 2)
        with precision(task):
            state = step(state, action, jax.random.key(k), params)
        u_d, u_q = 300 / np.sqrt(3) * action

        def rate(t: float, i: np.ndarray, u_d: float = u_d, u_q: float = u_q) -> list[float]:
            return [
                (u_d - m.resistance * i[0] + electrical * m.inductance_q * i[1]) / m.inductance_d,
                (
                    u_q
                    - m.resistance * i[1]
                    - electrical * (m.inductance_d * i[0] + m.magnet_flux * flux_share)
                )
                / m.inductance_q,
            ]

        current = solve_ivp(rate, (0, 1e-4), current, "DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    assert float(state.electrical.flux_share) == pytest.approx(flux_share, abs=1e-15)
    np.testing.assert_allclose([state.electrical.d, state.electrical.q], current, atol=1e-5 * 400)
    torque = (
        4.5
        * (m.magnet_flux * flux_share + (m.inductance_d - m.inductance_q) * current[0])
        * current[1]
    )
    assert float(task.controlled_values(state, params)[0]) == pytest.approx(torque, abs=2e-3)
    assert abs(current).min() > 5


def test_the_flux_falls_once_when_it_is_said_to_and_never_comes_back() -> None:
    env = gymnasium.make(f"rlsuite/{NAME}")
    losses = []
    for seed in range(20):
        _, info = env.reset(seed=seed)
        machine = env.unwrapped.params.machine
        fluxes, over = [info["flux"]], False
        while not over:
            _, _, terminated, truncated, info = env.step(np.zeros(2, np.float32))
            over = terminated or truncated
            fluxes.append(info["flux"])
        if terminated:  # a short circuit at speed
            continue
        changes = np.flatnonzero(np.diff(fluxes))
        assert len(changes) == 1
        assert abs((changes[0] + 1) * 1e-4 - machine.onset) < 1.01e-4
        assert fluxes[-1] / fluxes[0] == pytest.approx(1 - machine.loss, rel=1e-5)
        losses.append(float(machine.loss))
    assert len(losses) > 5
    assert 0.1 <= min(losses) < max(losses) <= 0.6


def test_the_loss_shows_in_what_is_privileged_only() -> None:
    task: Any = card(NAME).build()
    key = jax.random.key(0)
    episode = jax.jit(partial(begin, task))(
        seed_key(2), 0, ContextSource(np.int32(0), np.int32(-1))
    )[0]
    electrical = episode.state.electrical._replace(d=np.float32(-40.0), q=np.float32(90.0))
    intact, weak = (
        episode.state._replace(electrical=electrical._replace(flux_share=np.float32(flux_share)))
        for flux_share in (1.0, 0.5)
    )
    observations = [task.observation(state, key, episode.params) for state in (intact, weak)]
    np.testing.assert_array_equal(*observations)
    assert task.describe(intact, episode.params) == task.describe(weak, episode.params)
    np.testing.assert_array_equal(
        task.draw(intact, episode.params), task.draw(weak, episode.params)
    )
    privileged = [np.asarray(task.privileged(state, episode.params)) for state in (intact, weak)]
    assert privileged[1][0] == pytest.approx(privileged[0][0] / 2)
    assert privileged[1][1] < 0.8 * privileged[0][1]


class Trusting(FluxObserving):
    """Takes the magnets for whole."""

    MIN_TELLING_SPEED = 1e9

    @classmethod
    def for_task(cls, task: Any) -> Trusting:
        return cls(task)


def test_observing_the_flux_is_worth_it() -> None:
    task = card(NAME).build()
    observing, trusting = (
        play(task, kind.for_task(task), range(200)) for kind in (FluxObserving, Trusting)
    )
    assert not observing.terminated.any()
    assert observing.total.mean() > 1.05 * trusting.total.mean()
    assert observing.info["error"].mean() < 0.7 * trusting.info["error"].mean()
    assert observing.info["success"].mean() > trusting.info["success"].mean() + 0.2


def test_it_plays_no_other_drive() -> None:
    with pytest.raises(TypeError, match="drives whose magnets fail"):
        FluxObserving.for_task(card("PMSMTorque-v0").build())
