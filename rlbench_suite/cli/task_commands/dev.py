"""Check tasks against the contract, and measure the scores that normalise theirs."""

import sys
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console

from rlbench_suite.cli import App, check_at_least, check_positive, prepare_jax
from rlbench_suite.core import registry
from rlbench_suite.core.scale import Scale
from rlbench_suite.evaluation.report.whole_table import Table

app = App(help="Check tasks of your own, and measure their reference scores.")

Suite = Annotated[str, typer.Argument(help="Suites or task ids, separated by commas.")]


@app.command()
def check(
    suite: Suite,
    difficulty: Annotated[
        str | None,
        typer.Option(
            help="Difficulty tier to check. [default: the task's own]", show_default=False
        ),
    ] = None,
) -> None:
    """Check tasks against the whole contract; exit with code 1 if a task breaks it.

    The contract is what playing, training and replay rely on: shapes, spaces, rewards, seeds, equal
    bits in a batch, masks, splits, text. A task in your own package is found by its id once the
    package is installed.

    **Example**: `rlsuite dev check TMaze-v0`
    """
    cards = registry.resolve_suite(suite)
    for card in cards:
        card.check_difficulty(difficulty)
    prepare_jax()
    from rlbench_suite.checking.checks import findings_of_card, forget_programs

    console = Console()
    broken_ids = []
    for card in cards:
        table = Table(title=card.id, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for column in ("check", "result", "seconds"):
            table.add_column(column, justify="right" if column == "seconds" else "left")
        sentences: list[str] = []
        with console.status(f"Checking {card.id}"):
            for finding in findings_of_card(card, difficulty):
                result = "[yellow]advice" if finding.advice else "[green]kept"
                if finding.faults:
                    result = "[red]broken"
                table.add_row(finding.check, result, f"{finding.seconds:.2f}")
                sentences += [
                    f"{finding.check}: {sentence}" for sentence in finding.faults + finding.advice
                ]
                broken_ids += [card.id] * bool(finding.faults)
        console.print(table)
        for sentence in sentences:
            console.print(f"  {sentence}", markup=False, highlight=False)
        forget_programs()
    if broken_ids:
        raise typer.Exit(1)


@app.command()
def calibrate(
    suite: Suite,
    episodes: Annotated[
        int | None,
        typer.Option(
            help="Number of test episodes for each player. [default: as many as --error needs]",
            show_default=False,
        ),
    ] = None,
    error: Annotated[
        float,
        typer.Option(
            help=(
                "Largest standard error of 0 and of 1, the ends of the scale, in units of the "
                "score."
            )
        ),
    ] = 0.005,
    minutes: Annotated[
        float,
        typer.Option(
            help="Time for each difficulty, after which the error that is reached must do."
        ),
    ] = 10.0,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing", help="Leave out players whose success and return are known well enough."
        ),
    ] = False,
    difficulty: Annotated[
        str | None,
        typer.Option(help="Measure only this difficulty tier. [default: all]", show_default=False),
    ] = None,
) -> None:
    """Measure the scores of the random, noop and reference players.

    They are stored in each family's folder. If a card names the best constant action, it is
    measured beside them.

    Normalised scores use these numbers, so calibrate again whenever a task or its reference player
    changes. A warning says where doing nothing or random play earns about as much as the reference:
    scores then mean little. Cards may name yardsticks, other players that are measured, too, such
    as the best one without a memory. For puzzles it also measures one-shot answers: the empty one,
    guesses, the best constant, a rule of thumb, the solver.

    **Example**: `rlsuite dev calibrate SAT-v0 --difficulty hard`
    """
    if episodes is not None:
        check_at_least("--episodes", episodes, 2)  # one has no interval
    check_positive("--error", error)
    check_positive("--minutes", minutes)
    cards = registry.resolve_suite(suite)
    for card in cards:
        card.check_difficulty(difficulty)
    prepare_jax()
    from rlbench_suite.core.task_card import ONE_SHOT_FILE
    from rlbench_suite.evaluation.analysis.calibration import (
        measure,
        remark,
        too_uncertain,
        write_scores,
    )
    from rlbench_suite.evaluation.analysis.one_shot import measure_one_shot
    from rlbench_suite.language.rows import puzzle_of

    for card in cards:
        for tier in (difficulty,) if difficulty else card.difficulties or (None,):
            if card.puzzle and not missing:
                one_shot = measure_one_shot(puzzle_of(card.id, tier), episodes or 1000)
                write_scores(card, tier, one_shot, ONE_SHOT_FILE)
                for player, s in one_shot.items():
                    print(
                        (
                            f"{card.id} {tier or ''} one-shot {player}: {s.mean:g} [{s.low:g}, "
                            f"{s.high:g}]"
                        ),
                        flush=True,
                    )
            task = card.build(difficulty=tier)
            stored_scores = card.scores(tier) if missing else {}
            uncertain = too_uncertain(stored_scores, error)
            players = [
                player
                for player in card.measured_players
                if player not in stored_scores
                or stored_scores[player].success is None
                or player in uncertain
            ]
            scores = measure(
                task,
                players,
                episodes=episodes,
                largest_error=error,
                seconds=60 * minutes,
                known_scores=stored_scores,
            )
            write_scores(card, tier, scores)
            scale = Scale.of(stored_scores | scores)
            for player, s in scores.items():
                line = (
                    f"{card.id} {tier or ''} {player}: {s.mean:g} [{s.low:g}, {s.high:g}], "
                    f"{s.episodes:,} episodes"
                )
                if scale and scale.span > 0:
                    line += f", standard error {s.standard_error / scale.span:.4f} of the scale"
                print(line, flush=True)
            if sentence := remark(stored_scores | scores):
                print(
                    f"warning: on {' '.join(filter(None, (card.id, tier)))}, {sentence}",
                    file=sys.stderr,
                )
