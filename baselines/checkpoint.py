"""Weights as safetensors: named arrays and a header, nothing that runs when it is read."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file


def write(path: str, weights: Any, header: dict[str, str]) -> None:
    """The leaves of a pytree by their places in it; appears whole or not at all."""
    named = {jax.tree_util.keystr(place): np.array(leaf, order="C") for place, leaf in _places(weights)}
    unfinished = f"{path}.{os.getpid()}.tmp"
    save_file(named, unfinished, metadata=header)
    os.replace(unfinished, path)


def header(path: str) -> dict[str, str]:
    """What was written beside the weights.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not safetensors.
    """
    with _opened(path) as file:
        return file.metadata() or {}


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
