"""The reference player of CarDealer, which is Bayes-optimal against the whole population.

Dynamic programming finds its play.

The other side is one of the surpluses x 5 tempers x 4 levels of firmness, all equally likely
beforehand. That is what training can tell: surpluses and tempers are as frequent in the train
split, alone and together, and levels within 5 %. Which of the combinations are those of the test
split, the player does not know. What the other side does is determined by these, the round and the
agent's lowest demand m. So after each answer the player keeps the set B of those who would have
given it, and the state of play is (t, m, B, standing offer o). With V its value times the number of
B, z the surplus of each member, and w(g, z) what a deal pays (``task.worth``),

    V(t, m, B, o) = max( 0.95**t sum(w(o, z) over B),  max over demands d of the sum, over answers,
    of
                         0.95**t sum(w(d, z) over those who take d), or V(t + 1, min(m, d), those
                         who answer o', o') ).

Those who leave give 0: all with z < d do. A set is a Python integer. A process solves it once (a
few seconds for 64 steps); the player keeps the part that it can meet as a decision tree.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player

from .task import (
    DISCOUNT,
    FIRMNESS,
    ROUNDS,
    TEMPERS,
    CarDealer,
    Params,
    leaves,
    offer_table,
    sizes,
    worth,
)

ACCEPT = 0
"""The demand that stands for taking the offer."""


class Answer(NamedTuple):
    """An answer to a demand."""

    offer: int
    leaves: bool


def population(steps: int, split: int | None = None) -> list[tuple[int, int, int]]:
    """Return surplus, temper and firmness of everyone, or of a split, by rising surplus."""
    numbers = itertools.product(range(len(sizes(steps))), range(len(TEMPERS)), range(FIRMNESS))
    return [
        (sizes(steps)[size], k, f)
        for size, k, f in numbers
        if split is None or (size + k + f) % 2 == split
    ]


class Programme:
    """The dynamic programme over a population.

    Args:
        steps: Z.
        people: surplus, temper and firmness of each member, by rising surplus; everyone if None.
    """

    def __init__(self, steps: int, people: list[tuple[int, int, int]] | None = None) -> None:
        self.steps = steps
        self.people = population(steps) if people is None else people
        self.everyone = (1 << len(self.people)) - 1
        surpluses = [surplus for surplus, *_ in self.people]
        self._can_pay = [
            self.everyone >> bisect_left(surpluses, d) << bisect_left(surpluses, d)
            for d in range(steps + 1)
        ]
        table = offer_table(steps)
        self._answers: list[list[dict[Answer, int]]] = [
            [{} for _ in range(steps + 1)] for _ in range(ROUNDS + 1)
        ]
        for number, (z, k, f) in enumerate(self.people):
            for time in range(ROUNDS + 1):
                for lowest in range(steps + 1):
                    answer = Answer(int(table[k, f, z, time, lowest]), bool(leaves(k, f, time)))
                    sets = self._answers[time][lowest]
                    sets[answer] = sets.get(answer, 0) | 1 << number
        self._worth: dict[tuple[int, int], float] = {}
        self._solutions: dict[tuple[int, int, int], tuple[float, int]] = {}

    def openings(self) -> dict[int, int]:
        """Return who opens with each offer."""
        return {answer.offer: people for answer, people in self._answers[0][self.steps].items()}

    def answers(self, time: int, demand: int, lowest: int, people: int) -> list[tuple[Answer, int]]:
        """Return the answers to a demand in a round, each with the people that give it.

        People who cannot pay the demand are left out.
        """
        people &= self._can_pay[demand]
        answer_sets = self._answers[time + 1][min(lowest, demand)]
        return [
            (answer, people & members)
            for answer, members in answer_sets.items()
            if people & members
        ]

    def worth(self, gain: int, people: int) -> float:
        """Return the sum of what a deal with each of some people pays, before the discount."""
        if (gain, people) not in self._worth:
            members = (z for number, (z, *_) in enumerate(self.people) if people >> number & 1)
            self._worth[gain, people] = sum(worth(gain, z) for z in members)
        return self._worth[gain, people]

    def solve(self, time: int, lowest: int, people: int, offer: int) -> tuple[float, int]:
        """Return V and the best demand; :data:`ACCEPT` to take the offer."""
        state = time, lowest, people
        if state in self._solutions:
            return self._solutions[state]
        discount = DISCOUNT**time
        best = discount * self.worth(offer, people)
        choice = ACCEPT
        largest = self.people[people.bit_length() - 1][0]  # nobody pays more
        for demand in range(largest, 0, -1):
            value = 0.0
            for answer, members in self.answers(time, demand, lowest, people):
                if demand <= answer.offer:
                    value += discount * self.worth(demand, members)
                elif not answer.leaves:
                    value += self.solve(time + 1, min(lowest, demand), members, answer.offer)[0]
            if value > best + 1e-12:
                best = value
                choice = demand
        self._solutions[state] = best, choice
        return best, choice

    def value(self) -> float:
        """Return the best expected return."""
        total = sum(
            self.solve(0, self.steps, people, offer)[0] for offer, people in self.openings().items()
        )
        return total / len(self.people)


@cache
def decision_tree(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best play.

    No field of the player holds it, because ``jax.jit(player.act)`` needs a hash and arrays have
    none.

    Returns:
        The node by opening offer, int32 ``(Z + 1,)``; the demand at each node, int32 ``(nodes,)``,
        0 to take the offer; the next node by offer, int32 ``(nodes, Z + 1)``. -1 stands for no
        node.
    """
    programme = Programme(steps)
    nodes = [(0, steps, people, offer) for offer, people in programme.openings().items()]
    root = np.full(steps + 1, -1, np.int32)
    root[[offer for *_, offer in nodes]] = np.arange(len(nodes))
    demands = []
    children = []
    for time, lowest, people, offer in nodes:  # grows while it is read
        demand = programme.solve(time, lowest, people, offer)[1]
        child = np.full(steps + 1, -1, np.int32)
        for answer, members in (
            programme.answers(time, demand, lowest, people) if demand != ACCEPT else ()
        ):
            if demand > answer.offer and not answer.leaves:
                child[answer.offer] = len(nodes)
                nodes.append((time + 1, min(lowest, demand), members, answer.offer))
        demands.append(demand)
        children.append(child)
    return root, np.array(demands, np.int32), np.stack(children)


@privileged_player
class Haggler(eqx.Module):
    """The player. Off its tree (after demands of another player) it takes the offer."""

    steps: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: CarDealer) -> Haggler:
        """Make the player of a number of steps; the first call solves the programme."""
        decision_tree(task.steps)
        return cls(task.steps)

    def initial(self, params: Params) -> jax.Array:
        """Return no node."""
        return jnp.int32(-1)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Go to the node of the newest offer and return its demand."""
        state = view.state
        root, demands, child = (jnp.asarray(table) for table in decision_tree(self.steps))
        offer = jnp.where(np.arange(ROUNDS) == state.round, state.offers, 0).sum(dtype=jnp.int32)
        node = jnp.where(state.round == 0, root[offer], child[memory, offer])
        node = jnp.where((state.round > 0) & (memory < 0), -1, node).astype(jnp.int32)
        demand = jnp.where(node < 0, ACCEPT, demands[node])
        return jnp.where(demand == ACCEPT, self.steps, self.steps - demand).astype(jnp.int32), node


@privileged_player
class Demands(eqx.Module):
    """A heuristic player, which demands a multiple of the first offer and gives in step by step.

    It takes an offer that is as good as what it would demand.
    """

    first: Any
    """Multiple of the other side's first offer that it demands at first."""
    concession: Any
    """Fraction of that offer by which each demand is below the one before."""
    steps: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: CarDealer) -> Demands:
        """Make the player that begins with 2.5 times the first offer."""
        return cls(np.float32(2.5), np.float32(0.0625), task.steps)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Take the standing offer if it is as good as the demand, else demand."""
        t = view.state.round
        multiple = self.first - self.concession * t
        demand = jnp.clip((multiple * view.state.offers[0]).astype(jnp.int32), 1, self.steps)
        standing = view.state.offers[t]
        return jnp.where(standing >= demand, self.steps, self.steps - demand).astype(
            jnp.int32
        ), memory
