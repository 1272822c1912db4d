"""Tell servers which queue to serve, so that waiting costs little.

Jobs of several classes arrive at random, and each class waits in a queue of its own. A server that
works on a class completes a job after an exponential time. It may leave a job and go on later, and
nothing is lost by that. The task is the uniformised chain of such a network (Lippman 1975,
doi:10.1287/opre.23.4.687): in every tick at most one thing happens, an arrival or the completion
of a job, each with a chance of its own. A completed job leaves, or joins the queue of the next
class.

=============  =====================================================================================
network        criss-cross (Harrison & Wein 1990, doi:10.1007/BF01225336): jobs of class 1 need
               server A; jobs of class 2 need server A and are then class 3, which needs server B
               single-server: classes 1 to 3 need the one server there is
               shared-server (Bell & Williams 2001, doi:10.1214/aoap/1015345343): server A works on
               class 1 only, server B on class 1 or 2
               two-stations (Rybko & Stolyar 1992): jobs of class 1 need server A, then, as class 2,
               server B; jobs of class 3 need server B, then, as class 4, server A
action         ``Discrete``: one class for each server that has a choice, or no work; a server
               without a choice always works. A server rests if no job of its class is left for it
observation    ``Box``: of each class the jobs that wait or are served (of 30), chance of an
               arrival a tick (of 0.5), cost of a job (of 3 money a tick); of each pair of server
               and class the chance that a job is completed in a tick; time left (of 256 ticks)
reward         minus the costs of all jobs in the network after the tick, in parts of the costs
               of the jobs at the start
termination    never: an episode shows 256 ticks
success        the costs so far are at most 0.75 of what the jobs of the start would have cost if
               they had stayed, without any arrivals
start          3 to 12 jobs of each class
context        load of the servers, 0.6..0.9, train and test in alternating bands; rates of service
               and shares of the classes; cost of each class 1..3. All are observed
difficulty     the network: criss-cross 0, single-server 1, shared-server 2, two-stations 3
=============  =====================================================================================

What is known:

* One server: serve the class of the largest c mu, its cost times its chance of completion. This is
  optimal over any horizon (Buyukkoc, Varaiya & Walrand 1985, doi:10.2307/1427064).
* Criss-cross: a job of class 2 leaves server A, but not the network. Which class is best depends
  on the queue of server B. Optimal average costs are published for six cases.
* Shared server: the c mu rule may send both servers to class 1, so that A rests while class 2
  grows without end.
* Two stations: the c mu rule serves the jobs that leave the network first. With a load below 1,
  queues may yet grow without end, because each server starves the other in turn.

A queue holds 300 jobs, and further ones are turned away. Within an episode none is ever full.
"""

from __future__ import annotations

import itertools
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.component import Component, scaled_component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from .inventory import ordered_sum

TICKS = 256
"""Ticks of an episode."""
ROOM = 300
"""Jobs that a queue holds."""
START = (3, 12)
"""Fewest and most jobs of a class at the start."""
SERVER_NAMES = "ab"
LOAD = (0.6, 0.9)
"""Range of the load: part of the time in which a server works if nothing is wasted."""
SERVICE_RATE = (1.0, 3.0)
"""Range of the rates of service, before chances a tick are made of them."""
COST = (1.0, 3.0)
"""Range of the cost of a job, money a tick."""
MAX_COST_SHARE = 0.75
"""Largest costs of an episode with success, by those of the jobs at the start."""
QUEUE_UNIT = 30.0
"""Jobs that the observation shows as 1."""
ARRIVAL_UNIT = 0.5
"""Chance of an arrival that the observation shows as 1."""


class Activity(NamedTuple):
    """Work of a server on a class; servers and classes are counted from 0."""

    server: int
    job_class: int
    next_class: int = -1
    """Class of a completed job; -1: it leaves"""


class Network(NamedTuple):
    """Structure of a queueing network."""

    classes: int
    arrivals: tuple[int, ...]
    """Classes that arrive from outside"""
    activities: tuple[Activity, ...]

    @property
    def servers(self) -> int:
        """Number of servers."""
        return 1 + max(activity.server for activity in self.activities)

    def activities_of(self, server: int) -> tuple[int, ...]:
        """Return the numbers of the activities of a server."""
        return tuple(i for i, work in enumerate(self.activities) if work.server == server)

    @property
    def allocations(self) -> tuple[tuple[int, ...], ...]:
        """Activity of each server for each action; -1 where it rests.

        The first action lets all servers rest that have a choice.
        """
        options = []
        for server in range(self.servers):
            activities = self.activities_of(server)
            options.append(activities if len(activities) == 1 else (-1, *activities))
        return tuple(itertools.product(*options))


NETWORKS = (
    Network(3, (0, 1), (Activity(0, 0), Activity(0, 1, 2), Activity(1, 2))),
    Network(3, (0, 1, 2), (Activity(0, 0), Activity(0, 1), Activity(0, 2))),
    Network(2, (0, 1), (Activity(0, 0), Activity(1, 0), Activity(1, 1))),
    Network(4, (0, 2), (Activity(0, 0, 1), Activity(1, 1), Activity(1, 2, 3), Activity(0, 3))),
)
"""Criss-cross, single server, shared server, two stations."""


class Params(NamedTuple):
    """Chances and costs."""

    arrival: tuple[Float, ...]
    """Chance that a job of each class arrives in a tick; 0 for classes that never do"""
    completion: tuple[Float, ...]
    """Chance that each activity completes a job in a tick"""
    cost: tuple[Float, ...]
    """Cost of a job of each class, money a tick"""


class State(NamedTuple):
    """Queues and the books so far."""

    queues: tuple[Int, ...]
    """Jobs of each class in the network, those in service included"""
    total_cost: Float
    """Money so far"""
    start_cost: Float
    """Cost of the jobs of the start, money a tick"""
    ticks: Int


class Queueing(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "jobs": "number of jobs in the network",
        "mean_cost": "costs of a tick, mean so far, money",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in range(len(NETWORKS)):
            raise ValueError(
                f"The difficulty of {card.id} is the number of a network, 0 to "
                f"{len(NETWORKS) - 1}, got {difficulty!r}."
            )
        self.number = int(difficulty or 0)
        self.network = network = NETWORKS[self.number]
        classes = network.classes
        self.action_space = spaces.Discrete(len(network.allocations))
        longest = np.full(classes, ROOM / QUEUE_UNIT)
        likeliest = np.full(classes, 1 / ARRIVAL_UNIT)
        bounded = np.ones(classes + len(network.activities) + 1)
        high = np.concatenate([longest, likeliest, bounded])
        self.observation_space = self.box(np.zeros(len(high)), high)
        self.reward_space = self.box(-math.ceil(1.001 * ROOM / START[0]), 0.0)

    # -- an episode --------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the load in the bands of the split, and the others alike for both splits."""
        unit = self.uniform(key, 12)
        load = alternating_bands(unit[0], split, *LOAD, bands=20)
        rates = tuple(_between(unit[1 + i], SERVICE_RATE) for i in range(4))
        costs = tuple(_between(unit[5 + i], COST) for i in range(self.network.classes))
        shares = tuple(unit[9 + i] for i in range(3))
        arrival, service = network_rates(self.number, load, rates, shares)
        return make_params(self.network, arrival, service, costs)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the queues of the start."""
        low, high = START
        unit = self.uniform(key, self.network.classes)
        queues = tuple(
            low + jnp.floor((high + 1 - low) * unit[i]).astype(jnp.int32)
            for i in range(self.network.classes)
        )
        zero = jnp.zeros((), self.dtype)
        return State(queues, zero, self.holding_cost(queues, params), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Play a tick: an arrival, the completion of a job, or nothing."""
        network = self.network
        event = self.uniform(key, 1)[0]
        queues = list(state.queues)
        end = jnp.zeros((), self.dtype)
        for job_class in network.arrivals:
            begin, end = end, end + params.arrival[job_class]
            queues[job_class] = queues[job_class] + ((begin <= event) & (event < end))
        allocations = jnp.asarray(network.allocations, jnp.int32)
        activities = [allocations[action, server] for server in range(network.servers)]
        jobs_left = list(state.queues)
        for server in range(network.servers):
            begin, end = end, end + server_chance(network, server, params)
            for i in network.activities_of(server):
                work = network.activities[i]
                is_busy = (activities[server] == i) & (jobs_left[work.job_class] > 0)
                jobs_left[work.job_class] = jobs_left[work.job_class] - is_busy
                is_done = is_busy & (begin <= event) & (event < begin + params.completion[i])
                queues[work.job_class] = queues[work.job_class] - is_done
                if work.next_class >= 0:
                    queues[work.next_class] = queues[work.next_class] + is_done
        queues_after = tuple(jnp.minimum(queue, ROOM).astype(jnp.int32) for queue in queues)
        return State(
            queues_after,
            state.total_cost + self.holding_cost(queues_after, params),
            state.start_cost,
            state.ticks + 1,
        )

    def holding_cost(self, queues: tuple[Int, ...], params: Params) -> Float:
        """Return the costs of all jobs for a tick, money."""
        return ordered_sum(
            [
                cost * queue.astype(self.dtype)
                for cost, queue in zip(params.cost, queues, strict=True)
            ]
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return queues, arrivals, costs, completions and time left; see the table."""
        return self.stack(
            *[queue * (1 / QUEUE_UNIT) for queue in state.queues],
            *[chance * (1 / ARRIVAL_UNIT) for chance in params.arrival],
            *[cost * (1 / COST[1]) for cost in params.cost],
            *params.completion,
            jnp.maximum(TICKS - state.ticks, 0) * (1 / TICKS),
        )

    def read_observation(self, observation: jax.Array) -> tuple[list[Float], Params]:
        """Return queues, chances and costs that an observation shows."""
        classes = self.network.classes
        activities = len(self.network.activities)
        entries = [observation[i] for i in range(3 * classes + activities)]
        arrival = tuple(ARRIVAL_UNIT * entry for entry in entries[classes : 2 * classes])
        cost = tuple(COST[1] * entry for entry in entries[2 * classes : 3 * classes])
        completion = tuple(entries[3 * classes :])
        queues = [jnp.round(QUEUE_UNIT * entry) for entry in entries[:classes]]
        return queues, Params(arrival, completion, cost)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        names = [f"class_{i + 1}" for i in range(self.network.classes)]
        return (
            *[
                scaled_component(f"{name}_jobs", "jobs that wait or are served", QUEUE_UNIT, "jobs")
                for name in names
            ],
            *[
                scaled_component(
                    f"{name}_arrival", "chance of an arrival from outside", ARRIVAL_UNIT, "1/tick"
                )
                for name in names
            ],
            *[
                scaled_component(f"{name}_cost", "cost of a job", COST[1], "money/tick")
                for name in names
            ],
            *[
                Component(
                    f"server_{SERVER_NAMES[work.server]}_class_{work.job_class + 1}",
                    "chance that the server completes a job of the class in a tick of work",
                    "1/tick",
                )
                for work in self.network.activities
            ],
            Component("time_left", "part of the episode that is still to come", f"{TICKS} ticks"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the choices of servers."""
        network = self.network
        meanings = {}
        for allocation in network.allocations:
            names, words = [], []
            for server, activity in enumerate(allocation):
                letter = SERVER_NAMES[server]
                if len(network.activities_of(server)) == 1:
                    continue
                if activity < 0:
                    names.append(f"{letter}_rests")
                    words.append(f"server {letter.upper()} rests")
                else:
                    job_class = network.activities[activity].job_class + 1
                    names.append(f"{letter}_class_{job_class}")
                    words.append(f"server {letter.upper()} works on class {job_class}")
            meanings["_".join(names)] = ", ".join(words)
        return singles(meanings)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return minus the costs of all jobs after the tick, in parts of those at the start."""
        return -self.holding_cost(next_state.queues, params) / state.start_cost

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return False: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        ticks = jnp.maximum(state.ticks, 1).astype(self.dtype)
        mean_cost = state.total_cost / ticks
        return {
            "success": (state.ticks > 0) & (mean_cost <= MAX_COST_SHARE * state.start_cost),
            "jobs": ordered_sum(list(state.queues)).astype(self.dtype),
            "mean_cost": mean_cost,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        choices = "; ".join(
            f"{number}: {component.meaning}"
            for number, component in enumerate(self.action_components())
        )
        return f"Answer with a number. {choices}."

    def describe(self, state: State, params: Params) -> str:
        """Describe queues, chances and costs."""
        lines = [
            f"Tick {int(state.ticks)} of {TICKS}. Costs so far are {float(state.total_cost):.1f}; "
            f"the jobs of the start cost {float(state.start_cost):.2f} a tick."
        ]
        for i, queue in enumerate(state.queues):
            lines.append(
                f"Class {i + 1}: {int(queue)} jobs, each costs {float(params.cost[i]):.3f} a tick; "
                f"chance of an arrival {float(params.arrival[i]):.4f} a tick."
            )
        for work, chance in zip(self.network.activities, params.completion, strict=True):
            goal = f"becomes class {work.next_class + 1}" if work.next_class >= 0 else "leaves"
            lines.append(
                f"Server {SERVER_NAMES[work.server].upper()} completes a job of class "
                f"{work.job_class + 1} with chance {float(chance):.4f} a tick; the job {goal}."
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw a bar of jobs for each class, as dark as they are dear, and the time left."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        ground = height - 40
        across = width / len(state.queues)
        for i, queue in enumerate(state.queues):
            left = i * across + 12
            top = ground - min(int(queue), 45) * 4
            shade = int(230 - 70 * float(params.cost[i]))
            if int(queue):
                canvas.rectangle((left, top, left + across - 24, ground), fill=(shade, shade, 255))
            canvas.text((left, ground + 4), f"class {i + 1}: {int(queue)}", fill="black")
        canvas.line((0, ground, width, ground), fill="black")
        fraction_left = max(0.0, 1 - int(state.ticks) / TICKS)
        canvas.rectangle((0, height - 10, fraction_left * width, height), fill="gray")
        return np.asarray(image)


def _between(unit: Float, ends: tuple[float, float]) -> Float:
    """Map a number in [0, 1) to a range."""
    low, high = ends
    return low + (high - low) * unit


def network_rates(
    number: int, load: Float, rates: tuple[Float, ...], units: tuple[Float, ...]
) -> tuple[tuple[Float, ...], tuple[Float, ...]]:
    """Return the arrival rate of each class and the service rate of each activity.

    Args:
        number: number of the network.
        load: load of its servers; that of server B of the criss-cross network is drawn apart.
        rates: four rates.
        units: three numbers in [0, 1), which choose the shares of the classes.
    """
    if number == 1:
        weights = [0.5 + unit for unit in units]
        total = ordered_sum(weights)
        arrival = [
            load * weight / total * rate for weight, rate in zip(weights, rates[:3], strict=True)
        ]
        return tuple(arrival), rates[:3]
    first, second = rates[:2]
    if number == 0:
        fraction = _between(units[0], (0.25, 0.75))
        through = load * (1 - fraction) * second
        return (load * fraction * first, through, 0 * load), (
            first,
            second,
            through / _between(units[1], LOAD),
        )
    if number == 2:
        fraction = _between(units[0], (0.1, 0.5))
        return (load * (first + fraction * second), load * (1 - fraction) * rates[2]), rates[:3]
    fractions = [_between(unit, (0.1, 0.4)) for unit in units[:2]]
    return (first, 0 * load, second, 0 * load), (
        first / (load * fractions[0]),
        first / (load * (1 - fractions[1])),
        second / (load * fractions[1]),
        second / (load * (1 - fractions[0])),
    )


def make_params(
    network: Network,
    arrival: tuple[Float, ...],
    service: tuple[Float, ...],
    costs: tuple[Float, ...],
) -> Params:
    """Return the uniformised chain of a network: rates become chances a tick, whose sum is 1."""
    fastest = [
        _largest([service[i] for i in network.activities_of(server)])
        for server in range(network.servers)
    ]
    total = ordered_sum([*arrival, *fastest])
    return Params(
        tuple(rate / total for rate in arrival), tuple(rate / total for rate in service), costs
    )


def server_chance(network: Network, server: int, params: Params) -> Float:
    """Return the chance that a tick is one of a server, at which its work may be completed."""
    return _largest([params.completion[i] for i in network.activities_of(server)])


def _largest(values: list[Float]) -> Float:
    largest = values[0]
    for value in values[1:]:
        largest = jnp.maximum(largest, value)
    return largest
