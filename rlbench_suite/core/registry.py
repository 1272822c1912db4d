"""One table of families and agents for Gymnasium, PettingZoo, the suites and the command line.

A family is a folder of ``rlbench_suite.envs``; the ``CARDS`` of every ``cards.py`` below it are
found without being listed. Built-in agents are named here as strings. Third parties add theirs
through the entry-point groups ``rlbench_suite.families`` (a module with ``CARDS``) and
``rlbench_suite.agents`` (an agent factory).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard, load
from rlbench_suite.foundation.unknown_names import PROPOSED_NAMES, one_of, unknown

if TYPE_CHECKING:
    from rlbench_suite.core.agent import Agent

AGENTS = {
    "random": "rlbench_suite.baselines.scripted:RandomAgent",
    "noop": "rlbench_suite.baselines.scripted:NoopAgent",
    "reference": "rlbench_suite.baselines.scripted:ReferenceAgent",
    "mpc": "rlbench_suite.baselines.mpc:MPC",
    "bc": "rlbench_suite.baselines.offline.bc:BC",
    "td3-bc": "rlbench_suite.baselines.offline.td3_bc:TD3BC",
    "ppo": "rlbench_suite.baselines.ppo.agent:PPO",
    "self-play": "rlbench_suite.baselines.games.self_play:SelfPlay",
    "fictitious-play": "rlbench_suite.baselines.games.fictitious_play:FictitiousPlay",
    "psro": "rlbench_suite.baselines.games.psro:PSRO",
    "league": "rlbench_suite.baselines.games.league:League",
    "alphazero": "rlbench_suite.baselines.games.alphazero:AlphaZero",
    "mbppo": "rlbench_suite.baselines.ppo.model_based:ModelBasedPPO",
    "hdpo": "rlbench_suite.baselines.hdpo:HDPO",
    "weighted-ppo": "rlbench_suite.baselines.morl.weighted_ppo:WeightedPPO",
    "weighted-sac": "rlbench_suite.baselines.morl.weighted_sac:WeightedSAC",
    "pareto-q": "rlbench_suite.baselines.morl.pareto_q:ParetoQ",
    "pcn": "rlbench_suite.baselines.morl.pcn:PCN",
    "morl-d": "rlbench_suite.baselines.morl.morl_d:MORLD",
    "envelope": "rlbench_suite.baselines.morl.envelope:Envelope",
    "gpi-ls": "rlbench_suite.baselines.morl.gpi_ls:GPILS",
    "sac": "rlbench_suite.baselines.replay.sac:SAC",
    "dqn": "rlbench_suite.baselines.replay.dqn:DQN",
    "mappo": "rlbench_suite.baselines.marl.mappo:MAPPO",
    "mean-field-ppo": "rlbench_suite.baselines.marl.mean_field_ppo:MeanFieldPPO",
    "vdn": "rlbench_suite.baselines.marl.vdn:VDN",
    "qmix": "rlbench_suite.baselines.marl.qmix:QMIX",
    "sb3-ppo": "rlbench_suite.baselines.sb3:SB3PPO",
    "sb3-a2c": "rlbench_suite.baselines.sb3:SB3A2C",
    "sb3-dqn": "rlbench_suite.baselines.sb3:SB3DQN",
    "sb3-sac": "rlbench_suite.baselines.sb3:SB3SAC",
    "sb3-td3": "rlbench_suite.baselines.sb3:SB3TD3",
    "sb3-ddpg": "rlbench_suite.baselines.sb3:SB3DDPG",
}

DATASETS = "rlbench_suite.datasets.access"
ENVS = "rlbench_suite.envs"
GENERALISATION = "generalisation"
_ENTRY_POINT = "rlbench_suite.adapters.entry_points:make"
_MODULE_PREFIX = "rlbench_suite:"
"""Prefix by which ``gymnasium.make`` imports the package before it looks for an id."""

SMOKE = (
    "rlsuite/SAT-v0",
    "rlsuite/Wordle-v0",
    "rlsuite/PMSMCurrent-v0",
    "rlsuite/QuadcopterHover-v0",
    "rlsuite/TreasureMaps-v0",
    "rlsuite/Vicsek-v0",
)


def _folder() -> Path:
    """Find the folder of all built-in families without importing any of them."""
    spec = importlib.util.find_spec(ENVS)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def families() -> tuple[str, ...]:
    """Name the built-in families, in alphabetical order."""
    return tuple(
        dict.fromkeys(module.removeprefix(f"{ENVS}.").split(".")[0] for module in _card_modules())
    )


@cache
def _card_modules() -> tuple[str, ...]:
    """Name the module of every ``cards.py``."""
    folder = _folder()
    files = sorted(file.relative_to(folder) for file in folder.glob("*/**/cards.py"))
    return tuple(".".join((ENVS, *file.with_suffix("").parts)) for file in files)


@cache
def all_cards() -> dict[str, TaskCard]:
    """Return every task card by id, in the order of the families, including cards that no list has.

    Raises:
        ValueError: two families claim one id.
    """
    plugins = {point.name: point.value for point in entry_points(group="rlbench_suite.families")}
    table: dict[str, TaskCard] = {}
    for module in (*_card_modules(), *plugins.values()):
        for card in importlib.import_module(module).CARDS:
            if card.id in table:
                raise ValueError(f"{card.id} is defined twice, the second time by {module}")
            table[card.id] = card
    return table


def cards() -> dict[str, TaskCard]:
    """Return the task cards that lists and suites have, by id."""
    return {task_id: card for task_id, card in all_cards().items() if card.listed}


def card(task_id: str, **settings: Any) -> TaskCard:
    """Return the card of an id, or of the task that differs from it by these settings only.

    ``rlsuite/`` may be left out, and Gymnasium's ``rlbench_suite:`` may come first. An id without
    its version is that of the latest one, with Gymnasium's warning. An id may also name settings,
    each once, as in ``Name-v0?setting=value&other=value``; ``settings`` override them. One may be
    ``difficulty``, a tier's name, which becomes the default of the card. Another may be
    ``context``, a mapping or a file of constants (:mod:`rlbench_suite.contexts.context`), a third
    ``agents``, a number in the card's ``agent_range``, a fourth ``objectives``, which is
    ``several`` (:mod:`rlbench_suite.core.objectives`).

    Raises:
        OSError: the file of a context cannot be read.
        ValueError: no such task, no such setting, a setting that the id names twice, no task with
            these settings, or a context that is not for it.
    """
    if not isinstance(task_id, str):
        raise ValueError(f"A task is named by its id, such as 'SAT-v0', got {task_id!r}.")
    name, _, query = task_id.removeprefix(_MODULE_PREFIX).partition("?")
    full = _full_id(name, all_cards())
    if full is None:
        raise ValueError(unknown("task", name, cards()))
    task_card = all_cards()[full]
    if query:
        settings = _settings_of_query(query, full) | settings
    if not settings:
        return task_card
    difficulty = settings.pop("difficulty", None)
    context = settings.pop("context", None)
    agents = settings.pop("agents", None)
    objectives = settings.pop("objectives", None)
    siblings = _siblings(task_card)
    fixed = dict(task_card.fixed)
    for key in [key for key in settings if key in fixed]:
        allowed = (sibling.settings[key] for sibling in siblings)
        fixed[key] = one_of(f"{key} of {full}", settings.pop(key), allowed)
    if fixed != task_card.fixed:
        nearest = sorted(siblings, key=lambda sibling: len(fixed.items() - sibling.fixed.items()))
        task_card = nearest[0]
        if task_card.fixed != fixed:
            names = ", ".join(sibling.id for sibling in nearest[:PROPOSED_NAMES])
            raise ValueError(f"No task has {fixed}. Nearest: {names}.")
    task_card = task_card.with_settings(**settings)
    if agents is not None:
        task_card = task_card.with_agents(agents)
    if context is not None:
        task_card = _with_context(task_card, context)
    if objectives is not None:
        one_of(f"objectives of {full}", objectives, ("several",))
        task_card = task_card.with_objectives()
    return task_card if difficulty is None else task_card.with_difficulty(difficulty)


def _with_context(shipped: TaskCard, source: Any) -> TaskCard:
    """Return the card with the context that a mapping, a file or a label describes."""
    from rlbench_suite.contexts.context import read_context

    def series_for(context: Any) -> Any:
        return shipped.with_context(context).build().series()

    task = shipped.build()
    return shipped.with_context(
        read_context(source, shipped.id, task.constants(), task.series(), series_for)
    )


def _settings_of_query(query: str, full: str) -> dict[str, Any]:
    """Return the settings that an id names behind its question mark.

    Raises:
        ValueError: one is named more than once.
    """
    pairs = [(key, value) for key, _, value in (pair.partition("=") for pair in query.split("&"))]
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            values = ", ".join(repr(value) for name, value in pairs if name == key)
            raise ValueError(
                f"{full} names {key} {count} times ({values}): give each setting once."
            )
    return dict(pairs)


def constraint(task_id: str) -> Constraint | None:
    """Return the constraint of an id, whatever its settings, difficulty and context.

    Return None for an unknown id too.
    """
    task_card = all_cards().get(task_id.partition("?")[0])
    return task_card.constraint if task_card else None


def _siblings(card: TaskCard) -> list[TaskCard]:
    """Return the cards of a family that have the same fixed settings as this one.

    The values of these settings may differ.
    """
    family = (member for member in all_cards().values() if member.family == card.family)
    return [member for member in family if member.fixed.keys() == card.fixed.keys()]


def allowed_settings(card: TaskCard) -> dict[str, tuple[Any, ...]]:
    """Return the values that each setting of a card may take while the others stay.

    A setting's default or own value comes first.
    """
    allowed: dict[str, tuple[Any, ...]] = {name: (value,) for name, value in card.fixed.items()}
    for sibling in _siblings(card):
        differing = [name for name, value in card.fixed.items() if sibling.fixed[name] != value]
        if len(differing) == 1:
            allowed[differing[0]] += (sibling.fixed[differing[0]],)
    return {**allowed, **card.choices}


def _full_id(task_id: str, table: Mapping[str, TaskCard]) -> str | None:
    """Return the full id of a name that may lack its namespace or its version.

    The latest version is taken. Return None for an unknown name.

    Raises:
        ValueError: there is no such version of it.
    """
    full = task_id if "/" in task_id else f"rlsuite/{task_id}"
    if full in table:
        return full
    name, _, version = (
        full.rpartition("-v") if full.rpartition("-v")[2].isdecimal() else (full, "", "")
    )
    names_and_versions = (known_id.rpartition("-v") for known_id in table)
    versions = sorted(
        int(number) for known_name, _, number in names_and_versions if known_name == name
    )
    if not versions:
        return None
    if version:
        raise ValueError(
            f"{name} has no version v{version}. Known: "
            f"{', '.join(f'v{number}' for number in versions)}."
        )
    latest = f"{name}-v{versions[-1]}"
    gymnasium.logger.warn(f"Using the latest version, {latest}, of {task_id}.")
    return latest


def suites() -> dict[str, tuple[str, ...]]:
    """Return the ids of each suite.

    The suites are ``smoke``, ``all`` (without variants), and one for each family (with them).

    The suite :data:`GENERALISATION` has the ids of ``all`` whose contexts are sampled, so that
    those of training and test differ. Agents are then evaluated on both.
    """
    families = dict.fromkeys(c.family for c in cards().values())
    by_family = {
        family: tuple(c.id for c in cards().values() if c.family == family) for family in families
    }
    tasks = [c for c in cards().values() if not c.variant]
    with_splits = tuple(c.id for c in tasks if c.contexts and not c.trained_on)
    return {
        "smoke": SMOKE,
        "all": tuple(c.id for c in tasks),
        GENERALISATION: with_splits,
        **by_family,
    }


def resolve_suite(names: str) -> tuple[TaskCard, ...]:
    """Return the cards of a comma-separated list of suites and ids, each once, in the order given.

    Raises:
        ValueError: a name is neither a suite nor an id.
    """
    selected: dict[str, TaskCard] = {}
    for name in filter(None, (entry.strip() for entry in names.split(","))):
        if name in suites():
            selected |= {task_id: card(task_id) for task_id in suites()[name]}
        elif _full_id(name.partition("?")[0], cards()):
            task_card = card(name)
            selected[task_card.id] = task_card
        else:
            raise ValueError(
                _not_of_the_suite(name) or unknown("suite or task", name, [*suites(), *cards()])
            )
    if not selected:
        raise ValueError(
            f"No suite or task named in {names!r}. Known suites: {', '.join(suites())}."
        )
    return tuple(selected.values())


def _not_of_the_suite(name: str) -> str:
    """Say why an id of Gymnasium that is not one of ours is refused; empty for other names."""
    registered = {*gymnasium.registry, *(spec.name for spec in gymnasium.registry.values())}
    if name not in registered:
        return ""
    return (
        f"{name} is an environment of Gymnasium, and only tasks of the suite are trained and "
        "evaluated: they have the "
        "scores of a random and a reference player. `rlsuite list` names them. How a task of your "
        "own becomes one, "
        f'in a package of your own too, is in CONTRIBUTING.md, "Add a task".'
    )


@cache
def agent_entry_points() -> dict[str, str]:
    """Return ``module:factory`` of each agent by name."""
    return AGENTS | {
        point.name: point.value for point in entry_points(group="rlbench_suite.agents")
    }


def agent(name: str) -> Agent:
    """Return the agent of that name, importing its file.

    Raises:
        ValueError: no such agent.
        ImportError: the agent needs an extra that is not installed; the message names it.
    """
    if name not in agent_entry_points():
        raise ValueError(unknown("agent", name, agent_entry_points()))
    factory: Any = load(agent_entry_points()[name])
    return factory()


def datasets() -> Any:
    """Import and return the functions of offline datasets.

    They serve the command line and agents that learn from datasets.
    """
    return importlib.import_module(DATASETS)


def tasks() -> tuple[str, ...]:
    """Return the ids of all tasks, variants included.

    ``suites()["all"]`` has those that are no variants.
    """
    return tuple(cards())


def make(task_id: str | EnvSpec, **keywords: Any) -> gymnasium.Env[Any, Any]:
    """Make an environment of a task by ``gymnasium.make`` with its keywords.

    It takes names as :func:`card` reads them.

    Args:
        task_id: id of a task; ``rlsuite/`` may be left out, and settings may follow:
            ``PMSMSpeed-v0?noise=0.01``. Or Gymnasium's description of a task, such as ``env.spec``.
        keywords: ``split``, ``difficulty``, ``view``, ``dtype``, ``render_mode``, ``weights`` and
            settings of the task (:func:`rlbench_suite.adapters.entry_points.make`), and Gymnasium's
            own, such as ``max_episode_steps``.

    Raises:
        ValueError: a value is unknown, or has no meaning for this task.
    """
    return gymnasium.make(_spec_of(task_id), **keywords)


def make_vec(
    task_id: str | EnvSpec, num_envs: int = 1, **keywords: Any
) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Make a batch of environments by ``gymnasium.make_vec`` with its keywords.

    It takes names as :func:`card` reads them.

    Args:
        task_id: id of a task, as in :func:`make`.
        num_envs: number of episodes that run side by side.
        keywords: those of :class:`rlbench_suite.adapters.batch.TaskVectorEnv`, settings of the
            task, and Gymnasium's own, such as ``vectorization_mode``.

    Raises:
        ValueError: a value is unknown, out of range, or has no meaning for this task.
    """
    return gymnasium.make_vec(_spec_of(task_id), num_envs, **keywords)


def _spec_of(task_id: str | EnvSpec) -> EnvSpec:
    """Return Gymnasium's description of a task.

    Raises:
        ValueError: no such task, or the description of another environment.
    """
    if not isinstance(task_id, EnvSpec):
        # Not the id alone, because Gymnasium knows neither settings nor unlisted ids.
        return EnvSpec(**_registration(card(task_id)))
    if task_id.entry_point != _ENTRY_POINT:
        raise ValueError(f"{task_id.id} is no task of the suite; make it with gymnasium.make.")
    return task_id


def _registration(card: TaskCard) -> dict[str, Any]:
    """Return what Gymnasium registers of a card, by the names of its arguments."""
    return {
        "id": card.registered_id,
        "entry_point": _ENTRY_POINT,
        "vector_entry_point": "rlbench_suite.adapters.entry_points:make_vec",
        "max_episode_steps": card.horizon,
        "kwargs": {"task_id": card.id},
        # The environment itself does the work of both wrappers. They would cost a tenth of the time
        # of a step.
        "order_enforce": False,
        "disable_env_checker": True,
    }


def register() -> None:
    """Register every id with Gymnasium, and the ids of several agents with PettingZoo too."""
    import pettingzoo

    for card in cards().values():
        if card.id not in gymnasium.registry:
            # register() compares it with all others.
            gymnasium.registry[card.id] = EnvSpec(**_registration(card))
        joint = card.joint()
        if joint.agents == 1:
            continue
        for kind, factory, table in (
            ("parallel", "make", pettingzoo.parallel_registry),
            ("aec", "make_aec", pettingzoo.aec_registry),
        ):
            if card.id not in table:
                pettingzoo.register(
                    kind,
                    card.id,
                    f"rlbench_suite.adapters.parallel:{factory}",
                    max_cycles=joint.horizon,
                    kwargs={"task_id": card.id},
                )
