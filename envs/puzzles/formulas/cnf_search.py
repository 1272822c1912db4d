"""Exact search on formulas in conjunctive normal form: models, their number, and refutations.

Host side.

This is Davis, Logemann & Loveland's search (1962), with sets of clauses as whole numbers. A partial
assignment is described by a few such sets: the clauses with a true literal, and for j = 1, 2, ...
those of which at least j literals are not false. To make a literal false moves the clauses that
hold it down by one, in j operations for all of them together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .dimacs import Clause


class Node(NamedTuple):
    """A partial assignment and its effect; sets are bits of whole numbers.

    The sets are sets of clauses or of variables.
    """

    free: int
    """Variables without a value; variable v is bit v - 1."""
    true: int
    """Variables that are true."""
    open: int
    """Clauses without a true literal."""
    longer_than: tuple[int, ...]
    """Sets of clauses: entry j holds the clauses with more than j literals that are not false."""


class Search:
    """A depth-first search through the assignments of a formula; unit clauses first.

    Otherwise it branches on the variable that occurs most evenly and often in the shortest open
    clauses, and begins with the value that satisfies more of them.

    Args:
        clauses: in any order, none empty.
        variables: number of variables; clauses may leave some out.
        max_models: number of models at which the search stops.

    Attributes:
        models: number of models found; exact if below ``max_models``.
        model: the first model found, as the set of its true variables; None if there is none.
        branches: for each node with two successors, in the order of the search, the literal that it
            makes true first. Of a unit clause that is the negated literal, which falsifies the
            clause at once.
        decisions: number of branches that no unit clause forced.
        refutation: where there is no model, the tree as tokens in preorder: a variable, the tree
            where it is true, the tree where it is false; ``#j`` where all literals of clause j = 1,
            2, ... are false.
    """

    def __init__(self, clauses: Sequence[Clause], variables: int, *, max_models: int = 1) -> None:
        self._clauses = clauses
        self._max_models = max_models
        self._holds = {literal: 0 for v in range(1, variables + 1) for literal in (v, -v)}
        """The clauses that hold a literal."""
        for number, clause in enumerate(clauses):
            for literal in clause:
                self._holds[literal] |= 1 << number
        longest = max(map(len, clauses), default=0)
        clauses_longer_than = tuple(
            sum(1 << i for i, clause in enumerate(clauses) if len(clause) > j)
            for j in range(longest + 1)
        )
        self.models = self.decisions = 0
        self.model: int | None = None
        self.branches: list[int] = []
        self.refutation = self._search_below(
            Node((1 << variables) - 1, 0, (1 << len(clauses)) - 1, clauses_longer_than)
        )

    def _search_below(self, node: Node) -> list[str]:
        """Search below a node; the tree there, as tokens."""
        prefix: list[str] = []
        suffix: list[str] = []
        while True:
            if not node.open:
                self.models += 1 << node.free.bit_count()
                if self.model is None:
                    self.model = node.true
                return []
            if failed := node.open & ~node.longer_than[0]:
                return [*prefix, f"#{_lowest_bit(failed) + 1}", *reversed(suffix)]
            unit = node.open & ~node.longer_than[1]
            if not unit:
                break
            number = _lowest_bit(unit)
            literal = next(x for x in self._clauses[number] if node.free >> abs(x) - 1 & 1)
            self.branches.append(-literal)
            prefix.append(str(abs(literal)))
            (suffix if literal > 0 else prefix).append(f"#{number + 1}")
            node = self._add_literal(node, literal)
        literal = self._choice(node)
        self.branches.append(literal)
        self.decisions += 1
        first = self._search_below(self._add_literal(node, literal))
        second = (
            []
            if self.models >= self._max_models
            else self._search_below(self._add_literal(node, -literal))
        )
        true, false = (first, second) if literal > 0 else (second, first)
        return [*prefix, str(abs(literal)), *true, *false, *reversed(suffix)]

    def _add_literal(self, node: Node, literal: int) -> Node:
        """Return the node after a literal has become true."""
        bit = 1 << abs(literal) - 1
        fewer, longer_than = self._holds[-literal], node.longer_than
        return Node(
            node.free ^ bit,
            node.true | bit if literal > 0 else node.true,
            node.open & ~self._holds[literal],
            (
                *(
                    more & ~fewer | more & all_fewer
                    for more, all_fewer in itertools.pairwise(longer_than)
                ),
                0,
            ),
        )

    def _choice(self, node: Node) -> int:
        """Return the literal to branch on, from the shortest open clauses."""
        shortest = next(
            clauses for clauses in (node.open & ~longer for longer in node.longer_than) if clauses
        )
        best = best_literal = -1
        for v in members(node.free):
            up = (shortest & self._holds[v + 1]).bit_count()
            down = (shortest & self._holds[-v - 1]).bit_count()
            score = up * down << 10 | up + down
            if score > best:
                best, best_literal = score, v + 1 if up > down else -v - 1
        return best_literal


def members(numbers: int) -> Iterator[int]:
    """Return the numbers of the bits that are set, in increasing order."""
    while numbers:
        yield _lowest_bit(numbers)
        numbers &= numbers - 1


def _lowest_bit(numbers: int) -> int:
    return (numbers & -numbers).bit_length() - 1
