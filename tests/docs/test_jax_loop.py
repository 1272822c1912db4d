"""Test the page "Your own JAX loop".

Each script runs as it stands there, and equals what gymnasium.make plays.
"""

import re
from pathlib import Path
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)

PAGE = Path(__file__).parents[2] / "docs" / "extend" / "jax_loop.md"
SECTIONS = dict(
    re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
)


def run(section: str) -> dict[str, Any]:
    """Run the scripts of a section one after another; return the names that they leave."""
    names: dict[str, Any] = {}
    for script in re.findall(
        r"^```python\n(.*?)^```$", SECTIONS[section], re.MULTILINE | re.DOTALL
    ):
        exec(script, names)
    return names


def test_ppo_in_one_file_learns() -> None:
    mean_returns = np.asarray(run("PPO in one file")["mean_returns"])
    assert np.nanmean(mean_returns[-5:]) > 2 * np.nanmean(mean_returns[:5])


def test_the_gradient_through_the_simulation_improves_the_controller() -> None:
    names = run("jit, vmap, scan and grad")
    returns = np.array(names["returns"])
    assert np.isfinite(returns).all()
    assert returns[-1] > returns[0] + 0.5
    weights, total = names["weights"], 0.0
    env = gymnasium.make("rlsuite/PMSMCurrent-v0")
    observation, _ = env.reset(seed=7)
    for _ in range(names["STEPS"]):
        observation, reward, terminated, truncated, _ = env.step(
            np.asarray(jnp.tanh(weights @ observation))
        )
        total += reward
        assert not terminated
        assert not truncated
    assert float(names["episode_return"](weights, 7)) == pytest.approx(total, rel=1e-4)


def test_a_stream_plays_on_after_every_end() -> None:
    names = run("A batch that begins anew by itself")
    over, totals = np.asarray(names["over"]), np.asarray(names["totals"])
    assert over.shape == (500, 32)
    assert over.sum(axis=0).min() > 1
    assert totals.shape == (500, 32, 2)
    assert names["mean"].shape == (2,)
    assert (totals[over][:, 1] <= -1).all()  # a step of time costs 1


def test_rejax_trains_on_the_functional_form() -> None:
    pytest.importorskip("rejax", reason="needs the extra peers")
    names = run("Libraries that train on gymnax's environments")
    returns = np.asarray(names["returns"])
    assert returns.shape == (2, 128)
    assert returns[-1].mean() > 1.2 * returns[0].mean()
    assert np.asarray(names["lengths"]).max() == names["ppo"].env.task.card.horizon
