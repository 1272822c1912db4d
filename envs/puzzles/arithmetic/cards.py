"""Cards of the puzzles in ``arithmetic``."""

from functools import partial

from ..shared.card import EASY_IS_SMALL, puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "Game24", "game24:Game24", "game24:Game24Puzzle", "masked", "text", "arithmetic",
        summary="Make 24 of four cards, combining two numbers a step.",
        source="the card game of 24; every hand that can be solved, by enumeration",
        horizon=3, optimum=1.0, variant=True,
        difficulties={"medium": 2, "easy": 1, "hard": 3},
    ),
    _card(
        "Countdown", "countdown:Countdown", "countdown:CountdownPuzzle", "masked", "text",
        "arithmetic",
        summary="Make the target of some of the numbers, combining two numbers a step.",
        source=(
            "the television game Des chiffres et des lettres; every target can be reached, by "
            "construction"
        ),
        horizon=5, optimum=1.0, variant=True,
        chance="an easy instance has few numbers, and so there are few ways to combine them",
        difficulties={"medium": 5, "easy": 3, "hard": 6},
    ),
    _card(
        "MagicSquare", "magic_square:MagicSquare", "magic_square:MagicSquarePuzzle",
        "masked", "text", "grid", "arithmetic",
        summary=(
            "Complete a square of the numbers 1 to n * n so that rows, columns and diagonals have "
            "one sum."
        ),
        source=(
            "classical; squares of side 4 counted by Frenicle 1693, of side 5 by Schroeppel 1973"
        ),
        horizon=14, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 4, "easy": 3, "hard": 5},
    ),
    _card(
        "SymbolicGrid", "symbolic_grid:SymbolicGrid", "symbolic_grid:SymbolicGridPuzzle",
        "masked", "text", "grid", "arithmetic",
        summary="Find the digits that letters in a grid stand for by the sums of rows and columns.",
        source="one solution by construction",
        horizon=6, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 4, "easy": 3, "hard": 5},
    ),
    _card(
        "Geometry", "geometry:Geometry", "geometry:GeometryPuzzle", "text", "arithmetic", "writing",
        summary="Construct points in the plane one from another, and write their coordinates.",
        source="Euclid's Elements in Cartesian coordinates; points inside a triangle: Pick 1899",
        horizon=6, optimum=2.0, variant=True,
        difficulties={"medium": 2, "easy": 1, "hard": 3},
    ),
    _card(
        "Game24Cards", "game24_cards:Game24Cards", "game24_cards:Game24CardsPuzzle",
        "masked", "text", "arithmetic", "pixels",
        summary="See four playing cards and write a formula that makes 24 of them, token by token.",
        source=(
            "Points24 and EZPoints of Zhai et al. 2024, arXiv:2405.10292; every hand that can be "
            "solved"
        ),
        horizon=12, optimum=1.0, variant=True,
        chance="an easy hand has few ways to combine its cards, and several of them make 24",
        difficulties={"medium": 2, "easy": 0, "hard": 3},
        choices={"observation": ("pixels", "symbols")},
    ),
)
