"""``rlsuite-eval``: train agents, evaluate them on held-out episodes, and report scores with intervals."""

import math
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from rlbench_suite import registry
from rlbench_suite.cli import App, check_at_least, check_positive, compare, prepare_jax, results, sweep
from rlbench_suite.task_card import unknown

if TYPE_CHECKING:
    from rlbench_suite.evaluation.checkpoint import Checkpoint
    from rlbench_suite.evaluation.language_model import LanguageModel
    from rlbench_suite.evaluation.manifest import Cell
    from rlbench_suite.evaluation.runner import Event
    from rlbench_suite.evaluation.store import OpenRun

app = App()
app.command()(compare.compare)
app.command()(compare.power)
app.command()(results.query)
app.command()(results.export)
app.command()(sweep.sweep)
app.command()(sweep.frequency)

INTERRUPTED = 130
LLM = "llm"
LOCAL, RAY = "local", "ray"
_PANEL = "Language models (--agent llm)"
_RAY = "Several machines (--executor ray)"
_CLUSTER = ("address", "cpus", "gpus", "memory")
_ENDPOINT = (
    "model", "base_url", "api_key_env", "temperature", "max_tokens", "concurrency", "input_price", "output_price",
)  # fmt: skip
_PLAYING = ("samples", "episodes", "turns", "lenient", "tools")
_LOG_WIDTH = 140
_LOG_EVERY = 10.0
"""Without a terminal, seconds between two lines on the progress of running cells."""


@app.callback(invoke_without_command=True)
def evaluate(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Agents by name, separated by commas: `ppo`, `ppo,reference`; or `llm`, a language model. "
            "[default: `ppo`, or the checkpoint's]",
            show_default=False,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="Suites or task ids, separated by commas: `smoke`, `all` (without variants), `motor`, "
            "`SAT-v0,Wordle-v0`, `SAT-v0?difficulty=hard`; or a suite file of your own, `my_suite.yaml`. "
            "[default: `smoke`, or the checkpoint's task]",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Evaluate this saved policy instead of training: a `policy.safetensors` of a run, a zip from "
            "stable-baselines3's `model.save()`, or an ONNX file.",
            show_default=False,
        ),
    ] = None,
    controller: Annotated[
        Path | None,
        typer.Option(
            help="Evaluate this shared library instead of training: a C controller, which runs as native code. Needs "
            "`--trust`.",
            show_default=False,
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the native code of `--controller` on this machine.")
    ] = False,
    seeds: Annotated[
        int,
        typer.Option(
            help="Number of training runs for each agent and task, with seeds 0 to N-1. [default: 5, or the suite "
            "file's]",
            show_default=False,
        ),
    ] = 5,
    budget: Annotated[
        str,
        typer.Option(
            help="Length of training and evaluation: `smoke`, `quick` or `full`. The task decides the number of steps, "
            "so every agent gets the same. With `smoke`, `ppo` needs seconds for a task; slower agents need minutes. "
            "[default: `smoke`, or the suite file's]",
            show_default=False,
        ),
    ] = "smoke",
    out: Annotated[
        str | None,
        typer.Option(
            help="Run directory, or URL of an object store: `s3://bucket/run`. [default: runs/AGENT-SUITE-BUDGET]",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Fail unless there is a run to continue.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of worker processes; 0 runs in this process. [default: the number of cores, at most 8; with "
            "`ray` as many as have room]",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        Literal["studentised", "percentile"],
        typer.Option(help="Method of the intervals. `percentile` is rliable's; it is too narrow for few seeds."),
    ] = "studentised",
    executor: Annotated[
        str,
        typer.Option(help="Where cells run: `local`, worker processes of this machine, or `ray`, a Ray cluster."),
    ] = LOCAL,
    address: Annotated[
        str | None,
        typer.Option(
            help="Address of an existing Ray cluster, or `auto`. [default: a cluster of this machine alone]",
            rich_help_panel=_RAY,
            show_default=False,
        ),
    ] = None,
    cpus: Annotated[float, typer.Option(help="Cores for each cell.", rich_help_panel=_RAY)] = 1.0,
    gpus: Annotated[
        float, typer.Option(help="GPUs for each cell; several cells share one below 1.", rich_help_panel=_RAY)
    ] = 0.0,
    memory: Annotated[float, typer.Option(help="GiB of memory for each cell.", rich_help_panel=_RAY)] = 0.0,
    silence: Annotated[
        float,
        typer.Option(
            help="Seconds without progress after which a worker is killed and its cell retried, or a request to a "
            "language model is sent again."
        ),
    ] = 180.0,
    model: Annotated[
        str | None,
        typer.Option(help="Name of the model, as its server knows it.", rich_help_panel=_PANEL, show_default=False),
    ] = None,
    base_url: Annotated[
        str,
        typer.Option(
            help="Address of any OpenAI-compatible server, before `/chat/completions`.", rich_help_panel=_PANEL
        ),
    ] = "https://api.openai.com/v1",
    api_key_env: Annotated[
        str, typer.Option(help="Environment variable that holds the server's key.", rich_help_panel=_PANEL)
    ] = "OPENAI_API_KEY",
    samples: Annotated[
        int, typer.Option(help="Attempts at each episode, for pass@k and pass^k.", rich_help_panel=_PANEL)
    ] = 1,
    episodes: Annotated[
        int | None,
        typer.Option(
            help="Episodes of each seed. [default: the budget's, 50 with `smoke`]",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None,
    turns: Annotated[
        bool,
        typer.Option("--turns", help="Play puzzles turn by turn, not by one answer.", rich_help_panel=_PANEL),
    ] = False,
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient", help="Read answers that are formatted in another way than asked for.", rich_help_panel=_PANEL
        ),
    ] = False,
    tools: Annotated[
        bool,
        typer.Option("--tools", help="Offer tools of the task as tools of the server.", rich_help_panel=_PANEL),
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Temperature of sampling. [default: the server's]", rich_help_panel=_PANEL, show_default=False
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Most tokens of a reply. [default: the server's]", rich_help_panel=_PANEL, show_default=False
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Episodes played at a time.", rich_help_panel=_PANEL)] = 16,
    input_price: Annotated[
        float | None,
        typer.Option(help="Dollars for a million tokens of prompts.", rich_help_panel=_PANEL, show_default=False),
    ] = None,
    output_price: Annotated[
        float | None,
        typer.Option(help="Dollars for a million tokens of replies.", rich_help_panel=_PANEL, show_default=False),
    ] = None,
) -> None:
    """Train agents, evaluate them on held-out episodes, and report scores with intervals.

    Run the same command again to finish an interrupted run. It repeats nothing: Ctrl-C, crashes and power cuts only
    cost the cells in progress. Add agents, tasks or seeds to a run directory in the same way. A cell is one agent
    trained on one task with one seed.

    **Examples**

    * `rlsuite-eval` trains PPO on the smoke suite with five seeds in a few minutes

    * `rlsuite-eval --agent ppo,reference,random --suite motor --seeds 10 --budget quick`

    * `rlsuite-eval --agent sb3-ppo --suite QuadcopterHover-v0 --out runs/hover`

    * `rlsuite-eval --checkpoint runs/hover/cells/sb3-ppo/QuadcopterHover-v0/0/policy.safetensors --budget full`

    * `rlsuite-eval --controller my_motor.so --trust --suite PMSMSpeed-v0 --seeds 5`

    * `rlsuite-eval --agent ppo,sac --suite my_suite.yaml` reads tasks, budget and seeds from a file

    * `rlsuite-eval --suite all --executor ray --address auto --out s3://bucket/run` runs on a cluster

    * `rlsuite-eval --agent llm --model qwen3 --base-url http://localhost:8000/v1 --suite SAT-v0,Wordle-v0 --samples 4`

    Exit codes: 0 done, 1 a run failed or could not be written, 2 a wrong argument, 130 interrupted.
    """
    if context.invoked_subcommand:
        _refuse_options(context)
        return
    _check_executor(context)
    on_ray = executor == RAY
    check_at_least("--seeds", seeds, 1)
    check_at_least("--workers", workers if workers is not None else 1, int(on_ray))
    check_positive("--silence", silence)
    saved = _saved(context)
    if played := _language_model(context, agent):
        agent = played.name
    if saved:
        agent = saved.agent
        if suite is None and (suite := saved.task) is None:
            raise ValueError(f"{saved.path} does not name the task it was trained on; name it with --suite.")
    agent = agent or "ppo"
    title, suite, seeds, budget, files = _requested(context, suite or "smoke", seeds, budget)
    local_workers = 0 if on_ray or played else min(_cores(), 8) if workers is None else workers
    prepare_jax(_pool(agent))
    from rlbench_suite.evaluation import runner, storage
    from rlbench_suite.evaluation.ray_executor import Resources, in_cluster
    from rlbench_suite.evaluation.store import OpenRun

    manifest = runner.plan(agent, suite, seeds, budget, saved, played).model_copy(update={"suites": files})
    name = f"{saved.label if saved else agent}-{title}-{budget}".replace("rlsuite/", "")
    out = out or str(Path("runs", name.replace("/", "_").replace(",", "+").replace(" ", "").replace("?", ".")))
    console = Console() if sys.stdout.isatty() else Console(width=_LOG_WIDTH)
    with storage.opened(out) as place, OpenRun.open(place.path, manifest, resume=resume) as run:
        failed = []
        if missing := run.missing():
            if on_ray:
                events = in_cluster(run, Resources(cpus, gpus, memory), address, workers, silence=silence)
            elif local_workers:
                events = runner.in_pool(run, min(local_workers, len(missing)), silence=silence)
            else:
                events = runner.in_process(run, played)
            events = place.keeping(events, run)
            _announce(f"{len(missing)} of {len(run.wanted)} cells to run, into {place}", local_workers, console)
            with run.sitting():
                if saved:
                    run.keep(saved)
                try:
                    failed = _watch(events, run, console)
                except KeyboardInterrupt:
                    events.close()
                    _print_interruption(run, console, transcripts=bool(played))
                    raise typer.Exit(INTERRUPTED) from None
        _report(run, console, str(place), interval)
        for cell, reason in failed:
            print(f"failed: {cell}: {reason} (more in {place}/{runner.LOG})", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _announce(text: str, workers: int, console: Console) -> None:
    """Print what is about to run in how many processes, and the settings of the environment that change its numbers."""
    from rlbench_suite.evaluation.machine import Machine, on_settings

    console.print(text, highlight=False)
    if workers:
        console.print(f"Starting up to {workers} worker processes, which takes seconds.", highlight=False)
    for sentence in on_settings([Machine.this()]):
        console.print(sentence, style="yellow", highlight=False, markup=False)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM, and a SIGINT that the shell has told background jobs to ignore, interrupt a run like Ctrl-C."""
    with ExitStack() as undo:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.signal(number, signal.default_int_handler)
                undo.callback(signal.signal, number, before if before is not None else signal.SIG_DFL)
        yield


def _report(run: "OpenRun", console: Console, place: str, interval: Literal["studentised", "percentile"]) -> None:
    """Merge the tables of the finished cells, write the report and print it."""
    from rlbench_suite.evaluation.report import Report, print_report, write_html

    if run.results():
        run.merge()
        report = Report.of(run, interval)
        write_html(report)
        print_report(report, console)
        console.print(f"Report: {place}/report.html", highlight=False, soft_wrap=True)


def _print_interruption(run: "OpenRun", console: Console, *, transcripts: bool) -> None:
    """Print what an interrupted run has kept, and how to continue it."""
    total, left = len(run.wanted), len(run.missing())
    kept = "Transcripts of finished episodes are kept, too. " if transcripts else ""
    console.print(
        f"\nInterrupted: {total - left} of {total} cells are done and saved. "
        f"{kept}Continue with: {shlex.join(['rlsuite-eval', *sys.argv[1:]])}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _check_executor(context: typer.Context) -> None:
    """Check the executor and its options.

    Raises:
        ValueError: a wrong argument, or one that another executor does not take.
        ImportError: Ray is not installed.
    """
    given = context.params
    if given["executor"] not in (LOCAL, RAY):
        raise ValueError(unknown("executor", given["executor"], (LOCAL, RAY)))
    if given["executor"] == LOCAL:
        for name in _CLUSTER:
            if _is_given(context, name):
                raise ValueError(f"--{name} is for a Ray cluster; add --executor {RAY}.")
        return
    if given["agent"] == LLM:
        raise ValueError(f"A language model is asked from one process; leave --executor {RAY} out.")
    if not find_spec("ray"):
        raise ImportError("--executor ray needs Ray; install it with: pip install 'rlbench-suite[ray]'")
    check_positive("--cpus", given["cpus"])
    check_at_least("--gpus", given["gpus"], 0)
    check_at_least("--memory", given["memory"], 0)


def _requested(
    context: typer.Context, suite: str, seeds: int, budget: str
) -> tuple[str, str, int, str, dict[str, str]]:
    """Return the title, tasks, seeds and budget of a suite, and the hash of its file. The command line wins."""
    from rlbench_suite.evaluation.suite_file import names_a_file, read_suite_file

    if not names_a_file(suite):
        return suite, suite, seeds, budget, {}
    mine = read_suite_file(Path(suite))
    seeds = seeds if _is_given(context, "seeds") else mine.seeds
    budget = budget if _is_given(context, "budget") else mine.budget
    return mine.name, mine.ids, seeds, budget, {mine.name: mine.sha256}


def _is_given(context: typer.Context, option: str) -> bool:
    """Return True if the command line has the option, so that its value is not the default."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_options(context: typer.Context) -> None:
    """Refuse options of an evaluation before the name of a subcommand, which would ignore them.

    Raises:
        ValueError: an option was given.
    """
    for name in context.params:
        if _is_given(context, name):
            command = context.invoked_subcommand
            raise ValueError(f"--{name.replace('_', '-')} belongs to an evaluation; {command} does not take it.")


def _saved(context: typer.Context) -> "Checkpoint | None":
    """Open the checkpoint or controller to evaluate; None if neither is given."""
    path, library, agent = (context.params[name] for name in ("checkpoint", "controller", "agent"))
    if context.params["trust"] and not library:
        raise ValueError("--trust is for the native code of a --controller.")
    if library:
        if path or agent:
            raise ValueError("A controller is evaluated alone; leave --checkpoint and --agent out.")
        prepare_jax(_cores())
        from rlbench_suite.evaluation.shared_library import open_controller

        return open_controller(library, trust=context.params["trust"])
    if agent == "controller":
        raise ValueError("Native code is evaluated with --controller FILE --trust, not as an agent by its name.")
    if not path:
        return None
    from rlbench_suite.evaluation.checkpoint import open_checkpoint

    if agent is not None and "," in agent:
        raise ValueError(f"A checkpoint belongs to one agent, but --agent names several: {agent}.")
    return open_checkpoint(path, agent)


def _language_model(context: typer.Context, agent: str | None) -> "LanguageModel | None":
    """Return the language model to evaluate; None if ``agent`` names others.

    Raises:
        ValueError: a wrong argument, or one that another agent does not take.
    """
    given = context.params
    if LLM not in (agent or "").split(","):
        for name in (*_ENDPOINT, *_PLAYING):
            if _is_given(context, name):
                raise ValueError(f"--{name.replace('_', '-')} is for a language model; add --agent {LLM}.")
        return None
    if agent != LLM or given["checkpoint"] or given["controller"]:
        raise ValueError(
            f"A language model is evaluated alone, with --agent {LLM}; evaluate other agents with a command of their "
            "own and the same --out."
        )
    if given["model"] is None:
        raise ValueError(f"--agent {LLM} needs the name of a model; give it with --model.")
    if not find_spec("httpx"):
        raise ImportError("Language models need httpx; install it with: pip install 'rlbench-suite[llm]'")
    prepare_jax()
    from rlbench_suite.evaluation.language_model import LanguageModel
    from rlbench_suite.language.chat import Endpoint

    endpoint = Endpoint(**{name: given[name] for name in _ENDPOINT}, timeout=given["silence"])
    return LanguageModel(endpoint=endpoint, **{name: given[name] for name in _PLAYING})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pool(agents: str) -> int:
    """Return the number of threads in JAX's pool in each worker.

    Our own programs get one, however many cores a worker has. Otherwise sums are split among threads, and a trained
    policy depends on the number of cores and on ``--workers``. They also run fastest so: a second thread costs PPO a
    fifth of its speed. Agents of third parties get at least eight threads, because batched LAPACK calls can deadlock in
    a small pool: they wait for threads of the pool in which they run.
    """
    if set(agents.replace(" ", "").split(",")) <= set(registry.AGENTS):
        return 1
    return max(8, _cores())


def _watch(events: "Iterator[Event]", run: "OpenRun", console: Console) -> "list[tuple[Cell, str]]":
    """Print a line for each finished cell, and show a bar for each running one (in a log, a line now and then).

    A log also says when an agent's programs for a task begin to be compiled. Nothing else happens for a while then.

    Return the cells that failed, each with its reason.
    """
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn()
    bars: dict[Cell, TaskID] = {}
    failed: list[tuple[Cell, str]] = []
    compiled: set[tuple[str, str]] = set()
    done, total, said = len(run.wanted) - len(run.missing()), len(run.wanted), time.monotonic()

    def say(cell: "Cell", text: str) -> None:
        nonlocal said
        said = time.monotonic()
        console.print(f"[{done}/{total}] {cell}: {text}", highlight=False, markup=False, soft_wrap=True)

    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with _interruptible(), bar as progress:
        for kind, cell, value in events:
            match kind:
                case "started":
                    bars[cell] = progress.add_task(str(cell), total=None, state="starting")
                    programs = (cell.agent, cell.task)
                    if not console.is_terminal and programs not in compiled:
                        compiled.add(programs)
                        say(cell, "Compiling its programs, which is done once in a worker.")
                case "progress":
                    state = _state(value)
                    progress.update(bars[cell], completed=value.steps, total=value.total_steps, state=state)
                    if not console.is_terminal and time.monotonic() - said > _LOG_EVERY:
                        say(cell, state)
                case "finished":
                    done += 1
                    say(cell, f"score {value.score:.3f}, return {value.mean_return:.4g}, {value.wall_seconds:.1f} s")
                case "retried":
                    say(cell, f"retried: {value}")
                case "failed":
                    say(cell, f"failed: {value}")
                    failed.append((cell, value))
            if kind not in ("started", "progress") and cell in bars:
                progress.remove_task(bars.pop(cell))
    return failed


def _state(progress: Any) -> str:
    from rlbench_suite.evaluation.chart import number
    from rlbench_suite.evaluation.language_model import Episodes

    if isinstance(progress, Episodes):
        cost = "" if progress.cost is None else f", ${progress.cost:.2f}"
        return f"{progress.steps} of {progress.total_steps} episodes, {number(progress.tokens)} tokens{cost}"
    speed = f"{number(progress.steps / progress.seconds)} steps/s" if progress.seconds else ""
    return speed if math.isnan(progress.episode_return) else f"{speed}, return {progress.episode_return:.4g}"
