"""Write a network as one C99 header for a microcontroller.

It takes and gives physical quantities in float32, without heap and without recursion.

The header needs ``math.h`` alone. Everything in it is made from numbers, from the names of the
task's signals as C identifiers, and from fixed text. Of other texts only letters, digits and
harmless signs reach its comments.

``NAME_reset(&state)`` begins an episode; ``NAME_step(&state, observation, action)`` is one control
step. With ``NAME_MAIN`` defined, the header is a program that replays the test vectors. With
``RLSUITE_LIBRARY`` defined, it is a shared library that ``rlsuite-eval judge`` plays
(``shared_library.py`` documents the functions).

The C text is ``templates/controller.h.jinja``. This module computes what its names stand for.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from rlbench_suite.core.component import Signal
from rlbench_suite.evaluation.deploy.network import (
    GRU,
    LSTM,
    Affine,
    Clip,
    Join,
    Layer,
    Memory,
    MinGRU,
    Network,
    Scale,
    multiply_adds,
    parameters,
    quantise,
    weights,
)

TOLERANCE = 1e-5
"""Largest difference of a test vector's action, in parts of the action's range."""
_WIDTH = 118
_MAX_LISTED_CHOICES = 64
"""Number of discrete actions up to which the comment explains all of them."""
_FEW_CHOICES = 8
"""Number of discrete actions that it explains where there are more."""


class Vectors(NamedTuple):
    """Consecutive steps of an episode, which the header's ``main`` replays."""

    observations: np.ndarray
    """Physical quantities, float32 ``(steps, features)``"""
    masks: np.ndarray | None
    """Legal choices, bool ``(steps, logits)``; None if all are"""
    actions: np.ndarray
    """``(steps, outputs)``: physical quantities, or integers"""


class Origin(NamedTuple):
    """Facts for the comment."""

    task: str
    agent: str
    version: str
    period: float
    """s of a step; 0 if a step has no duration"""
    notes: tuple[str, ...] = ()


class _Table(NamedTuple):
    """Constant array in C."""

    kind: str
    """Type of its elements."""
    name: str
    size: int
    lines: list[str]
    """Its elements."""


class _Dense(NamedTuple):
    """Call of the function that applies an affine layer."""

    weight: str
    """Name of the weights; with eight bits, also that of the steps behind a comma."""
    bias: str
    x: str
    inputs: int
    outputs: int
    y: str


class _Choice(NamedTuple):
    """Discrete choice: its number of options, and the index of its first logit."""

    options: int
    start: int


def header(
    name: str,
    network: Network,
    inputs: Sequence[Signal],
    outputs: Sequence[Signal],
    vectors: Vectors,
    origin: Origin,
    *,
    eight_bits: bool = False,
) -> str:
    """Return the text of the header.

    Args:
        name: prefix of its names; it becomes a C identifier.
        network: the network between physical quantities (:meth:`Network.in_units`).
        inputs: signals of an observation, for the comment; empty if the task does not name them.
        outputs: signals of an action, likewise.
        vectors: test vectors.
        origin: facts for the comment.
        eight_bits: store weights as int8 with a step for each output.

    Raises:
        ValueError: a number is not finite.
    """
    name = identifier(name)
    layers = _Layers(name, network, eight_bits)
    masked = bool(network.choices) and vectors.masks is not None
    return (
        _environment()
        .get_template("controller.h.jinja")
        .render(
            name=name,
            network=network,
            units=max(1, network.units),
            eight_bits=eight_bits,
            origin=origin,
            size=_measure_size(network, eight_bits),
            inputs=inputs,
            outputs=outputs,
            listed_choices=_listed_choices(outputs),
            constants=_constants(network, inputs),
            tables=layers.tables,
            layers=layers.layers,
            arrays=_local_arrays(network),
            result=layers.x,
            choices=_choices(network),
            test_tables=_test_tables(name, network, vectors),
            test_steps=len(vectors.observations),
            masked=masked,
            tolerance=_number(TOLERANCE),
        )
    )


def identifier(text: str) -> str:
    """Return a C identifier that resembles a text."""
    letters = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:48]
    return letters if letters[:1].isalpha() else f"controller_{letters}".rstrip("_")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rlbench_suite.evaluation.deploy"),
        autoescape=False,  # C, not HTML: the filter ``plain`` is its escape
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"plain": _plain, "rows": _rows, "comment": _comment}
    return environment


def _plain(text: str) -> str:
    """Return a text without the characters that could end a comment or continue a line."""
    return re.sub(r"[^A-Za-z0-9 _.,:;=()\[\]+&<>'-]", " ", text)[:200]


def _comment(text: str) -> str:
    """Wrap the lines of a text as those of a C comment."""
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        lines += textwrap.wrap(line, _WIDTH - 3, subsequent_indent="    ") or [""]
    return "".join(f" * {line}".rstrip() + "\n" for line in lines)


def _rows(signals: Sequence[Signal]) -> Iterator[str]:
    """Describe signals in the order of their entries: indices, name, unit, range and meaning."""
    start = 0
    for signal in signals:
        end = start + len(signal.columns())
        indices = str(start) if signal.shape == () else f"{start}..{end - 1}"
        unit = signal.unit.replace("/", " per ")
        yield (
            f"{indices:>7}  {_plain(signal.name)} in {_plain(unit)}, {signal.low:.6g} to "
            f"{signal.high:.6g}: {_plain(signal.meaning)}"
        )
        start = end


def _listed_choices(outputs: Sequence[Signal]) -> Sequence[Signal]:
    """Return the discrete actions that the comment explains."""
    number = sum(int(np.prod(signal.shape, dtype=int)) for signal in outputs)
    return outputs[: _MAX_LISTED_CHOICES if number <= _MAX_LISTED_CHOICES else _FEW_CHOICES]


def _measure_size(network: Network, eight_bits: bool) -> dict[str, int]:
    """Return the memory that a controller needs, in bytes, and the operations of one step."""
    products, tanhs = multiply_adds(network)
    numbers = parameters(network)
    constant_bytes = 4 * numbers
    if eight_bits:
        int8_weights, steps = weights(network)
        constant_bytes += 4 * steps - 3 * int8_weights
    floats = 2 * max(network.widths()) + sum(_gate_sizes(network))
    if _has_join(network):
        floats += network.features
    return {
        "constant_bytes": constant_bytes,
        "numbers": numbers,
        "stack_bytes": 4 * floats,
        "products": products,
        "tanhs": tanhs,
    }


def _constants(network: Network, inputs: Sequence[Signal]) -> dict[str, int]:
    """Return the sizes of arguments and each signal's first index, by names of C constants."""
    discrete = bool(network.choices)
    constants = {
        "INPUTS": network.features,
        "OUTPUTS": len(network.choices) if discrete else network.outputs,
    }
    if discrete:
        constants["LOGITS"] = network.outputs
    start = 0
    for signal in inputs:
        constants.setdefault(f"AT_{identifier(signal.name).upper()}", start)
        start += len(signal.columns())
    return constants


def _local_arrays(network: Network) -> list[str]:
    """Declare the arrays of a step.

    Layers read and write two of them in turn; joins and memories have their own.
    """
    width = max(network.widths())
    arrays = [f"a[{width}]", f"b[{width}]"]
    if _has_join(network):
        arrays.append(f"normalised[{network.features}]")
    seen_size, known_size = _gate_sizes(network)
    if seen_size:
        arrays.append(f"seen[{seen_size}]")
    if known_size:
        arrays.append(f"known[{known_size}]")
    return arrays


def _choices(network: Network) -> list[_Choice]:
    starts = np.cumsum([0, *network.choices]).tolist()
    return [_Choice(count, start) for count, start in zip(network.choices, starts, strict=False)]


class _Layers:
    """Layers of a network as the template writes them, and the tables that they read."""

    def __init__(self, name: str, network: Network, eight_bits: bool) -> None:
        self.name = name
        self.eight_bits = eight_bits
        self.has_join = _has_join(network)
        self.tables: list[_Table] = []
        self.x = "a"
        """Array that holds the present values."""
        self.spare = "b"
        self.layers = [
            self._describe(layer, number, width)
            for number, (layer, width) in enumerate(
                zip(network.layers, network.widths(), strict=False)
            )
        ]

    def _describe(self, layer: Layer, number: int, width: int) -> dict[str, Any]:
        """Return the names in C of a layer of ``width`` inputs, and store its tables."""
        entry: dict[str, Any] = {"kind": type(layer).__name__, "width": width, "x": self.x}
        match layer:
            case Scale():
                return entry | self._describe_scale(layer, number)
            case Clip():
                return entry | self._describe_clip(layer, number)
            case Affine():
                dense = self._dense(layer, str(number), self.x, self.spare)
                self.x, self.spare = self.spare, self.x
                return entry | {"dense": dense}
            case GRU() | LSTM() | MinGRU():
                return entry | self._describe_memory(layer, number)
            case _:
                return entry

    def _table(self, suffix: str, values: np.ndarray, kind: str = "float") -> str:
        """Store an array; return its name."""
        table = _make_table(kind, f"{self.name}_{suffix}", values)
        self.tables.append(table)
        return table.name

    def _describe_scale(self, layer: Scale, number: int) -> dict[str, Any]:
        subtract = self._table(f"from{number}", layer.subtract) if np.any(layer.subtract) else ""
        add = self._table(f"to{number}", layer.add) if np.any(layer.add) else ""
        return {
            "subtract": subtract,
            "add": add,
            "factor": self._table(f"by{number}", layer.factor),
        }

    def _describe_clip(self, layer: Clip, number: int) -> dict[str, Any]:
        low = self._bound(f"low{number}", layer.low)
        high = self._bound(f"high{number}", layer.high)
        is_joined = self.has_join
        self.has_join = False  # a join appends the output of the first clip
        return {"low": low, "high": high, "is_joined": is_joined}

    def _bound(self, suffix: str, values: np.ndarray) -> str:
        """Return an entry of a bound in C: a number if all are equal."""
        first = values.flat[0]
        return _number(first) if np.all(values == first) else f"{self._table(suffix, values)}[i]"

    def _dense(self, layer: Affine, suffix: str, x: str, y: str) -> _Dense:
        """Store an affine layer; return the call that applies it."""
        if self.eight_bits:
            int8_weights, step = quantise(layer.weight)
            weight = self._table(f"weight{suffix}", int8_weights.T, "signed char")
            weight += f", {self._table(f'step{suffix}', step)}"
        else:
            weight = self._table(f"weight{suffix}", layer.weight.T)
        inputs, outputs = layer.weight.shape
        return _Dense(weight, self._table(f"bias{suffix}", layer.bias), x, inputs, outputs, y)

    def _describe_memory(self, layer: Memory, number: int) -> dict[str, Any]:
        input_dense = self._dense(layer.inputs, f"{number}_seen", self.x, "seen")
        memory_dense = None
        if not isinstance(layer, MinGRU):
            outputs = (
                "state->memory" if isinstance(layer, GRU) else f"state->memory + {layer.units}"
            )
            memory_dense = self._dense(layer.recurrence, f"{number}_known", outputs, "known")
        return {
            "seen": input_dense,
            "known": memory_dense,
            "units": layer.units,
            "first_output": layer.size - layer.units,
        }


def _test_tables(name: str, network: Network, vectors: Vectors) -> list[_Table]:
    action_kind = "int" if network.choices else "float"
    tables = [
        _make_table("float", f"{name}_test_observations", vectors.observations),
        _make_table(action_kind, f"{name}_test_actions", vectors.actions),
    ]
    if not network.choices:
        last = network.layers[-1]
        assert isinstance(last, Clip)
        tables.append(_make_table("float", f"{name}_test_range", last.high - last.low))
    elif vectors.masks is not None:
        tables.append(
            _make_table("unsigned char", f"{name}_test_legal", np.asarray(vectors.masks, np.uint8))
        )
    return tables


def _make_table(kind: str, name: str, values: np.ndarray) -> _Table:
    flat = np.ravel(values)
    texts = (
        [_number(value) for value in flat]
        if kind == "float"
        else [str(int(value)) for value in flat]
    )
    return _Table(kind, name, flat.size, textwrap.wrap(", ".join(texts), _WIDTH - 4))


def _number(value: float) -> str:
    """Return a float32 with all its digits as a C constant."""
    if not np.isfinite(value):
        raise ValueError(f"A policy with a number that is not finite ({value}) cannot be exported.")
    text = f"{np.float32(value):.9g}"
    return f"{text}{'' if '.' in text or 'e' in text else '.0'}f"


def _gate_sizes(network: Network) -> tuple[int, int]:
    """Return the sizes of what a memory's gates compute, from its input and from its memory.

    Both are 0 without a memory.
    """
    memory = next((layer for layer in network.layers if isinstance(layer, Memory)), None)
    if memory is None:
        return 0, 0
    return len(memory.inputs.bias), 0 if isinstance(memory, MinGRU) else len(memory.recurrence.bias)


def _has_join(network: Network) -> bool:
    return any(isinstance(layer, Join) for layer in network.layers)
