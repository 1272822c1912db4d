"""Measure turns a second in the text view, resets included.

    python benchmarks/speed/text_turns.py  # every id of the suites text, tools and memory
    python benchmarks/speed/text_turns.py Search-v0   # suites and ids

A language model's turn costs the reading of the reply, the step, and the words of the answer. One
environment plays the replies of the reference player over again, in eight episodes (``reference``).
In some worlds of tools the reference has done after one call or two, so that resets take most of
the time; ``cycle`` is the speed of a fixed cycle of calls there, most of which are understood.
``words`` is the part of the turn that is text: reading the reply and describing the state, without
the step. All are turns a second of processor time, the best of three rounds.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import gymnasium
from best_rate import rate

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.text import action_in
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import resolve_suite

SECONDS = 2.0
ROUNDS = 3
EPISODES = 8
CALLS = {
    "OfficeApps-v0": (
        "contacts.list()",
        "calendar.list_day(day=monday)",
        "payments.balance()",
        "payments.list_requests()",
    ),
    "OfficeAppsLarge-v0": (
        "contacts_find(first=Ana)",
        "calendar_list_day(day=Mon)",
        "payments_balance()",
        "mail_list(folder=inbox)",
        "music_of_genre(genre=jazz)",
        "shop_put_in_cart(product=7, quantity=1)",
    ),
    "Routing-v0": ("answer()", "ask(expert=Ada)", "ask(expert=Bruno)"),
    "SQL-v0": (
        "schema",
        "run SELECT 1 + 1 AS two",
        "run SELECT name FROM products",
        "run SELECT name FROM books",
    ),
    "Interpreter-v0": (
        "run\na = read; write a; goto 1",
        "run\nif left == 0 goto 5; a = read; b = b + a; goto 1; write b",
    ),
    "Search-v0": (
        "search(person=Barano, relation=heir, page=1)",
        "judge(document=1, label=current)",
    ),
    "ServiceDesk-v0": (
        "ask(what=pin)",
        "ask(what=wish)",
        "ask(what=order)",
        "look_up(order=1)",
        "look_up(order=2)",
    ),
}


def reference_episodes(env: Any) -> tuple[list[list[str]], list[tuple[str, Any]]]:
    """Return the reference player's replies in the first episodes of some seeds.

    Each comes with its episode.
    """
    task = env.unwrapped.task
    record = play(task, reference_player(task), range(EPISODES), split="train")
    episodes: list[list[str]] = []
    turns = []
    for seed, (actions, length) in enumerate(zip(record.actions, record.length, strict=True)):
        env.reset(seed=seed)
        episodes.append([])
        for action in actions[:length]:
            before = env.unwrapped.episode
            episodes[-1].append(task.spell(action, before.state, before.params))
            turns.append((episodes[-1][-1], before))
            *_, info = env.step(episodes[-1][-1])
            assert not info.get("invalid_action"), (
                task.card.id,
                episodes[-1][-1],
                info["invalid_reason"],
            )
    return episodes, turns


def turns_per_second(env: Any, episodes: list[list[str]]) -> float:
    """Play the episodes over again."""

    def turns() -> Any:
        for seed in itertools.cycle(range(len(episodes))):
            env.reset(seed=seed)
            for reply in episodes[seed]:
                *_, terminated, truncated, _ = env.step(reply)
                yield
                if terminated or truncated:
                    break

    return rate(turns().__next__, SECONDS, ROUNDS)


def words_per_second(task: Any, turns: list[tuple[str, Any]]) -> float:
    """Read each reply and describe its state, over again."""

    def words() -> Any:
        for reply, episode in itertools.cycle(turns):
            task.parse(action_in(reply), episode.state, episode.params)
            yield task.describe(episode.state, episode.params) + task.how_to_act()

    return rate(words().__next__, SECONDS, ROUNDS)


def main() -> None:
    """Print a table."""
    print(f"{'id':24}     words reference     cycle   (turns a second)")
    for card in resolve_suite(",".join(sys.argv[1:]) or "text,tools,memory"):
        env: Any = gymnasium.make(card.id, view="text")
        episodes, turns = reference_episodes(env)
        speeds = [words_per_second(env.unwrapped.task, turns), turns_per_second(env, episodes)]
        if card.name in CALLS:
            speeds.append(turns_per_second(env, [[*CALLS[card.name]] * card.horizon]))
        print(f"{card.name:24}", *(f"{speed:9,.0f}" for speed in speeds), flush=True)


if __name__ == "__main__":
    main()
