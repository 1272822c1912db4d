"""Checks of action masks, and of agents that die."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlbench_suite.checking.trial import SEEDS, Bench, bits, leaves, random_action
from rlbench_suite.core.episode import action_offsets, action_sizes


def check_masks(bench: Bench) -> Iterator[str]:
    """Check the masks of actions.

    Info and method give one mask, some action is legal, and a forbidden one leaves the state alone.
    """
    env = bench.env
    space = bench.task.action_space
    for play in bench.plays:
        infos = [(play.info, False), *((moment.info, moment.terminated) for moment in play.moments)]
        for t, (info, over) in enumerate(infos):
            masks = np.split(info["action_mask"], np.cumsum(action_sizes(space))[:-1])
            if not over and not all(mask.any() for mask in masks):
                yield (
                    f"{play.at(t)} action_mask forbids every action, and the episode is not over."
                )
                return
            if t and info["invalid_action"]:
                yield f"{play.at(t)} an action that action_mask allows is called invalid."
                return
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=SEEDS[0])
    for t in range(40):
        mask = info["action_mask"]
        if t < 2 and bits(mask.astype(bool)) != bits(env.action_masks()):
            yield (
                f"info['action_mask'] is {mask}, action_masks() gives "
                f"{env.action_masks().astype(int)}."
            )
        if not mask.all():
            task, episode = env.task, env.episode
            refused = leaves(task.after_illegal_action(episode.state, episode.params))
            action = illegal_action(rng, space, mask)
            *_, info = env.step(action)
            if leaves(env.episode.state) != refused:
                yield f"The action {action!r} is masked and changes the state."
            if not (info["invalid_action"] and info.get("invalid_reason")):
                yield f"The action {action!r} is masked, and info does not say so with a reason."
            return
        *_, terminated, _, info = env.step(random_action(rng, space, mask))
        if terminated:
            _, info = env.reset()


def illegal_action(rng: np.random.Generator, space: Any, mask: np.ndarray) -> Any:
    """Sample a legal action and put the first forbidden choice into it."""
    forbidden = int(np.flatnonzero(mask == 0)[0])
    if not space.shape:
        return int(space.start) + forbidden
    ends = np.cumsum(action_sizes(space))
    choice = int(np.searchsorted(ends, forbidden, side="right"))
    action = random_action(rng, space, mask)
    action.ravel()[choice] = (
        space.start.ravel()[choice] + forbidden - (ends[choice - 1] if choice else 0)
    )
    return action


def check_deaths(bench: Bench) -> Iterator[str]:
    """Check that no agent comes back, and that masks let the dead do nothing."""
    task = bench.task
    has_mask = "action_mask" in bench.plays[0].info
    idle = task.noop_action() + action_offsets(task.action_space) if has_mask else None
    for play in bench.plays:
        alive = play.info["alive"]
        has_died = np.zeros_like(alive)
        for t, moment in enumerate(play.moments, 1):
            has_died |= alive & ~moment.info["alive"]
            alive = moment.info["alive"]
            if (has_died & alive).any():
                yield f"{play.at(t)} agent {np.argmax(has_died & alive)} lives again."
                return
            if idle is not None and not moment.info["action_mask"][idle[~alive]].all():
                yield f"{play.at(t)} action_mask forbids the no-op action of a dead agent."
                return
            if moment.restart is not None:
                alive = moment.restart[1]["alive"]
                has_died = np.zeros_like(alive)
