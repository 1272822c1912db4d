"""Let language models play tasks (``llm``), and judge their replies again (``rejudge``)."""

import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlbench_suite.cli import check_at_least, check_positive, options, prepare_jax
from rlbench_suite.cli.run_commands import execution

if TYPE_CHECKING:
    from rlbench_suite.evaluation.cell import Event
    from rlbench_suite.evaluation.runs.open_run import OpenRun


def llm(
    model: Annotated[
        str, typer.Argument(help="Name of the model, as its server knows it.", show_default=False)
    ],
    suites: options.Suite = None,
    seeds: options.SetsOfEpisodes = None,
    budget: options.NumberOfEpisodes = None,
    episodes: Annotated[
        int | None,
        typer.Option(help="Episodes of each seed. [default: the budget's]", show_default=False),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Attempts at each episode, for pass@k and pass^k.")
    ] = 1,
    out: Annotated[
        str | None,
        typer.Option(
            help=(
                "Run directory, or URL of an object store: `s3://bucket/run`. [default: "
                "runs/llm.MODEL-SUITE-BUDGET]"
            ),
            show_default=False,
        ),
    ] = None,
    base_url: Annotated[
        str,
        typer.Option(help="Address of any OpenAI-compatible server, before `/chat/completions`."),
    ] = "https://api.openai.com/v1",
    turns: Annotated[
        bool, typer.Option("--turns", help="Play puzzles turn by turn, not by one answer.")
    ] = False,
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient", help="Read answers that are formatted in another way than asked for."
        ),
    ] = False,
    tools: Annotated[
        bool, typer.Option("--tools", help="Offer tools of the task as tools of the server.")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(help="Temperature of sampling. [default: the server's]", show_default=False),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Most tokens of a reply. [default: the server's]", show_default=False),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Episodes played at a time.")] = 16,
    timeout: Annotated[
        float,
        typer.Option(help="Seconds after which a request without a complete reply is sent again."),
    ] = 180.0,
    prices: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="INPUT OUTPUT",
            help="Dollars for a million tokens of prompts and of replies.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Let a language model play held-out episodes in conversations, and report its scores.

    The server's key is read from the environment variable OPENAI_API_KEY and stored nowhere. Run
    the same command again to finish an interrupted run: no finished episode is asked again. Other
    agents join the run by `run` with the same `--out`.

    **Examples**

    * `rlsuite-eval llm qwen3 --base-url http://localhost:8000/v1 --task SAT-v0,Wordle-v0 --samples
      4`

    * `rlsuite-eval llm gpt-5 --task SAT-v0 --episodes 10 --prices 1.25 10`
    """
    if seeds is not None:
        check_at_least("--seeds", seeds, 1)
    check_positive("--timeout", timeout)
    if not find_spec("httpx"):
        raise ImportError(
            "Language models need httpx; install it with: pip install 'rlbench-suite[llm]'"
        )
    selection = execution.select_tasks(options.join_suites(suites) or "smoke", seeds, budget)
    execution.prepare_workers("llm")
    from rlbench_suite.evaluation.runs import runner
    from rlbench_suite.evaluation.runs.language_model import LanguageModel
    from rlbench_suite.language.chat import Endpoint

    input_price, output_price = prices or (None, None)
    endpoint = Endpoint(
        model=model,
        base_url=base_url,
        temperature=temperature,
        max_tokens=max_tokens,
        concurrency=concurrency,
        timeout=timeout,
        input_price=input_price,
        output_price=output_price,
    )
    player = LanguageModel(
        endpoint=endpoint,
        samples=samples,
        episodes=episodes,
        turns=turns,
        lenient=lenient,
        tools=tools,
    )
    manifest = runner.plan(
        player.name, selection.suite, selection.seeds, selection.budget, model=player
    )

    def run_cells(run: "OpenRun") -> "Generator[Event, None, None]":
        return runner.in_process(run, player)

    execution.execute(
        manifest.model_copy(update={"suites": selection.suite_files}),
        out or execution.run_directory(player.name, selection),
        run_cells,
    )


def rejudge(
    run: Annotated[
        Path, typer.Argument(help="Run directory of `rlsuite-eval llm`.", show_default=False)
    ],
) -> None:
    """Judge the transcripts of a language model again, without the model.

    Exit with code 1 if a score differs.

    The same replies earn the same scores, so a difference means that a transcript was changed, or
    was made with another version of the task.

    **Example**: `rlsuite-eval rejudge runs/llm.qwen3-SAT-v0-smoke`
    """
    prepare_jax()
    from rlbench_suite.evaluation.runs.language_model import rejudge_run

    count = 0
    differing = 0
    for file, transcript, result in rejudge_run(run):
        count += 1
        if result != transcript.result:
            differing += 1
            game = f"episode {transcript.game.seed}, sample {transcript.game.sample}"
            print(
                f"{file}: {game}: {transcript.result} is stored, but the replies earn {result}",
                file=sys.stderr,
            )
    print(f"{count - differing} of {count} transcripts earn the scores that are stored.")
    if differing:
        raise typer.Exit(1)
