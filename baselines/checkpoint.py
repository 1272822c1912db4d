"""Policies as safetensors files: named arrays and a header, and no code that runs on reading."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from pydantic import TypeAdapter, ValidationError
from safetensors import safe_open
from safetensors.numpy import save

from rlbench_suite.core.task_card import id_without_agents
from rlbench_suite.evaluation.policy_files.checkpoint import read_header, read_hyperparameters
from rlbench_suite.foundation.atomic_files import replacing

Config = TypeVar("Config")


def write(path: str, weights: Any, agent: str, task_id: str, config: Any) -> None:
    """Write a pytree of arrays, named by their paths in the tree, and a header.

    The write is atomic.

    Args:
        path: the file.
        weights: the pytree of arrays.
        agent: name of the agent.
        task_id: id of the task's card.
        config: the agent's hyperparameters, a dataclass.
    """
    arrays = {
        jax.tree_util.keystr(place): np.array(leaf, order="C") for place, leaf in _places(weights)
    }
    write_bytes(path, save(arrays, metadata=header(agent, task_id, asdict(config))))


def header(agent: str, task_id: str, config: dict[str, Any]) -> dict[str, str]:
    """Return the header of a file: agent, task and hyperparameters."""
    return {"agent": agent, "task": task_id, "config": json.dumps(config)}


def write_bytes(path: str, content: bytes) -> None:
    """Write a safetensors file atomically, with its header in alphabetical order.

    The library writes the entries of the metadata in an order of their own in every process, so
    that equal policies would have unequal hashes.
    """
    end = 8 + int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8:end])
    text = json.dumps(metadata, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the arrays stay aligned
    with replacing(Path(path)) as unfinished:
        unfinished.write_bytes(len(text).to_bytes(8, "little") + text + content[end:])


def read_plain_config(
    path: str, agent: str, task_id: str, default: dict[str, Any]
) -> dict[str, Any]:
    """Return the hyperparameters in a file as plain data, or ``default`` if the file names none.

    A policy that was trained with another number of agents is one for the task too.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not safetensors, belongs to another agent or task, or has a damaged
            header.
    """
    metadata = read_header(path)
    file_agent = metadata.get("agent", agent)
    file_task = metadata.get("task", task_id)
    if (file_agent, id_without_agents(file_task)) != (agent, id_without_agents(task_id)):
        raise ValueError(
            f"{path} holds a policy of {file_agent} for {file_task}, not of {agent} for {task_id}."
        )
    return read_hyperparameters(path, metadata) if "config" in metadata else default


def read_config(path: str, agent: str, task_id: str, default: Config) -> Config:
    """Return the hyperparameters in a file as an instance of ``default``'s class.

    Return ``default`` if the file has none.

    Raises:
        OSError: the file cannot be read.
        ValueError: as :func:`read_plain_config`, or the agent has no such hyperparameter.
    """
    plain = read_plain_config(path, agent, task_id, asdict(default))  # type: ignore[call-overload]
    try:
        return TypeAdapter(type(default)).validate_python(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(
            f"The header of {path} is damaged: hyperparameter {where}: {first['msg']}."
        ) from None


def refuse_wider(path: str, widths: Sequence[int]) -> None:
    """Refuse layers that do not fit into the file, before memory for them is allocated.

    Args:
        path: the file.
        widths: units of consecutive layers.

    Raises:
        ValueError: a width is not positive, or the weights of all layers need more bytes than the
            file has.
    """
    size = Path(path).stat().st_size
    needed = 0
    for inputs, outputs in pairwise([*widths, 1]):
        needed += 4 * inputs * outputs
        if outputs < 1 or needed > size:
            raise ValueError(
                f"{path} has {size:,} bytes: too few for layers of {inputs} and {outputs} units."
            )


def refuse_different_shapes(
    path: str, stored: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Refuse arrays that do not match those of the networks.

    Raises:
        ValueError: an array is missing, unexpected, or of another shape.
    """
    for name in sorted(expected.keys() | stored.keys()):
        stored_shape = tuple(stored[name].shape) if name in stored else "nothing"
        expected_shape = tuple(expected[name].shape) if name in expected else "nothing"
        if stored_shape != expected_shape:
            raise ValueError(
                f"{path}: array {name} has shape {stored_shape}, expected {expected_shape}."
            )


def read(path: str, like: Any) -> Any:
    """Read weights into a pytree with the structure of ``like``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not safetensors, or its arrays do not match those of ``like``.
    """
    read_header(path)
    with safe_open(path, framework="numpy") as file:
        for name in file.keys():  # noqa: SIM118  (no dict)
            if (kind := file.get_slice(name).get_dtype()) != "F32":
                raise ValueError(f"{path}: array {name} has type {kind}, expected F32.")
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no dict)
    expected = {jax.tree_util.keystr(place): np.asarray(leaf) for place, leaf in _places(like)}
    refuse_different_shapes(path, stored, expected)
    return jax.tree.unflatten(jax.tree.structure(like), [stored[name] for name in expected])


def _places(tree: Any) -> Any:
    return jax.tree_util.tree_flatten_with_path(tree)[0]
