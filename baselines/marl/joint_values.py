"""Deep Q-learning of a team: the value of a joint action is mixed from those of its agents.

``vdn.py`` and ``qmix.py`` say how values are mixed. What they share is here. All agents share one
network of action values, which reads what its agent observes. The mixed value learns from the
team's reward, the mean over agents, as the score of an episode is. A mixed value rises with that of
each agent, so the best joint action is the best action of each agent, and no agent needs the mixer
to act.

Exploration, target networks, double Q-learning and masks are those of ``replay/dqn.py``, replay and
the training loop those of ``replay/replay_agent.py``. A row of the buffer is a step of all agents.
The loss is the squared error, as in both papers: Huber's would let a sum leave out the payoffs
that fit worst, and not learn the mean. Agents have no memory, unlike those of both papers.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.agent import CannotPlay

from ..networks import Moments
from ..replay.dqn import DQN, DeepQ, Network
from ..replay.replay_agent import Experience

if TYPE_CHECKING:
    from rlbench_suite.core.task import Task


class TeamView(NamedTuple):
    """Inputs of the networks for a batch of B steps."""

    agents: jax.Array
    """Observations, float32 ``(B, A, features)``."""
    state: jax.Array
    """Global state, float32 ``(B, n)``; empty if the mixer reads none."""


class TeamMoments(NamedTuple):
    """Moments of both."""

    agents: Moments
    state: Moments

    def normalise(self, x: TeamView) -> TeamView:
        """Normalise both."""
        return TeamView(self.agents.normalise(x.agents), self.state.normalise(x.state))

    def update(self, x: TeamView) -> TeamMoments:
        """Return the moments with a batch added."""
        rows = x.agents.reshape(-1, x.agents.shape[-1])
        return TeamMoments(self.agents.update(rows), self.state.update(x.state))


class Networks(NamedTuple):
    """Network of action values, and what mixes them."""

    agent: Network
    mixer: Any
    """Weights of the mixer; None if it has none."""


class JointValues(DeepQ):
    """Deep Q-learning of mixed values."""

    @abstractmethod
    def initial_mixer(self, seed: int) -> Any:
        """Return initial weights of the mixer."""

    @abstractmethod
    def state_size(self) -> int:
        """Return the length of the global state that the mixer reads; 0 if it reads none."""

    @abstractmethod
    def mix(self, mixer: Any, values: jax.Array, state: jax.Array) -> jax.Array:
        """Return the values of joint actions, ``(B,)``.

        Args:
            mixer: weights of the mixer.
            values: value of each agent's action, ``(B, A)``.
            state: normalised global state, ``(B, n)``.
        """

    # -- a row of the buffer is a step of all agents -----------------------------------------------

    def observe(self, step: Any) -> tuple[TeamView, jax.Array | None]:
        """Return observations, global states and masks in every environment after a step."""
        x, mask = super().observe(step)
        if self.state_size():
            state = jax.vmap(self.flat.observe_globally)(step)
        else:
            state = jnp.zeros((x.shape[0], 0))
        return TeamView(x, state), mask

    def initial_moments(self) -> TeamMoments:
        """Return moments of no data."""
        return TeamMoments(super().initial_moments(), Moments.initial(self.state_size()))

    def acting_moments(self, moments: TeamMoments) -> Moments:
        """Return the moments of observations."""
        return moments.agents

    def transitions(
        self, x: Any, action: jax.Array, step: Any, next_x: Any, next_mask: jax.Array | None
    ) -> Experience:
        """Return a row for each environment."""
        reward = jax.vmap(self.flat.team_reward)(step.reward) * self.config.reward_scale
        return Experience(x, action, reward, next_x, self.pack_mask(next_mask), step.terminated)

    # -- learning ----------------------------------------------------------------------------------

    def networks(self, seed: int) -> Any:
        """Return the initial networks."""
        return Networks(super().networks(seed), self.initial_mixer(seed))

    def explore(
        self, networks: Any, x: Any, mask: jax.Array | None, key: jax.Array, steps: jax.Array
    ) -> jax.Array:
        """Choose epsilon-greedy actions, each agent by its own values."""
        return super().explore(networks.agent, x.agents, mask, key, steps)

    def gradient(self, network: Networks, targets: Networks, batch: Experience) -> Networks:
        """Return the gradient of the loss of the mixed values."""
        next_mask = self.unpack_mask(batch.next_legal)
        target_value = self.target(network, targets, batch, next_mask)
        return jax.grad(self.loss)(network, target_value, batch)

    def target(
        self, network: Networks, targets: Networks, batch: Experience, mask: jax.Array | None
    ) -> jax.Array:
        """Return the target values, ``(B,)``.

        Each agent's network chooses its next action, and the target networks evaluate them all.
        """
        next_x: Any = batch.next_x
        next_action = network.agent.values(self.flat, next_x.agents, mask).argmax(-1)
        next_value = self.joint_value(targets, next_x, next_action)
        return batch.reward + self.config.gamma * jnp.where(batch.terminated, 0, next_value)

    def loss(self, network: Networks, target_value: jax.Array, batch: Experience) -> jax.Array:
        """Return the mean squared error of the values of the joint actions taken."""
        value = self.joint_value(network, batch.x, batch.action[..., 0])
        return 0.5 * ((value - target_value) ** 2).mean()

    def joint_value(self, networks: Networks, x: Any, action: jax.Array) -> jax.Array:
        """Return the values of joint actions ``(B, A)``."""
        values = networks.agent.action_value(self.flat, x.agents, action)
        return self.mix(networks.mixer, values, x.state)

    def actor(self, networks: Any) -> Network:
        """Return the network of action values, which is all that acting needs."""
        agent: Network = networks.agent
        return agent


class TeamAgent(DQN):
    """An agent that trains :class:`JointValues`, for one discrete choice of each agent a step."""

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the task has one agent, or choices that DQN cannot make."""
        if task.card.agents == 1:
            raise CannotPlay(
                f"{self.name} mixes the values of several agents; {task.card.id} has one. Use dqn."
            )
        super().check(task)
