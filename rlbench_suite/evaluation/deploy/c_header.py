"""A network as one C99 header for a microcontroller: physical quantities in and out, float32, no heap, no recursion.

The header needs ``math.h`` alone. Everything in it is made from numbers, from the names of the task's signals as C
identifiers, and from fixed text. Of other texts only letters, digits and harmless signs reach its comments.

``NAME_reset(&state)`` begins an episode; ``NAME_step(&state, observation, action)`` is one control step. With
``NAME_MAIN`` defined, the header is a program that replays the test vectors. With ``RLSUITE_LIBRARY`` defined, it is a
shared library that ``rlsuite-eval judge`` plays (``shared_library.py`` documents the functions).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rlbench_suite.component import Signal
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
    Relu,
    Scale,
    Tanh,
    multiply_adds,
    parameters,
    quantise,
    weights,
)

TOLERANCE = 1e-5
"""Largest difference of a test vector's action, in parts of the action's range."""
_WIDTH = 118
_LISTED = 64
"""Discrete actions that the comment explains one by one."""


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
    body = _Body(name, network, eight_bits)
    text = [
        *_comment(name, network, inputs, outputs, origin, eight_bits),
        f"#ifndef {name.upper()}_H",
        f"#define {name.upper()}_H",
        "",
        "#include <math.h>",
        "",
        *_sizes(name, network, inputs),
        *body.tables,
        *_functions(name, network, eight_bits),
        *_step(name, network, body.lines),
        *_library(name, network),
        *_main(name, network, vectors),
        f"#endif /* {name.upper()}_H */",
    ]
    return "\n".join(text) + "\n"


def identifier(text: str) -> str:
    """Return a C identifier that resembles a text."""
    found = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:48]
    return found if found[:1].isalpha() else f"controller_{found}".rstrip("_")


def _words(text: str) -> str:
    """Return a text without the characters that could end a comment or continue a line."""
    return re.sub(r"[^A-Za-z0-9 _.,:;=()\[\]+&<>'-]", " ", text)[:200]


def _comment(
    name: str,
    network: Network,
    inputs: Sequence[Signal],
    outputs: Sequence[Signal],
    origin: Origin,
    eight_bits: bool,
) -> list[str]:
    products, functions = multiply_adds(network)
    numbers, (whole, steps) = parameters(network), weights(network) if eight_bits else (0, 0)
    widest = max(network.widths())
    stack = 4 * (2 * widest + (network.features if _joins(network) else 0) + sum(_gates(network)))
    every = f" every {origin.period:g} s" if origin.period else " at every step"
    lines = [
        f"{name}: controller for {_words(origin.task)}, trained by {_words(origin.agent)}.",
        f"Written by rlbench-suite {_words(origin.version)}. C99; needs math.h (link with -lm) and nothing else.",
        "",
        f"Call {name}_reset once, then {name}_step{every}. All quantities are in the units below.",
        "Observations must be numbers: NaN in gives NaN out.",
        "",
        f"Constants {4 * (numbers - whole + steps) + whole} bytes ({numbers} numbers), state "
        f"{4 * max(1, network.units)} bytes, stack about {stack} bytes. One step: {products} multiplications with an "
        f"addition, {functions} hyperbolic tangents.",
        *map(_words, origin.notes),
        "",
        f"Check it: cc -std=c99 -D{name.upper()}_MAIN -x c {name}.h -o check -lm && ./check",
    ]
    if inputs:
        lines += ["", "observation:", *_listed(inputs)]
    if outputs and network.choices:
        few = sum(int(np.prod(signal.shape, dtype=int)) for signal in outputs) <= _LISTED
        lines += ["", f"choice ({len(network.choices)}):"]
        lines += [f"  {_words(signal.name)}: {_words(signal.meaning)}" for signal in outputs[: _LISTED if few else 8]]
    elif outputs:
        lines += ["", "action:", *_listed(outputs)]
    wrapped = [part for line in lines for part in textwrap.wrap(line, _WIDTH - 3, subsequent_indent="    ") or [""]]
    return ["/*", *(f" * {line}".rstrip() for line in wrapped), " */"]


def _listed(signals: Sequence[Signal]) -> Iterator[str]:
    start = 0
    for signal in signals:
        end = start + len(signal.columns())
        where = str(start) if signal.shape == () else f"{start}..{end - 1}"
        yield (
            f"  {where:>7}  {_words(signal.name)} in {_words(signal.unit.replace('/', ' per '))}, {signal.low:.6g} to "
            f"{signal.high:.6g}: {_words(signal.meaning)}"
        )
        start = end


def _sizes(name: str, network: Network, inputs: Sequence[Signal]) -> list[str]:
    upper, discrete = name.upper(), bool(network.choices)
    sizes = {"INPUTS": network.features, "OUTPUTS": len(network.choices) if discrete else network.outputs}
    if discrete:
        sizes["LOGITS"] = network.outputs
    start, known = 0, set(sizes)
    for signal in inputs:
        place = f"AT_{identifier(signal.name).upper()}"
        if place not in known:
            sizes[place] = start
            known.add(place)
        start += len(signal.columns())
    return [
        "enum {",
        *(f"    {upper}_{what} = {size}," for what, size in sizes.items()),
        f"    {upper}_UNITS = {max(1, network.units)}",
        "};",
        "",
        "typedef struct {",
        f"    float memory[{upper}_UNITS];" + ("" if network.units else " /* without use: this controller has none */"),
        f"}} {name}_state;",
        "",
    ]


def _functions(name: str, network: Network, eight_bits: bool) -> list[str]:
    weight, by, step = ("signed char", "step[j] * ", "const float *step, ") if eight_bits else ("float", "", "")
    return [
        "/* y = bias + weight x, where each of m rows of weight has n entries */",
        f"static inline void {name}_affine(const {weight} *weight, {step}const float *bias, const float *x, int n, "
        "int m, float *y)",
        "{",
        "    int i, j;",
        "    for (j = 0; j < m; j++) {",
        "        float sum = 0.0f;",
        "        for (i = 0; i < n; i++) {",
        "            sum += weight[j * n + i] * x[i];",
        "        }",
        f"        y[j] = bias[j] + {by}sum;",
        "    }",
        "}",
        "",
        f"static inline void {name}_reset({name}_state *state)",
        "{",
        "    int i;",
        f"    for (i = 0; i < {name.upper()}_UNITS; i++) {{",
        "        state->memory[i] = 0.0f;",
        "    }",
        "}",
        "",
    ]


class _Body:
    """Writer of a step's lines and of the tables that they read."""

    def __init__(self, name: str, network: Network, eight_bits: bool) -> None:
        self.name, self.network, self.eight_bits = name, network, eight_bits
        self.tables: list[str] = []
        self.here, self.there = "a", "b"
        self.clipped = False
        widths = network.widths()
        self.lines = _loop(network.features, "a[i] = observation[i];")
        for number, (layer, width) in enumerate(zip(network.layers, widths, strict=False)):
            self.lines += self._layer(layer, number, width)
        self.lines += self._choose() if network.choices else _loop(widths[-1], f"action[i] = {self.here}[i];")

    def _layer(self, layer: Layer, number: int, width: int) -> list[str]:
        x = f"{self.here}[i]"
        match layer:
            case Scale():
                return self._scale(layer, number, width)
            case Clip():
                return self._clip(layer, number, width)
            case Affine():
                line = self._dense(layer, str(number), self.here, self.there)
                self.here, self.there = self.there, self.here
                return [line]
            case Tanh() | Relu():
                y = f"tanhf({x})" if isinstance(layer, Tanh) else f"{x} > 0.0f ? {x} : 0.0f"
                return _loop(width, f"{x} = {y};")
            case GRU() | LSTM() | MinGRU():
                return self._memory(layer, number, width)
            case Join():
                return _loop(self.network.features, f"{self.here}[{width} + i] = normalised[i];")

    def _table(self, what: str, values: np.ndarray, kind: str = "float") -> str:
        """Store an array; return its name."""
        name = f"{self.name}_{what}"
        self.tables += _table(kind, name, values)
        return name

    def _scale(self, layer: Scale, number: int, width: int) -> list[str]:
        x = f"{self.here}[i]"
        shifted = f"({x} - {self._table(f'from{number}', layer.subtract)}[i])" if np.any(layer.subtract) else x
        plus = f" + {self._table(f'to{number}', layer.add)}[i]" if np.any(layer.add) else ""
        return _loop(width, f"{x} = {shifted} * {self._table(f'by{number}', layer.factor)}[i]{plus};")

    def _clip(self, layer: Clip, number: int, width: int) -> list[str]:
        low, high = (
            _number(values.flat[0])
            if np.all(values == values.flat[0])
            else f"{self._table(f'{what}{number}', values)}[i]"
            for what, values in zip(("low", "high"), layer, strict=True)
        )
        x = f"{self.here}[i]"
        lines = _loop(width, f"{x} = {x} < {low} ? {low} : {x} > {high} ? {high} : {x};")
        if _joins(self.network) and not self.clipped:
            lines += _loop(width, f"normalised[i] = {x};")
        self.clipped = True
        return lines

    def _dense(self, layer: Affine, number: str, x: str, y: str) -> str:
        """Store an affine layer; return the line that applies it."""
        if self.eight_bits:
            whole, step = quantise(layer.weight)
            weight = self._table(f"weight{number}", whole.T, "signed char")
            weight += f", {self._table(f'step{number}', step)}"
        else:
            weight = self._table(f"weight{number}", layer.weight.T)
        n, m = layer.weight.shape
        return f"{self.name}_affine({weight}, {self._table(f'bias{number}', layer.bias)}, {x}, {n}, {m}, {y});"

    def _memory(self, layer: Memory, number: int, width: int) -> list[str]:
        units, memory = layer.units, "state->memory"
        lines = [self._dense(layer.inputs, f"{number}_seen", self.here, "seen")]
        if not isinstance(layer, MinGRU):
            known = memory if isinstance(layer, GRU) else f"{memory} + {units}"
            lines.append(self._dense(layer.recurrence, f"{number}_known", known, "known"))

        def gate(place: int) -> str:
            both = f"seen[{place * units} + i]" + (
                "" if isinstance(layer, MinGRU) else f" + known[{place * units} + i]"
            )
            return f"0.5f * tanhf(0.5f * ({both})) + 0.5f"

        match layer:
            case GRU():
                body = [
                    f"float reset = {gate(0)};",
                    f"float keep = {gate(1)};",
                    f"float candidate = tanhf(seen[{2 * units} + i] + reset * known[{2 * units} + i]);",
                    f"{memory}[i] = keep * {memory}[i] + (1.0f - keep) * candidate;",
                ]
            case LSTM():
                body = [
                    f"float write = {gate(0)};",
                    f"float keep = {gate(1)};",
                    f"float candidate = tanhf(seen[{2 * units} + i] + known[{2 * units} + i]);",
                    f"float show = {gate(3)};",
                    f"{memory}[i] = keep * {memory}[i] + write * candidate;",
                    f"{memory}[{units} + i] = show * tanhf({memory}[i]);",
                ]
            case MinGRU():
                body = [
                    f"float share = {gate(0)};",
                    f"{memory}[i] = (1.0f - share) * {memory}[i] + share * seen[{units} + i];",
                ]
        start = layer.size - units
        return [*lines, *_loop(units, *body, f"{self.here}[{width} + i] = {memory}[{start} + i];")]

    def _choose(self) -> list[str]:
        lines, start, x = [], 0, self.here
        for number, count in enumerate(self.network.choices):
            test = f"(legal == 0 || legal[{start} + i]) && (best < 0 || {x}[{start} + i] > {x}[{start} + best])"
            lines += ["best = -1;", *_loop(count, f"if ({test}) {{", "    best = i;", "}")]
            lines += [f"choice[{number}] = best < 0 ? 0 : best;"]
            start += count
        return lines


def _step(name: str, network: Network, body: list[str]) -> list[str]:
    widest, (seen, known) = max(network.widths()), _gates(network)
    arrays = [f"a[{widest}]", f"b[{widest}]"]
    arrays += [f"normalised[{network.features}]"] if _joins(network) else []
    arrays += [f"{name}[{size}]" for name, size in (("seen", seen), ("known", known)) if size]
    given = "const unsigned char *legal, int *choice" if network.choices else "float *action"
    what = "the chosen actions; legal: which actions are, or 0" if network.choices else "the action"
    return [
        f"/* One control step. observation: {name.upper()}_INPUTS numbers; result: {what}. */",
        f"static inline void {name}_step({name}_state *state, const float *observation, {given})",
        "{",
        f"    float {', '.join(arrays)};",
        f"    int i{', best' if network.choices else ''};",
        *([] if network.units else ["    (void)state;"]),
        *(f"    {line}" for line in body),
        "}",
        "",
    ]


def _library(name: str, network: Network) -> list[str]:
    upper, discrete = name.upper(), bool(network.choices)
    call = "legal, choice" if discrete else "action"
    unused = "(void)action;" if discrete else "(void)legal; (void)choice;"
    return [
        "#ifdef RLSUITE_LIBRARY /* cc -std=c99 -shared -fPIC -DRLSUITE_LIBRARY -x c FILE.h -o FILE.so -lm */",
        "int rlsuite_abi(void) { return 1; }",
        f"int rlsuite_inputs(void) {{ return {upper}_INPUTS; }}",
        f"int rlsuite_outputs(void) {{ return {upper}_OUTPUTS; }}",
        f"int rlsuite_discrete(void) {{ return {int(discrete)}; }}",
        f"int rlsuite_state_bytes(void) {{ return (int)sizeof({name}_state); }}",
        f"void rlsuite_reset(void *state) {{ {name}_reset(({name}_state *)state); }}",
        "void rlsuite_step(void *state, const float *observation, const unsigned char *legal, float *action, "
        "int *choice)",
        "{",
        f"    {unused}",
        f"    {name}_step(({name}_state *)state, observation, {call});",
        "}",
        "#endif",
        "",
    ]


def _main(name: str, network: Network, vectors: Vectors) -> list[str]:
    upper, steps, discrete = name.upper(), len(vectors.observations), bool(network.choices)
    kind, answer = ("int", "choice") if discrete else ("float", "action")
    text = [f"#ifdef {upper}_MAIN", "#include <stdio.h>", ""]
    text += _table("float", f"{name}_test_observations", vectors.observations)
    text += _table(kind, f"{name}_test_actions", vectors.actions)
    masks = discrete and vectors.masks is not None
    if masks:
        text += _table("unsigned char", f"{name}_test_legal", np.asarray(vectors.masks, np.uint8))
    call = ("legal, " if discrete else "") + "given"
    if discrete:
        legal = f"{name}_test_legal + t * {upper}_LOGITS" if masks else "0"
        compare = ["wrong += given[i] != wanted[i];"]
        said = [f'printf("%d of {steps} steps differ\\n", wrong);']
    else:
        last = network.layers[-1]
        assert isinstance(last, Clip)
        text += _table("float", f"{name}_test_range", last.high - last.low)
        compare = [
            f"float difference = fabsf(given[i] - wanted[i]) / {name}_test_range[i];",
            f"wrong += !(difference <= {_number(TOLERANCE)});",
            "largest = difference > largest ? difference : largest;",
        ]
        said = [f'printf("%d of {steps} steps differ; largest difference %g of the range\\n", wrong, (double)largest);']
    return [
        *text,
        "int main(void)",
        "{",
        f"    {name}_state state;",
        f"    {kind} given[{upper}_OUTPUTS];",
        "    int t, i, wrong = 0;",
        *([] if discrete else ["    float largest = 0.0f;"]),
        f"    {name}_reset(&state);",
        f"    for (t = 0; t < {steps}; t++) {{",
        f"        const {kind} *wanted = {name}_test_actions + t * {upper}_OUTPUTS;",
        *([f"        const unsigned char *legal = {legal};"] if discrete else []),
        f"        {name}_step(&state, {name}_test_observations + t * {upper}_INPUTS, {call});",
        f"        for (i = 0; i < {upper}_OUTPUTS; i++) {{",
        *(f"            {line}" for line in compare),
        "        }",
        "    }",
        *(f"    {line}" for line in said),
        "    return wrong != 0;",
        "}",
        f"#endif /* {upper}_MAIN: {answer} */",
        "",
    ]


def _loop(count: int, *lines: str) -> list[str]:
    return [f"for (i = 0; i < {count}; i++) {{", *(f"    {line}" for line in lines), "}"]


def _table(kind: str, name: str, values: np.ndarray) -> list[str]:
    flat = np.ravel(values)
    texts = [_number(value) for value in flat] if kind == "float" else [str(int(value)) for value in flat]
    lines = textwrap.wrap(", ".join(texts), _WIDTH - 4)
    return [f"static const {kind} {name}[{flat.size}] = {{", *(f"    {line}" for line in lines), "};", ""]


def _number(value: float) -> str:
    """Return a float32 with all its digits as a C constant."""
    if not np.isfinite(value):
        raise ValueError(f"A policy with a number that is not finite ({value}) cannot be exported.")
    text = f"{np.float32(value):.9g}"
    return f"{text}{'' if '.' in text or 'e' in text else '.0'}f"


def _gates(network: Network) -> tuple[int, int]:
    """Return the sizes of the arrays that hold what a memory's gates see and what they know; 0 without them."""
    memory = next((layer for layer in network.layers if isinstance(layer, Memory)), None)
    if memory is None:
        return 0, 0
    return len(memory.inputs.bias), 0 if isinstance(memory, MinGRU) else len(memory.recurrence.bias)


def _joins(network: Network) -> bool:
    return any(isinstance(layer, Join) for layer in network.layers)
