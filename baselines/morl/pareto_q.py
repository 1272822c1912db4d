"""Pareto Q-learning: tables of sets of vector returns, for tasks with few states and no chance.

The algorithm is that of Van Moffaert & Nowe 2014 (JMLR 15:3483-3512), with their evaluation of
actions by Pareto dominance. A table has, for each state and action, the set of returns that follow
the action and that no other such return dominates:

    Q(s, a) = r(s, a) + gamma * nondominated(union of Q(s', a') over all a')

It learns the whole front, concave parts included, which no weighted sum finds. Two details differ.
An exploring step goes where play was least often, so that all states are found soon. And sets begin
empty instead of with the zero vector: each point is then the return of a way that was seen to end.
When training is over, the remembered steps are backed up until no set changes. Every point is then
followed by points of the next states to the end of an episode, and a policy follows the points.

Read from top to bottom, as data flows: configuration, tables, plans, policy, training.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from safetensors import safe_open

from rlbench_suite.adapters.rollout import first_episodes, replay
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.arrays import Float, FloatArray, Int
from rlbench_suite.core.episode import action_sizes, scalar_return, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.statistics.pareto import non_dominated

from .. import checkpoint
from ..configuration import FOLDER, configure, restore

MAX_STATES = 20_000
"""States beyond which a table is no way to learn."""
MAX_POINTS = 1_000
"""Points of a set beyond which it grows without end."""
MAX_SWEEPS = 10_000
"""Times that all states are backed up at the end, if returns are discounted."""
DIGITS = 6
"""Decimals to which returns are rounded, so that equal sums in another order are one point."""
PROBES = 32
"""Random episodes that are played twice to see whether a task is deterministic."""
UNKNOWN, OVER = -1, -2
"""Entries of a table of next states: the action was never tried, or it ended the episode."""

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """Hyperparameters of Pareto Q-learning, in ``hyperparameters/pareto-q.yaml``."""

    total_steps: int
    gamma: float = 1.0
    """Discount. The front of a report is undiscounted."""
    exploration: float = 1.0
    """Probability of an exploring step at the start; it falls linearly to ``last_exploration``."""
    last_exploration: float = 0.1
    reports: int = 15
    """Number of progress reports."""


# -- tables ----------------------------------------------------------------------------------------


class Tables:
    """Experience of each state and action, and the sets of returns. States are numbered.

    Args:
        actions: number of actions.
        objectives: number of objectives.
        gamma: discount.
    """

    def __init__(self, actions: int, objectives: int, gamma: float) -> None:
        self.gamma = gamma
        self.numbers: dict[bytes, int] = {}
        self.observations: list[np.ndarray] = []
        self.next_states: list[list[int]] = []
        self.rewards: list[np.ndarray] = []
        self.tries: list[np.ndarray] = []
        self.sets: list[np.ndarray] = []
        self.best_actions: list[list[int]] = []
        self._versions: list[int] = []
        self._seen_versions: list[list[int]] = []
        self._shape = actions, objectives

    def state(self, observation: np.ndarray) -> int:
        """Return the number of the state with an observation; a new one gets the next number.

        Raises:
            ValueError: there are too many states.
        """
        key = observation.tobytes()
        if key not in self.numbers:
            if len(self.numbers) == MAX_STATES:
                raise ValueError(f"The task has more than {MAX_STATES:,} states.")
            actions, objectives = self._shape
            self.numbers[key] = len(self.numbers)
            self.observations.append(observation.astype(np.float32).ravel())
            self.next_states.append([UNKNOWN] * actions)
            self.rewards.append(np.zeros((actions, objectives)))
            self.tries.append(np.zeros(actions, np.int64))
            self.sets.append(np.zeros((0, objectives)))
            self.best_actions.append([*range(actions)])
            self._versions.append(0)
            self._seen_versions.append([UNKNOWN] * actions)
        return self.numbers[key]

    def record(self, state: int, action: int, reward: np.ndarray, next_state: int) -> None:
        """Record a step, and back up its state if it tells something new.

        Raises:
            ValueError: the same action had another result in this state.
        """
        known_next_state = self.next_states[state][action]
        if known_next_state == UNKNOWN:
            self.next_states[state][action] = next_state
            self.rewards[state][action] = reward
        elif known_next_state != next_state or (self.rewards[state][action] != reward).any():
            raise ValueError(
                f"Action {action} has two results where the observation is "
                f"{self.observations[state]}: the task has chance or hides a part of its state."
            )
        self.tries[state][action] += 1
        version = 0 if next_state == OVER else self._versions[next_state]
        if self._seen_versions[state][action] != version:
            self._seen_versions[state][action] = version
            self.back_up(state)

    def least_tried(self, state: int) -> np.ndarray:
        """Return the actions that lead where play was least often; first those never tried."""
        visits = [
            self.tries[state][action]
            if next_state in (UNKNOWN, OVER)
            else 1 + self.tries[next_state].sum()
            for action, next_state in enumerate(self.next_states[state])
        ]
        return np.flatnonzero(np.array(visits) == min(visits))

    def returns(self, state: int, action: int) -> np.ndarray:
        """Return the set of returns of an action, ``(n, k)``."""
        next_state = self.next_states[state][action]
        if next_state == UNKNOWN:
            return self.sets[state][:0]
        reward = self.rewards[state][action]
        later = 0.0 if next_state == OVER else self.gamma * self.sets[next_state]
        return np.round(np.atleast_2d(reward + later), DIGITS) + 0.0  # no negative zeros

    def back_up(self, state: int) -> bool:
        """Compute the set of a state and its best actions anew; return whether the set changed.

        The best actions are those with a return that no other action's dominates; all if no
        way to an end is known.

        Raises:
            ValueError: it has too many points.
        """
        returns = [self.returns(state, a) for a in range(len(self.next_states[state]))]
        points = non_dominated(np.concatenate(returns))
        if len(points) > MAX_POINTS:
            raise ValueError(f"A state has more than {MAX_POINTS:,} returns that none dominates.")
        best = {*map(bytes, points)}
        self.best_actions[state] = [
            a for a, r in enumerate(returns) if best & {*map(bytes, r)} or not best
        ]
        if np.array_equal(points, self.sets[state]):
            return False
        self.sets[state] = points
        self._versions[state] += 1
        return True

    def back_up_all(self) -> None:
        """Back up all states until no set changes.

        Raises:
            ValueError: they change for ever, because a circle pays.
        """
        # Without a discount no way is longer than all states.
        for _ in range(len(self.sets) + 1 if self.gamma == 1 else MAX_SWEEPS):
            # A state is mostly found before those behind it.
            if not sum([self.back_up(state) for state in reversed(range(len(self.sets)))]):
                return
        raise ValueError("A circle of states pays without end; set gamma below 1.")


# -- plans -----------------------------------------------------------------------------------------


class Plans(NamedTuple):
    """Points of S states, M at most, and how to follow each; float32, as files hold them."""

    observations: FloatArray
    """``(S, d)``; state 0 is the first of an episode."""
    points: FloatArray
    """Returns to come, ``(S, M, k)``; minus infinity where a state has fewer points."""
    actions: FloatArray
    """Action that leads to each point, ``(S, M)``."""
    successors: FloatArray
    """Number of the next state's point that is followed then, ``(S, M)``."""

    @classmethod
    def of(cls, tables: Tables) -> Plans:
        """Return the plans of tables that are backed up.

        Among the ways to a point the shortest is followed, since a way may lead in a circle at no
        cost.

        Raises:
            ValueError: no episode was seen to end.
        """
        if not len(tables.sets[0]):
            raise ValueError("No episode ended other than by its time limit.")
        max_points = max(map(len, tables.sets))
        shape = len(tables.sets), max_points
        points = np.full((*shape, tables.sets[0].shape[1]), -np.inf, np.float32)
        actions, successors = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        ways = [_ways(tables, state) for state in range(shape[0])]
        lengths = [np.full(len(ways_of_state), np.inf) for ways_of_state in ways]
        changed = True
        while changed:
            changed = False
            for state, ways_of_state in enumerate(ways):
                for m, alternatives in enumerate(ways_of_state):
                    for action, next_state, successor in alternatives:
                        length_after = 0.0 if next_state == OVER else lengths[next_state][successor]
                        if 1 + length_after < lengths[state][m]:
                            lengths[state][m] = 1 + length_after
                            actions[state, m], successors[state, m] = action, successor
                            changed = True
        for state, rows in enumerate(tables.sets):
            points[state, : len(rows)] = rows
        return cls(np.array(tables.observations), points, actions, successors)


def _ways(tables: Tables, state: int) -> list[list[tuple[int, int, int]]]:
    """Return action, next state and its point for each way to each point of a state."""
    numbers = {bytes(point): m for m, point in enumerate(tables.sets[state])}
    ways: list[list[tuple[int, int, int]]] = [[] for _ in numbers]
    for action, next_state in enumerate(tables.next_states[state]):
        for successor, point in enumerate(tables.returns(state, action)):
            if (m := numbers.get(bytes(point))) is not None:
                ways[m].append((action, next_state, successor))
    return ways


# -- policy ----------------------------------------------------------------------------------------


class Policy(eqx.Module):
    """Follows the point that is best for weights, or a given point of the first state."""

    plans: Plans
    weights: FloatArray
    """float32 ``(k,)``"""
    target: Int
    """Number of the point of the first state; -1 for the best one."""
    task_id: str = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    @classmethod
    def for_card(cls, plans: Plans, card: TaskCard, config: Config) -> Policy:
        """Return the policy for the weights of a card."""
        return cls(plans, np.asarray(card.weights, np.float32), np.int32(-1), card.id, config)

    @property
    def members(self) -> np.ndarray:
        """Numbers of the points of the first state."""
        return np.flatnonzero(np.isfinite(np.asarray(self.plans.points)[0, :, 0]))

    def for_member(self, member: jax.Array) -> Policy:
        """Return the policy that follows one point of the first state."""
        return eqx.tree_at(lambda policy: policy.target, self, jnp.asarray(member, jnp.int32))

    def for_weights(self, weights: jax.Array) -> Policy:
        """Return the policy that follows the best point for other weights."""
        values = jnp.asarray(weights, jnp.float32), jnp.int32(-1)
        return eqx.tree_at(lambda policy: (policy.weights, policy.target), self, values)

    def initial(self, params: Any) -> jax.Array:
        """Return the number of the point to follow; -1 for one to be chosen."""
        return jnp.asarray(self.target, jnp.int32)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the action that leads to the point, and the point to follow then."""
        observation = view.observation.astype(jnp.float32).ravel()
        state = jnp.argmax((jnp.asarray(self.plans.observations) == observation).all(1))
        points = jnp.asarray(self.plans.points)[state]
        utility: Float = 0.0
        for i in range(points.shape[1]):
            # Not a product with minus infinity, which is no number where the weight is 0.
            utility += self.weights[i] * jnp.maximum(points[:, i], np.finfo(np.float32).min / 1e6)
        point = jnp.where(memory < 0, jnp.argmax(utility).astype(jnp.int32), memory)
        action = jnp.asarray(self.plans.actions)[state, point].astype(jnp.int32)
        return action, jnp.asarray(self.plans.successors)[state, point].astype(jnp.int32)


# -- training --------------------------------------------------------------------------------------


class ParetoQ:
    """The agent ``pareto-q``.

    Args:
        overrides: hyperparameters by name; they replace those of the file.
    """

    name = "pareto-q"
    learns = True

    def __init__(self, **overrides: Any) -> None:
        self.overrides = overrides

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` unless the task is small, the same each time, and no chance."""
        card = task.card
        reasons = {
            "has one objective": not card.objectives,
            "runs on the host": card.host,
            f"has {card.agents} agents": card.agents > 1,
            "hides a part of its state": card.partially_observed,
            f"has the actions {task.action_space}": not isinstance(
                task.action_space, spaces.Discrete
            )
            or task.action_space.start != 0,
            f"has the observations {task.observation_space}": not isinstance(
                task.observation_space, spaces.Box
            ),
        }
        for reason, applies in reasons.items():
            if applies:
                raise CannotPlay(
                    "pareto-q keeps a table of the states of one deterministic task with several "
                    f"objectives and discrete actions, and {card.id} {reason}."
                )
        if card.contexts and _samples_contexts(task):
            raise CannotPlay(
                f"pareto-q learns a table of one context, and {card.id} samples contexts."
            )
        if not _is_deterministic(task):
            raise CannotPlay(
                f"pareto-q learns without chance, and in {card.id} equal actions have unequal "
                "returns."
            )

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return the hyperparameters of the file and the overrides, as plain data.

        Raises:
            ValueError: the budget or a hyperparameter does not exist, or a value is out of range.
        """
        return asdict(self._config(task, budget))

    def _config(self, task: Task[Any, Any], budget: str) -> Config:
        path = FOLDER / f"{self.name}.yaml"
        return configure(Config, path, task.card, budget, self.overrides)

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Progress | Policy]:
        """Learn on one environment. Yields :class:`Progress` and, last, the policy.

        Raises:
            CannotPlay: the agent cannot play the task.
            ValueError: the task has chance, hides a part of its state, has too many states, or no
                episode ended; or a hyperparameter is wrong.
        """
        self.check(task)
        config = (
            self._config(task, budget)
            if hyperparameters is None
            else restore(Config, hyperparameters)
        )
        (actions,) = action_sizes(task.action_space)
        tables = Tables(actions, len(task.card.objectives), config.gamma)
        yield from learn(tables, task, config, seed)
        tables.back_up_all()
        yield Policy.for_card(Plans.of(tables), task.card, config)

    def save(self, policy: Policy, path: str) -> None:
        """Write the plans as safetensors."""
        checkpoint.write(path, policy.plans, self.name, policy.task_id, policy.config)

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> Policy:
        """Read a saved policy.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a policy of this agent for this task.
        """
        config = checkpoint.read_config(path, self.name, task.card.id, self._config(task, budget))
        with safe_open(path, framework="numpy") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
        like = Plans(*(np.zeros(shapes.get(f".{name}", ())) for name in Plans._fields))
        return Policy.for_card(checkpoint.read(path, like), task.card, config)


def _samples_contexts(task: Task[Any, Any]) -> bool:
    """Return whether the contexts of a few episodes differ."""
    keys = np.stack([seed_key(seed) for seed in range(PROBES)])
    params = first_episodes(task, keys, "train").episodes.params
    return any((leaf != leaf[:1]).any() for leaf in jax.tree.leaves(params))


def _is_deterministic(task: Task[Any, Any]) -> bool:
    """Return whether random actions have the same returns under other seeds."""
    generator = np.random.default_rng(0)
    space: Any = task.action_space
    plans = generator.integers(space.n, size=(PROBES, task.card.horizon), dtype=space.dtype)
    first, second = (replay(task, plans, range(i, i + PROBES)) for i in (0, PROBES))
    return bool((first.total == second.total).all() and (first.length == second.length).all())


def learn(tables: Tables, task: Task[Any, Any], config: Config, seed: int) -> Iterator[Progress]:
    """Fill tables by play on one environment. Yields progress."""
    generator = np.random.default_rng(seed)
    began = time.perf_counter()
    env = TaskEnv(task, "train")
    env.reset(seed=seed)
    env.step(task.noop_action())  # compiles
    started = time.perf_counter()
    observation, _ = env.reset(seed=seed)
    state, steps_of_episode, total = tables.state(observation), 0, np.zeros(1)
    returns: list[float] = []
    chunk = -(-config.total_steps // config.reports)
    for step in range(1, config.total_steps + 1):
        share = step / config.total_steps
        exploration = (1 - share) * config.exploration + share * config.last_exploration
        candidates: Any = tables.best_actions[state]
        if generator.random() < exploration:
            candidates = tables.least_tried(state)
        action = int(candidates[int(generator.random() * len(candidates))])
        observation, reward, terminated, _, _ = env.step(action)
        steps_of_episode += 1
        total = total + np.asarray(reward, np.float64)
        next_state = OVER if terminated else tables.state(observation)
        tables.record(state, action, np.asarray(reward, np.float64), next_state)
        state = next_state
        if terminated or steps_of_episode == task.card.horizon:
            returns.append(float(scalar_return(task, total)))
            observation, _ = env.reset()
            state, steps_of_episode, total = tables.state(observation), 0, np.zeros(1)
        if step % chunk == 0 or step == config.total_steps:
            yield Progress(
                steps=step,
                total_steps=config.total_steps,
                seconds=time.perf_counter() - started,
                compile_seconds=started - began,
                episode_return=float(np.mean(returns)) if returns else float("nan"),
            )
            returns.clear()
