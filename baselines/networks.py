"""What networks are made of: layers, their initial weights, and the normalisation of their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Linear(NamedTuple):
    """One layer."""

    weight: Any
    bias: Any


def multilayer(
    layers: Sequence[Linear], x: jax.Array, activation: Callable[[jax.Array], jax.Array] = jnp.tanh
) -> jax.Array:
    """A multilayer perceptron with tanh, or another activation, between the layers."""
    for layer in layers[:-1]:
        x = activation(x @ layer.weight + layer.bias)
    return x @ layers[-1].weight + layers[-1].bias


def orthogonal(generator: np.random.Generator, n: int, m: int) -> np.ndarray:
    """A random ``(n, m)`` matrix with orthonormal rows or columns, whichever are fewer (Saxe et al. 2014)."""
    q, r = np.linalg.qr(generator.standard_normal((max(n, m), min(n, m))))
    q *= np.sign(np.diag(r))  # else the distribution is not uniform
    return (q if n >= m else q.T).astype(np.float32)


def initial_layers(generator: np.random.Generator, widths: Sequence[int], gain: float) -> tuple[Linear, ...]:
    """Layers of these widths: orthogonal weights (gain sqrt 2, and ``gain`` at the end) and zero biases.

    Made by NumPy on the host: batched QR inside a compiled program can deadlock small CPUs.
    """
    gains = [np.sqrt(2)] * (len(widths) - 2) + [gain]
    return tuple(
        Linear(orthogonal(generator, n, m) * np.float32(g), np.zeros(m, np.float32))
        for n, m, g in zip(widths[:-1], widths[1:], gains, strict=True)
    )


PATCHES = ((4, 16), (2, 32))
"""Of an encoder's layers: pixels along a patch, and channels."""
CODE = 64
"""Numbers that an encoder makes of a picture."""


class Encoder(NamedTuple):
    """A convolutional network that makes :data:`CODE` numbers of a picture.

    Strides are as long as kernels, so that a layer is a reshape and a matrix product, as the first of a vision
    transformer (Dosovitskiy et al. 2021, arXiv:2010.11929). CPUs are fast at that, and slow at the gradients of
    convolutions whose windows overlap.
    """

    layers: tuple[Linear, ...]
    """``(pixels of a patch x channels, channels of the next)``"""
    last: Linear

    @classmethod
    def initial(cls, generator: np.random.Generator, picture: tuple[int, ...]) -> Encoder:
        """Orthogonal weights (gain sqrt 2) and zero biases, for pictures ``(height, width, channels)``."""
        height, width, channels = picture
        layers: list[Linear] = []
        for side, wider in PATCHES:
            layers += initial_layers(generator, (side * side * channels, wider), gain=math.sqrt(2))
            height, width, channels = -(-height // side), -(-width // side), wider
        return cls(tuple(layers), *initial_layers(generator, (height * width * channels, CODE), gain=math.sqrt(2)))

    def __call__(self, picture: jax.Array) -> jax.Array:
        """``(..., CODE)`` of uint8 pictures ``(..., height, width, channels)``."""
        x = picture.astype(jnp.float32) / 255
        for (side, _), layer in zip(PATCHES, self.layers, strict=True):
            x = jax.nn.relu(patches(x, side) @ layer.weight + layer.bias)
        return jax.nn.relu(jax.lax.collapse(x, x.ndim - 3) @ self.last.weight + self.last.bias)


def patches(x: jax.Array, side: int) -> jax.Array:
    """``(..., height, width, channels)`` cut into squares: ``(..., rows, columns, side * side * channels)``.

    Zeros fill up the squares at the lower and right borders.
    """
    *batch, height, width, channels = x.shape
    rows, columns = -(-height // side), -(-width // side)
    missing = [(0, 0)] * len(batch) + [(0, rows * side - height), (0, columns * side - width), (0, 0)]
    cut = jnp.pad(x, missing).reshape(*batch, rows, side, columns, side, channels)
    return cut.swapaxes(-4, -3).reshape(*batch, rows, columns, side * side * channels)


class Moments(NamedTuple):
    """Running mean and variance of each feature; what observations are normalised by."""

    mean: Any
    variance: Any
    count: Any

    def update(self, batch: jax.Array) -> Moments:
        """With ``(n, features)`` more, by the parallel formula of Chan, Golub & LeVeque 1983."""
        n, mean, variance = batch.shape[0], batch.mean(0), batch.var(0)
        count = self.count + n
        shift = mean - self.mean
        spread = self.variance * self.count + variance * n + shift**2 * (self.count * n / count)
        return Moments(self.mean + shift * (n / count), spread / count, count)

    def of_first(self, count: int) -> Moments:
        """Those of the first ``count`` features only."""
        return self._replace(mean=self.mean[:count], variance=self.variance[:count])

    def normalise(self, x: jax.Array) -> jax.Array:
        """Zero mean and unit variance, clipped to ten standard deviations."""
        return jnp.clip((x - self.mean) * jax.lax.rsqrt(self.variance + 1e-8), -10, 10)
