"""Film a trained policy beside the reference player, as MP4, GIF or WebP."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench_suite.cli import check_at_least, prepare_jax
from rlbench_suite.core import registry
from rlbench_suite.evaluation.runs.own_files import check_output

if TYPE_CHECKING:
    from rlbench_suite.core.task_card import TaskCard

RunCell = Annotated[
    tuple[Path, str] | None,
    typer.Option(
        metavar="RUN CELL",
        help=(
            "Run directory and cell of a trained policy: `runs/mine ppo/PMSMSpeed-v0/0`, or the "
            "beginning of the cell's name."
        ),
        show_default=False,
    ),
]
OptionalTask = Annotated[
    str | None,
    typer.Argument(
        help="Id of a task; `rlsuite/` may be left out. With --run, that of the cell if left out.",
        show_default=False,
    ),
]


def video(
    task_id: OptionalTask = None,
    run: RunCell = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Show the reference player alone.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="File to write: `.mp4` (extra `video`), `.gif` or `.webp`.")
    ] = Path("episode.gif"),
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    split: Annotated[
        str, typer.Option(help="`test` or `train`: contexts of the episode.")
    ] = "test",
    pictures: Annotated[
        int, typer.Option(help="Most pictures; of longer episodes some steps are left out.")
    ] = 600,
) -> None:
    """Write a video of an episode of a trained policy, with the reference player beside it.

    The video plays in the task's own time if one to sixty steps pass in a second. Where steps are
    shorter, it is slow motion. The command says how fast it is.

    **Examples**

    * `rlsuite video --run runs/mine ppo/QuadcopterHover-v0/0 --out hover.gif`

    * `rlsuite video Highway-v0 --reference --out highway.mp4`
    """
    check_at_least("--seed", seed, 0)
    check_at_least("--pictures", pictures, 2)
    check_output(out)
    if reference == (run is not None):
        raise ValueError("Name one player: --run RUN CELL, or an id with --reference.")
    card = card_of(task_id, run)
    prepare_jax()
    from rlbench_suite.adapters.frame_rate import pace_in_words
    from rlbench_suite.evaluation.analysis import recording
    from rlbench_suite.evaluation.analysis import video as videos

    videos.check_suffix(out)
    task = card.build()
    players: dict[str, Any] = {}
    if run:
        name, policy = recording.policy_of_cell(task, *run)
        players[name] = policy
    if card.reference:
        players[recording.REFERENCE] = recording.policy_of_agent(task, recording.REFERENCE)
    elif not run:
        raise ValueError(f"{card.id} has no reference player.")
    scenes = {}
    for name, policy in players.items():
        actions = videos.actions_of_episode(task, policy, seed, split)
        scenes[name] = videos.scene(task, actions, seed, split)
        print(
            f"{name}: {len(actions)} steps, return {scenes[name].total:.4g}, {scenes[name].why}",
            flush=True,
        )
    written = videos.write(out, videos.side_by_side(task, scenes, pictures))
    print(
        f"{out}: {len(written.pictures)} pictures at {written.fps} a second, "
        f"{pace_in_words(written.time_scale)}"
    )


def card_of(task_id: str | None, run: tuple[Path, str] | None) -> "TaskCard":
    """Return the card of an id, or that of a run's cell if there is no id.

    Raises:
        ValueError: neither is named, or there is no such task or cell.
    """
    if task_id is not None:
        return registry.card(task_id)
    if run is None:
        raise ValueError("Name a task, or a trained policy with --run RUN CELL.")
    from rlbench_suite.evaluation.runs.cell_policies import find_cell

    _, cell = find_cell(*run)
    return registry.card(cell.task)
