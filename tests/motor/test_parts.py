"""The contract of drives with chosen parts.

Many parts are tested at once on few ids, because compiling takes the time.
"""

from __future__ import annotations

import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlbench_suite.adapters.entry_points import make, make_vec
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card, cards
from rlbench_suite.core.task_card import load

pytestmark = pytest.mark.of_variants

COMBINATIONS = (
    "PMSMCurrent-v0?setpoint=switched&supply=rc&interlocking=0.01&solver=exact",
    "PMSMTorque-v0?setpoint=sinus&supply=ac1&delay=1&load=profile&noise=0.01",
    "PMSMPosition-v0?setpoint=sawtooth&interlocking=0.03&load=ornstein-uhlenbeck",
    "PermExDcSpeed-v0?converter=2qc&setpoint=step&supply=ac3&delay=1&load=constant&solver=euler&noise=0.03",
    "ShuntDcTorque-v0?converter=1qc",
    "SCIMCurrent-v0?setpoint=laplace&interlocking=0.03&load=profile&solver=euler",
    "PMSMCurrentFinite-v0?setpoint=triangle&supply=rc&delay=1&interlocking=0.03&noise=0.01",
)
"""Every choice of every setting is in one of them."""


@pytest.mark.parametrize("name", COMBINATIONS)
def test_contract(name: str) -> None:
    """Gymnasium's checks pass, and observations are finite and inside their space.

    The vector environment has the bits of the single one.
    """
    env = make(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checker dislikes bounds that are not one
        check_env(env)
    env.reset(seed=0)
    words, settings = env.task.describe(env.episode.state, env.params), env.card.settings
    assert ("Link 1.0000 of nominal" in words) == (settings["supply"] != "ideal")
    assert ("Waiting: " in words) == (settings["delay"] == "1")
    env.action_space.seed(5)
    batch = make_vec(name, 2, autoreset_mode="SameStep")
    assert batch.single_observation_space == env.observation_space
    observation, many = env.reset(seed=5)[0], batch.reset(seed=[4, 5])[0]
    np.testing.assert_array_equal(many[1], observation)
    for _ in range(150):
        action = env.action_space.sample()
        observation, reward, terminated, _, _ = env.step(action)
        many, rewards, over, _, info = batch.step(np.stack([action, action]))
        assert observation in env.observation_space
        assert np.isfinite(observation).all()
        assert 0 <= reward <= 1
        np.testing.assert_array_equal(info["final_obs"][1] if over[1] else many[1], observation)
        assert (rewards[1], over[1]) == (reward, terminated)
        if terminated:
            break


@pytest.mark.parametrize("name", COMBINATIONS)
def test_reference_player_never_trips(name: str) -> None:
    """The player also ends near its set points more often than not.

    How often depends on the worst chosen part.
    """
    task = card(name).build()
    record = play(task, load(task.card.reference).for_task(task), range(64))
    assert not record.terminated.any()
    assert record.info["success"].mean() > 0.8


@pytest.mark.parametrize(
    ("options", "remembers"),
    [
        ({}, ()),
        ({"setpoint": "sinus"}, ("setpoint",)),
        ({"supply": "rc"}, ("link",)),
        ({"supply": "ac3", "delay": "1"}, ("link", "waiting")),
        ({"load": "profile"}, ("load",)),
        ({"noise": "0.01", "interlocking": "0.03", "solver": "euler"}, ()),
    ],
)
def test_only_chosen_parts_remember(options: dict[str, str], remembers: tuple[str, ...]) -> None:
    """A part that is absent adds nothing to the state.

    One that remembers fills its own field only.
    """
    task = card("PMSMTorque-v0", **options).build()
    key = jax.random.key(0)
    state = jax.eval_shape(lambda: task.initial(key, task.sample_params(key, np.int32(0))))
    assert (
        tuple(name for name, memory in state.memories._asdict().items() if jax.tree.leaves(memory))
        == remembers
    )


def test_every_choice_is_tried_and_a_wrong_one_refused() -> None:
    tried = {pair for name in COMBINATIONS for pair in name.partition("?")[2].split("&")}
    drives = [drive for drive in cards().values() if drive.family == "motor"]
    settings = [item for drive in drives for item in drive.choices.items()]
    offered = {f"{setting}={choice}" for setting, (_, *choices) in settings for choice in choices}
    assert offered == tried
    with pytest.raises(ValueError, match="Did you mean 'sinus'"):
        gymnasium.make("rlsuite/PMSMTorque-v0", setpoint="sinuss")
    with pytest.raises(ValueError, match="Did you mean 'setpoint'"):
        gymnasium.make("rlsuite/PMSMTorque-v0", setpoit="sinus")
    with pytest.raises(
        ValueError, match="PMSMTorqueGem-v0 got an unexpected keyword argument 'setpoint'"
    ):
        gymnasium.make("rlsuite/PMSMTorque-v0", gem_compat=True, setpoint="sinus")
