"""rlsuite/CarPainting-v0: reorder cars a little, so that a paint shop seldom changes colours.

Each car may leave its place by at most three places, as a buffer before a paint shop allows
(Epping, Hochstattler & Oertel 2004, doi:10.1016/S0166-218X(03)00442-6, on paint shops with a fixed
order of cars). ``difficulty`` is the number of cars. From 12 cars on, the best order beats the rule
of thumb (go on with the foremost car of the last colour) by a change for every 12 cars.

Dynamic programming over the places finds the fewest changes. The state at a place is the last
colour and the set of cars left among the seven that may stand there. The foremost car of a colour
may always go first, because two cars of that colour in the other order can trade places and stay
within their bounds.

=============  =====================================================================================
action         which car goes to the next place, by how far behind it it stands in the line: 0 to 6
               for three before to three behind; legal are cars that are left, and only the foremost
               if this is its last place
observation    for each colour and each place from three before the next one on: whether a car of
               that colour that is left stands there; the last colour one-hot; the fraction of
               places filled
reward         colour changes at this place in the line as it came, minus those now; divided by the
               changes that the best order saves in all
termination    every place is filled
=============  =====================================================================================

Every legal order can be completed. The best return is 1, and leaving the line as it is earns 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, split_by, wrong

from ..shared import parsing
from ..shared.board import Board
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.symmetry import relabel_values, smallest_form

REACH = 3
COLOURS = "ABC"
MAX_CARS = 28
_PAINTS = ("#56b4e9", "#e69f00", "#009e73")
_WINDOW = 2 * REACH + 1
Chooser = Callable[[list[int], int], int]
"""Function that returns one of the cars that may stand at a place.

Its arguments are these cars, and the car before the place (-1 if there is none).
"""


class Instance(NamedTuple):
    """A line of cars."""

    colours: np.ndarray
    """int8 ``(cars,)``: colour of each car, from 0."""
    fewest: np.int16
    """Colour changes of the best order."""


def changes(colours: Sequence[int]) -> int:
    """Count the colour changes along a line."""
    return sum(colour != next_colour for colour, next_colour in pairwise(colours))


def best_order(colours: Sequence[int]) -> list[int]:
    """Return an order of the cars, counted from 0, with the fewest changes.

    A state at a place is the set of the cars around it that are used (bit 0: the one three before)
    and the last colour.
    """
    count = len(colours)
    layer: dict[tuple[int, int], int] = {(2**REACH - 1, -1): 0}
    behind: list[dict[tuple[int, int], tuple[tuple[int, int], int]]] = []
    for position in range(count):
        following: dict[tuple[int, int], int] = {}
        came: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
        for state, cost in layer.items():
            used, last = state
            tried = set()
            for offset in range(_WINDOW if used & 1 else 1):
                car = position - REACH + offset
                if used >> offset & 1 or car >= count or colours[car] in tried:
                    continue
                colour = colours[car]
                tried.add(colour)
                new = (used | 1 << offset) >> 1, colour
                total = cost + (colour != last >= 0)
                if total < following.get(new, count):
                    following[new], came[new] = total, (state, car)
        layer = following
        behind.append(came)
    state = min(layer, key=lambda end: layer[end])
    order = []
    for came in reversed(behind):
        state, car = came[state]
        order.append(car)
    return order[::-1]


class CarPaintingPuzzle(Puzzle[Instance]):
    """``tier`` is the number of cars."""

    name = "CarPainting"
    difficulty_is = "colour changes of the best order"
    tier_is = "the number of cars"
    tiers = range(6, MAX_CARS + 1)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.count = int(tier)

        self.beaten = self.count // 12
        """Least number of changes by which the best order beats the rule of thumb."""

    def compose(self, dice: Dice) -> Instance | None:
        """Draw colours at random.

        Return None if no order is better than the original line, or the rule of thumb comes too
        near to the best.
        """
        return self._instance_of(self._random_colours(dice))

    def draws(self, dice: Dice, split: str) -> Iterator[Instance | None]:
        """Drop lines of the other split before the search for the best order."""
        while True:
            colours = self._random_colours(dice)
            yield self._instance_of(colours) if split_by(self._form(colours)) == split else None

    def _random_colours(self, dice: Dice) -> list[int]:
        return [dice.below(len(COLOURS)) for _ in range(self.count)]

    def _instance_of(self, colours: list[int]) -> Instance | None:
        fewest = changes([colours[car] for car in best_order(colours)])
        if (
            fewest == changes(colours)
            or changes([colours[car] for car in self._greedy(colours)]) < fewest + self.beaten
        ):
            return None
        return Instance(np.array(colours, np.int8), np.int16(fewest))

    @property
    def space(self) -> float:
        """Approximate number of lines that differ by more than names of colours and direction.

        Not all of them become instances.
        """
        return len(COLOURS) ** self.count / 12

    def canonical(self, instance: Instance) -> bytes:
        """Return the lesser of the line and its reverse.

        In each, colours are renamed in order of first occurrence.
        """
        return self._form(instance.colours.tolist())

    @staticmethod
    def _form(colours: Sequence[int]) -> bytes:
        marks = [colour + 1 for colour in colours]
        return smallest_form([relabel_values(marks), relabel_values(marks[::-1])])

    def question(self, instance: Instance) -> str:
        """State the rules, the line and the format."""
        return (
            f"{self.rules()}\n\nThe line, each car with its "
            f"colour:\n\n{self.coloured_line(instance)}\n\n"
            "Reorder the cars so that the colour changes as rarely as possible from one car to the "
            "next. Answer with "
            f"the numbers of all {self.count} cars in their new order, without colours, separated "
            "by single spaces."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show an order of four cars."""
        return [Example("For example, the answer for a line of 4 cars could be:", "2 1 3 4")]

    def rules(self) -> str:
        """State how far a car may go."""
        return (
            f"{self.count} cars stand in a line at places 1 to {self.count}: car 1 at place 1, car "
            f"2 at place 2, and so on. In the new order, every car must be at most {REACH} places "
            "before or behind its old place."
        )

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Check that every car occurs once and none has moved too far, then count the changes."""
        n = self.count
        order = [
            car - 1 for car in parsing.integers(answer, 1, n, min_count=n, max_count=n, what="car")
        ]
        if len(set(order)) < n:
            return wrong("a car stands in two places")
        for position, car in enumerate(order):
            if abs(position - car) > REACH:
                return wrong(
                    f"car {car + 1} may not go to place {position + 1}, more than {REACH} places "
                    "away"
                )
        colours = instance.colours.tolist()
        num_changes, fewest = changes([colours[car] for car in order]), int(instance.fewest)
        if num_changes == fewest:
            return RIGHT
        saved = (changes(colours) - num_changes) / (changes(colours) - fewest)
        reason = f"the colour changes {num_changes} times, {fewest} are enough"
        return Verdict(valid=True, solved=True, optimal=False, score=max(0.0, saved), reason=reason)

    def solve(self, instance: Instance) -> str:
        """Order the cars by :func:`best_order`."""
        return self.write_answer(best_order(instance.colours.tolist()))

    def plan(self, instance: Instance) -> list[int]:
        """Return for each car how far it stood behind its new place."""
        return [
            car - position + REACH
            for position, car in enumerate(best_order(instance.colours.tolist()))
        ]

    def difficulty(self, instance: Instance) -> float:
        """Count the changes of the best order."""
        return float(instance.fewest)

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Put into each place a car at random among those that may stand there."""
        return self.write_answer(self._place_cars(lambda options, last: dice.choice(options)))

    def heuristic(self, instance: Instance) -> str:
        """Put into each place the foremost car of the last colour.

        If there is none, put the foremost car of all.
        """
        return self.write_answer(self._greedy(instance.colours.tolist()))

    def _greedy(self, colours: Sequence[int]) -> list[int]:
        def choose(options: list[int], last: int) -> int:
            same_colour = [car for car in options if last >= 0 and colours[car] == colours[last]]
            return (same_colour or options)[0]

        return self._place_cars(choose)

    def constants(self) -> Sequence[str]:
        """Return the line as it comes."""
        return [self.write_answer(list(range(self.count)))]

    def _place_cars(self, choose: Chooser) -> list[int]:
        """Return an order made place by place."""
        cars_left = list(range(self.count))
        order: list[int] = []
        for position in range(self.count):
            options = [car for car in cars_left if car <= position + REACH]
            car = (
                cars_left[0]
                if cars_left[0] == position - REACH
                else choose(options, order[-1] if order else -1)
            )
            cars_left.remove(car)
            order.append(car)
        return order

    @staticmethod
    def write_answer(order: Sequence[int]) -> str:
        """Return an order in the format of an answer."""
        return " ".join(str(car + 1) for car in order)

    @staticmethod
    def coloured_line(instance: Instance) -> str:
        """Return each car with its colour."""
        return " ".join(
            f"{car}:{COLOURS[colour]}" for car, colour in enumerate(instance.colours.tolist(), 1)
        )


class LineState(NamedTuple):
    """The new order so far."""

    order: jax.Array
    """int8 ``(cars,)``: the car at each place, counted from 0; -1 where there is none yet."""
    cars_left: jax.Array
    """uint32: bit i is set if car i is left."""
    position: jax.Array
    """int32: the next place."""
    last: jax.Array
    """int32: colour of the last car; -1 at the start."""
    changes: jax.Array
    """int32: colour changes so far."""


class CarPainting(PuzzleTask[LineState]):
    """The interactive form."""

    puzzle: CarPaintingPuzzle
    puzzle_class = CarPaintingPuzzle
    measures: ClassVar[dict[str, str]] = {"changes": "colour changes so far"}
    picture_shape: ClassVar[tuple[int, int, int]] = (120, 520, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.count = self.puzzle.count
        self.action_space = spaces.Discrete(_WINDOW)
        size = len(COLOURS) * (self.count + REACH) + len(COLOURS) + 1
        self.observation_space = self.box(0.0, 1.0, (size,))
        self.reward_space = self.box(-1.0, 1.0)

    def initial(self, key: jax.Array, params: Params) -> LineState:
        """Begin with no car placed."""
        order = jnp.full(self.count, -1, jnp.int8)
        return LineState(
            order, jnp.uint32(2**self.count - 1), jnp.int32(0), jnp.int32(-1), jnp.int32(0)
        )

    def transition(
        self, state: LineState, action: jax.Array, key: jax.Array, params: Params
    ) -> LineState:
        """Return the next car."""
        every = np.arange(self.count)
        car = state.position + action - REACH
        colour = jnp.where(every == car, params.instance.colours, 0).sum(dtype=jnp.int32)
        return LineState(
            order=jnp.where(every == state.position, car.astype(jnp.int8), state.order),
            cars_left=state.cars_left & ~(np.uint32(1) << car.astype(jnp.uint32)),
            position=state.position + 1,
            last=colour,
            changes=state.changes + ((state.position > 0) & (colour != state.last)),
        )

    def observation(self, state: LineState, key: jax.Array, params: Params) -> jax.Array:
        """Return the cars left, as seen from the next place; the last colour; the places filled."""
        positions = np.arange(self.count + REACH, dtype=np.uint32)
        names = np.arange(len(COLOURS))
        ahead = (
            (self._cars_by_colour(params) & state.cars_left)
            << REACH
            >> state.position.astype(jnp.uint32)
        )
        cars_ahead = (ahead[:, None] >> positions) & 1
        blocks = cars_ahead.reshape(-1), state.last == names, (state.position / self.count)[None]
        return jnp.concatenate([block.astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        cars = (
            f"[colour, place]: whether a car of the colour that is left stands there; from {REACH} "
            "before the next"
        )
        return (
            Component("cars", f"{cars} place on", shape=(len(COLOURS), self.count + REACH)),
            Component(
                "last_colour",
                "the colour at the last place, one-hot; zeros at first",
                shape=(len(COLOURS),),
            ),
            Component("filled", "fraction of the places that are filled"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a car, by its place relative to the next one to fill."""
        where = {0: "at the next place itself"} | {
            by: f"{abs(by)} {'behind' if by > 0 else 'before'} the next place"
            for by in range(-REACH, REACH + 1)
            if by
        }
        return singles(
            {f"car {by:+d}": f"the car {where[by]} goes there" for by in range(-REACH, REACH + 1)}
        )

    def reward(
        self,
        state: LineState,
        action: jax.Array,
        next_state: LineState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return the changes saved at this place, as a share of all changes that can be saved."""
        colours = params.instance.colours
        differs = colours[1:] != colours[:-1]
        is_joint = (np.arange(1, self.count) == state.position) & (
            next_state.position > state.position
        )
        changes = (differs & is_joint).sum(dtype=jnp.int32)
        saved = changes - (next_state.changes - state.changes)
        possible = differs.sum(dtype=jnp.int32) - params.instance.fewest
        return saved.astype(self.dtype) / possible.astype(self.dtype)

    def terminal(self, state: LineState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether every place is filled."""
        return state.position == self.count

    def info(self, state: LineState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: every place is filled, with the fewest changes."""
        success = (state.position == self.count) & (state.changes == params.instance.fewest)
        return {"success": success, "changes": state.changes}

    def action_mask(self, state: LineState, params: Params) -> jax.Array:
        """Return the remaining cars that are near enough, bool ``(7,)``.

        If the foremost one must go now, it is the only one.
        """
        window = state.cars_left << REACH >> state.position.astype(jnp.uint32)
        window = jnp.where(window & 1 == 1, np.uint32(1), window)
        return (window >> np.arange(_WINDOW, dtype=np.uint32)) & 1 == 1

    def _cars_by_colour(self, params: Params) -> jax.Array:
        """Return the cars of each colour, uint32 ``(colours,)``: bit i for car i."""
        bits = np.uint32(1) << np.arange(self.count, dtype=np.uint32)
        has_colour = params.instance.colours == np.arange(len(COLOURS), dtype=np.int8)[:, None]
        return lax.reduce(
            jnp.where(has_colour, bits, np.uint32(0)), np.uint32(0), lax.bitwise_or, (1,)
        )

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: LineState, params: Params) -> str:
        """Show the rules, the line and the new order so far."""
        new_order = [car for car in np.asarray(state.order).tolist() if car >= 0]
        paints = params.instance.colours.tolist()
        new = " ".join(f"{car + 1}:{COLOURS[paints[car]]}" for car in new_order) or "nothing yet"
        return (
            f"{self.puzzle.rules()} The colour should change as rarely as possible.\n\nThe "
            f"line:\n\n{self.puzzle.coloured_line(params.instance)}\n\nThe new order so "
            f"far:\n\n{new}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return "Answer with the number of the car that goes to the next place."

    def parse(self, text: str, state: LineState, params: Params) -> np.ndarray:
        """Read the number of a car, counted from 1.

        Raises:
            ValueError: anything else, or a car that is more than three places away.
        """
        position = int(state.position)
        low, high = max(1, position + 1 - REACH), min(self.count, position + 1 + REACH)
        car = parsing.integer(text.strip(), low, high, "car")
        return np.asarray(car - 1 - position + REACH, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: LineState, params: Params) -> str:
        """Return the number of the car."""
        return str(int(state.position) + 1 + int(action) - REACH)

    def why_illegal(self, action: np.ndarray, state: LineState, params: Params) -> str:
        """Say that there is no such car, that it has its place, or that another one must go now."""
        car, first = int(state.position) + int(action) - REACH, int(state.position) - REACH
        if not 0 <= car < self.count:
            return f"there is no car {car + 1}"
        if not int(state.cars_left) >> car & 1:
            return f"car {car + 1} has its place already"
        return f"car {first + 1} may not go any farther back than here"

    def why_over(self, state: LineState, params: Params, info: dict[str, Any]) -> str:
        """Say that all cars are placed."""
        return f"every car has its place; the colour changes {int(state.changes)} times"

    def draw(self, state: LineState, params: Params) -> np.ndarray:
        """Draw the line above, the new order below."""
        board = Board(2, self.count, self.picture_shape)
        paints, cars_left = params.instance.colours.tolist(), int(state.cars_left)
        for position, car in enumerate(np.asarray(state.order).tolist()):
            board.cell(
                0, position, paper=_PAINTS[paints[position]] if cars_left >> position & 1 else ""
            )
            board.text(0, position, str(position + 1), scale=0.7)
            board.cell(1, position, paper=_PAINTS[paints[car]] if car >= 0 else "")
            if car >= 0:
                board.text(1, position, str(car + 1), scale=0.7)
        return board.picture()
