"""Graphs of few vertices, as bits: a graph is the set of neighbours of each vertex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlbench_suite.puzzle.dice import Dice

Graph = Sequence[int]
"""Neighbours of each vertex, as bits."""


def random_graph(dice: Dice, vertices: int, edges: int) -> list[int]:
    """Draw a graph. Every set of this number of edges is equally likely."""
    graph = [0] * vertices
    pairs = [(vertex, neighbour) for neighbour in range(vertices) for vertex in range(neighbour)]
    for vertex, neighbour in dice.sample(pairs, edges):
        graph[vertex] |= 1 << neighbour
        graph[neighbour] |= 1 << vertex
    return graph


def swap_edges(graph: Graph, dice: Dice) -> list[int]:
    """Return the graph after two of its edges, a-b and c-d, have become a-d and c-b.

    Every degree stays.

    The pair is drawn at random. If the new edges are loops or not new, the graph stays as it is.
    """
    edges = [
        (vertex, neighbour) for vertex, bits in enumerate(graph) for neighbour in members(bits)
    ]
    (a, b), (c, d) = dice.choice(edges), dice.choice(edges)
    new = list(graph)
    if a not in (c, d) and b not in (c, d) and not graph[a] >> d & 1 and not graph[c] >> b & 1:
        for vertex, neighbour in ((a, b), (c, d), (a, d), (c, b)):
            new[vertex] ^= 1 << neighbour
            new[neighbour] ^= 1 << vertex
    return new


def members(bits: int) -> Iterator[int]:
    """Return the vertices of a set, the least first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def reachable_vertices(graph: Graph, start: int, within: int) -> int:
    """Return the vertices that can be reached from ``start`` through ``within``.

    Both are sets of vertices.
    """
    visited = rim = start & within
    while rim:
        around = 0
        for vertex in members(rim):
            around |= graph[vertex]
        rim = around & within & ~visited
        visited |= rim
    return visited


def hamiltonian_cycle(graph: Graph) -> tuple[list[int] | None, int]:
    """Return a cycle through every vertex, from vertex 0, by depth-first search.

    Vertices with the fewest ways on come first.

    A branch is left as soon as an unvisited vertex has too few ways in and out (two, or one and
    back to the start; the latter for one vertex only, the last), or unvisited vertices cannot all
    be reached.

    Returns:
        The cycle, or None where there is none; and how many vertices the search entered until it
        knew.
    """
    entered = 0

    def search(path: list[int], unvisited: int) -> list[int] | None:
        nonlocal entered
        entered += 1
        current_vertex = path[-1]
        if not unvisited:
            return path if graph[current_vertex] & 1 else None
        open_to, last = unvisited | 1 << current_vertex, -1
        for vertex in members(unvisited):
            if (graph[vertex] & open_to).bit_count() < 2:
                if last >= 0 or not graph[vertex] & 1:
                    return None
                last = vertex
        ahead = graph[current_vertex] & unvisited
        if reachable_vertices(graph, ahead & -ahead, unvisited) != unvisited:
            return None
        for vertex in sorted(members(ahead), key=lambda v: (graph[v] & unvisited).bit_count()):
            if (cycle := search([*path, vertex], unvisited & ~(1 << vertex))) is not None:
                return cycle
        return None

    return search([0], 2 ** len(graph) - 2), entered


def hamiltonian_path(graph: Graph) -> tuple[list[int] | None, int]:
    """Return a path through every vertex.

    It is a cycle of the graph with one more vertex that is next to all others.

    The result has the form of that of :func:`hamiltonian_cycle`.
    """
    cycle, entered = hamiltonian_cycle(
        [2 ** (len(graph) + 1) - 2, *(row << 1 | 1 for row in graph)]
    )
    return cycle and [vertex - 1 for vertex in cycle[1:]], entered


def canonical_graph(graph: Graph) -> bytes:
    """Return the same bytes for graphs that differ only by the names of their vertices.

    Other graphs have other bytes.

    Vertices are distinguished by their neighbours' kinds until that ends; among those that are
    still alike, each is tried as the first (McKay 1981, without its shortcuts for symmetric
    graphs).
    """
    count = len(graph)
    around = [list(members(bits)) for bits in graph]

    def refine(kinds: list[int]) -> list[int]:
        while True:
            looks = [(kinds[v], tuple(sorted([kinds[w] for w in around[v]]))) for v in range(count)]
            ranks = {look: rank for rank, look in enumerate(sorted(set(looks)))}
            new = [ranks[look] for look in looks]
            if len(set(new)) == len(set(kinds)):
                return new
            kinds = new

    def smallest_rows(kinds: list[int]) -> list[int]:
        kinds = refine(kinds)
        alike = next((kind for kind in sorted(set(kinds)) if kinds.count(kind) > 1), None)
        if alike is None:
            rank_of = {
                vertex: rank
                for rank, vertex in enumerate(sorted(range(count), key=kinds.__getitem__))
            }
            rows = [0] * count
            for vertex, bits in enumerate(graph):
                rows[rank_of[vertex]] = sum(1 << rank_of[neighbour] for neighbour in members(bits))
            return rows
        trials = (v for v in range(count) if kinds[v] == alike)
        return min(
            smallest_rows([2 * kind + (w != v) for w, kind in enumerate(kinds)]) for v in trials
        )

    return b"".join(row.to_bytes(2, "big") for row in smallest_rows([0] * count))
