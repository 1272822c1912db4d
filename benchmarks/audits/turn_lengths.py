"""Count the characters that a language model reads and writes in whole episodes of the text tasks.

    python benchmarks/audits/turn_lengths.py

The reference and random play, in the words of the tasks' text views. Three ways of telling are
compared: each turn says everything again (``full``, as the text view of Gymnasium does), each turn
says what changed (``delta``), and the same with the last turns only in the prompt (``window``).
``conversation`` counts every message once. ``sent`` counts the messages that a chat client without
a cache sends, turn by turn; there the length of a conversation counts squared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import jax
import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.text import TextEnv
from rlbench_suite.core.policy import View
from rlbench_suite.language.session import EpisodeSession, History, begin

EPISODES = 10
IDS = ("Wordle-v0", "TwentyQuestions-v0", "OfficeApps-v0", "TMaze-v0")


def length(messages: list[dict[str, Any]]) -> int:
    return sum(len(message["content"] or "") for message in messages)


def reference(view: TextEnv) -> Callable[[], np.ndarray]:
    """Return a function that acts as the reference player."""
    policy, key = view.reference(), jax.random.key(0)
    memory = policy.initial(view.params)
    act = jax.jit(lambda *arguments: policy.act(*arguments))  # noqa: PLW0108  # bound methods of equinox have no hash

    def choose() -> np.ndarray:
        nonlocal memory
        state, params = view.episode.state, view.params
        policy_view = View(
            view.task.observation(state, key, params),
            view.task.action_mask(state, params),
            state,
            params,
        )
        action, memory = act(memory, policy_view, key)
        return np.asarray(action)

    return choose


def random(view: TextEnv) -> Callable[[], np.ndarray]:
    """Return a function that draws a legal action."""
    rng, space = np.random.default_rng(0), view.task.action_space
    assert isinstance(space, spaces.Discrete)

    def choose() -> np.ndarray:
        mask = view.task.action_mask(view.episode.state, view.params)
        return rng.choice(space.n if mask is None else np.flatnonzero(mask))

    return choose


def play(session: EpisodeSession, choose: Callable[[], np.ndarray]) -> tuple[int, int, int]:
    """Play an episode, and return its turns, its characters, and those of all that was sent."""
    sent = 0
    while not session.done:
        sent += length(session.messages())
        session.reply(session.task.spell(choose(), session.view.episode.state, session.view.params))
    messages = [{"content": session.system}, {"content": session.opening}]
    for turn_messages in session.messages_by_turn:
        messages += turn_messages
    return session.turns, length(messages), sent


def main() -> None:
    print(
        "| id | player | history | turns | conversation | sent |\n| --- | --- | --- | --- | --- | "
        "--- |"
    )
    for name in IDS:
        # Most random calls of OfficeApps have arguments that mean nothing, and so no text.
        for player in (reference,) if name == "OfficeApps-v0" else (reference, random):
            for history in get_args(History):
                episodes = []
                for seed in range(EPISODES):
                    session = begin(name, seed=seed, history=history)
                    assert isinstance(session, EpisodeSession)
                    episodes.append(play(session, player(session.view)))
                turns, conversation, sent = np.mean(episodes, 0)
                figures = f"{turns:.1f} | {conversation:,.0f} | {sent:,.0f}"
                print(f"| {name} | {player.__name__} | {history} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
