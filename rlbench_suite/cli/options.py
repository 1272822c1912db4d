"""Options and arguments that several commands share."""

from collections.abc import Iterable
from typing import Annotated

import typer

from rlbench_suite.cli import check_at_least, check_positive

SUITE_FLAGS = ("--suite", "--task")
"""Both flags mean the same list of suites and task ids."""

_SUITE_HELP = (
    "Suites or task ids, separated by commas: `smoke`, `all` (without variants), `motor`, "
    "`SAT-v0,Wordle-v0`, `SAT-v0?difficulty=hard`; or a suite file of your own, `my_suite.yaml`. "
    "May be repeated."
)
Suite = Annotated[
    list[str] | None,
    typer.Option(*SUITE_FLAGS, help=f"{_SUITE_HELP} [default: `smoke`]", show_default=False),
]
SuiteOfPolicy = Annotated[
    list[str] | None,
    typer.Option(
        *SUITE_FLAGS,
        help=f"{_SUITE_HELP} [default: the task that the file names]",
        show_default=False,
    ),
]
SelectedTasks = Annotated[
    list[str] | None,
    typer.Option(
        *SUITE_FLAGS,
        help="Suites or task ids of the runs, separated by commas. May be repeated. [default: all]",
        show_default=False,
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        help=(
            "Number of training runs for each agent and task, with seeds 0 to N-1. [default: 5, or "
            "the suite file's]"
        ),
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        help=(
            "Length of training and evaluation: `smoke`, `quick` or `full`. The task decides the "
            "number of steps, so every agent gets the same. With `smoke`, `ppo` needs seconds for "
            "a task; slower agents need minutes. [default: `smoke`, or the suite file's]"
        ),
        show_default=False,
    ),
]
SetsOfEpisodes = Annotated[
    int | None,
    typer.Option(
        help="Number of sets of episodes, with seeds 0 to N-1. [default: 5, or the suite file's]",
        show_default=False,
    ),
]
"""``--seeds`` of commands that train nothing."""
NumberOfEpisodes = Annotated[
    str | None,
    typer.Option(
        help=(
            "Number of episodes as of other agents: `smoke` (50), `quick` or `full`. [default: "
            "`smoke`, or the suite file's]"
        ),
        show_default=False,
    ),
]
"""``--budget`` of commands that train nothing."""
Out = Annotated[
    str | None,
    typer.Option(
        help=(
            "Run directory, or URL of an object store: `s3://bucket/run`. [default: "
            "runs/AGENT-SUITE-BUDGET]"
        ),
        show_default=False,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Fail unless there is a run to continue.")]
Silence = Annotated[
    float,
    typer.Option(
        help="Seconds without progress after which a worker is killed and its cell retried."
    ),
]
RunDirectory = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Run directory of `rlsuite-eval`, or its URL.", show_default=False
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help=(
            "Number of worker processes; 0 runs in this process. [default: the number of cores, at "
            "most 8]"
        ),
        show_default=False,
    ),
]


def check_silence(silence: float) -> None:
    """Refuse a ``--silence`` in which no worker can give a sign of life.

    Raises:
        ValueError: it is less than a second, or no finite number.
    """
    check_positive("--silence", silence)
    check_at_least("--silence", silence, 1)


def join_suites(suites: Iterable[str] | None) -> str | None:
    """Return the lists of a repeated ``--suite`` as one list; None if there is none."""
    return None if suites is None else ",".join(suites)
