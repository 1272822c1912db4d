"""Players of queueing networks: a dynamic programme over short queues, and two rules.

The programme computes the least expected costs of the next n ticks for queues below a limit. An
arrival at a full queue is valued by linear extrapolation. The player keeps the values for n = 1,
2, 4, ..., 128 ticks and uses the largest n that the time left allows. It treats longer queues as if
they were at the limit. So it is the optimum but for long queues, and for the values of times
between the tables.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import FloatArray, Int
from rlbench_suite.core.policy import View, no_memory, privileged_player

from .inventory import ordered_sum
from .queueing import TICKS, Network, Params, Queueing

LIMITS = {2: 32, 3: 20, 4: 12}
"""Lengths of a queue that the programme knows, by number of classes."""
DOUBLINGS = 8
"""Number of tables of values: for 1, 2, 4, ..., 128 ticks."""


@privileged_player
class QueueProgramme(eqx.Module):
    """The player of this file's docstring. It reads from the params only what is observed."""

    network: Network = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Queueing) -> QueueProgramme:
        """Return the player of a network."""
        return cls(task.network)

    def initial(self, params: Params) -> FloatArray:
        """Return the tables of values, ``(8, limit, ..., limit)``."""
        return value_tables(self.network, params)

    def act(self, memory: FloatArray, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action with the largest gain, and the tables."""
        network, params = self.network, view.params
        ticks_left = jnp.maximum(TICKS - 1 - view.state.ticks, 1)
        exponent = 31 - jax.lax.clz(ticks_left.astype(jnp.int32))
        values = memory[jnp.minimum(exponent, DOUBLINGS - 1)]
        longest = LIMITS[network.classes] - 2  # a job that joins a queue stays within the table
        queues = [jnp.minimum(queue, longest) for queue in view.state.queues]

        def costs_ahead(queues: list[Int]) -> jax.Array:
            terms = [cost * queue for cost, queue in zip(params.cost, queues, strict=True)]
            return ordered_sum(terms) + values[tuple(queues)]

        present = costs_ahead(queues)
        gains = []
        for work, chance in zip(network.activities, params.completion, strict=True):
            moved = list(queues)
            moved[work.job_class] = jnp.maximum(moved[work.job_class] - 1, 0)
            if work.next_class >= 0:
                moved[work.next_class] = moved[work.next_class] + 1
            gains.append(chance * (present - costs_ahead(moved)))
        return best_action(network, gains, view.state.queues), memory


class CostRule(eqx.Module):
    """The c mu rule: each server serves the queue whose costs fall fastest.

    It takes for each class the cost of a job less that of the class which the job joins, times the
    chance of completion. A server rests if every job would become dearer.
    """

    task: Queueing = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Queueing) -> CostRule:
        """Return the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action with the largest gain, from the observation."""
        network = self.task.network
        queues, params = self.task.read_observation(view.observation)
        costs = [*params.cost, 0.0]  # the last one is that of jobs that have left
        gains = [
            chance * (costs[work.job_class] - costs[work.next_class])
            for work, chance in zip(network.activities, params.completion, strict=True)
        ]
        return best_action(network, gains, queues), memory


class MaxPressure(eqx.Module):
    """The rule of the largest pressure (Tassiulas & Ephremides 1992, doi:10.1109/9.182479).

    The pressure on a class is the costs of its queue less those of the queue that its jobs join.
    Each server takes the largest pressure times the chance of completion. No queue grows without
    end under this rule while the load is below 1, but it knows no difference between a long queue
    of cheap jobs and a short one of dear jobs.
    """

    task: Queueing = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Queueing) -> MaxPressure:
        """Return the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action with the largest pressure, from the observation."""
        network = self.task.network
        queues, params = self.task.read_observation(view.observation)
        costs = [cost * queue for cost, queue in zip(params.cost, queues, strict=True)]
        costs.append(jnp.zeros_like(costs[0]))  # of jobs that have left
        gains = [
            chance * (costs[work.job_class] - costs[work.next_class])
            for work, chance in zip(network.activities, params.completion, strict=True)
        ]
        return best_action(network, gains, queues), memory


def action_gain(network: Network, action: int, gains: list[Any], queues: Any) -> Any:
    """Return the sum of the gains of all activities of an action that have a job to work on.

    Args:
        network: the network.
        action: number of the action.
        gains: expected fall of the costs by each activity in a tick.
        queues: jobs of each class.
    """
    total = jnp.zeros_like(gains[0])
    claimed_jobs = [0] * network.classes
    for activity in network.allocations[action]:
        if activity >= 0:
            job_class = network.activities[activity].job_class
            has_job = queues[job_class] > claimed_jobs[job_class]
            total = total + jnp.where(has_job, gains[activity], 0)
            claimed_jobs[job_class] += 1
    return total


def best_action(network: Network, gains: list[Any], queues: Any) -> Int:
    """Return the action of the largest gain; of equal ones the first."""
    actions = range(len(network.allocations))
    totals = [action_gain(network, action, gains, queues) for action in actions]
    return jnp.argmax(jnp.stack(totals)).astype(jnp.int32)


def value_tables(network: Network, params: Params) -> FloatArray:
    """Return the least expected costs of the next 1, 2, 4, ... ticks, by queues: ``(8, ...)``."""
    classes, limit = network.classes, LIMITS[network.classes]
    queues = jnp.meshgrid(*[jnp.arange(limit)] * classes, indexing="ij")
    costs = [cost * queue for cost, queue in zip(params.cost, queues, strict=True)]
    present_cost = ordered_sum(costs)

    def one_more(values: FloatArray, axis: int) -> FloatArray:
        """Return the values of queues with one job more."""
        last = jax.lax.slice_in_dim(values, limit - 1, limit, axis=axis)
        last_but_one = jax.lax.slice_in_dim(values, limit - 2, limit - 1, axis=axis)
        longer = jax.lax.slice_in_dim(values, 1, limit, axis=axis)
        return jnp.concatenate([longer, 2 * last - last_but_one], axis)

    def one_less(values: FloatArray, axis: int) -> FloatArray:
        """Return the values of queues with one job less."""
        first = jax.lax.slice_in_dim(values, 0, 1, axis=axis)
        return jnp.concatenate([first, jax.lax.slice_in_dim(values, 0, limit - 1, axis=axis)], axis)

    def step_back(values: FloatArray, _: None) -> tuple[FloatArray, None]:
        ahead = present_cost + values
        rises = [params.arrival[i] * (one_more(ahead, i) - ahead) for i in network.arrivals]
        gains = []
        for work, chance in zip(network.activities, params.completion, strict=True):
            after = one_less(ahead, work.job_class)
            if work.next_class >= 0:
                after = one_more(after, work.next_class)
            gains.append(chance * (ahead - after))
        best = action_gain(network, 0, gains, queues)
        for action in range(1, len(network.allocations)):
            best = jnp.maximum(best, action_gain(network, action, gains, queues))
        return ahead + ordered_sum(rises) - best, None

    values = jnp.zeros_like(present_cost)
    tables = []
    for doubling in range(DOUBLINGS):
        ticks = 2 ** max(doubling - 1, 0)
        values, _ = jax.lax.scan(step_back, values, None, ticks)
        tables.append(values)
    return jnp.stack(tables)
