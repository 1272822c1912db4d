"""Every reward mode: honest play earns the most, nothing cheap pays, and each mode equals its closed form."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.envs.tools.service_desk import ACTIONS
from rlbench_suite.policy import View, reference_player
from rlbench_suite.registry import card

pytestmark = pytest.mark.of_variants

MODES = [
    (name, mode)
    for name in ("ServiceDesk-v1", "Search-v1", "Interpreter-v0")
    for mode in card(name).choices["reward"]
    if mode != "judged"  # tests/tools/test_search.py
]
EPISODES = 64
HONEST = -1
"""In place of an action: that of the reference player."""


@cache
def program(name: str, mode: str) -> Any:
    """Actions, rewards and ends of each step, and the success, of episodes by given actions."""
    task: Any = card(name, reward=mode).build()
    player: Any = reference_player(task)

    def episode(key: Any, actions: Any) -> Any:
        params = task.sample_params(key, np.int32(1))

        def step(carry: Any, given: Any) -> Any:
            state, over = carry
            own, _ = player.act((), View(None, None, state, params), key)
            action = jnp.where((given == HONEST).all(), own, given)
            after = task.transition(state, action, key, params)
            reward = jnp.where(over, 0, task.reward(state, action, after, key, params))
            after = jax.tree.map(lambda new, old: jnp.where(over, old, new), after, state)
            return (after, over | task.terminal(after, key, params)), (action, reward, over)

        (state, over), made = jax.lax.scan(step, (task.initial(key, params), jnp.bool_(False)), actions)
        return *made, over, task.info(state, params)["success"]

    return jax.jit(jax.vmap(episode))


def played(name: str, mode: str, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    """Actions, rewards, whether each step was made, whether each episode ended, whether it succeeded."""
    keys = jax.random.split(jax.random.key(0), EPISODES)
    made, rewards, over, ended, success = map(np.asarray, program(name, mode)(keys, np.asarray(actions, np.int32)))
    return made, rewards, ~over, ended, success


@cache
def by_hand(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The honest actions of each episode, and their number."""
    task: Any = card(name).build()
    shape = EPISODES, task.card.horizon, *(task.action_space.shape or ())
    made, _, steps, ended, success = played(name, "success", np.full(shape, HONEST, np.int32))
    assert ended.all()
    assert success.all()
    return made, steps.sum(1)


@cache
def cheap(name: str) -> dict[str, np.ndarray]:
    """Players who do not do the task, or do more than it takes."""
    task: Any = card(name).build()
    honest, lengths = by_hand(name)
    task.action_space.seed(0)
    times = np.arange(task.card.horizon)
    last = np.take_along_axis(honest, (lengths - 1).reshape(-1, *[1] * (honest.ndim - 1)), 1)
    random = np.array([[task.action_space.sample() for _ in times] for _ in range(EPISODES)])
    return {
        "noop": np.broadcast_to(task.noop_action(), honest.shape),
        "random": random,
        "one right call for ever": np.repeat(honest[:, :1], len(times), 1),
        "each right call twice": np.repeat(honest, 2, 1)[:, : len(times)],
        "the end at once": np.broadcast_to(last, honest.shape),
        "all but the end, for ever": np.stack([
            np.resize(one[: max(length - 1, 1)], one.shape) for one, length in zip(honest, lengths, strict=True)
        ]),
        "random, then honest": np.where((times < 3).reshape(-1, *[1] * (honest.ndim - 2)), random, HONEST),
    }  # fmt: skip


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_honest_play_earns_the_most_and_nothing_cheap_pays(name: str, mode: str) -> None:
    honest, lengths = by_hand(name)
    total = played(name, mode, honest)[1].sum(1)
    least = {"Search-v1": 0.5}.get(name, 1.0) if mode == "thrifty" else 1.0  # a searcher may have to read in vain
    assert total.max() == pytest.approx(1, abs=1e-6)
    assert total.min() > least - 1e-6
    for player, actions in cheap(name).items():
        _, rewards, _, ended, success = played(name, mode, actions)
        earned = rewards.sum(1)
        assert (earned > -1e-6).all(), player
        assert (earned <= np.maximum(total, success) + 1e-6).all(), player
        if mode != "matched":
            assert (earned[ended & ~success] < 1e-6).all(), player
        if not ended.all():
            assert (earned[~ended] <= (0.5 if mode == "dense" else 0) + 1e-6).all(), player
        if player in ("noop", "random", "one right call for ever") and mode != "dense" and (lengths > 1).all():
            assert earned.mean() < 0.45 * total.mean(), player


def test_thrift_is_its_closed_form() -> None:
    """By waiting k times first, then n honest actions: sin(pi (n + k) / (2 n + k))."""
    honest, lengths = by_hand("ServiceDesk-v1")
    calm = lengths < 6  # an impatient customer leaves after 8 turns
    for k in range(3):
        late = np.concatenate([np.zeros((EPISODES, k), np.int32), honest], 1)[:, : honest.shape[1]]
        total = played("ServiceDesk-v1", "thrifty", late)[1].sum(1)
        wanted = [math.sin(math.pi * (n + k) / (2 * n + k)) for n in lengths[calm]]
        np.testing.assert_allclose(total[calm], wanted, rtol=1e-5)


def test_matched_rewards_are_dice_coefficients_of_multisets() -> None:
    """Compared with counters of names and of calls, for players who are right, disturbed or random."""
    name = "ServiceDesk-v1"
    honest, lengths = by_hand(name)
    tools = [next(t for t in ("ask", "look_up", "deny", "wait", "restart", "done", "") if a.startswith(t)) or "write"
             for a in ACTIONS]  # fmt: skip
    met = set()
    for actions in cheap(name).values():
        made, rewards, steps, ended, _ = played(name, "matched", actions)
        for i in range(EPISODES):
            calls, gold = made[i][steps[i]].tolist(), honest[i][: lengths[i]].tolist()
            names = Counter(tools[a] for a in calls) & Counter(tools[a] for a in gold)
            same = Counter(calls) & Counter(gold)
            wanted = (names.total() + same.total()) / (len(calls) + len(gold))
            left = not (ACTIONS[calls[-1]].startswith("deny") or ACTIONS[calls[-1]] == "done")
            assert rewards[i].sum() == pytest.approx(0 if left or not ended[i] else wanted, abs=1e-6)
            met.add(round(float(rewards[i].sum()), 2))
    assert len(met) > 10


@pytest.mark.parametrize("name", ["ServiceDesk-v1", "Search-v1", "Interpreter-v0"])
def test_dense_rewards_telescope(name: str) -> None:
    """All that was earned is between 0 and a half before the end, and circling adds nothing."""
    for player, actions in cheap(name).items():
        _, rewards, steps, ended, success = played(name, "dense", actions)
        before_last = np.cumsum(rewards, 1)[np.arange(EPISODES), np.maximum(steps.sum(1) - 2, 0)]
        several = steps.sum(1) > 1
        assert (before_last[several] > -1e-6).all(), player
        assert (before_last[several] < 0.5 + 1e-6).all(), player
        np.testing.assert_allclose(rewards.sum(1)[ended], success[ended], atol=1e-6)
        if player == "one right call for ever" and not ended.any():
            np.testing.assert_allclose(rewards[:, 1:], 0, atol=1e-6)


@pytest.mark.parametrize(("task_id", "mode", "why"), [
    ("SQL-v1", "matched", "One meaning has many programs"),
    ("SQL-v1", "dense", "Only the last call changes anything"),
    ("Interpreter-v0", "matched", "One meaning has many programs"),
    ("Search-v1", "matched", "One meaning has many programs"),
    ("Routing-v0", "matched", "right by chance"),
    ("Routing-v0", "dense", "Each query pays for itself"),
    ("ServiceDesk-v1", "matchd", "Did you mean 'matched'"),
])  # fmt: skip
def test_a_mode_without_a_meaning_is_refused_with_the_reason(task_id: str, mode: str, why: str) -> None:
    with pytest.raises(ValueError, match=rf"Unknown reward of rlsuite/{task_id}.* Known: .*success.*{why}|{why}"):
        gymnasium.make(f"rlsuite/{task_id}", reward=mode)
