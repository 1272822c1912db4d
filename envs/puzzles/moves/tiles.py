"""Puzzles in which tiles on a square board are brought into order by moves that can be undone.

Tiles are numbered by the cell in which they belong, so that ``0, 1, 2, ...`` in reading order is
the goal. Instances are arrangements whose shortest solution has exactly ``tier`` moves.
Breadth-first search from the goal finds the distances, as deep as the board allows. Beyond,
iterative deepening from the arrangement (Korf 1985, doi:10.1016/0004-3702(85)90084-0) goes on until
it meets an arrangement that the first search has seen.

If the breadth-first search reaches the tier, instances are uniform among the arrangements at that
distance; otherwise they are ends of random walks outward from its last level that turn out to be
shortest ways.

=============  =====================================================================================
action         one of the moves; the mask leaves out those that cannot be made, where there are such
observation    each cell's tile one-hot, cells in reading order
reward         decrease of the summed distances of the tiles from their cells, divided by what it is
               at the start; +1 on reaching the goal; in each step -1/10 divided by the moves of a
               shortest solution
termination    every tile is in its cell
=============  =====================================================================================

The first part telescopes to 1 at the goal, whatever the way. The best return is exactly 19/10.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.reductions import sum_in_order
from rlbench_suite.puzzle.dice import Dice

from ..shared import parsing
from ..shared.board import Board
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.shortest_moves import MovesPuzzle
from ..shared.symmetry import smallest_form, square_symmetries

PRICE = 0.1
"""Price of the moves of a shortest solution, all together."""


class Instance(NamedTuple):
    """An arrangement to bring into order."""

    cells: np.ndarray
    """int8 ``(side**2,)``: the tile in each cell, numbered by the cell in which it belongs."""
    shortest: np.int16
    """Moves of a shortest solution."""


class RearrangementPuzzle(MovesPuzzle[Instance, bytes]):
    """``tier`` is the number of moves of a shortest solution.

    A position is the tile of each cell, a byte each.
    """

    side: ClassVar[int]
    tier_is = "the number of moves of a shortest solution"
    #: Depth of the breadth-first search from the goal.
    reach: ClassVar[int]
    #: Largest change of :meth:`estimated_distance` by one move.
    stride: ClassVar[int]
    #: True if distances wrap around the board.
    wraps: ClassVar[bool] = False
    #: The tile that is a hole, if there is one; it does not count in :meth:`estimated_distance`.
    blank: ClassVar[int | None] = None

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.cells = self.side**2
        self.goal = bytes(range(self.cells))
        self.distance = self._distances()
        """int32 ``(cells, cells)``: distance of a tile (row) from its own cell.

        The column is the cell in which it lies.
        """
        self._distance_rows = self.distance.tolist()

    # -- what a puzzle defines ---------------------------------------------------------------------

    @abc.abstractmethod
    def expand(self, boards: np.ndarray) -> np.ndarray:
        """Return all results of one move on some arrangements, uint8 ``(count, cells)``.

        They may be in any order.
        """

    @abc.abstractmethod
    def rules(self) -> str:
        """State what a move is, and how it is written."""

    def symmetries(self) -> Iterable[Sequence[int]]:
        """Return the renumberings of the cells that keep moves and goal.

        Each holds, for each cell, the cell that goes there.
        """
        return square_symmetries(self.side)

    @abc.abstractmethod
    def meaning(self, move: str) -> str:
        """Describe a move by its name."""

    # -- the puzzle --------------------------------------------------------------------------------

    @property
    def space(self) -> float:
        """Number of puzzles at this tier, disguises counted once.

        It is the mean, over the symmetries, of the number of arrangements that each leaves as they
        are (Burnside's lemma). Beyond the levels of the breadth-first search it is a number that
        the tests have counted.
        """
        levels, symmetries = _levels(type(self)), _renumberings(type(self))
        if self.tier >= len(levels):
            return super().space
        level = levels[int(self.tier)]
        num_unchanged = [
            (np.array(number)[level[:, order]] == level).all(axis=1).sum()
            for order, number in symmetries
        ]
        return float(np.mean(num_unchanged))

    def compose(self, dice: Dice) -> Instance | None:
        """Draw an arrangement at distance ``tier``.

        Return None if a walk was not a shortest way.
        """
        length = int(self.tier)
        levels = _levels(type(self))
        inside = min(length, len(levels) - 1)
        level = levels[inside]
        position = level[dice.below(len(level))].tobytes()
        last = None
        for _ in range(length - inside):
            options = [
                new_position
                for _, new_position in self.options_of(position)
                if new_position != last
            ]
            last, position = position, dice.choice(options)
        if length > inside and self._search(position, length - 1) is not None:
            return None
        return Instance(np.frombuffer(position, np.int8), np.int16(length))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form under the symmetries of the board.

        Tiles are renumbered with their cells.
        """
        tiles = instance.cells.tolist()
        return smallest_form(
            [number[tiles[cell]] for cell in order] for order, number in _renumberings(type(self))
        )

    def question(self, instance: Instance) -> str:
        """State the rules, the goal, the board and the format."""
        board = self.board_text(self.start(instance))
        return (
            f"{self.rules()}\n\nThe goal:\n\n{self.board_text(self.goal)}\n\nThe "
            f"board:\n\n{board}\n\n"
            "Reach the goal with as few moves as possible. Answer with the moves in order, "
            "separated by single spaces."
        )

    def start(self, instance: Instance) -> bytes:
        """Return the arrangement."""
        return instance.cells.tobytes()

    def estimated_distance(self, instance: Instance, position: bytes) -> int:
        """Sum the distances of the tiles from their cells: rows apart plus columns apart."""
        return self.tile_distance(position)

    def tile_distance(self, position: bytes) -> int:
        """Compute :meth:`estimated_distance`."""
        table = self._distance_rows
        return sum([table[tile][cell] for cell, tile in enumerate(position)])

    @abc.abstractmethod
    def board_after(self, position: bytes, move: int) -> bytes | None:
        """Compute :meth:`position_after`."""

    def position_after(self, instance: Instance, position: bytes, move: int) -> bytes | None:
        """Return the position after a move."""
        return self.board_after(position, move)

    def options_of(self, position: bytes) -> list[tuple[int, bytes]]:
        """Return the moves that can be made, and where they lead."""
        tried = ((move, self.board_after(position, move)) for move in range(len(self.moves)))
        return [(move, new_position) for move, new_position in tried if new_position is not None]

    def shortest(self, instance: Instance) -> list[int]:
        """Search by iterative deepening, then go down the levels of the breadth-first search."""
        position = self.start(instance)
        limit = -(-self.tile_distance(position) // self.stride)
        while (moves := self._search(position, limit)) is None:
            limit += 1
        return moves

    def board_text(self, position: bytes) -> str:
        """Return the board as text, tiles counted from 1, the blank as ``_``."""
        width = len(str(self.cells))
        rows = (position[r * self.side : (r + 1) * self.side] for r in range(self.side))
        return "\n".join(" ".join(self.label(tile).rjust(width) for tile in row) for row in rows)

    def label(self, tile: int) -> str:
        """Return the text on a tile."""
        return "_" if tile == self.blank else str(tile + 1)

    def _search(self, position: bytes, limit: int) -> list[int] | None:
        """Find at most ``limit`` moves from a position to the goal; None if there are none."""
        depth_of = _depths(type(self))
        reach = len(_levels(type(self))) - 1

        def search(position: bytes, last: bytes | None, moves_left: int) -> list[int] | None:
            depth = depth_of.get(position)
            if depth is not None:
                return self._descent(position, depth) if depth <= moves_left else None
            if moves_left <= reach or self.tile_distance(position) > moves_left * self.stride:
                return None  # what is not known is farther than the reach
            for move, new_position in self.options_of(position):
                if (
                    new_position != last
                    and (later_moves := search(new_position, position, moves_left - 1)) is not None
                ):
                    return [move, *later_moves]
            return None

        return search(position, None, limit)

    def _descent(self, position: bytes, depth: int) -> list[int]:
        """Return moves to the goal from a position that the breadth-first search has seen."""
        depth_of = _depths(type(self))
        moves = []
        for moves_left in range(depth - 1, -1, -1):
            move, position = next(
                o for o in self.options_of(position) if depth_of.get(o[1]) == moves_left
            )
            moves.append(move)
        return moves

    def _distances(self) -> np.ndarray:
        row, column = np.divmod(np.arange(self.cells), self.side)
        steps = [np.abs(line[:, None] - line[None, :]) for line in (row, column)]
        if self.wraps:
            steps = [np.minimum(step, self.side - step) for step in steps]
        table = (steps[0] + steps[1]).astype(np.int32)
        if self.blank is not None:
            table[self.blank] = 0
        return table


@cache
def _levels(puzzle_class: type[RearrangementPuzzle]) -> list[np.ndarray]:
    """Return arrangements by their distance from the goal, uint8 ``(count, cells)`` each.

    Their order is fixed.
    """
    puzzle = puzzle_class(2)
    weights = np.uint64(16) ** np.arange(puzzle.cells, dtype=np.uint64)
    level = np.frombuffer(puzzle.goal, np.uint8)[None]
    previous_codes, codes = np.zeros(0, np.uint64), level @ weights
    levels = [level]
    while len(levels) <= puzzle.reach:
        boards = puzzle.expand(level)
        new_codes, first = np.unique(boards @ weights, return_index=True)
        # A move can be undone, so no other level is next to this one.
        new = ~np.isin(new_codes, codes) & ~np.isin(new_codes, previous_codes)
        if not new.any():
            break
        previous_codes, codes, level = codes, new_codes[new], boards[first[new]]
        levels.append(level)
    return levels


@cache
def _depths(puzzle_class: type[RearrangementPuzzle]) -> dict[bytes, int]:
    """Return the distance from the goal of every arrangement in the levels."""
    levels = _levels(puzzle_class)
    cells = levels[0].shape[1]
    depths = {}
    for depth, level in enumerate(levels):
        packed = level.tobytes()
        depths.update({packed[at : at + cells]: depth for at in range(0, len(packed), cells)})
    return depths


@cache
def _renumberings(puzzle_class: type[RearrangementPuzzle]) -> list[tuple[Sequence[int], list[int]]]:
    """Return each symmetry, with the new number of each cell."""
    return [(order, np.argsort(order).tolist()) for order in puzzle_class(2).symmetries()]


class BoardState(NamedTuple):
    """The board."""

    cells: jax.Array
    """int8 ``(side**2,)``: the tile in each cell."""
    apart: jax.Array
    """int32: summed distances of the tiles from their cells."""
    at_first: jax.Array
    """int32: summed distances at the start."""


class RearrangementTask(PuzzleTask[BoardState]):
    """The interactive form.

    Subclasses define :meth:`move_tiles`, and :meth:`action_mask` if some moves may be illegal.
    """

    puzzle: RearrangementPuzzle
    numbering: ClassVar[str] = "tile k belongs into cell k"
    measures: ClassVar[dict[str, str]] = {"apart": "summed distances of the tiles from their cells"}
    picture_shape: ClassVar[tuple[int, int, int]] = (300, 300, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.cells = self.puzzle.cells
        self.action_space = spaces.Discrete(len(self.puzzle.moves))
        self.observation_space = self.box(0.0, 1.0, (self.cells**2,))
        self.reward_space = self.box(-self.puzzle.stride - PRICE, self.puzzle.stride + 1.0)

    @abc.abstractmethod
    def move_tiles(self, grid: jax.Array, action: jax.Array) -> jax.Array:
        """Return the board after a move that can be made: int8 ``(side, side)``."""

    def initial(self, key: jax.Array, params: Params) -> BoardState:
        """Begin with the arrangement of the instance."""
        distance = self._tile_distance(params.instance.cells)
        return BoardState(params.instance.cells, distance, distance)

    def transition(
        self, state: BoardState, action: jax.Array, key: jax.Array, params: Params
    ) -> BoardState:
        """Make a move."""
        cells = computed_once(self._move_cells)(state.cells, action)
        return BoardState(cells, self._tile_distance(cells), state.at_first)

    def _move_cells(self, cells: jax.Array, action: jax.Array) -> jax.Array:
        side = self.puzzle.side
        return self.move_tiles(cells.reshape(side, side), action).reshape(-1)

    def observation(self, state: BoardState, key: jax.Array, params: Params) -> jax.Array:
        """Return the tiles one-hot."""
        return self._one_hot(state.cells).astype(self.dtype).reshape(-1)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the tile of each cell."""
        meaning = f"[cell, tile]: which tile lies in the cell, one-hot; {self.numbering}"
        return (Component("tiles", meaning, shape=(self.cells, self.cells)),)

    def action_components(self) -> tuple[Component, ...]:
        """Describe the moves."""
        return singles({move: self.puzzle.meaning(move) for move in self.puzzle.moves})

    def reward(
        self,
        state: BoardState,
        action: jax.Array,
        next_state: BoardState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return progress, plus 1 at the goal, minus the price of a move."""
        progress = (state.apart - next_state.apart).astype(self.dtype) / state.at_first.astype(
            self.dtype
        )
        price = PRICE / params.instance.shortest.astype(self.dtype)
        arrived = (state.apart > 0) & (next_state.apart == 0)
        return progress + arrived.astype(self.dtype) - price

    def terminal(self, state: BoardState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether every tile is in its cell."""
        return state.apart == 0

    def info(self, state: BoardState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: every tile is in its cell."""
        return {"success": state.apart == 0, "apart": state.apart}

    def _one_hot(self, cells: jax.Array) -> jax.Array:
        return cells[:, None] == np.arange(self.cells, dtype=np.int8)

    def _tile_distance(self, cells: jax.Array) -> jax.Array:
        distances = jnp.zeros(self.cells, jnp.int32)
        for tile in range(self.cells):
            distances = jnp.where(cells == tile, self.puzzle.distance[tile], distances)
        return sum_in_order(distances)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: BoardState, params: Params) -> str:
        """Show the rules, the goal and the board as it is."""
        puzzle = self.puzzle
        board = puzzle.board_text(np.asarray(state.cells).tobytes())
        return (
            f"{puzzle.rules()}\n\nThe goal:\n\n{puzzle.board_text(puzzle.goal)}\n\nThe "
            f"board:\n\n{board}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return f"Answer with one move: {', '.join(self.puzzle.moves)}."

    def parse(self, text: str, state: BoardState, params: Params) -> np.ndarray:
        """Read the name of a move.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(parsing.word(text.strip(), self.puzzle.moves), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: BoardState, params: Params) -> str:
        """Return the name of the move."""
        return self.puzzle.moves[int(action)]

    def why_over(self, state: BoardState, params: Params, info: dict[str, Any]) -> str:
        """Return the only end there is."""
        return "every tile is in its cell"

    def draw(self, state: BoardState, params: Params) -> np.ndarray:
        """Draw the board; tiles in their cells on grey."""
        side = self.puzzle.side
        board = Board(side, side, self.picture_shape)
        for cell, tile in enumerate(np.asarray(state.cells).tolist()):
            symbol = "" if tile == self.puzzle.blank else self.puzzle.label(tile)
            board.cell(*divmod(cell, side), is_clue=cell == tile and symbol != "")
            board.text(*divmod(cell, side), symbol, scale=0.8)
        return board.picture()


class PermutingPuzzle(RearrangementPuzzle):
    """A board on which every move can be made anywhere and permutes the same cells.

    Subclasses define :meth:`sources`.
    """

    @classmethod
    @abc.abstractmethod
    def sources(cls) -> dict[str, np.ndarray]:
        """Return for each move the cell that each cell's tile comes from, ``(side, side)``.

        The keys are the names of the moves.
        """

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        sources = self.sources()
        self.moves = tuple(sources)
        self.source = (
            np.stack(list(sources.values())).reshape(len(self.moves), self.cells).astype(np.uint8)
        )
        """uint8 ``(moves, cells)``."""
        self._source = [row.tobytes() for row in self.source]

    def board_after(self, position: bytes, move: int) -> bytes:
        """Return every cell's new tile; ``translate`` looks them up in a table of 256 entries."""
        return self._source[move].translate(position.ljust(256))

    def expand(self, boards: np.ndarray) -> np.ndarray:
        """Make every move."""
        return np.concatenate([boards[:, source] for source in self.source])


class PermutingTask(RearrangementTask):
    """The interactive form.

    Tiles go from a cell to one beside it (around the border, where it wraps).
    """

    puzzle: PermutingPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        side = self.puzzle.side
        beside = np.stack(_neighbour_tiles(np.arange(self.cells).reshape(side, side), np)).reshape(
            5, 1, -1
        )
        self._from = np.argmax(beside == self.puzzle.source, axis=0).astype(np.int8)
        """int8 ``(moves, cells)``: side from which the tile comes.

        Sides are numbered in the order of :func:`_neighbour_tiles`.
        """

    def move_tiles(self, grid: jax.Array, action: jax.Array) -> jax.Array:
        """Take every tile from the side that the move names."""
        side = jnp.asarray(self._from)[action].reshape(grid.shape)
        stay, *sides = _neighbour_tiles(grid, jnp)
        return jnp.select([side == number for number in range(1, 5)], sides, stay)


def _neighbour_tiles(grid: Any, of: Any) -> list[Any]:
    """Return the grid, and the tiles left of, right of, above and below each cell.

    ``of`` is NumPy or JAX's.
    """
    return [
        grid,
        of.roll(grid, 1, 1),
        of.roll(grid, -1, 1),
        of.roll(grid, 1, 0),
        of.roll(grid, -1, 0),
    ]
