"""``rlsuite rejudge``: judge the transcripts of a language model again."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlbench_suite.cli import prepare_jax


def rejudge(run: Annotated[Path, typer.Argument(help="Run directory of `rlsuite-eval --agent llm`.")]) -> None:
    """Judge the transcripts of a language model again, without the model; exit with code 1 if a score differs.

    The same replies earn the same scores, so a difference means that a transcript was changed, or was made with another
    version of the task.

    **Example**: `rlsuite rejudge runs/llm.qwen3-SAT-v0-smoke`
    """
    prepare_jax()
    from rlbench_suite.evaluation.language_model import rejudged

    count = wrong = 0
    for file, transcript, now in rejudged(run):
        count += 1
        if now != transcript.result:
            wrong += 1
            game = f"episode {transcript.game.seed}, sample {transcript.game.sample}"
            print(f"{file}: {game}: {transcript.result} is stored, but the replies earn {now}", file=sys.stderr)
    print(f"{count - wrong} of {count} transcripts earn the scores that are stored.")
    if wrong:
        raise typer.Exit(1)
