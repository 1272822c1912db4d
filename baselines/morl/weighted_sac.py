"""SAC on a task with sampled preferences (``weighted.py``)."""

from __future__ import annotations

from ..replay.sac import SAC
from .weighted import WeightedAgent


class WeightedSAC(WeightedAgent, SAC):
    """The agent ``weighted-sac``, for several objectives and bounded continuous actions."""

    name = "weighted-sac"
