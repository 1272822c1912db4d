"""The world of Survival: 32 x 32 cells of one material each.

It is drawn so that everything in it can be reached on foot.

The world is uint32 ``(32, 4)``: bit ``column`` of word ``[row, plane]`` is bit ``plane`` of the
cell's material. The outer ring is the edge, on which nothing ever stands. A cell has the number
``32 * row + column``; number 0 lies in the ring, so it stands for "nowhere".
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.bitset import BitSet
from rlbench_suite.numerics.reductions import union

from ...shared.grid_bits import SIDE, count, flood_from, grow, majority
from .rules import COAL, DIAMOND, EDGE, GRASS, IRON, LAVA, PATH, SAND, STONE, TREE, WATER

PLANES = 4
START = SIDE // 2 * SIDE + SIDE // 2
"""Number of the cell in which every episode begins."""
WORDS = 12
"""Random words a row of the world."""
SMOOTHINGS = 3
"""Steps of the cellular automaton that shapes mountains and waters."""
VEINS = {COAL: 8, IRON: 5, DIAMOND: 3}
"""Cells of each material beside ground that can be reached on foot.

Inside mountains there are more.
"""
PERMUTED_VEINS = {COAL: 12, IRON: 12, DIAMOND: 12}
"""The same in worlds with permuted rules: enough for whatever the material holds."""


def _cells(inside: Any) -> np.ndarray:
    """Return a set of cells, uint32 ``(32,)``, from flags ``(32, 32)``."""
    return (np.asarray(inside, np.uint32) << np.arange(SIDE, dtype=np.uint32)).sum(
        1, dtype=np.uint32
    )


_ROW, _COLUMN = np.indices((SIDE, SIDE)) - SIDE // 2
_NEAR = _ROW**2 + _COLUMN**2 <= 16
_BESIDE = np.minimum((abs(_ROW) - 1) ** 2 + _COLUMN**2, _ROW**2 + (abs(_COLUMN) - 1) ** 2) <= 16
INNER = _cells(np.pad(np.ones((SIDE - 2, SIDE - 2)), 1))
CLEARING = _cells(_NEAR)
ROADS = _cells((_ROW == 0) | (_COLUMN == 0)) & INNER & ~CLEARING
"""Cells that can always be walked on, so that the clearing is connected with the rest."""
RIM = np.flatnonzero(_BESIDE & ~_NEAR).astype(np.int32)
RIM = RIM[np.argsort(np.arctan2(_ROW, _COLUMN).ravel()[RIM], kind="stable")]
"""Cells beside the clearing, around it."""
HOME = {TREE: (0, 1, 2), WATER: (8, 9), SAND: (14, 15)}
"""Indices on the rim, counted from a random one, of what every home has.

The next tree makes the number of trees odd.
"""
ODD_TREE = 3


def single(cell: Any) -> jax.Array:
    """Return the set of one cell, given by its number."""
    cell = jnp.asarray(cell)
    return jnp.where(
        np.arange(SIDE) == cell // SIDE,
        np.uint32(1) << (cell % SIDE).astype(jnp.uint32),
        np.uint32(0),
    )


def cells_of(world: Any, *materials: int) -> Any:
    """Return the cells of some materials, uint32 ``(..., 32)``.

    The leading shape is that of ``world``.
    """
    planes = [world[..., plane] for plane in range(PLANES)]

    def cells_of_one(material: int) -> Any:
        return reduce(and_, (planes[i] if material >> i & 1 else ~planes[i] for i in range(PLANES)))

    return reduce(or_, map(cells_of_one, materials))


def material_at(world: jax.Array, cell: jax.Array) -> jax.Array:
    """Return the material of a cell, int32."""
    row = (
        jax.lax.dynamic_index_in_dim(world, cell >> 5, keepdims=False)
        >> (cell & 31).astype(jnp.uint32)
        & 1
    )
    return reduce(or_, (row[plane] << plane for plane in range(PLANES))).astype(jnp.int32)


def with_material(world: jax.Array, cell: jax.Array, material: jax.Array) -> jax.Array:
    """Return the world with another material in a cell."""
    row = cell >> 5
    bit = np.uint32(1) << (cell & 31).astype(jnp.uint32)
    code = (material >> np.arange(PLANES) & 1).astype(jnp.uint32)
    return world.at[row].set(
        jax.lax.dynamic_index_in_dim(world, row, keepdims=False) & ~bit | bit * code
    )


def spread(walls: jax.Array, kinds: dict[int, int], bits: jax.Array) -> dict[int, jax.Array]:
    """Return cells for each kind of vein, as many as asked for, spread evenly over a set of cells.

    Args:
        walls: a set of more cells than all veins together need.
        kinds: number of cells of each kind.
        bits: random, uint32 ``(2,)``.
    """
    total = sum(kinds.values())
    wall_cells = BitSet(walls.reshape(-1, 16))
    order = np.random.RandomState(0).permutation(np.repeat([*kinds], [*kinds.values()]))
    size = wall_cells.size.astype(jnp.uint32)
    # Each of ``total`` segments of the cells ends with a vein. The factor is rounded up: the last
    # one is complete.
    share = ((jnp.uint32(total) << 16) + size - 1) // size
    segment = (np.arange(total, dtype=np.uint32) + total - bits[1] % total) % total
    rank = (((segment + 1) << 16) + share - 1) // share - 1
    first = bits[0] % size
    rank = jnp.where(rank < first, rank + size, rank) - first
    cells = jax.vmap(single)(jax.vmap(wall_cells.select)(rank.astype(jnp.int32)))
    return {kind: union(cells[order == kind]) for kind in kinds}


def draw_world(bits: jax.Array, more: jax.Array, split: jax.Array, permuted: bool) -> jax.Array:
    """Draw a world.

    A clearing lies in the middle. Mountains and waters are smoothed noise; waters inside mountains
    are caves. Tunnels cross the mountains along two rows and two columns, and sand the waters along
    one of each. Around the clearing there are some trees, water and sand, and veins lie in the
    walls of the mountains beside ground that can be reached.

    Args:
        bits: random, uint32 ``(WORDS, 32)``.
        more: random, uint32 ``(8,)``.
        split: the number of trees is even for 0 (train), odd for 1 (test).
        permuted: whether every vein has enough cells for any rules.
    """
    mountain = bits[0] & (bits[1] | bits[2] | bits[3])
    wet = bits[4] & (bits[5] | bits[6])
    for _ in range(SMOOTHINGS):
        mountain = computed_once(majority)(mountain)
        wet = computed_once(majority)(wet)
    free = INNER & ~CLEARING
    mountain &= free
    tunnel = ROADS | jnp.where(np.arange(SIDE) == (more[0] & 31).astype(jnp.int32), INNER, 0)
    tunnel |= np.uint32(1) << (more[0] >> 5 & 31)
    path = mountain & (wet | tunnel)
    stone = mountain & ~path
    wet = wet & free & ~mountain
    water = wet & ~ROADS
    sand = grow(wet) & free & ~mountain & ~water & (bits[7] | bits[8] | ROADS)
    tree = free & ~ROADS & ~mountain & ~water & ~sand & bits[9] & bits[10] & (bits[7] | bits[8])
    inside = bits[9] & bits[10]
    coal = stone & inside & bits[7] & bits[8]
    iron = stone & inside & bits[7] & ~bits[8]
    deep = stone & ~grow(~mountain | path)
    diamond = deep & inside & ~bits[7] & bits[8] & bits[11]
    lava = deep & bits[9] & ~bits[10] & bits[7] & bits[11]

    stone &= ~(coal | iron | diamond | lava)

    turn = (more[1] % len(RIM)).astype(jnp.int32)

    def rim_cell(offset: int) -> jax.Array:
        return single(jnp.asarray(RIM)[(turn + offset) % len(RIM)])

    home = {material: reduce(or_, map(rim_cell, offsets)) for material, offsets in HOME.items()}
    odd = rim_cell(ODD_TREE)
    home_cells = odd | reduce(or_, home.values())
    stone, path, water, sand, tree, coal, iron, diamond, lava = (
        cells & ~home_cells for cells in (stone, path, water, sand, tree, coal, iron, diamond, lava)
    )
    water |= home[WATER]
    sand |= home[SAND]

    blocked = stone | water | tree | coal | iron | diamond | lava | home[TREE] | odd
    ground = flood_from(single(START), INNER & ~blocked)
    walls = grow(ground) & (stone | coal | iron | diamond)
    kinds = PERMUTED_VEINS if permuted else VEINS
    # Where mountains are small, veins take the place of trees too. So they never block a way.
    walls = jnp.where(count(walls) >= 2 * sum(kinds.values()), walls, walls | grow(ground) & tree)
    vein = spread(walls, kinds, more[2:4])
    every = reduce(or_, vein.values())
    stone = stone & ~every
    tree = tree & ~every | home[TREE]
    tree = jnp.where((count(tree) + split) & 1 == 1, tree | odd, tree)
    coal, iron, diamond = (
        cells & ~every | vein[kind]
        for kind, cells in ((COAL, coal), (IRON, iron), (DIAMOND, diamond))
    )
    sets = {
        SAND: sand, PATH: path, WATER: water, LAVA: lava, TREE: tree, STONE: stone, COAL: coal,
        IRON: iron, DIAMOND: diamond,
    }  # fmt: skip
    sets[GRASS] = INNER & ~reduce(or_, sets.values())
    assert EDGE == 0
    planes = []
    for plane in range(PLANES):
        planes.append(reduce(or_, (cells for kind, cells in sets.items() if kind >> plane & 1)))
    return jnp.stack(planes, 1)
