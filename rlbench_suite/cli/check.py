"""``rlsuite check``: check tasks against the contract."""

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console

from rlbench_suite import registry
from rlbench_suite.cli import prepare_jax
from rlbench_suite.whole_table import Table


def check(
    suite: Annotated[str, typer.Argument(help="Suites or task ids, separated by commas.")],
    difficulty: Annotated[
        str | None, typer.Option(help="Difficulty tier to check. [default: the task's own]", show_default=False)
    ] = None,
) -> None:
    """Check tasks against the whole contract; exit with code 1 if a task breaks it.

    The contract is what playing, training and replay rely on: shapes, spaces, rewards, seeds, equal bits in a batch,
    masks, splits, text. A task in your own package is found by its id once the package is installed.

    **Example**: `rlsuite check TMaze-v0`
    """
    cards = registry.resolve_suite(suite)
    for card in cards:
        card.check_difficulty(difficulty)
    prepare_jax()
    from rlbench_suite.checking import findings, forget_programs

    console, broken = Console(), []
    for card in cards:
        table = Table(title=card.id, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for column in ("check", "result", "seconds"):
            table.add_column(column, justify="right" if column == "seconds" else "left")
        said: list[str] = []
        with console.status(f"Checking {card.id}"):
            for finding in findings(card.build(difficulty=difficulty)):
                result = "[red]broken" if finding.faults else "[yellow]advice" if finding.advice else "[green]kept"
                table.add_row(finding.check, result, f"{finding.seconds:.2f}")
                said += [f"{finding.check}: {sentence}" for sentence in finding.faults + finding.advice]
                broken += [card.id] * bool(finding.faults)
        console.print(table)
        for sentence in said:
            console.print(f"  {sentence}", markup=False, highlight=False)
        forget_programs()
    if broken:
        raise typer.Exit(1)
