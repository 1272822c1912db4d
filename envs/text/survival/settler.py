"""Reference player of Survival: a script that works through the tree and minds its needs.

It reads the state and the rules, so it knows the whole map, where creatures are, and what is
permuted.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Flag, Int, UInt32Array
from rlbench_suite.core.policy import View, no_memory, privileged_player

from ...shared.grid_bits import flood_from, grow, shift_down, shift_up
from .actions import RIPE, near, pickaxe
from .rules import (
    CONTENTS,
    DEFEAT_SKELETON,
    DEFEAT_ZOMBIE,
    DO,
    DRINK,
    EAT_COW,
    EAT_PLANT,
    FIRST_MADE,
    FIRST_PLACED,
    FURNACE,
    FURNACE_COST,
    GRASS,
    ITEMS,
    LEFT,
    LEVELS,
    MAKE,
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
    SOURCES,
    STEPS,
    TABLE,
    TABLE_COST,
    TREE,
    WAKE_UP,
    WATER,
    has,
    number_of,
    pack_items,
    pieces,
)
from .state import BRIGHT, COW, KINDS, NOWHERE, SKELETON, ZOMBIE, State, distance, light
from .task import Params, Survival
from .world import cells_of, single

HUNGRY = 3
"""Food or drink at which it looks for more."""
TIRED = 3
"""Energy at which it sleeps."""
FIT = 5
"""Health from which it seeks a fight."""
WARY = 10
"""Distance within which a zombie keeps it awake."""


class Job(NamedTuple):
    """Something to do."""

    when: Flag
    """Whether it is to be done."""
    sites: UInt32Array
    """Cells to go to and face, uint32 ``(32,)``."""
    action: Int
    """Action to play once a site is ahead."""
    ready: Flag = False
    """Whether to play the action where one stands."""
    enters: Flag = False
    """Whether to walk onto a site instead of facing it."""


def box(cells: jax.Array) -> jax.Array:
    """Return the cells of which one of the nine cells about them is in a set."""
    row = cells | cells << 1 | cells >> 1
    return row | shift_down(row) | shift_up(row)


def first_to_do(jobs: list[Job], cell: Any, facing: Any, free: jax.Array) -> jax.Array:
    """Return the action of the first job that is to be done, or a step to one of its sites.

    The step is the first of the shortest way.

    Where there is no way it is ``NOOP``.

    Args:
        jobs: the most urgent first.
        cell: where the player is.
        facing: index in ``DIRECTIONS``.
        free: cells that can be walked on.
    """
    sites = jnp.zeros(32, jnp.uint32)
    action = jnp.int32(NOOP)
    ready = jnp.bool_(True)
    enters = jnp.bool_(False)
    for job in reversed(jobs):
        sites = jnp.where(job.when, job.sites, sites)
        action = jnp.where(job.when, job.action, action)
        ready = jnp.where(job.when, job.ready, ready)
        enters = jnp.where(job.when, job.enters, enters)
    beside = [single(cell + step) for step in STEPS]
    around = reduce(or_, beside)

    def spread(wave: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        wider = wave[0] | grow(wave[0]) & free
        return wider, (wider != wave[0]).any() & ~(wider & around != 0).any()

    wave, _ = jax.lax.while_loop(
        lambda wave: wave[1], spread, (sites, ~(sites & around != 0).any())
    )
    approaches = jnp.stack([(wave & site != 0).any() for site in beside])
    ahead = single(cell + jnp.asarray(STEPS, jnp.int32)[facing])
    there = ready | ~enters & (sites & ahead != 0).any()
    step = LEFT + jnp.argmax(approaches).astype(jnp.int32)
    return jnp.where(there, action, jnp.where(approaches.any(), step, NOOP)).astype(jnp.int32)


@privileged_player
class Settler(eqx.Module):
    """The player: the first job on its list that is to be done, by the shortest way."""

    @classmethod
    def for_task(cls, task: Survival) -> Settler:
        """Make the player; it is the same for every difficulty."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the action of the first job, or a step towards one of its sites."""
        state: State = view.state
        occupied = reduce(or_, map(single, state.occupied_cells))
        free = cells_of(state.world, GRASS, SAND, PATH) & ~occupied
        # Creatures, plants and stones close ways. A job whose sites are all behind them waits.
        reached = flood_from(single(state.cell), free | single(state.cell))
        jobs = self._jobs(state, view.params, reached)
        return first_to_do(jobs, state.cell, state.facing, free), memory

    def _jobs(self, state: State, params: Params, reached: jax.Array) -> list[Job]:
        """Return the jobs, the most urgent first.

        Args:
            state: the state.
            params: the world and its rules.
            reached: cells that the player can walk to.
        """
        rules = params.rules
        world = state.world
        free = reached
        touchable = grow(reached)
        food = state.food
        drink = state.drink
        energy = state.energy

        def is_missing(achievement: int) -> Any:
            return state.unlocked >> achievement & 1 == 0

        def bodies(kind: int, within: int = 64) -> jax.Array:
            cells = (
                jnp.where(distance(beast, state.cell) <= within, single(beast), 0)
                for beast, role in zip(state.beasts, KINDS, strict=True)
                if role == kind
            )
            return reduce(or_, cells) & ~single(NOWHERE) & touchable

        def at(*materials: int) -> jax.Array:
            return cells_of(world, *materials) & touchable

        def any_of(cells: jax.Array) -> jax.Array:
            return (cells != 0).any()

        cows, zombies, skeletons = (bodies(kind) for kind in (COW, ZOMBIE, SKELETON))
        ripe = reduce(or_, (
            jnp.where(age >= RIPE, single(plant), 0)
            for plant, age in zip(state.plants, state.ages, strict=True)
        )) & ~single(NOWHERE) & touchable  # fmt: skip
        water = at(WATER)
        meals = jnp.where(any_of(ripe), ripe, cows)
        feeds, quenches = (
            jnp.where(rules.swapped == 1, a, b) for a, b in ((water, meals), (meals, water))
        )
        table = cells_of(world, TABLE)
        furnace = cells_of(world, FURNACE)
        near_table, near_furnace = near(state, TABLE, FURNACE)
        by_table = box(table) & free
        by_both = box(table) & box(furnace) & free
        safe = (light(state.time) == BRIGHT) & ~any_of(bodies(ZOMBIE, WARY))
        contents = [rules.contents >> CONTENTS * s & 7 for s in range(len(SOURCES))]
        opened = [
            (rules.levels >> LEVELS * s & 3).astype(jnp.int32) <= pickaxe(state.tools)
            for s in range(len(SOURCES))
        ]

        def sources_of(item: int) -> jax.Array:
            """Return the cells from which an item can be gathered with the tools at hand."""
            sources = range(len(SOURCES))
            return reduce(
                or_,
                (jnp.where((contents[s] == item) & opened[s], at(TREE + s), 0) for s in sources),
            )

        source = {item: sources_of(item) for item in range(len(SOURCES))}
        source[SAPLING] = jnp.where(rules.sapling_from == SAND, at(SAND), at(GRASS)) & free

        jobs = [
            Job(any_of(bodies(ZOMBIE, 1)), bodies(ZOMBIE, 1), DO),
            Job(any_of(bodies(SKELETON, 1)), bodies(SKELETON, 1), DO),
            Job((drink <= HUNGRY) & any_of(quenches), quenches, DO),
            Job((food <= HUNGRY) & any_of(feeds), feeds, DO),
            Job(safe & ((energy <= TIRED) | is_missing(WAKE_UP) & (energy < 9)), free, SLEEP, True),
            Job(any_of(ripe) & is_missing(EAT_PLANT), ripe, DO),
            Job(any_of(cows) & is_missing(EAT_COW), cows, DO),
            Job(any_of(zombies) & is_missing(DEFEAT_ZOMBIE) & (state.health >= FIT), zombies, DO),
            Job(
                any_of(skeletons) & is_missing(DEFEAT_SKELETON) & (state.health >= FIT),
                skeletons,
                DO,
            ),
            Job(is_missing(DRINK), water, DO),
        ]

        def build(
            when: Any,
            cost: Any,
            sites: jax.Array,
            action: int,
            ready: Any = False,
            enters: bool = False,
        ) -> None:
            """Add the jobs that gather what something costs, and the one that makes it.

            The items are gathered one after another.

            What needs an item that cannot be had yet waits.
            """
            short = [number_of(state.items, i) < number_of(cost, i) for i in range(len(ITEMS))]
            for i in range(len(ITEMS)):
                when &= ~short[i] | any_of(source[i])
            for i in range(len(ITEMS)):
                jobs.append(Job(when & short[i], source[i], DO))
            jobs.append(Job(when, sites, action, ready, enters))

        planted = reduce(or_, (plant != NOWHERE for plant in state.plants))
        build(
            is_missing(EAT_PLANT) & ~planted,
            jnp.uint32(pack_items(sapling=1)),
            at(GRASS) & free,
            PLACE_SAPLING,
        )
        build(is_missing(FIRST_PLACED + 1), pieces(rules.table_item, TABLE_COST), free, PLACE_TABLE)
        for tool in (0, 3, 1, 4):
            build(
                is_missing(FIRST_MADE + tool),
                jnp.uint32(RECIPES[tool]),
                by_table,
                MAKE + tool,
                near_table,
                enters=True,
            )
            if tool == 3:
                build(is_missing(FIRST_PLACED), jnp.uint32(pack_items(stone=1)), free, PLACE_STONE)
        cost = pieces(rules.furnace_item, FURNACE_COST)
        build(
            is_missing(FIRST_PLACED + 2) & ~near_table & has(state.items, cost),
            jnp.uint32(0),
            by_table,
            NOOP,
            enters=True,
        )
        build(is_missing(FIRST_PLACED + 2), cost, free, PLACE_FURNACE)
        for tool in (2, 5):
            build(
                is_missing(FIRST_MADE + tool),
                jnp.uint32(RECIPES[tool]),
                by_both,
                MAKE + tool,
                near_table & near_furnace,
                enters=True,
            )
        for item in range(len(SOURCES)):
            jobs.append(Job(is_missing(item) & any_of(source[item]), source[item], DO))
        jobs += [
            Job((drink < 8) & any_of(quenches), quenches, DO),
            Job((food < 6) & any_of(feeds), feeds, DO),
            Job(is_missing(DEFEAT_SKELETON), at(PATH) & free, NOOP),
        ]
        return jobs
