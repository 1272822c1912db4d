"""Orders of TowerDefence: which are legal, what each changes, and the step that follows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.batch_last import axis_numbers, batch_last
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.reductions import union

from .maps import SITES
from .rules import (
    BUILD,
    CALL,
    CALL_AGAIN,
    COSTS,
    EMPTY,
    KEEP,
    KINDS,
    LEVELS,
    MOVE,
    NEXT,
    PRICE,
    REINFORCE,
    SELL,
    SERVICE,
    SOLDIERS,
    TICKS,
    UPGRADE,
    VALUE,
    WALK,
    WAVES,
    Params,
    State,
    arm,
    count_enemies,
    tick,
)


def legal_orders(state: State) -> jax.Array:
    """Return which orders are legal, bool ``(47,)``."""
    free = state.towers == EMPTY
    builds = [free & (state.coins >= costs[0]) for costs in COSTS]
    price = jnp.asarray(NEXT, jnp.int32)[state.towers]
    there = (state.post < KEEP) & (state.travel == 0)
    moves = (state.hero > 0) & (np.arange(KEEP) != state.post)
    reinforces = there & (state.cooldown == 0)
    calls = (state.wave < WAVES) & (count_enemies(state.queue) == 0) & (state.timer > 0)
    return jnp.concatenate([
        jnp.ones(1, bool), *builds, (price > 0) & (price <= state.coins), ~free, moves,
        reinforces[None], calls[None],
    ])  # fmt: skip


def order(state: State, action: jax.Array) -> dict[str, Any]:
    """Return what a legal order changes."""
    action = action.astype(jnp.int32)
    within = lambda first, count: (action >= first) & (action < first + count)  # noqa: E731
    builds = within(BUILD, 24)
    upgrades = within(UPGRADE, SITES)
    sells = within(SELL, SITES)
    moves = within(MOVE, KEEP)
    reinforces = action == REINFORCE
    calls = action == CALL
    # The numbers of the first orders for a tower are all one more than a multiple of eight.
    here = (axis_numbers(SITES, action) == action - 1 & 7) & (builds | upgrades | sells)
    before = union(jnp.where(here, state.towers, 0))
    code = jnp.where(
        builds, 1 + LEVELS * (action - BUILD >> 3), jnp.where(upgrades, before + 1, EMPTY)
    )
    price = jnp.where(
        sells, -(jnp.asarray(VALUE)[before] // 2), jnp.asarray(PRICE)[jnp.minimum(code, KINDS - 1)]
    )
    there = (state.post < KEEP) & (state.travel == 0)
    return {
        "coins": state.coins - price + jnp.where(calls, state.timer // TICKS, 0),
        "timer": jnp.where(calls, 0, state.timer),
        "towers": jnp.where(here, code, state.towers),
        "reloads": jnp.where(here & ~upgrades, 0, state.reloads),
        "post": jnp.where(moves, action - MOVE, state.post),
        "travel": jnp.where(moves, WALK, state.travel),
        "station": jnp.where(reinforces, state.post, state.station),
        "soldiers": jnp.where(reinforces & there, SOLDIERS, state.soldiers),
        "service": jnp.where(reinforces, SERVICE, state.service),
        "cooldown": jnp.where(reinforces, CALL_AGAIN, state.cooldown),
    }


@batch_last
def play_step(state: State, action: jax.Array, params: Params) -> State:
    """Return the state after a legal order and the ticks of a step."""
    state = state._replace(**computed_once(order)(state, action))
    armed = computed_once(arm)(state, params)
    return jax.lax.fori_loop(0, TICKS, lambda _, state: tick(state, params, armed), state)
