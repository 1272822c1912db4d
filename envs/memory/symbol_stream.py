"""Tasks that show one of four symbols at each step, and ask about an earlier one."""

from __future__ import annotations

from typing import Any

import jax

from rlbench_suite.core.component import Component, singles

from .symbols import COLOURS, Params, State, SymbolTask, Tally, symbol_at

SYMBOLS = COLOURS[:4]


class SymbolStream(SymbolTask[State]):
    """A task whose state has a register of symbols, ``register``, and answers so far, ``tally``."""

    def observation(self, state: Any, key: jax.Array, params: Params) -> jax.Array:
        """Return the symbol shown, one-hot: ``(4,)``."""
        return self.one_hot(symbol_at(state.register, 0), len(SYMBOLS))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return singles({name: f"whether {name} is shown" for name in SYMBOLS})

    def tally(self, state: Any) -> Tally:
        """Return the answers so far."""
        tally: Tally = state.tally
        return tally

    def tiles(self, state: Any) -> list[tuple[int | None, str]]:
        """Return the symbol shown."""
        return [(int(symbol_at(state.register, 0)), "now")]

    def describe(self, state: Any, params: Params) -> str:
        """Name the symbol shown."""
        return f"Shown: {SYMBOLS[int(symbol_at(state.register, 0))]}"
