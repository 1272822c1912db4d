"""The endless T-maze against exact enumeration.

Tests cover its optimum, its ceiling without memory, and that nothing leaks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core.registry import agent, card
from rlbench_suite.envs.memory.t_maze import (
    ACTIONS,
    FORWARD,
    LEFT,
    RIGHT,
    SIGN,
    Habit,
    Params,
    RememberTheSign,
    State,
    TMaze,
    expected_turns,
)

CARD = card("TMaze-v0")
TIERS = tuple(CARD.difficulties)
KEY = np.zeros(2, np.uint32)


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> TMaze:
    return CARD.build(difficulty=request.param)


# -- the maze in exact arithmetic, written from its rules ------------------------------------------


def renewals(lengths: tuple[int, ...], steps: int) -> Fraction:
    """Return the expected number of corridors finished in ``steps``, by the renewal equation.

    It is the first corridor, and those in the time that is left after it.
    """
    value = [Fraction(0)]
    for t in range(1, steps + 1):
        value.append(
            sum((1 + value[t - n - 1] for n in lengths if n + 1 <= t), Fraction(0)) / len(lengths)
        )
    return value[steps]


def observe_at(position: int, length: int, sign: int) -> tuple[int, Fraction]:
    return sign if position == 0 else 0, Fraction(position, length)


def sights(lengths: tuple[int, ...], rewriting: bool) -> list[tuple[int, Fraction]]:
    """List every observation there is."""
    starts = [(LEFT, Fraction(0)), (RIGHT, Fraction(0))] + ([] if rewriting else [(0, Fraction(0))])
    return starts + sorted({(0, Fraction(p, n)) for n in lengths for p in range(1, n + 1)})


def memoryless_return(
    policy: dict[tuple[int, Fraction], np.ndarray],
    lengths: tuple[int, ...],
    rewriting: bool,
    steps: int,
    punishment: float = 0.0,
) -> float:
    """Return the exact expected return of a policy.

    The policy maps an observation to probabilities of the three actions.

    ``value[first, side, length, position]`` is the return of the steps left, worked out backwards
    in time.
    """
    places = [
        (first, side, n, p)
        for first in (True, False)
        for side in (LEFT, RIGHT)
        for n in lengths
        for p in range(n + 1)
    ]
    value = dict.fromkeys(places, 0.0)
    for _ in range(steps):
        after_turn = {
            side: sum(
                value[False, w, n, 0]
                for w in ((LEFT, RIGHT) if rewriting else (side, side))
                for n in lengths
            )
            / (2 * len(lengths))
            for side in (LEFT, RIGHT)
        }
        new = {}
        for first, side, n, p in places:
            chances = policy[observe_at(p, n, side if rewriting or first else 0)]
            if p == n:
                new[first, side, n, p] = (
                    chances[FORWARD] * value[first, side, n, p]
                    + chances[side] * (1 + after_turn[side])
                    + chances[LEFT + RIGHT - side] * (punishment + after_turn[side])
                )
            else:
                ahead, here = value[first, side, n, p + 1], value[first, side, n, p]
                new[first, side, n, p] = chances[FORWARD] * ahead + (1 - chances[FORWARD]) * here
        value = new
    return sum(value[True, side, n, 0] for side in (LEFT, RIGHT) for n in lengths) / (
        2 * len(lengths)
    )


def deterministic_policies(
    lengths: tuple[int, ...], rewriting: bool
) -> Iterator[dict[tuple[int, Fraction], np.ndarray]]:
    """Yield every map from observations to actions."""
    places = sights(lengths, rewriting)
    for actions in itertools.product(np.eye(3), repeat=len(places)):
        yield dict(zip(places, actions, strict=True))


# -- optimum and ceiling ---------------------------------------------------------------------------


@pytest.mark.parametrize("longest", [1, 2, 3, 10, 30])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 50, 200])
def test_the_closed_form_solves_the_renewal_equation(longest: int, steps: int) -> None:
    assert expected_turns(longest, steps) == renewals(tuple(range(1, longest + 1)), steps)
    assert expected_turns(longest, steps, fixed=True) == renewals((longest,), steps)


def test_the_closed_form_counts_rows_of_lengths() -> None:
    """Every row of five lengths of 1..3 is walked for ten steps.

    No sixth corridor can end in that time.
    """
    finished = []
    for row in itertools.product((1, 2, 3), repeat=5):
        ends_of_corridors = itertools.accumulate(length + 1 for length in row)
        finished.append(sum(end <= 10 for end in ends_of_corridors))
    assert expected_turns(3, 10) == Fraction(sum(finished), len(finished))


def test_the_card_knows_the_optimum_of_its_first_tier(tier: TMaze) -> None:
    assert CARD.optimum == CARD.build().optimum == float(expected_turns(10, CARD.horizon))
    assert tier.optimum == 2 * tier.memoryless_ceiling


def test_the_reference_reaches_the_optimum(tier: TMaze) -> None:
    record = play(tier, RememberTheSign.for_task(tier), range(400))
    assert record.info["success"].all()
    assert not record.terminated.any()
    np.testing.assert_array_equal(record.total, record.info["right_turns"])
    error = record.total.std() / 20
    assert abs(record.total.mean() - tier.optimum) <= 4 * error  # equal, where the length is fixed
    assert (error == 0) == tier.fixed


@pytest.mark.parametrize("rewriting", [True, False], ids=["rewriting", "retention"])
@pytest.mark.parametrize(("lengths", "steps"), [((2,), 9), ((1, 2), 7), ((3,), 12)], ids=str)
def test_no_memoryless_policy_beats_the_ceiling(
    lengths: tuple[int, ...], steps: int, rewriting: bool
) -> None:
    """All deterministic ones, and many that draw their actions, exactly."""
    ceiling = float(renewals(lengths, steps)) / 2
    returns = [
        memoryless_return(policy, lengths, rewriting, steps)
        for policy in deterministic_policies(lengths, rewriting)
    ]
    assert len(returns) == 3 ** len(sights(lengths, rewriting)) >= 81
    assert max(returns) == pytest.approx(ceiling, abs=1e-12)
    rng = np.random.default_rng(0)
    places = sights(lengths, rewriting)
    for concentration in (0.1, 1.0):
        for _ in range(150):
            policy = dict(
                zip(places, rng.dirichlet(np.full(3, concentration), len(places)), strict=True)
            )
            assert memoryless_return(policy, lengths, rewriting, steps) <= ceiling + 1e-12


@pytest.mark.parametrize("rewriting", [True, False], ids=["rewriting", "retention"])
def test_punished_turns_would_pay_for_standing_still(rewriting: bool) -> None:
    """A wrong turn is worth 0, because at -1 it would pay to wait before a contrary sign.

    At -1 the best habit earns 0, and waiting earns more.
    """
    returns = {
        tuple(int(chances.argmax()) for chances in policy.values()): memoryless_return(
            policy, (2,), rewriting, 9, -1.0
        )
        for policy in deterministic_policies((2,), rewriting)
    }
    walking = [
        value
        for actions, value in returns.items()
        if actions[:-1] == (FORWARD,) * (len(actions) - 1)
    ]
    assert max(walking) == pytest.approx(0)
    assert max(returns.values()) > 0.5


@pytest.mark.parametrize("name", ["rewriting-medium", "retention-short"])
def test_a_habit_reaches_the_ceiling(name: str) -> None:
    task = CARD.build(difficulty=name)
    record = play(task, Habit.for_task(task), range(2000))
    assert record.total.mean() == pytest.approx(
        task.memoryless_ceiling, abs=float(4 * record.total.std() / 2000**0.5)
    )
    assert not record.info["success"].any() or name.startswith("retention")


def test_ppo_without_memory_stays_at_the_ceiling() -> None:
    """It learns to walk, three times the turns of the random player, and there it stops."""
    task = CARD.build(difficulty="rewriting-short")
    *_, policy = PPO(total_steps=60_000, recurrent="none").train(task, seed=0, budget="smoke")
    *_, chance = agent("random").train(task, seed=0, budget="smoke")
    total = play(task, policy, range(500)).total
    assert total.mean() > 1.5 * play(task, chance, range(500)).total.mean()
    assert total.mean() == pytest.approx(task.memoryless_ceiling, rel=0.05)


def test_recurrent_ppo_remembers_the_sign() -> None:
    """The card says partially observed, so PPO gets a memory.

    It comes near the optimum, which is twice the ceiling.
    """
    task = CARD.build(difficulty="rewriting-short")
    *_, policy = PPO(total_steps=60_000).train(task, seed=0, budget="smoke")
    assert play(task, policy, range(500)).total.mean() > 0.95 * task.optimum


# -- the task keeps its rules ----------------------------------------------------------------------


def test_the_walk_is_that_of_the_rules(tier: TMaze) -> None:
    """Compare the environment with a plain account of where the walker is.

    Actions are random and purposeful.
    """
    env = gymnasium.make("rlsuite/TMaze-v0", difficulty=tier.difficulty)
    rng = np.random.default_rng(0)
    lengths, ways, straight = [], [], 0
    for seed in range(6):
        observation, _ = env.reset(seed=seed)
        position, turns, right, wasted = 0, 0, 0, 0
        truncated = False
        first_way = int(env.unwrapped.episode.state.sign)
        while not truncated:
            state = env.unwrapped.episode.state
            length, side = int(state.length), int(state.sign)
            assert tier.rewriting or side == first_way
            sign = side if position == 0 and (tier.rewriting or turns == 0) else 0
            np.testing.assert_allclose(
                observation, [sign == LEFT, sign == RIGHT, position / length], rtol=1e-6
            )
            if position == 0:
                lengths.append(length)
                ways.append(side)
            action = FORWARD if position < length else LEFT
            if rng.random() < 0.2:
                action = int(rng.integers(3))
            observation, reward, terminated, truncated, info = env.step(action)
            straight += position < length and action == FORWARD
            if position < length:
                position += action == FORWARD
                wasted += action != FORWARD
                expected = 0
            elif action == FORWARD:
                wasted, expected = wasted + 1, 0
            else:
                position, turns, expected = 0, turns + 1, int(action == side)
            right += expected
            assert (reward, terminated) == (expected, False)
            assert [info["right_turns"], info["wrong_turns"], info["wasted"]] == [
                right,
                turns - right,
                wasted,
            ]
        assert info["success"] is (wasted == 0 and right == turns > 0)
    assert straight
    assert set(lengths) <= ({tier.longest} if tier.fixed else set(range(1, tier.longest + 1)))


@pytest.mark.parametrize("name", ["rewriting-short", "rewriting-medium", "retention-long"])
def test_lengths_and_ways_are_uniform_and_independent(name: str) -> None:
    task = CARD.build(difficulty=name)
    keys = jax.random.split(jax.random.key(1), 60_000)
    states = jax.jit(jax.vmap(lambda key: task.initial(key, Params())))(keys)
    counts = np.zeros((2, task.longest))
    np.add.at(counts, (np.asarray(states.sign) - LEFT, np.asarray(states.length) - 1), 1)
    expected = len(keys) / counts.size
    chi2, freedom = ((counts - expected) ** 2 / expected).sum(), counts.size - 1
    assert abs(chi2 - freedom) < 5 * (2 * freedom) ** 0.5  # five standard deviations of chi-squared


def test_nothing_but_the_sign_tells_the_way(tier: TMaze) -> None:
    """Two mazes that differ only in the way look alike wherever no sign is in sight.

    They are compared in numbers, words and picture.

    With both ways equally likely, the information about the way that is left there is exactly zero.
    """
    observe = jax.jit(lambda state: tier.observation(state, KEY, Params()))
    length = tier.longest
    num_signs = 0
    for turns, position in itertools.product(
        (0, 3), sorted({0, 1, length // 2, length - 1, length})
    ):
        left, right = (
            State(*map(np.int32, (position, length, side, turns, 1, 0))) if turns else
            State(*map(np.int32, (position, length, side, 0, 0, 0)))
            for side in (LEFT, RIGHT)
        )  # fmt: skip
        alike = (
            bool((observe(left) == observe(right)).all()),
            tier.describe(left, Params()) == tier.describe(right, Params()),
            bool((tier.draw(left, Params()) == tier.draw(right, Params())).all()),
        )
        in_sight = position == 0 and (tier.rewriting or turns == 0)
        assert alike == (not in_sight,) * 3
        num_signs += in_sight
    assert num_signs == (2 if tier.rewriting else 1)


def test_earlier_signs_and_turns_leave_no_trace() -> None:
    """The observation of a later corridor holds nothing of earlier ones."""
    task = CARD.build()
    base = State(*map(np.int32, (0, 4, LEFT, 0, 0, 0)))
    observe = jax.jit(lambda state: task.observation(state, KEY, Params()))
    for right, wrong, wasted in itertools.product((0, 5), repeat=3):
        state = base._replace(
            right_turns=np.int32(right), wrong_turns=np.int32(wrong), wasted=np.int32(wasted)
        )
        assert (observe(state) == observe(base)).all()
        assert task.describe(state, Params()) == task.describe(base, Params())


# -- its face --------------------------------------------------------------------------------------


def test_a_number_is_a_difficulty_and_a_wrong_one_is_refused() -> None:
    task = CARD.build(difficulty=-7.5)
    assert (task.rewriting, task.longest, task.fixed) == (False, 7, True)
    assert task.optimum == 200 // 8
    for wrong in (0, 0.5, -0.5, 3.25, 2000):
        with pytest.raises(ValueError, match="longest corridor"):
            CARD.build(difficulty=wrong)


def test_the_same_walk_in_words() -> None:
    env = gymnasium.make("rlsuite/TMaze-v0", view="text", difficulty="retention-fixed")
    text, _ = env.reset(seed=2)
    side = ACTIONS[int(env.unwrapped.episode.state.sign)]
    assert f"A sign says: {side} at the next junction and at every other." in text
    assert "one of: forward, left, right" in text
    for _ in range(10):
        text, *_ = env.step("forward")
    assert text.startswith("You stand at a junction")
    text, reward, *_ = env.step(f" {side.upper()}\n")
    assert reward == 1
    assert "There is no sign here." in text
    text, reward, *_ = env.step("lefft")
    assert reward == 0
    assert "Did you mean 'left'" in text


def test_the_pictures_arrow_points_to_the_walkers_side() -> None:
    task = CARD.build()
    rows = []
    for side in (LEFT, RIGHT):
        picture = task.draw(State(*map(np.int32, (0, 4, side, 0, 0, 0))), Params())
        rows.append(np.flatnonzero((picture == SIGN).all(-1).any(1)))
    middle = task.picture_shape[0] // 2
    # The walk goes to the right of the picture: left is up.
    assert rows[0].max() < middle < rows[1].min()
