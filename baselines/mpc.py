"""Sampling model-predictive control, which plans on the task's own model and learns nothing.

Model-predictive path integral control: Williams, Drews, Goldfain, Rehg & Theodorou 2018,
doi:10.1109/TRO.2018.2865891. At every step the planner draws plans around the last one, plays each
on the model from the true state, and moves the plan to their mean, weighted by the exponential of
their returns. For discrete actions the plan is a table of probabilities, and the weighted shares of
the choices replace it, as in the cross-entropy method (Rubinstein 1999,
doi:10.1023/A:1010091220143).

Three things differ from the paper. The temperature counts in units of the gap between the best
return and the least of the best tenth, so that one value serves rewards of every scale and a crash
in one sample does not hide the differences between the others. The control cost of the paper is
left out, because the task's reward says what an action costs. The noise of continuous actions is
correlated over time, since plans of independent noise hardly move a slow plant.

The planner knows more than an agent: the true state and context, but not the draws of the future.
It plans with random keys of its own. Rewards beyond the planned steps count as zero.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.arrays import Int
from rlbench_suite.core.episode import Role, action_sizes, draw_key, scalar_return
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.policy import Policy, View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.keys import fold_in

from .configuration import FOLDER, configure, restore

MIN_RETURN_GAP = 1e-15
"""Smallest gap of returns, so that equal returns get equal weights."""


@dataclass(frozen=True)
class Config:
    """Hyperparameters of the planner."""

    horizon: int = 15
    """Planned steps."""
    samples: int = 64
    """Plans drawn in an iteration."""
    iterations: int = 2
    """Improvements of the plan before each action. The noise halves from one to the next."""
    scenarios: int = 1
    """Draws of the task's randomness on which every plan is played; its return is their mean."""
    temperature: float = 0.5
    """Temperature of the weights, relative to the spread of the elite's returns.

    Its unit is the gap between the best return and the worst return of the elite.
    """
    elite: float = 0.1
    """Share of the samples that is the elite."""
    noise: float = 0.3
    """Standard deviation of the noise of continuous actions, in units of half their range."""
    correlation: float = 0.8
    """Correlation of the noise of neighbouring steps, in [0, 1)."""
    exploration: float = 0.2
    """Share of uniform play in the probabilities of discrete actions."""
    price: float = 1.0
    """Return that a plan loses for one unit of constraint cost.

    The planner does not know the limit.
    """

    def __post_init__(self) -> None:
        for name, minimum in {"horizon": 1, "samples": 2, "iterations": 1, "scenarios": 1}.items():
            if getattr(self, name) < minimum:
                raise ValueError(f"{name} is an integer >= {minimum}, got {getattr(self, name)!r}.")
        for name in ("temperature", "noise"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is a number > 0, got {getattr(self, name)!r}.")
        if not self.price >= 0:
            raise ValueError(f"price is a number >= 0, got {self.price!r}.")
        if not 0 <= self.correlation < 1:
            raise ValueError(f"correlation is a number in [0, 1), got {self.correlation!r}.")
        for name in ("exploration", "elite"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} is a number in (0, 1], got {getattr(self, name)!r}.")


class Memory(NamedTuple):
    """The memory of a planner: the plan of the last step, one step further on."""

    t: Int
    """int32: steps played."""
    plan: Any
    """``(horizon, ...)``: mean actions in [-1, 1], or probabilities of all choices."""


@privileged_player
class Planner(eqx.Module):
    """A policy that plans anew at every step. The subclasses say what a plan is."""

    task: Task[Any, Any] = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    @abc.abstractmethod
    def default_step(self) -> jax.Array:
        """Return one step of a plan of which nothing is known, shape ``(...)``."""

    @abc.abstractmethod
    def sample_noise(
        self, key: jax.Array, previous: jax.Array, correlation: jax.Array
    ) -> jax.Array:
        """Return noise for one step of every sample, ``(samples, ...)``.

        It follows from the noise of the step before.
        """

    @abc.abstractmethod
    def choose(
        self, planned: jax.Array, noise: jax.Array, scale: jax.Array, mask: jax.Array | None
    ) -> jax.Array:
        """Return the action that a plan's step and noise give, as :meth:`shares` reads it."""

    @abc.abstractmethod
    def env_action(self, controls: jax.Array) -> jax.Array:
        """Return the environment's action of some controls."""

    @abc.abstractmethod
    def shares(self, controls: jax.Array, weights: jax.Array) -> jax.Array:
        """Return the next plan ``(horizon, ...)`` from the weighted samples.

        The actions are ``(horizon, rows, ...)``, their weights ``(rows,)``.
        """

    def initial(self, params: Any) -> Memory:
        """Return an empty plan."""
        plan = self.default_step()
        return Memory(jnp.int32(0), jnp.broadcast_to(plan, (self.config.horizon, *plan.shape)))

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Improve the plan, return its first action, and keep the rest."""

        def improve(plan: jax.Array, iteration: jax.Array) -> tuple[jax.Array, None]:
            seed = fold_in(jax.random.key_data(key), iteration)
            controls, returns = self.play(plan, view, memory.t, seed, 0.5**iteration)
            return self.shares(controls, self.weights(returns)), None

        plan, _ = jax.lax.scan(improve, memory.plan, jnp.arange(self.config.iterations))
        controls = self.choose(
            plan[0], jnp.zeros_like(plan[0]), plan.dtype.type(0), view.action_mask
        )
        next_plan = jnp.concatenate([plan[1:], self.next_step(plan)[None]])
        return self.env_action(controls), Memory(memory.t + 1, next_plan)

    def next_step(self, plan: jax.Array) -> jax.Array:
        """Return the step that follows the last one of a plan."""
        return self.default_step()

    def play(
        self, plan: jax.Array, view: View, t: jax.Array, seed: jax.Array, scale: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Play plans drawn around one on the model; return their actions and the value of each row.

        The value is the undiscounted return less the priced cost. A row is a sample in a scenario.
        The first sample is the plan itself. All samples meet the same draws of a scenario, so that
        no plan looks better by luck.
        """
        task = self.task
        samples = self.config.samples
        scenarios = self.config.scenarios
        params = view.params
        rows = samples * scenarios

        def step_row(
            state: Any, planned: Any, noise: Any, scenario: Any, ahead: Any
        ) -> tuple[Any, ...]:
            controls = self.choose(planned, noise, scale, task.action_mask(state, params))
            action = self.env_action(controls)
            next_state = task.transition(
                state, action, draw_key(seed, scenario, ahead, Role.TRANSITION), params
            )
            reward = task.reward(
                state, action, next_state, draw_key(seed, scenario, ahead, Role.REWARD), params
            )
            over = task.terminal(next_state, draw_key(seed, scenario, ahead, Role.TERMINAL), params)
            value = scalar_return(task, reward)
            if task.has_cost:
                cost: Any = task.cost(state, action, next_state, params)
                value = value - self.config.price * cost
            return next_state, controls, value, over

        def step(carry: Any, planned_and_ahead: Any) -> tuple[Any, jax.Array]:
            states, noise, total, running = carry
            planned, ahead = planned_and_ahead
            correlation = jnp.where(ahead > 0, self.config.correlation, 0).astype(total.dtype)
            noise = self.sample_noise(
                draw_key(seed, jnp.int32(0), ahead, Role.POLICY), noise, correlation
            )
            row_noise = noise.at[0].set(0).repeat(scenarios, axis=0)
            row_scenarios = np.tile(np.arange(scenarios, dtype=np.int32), samples)
            next_states, controls, value, over = jax.vmap(step_row, in_axes=(0, None, 0, 0, None))(
                states, planned, row_noise, row_scenarios, ahead
            )
            total = total + jnp.where(running, value, 0)
            running = running & ~over & (t + ahead + 1 < task.card.horizon)
            return (next_states, noise, total, running), controls

        states = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (rows, *jnp.shape(leaf))), view.state
        )
        noise = jnp.zeros((samples, *plan.shape[1:]), plan.dtype)
        start = states, noise, jnp.zeros(rows, task.dtype), jnp.ones(rows, bool)
        steps = jnp.arange(self.config.horizon)
        (_, _, total, _), controls = jax.lax.scan(step, start, (plan, steps))
        return controls, total

    def weights(self, returns: jax.Array) -> jax.Array:
        """Return the weight of every row; they sum to one."""
        mean = returns.reshape(self.config.samples, self.config.scenarios).mean(1)
        best = mean.max()
        elite_threshold = jnp.quantile(mean, 1 - self.config.elite)
        spread = jnp.maximum(best - elite_threshold, MIN_RETURN_GAP)
        weights = jax.nn.softmax((mean - best) / (self.config.temperature * spread))
        return weights.repeat(self.config.scenarios) / self.config.scenarios


class BoxPlanner(Planner):
    """A planner of continuous actions.

    A plan holds their means in [-1, 1], over the range of each.
    """

    def default_step(self) -> jax.Array:
        """Return the action of the ``noop`` player."""
        middle, reach = self._range()
        return jnp.asarray(
            (self.task.noop_action() - middle) / np.where(reach > 0, reach, 1), self.task.dtype
        )

    def next_step(self, plan: jax.Array) -> jax.Array:
        """Return the last action of the plan once more."""
        return plan[-1]

    def sample_noise(
        self, key: jax.Array, previous: jax.Array, correlation: jax.Array
    ) -> jax.Array:
        """Return normal noise of unit variance, correlated with that of the step before."""
        fresh = self.task.normal(key, previous.size).reshape(previous.shape)
        return correlation * previous + jnp.sqrt(1 - correlation * correlation) * fresh

    def choose(
        self, planned: jax.Array, noise: jax.Array, scale: jax.Array, mask: jax.Array | None
    ) -> jax.Array:
        """Return the mean with its noise, kept inside [-1, 1]."""
        return jnp.clip(planned + self.config.noise * scale * noise, -1, 1).astype(self.task.dtype)

    def env_action(self, controls: jax.Array) -> jax.Array:
        """Return the action between the bounds of the space."""
        space: Any = self.task.action_space
        middle, reach = self._range()
        return jnp.clip(middle + reach * controls, space.low, space.high)

    def shares(self, controls: jax.Array, weights: jax.Array) -> jax.Array:
        """Return the weighted means of the actions."""
        return jnp.einsum("r,hr...->h...", weights, controls)

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        space: Any = self.task.action_space
        return (space.low + space.high) / 2, (space.high - space.low) / 2


class ChoicePlanner(Planner):
    """A planner of one or several discrete choices.

    A plan holds the probability of each, one part after another.
    """

    def default_step(self) -> jax.Array:
        """Return uniform probabilities."""
        sizes = action_sizes(self.task.action_space)
        return jnp.asarray(
            np.concatenate([np.full(size, 1 / size) for size in sizes]), self.task.dtype
        )

    def sample_noise(
        self, key: jax.Array, previous: jax.Array, correlation: jax.Array
    ) -> jax.Array:
        """Return Gumbel noise for log-probabilities.

        The index of the largest sum of log-probability and noise is a sample of the
        probabilities.
        """
        share = jnp.maximum(self.task.uniform(key, previous.size), jnp.finfo(previous.dtype).tiny)
        return -jnp.log(-jnp.log(share)).reshape(previous.shape)

    def choose(
        self, planned: jax.Array, noise: jax.Array, scale: jax.Array, mask: jax.Array | None
    ) -> jax.Array:
        """Return a legal choice of each part, drawn from the probabilities."""
        score = jnp.log(planned) + noise
        if mask is not None:
            score = jnp.where(mask, score, -jnp.inf)
        scores = jnp.split(score, np.cumsum(action_sizes(self.task.action_space))[:-1])
        return jnp.stack([of_choice.argmax().astype(jnp.int32) for of_choice in scores])

    def env_action(self, controls: jax.Array) -> jax.Array:
        """Return the choices in the shape of the space."""
        space: Any = self.task.action_space
        return controls.reshape(space.shape) + space.start.astype(np.int32)

    def shares(self, controls: jax.Array, weights: jax.Array) -> jax.Array:
        """Return the weighted share of each choice, mixed with uniform play."""
        sizes = action_sizes(self.task.action_space)
        flat = controls + np.cumsum([0, *sizes[:-1]])  # (horizon, rows, parts)

        def count(flat: jax.Array) -> jax.Array:
            votes = jnp.broadcast_to(weights[:, None], flat.shape)
            return jnp.zeros(sum(sizes), self.task.dtype).at[flat].add(votes)

        return (1 - self.config.exploration) * jax.vmap(count)(
            flat
        ) + self.config.exploration * self.default_step()


class MPC:
    """The agent ``mpc``, a planner on the task's own model.

    It trains nothing and has nothing to save.

    Args:
        overrides: hyperparameters by name; they replace those of ``hyperparameters/mpc.yaml``.
    """

    name = "mpc"
    learns = False

    def __init__(self, **overrides: Any) -> None:
        self.overrides = overrides

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` where planning is impossible.

        A planner needs a model to plan on and a finite range of actions.
        """
        if isinstance(task, HostTask):
            raise CannotPlay(
                f"mpc plans on a model in JAX, and {task.card.id} is computed by a simulator of "
                "the host."
            )
        space = task.action_space
        if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.Box):
            raise CannotPlay(f"mpc plans Box, Discrete and MultiDiscrete actions, not {space}.")
        if isinstance(space, spaces.Box) and not space.is_bounded():
            raise CannotPlay(f"mpc plans actions between bounds, but {space} has none.")

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return the planner's settings.

        Raises:
            ValueError: the budget or a hyperparameter does not exist, or a value is out of range.
        """
        return asdict(self._config(task, budget))

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Policy]:
        """Yield the planner.

        ``hyperparameters`` replace those of the file and the overrides, which are not read then.

        Raises:
            CannotPlay: the agent cannot play the task.
            ValueError: as for :meth:`hyperparameters`.
        """
        self.check(task)
        kind = BoxPlanner if isinstance(task.action_space, spaces.Box) else ChoicePlanner
        yield kind(
            task,
            self._config(task, budget)
            if hyperparameters is None
            else restore(Config, hyperparameters),
        )

    def save(self, policy: Policy, path: str) -> None:
        """Do nothing: there are no weights."""

    def _config(self, task: Task[Any, Any], budget: str) -> Config:
        return configure(Config, FOLDER / "mpc.yaml", task.card, budget, self.overrides, None)
