"""Cards of the puzzles in ``logic``."""

from functools import partial

from ..shared.card import SMALL, puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "KnightsAndKnaves", "knights_and_knaves:KnightsAndKnaves",
        "knights_and_knaves:KnightsAndKnavesPuzzle", "masked", "text", "logic",
        summary="Find out who tells the truth and who lies, a person a step.",
        source="Smullyan 1978, What Is the Name of This Book?; one solution by truth table",
        horizon=9, optimum=2.0, variant=True, chance=SMALL,
        difficulties={"medium": 6, "easy": 4, "hard": 9},
    ),
    _card(
        "Zebra", "zebra:Zebra", "zebra:ZebraPuzzle", "masked", "text", "grid", "logic",
        summary="Find out who lives where with what from clues, a cell a step.",
        source=(
            "Life International, 17 December 1962; one solution and no clue to spare, by "
            "construction"
        ),
        horizon=25, optimum=2.0, variant=True,
        difficulties={"medium": 4, "easy": 3, "hard": 5},
    ),
    _card(
        "Entailment", "entailment:Entailment", "entailment:EntailmentPuzzle", "text", "logic",
        summary="Do the premises entail the conclusion, contradict it, or neither?",
        source=(
            "Loewenheim 1915, doi:10.1007/BF01458217: monadic logic is decidable; balanced, "
            "decided exactly"
        ),
        horizon=2, optimum=1.0, variant=True,
        chance="there are three answers, each right in a third of the questions",
        difficulties={"medium": 6, "easy": 3, "hard": 9},
    ),
    _card(
        "SelfReference", "self_reference:SelfReference", "self_reference:SelfReferencePuzzle",
        "masked", "text", "grid", "logic",
        summary="Find out which of some statements about each other are true, a statement a step.",
        source=(
            "one solution by enumeration; self-reference: Smullyan 1978, What Is the Name of This "
            "Book?"
        ),
        horizon=9, optimum=2.0, variant=True,
        chance=SMALL,
        difficulties={"medium": 6, "easy": 3, "hard": 9},
    ),
)
