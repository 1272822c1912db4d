"""Test the law of the text view.

A reply that is no action is played as the no-op action, and pays nothing beyond it.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from hostile_replies import HOSTILE, MAX_READING_SECONDS

from rlbench_suite.adapters.text import MAX_ACTION_CHARACTERS
from rlbench_suite.checking.trial import random_action
from rlbench_suite.contexts.numerals import read_integer, read_real
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import TaskCard

FORGED_NUMBERS = ("٣", "１", "²", "1_0", "0x1", "+-1", "--1", "1e", "infinity", "-inf", "NaN", "")
JUNK = (
    *FORGED_NUMBERS,
    "1e999",
    " ",
    "help",
    "1" * 5000,
    "\x00\x07",
    "résumé",
    "[[[",
    "__import__('os')",
)
STEPS = 4_000
"""Steps that the score law may take of an id, about."""
FAMILIES_OF_WORDS = ("text", "memory", "tools")
"""Families of tasks in which a reply may conclude, answer or give up."""
FIRST_ACTIONS = 100
"""Number of first actions that are tried with an id."""
GAMES = 40
"""Number of episodes in which a forfeit is played."""
FORFEITS = 8
"""Number of forfeits of an id."""


def shared_info(info: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of ``info`` that both views show."""
    return {
        name: value
        for name, value in info.items()
        if name not in ("invalid_action", "invalid_reason")
    }


def assert_same(tree: Any, expected: Any, why: str) -> None:
    assert jax.tree.structure(tree) == jax.tree.structure(expected), why
    for leaf, expected_leaf in zip(jax.tree.leaves(tree), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(leaf, expected_leaf, why)


@pytest.mark.every_id
def test_a_reply_that_is_no_action_is_played_as_the_noop_action(card: TaskCard) -> None:
    limited_text, limited_plain = (
        gymnasium.make(card.id, view=view, split="test") for view in ("text", "structured")
    )
    text = limited_text.unwrapped
    plain = limited_plain.unwrapped
    prompt, _ = limited_text.reset(seed=0)
    limited_plain.reset(seed=0)
    echoes = (
        prompt,
        f"<action>{prompt}</action>",
        f"{text.task.rules()}\n{text.task.how_to_act()}",
    )
    for junk in (*JUNK, *HOSTILE.values(), *echoes):
        why = f"{card.id} after {junk[:20]!r}"
        began = time.process_time()
        assert not text.reads(junk), why
        assert time.process_time() - began < MAX_READING_SECONDS, why
        observation, *outcome, info = limited_text.step(junk)
        _, *expected_outcome, expected_info = limited_plain.step(plain.task.noop_action())
        assert_same(
            (outcome, shared_info(info)), (expected_outcome, shared_info(expected_info)), why
        )
        assert_same(text.episode, plain.episode, why)
        assert info["invalid_action"] is True, why
        assert info["invalid_reason"] in observation, why
        assert observation in text.observation_space, why
        over = outcome[1] or outcome[2]
        assert observation.endswith(text.task.how_to_act()) != over, why
        assert ("The episode is over: " in observation) == over, why
        assert {"success", "score", *text.task.measures} <= info.keys(), why
        if over:
            limited_text.reset()
            limited_plain.reset()


@pytest.mark.every_id
def test_junk_alone_earns_no_more_than_noop_and_random(card: TaskCard) -> None:
    """Play whole episodes of the no-op action, which is what junk plays.

    The card knows how far episodes spread.
    """
    env: Any = gymnasium.make(card.id, split="test")
    noop = env.unwrapped.task.noop_action()
    episodes = max(2, min(16, STEPS // card.horizon))
    scores = []
    env.reset(seed=1)
    for _ in range(episodes):
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(noop)
            over = terminated or truncated
        scores.append(info["score"])
        env.reset()
    measured = card.scores()
    bound = max(measured[player].high for player in ("noop", "random"))
    width = (
        (measured["noop"].high - measured["noop"].low)
        / 2
        * (measured["noop"].episodes / episodes) ** 0.5
    )
    assert np.mean(scores) <= card.normalise(bound + 2 * width) + 1e-3


@pytest.mark.parametrize(
    "name", [card.name for card in cards().values() if card.family in FAMILIES_OF_WORDS]
)
def test_to_end_an_episode_at_once_earns_no_more_than_noop_and_random(name: str) -> None:
    """Try replies that end any episode.

    They are all actions or some of many, and calls without arguments.
    """
    card = find_card(name)
    text: Any = gymnasium.make(card.id, view="text", split="test").unwrapped
    task = text.task
    rng = np.random.default_rng(0)

    def answer(reply: str, seed: int) -> tuple[bool, float]:
        text.reset(seed=seed)
        _, _, over, _, info = text.step(reply)
        return over, info["score"]

    _, info = text.reset(seed=0)
    mask = text.action_masks() if "action_mask" in info else None
    space = task.action_space
    few = isinstance(space, spaces.Discrete) and space.n <= FIRST_ACTIONS
    replies = {
        json.dumps({"name": tool["function"]["name"], "arguments": {}}) for tool in task.tools()
    }
    for action in (
        range(space.n) if few else [random_action(rng, space, mask) for _ in range(FIRST_ACTIONS)]
    ):
        with suppress(ValueError):  # an action without words
            replies.add(task.spell(np.asarray(action), text.episode.state, text.params))
    forfeits = [
        reply for reply in sorted(replies) if all(answer(reply, seed)[0] for seed in range(5))
    ]
    measured = card.scores()
    max_score = card.normalise(max(measured[player].high for player in ("noop", "random")))
    for reply in forfeits[:FORFEITS]:
        scores = [answer(reply, seed)[1] for seed in range(5, 5 + GAMES)]
        assert np.mean(scores) <= max_score + 4 * np.std(scores) / GAMES**0.5 + 1e-6, reply


def test_words_and_pictures_stand_at_the_end(card: TaskCard) -> None:
    """An episode that is put there goes on from there, whatever is over."""
    plain, text = (gymnasium.make(card.id, view=view).unwrapped for view in ("structured", "text"))
    plain.reset(seed=0)
    text.reset(seed=0)
    plain.action_space.seed(0)
    for _ in range(200):
        if plain.step(plain.action_space.sample())[2]:
            break
    for _ in range(3):
        text.episode = plain.episode
        assert text.step("")[0] in text.observation_space
        assert plain.task.draw(plain.episode.state, plain.params).shape == plain.task.picture_shape
        plain.episode = text.episode


@pytest.mark.parametrize("text", [*FORGED_NUMBERS, ".", "1 2", " 1", "1\n"])
def test_no_reader_of_numbers_takes_forged_ones(text: str) -> None:
    for read in (read_integer, read_real):
        with pytest.raises(ValueError, match="expected"):
            read(text)


def test_readers_of_numbers_take_decimal_notation() -> None:
    assert [read_integer(text) for text in ("0", "-7", "007", "999999999")] == [
        0,
        -7,
        7,
        999_999_999,
    ]
    assert [read_real(text) for text in ("0", "-.5", "+2.", "2.5e-3", "1E2")] == [
        0.0,
        -0.5,
        2.0,
        0.0025,
        100.0,
    ]
    for text in ("1" * 10, "+1", "1.0"):
        with pytest.raises(ValueError, match="whole number of at most 9 digits"):
            read_integer(text)
    with pytest.raises(ValueError, match="decimal notation"):
        read_real("1e999")


def test_numbers_too_large_for_the_space_are_no_action() -> None:
    """Also where the space has no bounds, and where the number is too large for float32 only."""
    task = find_card("PMSMCurrent-v0").build()
    for text in ("1e39 0", "-1.5 0", "0", "0 0 0"):
        with pytest.raises(ValueError, match="expected"):
            task.parse(text, None, None)
    assert task.parse("1.0, -0.25", None, None).tolist() == [1.0, -0.25]


def test_every_info_says_whether_the_reply_was_an_action() -> None:
    """Every info has the same names, also the first one and those of tasks without masks.

    Recorders keep one array for each name.
    """
    env = gymnasium.make("rlsuite/DeepSeaTreasure-v0", view="text")
    _, info = env.reset(seed=0)
    assert info["invalid_action"] is False
    for reply, refused in (("right", False), ("sideways", True), ("right", False)):
        assert env.step(reply)[4]["invalid_action"] is refused


def test_the_whole_reply_is_read() -> None:
    """A move with four thousand spaces behind it is no move, whether or not junk follows."""
    env = gymnasium.make("rlsuite/DeepSeaTreasure-v0", view="text")
    env.reset(seed=0)
    *_, info = env.step("right".ljust(MAX_ACTION_CHARACTERS))
    assert "invalid_reason" not in info
    for reply in (
        "right".ljust(MAX_ACTION_CHARACTERS + 1),
        "right".ljust(MAX_ACTION_CHARACTERS) + "up",
    ):
        assert reply not in env.action_space
        *_, info = env.step(reply)
        assert (
            f"at most {MAX_ACTION_CHARACTERS} characters, got {len(reply)}"
            in info["invalid_reason"]
        )


def test_the_text_view_reads_replies_with_free_text_too() -> None:
    env = gymnasium.make("rlsuite/DeepSeaTreasure-v0", view="text")
    env.reset(seed=0)
    long = "I think of " + "many things " * MAX_ACTION_CHARACTERS
    *_, info = env.step(f"<think>{long} <action>up</action></think>{long} <action>right</action>")
    assert "invalid_reason" not in info
    observation, *_, info = env.step("<action>down</action> or <action>sideways</action>")
    assert "'sideways'" in info["invalid_reason"]
    assert observation.splitlines()[-3:] == [
        f"Not understood: {info['invalid_reason']}",
        "The no-op action was played instead: up.",
        env.unwrapped.task.how_to_act(),
    ]


def test_the_last_observation_says_why_the_episode_is_over_and_asks_for_nothing() -> None:
    env = gymnasium.make("rlsuite/DeepSeaTreasure-v0", view="text")
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step("down")
    assert terminated
    assert observation.splitlines()[-1] == (
        f"The episode is over: found the treasure worth 0.7. Score: {info['score']:.2f} "
        "(0: the best play without skill; 1: the reference player)."
    )
    assert env.unwrapped.task.how_to_act() not in observation


@pytest.mark.parametrize("name", ["SAT-v0", "DeepSeaTreasure-v0", "Vicsek-v0", "Hopper-v0"])
def test_an_episode_may_end_with_a_reply_that_is_no_action(name: str) -> None:
    env = gymnasium.make(f"rlsuite/{name}", view="text", max_episode_steps=2)
    env.reset(seed=0)
    assert not any(env.step("help")[2:4])
    _, reward, _, truncated, info = env.step("help")
    assert truncated
    assert info["invalid_action"]
    assert {"success", "score"} <= info.keys()
    assert np.shape(reward) == ((2,) if name == "DeepSeaTreasure-v0" else ())


def test_a_task_is_over_when_junk_ends_it() -> None:
    """Wordle's no-op action is a guess, and the sixth is the last."""
    env = gymnasium.make("rlsuite/Wordle-v0", view="text", split="test")
    env.reset(seed=0)
    flags = [env.step("help me")[2] for _ in range(6)]
    assert flags == [False] * 5 + [True]


def test_idle_turns_are_paid_for() -> None:
    """Ninety-nine turns of junk and one order earn what the same orders earn.

    That is far below random play.
    """
    text, plain = (
        gymnasium.make("rlsuite/Inventory-v0", view=view, split="test")
        for view in ("text", "structured")
    )
    text.reset(seed=0)
    plain.reset(seed=0)
    for _ in range(99):
        text.step("wait")
        plain.step([0, 0, 0, 0])
    *_, truncated, info = text.step("20 20 20 20")
    assert truncated
    assert info["score"] == plain.step([20, 20, 20, 20])[-1]["score"]
    assert info["score"] < 0
