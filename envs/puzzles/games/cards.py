"""Cards of the puzzles in ``games``."""

from functools import partial

from ..shared.card import puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "TicTacToe", "tic_tac_toe:TicTacToe", "tic_tac_toe:TicTacToePuzzle",
        "masked", "text", "game", player="tic_tac_toe:PerfectPlayer",
        summary=(
            "Play tic-tac-toe on 4 x 4 cells from a given position as well as can be, against a "
            "perfect opponent."
        ),
        source="solved by retrograde analysis",
        horizon=4, optimum=1.0, variant=True,
        chance=(
            "a game has few moves left, and from many positions several of them keep its best "
            "result"
        ),
        difficulties={"medium": 6, "easy": 4, "hard": 8},
    ),
    _card(
        "CheckmateInOne", "checkmate:CheckmateInOne", "checkmate:CheckmatePuzzle", "masked", "text",
        "game", summary="Find the move that checkmates at once, on a board of few pieces.",
        source="laws of chess (FIDE 2023) without castling", horizon=2, optimum=1.0, variant=True,
        difficulties={"medium": 8, "easy": 4, "hard": 14},
    ),
)
