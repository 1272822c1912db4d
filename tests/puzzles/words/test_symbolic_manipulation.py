"""SymbolicManipulation-v0: prompts are read back as English, and carried out on strings."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparison import Compared
from writing_tasks import check_rewards, observations_after

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.words.symbolic_manipulation import (
    MIN_LENGTH,
    OPERATIONS,
    Instance,
    SymbolicManipulationPuzzle,
)
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "SymbolicManipulation-v0"
TIERS = {"easy": 2, "medium": 4, "hard": 6}


def interleave(s: str) -> str:
    cut = len(s) - len(s) // 2
    return "".join(a + b for a, b in itertools.zip_longest(s[:cut], s[cut:], fillvalue=""))


def rewrite(s: str, *rules: str) -> str:
    while True:
        for left, right in ((rules[0] + rules[1], rules[2]), (rules[3] + rules[4], rules[5])):
            if left in s:
                s = s.replace(left, "" if right == "nothing" else right, 1)
                break
        else:
            return s


SIDE = r"([a-z]) ([a-z]) -> ([a-z]|nothing)"
MEANINGS: dict[str, Callable[..., str]] = {
    r"Reverse the sequence": lambda s: "".join(reversed(s)),
    r"Move the first symbol to the end; do this (\d) times": lambda s, n: rotate(s, int(n)),
    r"Move the last symbol to the front; do this (\d) times": lambda s, n: rotate(s[::-1], int(n))[
        ::-1
    ],
    r"Swap the symbols at positions (\d+) and (\d+), counted from 1 on the left": lambda s, i, j: (
        "".join(
            s[{int(i): int(j), int(j): int(i)}.get(place, place) - 1]
            for place in range(1, len(s) + 1)
        )
    ),
    r"Remove the symbols at positions 2, 4, 6 and so on, counted from 1": lambda s: re.sub(
        r"(.).", r"\1", s
    ),
    r"Write every symbol twice in a row": lambda s: re.sub(r"(.)", r"\1\1", s),
    r"Append the reverse of the sequence to the sequence": lambda s: s + "".join(reversed(s)),
    r"Cut the sequence into two halves, the first one symbol longer if there is an odd "
    r"number of symbols; then take symbols from the two halves in turn, from the left, "
    r"beginning with the first half": interleave,
    r"Sort the symbols alphabetically": lambda s: "".join(c * s.count(c) for c in "abcdefghij"),
    r"Remove every symbol that already occurs further left": lambda s: "".join(
        c for k, c in enumerate(s) if c not in s[:k]
    ),
    r"Shorten every run of equal neighbours to one symbol": lambda s: re.sub(r"(.)\1+", r"\1", s),
    r"Remove every ([a-z])": lambda s, x: s.replace(x, ""),
    r"Replace every ([a-z]) by ([a-z])": lambda s, x, y: s.replace(x, y),
    r"Exchange ([a-z]) and ([a-z]): every \1 becomes \2 and every \2 becomes \1": lambda s, x, y: (
        s.translate(str.maketrans(x + y, y + x))
    ),
    r"Put ([a-z]) after every ([a-z])": lambda s, y, x: s.replace(x, x + y),
    r"Move every ([a-z]) to the front; all others keep their order": lambda s, x: (
        x * s.count(x) + s.replace(x, "")
    ),
    r"Replace every symbol by the next one of ([a-z ]+), "
    r"and ([a-z]) by a, all at once": lambda s, letters, z: "".join(
        "a" if c == z else letters[letters.index(c) + 2] for c in s
    ),
    rf"Rewrite with the rules '{SIDE}' and '{SIDE}' \(a left side stands for two "
    rf"neighbours"
    r"(?:; nothing means that they are removed)?\): as long as a left side occurs, "
    r"take the first rule whose left side "
    r"occurs, and replace its leftmost occurrence by the right side": rewrite,
}
"""Meanings of English sentences, in the order of the operations.

They are written here once more, on strings without spaces.
"""
LETTERS = {11: (0,), 12: (0, 1), 13: (0, 1), 14: (0, 1), 15: (0,), 17: (0, 1, 2, 3, 4, 5)}
"""Indices of the arguments that are letters, by operation."""
ORDERED = (8, 16)
"""Operations that depend on which letter comes first in the alphabet."""


def rotate(s: str, times: int) -> str:
    for _ in range(times):
        s = s[1:] + s[0]
    return s


def form_of(sentence: str) -> tuple[int, tuple[str, ...]]:
    """Return the operation that a sentence names, and its arguments."""
    ((number, match),) = [
        (k, m) for k, form in enumerate(MEANINGS) if (m := re.fullmatch(form, sentence))
    ]
    return number, match.groups()


def trace(prompt: str) -> list[str]:
    """Return the sequence of a prompt, and the result of each operation."""
    (sequence,) = re.findall(
        r"^A sequence of symbols, each of them one of [a-j ]+:\n(.*)$", prompt, re.MULTILINE
    )
    sequences = [sequence.replace(" ", "")]
    for sentence in re.findall(r"^\d\. (.*)\.$", prompt, re.MULTILINE):
        number, arguments = form_of(sentence)
        sequences.append(list(MEANINGS.values())[number](sequences[-1], *arguments))
    return sequences


@pytest.mark.engine("operations on strings, from the prompt: the answer")
@pytest.mark.parametrize(
    ("operations", "count"), [(1, 800), (2, 800), (4, 800), (6, 500), (8, 200)]
)
def test_solver_and_verifier_do_what_the_prompt_says(
    operations: int, count: int, compared: Compared
) -> None:
    puzzle = SymbolicManipulationPuzzle(operations)
    rng = np.random.default_rng(operations)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        sequences = trace(puzzle.prompt(instance))
        assert len(sequences) == operations + 1
        for before, after in itertools.pairwise(sequences):
            assert before != after, "every operation changes the sequence"
        assert all(MIN_LENGTH <= len(s) <= puzzle.width for s in sequences)
        right = " ".join(sequences[-1])
        assert puzzle.solve(instance) == right
        assert puzzle.verify(instance, right).solved
        letters = list("abcdefghij"[: puzzle.letters])
        place = int(rng.integers(len(sequences[-1])))
        answers = [
            sequences[-2],
            sequences[-1][::-1],
            sequences[-1][:-1],
            sequences[-1] + "a",
            sequences[-1][:place] + str(rng.choice(letters)) + sequences[-1][place + 1 :],
            "".join(rng.choice(letters, len(sequences[-1]))),
        ]
        for answer in answers:
            if len(answer) <= puzzle.width:
                verdict = puzzle.verify(instance, " ".join(answer))
                assert verdict.valid
                assert verdict.solved == (answer == sequences[-1])
        compared(puzzle, instance)


@pytest.mark.parametrize(
    "answer", ["", "abc", "a  b", "a,b", "A B C", "a b 1", " a b", "a b\n", "a " * 50, "z z z"]
)
def test_other_formats_are_invalid(answer: str) -> None:
    puzzle = puzzle_of(NAME)
    assert not puzzle.verify(puzzle.generate(0), answer).valid


def test_every_operation_comes_up_with_every_kind_of_argument() -> None:
    assert len(MEANINGS) == len(OPERATIONS)
    counts: Counter[tuple[int, int]] = Counter()
    sentences = set()
    for seed in range(800):
        puzzle = puzzle_of(NAME)
        instance = puzzle.generate(seed)
        for line in re.findall(r"^\d\. (.*)\.$", puzzle.prompt(instance), re.MULTILINE):
            number, arguments = form_of(line)
            counts[number, len(arguments)] += 1
            sentences.add(line)
    assert {number for number, _ in counts} == set(range(len(OPERATIONS)))
    assert min(counts.values()) > 30
    for words in ("do this 2 times", "do this 4 times", "-> nothing", "positions 1 and 2,"):
        assert any(words in sentence for sentence in sentences), words


@pytest.mark.parametrize("operations", TIERS.values())
def test_canonical_forgets_letters_where_their_order_does_not_matter(operations: int) -> None:
    puzzle, dice = SymbolicManipulationPuzzle(operations), Dice(1, 2)
    free = 0
    forms = set()
    for seed in range(400):
        instance = puzzle.generate(seed)
        form = puzzle.canonical(instance)
        forms.add(form)
        new = [*dice.shuffled(range(puzzle.letters)), puzzle.letters]
        program = instance.program.tolist()
        for line in program:
            for argument in LETTERS.get(line[0], ()):
                line[1 + argument] = new[line[1 + argument]]
        disguised = Instance(np.array(program, np.int8), np.array(new, np.int8)[instance.rows])
        if any(line[0] in ORDERED for line in program):
            assert (puzzle.canonical(disguised) == form) == (
                puzzle.prompt(disguised) == puzzle.prompt(instance)
            )
        else:
            free += 1
            assert puzzle.canonical(disguised) == form
            assert trace(puzzle.prompt(disguised))[-1] == "".join(
                "abcdefghij"[x] for x in puzzle.result(disguised)
            )
        program[-1] = [0] * 7 if program[-1][0] else [4] + [0] * 6
        assert puzzle.canonical(instance._replace(program=np.array(program, np.int8))) != form
    assert free > 40
    assert len(forms) > 390


def test_tiers_are_ordered_by_difficulty() -> None:
    puzzles = map(SymbolicManipulationPuzzle, TIERS.values())
    means = [
        np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(200)])
        for puzzle in puzzles
    ]
    assert 1.5 * means[0] < means[1] < means[2] / 1.5
    puzzle = SymbolicManipulationPuzzle(4)
    instance = puzzle.generate(1)
    assert puzzle.difficulty(instance) == sum(map(len, trace(puzzle.prompt(instance))[1:]))
    with pytest.raises(ValueError, match="1 to 8, got 9"):
        SymbolicManipulationPuzzle(9)


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
def test_right_tokens_earn_the_optimum_and_wrong_ones_end_it(tier: str) -> None:
    task: Any = card(NAME).build(difficulty=tier)
    instances = [task.puzzle.generate(seed) for seed in range(300)]
    tokens = []
    for instance in instances:
        text = "".join(sequence + "." for sequence in trace(task.puzzle.prompt(instance))[1:])
        tokens.append([list(task.tokens).index(symbol) for symbol in text])
        assert tokens[-1] == list(task.puzzle.plan(instance))
    check_rewards(task, instances, tokens, seed=1)


@pytest.mark.parametrize("tier", TIERS)
def test_the_observation_is_what_a_writer_sees(tier: str) -> None:
    """Decode the observation at a random place of each instance.

    It is the operation, its arguments, its input, and a prefix.
    """
    task: Any = card(NAME).build(difficulty=tier)
    puzzle, dice = task.puzzle, Dice(5, 6)
    n, letters, width = TIERS[tier], puzzle.letters, puzzle.width
    instances = [puzzle.generate(seed) for seed in range(300)]
    traces = [trace(puzzle.prompt(instance)) for instance in instances]
    operations = [dice.below(n) for _ in instances]
    places = [
        dice.below(len(sequences[k + 1]) + 1)
        for sequences, k in zip(traces, operations, strict=True)
    ]
    written = [
        sum(len(s) + 1 for s in sequences[1 : k + 1]) + at
        for sequences, k, at in zip(traces, operations, places, strict=True)
    ]
    sizes = np.cumsum(
        [width * letters, width * letters, width + 1, len(OPERATIONS), 6 * (width + 1)]
    )
    for row, k, at, sequences, instance in zip(
        observations_after(task, instances, written),
        operations,
        places,
        traces,
        instances,
        strict=True,
    ):
        source, result, place, kind, arguments, which = np.split(row, sizes)

        def text(flags: np.ndarray) -> str:
            symbols = flags.reshape(width, letters)
            return "".join(
                "abcdefghij"[int(np.argmax(symbol_flags))]
                for symbol_flags in symbols
                if symbol_flags.any()
            )

        assert text(source) == sequences[k]
        assert text(result) == sequences[k + 1][:at]
        assert np.flatnonzero(place).tolist() == [at]
        assert np.flatnonzero(which).tolist() == [k]
        assert np.flatnonzero(kind).tolist() == [instance.program[k, 0]]
        assert (
            np.argmax(arguments.reshape(6, width + 1), axis=1).tolist()
            == instance.program[k, 1:].tolist()
        )
        assert arguments.sum() == 6


def test_people_can_play() -> None:
    task: Any = card(NAME).build(difficulty="easy")
    from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
    from rlbench_suite.envs.puzzles.shared.writing import WritingState

    program = np.array([[0] + [0] * 6, [12, 0, 1, 0, 0, 0, 0]], np.int8)
    rows = [[0, 1, 2, 1], [1, 2, 1, 0], [1, 2, 1, 1]]
    params = Params(
        Instance(program, np.array([row + [3] * 4 for row in rows], np.int8)), np.zeros(1, np.int16)
    )
    state = WritingState(np.int32(7), np.bool_(False))
    text = task.describe(state, params)
    assert "Operation 2 of 2: Replace every a by b." in text
    assert "The sequence: b c b a" in text
    assert "Written of the result: b c" in text
    assert int(task.parse(" b\n", state, params)) == 1
    assert int(task.parse(".", state, params)) == 3
    with pytest.raises(ValueError, match="expected one of a, b, c"):
        task.parse("d", state, params)
    assert task.draw(state, params).shape == task.picture_shape
    assert (
        task.why_over(WritingState(np.int32(7), np.bool_(True)), params, {})
        == "that was wrong: b comes next"
    )
    assert (
        task.why_over(WritingState(np.int32(10), np.bool_(False)), params, {})
        == "everything is written"
    )
