"""Write results (``export``) and trained policies (``deploy``) of runs as files."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlbench_suite.cli import options, prepare_jax
from rlbench_suite.evaluation.runs.own_files import check_output
from rlbench_suite.foundation.atomic_files import check_file, replacing, writing
from rlbench_suite.foundation.unknown_names import unknown

POLICY_FORMATS = ("onnx", "c", "c-int8")


def export(
    run: options.RunDirectory,
    file_format: Annotated[
        str, typer.Option("--format", help="`latex`, `csv` or `huggingface`.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write. [default: print]", show_default=False)
    ] = None,
) -> None:
    """Export the results of a run.

    `latex` is a table for `booktabs` with a row for each task, `csv` has a row for each cell, and
    `huggingface` is the `model-index` of a model card.

    **Example**: `rlsuite-eval export runs/mine --format latex --out scores.tex`
    """
    check_file(out)
    check_output(out)
    from rlbench_suite.cli.run_commands.finished import read_finished_runs
    from rlbench_suite.evaluation.report.export_formats import FORMATS

    if file_format not in FORMATS:
        raise ValueError(unknown("format", file_format, FORMATS))
    with read_finished_runs([run]) as [finished_run]:
        text = FORMATS[file_format](finished_run)
    if out is None:
        print(text, end="")
    else:
        with writing(out), replacing(out) as unfinished:
            unfinished.write_text(text)
        print(f"{out}: {len(text.encode()):,} bytes.")


def deploy(
    run: Annotated[
        str, typer.Argument(help="Run directory of `rlsuite-eval`.", show_default=False)
    ],
    cell: Annotated[
        str,
        typer.Argument(
            help=(
                "Cell whose policy is written: its folder, `ppo/PMSMSpeed-v0/0`, or the beginning "
                "of it, which means the first seed."
            ),
            show_default=False,
        ),
    ],
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            help=(
                "`onnx`, `c`, or `c-int8`, which rounds weights to 8 bits and measures what that "
                "costs."
            ),
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="File to write.", show_default=False)],
    most_likely: Annotated[
        bool,
        typer.Option(
            "--most-likely",
            help="Write the most likely action of a policy that samples its actions.",
        ),
    ] = False,
) -> None:
    """Write a cell's policy as a file that runs elsewhere, and print how far its actions differ.

    The file has the acting policy with its normalisation, masks and memory: an ONNX file that
    `judge` plays, or one C99 header in physical units for a microcontroller.

    **Example**: `rlsuite-eval deploy runs/mine ppo/PMSMSpeed-v0/0 --format c --out my_motor.h`
    """
    check_file(out)
    check_output(out)
    if file_format not in POLICY_FORMATS:
        raise ValueError(unknown("format", file_format, POLICY_FORMATS))
    if "://" in run:
        raise ValueError(
            f"A policy is read from a run directory; copy {run} to this machine first."
        )
    prepare_jax()
    from rlbench_suite.evaluation.deploy import policy_export

    policy = policy_export.read_export(
        Path(run), cell, most_likely=most_likely, eight_bits=file_format == "c-int8"
    )
    data = (
        policy_export.onnx(policy)
        if file_format == "onnx"
        else policy_export.c(policy, out.stem).encode()
    )
    with writing(out), replacing(out) as unfinished:
        unfinished.write_bytes(data)
    steps = sum(len(episode.actions) for episode in policy.episodes)
    if policy.network.choices:
        difference = f"{policy.difference:.2g} of the actions differ"
    else:
        difference = f"{policy.difference:.2g} of its range is the largest difference of an action"
    loss = "" if policy.loss is None else f" 8 bits lower the mean return by {policy.loss:.4g}."
    print(
        f"{out}: {policy.cell}, {len(data):,} bytes. Over {steps:,} steps {difference} from the "
        f"policy.{loss}"
    )
    if policy.broken_limit:
        print(f"warning: {policy.broken_limit}", file=sys.stderr)
