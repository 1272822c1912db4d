"""Actions of the player in Survival, and the effects of its needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Int, UInt32
from rlbench_suite.numerics.batch_last import few_in_one_kernel
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.reductions import union

from .rules import (
    ACTIONS,
    CONTENTS,
    DAMAGE,
    DEFEAT_SKELETON,
    DEFEAT_ZOMBIE,
    DIAMOND,
    DO,
    DOWN,
    DRINK,
    EAT_COW,
    EAT_PLANT,
    FIRST_PLACED,
    FURNACE,
    FURNACE_COST,
    GRASS,
    LAVA,
    LEFT,
    LEVELS,
    MAKE,
    MAX_AMOUNT,
    NOOP,
    PATH,
    PLACE_FURNACE,
    PLACE_SAPLING,
    PLACE_STONE,
    PLACE_TABLE,
    RECIPES,
    SAND,
    SAPLING,
    SLEEP,
    STONE,
    TABLE,
    TABLE_COST,
    TREE,
    WAKE_UP,
    WATER,
    Rules,
    has,
    number_of,
    pack_items,
    pieces,
)
from .state import (
    COW,
    KINDS,
    NOWHERE,
    SKELETON,
    ZOMBIE,
    State,
    any_of,
    is_among,
)
from .world import cells_of, material_at, with_material

RIPE = 200
"""Age from which a plant can be eaten."""
MEAT = 6
"""Food of a cow."""
FRUIT = 4
"""Food of a ripe plant."""
HUNGRY = 50
"""Half steps without food above which food falls."""
THIRSTY = 40
"""Half steps without drink above which drink falls."""
TIRED = 30
"""Steps awake above which energy falls."""
RESTED = 10
"""Steps asleep above which energy rises."""
HEALED = 50
"""Recovery above which health rises."""
WEAKENED = 30
"""Negative recovery beyond which health falls."""


def bits_of(*materials: int) -> int:
    """Return a set of materials."""
    return sum(1 << material for material in materials)


_GROUND = bits_of(GRASS, SAND, PATH)
_COSTS = np.zeros(len(ACTIONS), np.uint32)
_COSTS[[PLACE_STONE, PLACE_SAPLING]] = pack_items(stone=1), pack_items(sapling=1)
_COSTS[MAKE:] = RECIPES
_WHERE = np.zeros(len(ACTIONS), np.uint32)
"""Materials ahead on which each action is possible."""
_WHERE[LEFT : DOWN + 1] = _GROUND | bits_of(LAVA)
_WHERE[PLACE_STONE] = _GROUND | bits_of(WATER, LAVA)
_WHERE[[PLACE_TABLE, PLACE_FURNACE]] = _GROUND
_WHERE[PLACE_SAPLING] = bits_of(GRASS)
_WHERE[MAKE:] = 2**32 - 1
_TABLE = np.isin(np.arange(len(ACTIONS)), [PLACE_FURNACE, *range(MAKE, len(ACTIONS))])
"""Whether each action needs a table near."""
_FURNACE = np.isin(np.arange(len(ACTIONS)), [MAKE + 2, MAKE + 5])
"""Whether each action needs a furnace near."""
_BECOMES = np.zeros(len(ACTIONS), np.int32)
_BECOMES[[PLACE_STONE, PLACE_TABLE, PLACE_FURNACE]] = STONE, TABLE, FURNACE


def achievement_bit(when: Any, achievement: Any) -> Any:
    """Return the set of an achievement, empty unless a condition holds."""
    return jnp.where(
        when, np.uint32(1) << jnp.asarray(achievement).astype(jnp.uint32), np.uint32(0)
    )


def pickaxe(tools: Any) -> Any:
    """Return the best pickaxe: 0 for none, 1 for wood, 2 for stone, 3 for iron."""
    return jnp.where(
        tools & 4 != 0, 3, jnp.where(tools & 2 != 0, 2, jnp.where(tools & 1 != 0, 1, 0))
    )


def strength(tools: Any) -> Any:
    """Return the damage that the player does."""
    best = jnp.where(tools & 8 != 0, DAMAGE[1], DAMAGE[0])
    return jnp.where(
        tools & 32 != 0, DAMAGE[3], jnp.where(tools & 16 != 0, DAMAGE[2], best)
    ).astype(jnp.int32)


def near(state: State, *materials: int) -> list[jax.Array]:
    """Return whether each material is in one of the nine cells about the player."""
    rows = jax.lax.dynamic_slice_in_dim(state.world, (state.cell >> 5) - 1, 3)
    rows = rows >> ((state.cell & 31) - 1).astype(jnp.uint32)
    return [union(cells_of(rows, material) & 7) != 0 for material in materials]


class Ahead(NamedTuple):
    """The cell ahead of the player, and what is near."""

    cell: Int
    material: Int
    occupied: Flag
    """bool: something is in the cell."""
    table: Flag
    furnace: Flag
    """bool: each is near"""


class Deed(NamedTuple):
    """The effects of an action on items and on the cell ahead."""

    collects: Flag
    """bool: an item is gathered"""
    spends: Flag
    """bool: something is placed or made"""
    item: Int
    """Item that is in the cell."""
    cost: UInt32
    """Items that the action takes, packed."""
    tool: UInt32
    """Set of the tool that the action makes."""
    becomes: Int
    """Material of the cell afterwards."""


def step_to(facing: Any) -> Any:
    """Return the change of the number of a cell by a step in a direction."""
    return (2 * (facing & 1) - 1) * jnp.where(facing < 2, 1, 32)


def look(state: State, facing: jax.Array) -> Ahead:
    """Look at the cell ahead, and for a table and a furnace."""
    cell = state.cell + step_to(facing)
    return Ahead(
        cell,
        material_at(state.world, cell),
        is_among(cell, state.occupied_cells),
        *near(state, TABLE, FURNACE),
    )


def decide(state: State, action: jax.Array, luck: jax.Array, rules: Rules, ahead: Ahead) -> Deed:
    """Find out what is gathered, or what is placed or made."""
    material = ahead.material
    source = (jnp.clip(material, TREE, DIAMOND) - TREE).astype(jnp.uint32)
    holds = (material >= TREE) & (material <= DIAMOND)
    holds &= (rules.levels >> LEVELS * source & 3).astype(jnp.int32) <= pickaxe(state.tools)
    finds = (material == rules.sapling_from) & (luck == 0)
    item = jnp.where(finds, SAPLING, (rules.contents >> CONTENTS * source & 7).astype(jnp.int32))
    full = number_of(state.items, item.astype(jnp.uint32)) >= MAX_AMOUNT
    collects = (action == DO) & ~ahead.occupied & (holds | finds) & ~full

    cost = jnp.asarray(_COSTS)[action]
    cost = jnp.where(action == PLACE_TABLE, pieces(rules.table_item, TABLE_COST), cost)
    cost = jnp.where(action == PLACE_FURNACE, pieces(rules.furnace_item, FURNACE_COST), cost)
    tool = jnp.where(
        action >= MAKE, np.uint32(1) << (jnp.maximum(action, MAKE) - MAKE).astype(jnp.uint32), 0
    )
    slot = is_among(NOWHERE, state.plants) | (action != PLACE_SAPLING)
    possible = is_possible_on(material, action) & (~ahead.occupied | (action >= MAKE))
    possible &= (ahead.table | ~jnp.asarray(_TABLE)[action]) & (
        ahead.furnace | ~jnp.asarray(_FURNACE)[action]
    )
    spends = (
        (action >= PLACE_STONE)
        & possible
        & slot
        & (state.tools & tool == 0)
        & has(state.items, cost)
    )
    placed = jnp.asarray(_BECOMES)[action]
    becomes = jnp.where(spends & (placed > 0), placed, material)
    return Deed(
        collects,
        spends,
        item,
        cost,
        tool,
        jnp.where(collects & holds & (material != TREE), PATH, becomes),
    )


def is_possible_on(material: Any, action: Any) -> Any:
    """Return whether an action is possible with a material ahead."""
    return jnp.asarray(_WHERE)[action] >> material.astype(jnp.uint32) & 1 == 1


def act(state: State, action: jax.Array, luck: jax.Array, rules: Rules) -> State:
    """Carry out an action.

    While the player sleeps it is none; one that is not possible changes nothing.

    Args:
        state: before it.
        action: index in ``ACTIONS``.
        luck: random, from 0 to 7; a sapling is found at 0.
        rules: those of the context.
    """

    @few_in_one_kernel
    def act_in_place(
        state: State, action: jax.Array, luck: jax.Array, rules: Rules
    ) -> tuple[State, Any, Any]:
        """Return the state but for the world, the cell ahead, and its material."""
        rested = state.energy >= MAX_AMOUNT
        slept = state.sleeping == 1
        action = jnp.where(slept & ~rested, NOOP, action)
        moves = (action >= LEFT) & (action <= DOWN)
        facing = jnp.where(moves, action - LEFT, state.facing).astype(jnp.int32)
        ahead = computed_once(look)(state, facing)
        deed = computed_once(decide)(state, action, luck, rules, ahead)
        after = computed_once(affect)(state._replace(world=None), action, rules, ahead, deed)
        return after._replace(facing=facing), ahead.cell, deed.becomes

    after, cell, material = act_in_place(state, action, luck, rules)
    return after._replace(world=with_material(state.world, cell, material))


def affect(state: State, action: jax.Array, rules: Rules, ahead: Ahead, deed: Deed) -> State:
    """Return the state after an action, but for facing and world."""
    rested = state.energy >= MAX_AMOUNT
    slept = state.sleeping == 1
    strikes = action == DO
    enters = (action >= LEFT) & (action <= DOWN)
    enters &= is_possible_on(ahead.material, action) & ~ahead.occupied
    burnt = enters & (ahead.material == LAVA)

    # Creatures and plants ahead.
    hits = [strikes & (beast == ahead.cell) for beast in state.beasts]
    hearts = [
        jnp.where(hit, heart - strength(state.tools), heart)
        for hit, heart in zip(hits, state.hearts, strict=True)
    ]
    fallen = [hit & (heart <= 0) for hit, heart in zip(hits, hearts, strict=True)]
    eats_meat, slays_zombie, slays_skeleton = (
        any_of(fell for fell, role in zip(fallen, KINDS, strict=True) if role == kind)
        for kind in (COW, ZOMBIE, SKELETON)
    )
    eaten = [
        strikes & (plant == ahead.cell) & (age >= RIPE)
        for plant, age in zip(state.plants, state.ages, strict=True)
    ]
    eats_fruit = any_of(eaten)
    drinks = strikes & ~ahead.occupied & (ahead.material == WATER)
    planted = deed.spends & (action == PLACE_SAPLING)
    first = state.plants[0] == NOWHERE
    here = planted & first, planted & ~first & (state.plants[1] == NOWHERE)

    unlocked = (
        state.unlocked
        | achievement_bit(slept & rested, WAKE_UP)
        | achievement_bit(deed.spends, FIRST_PLACED + action - PLACE_STONE)
    )
    for when, achievement in (
        (deed.collects, deed.item), (drinks, DRINK), (eats_meat, EAT_COW), (eats_fruit, EAT_PLANT),
        (slays_zombie, DEFEAT_ZOMBIE), (slays_skeleton, DEFEAT_SKELETON),
    ):  # fmt: skip
        unlocked |= achievement_bit(when, achievement)

    # In the usual world water quenches thirst, and meat and fruit feed.
    meal = jnp.where(eats_meat, MEAT, jnp.where(eats_fruit, FRUIT, 0))
    sip = drinks.astype(jnp.int32)
    usual = rules.swapped == 0
    feeds = jnp.where(usual, meal, sip)
    quenches = jnp.where(usual, sip, meal)
    return state._replace(
        cell=jnp.where(enters, ahead.cell, state.cell),
        health=jnp.where(burnt, 0, state.health),
        food=jnp.minimum(state.food + feeds, MAX_AMOUNT),
        drink=jnp.minimum(state.drink + quenches, MAX_AMOUNT),
        hunger=jnp.where(feeds > 0, 0, state.hunger),
        thirst=jnp.where(quenches > 0, 0, state.thirst),
        sleeping=(((action == SLEEP) | slept) & ~rested).astype(jnp.int32),
        items=state.items
        - jnp.where(deed.spends, deed.cost, 0)
        + jnp.where(deed.collects, pieces(deed.item, 1), 0),
        tools=state.tools | jnp.where(deed.spends, deed.tool, 0),
        unlocked=unlocked,
        beasts=tuple(
            jnp.where(fell, NOWHERE, beast)
            for fell, beast in zip(fallen, state.beasts, strict=True)
        ),
        hearts=tuple(hearts),
        plants=tuple(
            jnp.where(new, ahead.cell, plant) for new, plant in zip(here, state.plants, strict=True)
        ),
        ages=tuple(
            jnp.where(new | ate, 0, age)
            for new, ate, age in zip(here, eaten, state.ages, strict=True)
        ),
    )


def live(state: State) -> State:
    """Let food, drink and energy fall by one step, half as fast asleep, and health follow them."""
    asleep = state.sleeping == 1
    pace = 2 - state.sleeping
    hunger = state.hunger + pace
    thirst = state.thirst + pace
    fatigue = jnp.where(asleep, jnp.minimum(state.fatigue - 1, 0), state.fatigue + 1)
    hungry = hunger > HUNGRY
    thirsty = thirst > THIRSTY
    tired = fatigue > TIRED
    rested = fatigue < -RESTED
    food = jnp.maximum(state.food - hungry, 0)
    drink = jnp.maximum(state.drink - thirsty, 0)
    energy = jnp.clip(state.energy - tired + rested, 0, MAX_AMOUNT)
    well = (food > 0) & (drink > 0) & ((energy > 0) | asleep)
    recovery = state.recovery + jnp.where(well, 2 * (1 + state.sleeping), -pace)
    heals = recovery > HEALED
    weakens = recovery < -WEAKENED
    return state._replace(
        health=jnp.where(
            state.health > 0, jnp.clip(state.health + heals - weakens, 0, MAX_AMOUNT), 0
        ),
        food=food,
        drink=drink,
        energy=energy,
        recovery=jnp.where(heals | weakens, 0, recovery),
        hunger=jnp.where(hungry, 0, hunger),
        thirst=jnp.where(thirsty, 0, thirst),
        fatigue=jnp.where(tired | rested, 0, fatigue),
    )
