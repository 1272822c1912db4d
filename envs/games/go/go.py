"""Go on a small board: surround more of it than the other side does.

Two sides place stones on the points of a board in turn. Stones without a free neighbour of their
chain are captured. Who ends with the larger area, its stones and the empty points that only they
reach, wins; White adds the komi for moving second. ``rules.py`` has the rules of captures, ko and
the end. Area scoring and the illegal suicide are those of the Chinese rules and of OpenSpiel.

===============  ==================================================================================
action           ``Discrete(points + 1)``: a point along the rows from below, or the last one to
                 pass; illegal points are masked
observation      ``Box(0, 1, (3 * points + 3,))``: one's own stones, those of the other side, and
                 the point that ko forbids; whether one is Black, whether the other side has just
                 passed, and the moves left in parts of the limit
reward           1 for a win, -1 for a loss at the end, else 0
termination      two passes in a row, or three moves a point, those of the opening included
success          the game is won: the larger area, with the komi for White
context          the first stone of each side: those of the test split never occur in training, and
                 neither do their rotations and reflections
===============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.game import AgainstOpponent, Game
from rlbench_suite.core.policy import Policy, player_for
from rlbench_suite.core.task import Split
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

from ..openings import sample_opening
from .rules import BLACK, WHITE, Rules, State

KOMI = {5: 2.5, 9: 7.5}
"""Points that White adds, by the size of the board.

On 5x5 it makes games of equal Monte Carlo players about even, over all openings. Perfect play from
the empty board wins all 25 points for Black (van der Werf, van den Herik & Uiterwijk 2003).
"""
COLUMN_NAMES = "abcdefghjklmnopqrst"
STONE_COLOURS = ((20, 20, 20), (245, 245, 245))
BOARD_COLOUR = (220, 180, 110)
POINT_PIXELS = 40


class Params(NamedTuple):
    """Context of an episode."""

    opening: IntArray
    """Points of the first stones of Black and White, int32 ``(2,)``."""


class Go(Game[Params, State]):
    """The game; see the module's docstring. Agent 0 is Black."""

    perfect_information = True
    measures: ClassVar[dict[str, str]] = {
        "moves": "moves of both sides so far",
        "margin": "points of Black minus those of White at the end, without komi",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.size = int(card.settings["board"].partition("x")[0])
        self.komi = KOMI[self.size]
        self.go = Rules(self.size)
        self.points = self.go.points
        self.pass_move = self.points
        self.observation_space = self.box(0.0, 1.0, (2, 3 * self.points + 3))
        self.action_space = spaces.MultiDiscrete([self.points + 1] * 2)
        self.reward_space = self.box(-1.0, 1.0, (2,))
        self.picture_shape = (self.size * POINT_PIXELS, self.size * POINT_PIXELS, 3)  # type: ignore[misc]
        self.openings = {split: self._openings(split) for split in Split}

    def _openings(self, split: Split) -> np.ndarray:
        """List the openings of a split, int32 ``(n, 2)``."""
        board = np.arange(self.points).reshape(self.size, self.size)
        turned = [np.rot90(board, turns) for turns in range(4)]
        images = np.stack([image.ravel() for turn in turned for image in (turn, turn.T)])
        pairs = np.indices((self.points, self.points)).reshape(2, -1).T
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        # The smallest image of an opening stands for all eight, and a hash of it for the split.
        numbers = (images[:, pairs[:, 0]] * self.points + images[:, pairs[:, 1]]).min(axis=0)
        hashes = numbers * 2654435761 >> 16
        is_test = hashes % 4 == 1
        return pairs[is_test == (split is Split.TEST)].astype(np.int32)

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample an opening of the split."""
        return Params(sample_opening(self.openings, self.bits(key, 1)[0], split))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Place the first stones."""
        state = self.go.empty_board()
        for stone in range(2):
            state = self.go.place_uncounted(state, params.opening[stone])
        return state

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make the move of the side whose turn it is."""
        return self.go.place(state, action[state.ply % 2].astype(jnp.int32))

    def acting(self, state: State, params: Params) -> jax.Array:
        """Return whose turn it is."""
        return np.arange(2) == state.ply % 2

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return the legal points and the pass, and every action for the side that waits."""
        legal = jnp.concatenate([self.go.flags(self.go.legal_points(state)), np.ones(1, bool)])
        return jnp.concatenate([legal | ~acts for acts in self.acting(state, params)])

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the board as each side sees it, ``(2, n)``."""
        black, white = (self.go.flags(state.stones[side]) for side in (BLACK, WHITE))
        ko = self.go.flags(state.ko)
        is_black = np.arange(2) == BLACK
        passed = (state.passes > 0) & self.acting(state, params)
        moves_left = (self.go.limit - state.ply).astype(self.dtype)
        share_left = moves_left * np.asarray(1 / self.go.limit, self.dtype)
        rows = [
            jnp.concatenate(
                [*sides, ko, jnp.stack([is_black[seat], passed[seat]]), share_left[None]]
            )
            for seat, sides in enumerate(((black, white), (white, black)))
        ]
        return jnp.stack(rows).astype(self.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for the side that has just won and -1 for the other, ``(2,)``."""
        is_new = self.go.is_over(next_state) & ~self.go.is_over(state)
        sign = jnp.where(self.won(next_state, params), 1, -1)
        return jnp.where(is_new, sign, 0).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether both sides have passed, or the limit is reached."""
        return self.go.is_over(state)

    def won(self, state: State, params: Params) -> jax.Array:
        """Return which side has won, bool ``(2,)``."""
        black_won = state.margin > self.komi
        return jnp.stack([black_won, ~black_won]) & self.go.is_over(state)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, whether Black has won, the moves and the margin."""
        return {
            "success": self.won(state, params)[BLACK],
            "moves": state.ply,
            "margin": state.margin,
        }

    def noop_action(self) -> np.ndarray:
        """Return a pass for each side."""
        return np.full(2, self.pass_move, self.action_space.dtype)

    # -- names, text and pixels --------------------------------------------------------------------

    def name_of(self, move: int) -> str:
        """Return the name of a move: ``c4`` is the third column and the fourth row from below."""
        if move == self.pass_move:
            return "pass"
        row, column = divmod(move, self.size)
        return f"{COLUMN_NAMES[column]}{row + 1}"

    def move_names(self) -> list[str]:
        """Return the names of all moves in order."""
        return [self.name_of(move) for move in range(self.points + 1)]

    def observation_components(self) -> tuple[Component, ...]:
        """Name the points for both sides, ko, and the state of the game."""
        points = self.move_names()[: self.points]
        kinds = (
            ("own", "one's own stone is on"),
            ("other", "a stone of the other side is on"),
            ("ko", "ko forbids"),
        )
        return (
            *(
                Component(f"{kind}_{point}", f"1 if {what} {point}")
                for kind, what in kinds
                for point in points
            ),
            Component("is_black", "1 for the side that placed the first stone"),
            Component("other_passed", "1 if the other side has just passed"),
            Component("moves_left", f"moves until the game ends, in parts of {self.go.limit}"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the points and the pass."""
        points = self.move_names()[: self.points]
        return singles(
            {point: f"place a stone on {point}" for point in points} | {"pass": "place none"}
        )

    def describe(self, state: State, params: Params) -> str:
        """Draw the board: ``X`` is Black, ``O`` White, ``*`` the point that ko forbids."""
        marks = self.marks(state)
        lines = [
            f"{row + 1} {' '.join(marks[row * self.size : (row + 1) * self.size])}"
            for row in reversed(range(self.size))
        ]
        lines.append(f"  {' '.join(COLUMN_NAMES[: self.size])}")
        lines.append(f"Move {int(state.ply) + 1} of {self.go.limit}.")
        if int(state.passes):
            lines.append("The last move was a pass.")
        return "\n".join(lines)

    def marks(self, state: State) -> str:
        """Return a letter for each point."""
        layers = (state.stones[BLACK], state.stones[WHITE], state.ko)
        flags = np.stack([np.asarray(self.go.flags(layer)) for layer in layers])
        numbers = np.where(flags.any(axis=0), flags.argmax(axis=0), len(layers))
        return "".join("XO*."[number] for number in numbers.tolist())

    def describe_seat(self, state: State, params: Params, seat: int) -> str:
        """Say which stones are one's own, and draw the board."""
        colour = ("Black, X", "White, O")[seat]
        return f"You are {colour}.\n{self.describe(state, params)}"

    def rules(self) -> str:
        """Say how the game goes."""
        return (
            f"Go on a board of {self.size} x {self.size} points. Two players, Black (X) and White "
            "(O), place a stone in turn or pass; each has placed one. Stones without a free "
            "point beside their chain are captured. A move that leaves its own chain without one "
            "is illegal, and so is taking back a single stone at once (ko, *). Two passes or "
            f"{self.go.limit} moves end the game. Then stones, and empty points that only one side "
            "reaches, count for that side, and all stones count as alive. White gets "
            f"{self.komi} points more. The larger area wins."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board with its stones."""
        pixels = self.size * POINT_PIXELS
        image = Image.new("RGB", (pixels, pixels), BOARD_COLOUR)
        canvas = ImageDraw.Draw(image)
        middle = POINT_PIXELS // 2
        for line in range(self.size):
            at = line * POINT_PIXELS + middle
            canvas.line((middle, at, pixels - middle, at), fill=STONE_COLOURS[BLACK])
            canvas.line((at, middle, at, pixels - middle), fill=STONE_COLOURS[BLACK])
        for point, mark in enumerate(self.marks(state)):
            row, column = divmod(point, self.size)
            left = column * POINT_PIXELS
            top = (self.size - 1 - row) * POINT_PIXELS
            if mark in "XO":
                corners = (left + 3, top + 3, left + POINT_PIXELS - 3, top + POINT_PIXELS - 3)
                canvas.ellipse(corners, fill=STONE_COLOURS["XO".index(mark)])
            elif mark == "*":
                corners = (left + 13, top + 13, left + POINT_PIXELS - 13, top + POINT_PIXELS - 13)
                canvas.rectangle(corners, outline=STONE_COLOURS[BLACK])
        return np.asarray(image)


class GoAgainst(AgainstOpponent):
    """One side of the game, which is sampled; see the module's docstring."""

    game: Go
    opponents: ClassVar[Mapping[float | None, str]] = {
        0: "rlbench_suite.envs.games.go.players:Material",
        1: "rlbench_suite.envs.games.go.players:MonteCarlo",
        2: "rlbench_suite.envs.games.go.players:LongMonteCarlo",
    }

    def player(self, name: str) -> Policy:
        """Return a player of both sides."""
        return player_for(self.game, name)

    def noop_action(self) -> np.ndarray:
        """Return a pass."""
        return self.game.noop_action()[0]

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Read the name of a point, or a pass.

        Raises:
            ValueError: it is no move on this board.
        """
        word = text.strip().lower()
        names = self.game.move_names()
        if word not in names:
            raise ValueError(unknown("move", text, names))
        return np.array(names.index(word))

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the name of a move."""
        return self.game.name_of(int(action))

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        corner = self.game.name_of(self.game.points - 1)
        return f"Answer with a point, a1 to {corner}, or pass."

    def why_illegal(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Say that the point is occupied, forbidden by ko, or suicide."""
        move = int(action)
        mark = self.game.marks(state.game)[move]
        name = self.game.name_of(move)
        if mark == "*":
            return f"ko forbids {name} for this move"
        return f"{name} has a stone" if mark in "XO" else f"{name} would be suicide"

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Say how the game ended."""
        if state.forfeited:
            return "an illegal move, which loses"
        margin = int(state.game.margin) - self.game.komi
        winner = "Black" if margin > 0 else "White"
        how = (
            "both sides passed" if int(state.game.passes) >= 2 else "the limit of moves is reached"
        )
        return f"{how}; {winner} wins by {abs(margin)} points"
