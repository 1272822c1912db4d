"""rlsuite/Geometry-v0: construct points of the plane and answer a question about the last one.

Each point is constructed from earlier ones. Answers are exact.

``difficulty`` is the number of constructions, 1 to 4. With 1 they are midpoints, centroids,
parallelograms and similar ones; with 2 also constructions with lines; from 3 on also circumcentres
and orthocentres. Each uses the point made before it. Given points have whole coordinates. All
arithmetic uses fractions. Moved, turned or reflected figures count as the same. Of 4,000 figures
with one construction, 3,752 differ. Of 2,000 figures with two, all differ. On the board below there
are fewer.

Interactively, all points lie on the whole coordinates of a board of 7 + 2 * ``difficulty`` lines
each way, and the coordinates of each constructed point are written, first x, then y: see
:mod:`..shared.writing` for actions and rewards. Observed are, one-hot, the construction; for each
point it uses (nothing for none) the coordinate along the axis that is due, then the other one; the
same coordinates as numbers from 0 to 1; the x that is written (nothing before it is); whether y is
due; and which construction it is. A uniformly random coordinate is right with probability 1 in 7 +
2 * ``difficulty``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Malformed, Puzzle, Verdict, wrong

from ..shared.board import FILLED, INK, Board
from ..shared.caption import add_caption
from ..shared.puzzle_task import Params
from ..shared.writing import WritingState, WritingTask
from .plane import CONSTRUCTIONS, COORDINATES, QUESTIONS, TURN, Order, Point, mean

MAX_GIVEN = 4
"""Most points that can be given; constructed ones are numbered after them."""
NAMES = "ABCDEFGH"
NONE = -1
MAX_COORDINATE = 20
"""Largest coordinate of given points, in absolute value."""
MAX_TERM = 1000
"""Largest numerator or denominator of constructed points."""
MAX_ANSWER_TERM = 1_000_000
_TRIES = 60
_NUMBER = "(-?[0-9]{1,9})(?:/([0-9]{1,9}))?"
_FRACTION = re.compile(r"(?<![0-9])\\[dt]?frac\{(-?[0-9]{1,9})\}\{([0-9]{1,9})\}(?![0-9])")
"""A fraction in LaTeX. No digit stands beside it, as in a mixed number."""
_UNITS = re.compile(r" ?(?:\\text\{ ?)?(?:(?:square|sq\.?) )?units?(?:\^2)?\}?$")
"""Units after a value. The figures have none, so that these mean nothing."""
_NUMBERS = re.compile(_NUMBER)
_POINTS = re.compile(rf"\({_NUMBER}, ?{_NUMBER}\)")


class Instance(NamedTuple):
    """A figure and a question.

    Points are numbered, the given ones first, then the constructed ones.
    """

    points: np.ndarray
    """int8 ``(MAX_GIVEN, 2)``: x and y of those given; zeros where there are fewer."""
    steps: np.ndarray
    """int8 ``(constructions, 5)``: index of :data:`CONSTRUCTIONS`, points used, then ``NONE``."""
    question: np.ndarray
    """int8 ``(5,)``: an index of :data:`QUESTIONS`, and the points it is about, then ``NONE``."""
    constructed: np.ndarray
    """int16 ``(constructions, 2, 2)``: numerator and denominator of each point's x and y.

    These are the constructed points. Neither verifier nor solver reads them.
    """


class GeometryPuzzle(Puzzle[Instance]):
    """``tier`` is the number of constructions."""

    name = "Geometry"
    difficulty_is = (
        "digits of the numbers to compute: coordinates of constructed points, and the answer"
    )
    tier_is = "the number of constructions"
    tiers = range(1, 5)
    few: ClassVar[dict[float, float]] = {1: 37_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.constructions = int(tier)
        self._kinds = [
            kind for kind, construction in enumerate(CONSTRUCTIONS) if construction.level <= tier
        ]

    # -- which instances there are -----------------------------------------------------------------

    def random_point(self, dice: Dice) -> tuple[int, int]:
        """Return a random point to be given."""
        return dice.between(-MAX_COORDINATE, MAX_COORDINATE), dice.between(
            -MAX_COORDINATE, MAX_COORDINATE
        )

    def suits(self, point: Point) -> bool:
        """Return whether a point may be constructed."""
        return all(
            abs(value.numerator) <= MAX_TERM and value.denominator <= MAX_TERM for value in point
        )

    def kind_of_question(self, dice: Dice) -> int:
        """Draw a kind of question: coordinates a third of the time.

        The other kinds have equal chances.
        """
        return dice.between(1, len(QUESTIONS) - 1) if dice.below(3) else COORDINATES

    def compose(self, dice: Dice) -> Instance | None:
        """Draw random points, constructions and question; each uses what was made before it."""
        free_points = [self.random_point(dice) for _ in range(MAX_GIVEN)]
        points: list[Point] = [(Fraction(x), Fraction(y)) for x, y in free_points]
        steps = []
        for _ in range(self.constructions):
            for _ in range(_TRIES):
                kind = dice.choice(self._kinds)
                used = self._sample_points(CONSTRUCTIONS[kind].uses, len(points), dice)
                point = (
                    CONSTRUCTIONS[kind].construct(*(points[k] for k in used))
                    if self._points_differ(points, used)
                    else None
                )
                if point and point not in points and self.suits(point):
                    break
            else:
                return None
            steps.append((kind, *used))
            points.append(point)
        for _ in range(_TRIES):
            question_kind = self.kind_of_question(dice)
            used = self._sample_points(QUESTIONS[question_kind].uses, len(points), dice)
            answer = (
                QUESTIONS[question_kind].answer(*(points[k] for k in used))
                if self._points_differ(points, used)
                else None
            )
            if answer is not None and all(
                abs(value.numerator) <= MAX_ANSWER_TERM and value.denominator <= MAX_ANSWER_TERM
                for value in _numbers(answer)
            ):
                constructed = [
                    [[value.numerator, value.denominator] for value in point]
                    for point in points[MAX_GIVEN:]
                ]
                return self._instance(free_points, steps, (question_kind, *used), constructed)
        return None

    @staticmethod
    def _sample_points(count: int, points: int, dice: Dice) -> list[int]:
        """Draw different points, including the last one if it was constructed."""
        if points == MAX_GIVEN:
            return dice.sample(range(points), count)
        return dice.shuffled([*dice.sample(range(points - 1), count - 1), points - 1])

    @staticmethod
    def _points_differ(points: Sequence[Point], used: Sequence[int]) -> bool:
        """Return whether the used points lie in different places."""
        return len({points[k] for k in used}) == len(used)

    @staticmethod
    def _instance(
        free_points: Sequence[Sequence[int]],
        steps: Sequence[Sequence[int]],
        question: Sequence[int],
        constructed: object,
    ) -> Instance:
        """Return the instance without given points that are not used.

        The other given points are numbered in the order in which they are used.
        """
        lines = [*steps, question]
        order = list(dict.fromkeys(k for _, *used in lines for k in used if 0 <= k < MAX_GIVEN))
        number = {k: k for k in range(NONE, MAX_GIVEN + len(steps))} | {
            old: new for new, old in enumerate(order)
        }
        renumbered = [
            [kind, *(number[k] for k in used)] + [NONE] * (4 - len(used)) for kind, *used in lines
        ]
        points = [free_points[k] for k in order] + [(0, 0)] * (MAX_GIVEN - len(order))
        return Instance(
            np.array(points, np.int8),
            np.array(renumbered[:-1], np.int8),
            np.array(renumbered[-1], np.int8),
            np.array(constructed, np.int16),
        )

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the figure under moves and turns.

        Reflections count too unless a construction tells left from right. Points are written by
        their places, not by their names, and in no order where the order does not matter.
        """
        x, y = instance.points.astype(np.int16).T
        views = [(x, y), (-y, x), (-x, -y), (y, -x)]
        if TURN not in instance.steps[:, 0]:
            views += [(y, x) for x, y in views]
        lines = [
            (kind, CONSTRUCTIONS[kind].orders, used) for kind, *used in instance.steps.tolist()
        ]
        kind, *used = instance.question.tolist()
        lines.append((kind, QUESTIONS[kind].orders, used))
        return min(
            self._form(list(zip(x.tolist(), y.tolist(), strict=True)), lines) for x, y in views
        )

    def _form(
        self,
        free_points: list[tuple[int, int]],
        lines: list[tuple[int, tuple[Order, ...], list[int]]],
    ) -> bytes:
        """Write constructions and question by places relative to the least used given point."""
        leftmost, low = min(
            free_points[k] for _, _, used in lines for k in used if 0 <= k < MAX_GIVEN
        )
        points = [(0, x - leftmost, y - low) for x, y in free_points]
        points += [(number, 0, 0) for number in range(1, self.constructions + 1)]
        form = []
        for kind, orders, used in lines:
            form.append((kind, min([points[used[k]] for k in order] for order in orders)))
        return repr(form).encode()

    # -- figures -----------------------------------------------------------------------------------

    @staticmethod
    def points_of(
        instance: Instance, construct: Callable[[int, list[Point]], Point | None]
    ) -> list[Point]:
        """Return all points, the given ones and then those that ``construct`` makes.

        It makes a point from the index of its construction and the points that this uses.

        Raises:
            ValueError: a point does not exist.
        """
        points: list[Point] = [(Fraction(x), Fraction(y)) for x, y in instance.points.tolist()]
        for kind, *used in instance.steps.tolist():
            point = construct(kind, [points[k] for k in used if k != NONE])
            if point is None:
                raise ValueError(f"there is no such point: {CONSTRUCTIONS[kind].words}")
            points.append(point)
        return points

    @classmethod
    def figure(cls, instance: Instance) -> list[Point]:
        """Construct all points."""
        return cls.points_of(instance, lambda kind, used: CONSTRUCTIONS[kind].construct(*used))

    @staticmethod
    def answer_to(instance: Instance, points: Sequence[Point]) -> Point | Fraction | None:
        """Compute the answer to the question about these points."""
        kind, *used = instance.question.tolist()
        if len({points[k] for k in used if k != NONE}) < QUESTIONS[kind].uses:
            return None
        return QUESTIONS[kind].answer(*(points[k] for k in used if k != NONE))

    # -- words -------------------------------------------------------------------------------------

    def question(self, instance: Instance) -> str:
        """State the figure, the question and the format."""
        kind, *used = instance.question.tolist()
        number = "a whole number or a fraction of whole numbers"
        ask = (
            f"Answer with a point; each coordinate is {number}."
            if kind == COORDINATES
            else f"Answer with {number}."
        )
        question_words = QUESTIONS[kind].words.format(*(NAMES[k] for k in used if k != NONE))
        return (
            f"{self.words(instance, len(instance.steps))}\n\n{question_words} The answer is exact. "
            f"{ask}"
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a point or a number, as is asked for."""
        answer = "(2, -7/3)" if int(instance.question[0]) == COORDINATES else "37/3"
        return [Example("For example, the answer to another question could be:", answer)]

    @staticmethod
    def words(instance: Instance, constructions: int) -> str:
        """Return the points that are given and used, and the first constructions."""
        points = instance.points[: _num_given(instance)].tolist()
        given_points = (f"{NAMES[k]} = ({x}, {y})" for k, (x, y) in enumerate(points))
        constructions_text = (
            (
                f"{NAMES[MAX_GIVEN + k]} is "
                f"{CONSTRUCTIONS[kind].words.format(*(NAMES[p] for p in those if p != NONE))}."
            )
            for k, (kind, *those) in enumerate(instance.steps[:constructions].tolist())
        )
        return "\n".join([
            "Points in the plane are given by Cartesian coordinates, x to the right and y upwards:",
            ", ".join(given_points), *constructions_text,
        ])  # fmt: skip

    @staticmethod
    def write_answer(answer: Point | Fraction) -> str:
        """Write an answer."""
        return f"({answer[0]}, {answer[1]})" if isinstance(answer, tuple) else str(answer)

    def mend(self, answer: str) -> str:
        """Write fractions with a slash, spaces only after the comma of a point, and no units."""
        text = (
            _FRACTION.sub(r"\1/\2", answer.removesuffix("."))
            .replace(r"\left", "")
            .replace(r"\right", "")
        )
        text = " ".join(
            text.replace(",", " , ")
            .replace("(", " ( ")
            .replace(")", " ) ")
            .replace("/", " / ")
            .split()
        )
        return (
            _UNITS.sub("", text)
            .replace(" / ", "/")
            .replace(" , ", ", ")
            .replace("( ", "(")
            .replace(" )", ")")
        )

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Compute it, and compare as fractions."""
        of_point = int(instance.question[0]) == COORDINATES
        match = (_POINTS if of_point else _NUMBERS).fullmatch(answer)
        if match is None:
            what = (
                "a point such as (2, -7/3)"
                if of_point
                else "a whole number or a fraction such as -7/3"
            )
            raise Malformed(f"expected {what}, of numbers of at most 9 digits")
        digits = [int(digits_or_none or 1) for digits_or_none in match.groups()]
        if not all(digits[1::2]):
            raise Malformed("a fraction has the denominator 0")
        values = [Fraction(*digits[k : k + 2]) for k in range(0, len(digits), 2)]
        answer_value = self.answer_to(instance, self.figure(instance))
        return RIGHT if values == _numbers(answer_value) else wrong("another value comes out")

    def solve(self, instance: Instance) -> str:
        """Construct all points."""
        answer = self.answer_to(instance, self.figure(instance))
        if answer is None:
            raise ValueError("the question has no answer")
        return self.write_answer(answer)

    def plan(self, instance: Instance) -> list[int]:
        """Return the coordinates of the constructed points if all of them are whole.

        Other figures cannot be played; for them the plan is empty.
        """
        coordinates = [value for point in self.figure(instance)[MAX_GIVEN:] for value in point]
        return (
            [value.numerator for value in coordinates]
            if all(value.denominator == 1 for value in coordinates)
            else []
        )

    def difficulty(self, instance: Instance) -> float:
        """Count the digits of numerators, and of denominators other than 1."""
        points = self.figure(instance)
        computed = [value for point in points[MAX_GIVEN:] for value in point]
        if int(instance.question[0]) != COORDINATES:
            computed += _numbers(self.answer_to(instance, points))
        return float(sum(character.isdigit() for value in computed for character in str(value)))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Return the answer to the same question about another figure."""
        while True:
            other_figure = self.compose(dice)
            if other_figure is not None and other_figure.question[0] == instance.question[0]:
                return self.solve(other_figure)

    def heuristic(self, instance: Instance) -> str:
        """Answer as if each construction made the mean of its points.

        The answer is 1 if that gives none.
        """
        answer = self.answer_to(instance, self.points_of(instance, lambda kind, used: mean(*used)))
        return "1" if answer is None else self.write_answer(answer)

    def constants(self) -> Sequence[str]:
        """Return the origin, and small numbers."""
        return ["(0, 0)", *map(str, range(11)), "1/2"]


def _num_given(instance: Instance) -> int:
    """Return how many points are given."""
    used = np.concatenate([instance.steps[:, 1:].ravel(), instance.question[1:]])
    return 1 + int(used[used < MAX_GIVEN].max())


def _numbers(answer: Point | Fraction | None) -> list[Fraction]:
    """Return the numbers of an answer."""
    if answer is None:
        return []
    return list(answer) if isinstance(answer, tuple) else [answer]


class BoardGeometryPuzzle(GeometryPuzzle):
    """All points are on whole coordinates of a board, and the last one is asked for."""

    name = "Geometry, on a board"

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.side = 7 + 2 * self.constructions
        """Lines each way; coordinates are 0 to ``side`` - 1."""

    def random_point(self, dice: Dice) -> tuple[int, int]:
        """Draw a point anywhere on the board."""
        return dice.below(self.side), dice.below(self.side)

    def suits(self, point: Point) -> bool:
        """Return whether a point is on the board."""
        return all(value.denominator == 1 and 0 <= value < self.side for value in point)

    def kind_of_question(self, dice: Dice) -> int:
        """Ask for the last point, always."""
        return COORDINATES


class Geometry(WritingTask):
    """Write the coordinates of each constructed point."""

    puzzle: BoardGeometryPuzzle
    puzzle_class = BoardGeometryPuzzle
    bank_size = 4096
    picture_shape: ClassVar[tuple[int, int, int]] = (480, 800, 3)

    @property
    def tokens(self) -> Sequence[str]:
        """Coordinates."""
        return [str(value) for value in range(self.puzzle.side)]

    @property
    def flag_count(self) -> int:
        """Number of flags."""
        return len(CONSTRUCTIONS) + 9 * self.puzzle.side + 8 + 1 + self.puzzle.constructions

    def length(self, instance: Instance) -> int:
        """Return the number of tokens: two coordinates a construction."""
        return 2 * self.puzzle.constructions

    def next_token(self, written: jax.Array, instance: Instance) -> jax.Array:
        """Return the coordinate that is due."""
        is_due = np.arange(2 * self.puzzle.constructions) == written
        return jnp.where(is_due, instance.constructed[..., 0].reshape(-1), 0).sum(dtype=jnp.int32)

    def flags(self, written: jax.Array, instance: Instance) -> Sequence[jax.Array]:
        """Return the facts that are observed about the coordinate to write next.

        These are the construction, the points it uses, its x, whether y is due, and its number.
        """
        puzzle = self.puzzle
        is_current = np.arange(puzzle.constructions) == jnp.minimum(
            written // 2, puzzle.constructions - 1
        )
        kind, *used = jnp.where(is_current[:, None], instance.steps, 0).sum(axis=0, dtype=jnp.int8)
        constructed = instance.constructed[..., 0].astype(jnp.int8)
        points = jnp.concatenate([instance.points, constructed])
        is_used = jnp.stack(used)[:, None] == np.arange(len(points), dtype=np.int8)
        coordinates_used = jnp.where(is_used[..., None], points + np.int8(1), 0).sum(
            axis=1, dtype=jnp.int8
        )  # 0 for none
        y_is_due = written % 2 == 1
        coordinates_used = jnp.where(y_is_due, coordinates_used[:, ::-1], coordinates_used)
        x = jnp.where(is_current & y_is_due, constructed[:, 0] + np.int8(1), 0).sum(dtype=jnp.int8)
        coordinates = np.arange(1, puzzle.side + 1, dtype=np.int8)
        return (
            kind == np.arange(len(CONSTRUCTIONS), dtype=np.int8),
            coordinates_used[..., None] == coordinates,
            coordinates_used / self.puzzle.side,
            x == coordinates,
            y_is_due,
            is_current,
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`flags`."""
        side = self.puzzle.side
        uses = (
            "of each point that the construction uses, along the axis that is due, then the other"
        )
        return (
            *(
                Component(
                    f"construction_{number}",
                    f"whether it is {construction.words.format(*'PQRSTU')}",
                )
                for number, construction in enumerate(CONSTRUCTIONS)
            ),
            Component(
                "used",
                f"[point, axis, coordinate]: coordinates {uses}, one-hot; zeros for none",
                shape=(4, 2, side),
            ),
            Component(
                "used_as_numbers",
                f"[point, axis]: coordinate + 1 {uses}; 0 for none",
                f"{side}",
                (4, 2),
            ),
            Component("x", "the x that is written, one-hot; zeros before it is", shape=(side,)),
            Component("y_is_due", "whether y is written next"),
            Component(
                "line", "which construction it is, one-hot", shape=(self.puzzle.constructions,)
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a coordinate."""
        return (
            Component(
                "coordinate",
                "write this number as the coordinate that is due",
                shape=(len(self.tokens),),
            ),
        )

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: WritingState, params: Params) -> str:
        """Show the figure up to the next point, and the known coordinates of that point."""
        instance, num_constructed, half = self._progress(state, params)
        lines = [self.puzzle.words(instance, num_constructed + 1)]
        constructed = instance.constructed[:num_constructed, :, 0].tolist()
        lines += [f"{NAMES[MAX_GIVEN + k]} = ({x}, {y})" for k, (x, y) in enumerate(constructed)]
        next_coordinate = (
            (
                f"y of {NAMES[MAX_GIVEN + num_constructed]}; its x is "
                f"{int(instance.constructed[num_constructed, 0, 0])}"
            )
            if half
            else f"x of {NAMES[MAX_GIVEN + num_constructed]}"
        )
        return "\n".join([*lines, f"Next is {next_coordinate}."])

    def _progress(self, state: WritingState, params: Params) -> tuple[Instance, int, bool]:
        """Return the instance, the number of points constructed, and whether the next x is written.

        The number of points is at most all but one.
        """
        instance = Instance(*map(np.asarray, params.instance))
        written = int(state.written)
        return instance, min(written // 2, self.puzzle.constructions - 1), written % 2 == 1

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            f"Answer with the next coordinate, a whole number from 0 to {self.puzzle.side - 1}; "
            "for each constructed "
            "point x comes first, then y."
        )

    def draw(self, state: WritingState, params: Params) -> np.ndarray:
        """Draw given points in black, constructed ones in blue; the figure in words beside it."""
        instance, _, _ = self._progress(state, params)
        side = self.puzzle.side
        board = Board(side, side, (480, 480, 3))
        for line in range(side):
            board.text(side - 0.1, line, str(line), INK, 0.7)
            board.text(side - 1 - line, -0.9, str(line), INK, 0.7)
            board.line(line + 0.5, 0.5, line + 0.5, side - 0.5, "#b8bec7", 1)
            board.line(0.5, line + 0.5, side - 0.5, line + 0.5, "#b8bec7", 1)
        given_points = instance.points[: _num_given(instance)].tolist()
        constructed = instance.constructed[: int(state.written) // 2, :, 0].tolist()
        for k, (x, y) in [*enumerate(given_points), *enumerate(constructed, MAX_GIVEN)]:
            board.text(side - 1 - y, x, NAMES[k], FILLED if k >= MAX_GIVEN else INK, 0.8)
        return add_caption(board.picture(), self.describe(state, params), self.picture_shape)
