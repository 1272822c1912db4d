"""``rlsuite``: list and show tasks, play them, and measure their speed."""

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape

from rlbench_suite.cli import App, check_at_least, check_positive, prepare_jax
from rlbench_suite.cli.task_commands import dev, puzzles, record, serve, video
from rlbench_suite.contexts.unknown_names import unknown
from rlbench_suite.core import registry
from rlbench_suite.core.component import action_in_words, component_tables
from rlbench_suite.core.task_card import load
from rlbench_suite.evaluation.report.whole_table import Table

if TYPE_CHECKING:
    from rlbench_suite.core.component import KeyFigure, Row, Signal
    from rlbench_suite.core.episode import Episode
    from rlbench_suite.core.task import Task
    from rlbench_suite.core.task_card import TaskCard

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
        print(json.dumps([_facts(card) for card in selected], indent=2))
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


def _facts(card: "TaskCard") -> dict[str, Any]:
    """Return a card as plain data, with its measured scores by difficulty.

    A task with only one difficulty has scores of ``default``.
    """
    plain = (
        "id family summary source horizon tags agents objectives weights difficulties contexts "
        "variant host optimum"
    )
    tiers = {tier or "default": card.scores(tier) for tier in card.difficulties or (None,)}
    return {
        **{name: getattr(card, name) for name in plain.split()},
        "partially_observed": card.partially_observed,
        "constraint": asdict(card.constraint) if card.constraint else None,
        "zero": {tier: zero._asdict() for tier, zero in card.zeros().items()},
        "chance": card.chance,
        "hard_for_reference": card.hard_for_reference,
        "open_loop": card.open_loop,
        "generalization": card.generalization,
        "settings": {
            name: {"value": card.settings[name], "allowed": allowed}
            for name, allowed in registry.allowed_settings(card).items()
        },
        "installed": card.installed,
        "scores": {
            tier: {who: asdict(s) for who, s in players.items()}
            for tier, players in tiers.items()
            if players
        },
    }


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
    task = card.build()
    tables = component_tables(task)
    optimum = getattr(task, "optimum", card.optimum)
    if as_json:
        spaces = {
            name: str(getattr(task, f"{name}_space"))
            for name in ("observation", "action", "reward")
        }
        components: dict[str, Any] = {
            f"{name}_components": [_as_json(row) for row in rows] for name, rows in tables.items()
        }
        components["key_figures"] = [_as_json(figure) for figure in task.key_figures()]
        components["signals"] = {
            name: [_as_json(signal) for signal in signals] for name, signals in task.signals.items()
        }
        noop = task.noop_action()
        built = {
            "spaces": spaces,
            "measures": task.measures,
            "period": task.period,
            "success": task.success_meaning,
            "noop_action": {"action": noop.tolist(), "meaning": action_in_words(task, noop)},
        }
        ceilings = {"optimum": optimum, "memoryless_ceiling": task.memoryless_ceiling}
        print(json.dumps(_facts(card) | built | ceilings | components, indent=2))
        return
    facts = {
        "source": card.source,
        "family": card.family,
        "horizon": f"{card.horizon} steps{f' of {task.period:.6g} s' if task.period else ''}",
        "difficulties": ", ".join(
            f"{tier} ({number:g})" for tier, number in card.difficulties.items()
        )
        or "one",
        "as a question": f"difficulty is {load(card.puzzle).known_tiers()}" if card.puzzle else "",
        "contexts": "sampled; train and test differ" if card.contexts else "one",
        "agents": str(card.agents),
        "objectives": ", ".join(
            f"{o} (x {w:g})" for o, w in zip(card.objectives, card.weights, strict=True)
        ),
        "optimum": "" if optimum is None else f"{optimum:g}",
        "ceiling without memory": ""
        if task.memoryless_ceiling is None
        else f"{task.memoryless_ceiling:g}",
        "constraint": str(card.constraint or ""),
        "success": task.success_meaning,
        "no-op action": action_in_words(task, task.noop_action()),
        "score 0": card.zero_in_words(),
        "success by chance": card.chance_in_words(),
        "failures of the reference": card.failures_in_words(),
        "blind play": card.open_loop,
        "generalization": card.generalization,
        "observation": _space(task.observation_space),
        "action": _space(task.action_space),
        "reward": _space(task.reward_space),
        "tags": ", ".join(card.tags),
    }
    table = Table(
        title=f"{card.id}: {card.summary}", title_justify="left", show_header=False, box=None
    )
    for name, value in facts.items():
        if value:
            table.add_row(f"[bold]{name}", value)
    for name, meaning in task.measures.items():
        table.add_row(f"[bold]info\\['{name}']", meaning)
    console = Console()
    console.print(table)
    if card.settings:
        console.print(_settings(card))
    if figures := task.key_figures():
        console.print(_key_figures(figures))
    for title, rows in tables.items():
        console.print(
            _components(f"{title.capitalize()}{', of each agent' * (card.agents > 1)}", rows)
        )
    scores = Table(title="Measured returns on the test split", title_justify="left")
    for column in ("difficulty", "player", "mean", "95 % interval", "episodes", "success", "cost"):
        scores.add_column(column, justify="left" if column in ("difficulty", "player") else "right")
    for tier in card.difficulties or (None,):
        for player, s in card.scores(tier).items():
            measured = ("-" if value is None else f"{value:.3g}" for value in (s.success, s.cost))
            interval = f"[{s.low:.4g}, {s.high:.4g}]"
            scores.add_row(
                tier or "-", player, f"{s.mean:.4g}", interval, str(s.episodes), *measured
            )
    none = (
        f"No measured returns yet; run: {card.measuring_command}"
        if card.reference
        else "No reference player."
    )
    console.print(scores if scores.rows else none)
    if card.puzzle:
        console.print(_one_shot_scores(card))


def _as_json(row: "Row | Signal | KeyFigure") -> dict[str, Any]:
    """Return a row, signal or key figure as plain data.

    Infinities become None, because JSON lacks them.
    """
    return {
        name: None if value in (math.inf, -math.inf) else value
        for name, value in row._asdict().items()
    }


def _settings(card: "TaskCard") -> Table:
    """Return a table of the settings of a card and of the values that each may take."""
    table = Table(title="Settings, keywords of gymnasium.make", title_justify="left")
    for column in ("setting", "here", "allowed"):
        table.add_column(column)
    for name, allowed in registry.allowed_settings(card).items():
        table.add_row(name, str(card.settings[name]), ", ".join(map(str, allowed)))
    return table


def _key_figures(figures: "tuple[KeyFigure, ...]") -> Table:
    """Return a table of key figures."""
    table = Table(title="Key figures", title_justify="left")
    for column in ("name", "meaning", "value", "unit"):
        table.add_column(column, justify="right" if column == "value" else "left")
    for figure in figures:
        table.add_row(
            *(escape(text) for text in (figure.name, figure.meaning, figure.value, figure.unit))
        )
    return table


def _components(title: str, rows: "list[Row]") -> Table:
    """Return a table of the components of a space."""
    table = Table(title=title, title_justify="left")
    for column in ("entries", "name", "meaning", "unit", "low", "high"):
        table.add_column(column, justify="right" if column in ("low", "high") else "left")
    for row in rows:
        bounds = ("" if bound is None else f"{bound:g}" for bound in (row.low, row.high))
        table.add_row(
            *(escape(text) for text in (row.entries, row.name, row.meaning, row.unit, *bounds))
        )
    return table


def _one_shot_scores(card: "TaskCard") -> Table:
    """Score trivial answers and the exact solver's."""
    from rlbench_suite.evaluation.analysis.one_shot import NO_SKILL, skill

    table = Table(
        title="Measured scores of one-shot answers on the test split", title_justify="left"
    )
    for column in ("difficulty", "player", "score", "95 % interval", "skill"):
        table.add_column(column, justify="left" if column in ("difficulty", "player") else "right")
    for tier in card.difficulties:
        measured = card.one_shot_scores(tier)
        for player, s in measured.items():
            worth = "" if player in NO_SKILL else f"{skill(s.mean, measured['guess'].mean):.3f}"
            table.add_row(tier, player, f"{s.mean:.4g}", f"[{s.low:.4g}, {s.high:.4g}]", worth)
    return table


def _space(space: Any) -> str:
    """Describe a space in one line, whatever its size."""
    if hasattr(space, "spaces"):
        return "; ".join(f"{name}: {_space(subspace)}" for name, subspace in space.spaces.items())
    if hasattr(space, "low"):
        return (
            f"Box of shape {space.shape}, {space.dtype}, from {space.low.min():g} to "
            f"{space.high.max():g}"
        )
    return str(space)


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
