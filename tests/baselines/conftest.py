"""Agents are tested on toys whose training takes less time than compiling it."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def compiled_quickly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Less optimisation by XLA, but for tests of real tasks (marked slow)."""
    jax.config.update("jax_disable_most_optimizations", request.node.get_closest_marker("slow") is None)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
