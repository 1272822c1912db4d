"""The contract of a player: a pytree with two pure functions.

Learned policies carry their weights as leaves; classical controllers, solvers and scripted players carry gains or
nothing. All run inside the same compiled episode loop (``adapters/rollout.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import jax

from rlbench_suite.card import load

if TYPE_CHECKING:
    from rlbench_suite.task import Task


class View(NamedTuple):
    """The input of a policy at a step of one episode.

    Learned agents use ``observation`` and ``action_mask`` only. A family's own reference player may also read state and
    params, as far as a practitioner would know them: a controller knows its plant, but the player of a word game must
    not read the hidden word.
    """

    observation: Any
    action_mask: jax.Array | None
    state: Any
    params: Any


def reference_player(task: Task[Any, Any]) -> Policy:
    """Return the family's own player of a task. The method ``for_task`` of the class that its card names makes it.

    Raises:
        ValueError: the task has none.
    """
    if not task.card.reference:
        raise ValueError(f"{task.card.id} has no reference player.")
    return player_for(task, task.card.reference)


def player_for(task: Task[Any, Any], entry_point: str) -> Policy:
    """Return the player that the method ``for_task`` of the class ``module:Class`` makes for a task."""
    player: Policy = load(entry_point).for_task(task)
    return player


@runtime_checkable
class Policy(Protocol):
    """A pytree (NamedTuple or ``equinox.Module``) with these two methods; ``memory`` is a pytree of arrays."""

    def initial(self, params: Any) -> Any:
        """Return the memory at the start of an episode (``()`` for a memoryless policy)."""
        ...

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action and the next memory."""
        ...
