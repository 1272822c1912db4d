"""Test the reading of whole replies.

One answer counts, usual formats pass, and nothing wrong ever does.
"""

from __future__ import annotations

import gc
import json
import runpy
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile_replies import MAX_READING_SECONDS
from typer.testing import CliRunner

from rlbench_suite.cli.suite import app
from rlbench_suite.core.registry import cards
from rlbench_suite.language import PuzzleDataset, score
from rlbench_suite.language.lenient import find_answer, judge_answer, judge_reply, plain
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import CLOSING, OPENING, Puzzle, items_of

WAYS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "audits" / "perturbations.py"))

HIDING = {"A grid on one line", "The answer twice in the tags"}
"""Ways to write that may hide what is malformed.

Examples are lines of unequal lengths, and one number where two are asked for.
"""


@cache
def instances() -> list[tuple[Puzzle[Any], Any]]:
    """Two easy instances of every puzzle."""
    puzzles = [puzzle_of(card.id, "easy") for card in cards().values() if card.puzzle]
    return [(puzzle, puzzle.generate(seed, "test")) for puzzle in puzzles for seed in range(2)]


def some_answers(puzzle: Puzzle[Any], instance: Any) -> list[str]:
    """Return answers of many kinds.

    They are right, by the rule of thumb, random, constant, and of another instance.
    """
    guesses = [puzzle.guess(instance, Dice(0, seed)) for seed in range(3)]
    another_instance = puzzle.generate(9, "test")
    return [
        puzzle.solve(instance),
        puzzle.heuristic(instance),
        *guesses,
        *puzzle.constants()[:4],
        puzzle.solve(another_instance),
    ]


def spoil_answer(answer: str, dice: Dice) -> Iterator[str]:
    """Yield answers with a piece left out, doubled, replaced or exchanged.

    A piece is a line, an item or, in an answer of a single word, a letter.
    """
    for mark in [mark for mark in "\n " if mark in answer] or [""]:
        items = answer.split(mark) if mark else list(answer)
        for _ in range(3 if len(items) > 1 else 0):
            i, j = dice.sample(range(len(items)), 2)
            yield mark.join(items[:i] + items[i + 1 :])
            yield mark.join(items[: i + 1] + items[i:])
            yield mark.join([*items[:i], items[j], *items[i + 1 :]])
            items[i], items[j] = items[j], items[i]
            yield mark.join(items)


# -- every puzzle ----------------------------------------------------------------------------------


def test_right_answers_pass_as_the_table_says() -> None:
    offenders = []
    for puzzle, instance in instances():
        for form, reply in WAYS["replies"](puzzle, puzzle.solve(instance)).items():
            verdicts = [
                judge_reply(puzzle, instance, reply, lenient=lenient) for lenient in (False, True)
            ]
            if (*(verdict.score == 1 for verdict in verdicts),) != WAYS["expected_acceptance"](
                form, puzzle
            ):
                offenders.append(
                    (puzzle.name, form.name, reply, [verdict.reason for verdict in verdicts])
                )
    assert not offenders


def test_no_way_to_write_makes_a_wrong_answer_right() -> None:
    offenders = []
    tried = 0
    for number, (puzzle, instance) in enumerate(instances()):
        answers = some_answers(puzzle, instance)
        answers += spoil_answer(answers[0], Dice(1, number))
        for answer in dict.fromkeys(answers):
            verdict = puzzle.verify(instance, answer)
            score = verdict.score
            replies = {form.name: reply for form, reply in WAYS["replies"](puzzle, answer).items()}
            replies["as it stands"] = WAYS["tag_answer"](answer)
            for name, reply in replies.items() if score < 1 else ():
                if name in HIDING and not verdict.valid:
                    continue
                tried += 1
                for lenient in (False, True):
                    if judge_reply(puzzle, instance, reply, lenient=lenient).score not in (
                        0,
                        score,
                    ):
                        offenders.append((puzzle.name, name, reply))
    assert not offenders
    assert tried > 10_000


def test_the_last_line_of_the_prompt_is_no_answer() -> None:
    for puzzle, instance in instances():
        reply = (
            WAYS["tag_answer"](puzzle.solve(instance)) + puzzle.prompt(instance).rpartition("\n")[2]
        )
        for lenient in (False, True):
            assert judge_reply(puzzle, instance, reply, lenient=lenient).score == 1, puzzle.name


def test_what_is_well_formed_means_the_same_to_both() -> None:
    """The second reading would not change a well-formed answer either, right or wrong."""
    for puzzle, instance in instances():
        for answer in some_answers(puzzle, instance):
            strict = puzzle.verify(instance, answer)
            assert (
                judge_answer(puzzle, instance, answer, lenient=True) == strict or not strict.valid
            )
            if strict.valid:
                assert puzzle.verify(instance, puzzle.mend(plain(answer))) == strict, (
                    puzzle.name,
                    answer,
                )


def test_score_takes_the_solvers_answer_in_any_wrapping_without_asking_the_rules() -> None:
    """A shortcut of :func:`score`: it must give the score that the rules give."""
    for puzzle, instance in instances():
        for answer in some_answers(puzzle, instance):
            strict = puzzle.verify(instance, answer)
            wrapped = f"```\n{answer}\n```"
            assert plain(wrapped) == plain(answer)
            if strict.valid:
                assert judge_answer(puzzle, instance, wrapped, lenient=True) == strict, (
                    puzzle.name,
                    answer,
                )


def test_the_output_of_a_sat_solver_is_an_assignment() -> None:
    puzzle = puzzle_of("SAT-v0")
    instance = puzzle.generate(1)
    best = puzzle.solve(instance)
    head = best[: len(best) // 2].rpartition(" ")[0]
    tail = ""
    tail = best.removeprefix(head).strip()
    for answer in (
        f"v {best} 0",
        f"s SATISFIABLE\nv {best} 0",
        f"v {head}\nv {tail} 0",
        f"v {best}",
    ):
        assert judge_answer(puzzle, instance, answer).score == 0
        assert judge_answer(puzzle, instance, answer, lenient=True).score == 1, answer
    for answer in (
        f"s UNSATISFIABLE\nv {best} 0",
        f"v {best} 0 0",
        f"c a comment\nv {best} 0",
        f"v {head} 0",
    ):
        assert judge_answer(puzzle, instance, answer, lenient=True).score == 0, answer


def test_words_are_told_apart_in_any_case_and_hold_no_separators() -> None:
    for puzzle, _ in instances():
        assert len({word.lower() for word in puzzle.caseless}) == len(puzzle.caseless), puzzle.name
        assert all(items_of(word) == [word] for word in puzzle.caseless), puzzle.name
        assert all(word.isascii() for word in puzzle.caseless), puzzle.name


# -- which answer counts ---------------------------------------------------------------------------

A = OPENING
Z = CLOSING


@pytest.mark.parametrize(
    ("reply", "strict", "lenient"),
    [
        ("", None, None),
        ("7", None, None),
        (f"{Z}7{A}", None, None),
        (f"{A}7", None, None),
        (f"{A}7{Z}", "7", "7"),
        (f"{A}6{Z}{A}7{Z}", "7", "7"),
        (f"{A}7{Z} {A}", "7", "7"),
        (f"{A}7{Z}{A}{Z}", "", "7"),
        (f"{A}7{Z} I put it between {A} and {Z}.", "7", "7"),
        (f"{A}7{Z} between {A} and {Z}, {A} and {Z}", "7", "7"),
        (f"I put it between {A} and {Z}.", None, None),
        (f"{A}7{Z} between '{A}' and '{Z}'", "' and '", "7"),
        (f"{A}7{Z} in {A}...{Z}", "...", "7"),
        (f"{A}7{Z} and {A}8", "7", "7"),
        (f"{A}6{A}7{Z}{Z}", f"7{Z}", "7"),
        (f"{A}{A}7{Z}{Z}", f"7{Z}", "7"),
        (f"{A}7{Z} {Z}", f"7{Z}", "7"),
        (r"\boxed{6} or \boxed{7}.", None, "7"),
        (r"\boxed{\boxed{7}}", None, "7"),
        (r"\boxed{\text{7}}", None, r"\text{7}"),
        (r"\boxed{7} then \boxed{} and \boxed{8", None, "7"),
        (rf"{A}7{Z} \boxed{{8}}", "7", "7"),
        (rf"\boxed{{7}}, between {A} and {Z}", None, "7"),
    ],
)
def test_the_last_complete_answer_counts(
    reply: str, strict: str | None, lenient: str | None
) -> None:
    assert find_answer(reply) == strict
    assert find_answer(reply, lenient=True) == lenient


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (f"{A}7{Z}", "7"),
        (f"<think>{A}7{Z}</think>", None),
        (f"<think>{A}7{Z}", None),
        (f"{A}7{Z}</think>", None),
        (f"<think>{A}6{Z}</think>{A}7{Z}", "7"),
        (f"{A}7{Z}<think>{A}6{Z}</think>", "7"),
        (f"{A}7{Z}<think>{A}6{Z}", "7"),
        (f"<think>I <think> {A}6{Z}</think>{A}7{Z}", "7"),
        (f"<think>a<think>b</think>{A}6{Z}</think>{A}7{Z}", "7"),
        (f"<think>a</think>{A}7{Z}<think>b</think>", "7"),
        (f"<ans<think></think>wer>7{Z}", None),
    ],
)
def test_answers_in_thoughts_are_ignored_on_request(reply: str, answer: str | None) -> None:
    for lenient in (False, True):
        assert find_answer(reply, lenient=lenient, outside_thoughts=True) == answer


def test_tags_may_be_others() -> None:
    tags = ("[[", "]]")
    thoughts = ("<r>", "</r>")
    for lenient in (False, True):
        assert find_answer(f"{A}6{Z} [[7]]", lenient=lenient, tags=tags) == "7"
        assert (
            find_answer("[[7]]<r>[[6]]</r>", outside_thoughts=True, tags=tags, thoughts=thoughts)
            == "7"
        )
    for wrong in (("", "x"), ("x", ""), ("|", "|")):
        with pytest.raises(ValueError, match="Tags are two different texts"):
            find_answer("7", tags=wrong)


# -- what an answer says, by hand ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "answer", "right"),
    [
        ("Geometry-v0", r"\frac{X}{1}", True),
        ("Geometry-v0", r"$\dfrac{X}{1}$", True),
        ("Geometry-v0", r"0\frac{X}{1}", False),  # a mixed number
        ("Geometry-v0", r"0 \frac{X}{1}", False),
        ("Geometry-v0", "X / 1", True),
        ("Geometry-v0", "X square units", True),
        ("Geometry-v0", r"$X \text{ units}^2$", False),
        ("Geometry-v0", r"$X\text{ sq. units}$.", True),
        ("Geometry-v0", "X degrees", False),
        ("Geometry-v0", "X1 units", False),
        ("Geometry-v0", "X.0", False),
        ("Geometry-v0", "x = X", False),
        ("Geometry-v0", "X or 1", False),
        ("KnightsAndKnaves-v0", "X", True),
        ("KnightsAndKnaves-v0", "(X)", True),
        ("KnightsAndKnaves-v0", "X N", False),
        ("KnightsAndKnaves-v0", "X\nX", False),
        ("Sudoku4-v0", "X", True),
        ("Sudoku4-v0", "X\n1 2 3 4", False),
        ("Sudoku4-v0", "X 1", False),
        ("Sudoku4-v0", "X\nX", False),
        ("Entailment-v0", "It is X", False),
        ("Entailment-v0", "not X", False),
        ("Entailment-v0", "X entailed neither contradicted", False),
        ("Entailment-v0", "```\nX", False),
        ("Entailment-v0", "```python\nX```", True),
        ("Entailment-v0", "**X", False),
        ("Entailment-v0", "the correct answer is X.", True),
        ("RuleInduction-v0", "X", True),
        ("RuleInduction-v0", "XX", False),
        ("RuleInduction-v0", "X % a comment", False),
        ("HamiltonianPath-v0", "```none\nX\n```", False),  # nobody knows what is the answer
    ],
)
def test_other_readings_are_not_tried(name: str, answer: str, right: bool) -> None:
    puzzle = puzzle_of(name, "easy")
    instance = next(
        i
        for i in map(puzzle.generate, range(99))
        if name != "Geometry-v0" or puzzle.solve(i).isdigit()
    )
    reply = answer.replace("X", puzzle.solve(instance))
    assert (judge_answer(puzzle, instance, reply, lenient=True).score == 1) == right


@pytest.mark.parametrize("reply", ["1," * 4_900, "1\n" * 4_900])
def test_far_too_many_items_make_no_lists(reply: str) -> None:
    """Thousands of lists would set off the collection of garbage.

    That may take longer than all else.
    """
    puzzle = puzzle_of("Sudoku4-v0", "easy")
    assert puzzle.mend(reply).count("1") == 4_900
    instance = puzzle.generate(0)
    gc.collect()
    before = sum(generation["collections"] for generation in gc.get_stats())
    assert judge_answer(puzzle, instance, reply, lenient=True).score == 0
    assert sum(generation["collections"] for generation in gc.get_stats()) <= before + 2


def test_a_wrong_answer_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = puzzle_of("Entailment-v0", "easy")
    instance = puzzle.generate(0)
    right = puzzle.solve(instance)
    wrong = next(answer for answer in puzzle.constants() if answer != right)
    read: list[str] = []
    monkeypatch.setattr(puzzle, "mend", lambda answer: read.append(answer) or right)
    assert judge_answer(puzzle, instance, wrong, lenient=True).score == 0
    assert judge_answer(puzzle, instance, None, lenient=True).score == 0
    assert judge_answer(puzzle, instance, "x" * 10_001, lenient=True).score == 0
    assert judge_answer(puzzle, instance, f"**{wrong}**", lenient=True).score == 0
    assert not read
    assert judge_answer(puzzle, instance, f"**{wrong},**", lenient=True).score == 1
    assert read == [f"{wrong},"]


def test_an_expression_may_be_written_as_in_print() -> None:
    puzzle = puzzle_of("Game24-v0", "easy")
    instance = next(
        i for i in map(puzzle.generate, range(99)) if sorted(i.numbers.tolist()) == [2, 4, 8, 10]
    )
    printed = (
        "8 \u00d7 10 \u00f7 4 \u2212\u00a02",
        r"\(2+4+\left(8+10\right)\)",
        "2 + 4 + 8 + 10 = 24.",
        "10 + 8\n+ 4 + 2",
    )
    wrong = (
        "24 = 2 + 4 + 8 + 10",
        "2 + 4 + 8 + 10 = 25",
        "2 + 4 + 8 + 10 = 24 = 24",
        "4 / (2 - 8 / 4 * 10 / 10) = 24",
        "4 = 4",
    )
    assert [judge_answer(puzzle, instance, answer, lenient=True).score for answer in printed] == [
        0,
        1,
        1,
        1,
    ]
    assert [judge_answer(puzzle, instance, answer, lenient=True).score for answer in wrong] == [
        0
    ] * len(wrong)
    assert (
        judge_answer(puzzle, instance, printed[0], lenient=True).reason == "the value is 18, not 24"
    )


def test_the_command_reads_leniently_on_request() -> None:
    puzzle = puzzle_of("Slant-v0", "easy")
    reply = f"{A}**{puzzle.solve(puzzle.generate(3))}**{Z}"
    command = ["puzzles", "verify", "Slant-v0", "--seed", "3", "--difficulty", "easy"]
    assert CliRunner().invoke(app, command, input=reply).exit_code == 1
    result = CliRunner().invoke(app, [*command, "--lenient"], input=reply)
    assert result.exit_code == 0
    assert json.loads(result.output)["solved"]


# -- hostile replies -------------------------------------------------------------------------------

MILLION = 1_000_000
HOSTILE = {
    "letters": "a" * MILLION,
    "a long answer": f"{A}{'9' * MILLION}{Z}",
    "a long answer beyond ASCII": f"{A}{chr(0x661) * MILLION}{Z}",
    "opening tags": A * 100_000,
    "closing tags": Z * 100_000,
    "empty tags": (A + Z) * 100_000,
    "echoes": f"{A} and {Z}" * 50_000,
    "nested tags": A * 50_000 + "1" + Z * 50_000,
    "beginnings of tags": "<answer" * 140_000 + Z,
    "boxes": r"\boxed{" * 140_000,
    "open box": r"\boxed{" + "{" * MILLION,
    "boxes with braces": (r"\boxed{" + "{" * 5_000) * 200,
    "thoughts": "<think></think>" * 66_000,
    "ends of thoughts": "</think>" * 125_000,
    "open thoughts": "<think>" * 140_000,
    "fences": f"{A}{'`' * 9_999}{Z}",
    "stars": f"{A}{'*' * 9_999}{Z}",
    "dollars": f"{A}{'$' * 9_999}{Z}",
    "labels": f"{A}{'answer: ' * 1_200}{Z}",
    "spaces": f"{A}x{' ' * 9_900}x{Z}",
    "wide spaces": f"{A}x{chr(0xA0) * 9_900}x{Z}",
    "spaces before a fraction": f"{A}{' ' * 9_900}/{Z}",
    "brackets": f"{A}{'[' * 4_990}{']' * 4_990}{Z}",
    "layers": f"{A}{chr(92)}{'text{' * 1_900}{Z}",
    "fractions": f"{A}{chr(92)}frac{{{'1' * 9_900}{Z}",
    "line breaks": f"{A}{'1' + chr(10) * 9_900}1{Z}",
    "periods": f"{A}{'.' * 9_900}{Z}",
    "commas": f"{A}{'1,' * 4_900}{Z}",
    "surrogates": chr(0xD800) * 100_000 + f"{A}{chr(0xD800)}{Z}",
    "null": f"{A}{chr(0)}{Z}",
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_reply_takes_no_time(attack: str) -> None:
    names = (
        "Game24-v0",
        "Geometry-v0",
        "Sudoku4-v0",
        "RuleInduction-v0",
        "CipherKnownKey-v0",
        "Navigation-v0",
    )
    for puzzle in (puzzle_of(name, "easy") for name in names):
        instance = puzzle.generate(0)
        puzzle.verify(instance, puzzle.solve(instance))
        for lenient in (False, True):
            start = time.process_time()
            verdict = judge_reply(
                puzzle, instance, HOSTILE[attack], lenient=lenient, outside_thoughts=True
            )
            assert time.process_time() - start < MAX_READING_SECONDS, puzzle.name
            assert verdict.score == 0
            assert judge_reply(puzzle, instance, HOSTILE[attack], lenient=lenient).score == 0


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_reply_is_scored_in_no_time(attack: str) -> None:
    row = PuzzleDataset("Sudoku4-v0", size=1)[0]
    score(row, "")
    for reading in (
        {"lenient": True},
        {"lenient": True, "outside_thoughts": True, "partial": True},
    ):
        start = time.process_time()
        assert score(row, HOSTILE[attack], **reading) == 0  # type: ignore[arg-type]
        assert time.process_time() - start < MAX_READING_SECONDS
