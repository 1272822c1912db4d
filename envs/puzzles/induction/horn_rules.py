"""Horn clauses ``target(X,Y) :- parent(X,Z), female(Z).`` over small worlds.

This module has their text, their consequences, and a list of all of them up to a size.

A world has objects, one binary relation, and a mark that some objects have. A rule's body is a
conjunction of literals. Variables other than X and Y are bound existentially, and different
variables may stand for one object. So plain finite evaluation, in any order of the literals, finds
the pairs for which a rule makes the target hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, reduce
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from rlbench_suite.puzzle.puzzle import Malformed

RELATION, MARKED, UNMARKED = range(3)
X, Y = range(2)
VARIABLES = "XYZWVUTSRQPONMLKJIHGFEDCBA"
"""Names of variables 0, 1, 2, ..."""
OBJECTS = "abcdefghijklmnopqrstuvwxyz"
SIDE = 8
"""Number of objects of the worlds that :func:`truths` is for: their pairs are the bits of one word.
"""

Literal = tuple[int, int, int]
"""A predicate, and its one or two variables (a mark has the same one twice)."""


class World(NamedTuple):
    """Facts about objects 0, 1, 2, ..."""

    relation: np.ndarray
    """bool ``(n, n)``: pairs that are related."""
    marked: np.ndarray
    """bool ``(n,)``: objects with the mark."""


class Vocabulary(NamedTuple):
    """The names of the predicates."""

    relation: str
    marked: str
    unmarked: str


def rule_text(body: Sequence[Literal], vocabulary: Vocabulary) -> str:
    """Return a rule as text."""
    return f"target(X,Y) :- {', '.join(literal_text(literal, vocabulary) for literal in body)}."


def literal_text(literal: Literal, vocabulary: Vocabulary) -> str:
    """Return a literal as text."""
    predicate, first, second = literal
    about = (first, second) if predicate == RELATION else (first,)
    return f"{vocabulary[predicate]}({','.join(VARIABLES[variable] for variable in about)})"


_TOKEN = re.compile(r":-|[a-z]{1,12}|[A-Z]|[(),.]")
_HEAD = ["target", "(", "X", ",", "Y", ")", ":-"]


def read(text: str, vocabulary: Vocabulary, max_literals: int, max_fresh: int) -> list[Literal]:
    """Return the body of a rule; its fresh variables are numbered in order of first occurrence.

    Raises:
        Malformed: not ``target(X,Y) :- literal, ..., literal.``, or longer than allowed.
    """
    tokens = _tokens(text)
    if tokens[: len(_HEAD)] != _HEAD:
        raise Malformed("a rule begins with 'target(X,Y) :-'")
    variables = {"X": X, "Y": Y}
    body: list[Literal] = []
    position = len(_HEAD)
    while True:
        name, opening = _token_at(tokens, position), _token_at(tokens, position + 1)
        if name not in vocabulary or opening != "(":
            raise Malformed(
                f"literal {len(body) + 1}: expected one of {', '.join(vocabulary)} and '(', got "
                f"{name!r}"
            )
        predicate = vocabulary.index(name)
        count = 2 if predicate == RELATION else 1
        inside = tokens[position + 2 : position + 2 * count + 2]
        names = inside[::2]
        if inside[1::2] != [","] * (count - 1) + [")"] or not all(name.isupper() for name in names):
            raise Malformed(
                f"literal {len(body) + 1}: {name} is about {count} variable(s), each a capital "
                "letter"
            )
        numbers = [variables.setdefault(name, len(variables)) for name in names]
        body.append((predicate, numbers[0], numbers[-1]))
        position += 2 * count + 2
        if _token_at(tokens, position) != ",":
            break
        position += 1
    if tokens[position:] != ["."]:
        raise Malformed(f"expected ',' and a literal or '.' and the end after literal {len(body)}")
    if len(body) > max_literals or len(variables) > 2 + max_fresh:
        raise Malformed(
            f"a rule has at most {max_literals} literals and {max_fresh} variables beside X and "
            f"Y, this one has {len(body)} and {len(variables) - 2}"
        )
    return body


def _tokens(text: str) -> list[str]:
    """Return the tokens of a text; spaces and line breaks between them mean nothing."""
    tokens, position = [], 0
    while position < len(text):
        if text[position] in " \n":
            position += 1
        elif match := _TOKEN.match(text, position):
            tokens.append(match[0])
            position = match.end()
        else:
            raise Malformed(f"character {position + 1}: {text[position]!r} has no place in a rule")
    return tokens


def _token_at(tokens: list[str], position: int) -> str:
    """Return the token at a place; nothing after the last."""
    return tokens[position] if position < len(tokens) else ""


# -- evaluation ------------------------------------------------------------------------------------


def extension(body: Sequence[Literal], world: World) -> np.ndarray:
    """Return the pairs of objects for which a rule makes the target hold: bool ``(n, n)``.

    Time and memory are proportional to the number of assignments of objects to the variables.
    """
    count = 1 + max(Y, *(variable for literal in body for variable in literal[1:]))
    every = np.ones((len(world.marked),) * 2 + (1,) * (count - 2), bool)
    table = reduce(np.logical_and, (_truth(literal, world, count) for literal in body), every)
    pairs: np.ndarray = np.logical_or.reduce(table, axis=tuple(range(2, count)))
    return pairs


def _truth(literal: Literal, world: World, variables: int) -> np.ndarray:
    """Return where a literal is true: bool, with one axis for each variable.

    The axis of a variable that does not occur has length 1.
    """
    predicate, first, second = literal
    if predicate != RELATION:
        holds = world.marked == (predicate == MARKED)
    elif first == second:
        holds = world.relation.diagonal()
    else:
        holds = world.relation if first < second else world.relation.T
    return holds.reshape(
        [len(world.marked) if axis in (first, second) else 1 for axis in range(variables)]
    )


# -- all rules up to a size ------------------------------------------------------------------------


@cache
def literals(fresh: int) -> tuple[Literal, ...]:
    """Return the literals over X, Y and this many fresh variables.

    No literal relates a variable to itself, because no object is related to itself.
    """
    variables = range(2 + fresh)
    pairs = ((RELATION, first, second) for first, second in permutations(variables, 2))
    marks = ((mark, variable, variable) for mark in (MARKED, UNMARKED) for variable in variables)
    return (*pairs, *marks)


@cache
def bodies(max_literals: int, fresh: int) -> tuple[tuple[int, ...], ...]:
    """Return the sets of 1 to ``max_literals`` literals, as increasing places in :func:`literals`.

    Small sets come first.

    The list leaves out sets that can never hold (an object both marked and unmarked). Of sets that
    differ only by the names of fresh variables it keeps the first.
    """
    every = literals(fresh)
    number_of = {literal: number for number, literal in enumerate(every)}
    renamings = []
    for names in permutations(range(2, 2 + fresh)):
        name = (X, Y, *names)
        renamings.append(
            [
                number_of[predicate, name[variable], name[second]]
                for predicate, variable, second in every
            ]
        )
    kept_bodies = []
    for size in range(1, max_literals + 1):
        for body in combinations(range(len(every)), size):
            body_literals = {every[number] for number in body}
            if any(
                mark == MARKED and (UNMARKED, variable, variable) in body_literals
                for mark, variable, _ in body_literals
            ):
                continue
            if all(
                body <= tuple(sorted(renamed[number] for number in body))
                for renamed in renamings[1:]
            ):
                kept_bodies.append(body)
    return tuple(kept_bodies)


@cache
def bodies_by_size(max_literals: int, fresh: int) -> tuple[np.ndarray, ...]:
    """Return :func:`bodies` as arrays ``(rules, size)`` for sizes 1 to ``max_literals``."""
    every = bodies(max_literals, fresh)
    return tuple(
        np.array([body for body in every if len(body) == size])
        for size in range(1, max_literals + 1)
    )


@cache
def connected_bodies(num_literals: int, fresh: int) -> tuple[int, ...]:
    """Return the places in :func:`bodies` of bodies that link their variables.

    The bodies have ``num_literals`` literals.

    X and Y occur in them, and relations link every fresh variable that occurs to X or Y.
    """
    every = literals(fresh)
    numbers = []
    for number, body in enumerate(bodies(num_literals, fresh)):
        body_literals = [every[literal_number] for literal_number in body]
        occur = {variable for _, *about in body_literals for variable in about}
        linked = {X, Y}
        for _ in range(fresh):
            linked |= {
                v
                for p, *about in body_literals
                if p == RELATION and linked & set(about)
                for v in about
            }
        if len(body) == num_literals and {X, Y} <= occur <= linked:
            numbers.append(number)
    return tuple(numbers)


def truths(world: World, fresh: int) -> np.ndarray:
    """Return where each of :func:`literals` is true in a world, uint64 ``(literals, cases)``.

    The world has ``SIDE`` objects.

    A case gives every fresh variable an object, and bit 8 x + y is for the objects x and y of X and
    Y.
    """
    count, n = 2 + fresh, SIDE
    tables = [
        np.broadcast_to(_truth(literal, world, count), (n,) * count) for literal in literals(fresh)
    ]
    pairs = np.moveaxis(np.stack(tables), (1, 2), (-2, -1)).reshape(len(tables), n**fresh, n * n)
    words: np.ndarray = np.packbits(pairs, axis=-1, bitorder="little").view("<u8")[..., 0]
    return words


def extensions(tables: np.ndarray, max_literals: int, fresh: int) -> np.ndarray:
    """Return the pairs for which each of :func:`bodies` makes the target hold, uint64.

    ``tables`` are those of :func:`truths`.
    """
    pairs_by_size = []
    for literal_numbers in bodies_by_size(max_literals, fresh):
        cases = reduce(np.bitwise_and, (tables[column] for column in literal_numbers.T))
        pairs_by_size.append(np.bitwise_or.reduce(cases, axis=1))
    return np.concatenate(pairs_by_size)
