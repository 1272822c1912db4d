"""Tests of StackPermutation against independent references.

They are Knuth's pattern, exhaustive search over all operations, and a plain stack.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.component import named
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.moves.stack_permutation import Instance, operations
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "StackPermutation-v0"


def has_pattern(order: tuple[int, ...]) -> bool:
    """Three numbers that go high, low, middle."""
    return any(low < middle < high for high, low, middle in itertools.combinations(order, 3))


def output_of(words: list[str]) -> tuple[int, ...] | None:
    """Return the order that operations write down; None if one cannot be done."""
    arriving, stack, out = iter(range(1, 99)), [], []
    for word in words:
        if word == "push":
            stack.append(next(arriving))
        elif not stack:
            return None
        else:
            out.append(stack.pop())
    return tuple(out)


def instance_of(order: tuple[int, ...]) -> Instance:
    return Instance(np.array(order, np.int8))


def trade_places(orders: Iterable[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return the orders after two numbers trade places."""
    traded_orders = set()
    for order in orders:
        for first, second in itertools.combinations(range(len(order)), 2):
            new = list(order)
            new[first], new[second] = new[second], new[first]
            traded_orders.add(tuple(new))
    return traded_orders


@pytest.mark.parametrize("count", [4, 5, 6])
def test_all_orders(count: int) -> None:
    """Try every word of pushes and pops, and every order.

    The number of possible orders is a Catalan number.
    """
    puzzle: Any = puzzle_of(NAME, count)
    reached = {}
    for pushes in itertools.combinations(range(2 * count), count):
        words = ["push" if k in pushes else "pop" for k in range(2 * count)]
        if (out := output_of(words)) is not None:
            reached[out] = " ".join(words)
    assert len(reached) == comb(2 * count, count) // (count + 1)
    assert len(reached | dict.fromkeys(trade_places(reached))) == puzzle.space
    for order in itertools.permutations(range(1, count + 1)):
        instance = instance_of(order)
        assert operations(order)[1] == (order in reached) == (not has_pattern(order))
        assert puzzle.solve(instance) == reached.get(order, "impossible")
        assert puzzle.verify(instance, "impossible").solved == (order not in reached)


@pytest.mark.engine("Knuth's pattern: whether it is possible")
@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_half_of_the_orders_are_impossible(tier: str, compared: Compared) -> None:
    puzzle = puzzle_of(NAME, tier)
    impossible = 0
    for seed in range(1000):
        instance = puzzle.generate(seed)
        order, answer = tuple(instance.order.tolist()), puzzle.solve(instance)
        assert sorted(order) == list(range(1, puzzle.count + 1))
        impossible += has_pattern(order)
        assert has_pattern(order) == (answer == "impossible")
        assert has_pattern(order) or output_of(answer.split()) == order
        compared(puzzle, instance)
    assert impossible == 500


def test_a_verdict_says_what_the_operations_write() -> None:
    puzzle = puzzle_of(NAME)
    rng = np.random.default_rng(0)
    right = 0
    for seed in range(1000):
        instance = puzzle.generate(seed)
        words = puzzle.solve(instance).split()
        if len(words) == 1:
            words = puzzle.guess(instance, Dice(1, seed)).split()
        if seed % 2 and len(words) > 1:
            at = rng.integers(len(words) - 1)
            words[at], words[at + 1] = words[at + 1], words[at]
        verdict = puzzle.verify(instance, " ".join(words))
        assert verdict.valid
        truth = (
            has_pattern(tuple(instance.order))
            if len(words) == 1
            else output_of(words) == tuple(instance.order)
        )
        assert verdict.solved == truth
        right += truth
    assert 200 < right < 800


@pytest.mark.parametrize(
    "answer",
    ["", "push", "Impossible", "impossible ", "push " * 28, "push,pop", "1 2 3", "pop " * 99],
)
def test_other_formats_are_invalid(answer: str) -> None:
    puzzle = puzzle_of(NAME)
    assert not puzzle.verify(puzzle.generate(0), answer).valid


def test_the_task_plays_by_the_same_rules() -> None:
    """Random legal play, in one batch, against a list."""
    task: Any = card(NAME).build(difficulty="easy")
    count, n = 256, task.count
    orders = np.stack([task.puzzle.generate(seed).order for seed in range(count)])
    context = Params(Instance(jnp.asarray(orders)), jnp.zeros((count, 1), jnp.int16))
    key = jax.random.key(0)
    state = jax.vmap(lambda p: task.initial(key, p))(context)

    @jax.jit
    @jax.vmap
    def step(state: Any, action: jax.Array, p: Params) -> Any:
        new = task.transition(state, action, key, p)
        reward = task.reward(state, action, new, key, p)
        observation = task.observation(new, key, p)
        return new, reward, task.terminal(new, key, p), task.action_mask(new, p), observation

    rng = np.random.default_rng(0)
    stacks: list[list[int]] = [[] for _ in range(count)]
    pushed, out = [0] * count, [0] * count
    total, over = np.zeros(count), np.zeros(count, bool)
    for _ in range(2 * n):
        actions = []
        for k in range(count):
            can = [a for a, legal in enumerate((pushed[k] < n, bool(stacks[k]))) if legal]
            correct = 1 if stacks[k] and stacks[k][-1] == orders[k][min(out[k], n - 1)] else 0
            actions.append(
                correct if correct in can and rng.random() < 0.9 else rng.choice(can or [0])
            )
        new, reward, terminal, mask, observation = step(state, jnp.asarray(actions), context)
        state = jax.tree.map(lambda n, o: jnp.where(jnp.asarray(over), o, n), new, state)
        for k, action in enumerate(actions):
            if over[k]:
                continue
            expected = 0.0
            if action == 0:
                pushed[k] += 1
                stacks[k].append(pushed[k])
                fine = True
            elif fine := stacks[k].pop() == orders[k][out[k]]:
                out[k] += 1
                expected = 1 / n + (out[k] == n)
            assert reward[k] == pytest.approx(expected)
            assert terminal[k] == (not fine or out[k] == n)
            assert mask[k].tolist() == [pushed[k] < n, bool(stacks[k])]
            assert task.observation_space.contains(np.asarray(observation[k]))
            if fine and out[k] < n:
                components = named(task.observation_components(), np.asarray(observation[k]))
                next_number = orders[k][out[k]]
                assert np.flatnonzero(components["wanted"]).tolist() == [next_number - 1]
                assert [v + 1 for v in np.flatnonzero(components["inside"])] == stacks[k]
                assert [v + 1 for v in np.flatnonzero(components["top"])] == stacks[k][-1:]
            total[k] += expected
            over[k] = terminal[k]
    assert over.all()
    assert 0.05 < np.isclose(total, 2).mean() < 0.95


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_plan_earns_the_optimum(tier: str) -> None:
    task = card(NAME).build(difficulty=tier)
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, 2, atol=1e-4)


def test_people_can_play() -> None:
    task: Any = card(NAME).build(difficulty="easy")
    params = Params(instance_of((2, 1, 3, 4, 5, 6)), np.zeros(1, np.int16))
    key = jax.random.key(0)
    state = task.initial(key, params)
    assert "stack is empty" in task.why_illegal(np.int64(1), state, params)
    for word in ("push", "push", " pop\n"):
        state = task.transition(state, jnp.asarray(task.parse(word, state, params)), key, params)
    text = task.describe(state, params)
    assert "2 1 3 4 5 6" in text
    assert "Out so far: 1 of 6." in text
    assert "the top last: 1." in text
    assert "next: 3." in text
    with pytest.raises(ValueError, match="expected one of push, pop"):
        task.parse("wait", state, params)
    assert task.draw(state, params).shape == task.picture_shape
    state = task.transition(state, jnp.int32(0), key, params)
    state = task.transition(state, jnp.int32(1), key, params)
    assert task.why_over(state, params, {}) == "a number came out that was not wanted next"


@pytest.mark.parametrize("tier", [3, 25, 6.5])
def test_other_sizes_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="how many numbers there are, 4 to 24, got"):
        puzzle_of(NAME, tier)


def test_words_after_a_broken_rule_are_read_too() -> None:
    """A proof that ends early is well-formed only if all of it is."""
    puzzle = puzzle_of("StackPermutation-v0")
    instance = puzzle.generate(0)
    words = 2 * len(instance.order)
    assert not puzzle.verify(instance, " ".join(["pop", *["garbage"] * (words - 1)])).valid
    assert puzzle.verify(instance, " ".join(["pop"] * words)).valid
