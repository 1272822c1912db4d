"""Players of TowerDefence: the reference, a planner, and a newcomer who builds archers.

The reference is a fixed list of orders.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.numerics.reductions import sum_in_order

from .maps import SITES
from .orders import play_step
from .rules import BAT, BUILD, CALL, MOVE, OGRE, SELL, UPGRADE, VALUE, WAIT, WAVES, Params, State
from .task import TowerDefence

FORESIGHT_STEPS = 16
"""Steps that it looks ahead, in which it gives no further order."""
ASSUMED_WAVE = np.uint32(OGRE | 3 << 2 | BAT << 6 | 4 << 8)
"""Wave that it assumes where none is announced: three ogres, then four bats."""
TRIED_ORDERS = np.array([order for order in range(CALL) if not SELL <= order < MOVE], np.int32)
"""Orders that it tries: all but sales and calls."""
LOSS = 200_000
"""Worth of a life; that of an enemy's health is its distance from the entrance."""
PURSE = 4
"""Worth of a coin."""
WORTH = 12
"""Worth of a coin that has gone into towers."""

ROUTINE = np.array([45, 18, 19, 22, 23, 24, 30, 26, 27, 21, 31, 29, 20, 43, 28, 32, WAIT], np.int32)
"""Orders of the reference player, the most urgent first.

They are: reinforcements; mages on sites 2, 3, 6, 7 and 8; upgrades of 6, 2 and 3; a mage on site 5;
upgrades of 7 and 5; a mage on 4; the hero to post 3; upgrades of 4 and 8; wait.
"""


def first_legal(orders: np.ndarray, view: View) -> jax.Array:
    """Return the first order of a list that is legal."""
    return jnp.asarray(orders)[jnp.argmax(jnp.asarray(view.action_mask)[orders])]


class Routine(eqx.Module):
    """The reference player, which gives the first legal order of :data:`ROUTINE`.

    It does so whatever comes along the road.

    A random search on training episodes at ``hard`` found the list. Nothing better is known.
    """

    @classmethod
    def for_task(cls, task: TowerDefence) -> Routine:
        """Make the player; it is the same for every difficulty."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first order of the list that is legal."""
        return first_legal(ROUTINE, view), memory


@privileged_player
class Planner(eqx.Module):
    """A player that tries orders on the rules, and gives the one with the best future.

    It knows what the observation shows: the state, the road, and the waves that are announced. In
    place of the waves after those it assumes strong mixed ones.
    """

    @classmethod
    def for_task(cls, task: TowerDefence) -> Planner:
        """Make the player; it is the same for every difficulty."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the order after which the defence does best."""
        state: State = view.state
        announced = np.arange(WAVES) < state.wave + 2
        params: Params = view.params._replace(
            waves=jnp.where(announced, view.params.waves, ASSUMED_WAVE)
        )

        def worth(order: jax.Array) -> jax.Array:
            after = play_step(state, order, params)
            after = jax.lax.fori_loop(
                0, FORESIGHT_STEPS, lambda _, now: play_step(now, jnp.int32(WAIT), params), after
            )
            threat = sum_in_order(after.health * after.distance)
            invested = sum_in_order(jnp.asarray(VALUE)[after.towers])
            return PURSE * after.coins + WORTH * invested - LOSS * after.leaked - threat

        tried = jnp.asarray(TRIED_ORDERS)
        allowed = jnp.asarray(view.action_mask)[tried]
        best = jnp.argmax(jnp.where(allowed, jax.vmap(worth)(tried), jnp.iinfo(jnp.int32).min))
        return tried[best], memory


class Archers(eqx.Module):
    """A heuristic player, which builds an archer, the cheapest tower, on the first free site.

    It upgrades the first tower that it can.
    """

    @classmethod
    def for_task(cls, task: TowerDefence) -> Archers:
        """Make the player; it is the same for every difficulty."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first such order that is legal, else wait."""
        orders = np.array(
            [*range(BUILD, BUILD + SITES), *range(UPGRADE, UPGRADE + SITES), WAIT], np.int32
        )
        return first_legal(orders, view), memory
