"""Envs are values: pickled, copied, and rebuilt in another process, they go on to the bit."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium
import jax
import numpy as np
import pettingzoo
import pytest
from trajectories import flat, random_actions

from rlbench_suite.core.task_card import TaskCard

COPIES = {
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
    "cloudpickle": lambda env: cloudpickle.loads(cloudpickle.dumps(env)),
    "deepcopy": copy.deepcopy,
}

KEYWORDS = {"view": "text", "dtype": "float64"}


def play(env: Any, actions: list[Any]) -> list[Any]:
    """Everything shown under the actions, over the ends of episodes."""
    outcomes = []
    for action in actions:
        *step, info = env.step(action)
        outcomes.append((flat(step[0]), *step[1:], info))
        if step[2] or step[3]:
            observation, info = env.reset()
            outcomes.append((flat(observation), info))
    return outcomes


def assert_equal(tree: Any, expected: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, tree, expected)


def test_a_copy_goes_on_to_the_bit(card: TaskCard) -> None:
    env = gymnasium.make(card.id, split="test", max_episode_steps=min(card.horizon, 25))
    fresh = [make(env) for make in COPIES.values()]
    env.reset(seed=5)
    first, then = (random_actions(env.action_space, seed, 20) for seed in (5, 6))
    first_outcomes = play(env, first)
    copies = [make(env) for make in COPIES.values()]
    for copied in fresh:
        copied.reset(seed=5)
        assert_equal(play(copied, first), first_outcomes)
    expected = play(env, then)
    for copied in copies:
        # Or its programs would be compiled again.
        assert copied.unwrapped.task is env.unwrapped.task
        assert copied.action_space == env.action_space
        assert_equal(play(copied, then), expected)


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        *(
            (name, {word: value})
            for name in ("PMSMCurrent-v0", "Hopper-v0")
            for word, value in KEYWORDS.items()
        ),
        ("PMSMCurrent-v0", {"split": 3}),  # the other has a single context
    ],
)
def test_a_copy_keeps_its_keywords(name: str, keywords: dict[str, Any]) -> None:
    env = gymnasium.make(f"rlsuite/{name}", **keywords)
    env.reset(seed=1)
    copied = copy.deepcopy(env)
    action = "0 0 0" if "view" in keywords else env.action_space.sample()
    for _ in range(3):
        assert_equal(play(env, [action]), play(copied, [action]))


def test_a_copy_in_another_process_goes_on_to_the_bit(tmp_path: Path) -> None:
    code = (
        "import pickle, sys; env = pickle.load(open(sys.argv[1], 'rb'))\n"
        "for _ in range(5): step = env.step(env.action_space.sample())\n"
        "print(repr(step))"
    )
    env = gymnasium.make("rlsuite/PMSMTorque-v0", supply="rc")  # of a card in no registry
    env.action_space.seed(4)
    env.reset(seed=2)
    file = tmp_path / "env.pickle"
    file.write_bytes(pickle.dumps(env))
    for _ in range(5):
        step = env.step(env.action_space.sample())
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == repr(step)


def test_a_shallow_copy_has_an_episode_of_its_own() -> None:
    env = gymnasium.make("rlsuite/TMaze-v0").unwrapped
    env.reset(seed=1)
    start = env.episode
    copy.copy(env).step(env.task.noop_action())
    assert_equal(env.episode, start)


def test_samples_of_one_env_leave_another_alone() -> None:
    env, another = (gymnasium.make("rlsuite/PMSMCurrent-v0") for _ in range(2))
    env.action_space.seed(0)
    another.action_space.seed(0)
    samples = [env.action_space.sample() for _ in range(3)]
    np.testing.assert_array_equal([another.action_space.sample() for _ in range(3)], samples)


@pytest.mark.parametrize("name", ["SAT-v0", "Vicsek-v0", "Hopper-v0"])
@pytest.mark.parametrize("how", COPIES.values(), ids=COPIES)
def test_a_batch_copies_too(name: str, how: Any) -> None:
    env = gymnasium.make_vec(f"rlsuite/{name}", 3, max_episode_steps=7)
    how(env)
    env.reset(seed=1)
    actions = random_actions(env.action_space, 0, 12)
    for action in actions:
        env.step(action)
    copied = how(env)
    for action in actions:
        assert_equal(env.step(action), copied.step(action))


@pytest.mark.parametrize("kind", ["parallel", "aec"])
def test_agents_copy_too(kind: str) -> None:
    env = pettingzoo.make(kind, "rlsuite/Vicsek-v0")
    env.reset(seed=1)
    agent = env.agents[0]
    copied = pickle.loads(pickle.dumps(env))
    action = env.action_space(agent).sample()
    for each in (env, copied):
        each.step(dict.fromkeys(env.agents, action) if kind == "parallel" else action)
    np.testing.assert_array_equal(env.unwrapped.state(), copied.unwrapped.state())
