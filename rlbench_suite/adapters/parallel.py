"""Show a multi-agent task as a PettingZoo environment.

It has one dict entry an agent, and the same episode as the joint environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import parallel_to_aec

from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.adapters.frame_rate import frame_rate
from rlbench_suite.adapters.maskable import MaskableMultiDiscrete
from rlbench_suite.adapters.task_env import RENDER_MODES, EnvState, TaskEnv
from rlbench_suite.core.episode import Episode, action_sizes, weighted_space
from rlbench_suite.core.global_state import global_state_of, global_state_space
from rlbench_suite.core.policy import Policy
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Task
from rlbench_suite.foundation.unknown_names import unknown


class TaskParallelEnv(ParallelEnv[str, Any, Any]):
    """A PettingZoo environment in which all agents act at once.

    The agents are ``agent_0`` to ``agent_{n-1}``. Where agents of a task die or join, ``agents``
    has those that are alive; elsewhere all live until the episode is over.

    Observations, actions and rewards of agent ``i`` are row ``i`` of the task's. Where the task has
    action masks an observation is ``{"observation": ..., "action_mask": int8}``. Infos carry what
    concerns all agents (``success``, measures), and row ``i`` of what is measured per agent.
    Rewards of several objectives are vectors ``(k,)``, as in MOMAland, unless there are weights.

    Args:
        task: a task for more than one agent.
        split: as for the single env.
        render_mode: ``"rgb_array"`` or ``"ansi"``.
        max_cycles: time limit in steps; none if None. ``pettingzoo.make`` passes the card's
            horizon.
        weights: of the objectives; rewards are then weighted sums.

    Raises:
        ValueError: the task is for one agent, or a value is unknown or out of range.
    """

    def __init__(
        self,
        task: Task[Any, Any],
        split: str | int = "train",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        if task.card.agents < 2:
            raise ValueError(f"{task.card.id} has one agent; make it with gymnasium.make.")
        if max_cycles is not None and max_cycles < 1:
            raise ValueError(f"max_cycles is at least 1, got {max_cycles!r}.")
        self._joint = JointEnv(task, split, render_mode, weights)
        self.task = task
        self.card = task.card
        self.signals = task.signals
        self.render_mode = render_mode
        self.metadata = {
            "name": task.card.name,
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": True,
            **frame_rate(task.period),
        }
        self.max_cycles = max_cycles
        self.possible_agents = [f"agent_{i}" for i in range(task.card.agents)]
        self.agents: list[str] = []
        self.observation_spaces = self._by_agent(
            agent_spaces(task.observation_space, task.card.agents)
        )
        self.action_spaces = self._by_agent(agent_spaces(task.action_space, task.card.agents))
        self.state_space = global_state_space(task)
        self.reward_spaces = self._by_agent(
            spaces.Box(low, high, shape=low.shape, dtype=task.dtype.type)
            for low, high in zip(
                self._joint.reward_space.low, self._joint.reward_space.high, strict=True
            )
        )
        self._masked = task.defines("action_mask")
        if self._masked:
            self._mask_ends = np.cumsum(
                [mask_length(space) for space in self.action_spaces.values()]
            )[:-1]
            self.observation_spaces = {
                agent: spaces.Dict(
                    observation=space,
                    action_mask=spaces.Box(
                        0, 1, (mask_length(self.action_spaces[agent]),), np.int8
                    ),
                )
                for agent, space in self.observation_spaces.items()
            }
        self._checks = {agent: ActionCheck(space) for agent, space in self.action_spaces.items()}

    # -- PettingZoo's interface --------------------------------------------------------------------

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of the agent's observations, the same object at each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of the agent's actions, the same object at each call."""
        return self.action_spaces[agent]

    def reward_space(self, agent: str) -> spaces.Box:
        """Return the space of the agent's rewards, the same object at each call."""
        return self.reward_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode: with a seed its first one, without the next one of the last seed.

        ``options`` have no meaning and are ignored: PettingZoo's own conformance tests pass
        arbitrary ones.

        Raises:
            ValueError: the seed is negative or too large.
        """
        observation, info = self._joint.reset(seed=seed)
        self.agents = self._living_agents(info.get("alive"))
        observations = _select(self._observations(observation, info), self.agents)
        return observations, _select(self._infos(info), self.agents)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, Any],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Step all agents at once.

        Raises:
            ValueError: an agent's action is missing, has a wrong shape, lies outside its space, or
                belongs to no agent.
            TypeError: an action is not numbers, or floats for a discrete space.
            gymnasium.error.ResetNeeded: no episode was begun, or it is over.
        """
        if not self.agents:
            raise gymnasium.error.ResetNeeded("No episode is running: call reset() before step().")
        if missing := [agent for agent in self.agents if agent not in actions]:
            raise ValueError(
                f"step() needs an action of every agent; missing: {', '.join(missing)}."
            )
        if strangers := [agent for agent in actions if agent not in self._checks]:
            raise ValueError(unknown("agent", strangers[0], self.possible_agents))
        try:
            joint = np.stack(
                [
                    actions[agent] if agent in self.agents else idle
                    for agent, idle in self._by_agent(self.task.noop_action()).items()
                ]
            )
            observation, reward, terminated, truncated, info = self._joint.step(joint)
        except (TypeError, ValueError):
            self._blame(actions)
            raise
        if self.max_cycles is not None and self._joint.steps >= self.max_cycles:
            truncated = not terminated
        rewards = np.asarray(reward)
        living_agents = self._living_agents(info.get("alive"))
        named_agents = [
            agent for agent in self.possible_agents if agent in {*self.agents, *living_agents}
        ]
        by_agent = (
            self._observations(observation, info),
            self._by_agent(rewards if rewards.ndim > 1 else rewards.tolist()),
            {agent: terminated or agent not in living_agents for agent in self.possible_agents},
            self._by_agent([truncated] * self.card.agents),
            self._infos(info),
        )
        self.agents = [] if terminated or truncated else living_agents
        return tuple(_select(values, named_agents) for values in by_agent)  # type: ignore[return-value]

    def render(self) -> Any:
        """Return a picture (``rgb_array``) or a description (``ansi``) of the current state."""
        return self._joint.render()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    @property
    def np_random(self) -> np.random.Generator:
        """Random numbers for wrappers, such as SuperSuit's ``frame_skip_v0``.

        A reset with a seed seeds them.
        """
        return self._joint.np_random

    def state(self) -> np.ndarray:
        """Return the global state, ``(n,)``, for a central critic; it lies in ``state_space``.

        It is :func:`rlbench_suite.core.global_state.global_state`: the task's own one, or the flat
        observations of all agents, dead ones too, and what is privileged.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        return global_state_of(self.task, self._joint.episode)

    # -- what planning and curious people need -----------------------------------------------------

    @property
    def joint_state(self) -> EnvState:
        """The whole episode as a value: save it, restore it, branch from it.

        This is ``state`` of the single environment; in PettingZoo that name is taken by a method.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
            TypeError: an assigned value is not such a state.
        """
        return self._joint.state._replace(over=not self.agents)

    @joint_state.setter
    def joint_state(self, state: EnvState) -> None:
        self._joint.state = state
        alive = self.task.alive(state.episode.state, state.episode.params)
        self.agents = [] if state.over else self._living_agents(alive)

    @property
    def episode(self) -> Episode:
        """The running episode as NumPy values, with the task's ``params`` and ``state``."""
        return self._joint.episode

    def reference(self) -> Policy:
        """Return the family's own player, which acts for all agents at once."""
        return self._joint.reference()

    # -- from arrays of all agents to dicts by agent -----------------------------------------------

    def _living_agents(self, alive: Any) -> list[str]:
        """Return the agents that are alive, in their order; all of them for None."""
        if alive is None:
            return self.possible_agents[:]
        return [agent for agent, lives in self._by_agent(alive).items() if lives]

    def _by_agent(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))

    def _blame(self, actions: dict[str, Any]) -> None:
        """Raise an error that names the first agent with a wrong action, if there is one."""
        for agent, check in self._checks.items():
            try:
                check(actions[agent])
            except (TypeError, ValueError) as error:
                raise type(error)(f"{agent}: {error}") from None

    def _observations(self, stacked: Any, info: dict[str, Any]) -> dict[str, Any]:
        if isinstance(stacked, dict):
            views = [
                {name: stack[i] for name, stack in stacked.items()} for i in range(self.card.agents)
            ]
        else:
            views = list(stacked)
        if self._masked:
            masks = np.split(info["action_mask"], self._mask_ends)
            views = [
                {"observation": o, "action_mask": m} for o, m in zip(views, masks, strict=True)
            ]
        return self._by_agent(views)

    def _has_rows(self, name: str, value: Any) -> bool:
        """Return whether an entry of ``info`` has a row for each agent, not one value for all."""
        if name == "privileged":
            return isinstance(value, np.ndarray) and value.ndim == 2
        return isinstance(value, np.ndarray) and name != "global_state"

    def _infos(self, info: dict[str, Any]) -> dict[str, dict[str, Any]]:
        info = {name: value for name, value in info.items() if name != "action_mask"}
        row_names = {name for name, value in info.items() if self._has_rows(name, value)}
        return {
            agent: {name: value[i] if name in row_names else value for name, value in info.items()}
            for i, agent in enumerate(self.possible_agents)
        }


class TurnsEnv(AECEnv[str, Any, Any]):
    """A game in turns as a PettingZoo environment in which only those act whose turn it is.

    Args:
        env: the same game, in which all act at once.
    """

    def __init__(self, env: TaskParallelEnv) -> None:
        super().__init__()
        self.env = env
        self.task = env.task
        self.card = env.card
        self.metadata = env.metadata
        self.render_mode = env.render_mode
        self.possible_agents = env.possible_agents
        self.observation_spaces = env.observation_spaces
        self.action_spaces = env.action_spaces
        self.state_space = env.state_space

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of the agent's observations, the same object at each call."""
        return self.env.observation_space(agent)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of the agent's actions, the same object at each call."""
        return self.env.action_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode, as in the game in which all act at once."""
        self._observations, self.infos = self.env.reset(seed, options)
        self.agents = self.env.agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._actions: dict[str, Any] = {}
        self._select_next()

    def observe(self, agent: str) -> Any:
        """Return what the agent observes now."""
        return self._observations[agent]

    def step(self, action: Any) -> None:
        """Take the action of the agent whose turn it is; None for one whose episode is over.

        Raises:
            ValueError: the action has a wrong shape or lies outside its space.
            TypeError: the action is not numbers, or floats for a discrete space.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        actions = self._actions | {agent: action}
        if len(self._agents_to_act()) > len(actions):
            self._actions = actions
            self._cumulative_rewards[agent] = 0.0
            self._clear_rewards()
        else:
            idle = dict(zip(self.possible_agents, self.task.noop_action(), strict=True))
            results = self.env.step({agent: idle[agent] for agent in self.agents} | actions)
            self._actions = {}
            self._cumulative_rewards[agent] = 0.0
            observations, rewards, terminations, truncations, infos = results
            self._observations = self._observations | observations
            self.rewards.update(rewards)
            self.terminations.update(terminations)
            self.truncations.update(truncations)
            self.infos.update(infos)
            self._accumulate_rewards()
        self._select_next()
        self._deads_step_first()

    def render(self) -> Any:
        """Return a picture (``rgb_array``) or a description (``ansi``) of the current state."""
        return self.env.render()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def state(self) -> np.ndarray:
        """Return the global state, as in the game in which all act at once."""
        return self.env.state()

    def _agents_to_act(self) -> list[str]:
        """Return the agents that act in this step of the game, in their order."""
        return [agent for agent in self.agents if self.infos[agent]["acting"]]

    def _select_next(self) -> None:
        """Select the next agent to act: the first one that acts now and has not yet."""
        waiting_agents = [agent for agent in self._agents_to_act() if agent not in self._actions]
        self.agent_selection = next(iter(waiting_agents or self.agents))


class JointEnv(TaskEnv):
    """All agents as one environment, with one reward for each agent."""

    def __init__(
        self,
        task: Task[Any, Any],
        split: str | int,
        render_mode: str | None,
        weights: Sequence[float] | None,
    ) -> None:
        super().__init__(task, split, render_mode, weights)
        self.reward_space = task.reward_space
        if self.weights is not None:
            self.reward_space = weighted_space(task.reward_space, self.weights, task.dtype)

    def _join_agents(self, reward: np.ndarray) -> np.ndarray:
        """Return the rewards as they are, a row for each agent."""
        return reward


def _select(values: dict[str, Any], agents: Sequence[str]) -> dict[str, Any]:
    """Return the entries of some agents."""
    return {agent: values[agent] for agent in agents}


def agent_spaces(space: spaces.Space[Any], count: int) -> list[spaces.Space[Any]]:
    """Split a space of all agents, stacked on axis 0, into one space for each agent.

    Raises:
        TypeError: the space is not made of ``Box``, ``Dict`` and ``MultiDiscrete`` with ``count``
            rows.
    """
    if isinstance(space, spaces.Dict):
        by_name = {name: agent_spaces(subspace, count) for name, subspace in space.items()}
        return [
            spaces.Dict({name: rows[i] for name, rows in by_name.items()}) for i in range(count)
        ]
    if isinstance(space, spaces.Box) and space.shape[:1] == (count,):
        return [
            spaces.Box(low, high, shape=low.shape, dtype=space.low.dtype.type)
            for low, high in zip(space.low, space.high, strict=True)
        ]
    if isinstance(space, spaces.MultiDiscrete) and space.shape[:1] == (count,):
        return [MaskableMultiDiscrete(n) if n.ndim else spaces.Discrete(int(n)) for n in space.nvec]
    raise TypeError(f"{space} does not have one row for each of {count} agents")


def mask_length(space: spaces.Space[Any]) -> int:
    """Return the length of an agent's part of the action mask."""
    return sum(action_sizes(space))


def make(
    task_id: str,
    *,
    split: str | int = "train",
    difficulty: str | float | None = None,
    dtype: str = "float32",
    render_mode: str | None = None,
    max_cycles: int | None = None,
    weights: Sequence[float] | None = None,
    **settings: Any,
) -> TaskParallelEnv:
    """Make an environment for PettingZoo's ``"parallel"`` registry; keywords as for the single env.

    Raises:
        ValueError: the task is for one agent, or a value is unknown or has no meaning for this
            task.
    """
    card = find_card(task_id, **settings)
    if card.game is not None and difficulty is not None:
        raise ValueError(
            f"A difficulty of {card.id} is an opponent, and here all sides are agents; leave it "
            f"out (given: {difficulty!r})."
        )
    task = card.joint().build(difficulty=difficulty, dtype=dtype)
    return TaskParallelEnv(task, split, render_mode, max_cycles, weights)


def make_aec(task_id: str, **keywords: Any) -> AECEnv[str, Any, Any]:
    """Make an environment for PettingZoo's ``"aec"`` registry.

    The agents act in turn: in a game in turns those whose turn it is, elsewhere one after another.
    """
    env = make(task_id, **keywords)
    in_turns = env.task.defines("acting")
    return TurnsEnv(env) if in_turns else parallel_to_aec(env)
