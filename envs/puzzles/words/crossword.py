"""rlsuite/Crossword-v0: fill a crossword with the words of a list (a fill-in, or kriss-kross).

Each word has one place.

``difficulty`` is the side of the grid. Instances have exactly one solution: a letter is given where
two solutions differ, until one solution is left. Every instance has its own words without meaning.
Vowels and consonants alternate in the grid, so that the words can be spoken. Patterns of blocked
cells are the same after half a turn and have no runs of two cells.

One-shot, the answer is the whole grid. Interactively, a word is placed a step:

=============  =====================================================================================
action         ``slot * slots + word``, ``Discrete(slots**2)``, slots across in reading order, then
               those down, words in the order of the list; legal is an unused word of the length of
               an open slot that agrees with the letters which stand there
observation    all one-hot or flags: the letters that stand in each slot; the words; which cells are
               blocked; which slots are filled; which words are used; which placements are legal
reward         1 / slots for each word, and +1 on placing the last
termination    every word is placed, or no placement is legal
=============  =====================================================================================

The mask forbids visible errors and does not look ahead. Words are never taken back. The best return
is 2.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby, pairwise, product
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice

from ..shared import parsing
from ..shared.board import Board
from ..shared.grid_filling import EMPTY, Grid, GridPuzzle
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.symmetry import relabel_values, smallest_form
from .pseudo_words import VOWELS

LETTERS = "ABDEIL"
BLOCK = "#"
END = -1
"""Number after the end of a word or slot."""


class Tier(NamedTuple):
    """Make-up of the instances of one side."""

    blocks: int
    slots: int
    num_givens: int
    """Least number of given letters."""
    most_given: int


TIERS = {4: Tier(4, 6, 3, 5), 5: Tier(4, 10, 0, 4), 6: Tier(12, 12, 0, 4)}
"""Tier by the side of the grid."""


class Instance(NamedTuple):
    """Words and a grid with one solution; letters are numbers from 1.

    The grid alone determines the slots and the letters given in them.
    """

    givens: np.ndarray
    """int8 ``(side**2,)``: 0 for a cell to fill, or the number of a given letter.

    A blocked cell has a number one greater than the last letter's.
    """
    words: np.ndarray
    """int8 ``(slots, side)``: the letters of each word, then ``END``; in alphabetical order."""
    slots: np.ndarray
    """int8 ``(slots, side)``: the cells of each slot, then ``END``.

    Slots across come first, in reading order, then those down.
    """
    starts: np.ndarray
    """int8 ``(slots, side)``: the letters given in each slot, 0 for those to find, then ``END``."""


def slots_of(open_cells: list[bool], side: int) -> list[list[int]]:
    """Return the runs of two or more open cells, across in reading order, then down."""
    rows = [range(r * side, (r + 1) * side) for r in range(side)]
    columns = [range(c, side * side, side) for c in range(side)]
    lines = (groupby(line, open_cells.__getitem__) for line in (*rows, *columns))
    runs = (list(run) for line in lines for is_open, run in line if is_open)
    return [run for run in runs if len(run) > 1]


@cache
def patterns(side: int) -> list[tuple[bool, ...]]:
    """Return the open cells of every pattern that a tier allows.

    A pattern is the same after half a turn and connected. It has no run of two cells and no cell
    outside all runs.
    """
    tier = TIERS[side]
    rows = [row for row in product((False, True), repeat=side) if _runs_are_long(row)]
    allowed_patterns = []
    for half in product(rows, repeat=(side + 1) // 2):
        grid = [*half, *(row[::-1] for row in half[: side // 2][::-1])]
        if sum(row.count(False) for row in grid) != tier.blocks or (
            side % 2 and half[-1] != half[-1][::-1]
        ):
            continue
        if all(map(_runs_are_long, zip(*grid, strict=True))):
            cells = [cell for row in grid for cell in row]
            slots = slots_of(cells, side)
            if len(slots) == tier.slots and _num_joined(slots) == sum(cells):
                allowed_patterns.append(tuple(cells))
    return allowed_patterns


def _runs_are_long(line: tuple[bool, ...]) -> bool:
    """Return whether no run of open cells has exactly two cells."""
    return all(len(list(run)) != 2 for is_open, run in groupby(line) if is_open)


def _num_joined(slots: list[list[int]]) -> int:
    """Return the number of cells connected with the first slot."""
    reached = set(slots[0])
    while any(len(reached | set(slot)) > len(reached) for slot in slots if reached & set(slot)):
        reached.update(*(slot for slot in slots if reached & set(slot)))
    return len(reached)


class CrosswordPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side of the grid."""

    name = "Crossword"
    difficulty_is = (
        "words that a depth-first search (slot of fewest words first) tries until it has proven "
        "uniqueness"
    )
    tier_is = "the side"
    tiers = range(min(TIERS), max(TIERS) + 1)
    symbols = LETTERS + BLOCK
    fillable = len(LETTERS)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.side = self.square()
        self.count = TIERS[self.side].slots

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a pattern and letters at random.

        Give random letters, then letters where a second solution differs.

        Return None if a word occurs twice or too many letters would be given.
        """
        side, tier = self.side, TIERS[self.side]
        pattern = dice.choice(patterns(side))
        kinds = [
            [v for v, letter in enumerate(LETTERS, 1) if (letter in VOWELS) == vowel]
            for vowel in (False, True)
        ]
        first = dice.below(2)
        cells = [
            dice.choice(kinds[(first + cell // side + cell % side) % 2])
            if is_open
            else len(self.symbols)
            for cell, is_open in enumerate(pattern)
        ]
        slots = slots_of(list(pattern), side)
        words = sorted([cells[cell] for cell in slot] for slot in slots)
        if any(word == next_word for word, next_word in pairwise(words)):
            return None
        open_cells = [cell for cell, is_open in enumerate(pattern) if is_open]
        given_cells = dice.sample(open_cells, tier.num_givens)
        while True:
            hidden = [
                0 if pattern[cell] and cell not in given_cells else value
                for cell, value in enumerate(cells)
            ]
            solutions = _Search(hidden, words, slots).solutions(2)
            if len(solutions) == 1:
                return self._instance(hidden, words, slots)
            if len(given_cells) == tier.most_given:
                return None
            given_cells.append(
                dice.choice([i for i in open_cells if solutions[0][i] != solutions[1][i]])
            )

    def _instance(
        self, givens: list[int], words: list[list[int]], slots: list[list[int]]
    ) -> Instance:
        starts = [[givens[cell] for cell in slot] for slot in slots]
        tables = (
            [line + [END] * (self.side - len(line)) for line in table]
            for table in (words, slots, starts)
        )
        return Instance(np.array(givens, np.int8), *(np.array(table, np.int8) for table in tables))

    def canonical(self, instance: Instance) -> bytes:
        """Return the solution and its given letters.

        Letters are renamed in order of first occurrence.

        The result is the least of the four forms under transposition and half a turn, which
        reverses all words. The order of the words does not matter.
        """
        board = np.arange(self.side**2).reshape(self.side, self.side)
        orders = [
            order.ravel().tolist()
            for turn in (board, board[::-1, ::-1])
            for order in (turn, turn.T)
        ]
        cells = [value for row in self.solution(instance) for value in row]
        open_cells = [value % len(self.symbols) for value in cells]
        is_given = [int(value > 0) for value in self._givens(instance)]
        return smallest_form(
            relabel_values(open_cells[i] for i in order) + [is_given[i] for i in order]
            for order in orders
        )

    def rules(self) -> str:
        """State the rules."""
        return (
            f"Fill-in crossword: cells marked {BLOCK} are blocked. A slot is a maximal run of two "
            "or more open cells "
            "in a row (read from left to right) or in a column (read from top to bottom). Every "
            "word of the list goes "
            "into exactly one slot, and every slot gets a word of the list. Where two slots cross, "
            "their words share "
            "the letter."
        )

    def clues(self, instance: Instance) -> str:
        """State the words."""
        return "Words: " + " ".join(self.word_list(instance))

    def word_list(self, instance: Instance) -> list[str]:
        """Return the words as text."""
        return [
            "".join(LETTERS[v - 1] for v in word if v != END) for word in instance.words.tolist()
        ]

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first slot with a word that is not in the list, or is also in another slot."""
        cells = [value for row in grid for value in row]
        unused_words = self.word_list(instance)
        for slot in slots_of([value < len(self.symbols) for value in cells], self.side):
            word = "".join(self.symbols[cells[cell] - 1] for cell in slot)
            if word not in unused_words:
                is_listed = word in self.word_list(instance)
                return (
                    f"{word} stands in two slots" if is_listed else f"{word} is no word of the list"
                )
            unused_words.remove(word)
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        solutions = self._search(instance).solutions(1)
        if not solutions:
            raise ValueError("these words have no place in the grid")
        return self.as_rows(solutions[0])

    def plan(self, instance: Instance) -> list[int]:
        """Return the words of the slots, in turn."""
        cells = [value for row in self.solution(instance) for value in row]
        words, slots = self._unpad(instance.words), self._unpad(instance.slots)
        placed = ([cells[cell] for cell in slot] for slot in slots)
        return [number * self.count + words.index(word) for number, word in enumerate(placed)]

    def difficulty(self, instance: Instance) -> float:
        """Count the words tried by a search for a second solution."""
        search = self._search(instance)
        search.solutions(2)
        return float(search.tried)

    def heuristic(self, instance: Instance) -> str:
        """Put into each slot in turn the first unused word of the list that fits.

        Other cells get the first letter.
        """
        cells = self._givens(instance)
        unused_words = self._unpad(instance.words)
        for slot in self._unpad(instance.slots):
            for word in unused_words:
                if len(word) == len(slot) and all(
                    cells[i] in (0, v) for i, v in zip(slot, word, strict=True)
                ):
                    unused_words.remove(word)
                    for cell, value in zip(slot, word, strict=True):
                        cells[cell] = value
                    break
        return self.write_answer(self.as_rows([value or 1 for value in cells]))

    def _search(self, instance: Instance) -> _Search:
        return _Search(
            self._givens(instance), self._unpad(instance.words), self._unpad(instance.slots)
        )

    @staticmethod
    def _unpad(table: np.ndarray) -> list[list[int]]:
        """Return words or slots without their padding."""
        return [[value for value in line if value != END] for line in table.tolist()]


class _Search:
    """Depth-first search over slots. The possible words of each slot are the bits of an integer."""

    def __init__(self, cells: list[int], words: list[list[int]], slots: list[list[int]]) -> None:
        self.tried = 0
        """Words tried so far: a measure of work."""
        self._cells, self._words, self._slots = cells, words, slots
        self._with: list[dict[int, int]] = [{} for _ in cells]
        for w, word in enumerate(words):
            for position, letter in enumerate(word):
                self._with[position][letter] = self._with[position].get(letter, 0) | 1 << w
        self._crossings: list[list[tuple[int, int, int]]] = []
        """Crossings of each slot.

        A crossing is a position in the slot, the number of the slot that crosses it there, and the
        position in that one.
        """
        for s, slot in enumerate(slots):
            crossings = []
            for position, cell in enumerate(slot):
                for t, crossing_slot in enumerate(slots):
                    if t != s and cell in crossing_slot:
                        crossings.append((position, t, crossing_slot.index(cell)))
            self._crossings.append(crossings)

    def solutions(self, max_solutions: int) -> list[list[int]]:
        """Return the cells of at most ``max_solutions`` solutions."""
        fits = []
        for slot in self._slots:
            words = sum(1 << w for w, word in enumerate(self._words) if len(word) == len(slot))
            for position, cell in enumerate(slot):
                if self._cells[cell]:
                    words &= self._with[position].get(self._cells[cell], 0)
            fits.append(words)
        solutions: list[list[int]] = []
        self._extend(fits, list(range(len(fits))), [], solutions, max_solutions)
        return solutions

    def _extend(
        self,
        fits: list[int],
        open_slots: list[int],
        placed: list[tuple[int, int]],
        solutions: list[list[int]],
        max_solutions: int,
    ) -> None:
        if not open_slots:
            cells = self._cells.copy()
            for s, w in placed:
                for cell, letter in zip(self._slots[s], self._words[w], strict=True):
                    cells[cell] = letter
            solutions.append(cells)
            return
        slot = min(open_slots, key=lambda s: fits[s].bit_count())
        other_slots = [s for s in open_slots if s != slot]
        words = fits[slot]
        while words and len(solutions) < max_solutions:
            bit = words & -words
            words ^= bit
            self.tried += 1
            word = self._words[w := bit.bit_length() - 1]
            narrowed = [mask & ~bit for mask in fits]
            for position, crossing_slot, crossing_position in self._crossings[slot]:
                narrowed[crossing_slot] &= self._with[crossing_position].get(word[position], 0)
            if all(narrowed[s] for s in other_slots):
                self._extend(narrowed, other_slots, [*placed, (slot, w)], solutions, max_solutions)


class CrosswordState(NamedTuple):
    """The grid so far."""

    letters: jax.Array
    """int8 ``(slots, side)``: the letters that stand in each slot, 0 for none, then ``END``."""
    filled: jax.Array
    """uint32: bit s is set if a word was placed in slot s."""
    used: jax.Array
    """uint32: bit w is set if word w was placed."""


class Crossword(PuzzleTask[CrosswordState]):
    """The interactive form."""

    puzzle: CrosswordPuzzle
    puzzle_class = CrosswordPuzzle
    measures: ClassVar[dict[str, str]] = {"placed": "fraction of the words that are placed"}
    picture_shape: ClassVar[tuple[int, int, int]] = (400, 560, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side, self.count = self.puzzle.side, self.puzzle.count
        self.action_space = spaces.Discrete(self.count**2)
        letters = self.count * self.side * len(LETTERS)
        self.observation_space = self.box(
            0.0, 1.0, (2 * letters + self.side**2 + 2 * self.count + self.count**2,)
        )
        self.reward_space = self.box(0.0, 1.0 + 1.0 / self.count)
        self._bits = np.arange(self.count, dtype=np.uint32)

    def initial(self, key: jax.Array, params: Params) -> CrosswordState:
        """Begin with the letters that are given."""
        return CrosswordState(params.instance.starts, jnp.uint32(0), jnp.uint32(0))

    def transition(
        self, state: CrosswordState, action: jax.Array, key: jax.Array, params: Params
    ) -> CrosswordState:
        """Place a word: its letters stand in every slot that shares a cell with it."""
        slot, number = action // self.count, action % self.count
        word, cells = (
            jnp.where(self._bits[:, None] == which.astype(jnp.uint32), lines, 0).sum(
                axis=0, dtype=jnp.int8
            )
            for which, lines in ((number, params.instance.words), (slot, params.instance.slots))
        )
        shared = (params.instance.slots[:, :, None] == cells) & (cells != END)
        letters = jnp.where(shared, word, 0).sum(axis=2, dtype=jnp.int8)
        bit = np.uint32(1)
        return CrosswordState(
            jnp.where(shared.any(axis=2), letters, state.letters),
            state.filled | bit << slot.astype(jnp.uint32),
            state.used | bit << number.astype(jnp.uint32),
        )

    def observation(self, state: CrosswordState, key: jax.Array, params: Params) -> jax.Array:
        """Return the observation.

        It holds the letters, the words, the pattern, the slots filled and words used, and the legal
        actions.
        """
        letters = np.arange(1, len(LETTERS) + 1, dtype=np.int8)
        flags = (
            state.letters[..., None] == letters,
            params.instance.words[..., None] == letters,
            params.instance.givens == len(self.puzzle.symbols),
            state.filled >> self._bits & 1,
            state.used >> self._bits & 1,
            self.action_mask(state, params),
        )
        return jnp.concatenate([flag.astype(self.dtype).reshape(-1) for flag in flags])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        letters, per_slot = (self.count, self.side, len(LETTERS)), (self.count,)
        return (
            Component(
                "letters",
                "[slot, place, letter]: which letter stands there, one-hot",
                shape=letters,
            ),
            Component(
                "words", "[word, place, letter]: the words of the list, one-hot", shape=letters
            ),
            Component(
                "blocked",
                "[row, column]: whether the cell is blocked",
                shape=(self.side, self.side),
            ),
            Component("filled", "whether each slot is filled", shape=per_slot),
            Component("used", "whether each word is used", shape=per_slot),
            Component(
                "legal",
                "[slot, word]: whether the word may be placed there",
                shape=(self.count, self.count),
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a word in a slot."""
        meaning = (
            "[slot, word]: place the word there; slots across in reading order, then those down"
        )
        return (Component("place", meaning, shape=(self.count, self.count)),)

    def reward(
        self,
        state: CrosswordState,
        action: jax.Array,
        next_state: CrosswordState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return a share for each word, plus 1 for the last one."""
        placed = next_state.used != state.used
        return placed.astype(self.dtype) / self.count + (
            placed & self._complete(next_state)
        ).astype(self.dtype)

    def terminal(self, state: CrosswordState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether every word is placed, or no word can be placed."""
        return ~self.action_mask(state, params).any()

    def info(self, state: CrosswordState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: every word is placed."""
        placed = jax.lax.population_count(state.used).astype(self.dtype) / self.count
        return {"success": self._complete(state), "placed": placed}

    def action_mask(self, state: CrosswordState, params: Params) -> jax.Array:
        """Return the unused words that fit each open slot, bool ``(slots**2,)``.

        They have its length, and their letters agree with those in it.
        """
        letters, words = state.letters[:, None], params.instance.words
        agree = ((letters == words) | ((letters == 0) & (words != END))).all(axis=2)
        free = (state.filled >> self._bits & 1 == 0)[:, None] & (state.used >> self._bits & 1 == 0)
        return (agree & free).reshape(-1)

    def _complete(self, state: CrosswordState) -> jax.Array:
        return state.used == np.uint32(2**self.count - 1)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: CrosswordState, params: Params) -> str:
        """Show the rules, the grid and the words that are left."""
        unused_words = [
            word
            for w, word in enumerate(self.puzzle.word_list(params.instance))
            if not int(state.used) >> w & 1
        ]
        filled = [str(s + 1) for s in range(self.count) if int(state.filled) >> s & 1]
        return (
            f"{self.puzzle.rules()}\n\nWords left: {' '.join(unused_words) or 'none'}\n\n"
            f"{self.puzzle.write_answer(self.puzzle.as_rows(self._cells(state, params)))}\n\n"
            "Slots are numbered from 1: those across from top to bottom and left to right, then "
            "those down from top to "
            f"bottom and left to right.\nSlots that have got a word: {', '.join(filled) or 'none'}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            f"Answer 'SLOT WORD', such as '3 LIBED': a slot, 1 to {self.count}, and a word that is "
            "left."
        )

    def parse(self, text: str, state: CrosswordState, params: Params) -> np.ndarray:
        """Read ``3 LIBED``: that word into slot 3.

        Raises:
            ValueError: anything else.
        """
        tokens = text.split()
        if len(tokens) != 2:
            raise ValueError(f"expected 'SLOT WORD', got {text[:40]!r}")
        slot = parsing.integer(tokens[0], 1, self.count, "slot")
        word = parsing.word(tokens[1], self.puzzle.word_list(params.instance))
        return np.asarray((slot - 1) * self.count + word, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: CrosswordState, params: Params) -> str:
        """Return slot and word."""
        slot, word = divmod(int(action), self.count)
        return f"{slot + 1} {self.puzzle.word_list(params.instance)[word]}"

    def why_illegal(self, action: np.ndarray, state: CrosswordState, params: Params) -> str:
        """Say that the slot or the word is taken, or the word does not fit."""
        slot, number = divmod(int(action), self.count)
        word = self.puzzle.word_list(params.instance)[number]
        if int(state.filled) >> slot & 1:
            return f"slot {slot + 1} has got a word already"
        if int(state.used) >> number & 1:
            return f"{word} was placed already"
        return f"{word} does not fit the length of slot {slot + 1} and the letters in it"

    def why_over(self, state: CrosswordState, params: Params, info: dict[str, Any]) -> str:
        """Say whether it is done or stuck."""
        return (
            "every word is placed" if info["success"] else "no word that is left fits an open slot"
        )

    def draw(self, state: CrosswordState, params: Params) -> np.ndarray:
        """Draw the grid, letters given on grey; beside it the words, those left in black."""
        side, puzzle = self.side, self.puzzle
        board = Board(side, side, self.picture_shape)
        givens = np.asarray(params.instance.givens).tolist()
        for cell, value in enumerate(self._cells(state, params)):
            row, column = divmod(cell, side)
            symbol = (EMPTY, *puzzle.symbols)[value]
            board.cell(row, column, "" if symbol == BLOCK else symbol, is_clue=givens[cell] != 0,
                       paper="#1d2733" if symbol == BLOCK else "")  # fmt: skip
        half = self.count / 2
        for w, word in enumerate(puzzle.word_list(params.instance)):
            used = int(state.used) >> w & 1
            point = w % half * side / half - 0.3, -1.4 if w < half else side + 0.4
            board.text(*point, word, "#b8bec7" if used else "#1d2733", 0.5)
        return board.picture()

    def _cells(self, state: CrosswordState, params: Params) -> list[int]:
        """Return the grid in reading order: the given letters, and those in the slots."""
        cells: list[int] = np.asarray(params.instance.givens).tolist()
        slots = np.asarray(params.instance.slots).tolist()
        letters = np.asarray(state.letters).tolist()
        for slot, line in zip(slots, letters, strict=True):
            for cell, letter in zip(slot, line, strict=True):
                if cell != END:
                    cells[cell] = letter
        return cells
