"""Play policies in ONNX, which other libraries export.

onnxruntime plays them on the CPU with one thread.

The names of inputs and outputs are the signature. A row is one agent of one environment::

    input   observation  float32 (n, d)    the observation; the parts of a Dict flattened,
                                           in the order of their names
    input   action_mask  bool (n, a)       optional: the legal actions
    input   state        float32 (n, ...)  optional: a memory, zeros at the first step
    output  action       float32 (n, k)    in the units of a Box; for discrete actions
                                           integers (n,) or (n, k)
    output  mean         float32 (n, k)    instead of action: the mean of a distribution over a Box
    output  logits       float32 (n, a)    instead of action: the most likely legal action is played
    output  next_state   float32 (n, ...)  with state: the memory of the next step

``n`` is an axis without a fixed size. Actions outside a Box are clipped to its bounds. The metadata
``task`` may name the task. A file that refers to other files is refused, and so is one with a loop,
which may never end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.flat_rows import FlatRows
from rlbench_suite.evaluation.policy_files.file_agent import FileAgent
from rlbench_suite.foundation.unknown_names import MAX_QUOTE, unknown

NAME = "onnx"
INPUTS = ("observation", "action_mask", "state")
ANSWERS = ("action", "mean", "logits")
OUTPUTS = (*ANSWERS, "next_state")
LOOPS = frozenset({"Loop", "Scan"})
"""Operators that repeat others. No exported policy of a known library has one."""
MISSING_EXTRA = (
    "ONNX policies need onnx and onnxruntime; install them with: pip install 'rlbench-suite[onnx]'"
)


def read_task(path: Path) -> str | None:
    """Return the task that the metadata of an ONNX file names, if any.

    Raises:
        ImportError: the extra ``onnx`` is not installed.
        ValueError: it is not an ONNX file, or refers to other files.
    """
    return next((entry.value for entry in _model(path).metadata_props if entry.key == "task"), None)


class OnnxAgent(FileAgent):
    """Agent that reads ONNX files. It cannot train."""

    name = NAME
    why_untrained = (
        "The agent 'onnx' plays files and trains nothing; play one by rlsuite-eval judge FILE."
    )

    def load(self, path: str, task: Task[Any, Any], *, budget: str) -> OnnxPolicy:
        """Read a file.

        Raises:
            ImportError: the extra ``onnx`` is not installed.
            ValueError: it is not a policy for the task.
        """
        return OnnxPolicy(Path(path), task)


class OnnxPolicy:
    """Policy of an ONNX file, on NumPy batches.

    Raises:
        ImportError: the extra ``onnx`` is not installed.
        ValueError: it is not a policy for the task.
    """

    def __init__(self, path: Path, task: Task[Any, Any]) -> None:
        self.path, self.rows = path, FlatRows(task)
        data = _model(path).SerializeToString()
        self._session = _session(path, data)
        self._inputs = {value.name: value for value in self._session.get_inputs()}
        self._outputs = [value.name for value in self._session.get_outputs()]
        self._memory: np.ndarray | None = None
        self._check_signature()
        self._answer = next(name for name in self._outputs if name in ANSWERS)
        self._try_it()

    def reset(self) -> None:
        """Forget the memory, because new episodes begin."""
        self._memory = None

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        """Return the actions for a batch of observations.

        Raises:
            ValueError: the file gives numbers of another shape, or numbers that are not finite.
        """
        x, mask = self.rows.observe(observations), self.rows.mask(action_masks)
        inputs: dict[str, np.ndarray] = {"observation": x}
        if "action_mask" in self._inputs:
            inputs["action_mask"] = (
                np.ones((len(x), self.rows.outputs), bool) if mask is None else mask
            )
        if "state" in self._inputs:
            inputs["state"] = self._state(len(x)) if self._memory is None else self._memory
        try:
            results = self._session.run(self._outputs, inputs)
        except (
            Exception
        ) as error:  # onnxruntime has an exception of its own for every kind of fault
            words = " ".join(str(error).split())
            raise ValueError(f"{self.path} fails where it is run: {words[:MAX_QUOTE]}") from None
        results_by_name = dict(zip(self._outputs, results, strict=True))
        for name, value in results_by_name.items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError(f"{self.path} gave a number in {name!r} that is not finite.")
        self._memory = results_by_name.get("next_state")
        answer = results_by_name[self._answer]
        return self.rows.choose(self._answer, self._in_shape(answer, len(x)), mask)

    def _check_signature(self) -> None:
        for kind, names, known_names in (
            ("input", self._inputs, INPUTS),
            ("output", self._outputs, OUTPUTS),
        ):
            for name in names:
                if name not in known_names:
                    raise ValueError(
                        f"{self.path} is not a policy. {unknown(kind, name, known_names)}"
                    )
        if "observation" not in self._inputs:
            raise ValueError(f"{self.path} is not a policy: it has no input 'observation'.")
        answers = [name for name in self._outputs if name in ANSWERS]
        if len(answers) != 1:
            raise ValueError(
                f"{self.path} is not a policy: it needs one of the outputs {', '.join(ANSWERS)}, "
                f"and has {' and '.join(answers) or 'none'}."
            )
        if ("state" in self._inputs) != ("next_state" in self._outputs):
            raise ValueError(
                f"{self.path} is not a policy: the input 'state' needs the output 'next_state'."
            )
        if answers[0] not in self.rows.answers:
            raise ValueError(
                f"{self.path} gives {answers[0]!r}, but {self.rows.task_id} needs "
                f"{' or '.join(self.rows.answers)}."
            )
        self._check_input("observation", "tensor(float)", self.rows.features)
        self._check_input("action_mask", "tensor(bool)", self.rows.outputs)
        if "action_mask" in self._inputs and not self.rows.choices:
            raise ValueError(
                f"{self.path} takes 'action_mask', but {self.rows.task_id} has no discrete actions."
            )
        if state := self._inputs.get("state"):
            fixed = state.shape[1:]
            if state.type != "tensor(float)" or not all(
                isinstance(size, int) and size > 0 for size in fixed
            ):
                raise ValueError(
                    f"{self.path}: the input 'state' must be float32 with fixed sizes after the "
                    "first."
                )

    def _check_input(self, name: str, kind: str, width: int) -> None:
        if name not in self._inputs:
            return
        value = self._inputs[name]
        sizes = [size if isinstance(size, int) else None for size in value.shape]
        if (
            value.type != kind
            or len(sizes) != 2
            or sizes[0] is not None
            or sizes[1] not in (None, width)
        ):
            expected_type, file_type = (
                re.sub(r"tensor\((.*)\)", r"\1", each).replace("float", "float32")
                for each in (kind, value.type)
            )
            raise ValueError(
                f"{self.path}: on {self.rows.task_id} the input {name!r} is {expected_type} of "
                f"shape (n, {width}) with n not fixed; this file has {file_type} of shape "
                f"({', '.join(map(str, value.shape))})."
            )

    def _try_it(self) -> None:
        """Play one step on zeros, which refuses a file that does not fit before anything runs."""
        self.act(self.rows.zeros(2), None)
        if (
            self._memory is not None
            and self._memory.shape != self._state(2 * self.rows.agents).shape
        ):
            raise ValueError(
                f"{self.path}: 'next_state' has another shape than 'state': {self._memory.shape}."
            )
        self.reset()

    def _state(self, rows: int) -> np.ndarray:
        return np.zeros((rows, *self._inputs["state"].shape[1:]), np.float32)

    def _in_shape(self, answer: np.ndarray, rows: int) -> np.ndarray:
        """Return the answer as a table, a row for each agent of each environment."""
        width = self.rows.outputs if self._answer == "logits" else self.rows.numbers
        kind = "iu" if self._answer == "action" and self.rows.choices else "f"
        if answer.dtype.kind not in kind or answer.shape not in (
            (rows, width),
            (rows,) if width == 1 else None,
        ):
            raise ValueError(
                f"{self.path}: on {self.rows.task_id} the output {self._answer!r} is "
                f"{'integers' if kind == 'iu' else 'float32'} of shape ({rows}, {width}) for "
                f"{rows} rows; this file gave {answer.dtype} of shape {answer.shape}."
            )
        return answer.reshape(rows, width)


def _model(path: Path) -> Any:
    """Return the parsed file.

    Raises:
        ImportError: the extra ``onnx`` is not installed.
        ValueError: it is not an ONNX file, refers to other files, or has a loop.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise ImportError(MISSING_EXTRA) from None
    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except (DecodeError, ValueError):
        raise ValueError(f"{path} is not an ONNX file.") from None
    if not (model.ir_version and model.graph.output):
        raise ValueError(f"{path} is not an ONNX file.")
    nodes = [node for function in model.functions for node in function.node]
    for tensor in (*_tensors(model.graph), *_tensors_of(nodes)):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise ValueError(f"{path} keeps weights in other files; export it as one file.")
    if loops := sorted(LOOPS & {node.op_type for node in _nodes((*model.graph.node, *nodes))}):
        raise ValueError(
            f"{path} has the operator {loops[0]}, which may never end; unroll it before you export."
        )
    return model


def _nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes and all nodes of the graphs in them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield the tensors of a graph and of all graphs in it."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _tensors_of(graph.node)


def _tensors_of(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            for graph in (attribute.g, *attribute.graphs):
                yield from _tensors(graph)


def _session(path: Path, data: bytes) -> Any:
    """Return an onnxruntime session of one thread on the CPU.

    Raises:
        ImportError: the extra ``onnx`` is not installed.
        ValueError: onnxruntime cannot run the model.
    """
    try:
        import onnxruntime
    except ImportError:
        raise ImportError(MISSING_EXTRA) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has an exception of its own for every kind of fault
        why = " ".join(str(error).split())[:200].removesuffix(".")
        raise ValueError(f"onnxruntime cannot run {path}: {why}.") from None
