"""Tasks with sampled preferences: their contract, their weights, and their rewards."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from toy_tasks import TwoAims, TwoAimsInParts, card_of

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import RandomAgent
from rlbench_suite.checking.checks import findings
from rlbench_suite.core.preferences import SampledPreferences
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.core.task_card import TaskCard

TREASURES = card("DeepSeaTreasure-v0")


def sampled_weights(task: SampledPreferences, split: Split, count: int) -> np.ndarray:
    """Return the weights of contexts, ``(count, k)``."""
    sample = jax.jit(jax.vmap(lambda key: task.sample_params(key, np.int32(split)).weights))
    return np.asarray(sample(jax.random.split(jax.random.key(0), count)))


@pytest.mark.parametrize(
    "plain", [TREASURES, card_of(TwoAims), card_of(TwoAimsInParts)], ids=lambda plain: plain.name
)
def test_they_keep_the_contract(plain: TaskCard) -> None:
    task = plain.with_preferences().build()
    assert not {finding.check: finding.faults for finding in findings(task) if finding.faults}


def test_weights_are_uniform_on_the_simplex_and_differ_between_splits() -> None:
    """Half of all intervals are shorter than a half, and their mean is a half."""
    task = TREASURES.with_preferences().build()
    train, test = (sampled_weights(task, split, 4_000) for split in Split)
    assert (train >= 0).all()
    assert train.sum(1) == pytest.approx(1)
    # Standard errors are 0.0046 and 0.0079.
    assert train[:, 0].mean() == pytest.approx(0.5, abs=0.02)
    assert (train[:, 0] < 0.25).mean() == pytest.approx(0.25, abs=0.03)
    assert not {*map(tuple, train.tolist())} & {*map(tuple, test.tolist())}


def test_three_weights_are_uniform_on_the_triangle() -> None:
    """A weight exceeds x with probability (1 - x)**2."""
    task = card("TomatoObjectives-v0").with_preferences().build()
    weights = sampled_weights(task, Split.TRAIN, 4_000)
    assert weights.sum(1) == pytest.approx(1, abs=1e-6)
    for weight in weights.T:
        for x in (0.2, 0.5, 0.8):
            assert (weight > x).mean() == pytest.approx((1 - x) ** 2, abs=0.03)


def test_rewards_are_those_of_the_plain_task_times_the_weights_that_are_shown() -> None:
    task = TREASURES.with_preferences().build()
    seeds = range(16)
    record = play(task, RandomAgent().policy(task), seeds)
    plain = replay(task.plain, record.actions, seeds)  # it has one context
    weights = []
    for seed in seeds:
        env = TaskEnv(task, "test")
        observation, _ = env.reset(seed=seed)
        weights.append(observation[2:])
    assert record.total == pytest.approx(plain.total * np.array(weights), rel=1e-5)
    assert (record.length == plain.length).all()
    assert task.card.weights == (1, 1)


def test_weights_stand_where_an_observation_has_room() -> None:
    flat = TREASURES.with_preferences().build()
    assert flat.observation_space.shape == (4,)
    assert [component.name for component in flat.observation_components()] == [
        "row",
        "column",
        "weights",
    ]
    separate = card_of(TwoAimsInParts).with_preferences().build()
    assert set(separate.observation_space.spaces) == {"place", "wind", "weights"}


def test_cards_say_what_cannot_have_preferences() -> None:
    preferring = TREASURES.with_preferences()
    assert preferring.id == "rlsuite/DeepSeaTreasure-v0?preferences=sampled"
    assert preferring.with_preferences() is preferring
    assert preferring.scores() == {}
    with pytest.raises(ValueError, match="has one objective"):
        card("SAT-v0").with_preferences()
