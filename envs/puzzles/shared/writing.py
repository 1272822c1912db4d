"""Puzzles whose solution is written down from left to right, a token a step.

=============  =====================================================================================
action         the token that comes next, ``Discrete(tokens)``
observation    the puzzle's flags: what tells the next token
reward         1 / (tokens to write) for each right token, +1 for the last
termination    everything is written, or a token was wrong
=============  =====================================================================================

There is one right token at a time; a wrong one ends the episode with what was earned. The best
return is 2.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from . import parsing
from .puzzle_task import Params, PuzzleTask


class WritingState(NamedTuple):
    """The part written so far."""

    written: jax.Array
    """int32: right tokens so far."""
    failed: jax.Array
    """bool: a token was wrong."""


class WritingTask(PuzzleTask[WritingState]):
    """The interactive form."""

    measures: ClassVar[dict[str, str]] = {"written": "fraction of the tokens that are written"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = spaces.Discrete(len(self.tokens))
        self.observation_space = self.box(0.0, 1.0, (self.flag_count,))
        self.reward_space = self.box(0.0, 2.0)

    # -- what a puzzle defines ---------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def tokens(self) -> Sequence[str]:
        """Names of the tokens."""

    @property
    @abc.abstractmethod
    def flag_count(self) -> int:
        """Number of :meth:`flags`."""

    @abc.abstractmethod
    def length(self, instance: Any) -> jax.Array | int:
        """Return the number of tokens to write, int32."""

    @abc.abstractmethod
    def next_token(self, written: jax.Array, instance: Any) -> jax.Array:
        """Return the token that follows this many tokens, int32.

        After the last one it may be anything.
        """

    @abc.abstractmethod
    def flags(self, written: jax.Array, instance: Any) -> Sequence[jax.Array]:
        """Return the flags that are observed after this many tokens.

        They are arrays of any shapes with entries 0 and 1.
        """

    @abc.abstractmethod
    def observation_components(self) -> tuple[Component, ...]:
        """Describe the flags."""

    # -- the task ----------------------------------------------------------------------------------

    def initial(self, key: jax.Array, params: Params) -> WritingState:
        """Begin with nothing written."""
        return WritingState(jnp.int32(0), jnp.bool_(False))

    def transition(
        self, state: WritingState, action: jax.Array, key: jax.Array, params: Params
    ) -> WritingState:
        """Write a token, or fail."""
        correct = action == self.next_token(state.written, params.instance)
        return WritingState(state.written + correct, ~correct)

    def observation(self, state: WritingState, key: jax.Array, params: Params) -> jax.Array:
        """Return the puzzle's flags."""
        flags = self.flags(state.written, params.instance)
        return jnp.concatenate([flag.astype(self.dtype).reshape(-1) for flag in flags])

    def reward(
        self,
        state: WritingState,
        action: jax.Array,
        next_state: WritingState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return a share for a right token, plus 1 for the last one."""
        correct, length = next_state.written - state.written, self.length(params.instance)
        last = (correct > 0) & (next_state.written == length)
        return correct.astype(self.dtype) / length + last.astype(self.dtype)

    def terminal(self, state: WritingState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether all tokens are written, or a token was wrong."""
        return state.failed | (state.written == self.length(params.instance))

    def info(self, state: WritingState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: everything is written."""
        length = self.length(params.instance)
        return {
            "success": state.written == length,
            "written": state.written.astype(self.dtype) / length,
        }

    # -- host side ---------------------------------------------------------------------------------

    def parse(self, text: str, state: WritingState, params: Params) -> np.ndarray:
        """Read the name of a token.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(parsing.word(text.strip(), self.tokens), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: WritingState, params: Params) -> str:
        """Return the name of the token."""
        return self.tokens[int(action)]

    def why_over(self, state: WritingState, params: Params, info: dict[str, Any]) -> str:
        """Say whether it is done or failed."""
        if not bool(state.failed):
            return "everything is written"
        token = self.tokens[int(self.next_token(state.written, params.instance))]
        return f"that was wrong: {token} comes next"
