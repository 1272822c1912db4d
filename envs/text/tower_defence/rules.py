"""Rules of TowerDefence: enemies, towers, the hero, and what happens in a tick.

All numbers are integers, so an episode has the same bits everywhere. Enemies and towers have fixed
entries in short arrays; sets of cells and of waves are words of bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FlagArray, Int, IntArray, UInt32, UInt32Array
from rlbench_suite.numerics.batch_last import axis_numbers
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.reductions import sum_in_order, union

from .maps import LENGTH, SITES

WAVES = 12
"""Waves of a game."""
MAX_ENEMIES = 12
"""Most enemies of a wave."""
SLOTS = 16
"""Most enemies on the road at once."""
TICKS = 2
"""Ticks of a step."""
CELL = 4
"""Bits of a distance within a cell."""
UNIT = 16
"""Parts into which a cell of the road is cut; the castle is ``32 * 16`` parts from the entrance."""
INTERVAL = 16
"""Ticks between waves."""
LIVES = 10
"""Number of the enemy with which the castle falls, of those that get through."""
COINS = 120
"""Coins at first."""

ENEMIES = ("goblin", "wolf", "ogre", "bat")
GOBLIN, WOLF, OGRE, BAT = range(4)
SPEEDS = (9, 14, 6, 9)
"""Parts of a cell a tick, by kind of enemy."""
BOUNTIES = (4, 4, 10, 5)
"""Coins for a kill."""
BLOWS = (2, 2, 5, 0)
"""Damage a tick to whoever stops the enemy."""
ARMOUR = (2, 1, 7, 0)
"""Damage that armour takes off."""
HEALTH = (10, 8, 30, 11)
"""Health in the first wave."""
STRENGTH = (2, 2, 6, 3)
"""Share of the strength of a wave."""
GROWTH_UNIT = 24
GROWTHS = (2, 3, 5)
"""Growth of health from wave to wave at each difficulty, in 24ths of the health in the first wave.
"""
MAX_HEALTH = max(HEALTH) * (GROWTH_UNIT + max(GROWTHS) * (WAVES - 1)) // GROWTH_UNIT
"""Most health of an enemy."""

TOWERS = ("archer", "cannon", "mage")
ARCHER, CANNON, MAGE = range(3)
LEVELS = 3
COSTS = ((50, 60, 90), (70, 80, 110), (70, 80, 110))
"""Coins of each tower at each level."""
POWERS = ((4, 7, 11), (10, 17, 27), (7, 12, 19))
"""Damage of each tower at each level."""
RELOADS = (1, 3, 2)
"""Ticks from a shot of each tower to the next."""
SLOW_TICKS = 4
"""Ticks for which a mage's shot halves a speed."""
EMPTY = 0
"""Code of a free site."""
KINDS = 1 + LEVELS * len(TOWERS)
"""Number of codes of a site: 1 + 3 * tower + level."""

POSTS = (7, 13, 19, 25)
"""Cells of the road at which the hero may stand."""
KEEP = len(POSTS)
"""Place of the hero where he fights nobody."""
HERO = 60
"""Health of the hero."""
HERO_POWER = 4
"""Damage of the hero a tick."""
WALK = 4
"""Ticks in which the hero walks to a post."""
RECOVERY = 30
"""Ticks until the hero is well after he has fallen."""
SOLDIERS = 40
"""Health of the reinforcements."""
SOLDIER_POWER = 2
"""Damage of the reinforcements a tick."""
SERVICE = 30
"""Ticks for which reinforcements stay."""
CALL_AGAIN = 60
"""Ticks from a call of reinforcements to the next."""

WAIT, BUILD, UPGRADE, SELL, MOVE, REINFORCE, CALL, ACTIONS = 0, 1, 25, 33, 41, 45, 46, 47
"""First number of each kind of order.

A tower is built by ``BUILD + kind * 8 + site``. Upgrades and sales add a site, and moves of the
hero a post.
"""


def pack(numbers: tuple[int, ...], width: int) -> np.uint32:
    """Return small numbers in one word, the first in its lowest bits."""
    return np.uint32(sum(number << width * i for i, number in enumerate(numbers)))


def of_kind(numbers: tuple[int, ...], kind: Any) -> Any:
    """Return the number of a kind of enemy, int32, without a table.

    A word of eight bits a kind is shifted instead.
    """
    word = pack(numbers, 8)
    return (word >> (8 * kind).astype(jnp.uint32) & np.uint32(2**8 - 1)).astype(jnp.int32)


def _damages(power: int, tower: int) -> tuple[int, ...]:
    """Return the damage to each kind of enemy."""
    hits = [power if tower == MAGE else max(1, power - armour) for armour in ARMOUR]
    return tuple(0 if tower == CANNON and kind == BAT else hit for kind, hit in enumerate(hits))


DAMAGE_BITS = 5
"""Bits of a damage."""
AREA_BIT = 31
"""Bit that says that a tower hits all in a cell."""
DAMAGE = np.array(
    [0, *(pack(_damages(power, tower), DAMAGE_BITS) | np.uint32((tower == CANNON) << AREA_BIT)
          for tower in range(len(TOWERS)) for power in POWERS[tower])], np.uint32,
)  # fmt: skip
"""Damage to each kind of enemy, packed, and whether a tower hits all in a cell.

The code of a site indexes it.
"""
PRICE = np.array([0, *(cost for costs in COSTS for cost in costs)], np.int32)
"""Coins that the last level of a code has cost."""
VALUE = np.array(
    [0, *(sum(costs[: level + 1]) for costs in COSTS for level in range(LEVELS))], np.int32
)
"""Coins that a code has cost in all. Half of them come back at a sale."""
NEXT = np.array(
    [
        0,
        *(
            costs[level + 1] if level + 1 < LEVELS else 0
            for costs in COSTS
            for level in range(LEVELS)
        ),
    ]
)
"""Coins of the next level of a code; 0 where there is none."""


class Params(NamedTuple):
    """The context."""

    road: IntArray
    """Cells of the road, 12 * row + column, int32 ``(32,)``; for pictures."""
    sites: IntArray
    """Cells of the sites, int32 ``(8,)``."""
    reach: UInt32Array
    """Cells of the road that each site reaches, near and far, as bits, uint32 ``(2, 8)``."""
    growth: Int
    """Growth of health from wave to wave, in 24ths of that in the first wave."""
    waves: UInt32Array
    """Waves, uint32 ``(12,)``: kind and number of a first group, then of a second.

    A kind takes 2 bits, a number 4.
    """


class State(NamedTuple):
    """Everything that changes, int32 unless said."""

    coins: Int
    wave: Int
    """Waves that have begun."""
    timer: Int
    """Ticks until the next wave begins."""
    queue: UInt32
    """Enemies of the last wave that are still to come, packed as in ``Params.waves``, uint32."""
    towers: IntArray
    """Codes of the sites, ``(8,)``."""
    reloads: IntArray
    """Ticks until each tower is ready, ``(8,)``."""
    post: Int
    """Index of the hero's post, that to which he walks, or ``KEEP``."""
    travel: Int
    """Ticks until he is there, or well."""
    hero: Int
    """His health; 0 while he recovers."""
    station: Int
    """Index of the reinforcements' post."""
    soldiers: Int
    """Their health; 0 where there are none."""
    service: Int
    """Ticks for which they stay."""
    cooldown: Int
    """Ticks until they can be called again."""
    health: IntArray
    """Health of each enemy, 0 for none, ``(16,)``."""
    distance: IntArray
    """Parts of a cell from the entrance, ``(16,)``."""
    kind: IntArray
    """Index in ``ENEMIES``, ``(16,)``."""
    group: IntArray
    """Wave to which each belongs, from 0, ``(16,)``."""
    slow: IntArray
    """Ticks for which each is slow, ``(16,)``."""
    killed: Int
    leaked: Int
    """Enemies that were killed, and that got through."""
    breached: UInt32
    """Waves of which an enemy got through, a set, uint32."""


def first_state() -> State:
    """Return the state at the start of an episode."""
    zero = jnp.int32(0)
    none = jnp.zeros(SLOTS, jnp.int32)
    return State(
        coins=jnp.int32(COINS), wave=zero, timer=jnp.int32(INTERVAL), queue=jnp.uint32(0),
        towers=jnp.zeros(SITES, jnp.int32), reloads=jnp.zeros(SITES, jnp.int32),
        post=jnp.int32(KEEP), travel=zero, hero=jnp.int32(HERO), station=zero, soldiers=zero,
        service=zero, cooldown=zero, health=none, distance=none, kind=none, group=none, slow=none,
        killed=zero, leaked=zero, breached=jnp.uint32(0),
    )  # fmt: skip


def draw_waves(bits: jax.Array) -> jax.Array:
    """Draw the waves of a game from random bits, uint32 ``(12,)``, packed as in ``Params.waves``.

    Each wave is stronger than the one before.
    """
    budget = 8 + 3 * np.arange(WAVES, dtype=np.int32)
    first, second, share = ((bits >> shift & 3).astype(jnp.int32) for shift in (0, 2, 4))
    first_strength = of_kind(STRENGTH, first)
    second_strength = of_kind(STRENGTH, second)
    number = jnp.clip(budget * (1 + share) // (4 * first_strength), 1, MAX_ENEMIES // 2)
    further = jnp.clip((budget - number * first_strength) // second_strength, 0, MAX_ENEMIES // 2)
    return (first | number << 2 | second << 6 | further << 8).astype(jnp.uint32)


def unpack_wave(word: Any) -> tuple[Any, Any, Any, Any]:
    """Return kind and number of the first group of a wave, then of the second, int32."""
    return tuple(
        (word >> shift & mask).astype(jnp.int32)
        for shift, mask in ((0, 3), (2, 15), (6, 3), (8, 15))
    )


def count_enemies(word: Any) -> Any:
    """Return how many enemies a wave or queue has."""
    return (word >> 2 & 15) + (word >> 8 & 15)


def finished_waves(state: State) -> Any:
    """Return the waves that have come and gone, a set, uint32."""
    alive = union(jnp.where(state.health > 0, jnp.uint32(1) << state.group.astype(jnp.uint32), 0))
    next_bit = jnp.uint32(1) << state.wave.astype(jnp.uint32)
    coming = jnp.where(count_enemies(state.queue) > 0, next_bit >> 1, 0)
    return (next_bit - 1) & ~alive & ~coming


def count_clean_waves(state: State) -> Any:
    """Return how many waves have come and gone without a leak, int32."""
    return jax.lax.population_count(finished_waves(state) & ~state.breached).astype(jnp.int32)


class Armed(NamedTuple):
    """Facts about the towers that do not change between two orders."""

    near: UInt32Array
    """Cells that each tower reaches, uint32 ``(8,)``."""
    damage: UInt32Array
    """Entry of ``DAMAGE``, ``(8,)``."""
    reload: IntArray
    tower: IntArray
    """Index in ``TOWERS``, -1 where there is none, ``(8,)``."""


def arm(state: State, params: Params) -> Armed:
    """Look up the towers."""
    codes = state.towers
    tower = jnp.where(
        codes > 2 * LEVELS,
        MAGE,
        jnp.where(codes > LEVELS, CANNON, jnp.where(codes > EMPTY, ARCHER, -1)),
    )
    reach = jnp.where(tower < 0, 0, jnp.where(tower == ARCHER, params.reach[1], params.reach[0]))
    return Armed(reach, jnp.asarray(DAMAGE)[codes], of_kind(RELOADS, jnp.maximum(tower, 0)), tower)


class Entry(NamedTuple):
    """The wave that comes, and the enemy that enters."""

    wave: Int
    timer: Int
    queue: UInt32
    slot: Int
    """Slot of the enemy; ``SLOTS`` if none enters."""
    kind: Int
    health: Int


def entry(state: State, params: Params) -> Entry:
    """Begin the next wave if its time has come, and find out who of the last one enters."""
    begins = (state.timer == 0) & (state.wave < WAVES) & (count_enemies(state.queue) == 0)
    wave = jnp.where(begins, state.wave + 1, state.wave)
    queue = jnp.where(
        begins,
        union(jnp.where(axis_numbers(WAVES, wave) == state.wave, params.waves, 0)),
        state.queue,
    )
    first, number, second, _ = unpack_wave(queue)
    occupied = union(
        jnp.where(state.health > 0, np.uint32(1) << axis_numbers(SLOTS, wave).astype(np.uint32), 0)
    )
    # Ones below the lowest zero.
    slot = jax.lax.population_count(occupied & ~(occupied + 1)).astype(jnp.int32)
    slot = jnp.where(count_enemies(queue) > 0, slot, SLOTS)
    kind = jnp.where(number > 0, first, second)
    return Entry(
        wave,
        jnp.where(begins, INTERVAL - 1, jnp.maximum(state.timer - 1, 0)),
        queue
        - jnp.where(slot < SLOTS, jnp.where(number > 0, np.uint32(1 << 2), np.uint32(1 << 8)), 0),
        slot,
        kind,
        of_kind(HEALTH, kind) * (GROWTH_UNIT + params.growth * (wave - 1)) // GROWTH_UNIT,
    )


def enter(state: State, new: Entry) -> State:
    """Let an enemy enter."""
    here = axis_numbers(SLOTS, new.slot) == new.slot
    return state._replace(
        wave=new.wave,
        timer=new.timer,
        queue=new.queue,
        health=jnp.where(here, new.health, state.health),
        distance=jnp.where(here, 0, state.distance),
        kind=jnp.where(here, new.kind, state.kind),
        group=jnp.where(here, new.wave - 1, state.group),
        slow=jnp.where(here, 0, state.slow),
    )


class Walked(NamedTuple):
    """Distances of the enemies after they have walked."""

    distance: IntArray
    """Parts of a cell from the entrance, int32 ``(16,)``."""
    through: FlagArray
    """Whether each has just got through, bool ``(16,)``."""
    marks: UInt32Array
    """Cell of each as a bit, 0 for none, uint32 ``(16,)``."""
    hero: UInt32
    """Cell of the hero as a bit, 0 if he is on his way, uint32."""
    soldiers: UInt32
    """Cell of the reinforcements, likewise."""


def bit_of(post: Any, when: Any) -> jax.Array:
    """Return the cell of a post as a bit, uint32, or 0."""
    return jnp.where(
        when, jnp.uint32(1) << of_kind(POSTS, jnp.minimum(post, KEEP - 1)).astype(jnp.uint32), 0
    )


def walk(state: State) -> Walked:
    """Let all enemies walk that nobody stops."""
    alive = state.health > 0
    flies = state.kind == BAT
    hero = bit_of(state.post, (state.post < KEEP) & (state.travel == 0))
    soldiers = bit_of(state.station, state.soldiers > 0)
    stopped = ((hero | soldiers) >> (state.distance >> CELL).astype(jnp.uint32) & 1 == 1) & ~flies
    speed = of_kind(SPEEDS, state.kind)
    speed = jnp.where(state.slow > 0, speed + 1 >> 1, speed)
    distance = jnp.where(alive & ~stopped, state.distance + speed, state.distance)
    through = alive & (distance >= LENGTH * UNIT)
    marks = jnp.where(alive & ~through, jnp.uint32(1) << (distance >> CELL).astype(jnp.uint32), 0)
    return Walked(distance, through, marks, hero, soldiers)


def aim(marks: jax.Array, kind: jax.Array, reloads: jax.Array, armed: Armed) -> jax.Array:
    """Return the foremost cell with an enemy for each tower that is ready, uint32 ``(8,)``.

    The cell is a bit, 0 for none.
    """
    ground = union(jnp.where(kind == BAT, 0, marks))
    targets = armed.near & jnp.where(armed.tower == CANNON, ground, union(marks))
    return jnp.where((targets != 0) & (reloads == 0), jnp.uint32(1) << 31 - jax.lax.clz(targets), 0)


def first_marks(marks: jax.Array) -> jax.Array:
    """Return the marks of the first enemy in each cell, 0 for the others, uint32 ``(16,)``."""
    before = jnp.uint32(0)
    first = []
    for slot in range(SLOTS):
        first.append(marks[slot] & ~before)
        before |= marks[slot]
    return jnp.stack(first)


def shoot(
    target: jax.Array, marks: jax.Array, kind: jax.Array, armed: Armed
) -> tuple[jax.Array, jax.Array]:
    """Return the damage to each enemy by towers, int32, and whether a mage hit it."""
    first = computed_once(first_marks)(marks)
    shift = (DAMAGE_BITS * kind).astype(jnp.uint32)
    hurt = jnp.zeros_like(marks)
    for site in range(SITES):
        hit = jnp.where(armed.damage[site] >> AREA_BIT == 1, marks, first) & target[site]
        hurt += jnp.where(hit != 0, armed.damage[site] >> shift & 2**DAMAGE_BITS - 1, 0)
    cold = union(jnp.where(armed.tower == MAGE, target, 0))
    return hurt.astype(jnp.int32), first & cold != 0


def fight(state: State, walked: Walked, hurt: jax.Array, frozen: jax.Array) -> State:
    """Let hero and reinforcements fight, and remove who is dead or through."""
    marks = jnp.where(state.kind == BAT, 0, walked.marks)
    at_hero = marks & walked.hero != 0
    at_soldiers = marks & walked.soldiers != 0
    hurt += jnp.where(at_hero, HERO_POWER, 0) + jnp.where(at_soldiers, SOLDIER_POWER, 0)
    alive = walked.marks != 0
    health = jnp.where(alive, jnp.maximum(state.health - hurt, 0), 0)
    slain = alive & (health == 0)
    # One sum of five small numbers in a word: 8 bits of bounties, twice 5 of enemies, twice 7 of
    # blows.
    blows = of_kind(BLOWS, state.kind).astype(jnp.uint32)
    counter = lambda when, shift: jnp.where(when, jnp.uint32(1) << shift, 0)  # noqa: E731
    total = sum_in_order(
        jnp.where(slain, of_kind(BOUNTIES, state.kind).astype(jnp.uint32), 0)
        | counter(slain, 8) | counter(walked.through, 13)
        | jnp.where(at_soldiers, blows << 25, jnp.where(at_hero, blows << 18, 0))
    )  # fmt: skip
    bounties, killed, leaked, to_hero, to_soldiers = (
        (total >> shift & 2**width - 1).astype(jnp.int32)
        for shift, width in ((0, 8), (8, 5), (13, 5), (18, 7), (25, 7))
    )
    engaged = walked.hero & union(marks) != 0
    hero = jnp.where(
        engaged, jnp.maximum(state.hero - to_hero, 0), jnp.minimum(state.hero + 1, HERO)
    )
    recovers = state.hero == 0
    travel = jnp.maximum(state.travel - 1, 0)
    hero = jnp.where(recovers, jnp.where(travel == 0, HERO, 0), hero)
    falls = ~recovers & (hero == 0)
    service = jnp.maximum(state.service - 1, 0)
    wave_bits = jnp.uint32(1) << state.group.astype(jnp.uint32)
    return state._replace(
        coins=state.coins + bounties,
        post=jnp.where(falls, KEEP, state.post),
        travel=jnp.where(falls, RECOVERY, travel),
        hero=hero,
        soldiers=jnp.where(service == 0, 0, jnp.maximum(state.soldiers - to_soldiers, 0)),
        service=service,
        cooldown=jnp.maximum(state.cooldown - 1, 0),
        health=health,
        distance=walked.distance,
        slow=jnp.where(frozen, SLOW_TICKS, jnp.maximum(state.slow - 1, 0)),
        killed=state.killed + killed,
        leaked=state.leaked + leaked,
        breached=state.breached | union(jnp.where(walked.through, wave_bits, 0)),
    )


def tick(state: State, params: Params, armed: Armed) -> State:
    """Return the state a tick later.

    Enemies enter and walk, towers shoot, and hero and reinforcements fight.
    """
    state = enter(state, computed_once(entry)(state, params))
    walked = computed_once(walk)(state)
    target = computed_once(aim)(walked.marks, state.kind, state.reloads, armed)
    hurt, frozen = computed_once(shoot)(target, walked.marks, state.kind, armed)
    reloads = jnp.where(target != 0, armed.reload - 1, jnp.maximum(state.reloads - 1, 0))
    return fight(state._replace(reloads=reloads), walked, hurt, frozen)


def is_finished(state: State) -> Any:
    """Return whether the castle has fallen, or all waves have come and gone."""
    return (state.leaked >= LIVES) | (finished_waves(state) == 2**WAVES - 1)
