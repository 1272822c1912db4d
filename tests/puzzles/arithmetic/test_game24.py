"""Game24-v0 against brute force over whole expressions: brackets times orders times signs."""

from __future__ import annotations

import itertools
import math
import operator
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.puzzles.arithmetic.combine import CombineTask, NumbersState
from rlbench_suite.envs.puzzles.arithmetic.game24 import THIRDS, Game24Puzzle, chance_of
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = {"easy": 1, "medium": 2, "hard": 3}
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
HANDS = list(itertools.combinations_with_replacement(range(1, 14), 4))


def solvable() -> list[bool]:
    """Return for each hand whether some bracketing of some order makes 24, in floats.

    Floats err by far less than two results can differ. A division by zero gives infinity or no
    number, and nothing that uses all cards turns these into 24.
    """
    makes_24 = np.zeros(len(HANDS), bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        for a, b, c, d in itertools.permutations(np.array(HANDS, float).T):
            for f, g, h in itertools.product(
                (np.add, np.subtract, np.multiply, np.divide), repeat=3
            ):
                chained = (
                    h(g(f(a, b), c), d),
                    f(a, g(b, h(c, d))),
                    h(f(a, g(b, c)), d),
                    f(a, h(g(b, c), d)),
                )
                for value in (*chained, g(f(a, b), h(c, d))):
                    makes_24 |= np.abs(value - 24) < 1e-6
    return makes_24.tolist()


@pytest.mark.engine("all expressions: which of all hands are solvable")
def test_1362_of_1820_hands_are_solvable(compared: Compared) -> None:
    assert len(HANDS) == 1820
    ours = [chance_of(hand) for hand in HANDS]
    assert [chance > 0 for chance in ours] == solvable()
    assert sum(chance > 0 for chance in ours) == 1362
    for hand, chance in zip(HANDS, ours, strict=True):
        if chance:
            puzzle = Game24Puzzle(1 + int(np.searchsorted(THIRDS, -math.log2(chance))))
            instance = puzzle.generate(0)._replace(numbers=np.array(hand, np.int16))
            assert puzzle.verify(instance, puzzle.solve(instance)).solved
            compared(puzzle, instance)


def test_the_tiers_are_thirds_of_the_solvable_hands() -> None:
    bits = np.array([-math.log2(chance) for hand in HANDS if (chance := chance_of(hand))])
    sizes = np.bincount(np.searchsorted(THIRDS, bits))
    assert sizes.sum() == 1362
    # not 454 each: hands of equal difficulty stay together
    assert (
        sizes.tolist()
        == [462, 474, 426]
        == [Game24Puzzle(tier).space for tier in Game24Puzzle.tiers]
    )


def test_chance_is_that_of_the_task() -> None:
    """Check that uniformly random legal play wins as often as the difficulty says.

    The play is that of the interactive form.
    """
    task = card("Game24-v0").build(difficulty="easy")
    puzzle, key, count = task.puzzle, jax.random.key(3), 20_000
    instance = puzzle.generate(0)
    params = jax.tree.map(jnp.asarray, Params(instance, np.zeros(1, np.int16)))

    def play(key: jax.Array) -> jax.Array:
        state = task.initial(key, params)
        for step in range(3):
            logits = jnp.where(task.action_mask(state, params), 0.0, -jnp.inf)
            action = jax.random.categorical(jax.random.fold_in(key, step), logits)
            state = task.transition(state, action, key, params)
        return task.info(state, params)["success"]

    won = float(jax.jit(jax.vmap(play))(jax.random.split(key, count)).mean())
    chance = 2 ** -puzzle.difficulty(instance)
    assert abs(won - chance) < 4 * math.sqrt(chance / count)


def test_tiers_are_ordered_by_difficulty() -> None:
    means = []
    for tier in TIERS.values():
        puzzle = Game24Puzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)]))
    assert means[0] + 1 < means[1] < means[2] - 1


def test_only_three_thirds() -> None:
    with pytest.raises(ValueError, match=r"one of 1, 2, 3, got 4"):
        Game24Puzzle(4)


@pytest.mark.parametrize("tier", TIERS.values())
def test_every_hand_is_solved(tier: int) -> None:
    puzzle = Game24Puzzle(tier)
    for seed in range(300):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        verdict = puzzle.verify(instance, puzzle.solve(instance))
        assert verdict.solved, (instance, verdict)


@pytest.mark.parametrize(
    ("cards", "answer", "right"),
    [
        ((3, 3, 8, 8), "8 / (3 - 8 / 3)", True),
        ((3, 3, 8, 8), "8/(3-8/3)", True),
        ((3, 3, 8, 8), "((8)) / ((3 - (8 / 3)))", True),
        ((1, 2, 3, 4), "1 * 2 * 3 * 4", True),
        ((1, 2, 3, 4), "(1 + 3) * (2 + 4)", True),
        ((1, 1, 2, 12), "1 * 1 * 2 * 12", True),
        ((2, 2, 2, 4), "2 * 2 * 2 * 4", False),
        ((1, 2, 3, 4), "2 * 3 * 4", False),
        ((1, 2, 3, 4), "4 * 3 * 2 / 1 / 1", False),
        ((1, 1, 4, 5), "4 * (5 + 1 / 1)", True),
        ((1, 1, 12, 12), "12 + 12 * 1 / (1 - 1)", False),
        ((4, 4, 10, 10), "(10 * 10 - 4) / 4", True),
        ((2, 4, 1, 1), "24 * 1 * 1", False),
    ],
)
def test_verdicts(cards: tuple[int, ...], answer: str, right: bool) -> None:
    puzzle = Game24Puzzle(1)
    instance = puzzle.generate(0)._replace(numbers=np.array(cards, np.int16))
    verdict = puzzle.verify(instance, answer)
    assert verdict.solved == right
    assert bool(verdict.reason) != right


@pytest.mark.parametrize(
    "answer",
    [
        "", "24", "+", "(8", "8)", "8 8", "8 / (3 - 8 / 3) = 24", "-8 / (8 / 3 - 3)", "8 // 3",
        "8 ** 3", "8 3 / 3 + 8", "()", "8 + ()", "8.0 / 3", "0x8", "8_0", "9" * 7, "8/(3-8/3))",
        "(" * 5000, "(" * 4000 + "8" + ")" * 4000, "__import__('os')", "8 / (3 - 8 / 3) # right",
        "3 + 3 + 8 + 8 + 2", "8\n/ (3 - 8 / 3)",
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(answer: str) -> None:
    puzzle = Game24Puzzle(1)
    instance = puzzle.generate(0)._replace(numbers=np.array((3, 3, 8, 8), np.int16))
    verdict = puzzle.verify(instance, answer)
    assert verdict.score == 0
    assert verdict.reason


def test_values_are_those_of_python() -> None:
    """Compare the verifier with Python's own arithmetic.

    The expressions are random and of any shape. The verifier must accept exactly those that make
    24.
    """
    puzzle, dice = Game24Puzzle(1), Dice(1, 2)
    instance = puzzle.generate(0)
    agreed = {True: 0, False: 0}
    for _ in range(20_000):
        cards = [dice.between(1, 13) for _ in range(4)]
        words: list[tuple[str, Fraction]] = [(str(card), Fraction(card)) for card in cards]
        dice.shuffle(words)
        divides_by_zero = False
        while len(words) > 1:
            at = dice.below(len(words) - 1)
            (left, a), (right, b) = words[at : at + 2]
            sign = dice.choice("+-*/")
            divides_by_zero |= sign == "/" and b == 0
            value = a if sign == "/" and b == 0 else OPERATIONS[sign](a, b)
            words[at : at + 2] = [(f"({left} {sign} {right})", value)]
        text, value = words[0]
        solved = puzzle.verify(instance._replace(numbers=np.array(cards, np.int16)), text).solved
        assert solved == (value == 24 and not divides_by_zero), text
        agreed[solved] += 1
    assert min(agreed.values()) > 20


def test_precedence_is_that_of_python() -> None:
    puzzle, dice = Game24Puzzle(1), Dice(3, 4)
    instance = puzzle.generate(0)
    num_solved = 0
    for _ in range(20_000):
        cards = [dice.between(1, 13) for _ in range(4)]
        signs = [dice.choice("+-*/") for _ in range(3)]
        groups, sign = [Fraction(cards[0])], signs
        for s, number in zip(sign, cards[1:], strict=True):  # sums of products, by hand
            if s in "*/":
                groups[-1] = OPERATIONS[s](groups[-1], Fraction(number))
            else:
                groups.append(Fraction(number if s == "+" else -number))
        text = "".join(f"{card}{s}" for card, s in zip(cards, [*signs, ""], strict=True))
        solved = puzzle.verify(instance._replace(numbers=np.array(cards, np.int16)), text).solved
        assert solved == (sum(groups) == 24), text
        num_solved += solved
    assert num_solved > 20


def test_canonical_forgets_the_order_only() -> None:
    puzzle = Game24Puzzle(2)
    forms = set()
    for hand in HANDS:
        instance = puzzle.generate(0)._replace(numbers=np.array(hand, np.int16))
        assert puzzle.canonical(instance) == puzzle.canonical(
            instance._replace(numbers=instance.numbers[::-1])
        )
        forms.add(puzzle.canonical(instance))
    assert len(forms) == len(HANDS)


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Game24-v0", "Countdown-v0"])
def test_every_action_is_what_fractions_say(name: str) -> None:
    """Masks, results and ends of random plays in one batch, against Python's fractions."""
    task: CombineTask = card(name).build()
    puzzle = load(card(name).puzzle)(card(name).difficulties["medium"])
    n, count = task.count, 256
    generated = [puzzle.generate(seed) for seed in range(count)]
    instances = type(generated[0])(
        *(jnp.asarray(np.stack(column)) for column in zip(*generated, strict=True))
    )
    params = Params(instances, jnp.zeros((count, 1), jnp.int16))
    key = jax.random.key(0)

    @jax.jit
    @jax.vmap
    def look(state: NumbersState, params: Params):
        return (
            task.action_mask(state, params),
            task.terminal(state, key, params),
            task.info(state, params)["success"],
        )

    step = jax.jit(
        jax.vmap(lambda state, action, params: task.transition(state, action, key, params))
    )
    state = jax.vmap(lambda params: task.initial(key, params))(params)
    numbers = [[Fraction(int(v)) for v in instance.numbers] for instance in generated]
    dice, pairs = Dice(5, 6), list(itertools.combinations(range(n), 2))
    symbols = ("+", "*", "-", "-r", "/", "/r")
    for _ in range(n):
        mask, over, success = map(np.asarray, look(state, params))
        actions = np.zeros(count, np.int32)
        for row, (values, instance) in enumerate(zip(numbers, generated, strict=True)):
            assert task.values(NumbersState(*(np.asarray(leaf)[row] for leaf in state))) == values
            left = [value for value in values if value is not None]
            done = int(instance.target) in left and (len(left) == 1 or name == "Countdown-v0")
            assert (success[row], over[row]) == (done, done or len(left) == 1)
            legal = {}
            for o, symbol in enumerate(symbols):
                for p, (i, j) in enumerate(pairs):
                    if values[i] is None or values[j] is None:
                        continue
                    a, b = (
                        (values[j], values[i]) if symbol.endswith("r") else (values[i], values[j])
                    )
                    result = None if symbol[0] == "/" and b == 0 else OPERATIONS[symbol[0]](a, b)
                    if result is not None and (
                        name == "Game24-v0" or (result > 0 and result.denominator == 1)
                    ):
                        legal[o * len(pairs) + p] = (result, i, j)
            assert np.flatnonzero(mask[row]).tolist() == sorted(legal)
            if legal:
                actions[row] = dice.choice(sorted(legal))
                result, i, j = legal[int(actions[row])]
                values[i], values[j] = result, None
        if not mask.any():
            break
        state = step(state, jnp.asarray(actions), params)


@pytest.mark.parametrize("name", ["Game24-v0", "Countdown-v0"])
def test_words_name_the_actions(name: str) -> None:
    task: CombineTask = card(name).build()
    puzzle = task.puzzle
    instance = puzzle.generate(1)
    params = Params(instance, np.zeros(1, np.int16))
    state = task.initial(jax.random.key(0), jax.tree.map(jnp.asarray, params))
    for action in puzzle.plan(instance):
        assert bool(task.action_mask(state, params)[action])
        operation, pair = divmod(action, len(task.pairs))
        i, j = task.pairs[pair]
        sign, turned = (("+", 0), ("*", 0), ("-", 0), ("-", 1), ("/", 0), ("/", 1))[operation]
        values = task.values(state)
        left, right = (values[j], values[i]) if turned else (values[i], values[j])
        parsed = int(task.parse(f"{left} {sign} {right}", state, params))
        after = [
            task.transition(state, jnp.int32(a), jax.random.key(0), params)
            for a in (action, parsed)
        ]
        assert sorted(map(str, task.values(after[0]))) == sorted(map(str, task.values(after[1])))
        state = after[0]
    assert "is reached" in task.why_over(state, params, task.info(state, params))
    with pytest.raises(ValueError, match="not among the numbers"):
        task.parse("777 + 1", state, params)
    with pytest.raises(ValueError, match="expected 'A"):
        task.parse("777", state, params)
    assert "do not both hold" in task.why_illegal(np.int32(0), state, params)
