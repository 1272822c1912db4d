"""Value decomposition networks: the value of a joint action is the sum of its agents' values.

The algorithm is that of Sunehag et al. 2018 (arXiv:1706.05296): one network for all agents, trained
on the reward of the team. ``joint_values.py`` has everything but the sum.
"""

from __future__ import annotations

from typing import Any

import jax

from .joint_values import JointValues, TeamAgent


class SummedValues(JointValues):
    """Mixes by a sum, which has no weights and reads no global state."""

    def initial_mixer(self, seed: int) -> Any:
        """Return None: a sum has no weights."""
        return None

    def state_size(self) -> int:
        """Return 0."""
        return 0

    def mix(self, mixer: Any, values: jax.Array, state: jax.Array) -> jax.Array:
        """Return the sum of the agents' values."""
        return values.sum(-1)


class VDN(TeamAgent):
    """The agent ``vdn``."""

    name = "vdn"
    algorithm_class = SummedValues
