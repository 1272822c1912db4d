"""Industrial drives: delay, encoder and torque.

They are compared with shifted commands, counting, and the machine's equation.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.control.cascade import ObservingCascade
from rlbench_suite.envs.motor.parts.instruments import COUNTS_PER_TURN
from rlbench_suite.envs.motor.plants.catalogue import PLANTS
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants

IDS = (
    "PMSMTorqueIndustrial-v0",
    "PMSMSpeedIndustrial-v0",
    "SCIMSpeedIndustrial-v0",
    "PermExDcSpeedIndustrial-v0",
)
TEST = ContextSource(np.int32(1), np.int32(-1))


def begin_episode(task: Any, seed: int = 0) -> Any:
    with precision(task):
        return jax.jit(partial(begin, task))(seed_key(seed), 0, TEST)[0]


def test_conditions_choose_the_id() -> None:
    for name in IDS:
        plain = name.replace("Industrial", "")
        assert (
            gymnasium.make(f"rlsuite/{plain}", conditions="industrial").unwrapped.card.name == name
        )
    with pytest.raises(TypeError, match=r"Unknown keyword 'dead_time'.* delay,"):
        gymnasium.make("rlsuite/PMSMSpeed-v0", dead_time="1")


def test_commands_take_effect_one_period_later() -> None:
    """The plain drive under commands shifted by hand is equal to the bit.

    It is compared operation by operation.
    """
    plain: Any = card("PMSMSpeed-v0").build()
    late: Any = card("PMSMSpeedIndustrial-v0").build()
    episode = begin_episode(late)
    state, params = episode.state, episode.params
    now = state._replace(memories=plain.initial(jax.random.key(0), params).memories)
    actions = np.random.default_rng(0).uniform(-0.2, 0.2, (6, 2)).astype(np.float32)
    shifted = [jnp.stack(state.memories.waiting), *actions[:-1]]
    with jax.disable_jit():
        for action, late_action in zip(actions, shifted, strict=True):
            state = late.transition(state, jnp.asarray(action), jax.random.key(1), params)
            now = plain.transition(now, jnp.asarray(late_action), jax.random.key(1), params)
            assert jax.tree.leaves(state._replace(memories=())) == jax.tree.leaves(
                now._replace(memories=())
            )


def test_speed_is_a_difference_of_counts() -> None:
    """At constant speed the edges up to step n are floor(start + n w T N / 2 pi).

    The shown speed is whole counts.
    """
    task: Any = card("PMSMTorqueIndustrial-v0").build(dtype="float64")
    at = [component.name for component in task.observation_components()].index("speed")
    episode = begin_episode(task, 3)
    state, params, steps = episode.state, episode.params, 200
    quantum, speed = 2 * np.pi / (COUNTS_PER_TURN * 1e-4), float(params.speed)
    start, total = float(state.memories.instruments.fraction), 0.0
    with precision(task):
        step, observe = jax.jit(task.transition), jax.jit(task.observation)
        for n in range(1, steps + 1):
            state = step(state, jnp.zeros(2), jax.random.key(n), params)
            speed_shown = (
                float(observe(state, jax.random.key(n), params)[at]) * task.plant.speed_limit
            )
            total += speed_shown / quantum
            assert speed_shown / quantum == pytest.approx(round(speed_shown / quantum), abs=1e-6)
            assert abs(speed_shown - speed) < quantum
            assert round(total) == np.floor(start + n * speed / quantum)


def test_torque_is_estimated_from_the_shown_currents() -> None:
    """It is 3/2 p (psi + (L_d - L_q) i_d) i_q of the data sheet.

    The machine's own torque is another one.
    """
    task: Any = card("PMSMTorqueIndustrial-v0").build(dtype="float64")
    episode = begin_episode(task)
    electrical = type(episode.state.electrical)(np.float64(-80.0), np.float64(150.0))
    with precision(task):
        state = episode.state._replace(electrical=electrical)
        observation = np.asarray(
            jax.jit(task.observation)(state, jax.random.key(0), episode.params)
        )
        true_torque = float(episode.params.machine.torque(electrical))
    i_d, i_q, torque = 400 * observation[0], 400 * observation[1], 160 * observation[3]
    assert torque == pytest.approx(1.5 * 3 * (66e-3 + (0.37e-3 - 1.2e-3) * i_d) * i_q, rel=1e-12)
    # Four deviations of 4 A.
    assert (abs(i_d + 80) < 20, abs(i_q - 150) < 20, i_d != -80) == (True, True, True)
    assert abs(torque - true_torque) > 1


@pytest.mark.parametrize("machine", PLANTS)
def test_measurements_tell_the_electrical_state(machine: str) -> None:
    """The state that measured quantities tell has these same measured quantities.

    Where there is a flux, they are in its direction.
    """
    plant = PLANTS[machine]()
    with jax.enable_x64(True):
        values = [jnp.float64(0.1 + 0.07 * k) for k in range(len(plant.measured_names))]
        if machine == "DFIM":  # its flux is that of its currents, and gives the direction
            current, sheet = plant.current_limit, plant.nominal
            values[3] = -sheet.mutual_inductance / sheet.rotor_inductance() * values[1]
            linked = sheet.mutual_inductance * values[0] + sheet.rotor_inductance() * values[2]
            values[4] = linked * current / plant.nominal_flux
        electrical = plant.electrical_of(tuple(values), (np.float64(0.6), np.float64(0.8)))
        np.testing.assert_allclose(plant.measure(electrical), values, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["PMSMCurrentFinite-v0?supply=rc&delay=1", "DFIMTorqueFinite-v0", "SCIMSpeed-v0"]
)
def test_exact_instruments_show_the_state(name: str) -> None:
    task: Any = card(name).build(dtype="float64")
    episode = begin_episode(task)
    with precision(task):
        observation = jax.jit(task.observation)(episode.state, jax.random.key(0), episode.params)
        shown_state, state = task.shown_state(observation), episode.state
        for shown_values, true_values in (
            (shown_state, state),
            (shown_state.memories.link, state.memories.link),
        ):
            for field in ("speed", "setpoint", "applied", "voltage"):
                if hasattr(shown_values, field):
                    np.testing.assert_allclose(
                        getattr(shown_values, field), getattr(true_values, field), rtol=1e-12
                    )
        measured = task.plant.measure(shown_state.electrical)
        np.testing.assert_allclose(
            measured, task.plant.measure(state.electrical), rtol=1e-9, atol=1e-12
        )
        if task.delayed:
            assert shown_state.memories.waiting == state.memories.waiting


@pytest.mark.parametrize("name", IDS)
def test_reference_player_needs_the_observation_only(name: str) -> None:
    """The player never trips, and ends near its set point.

    Only a torque that nobody measures is missed now and then.
    """
    task: Any = card(name).build()
    player: Any = reference_player(task)
    assert isinstance(player, ObservingCascade)
    record = play(task, player, range(64))
    assert not record.terminated.any()
    assert record.info["success"].mean() > (0.8 if "Torque" in name else 0.95)
    episode = begin_episode(task)
    observation = task.observation(episode.state, jax.random.key(0), episode.params)
    action, _ = player.act(
        player.initial(episode.params), View(observation, None, None, None), jax.random.key(0)
    )
    assert np.isfinite(action).all()
