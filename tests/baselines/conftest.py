"""Agents are tested on toys whose training takes less time than compiling it."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def compiled_quickly(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Compile with less optimisation by XLA and by its plainer way to emit kernels.

    Tests of real tasks (marked slow) optimise as users do.
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
