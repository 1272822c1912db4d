"""Play controllers in shared libraries: native code that ``rlsuite-eval judge FILE --trust`` loads.

No other command loads it.

A library exports these C functions. Headers of ``rlsuite-eval deploy --format c`` have them with
``RLSUITE_LIBRARY`` defined; a controller of your own may be written by hand::

    int  rlsuite_abi(void);          1
    int  rlsuite_inputs(void);       numbers of an observation
    int  rlsuite_outputs(void);      numbers of an action, or discrete choices
    int  rlsuite_discrete(void);     0: rlsuite_step writes action; 1: it writes choice
    int  rlsuite_state_bytes(void);  size of a memory, which the caller keeps for each episode
    void rlsuite_reset(void *state); begins an episode
    void rlsuite_step(void *state, const float *observation, const unsigned char *legal,
                      float *action, int *choice);

Observations and continuous actions are the physical quantities of ``env.unwrapped.signals``, in
their order; the parts of a ``Dict`` are flattened in the order of their names. ``legal`` has an
entry for each discrete action, or is 0 where all are legal. Actions are clipped to the bounds of
the space. With several agents every agent has a memory of its own.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.flat_rows import FlatRows, entry_scales
from rlbench_suite.evaluation.policy_files.checkpoint import Checkpoint, sha256
from rlbench_suite.evaluation.policy_files.file_agent import FileAgent

NAME = "controller"
TRUSTED_VARIABLE = "RLSUITE_TRUSTED_CONTROLLER"
"""Environment variable with the SHA-256 of the one file that may be loaded.

It reaches worker processes.
"""
ABI = 1
_SIZES = ("abi", "inputs", "outputs", "discrete", "state_bytes")
_MAX_STATE_BYTES = 2**24
"""Largest memory of a controller in bytes."""


def open_controller(path: Path, *, trust: bool) -> Checkpoint:
    """Return a shared library as a policy to evaluate.

    This process and its workers may load it from then on.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not trusted.
    """
    digest = sha256(path)
    if not trust:
        raise ValueError(
            f"{path} is native code, which may do anything on this machine; add --trust to run it."
        )
    os.environ[TRUSTED_VARIABLE] = digest
    return Checkpoint(path, digest, NAME, None, {})


class ControllerAgent(FileAgent):
    """Agent that loads shared libraries. It cannot train."""

    name = NAME
    why_untrained = "A controller trains nothing; play its file by rlsuite-eval judge FILE --trust."

    def load(self, path: str, task: Task[Any, Any], *, budget: str) -> Controller:
        """Load a library.

        Raises:
            OSError: the system cannot load it.
            ValueError: it is not trusted, or is no controller for the task.
        """
        return Controller(Path(path), task)


class Controller:
    """Policy of a shared library, on NumPy batches.

    Raises:
        OSError: the system cannot load it.
        ValueError: the command line did not trust this file, or it is no controller for the task.
    """

    def __init__(self, path: Path, task: Task[Any, Any]) -> None:
        self.path, self.rows = path, FlatRows(task)
        self._library = _load(path)
        sizes = {}
        for name in _SIZES:
            function = self._function(name)
            function.restype, function.argtypes = ctypes.c_int, []
            sizes[name] = int(function())
        rows = self.rows
        expected_sizes = {
            "abi": ABI,
            "inputs": rows.features,
            "outputs": rows.numbers,
            "discrete": int(bool(rows.choices)),
        }
        for name, value in expected_sizes.items():
            if sizes[name] != value:
                raise ValueError(
                    f"{path}: on {rows.task_id} rlsuite_{name}() is {value}, got {sizes[name]}."
                )
        if not 0 <= sizes["state_bytes"] <= _MAX_STATE_BYTES:
            raise ValueError(
                f"{path}: rlsuite_state_bytes() is 0 to {_MAX_STATE_BYTES}, got "
                f"{sizes['state_bytes']}."
            )
        self._bytes = max(1, sizes["state_bytes"])
        self._begin, self._step = self._function("reset"), self._function("step")
        self._begin.restype = self._step.restype = None
        self._begin.argtypes, self._step.argtypes = [ctypes.c_void_p], [ctypes.c_void_p] * 5
        self._observation_scales = entry_scales(task, "observation", rows.features)
        self._action_scales = (
            np.ones(rows.numbers) if rows.choices else entry_scales(task, "action", rows.numbers)
        )
        self._states: np.ndarray | None = None

    def _function(self, name: str) -> Any:
        try:
            return getattr(self._library, f"rlsuite_{name}")
        except AttributeError:
            raise ValueError(
                f"{self.path} is no controller: it does not export rlsuite_{name}."
            ) from None

    def reset(self) -> None:
        """Forget the memories, because new episodes begin."""
        self._states = None

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        """Return the actions for a batch of observations.

        Raises:
            ValueError: the controller gives a number that is not finite, or a choice that does not
                exist.
        """
        rows = self.rows
        mask = self.rows.mask(action_masks)
        quantities = np.ascontiguousarray(
            rows.observe(observations) * self._observation_scales, np.float32
        )
        if self._states is None:
            self._states = np.zeros((len(quantities), -(-self._bytes // 16) * 2), np.uint64)
            for state in self._states:
                self._begin(state.ctypes.data)
        legal = None if mask is None else np.ascontiguousarray(mask, np.uint8)
        action, choice = (
            np.zeros((len(quantities), rows.numbers), kind) for kind in (np.float32, np.intc)
        )
        for i in range(len(quantities)):
            allowed = None if legal is None else legal[i].ctypes.data
            arguments = (
                quantities[i].ctypes.data,
                allowed,
                action[i].ctypes.data,
                choice[i].ctypes.data,
            )
            self._step(self._states[i].ctypes.data, *arguments)
        if rows.choices:
            if (choice < 0).any() or (choice >= np.array(rows.choices)).any():
                raise ValueError(
                    f"{self.path} chose {choice.tolist()}, but choices are below {rows.choices}."
                )
            return rows.choose("action", choice, mask)
        if not np.isfinite(action).all():
            raise ValueError(f"{self.path} gave an action that is not finite.")
        return rows.choose("action", action / self._action_scales, mask)


def _load(path: Path) -> ctypes.CDLL:
    """Load a trusted library from a private copy, so that what was hashed is what runs.

    Raises:
        OSError: the system cannot load it.
        ValueError: the command line did not trust this file.
    """
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != os.environ.get(TRUSTED_VARIABLE):
        raise ValueError(
            f"{path} is native code and is not loaded: only rlsuite-eval judge FILE --trust loads "
            "a controller."
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(data)
        try:
            return ctypes.CDLL(str(copy))
        except OSError as error:
            raise OSError(f"Cannot load {path}: {error}.") from None
