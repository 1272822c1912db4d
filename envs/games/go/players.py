"""Players of Go: material one move ahead, and Monte Carlo playouts.

All of them read the position, pass when that wins at once, and never fill an eye of their own.
Monte Carlo Go is Bruegmann's (1993). The reference spends its playouts by sequential halving of the
candidates (Karnin, Koren & Somekh 2013, "Almost optimal exploration in multi-armed bandits").
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FlagArray, Int, IntArray, UInt32
from rlbench_suite.core.game import SeatPlayer
from rlbench_suite.core.policy import View, no_memory

from .go import Go, GoAgainst
from .rules import BLACK, Rules, State

WIN_POINTS = 2
"""Worth of a win in a playout, in parts of the number of points."""
NOISE_BITS = 16
RULED_OUT = -(2**30)
"""Value below those of all candidates."""


def eyes(rules: Rules, state: State) -> jax.Array:
    """Return the empty points that the side to move should not fill, as a set.

    All neighbours are its own, and at most one diagonal neighbour is the opponent's, none at the
    edge.
    """
    mover_stones, opponent_stones = rules.sides(state)
    surrounded = rules.empty_points(state) & ~rules.neighbours(rules.board & ~mover_stones)
    row = rules.size + 1
    once, twice = in_one_and_two(rules, opponent_stones, (row + 1, row - 1, -row + 1, -row - 1))
    return surrounded & ~twice & ~(once & rules.edge)


def in_one_and_two(
    rules: Rules, points: jax.Array, steps: tuple[int, ...]
) -> tuple[jax.Array, jax.Array]:
    """Return where one step at least leads from a set, and where two steps do."""
    once = jnp.zeros_like(points)
    twice = once
    for step in steps:
        shifted = rules.shift(points, step)
        twice = twice | once & shifted
        once = once | shifted
    return once, twice


def useful_points(rules: Rules, state: State) -> jax.Array:
    """Return the legal points that fill no eye of the side to move, as a set."""
    return rules.legal_points(state) & ~eyes(rules, state)


def urgent_points(rules: Rules, state: State, useful: jax.Array) -> jax.Array:
    """Return the useful points that capture; without any, those that are safe.

    A safe point has two empty neighbours, or joins a chain that has two liberties.
    """
    mover_stones, opponent_stones = rules.sides(state)
    row = rules.size + 1
    capturing = useful & rules.neighbours(opponent_stones & state.atari)
    _, roomy = in_one_and_two(rules, rules.empty_points(state), (1, -1, row, -row))
    safe = useful & (roomy | rules.neighbours(mover_stones & ~state.atari))
    return jnp.where((capturing != 0).any(), capturing, safe)


# -- random numbers of playouts: a hash and a generator, far cheaper than keys ---------------------


def next_bits(bits: UInt32) -> UInt32:
    """Return the next number of Marsaglia's xorshift generator (2003); it is never 0."""
    bits = bits ^ bits << 13
    bits = bits ^ bits >> 17
    return bits ^ bits << 5


def noise_of(bits: UInt32, count: int) -> IntArray:
    """Return numbers of 16 bits by the finalizer of MurmurHash3, ``(count,)``."""
    numbers = np.arange(1, count + 1, dtype=np.uint32) * np.uint32(0x9E3779B9)
    mixed = bits + numbers
    mixed = (mixed ^ mixed >> 16) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ mixed >> 13) * np.uint32(0xC2B2AE35)
    return (mixed >> (32 - NOISE_BITS)).astype(jnp.int32)


def random_move(rules: Rules, points: jax.Array, bits: UInt32) -> Int:
    """Return any point of a set; a pass if it is empty."""
    is_candidate = rules.flags(points)
    noise = jnp.where(is_candidate, noise_of(bits, rules.points), -1)
    return jnp.where(is_candidate.any(), jnp.argmax(noise), rules.points).astype(jnp.int32)


def playout_margin(rules: Rules, state: State, bits: UInt32) -> Int:
    """Return the margin of Black if both sides play on at random, mostly on urgent points."""

    def is_running(carry: tuple[State, UInt32]) -> jax.Array:
        return ~rules.is_over(carry[0])

    def move(carry: tuple[State, UInt32]) -> tuple[State, UInt32]:
        state, bits = carry
        bits = next_bits(bits)
        useful = useful_points(rules, state)
        urgent = urgent_points(rules, state, useful)
        heeds_urgent = (bits & 3 != 0) & (urgent != 0).any()
        candidates = jnp.where(heeds_urgent, urgent, useful)
        return rules.place_uncounted(state, random_move(rules, candidates, bits)), bits

    state, _ = jax.lax.while_loop(is_running, move, (state, bits))
    return rules.area_margin(state)


# -- players ---------------------------------------------------------------------------------------


class GoPlayer(eqx.Module):
    """A player of both sides, who chooses the move of the side whose turn it is."""

    game: Go = eqx.field(static=True)

    @classmethod
    def for_task(cls, game: Go) -> GoPlayer:
        """Return the player."""
        return cls(game)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return a move for the side to move, for both sides, int32 ``(2,)``."""
        state = view.state
        wins_by_pass = (state.passes > 0) & (
            self.gain(state, self.game.go.area_margin(state, state.passes > 0)) > 0
        )
        move = jnp.where(wins_by_pass, self.game.pass_move, self.choose(state, key))
        return jnp.stack([move, move]).astype(jnp.int32), memory

    def gain(self, state: State, margin: Int) -> jax.Array:
        """Return twice the points by which the side to move is ahead, with komi, int32."""
        black_gain = 2 * margin - int(2 * self.game.komi)
        return jnp.where(state.ply % 2 == BLACK, black_gain, -black_gain)

    @abc.abstractmethod
    def choose(self, state: State, key: jax.Array) -> Int:
        """Return a move where passing does not win at once."""


class Material(GoPlayer):
    """Captures most, leaves fewest of its stones in atari, and then puts most into atari."""

    def choose(self, state: State, key: jax.Array) -> Int:
        """Return a best useful point for the position after it."""
        rules = self.game.go
        is_useful = rules.flags(useful_points(rules, state))
        worths = jax.vmap(lambda move: self.worth(rules.place_uncounted(state, move)))(
            np.arange(rules.points, dtype=np.int32)
        )
        # Worths are whole numbers, so that the noise only decides between equal ones.
        noise = noise_of(self.game.bits(key, 1)[0], rules.points)
        values = jnp.where(is_useful, worths * (1 << NOISE_BITS) + noise, RULED_OUT)
        return jnp.where(is_useful.any(), jnp.argmax(values), self.game.pass_move)

    def worth(self, state: State) -> Int:
        """Return how good a position is for the side that has just moved."""
        rules = self.game.go
        opponent_stones, mover_stones = rules.sides(state)
        return (
            -4 * rules.count(opponent_stones)
            - 2 * rules.count(mover_stones & state.atari)
            + rules.count(opponent_stones & state.atari)
        )


class Tally(NamedTuple):
    """Playouts so far of each point and of passing."""

    is_candidate: FlagArray
    totals: IntArray
    """Sums of values."""
    trials: IntArray
    """Numbers of playouts."""

    def ranks(self, noise: IntArray) -> IntArray:
        """Return how many candidates have a better mean than each; noise decides ties."""
        means = self.totals.astype(jnp.float32) / jnp.maximum(self.trials, 1).astype(jnp.float32)
        means = jnp.where(self.is_candidate, means, RULED_OUT)
        is_better = means[None] > means[:, None]
        wins_tie = (means[None] == means[:, None]) & (noise[None] > noise[:, None])
        return (is_better | wins_tie).sum(axis=1)


class MonteCarlo(GoPlayer):
    """Plays on at random after each useful point, and takes the point that wins most."""

    playouts: ClassVar[int] = 128
    """Playouts of a round, shared evenly by the candidates."""
    divisors: ClassVar[tuple[int, ...]] = (1,)
    """Parts of all candidates that remain in each round, the best ones of the rounds before."""

    def choose(self, state: State, key: jax.Array) -> Int:
        """Return the candidate with the best mean value.

        Passing is one only where it is safe: where the board as it stands is won, or full.
        """
        rules = self.game.go
        count = rules.points + 1
        bits = self.game.bits(key, 1 + self.playouts * len(self.divisors))
        noise = noise_of(bits[0], count)
        seeds = (bits[1:] | np.uint32(1)).reshape(len(self.divisors), self.playouts)
        useful = rules.flags(useful_points(rules, state))
        may_pass = (self.gain(state, rules.area_margin(state)) > 0) | ~useful.any()
        candidates = jnp.concatenate([useful, may_pass[None]])
        number = candidates.sum()

        def play_round(tally: Tally, scheduled: tuple[Int, jax.Array]) -> tuple[Tally, None]:
            divisor, round_seeds = scheduled
            remaining = jnp.maximum(-(-number // divisor), 2)
            is_candidate = tally.is_candidate & (tally.ranks(noise) < remaining)
            totals, trials = self.play_on(state, is_candidate, round_seeds)
            return Tally(is_candidate, tally.totals + totals, tally.trials + trials), None

        zeros = jnp.zeros(count, jnp.int32)
        divisors = np.array(self.divisors, np.int32)
        tally, _ = jax.lax.scan(play_round, Tally(candidates, zeros, zeros), (divisors, seeds))
        return jnp.argmin(tally.ranks(noise))

    def play_on(
        self, state: State, is_candidate: FlagArray, seeds: jax.Array
    ) -> tuple[IntArray, IntArray]:
        """Return the summed value and the number of playouts of each candidate."""
        rules = self.game.go
        number = jnp.cumsum(is_candidate) - 1
        turns = np.arange(self.playouts) % is_candidate.sum()
        is_move = is_candidate & (number == turns[:, None])

        def value(move: Int, seed: UInt32) -> Int:
            margin = playout_margin(rules, rules.place_uncounted(state, move), seed)
            gain = self.gain(state, margin)
            return gain + jnp.where(gain > 0, 2 * WIN_POINTS * rules.points, 0)

        moves = jnp.argmax(is_move, axis=1).astype(jnp.int32)
        values = jax.vmap(value)(moves, seeds)
        totals = jnp.where(is_move, values[:, None], 0).sum(axis=0)
        return totals.astype(jnp.int32), is_move.sum(axis=0).astype(jnp.int32)


class LongMonteCarlo(MonteCarlo):
    """Plays on twice as often."""

    playouts = 256


class HalvingMonteCarlo(MonteCarlo):
    """Gives a second and a third round of playouts to the best third and ninth only."""

    playouts = 256
    divisors = (1, 3, 9)


class Reference(SeatPlayer):
    """The halving Monte Carlo player, at one's own seat."""

    @classmethod
    def for_task(cls, task: GoAgainst) -> SeatPlayer:
        """Return the player of the task's game."""
        return cls(HalvingMonteCarlo(task.game))
