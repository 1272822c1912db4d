"""The reference player of Household and TextNav: it explores, and plans with what it has seen.

It never reads where things are, only where they were last seen. In this order:

* What it holds and does not need, it puts down.
* Food that is to be sliced: it fetches the knife, goes where such food was seen, and slices it.
* What is asked for and held: it goes to the appliance if a change is wanted, then to the goal.
* What is asked for and was seen: it goes there and takes it, the nearest first.
* Otherwise it explores: it opens the next container of its room, or else goes to the room that
  shows most new places for its way.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, privileged_player

from .house import (
    CAN_SLICE,
    CLEAN,
    EXAMINE,
    FIRST_ACTION,
    HAND,
    HEAT,
    IN_ROOM,
    KNIFE,
    NOWHERE,
    NUM_PLACES,
    NUM_ROOMS,
    NUM_THINGS,
    OF_KIND,
    OPENABLE,
    ROOM_OF,
    STATION_PLACES,
    SURFACES,
    Params,
    State,
    finished_things,
    has,
    members,
    reachable_places,
    treated_things,
)

NUMBER_OF = {
    "open": np.array([np.searchsorted(OPENABLE, place) for place in range(NUM_PLACES)], np.int32),
    "slice": np.array([np.searchsorted(CAN_SLICE, item) for item in range(NUM_THINGS)], np.int32),
}
"""Number of a place among the containers, and of a thing among those that can be sliced."""
ALL_OPEN = np.uint32(sum(1 << int(place) for place in OPENABLE))


def go(room: jax.Array, state: State, params: Params) -> jax.Array:
    """Return the step towards a room."""
    distances = params.distances[:, room]
    return FIRST_ACTION["go"] + jnp.argmin(
        jnp.where(params.distances[state.room] == 1, distances, 2 * NUM_ROOMS)
    ).astype(jnp.int32)


def reach(place: jax.Array, action: jax.Array, state: State, params: Params) -> jax.Array:
    """Return the action if a place is within reach, else the step that brings it nearer."""
    room = jnp.asarray(ROOM_OF)[place]
    opens = FIRST_ACTION["open"] + jnp.asarray(NUMBER_OF["open"])[place]
    closer = jnp.where(room == state.room, opens, go(room, state, params))
    return jnp.where(has(reachable_places(state), place), action, closer)


def explore(state: State, params: Params) -> jax.Array:
    """Return the next step of the search for places that were not seen.

    It opens a closed container of the present room. Without one, it goes where a step shows most.
    """
    shut = jnp.asarray(IN_ROOM) & ALL_OPEN & ~state.looked  # (5,)
    shut_places = jax.lax.population_count(shut).astype(jnp.int32)
    surfaces = jax.lax.population_count(jnp.asarray(IN_ROOM) & SURFACES & ~state.looked).astype(
        jnp.int32
    )
    distance = params.distances[state.room]
    promise = (surfaces + shut_places) / jnp.maximum(distance + shut_places, 1)
    here = jnp.arange(NUM_ROOMS) == state.room
    promise = jnp.where(here, jnp.where(shut_places > 0, NUM_PLACES, -1), promise)
    room = jnp.argmax(promise).astype(jnp.int32)
    container = jnp.argmax(members(shut[state.room], NUM_PLACES)).astype(jnp.int32)
    opens = FIRST_ACTION["open"] + jnp.asarray(NUMBER_OF["open"])[container]
    return jnp.where(room == state.room, opens, go(room, state, params))


@privileged_player
class Planner(eqx.Module):
    """The player."""

    @classmethod
    def for_task(cls, task: Any) -> Planner:
        """Make the player, the same for every task in the house."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory: the state says what was seen."""
        return ()

    def explore(self, state: State, params: Params) -> jax.Array:
        """Return the next step of the search."""
        return explore(state, params)

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the next step of the plan."""
        params = view.params
        state = view.state._replace(places=view.state.last_seen)  # only what was seen
        in_hand = state.places == HAND
        holds = in_hand.any()
        item = jnp.argmax(in_hand).astype(jnp.int32)
        pending = members(
            jnp.asarray(OF_KIND)[params.kind] & ~finished_things(state, params), NUM_THINGS
        )
        cut = members(state.sliced, NUM_THINGS)
        to_slice = params.sliced & ~(pending & cut).any()
        useful = pending & (cut | ~params.sliced | to_slice)
        located = useful & (state.places != NOWHERE)
        place_of = jnp.minimum(state.places, NUM_PLACES - 1)
        distance = params.distances[state.room][jnp.asarray(ROOM_OF)[place_of]]
        ready = members(treated_things(state, params), NUM_THINGS)
        nearest = jnp.argmin(jnp.where(located, 2 * distance - ready, 4 * NUM_ROOMS)).astype(
            jnp.int32
        )
        new = self.explore(state, params)
        put_down = FIRST_ACTION["put"] + jnp.argmax(
            members(reachable_places(state), NUM_PLACES)
        ).astype(jnp.int32)

        def fetch(item: jax.Array) -> jax.Array:
            return reach(place_of[item], FIRST_ACTION["take"] + item, state, params)

        knife = jnp.int32(KNIFE)
        slices = FIRST_ACTION["slice"] + jnp.asarray(NUMBER_OF["slice"])[nearest]
        slicing = reach(place_of[nearest], slices, state, params)
        to_cut = jnp.where(
            in_hand[KNIFE],
            jnp.where(located.any(), slicing, new),
            jnp.where(
                holds, put_down, jnp.where(state.places[KNIFE] != NOWHERE, fetch(knife), new)
            ),
        )
        task = params.task
        verb = jnp.where(
            task == EXAMINE,
            FIRST_ACTION["examine"],
            jnp.where(
                task == CLEAN,
                FIRST_ACTION["clean"],
                jnp.where(task == HEAT, FIRST_ACTION["heat"], FIRST_ACTION["cool"]),
            ),
        )
        number = jnp.where(
            task == EXAMINE, 0, jnp.where(task == CLEAN, 1, jnp.where(task == HEAT, 2, 3))
        )
        station = jnp.asarray(STATION_PLACES)[number]
        there = jnp.asarray(ROOM_OF)[station]
        change = jnp.where(there == state.room, verb, go(there, state, params))
        deliver = reach(params.goal, FIRST_ACTION["put"] + params.goal, state, params)
        carry = jnp.where((task == EXAMINE) | ~ready[item], change, deliver)
        bring = jnp.where(
            useful[item] & holds,
            carry,
            jnp.where(holds, put_down, jnp.where(located.any(), fetch(nearest), new)),
        )
        return jnp.where(to_slice, to_cut, bring).astype(jnp.int32), memory


class RoomByRoom(Planner):
    """A heuristic player, which does as the reference but searches the rooms in a fixed order.

    It does not care how far they are.
    """

    def explore(self, state: State, params: Params) -> jax.Array:
        """Return the step to the first room with a place that was not seen.

        In that room, open the first such container.
        """
        unseen = jnp.asarray(IN_ROOM) & ~state.looked
        room = jnp.argmax(unseen != 0).astype(jnp.int32)
        container = jnp.argmax(members(unseen[room], NUM_PLACES)).astype(jnp.int32)
        opens = FIRST_ACTION["open"] + jnp.asarray(NUMBER_OF["open"])[container]
        return jnp.where(room == state.room, opens, go(room, state, params))
