"""rlsuite/Zebra-v0: find out from clues who lives in which house.

The puzzle of the zebra (Life International 1962) is the best-known one of this kind.

There are as many attributes as houses, and each value of an attribute belongs to one house. The
clues leave one solution, and every clue is needed. ``difficulty`` is the length of a search that
proves it. See :mod:`..shared.grid_filling` for actions, observations and rewards: rows are
attributes, columns houses. The mask forbids a value that its row already has. It also forbids a
house that a clue about the value rules out, if the clue's other value is placed. After the cells
come the clues, one after the other: kind, first and second value (or house), each one-hot.

The search places whole rows: an attribute's values can stand in ``houses!`` orders, and a set of
orders is a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.component import Component
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import INK, Board
from ..shared.caption import add_caption
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle, GridState
from ..shared.naming import least_naming
from ..shared.puzzle_task import Params

NONE, TOGETHER, APART, BESIDE, NEXT, LEFT, AT = range(7)
"""Kinds of clues.

SAME, APART and BESIDE are symmetric in their values; in AT the second value is a house.

The second value of SAME and APART is of a later attribute than the first, so it is never a name.
"""
WORDS = {
    TOGETHER: "{0} {verb}s {what}",
    APART: "{0} does not {verb} {what}",
    BESIDE: "{0} lives directly beside {1}",
    NEXT: "{0} lives directly to the left of {1}",
    LEFT: "{0} lives somewhere to the left of {1}",
    AT: "{0} lives in house {house}",
}
ATTRIBUTES = (
    ("name", "{}", "", "", ("Ada", "Ben", "Cleo", "Dan", "Eve")),
    ("colour of the house", "the resident of the {} house", "live", "in the {} house", (
        "amber", "blue", "crimson", "denim", "emerald",
    )),
    ("pet", "the owner of the {}", "own", "the {}", ("ant", "bird", "cat", "dog", "eel")),
    ("drink", "the {} drinker", "drink", "{}", ("ale", "beer", "coffee", "daiquiri", "espresso")),
    ("hobby", "the {} lover", "love", "{}", (
        "archery", "boxing", "chess", "dancing", "embroidery",
    )),
)  # fmt: skip
"""Attributes with their phrases and values.

Each is the attribute, the phrase for whoever has a value of it, a verb and its object for having
it, and the values in the order of their initials.
"""
Clue = tuple[int, int, int]
"""Kind, and two values; value v of attribute a has the number ``a * houses + v``."""


class Instance(NamedTuple):
    """Clues with one solution."""

    givens: np.ndarray
    """int8 ``(houses**2,)``: zeros, because no cell is given."""
    clues: np.ndarray
    """int8 ``(houses**2, 3)``: sorted; rows of zeros (``NONE``) after the last."""


class ZebraPuzzle(GridPuzzle[Instance]):
    """``tier`` is the number of houses and of attributes."""

    name = "Zebra"
    difficulty_is = (
        "orders of an attribute's values that a depth-first search tries until it has proven "
        "uniqueness"
    )
    tier_is = "the number of houses"
    tiers = (3, 4, 5)
    few: ClassVar[dict[float, float]] = {3: 38_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows = self.columns = self.fillable = n = int(tier)
        self.symbols = "ABCDE"[:n]
        self._orders = list(permutations(range(n)))
        """Houses of the values, for each order."""
        self._with = [
            [_bits(order[v] == house for order in self._orders) for house in range(n)]
            for v in range(n)
        ]
        """The orders in which a value stands in a house."""
        self._every = _bits(True for _ in self._orders)

    def compose(self, dice: Dice) -> Instance | None:
        """Draw random true clues until no wrong solution is left.

        Each one excludes a solution that the others leave.

        Then drop clues that are not needed. Return None if too many remain.
        """
        n = self.columns
        truth = [dice.choice(self._orders) for _ in range(n)]
        clues: list[Clue] = []
        while (wrong_solution := self._search(clues, truth)) is not None:
            clue = self._clue(truth, dice)
            while self._is_true(clue, wrong_solution):
                clue = self._clue(truth, dice)
            clues.append(clue)
        for clue in dice.shuffled(clues):
            remaining = [remaining_clue for remaining_clue in clues if remaining_clue is not clue]
            if self._search(remaining, truth) is None:
                clues = remaining
        if len(clues) > n * n:
            return None
        rows = [*sorted(clues), *[(NONE, 0, 0)] * (n * n - len(clues))]
        return Instance(np.zeros(n * n, np.int8), np.array(rows, np.int8))

    def _clue(self, truth: list[tuple[int, ...]], dice: Dice) -> Clue:
        """Return a random clue that is true."""
        n = self.columns
        while True:
            kind, a, b = dice.between(TOGETHER, AT), dice.below(n), dice.below(n)
            first = dice.below(n)
            house = truth[a][first]
            if kind == AT:
                return AT, a * n + first, house
            compatible_houses = [x for x in range(n) if _is_compatible(kind, house, x)]
            if not compatible_houses or (a == b and kind in (TOGETHER, APART)):
                continue
            second = truth[b].index(dice.choice(compatible_houses))
            first_value, second_value = a * n + first, b * n + second
            return (
                (kind, min(first_value, second_value), max(first_value, second_value))
                if kind in (TOGETHER, APART, BESIDE)
                else (kind, first_value, second_value)
            )

    def _is_true(self, clue: Clue, truth: Sequence[Sequence[int]]) -> bool:
        """Return whether a clue holds.

        ``truth`` gives the house of each value of each attribute.
        """
        kind, first, second = clue
        n = self.columns
        house = truth[first // n][first % n]
        return (
            house == second
            if kind == AT
            else _is_compatible(kind, house, truth[second // n][second % n])
        )

    def _search(
        self,
        clues: list[Clue],
        but: Sequence[Sequence[int]] | None = None,
        tried: list[int] | None = None,
    ) -> list[tuple[int, ...]] | None:
        """Return a solution other than ``but``; None if there is none.

        ``tried`` gets an entry for each order tried.
        """
        n = self.columns
        free = [self._every] * n
        between: list[list[list[tuple[int, list[int]]]]] = [
            [[] for _ in range(n)] for _ in range(n)
        ]
        for kind, first, second in clues:
            (a, v), (b, w) = divmod(first, n), divmod(second, n)
            if kind == AT:
                free[a] &= self._with[v][second]
                continue
            forth = [
                sum(self._with[w][y] for y in range(n) if _is_compatible(kind, x, y))
                for x in range(n)
            ]
            back = [
                sum(self._with[v][x] for x in range(n) if _is_compatible(kind, x, y))
                for y in range(n)
            ]
            if a == b:
                free[a] &= sum(self._with[v][x] & forth[x] for x in range(n))
            else:
                between[a][b].append((v, forth))
                between[b][a].append((w, back))
        order: list[tuple[int, ...] | None] = [None] * n

        def descend(free: list[int], open_rows: list[int]) -> bool:
            if not open_rows:
                return but is None or any(
                    order_of_row != excluded_order
                    for order_of_row, excluded_order in zip(order, but, strict=True)
                )
            a = min(open_rows, key=lambda row: free[row].bit_count())
            other_rows = [row for row in open_rows if row != a]
            choices = free[a]
            while choices:
                choice = choices & -choices
                choices ^= choice
                order[a] = houses = self._orders[choice.bit_length() - 1]
                if tried is not None:
                    tried.append(a)
                narrowed = free.copy()
                for b in other_rows:
                    for value, allowed in between[a][b]:
                        narrowed[b] &= allowed[houses[value]]
                    if not narrowed[b]:
                        break
                else:
                    if descend(narrowed, other_rows):
                        return True
            return False

        return (
            [houses_of_row for houses_of_row in order if houses_of_row is not None]
            if descend(free, list(range(n)))
            else None
        )

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the instance.

        Forms rename values and attributes, and see the street from either side.
        """
        clues = _clues(instance)
        return min(
            self._canonical_clues(clues),
            self._canonical_clues([self._mirror_clue(clue) for clue in clues]),
        )

    def _mirror_clue(self, clue: Clue) -> Clue:
        """Return the clue as seen from the other side of the street."""
        kind, first, second = clue
        if kind == AT:
            return AT, first, self.columns - 1 - second
        return (kind, second, first) if kind in (NEXT, LEFT) else clue

    def _canonical_clues(self, clues: list[Clue]) -> bytes:
        n = self.columns

        def look(colours: Sequence[int]) -> list[Any]:
            mentioned: list[list[Clue]] = [[] for _ in range(n * n)]
            for kind, first, second in clues:
                directed = kind in (NEXT, LEFT)
                mentioned[first].append((kind, 0, second if kind == AT else colours[second]))
                if kind != AT:
                    mentioned[second].append((kind, int(directed), colours[first]))
            rows = [tuple(sorted(colours[row * n : (row + 1) * n])) for row in range(n)]
            return [
                (rows[value // n], tuple(sorted(mentions)))
                for value, mentions in enumerate(mentioned)
            ]

        def form(names: Sequence[int]) -> bytes:
            rows = sorted(sorted(names[row * n : (row + 1) * n]) for row in range(n))
            renamed_clues = []
            for kind, first, second in clues:
                first_name, second_name = names[first], second if kind == AT else names[second]
                renamed_clues.append(
                    (kind, min(first_name, second_name), max(first_name, second_name))
                    if kind <= BESIDE
                    else (kind, first_name, second_name)
                )
            return bytes(x for row in (*rows, *sorted(renamed_clues)) for x in row)

        return least_naming(n * n, look, form)

    def rules(self) -> str:
        """State the rules, and the meanings of the letters in each row."""
        n = self.columns
        rows = (
            f"Row {row}, {what}: "
            + ", ".join(f"{value[0].upper()} {value}" for value in values[:n])
            for row, (what, *_, values) in enumerate(ATTRIBUTES[:n], 1)
        )
        return (
            f"{n} houses stand in a row, numbered 1 to {n} from left to right, and one person "
            "lives in each. Each "
            "value of each attribute below belongs to exactly one house. Find the only solution to "
            "the clues.\n\n"
            "In the grid, columns are houses, rows are attributes, and each value is written as "
            "its initial:\n" + "\n".join(rows)
        )

    def clues(self, instance: Instance) -> str:
        """State the clues, in words."""
        return "Clues:\n" + "\n".join(
            f"{k}. {self.words(clue)}." for k, clue in enumerate(_clues(instance), 1)
        )

    def words(self, clue: Clue) -> str:
        """Return a clue in English."""
        kind, first, second = clue
        who, *_ = self._phrases(first)
        object_phrase, verb, what = self._phrases(0 if kind == AT else second)
        text = WORDS[kind].format(who, object_phrase, verb=verb, what=what, house=second + 1)
        return text[0].upper() + text[1:]

    def _phrases(self, value: int) -> tuple[str, str, str]:
        """Return the phrase for whoever has a value, and the verb and object for having it."""
        _, who, verb, what, values = ATTRIBUTES[value // self.columns]
        word = values[value % self.columns]
        return who.format(word), verb, what.format(word)

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first row that lacks a value, or the first clue that is false."""
        for number, row in enumerate(grid, 1):
            if len(set(row)) < self.columns:
                return f"row {number} does not hold every value"
        houses = [[row.index(value + 1) for value in range(self.columns)] for row in grid]
        for clue in _clues(instance):
            if not self._is_true(clue, houses):
                return f"it is false that {self.words(clue)[0].lower()}{self.words(clue)[1:]}"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Search."""
        orders = self._search(_clues(instance))
        if orders is None:
            raise ValueError("these clues contradict each other")
        return [[order.index(house) + 1 for house in range(self.columns)] for order in orders]

    def difficulty(self, instance: Instance) -> float:
        """Count the orders tried by a search for a second solution."""
        clues, tried = _clues(instance), []  # type: ignore[var-annotated]
        self._search(clues, self._search(clues), tried)
        return float(len(tried))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Put the values of every row in any order."""
        return self.write_answer(
            [dice.shuffled(range(1, self.columns + 1)) for _ in range(self.rows)]
        )

    def heuristic(self, instance: Instance) -> str:
        """Fill cell by cell with the row's first unused value that makes no clue false.

        Only clues with both values placed count.
        """
        n, clues = self.columns, _clues(instance)
        placed: dict[int, int] = {}
        for cell in range(n * n):
            row, house = divmod(cell, n)
            unplaced = [value for value in range(row * n, row * n + n) if value not in placed]
            value = next(
                (value for value in unplaced if self._fits(clues, placed | {value: house})),
                unplaced[0],
            )
            placed[value] = house
        grid = [[0] * n for _ in range(n)]
        for value, house in placed.items():
            row, number = divmod(value, n)
            grid[row][house] = number + 1
        return self.write_answer(grid)

    @staticmethod
    def _fits(clues: list[Clue], placed: dict[int, int]) -> bool:
        for kind, first, second in clues:
            second_house = second if kind == AT else placed.get(second)
            if (
                first in placed
                and second_house is not None
                and not _is_compatible(kind, placed[first], second_house)
            ):
                return False
        return True


def _clues(instance: Instance) -> list[Clue]:
    return [
        (kind, first, second) for kind, first, second in instance.clues.tolist() if kind != NONE
    ]


def _bits(flags: Any) -> int:
    """Return the set of the indices that are true."""
    return sum(1 << number for number, flag in enumerate(flags) if flag)


def _is_compatible(kind: int, x: int, y: int) -> bool:
    """Return whether a clue allows its first value in house x and its second in house y.

    For AT, y is the clue's house.
    """
    if kind in (TOGETHER, AT):
        return x == y
    if kind == APART:
        return x != y
    if kind == BESIDE:
        return abs(x - y) == 1
    return x + 1 == y if kind == NEXT else x < y


class Zebra(CellFillTask):
    """The zebra puzzle, a cell a step."""

    puzzle_class = ZebraPuzzle
    picture_shape: ClassVar[tuple[int, int, int]] = (560, 900, 3)

    @property
    def houses(self) -> int:
        """Number of houses."""
        return self.puzzle.columns

    @property
    def fact_count(self) -> int:
        """Numbers of :meth:`facts`."""
        return self.houses**2 * (AT + 2 * self.houses**2)

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow values that are not in the row yet, in houses that their clues leave open."""
        n, every = self.houses, np.uint8(2**self.houses - 1)
        placed = self._houses_of_values(cells)
        first, second, (kind, first_value, second_value) = self._sides(placed, instance)
        for_first, for_second = self._open_houses(kind, first, second, second_value)
        values = np.arange(n * n, dtype=np.int8)[:, None]
        is_first = (first_value == values) & (kind != NONE)
        is_second = (second_value == values) & (kind != NONE) & (kind != AT)
        houses_left = jnp.where(is_first, for_first, every) & jnp.where(
            is_second, for_second, every
        )
        houses = lax.reduce(houses_left, every, lax.bitwise_and, (1,)) * (placed == 0)
        fits = houses.reshape(n, 1, n) >> np.arange(n, dtype=np.uint8)[:, None] & 1 != 0
        return fits.reshape(n * n, n)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every value has a house and every clue is true."""
        placed = self._houses_of_values(cells)
        first, second, (kind, _, second_value) = self._sides(placed, instance)
        for_first, _ = self._open_houses(kind, first, second, second_value)
        return (placed != 0).all() & ((kind == NONE) | (first & for_first != 0)).all()

    def _houses_of_values(self, cells: jax.Array) -> jax.Array:
        """Return the house of each value as a set, uint8 ``(values,)``; 0 if it is not placed."""
        n = self.houses
        house_bits = np.uint8(1) << np.arange(n, dtype=np.uint8)
        is_there = cells.reshape(n, 1, n) == np.arange(1, n + 1, dtype=np.int8)[:, None]
        return jnp.where(is_there, house_bits, np.uint8(0)).sum(axis=2, dtype=jnp.uint8).reshape(-1)

    def _sides(
        self, placed: jax.Array, instance: Any
    ) -> tuple[jax.Array, jax.Array, tuple[jax.Array, ...]]:
        """Return for each clue the houses of its two values as sets, and its three numbers.

        A set is 0 if the value is not placed.
        """
        kind, first_value, second_value = (instance.clues[:, column] for column in range(3))
        values = np.arange(self.houses**2, dtype=np.int8)
        first, second = (
            jnp.where(side[:, None] == values, placed, np.uint8(0)).sum(axis=1, dtype=jnp.uint8)
            for side in (first_value, second_value)
        )
        return first, second, (kind, first_value, second_value)

    def _open_houses(
        self, kind: jax.Array, first: jax.Array, second: jax.Array, second_value: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the houses that each clue leaves to either value, given the other's house."""
        every = np.uint8(2**self.houses - 1)
        x, y = (jnp.where(side == 0, every, side) for side in (first, second))
        below = jnp.where(second == 0, np.uint8(every >> 1), second - np.uint8(1))
        above = jnp.where(first == 0, np.uint8(every - 1), every & ~(first | (first - np.uint8(1))))
        fixed_house = np.uint8(1) << jnp.minimum(second_value, 7).astype(jnp.uint8)
        kinds = [kind == which for which in (TOGETHER, APART, BESIDE, NEXT, LEFT, AT)]
        for_first = [y, every & ~second, every & (y >> 1 | y << 1), y >> 1, below, fixed_house]
        for_second = [x, every & ~first, every & (x >> 1 | x << 1), every & (x << 1), above, y]
        return jnp.select(kinds, for_first, every), jnp.select(kinds, for_second, every)

    def facts(self, instance: Any) -> jax.Array:
        """Return the clues, one-hot."""
        kind, first_value, second_value = (instance.clues[:, column, None] for column in range(3))
        values = np.arange(self.houses**2, dtype=np.int8)
        is_clue = kind != NONE
        blocks = (
            kind == np.arange(1, AT + 1, dtype=np.int8),
            is_clue & (first_value == values),
            is_clue & (second_value == values),
        )
        return jnp.concatenate(blocks, axis=1).astype(self.dtype).reshape(-1)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        values = self.houses**2
        meaning = (
            "[clue, ...]: its kind, one-hot (same house, not the same, side by side, directly left "
            "of, left of, in a house of a number); its first value, one-hot (attribute * houses + "
            "value); its second value or house, one-hot. Zeros after the last clue"
        )
        return (Component("clues", meaning, shape=(values, AT + 2 * values)),)

    def draw(self, state: GridState, params: Params) -> np.ndarray:
        """Draw the grid, with the rules and the clues beside it."""
        text = f"{self.puzzle.rules()}\n\n{self.puzzle.clues(params.instance)}"
        return add_caption(self.draw_shape(state, params, (560, 360, 3)), text, self.picture_shape)

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw houses above, attributes at the left."""
        for house in range(self.houses):
            board.text(-0.8, house, str(house + 1), INK, 0.5)
        for row in range(self.houses):
            board.text(row, -0.85, ATTRIBUTES[row][0].split()[0], INK, 0.3)
