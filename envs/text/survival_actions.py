"""Actions of the player in Survival, and the effects of its needs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.bit_exact import computed_once
from rlbench_suite.reductions import union

from .survival_rules import (
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
    FURNACE,
    FURNACE_COST,
    GRASS,
    LAVA,
    LEFT,
    LEVELS,
    MAKE,
    MOST,
    NOOP,
    PATH,
    PLACE_FURNACE,
    PLACE_SAPLING,
    PLACE_STONE,
    PLACE_TABLE,
    PLACED,
    RECIPES,
    SAND,
    SAPLING,
    SLEEP,
    STEPS,
    STONE,
    TABLE,
    TABLE_COST,
    TREE,
    WAKE_UP,
    WATER,
    Rules,
    has,
    number_of,
    packed,
    pieces,
)
from .survival_state import (
    COW,
    CREATURES,
    ENERGY,
    KINDS,
    NOWHERE,
    PLANTS,
    SKELETON,
    ZOMBIE,
    State,
    among,
)
from .survival_world import cells_of, material_at, with_material

RIPE = 200
"""Age from which a plant can be eaten."""
MEAT, FRUIT = 6, 4
"""Food of a cow and of a ripe plant."""
FALLS = np.array([50, 40, 30], np.int32)
"""Counts above which food, drink and energy fall."""
RESTED, HEALED, WEAKENED = 10, 50, 30
"""Counts at which energy rises, and health rises and falls."""


def bits_of(*materials: int) -> int:
    """Return a set of materials."""
    return sum(1 << material for material in materials)


_GROUND = bits_of(GRASS, SAND, PATH)
_COSTS = np.zeros(len(ACTIONS), np.uint32)
_COSTS[[PLACE_STONE, PLACE_SAPLING]] = packed(stone=1), packed(sapling=1)
_COSTS[MAKE:] = RECIPES
_WHERE = np.zeros(len(ACTIONS), np.uint32)
"""Materials ahead on which each action is possible."""
_WHERE[LEFT : DOWN + 1] = _GROUND | bits_of(LAVA)
_WHERE[PLACE_STONE] = _GROUND | bits_of(WATER, LAVA)
_WHERE[[PLACE_TABLE, PLACE_FURNACE]] = _GROUND
_WHERE[PLACE_SAPLING] = bits_of(GRASS)
_WHERE[MAKE:] = 2**32 - 1
_TABLE = np.isin(np.arange(len(ACTIONS)), [PLACE_FURNACE, *range(MAKE, len(ACTIONS))])
"""Whether each action needs a table near; and a furnace."""
_FURNACE = np.isin(np.arange(len(ACTIONS)), [MAKE + 2, MAKE + 5])
_BECOMES = np.zeros(len(ACTIONS), np.int32)
_BECOMES[[PLACE_STONE, PLACE_TABLE, PLACE_FURNACE]] = STONE, TABLE, FURNACE


def earned(when: Any, achievement: Any) -> Any:
    """Return the set of an achievement, empty unless a condition holds."""
    return jnp.where(when, np.uint32(1) << jnp.asarray(achievement).astype(jnp.uint32), np.uint32(0))


def pickaxe(tools: Any) -> Any:
    """Return the best pickaxe: 0 for none, 1 for wood, 2 for stone, 3 for iron."""
    return jnp.where(tools & 4 != 0, 3, jnp.where(tools & 2 != 0, 2, jnp.where(tools & 1 != 0, 1, 0)))


def strength(tools: Any) -> Any:
    """Return the damage that the player does."""
    best = jnp.where(tools & 8 != 0, DAMAGE[1], DAMAGE[0])
    return jnp.where(tools & 32 != 0, DAMAGE[3], jnp.where(tools & 16 != 0, DAMAGE[2], best)).astype(jnp.int32)


def near(state: State, *materials: int) -> list[jax.Array]:
    """Return whether each material is in one of the nine cells about the player."""
    rows = jax.lax.dynamic_slice_in_dim(state.world, (state.cell >> 5) - 1, 3)
    rows = rows >> ((state.cell & 31) - 1).astype(jnp.uint32)
    return [union(cells_of(rows, material) & 7) != 0 for material in materials]


def act(state: State, action: jax.Array, luck: jax.Array, rules: Rules) -> State:
    """Carry out an action. While the player sleeps it is none; one that is not possible changes nothing.

    Args:
        state: before it.
        action: index in ``ACTIONS``.
        luck: random, from 0 to 7; a sapling is found at 0.
        rules: those of the context.
    """
    rested, slept = state.needs[ENERGY] >= MOST, state.sleeping == 1
    action = jnp.where(slept & ~rested, NOOP, action)
    moves = (action >= LEFT) & (action <= DOWN)
    facing = jnp.where(moves, action - LEFT, state.facing).astype(jnp.int32)

    def look(state: State, facing: jax.Array) -> tuple[jax.Array, ...]:
        """Return the cell ahead, its material, whether something is in it, and what is near."""
        cell = state.cell + jnp.asarray(STEPS, jnp.int32)[facing]
        return cell, material_at(state.world, cell), among(cell, state.things), *near(state, TABLE, FURNACE)

    cell, material, taken, table, furnace = computed_once(look)(state, facing)
    strikes = action == DO

    # Creatures and plants ahead.
    creatures, plants = state.things[CREATURES], state.things[PLANTS]
    hit = strikes & (creatures == cell)
    hearts = state.hearts - jnp.where(hit, strength(state.tools), 0)
    fell = hit & (hearts <= 0)
    ripe = strikes & (plants == cell) & (state.ages >= RIPE)
    eats_meat, slays_zombie, slays_skeleton = (union(fell[kind == KINDS]) for kind in (COW, ZOMBIE, SKELETON))
    eats_fruit, drinks = union(ripe), strikes & ~taken & (material == WATER)

    # Items.
    source = (jnp.clip(material, TREE, DIAMOND) - TREE).astype(jnp.uint32)
    holds = (material >= TREE) & (material <= DIAMOND)
    holds &= (rules.levels >> LEVELS * source & 3).astype(jnp.int32) <= pickaxe(state.tools)
    finds = (material == rules.sapling_from) & (luck == 0)
    item = jnp.where(finds, SAPLING, (rules.contents >> CONTENTS * source & 7).astype(jnp.int32))
    collects = strikes & ~taken & (holds | finds) & (number_of(state.items, item.astype(jnp.uint32)) < MOST)
    cost = jnp.asarray(_COSTS)[action]
    cost = jnp.where(action == PLACE_TABLE, pieces(rules.table_item, TABLE_COST), cost)
    cost = jnp.where(action == PLACE_FURNACE, pieces(rules.furnace_item, FURNACE_COST), cost)
    tool = jnp.where(action >= MAKE, np.uint32(1) << (jnp.maximum(action, MAKE) - MAKE).astype(jnp.uint32), 0)
    possible = (jnp.asarray(_WHERE)[action] >> material.astype(jnp.uint32) & 1 == 1) & (~taken | (action >= MAKE))
    possible &= (table | ~jnp.asarray(_TABLE)[action]) & (furnace | ~jnp.asarray(_FURNACE)[action])
    slot = union(plants == NOWHERE) | (action != PLACE_SAPLING)
    spends = (action >= PLACE_STONE) & possible & slot & (state.tools & tool == 0) & has(state.items, cost)
    becomes = jnp.asarray(_BECOMES)[action]
    changed = jnp.where(
        collects & holds & (material != TREE), PATH, jnp.where(spends & (becomes > 0), becomes, material)
    )
    planted = spends & (action == PLACE_SAPLING)
    here = planted & (plants == NOWHERE) & jnp.stack([jnp.bool_(True), plants[0] != NOWHERE])

    unlocked = state.unlocked | earned(slept & rested, WAKE_UP) | earned(spends, PLACED + action - PLACE_STONE)
    for when, achievement in (
        (collects, item), (drinks, DRINK), (eats_meat, EAT_COW), (eats_fruit, EAT_PLANT), (slays_zombie, DEFEAT_ZOMBIE),
        (slays_skeleton, DEFEAT_SKELETON),
    ):  # fmt: skip
        unlocked |= earned(when, achievement)

    # In the usual world water quenches thirst, and meat and fruit feed.
    meal = jnp.where(eats_meat, MEAT, jnp.where(eats_fruit, FRUIT, 0))
    usual, zero = rules.swapped == 0, jnp.int32(0)
    gains = jnp.stack([zero, jnp.where(usual, meal, drinks), jnp.where(usual, drinks, meal), zero])
    enters = moves & possible
    burnt = (enters & (material == LAVA)) & (np.arange(4) == 0)
    return state._replace(
        world=with_material(state.world, cell, changed),
        cell=jnp.where(enters, cell, state.cell),
        facing=facing,
        needs=jnp.where(burnt, 0, jnp.minimum(state.needs + gains, MOST)),
        counts=jnp.where(gains > 0, 0, state.counts),
        sleeping=(((action == SLEEP) | slept) & ~rested).astype(jnp.int32),
        items=state.items - jnp.where(spends, cost, 0) + jnp.where(collects, pieces(item, 1), 0),
        tools=state.tools | jnp.where(spends, tool, 0),
        unlocked=unlocked,
        things=jnp.concatenate([
            jnp.where(fell, NOWHERE, creatures), state.things[7:9], jnp.where(here, cell, plants)
        ]),
        hearts=hearts,
        ages=jnp.where(here | ripe, 0, state.ages),
    )  # fmt: skip


def live(state: State) -> State:
    """Let food, drink and energy fall by one step, half as fast asleep, and health follow them."""
    asleep, pace = state.sleeping == 1, 2 - state.sleeping
    fatigue = jnp.where(asleep, jnp.minimum(state.counts[3] - 1, 0), state.counts[3] + 1)
    counts = jnp.stack([state.counts[1] + pace, state.counts[2] + pace, fatigue])
    falls, rises = counts > FALLS, counts < -RESTED
    needs = jnp.clip(state.needs[1:] - falls + rises, 0, MOST)
    well = (needs[0] > 0) & (needs[1] > 0) & ((needs[2] > 0) | asleep)
    recovery = state.counts[0] + jnp.where(well, 2 * (1 + state.sleeping), -pace)
    heals, weakens = recovery > HEALED, recovery < -WEAKENED
    health = jnp.where(state.needs[0] > 0, jnp.clip(state.needs[0] + heals - weakens, 0, MOST), 0)
    return state._replace(
        needs=jnp.concatenate([health[None], needs]),
        counts=jnp.concatenate([jnp.where(heals | weakens, 0, recovery)[None], jnp.where(falls | rises, 0, counts)]),
    )
