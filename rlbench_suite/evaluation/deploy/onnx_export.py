"""Write a network as an ONNX file with the signature of ``onnx_policy.py``.

onnx writes the file; NumPy made its numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
)
from rlbench_suite.evaluation.policy_files.onnx_policy import MISSING_EXTRA

OPSET = 17
"""Version of the operators, which onnxruntime has read since 2022."""
IR = 8
"""Version of the file format, likewise."""


def model(network: Network, task_id: str, *, masked: bool) -> bytes:
    """Return the file.

    Args:
        network: the network in the units of the task's spaces.
        task_id: id that the metadata names.
        masked: whether some discrete actions may be illegal.

    Raises:
        ImportError: the extra ``onnx`` is not installed.
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise ImportError(MISSING_EXTRA) from None
    graph, number, boolean = _Graph(network), TensorProto.FLOAT, TensorProto.BOOL
    answer = "logits" if network.choices else "action"
    inputs = [("observation", number, network.features)]
    outputs = [(answer, number, network.outputs)]
    if masked:
        graph.apply(
            "Where", "action_mask", graph.answer, np.full(1, -1e9, np.float32), output=answer
        )
        inputs.append(("action_mask", boolean, network.outputs))
    else:
        graph.apply("Identity", graph.answer, output=answer)
    if network.units:
        inputs.append(("state", number, network.units))
        outputs.append(("next_state", number, network.units))
    onnx_graph = helper.make_graph(
        [
            helper.make_node(operator, operands, [output], **more)
            for operator, operands, output, more in graph.nodes
        ],
        "policy",
        [helper.make_tensor_value_info(name, kind, ["n", width]) for name, kind, width in inputs],
        [helper.make_tensor_value_info(name, kind, ["n", width]) for name, kind, width in outputs],
        [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    file = helper.make_model(
        onnx_graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR
    )
    helper.set_model_props(file, {"task": task_id})
    data: bytes = file.SerializeToString()
    return data


class _Graph:
    """Operators and constants of a network; :attr:`answer` names the output of its last layer."""

    def __init__(self, network: Network) -> None:
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}
        self.answer, self.normalised = "observation", ""
        for layer in network.layers:
            self.answer = self._layer(layer, self.answer)
            if isinstance(layer, Clip):
                self.normalised = self.normalised or self.answer

    def apply(
        self, operator: str, *inputs: str | np.ndarray, output: str = "", **settings: Any
    ) -> str:
        """Add an operator; arrays among its inputs become constants.

        Return the name of its output.
        """
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        output = output or f"value_{len(self.nodes)}"
        self.nodes.append((operator, names, output, settings))
        return output

    def _constant(self, value: np.ndarray) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = value
        return name

    def _layer(self, layer: Layer, x: str) -> str:
        match layer:
            case Scale(subtract, factor, add):
                return self.apply(
                    "Add", self.apply("Mul", self.apply("Sub", x, subtract), factor), add
                )
            case Clip(low, high):
                return self.apply("Min", self.apply("Max", x, low), high)
            case Affine(weight, bias):
                return self.apply("Gemm", x, weight, bias)
            case Tanh() | Relu():
                return self.apply(type(layer).__name__, x)
            case GRU() | LSTM() | MinGRU():
                return self.apply("Concat", x, self._memory(layer, x), axis=1)
            case Join():
                return self.apply("Concat", x, self.normalised, axis=1)

    def _split(self, x: str, count: int, units: int) -> list[str]:
        """Split rows into parts of equal length."""
        ends, axis = np.arange(count + 1)[:, None] * units, np.array([1])
        return [self.apply("Slice", x, ends[i], ends[i + 1], axis) for i in range(count)]

    def _mix(self, share: str, there: str, here: str, output: str = "") -> str:
        """Return ``share * there + (1 - share) * here``."""
        remaining_share = self.apply("Sub", np.ones(1, np.float32), share)
        return self.apply(
            "Add",
            self.apply("Mul", share, there),
            self.apply("Mul", remaining_share, here),
            output=output,
        )

    def _memory(self, layer: Memory, x: str) -> str:
        """Add a memory; return what it appends to its input."""
        units = layer.units
        from_input = self._layer(layer.inputs, x)
        match layer:
            case GRU():
                a = self._split(from_input, 3, units)
                b = self._split(self._layer(layer.recurrence, "state"), 3, units)
                reset, keep = (self.apply("Sigmoid", self.apply("Add", a[i], b[i])) for i in (0, 1))
                candidate = self.apply(
                    "Tanh", self.apply("Add", a[2], self.apply("Mul", reset, b[2]))
                )
                return self._mix(keep, "state", candidate, "next_state")
            case MinGRU():
                gate, candidate = self._split(from_input, 2, units)
                return self._mix(self.apply("Sigmoid", gate), candidate, "state", "next_state")
            case LSTM():
                cell, output = self._split("state", 2, units)
                gates = self._split(
                    self.apply("Add", from_input, self._layer(layer.recurrence, output)), 4, units
                )
                write, keep, show = (self.apply("Sigmoid", gates[i]) for i in (0, 1, 3))
                new = self.apply("Mul", write, self.apply("Tanh", gates[2]))
                cell = self.apply("Add", self.apply("Mul", keep, cell), new)
                output = self.apply("Mul", show, self.apply("Tanh", cell))
                self.apply("Concat", cell, output, axis=1, output="next_state")
                return output
