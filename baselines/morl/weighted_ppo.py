"""PPO on a task with sampled preferences (``weighted.py``)."""

from __future__ import annotations

from ..ppo.agent import PPO
from .weighted import WeightedAgent


class WeightedPPO(WeightedAgent, PPO):
    """The agent ``weighted-ppo``, for the tasks of ``ppo`` with several objectives."""

    name = "weighted-ppo"
