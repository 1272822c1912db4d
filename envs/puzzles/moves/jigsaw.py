"""rlsuite/Jigsaw-v0: put the shuffled patches of a picture back into their places.

A random picture (:mod:`.random_pictures`) is cut into n x n square patches. Cuts run along lines of
pixels, and both patches keep the line, so that the borders of neighbours agree. Other borders agree
too: the pattern of the picture repeats from patch to patch, and only the shapes on it tell patches
apart. But the picture is the only square arrangement of the patches in which all borders agree. An
exhaustive search proves this for every instance. ``tier`` is n. ``difficulty`` is the number of
patches that the search tries.

One-shot, a patch is described by the colours of its four borders, and the answer says which patch
to put where. Interactively, two patches change places a step:

=============  =====================================================================================
action         two places to swap, ``Discrete(n**2 * (n**2 - 1) / 2)``: (0, 1), (0, 2), ... in
               reading order; none is ever forbidden
observation    by the setting ``observation``. ``"structured"``: for each place the red, green and
               blue light of its patch, 0 or 1, at three points of the top border from the left, the
               right one from the top, the bottom one from the left and the left one from the top;
               then for every two places i and j (all j for i = 0 first) the share of pixels at
               which the patches there would agree with that of i left of that of j, and then the
               same for above. ``"pixels"``: the picture as it lies, uint8 ``(12 n, 12 n, 3)``
reward         decrease of the number of patches out of place, divided by what it is at the start;
               +1 on restoring the picture; in each step -1/10 divided by the fewest swaps that
               restore it
termination    the picture is restored
=============  =====================================================================================

The first part telescopes to 1 at the goal, whatever the way. The fewest swaps are the number of
patches minus the number of cycles of their permutation, so the best return is exactly 19/10.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, agreement, wrong

from ..shared import parsing
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.symmetry import relabel_values, smallest_form
from .random_pictures import CODES, NAMES, as_rgb, paint_picture

SIDE = 12
"""Pixels along a patch; the last line of one is the first of the next."""
POINTS = (1, 5, 10)
"""Pixels of a border that the structured observation shows."""
PRICE = 0.1
"""Total price of the fewest swaps."""
_MAX_TRIALS = 5_000
"""Limit of trials in the search.

A picture whose patches take more trials to tell apart is too plain.
"""

Borders = tuple[bytes, bytes, bytes, bytes]
"""Colours of a patch along its four edges: top, bottom, left and right.

Top and bottom are read from the left, left and right from the top.
"""


class Instance(NamedTuple):
    """A picture, and the places of its patches."""

    patches: np.ndarray
    """int8 ``(n**2, 12, 12)``: colours of the patches, in reading order of where they belong."""
    cells: np.ndarray
    """int8 ``(n**2,)``: the patch that lies in each place."""
    shortest: np.int16
    """Fewest swaps that restore the picture."""


class JigsawPuzzle(Puzzle[Instance]):
    """The one-shot form. Patches are numbered by the places in which they lie, from 1."""

    name = "Jigsaw"
    difficulty_is = "patches tried by a search for every arrangement in which borders agree"
    tier_is = "the number of patches along a side"
    tiers = range(2, 6)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.side = int(tier)
        self.cells = self.side**2
        self._corners = [divmod(position, self.side) for position in range(self.cells)]

    def compose(self, dice: Dice) -> Instance | None:
        """Paint, cut and shuffle. Return None if the patches also fit together in another way."""
        step = SIDE - 1
        picture = paint_picture(dice, self.side, step)
        patches = np.stack(
            [
                picture[r * step : r * step + SIDE, c * step : c * step + SIDE]
                for r, c in self._corners
            ]
        )
        arrangements, tried = self._arrangements([_borders(patch) for patch in patches])
        if len(arrangements) > 1 or tried > _MAX_TRIALS:
            return None
        cells = list(range(self.cells))
        while not (swaps := restoring_swaps(cells)):
            dice.shuffle(cells)
        return Instance(patches, np.array(cells, np.int8), np.int16(len(swaps)))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the lines along which the picture is cut, and of its frame.

        The form is the least of their rotations and reflections, with colours renamed in order of
        first occurrence. The present places of the patches do not matter.
        """
        step = SIDE - 1
        size = self.side * step + 1
        picture = np.zeros((size, size), np.int8)
        for patch, (r, c) in zip(instance.patches, self._corners, strict=True):
            picture[r * step : r * step + SIDE, c * step : c * step + SIDE] = patch
        on_line = np.arange(size) % step == 0
        on_cut = on_line[:, None] | on_line
        turned = [np.rot90(picture, k) for k in range(4)]
        return smallest_form(
            relabel_values((form[on_cut] + 1).tolist())
            for turn in turned
            for form in (turn, turn.T)
        )

    def question(self, instance: Instance) -> str:
        """State what was done, the patches and the format."""
        n = self.side
        return (
            f"{self.rules()}\n\n{self.list_borders(instance, instance.cells.tolist(), 'patch')}\n\n"
            f"Answer with the numbers of the {self.cells} patches in the order of their places, "
            f"the {n} of the first "
            "row from left to right, then those of the second row, and so on, on one line, "
            "separated by single "
            "spaces. Every patch is used once."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show an order of three patches."""
        return [Example("For example, the answer for a row of 3 patches could be:", "2 3 1")]

    def rules(self) -> str:
        """State the rules, and what colours are called."""
        n = self.side
        colours = ", ".join(f"{code} ({name})" for code, name in zip(CODES, NAMES, strict=True))
        return (
            f"A picture was cut into {n} x {n} square patches, which were shuffled but not turned. "
            "Put them together "
            f"so that borders match: the right border of a patch is the same line of {SIDE} pixels "
            "as the left border "
            "of the patch to its right, and its bottom border is the same line as the top border "
            "of the patch below "
            "it. There is exactly one way. Top and bottom borders are given from left to right, "
            "left and right borders "
            f"from top to bottom. Each letter is the colour of a pixel: {colours}."
        )

    def list_borders(self, instance: Instance, cells: Sequence[int], what: str) -> str:
        """Return the borders of the patches as they lie, a line each."""
        lines = []
        for number, patch in enumerate(cells, 1):
            top, bottom, left, right = (
                "".join(CODES[colour] for colour in line)
                for line in _borders(instance.patches[patch])
            )
            lines.append(f"{what} {number}: top {top}, bottom {bottom}, left {left}, right {right}")
        return "\n".join(lines)

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Check that every patch occurs once, then that borders agree where two patches meet."""
        numbers = parsing.integers(
            answer, 1, self.cells, min_count=self.cells, max_count=self.cells, what="patch"
        )
        for number in numbers:
            if numbers.count(number) > 1:
                return wrong(f"patch {number} is used more than once")
        borders = self._lying_borders(instance)
        for position, number in enumerate(numbers):
            _, bottom, _, right = borders[number - 1]
            if (position + 1) % self.side and right != borders[numbers[position + 1] - 1][2]:
                return wrong(
                    f"patch {number} does not agree with patch {numbers[position + 1]} to the "
                    "right of it"
                )
            below = position + self.side
            if below < self.cells and bottom != borders[numbers[below] - 1][0]:
                return wrong(f"patch {number} does not agree with patch {numbers[below]} below it")
        return RIGHT

    def likeness(self, instance: Instance, answer: str, best: str) -> float:
        """Return the share of the places that hold the right patch."""
        return agreement(answer.split(" "), best.split(" "))

    def solution(self, instance: Instance) -> list[int]:
        """Return for each place the place in which its patch lies, by exact search."""
        arrangements, _ = self._arrangements(self._lying_borders(instance))
        return arrangements[0]

    def solve(self, instance: Instance) -> str:
        """Return the arrangement of :meth:`solution`."""
        return _patches_text(self.solution(instance))

    def plan(self, instance: Instance) -> list[int]:
        """Return the fewest swaps."""
        pairs = list(combinations(range(self.cells), 2))
        return [
            pairs.index(swap)
            for swap in restoring_swaps(np.argsort(self.solution(instance)).tolist())
        ]

    def difficulty(self, instance: Instance) -> float:
        """Count the patches tried by the search for a second arrangement."""
        return float(self._arrangements(self._lying_borders(instance))[1])

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Return any order."""
        return _patches_text(dice.shuffled(range(self.cells)))

    def heuristic(self, instance: Instance) -> str:
        """Fill the places in order with the first unused patch that fits.

        If none fits, take the first unused one.

        A patch fits on the outside if it agrees with no other patch there.
        """
        borders = self._lying_borders(instance)
        top, bottom, left, right = (set(lines) for lines in zip(*borders, strict=True))
        first_tops, first_lefts = top - bottom, left - right
        left_over = list(range(self.cells))
        order: list[int] = []
        for position, (row, column) in enumerate(self._corners):
            tops = {borders[order[position - self.side]][1]} if row else first_tops
            lefts = {borders[order[-1]][3]} if column else first_lefts
            fitting = (
                patch
                for patch in left_over
                if borders[patch][0] in tops and borders[patch][2] in lefts
            )
            order.append(next(fitting, left_over[0]))
            left_over.remove(order[-1])
        return _patches_text(order)

    def constants(self) -> Sequence[str]:
        """Return the patches as they lie, and backwards."""
        return [_patches_text(range(self.cells)), _patches_text(range(self.cells - 1, -1, -1))]

    def _lying_borders(self, instance: Instance) -> list[Borders]:
        """Return the borders of the patches in the order in which they lie."""
        return [_borders(patch) for patch in instance.patches[instance.cells]]

    def _arrangements(self, borders: Sequence[Borders]) -> tuple[list[list[int]], int]:
        """Return at most two arrangements in which borders agree, and the number of patches tried.

        An arrangement is the patch of each place. The search gives up beyond ``_MAX_TRIALS``. Sets
        of patches are bits.
        """
        n, cells = self.side, self.cells
        with_top: dict[bytes, int] = {}
        with_left: dict[bytes, int] = {}
        for patch, (top, _, left, _) in enumerate(borders):
            with_top[top] = with_top.get(top, 0) | 1 << patch
            with_left[left] = with_left.get(left, 0) | 1 << patch
        below = [with_top.get(bottom, 0) for _, bottom, _, _ in borders]
        beside = [with_left.get(right, 0) for _, _, _, right in borders]
        arrangements: list[list[int]] = []
        order = [0] * cells
        tried = 0

        def fill_from(position: int, unused: int) -> None:
            nonlocal tried
            if position == cells:
                arrangements.append(order.copy())
                return
            fitting = unused
            if position % n:
                fitting &= beside[order[position - 1]]
            if position >= n:
                fitting &= below[order[position - n]]
            while fitting and len(arrangements) < 2 and tried <= _MAX_TRIALS:
                patch = fitting & -fitting
                fitting ^= patch
                tried += 1
                order[position] = patch.bit_length() - 1
                fill_from(position + 1, unused ^ patch)

        fill_from(0, (1 << cells) - 1)
        return arrangements, tried


def _borders(patch: np.ndarray) -> Borders:
    """Return the top, bottom, left and right borders."""
    return patch[0].tobytes(), patch[-1].tobytes(), patch[:, 0].tobytes(), patch[:, -1].tobytes()


def _patches_text(patches: Sequence[int]) -> str:
    """Write patches, counted from 0, as an answer."""
    return " ".join(str(patch + 1) for patch in patches)


def restoring_swaps(cells: Sequence[int]) -> list[tuple[int, int]]:
    """Return the fewest swaps of two places that bring every patch to its place.

    Each swap puts one patch into its place; the last swap of a cycle puts two.

    Args:
        cells: the patch that lies in each place, numbered by the place in which it belongs.
    """
    lying = list(cells)
    swaps = []
    for position in range(len(lying)):
        while (patch := lying[position]) != position:
            lying[position], lying[patch] = lying[patch], lying[position]
            swaps.append((min(position, patch), max(position, patch)))
    return swaps


class PatchState(NamedTuple):
    """Places of the patches."""

    cells: jax.Array
    """int8 ``(n**2,)``: the patch in each place, numbered by the place in which it belongs."""


class Jigsaw(PuzzleTask[PatchState]):
    """The interactive form."""

    puzzle: JigsawPuzzle
    puzzle_class = JigsawPuzzle
    measures: ClassVar[dict[str, str]] = {"misplaced": "how many patches are out of place"}
    picture_shape: ClassVar[tuple[int, int, int]] = (360, 360, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side, self.cells = self.puzzle.side, self.puzzle.cells
        self.pairs = np.array(list(combinations(range(self.cells), 2)), np.int8)
        """int8 ``(actions, 2)``: the places that each action swaps."""
        self.action_space = spaces.Discrete(len(self.pairs))
        self.in_pixels = card.settings["observation"] == "pixels"
        if self.in_pixels:
            self.observation_space = spaces.Box(
                0, 255, (self.side * SIDE, self.side * SIDE, 3), np.uint8
            )
        else:
            num_entries = self.cells * 4 * len(POINTS) * 3 + 2 * self.cells**2
            self.observation_space = self.box(0.0, 1.0, (num_entries,))
        # A swap puts at most two patches into place or out of it, of at least two.
        self.reward_space = self.box(-1.0 - PRICE, 2.0)

    def initial(self, key: jax.Array, params: Params) -> PatchState:
        """Begin as the instance says."""
        return PatchState(params.instance.cells)

    def transition(
        self, state: PatchState, action: jax.Array, key: jax.Array, params: Params
    ) -> PatchState:
        """Swap two patches."""
        first, second = jnp.asarray(self.pairs)[action]
        positions = np.arange(self.cells, dtype=np.int8)
        is_first, is_second = positions == first, positions == second
        patch, other_patch = (
            jnp.where(at, state.cells, 0).sum(dtype=jnp.int8) for at in (is_first, is_second)
        )
        return PatchState(
            jnp.where(is_first, other_patch, jnp.where(is_second, patch, state.cells))
        )

    def observation(self, state: PatchState, key: jax.Array, params: Params) -> jax.Array:
        """Return the picture, or the borders and which of them agree."""
        patches = params.instance.patches
        if self.in_pixels:
            return as_rgb(self._join_patches(patches[state.cells]), jnp.where)
        borders = jnp.stack(
            [patches[:, 0], patches[:, :, -1], patches[:, -1], patches[:, :, 0]], 1
        )[state.cells]
        top, right, bottom, left = (borders[:, side] for side in range(4))
        agree = [
            (edge[:, None] == facing_edge[None, :]).sum(-1, dtype=jnp.int8).astype(self.dtype)
            / SIDE
            for edge, facing_edge in ((right, left), (bottom, top))
        ]
        colours = borders[:, :, np.array(POINTS)]
        lights = colours[..., None] >> np.arange(3, dtype=np.int8) & np.int8(1)
        return jnp.concatenate([block.reshape(-1).astype(self.dtype) for block in (lights, *agree)])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        if self.in_pixels:
            picture = "[y, x, channel]: the picture as it lies; red, green, blue"
            return (Component("picture", picture, shape=self.observation_space.shape or ()),)
        lights = (
            "[place, border, point, channel]: light of a patch at points of its top, right, bottom "
            "and left border"
        )
        pairs = (self.cells, self.cells)
        return (
            Component(
                "lights", f"{lights}; red, green, blue", shape=(self.cells, 4, len(POINTS), 3)
            ),
            Component(
                "beside",
                "[place, place]: share of pixels that agree with the first left of the second",
                shape=pairs,
            ),
            Component(
                "above",
                "[place, place]: share of pixels that agree with the first above the second",
                shape=pairs,
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: two places."""
        meaning = "swap the patches at two places; pairs (0, 1), (0, 2), ... in reading order"
        return (Component("swap", meaning, shape=(len(self.pairs),)),)

    def reward(
        self,
        state: PatchState,
        action: jax.Array,
        next_state: PatchState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return progress, plus 1 at the goal, minus the price of a swap."""
        misplaced, next_misplaced = self._num_misplaced(state), self._num_misplaced(next_state)
        at_first = self._num_misplaced(PatchState(params.instance.cells)).astype(self.dtype)
        progress = (misplaced - next_misplaced).astype(self.dtype) / at_first
        arrived = (misplaced > 0) & (next_misplaced == 0)
        return (
            progress
            + arrived.astype(self.dtype)
            - PRICE / params.instance.shortest.astype(self.dtype)
        )

    def terminal(self, state: PatchState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the picture is restored."""
        return self._num_misplaced(state) == 0

    def info(self, state: PatchState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the picture is restored."""
        misplaced = self._num_misplaced(state)
        return {"success": misplaced == 0, "misplaced": misplaced}

    def _num_misplaced(self, state: PatchState) -> jax.Array:
        return (state.cells != np.arange(self.cells, dtype=np.int8)).sum(dtype=jnp.int32)

    def _join_patches(self, patches: jax.Array) -> jax.Array:
        """Join patches ``(n**2, 12, 12)`` to one picture."""
        n = self.side
        return patches.reshape(n, n, SIDE, SIDE).swapaxes(1, 2).reshape(n * SIDE, n * SIDE)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: PatchState, params: Params) -> str:
        """Show the rules, and the borders of the patches as they lie."""
        listed = self.puzzle.list_borders(
            params.instance, np.asarray(state.cells).tolist(), "place"
        )
        return f"{self.puzzle.rules()}\n\nPlaces are numbered in reading order.\n\n{listed}"

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            f"Answer with the numbers of two places, 1 to {self.cells}, to swap the patches that "
            "lie there."
        )

    def parse(self, text: str, state: PatchState, params: Params) -> np.ndarray:
        """Read ``2 5``: swap what lies in the second place and in the fifth.

        Raises:
            ValueError: anything else.
        """
        first, second = sorted(
            parsing.integers(text.strip(), 1, self.cells, min_count=2, max_count=2, what="place")
        )
        if first == second:
            raise ValueError(f"expected two different places, got {first} twice")
        action = np.flatnonzero((self.pairs == (first - 1, second - 1)).all(axis=1))[0]
        return np.asarray(action, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: PatchState, params: Params) -> str:
        """Return both places."""
        first, second = self.pairs[int(action)].tolist()
        return f"{first + 1} {second + 1}"

    def why_over(self, state: PatchState, params: Params, info: dict[str, Any]) -> str:
        """Return the only end there is."""
        return "the picture is restored"

    def draw(self, state: PatchState, params: Params) -> np.ndarray:
        """Draw the picture as it lies, enlarged, with gaps between the patches."""
        n, (height, width, _) = self.side, self.picture_shape
        board = Image.new("RGB", (width, height), "#b8bec7")
        room = height // n
        large = (room - 6) // SIDE * SIDE
        patches = np.asarray(params.instance.patches)[np.asarray(state.cells)]
        for position, patch in enumerate(as_rgb(patches, np.where)):
            row, column = divmod(position, n)
            enlarged = Image.fromarray(patch).resize((large, large), Image.Resampling.NEAREST)
            margin = (room - large) // 2
            board.paste(enlarged, (column * room + margin, row * room + margin))
        return np.asarray(board)
