"""Rules of the fighting game: the effect of a tick of 50 ms on two fighters, in whole numbers.

A fighter stands ``room`` units before its own wall and faces the other. Both act at once and obey
the same rules, so exchanged sides play the mirrored match to the bit. A tick goes in this order:
begin moves and raise guards; walk; strike; be pushed back; end moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Flag, Int

HEALTH = 100
STAMINA = 100
MATCH_TICKS = 240  # 12 s
WALK_SPEED = 2  # units a tick
DASH_SPEED = 4
DASH_TICKS = 3  # of motion
INVINCIBLE_TICKS = 2  # first ticks of a dash, in which no attack touches the fighter
JUMP_SPEED = 3
AIRBORNE = (2, 5)  # first and last tick of a jump in the air
CHIP_DIVISOR = 5  # a blocked attack takes a fifth of its damage
BLOCK_DIVISOR = 2  # a block costs stamina of half of the damage
COUNTER_DIVISOR = 2  # a counter hit takes half of the damage more
REVEAL_AGE = 4  # ticks of a startup after which the other side sees which attack it is
DOWN_TICKS = 8
RESTED_STAMINA = 1  # recovered in a tick without a move and without a guard

ACTIONS = (
    "wait", "advance", "retreat", "guard-high", "guard-low",
    "jab", "sweep", "overhead", "thrust", "throw", "jump", "dash-back",
)  # fmt: skip
WAIT, ADVANCE, RETREAT, GUARD_HIGH, GUARD_LOW = range(5)
FREE, JAB, SWEEP, OVERHEAD, THRUST, THROW, JUMP, DASH = range(8)
FIRST_MOVE_ACTION = 5
MOVES = ("free", *ACTIONS[FIRST_MOVE_ACTION:])
ATTACKS = MOVES[JAB : THROW + 1]
NO_CONTACT, HIT, BLOCKED = range(3)
STEADY, REELING, BLOCKING, DOWN = range(4)
POSTURES = ("steady", "reeling", "blocking", "down")


class Attack(NamedTuple):
    """Constants of an attack in ticks, units and points."""

    startup: int
    """Ticks before it can touch"""
    active: int
    recovery: int
    reach: int
    hit_stun: int
    """Ticks without control after a hit"""
    block_stun: int
    """Ticks after a block in which nothing but a guard is possible"""
    cost: int
    """Stamina, paid at the first active tick"""
    pushback: int
    level: int
    """An attack that has hit can be cancelled at once into one of a higher level; 0 never can"""


ATTACK_TABLE = (
    Attack(2, 1, 5, 7, 5, 2, 6, 2, 1),
    Attack(3, 2, 7, 9, 6, 3, 8, 3, 2),
    Attack(5, 1, 9, 8, DOWN_TICKS, 4, 14, 4, 3),
    Attack(4, 2, 7, 16, 6, 3, 10, 4, 2),
    Attack(2, 1, 7, 4, DOWN_TICKS, 0, 8, 6, 0),
)
"""Jab, sweep, overhead, thrust, throw.

A context sets the damages, the startups of sweep and overhead, and the reach of the thrust.
"""
JUMP_COST = 8
JUMP_LENGTH = 6
DASH_COST = 14
DASH_LENGTH = 5


class Params(NamedTuple):
    """Context of an episode."""

    width: Int
    """Units between the walls that two touching fighters leave free"""
    distance: Int
    """Units between the fighters at the beginning"""
    jab_damage: Int
    sweep_damage: Int
    overhead_damage: Int
    thrust_damage: Int
    throw_damage: Int
    sweep_startup: Int
    """Ticks"""
    overhead_startup: Int
    thrust_reach: Int
    """Units"""


class Fighter(NamedTuple):
    """One side of a match."""

    health: Int
    stamina: Int
    room: Int
    """Units to the wall behind"""
    move: Int
    age: Int
    """Ticks of the move so far, 0 where there is none"""
    contact: Int
    """Whether the attack has hit or was blocked"""
    guard: Int
    """Action of the raised guard, else 0"""
    posture: Int
    stun: Int
    """Remaining ticks without control"""
    combo: Int
    """Hits taken since it was last in control"""


class State(NamedTuple):
    """A match after some ticks."""

    sides: tuple[Fighter, Fighter]
    tick: Int


class FrameData(NamedTuple):
    """Constants of a move in a context, as ``Attack`` has them; zeros where a move has none."""

    startup: Int
    last_active: Int
    """Last active tick"""
    length: Int
    reach: Int
    damage: Int
    hit_stun: Int
    block_stun: Int
    cost: Int
    pushback: Int


def by_move(move: Int, values: Sequence[Any]) -> Int:
    """Return the value of a move, given those of all moves from the jab on; 0 for others."""
    value: Any = jnp.int32(0)
    for number, candidate in enumerate(values, start=JAB):
        value = jnp.where(move == number, candidate, value)
    return value


def startups(params: Params) -> tuple[Any, ...]:
    """Return the startups of all attacks, in ticks."""
    jab, _, _, thrust, throw = (attack.startup for attack in ATTACK_TABLE)
    return jab, params.sweep_startup, params.overhead_startup, thrust, throw


def reaches(params: Params) -> tuple[Any, ...]:
    """Return the reaches of all attacks, in units."""
    jab, sweep, overhead, _, throw = (attack.reach for attack in ATTACK_TABLE)
    return jab, sweep, overhead, params.thrust_reach, throw


def damages(params: Params) -> tuple[Any, ...]:
    """Return the damages of all attacks, in points."""
    return (
        params.jab_damage,
        params.sweep_damage,
        params.overhead_damage,
        params.thrust_damage,
        params.throw_damage,
    )


def cost_of(move: Int) -> Int:
    """Return the stamina that a move costs."""
    return by_move(move, [*(attack.cost for attack in ATTACK_TABLE), JUMP_COST, DASH_COST])


def level_of(move: Int) -> Int:
    """Return the level of an attack, 0 for other moves."""
    return by_move(move, [attack.level for attack in ATTACK_TABLE])


def frame_data(move: Int, params: Params) -> FrameData:
    """Return the constants of a move."""
    startup = by_move(move, startups(params))
    last_active = startup + by_move(move, [attack.active for attack in ATTACK_TABLE])
    recoveries = [*(attack.recovery for attack in ATTACK_TABLE), JUMP_LENGTH, DASH_LENGTH]
    return FrameData(
        startup,
        last_active,
        last_active + by_move(move, recoveries),
        by_move(move, reaches(params)),
        by_move(move, damages(params)),
        by_move(move, [attack.hit_stun for attack in ATTACK_TABLE]),
        by_move(move, [attack.block_stun for attack in ATTACK_TABLE]),
        cost_of(move),
        by_move(move, [attack.pushback for attack in ATTACK_TABLE]),
    )


def is_attack(move: Int) -> Flag:
    """Return whether a move is an attack."""
    return (move >= JAB) & (move <= THROW)


def is_airborne(fighter: Fighter) -> Flag:
    """Return whether a fighter is in the air."""
    first, last = AIRBORNE
    return (fighter.move == JUMP) & (fighter.age >= first) & (fighter.age <= last)


def is_revealed(fighter: Fighter, params: Params) -> Flag:
    """Return whether the other side sees which move a fighter makes."""
    is_active = fighter.age > frame_data(fighter.move, params).startup
    return ~is_attack(fighter.move) | (fighter.age >= REVEAL_AGE) | is_active


def distance_between(state: State, params: Params) -> Int:
    """Return the units between the fighters."""
    return params.width - state.sides[0].room - state.sides[1].room


def is_over(state: State) -> Flag:
    """Return whether a fighter is beaten or time is up."""
    first, second = state.sides
    return (first.health <= 0) | (second.health <= 0) | (state.tick >= MATCH_TICKS)


def first_state(params: Params) -> State:
    """Put both fighters at equal distances from the middle; one unit may be left over."""
    zero = jnp.int32(0)
    fighter = Fighter(
        health=jnp.int32(HEALTH),
        stamina=jnp.int32(STAMINA),
        room=(params.width - params.distance) // 2,
        move=zero,
        age=zero,
        contact=zero,
        guard=zero,
        posture=zero,
        stun=zero,
        combo=zero,
    )
    return State((fighter, fighter), zero)


# -- a tick ----------------------------------------------------------------------------------------


class Motion(NamedTuple):
    """A fighter after it has begun its action of a tick."""

    fighter: Fighter
    frames: FrameData
    """Constants of its move"""
    step: Int
    """Units that it wants to go forward"""
    was_stunned: Flag
    """Whether it began the tick without control"""


class Blow(NamedTuple):
    """Effect of an attack in a tick; nothing happens where both flags are False."""

    hits: Flag
    is_blocked: Flag
    frames: FrameData
    knocks_down: Flag
    is_counter: Flag
    """Whether it meets an attack of the other fighter"""


def advance_tick(state: State, actions: Sequence[Int] | jax.Array, params: Params) -> State:
    """Return the state after a tick in which both fighters act at once."""
    first, second = state.sides
    motions = (begin(first, actions[0], params), begin(second, actions[1], params))
    motions = walk(motions, distance_between(state, params))
    distance = params.width - motions[0].fighter.room - motions[1].fighter.room
    dealt = (blow(motions[0], motions[1], distance), blow(motions[1], motions[0], distance))
    pushes = (pushback(dealt[1]), pushback(dealt[0]))
    sides = []
    for side in range(2):
        rival = motions[1 - side].fighter
        # A wall behind the rival throws the attacker back instead.
        rebound = jnp.maximum(pushes[1 - side] - rival.room, 0)
        fighter = strike(motions[side], dealt[side])
        fighter = suffer(fighter, dealt[1 - side])
        room = jnp.maximum(fighter.room - pushes[side] - rebound, 0)
        sides.append(end_move(fighter._replace(room=room), motions[side].frames))
    return State((sides[0], sides[1]), state.tick + 1)


def begin(fighter: Fighter, action: Int, params: Params) -> Motion:
    """Begin a move, raise a guard or walk, as far as the fighter is free to."""
    is_stunned = fighter.stun > 0
    is_free = ~is_stunned & (fighter.move == FREE)
    requested_move = jnp.maximum(action - (FIRST_MOVE_ACTION - JAB), FREE)
    can_start = is_free | can_cancel(fighter, requested_move)
    can_pay = fighter.stamina >= cost_of(requested_move)
    starts = (requested_move != FREE) & can_start & can_pay
    move = jnp.where(starts, requested_move, fighter.move)
    age = jnp.where(starts, 1, jnp.where(move == FREE, 0, fighter.age + 1))
    can_guard = is_free | (is_stunned & (fighter.posture == BLOCKING))
    guards = can_guard & ((action == GUARD_HIGH) | (action == GUARD_LOW))
    rests = is_free & ~starts & ~guards
    # Attacks are paid for when they become active.
    cost = jnp.where(starts & ~is_attack(move), cost_of(move), 0)
    stamina = fighter.stamina + jnp.where(rests, RESTED_STAMINA, 0) - cost
    next_fighter = fighter._replace(
        stamina=jnp.minimum(stamina, STAMINA),
        move=move,
        age=age,
        contact=jnp.where(starts, NO_CONTACT, fighter.contact),
        guard=jnp.where(guards, action, 0),
        posture=jnp.where(is_stunned, fighter.posture, STEADY),
        stun=jnp.maximum(fighter.stun - 1, 0),
        combo=jnp.where(is_stunned, fighter.combo, 0),
    )
    walk_step = jnp.where(action == ADVANCE, WALK_SPEED, 0)
    walk_step = jnp.where(action == RETREAT, -WALK_SPEED, walk_step)
    step = jnp.where(rests, walk_step, 0)
    step = jnp.where((move == DASH) & (age <= DASH_TICKS), -DASH_SPEED, step)
    step = jnp.where(is_airborne(next_fighter), JUMP_SPEED, step)
    return Motion(next_fighter, frame_data(move, params), step, is_stunned)


def can_cancel(fighter: Fighter, move: Int) -> Flag:
    """Return whether an attack has hit and can be cancelled into a move."""
    level = level_of(fighter.move)
    return (fighter.contact == HIT) & (level > 0) & (level_of(move) > level)


def walk(motions: tuple[Motion, Motion], distance: Int) -> tuple[Motion, Motion]:
    """Move both fighters, which stop where they touch, and at their walls."""
    forward = [jnp.clip(side.step, 0, distance) for side in motions]
    overlap = jnp.maximum(forward[0] + forward[1] - distance, 0)
    # Both give way by half of it, rounded up: neither side is preferred.
    yielded = (overlap + 1) // 2
    moved = []
    for side, units in zip(motions, forward, strict=True):
        change = jnp.where(side.step > 0, units - yielded, side.step)
        room = jnp.maximum(side.fighter.room + change, 0)
        moved.append(side._replace(fighter=side.fighter._replace(room=room)))
    return moved[0], moved[1]


def can_touch(attacker: Motion) -> Flag:
    """Return whether an attack is active and has touched nothing yet."""
    fighter, frames = attacker.fighter, attacker.frames
    is_active = (fighter.age > frames.startup) & (fighter.age <= frames.last_active)
    return is_attack(fighter.move) & is_active & (fighter.contact == NO_CONTACT)


def blow(attacker: Motion, target: Motion, distance: Int) -> Blow:
    """Return the effect of an attacker on its target."""
    move, frames, victim = attacker.fighter.move, attacker.frames, target.fighter
    is_throw = move == THROW
    is_low = move == SWEEP
    is_down = target.was_stunned & (victim.posture == DOWN)
    is_invincible = (victim.move == DASH) & (victim.age <= INVINCIBLE_TICKS)
    in_air = is_airborne(victim)
    # A throw needs a target on the ground and in control that does not strike in the same tick.
    escapes_throw = in_air | target.was_stunned | can_touch(target)
    touches = can_touch(attacker) & (distance <= frames.reach) & ~is_down & ~is_invincible
    touches = touches & ~(is_throw & escapes_throw) & ~(is_low & in_air)
    low_guard_stops = (victim.guard == GUARD_LOW) & (move != OVERHEAD)
    high_guard_stops = (victim.guard == GUARD_HIGH) & ~is_low
    can_block = (low_guard_stops | high_guard_stops) & ~is_throw
    is_blocked = touches & can_block & (victim.stamina >= frames.damage // BLOCK_DIVISOR)
    knocks_down = is_throw | (move == OVERHEAD)
    return Blow(touches & ~is_blocked, is_blocked, frames, knocks_down, is_attack(victim.move))


def pushback(received: Blow) -> Int:
    """Return the units by which a blow pushes its target back."""
    return jnp.where(received.hits | received.is_blocked, received.frames.pushback, 0)


def strike(attacker: Motion, dealt: Blow) -> Fighter:
    """Pay for an attack at its first active tick, and note what it touched."""
    fighter, frames = attacker.fighter, attacker.frames
    pays = is_attack(fighter.move) & (fighter.age == frames.startup + 1)
    contact = jnp.where(dealt.is_blocked, BLOCKED, fighter.contact)
    return fighter._replace(
        stamina=fighter.stamina - jnp.where(pays, frames.cost, 0),
        contact=jnp.where(dealt.hits, HIT, contact),
    )


def suffer(fighter: Fighter, received: Blow) -> Fighter:
    """Return a fighter after the blow of the other one."""
    hits, is_blocked, frames, knocks_down, is_counter = received
    bonus = jnp.where(is_counter, frames.damage // COUNTER_DIVISOR, 0)
    damage = jnp.where(hits, frames.damage + bonus, 0)
    chip = jnp.where(is_blocked, frames.damage // CHIP_DIVISOR, 0)
    # Each earlier hit of a combo shortens the stun by a tick, so that no combo goes on for ever.
    hit_stun = jnp.where(knocks_down, frames.hit_stun, frames.hit_stun - fighter.combo)
    stun = jnp.where(is_blocked, frames.block_stun, fighter.stun)
    posture = jnp.where(is_blocked, BLOCKING, fighter.posture)
    block_cost = jnp.where(is_blocked, frames.damage // BLOCK_DIVISOR, 0)
    is_touched = hits | is_blocked
    return fighter._replace(
        health=jnp.maximum(fighter.health - damage - chip, 0),
        stamina=fighter.stamina - block_cost,
        move=jnp.where(is_touched, FREE, fighter.move),
        age=jnp.where(is_touched, 0, fighter.age),
        contact=jnp.where(is_touched, NO_CONTACT, fighter.contact),
        posture=jnp.where(hits, jnp.where(knocks_down, DOWN, REELING), posture),
        stun=jnp.where(hits, jnp.maximum(hit_stun, 0), stun),
        combo=fighter.combo + hits,
    )


def end_move(fighter: Fighter, frames: FrameData) -> Fighter:
    """Free a fighter whose move is over."""
    is_done = (fighter.move != FREE) & (fighter.age >= frames.length)
    return fighter._replace(
        move=jnp.where(is_done, FREE, fighter.move),
        age=jnp.where(is_done, 0, fighter.age),
        contact=jnp.where(is_done, NO_CONTACT, fighter.contact),
    )
