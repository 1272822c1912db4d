"""SAT and puzzles: seeded generators, verifiers that check rules, exact difficulty."""

from rlbench_suite.card import TaskCard

PLANNED = "rlbench_suite.envs.puzzles.puzzle_task:Planned"

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
    TaskCard(
        id="rlsuite/Sudoku-v0",
        family="puzzles",
        summary="Fill a 9 x 9 Sudoku that has one solution, a digit a step.",
        source="one solution by construction; McGuire, Tugemann & Civario 2014, doi:10.1080/10586458.2013.870056",
        entry_point="rlbench_suite.envs.puzzles.sudoku:Sudoku",
        puzzle="rlbench_suite.envs.puzzles.sudoku:SudokuPuzzle",
        reference=PLANNED,
        horizon=56,
        difficulties={"medium": 45, "easy": 30, "hard": 53},
        optimum=2.0,
        tags=("discrete", "masked", "text", "grid"),
    ),
    TaskCard(
        id="rlsuite/Sudoku4-v0",
        family="puzzles",
        summary="Fill a 4 x 4 Sudoku that has one solution, a digit a step.",
        source="one solution by construction",
        entry_point="rlbench_suite.envs.puzzles.sudoku:Sudoku4",
        puzzle="rlbench_suite.envs.puzzles.sudoku:Sudoku4Puzzle",
        reference=PLANNED,
        horizon=11,
        variant=True,
        difficulties={"medium": 9, "easy": 6, "hard": 11},
        optimum=2.0,
        tags=("discrete", "masked", "text", "grid"),
    ),
    TaskCard(
        id="rlsuite/Kakurasu-v0",
        family="puzzles",
        summary="Fill cells whose positions add up to the clues of rows and columns, a cell a step.",
        source="one solution by construction",
        entry_point="rlbench_suite.envs.puzzles.kakurasu:Kakurasu",
        puzzle="rlbench_suite.envs.puzzles.kakurasu:KakurasuPuzzle",
        reference=PLANNED,
        horizon=64,
        variant=True,
        difficulties={"medium": 6, "easy": 4, "hard": 8},
        optimum=2.0,
        tags=("discrete", "masked", "text", "grid"),
    ),
)
