"""Show, export and verify puzzles in their one-shot form, and build their banks of instances."""

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rlbench_suite.cli import App, check_at_least
from rlbench_suite.core import registry
from rlbench_suite.core.task_card import SPLITS, TaskCard, load
from rlbench_suite.evaluation.runs.own_files import check_output

app = App(help="Show, export and verify puzzles as questions with one answer.")

TaskId = Annotated[str, typer.Argument(help="Id of a puzzle; `rlsuite/` may be left out.")]
Split = Annotated[str, typer.Option(help="`train` or `test`; their instances never overlap.")]
Difficulty = Annotated[
    str | None, typer.Option(help="Difficulty tier. [default: the task's own]", show_default=False)
]


@app.command()
def show(
    task_id: TaskId,
    seed: Annotated[int, typer.Option(help="Seed of the instance.")] = 0,
    split: Split = "train",
    difficulty: Difficulty = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="Also show the exact solver's answer.")
    ] = False,
) -> None:
    """Print the prompt of one instance.

    **Example**: `rlsuite puzzles show Sudoku-v0 --seed 3 --answer`
    """
    check_at_least("--seed", seed, 0)
    from rlbench_suite.language.rows import puzzle_of

    puzzle = puzzle_of(task_id, number_or_name(difficulty))
    instance = puzzle.generate(seed, split)
    print(puzzle.prompt(instance))
    if answer:
        print(
            f"\n{puzzle.solve(instance)}\n\nDifficulty: {puzzle.difficulty(instance):g} "
            f"({puzzle.difficulty_is})."
        )


@app.command()
def verify(
    task_id: TaskId,
    seed: Annotated[int, typer.Option(help="Seed of the instance.")] = 0,
    split: Split = "train",
    difficulty: Difficulty = None,
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient", help="Accept other formats, such as code fences, bold or commas."
        ),
    ] = False,
) -> None:
    """Verify a reply from standard input; exit with code 1 if it is wrong.

    The last answer tags of the reply hold the answer.

    **Example**: `rlsuite puzzles verify Sudoku-v0 --seed 3 --lenient < reply.txt`
    """
    check_at_least("--seed", seed, 0)
    from rlbench_suite.language.lenient import judge_reply
    from rlbench_suite.language.rows import puzzle_of

    puzzle = puzzle_of(task_id, number_or_name(difficulty))
    verdict = judge_reply(puzzle, puzzle.generate(seed, split), sys.stdin.read(), lenient=lenient)
    print(json.dumps(verdict._asdict(), indent=2))
    raise typer.Exit(0 if verdict.score == 1 else 1)


@app.command()
def export(
    task_ids: Annotated[
        list[str], typer.Argument(help="Ids of puzzles; rows of several are mixed evenly.")
    ],
    n: Annotated[int, typer.Option("--n", help="Number of instances.")] = 1000,
    split: Split = "train",
    seed: Annotated[int, typer.Option(help="Seed of the first instance; the others follow.")] = 0,
    difficulty: Annotated[
        str | None,
        typer.Option(
            help=(
                "Tiers, numbers and ranges, separated by commas: `easy,hard` or `30-40,45`. "
                "[default: the task's own]"
            ),
            show_default=False,
        ),
    ] = None,
    unique: Annotated[bool, typer.Option("--unique", help="Leave out repeated instances.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, `.jsonl` or `.parquet`. [default: NAME-SPLIT.jsonl]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write instances as JSON lines with `question`, `answer` and `metadata`, or as Parquet.

    Parquet has a column `prompt` as well.

    **Example**: `rlsuite puzzles export Sudoku-v0 SAT-v0 --n 1000 --difficulty easy,medium --out
    rows.parquet`
    """
    check_at_least("--n", n, 1)
    check_at_least("--seed", seed, 0)
    check_output(out)
    from rich.console import Console
    from rich.progress import track

    from rlbench_suite.foundation.atomic_files import writing
    from rlbench_suite.language.dataset import CompositeDataset, PuzzleDataset

    cards = [registry.card(task_id) for task_id in task_ids]
    path = out or Path(f"{'-'.join(card.name for card in cards)}-{split}.jsonl")
    datasets = [
        PuzzleDataset(
            card.id,
            split=split,
            size=-(-n // len(cards)),
            seed=seed,
            difficulty=difficulties(card, difficulty),
            unique=unique,
        )
        for card in cards
    ]
    dataset: PuzzleDataset | CompositeDataset = datasets[0]
    if len(datasets) > 1:
        dataset = CompositeDataset([(single, 1) for single in datasets], size=n, seed=seed)
    console = Console(stderr=True)
    with writing(path):
        dataset.export(
            path,
            lambda numbers: track(
                numbers, str(path), console=console, disable=not console.is_terminal
            ),
        )
    print(f"Wrote {n} instances to {path}.")


def difficulties(card: TaskCard, text: str | None) -> list[str | float] | None:
    """Return the difficulties that a text such as ``easy,30-40`` names for a puzzle; None for none.

    Raises:
        ValueError: a range in which the puzzle has no difficulty.
    """
    if text is None:
        return None
    selected: list[str | float] = []
    for item in text.split(","):
        if interval := re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", item):
            low, high = map(int, interval.groups())
            within = [tier for tier in card.one_shot_difficulties if low <= tier <= high]
            if not within:
                raise ValueError(
                    f"{card.id} has no difficulty from {low} to {high}: "
                    f"{load(card.puzzle).known_tiers()}."
                )
            selected += within
        else:
            selected.append(number_or_name(item))  # type: ignore[arg-type]
    return selected


def number_or_name(text: str | None) -> str | float | None:
    """Return the difficulty that a text names: a number, or the name of a tier; None for none."""
    return (
        float(text) if text and re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) else text and text.strip()
    )


@app.command()
def bank(
    suite: Annotated[
        str, typer.Argument(help="Suites or ids of puzzles, separated by commas.")
    ] = "puzzles",
    difficulty: Annotated[
        str | None, typer.Option(help="One tier only. [default: all]", show_default=False)
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Replace existing banks.")] = False,
) -> None:
    """Build the banks of instances from which interactive episodes draw.

    A missing bank is built at the first reset.

    **Example**: `rlsuite puzzles bank Sudoku-v0`
    """
    from rlbench_suite.puzzle.bank import bank_path, load_bank

    for card in registry.resolve_suite(suite):
        for tier in (difficulty,) if difficulty else card.difficulties or (None,):
            task: Any = card.build(difficulty=tier)
            if not hasattr(task, "bank_size"):
                continue
            for split in SPLITS:
                path = bank_path(task.puzzle, split, task.bank_size)
                if rebuild:
                    path.unlink(missing_ok=True)
                bank = load_bank(task.puzzle, split, task.bank_size)
                print(
                    f"{card.name} {tier or ''} {split}: {len(bank.plans)} instances, sha256 "
                    f"{bank.digest} ({path})"
                )
