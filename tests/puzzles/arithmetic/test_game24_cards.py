"""Tests of Game24Cards-v0 against independent references.

Formulas are compared with Python's own arithmetic over fractions, masks with every formula that the
grammar has, and pictures with cards pasted one by one.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.arithmetic import card_pictures, running_value
from rlbench_suite.envs.puzzles.arithmetic.card_pictures import as_rgb
from rlbench_suite.envs.puzzles.arithmetic.combine import Instance
from rlbench_suite.envs.puzzles.arithmetic.game24_cards import (
    LENGTH,
    TOKENS,
    FormulaState,
    Game24Cards,
    Game24CardsPuzzle,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "Game24Cards-v0"
TIERS = {"easy": 0, "medium": 2, "hard": 3}


def value(tokens: list[str]) -> Fraction | None:
    """Compute the value by recursive descent; None after a division by zero."""
    remaining = [*tokens]

    def total() -> Fraction:
        result = product()
        while remaining and remaining[0] in "+-":
            result = result + product() if remaining.pop(0) == "+" else result - product()
        return result

    def product() -> Fraction:
        result = atom()
        while remaining and remaining[0] in "*/":
            result = result * atom() if remaining.pop(0) == "*" else result / atom()
        return result

    def atom() -> Fraction:
        if (token := remaining.pop(0)) == "(":
            result = total()
            assert remaining.pop(0) == ")"
            return result
        return Fraction(int(token))

    try:
        result = total()
    except ZeroDivisionError:
        return None
    assert not remaining
    return result


def test_the_plain_reading_is_that_of_python() -> None:
    for text, expected in (
        ("8/(3-8/3)", 24),
        ("2-3-4", -5),
        ("2/3*4", Fraction(8, 3)),
        ("5/(4-2*2)", None),
    ):
        assert value(re.findall(r"\d+|\S", text)) == expected


def grammatical(dice: Dice, numbers: list[int], pairs: int) -> list[str]:
    """Return a random formula of all the numbers, with at most so many pairs of parentheses."""
    tokens: list[str] = []
    opened = closable = 0
    for place, number in enumerate(numbers):
        while opened < pairs and dice.below(3) == 0:
            tokens.append("(")
            opened, closable = opened + 1, closable + 1
        tokens.append(str(number))
        while closable and dice.below(3) == 0:
            tokens.append(")")
            closable -= 1
        if place < len(numbers) - 1:
            tokens.append(dice.choice("+-*/"))
    return tokens + [")"] * closable


# -- running values --------------------------------------------------------------------------------


def task_of(tier: str, observation: str = "symbols") -> Any:
    return card(NAME, observation=observation).build(difficulty=tier)


def replay(task: Game24Cards, hands: Any, targets: Any, formulas: list[list[str]]) -> Any:
    """Return the last states of formulas that are written, and the states on the way."""

    def write(numbers: jax.Array, target: jax.Array, actions: jax.Array) -> Any:
        key = jax.random.key(0)
        params = Params(Instance(numbers, target), jnp.zeros(1, jnp.int16))

        def step(state: FormulaState, action: jax.Array) -> Any:
            mask = task.action_mask(state, params)
            live = action >= 0
            after = task.transition(state, action, key, params)
            reward = task.reward(state, action, after, key, params)
            after = jax.tree.map(lambda new, old: jnp.where(live, new, old), after, state)
            symbols = task._symbols(after, params)
            worth = running_value.value_of(after.levels)
            outputs = mask, reward * live, task.terminal(after, key, params), worth, symbols
            return after, outputs

        return jax.lax.scan(step, task.initial(key, params), actions)

    return jax.jit(jax.vmap(write))(
        np.array(hands, np.int16), np.array(targets, np.int16), pad_formulas(formulas)
    )


def pad_formulas(formulas: list[list[str]]) -> np.ndarray:
    rows = np.full((len(formulas), LENGTH), -1, np.int32)
    for row, formula in zip(rows, formulas, strict=True):
        row[: len(formula)] = [TOKENS.index(token) for token in formula]
    return rows


def close_parentheses(tokens: list[str]) -> list[str]:
    """Return the formula so far with all parentheses closed.

    A waiting operator and empty parentheses are left out.
    """
    while tokens and tokens[-1] in "+-*/(":
        tokens = tokens[:-1]
    return tokens + [")"] * (tokens.count("(") - tokens.count(")"))


def test_values_are_those_of_fractions() -> None:
    """Compare 10,000 random formulas of four cards with fractions at every token.

    This covers whether = is rewarded after the last.
    """
    task, dice, count = task_of("medium"), Dice(1, 1), 10_000
    hands = [[dice.between(1, 13) for _ in range(4)] for _ in range(count)]
    for start, often in enumerate(
        ((1, 2), (1, 2, 3, 4, 6, 8, 12))
    ):  # divisions by zero, and the target
        for hand in hands[start::3]:
            hand[:] = [dice.choice(often) for _ in range(4)]
    formulas = [[*grammatical(dice, hand, 2), "="] for hand in hands]
    last, (mask, reward, over, (top, bottom), _) = replay(task, hands, [24] * count, formulas)
    mask, reward, over, top, bottom = map(np.asarray, (mask, reward, over, top, bottom))
    rewarded, undefined, compared = 0, 0, 0
    for row, formula in enumerate(formulas):
        for t, token in enumerate(formula):
            assert mask[row, t, TOKENS.index(token)], (formula, t)
            assert over[row, t] == (token == "=")
            if t % 3 == 0 or token == "=":
                so_far = close_parentheses([word for word in formula[: t + 1] if word != "="])
                if so_far and token not in "+-*/(":
                    expected = value(so_far)
                    running = (
                        Fraction(int(top[row, t]), int(bottom[row, t])) if bottom[row, t] else None
                    )
                    assert running == expected, (formula, t)
                    assert expected is not None or top[row, t] == 0
                    compared += 1
        worth = value(formula[:-1])
        assert reward[row].sum() == (worth == 24)
        rewarded += worth == 24
        undefined += worth is None
    assert compared > 2 * count
    assert rewarded > 50
    assert undefined > 30
    assert (np.asarray(last.length) == [len(formula) for formula in formulas]).all()
    bound = 2**3 * 13**4
    assert max(np.abs(top).max(), np.abs(bottom).max()) <= bound < 2**31 / 24


def test_symbols_say_what_could_come() -> None:
    """Compare every preview of random formulas, cut anywhere, with the formula written out."""
    for tier, size in (("easy", 2), ("medium", 4)):
        task, dice, count = task_of(tier), Dice(2, size), 60
        hands = [[dice.between(1, 13) for _ in range(size)] for _ in range(count)]
        formulas = [grammatical(dice, hand, size - 2) for hand in hands]
        worth_so_much = [value(formula) for formula in formulas]
        targets = [
            int(worth) if worth in range(1, 25) else dice.between(1, 24) for worth in worth_so_much
        ]
        _, (*_, symbols) = replay(task, hands, targets, formulas)
        symbols = np.asarray(symbols)
        on_target = 0
        for row, (hand, target, formula) in enumerate(zip(hands, targets, formulas, strict=True)):
            for t in range(len(formula)):
                tokens = formula[: t + 1]
                goal, lying, written, scaled, exact = np.split(
                    symbols[row, t], np.cumsum([1, 4 * 13, 12 * 20, 17])
                )
                assert goal == pytest.approx([target / 24])
                left = [*hand]
                for token in tokens:
                    if token.isdigit():
                        left[left.index(int(token))] = 0
                left += [0] * (4 - size)
                expected = np.zeros((4, 13))
                for slot, number in enumerate(left):
                    expected[slot, number - 1] = number > 0
                np.testing.assert_array_equal(lying.reshape(4, 13), expected)
                written_tokens = [TOKENS[k.argmax()] for k in written.reshape(12, 20) if k.any()]
                assert written_tokens == tokens
                awaits_number = tokens[-1] in "+-*/("
                waiting = "+" if tokens[-1] == "(" else tokens[-1]
                worths: list[Fraction | None] = []
                for operator, number in itertools.product("+-*/", left):
                    if not number or (awaits_number and operator != waiting):
                        worths.append(None)
                    else:
                        before_operator = tokens[:-1] if awaits_number else tokens
                        prefix = tokens if tokens[-1] == "(" else [*before_operator, operator]
                        worths.append(value(close_parentheses([*prefix, str(number)])))
                worths.append(None if awaits_number else value(close_parentheses(tokens)))
                expected_scaled = [
                    0.0 if worth is None else float(worth / (abs(worth) + target))
                    for worth in worths
                ]
                np.testing.assert_allclose(scaled, expected_scaled, atol=1e-6)
                assert exact.tolist() == [worth == target for worth in worths]
                on_target += int(exact.sum())
        assert on_target > 5


# -- grammar ---------------------------------------------------------------------------------------


def legal(tokens: list[str], hand: list[int], pairs: int) -> set[str]:
    """Write the rules of the mask out once more."""
    if tokens and tokens[-1] == "=":
        return set()
    left = Counter(map(str, hand)) - Counter(token for token in tokens if token.isdigit())
    if not tokens or tokens[-1] in "+-*/(":
        return set(left) | ({"("} if tokens.count("(") < pairs else set())
    open_now = tokens.count("(") - tokens.count(")")
    return (
        (set("+-*/") if left else set())
        | ({")"} if open_now else set())
        | ({"="} if not left and not open_now else set())
    )


@pytest.mark.parametrize(("tier", "size"), [("easy", 2), ("medium", 4)])
def test_random_play_keeps_the_grammar_and_always_ends(tier: str, size: int) -> None:
    """Check the masks, and what the verifier says of each finished formula.

    Legal tokens are drawn at random, in one batch.
    """
    task: Game24Cards = task_of(tier)
    puzzle, key, count = task.puzzle, jax.random.key(5), 300
    instances = [puzzle.generate(seed) for seed in range(count)]
    stacked = Instance(*(np.stack(column) for column in zip(*instances, strict=True)))
    params = Params(stacked, np.zeros((count, 1), np.int16))
    look = jax.jit(
        jax.vmap(lambda s, p: (task.action_mask(s, p), task.terminal(s, key, p), task.info(s, p)))
    )
    step = jax.jit(jax.vmap(lambda s, a, p: task.transition(s, a, key, p)))
    state = jax.vmap(lambda p: task.initial(key, p))(params)
    formulas: list[list[str]] = [[] for _ in range(count)]
    dice = Dice(8, size)
    for _ in range(LENGTH + 1):
        mask, over, info = jax.tree.map(np.asarray, look(state, params))
        actions = np.zeros(count, np.int32)
        for row, (formula, instance) in enumerate(zip(formulas, instances, strict=True)):
            allowed = legal(formula, instance.numbers.tolist(), size - 2)
            assert {TOKENS[k] for k in np.flatnonzero(mask[row])} == allowed
            assert over[row] == (not allowed) == (formula[-1:] == ["="])
            if allowed:
                formula.append(dice.choice(sorted(allowed)))
                actions[row] = TOKENS.index(formula[-1])
        if over.all():
            break
        after = step(state, actions, params)
        state = jax.tree.map(
            lambda new, old, over=over: np.where(over.reshape(-1, *[1] * (new.ndim - 1)), old, new),
            after,
            state,
        )
    assert over.all()
    verdicts = [puzzle.verify(i, "".join(f[:-1])) for i, f in zip(instances, formulas, strict=True)]
    assert all(verdict.valid for verdict in verdicts)
    assert info["success"].tolist() == [verdict.solved for verdict in verdicts]
    assert not info["unused"].any()
    assert any(verdict.solved for verdict in verdicts)


@pytest.mark.parametrize("tier", TIERS)
def test_the_plan_makes_the_target(tier: str) -> None:
    task: Game24Cards = task_of(tier)
    puzzle, count = task.puzzle, 100
    instances = [puzzle.generate(seed, ("train", "test")[seed % 2]) for seed in range(count)]
    plans = [puzzle.plan(instance) for instance in instances]
    formulas = [[TOKENS[action] for action in plan] for plan in plans]
    hands, targets = zip(*instances, strict=True)
    _, (mask, reward, over, *_) = replay(task, hands, targets, formulas)
    for row, plan in enumerate(plans):
        assert all(mask[row, t, action] for t, action in enumerate(plan))
        assert np.asarray(over[row]).argmax() == len(plan) - 1
        assert value(formulas[row][:-1]) == targets[row]
    np.testing.assert_array_equal(np.asarray(reward).sum(axis=1), card(NAME).optimum)


@pytest.mark.engine("formulas over fractions: the target")
@pytest.mark.parametrize(("tier", "count"), [(0, 400), (2, 500), (3, 500)])
def test_formulas_make_the_target(tier: int, count: int, compared: Compared) -> None:
    puzzle = Game24CardsPuzzle(tier)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        *formula, last = (TOKENS[action] for action in puzzle.plan(instance))
        assert last == "="
        assert value(formula) == instance.target
        assert sorted(int(token) for token in formula if token.isdigit()) == sorted(
            instance.numbers.tolist()
        )
        compared(puzzle, instance)


# -- hands -----------------------------------------------------------------------------------------


def test_two_cards_make_222_targets() -> None:
    possible = {
        (a, b, target)
        for a, b in itertools.combinations_with_replacement(range(1, 14), 2)
        for target in range(1, 25)
        if target in (a + b, a * b, b - a, Fraction(b, a))
    }
    assert len(possible) == 222 == Game24CardsPuzzle(0).space
    puzzle = Game24CardsPuzzle(0)
    hands_by_split: dict[str, set[tuple[int, ...]]] = {}
    for split in ("train", "test"):
        instances = [puzzle.generate(seed, split) for seed in range(1000)]
        hands_by_split[split] = {
            (*sorted(instance.numbers.tolist()), int(instance.target)) for instance in instances
        }
    assert hands_by_split["train"] | hands_by_split["test"] == possible
    assert not hands_by_split["train"] & hands_by_split["test"]
    assert min(len(hands) for hands in hands_by_split.values()) > 80


@pytest.mark.parametrize("tier", TIERS.values())
def test_hands_come_in_any_order_and_are_solved(tier: int) -> None:
    puzzle = Game24CardsPuzzle(tier)
    ascending = 0
    for seed in range(200):
        instance = puzzle.generate(seed)
        numbers = instance.numbers.tolist()
        ascending += numbers == sorted(numbers)
        assert puzzle.verify(instance, puzzle.solve(instance)).solved
        assert puzzle.canonical(instance) == puzzle.canonical(
            instance._replace(numbers=instance.numbers[::-1])
        )
    assert ascending < 140


def test_tiers_are_ordered_by_difficulty() -> None:
    means = []
    for tier in TIERS.values():
        puzzle = Game24CardsPuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)]))
    assert means[0] + 4 < means[1] < means[2] - 1
    with pytest.raises(ValueError, match=r"0 for two cards, .* got 4"):
        Game24CardsPuzzle(4)


def test_the_prompt_names_the_cards() -> None:
    puzzle = Game24CardsPuzzle(3)
    instance = Instance(np.array([1, 13, 10, 12], np.int16), np.array(24, np.int16))
    prompt = puzzle.prompt(instance)
    assert "Cards: A of spades, K of hearts, 10 of clubs, Q of diamonds\n" in prompt
    assert "A counts as 1, J as 11, Q as 12 and K as 13" in prompt
    for wrong in ("1 13 10 12", "A * K", "24", "12 + 12", "(13 - 1) * (12 - 10", "1 * 12 + 13"):
        assert puzzle.verify(instance, wrong).score == 0


# -- pictures --------------------------------------------------------------------------------------


def test_every_card_and_token_looks_different() -> None:
    pictures, strips = as_rgb(card_pictures.cards()), as_rgb(card_pictures.boxes(TOKENS))
    assert len({picture.tobytes() for picture in pictures}) == 53
    assert len({strip.tobytes() for strip in strips}) == 21
    red = [
        k
        for k, picture in enumerate(pictures)
        if ((picture[..., 0] > 150) & (picture[..., 1] < 80)).any()
    ]
    assert red == [k for k in range(52) if k % 4 in (1, 3)]


def test_the_picture_shows_hand_and_formula() -> None:
    """Against cards pasted by hand, at every step of some plans."""
    task: Any = task_of("medium", "pixels")
    puzzle = task.puzzle
    places, suits = set(), set()
    look = jax.jit(lambda state, params: task.observation(state, jax.random.key(0), params))
    step = jax.jit(
        lambda state, action, params: task.transition(state, action, jax.random.key(0), params)
    )
    pictures, strips = as_rgb(card_pictures.cards()), as_rgb(card_pictures.boxes(TOKENS))
    for seed in range(12):
        instance = puzzle.generate(seed)
        params = jax.tree.map(jnp.asarray, Params(instance, np.zeros(1, np.int16)))
        state = task.initial(jax.random.fold_in(jax.random.key(0), seed), params)
        expected = np.empty((64, 156, 3), np.uint8)
        expected[:50] = pictures[-1][0, 0]
        expected[50:] = strips[0][0, 0]
        expected[50:, 144:] = 255 - as_rgb(card_pictures.boxes(("24",)))[1]
        hand = zip(
            instance.numbers.tolist(),
            *(np.asarray(leaf).tolist() for leaf in state[1:4]),
            strict=True,
        )
        for slot, (number, suit, down, right) in enumerate(hand):
            plain = pictures[4 * (number - 1) + suit][7:50, 7:36]
            expected[down : down + 43, 36 * slot + right : 36 * slot + right + 29] = plain
            places.add((down, right))
        suits.add(tuple(np.asarray(state.suits).tolist()))
        for t, action in enumerate([None, *puzzle.plan(instance)]):
            if action is not None:
                state = step(state, jnp.int32(action), params)
                expected[50:, 12 * (t - 1) : 12 * t] = strips[action + 1]
            picture = np.asarray(look(state, params))
            assert picture.dtype == np.uint8
            np.testing.assert_array_equal(picture, expected)
    assert len(places) > 20
    assert len(suits) > 5
    assert all(sorted(order) == [0, 1, 2, 3] for order in suits)
    np.testing.assert_array_equal(task.draw(state, params)[::4, ::4], expected)
    assert task.draw(state, params).shape == task.picture_shape


def test_two_cards_leave_two_slots_empty() -> None:
    task: Any = task_of("easy", "pixels")
    params = jax.tree.map(jnp.asarray, Params(task.puzzle.generate(0), np.zeros(1, np.int16)))
    picture = np.asarray(
        task.observation(task.initial(jax.random.key(0), params), jax.random.key(0), params)
    )
    assert (picture[:50, 72:] == picture[0, -1]).all()
    assert not (picture[:50, :36] == picture[0, -1]).all()


def test_words_name_tokens_and_say_what_is_wrong() -> None:
    task: Any = task_of("medium")
    hand = Instance(np.array([6, 6, 2, 13], np.int16), np.array(24, np.int16))
    params = jax.tree.map(jnp.asarray, Params(hand, np.zeros(1, np.int16)))
    state = task.initial(jax.random.key(0), params)
    refused = {
        "5": "no card left has that number",
        "+": "a value is due",
        ")": "a value is due",
        "=": "a value is due",
    }
    for text, message in refused.items():
        assert message in task.why_illegal(task.parse(text, state, params), state, params)
    for text in ["6", "+", "(", "6", "-", "(", "2"]:
        state = task.transition(
            state, jnp.asarray(task.parse(text, state, params)), jax.random.key(0), params
        )
    assert task.describe(state, params).endswith("Formula: 6 + ( 6 - ( 2")
    for text, message in (
        ("6", "cannot follow a value"),
        ("(", "cannot follow a value"),
        ("=", "comes last"),
    ):
        assert message in task.why_illegal(task.parse(text, state, params), state, params)
    for text in [")", ")", "*", "13"]:
        state = task.transition(
            state, jnp.asarray(task.parse(text, state, params)), jax.random.key(0), params
        )
    for text, message in ((")", "no parenthesis is open"), ("+", "no card is left")):
        assert message in task.why_illegal(task.parse(text, state, params), state, params)
    state = task.transition(
        state, jnp.asarray(task.parse("=", state, params)), jax.random.key(0), params
    )
    assert task.why_over(state, params, task.info(state, params)) == "the formula does not make 24"
    with pytest.raises(ValueError, match="expected one of"):
        task.parse("14", state, params)
