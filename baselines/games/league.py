"""A league: a main agent that trains against itself, its past and those who exploit it.

After Vinyals et al. 2019 (doi:10.1038/s41586-019-1724-z), with one agent of each of their kinds.
They train in turn, and the league keeps a copy of each at the end of its turn:

================  ==================================================================================
main agent        trains on, against its last copy and against all copies, those that beat it most
                  often above all
main exploiter    begins anew, and trains against the last copy of the main agent alone: it shows
                  what the main agent does wrong
league exploiter  begins anew, and trains against all copies, those that beat its last copy most
                  often above all: it shows what the whole league does wrong
================  ==================================================================================

The result is the main agent. ``population.py`` has the loop. A mean return stands for the rate of
wins where games are won by more or less, such as in poker.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from .population import PopulationAgent

SELF_PLAY = 0.35
"""Share of the main agent's games against its own last copy (table 1 of its methods)."""


class Role(IntEnum):
    """Kinds of agents, in the order of their turns."""

    MAIN = 0
    MAIN_EXPLOITER = 1
    LEAGUE_EXPLOITER = 2


def role(place: int) -> Role:
    """Return who trains for a place of the league; place 0 is the untrained policy."""
    return Role((place - 1) % len(Role))


def last_place(kind: Role, place: int) -> int:
    """Return the last place below ``place`` of an agent of a kind, or 0."""
    return max((p for p in range(1, place) if role(p) is kind), default=0)


def prioritised(payoffs: np.ndarray, place: int) -> np.ndarray:
    """Return how often to play each member, ``(k,)``, to learn from those who beat a member.

    The weight of a member is ``(1 - p) ** 2``, where ``p`` is the rate of wins against it.
    """
    scale = max(float(np.abs(payoffs).max()), 1e-9)
    wins = (1 + payoffs[place] / scale) / 2
    weights: np.ndarray = (1 - wins) ** 2
    return weights / weights.sum()


class League(PopulationAgent):
    """The agent ``league``."""

    name = "league"
    needs_payoffs = True

    def predecessor(self, place: int) -> int:
        """Return the last copy of the main agent, or the untrained policy for an exploiter."""
        return last_place(Role.MAIN, place) if role(place) is Role.MAIN else 0

    def meta_strategy(self, payoffs: np.ndarray) -> np.ndarray:
        """Return how often the next agent meets each member."""
        place = len(payoffs)
        itself = np.eye(place)[last_place(Role.MAIN, place)]
        if role(place) is Role.MAIN_EXPLOITER:
            return itself
        rivals = prioritised(payoffs, last_place(role(place), place))
        if role(place) is Role.LEAGUE_EXPLOITER:
            return rivals
        strategy: np.ndarray = SELF_PLAY * itself + (1 - SELF_PLAY) * rivals
        return strategy

    def last_strategy(self, payoffs: np.ndarray) -> np.ndarray:
        """Return the last copy of the main agent, with certainty."""
        place = len(payoffs)
        copy: np.ndarray = np.eye(place)[last_place(Role.MAIN, place)]
        return copy
