"""rlsuite/HamiltonianPath-v0 and rlsuite/HamiltonianCycle-v0: visit every vertex of a graph once.

``difficulty`` is the number of vertices. Graphs are connected and have a fixed number of edges. No
degree rules a solution out: for a cycle every vertex has at least two neighbours, for a path at
most two vertices have only one. Of every two one-shot instances one has no solution, proven by
exhaustive search; the number of edges does not tell them apart. The interactive form has graphs
with a solution only.

For a cycle, degrees do not tell the two kinds apart either. No vertex has three neighbours of
degree two, and degrees are those of a random graph from which a graph of each kind is reached by
swapping ends of edges.

=============  =====================================================================================
action         the vertex to visit next, ``Discrete(n)``; at first any, then an unvisited neighbour
               of the last one
observation    the adjacency matrix, row by row; then for each vertex: whether it is unvisited,
               whether it is the last, whether it is the first, how many unvisited neighbours it has
               (divided by n)
reward         1/n for each vertex visited, +1 for the last if the path (the cycle, closed by an
               edge to the first) is complete
termination    no vertex can be visited next
=============  =====================================================================================

The best return is 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax
from PIL import Image, ImageDraw, ImageFont

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, wrong

from ..shared import parsing
from ..shared.board import CLUE_PAPER, FILLED, INK, LINE, PAPER
from ..shared.puzzle_task import Params, PuzzleTask
from .graph import (
    canonical_graph,
    hamiltonian_cycle,
    hamiltonian_path,
    members,
    random_graph,
    reachable_vertices,
    swap_edges,
)

NONE = "none"
MAX_VERTICES = 16
_TRIALS = 30
"""Number of swaps of ends of edges that may lead from a graph to one of the other kind."""


class Instance(NamedTuple):
    """A graph."""

    neighbours: np.ndarray
    """int32 ``(n,)``: bit w of entry v is set if there is an edge between v and w."""
    solvable: np.int8
    """1 if there is a solution, 0 if there is none."""


class HamiltonianPuzzle(Puzzle[Instance]):
    """``tier`` is the number of vertices."""

    difficulty_is = (
        "vertices that a depth-first search enters until it has a solution or has proven that "
        "there is none"
    )
    tier_is = "the number of vertices"
    tiers = range(5, MAX_VERTICES + 1)
    #: True if an edge has to lead from the last vertex back to the first.
    closed: ClassVar[bool]
    #: Edges per vertex, in eighths.
    density: ClassVar[int]
    #: True if every graph has a solution.
    all_solvable: ClassVar[bool] = False

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.count = int(tier)
        self.edges = self.count * self.density // 8

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a graph with or without a solution, whichever is due for this seed."""
        return self._instance_of_kind(dice, solvable=dice.share(2) == 1)

    def _instance_of_kind(self, dice: Dice, *, solvable: bool) -> Instance:
        while True:
            graph = random_graph(dice, self.count, self.edges)
            if self._is_plausible(graph) and (self.search(graph)[0] is not None) == solvable:
                return Instance(np.array(graph, np.int32), np.int8(solvable))

    def _is_plausible(self, graph: Sequence[int]) -> bool:
        """Return whether degrees allow a solution, and the graph is connected."""
        degrees = [bits.bit_count() for bits in graph]
        if min(degrees) == 0 or degrees.count(1) > (0 if self.closed else 2):
            return False
        everything = 2**self.count - 1
        return reachable_vertices(graph, 1, everything) == everything

    def search(self, graph: Sequence[int]) -> tuple[list[int] | None, int]:
        """Return a solution, or None, and the number of vertices that the search entered."""
        return (hamiltonian_cycle if self.closed else hamiltonian_path)(graph)

    def canonical(self, instance: Instance) -> bytes:
        """Return the graph without the names of its vertices."""
        return canonical_graph(instance.neighbours.tolist())

    def rules(self) -> str:
        """State the task."""
        if self.closed:
            return (
                "A Hamiltonian cycle of a graph visits every vertex exactly once, following an "
                "edge from each vertex to the next, and from the last back to the first."
            )
        return (
            "A Hamiltonian path of a graph visits every vertex exactly once, following an edge "
            "from each vertex to the next."
        )

    def question(self, instance: Instance) -> str:
        """State the rules, the graph and the format."""
        kind = "cycle" if self.closed else "path"
        again = " (the first is not repeated at the end)" if self.closed else ""
        none = (
            ""
            if self.all_solvable
            else f"; or with the single word {NONE} if there is no Hamiltonian {kind}"
        )
        return (
            f"{self.rules()}\n\n{self.describe_graph(instance)}\n\nFind a Hamiltonian {kind}. "
            f"Answer with the {self.count} vertices in order, separated by single "
            f"spaces{again}{none}."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show an order of four vertices, and the word."""
        order = Example("For example, the answer for a graph with 4 vertices could be:", "2 4 1 3")
        word = Example(f"If there is no Hamiltonian {'cycle' if self.closed else 'path'}:", NONE)
        return [order] if self.all_solvable else [order, word]

    def describe_graph(self, instance: Instance) -> str:
        """Return the vertices and edges in words."""
        graph = instance.neighbours.tolist()
        edges = (f"{v + 1}-{w + 1}" for v, bits in enumerate(graph) for w in members(bits) if v < w)
        return f"The vertices: 1 to {self.count}\nThe edges: {' '.join(edges)}"

    @property
    def caseless(self) -> Sequence[str]:
        """The word for none."""
        return (NONE,)

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Check that every vertex is visited once and every step is an edge.

        For ``none``, ask the search.
        """
        graph, n = instance.neighbours.tolist(), self.count
        if answer == NONE:
            return wrong("there is one") if instance.solvable else RIGHT
        path = [
            vertex - 1
            for vertex in parsing.integers(answer, 1, n, min_count=n, max_count=n, what="vertice")
        ]
        if len(set(path)) < n:
            return wrong("a vertex is visited twice")
        steps = list(zip(path, path[1:] + path[:1], strict=True))
        if not self.closed:
            steps.pop()
        for tail, head in steps:
            if not graph[tail] >> head & 1:
                return wrong(f"there is no edge between {tail + 1} and {head + 1}")
        return RIGHT

    def solve(self, instance: Instance) -> str:
        """Search with :meth:`search`."""
        path = self.search(instance.neighbours.tolist())[0]
        return NONE if path is None else self.write_answer(path)

    def plan(self, instance: Instance) -> list[int]:
        """Return the vertices of the solution, which are the actions."""
        return self.search(instance.neighbours.tolist())[0] or []

    def difficulty(self, instance: Instance) -> float:
        """Count the vertices that :meth:`search` enters."""
        return float(self.search(instance.neighbours.tolist())[1])

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Answer ``none`` half of the time, otherwise the vertices in random order."""
        return NONE if dice.below(2) else self.write_answer(dice.shuffled(range(self.count)))

    def heuristic(self, instance: Instance) -> str:
        """Go from a vertex of least degree to the neighbour with the fewest unvisited ones.

        This is repeated at every vertex (Warnsdorff 1823).

        Answer ``none`` if the route ends early or cannot be closed.
        """
        graph = instance.neighbours.tolist()
        path = [min(range(self.count), key=lambda v: graph[v].bit_count())]
        unvisited = 2**self.count - 1 & ~(1 << path[0])
        while ahead := graph[path[-1]] & unvisited:
            path.append(min(members(ahead), key=lambda v: (graph[v] & unvisited).bit_count()))
            unvisited &= ~(1 << path[-1])
        unclosed = self.closed and not graph[path[-1]] >> path[0] & 1
        return NONE if unvisited or unclosed else self.write_answer(path)

    def constants(self) -> Sequence[str]:
        """Return ``none``, and the vertices in order of their numbers."""
        return [NONE, self.write_answer(range(self.count))]

    @staticmethod
    def write_answer(path: Sequence[int]) -> str:
        """Write vertices as an answer."""
        return " ".join(str(vertex + 1) for vertex in path)


class HamiltonianPathPuzzle(HamiltonianPuzzle):
    """A path through every vertex."""

    name = "HamiltonianPath"
    few: ClassVar[dict[float, float]] = {8: 780, 12: 830_000}
    closed, density = False, 11


class HamiltonianCyclePuzzle(HamiltonianPuzzle):
    """A cycle through every vertex."""

    name = "HamiltonianCycle"
    few: ClassVar[dict[float, float]] = {8: 670}
    closed, density = True, 13

    def _instance_of_kind(self, dice: Dice, *, solvable: bool) -> Instance:
        """Return a graph of this kind with degrees for which both kinds of graphs are found.

        So the degrees of both kinds have the same distribution.
        """
        while True:
            graph = random_graph(dice, self.count, self.edges)
            if not self._is_plausible(graph):
                continue
            graphs: dict[bool, list[int]] = {}
            for _ in range(_TRIALS):
                if self._is_plausible(graph):
                    graphs.setdefault(self.search(graph)[0] is not None, graph)
                    if len(graphs) == 2:
                        return Instance(np.array(graphs[solvable], np.int32), np.int8(solvable))
                graph = swap_edges(graph, dice)

    def _is_plausible(self, graph: Sequence[int]) -> bool:
        """Return whether the graph passes quick checks for a cycle.

        Degrees allow a cycle, no vertex has three neighbours of degree two, and the graph is
        connected.
        """
        narrow = sum(1 << vertex for vertex, bits in enumerate(graph) if bits.bit_count() == 2)
        return super()._is_plausible(graph) and all(
            (bits & narrow).bit_count() < 3 for bits in graph
        )


class SolvablePathPuzzle(HamiltonianPathPuzzle):
    """The puzzle on graphs with a Hamiltonian path only."""

    name = "HamiltonianPath, solvable"
    all_solvable = True

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a graph with a path."""
        return self._instance_of_kind(dice, solvable=True)


class SolvableCyclePuzzle(HamiltonianCyclePuzzle):
    """The puzzle on graphs with a Hamiltonian cycle only."""

    name = "HamiltonianCycle, solvable"
    all_solvable = True

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a graph with a cycle."""
        return self._instance_of_kind(dice, solvable=True)


class PathState(NamedTuple):
    """The path so far."""

    path: jax.Array
    """int8 ``(n,)``: vertices in order; -1 where there is none yet."""
    unvisited: jax.Array
    """int32: bit v is set if vertex v is unvisited."""
    visited: jax.Array
    """int32: number of visited vertices."""
    last: jax.Array
    """int32: the last vertex visited; -1 at first."""
    ahead: jax.Array
    """int32: the bits of the vertices that can be visited next."""


class HamiltonianPath(PuzzleTask[PathState]):
    """The interactive form, for a path."""

    puzzle: HamiltonianPuzzle
    puzzle_class: ClassVar[type[HamiltonianPuzzle]] = SolvablePathPuzzle
    measures: ClassVar[dict[str, str]] = {"visited": "fraction of the vertices visited"}
    picture_shape: ClassVar[tuple[int, int, int]] = (360, 360, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        n = self.count = self.puzzle.count
        self.action_space = spaces.Discrete(n)
        self.observation_space = self.box(0.0, 1.0, (n * n + 4 * n,))
        self.reward_space = self.box(0.0, 1.0 + 1.0 / n)
        self._vertices = np.arange(n, dtype=np.int32)

    def initial(self, key: jax.Array, params: Params) -> PathState:
        """Begin before the first vertex."""
        every = jnp.int32(2**self.count - 1)
        return PathState(
            jnp.full(self.count, -1, jnp.int8), every, jnp.int32(0), jnp.int32(-1), every
        )

    def transition(
        self, state: PathState, action: jax.Array, key: jax.Array, params: Params
    ) -> PathState:
        """Visit a vertex."""
        is_entered = self._vertices == action
        unvisited = state.unvisited & ~(np.int32(1) << action.astype(np.int32))
        return PathState(
            path=jnp.where(self._vertices == state.visited, action.astype(jnp.int8), state.path),
            unvisited=unvisited,
            visited=state.visited + 1,
            last=action.astype(jnp.int32),
            ahead=jnp.where(is_entered, params.instance.neighbours, 0).sum(dtype=jnp.int32)
            & unvisited,
        )

    def observation(self, state: PathState, key: jax.Array, params: Params) -> jax.Array:
        """Return the graph and the status of each vertex."""
        rows = params.instance.neighbours
        matrix = (rows[:, None] >> self._vertices) & 1
        free = lax.population_count(rows & state.unvisited) / self.count
        first = self._vertices == state.path[0]
        blocks = (
            matrix.reshape(-1),
            (state.unvisited >> self._vertices) & 1,
            self._vertices == state.last,
            first,
            free,
        )
        return jnp.concatenate([block.astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        n = self.count
        return (
            Component("adjacency", "[vertex, vertex]: whether an edge joins the two", shape=(n, n)),
            Component("unvisited", "whether each vertex is unvisited", shape=(n,)),
            Component("last", "which vertex was visited last, one-hot", shape=(n,)),
            Component("first", "which vertex was visited first, one-hot", shape=(n,)),
            Component(
                "free_neighbours", "how many unvisited neighbours each vertex has", f"{n}", (n,)
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a vertex."""
        return (Component("visit", "visit the vertex of this number next", shape=(self.count,)),)

    def reward(
        self,
        state: PathState,
        action: jax.Array,
        next_state: PathState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return a share for each vertex, plus 1 for a solution."""
        new_visits = next_state.visited - state.visited
        solved_now = (new_visits > 0) & self._is_solved(next_state, params)
        return new_visits.astype(self.dtype) / self.count + solved_now.astype(self.dtype)

    def terminal(self, state: PathState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether there is nowhere to go."""
        return state.ahead == 0

    def info(self, state: PathState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: every vertex is visited (and the cycle can be closed)."""
        visited = state.visited.astype(self.dtype) / self.count
        return {"success": self._is_solved(state, params), "visited": visited}

    def action_mask(self, state: PathState, params: Params) -> jax.Array:
        """Return the unvisited neighbours of the last vertex, bool ``(n,)``.

        At first these are all vertices.
        """
        return (state.ahead >> self._vertices) & 1 == 1

    def _is_solved(self, state: PathState, params: Params) -> jax.Array:
        complete = state.unvisited == 0
        if not self.puzzle.closed:
            return complete
        closing = jnp.where(self._vertices == state.last, params.instance.neighbours, 0).sum(
            dtype=jnp.int32
        )
        return complete & ((closing >> jnp.maximum(state.path[0], 0).astype(jnp.int32)) & 1 == 1)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: PathState, params: Params) -> str:
        """Show the rules, the graph and the path."""
        path = self.puzzle.write_answer(self._path(state)) or "none"
        return (
            f"{self.puzzle.rules()}\n\n{self.puzzle.describe_graph(params.instance)}\nVisited so "
            f"far, in order: {path}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            f"Answer with the vertex to visit next, 1 to {self.count}: an unvisited neighbour of "
            "the last one."
        )

    def parse(self, text: str, state: PathState, params: Params) -> np.ndarray:
        """Read the number of a vertex, counted from 1.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(
            parsing.integer(text.strip(), 1, self.count, "vertex") - 1, self.action_space.dtype
        )

    def spell(self, action: np.ndarray, state: PathState, params: Params) -> str:
        """Return the number of the vertex."""
        return str(int(action) + 1)

    def why_illegal(self, action: np.ndarray, state: PathState, params: Params) -> str:
        """Say that the vertex is visited or no neighbour."""
        if not int(state.unvisited) >> int(action) & 1:
            return f"vertex {int(action) + 1} is visited already"
        return f"there is no edge between {int(state.last) + 1} and {int(action) + 1}"

    def why_over(self, state: PathState, params: Params, info: dict[str, Any]) -> str:
        """Say whether it is solved or stuck."""
        if info["success"]:
            return "every vertex is visited"
        return (
            "the last vertex has no unvisited neighbour"
            if int(state.unvisited)
            else "no edge leads back to the first vertex"
        )

    def draw(self, state: PathState, params: Params) -> np.ndarray:
        """Draw vertices on a circle; edges grey, the path blue."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(image)
        angles = 2 * np.pi * np.arange(self.count) / self.count
        points = [(width / 2 + 140 * np.sin(a), height / 2 - 140 * np.cos(a)) for a in angles]
        path = self._path(state)
        for vertex, bits in enumerate(params.instance.neighbours.tolist()):
            for neighbour in members(bits):
                pen.line((*points[vertex], *points[neighbour]), LINE, 2)
        closing = path[:1] if self.puzzle.closed and bool(self._is_solved(state, params)) else []
        route = path + closing
        for vertex, neighbour in pairwise(route):
            pen.line((*points[vertex], *points[neighbour]), FILLED, 4)
        font = ImageFont.load_default(14)
        for vertex, (x, y) in enumerate(points):
            pen.ellipse(
                (x - 13, y - 13, x + 13, y + 13),
                fill=FILLED if vertex in path else CLUE_PAPER,
                outline=INK,
            )
            pen.text((x, y), str(vertex + 1), PAPER if vertex in path else INK, font, anchor="mm")
        return np.asarray(image)

    @staticmethod
    def _path(state: PathState) -> list[int]:
        return [vertex for vertex in np.asarray(state.path).tolist() if vertex >= 0]


class HamiltonianCycle(HamiltonianPath):
    """The interactive form, for a cycle."""

    puzzle_class = SolvableCyclePuzzle
