"""Play an episode of a task's reference player, for pictures and transcripts."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.episode import ContextSource, Episode, Step, advance, begin, seed_key
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.task_card import TaskCard

SEED = 4


class RecordedEpisode(NamedTuple):
    """An episode."""

    params: Any
    states: list[Any]
    actions: list[np.ndarray]
    """One fewer than the states."""
    why: str
    """Reason why it is over; empty where it was cut off."""


def reference_episode(card: TaskCard, steps: int) -> RecordedEpisode:
    """Play on the test split until the episode ends, ``steps`` steps at most."""
    if card.host:
        return _on_the_host(card, steps)
    task: Any = card.build()
    player: Any = reference_player(task)

    # One program of begin, policy and step compiles in two thirds of the time of the environment's
    # programs.
    @jax.jit
    def play(player: Any) -> tuple[Any, ...]:
        def step(carry: tuple[Episode, Step, Any], t: jax.Array) -> tuple[Any, Any]:
            episode, last, memory = carry
            view = View(
                last.observation, last.info.get("action_mask"), episode.state, episode.params
            )
            action, memory = player.act(memory, view, jax.random.key(t))
            episode, last = advance(task, episode, action, steps, view.action_mask)
            return (episode, last, memory), (episode.state, action, last.terminated, last.info)

        episode, first = begin(task, seed_key(SEED), 0, ContextSource.parse("test", task))
        carry = episode, first, player.initial(episode.params)
        _, stacked = jax.lax.scan(step, carry, jnp.arange(steps))
        return episode.params, episode.state, *stacked

    params, first, states, actions, over, infos = jax.device_get(play(player))
    length = int(np.argmax(over)) + 1 if over.any() else steps
    moments = [
        jax.tree.map(lambda leaf, t=t: leaf[t], (states, actions, infos)) for t in range(length)
    ]
    last, _, info = moments[-1]
    why = task.why_over(last, params, info) if over.any() else ""
    dtype = task.action_space.dtype
    host_actions = [np.asarray(action).astype(dtype) for _, action, _ in moments]
    return RecordedEpisode(params, [first, *(state for state, *_ in moments)], host_actions, why)


def _on_the_host(card: TaskCard, steps: int) -> RecordedEpisode:
    """Play a simulator of the host step by step."""
    env: Any = gymnasium.make(card.id, split="test").unwrapped
    player = env.reference()
    observation, info = env.reset(seed=SEED)
    memory = player.initial(env.params)
    act = jax.jit(lambda player, *arguments: player.act(*arguments))
    states = [env.episode.state]
    actions = []
    terminated = False
    while len(states) <= steps and not terminated:
        view = View(observation, info.get("action_mask"), env.episode.state, env.params)
        action, memory = act(player, memory, view, jax.random.key(len(states)))
        actions.append(np.asarray(action).astype(env.task.action_space.dtype))
        observation, _, terminated, _, info = env.step(actions[-1])
        states.append(env.episode.state)
    return RecordedEpisode(env.params, states, actions, info.get("end_reason", ""))
