"""Ceilings without memory against all small games of the rules, and against what the tasks pay.

No answer changes what is seen later. The best answer to an observation is therefore the one that is
right most often.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.core.policy import player_for
from rlbench_suite.core.registry import card, cards
from rlbench_suite.core.task_card import TaskCard, load
from rlbench_suite.envs.memory.symbols import Params, SymbolTask

pytestmark = pytest.mark.of_variants

Turn = tuple[Hashable, int | None]
"""An observation, and the right answer to it; None if nothing is asked."""
Games = Iterator[tuple[Fraction, list[Turn]]]
"""Every game there is, with its probability."""
COLOURS = range(4)


# -- all games, written from the rules -------------------------------------------------------------


def repeat_previous(distance: int, steps: int) -> Games:
    for row in itertools.product(COLOURS, repeat=steps):
        yield (
            Fraction(1, 4**steps),
            [(now, row[t - distance] if t >= distance else None) for t, now in enumerate(row)],
        )


def autoencode(length: int, steps: int) -> Games:
    for row in itertools.product(COLOURS, repeat=length):
        yield (
            Fraction(1, 4**length),
            [*((now, None) for now in row), *(("recite", past) for past in reversed(row))],
        )


def n_back(distance: int, steps: int) -> Games:
    """Yield games whose symbol is repeated with probability 1/2, else one of the others."""
    for row in itertools.product(COLOURS, repeat=steps):
        repetitions = [row[t] == row[t - distance] for t in range(distance, steps)]
        chance = Fraction(1, 4**distance)
        for repeated in repetitions:
            chance *= Fraction(1, 2) if repeated else Fraction(1, 6)
        yield (
            chance,
            [
                (now, int(repetitions[t - distance]) if t >= distance else None)
                for t, now in enumerate(row)
            ],
        )


def key_value(keys: int, steps: int, rewriting: str = "0.5") -> Games:
    """Three in four instructions that rewrite store a value."""
    rate = Fraction(rewriting)
    chances = [(rate * 3 / 4 / 4, "store", value) for value in COLOURS]
    chances += [(rate / 4, "delete", None), (1 - rate, "look up", None)]
    each = [
        (chance / keys, instruction, key, value)
        for chance, instruction, value in chances
        for key in range(keys)
    ]
    for row in itertools.product(each, repeat=steps):
        chance, stored, turns = Fraction(1), dict.fromkeys(range(keys), 4), []
        for probability, instruction, key, value in row:
            chance *= probability
            turns.append(
                ((instruction, key, value), stored[key] if instruction == "look up" else None)
            )
            if instruction != "look up":
                stored[key] = 4 if instruction == "delete" else value
        yield chance, turns


def delayed_instruction(longest: int, steps: int, distractors: str = "0.5") -> Games:
    """A cycle is an instruction, some steps, and the call."""
    rate = Fraction(distractors)
    noise = [(1 - rate, "nothing"), *((rate / 4, ("other", colour)) for colour in COLOURS)]

    def cycles(left: int) -> Games:
        if left <= 0:
            yield Fraction(1), []
            return
        for colour, delay in itertools.product(COLOURS, range(1, longest + 1)):
            for heard in itertools.product(noise, repeat=min(delay, left - 1)):
                chance = Fraction(1, 4 * longest)
                for probability, _ in heard:
                    chance *= probability
                cycle: list[Turn] = [(("you", colour), None), *((what, None) for _, what in heard)]
                call = [("go", 1 + colour)] * (len(cycle) < left)
                for probability, after in cycles(left - delay - 2):
                    yield chance * probability, [*cycle, *call, *after]

    return cycles(steps)


def revised_facts(things: int, steps: int, rewriting: str = "0.5") -> Games:
    """Three kinds of sentences that are no question are equally likely."""
    rate = Fraction(rewriting)
    pairs = [*itertools.permutations(range(things), 2)]
    each: list[tuple[Fraction, tuple[Any, ...]]]
    each = [((1 - rate) / things, ("ask", item)) for item in range(things)]
    each += [
        (rate / 3 / (4 * things), ("put", item, room)) for item in range(things) for room in COLOURS
    ]
    each += [(rate / 3 / len(pairs), (verb, *pair)) for verb in ("bring", "swap") for pair in pairs]
    for rooms in itertools.product(COLOURS, repeat=things):
        for row in itertools.product(each, repeat=steps - things):
            chance, where = Fraction(1, 4**things), list(rooms)
            turns: list[Turn] = [(("put", item, room), None) for item, room in enumerate(rooms)]
            for probability, sentence in row:
                chance *= probability
                turns.append((sentence, where[sentence[1]] if sentence[0] == "ask" else None))
                if sentence[0] == "put":
                    where[sentence[1]] = sentence[2]
                elif sentence[0] == "bring":
                    where[sentence[1]] = where[sentence[2]]
                elif sentence[0] == "swap":
                    where[sentence[1]], where[sentence[2]] = where[sentence[2]], where[sentence[1]]
            yield chance, turns


@pytest.mark.parametrize(
    ("name", "games", "size", "steps"),
    [
        ("RepeatPrevious-v0", repeat_previous, 1, 5),
        ("RepeatPrevious-v0", repeat_previous, 3, 5),
        ("Autoencode-v0", autoencode, 4, 8),
        ("NBack-v0", n_back, 1, 5),
        ("NBack-v0", n_back, 2, 5),
        ("KeyValue-v0", key_value, 1, 4),
        ("KeyValue-v0", key_value, 2, 3),
        ("KeyValue-v0?rewriting=0.125", key_value, 1, 4),
        ("KeyValue-v0?rewriting=0.875", key_value, 1, 4),
        ("DelayedInstruction-v0", delayed_instruction, 1, 5),
        ("DelayedInstruction-v0", delayed_instruction, 2, 5),
        ("DelayedInstruction-v0?distractors=0", delayed_instruction, 2, 5),
        ("DelayedInstruction-v0?distractors=1", delayed_instruction, 2, 5),
        ("RevisedFacts-v0", revised_facts, 2, 5),
        ("RevisedFacts-v0", revised_facts, 3, 5),
        ("RevisedFacts-v0?rewriting=0.125", revised_facts, 2, 5),
        ("RevisedFacts-v0?rewriting=0.875", revised_facts, 2, 5),
    ],
)
def test_optimum_and_ceiling_are_those_of_all_games(
    name: str, games: Callable[..., Games], size: int, steps: int
) -> None:
    total, questions = Fraction(0), Fraction(0)
    frequencies: dict[Hashable, Counter[int]] = {}
    for chance, turns in games(size, steps, *card(name).settings.values()):
        assert len(turns) == steps
        total += chance
        for observation, answer in turns:
            if answer is not None:
                questions += chance
                frequencies.setdefault(observation, Counter())[answer] += chance  # type: ignore[assignment]
    assert total == 1
    assert questions > 0
    task: Any = load(card(name).entry_point)(
        replace(card(name), horizon=steps), difficulty=size, dtype="float32"
    )
    assert task.optimum == pytest.approx(float(questions), rel=1e-12)
    best = sum(max(answers.values()) for answers in frequencies.values())
    assert task.memoryless_ceiling == pytest.approx(float(best), rel=1e-12)


# -- what the tasks pay ----------------------------------------------------------------------------


def payments(task: SymbolTask[Any], episodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each step's observation, and what every answer would earn there.

    The numbers are ``(episodes, steps)``.
    """
    nothing = Params()

    def step(carry: tuple[Any, jax.Array], key: jax.Array) -> tuple[Any, Any]:
        state, over = carry
        following = jax.vmap(lambda answer: task.transition(state, answer, key, nothing))(
            jnp.arange(len(task.answers))
        )
        earned = jax.vmap(lambda after: task.reward(state, 0, after, key, nothing))(following)
        after = jax.tree.map(lambda leaf: leaf[0], following)
        observation = task.observation(state, key, nothing).astype(jnp.int32)
        number = (observation << jnp.arange(observation.size)).sum()
        return (after, over | task.terminal(after, key, nothing)), (number, earned * ~over)

    def episode(key: jax.Array) -> Any:
        first, *step_keys = jax.random.split(key, task.card.horizon + 1)
        return jax.lax.scan(
            step, (task.initial(first, nothing), jnp.bool_(False)), jnp.stack(step_keys)
        )[1]

    numbers, earned = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(3), episodes))
    return np.asarray(numbers), np.asarray(earned)


@pytest.mark.parametrize(
    "name",
    [
        "RepeatPrevious-v0",
        "Autoencode-v0",
        "CountRecall-v0",
        "NBack-v0",
        "KeyValue-v0",
        "KeyValue-v0?rewriting=0.125",
        "DelayedInstruction-v0",
        "RevisedFacts-v0",
        "RevisedFacts-v0?rewriting=0.875",
    ],
)
def test_the_best_map_from_what_is_seen_to_an_answer_earns_the_ceiling(name: str) -> None:
    """A map fitted to half of the episodes earns the ceiling in the others, no less and no more."""
    task: Any = card(name).build()
    episodes = 1500
    numbers, earned = payments(task, 2 * episodes)
    distinct, index = np.unique(numbers, return_inverse=True)
    index = index.reshape(numbers.shape)
    table = np.zeros((len(distinct), len(task.answers)))
    np.add.at(table, index[:episodes], earned[:episodes])
    total = np.take_along_axis(earned, table.argmax(1)[index][..., None], 2)[episodes:, :, 0].sum(1)
    assert abs(total.mean() - task.memoryless_ceiling) <= 4 * total.std() / episodes**0.5


# -- measured players without a memory -------------------------------------------------------------


CARDS = [each for each in cards().values() if each.family == "memory"]


@pytest.mark.parametrize("task_card", CARDS, ids=[each.name for each in CARDS])
def test_the_measured_player_without_a_memory_earns_the_ceiling(task_card: TaskCard) -> None:
    """On every tier, within the width of the interval.

    Where no ceiling is known, it is worth more than random play.
    """
    for tier in task_card.difficulties:
        task: Any = task_card.build(difficulty=tier)
        scores = task_card.scores(tier)
        measured = scores["memoryless"]
        assert player_for(task, task_card.yardsticks["memoryless"]).initial(None) == ()
        expected = task.memoryless_ceiling
        if task_card.name == "Concentration-v0":  # it compares one card with the others in turn
            expected = (task.pairs + 1) / 2
        if expected is None:
            assert measured.low > scores["random"].high
        else:
            assert abs(measured.mean - expected) <= measured.high - measured.low
