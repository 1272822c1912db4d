"""Routes on a square lattice in which some neighbours are joined by roads: mazes and road maps.

=============  =====================================================================================================
action         0 up, 1 down, 2 left, 3 right (north, south, west, east); legal where there is a road
observation    the length of every road to the right, then of every road down, places in reading order, 0 where there is
               none, divided by the longest there can be; where one is and where the goal is, each one-hot; the four
               roads from here; rows and columns to the goal, divided by the side
reward         decrease of what is left to the goal (rows plus columns, or what the task says), divided by what it is at
               the start; +1 on arrival; for each road -1/10 of its length, divided by the length of a shortest route
termination    the goal
=============  =====================================================================================================

The first part telescopes to 1 at the goal, whatever the way. The best return is exactly 19/10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import compress, product
from operator import itemgetter, or_
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.component import Component, singles
from rlbench_suite.dice import Dice
from rlbench_suite.puzzle import Instance as AnyInstance
from rlbench_suite.task_card import TaskCard

from ..shared import parsing
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.shortest_moves import MovesPuzzle
from ..shared.symmetry import square_symmetries
from .graph import members

PRICE = 0.1
"""Price of a shortest route in all."""
UP, DOWN, LEFT, RIGHT = range(4)
_INT16 = [np.int16(number) for number in range(1000)]
"""Places and lengths as int16. They are made once, because making one takes five times as long."""


class Roads(NamedTuple):
    """A lattice of places, its roads, a start and a goal. Puzzles may append fields."""

    right: np.ndarray
    """int8 ``(side**2,)``: length of the road from each place to the one on its right; 0 for none."""
    down: np.ndarray
    """int8 ``(side**2,)``: length of the road from each place to the one below; 0 for none."""
    start: np.int16
    """A place, counted from 0 in reading order."""
    goal: np.int16
    """A place."""
    shortest: np.int16
    """Length of a shortest route."""


class RoutePuzzle(MovesPuzzle[AnyInstance, int]):
    """``tier`` is the side of the lattice. A position is the number of a place.

    A random tree joins the places: a walk continues from its end while possible, and otherwise from the last place
    where it can. Further neighbours are joined by chance. Start and goal are at least two thirds as far apart as the
    goal is from the farthest place.
    """

    tier_is = "the side of the map"
    #: Probability of a road between neighbours that the tree does not join, in eighths.
    eighths: ClassVar[int]
    #: Length of the longest road.
    longest: ClassVar[int]

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.side = side = int(tier)
        self.places = side**2
        self._beside = [self._neighbours(place) for place in range(self.places)]
        self._ways = [
            [(way, other, self._slot(place, other)) for way, other in enumerate(beside) if other is not None]
            for place, beside in enumerate(self._beside)
        ]
        """Roads of each place: direction, neighbour, and index of the road's length."""
        self._onward = [_subsets([(other, slot) for _, other, slot in ways]) for ways in self._ways]
        """Neighbours of each place, and an entry for each subset of them.

        An entry has the neighbours, the indices of the roads' lengths, and the masks that remove the neighbours from a
        set.
        """
        self._slots = [slot for ways in self._ways for way, _, slot in ways if way in (DOWN, RIGHT)]
        self._slots.sort(key=lambda slot: (slot % self.places, slot))
        orders = square_symmetries(side)
        self._renumbered = [np.argsort(order).tolist() for order in orders]
        """New number of each place, for each symmetry."""
        self._turned = [itemgetter(*self._turned_roads(order)) for order in orders]
        """Function for each symmetry that reorders the roads: those to the right, then those down, then a 0."""
        self._views: dict[tuple[int, int], tuple[bytes, list[itemgetter[Any]]]] = {}
        """Least numbers for each start and goal met so far, with ``_turned`` of the symmetries that give these numbers.
        """

    def _neighbours(self, place: int) -> list[int | None]:
        """Return the place that each direction leads to on the lattice; None beyond the border."""
        row, column = divmod(place, self.side)
        last = self.side - 1
        return [
            place - self.side if row > 0 else None,
            place + self.side if row < last else None,
            place - 1 if column > 0 else None,
            place + 1 if column < last else None,
        ]

    def _slot(self, place: int, other: int) -> int:
        """Return the index of the road between neighbours: first all roads to the right, then all roads down."""
        return min(place, other) + (0 if abs(place - other) == 1 else self.places)

    def _turned_roads(self, order: Sequence[int]) -> list[int]:
        """Return the indices from which ``_turned`` takes roads; ``order`` has the old place for each new place."""
        found = []
        for way in (RIGHT, DOWN):
            for place, beside in enumerate(self._beside):
                if (other := beside[way]) is None:
                    found.append(2 * self.places)
                else:
                    found.append(self._slot(order[place], order[other]))
        return found

    def roads(self, dice: Dice) -> Iterator[tuple[Roads, list[int]]]:
        """Return a random map and goal with its :meth:`rings`, from one start after another in random order."""
        lengths, longest = bytearray(2 * self.places), self.longest
        words = dice.words(2 * self.places - 1)
        drawn = [1 + (word * longest >> 64) for word in words[2::2]] if longest > 1 else [1] * (self.places - 1)
        place = words[0] * self.places >> 64
        trail: list[int] = []
        unmet = 2**self.places - 1 ^ 1 << place
        onward = self._onward
        for word, length in zip(words[1::2], drawn, strict=True):
            around, options = onward[place]
            while not (beside := unmet & around):
                place = trail.pop()
                around, options = onward[place]
            trail.append(place)
            ways = options[beside]
            place, slot, others = ways[word * len(ways) >> 64] if len(ways) > 1 else ways[0]
            lengths[slot] = length
            unmet &= others
        draw, rare = dice.word, self.eighths << 61
        for slot in self._slots:
            if not lengths[slot] and draw() < rare:
                lengths[slot] = 1 + dice.below(longest)
        goal = dice.below(self.places)
        rings = self.rings(lengths, goal)
        far = reduce(or_, rings[-(-2 * (len(rings) - 1) // 3) :])
        right, down = np.frombuffer(lengths, np.int8).reshape(2, -1)
        while far:
            start = far
            for _ in range(dice.below(far.bit_count())):
                start &= start - 1
            start &= -start
            far ^= start
            shortest = [ring & start != 0 for ring in rings].index(True)
            yield Roads(right, down, _INT16[start.bit_length() - 1], _INT16[goal], _INT16[shortest]), rings

    def exits(self, right: Sequence[int], down: Sequence[int], place: int) -> Iterator[tuple[int, int, int]]:
        """Return the roads from a place: direction, neighbour, length."""
        for way, other, slot in self._ways[place]:
            if length := (right[slot] if slot < self.places else down[slot - self.places]):
                yield way, other, length

    def rings(self, lengths: bytes | bytearray, goal: int, until: int = 0) -> list[int]:
        """Return for each length, from 0 on, the set of places at this distance from the goal (Dijkstra 1959).

        Args:
            lengths: of roads to the right and then down, from each place.
            goal: a place.
            until: a set of places; the last ring is the first that has one of them.
        """
        rings = [1 << goal]
        unmet = 2**self.places - 1
        for length, met in enumerate(rings):
            rings[length] = ring = met & unmet
            unmet ^= ring
            if ring & until:
                return rings[: length + 1]
            for place in members(ring):
                for _, other, slot in self._ways[place]:
                    if (road := lengths[slot]) and unmet >> other & 1:
                        while len(rings) <= length + road:
                            rings.append(0)
                        rings[length + road] |= 1 << other
        while not rings[-1]:
            rings.pop()
        return rings

    def canonical(self, instance: AnyInstance) -> bytes:
        """Return the least of the eight rotations and reflections of the map, start and goal with it."""
        roads: Any = instance
        lengths = roads.right.tobytes() + roads.down.tobytes() + b"\0"
        ends = int(roads.start), int(roads.goal)
        if ends not in self._views:
            seen = [tuple([number[end] for end in ends]) for number in self._renumbered]
            least = min(seen)
            turns = [turn for turn, view in zip(self._turned, seen, strict=True) if view == least]
            self._views[ends] = bytes(least), turns
        first, turns = self._views[ends]
        return first + min([bytes(turn(lengths)) for turn in turns])

    def start(self, instance: AnyInstance) -> int:
        """Return a place."""
        return int(instance.start)  # type: ignore[attr-defined]

    def goal(self, instance: AnyInstance) -> int:
        """Return a place."""
        return int(instance.goal)  # type: ignore[attr-defined]

    def after(self, instance: AnyInstance, position: int, move: int) -> int | None:
        """Follow a road; return None if there is none."""
        other = self._beside[position][move]
        return other if other is not None and self.length(instance, position, other) else None

    def length(self, instance: AnyInstance, place: int, other: int) -> int:
        """Return the length of the road between two places; 0 if there is none."""
        roads: Any = instance
        for way, beside in enumerate(self._beside[place]):
            if beside == other:
                return int((roads.right if way in (LEFT, RIGHT) else roads.down)[min(place, other)])
        return 0

    def apart(self, instance: AnyInstance, position: int) -> int:
        """Count the rows and columns to the goal."""
        row, column = divmod(position, self.side)
        to_row, to_column = divmod(self.goal(instance), self.side)
        return abs(row - to_row) + abs(column - to_column)

    def shortest(self, instance: AnyInstance) -> list[int]:
        """Go from ring to ring."""
        roads: Any = instance
        lengths = roads.right.tobytes() + roads.down.tobytes()
        place, moves = self.start(instance), []
        rings = self.rings(lengths, self.goal(instance), 1 << place)
        left = len(rings) - 1
        while left:
            for way, other, slot in self._ways[place]:
                if 0 < (road := lengths[slot]) <= left and rings[left - road] >> other & 1:
                    place = other
                    left -= road
                    moves.append(way)
                    break
        return moves


def _subsets(ways: list[tuple[int, int]]) -> tuple[int, dict[int, list[tuple[int, int, int]]]]:
    """Return the greatest set of places; and for each set of them its places, with the masks that take them out of a
    set.
    """
    chosen = (list(compress(ways, which)) for which in product((0, 1), repeat=len(ways)))
    each = [[(other, slot, ~(1 << other)) for other, slot in some] for some in chosen]
    by_set = {sum(1 << other for other, _, _ in some): some for some in each}
    return max(by_set), by_set


class RouteState(Protocol):
    """Part that the states of all route tasks share."""

    @property
    def place(self) -> jax.Array:
        """int32: the player's place."""


State = TypeVar("State", bound=RouteState)


class RouteTask(PuzzleTask[State], Generic[State]):
    """The interactive form. Subclasses define the state and how it begins and changes."""

    puzzle: RoutePuzzle[Any]
    measures: ClassVar[dict[str, str]] = {"apart": "rows plus columns to the goal"}
    picture_shape: ClassVar[tuple[int, int, int]] = (360, 360, 3)
    #: Names of the four directions.
    ways: ClassVar[tuple[str, str, str, str]]
    road_unit: ClassVar[str]
    """Length by which road lengths are divided, in words."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.places = self.puzzle.places
        self.action_space = spaces.Discrete(4)
        self.observation_space = self.box([0.0] * (4 * self.places + 4) + [-1.0, -1.0], 1.0)
        self.reward_space = self.box(-1.0 - PRICE * self.puzzle.longest, 2.0)

    def beyond(self, place: jax.Array, action: jax.Array) -> jax.Array:
        """Return the place that the road in a direction leads to."""
        side = self.puzzle.side
        return place + jnp.select([action == UP, action == DOWN, action == LEFT], [-side, side, -1], 1)

    def left(self, place: jax.Array, params: Params) -> jax.Array:
        """Return the remaining distance to the goal, int32. Its decrease is rewarded."""
        return self._apart(place, params)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the map, the player's place, and the view from there."""
        roads, side = params.instance, self.puzzle.side
        every = np.arange(self.places)
        here, goal = every == state.place, every == roads.goal
        target = roads.goal.astype(jnp.int32)
        lengths = jnp.concatenate([roads.right, roads.down]) / self.puzzle.longest
        exits = self._exits(state, params) / self.puzzle.longest
        offset = jnp.stack([target // side - state.place // side, target % side - state.place % side]) / side
        return jnp.concatenate(
            [lengths, here.astype(self.dtype), goal.astype(self.dtype), exits, offset.astype(self.dtype)]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        side, unit = (self.puzzle.side,) * 2, self.road_unit
        return (
            Component("right", "[row, column]: length of the road to the right of the place, 0 for none", unit, side),
            Component("down", "[row, column]: length of the road down from the place, 0 for none", unit, side),
            Component("here", "[row, column]: where one is, one-hot", shape=side),
            Component("goal", "[row, column]: where the goal is, one-hot", shape=side),
            Component("exits", f"length of the road from here {', '.join(self.ways)}, 0 for none", unit, (4,)),
            Component("rows_to_goal", "row of the goal minus that of one's place", f"{self.puzzle.side} rows"),
            Component("columns_to_goal", "column of the goal minus that of one's place", f"{self.puzzle.side} columns"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the four directions."""
        return singles({way: f"take the road {way}" for way in self.ways})

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return progress, plus 1 on arrival, minus the price of the road (of a shortest one if none is taken)."""
        before, after = self.left(state.place, params), self.left(next_state.place, params)
        first = self.left(params.instance.start.astype(jnp.int32), params)
        roads = self._exits(state, params)
        road = jnp.maximum(jnp.where(np.arange(4) == action, roads, 0).sum(), 1)
        price = PRICE * road.astype(self.dtype) / params.instance.shortest.astype(self.dtype)
        progress = (before - after).astype(self.dtype) / first.astype(self.dtype)
        return progress + ((after == 0) & (before > 0)).astype(self.dtype) - price

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether one is at the goal."""
        return state.place == params.instance.goal

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the player is at the goal."""
        return {"success": state.place == params.instance.goal, "apart": self._apart(state.place, params)}

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return the directions in which there is a road, bool ``(4,)``."""
        return self._exits(state, params) > 0

    def _exits(self, state: State, params: Params) -> jax.Array:
        """Return the lengths of the roads from here, int32 ``(4,)``; 0 for none."""
        return self.around(params.instance.right, params.instance.down, state.place)

    def around(self, right: jax.Array, down: jax.Array, place: jax.Array) -> jax.Array:
        """Return the numbers of the four roads at one place, int32, given those of all roads to the right and down."""
        # Indices below 0 count from the end: from the last row no road leads down, and none to the right from its end.
        roads = down[place - self.puzzle.side], down[place], right[place - 1], right[place]
        return jnp.stack(roads).astype(jnp.int32)

    def _apart(self, place: jax.Array, params: Params) -> jax.Array:
        side, goal = self.puzzle.side, params.instance.goal.astype(jnp.int32)
        return jnp.abs(place // side - goal // side) + jnp.abs(place % side - goal % side)

    # -- host side ------------------------------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return f"Answer with the direction to go: {', '.join(self.ways)}."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Read the name of a direction.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(parsing.word(text.strip(), self.ways), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the name of the direction."""
        return self.ways[int(action)]

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say that there is no road."""
        return f"there is no way {self.ways[int(action)]} from here"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Return the only end there is."""
        return "the goal is reached"
