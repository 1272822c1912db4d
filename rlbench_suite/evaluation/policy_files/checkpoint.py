"""Evaluate a saved policy: read the header of its file, and play it like an agent that was trained.

A file is safetensors as agents write it (``policy.safetensors`` of a run), ONNX
(:mod:`.onnx_policy`), or another format that the agent's own ``load`` reads (a zip of
stable-baselines3). No code in it is executed. A run keeps a copy, so that it can be resumed and
checked without the original.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors import SafetensorError, safe_open

if TYPE_CHECKING:  # a header is read before JAX may load
    from rlbench_suite.core.agent import Agent, HostPolicy
    from rlbench_suite.core.policy import Policy
    from rlbench_suite.core.task import Task


class Checkpoint(NamedTuple):
    """File with a trained policy."""

    path: Path
    sha256: str
    agent: str
    """Name of the agent that made it and can load it."""
    task: str | None
    """Id of the task it was trained on, if the file names one."""
    hyperparameters: dict[str, Any]
    """Hyperparameters that the file names."""

    @property
    def label(self) -> str:
        """Name of its agent in a run.

        It differs between files of one agent, and from the agent itself.
        """
        return f"{self.agent}.{self.sha256[:8]}"


def open_checkpoint(path: Path, agent: str | None) -> Checkpoint:
    """Read the header of a file. Its weights are read when it is played.

    Args:
        path: the file.
        agent: the agent that made it; if None, the file must name it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it does not say which agent made it, and ``agent`` is None; or it says another
            one.
        ImportError: it is ONNX, and that extra is not installed.
    """
    if path.suffix.lower() == ".onnx":
        return _open_onnx(path, agent)
    digest, readable = sha256(path), _is_safetensors(path)
    header = read_header(path) if readable else {}
    owner = header.get("agent")
    if agent is None and owner is None:
        why = "its header does not name one" if readable else "it is not a safetensors file"
        raise ValueError(f"{path} does not say which agent made it ({why}); name it with --agent.")
    if agent is not None and owner not in (None, agent):
        raise ValueError(f"{path} holds a policy of {owner}, not of {agent}.")
    return Checkpoint(
        path, digest, agent or str(owner), header.get("task"), read_hyperparameters(path, header)
    )


def _open_onnx(path: Path, agent: str | None) -> Checkpoint:
    digest = sha256(path)
    from rlbench_suite.evaluation.policy_files import onnx_policy

    if agent not in (None, onnx_policy.NAME):
        raise ValueError(f"{path} is an ONNX file, not a policy of {agent}; leave --agent out.")
    return Checkpoint(path, digest, onnx_policy.NAME, onnx_policy.read_task(path), {})


def read_header(path: str | Path) -> dict[str, str]:
    """Return the metadata in the header of a safetensors file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not safetensors.
    """
    try:
        with safe_open(str(path), framework="numpy") as file:
            return file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file ({error}).") from None


def read_hyperparameters(path: str | Path, header: dict[str, str]) -> dict[str, Any]:
    """Return the hyperparameters that a header names.

    Raises:
        ValueError: they are not a JSON object.
    """
    try:
        stored = json.loads(header.get("config", "{}"))
        if isinstance(stored, dict):
            return stored
    except (ValueError, RecursionError):
        pass
    raise ValueError(f"The header of {path} is damaged: its config is not a JSON object.")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    if path.exists() and not (
        path.is_file() or path.is_dir()
    ):  # to open a pipe could take for ever
        raise OSError(f"Cannot read the checkpoint {path}: it is no plain file.")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OSError(f"Cannot read the checkpoint {path}: {error.strerror}.") from None


def _is_safetensors(path: Path) -> bool:
    """Return True if a file begins like safetensors, with a length and a JSON object."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


class SavedAgent:
    """Agent that reads a saved policy instead of training.

    Its results are cells like those of other agents.
    """

    learns = False

    def __init__(self, checkpoint: Checkpoint, agent: Agent) -> None:
        self.name, self.checkpoint, self.agent = checkpoint.label, checkpoint, agent

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the agent that made the file cannot play the task."""
        self.agent.check(task)

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return the hyperparameters that the file names, and its hash."""
        return self.checkpoint.hyperparameters | {"checkpoint": self.checkpoint.sha256}

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Policy | HostPolicy]:
        """Yield the policy of the file.

        It is the same for every seed; the evaluation episodes differ.

        Raises:
            ValueError: the file was changed, or is not a policy of the agent for the task.
        """
        path = self.checkpoint.path
        if sha256(path) != self.checkpoint.sha256:
            raise ValueError(
                f"{path} is not the file that the manifest names; delete it and run the same "
                "command again."
            )
        load: Any = getattr(self.agent, "load", None)
        if load is None:
            raise ValueError(
                f"The agent {self.agent.name!r} reads no saved policies: it has no load."
            )
        yield load(str(path), task, budget=budget)

    def save(self, policy: Policy | HostPolicy, path: str) -> None:
        """Save the policy as its agent does."""
        self.agent.save(policy, path)
