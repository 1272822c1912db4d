"""Reference player of TowerDefence: it tries orders on the rules, and gives the one with the best future.

It knows what the observation shows: the state, the road, and the waves that are announced. In place of the waves after
those it assumes strong mixed ones.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.policy import View
from rlbench_suite.reductions import summed

from .tower_defence import TowerDefence
from .tower_defence_maps import SITES
from .tower_defence_orders import play_step
from .tower_defence_rules import BAT, BUILD, CALL, MOVE, OGRE, SELL, UPGRADE, VALUE, WAIT, WAVES, Params, State

AHEAD = 16
"""Steps that it looks ahead, in which it gives no further order."""
ASSUMED = np.uint32(OGRE | 3 << 2 | BAT << 6 | 4 << 8)
"""Wave that it assumes where none is announced: three ogres, then four bats."""
TRIED = np.array([order for order in range(CALL) if not SELL <= order < MOVE], np.int32)
"""Orders that it tries: all but sales and calls."""
LOSS, PURSE, WORTH = 200_000, 4, 12
"""Worth of a life, of a coin, and of a coin that has gone into towers; that of an enemy's health is its way so far."""


class Planner(eqx.Module):
    """The player."""

    @classmethod
    def for_task(cls, task: TowerDefence) -> Planner:
        """Make the player; it is the same for every difficulty."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the order after which the defence does best."""
        state: State = view.state
        announced = np.arange(WAVES) < state.wave + 2
        params: Params = view.params._replace(waves=jnp.where(announced, view.params.waves, ASSUMED))

        def worth(order: jax.Array) -> jax.Array:
            after = play_step(state, order, params)
            after = jax.lax.fori_loop(0, AHEAD, lambda _, now: play_step(now, jnp.int32(WAIT), params), after)
            threat = summed(after.health * after.place)
            invested = summed(jnp.asarray(VALUE)[after.towers])
            return PURSE * after.coins + WORTH * invested - LOSS * after.leaked - threat

        tried = jnp.asarray(TRIED)
        allowed = jnp.asarray(view.action_mask)[tried]
        best = jnp.argmax(jnp.where(allowed, jax.vmap(worth)(tried), jnp.iinfo(jnp.int32).min))
        return tried[best], memory


class Archers(eqx.Module):
    """A heuristic player: it builds an archer, the cheapest tower, on the first free site, and upgrades the first."""

    @classmethod
    def for_task(cls, task: TowerDefence) -> Archers:
        """Make the player; it is the same for every difficulty."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first such order that is legal, else wait."""
        orders = np.array([*range(BUILD, BUILD + SITES), *range(UPGRADE, UPGRADE + SITES), WAIT], np.int32)
        allowed = jnp.asarray(view.action_mask)[orders]
        return jnp.asarray(orders)[jnp.argmax(allowed)], memory
