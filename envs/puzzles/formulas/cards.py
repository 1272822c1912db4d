"""Cards of the puzzles in ``formulas``."""

from functools import partial

from ..shared.card import puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "SAT", "sat:SAT", "sat:SATPuzzle", "masked", "text", player="dpll:DPLL",
        summary="Find a model of a quietly planted random 3-SAT formula by flipping variables.",
        source=(
            "Jia, Moore & Strain 2007, doi:10.1613/jair.2039; focused search: Papadimitriou 1991"
        ),
        horizon=60, optimum=1.125,
        chance=(
            "random legal flips are the focused random walk of Papadimitriou 1991, which solves "
            "some small formulas"
        ),
        difficulties={"medium": 20, "easy": 10, "hard": 32},
    ),
    _card(
        "SAT50", "sat:SAT50", "sat:SAT50Puzzle", "masked", "text", "formula",
        player="flips:GoalPlayer",
        summary=(
            "Find a model of a quietly planted random 3-SAT formula of 50 variables by flipping "
            "variables."
        ),
        source=(
            "Jia, Moore & Strain 2007, doi:10.1613/jair.2039; focused search: Papadimitriou 1991"
        ),
        horizon=150, optimum=1.125, variant=True,
        difficulties={"medium": 50, "easy": 40, "hard": 60},
    ),
    _card(
        "Saturn", "saturn:Saturn", "saturn:SaturnPuzzle", "masked", "text", "formula",
        player="flips:GoalPlayer",
        summary="Find a model of a small planted formula of SATURN's construction.",
        source="Liu et al. 2025, arXiv:2505.16368", horizon=10, variant=True,
        chance=(
            "formulas are small, so that one flip solves some, and random legal flips are a "
            "focused random walk"
        ),
        difficulties={"medium": 3, "easy": 2, "hard": 4},
    ),
    _card(
        "UniqueSAT", "unique_sat:UniqueSAT", "unique_sat:UniqueSATPuzzle",
        "masked", "text", "formula", player="flips:GoalPlayer",
        summary="Find the only model of a 3-SAT formula.",
        source=(
            "one model by construction; planting: Jia, Moore & Strain 2007, doi:10.1613/jair.2039"
        ),
        horizon=72, variant=True,
        chance="random legal flips are a focused random walk, which solves some easy formulas",
        difficulties={"medium": 16, "easy": 8, "hard": 24},
    ),
    _card(
        "MaxSAT", "max_sat:MaxSAT", "max_sat:MaxSATPuzzle", "masked", "text", "formula",
        player="flips:GoalPlayer",
        summary="Leave as few clauses of an over-constrained 3-SAT formula unsatisfied as can be.",
        source="random Max-3-SAT; optimum by enumeration", horizon=48, variant=True,
        chance=(
            "random legal flips are a focused random walk, which meets the optimum of some small "
            "formulas"
        ),
        difficulties={"medium": 12, "easy": 8, "hard": 16},
    ),
    _card(
        "RefuteSAT", "refute_sat:RefuteSAT", "refute_sat:RefuteSATPuzzle", "masked", "text",
        "formula",
        summary="Decide whether a 3-SAT formula has a model, by branching; half of them have one.",
        source=(
            "Davis, Logemann & Loveland 1962; sizes: Crawford & Auton 1996, "
            "doi:10.1016/0004-3702(95)00046-1"
        ),
        horizon=160, optimum=2.0, variant=True,
        chance="proofs of small formulas are short, so that branching at random sometimes suffices",
        difficulties={"medium": 10, "easy": 6, "hard": 14},
    ),
    _card(
        "ThresholdSAT", "threshold_sat:ThresholdSAT", "threshold_sat:ThresholdSATPuzzle",
        "masked", "text", "formula", player="threshold_sat:DecidingPlayer",
        solvable="threshold_sat:SolvableThresholdSATPuzzle",
        summary=(
            "Find a model of a uniform 3-SAT formula at the threshold, or say that it has none; "
            "half of them do."
        ),
        source=(
            "Mitchell, Selman & Levesque 1992; sizes: Crawford & Auton 1996, "
            "doi:10.1016/0004-3702(95)00046-1"
        ),
        horizon=300, optimum=1.125, variant=True,
        chance="saying that there is no model is right for half of the formulas",
        difficulties={"medium": 50, "easy": 20, "hard": 75},
    ),
)
