"""Weights as safetensors: named arrays and a header, nothing that runs when it is read."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


def write(path: str, weights: Any, agent: str, task_id: str, config: Any) -> None:
    """The leaves of a pytree by their places in it, and whose they are; appears whole or not at all.

    Args:
        path: the file.
        weights: the pytree, its leaves arrays.
        agent: name of the agent.
        task_id: id of the task's card.
        config: the agent's hyperparameters, a dataclass.
    """
    header = {"agent": agent, "task": task_id, "config": json.dumps(asdict(config))}
    named = {jax.tree_util.keystr(place): np.array(leaf, order="C") for place, leaf in _places(weights)}
    unfinished = f"{path}.{os.getpid()}.tmp"
    save_file(named, unfinished, metadata=header)
    os.replace(unfinished, path)


def read_config(path: str, agent: str, task_id: str, kind: type[Any]) -> Any:
    """The hyperparameters beside the weights, of the dataclass ``kind``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not safetensors, or belongs to another agent or task.
    """
    with _opened(path) as file:
        header = file.metadata() or {}
    owner = header.get("agent"), header.get("task")
    if owner != (agent, task_id):
        raise ValueError(f"{path} holds a policy of {owner[0]} for {owner[1]}, not of {agent} for {task_id}.")
    stored = json.loads(header["config"])
    return kind(**stored | {"hidden": tuple(stored["hidden"])})


def read(path: str, like: Any) -> Any:
    """The weights, in the shape of the pytree ``like``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not safetensors, or its arrays are not those of ``like``.
    """
    with _opened(path) as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no dict)
    wanted = {jax.tree_util.keystr(place): np.asarray(leaf) for place, leaf in _places(like)}
    for name in wanted.keys() | stored.keys():
        shapes = [table[name].shape if name in table else None for table in (wanted, stored)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"{path}: array {name} has shape {shapes[1]}, expected {shapes[0]}.")
    return jax.tree.unflatten(jax.tree.structure(like), [stored[name] for name in wanted])


def _places(tree: Any) -> Any:
    return jax.tree_util.tree_flatten_with_path(tree)[0]


def _opened(path: str) -> Any:
    try:
        return safe_open(path, framework="numpy")
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error
