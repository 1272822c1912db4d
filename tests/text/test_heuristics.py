"""Heuristic players beside the references: their measured scores, and each rule against enumeration or plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.card import Score, TaskCard
from rlbench_suite.envs.text.diagnosis import COST, PERCENT
from rlbench_suite.envs.text.knowledge import real_knowledge
from rlbench_suite.envs.text.twenty_questions import TURNS
from rlbench_suite.envs.text.wordle import encode, feedback
from rlbench_suite.envs.tools.corpus import PER_PAGE, RELATIONS, found
from rlbench_suite.policy import player_for
from rlbench_suite.registry import card, cards
from rlbench_suite.task import Split

pytestmark = pytest.mark.of_variants

CARDS = [each for each in cards().values() if "heuristic" in each.yardsticks]
CLOSE = {("Recommend-v0", "easy")}
"""Tiers in which it is nearly best to ask everything: four questions cost 0.08 together."""


def played(name: str, episodes: int, difficulty: str | None = None, **settings: str) -> tuple[Any, Any]:
    """Return the task, and test episodes of its heuristic player."""
    task: Any = card(name).build(difficulty=difficulty) if not settings else built(name, **settings)
    return task, play(task, player_for(task, task.card.yardsticks["heuristic"]), range(episodes), split="test")


def built(name: str, **settings: str) -> Any:
    return card(f"{name}?" + "&".join(f"{key}={value}" for key, value in settings.items())).build()


def agrees(measured: Score, exact: float) -> bool:
    """Return whether a measured mean lies within twice its interval's half-width of the exact one."""
    return abs(measured.mean - exact) <= measured.high - measured.low


@pytest.mark.parametrize("each", CARDS, ids=[each.name for each in CARDS])
def test_the_heuristic_scores_between_random_play_and_the_reference(each: TaskCard) -> None:
    for tier in each.difficulties or (None,):
        scores = each.scores(tier)
        assert scores["random"].high < scores["heuristic"].low, tier
        if (each.name, tier) in CLOSE:
            assert scores["heuristic"].mean < scores["reference"].mean
        else:
            assert scores["heuristic"].high < scores["reference"].low, tier


@pytest.mark.parametrize("name", ["TextMazePartial-v0", "GuessMyCity-v1", "Recommend-v0"])
def test_other_episodes_agree_with_the_measured_score_and_no_move_is_illegal(name: str) -> None:
    task, record = played(name, 256)
    measured = task.card.scores(None)["heuristic"]
    returns = np.asarray(record.total, float)
    spread = 4 * returns.std() * (1 / 256 + 1 / measured.episodes) ** 0.5
    assert abs(returns.mean() - measured.mean) <= spread
    assert not np.asarray(record.info.get("invalid_action", False)).any()


def test_a_word_that_is_guessed_fits_all_marks_before():
    task, record = played("Wordle-v0", 64)
    for actions, length, hidden in zip(record.actions, record.length, record.params.hidden, strict=True):
        guesses = task.letters[np.asarray(actions)[: int(length)]]
        for before, after in itertools.combinations(guesses, 2):
            assert encode(feedback(before, after)) == encode(feedback(before, task.letters[int(hidden)]))


@pytest.mark.parametrize("name", ["GuessMyCity-v1", "TwentyQuestions-v1"])
def test_questions_in_order_need_as_many_turns_as_on_paper(name: str) -> None:
    """Over all real things of the test split: questions that split what is left, then the guess."""
    task: Any = card(name).build(difficulty="real")
    holds = real_knowledge(task.file)[1]
    earned = []
    for hidden in task.by_split[Split.TEST]:
        left, turns = set(task.by_split[Split.TEST]), 1
        for answers in holds:
            alike = {thing for thing in left if answers[thing] == answers[hidden]}
            turns += alike != left
            left = alike
        assert left == {hidden}
        earned.append(1 - (turns - 1) / TURNS)
    assert agrees(card(name).scores("real")["heuristic"], float(np.mean(earned)))


def test_all_symptoms_are_worth_what_bayes_says():
    """The chance of the likeliest disease, over all answers to the symptoms, of tables that are drawn."""
    task: Any = card("Diagnosis-v0").build()
    symptoms = task.diseases - 1
    keys = jax.random.split(jax.random.key(5), 2000)
    params = jax.vmap(lambda key: task.sample_params(key, jnp.int32(Split.TEST)))(keys)
    chance = PERCENT[0][np.asarray(params.levels)[..., :symptoms]] / 100  # (tables, diseases, symptoms)
    prior = np.asarray(params.weights) / np.asarray(params.weights).sum(1, keepdims=True)
    right = sum(
        (prior * np.where(answers, chance, 1 - chance).prod(2)).max(1)
        for answers in itertools.product((False, True), repeat=symptoms)
    )
    assert agrees(task.card.scores(None)["heuristic"], float(right.mean() - symptoms * COST[0] / 100))


def test_who_asks_everything_recommends_the_best_item():
    assert all(card("Recommend-v0").scores(tier)["heuristic"].success == 1 for tier in card("Recommend-v0").difficulties)


@pytest.mark.parametrize("layout", ["double_t", "umaze"])
def test_the_wall_follower_finds_the_goal_of_a_maze_without_rings(layout: str) -> None:
    """It passes each way at most twice, once in each direction, and meets no wall."""
    task, record = played("TextMaze-v0", 64, layout=layout)
    cells = sum(bin(row).count("1") for row in task._cells.tolist())
    assert np.asarray(record.info["reached"]).all()
    assert (np.asarray(record.length) <= 2 * (cells - 1)).all()
    assert not np.asarray(record.info["bumps"]).any()


def test_first_pages_tell_what_they_show():
    """With one look-up, the answer is right where the latest report stands on the first page."""
    task, record = played("Search-v1", 128, "easy")
    facts = len(RELATIONS) * record.params.start + record.params.path[:, 0]
    about, report = jax.vmap(lambda seed, fact: found(seed, fact, task.boost))(record.params.seed, facts)
    latest = np.asarray((about == facts[:, None]) & (report == 0))[:, :PER_PAGE].any(1)
    right = np.asarray(record.info["success"])
    assert right[latest].all()
    assert right[~latest].mean() < 0.2  # by luck
    assert (np.asarray(record.info["searches"]) == 1).all()
