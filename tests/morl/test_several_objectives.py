"""Tasks whose reward is shown as several objectives: the same episodes, and what they take."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.baselines.scripted import RandomAgent
from rlbench_suite.checking.checks import findings
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card

OBJECTIVES = {
    "Lettuce-v0": ("reward", "cost", "effort"),
    "PMSMTorque-v0": ("reward", "cost", "effort"),
    "Highway-v0": ("reward", "cost"),
    "QuadcopterHover-v0": ("reward", "effort"),
    "Routing-v0": ("reward", "time"),
    "EcoDrivingCity-v0": ("reward", "cost", "effort"),
}
"""A task of each family that has a view, and its objectives; the last one has many agents."""


@pytest.fixture(params=OBJECTIVES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_same_actions_give_the_same_episodes_and_the_prices_of_their_definitions(
    name: str,
) -> None:
    plain = card(name).build()
    task = card(name, objectives="several").build()
    assert task.card.objectives == OBJECTIVES[name]
    seeds = range(4)
    record = play(task, RandomAgent().policy(task), seeds)
    expected = replay(plain, record.actions, seeds)
    rows = plain.reward_space.shape
    assert record.total.shape == (4, *rows, len(OBJECTIVES[name]))
    assert np.array_equal(record.total[..., 0], expected.total)
    assert np.array_equal(record.length, expected.length)
    assert np.array_equal(record.cost, expected.cost)
    for measure, values in expected.info.items():
        # A score is a weighted mean of more numbers here, and may differ in its last bit.
        tolerance = 1e-6 if measure == "score" else 0
        assert record.info[measure] == pytest.approx(values, rel=tolerance, abs=0), measure
    for index, price in enumerate(task.card.objectives):
        if price == "cost":
            of_agents = expected.cost.reshape(-1, *(1 for _ in rows))
            assert record.total[..., index] == pytest.approx(
                np.broadcast_to(-of_agents, expected.total.shape), rel=1e-4
            )
        if price == "time":
            assert np.array_equal(record.total[..., index], -record.length)
        if price == "effort":
            assert record.total[..., index] == pytest.approx(
                -efforts(plain, record.actions, record.length), rel=1e-4
            )


def efforts(plain, actions: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the summed effort of each episode, from the definition and in NumPy."""
    space = plain.action_space
    half_range = (space.high.astype(float) - space.low) / 2
    squares = ((actions.astype(float) - plain.noop_action()) / half_range) ** 2
    by_agent = squares.reshape(*squares.shape[:2], *plain.reward_space.shape, -1).mean(-1)
    has_run = np.arange(by_agent.shape[1]) < lengths[:, None]
    return (by_agent * has_run.reshape(*has_run.shape, *(1,) * (by_agent.ndim - 2))).sum(1)


def test_scores_and_players_are_those_of_the_plain_task(name: str) -> None:
    plain = card(name)
    several = card(f"{name}?objectives=several")
    assert several.scores() == plain.scores() != {}
    seeds = range(3)
    task = several.build()
    record = play(task, reference_player(task), seeds)
    expected = play(plain.build(), reference_player(plain.build()), seeds)
    assert np.array_equal(record.total[..., 0], expected.total)
    assert np.array_equal(record.info["success"], expected.info["success"])


@pytest.mark.parametrize("name", ["Lettuce-v0", "Routing-v0"])
def test_they_keep_the_contract(name: str) -> None:
    several = card(name, objectives="several")
    for task in (several.build(), several.with_preferences().build()):
        assert not {finding.check: finding.faults for finding in findings(task) if finding.faults}


def test_gymnasium_makes_them() -> None:
    env = gymnasium.make("rlsuite/Lettuce-v0", objectives="several")
    env.reset(seed=0)
    _, rewards, *_ = env.step(env.action_space.sample())
    assert np.shape(rewards) == (3,)
    env = gymnasium.make("rlsuite/Lettuce-v0", objectives="several", weights=(1, -1, -1))
    env.reset(seed=0)
    _, reward, *_, info = env.step(env.action_space.sample())
    assert reward == pytest.approx(info["vector_reward"] @ [1, -1, -1], rel=1e-5)
    vector_env = gymnasium.make_vec("rlsuite/Lettuce-v0", 2, objectives="several")
    vector_env.reset(seed=0)
    assert vector_env.step(vector_env.action_space.sample())[1].shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("TomatoObjectives-v0", "has objectives of its own: profit, heat, co2"),
        ("ConnectFour-v0", "is a game"),
    ],
)
def test_cards_say_what_has_no_view(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        card(name, objectives="several")


def test_an_unknown_view_is_named() -> None:
    with pytest.raises(ValueError, match=r"objectives of rlsuite/Lettuce-v0.*several"):
        card("Lettuce-v0", objectives="many")
    several = card("Lettuce-v0", objectives="several")
    assert several.with_objectives() is several
    assert several.id == "rlsuite/Lettuce-v0?objectives=several"
