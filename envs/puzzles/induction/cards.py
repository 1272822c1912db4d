"""Cards of the puzzles in ``induction``."""

from functools import partial

from ..shared.card import puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "ListFunctions", "list_functions:ListFunctions", "list_functions:ListFunctionsPuzzle",
        "text", "induction",
        summary=(
            "Infer from examples what a composed function does to lists of digits, and apply it, "
            "step by step."
        ),
        source=(
            "task: Rule 2020, hdl.handle.net/1721.1/129232; one answer by enumeration of the family"
        ),
        horizon=3, optimum=2.0, variant=True,
        difficulties={"medium": 2, "easy": 1, "hard": 3},
    ),
    _card(
        "Arc1D", "arc_1d:Arc1D", "arc_1d:Arc1DPuzzle", "text", "induction",
        summary=(
            "Infer from examples what is done to strips of coloured cells, and do it, step by step."
        ),
        source="task: Xu et al. 2024, arXiv:2305.18354; one answer by enumeration of the family",
        horizon=3, optimum=2.0, variant=True,
        difficulties={"medium": 2, "easy": 1, "hard": 3},
    ),
    _card(
        "RuleInduction", "rule_building:RuleInduction", "rule_induction:RuleInductionPuzzle",
        "masked", "text", "induction", "logic",
        summary=(
            "Find the Horn clause behind examples in a small world of relations, a literal a step."
        ),
        source=(
            "task: Muggleton 1991, doi:10.1007/BF03037089; one meaning of all short rules that "
            "fit, by enumeration"
        ),
        horizon=4, optimum=2.0, variant=True,
        difficulties={"medium": 3, "easy": 2, "hard": 4},
    ),
)
