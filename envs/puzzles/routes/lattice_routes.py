"""Routes on a square lattice in which some neighbours are joined by roads: mazes and road maps.

=============  =====================================================================================
action         0 up, 1 down, 2 left, 3 right (north, south, west, east); legal where there is a road
observation    the length of every road to the right, then of every road down, places in reading
               order, 0 where there is none, divided by the longest there can be; where one is and
               where the goal is, each one-hot; the four roads from here; rows and columns to the
               goal, divided by the side
reward         decrease of what is left to the goal (rows plus columns, or what the task says),
               divided by what it is at the start; +1 on arrival; for each road -1/10 of its length,
               divided by the length of a shortest route
termination    the goal
=============  =====================================================================================

The first part telescopes to 1 at the goal, whatever the way. The best return is exactly 19/10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Instance as AnyInstance

from ..shared import parsing
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.shortest_moves import MovesPuzzle
from ..shared.symmetry import square_symmetries

PRICE = 0.1
"""Price of a shortest route in all."""
UP, DOWN, LEFT, RIGHT = range(4)


class Roads(NamedTuple):
    """A lattice of places, its roads, a start and a goal. Puzzles may append fields."""

    right: np.ndarray
    """int8 ``(side**2,)``: length of the road from each place to the one on its right; 0 for none.
    """
    down: np.ndarray
    """int8 ``(side**2,)``: length of the road from each place to the one below; 0 for none."""
    start: np.int16
    """A place, counted from 0 in reading order."""
    goal: np.int16
    """A place."""
    shortest: np.int16
    """Length of a shortest route."""


class Exit(NamedTuple):
    """A neighbour of a place on the lattice, whether a road leads there or not."""

    direction: int
    neighbour: int
    road: int
    """Index of the road's length among those of all roads to the right, then down."""


class RoutePuzzle(MovesPuzzle[AnyInstance, int]):
    """``tier`` is the side of the lattice. A position is the number of a place.

    A random tree joins the places: a walk continues from its end while possible, and otherwise from
    the last place where it can. Further neighbours are joined by chance. Start and goal are at
    least two thirds as far apart as the goal is from the farthest place.
    """

    tier_is = "the side of the map"
    #: Probability of a road between neighbours that the tree does not join, in eighths.
    eighths: ClassVar[int]
    #: Length of the longest road.
    longest: ClassVar[int]

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.side = int(tier)
        self.places = self.side**2
        self._beside = [self._neighbours(place) for place in range(self.places)]
        self._exits = [self._exits_of(place) for place in range(self.places)]
        right_and_down = [
            road
            for exits in self._exits
            for direction, _, road in exits
            if direction in (DOWN, RIGHT)
        ]
        self._roads = sorted(right_and_down, key=lambda road: (road % self.places, road))
        """Indices of all roads that the lattice has room for, by the place where they begin."""
        symmetries = [np.array(order) for order in square_symmetries(self.side)]
        self._symmetries = [
            (np.argsort(order).tolist(), self._turned_roads(order)) for order in symmetries
        ]
        """New number of each place, and the roads of the turned map, for each symmetry.

        The roads are given by the indices from which the turned map takes them.
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

    def _exits_of(self, place: int) -> list[Exit]:
        """Return the exits of a place, in the order of their directions."""
        exits = []
        for direction, neighbour in enumerate(self._beside[place]):
            if neighbour is not None:
                exits.append(Exit(direction, neighbour, self._road(place, neighbour)))
        return exits

    def _road(self, place: int, neighbour: int) -> int:
        """Return the index of the road between neighbours.

        All roads to the right come first, then all roads down.
        """
        first = min(place, neighbour)
        is_vertical = abs(place - neighbour) != 1
        return first + self.places if is_vertical else first

    def _turned_roads(self, order: np.ndarray) -> np.ndarray:
        """Return the indices from which a turned map takes its roads, int ``(2 * places,)``.

        Args:
            order: the old place for each new place.
        """
        roads = []
        for direction in (RIGHT, DOWN):
            for place, beside in enumerate(self._beside):
                neighbour = beside[direction]
                if neighbour is None:
                    roads.append(2 * self.places)  # behind the last road, where there is none
                else:
                    roads.append(self._road(int(order[place]), int(order[neighbour])))
        return np.array(roads)

    def random_maps(self, dice: Dice) -> Iterator[tuple[Roads, list[int]]]:
        """Yield a random map and goal with one start after another, and all distances to the goal.

        The starts are in random order.
        """
        lengths = self._spanning_tree(dice)
        for road in self._roads:
            if not lengths[road] and dice.below(8) < self.eighths:
                lengths[road] = 1 + dice.below(self.longest)
        goal = dice.below(self.places)
        distances = self.distances(lengths, goal)
        farthest = max(distances)
        starts = [place for place, distance in enumerate(distances) if 3 * distance >= 2 * farthest]
        right, down = np.array(lengths, np.int8).reshape(2, -1)
        while starts:
            start = starts.pop(dice.below(len(starts)))
            yield (
                Roads(right, down, np.int16(start), np.int16(goal), np.int16(distances[start])),
                distances,
            )

    def _spanning_tree(self, dice: Dice) -> list[int]:
        """Return the length of every road of a random tree that joins all places, 0 for none."""
        lengths = [0] * (2 * self.places)
        place = dice.below(self.places)
        unvisited = set(range(self.places)) - {place}
        trail: list[int] = []
        while unvisited:
            exits = [option for option in self._exits[place] if option.neighbour in unvisited]
            if not exits:
                place = trail.pop()
                continue
            trail.append(place)
            _, place, road = dice.choice(exits)
            lengths[road] = 1 + dice.below(self.longest)
            unvisited.remove(place)
        return lengths

    def exits(
        self, right: Sequence[int], down: Sequence[int], place: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield the roads from a place: direction, neighbour, length."""
        lengths = [*right, *down]
        for direction, neighbour, road in self._exits[place]:
            if lengths[road]:
                yield direction, neighbour, lengths[road]

    def distances(self, lengths: Sequence[int], goal: int) -> list[int]:
        """Return the length of a shortest route to the goal from each place (Dijkstra 1959).

        Args:
            lengths: of the roads to the right and then down, from each place; 0 for none.
            goal: a place that all others can reach.
        """
        distances = [-1] * self.places
        queue = [(0, goal)]
        while queue:
            distance, place = heappop(queue)
            if distances[place] >= 0:
                continue
            distances[place] = distance
            for _, neighbour, road in self._exits[place]:
                if lengths[road] and distances[neighbour] < 0:
                    heappush(queue, (distance + lengths[road], neighbour))
        return distances

    def canonical(self, instance: AnyInstance) -> bytes:
        """Return the least of the eight rotations and reflections of the map.

        Start and goal turn with it.
        """
        roads: Any = instance
        start, goal = self.start(instance), self.goal(instance)
        lengths = np.concatenate([roads.right, roads.down, np.zeros(1, np.int8)])
        return min(
            bytes([number[start], number[goal]]) + lengths[order].tobytes()
            for number, order in self._symmetries
        )

    def start(self, instance: AnyInstance) -> int:
        """Return a place."""
        return int(instance.start)  # type: ignore[attr-defined]

    def goal(self, instance: AnyInstance) -> int:
        """Return a place."""
        return int(instance.goal)  # type: ignore[attr-defined]

    def position_after(self, instance: AnyInstance, position: int, move: int) -> int | None:
        """Follow a road; return None if there is none."""
        neighbour = self._beside[position][move]
        return (
            neighbour
            if neighbour is not None and self.length(instance, position, neighbour)
            else None
        )

    def length(self, instance: AnyInstance, place: int, neighbour: int) -> int:
        """Return the length of the road between two places; 0 if there is none."""
        roads: Any = instance
        for direction, beside in enumerate(self._beside[place]):
            if beside == neighbour:
                return int(
                    (roads.right if direction in (LEFT, RIGHT) else roads.down)[
                        min(place, neighbour)
                    ]
                )
        return 0

    def estimated_distance(self, instance: AnyInstance, position: int) -> int:
        """Count the rows and columns to the goal."""
        row, column = divmod(position, self.side)
        to_row, to_column = divmod(self.goal(instance), self.side)
        return abs(row - to_row) + abs(column - to_column)

    def shortest(self, instance: AnyInstance) -> list[int]:
        """Take a road that brings the goal nearer by its whole length, again and again."""
        roads: Any = instance
        lengths = roads.right.tolist() + roads.down.tolist()
        distances = self.distances(lengths, self.goal(instance))
        place = self.start(instance)
        moves = []
        while distances[place]:
            for direction, neighbour, road in self._exits[place]:
                if lengths[road] and distances[neighbour] + lengths[road] == distances[place]:
                    moves.append(direction)
                    place = neighbour
                    break
        return moves


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

    def place_beyond(self, place: jax.Array, action: jax.Array) -> jax.Array:
        """Return the place that the road in a direction leads to."""
        side = self.puzzle.side
        return place + jnp.select(
            [action == UP, action == DOWN, action == LEFT], [-side, side, -1], 1
        )

    def distance_left(self, place: jax.Array, params: Params) -> jax.Array:
        """Return the remaining distance to the goal, int32. Its decrease is rewarded."""
        return self._grid_distance(place, params)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the map, the player's place, and the view from there."""
        roads, side = params.instance, self.puzzle.side
        every = np.arange(self.places)
        is_place, goal = every == state.place, every == roads.goal
        target = roads.goal.astype(jnp.int32)
        lengths = jnp.concatenate([roads.right, roads.down]) / self.puzzle.longest
        exits = self._exits(state, params) / self.puzzle.longest
        offset = (
            jnp.stack([target // side - state.place // side, target % side - state.place % side])
            / side
        )
        return jnp.concatenate(
            [
                lengths,
                is_place.astype(self.dtype),
                goal.astype(self.dtype),
                exits,
                offset.astype(self.dtype),
            ]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        side, unit = (self.puzzle.side,) * 2, self.road_unit
        return (
            Component(
                "right",
                "[row, column]: length of the road to the right of the place, 0 for none",
                unit,
                side,
            ),
            Component(
                "down",
                "[row, column]: length of the road down from the place, 0 for none",
                unit,
                side,
            ),
            Component("here", "[row, column]: where one is, one-hot", shape=side),
            Component("goal", "[row, column]: where the goal is, one-hot", shape=side),
            Component(
                "exits",
                f"length of the road from here {', '.join(self.ways)}, 0 for none",
                unit,
                (4,),
            ),
            Component(
                "rows_to_goal",
                "row of the goal minus that of one's place",
                f"{self.puzzle.side} rows",
            ),
            Component(
                "columns_to_goal",
                "column of the goal minus that of one's place",
                f"{self.puzzle.side} columns",
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the four directions."""
        return singles({direction: f"take the road {direction}" for direction in self.ways})

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return progress, plus 1 on arrival, minus the price of the road.

        If no road is taken, the price is that of a shortest one.
        """
        distance = self.distance_left(state.place, params)
        next_distance = self.distance_left(next_state.place, params)
        first = self.distance_left(params.instance.start.astype(jnp.int32), params)
        roads = self._exits(state, params)
        road = jnp.maximum(jnp.where(np.arange(4) == action, roads, 0).sum(), 1)
        price = PRICE * road.astype(self.dtype) / params.instance.shortest.astype(self.dtype)
        progress = (distance - next_distance).astype(self.dtype) / first.astype(self.dtype)
        return progress + ((next_distance == 0) & (distance > 0)).astype(self.dtype) - price

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether one is at the goal."""
        return state.place == params.instance.goal

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the player is at the goal."""
        return {
            "success": state.place == params.instance.goal,
            "apart": self._grid_distance(state.place, params),
        }

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return the directions in which there is a road, bool ``(4,)``."""
        return self._exits(state, params) > 0

    def _exits(self, state: State, params: Params) -> jax.Array:
        """Return the lengths of the roads from here, int32 ``(4,)``; 0 for none."""
        return self.roads_around(params.instance.right, params.instance.down, state.place)

    def roads_around(self, right: jax.Array, down: jax.Array, place: jax.Array) -> jax.Array:
        """Return the numbers of the four roads at one place, int32.

        ``right`` and ``down`` are those of all roads.
        """
        # Indices below 0 count from the end: from the last row no road leads down, and none to the
        # right from its end.
        roads = down[place - self.puzzle.side], down[place], right[place - 1], right[place]
        return jnp.stack(roads).astype(jnp.int32)

    def _grid_distance(self, place: jax.Array, params: Params) -> jax.Array:
        side, goal = self.puzzle.side, params.instance.goal.astype(jnp.int32)
        return jnp.abs(place // side - goal // side) + jnp.abs(place % side - goal % side)

    # -- host side ---------------------------------------------------------------------------------

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
