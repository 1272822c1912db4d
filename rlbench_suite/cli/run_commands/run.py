"""Train agents and evaluate them, here (``run``) or on a cluster (``ray``)."""

from importlib.util import find_spec
from typing import Annotated

import typer

from rlbench_suite.cli import check_at_least, check_positive, options
from rlbench_suite.cli.run_commands import execution

Agents = Annotated[
    str,
    typer.Option("--agent", help="Agents by name, separated by commas: `ppo`, `ppo,reference`."),
]


def run(
    agents: Agents = "ppo",
    suites: options.Suite = None,
    seeds: options.Seeds = None,
    budget: options.Budget = None,
    out: options.Out = None,
    resume: options.Resume = False,
    workers: options.Workers = None,
    silence: options.Silence = 180.0,
) -> None:
    """Train agents, evaluate them on held-out episodes, and report scores with intervals.

    Run the same command again to finish an interrupted run. It repeats nothing: Ctrl-C, crashes and
    power cuts only cost the cells in progress. Add agents, tasks or seeds to a run directory in the
    same way. A cell is one agent trained on one task with one seed.

    **Examples**

    * `rlsuite-eval run` trains PPO on the smoke suite with five seeds in a few minutes

    * `rlsuite-eval run --agent ppo,reference,random --suite motor --seeds 10 --budget quick`

    * `rlsuite-eval run --agent sb3-ppo --task QuadcopterHover-v0 --out runs/hover`

    * `rlsuite-eval run --agent ppo,sac --suite my_suite.yaml` reads tasks, budget and seeds from a
      file

    Exit codes: 0 done, 1 a run failed or could not be written, 2 a wrong argument, 130 interrupted.
    """
    if workers is not None:
        check_at_least("--workers", workers, 0)
    options.check_silence(silence)
    selection = _select(suites, seeds, budget)
    execution.prepare_workers(agents)
    from rlbench_suite.evaluation.runs import runner

    manifest = runner.plan(agents, selection.suite, selection.seeds, selection.budget)
    execution.execute_locally(
        manifest.model_copy(update={"suites": selection.suite_files}),
        out or execution.run_directory(agents, selection),
        workers=execution.count_workers(workers),
        silence=silence,
        resume=resume,
    )


def ray(
    agents: Agents = "ppo",
    suites: options.Suite = None,
    seeds: options.Seeds = None,
    budget: options.Budget = None,
    out: options.Out = None,
    resume: options.Resume = False,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of worker processes. [default: as many as the cluster has room for]",
            show_default=False,
        ),
    ] = None,
    silence: options.Silence = 180.0,
    address: Annotated[
        str | None,
        typer.Option(
            help=(
                "Address of an existing cluster, or `auto`. [default: a cluster of this machine "
                "alone]"
            ),
            show_default=False,
        ),
    ] = None,
    cpus: Annotated[float, typer.Option(help="Cores for each cell.")] = 1.0,
    gpus: Annotated[
        float, typer.Option(help="GPUs for each cell; several cells share one below 1.")
    ] = 0.0,
    memory: Annotated[float, typer.Option(help="GiB of memory for each cell.")] = 0.0,
) -> None:
    """Train and evaluate agents as `run` does, with the cells on a Ray cluster.

    `run` finishes what `ray` began, and the other way round.

    **Examples**

    * `rlsuite-eval ray --suite all` uses this machine alone

    * `rlsuite-eval ray --suite all --address auto --gpus 0.25 --out s3://bucket/run`
    """
    if workers is not None:
        check_at_least("--workers", workers, 1)
    options.check_silence(silence)
    check_positive("--cpus", cpus)
    check_at_least("--gpus", gpus, 0)
    check_at_least("--memory", memory, 0)
    if not find_spec("ray"):
        raise ImportError(
            "A Ray cluster needs Ray; install it with: pip install 'rlbench-suite[ray]'"
        )
    selection = _select(suites, seeds, budget)
    execution.prepare_workers(agents)
    from rlbench_suite.evaluation.runs import runner
    from rlbench_suite.evaluation.runs.ray_executor import Resources, in_cluster

    manifest = runner.plan(agents, selection.suite, selection.seeds, selection.budget)
    resources = Resources(cpus, gpus, memory)
    execution.execute(
        manifest.model_copy(update={"suites": selection.suite_files}),
        out or execution.run_directory(agents, selection),
        lambda open_run: in_cluster(open_run, resources, address, workers, silence=silence),
        resume=resume,
    )


def _select(suites: list[str] | None, seeds: int | None, budget: str | None) -> execution.Selection:
    if seeds is not None:
        check_at_least("--seeds", seeds, 1)
    return execution.select_tasks(options.join_suites(suites) or "smoke", seeds, budget)
