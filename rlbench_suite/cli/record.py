"""``rlsuite record``: episodes as tables in physical units, and how well set points were followed."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console

from rlbench_suite import registry
from rlbench_suite.cli import check_at_least, prepare_jax
from rlbench_suite.cli.video import RunCell
from rlbench_suite.whole_table import Table

if TYPE_CHECKING:
    from rlbench_suite.evaluation.trajectory import Trajectory
    from rlbench_suite.task import Task

_LOG_WIDTH = 140


def record(
    task_id: Annotated[str, typer.Argument(help="Id of a task; `rlsuite/` may be left out.")],
    agent: Annotated[
        str | None,
        typer.Option(help="Agent that does not learn: `reference`, `noop`, `random`.", show_default=False),
    ] = None,
    run: RunCell = None,
    episodes: Annotated[int, typer.Option(help="Number of episodes.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    split: Annotated[str, typer.Option(help="`test` or `train`: contexts of the episodes.")] = "test",
    out: Annotated[Path | None, typer.Option(help="Table to write: `.parquet` or `.csv`.", show_default=False)] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture to write: the first episode, PNG.", show_default=False)
    ] = None,
) -> None:
    """Record episodes in physical units, and report how well their set points were followed.

    The table has a row for each step: time, observations, actions, reward, cost and measures, in columns `name [unit]`.
    The reference player plays the same episodes beside the agent. Rise, settling and overshoot are medians over the
    steps of a set point; ids with `?setpoint=step` have some.

    **Examples**

    * `rlsuite record PMSMSpeed-v0 --agent reference --out run.csv`

    * `rlsuite record "PMSMSpeed-v0?setpoint=step" --run runs/mine ppo --out run.parquet --plot steps.png`
    """
    check_at_least("--episodes", episodes, 1)
    check_at_least("--seed", seed, 0)
    if (agent is None) == (run is None):
        raise ValueError("Name a player: --agent NAME, or --run RUN CELL.")
    card = registry.card(task_id)
    prepare_jax()
    from rlbench_suite.evaluation import recording

    if out and out.suffix not in recording.SUFFIXES:
        raise ValueError(f"--out is a {' or '.join(recording.SUFFIXES)} file, got {out.name!r}.")
    task: Task[Any, Any] = card.build()
    if run:
        name, policy = recording.policy_of_cell(task, *run)
    else:
        assert agent
        name, policy = agent, recording.policy_of_agent(task, agent)
    players = {name: policy}
    if card.reference and name != recording.REFERENCE:
        players[recording.REFERENCE] = recording.policy_of_agent(task, recording.REFERENCE)
    played = recording.record(task, players, range(seed, seed + episodes), split)
    if out:
        recording.write(out, recording.table(task, played))
        print(
            f"{out}: {sum(len(one.actions) for own in played.values() for one in own):,} steps of {episodes} episodes"
        )
    followed = recording.tracked_by_player(task, played)
    if plot:
        recording.plot(plot, card.name, followed)
        print(f"{plot}: the first episode")
    console = Console() if sys.stdout.isatty() else Console(width=_LOG_WIDTH)
    tracks = any(quantities for own in followed.values() for quantities in own)
    console.print(_players(task, played, tracks=tracks))
    if tracks:
        console.print(_responses(followed))


def _players(task: "Task[Any, Any]", played: "dict[str, list[Trajectory]]", *, tracks: bool) -> Table:
    from rlbench_suite.episode import scalar_return

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    from rlbench_suite.evaluation.recording import energies, trips

    known = {name: energies(task, own) for name, own in played.items()}
    heads = ["player", "mean return", "mean cost", "success", *(["trips"] if tracks else [])]
    for column in [*heads, *(["mean energy"] if any(known.values()) else [])]:
        table.add_column(column, justify="left" if column == "player" else "right")
    for name, own in played.items():
        many = task.card.objectives
        returns = [float(scalar_return(task, one.rewards.sum(0))) if many else float(one.rewards.sum()) for one in own]
        costs = [float(one.costs.sum()) for one in own if one.costs is not None]
        mean, rule = sum(costs) / len(costs) if costs else 0.0, task.card.constraint
        cost = f"{mean:.4g}{' !' if rule and rule.broken_by(mean) else ''}" if costs else ""
        success = sum(one.success for one in own)
        row = [f"{sum(returns) / len(own):.4g}", cost, f"{success} of {len(own)}", f"{trips(own)} of {len(own)}"]
        energy = [f"{sum(known[name]) / len(known[name]):.4g} J"] if known[name] else []
        table.add_row(name, *(row if tracks else row[:-1]), *energy)
    return table


def _responses(followed: Any) -> Table:
    from rlbench_suite.evaluation.recording import seconds
    from rlbench_suite.evaluation.responses import summarise

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    heads = ("quantity", "player", "rms error", "steps", "rise", "settling", "settled", "overshoot", "ripple")
    for column in heads:
        table.add_column(column, justify="left" if column in heads[:2] else "right")
    rows = {name: summarise(own) for name, own in followed.items()}
    quantities = dict.fromkeys(one.name for own in rows.values() for one in own)
    for quantity in quantities:
        for name, one in ((name, one) for name, own in rows.items() for one in own if one.name == quantity):
            percents = ("" if math.isnan(part) else f"{part:.1%}" for part in (one.settled, one.overshoot))
            settled, overshoot = percents
            ripple = "" if math.isnan(one.ripple) else f"{one.ripple:.3g} {one.unit}"
            table.add_row(
                one.name, name, f"{one.rms_error:.3g} {one.unit}", str(one.steps), seconds(one.rise),
                seconds(one.settling), settled, overshoot, ripple,
            )  # fmt: skip
    return table
