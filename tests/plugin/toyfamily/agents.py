"""Agents that learn, refuse, crash, hang and die.

``TOY_PAUSE`` slows training down, ``TOY_MARKS`` is a folder for what must be remembered from one
process to the next, ``TOY_FULL`` leaves no room for their policies. ``TOY_RATE`` and ``TOY_STEPS``
are hyperparameters, as a file of settings has them.
"""

import errno
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task


class Inclined(NamedTuple):
    """Does the right thing with probability ``skill``, else anything."""

    skill: Any

    def initial(self, params: Any) -> Any:
        return ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        chance, anything = jax.random.uniform(key, (2,))
        if view.action_mask is not None:
            return jnp.where(chance < self.skill, 2, jnp.where(anything < 0.5, 0, 2)), memory
        towards = jnp.clip(-view.observation[:1] - view.observation[1:], -1.0, 1.0)
        return jnp.where(chance < self.skill, towards, 2 * anything - 1), memory


class Learner:
    name = "toy"
    learns = True

    def check(self, task: Task[Any, Any]) -> None:
        pass

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        steps = int(os.environ.get("TOY_STEPS", "1000"))
        rate = float(os.environ.get("TOY_RATE", "0.5"))
        return {"steps": steps, "rate": rate, "sizes": (4, 4)}

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Any]:
        total: int = (hyperparameters or self.hyperparameters(task, budget))["steps"]
        for report in range(1, 5):
            time.sleep(float(os.environ.get("TOY_PAUSE", "0")))
            steps = report * total // 4
            yield Progress(
                steps,
                total,
                0.25 * report,
                1.0,
                float("nan") if report == 1 else report + 0.1 * seed,
            )
        yield self.policy(seed)

    def policy(self, seed: int) -> Any:
        return Inclined(np.float32(0.6 + 0.05 * (seed % 5)))

    def save(self, policy: Any, path: str) -> None:
        from safetensors.numpy import save_file

        if "TOY_FULL" in os.environ:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save_file({"skill": np.asarray(policy.skill)}, path)

    def load(self, path: str, task: Task[Any, Any], *, budget: str) -> Any:
        from safetensors.numpy import load_file

        return Inclined(load_file(path)["skill"])


class Sampler:
    """A policy of the host: torch agents look like this."""

    def __init__(self, task: Task[Any, Any], seed: int) -> None:
        self.task = task
        self.rng = np.random.default_rng(seed)

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        if action_masks is not None:
            assert action_masks[observations[:, 0] == 0].tolist() == [[1, 0, 1]] * int(
                (observations == 0).sum()
            )
            return self.rng.choice([0, 2, 2, 2], size=len(observations))
        return self.rng.uniform(-1, 1, (len(observations), 1)).astype(np.float32)


class OnHost(Learner):
    name = "toy-host"

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Any]:
        yield Sampler(task, seed)

    def save(self, policy: Any, path: str) -> None:
        pass


class Peek(NamedTuple):
    """Reads where it stands, and how often the wind blows, from the simulator."""

    skill: Any

    def initial(self, params: Any) -> Any:
        return ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        if view.action_mask is not None:
            return jnp.where(view.params.gust > 1, 0, 2), memory
        return jnp.clip(-view.state.x, -1.0, 1.0)[None], memory


@privileged_player
class DeclaredPeek(Peek):
    """The same, as it must be declared."""


class Peeking(Learner):
    name = "toy-peek"

    def policy(self, seed: int) -> Any:
        return Peek(np.float32(1))


class Oracle(Learner):
    name = "toy-oracle"

    def policy(self, seed: int) -> Any:
        return DeclaredPeek(np.float32(1))


class Picky(Learner):
    name = "toy-picky"

    def check(self, task: Task[Any, Any]) -> None:
        if task.card.objectives:
            raise CannotPlay("one objective is enough for me")


class Crashing(Learner):
    name = "toy-crash"

    def policy(self, seed: int) -> Any:
        if seed == 1:
            raise RuntimeError("the seed 1 is too much for me")
        return super().policy(seed)


class Hanging(Learner):
    """Hangs at seed 1, the first time it is tried if ``TOY_MARKS`` is set."""

    name = "toy-hang"

    def policy(self, seed: int) -> Any:
        if seed == 1:
            marks = os.environ.get("TOY_MARKS")
            mark = Path(marks or "", "hung-before")
            if not marks or not mark.exists():
                if marks:
                    mark.touch()
                time.sleep(600)
        return super().policy(seed)


class Dying(Learner):
    name = "toy-die"

    def policy(self, seed: int) -> Any:
        if seed == 1:
            os._exit(9)
        return super().policy(seed)
