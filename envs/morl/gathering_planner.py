"""Reference player of Resource Gathering: dynamic programming on the map that it sees."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory

from .resource_gathering import DEATH, SIZE, ResourceGathering, Scene

STEP_COST = 1e-5
"""Cost of a step to the player, so that of equally good ways it takes the shortest."""


class Planner(eqx.Module):
    """The optimal player. It plans anew in each step.

    A value is the best expected weighted return from each cell with each loot. Of equally good ways
    it takes the shortest.
    """

    task: ResourceGathering = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: ResourceGathering) -> Planner:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the move with the best value."""
        scene = self.task.read_observation(view.observation)
        loot = scene.gold + 2 * scene.gem
        value = jax.lax.fori_loop(
            0,
            scene.steps_left - 1,
            lambda _, value: jnp.max(self.move_values(value, scene), 0),
            jnp.zeros((4, SIZE, SIZE), self.task.dtype),
        )
        values = self.move_values(value, scene)[:, loot, scene.row, scene.column]
        return jnp.argmax(values).astype(jnp.int32), memory

    def move_values(self, value: jax.Array, scene: Scene) -> jax.Array:
        """Return the value of each move, ``(4 moves, 4 loots, 5, 5)``.

        Args:
            value: value of each loot (nothing, gold, gem, both) in each cell after the move,
                ``(4, 5, 5)``.
            scene: the map and the weights.
        """
        nothing, gold, gem, gold_and_gem = value
        at_gold, at_gem = scene.gold_cell > 0.5, scene.gem_cell > 0.5
        value_with_loot = jnp.stack(
            [
                jnp.where(at_gold, gold, jnp.where(at_gem, gem, nothing)),
                jnp.where(at_gem, gold_and_gem, gold),
                jnp.where(at_gold, gold_and_gem, gem),
                gold_and_gem,
            ]
        )
        survived = jnp.where(
            scene.enemy_cells > 0.5,
            (1 - DEATH) * value_with_loot - DEATH * scene.death_weight,
            value_with_loot,
        )
        payoff = jnp.stack(
            [
                jnp.zeros_like(scene.gold_weight),
                scene.gold_weight,
                scene.gem_weight,
                scene.gold_weight + scene.gem_weight,
            ]
        )
        arrival = jnp.where(scene.home_cell > 0.5, payoff[:, None, None], survived) - np.asarray(
            STEP_COST, self.task.dtype
        )
        return jnp.stack(
            [
                jnp.concatenate([arrival[:, :1], arrival[:, :-1]], 1),
                jnp.concatenate([arrival[:, 1:], arrival[:, -1:]], 1),
                jnp.concatenate([arrival[:, :, :1], arrival[:, :, :-1]], 2),
                jnp.concatenate([arrival[:, :, 1:], arrival[:, :, -1:]], 2),
            ]
        )
