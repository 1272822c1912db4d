"""Measure the scores of cheap play: random actions, replies that are no actions, masked actions.

    python benchmarks/audits/cheap_play.py [--ids A-v0,B-v0] [--episodes 200]

It prints one line for each id; all players play the same test episodes:

* ``success``: the fraction of random episodes that end with ``success``;
* ``junk``: the mean normalised score of always taking ``noop_action``, which replaces a reply that
  is not an action;
* ``masked``: the mean normalised score of always taking masked actions, for tasks with a mask
  (``noop_action`` in states without a masked action);
* ``bound``: the better of the card's ``noop`` and ``random`` scores, at the upper ends of their
  intervals.

``!`` marks a score if the lower end of its 95 % interval exceeds the bound.
"""

from __future__ import annotations

import argparse
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.episode import action_sizes, scalar_return
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

SEED = 2**34
"""Seed of the first episode. No training, evaluation or reference score uses it."""
RANDOM, JUNK, MASKED = range(3)


class Cheap(eqx.Module):
    """Three players that share one compiled program."""

    player: np.int32
    noop: np.ndarray
    space: spaces.Space[Any] = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        """Return an empty memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the action of the chosen player."""
        sampled, _ = Uniform(self.space).act((), view, key)
        masked = self.noop if view.action_mask is None else self._masked_action(view.action_mask)
        junk, masked = (jnp.asarray(action, sampled.dtype) for action in (self.noop, masked))
        return jnp.stack([sampled, junk, masked])[self.player], memory

    def _masked_action(self, mask: jax.Array) -> jax.Array:
        """Return the no-op action with the first masked choice in each part that has one."""
        sizes = action_sizes(self.space)
        masks = jnp.split(mask, np.cumsum(sizes)[:-1])
        noop = jnp.asarray(self.noop).reshape(len(sizes))
        first = [
            jnp.where(choices.all(), noop[k], jnp.argmin(choices))
            for k, choices in enumerate(masks)
        ]
        return jnp.stack(first).reshape(self.space.shape or ())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ids", help="names of tasks, separated by commas; all by default")
    parser.add_argument(
        "--episodes", type=int, default=200, help="number of test episodes for each player"
    )
    options = parser.parse_args()
    installed = [card for card in cards().values() if card.installed]
    selected_names = options.ids.split(",") if options.ids else [card.name for card in installed]
    print(
        f"{'task':34s}"
        + "".join(f"{column:>10s}" for column in ("success", "junk", "masked", "bound"))
    )
    for card in installed:
        if card.name in selected_names:
            print(line(card, options.episodes), flush=True)


def line(card: TaskCard, episodes: int) -> str:
    """Return the line of one id."""
    task = card.build()
    seeds = range(SEED, SEED + episodes)
    bound = max(card.normalise(card.scores()[player].high) for player in ("random", "noop"))
    row = f"{card.name:34s}"
    for player in (RANDOM, JUNK, MASKED):
        if player == MASKED and (
            isinstance(task, HostTask) or type(task).action_mask is Task.action_mask
        ):
            row += f"{'-':>10s}"
            continue
        record = play(task, Cheap(np.int32(player), task.noop_action(), task.action_space), seeds)
        if player == RANDOM:
            row += f"{record.info['success'].mean():10.3f}"
        else:
            totals = np.asarray(scalar_return(task, record.total.astype(np.float64)))
            scores = np.array([card.normalise(total) for total in totals])
            low_end = scores.mean() - 1.96 * scores.std(ddof=1) / episodes**0.5
            row += f"{scores.mean():9.3f}{'!' if low_end > bound + 1e-6 else ' '}"
    return f"{row}{bound:10.3f}"


if __name__ == "__main__":
    main()
