"""WaterReservoir against recorded steps of MO-Gymnasium, plain rules, and a finer programme."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.morl.reservoir_programme import (
    DemandRelease,
    ReservoirProgramme,
    SteadyRelease,
    SteadySluice,
)
from rlbench_suite.envs.morl.water_reservoir import (
    PUBLISHED_LEVELS,
    Params,
    WaterReservoir,
    possible_release,
    release_of,
    share_of,
)

CARD = card("WaterReservoir-v0")
RECORDS = json.loads((Path(__file__).parent / "water_reservoir_records.json").read_text())[
    "records"
]
MONTHS = 96


@pytest.fixture(scope="module")
def task() -> WaterReservoir:
    return CARD.build()


def build(**settings: str) -> WaterReservoir:
    return card("WaterReservoir-v0", **settings).build()


def plain_costs(release: Any, level: Any, weights: Any) -> list[Any]:
    """Return the weighted costs of a month, in NumPy: flood, irrigation, energy, downstream."""
    energy = 9.81 * 1000 * level * release / 3.6e6
    costs = [level - 50, 50 - release, 4.36 - energy, release - 30]
    return [weight * np.maximum(cost, 0) for weight, cost in zip(weights, costs, strict=True)]


def plain_inflow(params: Any, month: int) -> Any:
    """Return the mean of the inflow of a month, in NumPy."""
    angle = 2 * np.pi * ((params.first_month + month) % 12) / 12
    return params.mean_inflow + params.amplitude * np.cos(angle)


def run(
    task: WaterReservoir, player: Any, keys: jax.Array, contexts: Params | None = None
) -> tuple[Any, Any, Any, Any]:
    """Play episodes of a player, or of random actions: context, start, actions and steps."""

    def episode(key: jax.Array, context: Params | None) -> Any:
        params = task.sample_params(key, Split.TEST) if context is None else context
        start = task.initial(key, params)
        memory = () if player is None else player.initial(params)

        def step(carry: Any, month: jax.Array) -> Any:
            state, memory = carry
            step_key = jax.random.fold_in(key, month)
            if player is None:
                action = jax.random.uniform(jax.random.fold_in(step_key, 1), (1,))
            else:
                view = View(task.observation(state, key, params), None, state, params)
                action, memory = player.act(memory, view, key)
            after = task.transition(state, action, step_key, params)
            reward = task.reward(state, action, after, step_key, params)
            return (after, memory), (action[0], after, reward)

        _, (actions, after, rewards) = jax.lax.scan(step, (start, memory), jnp.arange(MONTHS))
        return params, start, actions, (after, rewards)

    axes = (0, None) if contexts is None else (0, 0)
    return jax.device_get(jax.jit(jax.vmap(episode, axes))(keys, contexts))


# -- the rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS, ids=["four objectives", "two with a penalty"])
def test_recorded_steps_of_mo_gymnasium(record: dict[str, Any]) -> None:
    """States are float32 in the record. A penalty is subtracted, since we have none."""
    aims = record["objectives"]
    task = card("WaterReservoir-v0", aims=str(aims), inflow="published").build(dtype="float64")
    assert task.card.objectives == ("flood", "irrigation", "energy", "downstream")[:aims]
    with jax.enable_x64(True):
        params = task.sample_params(None, None)
        state = task.at_level(record["start"])
        for wish, inflow, level, rewards in zip(
            record["releases"],
            record["inflows"],
            record["levels"],
            record["rewards"],
            strict=True,
        ):
            before = state.reservoir.level
            release = possible_release(wish, before)
            action = jnp.stack([share_of(release, before)])
            state = task.flow(state, release_of(action[0], before), inflow, params)
            assert float(state.reservoir.level) == pytest.approx(level, rel=1e-5)
            penalty = abs(float(release) - wish) if record["penalize"] else 0.0
            reward = task.reward(task.at_level(before), action, state, None, params)
            assert np.asarray(reward) - penalty == pytest.approx(rewards, rel=1e-5, abs=1e-4)


def test_random_episodes_are_those_of_plain_rules(task: WaterReservoir) -> None:
    """A thousand episodes, with the inflow that the task samples."""
    keys = jax.random.split(jax.random.key(0), 1_000)
    params, start, actions, (after, rewards) = run(task, None, keys)
    params = Params(*(np.asarray(field, np.float64) for field in params))
    weights = (params.flood_weight, 1.0, params.energy_weight, params.downstream_weight)
    rules = {
        "reservoir": lambda level, month: (
            np.maximum(level - 100, 0)
            + actions[:, month] * (level - np.maximum(level - 100, 0)).astype(np.float64)
        ),
        "emptied": lambda level, month: level,
        "demanded": lambda level, month: np.clip(50.0, np.maximum(level - 100, 0), level),
    }
    levels = {rule: np.asarray(start.reservoir.level, np.float64) for rule in rules}
    totals = {rule: np.zeros(1_000) for rule in rules}
    deviations = []
    for month in range(MONTHS):
        inflow = after.inflow[:, month].astype(np.float64)
        deviations.append((inflow - plain_inflow(params, month)) / 10)
        for rule, choose in rules.items():
            release = choose(levels[rule], month)
            levels[rule] = np.maximum(levels[rule] + inflow - release, 0)
            costs = plain_costs(release, levels[rule], weights)
            totals[rule] += sum(costs)
            reservoir = getattr(after, rule)
            np.testing.assert_allclose(
                reservoir.level[:, month], levels[rule], rtol=1e-5, atol=1e-3
            )
            np.testing.assert_allclose(reservoir.cost[:, month], totals[rule], rtol=1e-5, atol=1e-2)
            if rule == "reservoir":
                np.testing.assert_allclose(-rewards[:, month].T, costs, rtol=1e-5, atol=2e-3)
    # Standard errors of 96,000 normal numbers are 0.0032 and 0.0023.
    assert np.mean(deviations) == pytest.approx(0, abs=0.013)
    assert np.std(deviations) == pytest.approx(1, abs=0.009)
    assert np.max(np.abs(deviations)) > 4


def test_success_needs_less_cost_than_both_rules_of_thumb(task: WaterReservoir) -> None:
    params = jax.jit(task.sample_params)(jax.random.key(0), jnp.int32(0))
    start = task.at_level(50.0)
    assert not task.info(start, params)["success"]

    def end(cost: float, emptied: float, demanded: float) -> dict[str, jax.Array]:
        state = start._replace(
            reservoir=start.reservoir._replace(cost=jnp.float32(cost)),
            emptied=start.emptied._replace(cost=jnp.float32(emptied)),
            demanded=start.demanded._replace(cost=jnp.float32(demanded)),
            months=jnp.int32(MONTHS),
        )
        return task.info(state, params)

    assert end(97, 100, 120)["success"]
    assert end(97, 120, 100)["success"]
    assert not end(99, 100, 120)["success"]
    assert not end(99, 120, 100)["success"]
    assert float(end(97, 120, 100)["rule_cost"]) == 100


@pytest.mark.parametrize("level", [0.0, 30.0, 100.0, 160.0])
def test_an_action_is_a_share_of_what_can_be_released(level: float) -> None:
    smallest = max(0.0, level - 100)
    assert float(release_of(0.0, level)) == smallest
    assert float(release_of(1.0, level)) == pytest.approx(level)
    for release in (smallest, smallest + 0.25 * (level - smallest), level):
        assert float(release_of(share_of(release, level), level)) == pytest.approx(release)
    assert 0 <= float(share_of(1000.0, level)) <= 1


@pytest.mark.parametrize("split", Split)
def test_mean_inflow_lies_in_the_bands_of_its_split(task: WaterReservoir, split: Split) -> None:
    keys = jax.random.split(jax.random.key(1), 2_000)
    params = jax.device_get(
        jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(split))
    )
    assert (np.floor((params.mean_inflow.astype(float) - 40) / 0.75) % 2 == split).all()
    assert np.unique(params.first_month).tolist() == list(range(12))
    for field, low, high in (
        (params.amplitude, 20, 35),
        (np.log(params.flood_weight), np.log(0.05), np.log(0.4)),
        (np.log(params.energy_weight), 0, np.log(10)),
        (params.downstream_weight, 0.1, 1),
    ):
        assert low - 1e-6 <= field.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < field.max() <= high + 1e-6
        # The standard error of the mean of 2,000 uniform numbers is 0.0065 of the range.
        assert field.mean() == pytest.approx((low + high) / 2, abs=0.03 * (high - low))


def test_published_starts_are_ten_levels() -> None:
    task = build(inflow="published")
    keys = jax.random.split(jax.random.key(0), 1_000)
    states = jax.jit(jax.vmap(task.initial, (0, None)))(keys, None)
    levels, counts = np.unique(np.asarray(states.reservoir.level), return_counts=True)
    np.testing.assert_allclose(levels, sorted(PUBLISHED_LEVELS), rtol=1e-6)
    assert counts.min() > 60
    assert task.card.horizon == 100


# -- players ---------------------------------------------------------------------------------------


def least_costs(params: Params, aims: int) -> np.ndarray:
    """Return the least expected cost from levels 0, 1, ..., 220 m, with 24 cases of inflow."""
    weights = np.array([params.flood_weight, 1, params.energy_weight, params.downstream_weight])
    weights[aims:] = 0
    deviations = np.array([10 * NormalDist().inv_cdf((case + 0.5) / 24) for case in range(24)])
    levels, stored = np.arange(221.0), np.arange(101.0)
    release = levels[:, None] - stored
    values = np.zeros(len(levels))
    for month in reversed(range(MONTHS)):
        inflow = plain_inflow(params, month) + deviations
        next_levels = np.maximum(stored[:, None] + inflow, 0)
        future = np.interp(next_levels, levels, values).mean(1)
        costs = np.zeros_like(release)
        for case in range(len(inflow)):
            costs += sum(plain_costs(release, next_levels[:, case], weights))
        total = np.where(release >= 0, costs / len(inflow) + future, np.inf)
        values = total.min(1)
    return values


@pytest.mark.parametrize("aims", ["4", "2"])
def test_reference_has_the_least_expected_cost(aims: str) -> None:
    """Mean costs of 600 episodes in each of two contexts, with an error below 0.5 %."""
    task = build(aims=aims)
    episodes = 600
    for seed in range(2):
        params = jax.jit(task.sample_params)(jax.random.key(seed), jnp.int32(1))
        contexts = Params(*(jnp.broadcast_to(field, (episodes,)) for field in params))
        keys = jax.random.split(jax.random.key(seed), episodes)
        _, start, _, (_, rewards) = run(task, ReservoirProgramme(task), keys, contexts)
        by_level = least_costs(Params(*(float(field) for field in params)), int(aims))
        expected = np.interp(start.reservoir.level, np.arange(len(by_level)), by_level)
        excess = -rewards.sum((1, 2), dtype=np.float64) - expected
        error = float(excess.std()) / episodes**0.5
        assert error < 0.005 * expected.mean()
        assert excess.mean() == pytest.approx(0, abs=0.002 * expected.mean() + 3 * error)


def test_players_rank_as_they_should(task: WaterReservoir) -> None:
    """Random play and doing nothing are far worse than the best constant."""
    players = {
        "noop": Constant(task.noop_action()),
        "constant": SteadySluice.for_task(task),
        "demand": DemandRelease.for_task(task),
        "heuristic": SteadyRelease.for_task(task),
        "reference": ReservoirProgramme.for_task(task),
    }
    records = {name: play(task, player, range(200)) for name, player in players.items()}
    totals = [record.total.sum(1).mean() for record in records.values()]
    assert totals == sorted(totals)
    assert records["reference"].info["success"].mean() > 0.9
    assert not records["constant"].info["success"].any()
    with pytest.raises(ValueError, match="aims"):
        card("WaterReservoir-v0", aims="5")


@pytest.mark.parametrize("aims", CARD.choices["aims"])
def test_the_constant_is_the_best_in_steps_of_a_tenth(aims: str) -> None:
    task = build(aims=aims)
    shares = [step / 10 for step in range(4, 11)]
    returns = [
        play(task, Constant(np.array([share], np.float32)), range(300), split="train").total.sum()
        for share in shares
    ]
    best_share = SteadySluice.for_task(task).share[0]
    assert shares[int(np.argmax(returns))] == pytest.approx(float(best_share))


# -- text and pixels -------------------------------------------------------------------------------


def test_words_and_picture(task: WaterReservoir) -> None:
    params = Params(
        *(np.float32(field) for field in (45.0, 30.0)),
        np.int32(0),
        *(np.float32(weight) for weight in (0.1, 5.0, 0.5)),
    )
    state = jax.device_get(task.at_level(112.5))
    words = task.describe(state, params)
    assert "The level is 112.500 m. You can release 12.500 to 112.500 m^3." in words
    assert "coming 12 months: 75.0, 71.0, 60.0, 45.0, 30.0, 19.0, 15.0," in words
    assert "flood 0.1000, irrigation 1.0000, energy 5.0000, downstream 0.5000." in words
    assert "energy" not in build(aims="2").describe(state, params)
    assert "energy" not in build(aims="2").rules()
    assert "All weights are 1." in build(inflow="published").describe(state, params)
    lower = jax.device_get(task.at_level(40.0))
    assert task.draw(state, params).tobytes() != task.draw(lower, params).tobytes()
    observation = np.asarray(task.observation(state, None, params))
    assert observation == pytest.approx([1.125, 0.75, 0, 1, 0.45, 0.3, 1, 0.1, 0.5, 0.5])
    assert build(aims="2").observation(state, None, params).shape == (8,)
