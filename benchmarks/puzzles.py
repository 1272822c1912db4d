"""Measure how many puzzles are generated and verified per second, compared with reasoning-gym, and steps per second.

    python benchmarks/puzzles.py [--ids A-v0,B-v0]       # ours only
    python benchmarks/puzzles.py --steps                 # the last column only; minutes for all puzzles
    python benchmarks/puzzles.py --peer PYTHON           # PYTHON: an interpreter with reasoning-gym installed
    python -m venv peer && peer/bin/pip install reasoning-gym==0.1.25

Generation and verification run in one process. Each figure is the best of ten rounds of 0.2 s of processor time, on
both sides. If the peer has the puzzle, both sides use the same tier or size. The columns are:

* ``generated``: questions with an answer from the exact solver;
* ``scored``: calls of the dataset's ``score_answer`` with that answer;
* ``others``: calls of ``score_answer`` with the answer to the previous entry;
* ``judged``: verdicts on the solver's answer by the rules, which another correct answer would need;
* ``steps``: steps of fused batches of 4,096 with random legal actions at the default tier, resets included, summed over
  one single-threaded process for each core (`cores.py`).

Both sides make a question and an answer, and verify that answer. The work differs:

* The peer's ListFunctions and Arc1D draw one of a few dozen functions and apply it. Ours, at the compared tier, compose
  two steps. They apply every rule that fits the examples to prove that all give the same answer, and prove that no
  shorter rule fits. The solver does not repeat this search. The outputs of all rules on a pool of inputs are computed
  once, in half a second, with the first question.
* The peer's maze is a square of random walls, and its answer is the length of a shortest path. Ours is a spanning tree
  with some walls removed, and its answer is a shortest path. The peer's size includes the border, ours does not.
* Ours drop half of the drawn instances, which belong to the other split, except in ListFunctions and Arc1D, where the
  query decides the split. The peer has no splits.
* The peer verifies Kakurasu, Game24 and Countdown by their rules (the latter two with SymPy), KnightsAndKnaves by the
  stored answer as a set, and all others by comparing text with a stored answer. Ours find the answer in a whole reply
  and compare it with the stored one; if it differs, they parse it strictly and check every rule. The
  first reply to a row reads its instance, and later replies find it, as here.
"""

import argparse
import gc
import itertools
import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

from best_rate import rate
from cores import Cores, wait_for_all

from rlbench_suite.cli import speed
from rlbench_suite.language.dataset import PuzzleDataset
from rlbench_suite.puzzle import CLOSING, OPENING
from rlbench_suite.registry import card, cards

PEER = Path(__file__).with_name("puzzles_peer.py")
SECONDS, ROUNDS = 2.0, 10
KEPT = 100
"""Number of answers that are verified repeatedly."""
ENVS = 4_096

SHARED: dict[str, tuple[float | str, str, dict[str, object]]] = {
    "Sudoku-v0": (45, "sudoku", {"min_empty": 45, "max_empty": 45}),
    "Sudoku4-v0": (9, "mini_sudoku", {"min_empty": 9, "max_empty": 9}),
    "Kakurasu-v0": (5, "kakurasu", {"min_rows": 5, "max_rows": 5, "min_cols": 5, "max_cols": 5}),
    "Game24-v0": ("medium", "puzzle24", {}),
    "Countdown-v0": (5, "countdown", {"min_numbers": 5, "max_numbers": 5}),
    "Maze-v0": (5, "maze", {"min_grid_size": 7, "max_grid_size": 7, "min_dist": 5, "max_dist": 10}),
    "KnightsAndKnaves-v0": (6, "knights_knaves", {"n_people": 6}),
    "Zebra-v0": (4, "zebra_puzzles", {"num_people": 4, "num_characteristics": 4}),
    "ListFunctions-v0": ("medium", "list_functions", {}),
    "Arc1D-v0": ("medium", "arc_1d", {}),
    "CubeRotation-v0": (3, "color_cube_rotation", {"min_rotations": 3, "max_rotations": 3}),
}
"""Puzzles that both sides have: our tier or difficulty, the peer's dataset, and its configuration of that size."""


def ours(name: str, difficulty: float | str | None) -> list[float]:
    """Measure generated questions, scored answers, scored answers to other questions and judged answers per second."""
    data = PuzzleDataset(name, difficulty=difficulty, size=KEPT)
    puzzle = data.puzzle
    gc.collect()
    gc.freeze()  # garbage collection skips imported modules
    pairs: list[tuple[Any, str]] = []
    seeds = itertools.count()

    def make() -> None:
        instance = puzzle.generate(next(seeds))
        puzzle.prompt(instance)
        answer = puzzle.solve(instance)
        if len(pairs) < KEPT:
            pairs.append((instance, answer))

    made = rate(make, SECONDS, ROUNDS)
    entries = data[: len(pairs)]
    replies = [f"{OPENING}{entry['answer']}{CLOSING}" for entry in entries]
    others = [replies[-1], *replies[:-1]]

    def score() -> None:
        for reply, entry in zip(replies, entries, strict=True):
            assert data.score_answer(reply, entry) == 1

    def score_others() -> None:
        for reply, entry in zip(others, entries, strict=True):
            data.score_answer(reply, entry)

    def judge() -> None:
        for instance, answer in pairs:
            assert puzzle.verify(instance, answer).score == 1

    return [made, *(rate(work, SECONDS, ROUNDS) * len(pairs) for work in (score, score_others, judge))]


def steps_of(name: str) -> list[float]:
    """Measure steps per second of a fused batch in this process."""
    wait_for_all()
    return [speed.fused(card(name), ENVS, SECONDS)]


def print_steps(names: list[str]) -> None:
    """Print steps per second, a line for each puzzle, and their median."""
    cores, steps = Cores(), []
    for name in names:
        steps += cores.sums(steps_of, name)
        print(f"{name:26s}{steps[-1]:13,.0f}", flush=True)
    print(f"{'median':26s}{statistics.median(steps):13,.0f}")


def main() -> None:
    """Print a line for each puzzle."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peer", help="interpreter with reasoning-gym installed")
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    parser.add_argument("--steps", action="store_true", help="measure only steps of batches")
    options = parser.parse_args()
    names = options.ids.split(",") if options.ids else [c.name for c in cards().values() if c.puzzle]
    if options.steps:
        print_steps(names)
        return

    cores, theirs = Cores(), {}
    shared = [name for name in names if name in SHARED]
    if options.peer and shared:
        arguments = [word for name in shared for word in (SHARED[name][1], json.dumps(SHARED[name][2]))]
        run = [options.peer, str(PEER), str(SECONDS), str(ROUNDS), *arguments]
        printed = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
        theirs = {name: list(map(float, line.split())) for name, line in zip(shared, printed, strict=True)}
    columns = ("generated/s", "ratio", "scored/s", "ratio", "others/s", "ratio", "judged/s", "steps/s")
    print(f"{'puzzle':26s}" + "".join(f"{column:>13s}" for column in columns))
    ratios, steps = [], []
    for name in names:
        *made, judged = ours(name, SHARED[name][0] if name in SHARED else None)
        if name in theirs:
            ratios.append([one / other for one, other in zip(made, theirs[name], strict=True)])
        shown = [f"{ratio:.2f}" for ratio in ratios[-1]] if name in theirs else [""] * len(made)
        line = "".join(f"{count:13,.0f}{ratio:>13s}" for count, ratio in zip(made, shown, strict=True))
        steps += cores.sums(steps_of, name)
        print(f"{name:26s}{line}{judged:13,.0f}{steps[-1]:13,.0f}", flush=True)
    medians = [f"{statistics.median(column):.2f}" for column in zip(*ratios, strict=True)] or [""] * 3
    line = "".join(f"{'':13s}{median:>13s}" for median in medians)
    print(f"{'median':26s}{line}{'':13s}{statistics.median(steps):13,.0f}")


if __name__ == "__main__":
    main()
