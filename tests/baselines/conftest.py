"""Agents are tested on toys whose training takes less time than compiling it."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def compiled_quickly(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Less optimisation by XLA and its plainer way to emit kernels,
    but for tests of real tasks (marked slow).
    """
    if request.node.get_closest_marker("slow") is None:
        jax.config.update("jax_disable_most_optimizations", True)
        compile = jax.stages.Lowered.compile
        options = {"xla_cpu_use_fusion_emitters": False}
        monkeypatch.setattr(
            jax.stages.Lowered, "compile", lambda lowered: compile(lowered, options)
        )
    yield
    jax.config.update("jax_disable_most_optimizations", False)
