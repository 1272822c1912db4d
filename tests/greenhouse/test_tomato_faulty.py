"""Tomatoes with sensors that fail: the same seasons, readings by hand, and a grower's doubts.

The frequency of faults is tested too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.greenhouse.players.doubtful_grower import DoubtfulGrower
from rlbench_suite.envs.greenhouse.players.tomato_grower import TomatoGrower
from rlbench_suite.envs.greenhouse.tasks.tomato_sensors import Fault, Readings

pytestmark = pytest.mark.of_variants
STEPS = 240
BEGIN = 60
END = 180
DRIFT = np.float32(0.05)
"""% a step"""


@pytest.fixture(scope="module")
def task() -> Any:
    return card("TomatoFaulty-v0").build()


@pytest.fixture(scope="module")
def readings(task: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return five days with a silent, a stuck and a drifting sensor.

    They are what is observed, what sound sensors show, and how many fail.
    """
    plain = card("Tomato-v0").build()
    source = ContextSource(np.int32(1), np.int32(-1))
    actions = np.random.default_rng(0).uniform(0, (0.8, 0.5, 0.3), (STEPS, 3)).astype(np.float32)

    def days(task: Any, params: Any, state: Any) -> Any:
        def step(state: Any, action: Any) -> Any:
            state = task.transition(state, action, jax.random.key(1), params)
            sound = plain.observation(state, None, params)
            return state, (
                task.observation(state, None, params),
                sound,
                task.info(state, params).get("failing", 0),
            )

        return jax.lax.scan(step, state, actions)[1]

    def simulate(key: Any) -> Any:
        episode = begin(task, key, 0, source)[0]
        span = jnp.int32(BEGIN), jnp.int32(END)
        silent, stuck, drifts = (True, False, 0.0), (False, True, 0.0), (False, False, DRIFT)
        faults = Readings(
            *(Fault(*span, *map(jnp.asarray, kind)) for kind in (silent, stuck, drifts))
        )
        return days(task, episode.params._replace(faults=faults), episode.state)

    observed, sound, failing = jax.jit(simulate)(seed_key(3))
    plain_episode = begin(plain, seed_key(3), 0, source)[0]
    np.testing.assert_array_equal(
        jax.jit(partial(days, plain))(plain_episode.params, plain_episode.state)[0], sound
    )
    return np.asarray(observed), np.asarray(sound), np.asarray(failing)


def test_readings_by_hand(readings: Any) -> None:
    observed, sound, failing = readings
    steps = np.arange(1, STEPS + 1)
    fails = (steps >= BEGIN) & (steps < END)
    np.testing.assert_array_equal(failing, 3 * fails)
    sound_columns = [i for i in range(23) if i not in (4, 5, 6)]
    np.testing.assert_array_equal(observed[:, sound_columns], sound[:, sound_columns])
    np.testing.assert_array_equal(observed[~fails, 4:7], sound[~fails, 4:7])
    np.testing.assert_array_equal(observed[:, 23:], np.stack([fails, 0 * fails, 0 * fails], 1))
    assert (observed[fails, 4] == 0).all()
    assert (observed[fails, 5] == observed[BEGIN - 2, 5]).all()  # the reading of the step before
    drifted = np.minimum(1.0, sound[:, 6] + 0.01 * DRIFT * (steps - BEGIN))
    assert drifted[fails].max() > sound[fails, 6].min() + 0.05
    # A reading above 100 % is clipped, after the error is added to one that is clipped itself.
    np.testing.assert_allclose(observed[fails, 6], drifted[fails], rtol=1e-5)


def test_faults_are_drawn_as_the_table_says(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 5000)
    params = jax.device_get(jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(0)))
    plain = jax.jit(jax.vmap(card("Tomato-v0").build().sample_params, (0, None)))(keys, np.int32(0))
    for values, plain_values in zip(
        params.site + params.prices, plain.site + plain.prices, strict=True
    ):
        np.testing.assert_array_equal(values, plain_values)
    for fault, largest_error in zip(params.faults, (4.0, 400.0, 12.0), strict=True):
        steps = fault.end - fault.begin
        np.testing.assert_allclose([fault.begin.min(), fault.begin.max()], [0, 7680], atol=20)
        np.testing.assert_allclose([steps.min(), steps.max()], [48, 672], atol=4)
        drifts = fault.drift != 0
        assert (fault.silent.astype(int) + fault.stuck + drifts == 1).all()
        # A third has a standard error of 0.0067.
        np.testing.assert_allclose([fault.silent.mean(), fault.stuck.mean()], 1 / 3, atol=0.03)
        error = (fault.drift * steps)[drifts]
        np.testing.assert_allclose(
            [error.min(), error.max()], [-largest_error, largest_error], rtol=0.02
        )
    begins = np.stack([fault.begin for fault in params.faults])
    assert np.abs(np.corrcoef(begins) - np.eye(3)).max() < 0.05


def test_grower_assumes_what_is_missing_or_repeated() -> None:
    player, plain = DoubtfulGrower(), TomatoGrower()
    sunny = (
        jnp.zeros(26)
        .at[jnp.array([3, 4, 5, 6, 8, 9, 20])]
        .set(jnp.array([1, 1, 0.8, 0.7, 1, 0.5, 1.0]))
    )

    def acts(observation: jax.Array, memory: Any) -> np.ndarray:
        return np.asarray(player.act(memory, View(observation, None, None, None), None)[0])  # type: ignore[arg-type]

    fresh = player.initial(None)  # type: ignore[arg-type]
    assumed = sunny.at[4].set((20 + 0.025 * 500) / 20).at[5].set(0.7).at[6].set(0.858)
    assumed_action = np.asarray(plain.act((), View(assumed, None, None, None), None)[0])  # type: ignore[arg-type]
    np.testing.assert_allclose(
        acts(sunny.at[4:7].set(0).at[23:].set(1), fresh), assumed_action, rtol=1e-5
    )
    np.testing.assert_allclose(acts(sunny, Readings(*sunny[4:7])), assumed_action, rtol=1e-5)
    assert assumed_action[1] > 0.2  # the vents open in the sun, though no temperature is known
    sunny_action = np.asarray(plain.act((), View(sunny, None, None, None), None)[0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(acts(sunny, fresh), sunny_action)


def test_the_sun_in_what_is_assumed_saves_crops(task: Any) -> None:
    players = DoubtfulGrower(), DoubtfulGrower(sunshine=0.0)
    with_sun, without = (play(task, player, range(24)) for player in players)
    assert (with_sun.length == 7680).all()
    assert (without.length < 7680).sum() >= 2
    assert with_sun.total.mean() > 1.05 * without.total.mean()
