"""SAT and puzzles: seeded generators, verifiers that check rules, exact difficulty."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/SAT-v0",
        family="puzzles",
        summary="Find a model of a quietly planted random 3-SAT formula by flipping variables.",
        source="Jia, Moore & Strain 2007, doi:10.1613/jair.2039; focused search: Papadimitriou 1991",
        entry_point="rlbench_suite.envs.puzzles.sat:SAT",
        reference="rlbench_suite.envs.puzzles.dpll:DPLL",
        horizon=60,
        difficulties={"medium": 20, "easy": 10, "hard": 32},
        optimum=1.125,
        tags=("discrete", "masked", "text"),
    ),
)
