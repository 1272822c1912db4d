"""Tests of ListFunctions-v0 and Arc1D-v0 against their steps in plain Python.

The steps are read from the words of the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import groupby, pairwise, permutations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import SPLITS
from rlbench_suite.envs.puzzles.induction.arc_1d import Arc1DPuzzle
from rlbench_suite.envs.puzzles.induction.composed_rules import (
    InductionPuzzle,
    Instance,
    RewritingState,
)
from rlbench_suite.envs.puzzles.induction.list_functions import END, ListFunctionsPuzzle
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params

pytestmark = pytest.mark.of_variants
Row = list[int]
every_puzzle_class = pytest.mark.parametrize(
    "puzzle_class", [ListFunctionsPuzzle, Arc1DPuzzle], ids=lambda c: c.name
)
each_id = pytest.mark.parametrize("name", ["ListFunctions-v0", "Arc1D-v0"])


# -- the steps, written again ----------------------------------------------------------------------


def modulo(function: Callable[[Row], Row]) -> Callable[[Row], Row]:
    return lambda row: [value % 10 for value in function(row)]


LIST_STEPS: dict[str, Callable[[Row], Row]] = {
    "reverse the list": lambda row: row[::-1],
    "sort it, smallest first": sorted,
    "sort it, largest first": lambda row: sorted(row, reverse=True),
    "move the first entry to the end": lambda row: row[1:] + row[:1],
    "move the last entry to the front": lambda row: row[-1:] + row[:-1],
    "drop the first entry": lambda row: row[1:],
    "drop the last entry": lambda row: row[:-1],
    "keep the even digits only": lambda row: [d for d in row if d in (0, 2, 4, 6, 8)],
    "keep the odd digits only": lambda row: [d for d in row if d in (1, 3, 5, 7, 9)],
    "keep the digits above 4 only": lambda row: [d for d in row if d > 4],
    "keep the digits below 5 only": lambda row: [d for d in row if d < 5],
    "keep only the first of equal digits": lambda row: list(dict.fromkeys(row)),
    "add 1 to each digit": modulo(lambda row: [d + 1 for d in row]),
    "add 2 to each digit": modulo(lambda row: [d + 2 for d in row]),
    "add 5 to each digit": modulo(lambda row: [d + 5 for d in row]),
    "multiply each digit by 2": modulo(lambda row: [d * 2 for d in row]),
    "multiply each digit by 3": modulo(lambda row: [d * 3 for d in row]),
    "replace each digit d by 9 - d": lambda row: [9 - d for d in row],
    "replace each digit by the sum of the list up to and including it": modulo(
        lambda row: [sum(row[: k + 1]) for k in range(len(row))]
    ),
    "replace each digit but the first by itself minus the one before it": modulo(
        lambda row: row[:1] + [b - a for a, b in pairwise(row)]
    ),
    "add to each digit its place, counted from 1": modulo(
        lambda row: [d + k for k, d in enumerate(row, 1)]
    ),
}


def blocks(row: Row) -> list[tuple[int, int]]:
    """Colour and length of the runs, ground included."""
    return [(colour, len(list(run))) for colour, run in groupby(row)]


def unroll(runs: list[tuple[int, int]]) -> Row:
    return [colour for colour, length in runs for _ in range(length)]


def longest_of(row: Row) -> int:
    return max((length for colour, length in blocks(row) if colour), default=0)


def nearest_cell(row: Row, cells: range) -> int:
    return next((row[k] for k in cells if row[k]), 0)


def lengthen(row: Row) -> Row:
    return [row[k - 1] if k and not row[k] else row[k] for k in range(len(row))]


def fill(row: Row) -> Row:
    result = row.copy()
    for start, end in ((a, b) for a in range(len(row)) for b in range(a + 1, len(row))):
        if row[start] and row[start] == row[end] and not any(row[start + 1 : end]):
            result[start:end] = [row[start]] * (end - start)
    return result


def swap_colours(a: int, b: int, row: Row) -> Row:
    return [{a: b, b: a}.get(cell, cell) for cell in row]


def paint_longest(colour: int, row: Row) -> Row:
    return unroll([(colour if c and n == longest_of(row) else c, n) for c, n in blocks(row)])


ARC_STEPS: dict[str, Callable[[Row], Row]] = {
    "reflect the strip": lambda row: row[::-1],
    "shift everything one cell to the right; "
    "what leaves the strip is lost, 0 comes in": lambda row: [0, *row[:-1]],
    "shift everything one cell to the left; "
    "what leaves the strip is lost, 0 comes in": lambda row: [*row[1:], 0],
    "push the coloured cells to the left end, in their order": lambda row: sorted(
        row, key=lambda cell: cell == 0
    ),
    "push the coloured cells to the right end, in their order": lambda row: sorted(
        row, key=lambda cell: cell != 0
    ),
    "fill each run of 0s between two cells of the same colour with that colour": fill,
    "remove each block that is one cell long": lambda row: unroll(
        [(c if n > 1 else 0, n) for c, n in blocks(row)]
    ),
    "hollow out each block: remove its cells except the first and the last": lambda row: unroll(
        [
            run
            for c, n in blocks(row)
            for run in ([(c, n)] if n < 3 else [(c, 1), (0, n - 2), (c, 1)])
        ]
    ),
    "lengthen each block by one cell to the right, if a 0 is there": lengthen,
    "lengthen each block by one cell to the left, if a 0 is there": lambda row: lengthen(row[::-1])[
        ::-1
    ],
    "give each 0 the colour of the nearest coloured cell to its left, "
    "if there is one": lambda row: [nearest_cell(row, range(k, -1, -1)) for k in range(len(row))],
    "give each 0 the colour of the nearest coloured cell to its right, "
    "if there is one": lambda row: [nearest_cell(row, range(k, len(row))) for k in range(len(row))],
    "remove each block that is shorter than the longest": lambda row: unroll(
        [(c if n == longest_of(row) else 0, n) for c, n in blocks(row)]
    ),
    **{
        f"swap the colours {a} and {b}": partial(swap_colours, a, b)
        for a, b in ((1, 2), (1, 3), (2, 3))
    },
    **{
        f"give every coloured cell the colour {c}": lambda row, c=c: [
            c if cell else 0 for cell in row
        ]
        for c in (1, 2, 3)
    },
    **{
        f"remove every cell of colour {c}": lambda row, c=c: [
            cell if cell != c else 0 for cell in row
        ]
        for c in (1, 2, 3)
    },
    **{
        f"give the longest block (all of them, if several are) the colour {c}": partial(
            paint_longest, c
        )
        for c in (1, 2, 3)
    },
}
STEPS = {"ListFunctions": LIST_STEPS, "Arc1D": ARC_STEPS}


def unpad(row: Any) -> Row:
    """Return a row without its padding."""
    return [value for value in np.asarray(row).tolist() if value != END]


def read_question(
    puzzle: InductionPuzzle, instance: Instance
) -> tuple[list[str], list[tuple[Row, Row]], Row]:
    """Steps, examples and query, read from the question."""
    text = puzzle.question(instance)
    steps = re.findall(r"^\d+\. (.*)$", text, re.MULTILINE)
    rows = re.findall(r"^([\d ]+) -> ([\d ]+)$", text, re.MULTILINE)
    query = re.search(r"make of this\?\n([\d ]+)\n", text)
    assert query is not None
    row = lambda words: [int(word) for word in words.split()]  # noqa: E731
    return steps, [(row(source), row(result)) for source, result in rows], row(query[1])


def outcomes(puzzle: InductionPuzzle, instance: Instance) -> dict[int, set[tuple[int, ...]]]:
    """Return for each number of steps what the rules that fit make of the query.

    Every rule is applied in plain Python.
    """
    words, examples, query = read_question(puzzle, instance)
    functions = [STEPS[puzzle.name][step] for step in words]
    outputs_by_count: dict[int, set[tuple[int, ...]]] = {}
    for count in range(1, int(puzzle.tier) + 1):
        for rule in product(functions, repeat=count):
            if all(apply_rule(rule, source) == result for source, result in examples):
                outputs_by_count.setdefault(count, set()).add(tuple(apply_rule(rule, query)))
    return outputs_by_count


def apply_rule(rule: tuple[Callable[[Row], Row], ...], row: Row) -> Row:
    for step in rule:
        row = step(row)
    return row


def random_rows(puzzle: InductionPuzzle, count: int, seed: int = 0) -> np.ndarray:
    rows = np.indices((len(puzzle.symbols),) * puzzle.width, np.int8).reshape(puzzle.width, -1).T
    weights = puzzle.weights(rows)
    return rows[np.random.default_rng(seed).choice(len(rows), count, p=weights / weights.sum())]


# -- the rules -------------------------------------------------------------------------------------


@every_puzzle_class
def test_steps_do_what_the_prompt_says(puzzle_class: type[InductionPuzzle]) -> None:
    puzzle = puzzle_class(1)
    assert list(puzzle.steps) == list(STEPS[puzzle.name])
    rows = random_rows(puzzle, 400)
    # Other lengths too.
    rows = np.concatenate([rows, *(step(rows[:40], np) for step in puzzle.steps.values())])
    if puzzle.name == "ListFunctions":
        rows = np.concatenate([rows, np.full((1, puzzle.width), END, np.int8)])
    by_jax = jax.jit(lambda rows: [step(rows, jnp) for step in puzzle.steps.values()])(rows)
    for (words, step), compiled in zip(puzzle.steps.items(), by_jax, strict=True):
        results = step(rows, np)
        assert results.dtype == compiled.dtype == np.int8, words
        np.testing.assert_array_equal(results, compiled, err_msg=words)
        for row, result in zip(rows, results, strict=True):
            assert STEPS[puzzle.name][words](unpad(row)) == unpad(result), (words, row)


@pytest.mark.engine("every rule, in plain Python: all that fit give the answer")
@every_puzzle_class
@pytest.mark.parametrize(("tier", "count"), [(1, 950), (2, 80), (3, 3)])
def test_every_rule_that_fits_gives_the_same_answer(
    puzzle_class: type[InductionPuzzle], tier: int, count: int, compared: Compared
) -> None:
    puzzle = puzzle_class(tier)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        outputs_by_count = outcomes(puzzle, instance)
        assert outputs_by_count == {tier: {tuple(unpad(instance.target))}}, seed
        assert puzzle.solve(instance) == puzzle.write_answer(instance.target.tolist())
        rule = tuple(STEPS[puzzle.name][list(puzzle.steps)[step]] for step in puzzle.plan(instance))
        assert len(rule) == tier
        _, examples, query = read_question(puzzle, instance)
        assert all(apply_rule(rule, source) == result for source, result in examples)
        assert apply_rule(rule, query) == unpad(instance.target)
        compared(puzzle, instance)


@every_puzzle_class
def test_difficulty_counts_rules(puzzle_class: type[InductionPuzzle]) -> None:
    """At one step no two rules are merged: the plain count is exact."""
    puzzle = puzzle_class(1)
    for seed in range(50):
        instance = puzzle.generate(seed)
        _, examples, _ = read_question(puzzle, instance)
        fitting = [
            f
            for f in STEPS[puzzle.name].values()
            if all(f(source) == result for source, result in examples)
        ]
        assert 2 ** puzzle.difficulty(instance) == pytest.approx(len(puzzle.steps) / len(fitting))


@every_puzzle_class
def test_the_verifier_takes_the_answer_and_no_other(puzzle_class: type[InductionPuzzle]) -> None:
    puzzle = puzzle_class(2)
    for seed in range(100):
        instance = puzzle.generate(seed)
        right = puzzle.solve(instance).split(" ")
        assert puzzle.verify(instance, " ".join(right)).score == 1
        for place in range(len(right)):
            for symbol in puzzle.symbols.replace(".", ""):
                answer = [*right[:place], symbol, *right[place + 1 :]]
                verdict = puzzle.verify(instance, " ".join(answer))
                assert verdict.valid
                assert verdict.solved == (answer == right)
        for wrong in (right[:-1], [*right, "1"]):
            assert puzzle.verify(instance, " ".join(wrong)).score == 0
        assert not puzzle.verify(instance, "".join(right) + ".").valid


# -- disguises -------------------------------------------------------------------------------------


@every_puzzle_class
def test_the_order_of_examples_does_not_matter(puzzle_class: type[InductionPuzzle]) -> None:
    puzzle = puzzle_class(2)
    forms = set()
    for seed in range(200):
        instance = puzzle.generate(seed)
        again = instance._replace(inputs=instance.inputs[::-1], outputs=instance.outputs[::-1])
        assert puzzle.canonical(again) == puzzle.canonical(instance)
        assert puzzle.canonical(instance._replace(query=instance.inputs[0])) != puzzle.canonical(
            instance
        )
        forms.add(puzzle.canonical(instance))
    assert len(forms) == 200


@every_puzzle_class
def test_what_one_split_asks_the_other_does_not(puzzle_class: type[InductionPuzzle]) -> None:
    puzzle = puzzle_class(2)
    train, test = (
        {puzzle.generate(seed, split).query.tobytes() for seed in range(2000)} for split in SPLITS
    )
    assert min(len(train), len(test)) > 150  # of a pool of 512
    assert not train & test


def test_arc_1d_colours_and_directions_do_not_matter() -> None:
    """Rename colours and turn the direction, and expect an instance of the same form.

    It is an instance too because the same rules exist there.
    """
    puzzle = Arc1DPuzzle(2)
    for seed in range(8):
        instance = puzzle.generate(seed)
        for names in permutations((1, 2, 3)):
            for direction in (1, -1):
                disguised = Instance(
                    *(np.array((0, *names), np.int8)[rows][..., ::direction] for rows in instance)
                )
                assert puzzle.canonical(disguised) == puzzle.canonical(instance)
                assert puzzle.split_of(disguised) == puzzle.split_of(instance)
                assert outcomes(puzzle, disguised) == {2: {tuple(unpad(disguised.target))}}


# -- the task --------------------------------------------------------------------------------------


@each_id
def test_the_task_keeps_the_rules(name: str) -> None:
    """Compare random steps with plain Python.

    This covers rows, success, reward and end; success comes only with the right answer.
    """
    task = card(name).build()
    puzzle: InductionPuzzle = task.puzzle
    functions = list(STEPS[puzzle.name].values())
    rng, key = np.random.default_rng(0), jax.random.key(0)
    instances = [puzzle.generate(seed) for seed in range(300)]
    steps = np.array(
        [[rng.integers(len(functions)), rng.integers(len(functions))] for _ in instances]
    )
    steps[::3] = [puzzle.plan(instance) for instance in instances[::3]]
    params = Params(
        Instance(*map(np.stack, zip(*instances, strict=True))), np.zeros((300, 2), np.int16)
    )

    def both_steps(params: Params, actions: jax.Array) -> list[Any]:
        states = [task.initial(key, params)]
        for k in range(2):
            states.append(task.transition(states[-1], actions[k], key, params))
        rewards = [task.reward(states[k], actions[k], states[k + 1], key, params) for k in range(2)]
        ends = [task.terminal(state, key, params) for state in states]
        return [states, rewards, ends, [task.info(state, params) for state in states]]

    states, rewards, ends, infos = jax.jit(jax.vmap(both_steps))(params, steps)
    successes = 0
    for number, instance in enumerate(instances):
        rows = [unpad(row) for row in (*instance.inputs, instance.query)]
        outputs = [unpad(row) for row in instance.outputs]
        for k in range(3):
            assert [unpad(row) for row in states[k].rows[number]] == rows
            success = rows[:-1] == outputs
            assert bool(infos[k]["success"][number]) == success
            assert bool(ends[k][number]) == (success or k == 2)
            if success:
                successes += 1
                assert rows[-1] == unpad(instance.target)
                assert float(rewards[0][number] + rewards[1][number] * (k == 2)) == pytest.approx(
                    2, abs=1e-5
                )
                break
            if k < 2:
                rows = [functions[steps[number][k]](row) for row in rows]
    assert 100 <= successes < 200


@each_id
def test_the_words_of_the_task(name: str) -> None:
    task = card(name).build()
    puzzle = task.puzzle
    instance = puzzle.generate(0)
    params = Params(instance, np.array(puzzle.plan(instance), np.int16))
    key = jax.random.key(0)
    state: RewritingState = task.initial(key, params)
    text = task.describe(state, params)
    for row, output in zip(instance.inputs.tolist(), instance.outputs.tolist(), strict=True):
        assert f"{puzzle.write_answer(row)} (to become {puzzle.write_answer(output)})" in text
    assert f"{puzzle.write_answer(instance.query.tolist())}\n\nSteps left: 2" in text
    pictures = [task.draw(state, params)]
    for step in puzzle.plan(instance):
        action = task.parse(f" {step + 1}\n", state, params)
        state = task.transition(state, action, key, params)
        pictures.append(task.draw(state, params))
    assert task.why_over(state, params, task.info(state, params)) == "every example is its output"
    assert (pictures[0] != pictures[-1]).any()
    for text in ("0", str(len(puzzle.steps) + 1), "", "1 2", "reverse"):
        with pytest.raises(ValueError, match="expected a step from 1 to"):
            task.parse(text, state, params)
    stuck = RewritingState(jnp.asarray(task.initial(key, params).rows), jnp.int32(2))
    assert "not every example" in task.why_over(stuck, params, task.info(stuck, params))


@every_puzzle_class
def test_other_tiers_are_refused(puzzle_class: type[InductionPuzzle]) -> None:
    with pytest.raises(ValueError, match=r"1, 2, 3, got 4"):
        puzzle_class(4)
