"""PPO's actor: maps a normalised observation to a distribution of actions."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.evaluation.network import Affine, Join, Layer, Tanh, between, perceptron

from .distributions import Categorical, Gaussian
from .flat_task import FlatTask
from .networks import CODE_SIZE, Encoder, Linear, initial_layers, mlp


class Actor(NamedTuple):
    """The policy's network.

    Some tasks describe each action by F features (``action_features``, shape ``(actions, F)``). The network then
    outputs F numbers, and the logit of an action is their product with its features plus a bias. With thousands of
    actions, the agent tries each one too rarely to learn about it alone, but it sees every feature often. A linear path
    from the observation to those F numbers runs beside the network. It learns first how the observation bears on each
    feature.
    """

    layers: tuple[Linear, ...]
    log_std: Any
    """``(components,)``; None for discrete actions."""
    action_bias: Any
    """``(actions,)``; None without action features."""
    direct: Any
    """``(features, F)``; None without action features."""
    encoder: Encoder | None
    """Encodes the image; the critic uses it too. None without images."""

    @classmethod
    def initial(
        cls, generator: np.random.Generator, flat: FlatTask, inputs: int, hidden: tuple[int, ...], log_std: float
    ) -> Actor:
        """Return an actor with ``inputs`` inputs: orthogonal weights, a small last layer, zeros elsewhere."""
        features = flat.action_features
        outputs = flat.outputs if features is None else features.shape[1]
        return cls(
            initial_layers(generator, (inputs, *hidden, outputs), gain=0.01),
            None if flat.choices else np.full(flat.outputs, log_std, np.float32),
            None if features is None else np.zeros(features.shape[0], np.float32),
            None if features is None else np.zeros((inputs, features.shape[1]), np.float32),
            None if flat.image_shape is None else Encoder.initial(generator, flat.image_shape),
        )

    def __call__(self, flat: FlatTask, x: jax.Array, mask: jax.Array | None) -> Categorical | Gaussian:
        """Return the distribution of actions for normalised observations ``(..., features)`` with encoded images.

        Inputs beyond the network's own are privileged; the actor ignores them.
        """
        x = x[..., : self.layers[0].weight.shape[0]]
        outputs = mlp(self.layers, x)
        if not flat.choices:
            return Gaussian(outputs, self.log_std)
        if flat.action_features is not None:
            outputs = (outputs + x @ self.direct) @ flat.action_features.T.astype(np.float32) + self.action_bias
        if mask is not None:
            outputs = jnp.where(mask, outputs, -1e9)  # probability exactly 0, and no NaN in the entropy
        return Categorical(tuple(jnp.split(outputs, np.cumsum(flat.choices)[:-1], -1)))

    def acting_layers(self, flat: FlatTask) -> list[Layer]:
        """Return the layers from normalised observations to the most likely action, or to logits.

        Raises:
            ValueError: it reads an image.
        """
        if self.encoder is not None:
            raise ValueError(f"A policy of {flat.task.card.id} reads an image, which cannot be exported.")
        layers = perceptron(self.layers, Tanh())
        if self.action_bias is None:
            return layers if flat.choices else [*layers, *between(flat.low, flat.high)]
        return [*layers[:-1], *scored_layers(flat, self.layers[-1], self.direct, self.action_bias)]


def scored_layers(flat: FlatTask, last: Linear, direct: Any, action_bias: Any) -> list[Layer]:
    """Return the layers behind the last activation of a network that scores actions by their features."""
    features = np.asarray(flat.action_features, np.float64).T
    weight = np.concatenate([np.asarray(last.weight), np.asarray(direct)[: flat.features]]) @ features
    bias = np.asarray(last.bias) @ features + np.asarray(action_bias)
    return [Join(), Affine(weight.astype(np.float32), bias.astype(np.float32))]


def actor_inputs(flat: FlatTask) -> int:
    """Count an actor's inputs: the features of the observation and the code of its image."""
    return flat.features + (0 if flat.image_shape is None else CODE_SIZE)


def encode_image(actor: Any, image: jax.Array | None) -> jax.Array | None:
    """Return the code of an image from an actor's encoder, or None without images."""
    return None if image is None else actor.encoder(image)


def append_code(flat: FlatTask, x: jax.Array, code: jax.Array | None) -> jax.Array:
    """Append the image code to normalised observations, in front of the privileged features."""
    if code is None:
        return x
    return jnp.concatenate([x[..., : flat.features], code, x[..., flat.features :]], -1)
