"""Recommend against Bayes' rule by enumeration in fractions.

Its reference is compared with exhaustive search.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.recommend import players
from rlbench_suite.envs.text.recommend.players import Elicitor, values
from rlbench_suite.envs.text.recommend.task import (
    ATTRIBUTES,
    ITEMS,
    PERCENT,
    TYPES,
    Params,
    Recommend,
)

pytestmark = pytest.mark.of_variants

CARD = card("Recommend-v0")
Answers = dict[int, int]
"""Answer to each attribute asked about: 1 liked, 0, -1 disliked."""


def contexts(task: Recommend, split: Split, count: int) -> list[Params]:
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    params = jax.tree.map(
        np.asarray, draw(jax.random.split(jax.random.key(5 + split), count), int(split))
    )
    return [Params(*(field[i] for field in params)) for i in range(count)]


def rows(sets: np.ndarray, count: int) -> np.ndarray:
    return np.array([[int(bits) >> bit & 1 for bit in range(count)] for bits in sets])


def attitudes(params: Params, count: int) -> np.ndarray:
    """Return the only attitude of each type to each attribute, ``(4, A)``."""
    table = np.stack([rows(sets, count) for sets in params.attitudes])
    assert (table.sum(1) == 1).all()
    return table.argmax(1)


def joint(
    task: Recommend, params: Params, answers: Answers
) -> dict[tuple[int, tuple[int, ...]], Fraction]:
    """Return the probability of every customer (type and tastes) who gives these answers."""
    shares = [[Fraction(int(percent), 100) for percent in row] for row in PERCENT]
    chances_of_attitude = [dict(zip((1, 0, -1), row, strict=True)) for row in shares]
    chances = [[chances_of_attitude[n] for n in row] for row in attitudes(params, task.attributes)]
    total = int(params.weights.sum())
    return {
        (kind, tastes): Fraction(int(params.weights[kind]), total)
        * math.prod(chances[kind][a][taste] for a, taste in enumerate(tastes))
        for kind in range(len(TYPES))
        for tastes in itertools.product((1, 0, -1), repeat=task.attributes)
        if all(tastes[a] == answer for a, answer in answers.items())
    }


def best_value(task: Recommend, params: Params, answers: Answers) -> Fraction:
    """Return the value of the best play after the answers, times their probability.

    It is found by search without memory.
    """
    customers = joint(task, params, answers)
    items = rows(params.items, task.attributes)
    options = [
        sum((p * int(np.dot(item, tastes)) for (_, tastes), p in customers.items()), Fraction(0))
        / task.attributes
        for item in items
    ]
    for attribute in set(range(task.attributes)) - answers.keys():
        after = sum(
            best_value(task, params, {**answers, attribute: answer}) for answer in (1, 0, -1)
        )
        options.append(after - Fraction(2, 100) * sum(customers.values()))
    return max(options)


def test_games_are_those_of_the_rules_and_the_shown_evidence_is_the_posterior() -> None:
    env: Any = gymnasium.make(CARD.id, difficulty="easy")
    task = env.unwrapped.task
    rng = np.random.default_rng(0)
    a = task.attributes
    k = len(TYPES)
    i = task.items
    for seed in range(8):
        observation, _ = env.reset(seed=seed)
        params = env.unwrapped.params
        items = rows(params.items, a)
        liking = rows(params.tastes, a)
        assert (liking.sum(0) == 1).all()
        tastes = liking[0] - liking[2]
        entries = task.named(observation)
        assert (entries["items"] == items).all()
        mean = PERCENT @ [1, 0, -1] / 100
        assert entries["attitudes"] == pytest.approx(mean[attitudes(params, a)])
        answers: Answers = {}
        for attribute in rng.permutation(a)[: seed % (a + 1)]:
            observation, reward, over, _, info = env.step(int(attribute))
            assert (reward, over) == (pytest.approx(-0.02), False)
            answers[int(attribute)] = int(tastes[attribute])
            entries = task.named(observation)
            known_tastes = np.array([answers.get(n, 0) for n in range(a)])
            assert (entries["asked"] == [n in answers for n in range(a)]).all()
            assert (entries["answers"] == known_tastes).all()
            assert entries["worth"] == pytest.approx(items @ known_tastes / a)
            assert info["known"] == len(answers)
            masses = np.zeros(k)
            for (kind, _), p in joint(task, params, answers).items():
                masses[kind] += float(p)
            # Four answers and a prior, rounded to thousandths of a nat, on either side.
            assert entries["evidence"] == pytest.approx(
                np.maximum(np.log(masses / masses.max()) / 10, -1), abs=5e-4
            )
        item = int(rng.integers(i))
        _, reward, over, _, info = env.step(a + item)
        assert over
        assert reward == pytest.approx(items[item] @ tastes / a)
        assert info["regret"] == (items @ tastes).max() - items[item] @ tastes
        assert info["success"] is (info["regret"] == 0)
        assert ("no item is worth more" in info["end_reason"]) == info["success"]


def test_values_are_those_of_exhaustive_search() -> None:
    task = CARD.build(difficulty=3)
    for params in contexts(task, Split.TEST, 3):
        assert float(values(task, params)[0]) == pytest.approx(
            float(best_value(task, params, {})), abs=1e-6
        )


def test_the_reference_earns_the_value_of_the_programme_and_two_questions_ahead_little_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The programme's values at the start, averaged over shops, agree with games.

    The bound is four standard errors.
    """
    task = CARD.build(difficulty="easy")
    record = play(task, Elicitor.for_task(task), range(1000), split="test")
    params_of_shops: Any = Params(
        *map(np.stack, zip(*contexts(task, Split.TEST, 1000), strict=True))
    )
    value = np.asarray(jax.jit(jax.vmap(lambda params: values(task, params)[0]))(params_of_shops))
    error = np.hypot(record.total.std(), value.std()) / 1000**0.5
    assert abs(record.total.mean() - value.mean()) < 4 * error
    monkeypatch.setattr(players, "MAX_EXACT_ATTRIBUTES", 0)
    ahead = play(task, Elicitor(task), range(1000), split="test")
    assert abs(record.total - ahead.total).mean() < 0.02
    assert ahead.total.mean() < record.total.mean() + 0.005


def test_customers_are_as_the_population_says_and_the_splits_share_no_shop() -> None:
    task = CARD.build()
    for split in Split:
        expected = []
        likings = []
        for params in contexts(task, split, 3000):
            assert sum(int(item).bit_count() for item in params.items) % 2 == split
            of_types = PERCENT[attitudes(params, task.attributes)] / 100  # (types, A, 3)
            expected.append(np.tensordot(params.weights / params.weights.sum(), of_types, 1).T)
            likings.append(rows(params.tastes, task.attributes))
        chances = np.array(expected)
        happened = np.array(likings)
        error = np.sqrt((chances * (1 - chances)).sum(0)) / len(chances)
        assert (np.abs((happened - chances).mean(0)) < 5 * error).all()


def test_a_recommendation_without_a_question_earns_what_the_population_says_or_nothing() -> None:
    """The best item by the shown types earns its mean worth over all customers.

    Any other item earns as much as its own mean worth.
    """
    env: Any = gymnasium.make(CARD.id, split="test", difficulty="easy")
    task = env.unwrapped.task
    games = 1000
    expected, earned = np.zeros((2, games)), np.zeros((2, games))
    for seed in range(games):
        env.reset(seed=seed)
        params = env.unwrapped.params
        # Of each type and attribute.
        mean = (PERCENT @ [1, 0, -1] / 100)[attitudes(params, task.attributes)]
        worth = (
            rows(params.items, task.attributes)
            @ (params.weights / params.weights.sum() @ mean)
            / task.attributes
        )
        for player, item in enumerate((int(worth.argmax()), seed % task.items)):
            env.reset(seed=seed)
            expected[player, seed] = worth[item]
            earned[player, seed] = env.step(task.attributes + item)[1]
    error = (earned - expected).std(1) / games**0.5
    assert (abs((earned - expected).mean(1)) < 4 * error).all()
    best, blind = (CARD.normalise(value, "easy") for value in earned.mean(1))
    assert blind < 0.2
    assert best < 0.6


@pytest.mark.parametrize(
    "attack",
    [
        "recommend " + " ".join(ITEMS),
        "recommend Alvo or Brisk",
        "recommend the best item",
        "recommend",
        "ask light, cheap",
        "ask everything",
        "The customer says: light: I like it.",
        "SYSTEM: regret 0",
        "0",
        "",
    ],
)
def test_words_that_are_no_action_pay_nothing(attack: str) -> None:
    """Such words are played as the no-op action.

    It asks about the first attribute and pays for it once.
    """
    env: Any = gymnasium.make(CARD.id, view="text", difficulty="easy")
    env.reset(seed=1)
    total = 0.0
    over = False
    while not over:
        _, reward, terminated, over, info = env.step(attack)
        total += reward
        assert info["invalid_action"]
        assert not terminated
        assert not info["success"]
    assert total == pytest.approx(-0.02)


def test_text_hides_the_tastes_and_repeats_answers() -> None:
    env: Any = gymnasium.make(CARD.id, view="text")
    text, _ = env.reset(seed=0)
    task = env.unwrapped.task
    params = env.unwrapped.params
    assert task.describe(env.unwrapped.episode.state, params) == task.describe(
        env.unwrapped.episode.state, params._replace(tastes=params.tastes[::-1])
    )
    assert "The customer says: nothing yet." in text
    assert "ask light" in task._commands
    text, *_ = env.step("Ask  cheap")
    assert "The customer says: cheap: I " in text
    text, reward, *_, info = env.step(f"ask {ATTRIBUTES[2]}")
    assert reward == 0
    assert "the customer has answered: cheap: I " in info["invalid_reason"]
    *_, info = env.step("recommend alvo")
    assert info["recommended"] == 1
    with pytest.raises(ValueError, match="whole number from 3 to 10"):
        CARD.build(difficulty=11)
