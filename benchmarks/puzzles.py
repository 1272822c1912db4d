"""Puzzles: questions generated and verified a second, beside reasoning-gym, and steps a second of batches.

    python benchmarks/puzzles.py [--ids A-v0,B-v0]       # ours only
    python benchmarks/puzzles.py --steps                 # the last column only, some minutes for all puzzles
    python benchmarks/puzzles.py --peer PYTHON           # PYTHON: an interpreter that has reasoning-gym
    python -m venv peer && peer/bin/pip install reasoning-gym==0.1.25

One process at a time but for steps. Each figure is the best of ten rounds of .2 s of processor time, on both sides.
``generated`` is one question with an answer by the exact solver, at a tier or size that the peer has too where it has
the puzzle; ``scored`` is what ``score_answer`` of the dataset makes of that answer, ``others`` what it makes of the
answer to the entry before; ``judged`` is our verdict on the solver's answer by the rules, as another right answer would
get.
Steps are of fused batches of 4,096 under random legal actions, resets included, at the default tier: a process with one
thread for each core, all at once, and their sum (`cores.py`).

Both sides make question and answer, and verify the answer that was made. What that takes differs:

* The peer's ListFunctions and Arc1D draw one of a few dozen functions and apply it. Ours, at the tier compared, compose
  two steps, and prove that all rules that fit the examples answer alike, by applying every one of them, and that no
  shorter one fits; the solver is not made to repeat the search that has just proven an instance. What rules make of
  a pool of rows is computed once, for half a second, with the first question.
* The peer's maze is a square of random walls, and the answer a number: how long a shortest way is. Ours is a spanning
  tree with walls taken down, and the answer a shortest way. The peer's side counts the border, ours does not.
* Half of what ours draw belongs to the other split and is dropped, but in ListFunctions and Arc1D, where the query
  decides; the peer has no splits.
* The peer verifies Kakurasu, Game24 and Countdown by their rules (the latter two with SymPy), KnightsAndKnaves by the
  stored answer as a set, and all others by comparing text with a stored answer. Ours find the answer in a whole reply,
  compare it with the stored one, and parse strictly and check every rule where it is another. Entries as the dataset
  makes them remember their instance, as here; for one read from a file, it is made anew for every reply.
"""

import argparse
import gc
import itertools
import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

from cores import Cores, wait_for_all
from rounds import rate

from rlbench_suite.cli import speed
from rlbench_suite.puzzle import CLOSING, OPENING
from rlbench_suite.puzzle_dataset import PuzzleDataset
from rlbench_suite.registry import card, cards

PEER = Path(__file__).with_name("puzzles_peer.py")
SECONDS, ROUNDS = 2.0, 10
KEPT = 100
"""Answers that are verified, again and again."""
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
"""Ours: the tier or number to compare at, the peer's dataset, and its configuration of that size."""


def ours(name: str, difficulty: float | str | None) -> list[float]:
    """Questions with answers made, answers scored, those to other questions, and answers judged by the rules, a
    second."""
    data = PuzzleDataset(name, difficulty=difficulty, size=KEPT)
    puzzle = data.puzzle
    gc.collect()
    gc.freeze()  # what was imported is not searched for garbage again and again
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
    """Steps a second of a fused batch in this process."""
    wait_for_all()
    return [speed.fused(card(name), ENVS, SECONDS)]


def print_steps(names: list[str]) -> None:
    """Steps a second, a line for each puzzle; then their median."""
    cores, steps = Cores(), []
    for name in names:
        steps += cores.sums(steps_of, name)
        print(f"{name:26s}{steps[-1]:13,.0f}", flush=True)
    print(f"{'median':26s}{statistics.median(steps):13,.0f}")


def main() -> None:
    """A line for each puzzle."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peer", help="interpreter that has reasoning-gym")
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    parser.add_argument("--steps", action="store_true", help="only steps of batches")
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
