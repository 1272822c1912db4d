"""Search for the best blind play of a task: sequences of actions fixed before the episode begins.

A blind player sees no observation. It repeats a constant, a ladder of rising or falling actions, a
period, or a whole sequence. If the task has an action mask, half of the players heed it: they take
the next legal action after the one that they meant. Otherwise they learn nothing of the episode.
Whatever such a player earns needs no policy, so a score above :data:`LIMIT` says that the reward or
the scale is wrong, unless the card has a reason (``open_loop``).

The search samples players of each kind at random, improves the best ones by recombining and
changing them, and lets the finalists play many more training episodes. The winner then plays the
test split.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.adapters.maskable import has_masks
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import (
    ContextSource,
    Role,
    action_sizes,
    advance,
    begin,
    draw_key,
    scalar_return,
    seed_key,
)
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.policy import Policy, View
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.process import on_the_cpu, precision

LIMIT = 0.25
"""Largest score that blind play may have, on the scale of the card."""
TRAINING_SEEDS = 2**37
"""First seed of the search. No training, evaluation or reference score uses it."""
TEST_SEEDS = 2**38
"""First seed of the test."""
KNOTS = 24
"""Actions in the table of a blind player."""
PERIODS = (1, 2, 3, 4, 6, 8, 12, 24)
"""Periods of periodic tables; they divide :data:`KNOTS`."""
PLAYERS_AT_ONCE = 64
"""Players of one call of the compiled program."""
EPISODES_AT_ONCE = 16
"""Episodes of each of these players."""
ELITE = 16
"""Players from which a round of improvement begins, and that play the final."""
REPLACED_SHARE = 0.2
"""Share of the actions of a table that a round of improvement samples anew."""
STEADY = ("constant", "ladder", "noop")
"""Kinds of players that do not count as sequences."""


class EpisodeResults(NamedTuple):
    """Return, summed constraint cost and success of episodes, arrays of equal shape."""

    total: Any
    cost: Any
    success: Any


class BlindPlayer(eqx.Module):
    """A player that takes the actions of a table in turn, each for some steps, over and over."""

    table: Any
    """Actions, ``(KNOTS, *action shape)``"""
    steps_each: Any
    """Steps for which an action is held; infinite for a constant."""
    heeds_mask: Any
    """bool: take the next legal action where the action mask forbids the one of the table."""
    space: spaces.Space[Any] = eqx.field(static=True)

    def initial(self, params: Any) -> jax.Array:
        """Return the memory: the number of steps."""
        return jnp.float32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the action of this step."""
        action = jnp.asarray(self.table)[
            jnp.floor(memory / self.steps_each).astype(jnp.int32) % KNOTS
        ]
        if view.action_mask is not None:
            action = jnp.where(
                self.heeds_mask, next_legal(self.space, view.action_mask, action), action
            )
        return action, memory + 1


def next_legal(space: spaces.Space[Any], mask: jax.Array, action: jax.Array) -> jax.Array:
    """Return the action with each part that the mask forbids replaced by a legal choice.

    It is the next legal one in turn.
    """
    numbered: Any = space
    sizes = action_sizes(space)
    start = np.ravel(numbered.start)
    legal_choices = []
    for number, legal in enumerate(jnp.split(mask, np.cumsum(sizes)[:-1])):
        choice = action.reshape(len(sizes))[number] - start[number]
        distance = (np.arange(sizes[number], dtype=np.int32) - choice) % sizes[number]
        nearest = jnp.argmin(jnp.where(legal, distance, sizes[number]))
        legal_choices.append(jnp.where(legal.any(), nearest, choice) + start[number])
    return jnp.stack(legal_choices).reshape(space.shape or ()).astype(action.dtype)


class Candidate(NamedTuple):
    """A blind player in plain numbers, with its kind."""

    table: np.ndarray
    steps_each: float
    heeds_mask: bool
    kind: str


class BlindScore(NamedTuple):
    """Score of the best blind player of a search on the test split."""

    kind: str
    score: float
    """Mean score; constrained if the task has a constraint."""
    half_width: float
    """Half of its 95 % interval."""
    success: float
    tried: int
    """Blind players that the search tried."""
    player: Candidate

    @property
    def within_limit(self) -> bool:
        """True unless the score lies above :data:`LIMIT` beyond doubt."""
        return self.score - self.half_width <= LIMIT


def whole_episode(
    task: Task[Any, Any], player: Policy, seed: jax.Array, source: ContextSource
) -> EpisodeResults:
    """Play the first episode of a seed; traced."""
    limit = np.int32(task.card.horizon)
    kind = jax.dtypes.canonicalize_dtype(task.action_space.dtype)
    episode, step = begin(task, seed, jnp.int32(0), source)
    start = episode, step, player.initial(episode.params), jnp.zeros((), task.dtype)

    def running(carry: Any) -> jax.Array:
        return ~(carry[1].terminated | carry[1].truncated)

    def go_on(carry: Any) -> Any:
        episode, step, memory, cost = carry
        view = View(step.observation, step.info.get("action_mask"), episode.state, episode.params)
        key = draw_key(episode.seed, episode.index, episode.t, Role.POLICY)
        action, memory = player.act(memory, view, key)
        episode, step = advance(task, episode, action.astype(kind), limit)
        return episode, step, memory, cost + step.info.get("cost", 0)

    episode, step, _, cost = jax.lax.while_loop(running, go_on, start)
    return EpisodeResults(scalar_return(task, episode.total), cost, step.info["success"])


class BlindSearch:
    """The search on one task."""

    def __init__(self, task: Task[Any, Any], seed: int = 0) -> None:
        """Read the action space.

        Raises:
            ValueError: actions have no bounds.
        """
        space: Any = task.action_space
        if isinstance(space, spaces.Box):
            if not space.is_bounded():
                raise ValueError("its actions have no bounds")
            self.low, self.high = space.low, space.high
        else:
            self.low = np.asarray(space.start)
            sizes = np.asarray(space.n if isinstance(space, spaces.Discrete) else space.nvec)
            self.high = self.low + sizes - 1
        self.continuous = isinstance(space, spaces.Box)
        self.task = task
        self.rng = np.random.default_rng(seed)
        self.has_mask = has_masks(task)
        play_one = jax.vmap(
            lambda player, seed, source: whole_episode(task, player, seed, source), (None, 0, None)
        )
        axes = BlindPlayer(0, 0, 0, space)
        self._run = jax.jit(jax.vmap(play_one, (axes, 0, None)))

    # -- drawing players ---------------------------------------------------------------------------

    def _actions(self, count: int) -> np.ndarray:
        """Sample actions, ``(count, *action shape)``.

        Half of the draws are ends and middles of ranges.
        """
        shape = (count, *self.low.shape)
        share = self.rng.random(shape)
        if self.continuous:
            if self.rng.random() < 0.5:
                share = self.rng.integers(0, 3, shape) / 2
            action = self.low + share * (self.high - self.low)
        else:
            action = self.low + np.floor(share * (self.high - self.low + 1))
        if self.task.card.agents > 1 and self.rng.random() < 0.5:
            action[:] = action[:, :1]  # all agents do the same
        return action.astype(self.task.action_space.dtype)

    def sample_steady(self, index: int) -> Candidate:
        """Sample a constant or a ladder.

        The first ones are the no-op and, of a discrete space, each action.
        """
        dtype = self.task.action_space.dtype
        heeds_mask = self.has_mask and index % 2 == 1
        if index < 2:
            return Candidate(self._repeat(self.task.noop_action()), np.inf, heeds_mask, "noop")
        number = (index - 2) // (2 if self.has_mask else 1)
        if isinstance(self.task.action_space, spaces.Discrete) and number <= self.high - self.low:
            return Candidate(self._repeat(self.low + number), np.inf, heeds_mask, "constant")
        if self.rng.random() < 0.5:
            return Candidate(self._repeat(self._actions(1)[0]), np.inf, heeds_mask, "constant")
        first, last = self._actions(2).astype(np.float64)
        rungs = int(self.rng.integers(2, KNOTS + 1))
        share = np.minimum(np.arange(KNOTS) / (rungs - 1), 1).reshape(-1, *[1] * self.low.ndim)
        table = first + share * (last - first)
        table = table if self.continuous else np.round(table)
        return Candidate(table.astype(dtype), self._steps_each(), heeds_mask, "ladder")

    def sample_sequence(self, index: int) -> Candidate:
        """Sample a periodic table or one without a period."""
        period = int(self.rng.choice(PERIODS))
        table = np.tile(self._actions(period), (KNOTS // period, *[1] * self.low.ndim))
        kind = "sequence" if period == KNOTS else "periodic"
        return Candidate(table, self._steps_each(), self.has_mask and index % 2 == 1, kind)

    def _repeat(self, action: Any) -> np.ndarray:
        return np.broadcast_to(action, (KNOTS, *self.low.shape)).astype(
            self.task.action_space.dtype
        )

    def _steps_each(self) -> float:
        """Sample how many steps an action is held: one, a part of the horizon, or between."""
        longest = max(1.0, self.task.card.horizon / KNOTS)
        choices = (1.0, longest, float(np.floor(longest ** self.rng.random())))
        return max(1.0, choices[self.rng.integers(len(choices))])

    def change(self, first: Candidate, second: Candidate) -> Candidate:
        """Return the first player with actions of the second one, and some that are new."""
        column = (-1, *[1] * self.low.ndim)
        if first.kind in STEADY and self.rng.random() < 0.5:
            action = first.table[0]
            if self.continuous:
                noise = 0.1 * (self.high - self.low) * self.rng.normal(size=self.low.shape)
                return first._replace(
                    table=self._repeat(np.clip(action + noise, self.low, self.high)),
                    kind="constant",
                )
            return first._replace(table=self._repeat(self._actions(1)[0]), kind="constant")
        crossed = np.where(self.rng.random(KNOTS).reshape(column) < 0.3, second.table, first.table)
        replaced = self.rng.random(KNOTS).reshape(column) < REPLACED_SHARE
        table = np.where(replaced, self._actions(KNOTS), crossed)
        if self.continuous:
            noise = 0.1 * (self.high - self.low) * self.rng.normal(size=table.shape)
            table = np.clip(table + noise, self.low, self.high)
        steps_each = first.steps_each if np.isfinite(first.steps_each) else self._steps_each()
        return Candidate(
            table.astype(first.table.dtype), steps_each, first.heeds_mask, "sequence, improved"
        )

    # -- playing -----------------------------------------------------------------------------------

    def play(self, players: list[Candidate], seeds: np.ndarray, split: str) -> EpisodeResults:
        """Let each player play the episodes of its row of seeds, ``(players, episodes)``.

        The arrays of the result have that shape.

        Raises:
            ArithmeticError: a return is not finite, so that the task is faulty.
        """
        episodes = self._play(players, seeds, split)
        finite = np.isfinite(episodes.total).all(axis=1)
        if not finite.all():
            kinds = ", ".join(
                sorted(
                    {player.kind for player, fine in zip(players, finite, strict=True) if not fine}
                )
            )
            raise ArithmeticError(
                f"{self.task.card.id} has returns that are not finite; kinds of players: {kinds}."
            )
        return episodes

    def _play(self, players: list[Candidate], seeds: np.ndarray, split: str) -> EpisodeResults:
        if isinstance(self.task, HostTask):
            rows = [
                self._play_on_host(player, row, split)
                for player, row in zip(players, seeds, strict=True)
            ]
            return EpisodeResults(*(np.stack(columns) for columns in zip(*rows, strict=True)))
        keys = np.array([[seed_key(int(seed)) for seed in row] for row in seeds])
        stacked = BlindPlayer(
            np.stack([player.table for player in players]),
            np.array([player.steps_each for player in players], np.float32),
            np.array([player.heeds_mask for player in players]),
            self.task.action_space,
        )
        with on_the_cpu(), precision(self.task):
            episodes = self._run(stacked, keys, ContextSource.parse(split, self.task))
            return EpisodeResults(*(np.asarray(column, np.float64) for column in episodes))

    def _play_on_host(self, player: Candidate, seeds: np.ndarray, split: str) -> EpisodeResults:
        table, steps_each, heeds_mask, _ = player
        policy = BlindPlayer(
            table, np.float32(steps_each), np.bool_(heeds_mask), self.task.action_space
        )
        record = play(self.task, policy, seeds, split=split)
        total = np.asarray(scalar_return(self.task, record.total.astype(np.float64)))
        return EpisodeResults(
            total, record.cost.astype(np.float64), record.info["success"].astype(np.float64)
        )

    def _merits(self, players: list[Candidate], first_seed: int) -> np.ndarray:
        """Return the players' constrained mean scores on the same training episodes.

        The shape is ``(players,)``.
        """
        seeds = np.tile(first_seed + np.arange(EPISODES_AT_ONCE), (PLAYERS_AT_ONCE, 1))
        merits: list[float] = []
        for start in range(0, len(players), PLAYERS_AT_ONCE):
            chunk = players[start : start + PLAYERS_AT_ONCE]
            if isinstance(self.task, HostTask):
                episodes = self.play(chunk, seeds[: len(chunk)], "train")
            else:
                filled = [chunk[i % len(chunk)] for i in range(PLAYERS_AT_ONCE)]
                episodes = self.play(filled, seeds, "train")
            merits += [
                self._merit(EpisodeResults(*(column[i] for column in episodes)))
                for i in range(len(chunk))
            ]
        return np.array(merits)

    def _merit(self, episodes: EpisodeResults) -> float:
        """Return the constrained mean score of episodes."""
        card = self.task.card
        score = float(card.scale(self.task.difficulty).score(episodes.total).mean())
        return card.constrained_score(score, float(episodes.cost.mean()))

    def best(
        self,
        players: int = 1_000,
        rounds: int = 4,
        test_episodes: int = 1_024,
        seconds: float = np.inf,
    ) -> BlindScore:
        """Return the test score of the best of this many steady players and as many sequences.

        Args:
            players: number of players of either kind.
            rounds: rounds of improvement, each of :data:`PLAYERS_AT_ONCE` players of either kind.
            test_episodes: episodes of the winner on the test split, at least.
            seconds: time after which no further player is tried, compilation included.
        """
        end = time.monotonic() + seconds
        tried: list[Candidate] = []
        merits = np.zeros(0)
        # A simulator plays them in turn.
        at_once = 4 if isinstance(self.task, HostTask) else PLAYERS_AT_ONCE
        for start in range(0, players, at_once):
            if tried and time.monotonic() > end:
                break
            indices = range(start, min(players, start + at_once))
            candidates = [*map(self.sample_steady, indices), *map(self.sample_sequence, indices)]
            tried += candidates
            merits = np.concatenate([merits, self._merits(candidates, TRAINING_SEEDS)])
        for turn in range(1, rounds + 1):
            if time.monotonic() > end:
                break
            elite = [tried[i] for i in np.argsort(-merits, kind="stable")[:ELITE]]
            pairs = self.rng.integers(0, len(elite), (2 * PLAYERS_AT_ONCE, 2))
            changed = [self.change(elite[i], elite[j]) for i, j in pairs]
            # The elite plays again on new episodes: the luck of the first ones does not count.
            field = [*elite, *changed]
            tried += field
            merits = np.concatenate(
                [merits, self._merits(field, TRAINING_SEEDS + turn * EPISODES_AT_ONCE)]
            )
        finalists = [tried[i] for i in np.argsort(-merits, kind="stable")[:ELITE]]
        winner = finalists[self._final(finalists)]
        test_episodes_played = self._play_alike(winner, test_episodes)
        scores = self.task.card.scale(self.task.difficulty).score(test_episodes_played.total)
        half_width = 1.96 * float(scores.std(ddof=1)) / len(scores) ** 0.5
        return BlindScore(
            winner.kind,
            self._merit(test_episodes_played),
            half_width,
            float(test_episodes_played.success.mean()),
            len(tried),
            winner,
        )

    def _final(self, finalists: list[Candidate]) -> int:
        """Return the number of the finalist with the best mean score on new training episodes."""
        first = TRAINING_SEEDS + 2**20
        rows = (
            max(1, PLAYERS_AT_ONCE // len(finalists)) if not isinstance(self.task, HostTask) else 1
        )
        seeds = first + np.arange(rows * EPISODES_AT_ONCE).reshape(rows, EPISODES_AT_ONCE)
        players = [player for player in finalists for _ in range(rows)]
        missing = 0 if isinstance(self.task, HostTask) else PLAYERS_AT_ONCE - len(players)
        all_seeds = np.concatenate(
            [np.tile(seeds, (len(finalists), 1)), np.tile(seeds[:1], (missing, 1))]
        )
        episodes_played = self.play([*players, *[finalists[0]] * missing], all_seeds, "train")
        by_finalist = [slice(i * rows, (i + 1) * rows) for i in range(len(finalists))]
        merits = [
            self._merit(EpisodeResults(*(column[rows_of] for column in episodes_played)))
            for rows_of in by_finalist
        ]
        return int(np.argmax(merits))

    def _play_alike(self, player: Candidate, episodes: int) -> EpisodeResults:
        """Play test episodes by one player, at least this many; flat arrays."""
        if isinstance(self.task, HostTask):
            return self._play_on_host(
                player, TEST_SEEDS + np.arange(min(episodes, EPISODES_AT_ONCE)), "test"
            )
        at_once = PLAYERS_AT_ONCE * EPISODES_AT_ONCE
        calls = [
            self.play(
                [player] * PLAYERS_AT_ONCE,
                (TEST_SEEDS + start + np.arange(at_once)).reshape(
                    PLAYERS_AT_ONCE, EPISODES_AT_ONCE
                ),
                "test",
            )
            for start in range(0, episodes, at_once)
        ]
        return EpisodeResults(
            *(
                np.concatenate([column.ravel() for column in columns])
                for columns in zip(*calls, strict=True)
            )
        )
