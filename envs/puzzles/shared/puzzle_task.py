"""The base of every interactive puzzle.

Its contexts come from a bank of instances, and its reference player is the exact solver.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.bank import STOP, Bank, bank_of_both_splits
from rlbench_suite.puzzle.puzzle import Puzzle

State = TypeVar("State")


class Params(NamedTuple):
    """The context of an episode: an instance, and actions that solve it."""

    instance: Any
    """The puzzle's own ``NamedTuple``."""
    plan: jax.Array
    """int16 ``(longest,)``: the exact solver's actions, then ``STOP``.

    Only the reference player may read it.
    """


class PuzzleTask(Task[Params, State], Generic[State]):
    """A puzzle to play step by step. Instance ``i`` of a split is ``puzzle.generate(i, split)``.

    Subclasses name the puzzle and define state, transition, observation and reward.
    """

    #: The one-shot form: generator, verifier, solver.
    puzzle_class: ClassVar[type[Puzzle[Any]]]
    #: Number of instances of each split.
    bank_size: ClassVar[int] = 1024

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None:
            raise ValueError(f"{card.id} has difficulties: {', '.join(card.difficulties)}.")
        self.puzzle = self.puzzle_class(difficulty)

    @cached_property
    def bank(self) -> Bank:
        """Instances of both splits; loaded or built when the first episode begins."""
        return bank_of_both_splits(self.puzzle, self.bank_size)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return a uniformly random instance of the split's bank."""
        bits = jax.random.key_data(key)[0]  # a key is random enough
        number = split * self.bank_size + (bits % np.uint32(self.bank_size)).astype(jnp.int32)
        return Params(
            *jax.tree.map(
                lambda column: jnp.asarray(column)[number], (self.bank.instances, self.bank.plans)
            )
        )


@privileged_player
class SolverPlayer(NamedTuple):
    """Player of the actions that the exact solver found when the bank was built."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> SolverPlayer:
        """Return the player; it plays any puzzle with a bank."""
        return cls()

    def initial(self, params: Params) -> jax.Array:
        """Begin at the first action of the plan."""
        return jnp.int32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the next action; after the end of the plan, the first legal one."""
        action = view.params.plan[jnp.minimum(memory, view.params.plan.shape[0] - 1)].astype(
            jnp.int32
        )
        legal_action = (
            jnp.int32(0)
            if view.action_mask is None
            else jnp.argmax(view.action_mask).astype(jnp.int32)
        )
        return jnp.where(action == STOP, legal_action, action), memory + 1
