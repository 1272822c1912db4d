"""Lower bounds of observations that are cut off at +-1."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from rlbench_suite.core.component import Component


def lower_bounds(components: Iterable[Component], nonnegative: Collection[str]) -> np.ndarray:
    """Return 0 for each entry of the components that are ``nonnegative``, and else -1.

    Args:
        components: of the observation, in order.
        nonnegative: names of components that are never negative.
    """
    return np.concatenate(
        [
            np.full(component.size, 0.0 if component.name in nonnegative else -1.0)
            for component in components
        ]
    )
