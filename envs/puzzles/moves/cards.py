"""Cards of the puzzles in ``moves``."""

from functools import partial

from ..shared.card import puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "EightPuzzle", "sliding:Eight", "sliding:EightPuzzle", "masked", "text", "moves",
        summary="Slide the tiles of a 3 x 3 board into order with the fewest moves.",
        source="exact distances by breadth-first search; Reinefeld 1993, IJCAI 13:248",
        horizon=100, optimum=1.9, variant=True,
        difficulties={"medium": 20, "easy": 8, "hard": 27},
    ),
    _card(
        "FifteenPuzzle", "sliding:Fifteen", "sliding:FifteenPuzzle", "masked", "text", "moves",
        summary="Slide the tiles of a 4 x 4 board into order with the fewest moves.",
        source=(
            "exact distances by iterative deepening; Korf 1985, doi:10.1016/0004-3702(85)90084-0"
        ),
        horizon=100, optimum=1.9, variant=True,
        difficulties={"medium": 20, "easy": 8, "hard": 24},
    ),
    _card(
        "NinePuzzle", "shifting:Nine", "shifting:NinePuzzle", "text", "moves",
        summary="Shift the rows and columns of a 3 x 3 board until its tiles are in order.",
        source="exact distances by breadth-first search",
        horizon=40, optimum=1.9, variant=True,
        difficulties={"medium": 5, "easy": 3, "hard": 7},
    ),
    _card(
        "SixteenPuzzle", "shifting:Sixteen", "shifting:SixteenPuzzle", "text", "moves",
        summary="Shift the rows and columns of a 4 x 4 board until its tiles are in order.",
        source="exact distances by search from both ends",
        horizon=40, optimum=1.9, variant=True,
        difficulties={"medium": 5, "easy": 3, "hard": 7},
    ),
    _card(
        "Twiddle", "twiddle:Twiddle", "twiddle:TwiddlePuzzle", "text", "moves",
        summary="Rotate 2 x 2 blocks of a 3 x 3 board until its tiles are in order.",
        source="the puzzle of Simon Tatham's collection; exact distances by breadth-first search",
        horizon=40, optimum=1.9, variant=True,
        difficulties={"medium": 7, "easy": 4, "hard": 9},
    ),
    _card(
        "StackPermutation", "stack_permutation:StackPermutation",
        "stack_permutation:StackPermutationPuzzle", "masked", "text", "sequence",
        solvable="stack_permutation:PossiblePermutationPuzzle",
        summary="Push and pop a stack so that 1 to n come out in a given order.",
        source="Knuth, The Art of Computer Programming 1, section 2.2.1", horizon=48, optimum=2.0,
        variant=True, difficulties={"medium": 14, "easy": 6, "hard": 22},
    ),
    _card(
        "CarPainting", "car_painting:CarPainting", "car_painting:CarPaintingPuzzle", "masked",
        "text", "sequence",
        summary=(
            "Reorder a line of cars within bounds so that their colour changes as rarely as "
            "possible."
        ),
        source=(
            "exact optimum by dynamic programming; Epping et al. 2004, "
            "doi:10.1016/S0166-218X(03)00442-6"
        ),
        horizon=28, optimum=1.0, variant=True,
        difficulties={"medium": 16, "easy": 8, "hard": 26},
    ),
    _card(
        "CubeRotation", "cube_rotation:CubeRotation", "cube_rotation:CubeRotationPuzzle", "text",
        "moves", "rotation",
        summary=(
            "Follow a colour on a cube that is turned, and turn the cube back by quarter turns."
        ),
        source=(
            "24 rotations of a cube; mental rotation: Shepard & Metzler 1971, "
            "doi:10.1126/science.171.3972.701"
        ),
        horizon=12, optimum=1.5, variant=True,
        chance=(
            "a cube has 24 orientations, and a dozen random quarter turns often come by the wanted "
            "one, as turns in one direction do of a tenth"
        ),
        difficulties={"medium": 8, "easy": 4, "hard": 16},
    ),
    _card(
        "Jigsaw", "jigsaw:Jigsaw", "jigsaw:JigsawPuzzle", "text", "moves", "pixels",
        summary="Put the shuffled patches of a picture back into their places, two a step.",
        source=(
            "one arrangement by exhaustive search; as a task for seeing models: Wu et al. 2025, "
            "arXiv:2509.25190"
        ),
        horizon=50, optimum=1.9, variant=True,
        chance=(
            "an easy picture has four patches, hence 24 arrangements, and fifty random swaps come "
            "by the right one; the first swap alone restores one in twenty"
        ),
        difficulties={"medium": 3, "easy": 2, "hard": 4},
        choices={"observation": ("structured", "pixels")},
    ),
)
