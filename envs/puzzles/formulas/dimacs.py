"""Formulas as text (DIMACS CNF) and as lists of clauses, and their exact number of models.

Host side, plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from .formula import MAX_VARIABLES, WORD, Formula

Clause = tuple[int, ...]
"""Literals in the notation of DIMACS, in increasing order of their variables.

A literal is ``v`` or ``-v`` for variable v = 1, 2, ...
"""


def clauses_of(formula: Formula) -> list[Clause]:
    """Return the clauses, in order."""
    positive, negative = np.asarray(formula.positive), np.asarray(formula.negative)
    words, variables = positive.shape
    clauses = []
    for j in range(words * WORD):
        holds = (positive[j // WORD] >> (j % WORD) & 1).astype(int) - (
            negative[j // WORD] >> (j % WORD) & 1
        )
        clauses.append(tuple(int(holds[v] * (v + 1)) for v in range(variables) if holds[v]))
    while clauses and not clauses[-1]:
        clauses.pop()
    return clauses


def formula_of(clauses: Sequence[Iterable[int]], variables: int) -> Formula:
    """Return the formula of these clauses (NumPy arrays).

    Raises:
        ValueError: an empty clause, a literal out of range, a variable twice in a clause, or too
            many variables.
    """
    if not 1 <= variables <= MAX_VARIABLES:
        raise ValueError(f"a formula has 1 to {MAX_VARIABLES} variables, got {variables}")
    listed = [tuple(clause) for clause in clauses]
    _check(listed, variables)
    for number, literals in enumerate(listed, 1):
        if len({abs(literal) for literal in literals}) < len(literals):
            raise ValueError(
                f"clause {number} holds a variable twice: {' '.join(map(str, literals))}"
            )
    return Formula(*occurrences(listed, variables))


def occurrences(clauses: Sequence[Clause], variables: int) -> np.ndarray:
    """Return the clauses in which each literal occurs.

    These are both sides of a :class:`.formula.Formula` of any size.
    """
    occurs = np.zeros((2, -(-len(clauses) // WORD), variables), np.uint32)
    for j, clause in enumerate(clauses):
        for literal in clause:
            occurs[int(literal < 0), j // WORD, abs(literal) - 1] |= np.uint32(1 << j % WORD)
    return occurs


def _check(clauses: Sequence[Clause], variables: int) -> None:
    """Raise a ValueError for an empty clause, or a literal out of range."""
    for number, clause in enumerate(clauses, 1):
        if not clause:
            raise ValueError(f"clause {number} is empty: the formula has no model")
        for literal in clause:
            if not 1 <= abs(literal) <= variables:
                raise ValueError(
                    f"clause {number}: literal {literal} is not in 1..{variables} or "
                    f"-{variables}..-1"
                )


def to_dimacs(formula: Formula) -> str:
    """Write a formula in DIMACS CNF: the problem line, then one clause a line, each ended by 0."""
    return write_dimacs(clauses_of(formula), formula.positive.shape[-1])


def write_dimacs(clauses: Sequence[Clause], variables: int) -> str:
    """Write clauses of any length over any number of variables as :func:`to_dimacs` does."""
    lines = [f"p cnf {variables} {len(clauses)}"]
    return "\n".join(lines + [" ".join(map(str, (*clause, 0))) for clause in clauses]) + "\n"


def from_dimacs(text: str) -> Formula:
    """Return the formula of a DIMACS CNF text.

    The text has comments, one problem line, and clauses that may span lines.

    Raises:
        ValueError: not DIMACS CNF, or not what its problem line announces; the message names the
            line or clause.
    """
    variables, clauses = clauses_in(text)
    return formula_of(clauses, variables)


def clauses_in(text: str) -> tuple[int, list[Clause]]:
    """Return the number of variables and the clauses of a DIMACS CNF text.

    There may be any number of variables and of clauses, of any length.

    Raises:
        ValueError: see :func:`from_dimacs`.
    """
    announced: tuple[int, int] | None = None
    clauses: list[Clause] = []
    open_clause: list[int] = []
    for number, words in _lines(text):
        if words[0] == "p":
            if announced is not None:
                raise ValueError(f"line {number}: a second problem line")
            if (
                len(words) != 4
                or words[1] != "cnf"
                or not all(_is_count(word) for word in words[2:])
            ):
                raise ValueError(
                    f"line {number}: expected 'p cnf VARIABLES CLAUSES', got {' '.join(words)!r}"
                )
            announced = int(words[2]), int(words[3])
            continue
        if announced is None:
            raise ValueError(
                f"line {number}: expected 'p cnf VARIABLES CLAUSES' before the clauses"
            )
        for word in words:
            if not _is_count(word.removeprefix("-")):
                raise ValueError(f"line {number}: expected a literal (an integer), got {word!r}")
            if int(word):
                open_clause.append(int(word))
            else:
                clauses.append(tuple(open_clause))
                open_clause = []
    if announced is None:
        raise ValueError("no problem line 'p cnf VARIABLES CLAUSES'")
    if open_clause:
        raise ValueError("the last clause is not ended by 0")
    if len(clauses) != announced[1]:
        raise ValueError(
            f"the problem line announces {announced[1]} clauses, {len(clauses)} follow"
        )
    _check(clauses, announced[0])
    return announced[0], clauses


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield numbered lines as lists of words.

    Comments, blank lines and everything after SATLIB's closing ``%`` are left out.
    """
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if words and words[0] == "%":
            return
        if words and words[0][0] != "c":
            yield number, words


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit()
