"""A house of five rooms with places and things: its state, and what a goal in it means.

The tasks ``Household-v0`` and ``TextNav-v0`` are played in it (``task.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Int, IntArray, UInt32

ROOMS = ("kitchen", "living room", "bedroom", "bathroom", "study")
PLACES = {
    "counter": 0, "sink": 0, "fridge": 0, "microwave": 0, "cupboard": 0, "table": 1, "sofa": 1,
    "chest": 1, "bed": 2, "wardrobe": 2, "shelf": 3, "cabinet": 3, "desk": 4, "drawer": 4,
}  # fmt: skip
"""Room of each place."""
CONTAINERS = ("fridge", "microwave", "cupboard", "chest", "wardrobe", "cabinet", "drawer")
"""Places that open and close; all others are surfaces."""
KINDS = (
    "apple",
    "mug",
    "book",
    "cloth",
    "potato",
    "tomato",
    "bread",
    "egg",
    "plate",
    "spoon",
    "pen",
    "knife",
)
THINGS = (
    "apple 1", "apple 2", "mug 1", "mug 2", "book 1", "book 2", "cloth 1", "cloth 2",
    "potato 1", "tomato 1", "bread 1", "egg 1", "plate 1", "spoon 1", "pen 1", "knife 1",
)  # fmt: skip
SLICEABLE = ("apple", "potato", "tomato", "bread")
TASKS = ("place", "examine", "clean", "heat", "cool", "two", "find")
PUT, EXAMINE, CLEAN, HEAT, COOL, TWO, FIND = range(7)
TARGETS = (
    KINDS[:11],
    ("book", "pen", "plate", "mug"),
    ("apple", "mug", "cloth", "potato", "tomato", "plate", "spoon"),
    ("apple", "mug", "potato", "tomato", "bread", "egg"),
    ("apple", "mug", "potato", "tomato", "bread", "egg"),
    ("apple", "mug", "book", "cloth"),
    KINDS[:11],
)
"""Kinds of things that each task asks for."""
STATIONS = ("desk", "sink", "microwave", "fridge")
"""Places at which things are examined, cleaned, heated and cooled."""

NUM_PLACES = len(PLACES)
NUM_THINGS = len(THINGS)
NUM_ROOMS = len(ROOMS)
NUM_KINDS = len(KINDS)
HAND = NUM_PLACES
NOWHERE = NUM_PLACES + 1
NAMES = tuple(PLACES)
ROOM_OF = np.array([*PLACES.values()], np.int32)
OPENABLE = np.array([NAMES.index(name) for name in CONTAINERS], np.int32)
SURFACES = np.uint32(sum(1 << place for place, name in enumerate(NAMES) if name not in CONTAINERS))
IN_ROOM = np.array(
    [sum(1 << p for p in range(NUM_PLACES) if ROOM_OF[p] == room) for room in range(NUM_ROOMS)],
    np.uint32,
)
KIND_OF = np.array([KINDS.index(item.split()[0]) for item in THINGS], np.int32)
OF_KIND = np.array(
    [sum(1 << n for n in range(NUM_THINGS) if KIND_OF[n] == kind) for kind in range(NUM_KINDS)],
    np.uint32,
)
ALLOWED_THINGS = np.array(
    [sum(int(OF_KIND[KINDS.index(kind)]) for kind in kinds) for kinds in TARGETS], np.uint32
)
"""Things that each task may ask for. The appliances take no others."""
CAN_SLICE = np.array([n for n in range(NUM_THINGS) if KINDS[KIND_OF[n]] in SLICEABLE], np.int32)
KNIFE = THINGS.index("knife 1")
STATION_PLACES = np.array([NAMES.index(name) for name in STATIONS], np.int32)
TARGET_KINDS = np.array(
    [[KINDS.index(kinds[i % len(kinds)]) for i in range(NUM_KINDS)] for kinds in TARGETS], np.int32
)
TARGET_COUNTS = np.array([len(kinds) for kinds in TARGETS], np.int32)
GOALS = np.array(
    [p for p, name in enumerate(NAMES) if name not in ("sink", "fridge", "microwave")], np.int32
)
"""Places in which things may have to be put."""

SIZES = {
    "look": 1,
    "go": NUM_ROOMS,
    "open": len(OPENABLE),
    "close": len(OPENABLE),
    "take": NUM_THINGS,
    "put": NUM_PLACES,
    "heat": 1,
    "cool": 1,
    "clean": 1,
    "slice": len(CAN_SLICE),
    "examine": 1,
}
"""Number of actions of each verb, in order."""
FIRST_ACTION = dict(zip(SIZES, np.cumsum([0, *SIZES.values()]).tolist(), strict=False))
"""First action of each verb."""
ACTIONS = sum(SIZES.values())
TENTHS = 10


class Params(NamedTuple):
    """The house and the goal."""

    distances: IntArray
    """Number of doors from room to room, int32 ``(5, 5)``."""
    places: IntArray
    """Place of each thing at first, int32 ``(16,)``. Hidden until it is seen."""
    task: Int
    """Index in ``TASKS``, int32."""
    kind: Int
    """Kind of the thing that is asked for, int32."""
    goal: Int
    """Place to put it in, int32."""
    sliced: Flag
    """Whether it is to be sliced, bool."""


class State(NamedTuple):
    """The house now, and what was seen of it. Sets have one bit for each member, uint32."""

    room: Int
    """Room of the player, int32."""
    places: IntArray
    """Place of each thing, int32 ``(16,)``; 14 is the hand."""
    last_seen: IntArray
    """Place in which each thing was last seen, int32 ``(16,)``; 14 is the hand, 15 nowhere."""
    opened: UInt32
    """Open containers, a set of places."""
    looked: UInt32
    """Places whose contents were seen."""
    visited: UInt32
    """Rooms that were seen."""
    hot: UInt32
    """Things that are hot."""
    cold: UInt32
    """Things that are cold."""
    clean: UInt32
    """Things that were cleaned."""
    sliced: UInt32
    """Things that are sliced."""
    examined: UInt32
    """Things that were examined under the lamp."""
    progress: Int
    """Tenths of the goal, int32."""


def members(sets: Any, count: int) -> Any:
    """Unpack a set into bools, ``(count,)``, NumPy or JAX."""
    return sets >> np.arange(count, dtype=np.uint32) & 1 == 1


def bit(number: jax.Array) -> jax.Array:
    """Return the set of one member."""
    return np.uint32(1) << number.astype(jnp.uint32)


def has(sets: Any, number: Any) -> Any:
    """Return whether a set has a member."""
    return sets >> number.astype(np.uint32) & 1 == 1


def pack(flags: jax.Array) -> jax.Array:
    """Pack flags ``(count,)`` into a set."""
    return (flags.astype(jnp.uint32) << np.arange(len(flags), dtype=np.uint32)).sum(
        dtype=jnp.uint32
    )


def reachable_places(state: State) -> jax.Array:
    """Return the places of the room whose contents are seen: surfaces and open containers."""
    return jnp.asarray(IN_ROOM)[state.room] & (SURFACES | state.opened)


def treated_things(state: State, params: Params) -> jax.Array:
    """Return the things that are as the task wants them: clean, hot or cold.

    All things are returned where it does not matter.
    """
    everything = np.uint32(2**NUM_THINGS - 1)
    task = params.task
    treated = jnp.where(task == CLEAN, state.clean, jnp.where(task == HEAT, state.hot, state.cold))
    return jnp.where((task == CLEAN) | (task == HEAT) | (task == COOL), treated, everything)


def finished_things(state: State, params: Params) -> jax.Array:
    """Return the things asked for that have reached the goal, each by itself."""
    ready = jnp.where(params.sliced, state.sliced, np.uint32(2**NUM_THINGS - 1)) & treated_things(
        state, params
    )
    there = pack(state.places == jnp.where(params.task == FIND, HAND, params.goal))
    there = jnp.where(params.task == EXAMINE, state.examined, there)
    return jnp.asarray(OF_KIND)[params.kind] & ready & there


def progress(state: State, params: Params) -> jax.Array:
    """Return tenths of the goal, int32: 10 only at the goal.

    A thing that is asked for counts 2 in hand, 4 once it is clean, hot or cold as wanted, 2 once it
    is sliced as wanted. The best one counts. Of two, each counts 2 in hand and 5 in place.
    """
    two = params.task == TWO
    asked_for = members(jnp.asarray(OF_KIND)[params.kind], NUM_THINGS)
    in_hand = state.places == HAND
    finished = members(finished_things(state, params), NUM_THINGS)
    changes = (params.task == CLEAN) | (params.task == HEAT) | (params.task == COOL)
    so_far = 2 * in_hand + 4 * (changes & members(treated_things(state, params), NUM_THINGS))
    so_far += 2 * (params.sliced & members(state.sliced, NUM_THINGS))
    each = jnp.where(two, jnp.where(finished, 5, 2 * in_hand), jnp.where(finished, TENTHS, so_far))
    each = jnp.where(asked_for, each, 0)
    return jnp.where(two, each.sum(), each.max()).astype(jnp.int32)
