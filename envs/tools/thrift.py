"""The reward of a right answer where calls of tools count.

OTC (Wang et al. 2025, arXiv:2504.14870) multiplies the reward of a right answer by a factor that is 1 at the least
number of calls and falls to 0 with more. They estimate the least number from other attempts; here the task knows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp


def thrift(used: Any, least: Any, sin: Callable[[Any], Any] = jnp.sin) -> Any:
    """Return sin(f pi / (2 least)) with f = 2 used least / (used + least), from 1 down towards 0.

    Args:
        used: calls made, at least ``least``.
        least: fewest calls by which a player can be sure to succeed, at least 1.
        sin: ``math.sin`` on the host.
    """
    excess = used - least
    excess = excess * (excess > 0)  # a lucky player may need fewer
    return sin(math.pi / (2 + excess / least) * (1 + excess / least))
