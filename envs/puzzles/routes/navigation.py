"""rlsuite/Navigation-v0: the shortest route between two places, on roads described in words.

``difficulty`` is the side of the map. Its places lie on a square lattice. A random tree of roads
joins neighbours, and so does half of the other possible roads. Roads wind: their lengths, 1 to 9
km, are drawn independently. See :mod:`.lattice_routes` for actions, observations and rewards; the
mask forbids directions without a road. ``success`` means arriving by a shortest route, because even
a random walk arrives in more than half of its episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Example, Malformed, Verdict, wrong

from ..shared.board import FILLED, INK, Board
from ..shared.puzzle_task import Params
from ..shared.shortest_moves import MAX_MOVES, rate_answer
from .lattice_routes import DOWN, RIGHT, RoutePuzzle, RouteTask

WAYS = ("north", "south", "west", "east")
NAMES = tuple(
    first + last
    for first in (
        "Ash",
        "Birch",
        "Clay",
        "Deer",
        "Elm",
        "Fox",
        "Glen",
        "Hazel",
        "Iron",
        "Kirk",
        "Lark",
        "Mill",
    )
    for last in ("bury", "dale", "field", "ford", "ham", "mouth", "stead", "ton", "well", "wick")
)
"""Names of places, in alphabetical order."""


class Instance(NamedTuple):
    """A road map with names, a start and a goal; see :class:`.lattice_routes.Roads`."""

    right: np.ndarray
    """int8 ``(side**2,)``: kilometres of the road east of each place; 0 for none."""
    down: np.ndarray
    """int8 ``(side**2,)``: kilometres of the road south of each place; 0 for none."""
    start: np.int16
    """A place."""
    goal: np.int16
    """A place."""
    shortest: np.int16
    """Kilometres of a shortest route."""
    names: np.ndarray
    """int8 ``(side**2,)``: the number of each place's name in :data:`NAMES`."""


class NavigationPuzzle(RoutePuzzle[Instance]):
    """A road map of named places; the prompt lists the roads in alphabetical order, each once."""

    name = "Navigation"
    difficulty_is = "kilometres of a shortest route"
    moves = WAYS
    tiers = range(3, 9)
    eighths, longest = 4, 9

    def compose(self, dice: Dice) -> Instance:
        """Draw a random map with random names."""
        roads, _ = next(self.random_maps(dice))
        return Instance(*roads, np.array(dice.sample(range(len(NAMES)), self.places), np.int8))

    def question(self, instance: Instance) -> str:
        """State the roads, the start, the goal and the format."""
        names = self.place_names(instance)
        start, goal = names[self.start(instance)], names[self.goal(instance)]
        return (
            f"{self.road_sentences(instance)}\n\nAll roads can be travelled in both directions. "
            "Find a shortest route "
            f"from {start} to {goal}. Answer with the names of the places on it in order, from "
            f"{start} to {goal}, "
            "separated by single spaces."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a route of two roads."""
        return [
            Example(
                "For example, the answer for a route from Aston over Bray to Clun would be:",
                "Aston Bray Clun",
            )
        ]

    def road_sentences(self, instance: Instance) -> str:
        """Return a sentence for each place from which the text lists roads."""
        names = self.place_names(instance)
        right, down = instance.right.tolist(), instance.down.tolist()
        sentences = []
        for place in sorted(range(self.places), key=lambda place: names[place]):
            roads = [
                f"{length} km {WAYS[direction]} to {names[neighbour]}"
                for direction, neighbour, length in self.exits(right, down, place)
                if names[neighbour] > names[place]
            ]
            if roads:
                *all_but_last, last = roads
                listed = f"{', '.join(all_but_last)} and {last}" if all_but_last else last
                sentences.append(
                    f"From {names[place]} {'roads lead' if all_but_last else 'a road leads'} "
                    f"{listed}."
                )
        return "\n".join(sentences)

    def place_names(self, instance: Instance) -> list[str]:
        """Return the name of each place."""
        return [NAMES[name] for name in instance.names.tolist()]

    @property
    def caseless(self) -> Sequence[str]:
        """Names of places, on every map."""
        return NAMES

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Follow the names."""
        words = answer.split(" ")
        if len(words) > MAX_MOVES:
            raise Malformed(f"expected at most {MAX_MOVES} places, got {len(words)}")
        places = {name: place for place, name in enumerate(self.place_names(instance))}
        for number, word in enumerate(words, 1):
            if word not in places:
                raise Malformed(f"name {number}: expected a place of the map, got {word[:20]!r}")
        route = [places[word] for word in words]
        if (route[0], route[-1]) != (self.start(instance), self.goal(instance)):
            return wrong("the route does not go from the start to the goal")
        length = 0
        for place, next_place, name in zip(route, route[1:], words[1:], strict=False):
            if not (road := self.length(instance, place, next_place)):
                return wrong(f"no road leads to {name} from the place before it")
            length += road
        return rate_answer(length, int(instance.shortest), "km")

    def write_answer(self, instance: Instance, moves: Sequence[int]) -> str:
        """Return the places that moves pass."""
        names = self.place_names(instance)
        place = self.start(instance)
        words = [names[place]]
        for move in moves:
            following = self.position_after(instance, place, move)
            assert following is not None, "these moves follow roads"
            place = following
            words.append(names[place])
        return " ".join(words)

    def constants(self) -> Sequence[str]:
        """Return the first two names there are."""
        return [" ".join(NAMES[:2])]


class TravelState(NamedTuple):
    """The player's place, and the distance gone."""

    place: jax.Array
    """int32: the place."""
    travelled: jax.Array
    """int32: kilometres gone."""


class Navigation(RouteTask[TravelState]):
    """The interactive form."""

    puzzle: NavigationPuzzle
    puzzle_class = NavigationPuzzle
    measures = RouteTask.measures | {"travelled": "length of the way so far, km"}
    ways = WAYS
    road_unit = f"{NavigationPuzzle.longest} km"

    def initial(self, key: jax.Array, params: Params) -> TravelState:
        """Begin at the start."""
        return TravelState(params.instance.start.astype(jnp.int32), jnp.int32(0))

    def transition(
        self, state: TravelState, action: jax.Array, key: jax.Array, params: Params
    ) -> TravelState:
        """Go along the road."""
        road = self._exits(state, params)[action]
        return TravelState(self.place_beyond(state.place, action), state.travelled + road)

    def info(self, state: TravelState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the player is at the goal, by a shortest route."""
        measures = super().info(state, params)
        shortest = state.travelled <= params.instance.shortest
        return measures | {"success": measures["success"] & shortest, "travelled": state.travelled}

    def describe(self, state: TravelState, params: Params) -> str:
        """Show the roads, the goal and the player's place."""
        names = self.puzzle.place_names(params.instance)
        place_name, goal = names[int(state.place)], names[int(params.instance.goal)]
        return (
            f"{self.puzzle.road_sentences(params.instance)}\n\n"
            f"You are in {place_name} and want to get to {goal}."
        )

    def draw(self, state: TravelState, params: Params) -> np.ndarray:
        """Draw places as dots and roads as lines with their lengths.

        The goal is green, and the player's place blue.
        """
        side, roads = self.puzzle.side, params.instance
        board = Board(side, side, self.picture_shape)
        right, down = roads.right.tolist(), roads.down.tolist()
        for place in range(self.places):
            row, column = divmod(place, side)
            for direction, neighbour, length in self.puzzle.exits(right, down, place):
                if direction in (RIGHT, DOWN):
                    to_row, to_column = divmod(neighbour, side)
                    board.line(row + 0.5, column + 0.5, to_row + 0.5, to_column + 0.5, "#b8bec7")
                    above, beside = (0.2, 0.0) if direction == RIGHT else (0.0, 0.2)
                    board.text(
                        (row + to_row) / 2 - above,
                        (column + to_column) / 2 + beside,
                        str(length),
                        INK,
                        0.5,
                    )
        for place in range(self.places):
            x0, y0, x1, y1 = board.box(*divmod(place, side))
            inset = 2 * board.side // 5
            if place == int(state.place):
                colour = FILLED
            elif place == int(roads.goal):
                colour = "#009e73"
            else:
                colour = INK
            board.pen.ellipse((x0 + inset, y0 + inset, x1 - inset, y1 - inset), fill=colour)
        return board.picture()
