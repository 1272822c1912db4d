"""Record episodes of every id of gym-electric-motor 3.0.3: what they show, ask for and pay.

``PYTHON tests/motor/gem/record_gem.py`` with a Python that has gym-electric-motor 3.0.3 and nothing
of ours writes ``gem_episodes.json``. Two episodes of each id, with the peer's own integrator at its
default tolerance:

* ``wave``: duty k at step n is 0.3 cos(0.2 n + 1.3 k); switch state k is 3 n + 1 + k modulo the
  number of states;
* ``push``: the first duty of each converter is 1, the others -1; the switch states that give these
  voltages.

Each holds the first and the last state, every set point shown (the first one at reset), every
reward, and whether the last step ended it. ``walks`` are the arguments of the reference generators.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

WAVE = 12
PUSH = 25
DIGITS = 13
GOALS = re.compile(r"(Cont|Finite)-(CC|TC|SC)-\w+-v0")


def wave(space: Any, n: int) -> Any:
    """The input of step n."""
    if isinstance(space, gymnasium.spaces.Box):
        return 0.3 * np.cos(0.2 * n + 1.3 * np.arange(space.shape[0]))
    sizes = np.atleast_1d(getattr(space, "nvec", getattr(space, "n", None)))
    return switch_or_states((3 * n + 1 + np.arange(len(sizes))) % sizes, space)


def push(space: Any, n: int) -> Any:
    """The same input at every step."""
    if isinstance(space, gymnasium.spaces.Box):
        firsts = {1: (0,), 2: (0, 1), 3: (0,), 4: (0, 3), 6: (0, 3)}[space.shape[0]]
        return np.where(np.isin(np.arange(space.shape[0]), firsts), 1.0, -1.0)
    sizes = np.atleast_1d(getattr(space, "nvec", getattr(space, "n", None)))
    return switch_or_states(np.where(sizes == 8, 4, 1), space)


def switch_or_states(states: np.ndarray, space: Any) -> Any:
    return int(states[0]) if isinstance(space, gymnasium.spaces.Discrete) else states


def round_values(values: Any) -> list[float]:
    return [round(float(value), DIGITS) for value in np.ravel(values)]


def episode(env: Any, act: Any, steps: int) -> dict[str, Any]:
    (state, setpoint), _ = env.reset(seed=2026)
    record: dict[str, Any] = {
        "reset": round_values(state),
        "setpoints": [round_values(setpoint)],
        "rewards": [],
    }
    for n in range(steps):
        (state, setpoint), reward, terminated, _, _ = env.step(act(env.action_space, n))
        record["setpoints"].append(round_values(setpoint))
        record["rewards"].append(round(float(reward), DIGITS))
        if terminated:
            break
    return {**record, "last": round_values(state), "terminated": bool(terminated)}


def record(task_id: str) -> dict[str, Any]:
    env = gymnasium.make(task_id, disable_env_checker=True).unwrapped
    generator = env.reference_generator
    walks = {
        walk._reference_state: {
            "margin": [float(end) for end in walk._limit_margin],
            "deviation": [float(end) for end in walk._sigma_range],
            "length": [int(end) for end in walk._episode_len_range],
        }
        for walk in getattr(generator, "_sub_generators", [generator])
    }
    return {
        "state_names": list(env.state_names),
        "action_space": str(env.action_space),
        "walks": walks,
        "wave": episode(env, wave, WAVE),
        "push": episode(env, push, PUSH),
    }


if __name__ == "__main__":
    import gym_electric_motor  # noqa: F401  (registers its ids)

    version = importlib.metadata.version("gym-electric-motor")
    assert version == "3.0.3", version
    ids = filter(GOALS.fullmatch, gymnasium.registry)
    lines = (f"{json.dumps(task_id)}: {json.dumps(record(task_id))}" for task_id in ids)
    Path(__file__).with_name("gem_episodes.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
