"""Draw docs/step_responses.png: reference players of machines answer steps.

The steps are of current, torque, speed and position.

python docs/draw_step_responses.py

The machine is one within its tolerances, not that of the data sheet, by which the player computes;
at the speed or with the load of a test episode. Continuous control.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import resolve_suite
from rlbench_suite.core.task_card import TaskCard

STEPS = {"current": 120, "torque": 120, "speed": 1000, "position": 2000}
AT = 0.25
"""Time at which the set point steps, in parts of the time that is shown."""


def response(card: TaskCard) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time (ms), set points and values, ``(steps, n)``, of a step response.

    The step is a third of a range, or a jump of the goal.
    """
    task: Any = card.build()
    steps = STEPS[task.kind]
    goal = task.goal
    episode, first = jax.jit(
        lambda: begin(task, seed_key(1), 0, ContextSource.parse("test", task))
    )()
    player: Any = reference_player(task)
    low, high = np.array(goal.low), np.array(goal.high)
    before = (low + high) / 2 if task.kind != "speed" else np.array([episode.params.speed])
    after = np.clip(before + (goal.jump or (high - low) / 3), low, high)

    def at(t: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(jnp.where(t < AT * steps, *pair) for pair in zip(before, after, strict=True))

    def step(carry: Any, t: jax.Array) -> Any:
        state, memory = carry
        state = state._replace(setpoint=at(t))
        view = View(first.observation, None, state, episode.params)
        action, memory = player.act(memory, view, jax.random.key(0))
        sample = jnp.stack(state.setpoint), jnp.stack(task.controlled_values(state, episode.params))
        return (task.transition(state, action, jax.random.key(0), episode.params), memory), sample

    memory = player.initial(episode.params)
    _, (setpoints, values) = jax.jit(
        lambda: jax.lax.scan(step, (episode.state, memory), jnp.arange(steps))
    )()
    return np.arange(steps) * task.period * 1e3, np.asarray(setpoints), np.asarray(values)


def main() -> None:
    """Draw the picture."""
    cards = [card for card in resolve_suite("motor") if card.entry_point.endswith(":Drive")]
    drives = [card for card in cards if card.settings["control"] == "continuous"]
    machines = list(dict.fromkeys(card.settings["machine"] for card in drives))
    goals = list(STEPS)
    figure, axes = plt.subplots(
        len(machines), len(goals), figsize=(14, 1.7 * len(machines)), squeeze=False
    )
    for axis in axes.flat:
        axis.axis("off")
    for card in drives:
        axis = axes[machines.index(card.settings["machine"]), goals.index(card.settings["goal"])]
        time, setpoints, values = response(card)
        axis.axis("on")
        for i in range(values.shape[1]):
            axis.plot(time, setpoints[:, i], "--", color=f"C{i}", linewidth=0.8)
            axis.plot(time, values[:, i], color=f"C{i}", linewidth=1.2)
        axis.set_title(card.name, fontsize=8, family="monospace")
        axis.tick_params(labelsize=6)
        axis.set_ylabel(card.build().quantity.unit, fontsize=7)
        axis.set_xlabel("ms", fontsize=7)
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "step_responses.png", dpi=80)


if __name__ == "__main__":
    main()
