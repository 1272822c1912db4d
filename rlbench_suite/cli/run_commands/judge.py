"""``rlsuite-eval judge``: evaluate a policy that is trained already."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlbench_suite.cli import check_at_least, options, prepare_jax
from rlbench_suite.cli.run_commands import execution

if TYPE_CHECKING:
    from rlbench_suite.evaluation.policy_files.checkpoint import Checkpoint


_LIBRARY_SUFFIXES = (".so", ".dylib", ".dll")


def judge(
    file: Annotated[
        Path,
        typer.Argument(
            help=(
                "A `policy.safetensors` of a run, a zip from stable-baselines3's `model.save()`, "
                "an ONNX file, or with `--trust` a shared library."
            ),
            show_default=False,
        ),
    ],
    agent: Annotated[
        str | None,
        typer.Option(
            help="Agent that made the file. [default: the one that the file names]",
            show_default=False,
        ),
    ] = None,
    suites: options.SuiteOfPolicy = None,
    seeds: options.SetsOfEpisodes = None,
    budget: options.NumberOfEpisodes = None,
    out: options.Out = None,
    resume: options.Resume = False,
    workers: options.Workers = None,
    silence: options.Silence = 180.0,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help=(
                "The file is a shared library, a C controller: run its native code, which may do "
                "anything on this machine."
            ),
        ),
    ] = False,
) -> None:
    """Evaluate a saved policy on held-out episodes, without training it.

    Each seed has its own episodes.

    **Examples**

    * `rlsuite-eval judge runs/hover/cells/sb3-ppo/QuadcopterHover-v0/0/policy.safetensors --budget
      full`

    * `rlsuite-eval judge model.zip --agent sb3-sac --task QuadcopterHover-v0`

    * `rlsuite-eval judge my_motor.so --trust --task PMSMSpeed-v0`
    """
    if seeds is not None:
        check_at_least("--seeds", seeds, 1)
    if workers is not None:
        check_at_least("--workers", workers, 0)
    options.check_silence(silence)
    checkpoint = _open_policy(file, agent, trust=trust)
    suite = options.join_suites(suites) or checkpoint.task
    if suite is None:
        raise ValueError(f"{file} does not name the task it was trained on; name it with --task.")
    selection = execution.select_tasks(suite, seeds, budget)
    execution.prepare_workers(checkpoint.agent)
    from rlbench_suite.evaluation.runs import runner

    manifest = runner.plan(
        checkpoint.agent, selection.suite, selection.seeds, selection.budget, checkpoint=checkpoint
    )
    execution.execute_locally(
        manifest.model_copy(update={"suites": selection.suite_files}),
        out or execution.run_directory(checkpoint.label, selection),
        workers=execution.count_workers(workers),
        silence=silence,
        resume=resume,
        checkpoint=checkpoint,
    )


def _open_policy(file: Path, agent: str | None, *, trust: bool) -> "Checkpoint":
    """Open a saved policy or a shared library.

    A file is a library if the command line trusts it or if it is named like one.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is native code without ``--trust`` or with ``--agent``, or names no agent or
            another one.
    """
    if not trust and file.suffix.lower() not in _LIBRARY_SUFFIXES:
        from rlbench_suite.evaluation.policy_files.checkpoint import open_checkpoint

        return open_checkpoint(file, agent)
    if agent is not None:
        raise ValueError(f"{file} is native code, which no agent made; leave --agent out.")
    prepare_jax(execution.count_cores())
    from rlbench_suite.evaluation.policy_files.shared_library import open_controller

    return open_controller(file, trust=trust)
