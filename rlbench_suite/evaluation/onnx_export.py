"""A network as an ONNX file with the signature of ``onnx_policy.py``. onnx writes it; NumPy made its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlbench_suite.evaluation.network import GRU, Affine, Clip, Join, Layer, Network, Relu, Scale, Tanh
from rlbench_suite.evaluation.onnx_policy import NEEDED

OPSET, IR = 17, 8
"""Versions of the operators and of the file that onnxruntime has read since 2022."""


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
        raise ImportError(NEEDED) from None
    graph, number, boolean = _Graph(network), TensorProto.FLOAT, TensorProto.BOOL
    answer = "logits" if network.choices else "action"
    inputs, outputs = [("observation", number, network.features)], [(answer, number, network.outputs)]
    if masked:
        graph.apply("Where", "action_mask", graph.answer, np.full(1, -1e9, np.float32), output=answer)
        inputs.append(("action_mask", boolean, network.outputs))
    else:
        graph.apply("Identity", graph.answer, output=answer)
    if network.units:
        inputs.append(("state", number, network.units))
        outputs.append(("next_state", number, network.units))
    made = helper.make_graph(
        [helper.make_node(operator, given, [output], **more) for operator, given, output, more in graph.nodes],
        "policy",
        [helper.make_tensor_value_info(name, kind, ["n", width]) for name, kind, width in inputs],
        [helper.make_tensor_value_info(name, kind, ["n", width]) for name, kind, width in outputs],
        [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    file = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
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

    def apply(self, operator: str, *inputs: str | np.ndarray, output: str = "", **settings: Any) -> str:
        """Add an operator; arrays among its inputs become constants. Return the name of its output."""
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
                return self.apply("Add", self.apply("Mul", self.apply("Sub", x, subtract), factor), add)
            case Clip(low, high):
                return self.apply("Min", self.apply("Max", x, low), high)
            case Affine(weight, bias):
                return self.apply("Gemm", x, weight, bias)
            case Tanh() | Relu():
                return self.apply(type(layer).__name__, x)
            case GRU():
                return self.apply("Concat", x, self._memory(layer, x), axis=1)
            case Join():
                return self.apply("Concat", x, self.normalised, axis=1)

    def _memory(self, layer: GRU, x: str) -> str:
        units = len(layer.recurrence.weight)
        seen, known = (
            [
                self.apply("Slice", y, np.array([i * units]), np.array([(i + 1) * units]), np.array([1]))
                for i in range(3)
            ]
            for y in (self._layer(layer.inputs, x), self._layer(layer.recurrence, "state"))
        )
        reset, keep = (self.apply("Sigmoid", self.apply("Add", seen[i], known[i])) for i in (0, 1))
        candidate = self.apply("Tanh", self.apply("Add", seen[2], self.apply("Mul", reset, known[2])))
        forget = self.apply("Sub", np.ones(1, np.float32), keep)
        kept, new = self.apply("Mul", keep, "state"), self.apply("Mul", forget, candidate)
        return self.apply("Add", kept, new, output="next_state")
