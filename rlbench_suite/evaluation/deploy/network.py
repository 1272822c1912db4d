"""Acting policies as short lists of layers, whatever agent trained them.

Policies leave the simulator in this form.

A learned policy gives its parameters as plain data
(:class:`rlbench_suite.core.policy.ActingParameters`), and :func:`build_network` makes a
:class:`Network` of them: normalisation of observations, layers, memory, and how its outputs become
an action. ``c_header.py`` and ``onnx_export.py`` write it for other machines. The network is one
agent's; several agents share it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rlbench_suite.core.policy import ActingParameters
from rlbench_suite.evaluation.flat_rows import FlatRows


class Scale(NamedTuple):
    """Layer ``(x - subtract) * factor + add``, entry by entry."""

    subtract: np.ndarray
    factor: np.ndarray
    add: np.ndarray


class Clip(NamedTuple):
    """Layer that clips each entry to its bounds."""

    low: np.ndarray
    high: np.ndarray


class Affine(NamedTuple):
    """Layer ``x @ weight + bias``."""

    weight: np.ndarray
    bias: np.ndarray


class Tanh(NamedTuple):
    """Layer of hyperbolic tangents."""


class Relu(NamedTuple):
    """Layer that replaces negative entries by zero."""


class GRU(NamedTuple):
    """Gated recurrent unit of ``U`` units.

    Its weights hold three gates side by side: reset, keep, candidate.

    Its output is its input with the new memory behind it.
    """

    inputs: Affine
    recurrence: Affine

    @property
    def units(self) -> int:
        """Number of entries that it appends to its input: ``U``."""
        return len(self.recurrence.weight)

    @property
    def size(self) -> int:
        """Size of the memory."""
        return self.units

    def next_memory(self, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Return the next memory."""
        from_input = np.split(x @ self.inputs.weight + self.inputs.bias, 3, -1)
        from_memory = np.split(memory @ self.recurrence.weight + self.recurrence.bias, 3, -1)
        reset, keep = (_sigmoid(from_input[i] + from_memory[i]) for i in (0, 1))
        return keep * memory + (1 - keep) * np.tanh(from_input[2] + reset * from_memory[2])


class LSTM(NamedTuple):
    """Long short-term memory of ``U`` cells.

    Its weights hold input gate, forget gate, candidate and output gate.

    Its memory holds cells, then outputs; it appends the outputs.
    """

    inputs: Affine
    recurrence: Affine

    @property
    def units(self) -> int:
        """Number of entries that it appends to its input: ``U``."""
        return len(self.recurrence.weight)

    @property
    def size(self) -> int:
        """Size of the memory, ``2 U``."""
        return 2 * self.units

    def next_memory(self, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Return the next memory."""
        cell, output = np.split(memory, 2, -1)
        from_input = np.split(x @ self.inputs.weight + self.inputs.bias, 4, -1)
        from_memory = np.split(output @ self.recurrence.weight + self.recurrence.bias, 4, -1)
        write, keep, candidate, show = (a + b for a, b in zip(from_input, from_memory, strict=True))
        cell = _sigmoid(keep) * cell + _sigmoid(write) * np.tanh(candidate)
        return np.concatenate([cell, _sigmoid(show) * np.tanh(cell)], -1)


class MinGRU(NamedTuple):
    """Linear recurrence of ``U`` units.

    Its weights hold a gate and a candidate, which see the input alone.
    """

    inputs: Affine

    @property
    def units(self) -> int:
        """Number of entries that it appends to its input: ``U``."""
        return len(self.inputs.bias) // 2

    @property
    def size(self) -> int:
        """Size of the memory."""
        return self.units

    def next_memory(self, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Return the next memory."""
        gate, candidate = np.split(x @ self.inputs.weight + self.inputs.bias, 2, -1)
        share = _sigmoid(gate)
        return (1 - share) * memory + share * candidate


class Join(NamedTuple):
    """Layer that appends the output of the first :class:`Clip`: the normalised observation."""


Memory = GRU | LSTM | MinGRU
Layer = Scale | Clip | Affine | Tanh | Relu | Memory | Join


@dataclass(frozen=True)
class Network:
    """The acting part of a policy. Arrays are float32.

    Attributes:
        layers: layers in the order in which an observation passes them.
        choices: numbers of values of the discrete choices, whose logits the last layer gives one
            after another; empty for a continuous action, which the last layer gives.
        sampled: True if the policy of the simulator samples its action, where this network takes
            the most likely one.
    """

    layers: tuple[Layer, ...]
    choices: tuple[int, ...] = ()
    sampled: bool = False

    @property
    def features(self) -> int:
        """Number of entries of an observation."""
        first = self.layers[0]
        return len(first.subtract) if isinstance(first, Scale) else len(_affine(self.layers).weight)

    @property
    def units(self) -> int:
        """Size of the memory; 0 without one."""
        return next((layer.size for layer in self.layers if isinstance(layer, Memory)), 0)

    @property
    def outputs(self) -> int:
        """Number of outputs of the last layer."""
        return self.widths()[-1]

    def widths(self) -> list[int]:
        """Return the number of entries before the first layer and after each layer."""
        widths = [self.features]
        for layer in self.layers:
            if isinstance(layer, Affine):
                widths.append(len(layer.bias))
            else:
                joined = self.features if isinstance(layer, Join) else 0
                widths.append(widths[-1] + (layer.units if isinstance(layer, Memory) else joined))
        return widths

    def run(
        self, x: np.ndarray, mask: np.ndarray | None, memory: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return actions and the next memory, in float32.

        Args:
            x: observations ``(n, features)``.
            mask: legal choices, bool ``(n, outputs)``; None if all are.
            memory: ``(n, units)``, zeros at the start of an episode.

        Returns:
            Actions ``(n, outputs)``, or the discrete choices, int64 ``(n, number of choices)``; and
            the memory.
        """
        x, normalised = np.asarray(x, np.float32), None
        for layer in self.layers:
            match layer:
                case Scale(subtract, factor, add):
                    x = (x - subtract) * factor + add
                case Clip(low, high):
                    x = np.clip(x, low, high)
                    normalised = x if normalised is None else normalised
                case Affine(weight, bias):
                    x = x @ weight + bias
                case Tanh():
                    x = np.tanh(x)
                case Relu():
                    x = np.maximum(x, 0)
                case GRU() | LSTM() | MinGRU():
                    memory = layer.next_memory(x, memory)
                    x = np.concatenate([x, memory[..., -layer.units :]], -1)
                case Join():
                    assert normalised is not None
                    x = np.concatenate([x, normalised], -1)
        if not self.choices:
            return x, memory
        legal = x if mask is None else np.where(mask, x, -np.inf)
        logits = np.split(legal, np.cumsum(self.choices)[:-1], axis=-1)
        return np.stack([choice_logits.argmax(-1) for choice_logits in logits], -1), memory

    def in_units(self, observation: np.ndarray, action: np.ndarray) -> Network:
        """Return the same network between physical quantities.

        Args:
            observation: quantity that the value 1 of each entry stands for, ``(features,)``.
            action: the same of a continuous action, ``(outputs,)``.
        """
        first, *tail = self.layers
        if not isinstance(first, Scale):
            tail = [first, *tail]
            zero = np.zeros(self.features, np.float32)
            first = Scale(zero, zero + 1, zero)
        scale = np.asarray(observation, np.float64)
        layers: list[Layer] = [
            Scale(_float32(first.subtract * scale), _float32(first.factor / scale), first.add)
        ]
        if self.choices:
            return replace(self, layers=(*layers, *tail))
        unit = np.asarray(action, np.float64)
        for number, layer in enumerate(tail):
            match layer:
                case Scale() if number == len(tail) - 2:
                    layers.append(
                        Scale(
                            layer.subtract,
                            _float32(layer.factor * unit),
                            _float32(layer.add * unit),
                        )
                    )
                case Clip() if number == len(tail) - 1:
                    layers.append(Clip(_float32(layer.low * unit), _float32(layer.high * unit)))
                case _:
                    layers.append(layer)
        return replace(self, layers=tuple(layers))

    def quantise(self) -> Network:
        """Return the network with the weights that eight bits hold.

        They are whole numbers of a step that each output has.
        """
        return replace(self, layers=tuple(_quantise_layer(layer) for layer in self.layers))


def quantise(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights ``(n, m)`` as int8, and the step of each output, float32 ``(m,)``."""
    step = _float32(np.abs(weight).max(0) / 127)
    step = np.where(step > 0, step, np.float32(1))
    return np.round(weight / step).astype(np.int8), step


def build_network(parameters: ActingParameters) -> Network:
    """Return the network that acts as a policy with these parameters does.

    Raises:
        ValueError: its memory cannot be exported.
    """
    layers = normalise(parameters.moments)
    if parameters.memory != "none":
        layers.append(_memory(parameters))
    layers += perceptron(parameters.layers, Tanh() if parameters.activation == "tanh" else Relu())
    if parameters.action_features is not None:
        layers[-1:] = _score_actions(parameters)
    if parameters.squashed:
        layers.append(Tanh())
    if parameters.bounds is not None:
        layers += scale_to_bounds(*parameters.bounds)
    return Network(tuple(layers), parameters.choices, parameters.sampled)


def _memory(parameters: ActingParameters) -> Memory:
    units: dict[str, Any] = {"gru": GRU, "lstm": LSTM, "mingru": MinGRU}
    if parameters.memory not in units:
        raise ValueError(
            f"A memory of {parameters.memory!r} cannot be exported; gru, lstm and mingru can."
        )
    if parameters.action_features is not None:
        raise ValueError(
            "A policy with a memory that scores actions by their features cannot be exported."
        )
    unit: Memory = units[parameters.memory](*(affine(layer) for layer in parameters.memory_layers))
    return unit


def _score_actions(parameters: ActingParameters) -> list[Layer]:
    """Return the last layers of a network that scores actions by their features.

    They follow its last activation.
    """
    features = np.asarray(parameters.action_features, np.float64).T
    last = parameters.layers[-1]
    weight = np.concatenate([np.asarray(last.weight), np.asarray(parameters.direct)]) @ features
    bias = np.asarray(last.bias) @ features + np.asarray(parameters.action_bias)
    return [Join(), Affine(_float32(weight), _float32(bias))]


def perceptron(layers: Sequence[Any], activation: Layer) -> list[Layer]:
    """Return the layers of a multilayer perceptron with an activation between them.

    Args:
        layers: objects with ``weight`` and ``bias``.
        activation: the activation.
    """
    alternating: list[Layer] = []
    for layer in layers:
        alternating += [activation, affine(layer)]
    return alternating[1:]


def affine(layer: Any) -> Affine:
    """Return a layer from an object with ``weight`` and ``bias``."""
    return Affine(_float32(layer.weight), _float32(layer.bias))


def normalise(moments: Any, limit: float = 10.0) -> list[Layer]:
    """Return the layers that normalise observations to zero mean and unit variance.

    The result is clipped to ``limit``.

    Args:
        moments: object with ``mean`` and ``scale``, the variance that normalises each feature.
        limit: largest size of an entry.
    """
    mean = np.asarray(moments.mean)
    scale = np.asarray(moments.scale, np.float64)
    bound = np.full(mean.shape, limit, np.float32)
    return [Scale(_float32(mean), _float32(1 / np.sqrt(scale)), 0 * bound), Clip(-bound, bound)]


def scale_to_bounds(low: np.ndarray, high: np.ndarray) -> list[Layer]:
    """Return the layers that map [-1, 1] onto the bounds of an action, and clip to them."""
    low, high = _float32(low), _float32(high)
    return [Scale(0 * low, (high - low) / 2, (high + low) / 2), Clip(low, high)]


class NetworkPolicy:
    """A network as a policy of the host, on NumPy batches of one agent or several."""

    def __init__(self, network: Network, task: Any) -> None:
        self.network, self.rows = network, FlatRows(task)
        self.memory: np.ndarray | None = None

    def reset(self) -> None:
        """Forget the memory, because new episodes begin."""
        self.memory = None

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        """Return the actions for a batch of observations."""
        x, mask = self.rows.observe(observations), self.rows.mask(action_masks)
        memory = (
            np.zeros((len(x), self.network.units), np.float32)
            if self.memory is None
            else self.memory
        )
        action, self.memory = self.network.run(x, mask, memory)
        return self.rows.choose("action", action, mask)


def _affine(layers: Sequence[Layer]) -> Affine:
    return next(layer for layer in layers if isinstance(layer, Affine))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    half: np.ndarray = 0.5 * np.tanh(0.5 * x) + 0.5
    return half


def _quantise_layer(layer: Layer) -> Layer:
    if isinstance(layer, Affine):
        return _eight_bits(layer)
    return type(layer)(*map(_eight_bits, layer)) if isinstance(layer, Memory) else layer


def _eight_bits(layer: Affine) -> Affine:
    int8_weights, step = quantise(layer.weight)
    return Affine(int8_weights * step, layer.bias)


def _float32(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)


def multiply_adds(network: Network) -> tuple[int, int]:
    """Count the multiplications with an addition and the hyperbolic tangents of one step."""
    products, functions = weights(network)[0], 0
    for layer, width in zip(network.layers, network.widths(), strict=False):
        match layer:
            case GRU() | MinGRU():
                products += 3 * layer.units
                functions += (3 if isinstance(layer, GRU) else 1) * layer.units
            case LSTM():
                products += 3 * layer.units
                functions += 5 * layer.units
            case Tanh():
                functions += width
            case Scale():
                products += width
    return products, functions


def weights(network: Network) -> tuple[int, int]:
    """Count the weights that eight bits may hold, and the outputs that then need a step each."""
    layers = [
        affine_layer
        for layer in network.layers
        for affine_layer in plain_layers(layer)
        if isinstance(affine_layer, Affine)
    ]
    return sum(affine_layer.weight.size for affine_layer in layers), sum(
        affine_layer.bias.size for affine_layer in layers
    )


def parameters(network: Network) -> int:
    """Count the numbers that a network stores."""
    return sum(
        math.prod(array.shape)
        for layer in network.layers
        for plain_layer in plain_layers(layer)
        for array in plain_layer
    )


def plain_layers(layer: Layer) -> tuple[Any, ...]:
    """Return the affine layers of a memory, or the layer alone."""
    return tuple(layer) if isinstance(layer, Memory) else (layer,)
