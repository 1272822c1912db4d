"""Policy-space response oracles: double oracle with learned best responses (Lanctot et al. 2017).

Each new policy is a best response to the Nash equilibrium of the game of choosing a policy of the
population (arXiv:1711.00832; McMahan et al. 2003 for exact responses). Payoffs of that game are
estimated by playing; of its equilibria, the one of largest entropy is taken. ``population.py`` has
the loop.
"""

from __future__ import annotations

import numpy as np

from rlbench_suite.evaluation.statistics.games import nash_average

from .population import PopulationAgent


class PSRO(PopulationAgent):
    """The agent ``psro``."""

    name = "psro"
    needs_payoffs = True

    def meta_strategy(self, payoffs: np.ndarray) -> np.ndarray:
        """Return the Nash equilibrium of largest entropy."""
        return nash_average(payoffs).shares
