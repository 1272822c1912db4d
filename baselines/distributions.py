"""Action distributions, parametrised by the outputs of a policy's network."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Categorical(NamedTuple):
    """One or more discrete choices, each with logits ``(..., n)``. Actions are int32 ``(..., number of choices)``."""

    logits: tuple[jax.Array, ...]

    @staticmethod
    def noise(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Draw the random numbers for a sample: one uniform number for each choice."""
        return jax.random.uniform(key, shape)

    def sample(self, noise: jax.Array) -> jax.Array:
        """Sample by inverting the distribution function, so that an action of probability 0 is never drawn."""
        heights = [jnp.cumsum(jax.nn.softmax(logits), -1) for logits in self.logits]
        chosen = [
            (height <= noise[..., i, None] * height[..., -1:]).sum(-1, dtype=jnp.int32)
            for i, height in enumerate(heights)
        ]
        return jnp.stack(chosen, -1)

    def mode(self) -> jax.Array:
        """Return the most likely action."""
        return jnp.stack([logits.argmax(-1).astype(jnp.int32) for logits in self.logits], -1)

    def log_prob(self, action: jax.Array) -> jax.Array:
        """Return the log probability ``(...)``, summed over choices."""
        log_probs = [
            jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., i, None], -1)[..., 0]
            for i, logits in enumerate(self.logits)
        ]
        return sum(log_probs[1:], log_probs[0])

    def entropy(self) -> jax.Array:
        """Return the entropy ``(...)`` in nats, summed over choices."""
        entropies = [-(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1) for logits in self.logits]
        return sum(entropies[1:], entropies[0])


class Gaussian(NamedTuple):
    """A diagonal Gaussian without squashing.

    The environment gets a clipped copy of the action; ``log_prob`` gets the action as drawn.
    """

    mean: jax.Array
    log_std: jax.Array

    @staticmethod
    def noise(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Draw the random numbers for a sample: one normal number for each component."""
        return jax.random.normal(key, shape)

    def sample(self, noise: jax.Array) -> jax.Array:
        """Return an action ``(..., components)``."""
        return self.mean + jnp.exp(self.log_std) * noise

    def mode(self) -> jax.Array:
        """Return the mean."""
        return self.mean

    def log_prob(self, action: jax.Array) -> jax.Array:
        """Return the log density ``(...)``, summed over components."""
        deviation = (action - self.mean) * jnp.exp(-self.log_std)
        return (-0.5 * deviation**2 - self.log_std - 0.5 * np.log(2 * np.pi)).sum(-1)

    def entropy(self) -> jax.Array:
        """Return the entropy ``(...)`` in nats, summed over components; it is the same in every state."""
        return jnp.broadcast_to((self.log_std + 0.5 * np.log(2 * np.pi * np.e)).sum(), self.mean.shape[:-1])


class SquashedGaussian(NamedTuple):
    """The tanh of a diagonal Gaussian: actions in (-1, 1) (Haarnoja et al. 2019, appendix C)."""

    mean: jax.Array
    """Before squashing."""
    log_std: jax.Array

    def sample(self, noise: jax.Array) -> jax.Array:
        """Return an action ``(..., components)`` from one normal number for each component."""
        return jnp.tanh(self.mean + jnp.exp(self.log_std) * noise)

    def sample_with_log_prob(self, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return an action and its log density ``(...)``, summed over components."""
        before = self.mean + jnp.exp(self.log_std) * noise
        gaussian = -0.5 * noise**2 - self.log_std - 0.5 * np.log(2 * np.pi)
        # log(1 - tanh(u)^2) in a form that neither cancels nor overflows for large |u|
        slope = 2 * (np.log(2) - before - jax.nn.softplus(-2 * before))
        return jnp.tanh(before), (gaussian - slope).sum(-1)

    def mode(self) -> jax.Array:
        """Return the tanh of the mean."""
        return jnp.tanh(self.mean)
