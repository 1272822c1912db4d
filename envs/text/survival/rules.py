"""Rules of Survival: materials, items, achievements, and worlds with permuted rules.

All of these worlds are solvable.

Numbers of items are packed five bits each. They are at most nine, so the fifth bit stays free, and
one subtraction compares all of them. Rules that a context may change are packed too.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int, UInt32

MATERIALS = (
    "edge", "grass", "sand", "path", "water", "lava", "tree", "stone", "coal", "iron", "diamond",
    "table", "furnace",
)  # fmt: skip
EDGE, GRASS, SAND, PATH, WATER, LAVA, TREE, STONE, COAL, IRON, DIAMOND, TABLE, FURNACE = range(
    len(MATERIALS)
)
SOURCES = ("tree", "stone", "coal", "iron", "diamond")
"""Materials that hold items: those from ``TREE`` to ``DIAMOND``."""
ITEMS = ("wood", "stone", "coal", "iron", "diamond", "sapling")
WOOD, ROCK, FUEL, ORE, GEM, SAPLING = range(len(ITEMS))
TOOLS = ("wood pickaxe", "stone pickaxe", "iron pickaxe", "wood sword", "stone sword", "iron sword")
ROLES = ("cow", "zombie", "skeleton")
"""Roles of creatures: the cow is eaten, the zombie chases, the skeleton shoots."""

ACTIONS = (
    "noop", "move left", "move right", "move up", "move down", "do", "sleep",
    "place stone", "place table", "place furnace", "place sapling",
    *(f"make {tool}" for tool in TOOLS),
)  # fmt: skip
(
    NOOP,
    LEFT,
    RIGHT,
    UP,
    DOWN,
    DO,
    SLEEP,
    PLACE_STONE,
    PLACE_TABLE,
    PLACE_FURNACE,
    PLACE_SAPLING,
    MAKE,
) = range(12)
DIRECTIONS = ("left", "right", "up", "down")
STEPS = (-1, 1, -32, 32)
"""Change of the number of a cell, 32 * row + column, by a step to the left, right, up and down."""

ACHIEVEMENTS = (
    *(f"collect {item}" for item in ITEMS), "drink", "eat cow", "eat plant", "wake up",
    "defeat zombie", "defeat skeleton", "place stone", "place table", "place furnace",
    "place sapling",
    *(f"make {tool}" for tool in TOOLS),
)  # fmt: skip
DRINK, EAT_COW, EAT_PLANT, WAKE_UP, DEFEAT_ZOMBIE, DEFEAT_SKELETON = range(6, 12)
"""Numbers of achievements; those of items are the first."""
FIRST_PLACED = 12
"""Number of the first achievement of placing, in the order of actions."""
FIRST_MADE = 16
"""Number of the first achievement of making, in the order of actions."""
ALL = 2 ** len(ACHIEVEMENTS) - 1

MAX_AMOUNT = 9
"""Largest number of an item, and of health, food, drink and energy."""
FIELD = 5
"""Bits of the number of an item."""


def pack_items(**numbers: int) -> int:
    """Return numbers of items, packed."""
    return sum(number << FIELD * ITEMS.index(item) for item, number in numbers.items())


GUARD = sum(16 << FIELD * i for i in range(len(ITEMS)))
RECIPES = (
    pack_items(wood=1), pack_items(wood=1, stone=1), pack_items(wood=1, coal=1, iron=1),
    pack_items(wood=1), pack_items(wood=1, stone=1), pack_items(wood=1, coal=1, iron=1),
)  # fmt: skip
"""Items that each tool takes."""
TABLE_COST = 2
"""Pieces of its item that a table takes."""
FURNACE_COST = 4
"""Pieces of its item that a furnace takes."""
DAMAGE = (1, 2, 3, 5)
"""Damage by bare hands and by each sword."""

CONTENTS = 3
"""Bits of the item in a source."""
LEVELS = 2
"""Bits of the pickaxe that a source needs: 0 for none, 1 for wood, 2 for stone, 3 for iron."""
USUAL_CONTENTS = (WOOD, ROCK, FUEL, ORE, GEM)
USUAL_LEVELS = (0, 1, 1, 2, 3)


class Rules(NamedTuple):
    """The rules that a context may change, int32 unless said."""

    contents: UInt32
    """Item that each source holds, uint32, three bits each from the tree to the diamond."""
    levels: UInt32
    """Least pickaxe that each source needs, uint32, two bits each."""
    table_item: Int
    """Item of which tables are made."""
    furnace_item: Int
    """Item of which furnaces are made."""
    sapling_from: Int
    """Material among which saplings are found: grass or sand."""
    swapped: Int
    """1 if water feeds, and meat and plants quench thirst; 0 in the usual world."""
    looks: UInt32
    """Look of each role, uint32, two bits each."""


def has(items: Any, needed: Any) -> Any:
    """Return whether each item is there in the number that is needed, both packed."""
    return ((items | GUARD) - needed) & GUARD == GUARD


def number_of(items: Any, item: Any) -> Any:
    """Return the number of one item, int32 or Python's."""
    return items >> FIELD * item & 15


def pieces(item: Any, number: int) -> jax.Array:
    """Return a number of pieces of one item, packed uint32."""
    return jnp.uint32(number) << (FIELD * item).astype(jnp.uint32)


@cache
def solvable_worlds(costs: bool) -> np.ndarray:
    """Return the permuted sources that leave every achievement within reach, uint32 ``(n,)``.

    Their order is fixed.

    A world is packed as contents, levels, item of the table, item of the furnace (three bits each).

    Args:
        costs: whether the items of table and furnace vary too.
    """
    contents = np.array([*permutations(range(len(SOURCES)))])
    levels = np.array(sorted({*permutations(USUAL_LEVELS)}))
    items = np.arange(len(SOURCES)) if costs else np.array([WOOD, ROCK])
    pairs = [(a, b) for a in items for b in items] if costs else [(WOOD, ROCK)]
    content_index, level_index, building_index = (
        grid.ravel()
        for grid in np.meshgrid(
            range(len(contents)), range(len(levels)), range(len(pairs)), indexing="ij"
        )
    )
    contents = contents[content_index]
    levels = levels[level_index]
    buildings = np.array(pairs)[building_index]
    solvable = reaches_all(contents, levels, buildings)
    shifts = CONTENTS * np.arange(5), 15 + LEVELS * np.arange(5), 25 + CONTENTS * np.arange(2)
    worlds = sum(
        (codes << shift).sum(1)
        for codes, shift in zip((contents, levels, buildings), shifts, strict=True)
    )
    return np.asarray(worlds, np.int64)[solvable].astype(np.uint32)


def reaches_all(contents: np.ndarray, levels: np.ndarray, buildings: np.ndarray) -> np.ndarray:
    """Return in which worlds every item can be had and every tool made, bool ``(n,)``.

    Every source can be reached on foot (``world.py``) and has cells enough, so it is enough to ask
    for kinds: what can be had opens what it is needed for, until nothing more opens. All other
    achievements need none of these items but the stone that is placed.

    Args:
        contents: item of each source, ``(n, 5)``.
        levels: pickaxe that each source needs, ``(n, 5)``.
        buildings: items of table and furnace, ``(n, 2)``.
    """
    n = np.arange(len(contents))
    available = np.zeros((len(n), 5), bool)
    pickaxe = np.zeros(len(n), int)
    while True:
        next_available = available.copy()
        for source in range(5):
            next_available[n, contents[:, source]] |= levels[:, source] <= pickaxe
        table = next_available[n, buildings[:, 0]] & next_available[:, WOOD]
        furnace = table & next_available[n, buildings[:, 1]]
        craftable = [
            table,
            table & next_available[:, ROCK],
            furnace & next_available[:, FUEL] & next_available[:, ORE],
        ]
        best = np.max([level * can for level, can in enumerate(craftable, 1)], axis=0)
        if (next_available == available).all() and (best == pickaxe).all():
            return available.all(1) & (pickaxe == 3)
        available = next_available
        pickaxe = best


def draw_rules(bits: jax.Array, split: jax.Array, permuted: int) -> Rules:
    """Draw the rules of a context: every second solvable world belongs to the test split.

    Args:
        bits: random, uint32 ``(2,)``.
        split: 0 for train, 1 for test.
        permuted: 0 for the usual rules; from 1 on contents and needs of sources are permuted, from
            2 on the parts of creatures, what fills which need, and where saplings are; at 3 also
            what table and furnace are made of.
    """
    if not permuted:
        pack = lambda values, width: jnp.uint32(  # noqa: E731
            sum(value << width * i for i, value in enumerate(values))
        )
        return Rules(
            pack(USUAL_CONTENTS, CONTENTS), pack(USUAL_LEVELS, LEVELS), jnp.int32(WOOD),
            jnp.int32(ROCK), jnp.int32(GRASS), jnp.int32(0), pack((0, 1, 2), 2),
        )  # fmt: skip
    worlds = solvable_worlds(permuted == 3)
    index = 2 * (bits[0] % (len(worlds) // 2)).astype(jnp.int32) + split
    world = jnp.asarray(worlds)[index]
    survival = jnp.where(permuted > 1, bits[1], 0)
    looks = np.array([a | b << 2 | c << 4 for a, b, c in permutations(range(3))], np.uint32)
    return Rules(
        contents=world & 0x7FFF,
        levels=world >> 15 & 0x3FF,
        table_item=(world >> 25 & 7).astype(jnp.int32),
        furnace_item=(world >> 28 & 7).astype(jnp.int32),
        sapling_from=jnp.where(survival & 1 == 1, SAND, GRASS).astype(jnp.int32),
        swapped=(survival >> 1 & 1).astype(jnp.int32),
        looks=jnp.asarray(looks)[((survival >> 2) % 6).astype(jnp.int32)],
    )
