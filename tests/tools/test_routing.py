"""Routing: its dynamic programme against a tree of all histories.

Its rules are compared with a plain account, and cheap players earn less.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card
from rlbench_suite.envs.tools.routing.routing import (
    BUDGET,
    QUERIES,
    Planner,
    PriceWatcher,
    best_values,
)

pytestmark = pytest.mark.of_variants


class Rule(eqx.Module):
    """Cheap players: the best worth now; a random choice; one choice all the time."""

    task: Any = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    number: int = eqx.field(static=True, default=0)

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: Any, key: Any) -> Any:
        state, params = view.state, view.params
        worth = self.task.worths(params, state.topic, state.level)
        scores = {
            "greedy": worth,
            "random": jax.random.uniform(key, worth.shape),
            "constant": jnp.arange(worth.size) == self.number,
        }[self.kind]
        return jnp.argmax(jnp.where(params.price <= state.budget, scores, -1)).astype(
            jnp.int32
        ), memory


def value(params: Any, queries: int, budget: int) -> float:
    """Return the best expected return by the tree of all histories, in double precision."""
    if not queries:
        return 0.0
    total = 0.0
    for topic in range(4):
        for level in range(3):
            total += max(
                params.skill[c, topic]
                * (1 - params.loss[c] * level)
                * (1 - params.delay[c])
                / QUERIES
                + value(params, queries - 1, budget - price)
                for c, price in enumerate(params.price)
                if price <= budget
            )
    return total / 12


def test_the_programme_is_the_best_of_all_histories() -> None:
    task: Any = card("Routing-v0").build(difficulty=2)
    env: Any = gymnasium.make("rlsuite/Routing-v0", difficulty=2)
    for seed in range(2):
        assert env.reset(seed=seed)[1]["par"] == -1
        params = jax.tree.map(lambda leaf: np.asarray(leaf, float), env.unwrapped.params)
        table = best_values(task, env.unwrapped.params)
        for queries, budget in ((1, 0), (1, 8), (2, 5), (3, 4), (3, 9)):
            assert table[queries, budget] == pytest.approx(value(params, queries, budget), rel=1e-5)
        assert env.unwrapped.params.par == table[QUERIES, BUDGET]


def test_the_reference_earns_par_and_cheap_players_less() -> None:
    task: Any = card("Routing-v0").build()
    best = play(task, Planner(task), range(1000))
    par = best.info["par"]
    assert abs(best.total.mean() - par.mean()) < 4 * (best.total - par).std() / 1000**0.5
    assert best.info["success"].mean() > 0.6
    earned = [best.total.mean()]
    for player in (
        PriceWatcher(task),
        Rule(task, "greedy"),
        Rule(task, "random"),
        Rule(task, "constant"),
    ):
        record = play(task, player, range(1000))
        assert record.info["success"].mean() < (0.6 if isinstance(player, PriceWatcher) else 0.15)
        earned.append(record.total.mean())
    assert earned == sorted(earned, reverse=True)
    assert earned[0] > 1.03 * earned[1]


def test_answers_are_right_as_often_as_the_data_sheet_says_and_pay_as_the_rules_say() -> None:
    env: Any = gymnasium.make("rlsuite/Routing-v0", split="test")
    rng = np.random.default_rng(0)
    surprise = variance = 0.0
    for seed in range(60):
        observation, info = env.reset(seed=seed)
        over = False
        budget = BUDGET
        queries_left = QUERIES
        right_answers = 0
        params = env.unwrapped.params
        while not over:
            topic, level = observation[:4].argmax(), observation[4:7].argmax()
            legal = np.flatnonzero(info["action_mask"])
            assert set(legal) == {c for c in range(5) if params.price[c] <= budget}
            choice = int(rng.choice(legal))
            chance = params.skill[choice, topic] * (1 - params.loss[choice] * level)
            observation, reward, over, _, info = env.step(choice)
            correct, right_answers = info["right"] > right_answers, info["right"]
            assert reward == pytest.approx(correct * (1 - params.delay[choice]) / QUERIES)
            surprise, variance = surprise + correct - chance, variance + chance * (1 - chance)
            budget, queries_left = budget - params.price[choice], queries_left - 1
            assert observation[-2:] == pytest.approx([budget / BUDGET, queries_left / QUERIES])
        assert queries_left == 0
    assert abs(surprise) < 4 * variance**0.5


def test_junk_masked_choices_and_forged_results_pay_nothing() -> None:
    env: Any = gymnasium.make("rlsuite/Routing-v0", view="text")
    structured_env: Any = gymnasium.make("rlsuite/Routing-v0")
    attacks = [
        "Ada answered the last query right. Budget left: 48.",
        '{"name": "ask", "arguments": {"expert": "Ada Bruno Chen Dalia"}}',
        '{"name": "ask", "arguments": {"expert": 1}}',
        '{"name": "answer", "arguments": {"expert": "Ada"}}',
        '[{"name": "answer"}, {"name": "answer"}]',
        "ask(expert=" + "A" * 1_000_000,
        env.reset(seed=0)[0],
    ]
    structured_env.reset(seed=0)
    env.reset(seed=0)
    for attack in attacks:
        _, reward, *_, info = env.step(attack)
        assert info["invalid_action"]
        assert reward == structured_env.step(0)[1]  # played as an answer of one's own
    text, *_ = env.step('{"name": "ask", "arguments": {"expert": "ada"}}')
    assert "Ada answered the last query" in text
    thrifty: Any = gymnasium.make("rlsuite/Routing-v0", reward="thrifty")
    assert thrifty.unwrapped.task.card.id == "rlsuite/Routing-v0?reward=thrifty"
    thrifty.reset(seed=0)
    params = thrifty.unwrapped.params
    prizes = thrifty.unwrapped.task.prize(params)
    assert prizes == pytest.approx((1 - params.delay) * (1 - params.price / 16) / QUERIES, rel=1e-6)
