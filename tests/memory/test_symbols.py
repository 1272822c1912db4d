"""Tasks of remembered symbols against plain accounts of their rules.

Their ceilings are compared with enumeration.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.entry_points import make_vec
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.memory import count_recall, delayed_instruction
from rlbench_suite.envs.memory.revised_facts import ROOMS, THINGS

pytestmark = pytest.mark.of_variants

Oracle = Iterator[int | None]
"""For each observation that is sent to it, the right answer; None where nothing is asked."""


def hot_index(encoded: np.ndarray) -> int:
    """Return the position of the one, -1 if there is none."""
    assert encoded.sum() in (0, 1)
    return int(encoded.argmax()) if encoded.any() else -1


# -- the rules, each as an account of what was observed --------------------------------------------


def repeat_previous(observations: list[np.ndarray], distance: int) -> int | None:
    return hot_index(observations[-1 - distance]) if len(observations) > distance else None


def autoencode(observations: list[np.ndarray], length: int) -> int | None:
    watched = [hot_index(observation[:4]) for observation in observations if not observation[4]]
    recited = sum(observation[4] for observation in observations)
    assert len(watched) == min(len(observations), length)
    return watched[-int(recited)] if recited else None


def counts(observations: list[np.ndarray], symbols: int) -> int | None:
    return Counter(hot_index(observation[:symbols]) for observation in observations)[
        hot_index(observations[-1][symbols:])
    ]


def n_back(observations: list[np.ndarray], distance: int) -> int | None:
    return (
        int(hot_index(observations[-1]) == hot_index(observations[-1 - distance]))
        if len(observations) > distance
        else None
    )


def store(observations: list[np.ndarray], keys: int) -> int | None:
    stored: dict[int, int] = {}
    for observation in observations:
        instruction = hot_index(observation[:3])
        key = hot_index(observation[3 : 3 + keys])
        value = hot_index(observation[3 + keys :])
        assert (value >= 0) == (instruction == 0)
        if instruction == 2:
            answer = stored.get(key, 4)
        else:
            answer = None
            stored[key] = value
            if instruction == 1:
                del stored[key]
    return answer


def obey(observations: list[np.ndarray], longest: int) -> int | None:
    instructions = [number for number, observation in enumerate(observations) if observation[0]]
    if not observations[-1][2]:
        return None
    assert 1 <= len(observations) - 1 - instructions[-1] - 1 <= longest
    return 1 + hot_index(observations[instructions[-1]][3:])


def whereabouts(observations: list[np.ndarray], things: int) -> int | None:
    where: dict[int, int] = {}
    for observation in observations:
        sentence, first, second, room = (
            hot_index(field) for field in np.split(observation, np.cumsum([4, things, things]))
        )
        if sentence == 3:
            continue
        if sentence == 0:
            where[first] = room
        elif sentence == 1:
            where[first] = where[second]
        else:
            where[first], where[second] = where[second], where[first]
    return (
        where[hot_index(observations[-1][4 : 4 + things])]
        if hot_index(observations[-1][:4]) == 3
        else None
    )


RULES: dict[str, Callable[[list[np.ndarray], int], int | None]] = {
    "RepeatPrevious-v0": repeat_previous,
    "Autoencode-v0": autoencode,
    "CountRecall-v0": counts,
    "NBack-v0": n_back,
    "KeyValue-v0": store,
    "DelayedInstruction-v0": obey,
    "RevisedFacts-v0": whereabouts,
}


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        *((name, {}) for name in RULES),
        ("KeyValue-v0", {"rewriting": "0.875"}),
        ("DelayedInstruction-v0", {"distractors": "1"}),
        ("RevisedFacts-v0", {"rewriting": "0.125"}),
    ],
)
def test_rewards_are_those_of_the_rules(name: str, knobs: dict[str, str]) -> None:
    """Half of the answers are right and half at random.

    The account knows no more than was observed.
    """
    env: Any = gymnasium.make(f"rlsuite/{name}", **knobs)
    size = int(env.unwrapped.task.difficulty)
    rng = np.random.default_rng(0)
    num_questions = num_right = 0
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        observations, over, answered, good = [observation], False, 0, 0
        while not over:
            answer = RULES[name](observations, size)
            action = (
                int(rng.integers(env.action_space.n))
                if answer is None or rng.random() < 0.5
                else answer
            )
            observation, reward, terminated, truncated, info = env.step(action)
            assert reward == (action == answer)
            answered, good = answered + (answer is not None), good + (action == answer)
            assert (info["right"], info["wrong"]) == (good, answered - good)
            assert info["success"] is (0 < good == answered)
            observations, over = [*observations, observation], terminated or truncated
        num_questions, num_right = num_questions + answered, num_right + good
    assert 0 < num_right < num_questions


@pytest.mark.parametrize("name", RULES)
def test_the_reference_is_always_right_and_reaches_the_optimum(name: str) -> None:
    task: Any = card(name).build()
    record = play(task, load(task.card.reference).for_task(task), range(400))
    assert record.info["success"].all()
    assert task.optimum == pytest.approx(task.card.optimum, rel=1e-12)
    assert abs(record.total.mean() - task.optimum) <= 4 * record.total.std() / 20


# -- closed forms against enumeration --------------------------------------------------------------


@pytest.mark.parametrize(("symbols", "copies"), [(2, 2), (3, 1), (2, 3)])
def test_the_ceiling_of_counts_is_that_of_all_decks(symbols: int, copies: int) -> None:
    """Every order of a small deck, every question; every map of what is seen to a count."""
    deck = [symbol for symbol in range(symbols) for _ in range(copies)]
    frequency: dict[tuple[int, int], Counter[int]] = {}
    orders = [*itertools.permutations(deck)]
    for order in orders:
        for step, symbol_shown in enumerate(order):
            for question in range(symbols):
                frequency.setdefault((symbol_shown, question), Counter())[
                    order[: step + 1].count(question)
                ] += 1
    best = sum(max(table.values()) for table in frequency.values())
    assert count_recall.memoryless_ceiling(symbols, copies) == Fraction(best, len(orders) * symbols)


@pytest.mark.parametrize(("longest", "steps"), [(1, 7), (2, 9), (3, 11)])
def test_the_number_of_calls_is_that_of_all_delays(longest: int, steps: int) -> None:
    sequences = [*itertools.product(range(1, longest + 1), repeat=steps // 3)]
    calls = 0
    for row in sequences:
        ends_of_cycles = itertools.accumulate(delay + 2 for delay in row)
        calls += sum(end <= steps for end in ends_of_cycles)
    assert delayed_instruction.expected_calls(longest, steps) == Fraction(calls, len(sequences))


def test_symbols_of_n_back_tell_nothing_of_repetition() -> None:
    """Whatever symbol is shown, half are repetitions: five standard deviations of a binomial."""
    envs: Any = gymnasium.make_vec("rlsuite/NBack-v0", 512, difficulty=2)
    observations = [envs.reset(seed=0)[0]]
    observations += [envs.step(np.zeros(512, int))[0] for _ in range(50)]
    symbols = np.argmax(observations, -1).T
    is_repetition = symbols[:, 2:] == symbols[:, :-2]
    for symbol in range(4):
        repeated = is_repetition[symbols[:, 2:] == symbol]
        assert abs(repeated.mean() - 0.5) < 2.5 / len(repeated) ** 0.5


@pytest.mark.parametrize(
    ("task_id", "rewrites", "among"),
    [
        *(
            (f"KeyValue-v0?rewriting={rate}", (0, 1), (0, 1, 2))
            for rate in ("0.5", "0.125", "0.875")
        ),
        *(
            (f"RevisedFacts-v0?rewriting={rate}", (0, 1, 2), (0, 1, 2, 3))
            for rate in ("0.5", "0.125", "0.875")
        ),
        *(
            (f"DelayedInstruction-v0?distractors={rate}", (1,), (1, -1))
            for rate in ("0.5", "0", "1")
        ),
    ],
)
def test_knobs_are_the_rates_that_they_name(
    task_id: str, rewrites: tuple[int, ...], among: tuple[int, ...]
) -> None:
    """The first observed entries tell what is said; four standard deviations of a binomial.

    Facts are told at first.
    """
    envs: Any = make_vec(card(task_id).id, 256)
    observations = [envs.reset(seed=0)[0]] + [envs.step(np.zeros(256, int))[0] for _ in range(40)]
    kinds = 4 if "Facts" in task_id else 3
    instructions = [
        np.where(row[:, :kinds].any(1), row[:, :kinds].argmax(1), -1) for row in observations[4:]
    ]
    counted = np.isin(instructions, rewrites)[np.isin(instructions, among)]
    rate = float(task_id.partition("=")[2])
    assert abs(counted.mean() - rate) <= 4 * (rate * (1 - rate) / len(counted)) ** 0.5


# -- learning --------------------------------------------------------------------------------------


def test_only_a_memory_beats_the_ceiling() -> None:
    task: Any = card("NBack-v0").build(difficulty=1)
    *_, blind = PPO(total_steps=30_000, recurrent="none").train(task, seed=0, budget="smoke")
    *_, policy = PPO(total_steps=150_000).train(task, seed=0, budget="smoke")
    without = play(task, blind, range(300)).total
    assert without.mean() == pytest.approx(
        task.memoryless_ceiling, abs=float(5 * without.std() / 300**0.5)
    )
    assert play(task, policy, range(300)).total.mean() > 0.9 * task.optimum


def test_a_wrong_difficulty_is_refused_and_words_name_the_things() -> None:
    for wrong in (0, 2.5, 65):
        with pytest.raises(ValueError, match="whole number from 1 to 64"):
            card("RepeatPrevious-v0").build(difficulty=wrong)
    env: Any = gymnasium.make("rlsuite/RevisedFacts-v0", view="text", difficulty=3)
    text, _ = env.reset(seed=1)
    assert all(item in env.unwrapped.task.rules() for item in THINGS[:3])
    assert "The key is in the " in text
    text, *_ = env.step("kitchn")
    assert "Did you mean 'kitchen'" in text
    assert all(room in env.unwrapped.task.how_to_act() for room in ROOMS)
