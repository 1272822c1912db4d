"""Record episodes as tables in physical units, with how well set points were followed."""

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD

from rlbench_suite.cli import check_at_least, output_console, prepare_jax
from rlbench_suite.cli.task_commands.video import RunCell
from rlbench_suite.core import registry
from rlbench_suite.evaluation.report.whole_table import Table
from rlbench_suite.evaluation.runs.own_files import check_output

if TYPE_CHECKING:
    from rlbench_suite.core.task import Task
    from rlbench_suite.evaluation.trajectory import Trajectory


def record(
    task_id: Annotated[str, typer.Argument(help="Id of a task; `rlsuite/` may be left out.")],
    agent: Annotated[
        str | None,
        typer.Option(
            help="Agent that does not learn: `reference`, `noop`, `random`.", show_default=False
        ),
    ] = None,
    run: RunCell = None,
    episodes: Annotated[int, typer.Option(help="Number of episodes.")] = 4,
    seed: Annotated[int, typer.Option(help="Seed of the first episode.")] = 0,
    split: Annotated[
        str, typer.Option(help="`test` or `train`: contexts of the episodes.")
    ] = "test",
    out: Annotated[
        Path | None, typer.Option(help="Table to write: `.parquet` or `.csv`.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture to write: the first episode, PNG.", show_default=False),
    ] = None,
) -> None:
    """Record episodes in physical units, and report how well their set points were followed.

    The table has a row for each step: time, observations, actions, reward, cost and measures, in
    columns `name [unit]`. The reference player plays the same episodes beside the agent. Rise,
    settling and overshoot are medians over the steps of a set point; ids with `?setpoint=step` have
    some.

    **Examples**

    * `rlsuite record PMSMSpeed-v0 --agent reference --out run.csv`

    * `rlsuite record "PMSMSpeed-v0?setpoint=step" --run runs/mine ppo --out run.parquet --plot
      steps.png`
    """
    check_at_least("--episodes", episodes, 1)
    check_at_least("--seed", seed, 0)
    check_output(out)
    check_output(plot)
    if (agent is None) == (run is None):
        raise ValueError("Name a player: --agent NAME, or --run RUN CELL.")
    card = registry.card(task_id)
    prepare_jax()
    from rlbench_suite.evaluation.analysis import recording

    if out and out.suffix not in recording.SUFFIXES:
        raise ValueError(f"--out is a {' or '.join(recording.SUFFIXES)} file, got {out.name!r}.")
    task: Task[Any, Any] = card.build()
    if run:
        name, policy = recording.policy_of_cell(task, *run)
    else:
        assert agent
        name = agent
        policy = recording.policy_of_agent(task, agent)
    players = {name: policy}
    if card.reference and name != recording.REFERENCE:
        players[recording.REFERENCE] = recording.policy_of_agent(task, recording.REFERENCE)
    trajectories_by_player = recording.record(task, players, range(seed, seed + episodes), split)
    if out:
        recording.write(out, recording.table(task, trajectories_by_player))
        trajectories = itertools.chain.from_iterable(trajectories_by_player.values())
        steps = sum(len(trajectory.actions) for trajectory in trajectories)
        print(f"{out}: {steps:,} steps of {episodes} episodes")
    followed = recording.tracked_by_player(task, trajectories_by_player)
    if plot:
        recording.plot(plot, card.name, followed)
        print(f"{plot}: the first episode")
    console = output_console()
    tracks = any(
        quantities for episodes_of_player in followed.values() for quantities in episodes_of_player
    )
    console.print(_players(task, trajectories_by_player, tracks=tracks))
    if tracks:
        console.print(_responses(followed))


def _players(
    task: "Task[Any, Any]", trajectories_by_player: "dict[str, list[Trajectory]]", *, tracks: bool
) -> Table:
    from rlbench_suite.core.episode import scalar_return
    from rlbench_suite.evaluation.analysis.recording import energies, trips

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    energies_by_player = {
        name: energies(task, trajectories) for name, trajectories in trajectories_by_player.items()
    }
    columns = ["player", "mean return", "mean cost", "success"]
    if tracks:
        columns.append("trips")
    if any(energies_by_player.values()):
        columns.append("mean energy")
    for column in columns:
        table.add_column(column, justify="left" if column == "player" else "right")
    constraint = task.card.constraint
    for name, trajectories in trajectories_by_player.items():
        episodes = len(trajectories)
        if task.card.objectives:
            returns = [
                float(scalar_return(task, trajectory.rewards.sum(0))) for trajectory in trajectories
            ]
        else:
            returns = [float(trajectory.rewards.sum()) for trajectory in trajectories]
        costs = [
            float(trajectory.costs.sum())
            for trajectory in trajectories
            if trajectory.costs is not None
        ]
        cost = ""
        if costs:
            mean_cost = sum(costs) / len(costs)
            mark = " !" if constraint and constraint.broken_by(mean_cost) else ""
            cost = f"{mean_cost:.4g}{mark}"
        successes = sum(trajectory.success for trajectory in trajectories)
        row = [name, f"{sum(returns) / episodes:.4g}", cost, f"{successes} of {episodes}"]
        if tracks:
            row.append(f"{trips(trajectories)} of {episodes}")
        if joules := energies_by_player[name]:
            row.append(f"{sum(joules) / len(joules):.4g} J")
        table.add_row(*row)
    return table


def _responses(followed: Any) -> Table:
    from rlbench_suite.evaluation.analysis.recording import seconds
    from rlbench_suite.evaluation.analysis.step_response import summarise

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    columns = (
        "quantity",
        "player",
        "rms error",
        "steps",
        "rise",
        "settling",
        "settled",
        "overshoot",
        "ripple",
    )
    for column in columns:
        table.add_column(column, justify="left" if column in ("quantity", "player") else "right")
    summaries = [
        (name, summary) for name, episodes in followed.items() for summary in summarise(episodes)
    ]
    for quantity in dict.fromkeys(summary.name for _, summary in summaries):
        for name, summary in summaries:
            if summary.name != quantity:
                continue
            table.add_row(
                summary.name,
                name,
                f"{summary.rms_error:.3g} {summary.unit}",
                str(summary.steps),
                seconds(summary.rise),
                seconds(summary.settling),
                _unless_nan(summary.settled_share, ".1%"),
                _unless_nan(summary.overshoot, ".1%"),
                _unless_nan(summary.ripple, ".3g", f" {summary.unit}"),
            )
    return table


def _unless_nan(value: float, format_spec: str, unit: str = "") -> str:
    return "" if math.isnan(value) else f"{value:{format_spec}}{unit}"
