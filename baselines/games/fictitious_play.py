"""Fictitious play: each new policy is a best response to the even mixture of all before it.

In zero-sum games of two the even mixture of all responses comes ever closer to an equilibrium
(Brown 1951; Robinson 1951, doi:10.2307/1969530), also with approximate responses (Leslie & Collins
2006, doi:10.1016/j.geb.2005.08.005). Here PPO learns them; ``population.py`` has the loop.
"""

from __future__ import annotations

import numpy as np

from .population import PopulationAgent


class FictitiousPlay(PopulationAgent):
    """The agent ``fictitious-play``."""

    name = "fictitious-play"
    needs_payoffs = False

    def meta_strategy(self, payoffs: np.ndarray) -> np.ndarray:
        """Return equal probabilities of all responses.

        The untrained first policy counts until there is a response.
        """
        count = len(payoffs)
        if count == 1:
            return np.ones(1)
        return np.append(0.0, np.full(count - 1, 1 / (count - 1)))
