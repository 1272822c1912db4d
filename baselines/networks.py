"""Provide the building blocks of networks.

They are layers and their initial weights, normalisation of inputs, and distributions of actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float, FloatArray

# -- layers ----------------------------------------------------------------------------------------


class Linear(NamedTuple):
    """Layer ``x @ weight + bias``."""

    weight: FloatArray
    """float32 ``(inputs, outputs)``; NumPy's at first, JAX's in training."""
    bias: FloatArray
    """float32 ``(outputs,)``."""


def mlp(
    layers: Sequence[Linear], x: jax.Array, activation: Callable[[jax.Array], jax.Array] = jnp.tanh
) -> jax.Array:
    """Apply a multilayer perceptron with an activation between its layers."""
    for layer in layers[:-1]:
        x = activation(x @ layer.weight + layer.bias)
    return x @ layers[-1].weight + layers[-1].bias


def orthogonal(generator: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Return a random ``(n, m)`` matrix with orthonormal rows or columns.

    The fewer of the two are orthonormal (Saxe et al. 2014).
    """
    q, r = np.linalg.qr(generator.standard_normal((max(n, m), min(n, m))))
    q *= np.sign(np.diag(r))  # without it the distribution is not uniform
    return (q if n >= m else q.T).astype(np.float32)


def initial_layers(
    generator: np.random.Generator, widths: Sequence[int], gain: float
) -> tuple[Linear, ...]:
    """Return layers of these widths, with orthogonal weights and zero biases.

    The gain is sqrt 2, and ``gain`` in the last layer.

    NumPy makes them on the host, because batched QR inside a compiled program can deadlock small
    CPUs.
    """
    gains = [np.sqrt(2)] * (len(widths) - 2) + [gain]
    return tuple(
        Linear(orthogonal(generator, n, m) * np.float32(g), np.zeros(m, np.float32))
        for n, m, g in zip(widths[:-1], widths[1:], gains, strict=True)
    )


PATCHES = ((4, 16), (2, 32))
"""Layers of the encoder: side of a patch in pixels, and output channels."""
CODE_SIZE = 64
"""Length of the vector that encodes an image."""


class Encoder(NamedTuple):
    """A convolutional network that encodes an image as :data:`CODE_SIZE` numbers.

    The stride of each layer equals its kernel size. A layer is then a reshape and a matrix product,
    as in the first layer of a vision transformer (Dosovitskiy et al. 2021, arXiv:2010.11929). CPUs
    compute that fast; they are slow at the gradients of convolutions with overlapping windows.
    """

    layers: tuple[Linear, ...]
    """Weights ``(pixels of a patch x channels, channels of the next layer)``."""
    last: Linear

    @classmethod
    def initial(cls, generator: np.random.Generator, image_shape: tuple[int, ...]) -> Encoder:
        """Return an encoder of images ``(height, width, channels)``.

        Its weights are orthogonal with gain sqrt 2, its biases zero.
        """
        height, width, channels = image_shape
        layers: list[Linear] = []
        for side, next_channels in PATCHES:
            layers += initial_layers(
                generator, (side * side * channels, next_channels), gain=math.sqrt(2)
            )
            height = -(-height // side)
            width = -(-width // side)
            channels = next_channels
        return cls(
            tuple(layers),
            *initial_layers(generator, (height * width * channels, CODE_SIZE), gain=math.sqrt(2)),
        )

    def __call__(self, images: jax.Array) -> jax.Array:
        """Encode uint8 images ``(..., height, width, channels)`` as ``(..., CODE_SIZE)``."""
        x = images.astype(jnp.float32) / 255
        for (side, _), layer in zip(PATCHES, self.layers, strict=True):
            x = jax.nn.relu(cut_patches(x, side) @ layer.weight + layer.bias)
        return jax.nn.relu(jax.lax.collapse(x, x.ndim - 3) @ self.last.weight + self.last.bias)


def cut_patches(x: jax.Array, side: int) -> jax.Array:
    """Cut an image ``(..., height, width, channels)`` into squares.

    The result is ``(..., rows, columns, side * side * channels)``.

    Zeros pad the squares at the lower and right borders.
    """
    *batch, height, width, channels = x.shape
    rows = -(-height // side)
    columns = -(-width // side)
    padding = [(0, 0)] * len(batch) + [
        (0, rows * side - height),
        (0, columns * side - width),
        (0, 0),
    ]
    grid = jnp.pad(x, padding).reshape(*batch, rows, side, columns, side, channels)
    return grid.swapaxes(-4, -3).reshape(*batch, rows, columns, side * side * channels)


# -- normalisation ---------------------------------------------------------------------------------

CONSTANT_RATIO = 1e-12
"""Largest ratio of variance to squared mean of a feature that counts as constant.

Its standard deviation is then a few units of the last place of float32.
"""


class Moments(NamedTuple):
    """Running mean and variance of each feature, which normalise observations."""

    mean: FloatArray
    """float32 ``(features,)``."""
    variance: FloatArray
    """float32 ``(features,)``."""
    count: Float
    """Number of rows seen, float32 ``()``.

    It is exact for the first 2**24 batches of one size, and then stays: every later batch has the
    same weight, as in an exponential mean.
    """

    @classmethod
    def initial(cls, features: int) -> Moments:
        """Return moments of no data, which leave observations unchanged."""
        return cls(jnp.zeros(features), jnp.ones(features), jnp.float32(0))

    def update(self, batch: jax.Array) -> Moments:
        """Return the moments with a batch ``(n, features)`` added.

        The formula is that of Chan, Golub & LeVeque 1983.
        """
        n = batch.shape[0]
        mean = batch.mean(0)
        variance = batch.var(0)
        count = self.count + n
        shift = mean - self.mean
        squares = self.variance * self.count + variance * n + shift**2 * (self.count * n / count)
        return Moments(self.mean + shift * (n / count), squares / count, count)

    def first(self, count: int) -> Moments:
        """Return the moments of the first ``count`` features."""
        return self._replace(mean=self.mean[:count], variance=self.variance[:count])

    @property
    def scale(self) -> jax.Array:
        """Variance that normalises each feature. It is one for a feature that has never changed.

        Otherwise the least change of such a feature on test contexts would be ten standard
        deviations.
        """
        return jnp.where(self.variance <= CONSTANT_RATIO * self.mean**2, 1.0, self.variance + 1e-8)

    def normalise(self, x: jax.Array) -> jax.Array:
        """Scale ``x`` to zero mean and unit variance, clipped to ten standard deviations."""
        return jnp.clip((x - self.mean) * jax.lax.rsqrt(self.scale), -10, 10)


# -- distributions of actions ----------------------------------------------------------------------


class Categorical(NamedTuple):
    """Discrete choices, each with logits ``(..., n)``.

    Actions are int32 ``(..., number of choices)``.
    """

    logits: tuple[jax.Array, ...]

    @staticmethod
    def noise(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Return the random numbers for a sample: one uniform number for each choice."""
        return jax.random.uniform(key, shape)

    def sample(self, noise: jax.Array) -> jax.Array:
        """Sample by inverting the distribution function.

        An action of probability 0 is never chosen this way.
        """
        cumulative = [jnp.cumsum(jax.nn.softmax(logits), -1) for logits in self.logits]
        choices = [
            (height <= noise[..., i, None] * height[..., -1:]).sum(-1, dtype=jnp.int32)
            for i, height in enumerate(cumulative)
        ]
        return jnp.stack(choices, -1)

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
        entropies = [
            -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1) for logits in self.logits
        ]
        return sum(entropies[1:], entropies[0])


class Gaussian(NamedTuple):
    """A diagonal Gaussian without squashing.

    The environment gets a clipped copy of the action; ``log_prob`` gets the sample itself.
    """

    mean: jax.Array
    log_std: jax.Array

    @staticmethod
    def noise(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Return the random numbers for a sample: one normal number for each component."""
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
        """Return the entropy ``(...)`` in nats, summed over components.

        It is the same in every state.
        """
        return jnp.broadcast_to(
            (self.log_std + 0.5 * np.log(2 * np.pi * np.e)).sum(), self.mean.shape[:-1]
        )


def choice_probabilities(distribution: Categorical | Gaussian, evaluate: str) -> jax.Array:
    """Return the probability of each action of one agent's single choice, ``(n,)``.

    Args:
        distribution: of one agent, ``(1, n)``.
        evaluate: ``mode``, where the most likely action is played, or ``sample``.

    Raises:
        ValueError: actions are continuous.
    """
    if isinstance(distribution, Gaussian):
        raise ValueError("Continuous actions have densities, not probabilities.")
    logits = distribution.logits[0][0]
    if evaluate == "mode":
        return jax.nn.one_hot(logits.argmax(), len(logits))
    return jax.nn.softmax(logits)
