"""QMIX: a network with weights that are never negative mixes the values of the agents.

The algorithm is that of Rashid et al. 2018 (arXiv:1803.11485). Hypernetworks read the global state
and give the weights of the mixing network; their absolute values are taken, so that the joint value
rises with that of each agent, or stays. Biases may have any sign. ``joint_values.py`` has all the
rest.

As in the paper, a linear layer gives each weight and the first bias, and two layers with a ReLU
between give the last bias; the mixing network has one layer of ELU. Here the biases of the layers
that give weights start such that the mixer is about a sum: with all of them at zero, a state that
is always the same (which normalisation sends to zero) would give weights that stay zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..networks import Linear, initial_layers, mlp
from ..replay import dqn
from .joint_values import JointValues, TeamAgent


@dataclass(frozen=True)
class Config(dqn.Config):
    """Hyperparameters of QMIX.

    Their values for each task and budget are in ``hyperparameters/qmix.yaml``.
    """

    mixing_units: int = 32
    """Width of the mixing network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mixing_units < 1:
            raise ValueError(f"mixing_units must be at least 1, got {self.mixing_units}.")


class Mixer(NamedTuple):
    """Hypernetworks from the global state to the parameters of the mixing network of E units."""

    first_weight: tuple[Linear, ...]
    """To ``A * E`` numbers."""
    first_bias: tuple[Linear, ...]
    """To ``E`` numbers."""
    last_weight: tuple[Linear, ...]
    """To ``E`` numbers."""
    last_bias: tuple[Linear, ...]
    """To one number, through E units of ReLU."""

    @classmethod
    def initial(cls, seed: int, state_size: int, agents: int, units: int) -> Mixer:
        """Return orthogonal weights; those that give weights have biases of ``1 / sqrt(E)``."""
        generator = np.random.default_rng([seed, 1])

        def weights(count: int) -> tuple[Linear, ...]:
            (layer,) = initial_layers(generator, (state_size, count), gain=INITIAL_GAIN)
            return (layer._replace(bias=np.full(count, units**-0.5, np.float32)),)

        return cls(
            weights(agents * units),
            initial_layers(generator, (state_size, units), gain=INITIAL_GAIN),
            weights(units),
            initial_layers(generator, (state_size, units, 1), gain=1.0),
        )


INITIAL_GAIN = 0.1
"""Gain of the hypernetworks' linear layers at the start, small beside their biases."""


def mix_monotonically(mixer: Mixer, values: jax.Array, state: jax.Array) -> jax.Array:
    """Return the joint value ``()`` of the agents' values ``(A,)`` in a state ``(n,)``."""
    first = jnp.abs(mlp(mixer.first_weight, state)).reshape(values.shape[0], -1)
    hidden = jax.nn.elu(values @ first + mlp(mixer.first_bias, state))
    last = jnp.abs(mlp(mixer.last_weight, state))
    return hidden @ last + mlp(mixer.last_bias, state, jax.nn.relu)[0]


class MonotoneValues(JointValues):
    """Mixes by the monotone network."""

    config: Config

    def initial_mixer(self, seed: int) -> Mixer:
        """Return the initial hypernetworks."""
        return Mixer.initial(seed, self.state_size(), self.flat.agents, self.config.mixing_units)

    def state_size(self) -> int:
        """Return the length of the global state."""
        return self.flat.global_features

    def mix(self, mixer: Mixer, values: jax.Array, state: jax.Array) -> jax.Array:
        """Return the values of joint actions."""
        return jax.vmap(mix_monotonically, in_axes=(None, 0, 0))(mixer, values, state)


class QMIX(TeamAgent):
    """The agent ``qmix``."""

    name = "qmix"
    algorithm_class = MonotoneValues
    config_class = Config
