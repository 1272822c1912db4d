"""Test that a constraint counts.

Its limit stands on the card, ``info`` and scores show when it is broken, and no crash succeeds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from toy_tasks import Toy

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.adapters.text import TextEnv
from rlbench_suite.checking.trial import random_action
from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.contract import ContractError
from rlbench_suite.core.registry import all_cards, cards, constraint
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.scale import ZERO_PLAYERS
from rlbench_suite.core.task_card import TaskCard

LIMIT = Constraint(counts="steps", limit=2.0, reason="to be broken")


class Dear(Toy):
    def cost(self, state, action, next_state, params):
        return self.dtype.type(0.5) * action.astype(self.dtype)


class Always(NamedTuple):
    def initial(self, params):
        return ()

    def act(self, memory, view, key):
        return jnp.int32(1), memory


class Falls(Dear):
    """It falls at the third step and calls that a success, as it calls every step."""

    ends_in_failure = True

    def transition(self, state, action, key, params):
        return state._replace(place=state.place + 1)

    def terminal(self, state, key, params):
        return state.place >= 3


def test_the_mean_cost_over_seeds_is_held_against_the_limit() -> None:
    dear = 2.4
    idle = 0.0
    assert not LIMIT.broken_by_seeds(1.0, 2.0, 3.0)
    # The mean is 1.92, the median 2.4.
    assert not LIMIT.broken_by_seeds(dear, dear, dear, dear, idle)
    assert LIMIT.broken_by_seeds(dear, dear, 1.3)
    assert LIMIT.broken_by_seeds(10.0, idle, idle)  # one seed can break it for all
    assert LIMIT.broken_by(float("nan"))
    assert LIMIT.broken_by_seeds(float("nan"), idle, idle)
    np.testing.assert_array_equal(
        LIMIT.broken_by(np.array([1.0, 2.0, 2.1, np.nan])), [False, False, True, True]
    )
    np.testing.assert_array_equal(
        LIMIT.broken_by(jnp.array([2.0, 2.1, jnp.nan])), [False, True, True]
    )


# -- the card --------------------------------------------------------------------------------------


def test_every_cost_has_a_limit_with_words_and_only_a_cost_has_one() -> None:
    for card in all_cards().values():
        if card.installed:
            assert card.build().has_cost == (card.constraint is not None), card.id
        if limit := card.constraint:
            assert limit.limit >= 0, card.id
            assert limit.counts.strip(), card.id
            assert limit.reason.strip(), card.id


def test_the_reference_keeps_the_constraint_wherever_it_was_measured() -> None:
    for card in cards().values():
        for tier in card.difficulties or (None,):
            cost = card.scores(tier).get("reference") and card.scores(tier)["reference"].cost
            assert cost is None or not card.violates(cost), (card.id, tier)


def test_a_task_that_a_player_without_skill_solves_says_why() -> None:
    """Read what ``rlsuite dev calibrate`` measured at every difficulty.

    It has measured random play and doing nothing.
    """
    for card in cards().values():
        measured = [
            card.scores(tier).get(player)
            for tier in card.difficulties or (None,)
            for player in ZERO_PLAYERS
        ]
        rates = [score.success for score in measured if score]
        assert None not in rates, card.id
        by_chance = any(rate > 0.05 for rate in rates if rate is not None)
        assert bool(card.chance) == by_chance == bool(card.successes_by_chance()), card.id


def test_chance_is_told_with_its_player_difficulty_and_rate() -> None:
    roads = find_card("OwnRoads-v0")
    idle = roads.scores()["noop"]
    assert idle.success is not None
    assert roads.chance_in_words() == f"doing nothing {100 * idle.success:.0f} %: {roads.chance}"
    squares = find_card("MagicSquare-v0")
    rate = squares.scores("easy")["random"].success
    assert rate is not None
    assert squares.chance_in_words() == f"random play {100 * rate:.0f} % (easy): {squares.chance}"
    assert find_card("Wordle-v0").chance_in_words() == ""
    assert (
        roads.zero_in_words()
        == f"doing nothing, return {idle.mean:.4g}, success {idle.success:.3g}"
    )
    recommend = find_card("Recommend-v0")
    failures = {
        tier: 1 - recommend.scores(tier)["reference"].success for tier in recommend.difficulties
    }
    often = ", ".join(
        f"{100 * rate:.0f} % ({tier})" for tier, rate in failures.items() if rate > 0.2
    )
    assert often
    assert recommend.failures_in_words() == f"{often}: {recommend.hard_for_reference}"
    assert find_card("Wordle-v0").failures_in_words() == ""
    assert find_card("Jigsaw-v0").zeros()["easy"].player == "random"
    assert find_card("Jigsaw-v0").zeros()["hard"].player == "noop"


def test_scores_of_text_tools_and_memory_have_the_success_of_every_player() -> None:
    for card in cards().values():
        for tier in (
            (card.difficulties or (None,)) if card.family in ("text", "tools", "memory") else ()
        ):
            assert all(score.success is not None for score in card.scores(tier).values()), (
                card.id,
                tier,
            )


def test_a_cost_without_a_limit_and_a_limit_without_a_cost_are_refused() -> None:
    with pytest.raises(ContractError, match="Dear has a cost, and its card no constraint"):
        TaskEnv(Dear())
    with pytest.raises(
        ContractError, match=r"The card of rlsuite/Toy-v0 has a constraint, and Toy no cost"
    ):
        TaskEnv(Toy(constraint=LIMIT))


def test_a_constraint_holds_for_an_id_with_any_settings() -> None:
    limit = constraint("rlsuite/PMSMSpeed-v0")
    assert (
        limit
        == find_card("PMSMSpeed-v0?noise=0.01").constraint
        == constraint("rlsuite/PMSMSpeed-v0?context=a-b")
    )
    assert constraint("rlsuite/Unknown-v7") is None
    assert not limit.broken_by(limit.limit)
    assert limit.broken_by(np.nextafter(limit.limit, np.inf))


def test_a_broken_constraint_leaves_the_random_floor_and_no_gain() -> None:
    card = find_card("PMSMSpeed-v0")
    limit = card.constraint.limit
    assert [card.constrained_score(score, limit) for score in (1.2, -0.3)] == [1.2, -0.3]
    assert [card.constrained_score(score, 2 * limit) for score in (1.2, -0.3)] == [0.0, -0.3]
    assert find_card("SAT-v0").constrained_score(1.2, 1e9) == 1.2


# -- the episode -----------------------------------------------------------------------------------


def test_info_sums_the_cost_and_says_when_it_exceeds_the_limit() -> None:
    env = TaskEnv(Dear(constraint=LIMIT))
    _, info = env.reset(seed=0)
    assert (info["cost"], info["cost_so_far"], info["violates"]) == (0.0, 0.0, False)
    infos = [env.step(action)[4] for action in (1, 0, 1, 1, 1, 1)]
    assert [info["cost_so_far"] for info in infos] == [0.5, 0.5, 1.0, 1.5, 2.0, 2.5]
    assert [info["violates"] for info in infos] == [False] * 5 + [True]
    saved = env.episode
    assert env.step(1)[4]["cost_so_far"] == 3.0
    env.episode = saved
    assert env.step(0)[4]["cost_so_far"] == 2.5
    _, info = env.reset()
    assert info["cost_so_far"] == 0.0
    assert not {"cost", "cost_so_far", "violates"} & TaskEnv(Toy()).reset(seed=0)[1].keys()


@pytest.mark.parametrize(
    ("reply", "sentence"), [("1", "It violates the constraint: its cost is 4."), ("0", "")]
)
def test_the_last_text_says_that_an_episode_cost_too_much(reply: str, sentence: str) -> None:
    horizon = Dear(constraint=LIMIT).card.horizon
    env = TimeLimit(TextEnv(Dear(constraint=LIMIT)), horizon)
    env.reset(seed=0)
    *_, last = [env.step(reply)[0] for _ in range(horizon)]
    assert last.endswith(f"The episode is over: the time limit is reached. {sentence}".strip())


def test_a_record_has_the_costs_that_the_single_env_sums() -> None:
    task = Dear(constraint=LIMIT)
    record = play(task, Always(), range(3))
    env = TaskEnv(task)
    for i in range(3):
        env.reset(seed=i)
        infos = [env.step(int(action))[4] for action in record.actions[i, : record.length[i]]]
        assert record.cost[i] == infos[-1]["cost_so_far"] == 0.5 * task.card.horizon
    assert record.info["violates"].all()
    np.testing.assert_array_equal(play(Toy(), Always(), range(3)).cost, np.zeros(3))


# -- success ---------------------------------------------------------------------------------------


def test_an_end_that_is_a_failure_is_no_success() -> None:
    env = TaskEnv(Falls(constraint=LIMIT))
    env.reset(seed=0)
    steps = [env.step(1) for _ in range(3)]
    assert [(terminated, info["success"]) for _, _, terminated, _, info in steps] == [
        (False, True), (False, True), (True, False),
    ]  # fmt: skip


CONTROL = ("motor", "quadcopter", "driving", "greenhouse", "marl", "locomotion")
GOOD_END = re.compile(
    "landed|harvest|the ego has left by its exit|the ego has reached its goal|the day is over|"
    "time is up|all items are gathered"
)


@pytest.mark.parametrize("name", [card.name for card in cards().values() if card.family in CONTROL])
def test_no_episode_that_ends_in_a_trip_or_crash_succeeds(name: str) -> None:
    """Play constant and random extremes, which trip and crash soon."""
    card: TaskCard = find_card(name)
    if not card.installed:
        pytest.skip(f"needs {card.requires}")
    env = gymnasium.make(card.id)
    rng = np.random.default_rng(0)
    ends = 0
    for episode in range(12):
        _, info = env.reset(seed=episode)
        action = random_action(rng, env.action_space, info.get("action_mask"))
        for _ in range(100):
            _, _, terminated, truncated, info = env.step(action)
            if terminated:
                ends += 1
                assert not info["success"] or GOOD_END.match(info["end_reason"]), info["end_reason"]
            if terminated or truncated:
                break
            if episode % 2 or "action_mask" in info:
                action = random_action(rng, env.action_space, info.get("action_mask"))
