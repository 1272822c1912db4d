"""Grow tomatoes with an outbreak of grey mould.

Leaves and fruit rot where the air is damp, and dry air costs heat.

The task is ``tomato.py`` except for this table; ``grey_mould.py`` has the model.

======================  ============================================================================
observation ``(24,)``   the 23 entries of ``tomato.py``, then the infected part of leaves and fruit
                        (10 %). Below 1 % nobody sees it: the entry is 0
outbreak (context)      on a day from 30 to 100 after planting, 0.2 % of leaves and fruit are
                        infected
mould                   grows up to 2.5 times a day in damp air near 21 degC, and not at all below
                        83.5 %. A tenth of what is infected rots a day and is taken out
======================  ============================================================================

Reward, cost and success are those of ``tomato.py``: rotten fruit is fruit lost.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..weather.records import DAY
from .grey_mould import rotten_part, spread_mould
from .tomato import Params, State, Tomato
from .tomato_sensors import ENTRIES, relative_humidity

MIN_OUTBREAK_STEP = 30 * DAY
"""steps: earliest outbreak"""
MAX_OUTBREAK_STEP = 100 * DAY
"""steps: latest outbreak"""
SPORES = 0.002
"""Part that is infected first"""
MIN_VISIBLE = 0.01
"""Smallest infected part that is seen"""
INFECTED_SCALE = 0.1
"""Scale of the infected part in observations"""
INFECTED_POSITION = len(ENTRIES)
"""Position of the infected part in an observation"""


class TomatoDisease(Tomato):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = Tomato.measures | {
        "infected": "part of leaves and fruit that mould has, %"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        space: Any = self.observation_space
        self.observation_space = self.box([*space.low, 0], [*space.high, 1 / INFECTED_SCALE])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw the season as for the tomato task, and the day of the outbreak."""
        u = self.uniform(jax.random.fold_in(key, 2), 1)[0]
        begin = jnp.floor(MIN_OUTBREAK_STEP + (MAX_OUTBREAK_STEP - MIN_OUTBREAK_STEP) * u).astype(
            jnp.int32
        )
        return super().sample_params(key, split)._replace(outbreak=begin)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return a healthy crop just planted."""
        return super().initial(key, params)._replace(infected=jnp.zeros((), self.dtype))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Grow as ever, then let mould spread in the air of the step's end, and rot."""
        next_state = super().transition(state, action, key, params)
        air, crop, _ = next_state.house
        exposed = jnp.where(state.steps == params.outbreak, SPORES, state.infected)
        infected = spread_mould(
            exposed, air.temperature, relative_humidity(air.vapour, air.temperature)
        )
        healthy = 1.0 - rotten_part(infected)
        crop = crop._replace(leaves=healthy * crop.leaves, fruit=healthy * crop.fruit)
        return next_state._replace(house=next_state.house._replace(crop=crop), infected=infected)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(24,)``; see the table."""
        visible = (1 / INFECTED_SCALE) * visible_part(state.infected)
        return jnp.concatenate([super().observation(state, key, params), self.stack(visible)])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        mould = Component(
            "infected",
            "part of leaves and fruit that is seen to have mould",
            f"{100 * INFECTED_SCALE:g} %",
        )
        return (*super().observation_components(), mould)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return super().info(state, params) | {"infected": 100.0 * state.infected}

    def describe(self, state: State, params: Params) -> str:
        """Describe what is measured, and how much mould is seen."""
        visible = 100 * float(visible_part(state.infected))
        return super().describe(state, params) + (
            f" Grey mould on {visible:.0f} % of leaves and fruit." if visible else ""
        )


def visible_part(infected: Any) -> Any:
    """Return the infected part as it is seen."""
    return jnp.where(infected >= MIN_VISIBLE, infected, 0.0)
