"""Cards of the puzzles in ``routes``."""

from functools import partial

from ..shared.card import puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "Maze", "maze:Maze", "maze:MazePuzzle", "masked", "text", "path",
        summary="Find the shortest way through a maze.",
        source="spanning trees with some walls taken down; exact distances by Dijkstra 1959",
        horizon=150, optimum=1.9, variant=True,
        chance="a random walk comes by the exit of a small maze within the time",
        difficulties={"medium": 9, "easy": 6, "hard": 12},
    ),
    _card(
        "Navigation", "navigation:Navigation", "navigation:NavigationPuzzle", "masked", "text",
        "path", summary="Find the shortest route on roads that are described in words.",
        source="random road maps; exact distances by Dijkstra 1959, doi:10.1007/BF01386390",
        horizon=60, optimum=1.9, variant=True,
        chance="easy maps are small, and a random walk comes by the goal within the time",
        difficulties={"medium": 5, "easy": 3, "hard": 7},
    ),
    _card(
        "HamiltonianPath", "hamiltonian:HamiltonianPath", "hamiltonian:HamiltonianPathPuzzle",
        "masked", "text", "path", solvable="hamiltonian:SolvablePathPuzzle",
        summary="Visit every vertex of a graph once.",
        source="random graphs of a fixed number of edges; both answers proven by exhaustive search",
        horizon=16, optimum=2.0, variant=True,
        chance="easy graphs are small, so that a few choices at random may visit every vertex",
        difficulties={"medium": 12, "easy": 8, "hard": 16},
    ),
    _card(
        "HamiltonianCycle", "hamiltonian:HamiltonianCycle", "hamiltonian:HamiltonianCyclePuzzle",
        "masked", "text", "path",
        solvable="hamiltonian:SolvableCyclePuzzle",
        summary="Visit every vertex of a graph once and return.",
        source="random graphs of a fixed number of edges; both answers proven by exhaustive search",
        horizon=16, optimum=2.0, variant=True,
        chance="easy graphs are small, so that a few choices at random may visit every vertex",
        difficulties={"medium": 12, "easy": 8, "hard": 16},
    ),
)
