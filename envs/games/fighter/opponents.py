"""Scripted fighters: a ladder of twelve styles, from a bystander to one that reads frames.

One rule plays all of them, and a row of numbers makes a style. A fighter reacts to an attack only
after its own reaction time, and knows which attack it is only once that shows. ``round_robin.py``
plays all of them against each other.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Int
from rlbench_suite.core.game import Game
from rlbench_suite.core.policy import View, no_memory

from .rules import (
    ADVANCE,
    DASH,
    DOWN,
    FIRST_MOVE_ACTION,
    FREE,
    GUARD_HIGH,
    GUARD_LOW,
    JAB,
    JUMP,
    NO_CONTACT,
    OVERHEAD,
    RETREAT,
    REVEAL_AGE,
    SWEEP,
    THROW,
    THRUST,
    WAIT,
    Fighter,
    Params,
    by_move,
    can_cancel,
    distance_between,
    frame_data,
    is_attack,
    reaches,
    startups,
)

CERTAIN = 256
"""Chances are in parts of this, so that a byte decides."""
WORDS_PER_CHOICE = 2


class Style(NamedTuple):
    """Numbers of a scripted fighter. Chances are of 256."""

    lapses: int = 0
    """Chance to do nothing in a tick"""
    min_distance: int = 4
    """Distance below which it walks back"""
    max_distance: int = 7
    """Distance above which it walks forward"""
    aggression: int = 0
    """Chance in a tick to attack a fighter within reach"""
    attacks: tuple[int, int, int, int, int] = (1, 1, 1, 1, 1)
    """Weights of jab, sweep, overhead, thrust and throw"""
    vigilance: int = 0
    """Chance to be on guard instead of standing still"""
    reaction: int = 8
    """Ticks of an attack that pass before it reacts"""
    defends: int = 0
    """Chance to guard against an attack that it has noticed"""
    escapes: int = 0
    """Chance to dash back or jump, instead of a guard, where a throw may come"""
    punishes: int = 0
    """Chance to strike a fighter that cannot defend itself in time"""
    # Who always opens a guard falls for one raised for a tick: the jab after it counters.
    opens: int = 0
    """Chance in a tick to throw a fighter on guard, or to attack it at the other height"""
    cancels: int = 0
    """Chance to cancel an attack that has hit into another"""


class Rolls(NamedTuple):
    """Random bytes of a choice, each from 0 to 255."""

    lapse: Int
    dice: Int
    guess: Int
    pick: Int
    cancel: Int
    opening: Int

    @classmethod
    def of(cls, words: Any) -> Rolls:
        """Return the bytes of two random words, uint32 ``(2,)``."""
        places = [(word, np.uint32(8 * byte)) for word in words for byte in range(4)]
        rolls = [(word >> shift & np.uint32(255)).astype(jnp.int32) for word, shift in places]
        return cls(*rolls[: len(cls._fields)])


def choose(
    style: Style, fighter: Fighter, rival: Fighter, distance: Int, rolls: Rolls, params: Params
) -> Int:
    """Return the action of a fighter of a style."""
    is_open, punisher = punishment(rival, distance, params)
    responses = (
        (
            can_cancel(fighter, jnp.int32(OVERHEAD)) & (rolls.cancel < style.cancels),
            best_cancel(fighter, rival, distance, params),
        ),
        (rolls.lapse < style.lapses, WAIT),
        (
            is_threat(style, rival, distance, params) & (rolls.dice < style.defends),
            defence(style, rival, distance, rolls.guess),
        ),
        (is_open & (rolls.dice < style.punishes), punisher),
        (
            guards_within_reach(rival, distance) & (rolls.opening < style.opens),
            opening_attack(rival, distance),
        ),
    )
    action = neutral_action(style, rival, distance, rolls, params)
    # The first response that applies decides.
    for applies, response in reversed(responses):
        action = jnp.where(applies, response, action)
    return action


def action_of(move: Any) -> Any:
    """Return the action that begins a move."""
    return move + (FIRST_MOVE_ACTION - JAB)


def neutral_action(
    style: Style, rival: Fighter, distance: Int, rolls: Rolls, params: Params
) -> Int:
    """Return the action where nothing asks for an answer: walk, attack or guard."""
    attack = favourite_attack(style, rolls.pick)
    is_down = (rival.posture == DOWN) & (rival.stun > 1)
    in_reach = (distance <= by_move(attack, reaches(params))) & ~is_down
    guard = jnp.where(rolls.guess < CERTAIN // 4, GUARD_HIGH, GUARD_LOW)
    # Other bits of the same byte decide whether to guard.
    stand = jnp.where(rolls.pick ^ 0b01010101 < style.vigilance, guard, WAIT)
    stand = jnp.where(distance < style.min_distance, RETREAT, stand)
    walk = jnp.where(distance > style.max_distance, ADVANCE, stand)
    return jnp.where((rolls.dice < style.aggression) & in_reach, action_of(attack), walk)


def favourite_attack(style: Style, pick: Int) -> Int:
    """Return an attack of a style, by its weights and a random byte."""
    share = pick * sum(style.attacks) // CERTAIN
    attack: Any = jnp.int32(JAB)
    threshold: Any = 0
    for move, weight in enumerate(style.attacks[:-1], start=JAB):
        threshold = threshold + weight
        attack = jnp.where(share >= threshold, move + 1, attack)
    return attack


def guards_within_reach(rival: Fighter, distance: Int) -> Flag:
    """Return whether the rival is on guard, close by and in control."""
    return (distance <= 7) & (rival.guard != 0) & (rival.stun == 0)


def opening_attack(rival: Fighter, distance: Int) -> Int:
    """Return a throw where it reaches, else an attack at the height that is not guarded."""
    other_height = jnp.where(rival.guard == GUARD_HIGH, SWEEP, OVERHEAD)
    return action_of(jnp.where(distance <= 4, THROW, other_height))


def punishment(rival: Fighter, distance: Int, params: Params) -> tuple[Flag, Int]:
    """Return whether an attack lands before the rival is in control, and the best such one."""
    frames = frame_data(rival.move, params)
    has_struck = (rival.age >= frames.last_active) | (rival.contact != NO_CONTACT)
    recovery = jnp.where(is_attack(rival.move) & has_struck, frames.length - rival.age, 0)
    reeling = jnp.where(rival.posture == DOWN, 0, rival.stun)
    landing = jnp.where((rival.move == JUMP) & (rival.age >= 3), 3, 0)
    ticks = jnp.maximum(jnp.maximum(recovery, reeling), landing)
    punisher: Any = jnp.int32(FREE)
    for move in (JAB, THRUST, SWEEP, OVERHEAD):
        startup, reach = startups(params)[move - JAB], reaches(params)[move - JAB]
        punisher = jnp.where((startup < ticks) & (distance <= reach), move, punisher)
    return punisher != FREE, action_of(punisher)


def is_threat(style: Style, rival: Fighter, distance: Int, params: Params) -> Flag:
    """Return whether an attack that was noticed may reach."""
    frames = frame_data(rival.move, params)
    reach = jnp.where(rival.age >= REVEAL_AGE, frames.reach, params.thrust_reach)
    is_noticed = is_attack(rival.move) & (rival.age >= style.reaction)
    may_strike = (rival.age <= frames.last_active) & (rival.contact == NO_CONTACT)
    return is_noticed & may_strike & (distance <= reach + 1)


def defence(style: Style, rival: Fighter, distance: Int, guess: Int) -> Int:
    """Return a guard, or an escape where a throw may come."""
    shows = rival.age >= REVEAL_AGE
    guard = jnp.where(shows & (rival.move == OVERHEAD), GUARD_HIGH, GUARD_LOW)
    fears_throw = ~shows & (distance <= 5) & (guess < style.escapes)
    escape = action_of(jnp.where(guess % 2 == 0, DASH, JUMP))
    return jnp.where(fears_throw, escape, guard)


def best_cancel(fighter: Fighter, rival: Fighter, distance: Int, params: Params) -> Int:
    """Return the attack that follows one which has hit, if it lands in time; else wait."""
    action: Any = jnp.int32(WAIT)
    for move in (THRUST, SWEEP, OVERHEAD):
        frames = frame_data(jnp.int32(move), params)
        lands = (distance <= frames.reach) & (frames.startup < rival.stun)
        action = jnp.where(lands & can_cancel(fighter, jnp.int32(move)), action_of(move), action)
    return action


class Scripted(eqx.Module):
    """A player of both fighters by the rule of this file."""

    game: Game[Any, Any] = eqx.field(static=True)
    style: ClassVar[Style]
    privileged: ClassVar[bool] = True

    @classmethod
    def for_task(cls, game: Game[Any, Any]) -> Scripted:
        """Return the player."""
        return cls(game)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return an action of each fighter, int32 ``(2,)``."""
        words = self.game.bits(key, 2 * WORDS_PER_CHOICE)
        distance = distance_between(view.state, view.params)
        first, second = view.state.sides
        first_rolls = Rolls.of(words[:WORDS_PER_CHOICE])
        second_rolls = Rolls.of(words[WORDS_PER_CHOICE:])
        return jnp.stack([
            choose(self.style, first, second, distance, first_rolls, view.params),
            choose(self.style, second, first, distance, second_rolls, view.params),
        ]), memory  # fmt: skip


class Bystander(Scripted):
    """Hardly moves."""

    style = Style(lapses=250, aggression=60, max_distance=16)


class Wanderer(Scripted):
    """Walks about and strikes now and then."""

    style = Style(lapses=128, aggression=16, max_distance=14, min_distance=9)


class Turtle(Scripted):
    """Stays on guard, and pokes at who comes close."""

    style = Style(lapses=64, aggression=8, vigilance=180, max_distance=12, attacks=(4, 1, 0, 2, 0))


class Counter(Scripted):
    """Waits for an attack, guards, and strikes back."""

    style = Style(
        lapses=56,
        aggression=10,
        reaction=2,
        defends=150,
        punishes=170,
        max_distance=10,
        min_distance=6,
        attacks=(3, 2, 1, 2, 1),
        cancels=128,
    )


class Brawler(Scripted):
    """Comes close and swings at random."""

    style = Style(lapses=64, aggression=60, attacks=(2, 2, 3, 1, 1))


class Zoner(Scripted):
    """Keeps its distance by thrusts."""

    style = Style(
        lapses=80, min_distance=10, max_distance=14, aggression=40, attacks=(0, 1, 0, 5, 0)
    )


class Thrower(Scripted):
    """Comes very close and throws."""

    style = Style(
        lapses=24,
        max_distance=3,
        min_distance=0,
        aggression=90,
        attacks=(2, 1, 0, 0, 4),
        opens=128,
        cancels=128,
    )


class Rushdown(Scripted):
    """Attacks without a pause, in combinations."""

    style = Style(lapses=24, aggression=100, attacks=(5, 3, 1, 1, 1), cancels=128, max_distance=6)


class Mixer(Scripted):
    """Mixes attacks of both heights and throws, and defends itself."""

    style = Style(
        lapses=8,
        aggression=80,
        reaction=2,
        defends=200,
        punishes=200,
        attacks=(3, 3, 2, 2, 3),
        opens=200,
        cancels=200,
    )


class Punisher(Scripted):
    """Defends itself well, and punishes what misses."""

    style = Style(
        lapses=12,
        aggression=40,
        reaction=1,
        defends=225,
        punishes=230,
        escapes=40,
        attacks=(4, 3, 1, 3, 2),
        opens=48,
        cancels=256,
        min_distance=5,
        max_distance=8,
    )


class AllRounder(Scripted):
    """Does all of it, with few lapses."""

    style = Style(
        lapses=4,
        aggression=60,
        reaction=1,
        defends=250,
        punishes=256,
        escapes=60,
        attacks=(5, 3, 1, 2, 3),
        opens=48,
        cancels=256,
    )


class Reader(Scripted):
    """Has no lapses, and lets no chance go by."""

    style = Style(
        aggression=56,
        reaction=1,
        defends=256,
        punishes=256,
        escapes=70,
        attacks=(6, 3, 0, 2, 3),
        opens=48,
        cancels=256,
    )


LADDER: tuple[type[Scripted], ...] = (
    Bystander, Wanderer, Turtle, Counter, Brawler, Zoner,
    Thrower, Rushdown, Mixer, Punisher, AllRounder, Reader,
)  # fmt: skip
"""All scripted fighters, the weakest first."""
