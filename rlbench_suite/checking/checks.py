"""Check the whole contract of a :class:`Task`.

Gymnasium's ``check_env`` checks an environment in the same way.

A third party's task need not be registered, an instance is enough. All checks share one environment
with its compiled programs and two recorded plays. Every fault is reported, not the first one only.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

from rlbench_suite.adapters import batch, packed_episode
from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.adapters.text import MAX_ACTION_CHARACTERS, MAX_OBSERVATION_CHARACTERS, TextEnv
from rlbench_suite.checking.masks import check_deaths, check_masks
from rlbench_suite.checking.trial import (
    SEEDS,
    STEPS,
    Bench,
    Moment,
    Play,
    bits,
    leaves,
)
from rlbench_suite.core.contract import ContractError, check_action, check_memory
from rlbench_suite.core.episode import (
    NO_LIMIT,
    ContextSource,
    Step,
    average_agents,
    seed_key,
)
from rlbench_suite.core.policy import View, player_for, restrict_view
from rlbench_suite.core.task import Described
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.process import precision, refuse_after_fork

REPEATED = (0, 1, 1, 0)
"""Number of the play that each entry of a batch repeats."""
CONTEXTS = 100
"""Number of contexts sampled from each split."""
CYCLES = 40
"""Steps of PettingZoo's own test."""
NEVER_AN_ACTION = ("", "\x00\x07", "[[[", "1_0", "\N{ARABIC-INDIC DIGIT ONE}")
WHY_UNLIKE = (
    "A function of the task depends on more than its arguments (Python's state, global random "
    "numbers), or rounds otherwise in a batch (reductions, linear algebra)."
)
JUNK = (
    *NEVER_AN_ACTION,
    "7",
    "99999",
    "help",
    "NaN",
    "1" * (MAX_ACTION_CHARACTERS + 1),
    "résumé",
    "__import__('os')",
)


class Finding(NamedTuple):
    """The result of one check."""

    check: str
    seconds: float
    faults: tuple[str, ...]
    advice: tuple[str, ...]
    """Sentences about missing parts that are not faults."""


def _first_action(task: Described, player: Any, view: View) -> Any:
    """Return the first action and the next memory of a player; traced."""
    memory = player.initial(view.params)
    action, next_memory = player.act(memory, view, jax.random.key(0))
    return check_action(player, action, task.action_space), check_memory(
        player, next_memory, memory
    )


# -- the checks: each yields a sentence for every fault that it finds ------------------------------


def check_shapes(bench: Bench) -> Iterator[str]:
    """Trace and compile the programs, including the player's.

    This compares all results with the declared shapes.
    """
    env = bench.env
    task = bench.task
    _, info = env.reset(seed=0)
    for entry_point in filter(None, (task.card.reference, *task.card.yardsticks.values())):
        player = restrict_view(player_for(task, entry_point))
        observation, _ = env.reset(seed=0)
        mask = info.get("action_mask")
        if mask is not None:
            mask = mask.astype(bool)
        view = View(observation, mask, env.episode.state, env.params)
        with precision(task):
            jax.eval_shape(partial(_first_action, task, player), view)
    if task.noop_action() not in task.action_space:
        yield f"noop_action() is {task.noop_action()!r}, which is not in {task.action_space}."


def check_gymnasium(bench: Bench) -> Iterator[str]:
    """Run Gymnasium's own ``check_env``."""
    with warnings.catch_warnings():
        # It expects scalar rewards and dislikes boxes that are unbounded.
        warnings.simplefilter("ignore")
        check_env(bench.env, skip_render_check=True)
    yield from ()


def check_play(bench: Bench) -> Iterator[str]:
    """Check the results of random play: spaces, bounds, numbers, flags, names."""
    for play in bench.plays:
        if play.observation not in bench.task.observation_space:
            yield f"{play.at(0)} the observation is outside its space: {play.observation!r:.200}."
        for t, moment in enumerate(play.moments, 1):
            if faults := [f"{play.at(t)} {fault}." for fault in _faults(bench, moment)]:
                yield from faults
                return


def _faults(bench: Bench, moment: Moment) -> Iterator[str]:
    task = bench.task
    info = moment.info
    space = bench.env.reward_space
    for observation in (moment.observation, *(moment.restart or ())[:1]):
        if _has_nan(observation):
            yield f"the observation holds NaN: {observation!r:.200}"
        elif observation not in task.observation_space:
            yield f"the observation is outside its space: {observation!r:.200}"
    if _has_nan(info):
        yield f"info holds NaN: {info!r:.200}"
    if not (
        np.isfinite(moment.reward) & (space.low <= moment.reward) & (moment.reward <= space.high)
    ).all():
        yield f"the reward is {moment.reward!r}, outside {space}"
    if not space.shape and type(moment.reward) is not float:
        yield f"the reward is {moment.reward!r}, not a float"
    if task.privileged_space is not None and info.get("privileged") not in task.privileged_space:
        yield f"info['privileged'] is outside its space: {info.get('privileged')!r:.200}"
    if moment.truncated:
        yield "the task truncates; only a time limit does"
    if type(info.get("success")) is not bool:
        yield f"info['success'] is {info.get('success')!r}, not a bool"
    if missing := sorted(task.measures.keys() - info.keys()):
        yield f"info has no {missing[0]!r}, which measures declares"
    if moment.terminated and not info.get("end_reason"):
        yield "the episode ends, and why_over gives no reason"


def check_repeats(bench: Bench) -> Iterator[str]:
    """Play the same actions again in another environment.

    Equal seeds must give equal bits, over several episodes.
    """
    env = bench.make()
    env.reset(seed=3)  # what came before must not matter
    for play in bench.plays:
        again = bench.play(env, play.seed, [moment.action for moment in play.moments])
        if fault := _difference(play, again):
            yield f"The same seed and actions give another episode: {fault}."
            return


def check_batch(bench: Bench) -> Iterator[str]:
    """Play the same actions in a batch.

    Every entry must equal the single environment of its seed to the bit.
    """
    task = bench.task
    plays = [bench.plays[entry] for entry in REPEATED]
    programs = batch.programs(task)
    source = ContextSource.parse("train", task)
    action_dtype = ActionCheck(task.action_space).dtype
    with precision(task):
        episodes, last, _ = programs.begin(
            np.stack([seed_key(play.seed) for play in plays]), source
        )
        first = [(play.observation, play.info) for play in plays]
        faults = [
            f"{plays[entry].at(0)} {fault}." for entry, fault in _unequal_beginnings(first, last)
        ]
        for t in range(STEPS):
            moments = [play.moments[t] for play in plays]
            actions = np.stack([np.asarray(moment.action, action_dtype) for moment in moments])
            episodes, step, _ = programs.advance(episodes, actions, NO_LIMIT)
            faults += [
                f"{plays[entry].at(t + 1)} {fault}."
                for entry, fault in _unequal_steps(task, moments, step)
            ]
            restarts = [moment.restart for moment in moments]
            if any(restarts):
                over = np.array([restart is not None for restart in restarts])
                episodes, last, _ = programs.reset_where(over, episodes, step, source)
                differences = _unequal_beginnings(restarts, last)
                faults += [f"{plays[entry].at(t + 1)} {fault}." for entry, fault in differences]
            if faults:
                yield f"{faults[0]} {WHY_UNLIKE}"
                return
        _, step, _ = programs.advance(episodes, actions, np.int32(1))
    if not np.asarray(step.truncated).all():
        yield "A batch with a time limit does not truncate."


def _unequal_steps(task: Any, moments: list[Moment], step: Step) -> Iterator[tuple[int, str]]:
    """Yield entries of a batch whose step differs from the single environment's.

    Each comes with the difference.
    """
    step = jax.tree.map(np.asarray, step)
    reward = average_agents(task, step.reward)
    by_name = {
        "observation": step.observation,
        "reward": reward,
        "terminated": step.terminated,
        "info": step.info,
    }
    for entry, moment in enumerate(moments):
        for name, batched in by_name.items():
            yield from (
                (entry, fault)
                for fault in _unequal_entries(name, getattr(moment, name), batched, entry)
            )


def _unequal_beginnings(beginnings: list[Any], last: Step) -> Iterator[tuple[int, str]]:
    """Yield entries of a batch whose first observation differs.

    The single environment's observation is compared; each entry comes with the difference.
    """
    last = jax.tree.map(np.asarray, last)
    for entry, beginning in enumerate(beginnings):
        if beginning is not None:
            observation, info = beginning
            for fault in _unequal_entries(
                "first observation", observation, last.observation, entry
            ):
                yield entry, fault
            for fault in _unequal_entries("first info", info, last.info, entry):
                yield entry, fault


def _unequal_entries(name: str, single: Any, batched: Any, entry: int) -> Iterator[str]:
    if isinstance(batched, dict):  # the single environment's info has text besides
        for key, values in batched.items():
            yield from _unequal_entries(f"{name}[{key!r}]", single[key], values, entry)
    elif bits(np.asarray(single).astype(batched.dtype)) != bits(batched[entry]):
        yield (
            f"entry {entry} of a batch has the {name} {batched[entry]!r:.200}, the single env "
            f"{single!r:.200}"
        )


def check_hostile_actions(bench: Bench) -> Iterator[str]:
    """Step with values that are not actions.

    Each must be refused with a sentence and change nothing.
    """
    env = bench.env
    space = bench.task.action_space
    env.reset(seed=0)
    hostile: list[Any] = ["left", None, np.zeros((7, 3)), [[1]], {}]
    if isinstance(space, spaces.Box):
        hostile += [np.full(space.shape, value) for value in (np.nan, np.inf, -np.inf)]
    else:
        hostile += [-(10**9), 10**9, 0.5, np.nan]
    episode = leaves(env.episode)
    for action in hostile:
        try:
            env.step(action)
        except (ValueError, TypeError):
            pass
        else:
            yield f"The action {action!r} is taken."
    if leaves(env.episode) != episode:
        yield "An action that is refused changes the episode."


def check_splits(bench: Bench) -> Iterator[str]:
    """Sample contexts of both splits.

    None may be in both, and a numbered context must stay the same.
    """

    def contexts(split: str | int, count: int) -> set[bytes]:
        env = bench.make(split)
        env.reset(seed=0)
        values = {leaves(env.params)}
        for _ in range(count):
            env.reset()
            values.add(leaves(env.params))
        return values

    train = contexts("train", CONTEXTS)
    test = contexts("test", CONTEXTS)
    if shared := train & test:
        yield (
            f"{len(shared)} of {len(train)} contexts of the train split are in the test split too."
        )
    if len(train) < CONTEXTS // 10:
        yield f"The card says that contexts are sampled; {CONTEXTS} episodes have {len(train)}."
    if len(contexts(3, 3)) > 1:
        yield "The context of split=3 changes from one episode to the next."


def check_time_limit(bench: Bench) -> Iterator[str]:
    """Step once under a limit of one step. The episode must be truncated."""
    env = TimeLimit(bench.make(), 1)
    env.reset(seed=0)
    *_, truncated, _ = env.step(bench.task.noop_action())
    if not truncated:
        yield "A time limit of one step does not truncate."


def check_branches(bench: Bench) -> Iterator[str]:
    """Save the state in mid-episode, continue and restore it.

    The same steps must follow to the bit, until the end.
    """
    play = bench.plays[0]
    actions = play.first_actions(6)
    env = TimeLimit(bench.make(), len(actions))
    core: Any = env.unwrapped
    env.reset(seed=play.seed)
    half = len(actions) // 2
    for action in actions[:half]:
        env.step(action)
    saved = copy.deepcopy(core.state)
    future = [leaves(env.step(action)) for action in actions[half:]]
    env.reset()
    core.state = saved
    if leaves(core.state) != leaves(saved):
        yield "A state that is assigned is not the state that is read."
    if [leaves(env.step(action)) for action in actions[half:]] != future:
        yield "A restored state does not go on as it did."


def check_copies(bench: Bench) -> Iterator[str]:
    """Copy an environment in mid-episode.

    Both must continue alike, and neither may affect the other.
    """
    env = bench.make()
    play = bench.plays[0]
    actions = play.first_actions(4)
    env.reset(seed=play.seed)
    # Tasks are immutable: only the environment is copied.
    twin = copy.deepcopy(env, {id(bench.task): bench.task})
    observations = [bits(twin.step(action)[0]) for action in actions]
    if [bits(env.step(action)[0]) for action in actions] != observations:
        yield "A copy of the environment does not go on as the environment does."


def check_text(bench: Bench) -> Iterator[str]:
    """Play the text view.

    It must describe and explain, and play a reply that is no action as ``noop_action``.
    """
    task = bench.task
    text = bench.make_text()
    plain = bench.env
    observation, _ = text.reset(seed=0)
    if fault := _no_text(text, observation):
        yield fault
        return
    if task.describe(text.episode.state, text.params) != task.describe(
        text.episode.state, text.params
    ):
        yield "describe gives other words for the same state."
    if not task.how_to_act().strip():
        yield "how_to_act() says nothing."
    noop = task.noop_action()
    for reply in JUNK:
        text.reset(seed=0)
        plain.reset(seed=0)
        try:
            read: Any = task.parse(reply, text.episode.state, text.params)
        except ValueError:
            read = None
        if read is not None:
            if reply in NEVER_AN_ACTION:
                yield (
                    f"parse reads {reply!r} as the action {read!r}: a reply that is no action "
                    "raises a ValueError."
                )
                return
            if reply and np.asarray(read) not in task.action_space:
                yield f"parse reads {reply!r:.40} as {read!r}, which is not in {task.action_space}."
                return
            continue
        observation, reward, terminated, _, info = text.step(reply)
        _, paid, over, *_ = plain.step(noop)
        if fault := _no_text(text, observation):
            yield fault
            return
        if not (info.get("invalid_action") and info["invalid_reason"]):
            yield f"The reply {reply!r:.40} is no action, and info does not say so with a reason."
        if (bits(reward), terminated, leaves(text.episode)) != (
            bits(paid),
            over,
            leaves(plain.episode),
        ):
            yield (
                f"The reply {reply!r:.40} is no action, and is not played as noop_action(), to the "
                "bit."
            )
            return


def check_spelling(bench: Bench) -> Iterator[str]:
    """Play an episode again in the text view, by the replies that spell its actions."""
    task = bench.task
    text = bench.make_text()
    text.reset(seed=SEEDS[0])
    for moment in bench.plays[0].moments:
        action = np.asarray(moment.action)
        try:
            reply = task.spell(action, text.episode.state, text.params)
        except ValueError:  # an action without words
            return
        if len(reply) > MAX_ACTION_CHARACTERS:  # of a large swarm
            return
        _, reward, terminated, _, info = text.step(reply)
        if "invalid_reason" in info and "invalid_reason" not in moment.info:
            yield (
                f"spell writes the action {action} as {reply!r:.60}, which is refused: "
                f"{info['invalid_reason']}."
            )
            return
        if (bits(reward), terminated) != (bits(moment.reward), moment.terminated):
            yield f"spell writes the action {action} as {reply!r:.60}, which plays another action."
            return
        if moment.restart:
            return


def _no_text(text: TextEnv, observation: str) -> str:
    """Describe the fault of a text observation; empty if there is none."""
    if observation in text.observation_space:
        return ""
    return (
        f"describe gives no text of printable ASCII characters, {MAX_OBSERVATION_CHARACTERS} at "
        f"most: {observation!r:.200}."
    )


def check_picture(bench: Bench) -> Iterator[str]:
    """Draw the first state."""
    env = bench.env
    task = bench.task
    env.reset(seed=0)
    picture = task.draw(env.episode.state, env.params)
    if not (
        isinstance(picture, np.ndarray)
        and picture.dtype == np.uint8
        and picture.shape == task.picture_shape
    ):
        dtype = getattr(picture, "dtype", type(picture).__name__)
        yield f"draw gives {dtype} {np.shape(picture)}, not uint8 {task.picture_shape}."


def check_pettingzoo(bench: Bench) -> Iterator[str]:
    """Run PettingZoo's own test of parallel environments, which reports most faults as warnings."""
    from pettingzoo.test import parallel_api_test

    from rlbench_suite.adapters.parallel import TaskParallelEnv

    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("error")
        parallel_api_test(TaskParallelEnv(bench.task), num_cycles=CYCLES)
    yield from ()


def advise_on_card(bench: Bench) -> Iterator[str]:
    """Name parts that a card lacks although the contract does not require them."""
    card = bench.task.card
    task = bench.task
    for field in ("summary", "source", "reference", "tags"):
        if not getattr(card, field):
            yield f"The card has no {field}."
    if empty := [name for name, meaning in task.measures.items() if not meaning.strip()]:
        yield f"measures does not say what {empty[0]!r} is."
    if not task.scores.keys() >= {"random", "reference"}:
        yield f"No measured scores, so no info['score']; run: {card.measuring_command}"
    try:
        from_card = card.build(difficulty=task.difficulty, dtype=task.dtype.name)
        can_be_made = type(from_card) is type(task)
    except (ImportError, AttributeError, TypeError, ValueError):
        can_be_made = False
    if not can_be_made:
        yield (
            f"The card's entry_point {card.entry_point!r} makes no {type(task).__name__}: its id "
            "cannot make it."
        )


class Check(NamedTuple):
    """A check, and the tasks that it concerns."""

    find: Callable[[Bench], Iterator[str]]
    concerns: Callable[[Bench], bool] = lambda bench: True


CHECKS = {
    "gymnasium's check_env": Check(check_gymnasium),
    "random play inside the spaces": Check(check_play),
    "same seed, same bits": Check(check_repeats),
    "single equals batch": Check(check_batch, lambda bench: not bench.host),
    "action masks": Check(check_masks, lambda bench: "action_mask" in bench.plays[0].info),
    "hostile actions": Check(check_hostile_actions),
    "train and test apart": Check(
        check_splits, lambda bench: bench.task.card.contexts and not bench.host
    ),
    "time limit truncates": Check(check_time_limit),
    "save, restore, branch": Check(check_branches),
    "copies": Check(check_copies),
    "text view": Check(check_text),
    "spelling of actions": Check(check_spelling),
    "picture": Check(check_picture),
    "agents that die": Check(check_deaths, lambda bench: "alive" in bench.plays[0].info),
    "pettingzoo's parallel_api_test": Check(
        check_pettingzoo, lambda bench: bench.task.card.agents > 1
    ),
}


def findings(task: Described) -> Iterator[Finding]:
    """Run every check of the contract on a task, one after another.

    If shapes or dtypes are wrong, no other result can be trusted, so no other check runs.
    """
    refuse_after_fork()
    if not isinstance(task, Described):
        raise TypeError(
            f"A task is checked, such as card.build() or env.unwrapped.task gives; got {task!r}."
        )
    bench: Any = None

    def build(_: Any) -> Iterator[str]:
        nonlocal bench
        bench = Bench(task)
        yield from check_shapes(bench)

    yield (first := _find("shapes and dtypes", build, bench))
    if first.faults:
        return
    for name, check in CHECKS.items():
        if check.concerns(bench):
            yield _find(name, check.find, bench)
    yield Finding("card", 0.0, (), tuple(advise_on_card(bench)))


def _find(name: str, check: Callable[[Any], Iterator[str]], bench: Any) -> Finding:
    """Run one check. An exception raised by the task also counts as a fault."""
    start = time.perf_counter()
    faults: list[str] = []
    try:
        faults += check(bench)
    except Exception as error:
        message = " ".join(str(error).split())
        faults.append(
            message
            if isinstance(error, ContractError)
            else f"{type(error).__name__}: {message:.500}"
        )
    return Finding(name, time.perf_counter() - start, tuple(faults), ())


def check_task(task: Described) -> None:
    """Check a task, registered or not, against the whole contract.

    Args:
        task: an instance, such as ``card.build()`` gives.

    Raises:
        ContractError: there are faults. The message has a sentence for each, with the name of the
            check.
    """
    faults = [f"{finding.check}: {fault}" for finding in findings(task) for fault in finding.faults]
    if faults:
        raise ContractError(f"{task.card.id} breaks its contract.\n" + "\n".join(faults))


def findings_of_card(card: TaskCard, difficulty: str | float | None = None) -> Iterator[Finding]:
    """Build a task of a card and check it; yield a finding for each check.

    A task that cannot be built, such as one without ``describe``, has that one fault.
    """
    start = time.perf_counter()
    try:
        task = card.build(difficulty=difficulty)
    except Exception as error:  # of the author's code, whatever it is
        fault = f"{type(error).__name__}: {error}"
        yield Finding("build", time.perf_counter() - start, (fault,), ())
        return
    yield from findings(task)


def forget_programs() -> None:
    """Drop compiled programs. Each maps memory, and Linux allows a process 65,530 mappings."""
    for programs in (packed_episode.programs, batch.programs):
        programs.cache_clear()
    jax.clear_caches()


# -- where and how two plays differ ----------------------------------------------------------------


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nan(entry) for entry in value.values())
    array = np.asarray(value)
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _difference(play: Play, repeat: Play) -> str:
    """Say where two plays differ first; empty if they are equal to the bit."""
    if bits(play.observation) != bits(repeat.observation):
        return f"{play.at(0)} the first observation differs"
    for t, (moment, repeated_moment) in enumerate(
        zip(play.moments, repeat.moments, strict=True), 1
    ):
        for name, value, repeated_value in zip(
            Moment._fields, moment, repeated_moment, strict=True
        ):
            if name == "restart":
                pairs = list(zip(value or (), repeated_value or (), strict=True))
            else:
                pairs = [(value, repeated_value)]
            if any(bits(x) != bits(y) for x, y in pairs):
                entry = "next first observation" if name == "restart" else name
                return f"{play.at(t)} the {entry} differs"
    return ""
