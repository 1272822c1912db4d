"""Audit the reference players: tune cheap policies on each task, and print whether one beats them.

    python benchmarks/audits/yardsticks.py [--ids A-v0,B-v0?difficulty=hard] [--families text,tools]
    [--seconds 60]

A reference player is worth something only if nothing cheap beats it. For every task this program
searches at random, half of the seconds over each of two kinds of policies, then improves the best
ones by small random changes:

* policies of a few numbers: a constant action; two constant actions in turn or one after the other;
  linear feedback of one to four entries of the observation for each action; one gain for each part
  of the observation that has as many entries as the action (a proportional and derivative
  controller, if the task shows errors and their rates); and bang-bang forms of them. In families
  whose actions are choices they are those of ``rules_of_thumb.py``: the first, the last or a random
  legal choice, orders, sequences, softmax tables, linear values, and the largest entry of a part of
  the observation that has one for each choice;
* the family's own reference player with its floating-point numbers changed.

Policies see training episodes only. The best one and the reference then play the same held-out test
episodes. A policy whose mean constraint cost on the training episodes exceeds both that of the
reference and the limit of the card is no rival. The columns:

* ``noop``, ``reference``, ``tuned``: mean normalised scores (0 is the better of random play and
  doing nothing, 1 the reference of the card) with 95 % intervals; ``noop`` is the calibrated one;
* ``cost`` and ``success`` of both, a mean over episodes;
* ``policy``: the winner;
* ``verdict``: ``beaten`` if it exceeds the reference by more than 3 % on the same episodes,
  ``beaten?`` if the interval of that difference includes 3 %.

Exit code 1 says that a reference is beaten beyond doubt.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from rules_of_thumb import Thumbs

from rlbench_suite.core.episode import ContextSource, seed_key
from rlbench_suite.core.policy import Policy, View, reference_player
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.open_loop import EpisodeResults, whole_episode
from rlbench_suite.numerics.process import precision

OF_CHOICES = ("games", "memory", "morl", "puzzles", "text", "tools")
"""Families whose actions are choices, for which rules of thumb are tried instead of feedback laws.

Feedback laws are tried all the same for their few tasks whose actions are numbers.
"""
FAMILIES = (
    "driving",
    "exploration",
    "greenhouse",
    "marl",
    "motor",
    "offline",
    "operations",
    "quadcopter",
)
TRAINING_SEEDS = 2**35
"""First seed of the search. No training, evaluation or reference score uses it."""
TEST_SEEDS = 2**36
"""First seed of the test. No training, evaluation or reference score uses it."""
LANES = 64
"""Policies that play at the same time."""
EPISODES = 8
"""Episodes of each of them."""
ELITE = 8
"""Policies that a round changes, and that reach the final."""
FINALISTS = 64
"""Policies that play twice as many episodes more before the final."""
MARGIN = 0.03
"""Difference of normalised scores from which a reference counts as beaten."""
MAX_GAINS = 16
"""Arrays of a reference player with more entries are tables, not gains."""


# -- policies --------------------------------------------------------------------------------------


class Law(NamedTuple):
    """A policy of a few numbers.

    Values -1 to 1 span the range of an action; of a discrete action each has a value, and the legal
    one with the largest is taken.
    """

    weights: Any
    """``(values, entries + 1)``: weights of the observation's entries, then the constant part."""
    alternate: Any
    """``(values,)``: values in every second period."""
    period: Any
    """Steps; infinite for policies that do not alternate."""
    bang: Any
    """bool: only the sign of a value counts."""


class Cheap(eqx.Module):
    """A player that obeys a :class:`Law`. The agents of a task obey the same one."""

    law: Law
    space: spaces.Space[Any] = eqx.field(static=True)
    agents: int = eqx.field(static=True)

    def initial(self, params: Any) -> jax.Array:
        """Return the memory: the number of steps."""
        return jnp.float32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the action of the law."""
        law, space = self.law, self.space
        observation = view.observation.reshape(self.agents, -1)
        value = observation @ law.weights[:, :-1].T + law.weights[:, -1]
        value = jnp.where(jnp.floor(memory / law.period) % 2 == 1, law.alternate, value)
        if isinstance(space, spaces.Discrete):
            value = value[0]
            if view.action_mask is not None:
                value = jnp.where(view.action_mask, value, -jnp.inf)
            return space.start + jnp.argmax(value), memory + 1
        share = 0.5 + 0.5 * jnp.clip(jnp.where(law.bang, jnp.sign(value), value), -1, 1)
        low, high = bounds(space)
        action = low + share.reshape(low.shape) * (high - low)
        return action if isinstance(space, spaces.Box) else jnp.round(action), memory + 1


class Retuned(eqx.Module):
    """A reference player whose floating-point numbers are multiplied by factors."""

    player: Policy
    factors: Any
    """``(n,)``, one for each leaf of ``which``"""
    which: tuple[int, ...] = eqx.field(static=True)

    def _retuned_player(self) -> Policy:
        leaves, tree = jax.tree.flatten(self.player)
        for place, factor in zip(self.which, self.factors, strict=True):
            leaves[place] = leaves[place] * factor
        changed: Policy = jax.tree.unflatten(tree, leaves)
        return changed

    def initial(self, params: Any) -> Any:
        """Return the player's memory."""
        return self._retuned_player().initial(params)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the changed player's action."""
        return self._retuned_player().act(memory, view, key)


def bounds(space: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest action."""
    if isinstance(space, spaces.Box):
        return space.low, space.high
    numbered: Any = space
    return numbered.start.astype(np.float32), (numbered.start + numbered.nvec - 1).astype(
        np.float32
    )


# -- random search ---------------------------------------------------------------------------------


class Search(Protocol):
    """A kind of policies: what its numbers look like, and how to sample and to change them."""

    player: Any
    """A policy with the numbers of one candidate"""
    axes: Any
    """The same tree, 0 at leaves that differ between candidates and None at others"""

    def sample(self, rng: np.random.Generator) -> tuple[Any, str]:
        """Sample the numbers of a candidate; also name what it is."""

    def vary(self, numbers: Any, rng: np.random.Generator) -> Any:
        """Return numbers near these."""

    def players(self, numbers: list[Any]) -> Any:
        """Return policies, stacked along a first axis."""


class Laws:
    """Search over :class:`Law`."""

    def __init__(self, task: Task[Any, Any]) -> None:
        """Look at the spaces of a task.

        Raises:
            ValueError: observations are no arrays of numbers, or actions are not bounded.
        """
        observation_space, space = task.observation_space, task.action_space
        agents = task.card.agents
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) > 1 + (
            agents > 1
        ):
            raise ValueError("its observation is not a flat array")
        self.entries = math.prod(observation_space.shape) // agents
        if isinstance(space, spaces.Discrete):
            self.values = int(space.n)
        else:
            if isinstance(space, spaces.Box) and not space.is_bounded():
                raise ValueError("its actions have no bounds")
            self.values = math.prod(space.shape or ()) // agents
        self.discrete = isinstance(space, spaces.Discrete)
        self.blocks: list[int] = []
        """First entries of the parts of an observation that have one entry for each value."""
        place = 0
        components = task.observation_components()
        for component in components if isinstance(components, tuple) else ():
            if component.size == self.values:
                self.blocks.append(place)
            place += component.size
        zeros = Law(*(np.zeros_like(leaf) for leaf in self.sample(np.random.default_rng(0))[0]))
        self.player = Cheap(zeros, space, agents)
        self.axes = 0

    def sample(self, rng: np.random.Generator) -> tuple[Law, str]:
        """Sample a law of one of five forms."""
        kinds = [
            "constant",
            "two constants",
            "linear",
            "linear",
            *["gains of parts"] * (3 * bool(self.blocks)),
        ]
        kind = str(rng.choice(kinds))
        weights = np.zeros((self.values, self.entries + 1), np.float32)
        weights[:, -1] = rng.uniform(-1, 1, self.values) * (
            kind in ("constant", "two constants") or rng.random() < 0.3
        )
        if kind == "linear":
            for row in weights:
                count = rng.integers(1, 5)
                row[rng.integers(0, self.entries, count)] = self._gains(rng, count)
        if kind == "gains of parts":
            count = rng.integers(1, min(4, len(self.blocks)) + 1)
            selected = rng.choice(self.blocks, count, replace=False)
            gains = self._gains(rng, count)
            if count > 1 and rng.random() < 0.5:
                gains[1] = -gains[0]  # the difference of two places or speeds
            for place, gain in zip(selected, gains, strict=True):
                weights[np.arange(self.values), place + np.arange(self.values)] = gain
        if kind in ("constant", "two constants") and rng.random() < 0.3:
            weights[:, -1] = np.sign(weights[:, -1])
        period = 2 ** rng.uniform(0, 10) if kind == "two constants" else np.inf
        bang = kind in ("linear", "gains of parts") and not self.discrete and rng.random() < 0.2
        alternate = rng.uniform(-1, 1, self.values).astype(np.float32)
        return Law(
            weights, alternate, np.float32(period), np.bool_(bang)
        ), f"bang-bang {kind}" if bang else kind

    @staticmethod
    def _gains(rng: np.random.Generator, count: int) -> np.ndarray:
        return rng.choice([-1, 1], count) * 10 ** rng.uniform(-1.5, 1.5, count)

    def vary(self, numbers: Law, rng: np.random.Generator) -> Law:
        """Change every number that is not zero by some 20 %, and sometimes use another entry."""
        weights = numbers.weights * np.exp(rng.normal(0, 0.2, numbers.weights.shape))
        weights[:, -1] += rng.normal(0, 0.1, self.values) * (numbers.weights[:, -1] != 0)
        if rng.random() < 0.2 and self.blocks:
            place = rng.choice(self.blocks) + np.arange(self.values)
            weights[np.arange(self.values), place] += self._gains(rng, 1)
        elif rng.random() < 0.3:
            weights[rng.integers(self.values), rng.integers(self.entries + 1)] += rng.normal()
        alternate = numbers.alternate + rng.normal(0, 0.1, self.values)
        period = numbers.period * np.exp(rng.normal(0, 0.2))
        return Law(
            weights.astype(np.float32),
            alternate.astype(np.float32),
            np.float32(period),
            numbers.bang,
        )

    def players(self, numbers: list[Law]) -> Cheap:
        """Stack laws."""
        return Cheap(
            jax.tree.map(lambda *leaves: np.stack(leaves), *numbers),
            self.player.space,
            self.player.agents,
        )


class Factors:
    """Search over the numbers of the reference player."""

    def __init__(self, task: Task[Any, Any]) -> None:
        player = reference_player(task)
        numbers = [np.asarray(leaf) for leaf in jax.tree.leaves(player)]
        which = tuple(
            i for i, x in enumerate(numbers) if x.dtype.kind == "f" and x.size <= MAX_GAINS
        )
        self.player = Retuned(player, np.ones(len(which), np.float32), which)
        self.axes = Retuned(None, 0, which)  # type: ignore[arg-type]  # a tree of axes, not of numbers

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, str]:
        """Sample factors, most of them 1."""
        return self._change(self.player.factors, 0.4, rng), "reference, retuned"

    def vary(self, numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Change some factors a little."""
        return self._change(numbers, 0.15, rng)

    @staticmethod
    def _change(factors: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
        is_changed = rng.random(len(factors)) < max(0.3, 2 / max(len(factors), 1))
        return (factors * np.exp(is_changed * rng.normal(0, spread, len(factors)))).astype(
            np.float32
        )

    def players(self, numbers: list[np.ndarray]) -> Retuned:
        """Stack factors."""
        return Retuned(self.player.player, np.stack(numbers), self.player.which)


class Candidate:
    """The numbers of a policy, and what it has earned on training episodes."""

    def __init__(self, numbers: Any, kind: str) -> None:
        self.numbers, self.kind = numbers, kind
        self.totals: list[float] = []
        self.costs: list[float] = []

    def merit(self, allowed: float) -> tuple[bool, float]:
        """Order candidates: those that keep the allowed cost by return, then the others by cost."""
        cost = float(np.mean(self.costs))
        return (True, float(np.mean(self.totals))) if cost <= allowed else (False, -cost)


class Arena:
    """The compiled episodes of one kind of policies."""

    def __init__(self, task: Task[Any, Any], search: Search) -> None:
        self.task, self.search = task, search
        run_episodes = jax.vmap(
            lambda player, seed, source: whole_episode(task, player, seed, source), (None, 0, None)
        )
        self.run = jax.jit(jax.vmap(run_episodes, (search.axes, 0, None)))

    def play(self, numbers: list[Any], seeds: np.ndarray, split: str) -> EpisodeResults:
        """Play ``(LANES, EPISODES)`` seeds by a policy a row."""
        keys = np.array([[seed_key(int(seed)) for seed in row] for row in seeds])
        with precision(self.task):
            results = self.run(
                self.search.players(numbers), keys, ContextSource.parse(split, self.task)
            )
            return EpisodeResults(*(np.asarray(values, np.float64) for values in results))

    def all_alike(self, numbers: Any, first: int, episodes: int, split: str) -> EpisodeResults:
        """Play episodes of consecutive seeds by one policy."""
        round_episodes = LANES * EPISODES
        rounds = [
            self.play(
                [numbers] * LANES,
                first + start + np.arange(round_episodes).reshape(LANES, EPISODES),
                split,
            )
            for start in range(0, episodes, round_episodes)
        ]
        return EpisodeResults(
            *(
                np.concatenate([batch.ravel() for batch in batches])
                for batches in zip(*rounds, strict=True)
            )
        )

    def best(self, seconds: float, allowed: float, rng: np.random.Generator) -> Candidate:
        """Search for some seconds, and return the best policy on training episodes.

        Compilation does not count.
        """
        tried: list[Candidate] = []
        seeds = self._seeds()
        first = Candidate(*self.search.sample(rng))
        self.play([first.numbers] * LANES, np.tile(next(seeds), (LANES, 1)), "train")  # compile
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds or len(tried) < LANES:
            if elapsed < 0.4 * seconds or not tried:
                candidates = [Candidate(*self.search.sample(rng)) for _ in range(LANES)]
            else:
                tried = sorted(tried, key=lambda candidate: candidate.merit(allowed), reverse=True)[
                    : 4 * FINALISTS
                ]
                elite = [tried[i] for i in rng.integers(0, ELITE, LANES)]
                candidates = [
                    Candidate(self.search.vary(candidate.numbers, rng), candidate.kind)
                    for candidate in elite
                ]
            self._judge(candidates, next(seeds))
            tried += candidates
        tried = sorted(tried, key=lambda candidate: candidate.merit(allowed), reverse=True)
        for count, rounds in ((FINALISTS, 2), (ELITE, 8)):
            tried = tried[:count]
            rows = [tried[i % len(tried)] for i in range(LANES)]
            for _ in range(rounds):
                self._judge(rows, next(seeds))
            tried = sorted(tried, key=lambda candidate: candidate.merit(allowed), reverse=True)
        return tried[0]

    def _judge(self, candidates: list[Candidate], seeds: np.ndarray) -> None:
        """Let each candidate play the same training episodes."""
        results = self.play(
            [candidate.numbers for candidate in candidates], np.tile(seeds, (LANES, 1)), "train"
        )
        for i, candidate in enumerate(candidates):
            candidate.totals += results.total[i].tolist()
            candidate.costs += results.cost[i].tolist()

    @staticmethod
    def _seeds() -> Iterator[np.ndarray]:
        for start in range(TRAINING_SEEDS, TEST_SEEDS, EPISODES):
            yield np.arange(start, start + EPISODES)


# -- the table -------------------------------------------------------------------------------------


class Line(NamedTuple):
    """The result of one task."""

    task_id: str
    noop: float
    reference: EpisodeResults
    tuned: EpisodeResults
    kind: str

    @property
    def lead(self) -> tuple[float, float]:
        """Mean lead of the tuned policy over the reference on the same episodes.

        The second number is half of the interval.
        """
        return interval(self.tuned.total - self.reference.total)

    @property
    def verdict(self) -> str:
        """Say whether the reference is beaten."""
        mean, half = self.lead
        if mean <= MARGIN:
            return "stands"
        return "beaten" if mean - half > MARGIN else "beaten?"

    def __str__(self) -> str:
        def score(results: EpisodeResults) -> str:
            mean, half = interval(results.total)
            return f"{mean:.3f} +- {half:.3f}"

        costs, successes = (
            [
                f"{np.mean(getattr(results, measure)):.3g}"
                for results in (self.reference, self.tuned)
            ]
            for measure in ("cost", "success")
        )
        cells = (
            self.task_id.removeprefix("rlsuite/"),
            f"{self.noop:.3f}",
            score(self.reference),
            score(self.tuned),
            " / ".join(costs),
            " / ".join(successes),
            self.kind,
            self.verdict,
        )
        return f"| {' | '.join(cells)} |"


HEADER = (
    "| task | noop | reference | tuned | cost, reference / tuned | success | policy | verdict |\n|"
    + " --- |" * 8
)


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return a mean, and half the width of its 95 % interval."""
    return float(values.mean()), 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5


def audit(card: TaskCard, seconds: float, episodes: int, seed: int = 0) -> Line:
    """Tune cheap policies for some seconds, and compare the best with the reference.

    Both play test episodes.

    Raises:
        ValueError: policies of a few numbers cannot play the task.
    """
    if card.host:
        raise ValueError("it runs on the host")
    task = card.build()
    rng = np.random.default_rng(seed)
    reference = Arena(task, Factors(task))
    unchanged = reference.search.player.factors
    reference_cost, half = interval(
        reference.all_alike(unchanged, TRAINING_SEEDS, LANES * EPISODES, "train").cost
    )
    allowed = max(reference_cost + half, card.constraint.limit if card.constraint else 0.0)
    has_choices = card.family in OF_CHOICES and not isinstance(task.action_space, spaces.Box)
    cheap = Thumbs(task) if has_choices else Laws(task)
    arenas = [Arena(task, cheap), *[reference] * bool(len(unchanged))]
    rivals = [(arena, arena.best(seconds / len(arenas), allowed, rng)) for arena in arenas]
    arena, best = max(rivals, key=lambda rival: rival[1].merit(allowed))

    def normalise_results(results: EpisodeResults) -> EpisodeResults:
        return EpisodeResults(
            np.array([card.normalise(total) for total in results.total]),
            results.cost,
            results.success,
        )

    return Line(
        card.id,
        card.normalise(card.scores()["noop"].mean),
        normalise_results(reference.all_alike(unchanged, TEST_SEEDS, episodes, "test")),
        normalise_results(arena.all_alike(best.numbers, TEST_SEEDS, episodes, "test")),
        best.kind,
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--ids", help=f"tasks, separated by commas; those of {', '.join(FAMILIES)} by default"
    )
    parser.add_argument("--families", help="families, separated by commas, with all their variants")
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="time of the search on a task, without compilation",
    )
    parser.add_argument("--episodes", type=int, default=512, help="number of test episodes")
    options = parser.parse_args()
    families = options.families.split(",") if options.families else FAMILIES
    default_cards = [
        card
        for card in cards().values()
        if card.family in families and not card.host and (options.families or not card.variant)
    ]
    selected_cards = (
        [find_card(name) for name in options.ids.split(",")] if options.ids else default_cards
    )
    print(HEADER, flush=True)
    beaten = False
    for card in selected_cards:
        try:
            line = audit(card, options.seconds, options.episodes)
        except ValueError as why:
            print(f"{card.id} was left out: {why}.", file=sys.stderr)
            continue
        print(line, flush=True)
        beaten |= line.verdict == "beaten"
    return int(beaten)


if __name__ == "__main__":
    sys.exit(main())
