"""The reference player: the oracle program of the instruction's template. Beside it, a heuristic player.

They know only what was shown: the programs get a :class:`~.template.Sight`, in which everything that no API has
returned is 0 (``tests/tools/test_oracle.py`` changes all hidden cells and finds the same calls). They have no memory.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.policy import View, privileged_player

from .column_api import Part
from .column_apis import NUMBER_OF
from .column_apps import assistant
from .office_apps import OfficeApps
from .templates.column_template import call, choose, first, sight_of


@privileged_player
class Oracle(eqx.Module):
    """The player."""

    task: OfficeApps = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: OfficeApps) -> Oracle:
        """Make the player of a task."""
        return cls(task)

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory: the notebook says it all."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the next call, from the instruction and what was shown."""
        return self.task.oracle_call(sight_of(view.state, view.params.ask)), memory


class Hasty(Oracle):
    """A heuristic player: it takes the first row that fits, never refuses, and calls no API twice running."""

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the next call of the template's program but for refusals, or say that it is done."""
        see = sight_of(view.state, view.params.ask)
        refusal = NUMBER_OF[assistant.refuse.name]
        calls = [
            first([(holds & (action[Part.API] != refusal), action) for holds, action in one.plan(see)])
            for one in self.task.templates
        ]
        following = choose(see.ask.template, calls, jnp.zeros(len(Part), jnp.int32))
        return jnp.where(following[Part.API] == see.api, call(assistant.finish), following), memory
