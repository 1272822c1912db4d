"""Show which ways to write a right answer are accepted, by strict and by lenient readers, for all puzzles.

    python benchmarks/audits/perturbations.py                     # one line for each way, as Markdown
    python benchmarks/audits/perturbations.py --puzzles           # one line for each puzzle
    python benchmarks/audits/perturbations.py --seeds 20 --tier hard

Each reply holds the solver's answer to an instance of the test split, written in one of the ways of ``WAYS``. A way
counts for a puzzle if it changes the text. ``tests/language/test_lenient.py`` expects the same of every puzzle, and
that no way makes a wrong answer right.
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

GRID, LINE, LETTERS, OTHER = "grid", "line", "letters", "other"
"""Forms of answers: rows of symbols, items on a line, letters without spaces, and what has a grammar of its own."""
REFUSED = {
    "Upper case": {"RuleInduction"},  # variables are capitals, predicates are not
    "Lower case": {"RuleInduction"},
    "Unicode times and division": {"Geometry"},  # a fraction is a number, no division
}
"""Puzzles that lenient readers refuse in some ways."""
WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


class Way(NamedTuple):
    """A way to write an answer."""

    name: str
    reply: Callable[[str], str]
    """Function from an answer to a whole reply."""
    strict: bool
    """True if a strict reader accepts a right answer that is written so."""
    lenient: bool
    """True if a lenient reader does."""
    forms: str = f"{GRID} {LINE} {LETTERS} {OTHER}"
    """Forms of the answers to which it applies."""


def tagged(answer: str) -> str:
    """Return a reply that is only the answer."""
    return f"{OPENING}{answer}{CLOSING}"


def inside(write: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that makes a reply with a rewritten answer in the tags."""
    return lambda answer: tagged(write(answer))


def around(text: str) -> Callable[[str], str]:
    """Return a function that puts the answer in the place of ``@`` in the tags."""
    return inside(lambda answer: text.replace("@", answer))


def exchanged(old: str, new: str) -> Callable[[str], str]:
    """Return a function that replaces a text throughout the answer."""
    return inside(lambda answer: answer.replace(old, new))


def hyphenated(answer: str) -> str:
    """Return items without signs with hyphens between them."""
    return answer.replace(" ", "-") if re.fullmatch(r"\w+( \w+)+", answer) else answer


def joined(answer: str) -> str:
    """Return single letters with nothing between them."""
    return answer.replace(" ", "") if re.fullmatch(r"[A-Za-z]( [A-Za-z])+", answer) else answer


def tabled(answer: str) -> str:
    """Return a grid as a Markdown table, its first row in the place of the names of columns."""
    first, *rest = ("| " + " | ".join(line.split(" ")) + " |" for line in answer.split("\n"))
    return "\n".join((first, "|" + " --- |" * first.count(" |"), *rest))


def listed(answer: str) -> str:
    """Return a grid as a list of lists."""
    return "[" + ", ".join("[" + ", ".join(line.split()) + "]" for line in answer.split("\n")) + "]"


ITEMS = f"{GRID} {LINE}"
WAYS = (
    # the reply
    Way("Text before and after", lambda a: f"So it is {tagged(a)} as shown.", True, True),
    Way("Spaces and line breaks within the tags", around("\n @ \n"), True, True),
    Way("The answer twice, each in tags", lambda a: tagged(a) * 2, True, True),
    Way("Wrong, then right", lambda a: f"{tagged('no')} No: {tagged(a)}", True, True),
    Way("Right in thoughts, then right", lambda a: f"<think>{tagged(a)}</think>{tagged(a)}", True, True),
    Way("Right in thoughts only", lambda a: f"<think>{tagged(a)}</think>", True, True),
    Way("Right, then `between <answer> and </answer>`", lambda a: f"{tagged(a)} {OPENING} and {CLOSING}", True, True),
    Way("The same with backticks around both tags", lambda a: f"{tagged(a)} `{OPENING}` and `{CLOSING}`", False, True),
    Way("Right, then `<answer></answer>`", lambda a: f"{tagged(a)} in {OPENING}{CLOSING}", False, True),
    Way("Right, then `<answer>...</answer>`", lambda a: f"{tagged(a)} in {OPENING}...{CLOSING}", False, True),
    Way("Nested tags", lambda a: tagged(tagged(a)), False, True),
    Way("A second closing tag", lambda a: f"{tagged(a)} {CLOSING}", False, True),
    Way("`\\boxed{}` without tags", lambda a: f"It is $\\boxed{{{a}}}$.", False, True),
    Way("No tags", lambda a: f"The answer is {a}", False, False),
    Way("No closing tag", lambda a: f"{OPENING}{a}", False, False),
    Way("Right, then wrong", lambda a: f"{tagged(a)} No: {tagged('no')}", False, False),
    Way("The answer twice in the tags", around("@\n@"), False, False),
    Way("A wrong answer beside it in the tags", around("@ or no"), False, False),
    # marks around the answer
    Way("Code fence", around("```\n@\n```"), False, True),
    Way("Code fence with a language", around("```text\n@\n```"), False, True),
    Way("Backticks", around("`@`"), False, True),
    Way("Bold", around("**@**"), False, True),
    Way("Bold, then a period", around("**@**."), False, True),
    Way("Quotes", around('"@"'), False, True),
    Way("Curly quotes", around("\u201c@\u201d"), False, True),
    Way("Final period", around("@."), False, True),
    Way("`Answer:` before it", around("Answer: @"), False, True),
    Way("`**Final answer:**` before it", around("**Final answer:** @"), False, True),
    Way("`$`", around("$@$"), False, True),
    Way("`\\boxed{}`", around("\\boxed{@}"), False, True),
    Way("`\\[\\boxed{\\text{}}\\]`", around("\\[\n\\boxed{\\text{@}}\n\\]"), False, True),
    Way("Code fence, label and bold together", around("```\n**Answer: @**\n```"), False, True),
    # separators
    Way("Double spaces", exchanged(" ", "  "), False, True, ITEMS),
    Way("Tabs", exchanged(" ", "\t"), False, True, ITEMS),
    Way("Commas", exchanged(" ", ", "), False, True, ITEMS),
    Way("Commas without spaces", exchanged(" ", ","), False, True, ITEMS),
    Way("A list in brackets", inside(listed), False, True, LINE),
    Way("A list of lists", inside(listed), False, True, GRID),
    Way("A Markdown table", inside(tabled), False, True, GRID),
    Way("Hyphens between numbers or words", inside(hyphenated), False, True, LINE),
    Way("Letters without spaces", inside(joined), False, True, LINE),
    Way("CRLF", exchanged("\n", "\r\n"), False, True, GRID),
    Way("Blank lines", exchanged("\n", "\n\n"), False, True, GRID),
    Way("Indented lines", exchanged("\n", "\n    "), False, True, GRID),
    Way("Spaces at the ends of lines", exchanged("\n", " \n"), True, True, GRID),
    Way("A grid on one line", exchanged("\n", " "), False, True, GRID),
    Way("Rows without spaces", exchanged(" ", ""), False, True, GRID),
    Way("Items on lines of their own", exchanged(" ", "\n"), False, True, LINE),
    Way("Arrows between items", exchanged(" ", " \u2192 "), False, True, LINE),
    Way("Spaces between letters", inside(" ".join), False, True, LETTERS),
    # letters and signs
    Way("Lower case", inside(str.lower), False, True),
    Way("Upper case", inside(str.upper), False, True),
    Way("Spaces that do not break", exchanged(" ", "\u00a0"), False, True),
    Way("Unicode minus", exchanged("-", "\u2212"), False, True),
    Way("Unicode times and division", inside(lambda a: a.translate({42: "\u00d7", 47: "\u00f7"})), False, True, OTHER),
    Way("Full width", inside(lambda a: a.translate(WIDE)), False, True),
)


def form_of(puzzle: Puzzle[Any]) -> str:
    """Return the form of the answers."""
    from rlbench_suite.envs.puzzles.arithmetic.combine import CombinePuzzle
    from rlbench_suite.envs.puzzles.arithmetic.geometry import GeometryPuzzle
    from rlbench_suite.envs.puzzles.induction.rule_induction import RuleInductionPuzzle
    from rlbench_suite.envs.puzzles.shared.grid_filling import GridPuzzle
    from rlbench_suite.envs.puzzles.words.spelling import TextPuzzle

    if isinstance(puzzle, CombinePuzzle | GeometryPuzzle | RuleInductionPuzzle):
        return OTHER
    if isinstance(puzzle, TextPuzzle):
        return LETTERS
    return GRID if isinstance(puzzle, GridPuzzle) and puzzle.rows > 1 else LINE


def expected(way: Way, puzzle: Puzzle[Any]) -> tuple[bool, bool]:
    """Return whether strict and lenient readers accept a right answer that is written in this way."""
    return way.strict, way.lenient and puzzle.name not in REFUSED.get(way.name, ())


def replies(puzzle: Puzzle[Any], answer: str) -> dict[Way, str]:
    """Return the replies in which the answer is written in another way."""
    form = form_of(puzzle)
    made = {way: way.reply(answer) for way in WAYS if form in way.forms.split()}
    return {way: reply for way, reply in made.items() if reply != tagged(answer)}


def accepted(card: TaskCard, tier: str, seeds: int) -> dict[Way, tuple[float, float]]:
    """Return the fraction of right answers that strict and lenient readers accept, for each way that applies."""
    puzzle = puzzle_of(card.id, tier)
    found: dict[Way, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        instance = puzzle.generate(seed, "test")
        for way, reply in replies(puzzle, puzzle.solve(instance)).items():
            strict, lenient = (judge_reply(puzzle, instance, reply, lenient=kind).score for kind in (False, True))
            found.setdefault(way, []).append((strict == 1, lenient == 1))
    return {
        way: (sum(s for s, _ in rows) / len(rows), sum(n for _, n in rows) / len(rows)) for way, rows in found.items()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=5, help="instances of each puzzle")
    parser.add_argument("--tier", default="easy", help="tier of all puzzles")
    parser.add_argument("--puzzles", action="store_true", help="print one line for each puzzle")
    options = parser.parse_args()
    table = {card.name: accepted(card, options.tier, options.seeds) for card in cards().values() if card.puzzle}
    if options.puzzles:
        for name, row in table.items():
            marks = "".join(_mark(row.get(way)) for way in WAYS)
            print(f"{name:25s}{marks}")
        return
    print("| way to write a right answer | puzzles | strict | lenient |\n| --- | ---: | ---: | ---: |")
    for way in WAYS:
        rows = [row[way] for row in table.values() if way in row]
        strict, lenient = (fmean(row[kind] for row in rows) for kind in (0, 1))
        print(f"| {way.name} | {len(rows)} | {strict:.0%} | {lenient:.0%} |")


def _mark(shares: tuple[float, float] | None) -> str:
    """Return a sign for what is accepted: by both ``=``, by lenient readers ``+``, by none ``-``, partly ``?``."""
    if shares is None:
        return " "
    return {(1, 1): "=", (0, 1): "+", (0, 0): "-"}.get(shares, "?")


if __name__ == "__main__":
    main()
