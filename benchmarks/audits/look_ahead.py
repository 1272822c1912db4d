"""Play tasks of choices by a greedy player with one step of look-ahead, and print what it earns.

    python benchmarks/audits/look_ahead.py [--ids A-v0,B-v0?difficulty=hard] [--families text,tools]
    [--seconds 60]

At each step the player copies the episode's state, tries every legal choice in the copy, and takes
the one with the largest immediate reward. It tries them with random numbers of its own, so it does
not foresee chance. But a copy holds what agents do not see: the word of Wordle, the solution of a
puzzle that rewards each right entry. So the player is privileged, and no rival of the references in
``yardsticks.py``. A high score means that the immediate reward leads to the goal, and that whoever
copies states needs no plan.

Of equally good choices it takes the first, the last or a random one, whichever earns most on
training episodes. It then plays held-out test episodes. The columns:

* ``reference``, ``look-ahead``: mean normalised scores with 95 % intervals, on the same episodes;
* ``success`` of both;
* ``ties``: the rule among equally good choices;
* ``seconds``: wall time of all episodes and of compiling.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from yardsticks import OF_CHOICES, TEST_SEEDS, TRAINING_SEEDS, interval

from rlbench_suite.core.episode import ContextSource, scalar_return, seed_key
from rlbench_suite.core.policy import Policy, View, reference_player
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.open_loop import EpisodeResults, whole_episode
from rlbench_suite.numerics.process import precision

MAX_CHOICES = 512
"""Largest number of choices that are all tried at a step."""
EPISODES = 256
"""Episodes on each split."""
HEADER = "| task | reference | look-ahead | success | ties | seconds |\n|" + " --- |" * 6
TIES = {"first": (-1.0, 0.0), "last": (1.0, 0.0), "random": (0.0, 1.0)}
"""Weights of a choice's place and of a random number, which decide among equally good choices."""


class LookAhead(eqx.Module):
    """Player that takes the choice with the largest immediate reward in a copy of the state."""

    place: Any
    """Weight of the number of a choice among equally good ones."""
    chance: Any
    """Weight of a random number among them."""
    task: Task[Any, Any] = eqx.field(static=True)
    choices: int = eqx.field(static=True)
    start: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Task[Any, Any], ties: str) -> LookAhead:
        """Return the player of a task.

        Raises:
            ValueError: its actions are not one choice of at most :data:`MAX_CHOICES`.
        """
        space = task.action_space
        if not isinstance(space, spaces.Discrete) or task.card.agents > 1:
            raise ValueError("its actions are not one choice of one agent")
        if space.n > MAX_CHOICES:
            raise ValueError(f"it has {space.n:,} choices, more than {MAX_CHOICES}")
        place, chance = (np.float32(weight) for weight in TIES[ties])
        return cls(place, chance, task, int(space.n), int(space.start))

    def initial(self, params: Any) -> tuple[()]:
        """Return an empty memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the best choice."""
        actions = self.start + jnp.arange(self.choices)
        transition_key, reward_key, tie_key = jax.random.split(key, 3)

        def immediate_reward(action: jax.Array) -> jax.Array:
            next_state = self.task.transition(view.state, action, transition_key, view.params)
            reward = self.task.reward(view.state, action, next_state, reward_key, view.params)
            value: jax.Array = scalar_return(self.task, reward)
            return value

        values = jax.vmap(immediate_reward)(actions)
        if view.action_mask is not None:
            values = jnp.where(view.action_mask, values, -jnp.inf)
        best = values >= values.max() - 1e-6
        noise = jax.random.uniform(tie_key, (self.choices,))
        preference = self.place * jnp.arange(self.choices) + self.chance * noise
        return actions[jnp.argmax(jnp.where(best, preference, -jnp.inf))], memory


def play(
    task: Task[Any, Any], players: list[Policy], first: int, split: str
) -> list[EpisodeResults]:
    """Return the episodes of each player on consecutive seeds.

    The players differ in numbers only.
    """
    keys = np.array([seed_key(first + i) for i in range(EPISODES)])
    with precision(task):
        run = jax.jit(jax.vmap(partial(whole_episode, task), (None, 0, None)))
        results = [run(player, keys, ContextSource.parse(split, task)) for player in players]
        return [
            EpisodeResults(*(np.asarray(values, np.float64) for values in result))
            for result in results
        ]


def line(card: TaskCard) -> str:
    """Return the row of a task.

    Raises:
        ValueError: the task runs on the host, or the player cannot play it.
    """
    if card.host:
        raise ValueError("it runs on the host")
    start = time.monotonic()
    task = card.build()
    players: list[Any] = [LookAhead.for_task(task, ties) for ties in TIES]
    trials = play(task, players, TRAINING_SEEDS, "train")
    best = int(np.argmax([results.total.mean() for results in trials]))
    (greedy,) = play(task, [players[best]], TEST_SEEDS, "test")
    (reference,) = play(task, [reference_player(task)], TEST_SEEDS, "test")

    def score(results: EpisodeResults) -> str:
        mean, half = interval(np.array([card.normalise(total) for total in results.total]))
        return f"{mean:.3f} +- {half:.3f}"

    successes = f"{reference.success.mean():.3g} / {greedy.success.mean():.3g}"
    name = card.id.removeprefix("rlsuite/")
    seconds = time.monotonic() - start
    return (
        f"| {name} | {score(reference)} | {score(greedy)} | {successes} | {list(TIES)[best]} | "
        f"{seconds:.0f} |"
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--ids", help=f"tasks, separated by commas; those of {', '.join(OF_CHOICES)} by default"
    )
    parser.add_argument(
        "--families", help="families, separated by commas", default=",".join(OF_CHOICES)
    )
    parser.add_argument(
        "--seconds", type=float, default=np.inf, help="time after which no other task is begun"
    )
    options = parser.parse_args()
    families = options.families.split(",")
    default_cards = [card for card in cards().values() if card.family in families and not card.host]
    start = time.monotonic()
    print(HEADER, flush=True)
    for card in (
        [find_card(name) for name in options.ids.split(",")] if options.ids else default_cards
    ):
        if time.monotonic() - start > options.seconds:
            print(f"{card.id} was not begun: the time is over.", file=sys.stderr)
            continue
        try:
            print(line(card), flush=True)
        except ValueError as why:
            print(f"{card.id} was left out: {why}.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
