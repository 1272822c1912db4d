"""Show which ways to write a right answer strict and lenient readers accept, for all puzzles.

    python benchmarks/audits/perturbations.py  # one line for each way, as Markdown
    python benchmarks/audits/perturbations.py --puzzles           # one line for each puzzle
    python benchmarks/audits/perturbations.py --seeds 20 --tier hard

Each reply holds the solver's answer to an instance of the test split, written in one way of
``REWRITINGS``. A way counts for a puzzle if it changes the text. ``tests/language/test_lenient.py``
expects the same of every puzzle, and that no way makes a wrong answer right.
"""

import argparse
import re
from collections.abc import Callable
from statistics import fmean
from typing import Any, NamedTuple

from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.language.lenient import judge_reply
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.puzzle import CLOSING, OPENING, Puzzle

GRID, LINE, LETTERS, GRAMMAR = "grid", "line", "letters", "grammar"
"""Forms of answers.

They are rows of symbols, items on a line, letters without spaces, and forms with a grammar of their
own.
"""
LENIENT_REFUSALS = {
    "Upper case": {"RuleInduction"},  # variables are capitals, predicates are not
    "Lower case": {"RuleInduction"},
    "Unicode times and division": {"Geometry"},  # a fraction is a number, no division
}
"""Puzzles that lenient readers refuse in some ways."""
WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


class Rewriting(NamedTuple):
    """A way to write an answer."""

    name: str
    reply: Callable[[str], str]
    """Function from an answer to a whole reply."""
    strict: bool
    """True if a strict reader accepts a right answer that is written so."""
    lenient: bool
    """True if a lenient reader does."""
    forms: str = f"{GRID} {LINE} {LETTERS} {GRAMMAR}"
    """Forms of the answers to which it applies."""


def tag_answer(answer: str) -> str:
    """Return a reply that is only the answer."""
    return f"{OPENING}{answer}{CLOSING}"


def rewrite_in_tags(write: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that makes a reply with a rewritten answer in the tags."""
    return lambda answer: tag_answer(write(answer))


def surround_answer(text: str) -> Callable[[str], str]:
    """Return a function that puts the answer in the place of ``@`` in the tags."""
    return rewrite_in_tags(lambda answer: text.replace("@", answer))


def replace_text(old: str, new: str) -> Callable[[str], str]:
    """Return a function that replaces a text throughout the answer."""
    return rewrite_in_tags(lambda answer: answer.replace(old, new))


def hyphenate_items(answer: str) -> str:
    """Return items without signs with hyphens between them."""
    return answer.replace(" ", "-") if re.fullmatch(r"\w+( \w+)+", answer) else answer


def join_letters(answer: str) -> str:
    """Return single letters with nothing between them."""
    return answer.replace(" ", "") if re.fullmatch(r"[A-Za-z]( [A-Za-z])+", answer) else answer


def tabulate_grid(answer: str) -> str:
    """Return a grid as a Markdown table, its first row in the place of the names of columns."""
    header, *rows = ("| " + " | ".join(line.split(" ")) + " |" for line in answer.split("\n"))
    return "\n".join((header, "|" + " --- |" * header.count(" |"), *rows))


def bracket_grid(answer: str) -> str:
    """Return a grid as a list of lists."""
    return "[" + ", ".join("[" + ", ".join(line.split()) + "]" for line in answer.split("\n")) + "]"


ITEMS = f"{GRID} {LINE}"
REWRITINGS = (
    # the reply
    Rewriting("Text before and after", lambda a: f"So it is {tag_answer(a)} as shown.", True, True),
    Rewriting("Spaces and line breaks within the tags", surround_answer("\n @ \n"), True, True),
    Rewriting("The answer twice, each in tags", lambda a: tag_answer(a) * 2, True, True),
    Rewriting("Wrong, then right", lambda a: f"{tag_answer('no')} No: {tag_answer(a)}", True, True),
    Rewriting(
        "Right in thoughts, then right",
        lambda a: f"<think>{tag_answer(a)}</think>{tag_answer(a)}",
        True,
        True,
    ),
    Rewriting("Right in thoughts only", lambda a: f"<think>{tag_answer(a)}</think>", True, True),
    Rewriting(
        "Right, then `between <answer> and </answer>`",
        lambda a: f"{tag_answer(a)} {OPENING} and {CLOSING}",
        True,
        True,
    ),
    Rewriting(
        "The same with backticks around both tags",
        lambda a: f"{tag_answer(a)} `{OPENING}` and `{CLOSING}`",
        False,
        True,
    ),
    Rewriting(
        "Right, then `<answer></answer>`",
        lambda a: f"{tag_answer(a)} in {OPENING}{CLOSING}",
        False,
        True,
    ),
    Rewriting(
        "Right, then `<answer>...</answer>`",
        lambda a: f"{tag_answer(a)} in {OPENING}...{CLOSING}",
        False,
        True,
    ),
    Rewriting("Nested tags", lambda a: tag_answer(tag_answer(a)), False, True),
    Rewriting("A second closing tag", lambda a: f"{tag_answer(a)} {CLOSING}", False, True),
    Rewriting("`\\boxed{}` without tags", lambda a: f"It is $\\boxed{{{a}}}$.", False, True),
    Rewriting("No tags", lambda a: f"The answer is {a}", False, False),
    Rewriting("No closing tag", lambda a: f"{OPENING}{a}", False, False),
    Rewriting(
        "Right, then wrong", lambda a: f"{tag_answer(a)} No: {tag_answer('no')}", False, False
    ),
    Rewriting("The answer twice in the tags", surround_answer("@\n@"), False, False),
    Rewriting("A wrong answer beside it in the tags", surround_answer("@ or no"), False, False),
    # marks around the answer
    Rewriting("Code fence", surround_answer("```\n@\n```"), False, True),
    Rewriting("Code fence with a language", surround_answer("```text\n@\n```"), False, True),
    Rewriting("Backticks", surround_answer("`@`"), False, True),
    Rewriting("Bold", surround_answer("**@**"), False, True),
    Rewriting("Bold, then a period", surround_answer("**@**."), False, True),
    Rewriting("Quotes", surround_answer('"@"'), False, True),
    Rewriting("Curly quotes", surround_answer("\u201c@\u201d"), False, True),
    Rewriting("Final period", surround_answer("@."), False, True),
    Rewriting("`Answer:` before it", surround_answer("Answer: @"), False, True),
    Rewriting("`**Final answer:**` before it", surround_answer("**Final answer:** @"), False, True),
    Rewriting("`$`", surround_answer("$@$"), False, True),
    Rewriting("`\\boxed{}`", surround_answer("\\boxed{@}"), False, True),
    Rewriting(
        "`\\[\\boxed{\\text{}}\\]`", surround_answer("\\[\n\\boxed{\\text{@}}\n\\]"), False, True
    ),
    Rewriting(
        "Code fence, label and bold together",
        surround_answer("```\n**Answer: @**\n```"),
        False,
        True,
    ),
    # separators
    Rewriting("Double spaces", replace_text(" ", "  "), False, True, ITEMS),
    Rewriting("Tabs", replace_text(" ", "\t"), False, True, ITEMS),
    Rewriting("Commas", replace_text(" ", ", "), False, True, ITEMS),
    Rewriting("Commas without spaces", replace_text(" ", ","), False, True, ITEMS),
    Rewriting("A list in brackets", rewrite_in_tags(bracket_grid), False, True, LINE),
    Rewriting("A list of lists", rewrite_in_tags(bracket_grid), False, True, GRID),
    Rewriting("A Markdown table", rewrite_in_tags(tabulate_grid), False, True, GRID),
    Rewriting(
        "Hyphens between numbers or words", rewrite_in_tags(hyphenate_items), False, True, LINE
    ),
    Rewriting("Letters without spaces", rewrite_in_tags(join_letters), False, True, LINE),
    Rewriting("CRLF", replace_text("\n", "\r\n"), False, True, GRID),
    Rewriting("Blank lines", replace_text("\n", "\n\n"), False, True, GRID),
    Rewriting("Indented lines", replace_text("\n", "\n    "), False, True, GRID),
    Rewriting("Spaces at the ends of lines", replace_text("\n", " \n"), True, True, GRID),
    Rewriting("A grid on one line", replace_text("\n", " "), False, True, GRID),
    Rewriting("Rows without spaces", replace_text(" ", ""), False, True, GRID),
    Rewriting("Items on lines of their own", replace_text(" ", "\n"), False, True, LINE),
    Rewriting("Arrows between items", replace_text(" ", " \u2192 "), False, True, LINE),
    Rewriting("Spaces between letters", rewrite_in_tags(" ".join), False, True, LETTERS),
    # letters and signs
    Rewriting("Lower case", rewrite_in_tags(str.lower), False, True),
    Rewriting("Upper case", rewrite_in_tags(str.upper), False, True),
    Rewriting("Spaces that do not break", replace_text(" ", "\u00a0"), False, True),
    Rewriting("Unicode minus", replace_text("-", "\u2212"), False, True),
    Rewriting(
        "Unicode times and division",
        rewrite_in_tags(lambda a: a.translate({42: "\u00d7", 47: "\u00f7"})),
        False,
        True,
        GRAMMAR,
    ),
    Rewriting("Full width", rewrite_in_tags(lambda a: a.translate(WIDE)), False, True),
)


def form_of(puzzle: Puzzle[Any]) -> str:
    """Return the form of the answers."""
    from rlbench_suite.envs.puzzles.arithmetic.combine import CombinePuzzle
    from rlbench_suite.envs.puzzles.arithmetic.geometry import GeometryPuzzle
    from rlbench_suite.envs.puzzles.induction.rule_induction import RuleInductionPuzzle
    from rlbench_suite.envs.puzzles.shared.grid_filling import GridPuzzle
    from rlbench_suite.envs.puzzles.words.spelling import TextPuzzle

    if isinstance(puzzle, CombinePuzzle | GeometryPuzzle | RuleInductionPuzzle):
        return GRAMMAR
    if isinstance(puzzle, TextPuzzle):
        return LETTERS
    return GRID if isinstance(puzzle, GridPuzzle) and puzzle.rows > 1 else LINE


def expected_acceptance(rewriting: Rewriting, puzzle: Puzzle[Any]) -> tuple[bool, bool]:
    """Return whether strict and lenient readers accept a right answer written in this way."""
    return rewriting.strict, rewriting.lenient and puzzle.name not in LENIENT_REFUSALS.get(
        rewriting.name, ()
    )


def replies(puzzle: Puzzle[Any], answer: str) -> dict[Rewriting, str]:
    """Return the replies in which the answer is written in another way."""
    form = form_of(puzzle)
    rewritten = {
        rewriting: rewriting.reply(answer)
        for rewriting in REWRITINGS
        if form in rewriting.forms.split()
    }
    return {
        rewriting: reply for rewriting, reply in rewritten.items() if reply != tag_answer(answer)
    }


def measure_acceptance(
    card: TaskCard, tier: str, seeds: int
) -> dict[Rewriting, tuple[float, float]]:
    """Return the fractions of right answers that strict and lenient readers accept.

    There is one of each for every way of writing that applies.
    """
    puzzle = puzzle_of(card.id, tier)
    acceptances: dict[Rewriting, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        instance = puzzle.generate(seed, "test")
        for rewriting, reply in replies(puzzle, puzzle.solve(instance)).items():
            strict, lenient = (
                judge_reply(puzzle, instance, reply, lenient=kind).score for kind in (False, True)
            )
            acceptances.setdefault(rewriting, []).append((strict == 1, lenient == 1))
    return {
        rewriting: (sum(s for s, _ in rows) / len(rows), sum(n for _, n in rows) / len(rows))
        for rewriting, rows in acceptances.items()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=5, help="instances of each puzzle")
    parser.add_argument("--tier", default="easy", help="tier of all puzzles")
    parser.add_argument("--puzzles", action="store_true", help="print one line for each puzzle")
    options = parser.parse_args()
    table = {
        card.name: measure_acceptance(card, options.tier, options.seeds)
        for card in cards().values()
        if card.puzzle
    }
    if options.puzzles:
        for name, row in table.items():
            marks = "".join(_mark(row.get(rewriting)) for rewriting in REWRITINGS)
            print(f"{name:25s}{marks}")
        return
    print(
        "| way to write a right answer | puzzles | strict | lenient |\n| --- | ---: | ---: | ---: |"
    )
    for rewriting in REWRITINGS:
        rows = [row[rewriting] for row in table.values() if rewriting in row]
        strict, lenient = (fmean(row[kind] for row in rows) for kind in (0, 1))
        print(f"| {rewriting.name} | {len(rows)} | {strict:.0%} | {lenient:.0%} |")


def _mark(shares: tuple[float, float] | None) -> str:
    """Return a sign for who accepts an answer.

    It is ``=`` for both readers, ``+`` for lenient ones, ``-`` for none, and ``?`` for a part of
    the answers.
    """
    if shares is None:
        return " "
    return {(1, 1): "=", (0, 1): "+", (0, 0): "-"}.get(shares, "?")


if __name__ == "__main__":
    main()
