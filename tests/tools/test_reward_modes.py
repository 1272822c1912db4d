"""Every reward mode pays honest play the most, and nothing cheap.

Each mode equals its closed form.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.core.episode import is_legal
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.tools.office.columns import World, distance, equal_worlds
from rlbench_suite.envs.tools.office.office_apps import HAS_EFFECT
from rlbench_suite.envs.tools.service_desk.actions import ACTIONS

pytestmark = pytest.mark.of_variants

MODES = [
    (name, mode)
    for name in ("ServiceDesk-v0", "Search-v0", "Interpreter-v0", "SQL-v0", "OfficeApps-v0")
    for mode in card(name).choices["reward"]
    if mode != "judged"  # tests/tools/test_search.py
    if (name, mode) != ("OfficeApps-v0", "success")  # tests/tools/test_attacks.py
]
EPISODES = 64
HONEST = -1
"""In place of an action: that of the reference player."""


class Plays(NamedTuple):
    """Episodes, batched on axis 0, and steps on axis 1."""

    actions: np.ndarray
    rewards: np.ndarray
    steps: np.ndarray
    """Whether the episode still ran."""
    legal: np.ndarray
    """Whether the action mask allowed the action."""
    ended: np.ndarray
    success: np.ndarray
    params: Any


@cache
def program(name: str, mode: str) -> Any:
    """Play episodes by given actions."""
    task: Any = card(name, reward=mode).build()
    player: Any = reference_player(task)

    def episode(key: Any, actions: Any) -> Any:
        params = task.sample_params(key, np.int32(1))
        memory = player.initial(params)

        def step(carry: Any, inputs: Any) -> Any:
            (t, action), (state, over) = inputs, carry
            draw = jax.random.fold_in(key, t)
            honest_action, _ = player.act(memory, View(None, None, state, params), draw)
            action = jnp.where((action == HONEST).all(), honest_action, action)
            legal = is_legal(task, task.action_mask(state, params), action)
            after = task.transition(state, action, draw, params)
            after = jax.tree.map(lambda new, old: jnp.where(over | ~legal, old, new), after, state)
            reward = jnp.where(over, 0, task.reward(state, action, after, draw, params))
            return (after, over | task.terminal(after, draw, params)), (
                action,
                reward,
                ~over,
                legal,
            )

        times = jnp.arange(1, len(actions) + 1)
        (state, over), plays = jax.lax.scan(
            step, (task.initial(key, params), jnp.bool_(False)), (times, actions)
        )
        return Plays(*plays, over, task.info(state, params)["success"], params)

    return jax.jit(jax.vmap(episode))


def on_host(name: str, mode: str, actions: np.ndarray) -> Plays:
    """The same for a task of the host."""
    env: Any = gymnasium.make(f"rlsuite/{name}", reward=mode, split="test")
    player: Any = reference_player(env.unwrapped.task)
    played_actions, rewards = actions.copy(), np.zeros(actions.shape[:2])
    steps, ended, success = rewards > 0, np.zeros(len(actions), bool), np.zeros(len(actions), bool)
    for seed, script in enumerate(actions):
        env.reset(seed=seed)
        for t, scripted in enumerate(script):
            view = View(None, None, env.unwrapped.episode.state, env.unwrapped.params)
            played_actions[seed, t] = (
                player.act((), view, None)[0] if (scripted == HONEST).all() else scripted
            )
            _, rewards[seed, t], over, _, info = env.step(played_actions[seed, t])
            steps[seed, t], ended[seed], success[seed] = True, over, info["success"]
            if over:
                break
    return Plays(played_actions, rewards, steps, steps | True, ended, success, None)


def play_script(name: str, mode: str, actions: np.ndarray) -> Plays:
    """Play one episode by each script of actions."""
    if card(name).host:
        return on_host(name, mode, np.asarray(actions, np.int32))
    keys = jax.random.split(jax.random.key(0), EPISODES)
    plays: Plays = jax.tree.map(
        np.asarray, program(name, mode)(keys, np.asarray(actions, np.int32))
    )
    return plays


@cache
def by_hand(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The honest actions of each episode, and their number."""
    task: Any = card(name).build()
    shape = EPISODES, task.card.horizon, *(task.action_space.shape or ())
    mode = "matched" if name == "OfficeApps-v0" else "success"
    plays = play_script(name, mode, np.full(shape, HONEST, np.int32))
    assert plays.ended.all()
    # There, success asks for the average of the best policy.
    assert plays.success.all() or name == "Routing-v0"
    return plays.actions, plays.steps.sum(1)


@cache
def cheap_plays(name: str) -> dict[str, np.ndarray]:
    """Return the plays of players who do not do the task, or do more than it takes."""
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
        "all but the end, for ever": np.stack(
            [
                np.resize(calls[: max(length - 1, 1)], calls.shape)
                for calls, length in zip(honest, lengths, strict=True)
            ]
        ),
        "random, then honest": np.where(
            (times < 3).reshape(-1, *[1] * (honest.ndim - 2)), random, HONEST
        ),
    }


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_honest_play_earns_the_most_and_nothing_cheap_pays(name: str, mode: str) -> None:
    honest, lengths = by_hand(name)
    total = play_script(name, mode, honest).rewards.sum(1)
    # A searcher may have to read in vain.
    bound = {"Search-v0": 0.5}.get(name, 1.0) if mode == "thrifty" else 1.0
    assert total.max() == pytest.approx(1, abs=1e-6)
    assert total.min() > bound - 1e-6
    for player, actions in cheap_plays(name).items():
        _, rewards, _, _, ended, success, _ = play_script(name, mode, actions)
        earned = rewards.sum(1)
        assert (earned > -1e-6).all(), player
        assert (earned <= np.maximum(total, success) + 1e-6).all(), player
        if mode != "matched":
            assert (earned[ended & ~success] < 1e-6).all(), player
        if not ended.all():
            assert (earned[~ended] <= (0.5 if mode == "dense" else 0) + 1e-6).all(), player
        if (
            player in ("noop", "random", "one right call for ever")
            and mode != "dense"
            and (lengths > 1).all()
        ):
            assert earned.mean() < 0.45 * total.mean(), player


def test_a_blind_clerk_earns_more_than_half_by_matched_calls_and_never_succeeds() -> None:
    """The page on tools warns of this: a likeness of calls is not the task."""
    calls = [
        ACTIONS.index(name) for name in ("ask_pin", "ask_wish", "ask_order", "look_up_1", "done")
    ]
    script = np.resize(calls, card("ServiceDesk-v0").horizon)
    plays = play_script(
        "ServiceDesk-v0", "matched", np.broadcast_to(script, (EPISODES, script.size))
    )
    assert 0.5 < plays.rewards.sum(1).mean() < 0.8
    assert not plays.success.any()


def test_thrift_is_its_closed_form() -> None:
    """By waiting k times first, then n honest actions: sin(pi (n + k) / (2 n + k))."""
    honest, lengths = by_hand("ServiceDesk-v0")
    calm = lengths < 6  # an impatient customer leaves after 8 turns
    for k in range(3):
        late = np.concatenate([np.zeros((EPISODES, k), np.int32), honest], 1)[:, : honest.shape[1]]
        total = play_script("ServiceDesk-v0", "thrifty", late).rewards.sum(1)
        expected = [math.sin(math.pi * (n + k) / (2 * n + k)) for n in lengths[calm]]
        np.testing.assert_allclose(total[calm], expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["ServiceDesk-v0", "OfficeApps-v0"])
def test_matched_rewards_are_dice_coefficients_of_multisets(name: str) -> None:
    """Rewards are compared with counters of names and of calls.

    Players are right, disturbed or random.
    """
    honest, lengths = by_hand(name)
    tools = [
        next(
            t for t in ("ask", "look_up", "deny", "wait", "restart", "done", "") if a.startswith(t)
        )
        or "write"
        for a in ACTIONS
    ]

    def calls_of(actions: Any) -> list[tuple[Any, ...]]:
        """Return names and arguments."""
        if name == "ServiceDesk-v0":
            return [(tools[action], action) for action in actions]
        return [tuple((action * HAS_EFFECT[action[0]]).tolist()) for action in actions]

    rewards = set()
    for actions in cheap_plays(name).values():
        plays = play_script(name, "matched", actions)
        for i in range(EPISODES):
            calls = calls_of(plays.actions[i][plays.steps[i] & plays.legal[i]])
            gold = calls_of(honest[i][: lengths[i]])
            names = Counter(call[0] for call in calls) & Counter(call[0] for call in gold)
            common = names.total() + (Counter(calls) & Counter(gold)).total()
            customer_left = name == "ServiceDesk-v0" and calls[-1][0] not in ("deny", "done")
            expected = (
                0 if customer_left or not plays.ended[i] else common / (len(calls) + len(gold))
            )
            assert plays.rewards[i].sum() == pytest.approx(expected, abs=1e-6)
            rewards.add(round(expected, 2))
    assert len(rewards) > 7


@pytest.mark.parametrize("name", ["ServiceDesk-v0", "Search-v0", "Interpreter-v0", "OfficeApps-v0"])
def test_dense_rewards_telescope(name: str) -> None:
    """All that was earned is between 0 and a half before the end, and circling adds nothing."""
    for player, actions in cheap_plays(name).items():
        _, rewards, steps, _, ended, success, _ = play_script(name, "dense", actions)
        before_last = np.cumsum(rewards, 1)[np.arange(EPISODES), np.maximum(steps.sum(1) - 2, 0)]
        several = steps.sum(1) > 1
        assert (before_last[several] > -1e-6).all(), player
        assert (before_last[several] < 0.5 + 1e-6).all(), player
        np.testing.assert_allclose(rewards.sum(1)[ended], success[ended], atol=1e-6)
        if player == "one right call for ever" and not ended.any():
            np.testing.assert_allclose(rewards[:, 1:], 0, atol=1e-6)


def test_progress_in_the_office_is_the_share_of_the_wanted_changes() -> None:
    """Before its last word the reference has made all of them.

    Distances are compared with counters of rows.
    """
    honest, lengths = by_hand("OfficeApps-v0")
    plays = play_script("OfficeApps-v0", "dense", honest)
    before_last = np.cumsum(plays.rewards, 1)[np.arange(EPISODES), np.maximum(lengths - 2, 0)]
    changes = plays.params.reason == 0  # each template of the first tier asks for a change
    several = lengths > 1
    np.testing.assert_allclose(before_last[several], np.where(changes, 0.5, 0)[several], atol=1e-6)

    starts = plays.params.start
    rolled = jax.tree.map(
        lambda column: np.roll(column, 1, -1) if column.ndim > 1 else np.roll(column, 1), starts
    )
    for moved in (
        rolled,
        starts._replace(
            **{c: getattr(rolled, c) for c in World._fields if c.startswith("request_")}
        ),
    ):
        distances, equal = (
            np.asarray(jax.vmap(measure)(starts, moved)) for measure in (distance, equal_worlds)
        )
        for i in range(EPISODES):
            start, end = (
                {c: column[i] for c, column in w._asdict().items()} for w in (starts, moved)
            )
            expected = sum(
                (start[c] != end[c]).sum()
                for c in start
                if not c.startswith(("request_", "transfer_"))
            )
            for ledger in ("request_", "transfer_"):
                rows = [
                    Counter(zip(*(w[c] for c in w if c.startswith(ledger)), strict=True))
                    for w in (start, end)
                ]
                expected += (rows[0] - rows[1]).total()
            assert distances[i] == expected
            assert equal[i] == (expected == 0)
    assert equal.all()  # the requests in another order


def test_routing_pays_honest_play_best_in_both_modes_and_thrift_as_its_sheet_says() -> None:
    """Luck decides single episodes, so that means are compared, on the same queries."""
    honest, _ = by_hand("Routing-v0")
    for mode in ("success", "thrifty"):
        shape = np.full_like(honest, HONEST)
        best = play_script("Routing-v0", mode, shape).rewards.sum(1)
        assert 0.2 < best.mean() < best.max() <= 1
        for player, actions in cheap_plays("Routing-v0").items():
            plays = play_script("Routing-v0", mode, actions)
            earned = plays.rewards.sum(1)
            assert (plays.rewards >= 0).all()
            # In most of their choices.
            alike = player in ("random, then honest", "all but the end, for ever")
            error = 3 * (best - earned).std() / EPISODES**0.5
            assert earned.mean() < best.mean() + (error if alike else -error), player
    for actions in cheap_plays("Routing-v0").values():
        plain, thrifty = (
            play_script("Routing-v0", mode, actions) for mode in ("success", "thrifty")
        )
        price = np.take_along_axis(plain.params.price, plain.actions, 1)
        # The reference's own choices depend on the mode.
        same_way = plain.actions == thrifty.actions
        np.testing.assert_allclose(
            (plain.rewards * (1 - price / 16))[same_way], thrifty.rewards[same_way], atol=1e-6
        )


@pytest.mark.parametrize("name", ["OfficeAppsLarge-v0", "ServiceDesk-v0"])
def test_a_reply_that_is_no_call_is_a_call_too_many(name: str) -> None:
    """After k unreadable replies, n right calls earn 2 n / (2 n + k).

    This is the format's part of ``matched``.
    """
    env: Any = gymnasium.make(f"rlsuite/{name}", view="text", reward="matched", split="test")
    player: Any = reference_player(env.unwrapped.task)
    for seed, k in enumerate((0, 1, 2)):
        env.reset(seed=seed)
        for _ in range(k):
            _, reward, over, _, info = env.step("I shall look that up for you.")
            assert (reward, over, info["invalid_action"]) == (0, False, True)
        n, over = 0, False
        while not over:
            state, params = env.unwrapped.episode.state, env.unwrapped.params
            view = View(
                None,
                None,
                state._replace(call_count=state.call_count - k) if "Large" in name else state,
                params,
            )
            action = np.asarray(player.act((), view, None)[0])
            _, reward, over, *_ = env.step(env.unwrapped.task.spell(action, state, params))
            n += 1
        assert reward == pytest.approx(2 * n / (2 * n + k), abs=1e-6)


@pytest.mark.parametrize(("task_id", "mode", "why"), [
    ("SQL-v0", "matched", "One meaning has many programs"),
    ("SQL-v0", "dense", "Only the last call changes anything"),
    ("Interpreter-v0", "matched", "One meaning has many programs"),
    ("Search-v0", "matched", "One meaning has many programs"),
    ("Routing-v0", "matched", "right by chance"),
    ("Routing-v0", "dense", "Each query pays for itself"),
    ("ServiceDesk-v0", "matchd", "Did you mean 'matched'"),
])  # fmt: skip
def test_a_mode_without_a_meaning_is_refused_with_the_reason(
    task_id: str, mode: str, why: str
) -> None:
    with pytest.raises(
        ValueError, match=rf"Unknown reward of rlsuite/{task_id}.* Known: .*success.*{why}|{why}"
    ):
        gymnasium.make(f"rlsuite/{task_id}", reward=mode)
