"""Dispatch the operations of jobs to machines, so that the last one ends early.

The job shop of Muth & Thompson 1963: each of n jobs visits each of m machines once, in an order of
its own. A machine works on one operation at a time and never interrupts it. Durations are uniform
and routes are random permutations, as in Taillard 1993 (doi:10.1016/0377-2217(93)90182-M).

An action dispatches the next operation of a job: it starts as soon as both the job and its machine
are free, after all that was dispatched before. Operations are never put into a gap left earlier.

Only jobs of the conflict set of Giffler & Thompson 1960 (doi:10.1287/opre.8.4.487) may be
dispatched. Of all next operations, take the one that could end first. Legal are the jobs whose next
operation needs the same machine and could start before that end. These choices make exactly the
active schedules, one of which is optimal: no schedule is worth making in another way.

=============  =====================================================================================
action         ``Discrete(n)``: the job whose next operation is dispatched
observation    ``Box``: of each job, durations of its operations (of 100), in the order of machines;
               of each job, place of each machine in its route (of m - 1); then of each job its
               operations dispatched (of m), the time at which it is free, the time at which its
               next operation could start, and its work left; then of each machine the time at which
               it is free. Times are in parts of the lower bound
reward         minus the growth of the makespan, in parts of the lower bound: the longest job or the
               longest work of a machine, whichever is longer. An illegal action costs 1
termination    all operations are dispatched
success        all operations are dispatched, and the makespan is at most that of the better of two
               priority rules: most work remaining in active and in non-delay schedules
context        routes and durations. Durations are whole, uniform over 1..5, 11..15, ..., 91..95 in
               training and over 6..10, 16..20, ..., 96..100 in tests
difficulty     n = m: easy 4, medium 6, hard 10
=============  =====================================================================================
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Flag, FlagArray, Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.reductions import reduce_in_order

SIZES = (2, 10)
"""Smallest and largest number of jobs, and of machines. The horizon has 100 steps."""
MAX_DURATION = 100
DURATION_BANDS = 10
"""Bands of ten durations: five of training and five of tests."""
NEVER = 2**30
"""Time of what does not happen."""
RULES = 3
"""Priority rules: non-delay with most work, active with most work, non-delay with least work."""
COLOURS = (
    "steelblue", "darkorange", "seagreen", "firebrick", "mediumpurple", "sienna", "orchid", "gray",
    "olive", "turquoise",
)  # fmt: skip


class Params(NamedTuple):
    """The instance."""

    durations: IntArray
    """Durations of each job's operations, in the order of its route, ``(n, m)``"""
    machines: IntArray
    """Machines of each job's operations, in the order of its route, ``(n, m)``"""
    bound: Int
    """Lower bound of the makespan: longest job or longest work of a machine"""
    rule_makespan: Int
    """Makespan of the better of two priority rules"""


class Shop(NamedTuple):
    """Progress of jobs and machines, enough to go on."""

    dispatched: IntArray
    """Operations of each job that are dispatched, ``(n,)``"""
    job_free: IntArray
    """Time at which each job is free, ``(n,)``"""
    machine_free: IntArray
    """Time at which each machine is free, ``(m,)``"""


class State(NamedTuple):
    """The schedule so far."""

    shop: Shop
    starts: IntArray
    """Start of each job's operations, in the order of its route, ``(n, m)``; -1: not dispatched"""
    makespan: Int
    """End of the last operation dispatched"""
    steps: Int
    """Operations dispatched"""


class NextOperations(NamedTuple):
    """The next operation of each job, ``(n,)`` each; ``NEVER`` times of jobs that are done."""

    machine: IntArray
    start: IntArray
    end: IntArray
    work_left: IntArray
    """Durations of this operation and those after it"""


class JobShop(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "makespan": "end of the last operation dispatched so far",
        "gap": "makespan by its lower bound, less 1",
    }
    picture_shape = (240, 400, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        smallest, largest = SIZES
        if (
            difficulty is None
            or difficulty != int(difficulty)
            or not smallest <= difficulty <= largest
        ):
            raise ValueError(
                f"The difficulty of {card.id} is a number of jobs and machines, {smallest} to "
                f"{largest}, got {difficulty!r}."
            )
        #: Number of jobs, and of machines.
        self.size = n = int(difficulty)
        times = np.full(3 * n, float(n))
        work = np.ones(n)
        high = np.concatenate([np.ones(2 * n * n + n), times[: 2 * n], work, times[2 * n :]])
        self.observation_space = self.box(np.zeros(len(high)), high)
        self.action_space = spaces.Discrete(n)
        self.reward_space = self.box(-1.0, 0.0)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample durations in the bands of the split, and routes alike for both splits."""
        n = self.size
        unit = self.uniform(key, 2 * n * n).reshape(2, n, n)
        return make_params(durations_of(unit[0], split), permutations_of(unit[1]))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start with nothing dispatched."""
        return empty_schedule(*params.durations.shape)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Dispatch the next operation of a job."""
        operations = next_operations(state.shop, params)
        is_job = jnp.arange(len(state.shop.dispatched)) == action
        is_operation = jnp.arange(params.durations.shape[1]) == state.shop.dispatched[action]
        start = operations.start[action]
        return State(
            dispatch(state.shop, operations, action),
            jnp.where(is_job[:, None] & is_operation, start, state.starts),
            jnp.maximum(state.makespan, operations.end[action]),
            state.steps + 1,
        )

    def action_mask(self, state: State, params: Params) -> FlagArray:
        """Return the conflict set, ``(n,)``."""
        return conflict_set(next_operations(state.shop, params))

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say why a job is not in the conflict set."""
        job = int(action)
        if int(state.shop.dispatched[job]) == params.durations.shape[1]:
            return f"all operations of job {job} are dispatched"
        return (
            f"the next operation of job {job} can wait: another machine, or this one before job "
            f"{job} could start, may end an operation first"
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return instance and schedule, ``(2 n n + 5 n,)``; see the table."""
        n = self.size
        operations = next_operations(state.shop, params)
        by_machine = jnp.argsort(params.machines, axis=1).astype(jnp.int32)
        durations = jnp.take_along_axis(params.durations, by_machine, axis=1)
        is_done = state.shop.dispatched == n
        starts = jnp.where(is_done, state.shop.job_free, operations.start)
        times = jnp.concatenate(
            [state.shop.job_free, starts, operations.work_left, state.shop.machine_free]
        )
        return jnp.concatenate(
            [
                durations.reshape(-1).astype(self.dtype) * (1 / MAX_DURATION),
                by_machine.reshape(-1).astype(self.dtype) * (1 / (n - 1)),
                state.shop.dispatched.astype(self.dtype) * (1 / n),
                times.astype(self.dtype) / params.bound.astype(self.dtype),
            ]
        )

    def read_observation(self, observation: jax.Array) -> tuple[Shop, Params]:
        """Return progress and instance that an observation shows."""
        n = self.size
        fields = jnp.split(observation, np.cumsum([n * n, n * n, n, n, n, n]))
        scaled_durations, places, progress, job_times, _, _, machine_times = fields
        by_machine = jnp.round(places.reshape(n, n) * (n - 1)).astype(jnp.int32)
        durations = jnp.round(scaled_durations.reshape(n, n) * MAX_DURATION).astype(jnp.int32)
        machines = jnp.argsort(by_machine, axis=1).astype(jnp.int32)
        durations = jnp.take_along_axis(durations, machines, axis=1)
        bound = lower_bound(durations, machines)
        unit = bound.astype(self.dtype)
        dispatched = jnp.round(progress * n).astype(jnp.int32)
        job_free = jnp.round(job_times * unit).astype(jnp.int32)
        machine_free = jnp.round(machine_times * unit).astype(jnp.int32)
        return Shop(dispatched, job_free, machine_free), Params(
            durations, machines, bound, jnp.int32(0)
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        n = self.size
        return (
            Component(
                "durations", "duration of each job on each machine", f"{MAX_DURATION}", (n, n)
            ),
            Component("places", "place of each machine in each job's route", f"{n - 1}", (n, n)),
            Component("dispatched", "operations of each job dispatched", f"{n} operations", (n,)),
            Component("job_free", "time at which each job is free", "bound", (n,)),
            Component(
                "starts", "time at which each job's next operation could start", "bound", (n,)
            ),
            Component("work_left", "work of each job not dispatched", "bound", (n,)),
            Component("machine_free", "time at which each machine is free", "bound", (n,)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the jobs."""
        return (Component("job", "dispatch the next operation of this job", "1", (self.size,)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return minus the growth of the makespan by the lower bound; -1 for an illegal action."""
        growth = (next_state.makespan - state.makespan).astype(self.dtype)
        is_illegal = next_state.steps == state.steps
        return jnp.where(is_illegal, -1, -growth / params.bound.astype(self.dtype))

    def terminal(self, state: State, key: jax.Array, params: Params) -> Flag:
        """Say whether all operations are dispatched."""
        return state.steps == params.durations.size

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        makespan = state.makespan.astype(self.dtype)
        is_done = state.steps == params.durations.size
        return {
            "success": is_done & (state.makespan <= params.rule_makespan),
            "makespan": makespan,
            "gap": makespan / params.bound.astype(self.dtype) - 1,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with the number of a job, 0 to {self.size - 1}."

    def describe(self, state: State, params: Params) -> str:
        """List each job's operations and the machines."""
        lines = [
            f"{int(state.steps)} of {params.durations.size} operations are dispatched, makespan "
            f"{int(state.makespan)}, lower bound {int(params.bound)}. Operations not dispatched "
            "are machine:duration."
        ]
        for job, count in enumerate(np.asarray(state.shop.dispatched).tolist()):
            tail = zip(params.machines[job][count:], params.durations[job][count:], strict=True)
            operations = " ".join(f"{machine}:{duration}" for machine, duration in tail)
            free = int(state.shop.job_free[job])
            lines.append(f"Job {job}, free at {free}: {operations or 'done'}")
        free_times = ", ".join(str(time) for time in np.asarray(state.shop.machine_free).tolist())
        lines.append(f"Machines are free at {free_times}.")
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the schedule: a row a machine, a colour a job, and the lower bound as a line."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        machines = params.durations.shape[1]
        scale = (width - 20) / (2.0 * int(params.bound))
        row_height = (height - 20) / machines
        for (job, operation), start in np.ndenumerate(np.asarray(state.starts)):
            if start >= 0:
                duration = int(params.durations[job][operation])
                top = 10 + int(params.machines[job][operation]) * row_height
                left = 10 + start * scale
                box = (left, top + 2, left + duration * scale, top + row_height - 2)
                canvas.rectangle(box, fill=COLOURS[job % len(COLOURS)], outline="white")
        line = 10 + int(params.bound) * scale
        canvas.line((line, 0, line, height), fill="black")
        return np.asarray(image)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how long the schedule is."""
        return f"all operations are dispatched, and the last one ends at {int(state.makespan)}"


# -- the rules -------------------------------------------------------------------------------------


def durations_of(unit: jax.Array, split: jax.Array) -> IntArray:
    """Map numbers in [0, 1) to durations in the bands of a split."""
    scaled = unit * DURATION_BANDS
    band = jnp.floor(scaled)
    inside = jnp.floor((scaled - band) * 5)
    return (1 + 10 * band + inside).astype(jnp.int32) + 5 * jnp.asarray(split, jnp.int32)


def permutations_of(unit: jax.Array) -> IntArray:
    """Return the ranks of the numbers of each row: uniform permutations."""
    rank = jnp.argsort(unit, axis=1)
    return jnp.asarray(rank, jnp.int32)


def lower_bound(durations: IntArray, machines: IntArray) -> Int:
    """Return the longest job or the longest work of a machine, whichever is longer."""
    is_on_machine = machines[..., None] == jnp.arange(durations.shape[1])
    loads = jnp.where(is_on_machine, durations[..., None], 0).sum((0, 1))
    return jnp.maximum(durations.sum(1).max(), loads.max()).astype(jnp.int32)


def make_params(durations: IntArray, machines: IntArray) -> Params:
    """Return the context of an instance.

    Args:
        durations: of each job's operations, in the order of its route, int32 ``(n, m)``.
        machines: of each job's operations, likewise.
    """
    params = Params(durations, machines, lower_bound(durations, machines), jnp.int32(0))
    shop = empty_schedule(*durations.shape).shop
    makespans = [rule_makespan(shop, params, jnp.int32(rule)) for rule in (0, 1)]
    return params._replace(rule_makespan=jnp.minimum(*makespans))


def empty_schedule(jobs: int, machines: int) -> State:
    """Return a schedule without operations."""
    zero = jnp.int32(0)
    idle_jobs = jnp.zeros(jobs, jnp.int32)
    shop = Shop(idle_jobs, idle_jobs, jnp.zeros(machines, jnp.int32))
    return State(shop, jnp.full((jobs, machines), -1, jnp.int32), zero, zero)


def next_operations(shop: Shop, params: Params) -> NextOperations:
    """Return the next operation of each job."""
    number = params.durations.shape[1]
    order = jnp.arange(number)
    is_next = order == shop.dispatched[:, None]
    is_ahead = order >= shop.dispatched[:, None]
    duration = jnp.where(is_next, params.durations, 0).sum(1).astype(jnp.int32)
    machine = jnp.where(is_next, params.machines, 0).sum(1).astype(jnp.int32)
    is_done = shop.dispatched == number
    start = jnp.maximum(shop.job_free, shop.machine_free[machine])
    return NextOperations(
        machine,
        jnp.where(is_done, NEVER, start),
        jnp.where(is_done, NEVER, start + duration),
        jnp.where(is_ahead, params.durations, 0).sum(1).astype(jnp.int32),
    )


def conflict_set(operations: NextOperations) -> FlagArray:
    """Return the jobs that Giffler & Thompson let compete for the next place, ``(n,)``."""
    first = jnp.argmin(operations.end)
    end = operations.end[first]
    on_machine = operations.machine == operations.machine[first]
    return on_machine & (operations.start < end) & (operations.end < NEVER)


def dispatch(shop: Shop, operations: NextOperations, job: Int) -> Shop:
    """Return the shop after the next operation of a job was dispatched."""
    is_job = jnp.arange(len(shop.dispatched)) == job
    is_machine = jnp.arange(len(shop.machine_free)) == operations.machine[job]
    end = operations.end[job]
    return Shop(
        shop.dispatched + is_job.astype(jnp.int32),
        jnp.where(is_job, end, shop.job_free),
        jnp.where(is_machine, end, shop.machine_free),
    )


def rule_choice(operations: NextOperations, rule: Int) -> Int:
    """Return the job that a priority rule dispatches next.

    Rule 0 takes the most work left of the operations that could start first, rule 1 that of the
    conflict set, and rule 2 the shortest operation of those that could start first.
    """
    duration = operations.end - operations.start
    is_first = (operations.start == operations.start.min()) & (operations.start < NEVER)
    is_candidate = jnp.where(rule == 1, conflict_set(operations), is_first)
    priority = jnp.where(rule == 2, duration, -operations.work_left)
    return jnp.argmin(jnp.where(is_candidate, priority, NEVER)).astype(jnp.int32)


class Rollout(NamedTuple):
    """A shop, and what its next operations are, kept so that a step looks up one job only."""

    shop: Shop
    machine: IntArray
    duration: IntArray
    work_left: IntArray
    """As in :class:`NextOperations`; 0 of jobs that are done, ``(n,)`` each"""


def rule_makespan(shop: Shop, params: Params, rule: Int) -> Int:
    """Return the makespan if a priority rule dispatches the rest."""
    number = params.durations.shape[1]
    columns = ((0, 0), (0, 1))  # a column for jobs that are done
    durations = jnp.pad(params.durations, columns)
    machines = jnp.pad(params.machines, columns)
    work = durations
    for operation in range(number - 1, -1, -1):
        work = work.at[:, operation].add(work[:, operation + 1])

    def is_unfinished(rollout: Rollout) -> Flag:
        return rollout.shop.dispatched.sum() < params.durations.size

    def step(rollout: Rollout) -> Rollout:
        shop = rollout.shop
        is_done = shop.dispatched >= number
        start = jnp.maximum(shop.job_free, shop.machine_free[rollout.machine])
        operations = NextOperations(
            rollout.machine,
            jnp.where(is_done, NEVER, start),
            jnp.where(is_done, NEVER, start + rollout.duration),
            rollout.work_left,
        )
        job = rule_choice(operations, rule)
        is_job = jnp.arange(len(is_done)) == job
        operation = jnp.minimum(shop.dispatched[job] + 1, number)
        return Rollout(
            dispatch(shop, operations, job),
            jnp.where(is_job, machines[job, operation], rollout.machine),
            jnp.where(is_job, durations[job, operation], rollout.duration),
            jnp.where(is_job, work[job, operation], rollout.work_left),
        )

    present_operation = jnp.minimum(shop.dispatched, number)
    present = [
        jnp.take_along_axis(table, present_operation[:, None], axis=1)[:, 0]
        for table in (machines, durations, work)
    ]
    last = jax.lax.while_loop(is_unfinished, step, Rollout(shop, *present))
    return reduce_in_order(jnp.maximum, last.shop.job_free)


# -- players ---------------------------------------------------------------------------------------


class Pilot(eqx.Module):
    """The pilot method of Duin & Voss 1999, with three priority rules as pilots.

    It tries each legal job, lets each rule complete the schedule, and dispatches the job with which
    the best of these schedules begins.
    """

    task: JobShop = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: JobShop) -> Pilot:
        """Return the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the job to dispatch, from the observation."""
        shop, params = self.task.read_observation(view.observation)
        operations = next_operations(shop, params)
        is_legal = conflict_set(operations)
        jobs = jnp.where(is_legal, jnp.arange(self.task.size), jnp.argmax(is_legal))
        after = jax.vmap(lambda job: dispatch(shop, operations, job))(jobs)
        complete = jax.vmap(rule_makespan, in_axes=(None, None, 0))
        makespans = jax.vmap(lambda shop: complete(shop, params, jnp.arange(RULES)))(after)
        # Of equal schedules, that of the job with most work left.
        key_figure = makespans.min(1) * 1024 - operations.work_left
        return jnp.argmin(jnp.where(is_legal, key_figure, NEVER)).astype(jnp.int32), memory


class MostWork(eqx.Module):
    """The priority rule of most work remaining, among the jobs of the conflict set."""

    task: JobShop = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: JobShop) -> MostWork:
        """Return the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the job to dispatch, from the observation."""
        operations = next_operations(*self.task.read_observation(view.observation))
        return rule_choice(operations, jnp.int32(1)), memory
