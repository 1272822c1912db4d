"""Test contexts of users in every family.

The shipped values give the shipped program, splits lie apart, and known truths hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from scipy import stats

from rlbench_suite.contexts.context import template
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard, load
from rlbench_suite.envs.offline.maze import Motion
from rlbench_suite.envs.offline.point_maze import State
from rlbench_suite.envs.operations.inventory import poisson
from rlbench_suite.numerics.process import precision


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "cache"))


def program(task: Task[Any, Any]) -> tuple[str, list[np.ndarray]]:
    """Return all the computations of an episode, and their constants."""

    def episode(key: jax.Array, split: jax.Array, action: jax.Array) -> Any:
        params = task.sample_params(key, split)
        state = task.initial(key, params)
        after = task.transition(state, action, key, params)
        outputs = (
            task.observation(after, key, params),
            task.reward(state, action, after, key, params),
        )
        return (
            params,
            after,
            outputs,
            task.terminal(after, key, params),
            task.cost(state, action, after, params),
        )

    action = jax.ShapeDtypeStruct(task.action_space.shape or (), task.action_space.dtype)
    with precision(task):
        traced = jax.make_jaxpr(episode)(
            jax.random.key(0), jax.ShapeDtypeStruct((), np.int32), action
        )
    return str(traced), [np.asarray(constant) for constant in traced.consts]


def test_a_context_of_the_shipped_values_is_the_shipped_program(
    card: TaskCard, tmp_path: Path
) -> None:
    task: Any = card.build()
    if not task.constants():
        return
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text(template(card.id, task.constants()))
    from_sheet: Any = find_card(card.id, context=sheet).build()
    if isinstance(task, Task):  # a simulator of the host has no program
        (text, constants), (text_from_sheet, constants_from_sheet) = (
            program(task),
            program(from_sheet),
        )
        assert text == text_from_sheet
        for shipped_value, sheet_value in zip(constants, constants_from_sheet, strict=True):
            np.testing.assert_array_equal(shipped_value, sheet_value)
    players = [
        jax.tree.leaves(load(card.reference).for_task(shipped_value))
        for shipped_value in (task, from_sheet)
    ]
    for shipped_value, sheet_value in zip(*players, strict=True):
        np.testing.assert_array_equal(shipped_value, sheet_value)
    assert task.observation_space == from_sheet.observation_space
    assert task.reward_space == from_sheet.reward_space


CONTEXTS: dict[str, dict[str, Any]] = {
    "PointMaze-v0": {"mass": [6, 8], "force": 60, "damping": 0, "goal_radius": 0.3},
    "Vicsek-v0": {"density": 2, "speed": [0.1, 0.2], "max_turn": 0.4},
    "Inventory-v0": {
        "shop_1_demand": [20, 40],
        "shop_2_demand": 10,
        "shop_3_lead": 2,
        "shop_1_penalty": 50,
    },
    "Lettuce-v0": {
        "planting_day": 100,
        "warmth": [-3, -1],
        "heat_price": [0.2, 0.3],
        "reward": {"violation": 0.1},
    },
    "Highway-v0": {
        "density": 12,
        "car_speed": [28, 38],
        "braking": 8,
        "reward": {"near_miss": 0.5},
    },
    "FlockFormation-v0": {
        "lag": [0.15, 0.25],
        "wind_x": [3, 4],
        "turn_rate": [-0.2, 0.8],
        "level_limit": 6,
    },
}
"""A context of each family, with a sign, a zero, a number and a range."""


@pytest.mark.parametrize("name", CONTEXTS)
def test_ranges_are_kept_and_train_and_test_lie_apart(name: str) -> None:
    task: Any = find_card(name, context=CONTEXTS[name]).build()
    keys = jax.random.split(jax.random.key(1), 4000)
    params_of_splits = [
        jax.vmap(task.sample_params, (0, None))(keys, np.int32(split)) for split in (0, 1)
    ]
    read = {
        "PointMaze-v0": ("mass", lambda p: p.ball.mass),
        "Vicsek-v0": ("speed", lambda p: p.speed),
        "Inventory-v0": ("shop_1_demand", lambda p: p.shops[0].demand),
        "Lettuce-v0": ("warmth", lambda p: p.site.warmth),
        "Highway-v0": ("car_speed", lambda p: p.driver.desired_speed[:, 1:][p.length[:, 1:] == 5]),
        "FlockFormation-v0": ("wind_x", lambda p: p.wind_x),
    }
    constant, values = read[name]
    low, high = CONTEXTS[name][constant]
    train, test = (np.ravel(values(params)) for params in params_of_splits)
    all_values = np.concatenate([train, test])
    assert low <= all_values.min() < low + 0.1 * (high - low)
    assert high - 0.1 * (high - low) < all_values.max() <= high
    if name == "FlockFormation-v0":  # the distance of the slots keeps its splits apart, as shipped
        train, test = (
            np.hypot(*np.diff([p.slot_ahead, p.slot_left])[..., 0]) for p in params_of_splits
        )
    nearest = np.abs(
        np.subtract.outer(np.unique(train)[:: max(1, len(train) // 4000)], np.unique(test)[:2000])
    ).min()
    assert nearest > 1e-6 * (high - low)


def test_another_ball_moves_as_its_equation_says() -> None:
    """A mass at rest under a constant force without damping has v = F t / m.

    Its position is x = F t (t + dt) / 2 m by Euler's rule.
    """
    task: Any = find_card("PointMaze-v0", context={"mass": 6, "force": 60, "damping": 0}).build(
        dtype="float64"
    )
    with precision(task):
        params = task.sample_params(jax.random.key(0), 0)
        state = State(Motion(*(np.float64(value) for value in (1.3, 1.5, 0, 0))), np.int32(0))
        step = jax.jit(task.transition)
        for _ in range(20):
            state = step(state, np.array([1.0, 0.0]), None, params)
    assert float(state.ball.vx) == pytest.approx(60 * 0.2 / 6, rel=1e-12)
    assert float(state.ball.x) == pytest.approx(1.3 + 60 / 6 * 0.2 * 0.21 / 2, rel=1e-12)


def test_a_large_demand_is_poisson() -> None:
    task: Any = find_card("Inventory-v0", context={"shop_1_demand": 40}).build()
    assert stats.poisson.sf(task.largest_demand, 40) < 1e-9
    units = np.linspace(0, 1, 1001, endpoint=False, dtype=np.float32) + np.float32(0.0005)
    demands = np.asarray(poisson(units, np.float32(40), task.largest_demand))
    np.testing.assert_array_equal(demands, stats.poisson.ppf(units, 40))
    assert (task.action_space.nvec[1:] > 2.5 * 40).all()


@pytest.mark.parametrize(
    ("name", "context", "sentence"),
    [
        ("PointMaze-v0", {"speed_limit": 40}, "moves too far between walls in a step of 0.01 s"),
        ("PointMaze-v0", {"damping": -1}, "damping must be at least 0 and finite, got -1 kg/s"),
        ("Vicsek-v0", {"density": 5}, "density must be above 0 and at most 4"),
        ("Inventory-v0", {"shop_1_demand": 100}, "at most 60"),
        ("Inventory-v0", {"shop_4_demand": 1}, "Did you mean 'shop_3_demand'?"),
        ("Lettuce-v0", {"ventilation_limit": 0.1}, "too fast for the integration"),
        ("Lettuce-v0", {"coldest": 31}, "coldest is not below warmest"),
        ("Lettuce-v0", {"reward": {"heet": 1}}, "Did you mean 'reward.heat'?"),
        ("Lettuce-v0", {"reward": 1}, "reward is a mapping of terms to weights, got '1'"),
        ("Highway-v0", {"density": 60}, "a vehicle has 16.0 m of road"),
        ("FlockFormation-v0", {"lag": 0.01}, "lag must be at least 0.03 and at most 0.5"),
    ],
)
def test_what_a_model_cannot_hold_is_refused(
    name: str, context: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        find_card(name, context=context).build()
    assert sentence in str(caught.value)


def test_weights_of_the_reward_change_the_reward_alone() -> None:
    shipped = find_card("Lettuce-v0")
    reweighted = find_card("Lettuce-v0", context={"reward": {"heat": 0, "co2": 0}})
    task = shipped.build()
    reweighted_task = reweighted.build()
    assert reweighted.id.startswith("rlsuite/Lettuce-v0?context=own-")
    assert reweighted.scores() == {}
    key = jax.random.key(0)
    action = np.array([0, 0, 1], np.float32)
    params = task.sample_params(key, np.int32(0))
    state = task.initial(key, params)
    after = task.transition(state, action, key, params)
    jax.tree.map(
        np.testing.assert_array_equal, after, reweighted_task.transition(state, action, key, params)
    )
    heat = float(params.prices.heat) * 150 * 0.5 / 1000  # half an hour at 150 W/m2
    rewards = [
        float(each.reward(state, action, after, key, params)) for each in (task, reweighted_task)
    ]
    assert rewards[1] - rewards[0] == pytest.approx(heat, rel=1e-4)


def test_the_page_names_every_constant() -> None:
    page = (Path(__file__).parents[1] / "docs" / "details" / "contexts.md").read_text()
    for name in CONTEXTS:
        task: Any = find_card(name).build()
        for constant in task.constants():
            plain = (
                constant.name.removeprefix("reward.")
                .replace("shop_2", "shop_1")
                .replace("shop_3", "shop_1")
            )
            assert f"`{plain}`" in page, f"{constant.name} of {name}"
        for series in task.series():
            assert all(f"`{column.name}`" in page for column in series.columns)


def test_the_environment_of_a_dataset_has_its_context() -> None:
    from rlbench_suite.datasets.catalogue import Entry
    from rlbench_suite.datasets.storage import env_spec

    heavy = find_card("PointMaze-v0", context={"mass": [6, 8]})
    entry = Entry(
        folder="mine",
        quality="random",
        task=heavy.id,
        player="random",
        episodes=1,
        first_seed=0,
        replay_tolerance=0.0,
    )
    env: Any = gymnasium.make(EnvSpec.from_json(env_spec(entry, "test").to_json()))
    assert env.unwrapped.task is heavy.build()
