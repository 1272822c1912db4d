"""Connect four: drop pieces into columns, and be the first with four in a line.

Two players drop pieces of their own into the columns of a board in turn. A piece falls to the
lowest free cell. Who first has four in a row, a column or a diagonal wins; a full board is a draw.
The game is solved: who begins on the board of 7 x 6 wins (Allis 1988, "A knowledge-based approach
of connect-four"); on 4 x 4 perfect play draws (``tests/games`` enumerates it).

===============  ==================================================================================
action           ``Discrete(columns)``: the column; a full one is masked
observation      ``Box(0, 1, (2 * columns * rows + 1,))``: one's own pieces, those of the other
                 side, column by column from the bottom, and whether one moved first
reward           1 for a win, -1 for a loss, else 0
termination      a line of four, or a full board
success          the game is won
context          the first two moves, one of each side: those of the test split never occur in
                 training, and neither do their mirror images
===============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Int, IntArray, UInt32Array
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.game import AgainstOpponent, Game, SeatPlayer
from rlbench_suite.core.policy import Policy, View, no_memory, player_for
from rlbench_suite.core.task import Split
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

from .openings import sample_opening

LINE = 4  # pieces that win
WORD_BITS = 32
COLOURS = ((200, 60, 50), (235, 200, 60))
CELL_PIXELS = 40


class Params(NamedTuple):
    """Context of an episode."""

    opening: IntArray
    """Columns of the first two moves, int32 ``(2,)``."""


class State(NamedTuple):
    """A position.

    A cell is bit ``column * (rows + 1) + row``; the bit above each column stays empty, so that
    lines do not run from one column into the next.
    """

    pieces: UInt32Array
    """Pieces of both sides, uint32 ``(2, words)``, the low word first."""
    heights: IntArray
    """Number of pieces in each column, int32 ``(columns,)``."""
    ply: Int
    """Number of moves so far, those of the opening included."""
    winner: Int
    """Agent that has four in a line; -1 while there is none."""


class ConnectFour(Game[Params, State]):
    """The game; see the module's docstring. Agent 0 moves first."""

    perfect_information = True
    measures: ClassVar[dict[str, str]] = {"moves": "moves of both sides so far"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        columns, _, rows = card.settings["board"].partition("x")
        self.columns = int(columns)
        self.rows = int(rows)
        self.words = -(-self.columns * (self.rows + 1) // WORD_BITS)
        size = 2 * self.columns * self.rows + 1
        self.observation_space = self.box(0.0, 1.0, (2, size))
        self.action_space = spaces.MultiDiscrete([self.columns] * 2)
        self.reward_space = self.box(-1.0, 1.0, (2,))
        self.picture_shape = (  # type: ignore[misc]
            self.rows * CELL_PIXELS, self.columns * CELL_PIXELS, 3,
        )  # fmt: skip
        self.openings = {split: self._openings(split) for split in Split}

    def _openings(self, split: Split) -> np.ndarray:
        """List the openings of a split, int32 ``(n, 2)``."""
        pairs = np.indices((self.columns, self.columns)).reshape(2, -1).T
        mirrored = self.columns - 1 - pairs
        # The smaller of an opening and its mirror image stands for both.
        numbers = np.minimum(pairs @ [self.columns, 1], mirrored @ [self.columns, 1])
        is_test = numbers % 4 == 1
        return pairs[is_test == (split is Split.TEST)].astype(np.int32)

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample an opening of the split."""
        return Params(sample_opening(self.openings, self.bits(key, 1)[0], split))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Play the opening."""
        state = self.empty_board()
        for move in range(2):
            state = self.drop(state, params.opening[move])
        return state

    def empty_board(self) -> State:
        """Return the position before the first move."""
        return State(
            jnp.zeros((2, self.words), jnp.uint32),
            jnp.zeros(self.columns, jnp.int32),
            jnp.int32(0),
            jnp.int32(-1),
        )

    def drop(self, state: State, column: jax.Array) -> State:
        """Drop a piece of the side to move into a column that is not full."""
        mover = state.ply % 2
        cell = column * (self.rows + 1) + state.heights[column]
        word = np.arange(self.words, dtype=np.int32)
        bit = jnp.where(
            word == cell // WORD_BITS, np.uint32(1) << (cell % WORD_BITS).astype(jnp.uint32), 0
        )
        mover_pieces = state.pieces[mover] | bit.astype(jnp.uint32)
        pieces = jnp.where(np.arange(2)[:, None] == mover, mover_pieces, state.pieces)
        return State(
            pieces,
            state.heights + (np.arange(self.columns) == column),
            state.ply + 1,
            jnp.where(self.has_line(mover_pieces), mover, state.winner),
        )

    def has_line(self, pieces: jax.Array) -> jax.Array:
        """Return whether there are four in a line among pieces, uint32 ``(words,)``."""
        is_line = jnp.bool_(False)
        for step in (1, self.rows, self.rows + 1, self.rows + 2):
            pairs = [a & b for a, b in zip(pieces, shifted(pieces, step), strict=True)]
            fours = [a & b for a, b in zip(pairs, shifted(pairs, 2 * step), strict=True)]
            for word in fours:
                is_line = is_line | (word != 0)
        return is_line

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drop a piece of the side to move into the column that it chooses."""
        return self.drop(state, action[state.ply % 2])

    def acting(self, state: State, params: Params) -> jax.Array:
        """Return whose turn it is."""
        return np.arange(2) == state.ply % 2

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return the columns that are not full, and every column for the side that waits."""
        free = state.heights < self.rows
        return jnp.concatenate([free | ~acts for acts in self.acting(state, params)])

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the pieces of both sides as each side sees them, ``(2, n)``."""
        planes = self.planes(state)
        rows = [
            jnp.concatenate([planes[seat], planes[1 - seat], jnp.array([seat == 0], self.dtype)])
            for seat in range(2)
        ]
        return jnp.stack(rows)

    def planes(self, state: State) -> jax.Array:
        """Return 1 for each piece of a side, ``(2, columns * rows)``, column by column."""
        columns, rows = np.divmod(np.arange(self.columns * self.rows), self.rows)
        cells = columns * (self.rows + 1) + rows
        words = state.pieces[:, cells // WORD_BITS]
        return (words >> (cells % WORD_BITS).astype(np.uint32) & 1).astype(self.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for the side that has just won and -1 for the other, ``(2,)``."""
        is_new = (next_state.winner >= 0) & (state.winner < 0)
        sign = jnp.where(np.arange(2) == next_state.winner, 1, -1)
        return jnp.where(is_new, sign, 0).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether a side has won or the board is full."""
        return (state.winner >= 0) | (state.ply == self.columns * self.rows)

    def won(self, state: State, params: Params) -> jax.Array:
        """Return which side has won, bool ``(2,)``."""
        return np.arange(2) == state.winner

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, whether the side that moved first has won, and the moves."""
        return {"success": state.winner == 0, "moves": state.ply}

    # -- names, text and pixels --------------------------------------------------------------------

    @property
    def _columns(self) -> range:
        return range(self.columns)

    def observation_components(self) -> tuple[Component, ...]:
        """Name the cells for both sides."""
        cells = [(c, r) for c in self._columns for r in range(self.rows)]
        return (
            *(
                Component(f"{side}_{c}_{r}", f"1 if {whose} piece is in column {c}, row {r}")
                for side, whose in (("own", "one's own"), ("other", "the other side's"))
                for c, r in cells
            ),
            Component("moves_first", "1 for the side that made the first move"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the columns."""
        return singles(
            {f"column_{c}": f"drop a piece into column {c}" for c in range(self.columns)}
        )

    def describe(self, state: State, params: Params) -> str:
        """Draw the board: ``X`` moves first, ``O`` second."""
        planes = np.asarray(self.planes(state)).reshape(2, self.columns, self.rows)
        lines = []
        for row in reversed(range(self.rows)):
            cells = [
                "X" if planes[0, c, row] else "O" if planes[1, c, row] else "."
                for c in range(self.columns)
            ]
            lines.append(" ".join(cells))
        lines.append(" ".join(map(str, range(self.columns))))
        return "\n".join(lines)

    def describe_seat(self, state: State, params: Params, seat: int) -> str:
        """Say which pieces are one's own, and draw the board."""
        return f"Your pieces are {'XO'[seat]}.\n{self.describe(state, params)}"

    def rules(self) -> str:
        """Say how the game goes."""
        return (
            f"Connect four on a board of {self.columns} columns and {self.rows} rows. Two "
            "players, X and O, drop a piece in turn into a column that is not full; X moved first. "
            "Four in a row, a column or a diagonal win. A full board is a draw."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board with its pieces."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), (40, 80, 160))
        canvas = ImageDraw.Draw(image)
        planes = np.asarray(self.planes(state)).reshape(2, self.columns, self.rows)
        for column in range(self.columns):
            for row in range(self.rows):
                x = column * CELL_PIXELS
                y = height - (row + 1) * CELL_PIXELS
                owners = np.flatnonzero(planes[:, column, row])
                colour = COLOURS[owners[0]] if owners.size else (230, 235, 240)
                canvas.ellipse(
                    (x + 4, y + 4, x + CELL_PIXELS - 4, y + CELL_PIXELS - 4), fill=colour
                )
        return np.asarray(image)


def shifted(words: Any, count: int) -> list[Any]:
    """Shift words of bits, the low one first, down by ``count`` bits."""
    full_words, bits = divmod(count, WORD_BITS)
    padded = [*words, *[np.uint32(0)] * (full_words + 1)][full_words:]
    if bits == 0:
        return padded[: len(words)]
    return [
        padded[i] >> np.uint32(bits) | padded[i + 1] << np.uint32(WORD_BITS - bits)
        for i in range(len(words))
    ]


class ConnectFourAgainst(AgainstOpponent):
    """One side of the game, which is sampled; see the module's docstring."""

    game: ConnectFour
    opponents: ClassVar[Mapping[float | None, str]] = {
        0: f"{__name__}:RandomMoves",
        1: f"{__name__}:OneMoveAhead",
        2: f"{__name__}:TwoMovesAhead",
    }

    def player(self, name: str) -> Policy:
        """Return a player of both sides."""
        return player_for(self.game, name)

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Read a column.

        Raises:
            ValueError: it is no column of the board.
        """
        word = text.strip()
        columns = [str(column) for column in range(self.game.columns)]
        if word not in columns:
            raise ValueError(unknown("column", text, columns))
        return np.array(columns.index(word))

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with the number of a column, 0 to {self.game.columns - 1}."

    def why_illegal(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Say that the column is full."""
        return f"column {int(action)} is full"

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Say who won."""
        if state.forfeited:
            return "an illegal move, which loses"
        if int(state.game.winner) < 0:
            return "the board is full, a draw"
        return "four in a line" if info["success"] else "the opponent has four in a line"


class LookAhead(eqx.Module):
    """A player of both sides that searches all moves to a depth, and plays a best one at random.

    It takes a win that it sees, avoids a loss that it sees, and counts all else as equal.
    """

    game: ConnectFour = eqx.field(static=True)
    depth: ClassVar[int]
    """Moves of both sides that it looks at."""

    @classmethod
    def for_task(cls, game: ConnectFour) -> LookAhead:
        """Return the player."""
        return cls(game)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return a best column for the side to move, for both sides, int32 ``(2,)``."""
        values = self._values(view.state, self.depth)
        # Values are whole numbers, so that this only decides between equal ones.
        noise = self.game.uniform(key, self.game.columns)
        best = jnp.argmax(values + noise).astype(jnp.int32)
        return jnp.stack([best, best]), memory

    def _values(self, state: State, depth: int) -> jax.Array:
        """Return the value of each column for the side to move, ``(columns,)``.

        Values are whole numbers. A win or loss counts for more the sooner it comes; a full column
        has minus infinity.
        """
        columns = np.arange(self.game.columns, dtype=np.int32)
        values = jax.vmap(lambda column: self._value_after(state, column, depth))(columns)
        return jnp.where(state.heights < self.game.rows, values, -jnp.inf)

    def _value_after(self, state: State, column: jax.Array, depth: int) -> jax.Array:
        """Return the value of a move for who makes it, if ``depth`` moves are looked at."""
        if depth == 0:
            return jnp.zeros((), self.game.dtype)
        position = self.game.drop(state, column)
        reply_value = jnp.zeros((), self.game.dtype)
        if depth > 1:
            replies = self._values(position, depth - 1)
            reply_value = jnp.where(jnp.isfinite(replies).any(), replies.max(), 0)
        return jnp.where(position.winner >= 0, 10.0 * depth, -reply_value).astype(self.game.dtype)


class RandomMoves(LookAhead):
    """Plays any free column."""

    depth = 0


class OneMoveAhead(LookAhead):
    """Wins if it can, and stops the other side from winning next."""

    depth = 2


class TwoMovesAhead(LookAhead):
    """Sees its next two moves, and the replies to them."""

    depth = 4


class ThreeMovesAhead(LookAhead):
    """Sees its next three moves, and the replies between them."""

    depth = 5


class Reference(SeatPlayer):
    """The player that looks three moves ahead, at one's own seat."""

    @classmethod
    def for_task(cls, task: ConnectFourAgainst) -> SeatPlayer:
        """Return the player of the task's game."""
        return cls(ThreeMovesAhead(task.game))
