"""Cards of the puzzles in ``grids``."""

from functools import partial

from ..shared.card import EASY_IS_SMALL, SMALL, puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "Sudoku", "sudoku:Sudoku", "sudoku:SudokuPuzzle", "masked", "text", "grid",
        summary="Fill a 9 x 9 Sudoku that has one solution, a digit a step.",
        source=(
            "one solution by construction; McGuire, Tugemann & Civario 2014, "
            "doi:10.1080/10586458.2013.870056"
        ),
        horizon=56, optimum=2.0, variant=True,
        difficulties={"medium": 45, "easy": 30, "hard": 53},
    ),
    _card(
        "Sudoku4", "sudoku:Sudoku4", "sudoku:Sudoku4Puzzle", "masked", "text", "grid",
        summary="Fill a 4 x 4 Sudoku that has one solution, a digit a step.",
        source="one solution by construction",
        horizon=11, optimum=2.0,
        chance=SMALL,
        open_loop=(
            "the action mask forbids repeats, and few digits are left for a cell of so small a grid"
        ),
        difficulties={"medium": 9, "easy": 6, "hard": 11},
    ),
    _card(
        "Binairo", "binairo:Binairo", "binairo:BinairoPuzzle", "masked", "text", "grid",
        summary=(
            "Fill a grid with zeros and ones: as many of each in a line, no three equal in a row, "
            "no lines equal."
        ),
        source=(
            "one solution by construction; NP-complete: De Biasi 2012, Binary Puzzle is NP-complete"
        ),
        horizon=40, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 6, "easy": 4, "hard": 8},
    ),
    _card(
        "Kakurasu", "kakurasu:Kakurasu", "kakurasu:KakurasuPuzzle", "masked", "text", "grid",
        summary=(
            "Fill cells whose positions add up to the clues of rows and columns, a cell a step."
        ),
        source="one solution by construction",
        horizon=64, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 6, "easy": 4, "hard": 8},
    ),
    _card(
        "LightUp", "light_up:LightUp", "light_up:LightUpPuzzle", "masked", "text", "grid",
        summary="Put bulbs that light every cell and not each other (Akari), a cell a step.",
        source="one solution by construction",
        horizon=78, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 7, "easy": 4, "hard": 10},
    ),
    _card(
        "Hitori", "hitori:Hitori", "hitori:HitoriPuzzle", "masked", "text", "grid",
        summary=(
            "Blacken cells so that no number comes twice among the white of a line, a cell a step."
        ),
        source="one solution by construction",
        horizon=64, optimum=2.0, variant=True,
        difficulties={"medium": 6, "easy": 4, "hard": 8},
    ),
    _card(
        "Minesweeper", "minesweeper:Minesweeper", "minesweeper:MinesweeperPuzzle", "masked", "text",
        "grid",
        summary=(
            "Mark every hidden cell of a board as mine or safe, by reasoning alone, a cell a step."
        ),
        source=(
            "one solution by construction; consistency is NP-complete: Kaye 2000, "
            "doi:10.1007/BF03025367"
        ),
        horizon=81, optimum=2.0, variant=True,
        difficulties={"medium": 6, "easy": 4, "hard": 9},
    ),
    _card(
        "Slant", "slant:Slant", "slant:SlantPuzzle", "masked", "text", "grid",
        summary=(
            "Put a diagonal into every cell, as many to a corner as it says and without a loop, a "
            "cell a step."
        ),
        source="one solution by construction",
        horizon=49, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 5, "easy": 3, "hard": 7},
    ),
    _card(
        "Skyscraper", "skyscraper:Skyscraper", "skyscraper:SkyscraperPuzzle", "masked", "text",
        "grid",
        summary="Fill a Latin square of towers by how many of them are seen from the edges.",
        source="one solution by construction", horizon=36, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL, difficulties={"medium": 5, "easy": 4, "hard": 6},
    ),
    _card(
        "SumSkyscraper", "skyscraper:SumSkyscraper", "skyscraper:SumSkyscraperPuzzle", "masked",
        "text", "grid",
        summary=(
            "Fill a Latin square of towers by the sum of the heights that are seen from the edges."
        ),
        source="one solution by construction; Skyscraper with sums",
        horizon=36, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 5, "easy": 4, "hard": 6},
    ),
    _card(
        "Campsite", "campsite:Campsite", "campsite:CampsitePuzzle", "masked", "text", "grid",
        summary=(
            "Pitch a tent beside every tree, no two tents touching, by the counts of rows and "
            "columns."
        ),
        source="one solution by construction",
        horizon=52, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL,
        difficulties={"medium": 6, "easy": 5, "hard": 8},
    ),
    _card(
        "StarBattle", "star_battle:StarBattle", "star_battle:StarBattlePuzzle", "masked", "text",
        "grid",
        summary="Place one star in every row, column and region of a grid so that no two touch.",
        source="one solution by construction", horizon=49, optimum=2.0, variant=True,
        chance=EASY_IS_SMALL, difficulties={"medium": 6, "easy": 5, "hard": 7},
    ),
)
