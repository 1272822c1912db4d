"""``rlsuite``: list and show tasks, play them, and measure their speed."""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console

from rlbench_suite.cli import App, card_tables, check_at_least, check_positive, prepare_jax
from rlbench_suite.cli.task_commands import dev, puzzles, record, serve, video
from rlbench_suite.core import registry
from rlbench_suite.evaluation.report.whole_table import Table
from rlbench_suite.foundation.unknown_names import unknown

if TYPE_CHECKING:
    from rlbench_suite.core.episode import Episode
    from rlbench_suite.core.task import Task

app = App(
    help=(
        "List and show tasks, play and record them, serve them to language models, and measure "
        "their speed."
    )
)
app.add_typer(puzzles.app, name="puzzles")
app.add_typer(dev.app, name="dev")
app.command()(serve.serve)
app.command()(serve.mcp)
app.command()(record.record)
app.command()(video.video)

TaskId = Annotated[str, typer.Argument(help="Id of a task; `rlsuite/` may be left out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Suite = Annotated[str, typer.Argument(help="Suites or task ids, separated by commas.")]


@app.command("list")
def list_tasks(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="List only tasks whose id, summary or tags contain all these words, in any case.",
            show_default=False,
        ),
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="List only this family.", show_default=False)
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            help="List only tasks with this tag; repeat it to require several.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List tasks by family: all of them, or those that pass every filter.

    **Examples**

    * `rlsuite list`

    * `rlsuite list speed --family motor --tag discrete --json`
    """
    listed = registry.cards().values()
    families = dict.fromkeys(card.family for card in listed)
    if family is not None and family not in families:
        raise ValueError(unknown("family", family, families))
    known_tags = {known_tag for card in listed for known_tag in card.tags}
    for required_tag in tag or ():
        if required_tag not in known_tags:
            raise ValueError(unknown("tag", required_tag, known_tags))
    selected = []
    for card in listed:
        text = " ".join((card.id, card.summary, *card.tags)).lower()
        has_words = all(word.lower() in text for word in words or ())
        if has_words and family in (None, card.family) and set(tag or ()) <= set(card.tags):
            selected.append(card)
    if as_json:
        print(json.dumps([card_tables.card_as_json(card) for card in selected], indent=2))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("family", "task", "summary"):
        table.add_column(column, no_wrap=column != "summary")
    family_above = ""
    for card in selected:
        table.add_row("" if card.family == family_above else card.family, card.name, card.summary)
        family_above = card.family
    Console().print(
        table if selected else "No task passes every filter; `rlsuite list` shows all tasks."
    )
    print(
        f"Suites: {', '.join(registry.suites())}. Agents: "
        f"{', '.join(registry.agent_entry_points())}."
    )


@app.command()
def show(task_id: TaskId, as_json: AsJson = False) -> None:
    """Show a task: its card, key figures, signals, measures and reference scores.

    Key figures are ranges and accuracies in physical units, such as the range of a drive's set
    points.

    **Examples**

    * `rlsuite show SAT-v0`

    * `rlsuite show "PMSMSpeed-v0?context=my_motor.yaml" --json`
    """
    card = registry.card(task_id)
    if as_json:
        print(json.dumps(card_tables.task_as_json(card), indent=2))
        return
    console = Console()
    for table in card_tables.task_tables(card):
        console.print(table)


@app.command()
def context(task_id: TaskId) -> None:
    """Print the constants of a task as a YAML file, to be filled in with those of your own machine.

    The file is then part of an id, `PMSMSpeed-v0?context=my_motor.yaml`, wherever a command takes
    an id. Calibrate it first, so that scores have a floor and a reference.

    **Examples**

    * `rlsuite context PMSMSpeed-v0 > my_motor.yaml`

    * `rlsuite dev calibrate "PMSMSpeed-v0?context=my_motor.yaml"`

    * `rlsuite-eval --agent ppo --task "PMSMSpeed-v0?context=my_motor.yaml"`
    """
    from rlbench_suite.contexts.context import template

    task = registry.card(task_id).build()
    constants = task.constants()
    if not constants:
        raise ValueError(f"{task.card.id} takes no context: its constants cannot be set.")
    print(
        template(task.card.id, constants, task.series(), task.card.source, task.card.context),
        end="",
    )


@app.command()
def play(
    task_id: video.OptionalTask = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Watch the family's reference player.")
    ] = False,
    run: video.RunCell = None,
    window: Annotated[
        bool, typer.Option("--window", help="Also show the task in a window; needs pygame-ce.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the first episode. [default: random]", show_default=False),
    ] = None,
    difficulty: Annotated[
        str | None,
        typer.Option(help="Difficulty tier. [default: the task's own]", show_default=False),
    ] = None,
) -> None:
    """Play a task by typing actions, or watch its reference player or a trained policy.

    Type `q` to quit, `r` for a new episode.

    Episodes are of the split `train`.

    **Examples**

    * `rlsuite play Wordle-v0`

    * `rlsuite play QuadcopterHover-v0 --reference --window`

    * `rlsuite play --run runs/mine ppo/QuadcopterHover-v0/0 --window`
    """
    if reference and run:
        raise ValueError("Name one player: --reference, or --run RUN CELL.")
    card = video.card_of(task_id, run)
    if window and not find_spec("pygame"):
        raise ImportError(
            "A window needs pygame-ce; install it with: pip install 'rlbench-suite[render]'"
        )
    prepare_jax()
    import gymnasium
    import numpy as np

    from rlbench_suite.adapters.entry_points import make

    # Our own make, because gymnasium.make knows listed ids only.
    env: gymnasium.Env[Any, Any] = make(card.id, difficulty=difficulty, render_mode="rgb_array")
    env = gymnasium.wrappers.TimeLimit(env, card.horizon)
    if window:
        env = gymnasium.wrappers.HumanRendering(env)
    core: Any = env.unwrapped
    watched = reference or run is not None
    if watched and seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    observation, info = env.reset(seed=seed)
    choose = _watch(core) if reference else _ask(core.task)
    if run:
        choose = _replay(core.task, run, seed)
    print(
        f"{card.summary}\n{core.task.how_to_act()}"
        f"{'' if watched else ' Type q to quit, r for a new episode.'}"
    )
    while True:
        print(f"\n{core.task.describe(core.episode.state, core.params)}")
        action = choose(core.episode, observation, info)
        if isinstance(action, str):
            if action == "q":
                break
            observation, info = env.reset()
            continue
        spelled_action = core.task.spell(action, core.episode.state, core.params)
        observation, reward, terminated, truncated, info = env.step(action)
        refusal = f" ({info['invalid_reason']})" if "invalid_reason" in info else ""
        if watched:
            print(f"> {spelled_action}")
        print(f"reward {_numbers(reward)}{refusal}")
        if terminated or truncated:
            why = info.get("end_reason", "the time is up")
            score = f", score {info['score']:.3f}" if "score" in info else ""
            if card.constraint:
                score += f", cost {info['cost_so_far']:.4g} of {card.constraint.limit:g}"
            print(f"\n{core.task.describe(core.episode.state, core.params)}")
            print(f"Over: {why}. Return {_numbers(core.episode.total)}{score}.")
            if watched:
                break
            observation, info = env.reset()
    env.close()


def _numbers(reward: Any) -> str:
    """Return a reward or a return with six digits, without the noise of float32.

    Several numbers stand in brackets.
    """
    if getattr(reward, "shape", ()) == ():
        return f"{float(reward):g}"
    return f"[{', '.join(f'{number:g}' for number in reward.tolist())}]"


def _replay(
    task: "Task[Any, Any]", run: tuple[Path, str], seed: int | None
) -> "Callable[[Episode, Any, dict[str, Any]], Any]":
    """Return the actions of a trained policy in the first episode of a seed, one at each call."""
    from rlbench_suite.evaluation.analysis import recording
    from rlbench_suite.evaluation.analysis.video import actions_of_episode

    assert seed is not None
    _, policy = recording.policy_of_cell(task, *run)
    actions = iter(actions_of_episode(task, policy, seed, "train"))

    def choose(episode: "Episode", observation: Any, info: dict[str, Any]) -> Any:
        if sys.stdout.isatty():
            time.sleep(0.1)
        return next(actions)

    return choose


def _ask(task: "Task[Any, Any]") -> "Callable[[Episode, Any, dict[str, Any]], Any]":
    def choose(episode: "Episode", observation: Any, info: dict[str, Any]) -> Any:
        while True:
            try:
                answer = input("> ").strip()
            except (EOFError, KeyboardInterrupt):
                return "q"
            if answer in ("q", "r"):
                return answer
            try:
                return task.parse(answer, episode.state, episode.params)
            except ValueError as error:
                print(f"Not understood: {error}")

    return choose


def _watch(env: Any) -> "Callable[[Episode, Any, dict[str, Any]], Any]":
    import jax

    from rlbench_suite.core.episode import Role, draw_key
    from rlbench_suite.core.policy import View

    task = env.task
    player = env.reference()
    memory: Any = None

    @jax.jit
    def act(memory: Any, episode: "Episode", observation: Any, mask: Any) -> Any:
        view = View(observation, mask, episode.state, episode.params)
        return player.act(
            memory, view, draw_key(episode.seed, episode.index, episode.t, Role.POLICY)
        )

    def choose(episode: "Episode", observation: Any, info: dict[str, Any]) -> Any:
        nonlocal memory
        if episode.t == 0:
            memory = player.initial(episode.params)
        mask = info["action_mask"].astype(bool) if "action_mask" in info else None
        action, memory = act(memory, episode, observation, mask)
        if sys.stdout.isatty():
            time.sleep(0.1)
        return jax.device_get(action).astype(task.action_space.dtype)

    return choose


@app.command()
def bench(
    suite: Suite = "smoke",
    envs: Annotated[
        int, typer.Option(help="Number of environments in the batched and fused runs.")
    ] = 4096,
    seconds: Annotated[
        float, typer.Option(help="Seconds for each measurement, compilation excluded.")
    ] = 1.0,
) -> None:
    """Measure steps per second with random actions on this device, resets included.

    Single: `gymnasium.make`. Batched: the vector environment with NumPy arrays in and out. Fused:
    one compiled program that acts, steps and resets, as in training. It draws random actions at
    every step; the other two get theirs beforehand. Simulators on the host are not fused; their
    batch steps 8 in turn. Numbers are measured one after another: beside other work, run the
    command several times before you compare them.

    **Example**: `rlsuite bench QuadcopterHover-v0,SAT-v0 --envs 8192`
    """
    check_at_least("--envs", envs, 1)
    check_positive("--seconds", seconds)
    cards = registry.resolve_suite(suite)
    prepare_jax()
    import jax

    from rlbench_suite.cli.task_commands.speed import measure_batch, measure_fused, single

    width = max(len(card.name) for card in cards)
    print(f"Steps per second on {jax.devices()[0].device_kind}, {envs} envs")
    print(
        f"{'task':<{width}}" + "".join(f"{column:>16}" for column in ("single", "batched", "fused"))
    )
    for card in cards:
        # Every number is shown as soon as it is measured, in a pipe too: each may take a minute to
        # compile.
        print(f"{card.name:<{width}}", end="", flush=True)
        measures = [
            partial(single, card, seconds),
            partial(measure_batch, card, 8 if card.host else envs, seconds),
        ]
        if not card.host:
            measures.append(partial(measure_fused, card, envs, seconds))
        for measure in measures:
            print(f"{measure():>16,.0f}", end="", flush=True)
        print()
