"""Reference players and heuristic players of both offices.

The reference players follow the program of the instruction's template.

They know only what was shown: the programs of the compiled office get a
:class:`~.column_template.Sight`, in which everything that no API has returned is 0
(``tests/tools/test_oracle.py`` changes all hidden cells and finds the same calls), and the plans of
the large office get the rows that their calls show. They have no memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View, privileged_player

from .apps import assistant
from .apps.apis import COLUMN_API_NUMBERS, ROW_API_NUMBERS
from .apps.kinds import ActionPart
from .office_apps import OfficeApps
from .office_apps_large import MAX_CALLS, OfficeAppsLarge, Params, as_action
from .templates.column_template import call, choose, first_call_of, sight_of


@privileged_player
class Oracle(eqx.Module):
    """The reference player of the compiled office."""

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
    """A heuristic player, which takes the first row that fits.

    It never refuses, and calls no API twice running.
    """

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the next call of the template's program, or say that it is done.

        Refusals are left out.
        """
        see = sight_of(view.state, view.params.ask)
        refusal = COLUMN_API_NUMBERS[assistant.refuse.name]
        calls = [
            first_call_of(
                [
                    (holds & (action[ActionPart.API] != refusal), action)
                    for holds, action in template.plan(see)
                ]
            )
            for template in self.task.templates
        ]
        next_call = choose(see.ask.template, calls, jnp.zeros(len(ActionPart), jnp.int32))
        return jnp.where(
            next_call[ActionPart.API] == see.api, call(assistant.finish), next_call
        ), memory


@privileged_player
class LargeOracle(NamedTuple):
    """The reference player of the large office: it makes the calls of the template's plan."""

    size: int

    @classmethod
    def for_task(cls, task: OfficeAppsLarge) -> LargeOracle:
        """Make the player."""
        return cls(MAX_CALLS)

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Make the next call."""
        solution = jnp.asarray(view.params.solution).astype(jnp.int32)
        return solution[jnp.minimum(view.state.call_count, MAX_CALLS - 1)], memory


class LargeHasty(LargeOracle):
    """A heuristic player, which makes the calls of the plan but never refuses.

    It calls no API twice.
    """

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Make the next call, or say that it is done."""
        next_call, _ = super().act(memory, view, key)
        is_call = jnp.arange(MAX_CALLS) < view.state.call_count
        is_repeated = ((view.state.calls[:, 0] == next_call[0]) & is_call).any()
        is_refusal = next_call[0] == ROW_API_NUMBERS[assistant.REFUSE.name]
        finish = jnp.asarray(as_action((assistant.FINISH.name, {})))
        return jnp.where(is_repeated | is_refusal, finish, next_call).astype(jnp.int32), memory
