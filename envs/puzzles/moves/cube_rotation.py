"""rlsuite/CubeRotation-v0: a cube with coloured sides is turned; find a colour, or turn it back.

``difficulty`` is the number of turns. One-shot, the question is the colour on a named side after
the turns. Interactively, the player turns the cube back by quarter turns: see
:mod:`..shared.group`. The observation holds for each side, one-hot, the side at which its colour
was at first.

The colours are different and only names, and there are 24 directions of view, so there are about
6**turns / 4 different puzzles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlbench_suite.core.component import Component, singles
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, wrong

from ..shared import parsing
from ..shared.board import Board
from ..shared.group import Group, GroupState, UndoTask
from ..shared.puzzle_task import Params

SIDES = ("top", "front", "bottom", "back", "left", "right")
COLOURS = ("red", "green", "blue", "yellow", "white", "orange")
PAPERS = ("#d55e00", "#009e73", "#56b4e9", "#f0e442", "#ffffff", "#e69f00")

_CYCLES = {
    "forward": ("top", "front", "bottom", "back"),
    "backward": ("top", "back", "bottom", "front"),
    "rightward": ("top", "right", "bottom", "left"),
    "leftward": ("top", "left", "bottom", "right"),
    "clockwise": ("front", "left", "back", "right"),
    "counterclockwise": ("front", "right", "back", "left"),
}
TURNS = tuple(_CYCLES)
"""Turns, clockwise and counterclockwise as seen from above."""

Orientation = tuple[int, ...]
"""Permutation: for each side, the side at which its colour was at first."""

_START: Orientation = tuple(range(6))


def _sources(cycle: Sequence[str]) -> Orientation:
    """Return the permutation that moves each side of the cycle to the place of the next one."""
    sources = list(_START)
    for index, side in enumerate(cycle):
        sources[SIDES.index(side)] = SIDES.index(cycle[index - 1])
    return tuple(sources)


_SOURCES = tuple(_sources(cycle) for cycle in _CYCLES.values())


def turn_cube(orientation: Sequence[int], turn: int) -> Orientation:
    """Return the orientation after a quarter turn."""
    return tuple(orientation[source] for source in _SOURCES[turn])


CUBE: Group[Orientation] = Group(_START, TURNS, turn_cube)
"""The 24 orientations."""


def _views() -> list[list[bytes]]:
    """Return tables that rename turns (0 to 5) and sides (6 to 11) as seen from another direction.

    There are 24 views. The tables of a turn hold the four views in which that turn has the number
    0, because the least form begins with 0.
    """
    tables: list[list[bytes]] = [[] for _ in TURNS]
    for sides in CUBE.elements:
        renamed = []
        for sources in _SOURCES:
            conjugate = list(_START)
            for side, source in enumerate(sources):
                conjugate[sides[side]] = sides[source]
            renamed.append(_SOURCES.index(tuple(conjugate)))
        tables[renamed.index(0)].append(bytes([*renamed, *sides]).ljust(256))
    return tables


_VIEWS = _views()


class Instance(NamedTuple):
    """A cube, turns, and a question."""

    colours: np.ndarray
    """int8 ``(6,)``: colour of each side at first, an index of :data:`COLOURS`."""
    turns: np.ndarray
    """int8 ``(difficulty,)``: indices of :data:`TURNS`."""
    side: np.int8
    """The side in question."""
    element: np.int8
    """int8: orientation of the cube after the turns, numbered as in :data:`CUBE`; never 0."""


_RULES = (
    "A cube has six sides: top, front, bottom, back, left and right. A quarter turn moves four of "
    "them, each to where the next one named was:\n"
) + "\n".join(f"- {turn}: {' to '.join((*cycle, cycle[0]))}" for turn, cycle in _CYCLES.items())


class CubeRotationPuzzle(Puzzle[Instance]):
    """``tier`` is the number of turns."""

    name = "CubeRotation"
    difficulty_is = "turns that move the colour that is asked for"
    tier_is = "the number of turns"
    tiers = range(1, 31)

    @property
    def space(self) -> float:
        """Different puzzles, nearly."""
        return 6**self.tier / 4

    def compose(self, dice: Dice) -> Instance | None:
        """Draw colours, turns and side at random; None if the turns cancel."""
        turns = bytearray([word * len(TURNS) >> 64 for word in dice.words(int(self.tier))])
        colours = bytearray(dice.shuffled(range(6)))
        element = self._orientation_after(turns)
        if element == 0:
            return None
        side = np.int8(dice.below(6))
        return Instance(
            np.frombuffer(colours, np.int8), np.frombuffer(turns, np.int8), side, np.int8(element)
        )

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the turns and the side under all views.

        Colours are only names.
        """
        form = instance.turns.tobytes() + bytes((6 + int(instance.side),))
        return min([form.translate(view) for view in _VIEWS[form[0]]])

    def question(self, instance: Instance) -> str:
        """State the rules of turning, the cube, the turns and the side."""
        colours = instance.colours.tolist()
        sides = ", ".join(
            [f"{side} {COLOURS[colour]}" for side, colour in zip(SIDES, colours, strict=True)]
        )
        turns = ", ".join([TURNS[turn] for turn in instance.turns.tolist()])
        return (
            f"{_RULES}\n\nThe colours of the sides: {sides}.\nThe cube is turned: "
            f"{turns}.\n\nWhich colour is now on the {SIDES[instance.side]} side? Answer with the "
            "name of the colour."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a colour."""
        return [Example(f"For example, if the colour were {COLOURS[0]}:", COLOURS[0])]

    def rules(self) -> str:
        """State what a turn is."""
        return _RULES

    @property
    def caseless(self) -> Sequence[str]:
        """Names of the colours."""
        return COLOURS

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Make the turns."""
        colour = parsing.word(answer, COLOURS)
        return RIGHT if colour == self._colour(instance) else wrong("another colour is there")

    def solve(self, instance: Instance) -> str:
        """Make the turns."""
        return COLOURS[self._colour(instance)]

    def plan(self, instance: Instance) -> list[int]:
        """Return the quarter turns that lead back."""
        return CUBE.moves_to_unit(int(instance.element))

    def difficulty(self, instance: Instance) -> float:
        """Follow the colour back from the side in question."""
        side, moves = int(instance.side), 0
        for turn in reversed(instance.turns.tolist()):
            source = _SOURCES[turn][side]
            moves += source != side
            side = source
        return float(moves)

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Name any colour."""
        return dice.choice(COLOURS)

    def heuristic(self, instance: Instance) -> str:
        """Make only the last two turns, from the colours named in the question."""
        orientation = CUBE.elements[self._orientation_after(instance.turns[-2:].tobytes())]
        return COLOURS[instance.colours[orientation[instance.side]]]

    def constants(self) -> Sequence[str]:
        """Return each colour."""
        return COLOURS

    def _colour(self, instance: Instance) -> int:
        """Return the colour at the side in question, after the turns."""
        orientation = CUBE.elements[self._orientation_after(instance.turns.tobytes())]
        return int(instance.colours[orientation[instance.side]])

    @staticmethod
    def _orientation_after(turns: Iterable[int]) -> int:
        """Return the number of the cube's orientation after the turns."""
        element = 0
        for turn in turns:
            element = CUBE.following[element][turn]
        return element


class CubeRotation(UndoTask):
    """The interactive form: turn the cube back."""

    puzzle: CubeRotationPuzzle
    puzzle_class = CubeRotationPuzzle
    group = CUBE

    def flags(self) -> np.ndarray:
        """Return for each side where its colour was at first."""
        return np.eye(6, dtype=bool)[np.array(CUBE.elements)].reshape(len(CUBE.elements), 36)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the side of each colour."""
        meaning = (
            "[side, side]: at which side the colour of a side was at first, one-hot: "
            f"{', '.join(SIDES)}"
        )
        return (Component("origins", meaning, shape=(6, 6)),)

    def action_components(self) -> tuple[Component, ...]:
        """Describe the quarter turns."""
        ways = {turn: " to the ".join((*cycle, cycle[0])) for turn, cycle in _CYCLES.items()}
        return singles({turn: f"a quarter turn: {path}" for turn, path in ways.items()})

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: GroupState, params: Params) -> str:
        """Show the rules of turning, the cube's orientation, and the wanted orientation."""
        colours = [COLOURS[number] for number in np.asarray(params.instance.colours).tolist()]
        sources = CUBE.elements[int(state.element)]
        orientation = ", ".join(
            f"{side} {colours[source]}" for side, source in zip(SIDES, sources, strict=True)
        )
        goal = ", ".join(f"{side} {colour}" for side, colour in zip(SIDES, colours, strict=True))
        return (
            f"{self.puzzle.rules()}\n\nThe sides now: {orientation}.\n"
            f"The sides must become: {goal}."
        )

    def why_over(self, state: GroupState, params: Params, info: dict[str, Any]) -> str:
        """Return the only end there is."""
        return "the cube lies as it is to lie"

    def draw(self, state: GroupState, params: Params) -> np.ndarray:
        """Draw the cube unfolded, above how it is to lie."""
        board = Board(7, 4, self.picture_shape)
        colours = np.asarray(params.instance.colours).tolist()
        squares = ((0, 1), (1, 1), (2, 1), (1, 3), (1, 0), (1, 2))
        for begin, sources in ((0, CUBE.elements[int(state.element)]), (4, _START)):
            for (row, column), source in zip(squares, sources, strict=True):
                board.cell(begin + row, column, paper=PAPERS[colours[source]])
        return board.picture()
