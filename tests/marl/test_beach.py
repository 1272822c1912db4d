"""The beach against a recorded step of MOMAland, plain rules, and all distributions in reach."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.beach import Beach, Params, State
from rlbench_suite.envs.marl.beach_plan import BestPlan

CARD = card("Beach-v0")


def task_of(people: int, **choices: str) -> Beach:
    """Return the task for another number of people."""
    plain_card = card("Beach-v0", **choices) if choices else CARD
    return Beach(replace(plain_card, agents=people), difficulty=None, dtype="float32")


def sampled(task: Beach, count: int, split: int) -> Params:
    """Return contexts with one more axis in front."""
    keys = jax.random.split(jax.random.key(7), count)
    program = jax.jit(jax.vmap(task.sample_params, (0, None)))
    return jax.tree.map(np.asarray, program(keys, np.int32(split)))


def pay(places: Any, types: Any, sections: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return values and mixtures of all sections by the published formulas, ``(..., 6)``."""
    inside = np.asarray(sections)[..., None] == np.arange(6)
    first = (inside & (np.asarray(types)[..., None] == 0)).sum(-2)
    people = inside.sum(-2)
    values = people * np.exp(-people / np.asarray(places))
    mixtures = np.minimum(first, people - first) / np.maximum(people, 1)
    return values, mixtures


# MOMAland 0.2.0, mobeach with 20 people and one move, seed 1. All sections have 7 places.
RECORD = {
    "types": [0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0],
    "start": [0, 3, 5, 2, 1, 2, 0, 1, 2, 2, 1, 1, 1, 2, 1, 0, 5, 3, 3, 1],
    "actions": [2, 2, 2, 1, 2, 2, 2, 0, 1, 1, 0, 1, 1, 2, 1, 0, 2, 2, 0, 1],
    "sections": [1, 4, 5, 2, 2, 3, 1, 0, 2, 2, 0, 1, 1, 3, 1, 0, 5, 4, 2, 1],
}
RECORDED_PAY = {
    0: (1.95431721, 0.0),
    1: (2.54623699, 0.333333343),
    2: (2.44770837, 0.400000006),
    3: (1.5029546, 0.5),
    4: (1.5029546, 0.0),
    5: (1.5029546, 0.5),
}
"""Reward of the people in each section after the step."""


def test_a_recorded_step_of_momaland() -> None:
    """A day that is nearly over ends as terminated, which MOMAland reports as truncated."""
    task = task_of(20, reward="individual", sight="section")
    record = {name: np.array(values, np.int32) for name, values in RECORD.items()}
    params = Params(np.full(6, 7, np.int32), record["types"], record["start"])
    state = State(record["start"], np.int32(1))
    after = task.transition(state, record["actions"], None, params)
    assert after.sections.tolist() == RECORD["sections"]
    reward = task.reward(state, record["actions"], after, None, params)
    expected = [RECORDED_PAY[section] for section in RECORD["sections"]]
    np.testing.assert_allclose(reward, expected, rtol=1e-6)
    assert bool(task.terminal(after, None, params))
    observation = task.observation(after, None, params)
    first = task.named(observation[0])
    assert first["places"].tolist() == pytest.approx([0, 0.7, 0, 0, 0, 0])
    assert first["people"].tolist() == pytest.approx([0, 6 / 20, 0, 0, 0, 0])
    assert first["own_share"].tolist() == pytest.approx([0, 0.333333343, 0, 0, 0, 0])


@pytest.mark.parametrize("reward", ["team", "individual"])
def test_rules_over_random_days(reward: str) -> None:
    """1,000 days of random moves against the rules written plainly."""
    task = task_of(30, reward=reward)
    days = 1_000
    params = sampled(task, days, split=1)
    actions = np.random.default_rng(3).integers(0, 3, (days, 3, 30)).astype(np.int32)

    def play_day(params: Params, actions: jax.Array) -> Any:
        state = task.initial(None, params)
        rewards, ends = [], []
        for action in actions:
            after = task.transition(state, action, None, params)
            rewards.append(task.reward(state, action, after, None, params))
            ends.append(task.terminal(after, None, params))
            state = after
        return state, jnp.stack(rewards), jnp.stack(ends), task.info(state, params)

    state, rewards, ends, info = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(play_day))(params, actions)
    )
    sections = params.start
    for step in range(3):
        sections = np.clip(sections + actions[:, step] - 1, 0, 5)
    np.testing.assert_array_equal(state.sections, sections)
    assert ends.tolist() == [[False, False, True]] * days
    assert not rewards[:, :2].any()
    values, mixtures = pay(params.places, params.types, sections)
    if reward == "team":
        expected = np.stack([values.sum(1), mixtures.mean(1)], 1)[:, None]
    else:
        rows = np.arange(days)[:, None]
        expected = np.stack([values[rows, sections], mixtures[rows, sections]], 2)
    np.testing.assert_allclose(rewards[:, 2], np.broadcast_to(expected, (days, 30, 2)), rtol=2e-6)
    np.testing.assert_allclose(info["capacity"], values.sum(1), rtol=2e-6)
    bound = params.places.sum(1) / np.e + 5
    worth = values.sum(1) + 10 * mixtures.mean(1)
    clear = np.abs(worth - 0.8 * bound) > 1e-4
    np.testing.assert_array_equal(info["success"][clear], (worth >= 0.8 * bound)[clear])


def plan_worths(task: Beach, params: Params) -> list[float]:
    """Return the score of the reference's plan in each context, by the published formulas."""
    targets = np.asarray(jax.jit(jax.vmap(BestPlan(task).initial))(params))
    assert (np.abs(targets - params.start) <= 3).all()
    return [float(score(task, at(params, i), row[None])[0]) for i, row in enumerate(targets)]


def at(tree: Any, index: int) -> Any:
    """Return one entry of a batch."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def score(task: Beach, params: Params, sections: np.ndarray) -> np.ndarray:
    """Return the weighted mean reward of distributions ``(m, n)``."""
    values, mixtures = pay(params.places, params.types, sections)
    if task.card.settings["reward"] == "team":
        return values.sum(1) + 10 * mixtures.mean(1)
    rows = np.arange(len(sections))[:, None]
    return (values[rows, sections] + 10 * mixtures[rows, sections]).mean(1)


@pytest.mark.parametrize("reward", ["team", "individual"])
def test_the_plan_is_the_best_of_all_distributions_in_reach(reward: str) -> None:
    """Enumerate where six people can go, for 20 contexts with one or two places a section."""
    task = task_of(6, reward=reward)
    params = sampled(task, 20, split=0)
    params = params._replace(places=(params.places + 1) // 2)
    for i, worth in enumerate(plan_worths(task, params)):
        context = at(params, i)
        reach = [range(max(s - 3, 0), min(s + 3, 5) + 1) for s in context.start.tolist()]
        best = score(task, context, np.array(list(product(*reach)))).max()
        assert worth == pytest.approx(best, rel=1e-5)


def plain_optimum(places: np.ndarray, counts: np.ndarray) -> float:
    """Return the best worth of a team without limits on moves: a plain dynamic programme."""
    total = counts.sum(0)
    first, second = np.indices(total + 1)
    people = first + second
    best = np.where(people == 0, 0.0, -np.inf)
    for places_here in places:
        worths = people * np.exp(-people / places_here)
        worths += 10 / 6 * np.minimum(first, second) / np.maximum(people, 1)
        longer = np.full_like(best, -np.inf)
        for a, b in np.ndindex(*best.shape):
            here = best[a, b] + worths[: total[0] + 1 - a, : total[1] + 1 - b]
            longer[a:, b:] = np.maximum(longer[a:, b:], here)
        best = longer
    return float(best[tuple(total)])


def test_the_plan_of_the_whole_beach_is_optimal() -> None:
    """People who start in the middle reach all sections, so that limits on moves do not bind."""
    task = task_of(30)
    params = sampled(task, 4, split=1)
    params = params._replace(start=2 + params.start % 2)
    for i, worth in enumerate(plan_worths(task, params)):
        context = at(params, i)
        counts = np.bincount(context.types, minlength=2)[None]
        assert worth == pytest.approx(plain_optimum(context.places, counts), rel=1e-5)


def test_players() -> None:
    task = task_of(30)
    record = play(task, reference_player(task), range(128))
    chance = play(task, Uniform(task.action_space), range(128))
    assert record.info["success"].all()
    assert chance.info["success"].mean() < 0.05
    worth = record.info["capacity"] + 10 * record.info["mixture"]
    np.testing.assert_allclose(record.total.mean(1) @ [1, 10], worth, rtol=1e-5)
    assert (worth > chance.info["capacity"] + 10 * chance.info["mixture"]).all()


def test_contexts_of_the_splits() -> None:
    task = task_of(30)
    for split in (0, 1):
        params = sampled(task, 3_000, split)
        assert (params.places.sum(1) % 2 == split).all()
        for section in range(6):
            counts = np.bincount(params.places[:, section], minlength=5)[1:]
            assert (np.abs(counts - 750) < 120).all()  # 5 standard deviations
        minority = (params.types == 0).sum(1)
        assert set(minority.tolist()) == set(range(6, 13))
        assert set(params.start.ravel().tolist()) == set(range(6))


def test_people_are_told_apart_by_their_rank() -> None:
    task = task_of(30)
    params = at(sampled(task, 1, 0), 0)
    observation = np.asarray(task.observation(task.initial(None, params), None, params))
    ranks = np.array([task.named(row)["rank"] for row in observation])
    for section, kind in product(range(6), range(2)):
        group = (params.start == section) & (params.types == kind)
        count = group.sum()
        np.testing.assert_allclose(ranks[group], (np.arange(count) + 0.5) / max(count, 1))


@pytest.mark.parametrize("sight", ["beach", "section"])
def test_pettingzoo_words_and_picture(sight: str) -> None:
    task = card("Beach-v0", sight=sight).build()
    parallel_api_test(TaskParallelEnv(task, max_cycles=4), num_cycles=20)
    params = at(sampled(task, 1, 0), 0)
    state = task.initial(None, params)._replace(sections=np.full(30, 2, np.int32))
    text = task.describe(state, params)
    assert "3 of 3 moves are left" in text
    assert ("section 1, places not seen" in text) == (sight == "section")
    assert (task.draw(state, params) != task.draw(task.initial(None, params), params)).any()
    with pytest.raises(ValueError, match="30 number"):
        task.parse("0 1", state, params)
