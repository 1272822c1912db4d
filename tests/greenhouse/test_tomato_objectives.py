"""Tomatoes with three objectives.

Heat and carbon dioxide are computed by hand, and the profit is the tomato task's to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_tomato import CONTEXT, state

from rlbench_suite.core.episode import weighted_sum
from rlbench_suite.core.registry import card
from rlbench_suite.envs.greenhouse.tasks.tomato import SEASON
from rlbench_suite.envs.greenhouse.tasks.tomato_objectives import TomatoObjectives
from rlbench_suite.evaluation.statistics.pareto import hypervolume

CARD = card("TomatoObjectives-v0")


@pytest.fixture(scope="module")
def task() -> Any:
    return CARD.build()


def test_objectives_by_hand(task: Any) -> None:
    first_state = state(20, 800, 70)
    next_state = state(20, 800, 70, 6.03e4, applied=(0.4, 1.0, 0.5), harvest=300.0)
    profit, heat, co2 = map(float, task.reward(first_state, None, next_state, None, CONTEXT))
    # 600 mg of dry weight are 10 g fresh, at 1 EUR/kg. 60 W/m2 for half an hour are 0.03 kWh at
    # 0.05 EUR/kWh, and 2.5 mg/(m2 s) 4.5 g at 0.2 EUR/kg.
    assert profit == pytest.approx(0.01 - 0.03 * 0.05 - 0.0045 * 0.2, rel=1e-3)
    assert heat == pytest.approx(-0.03, rel=1e-6)
    assert co2 == pytest.approx(-0.0045, rel=1e-6)


def test_weighted_sum_is_the_reward_of_the_tomato_task(task: Any) -> None:
    plain, random = card("Tomato-v0").build(), np.random.default_rng(0)
    for _ in range(8):
        setting, fruit = random.uniform(0, 1, 3), random.uniform(5.8e4, 6.2e4)
        step = (
            state(20, 800, 70),
            None,
            state(*random.uniform((-5, 300, 40), (50, 2000, 99)), fruit, applied=setting),
        )
        vector = task.reward(*step, None, CONTEXT)
        assert weighted_sum(vector, CARD.weights, task.dtype) == plain.reward(*step, None, CONTEXT)
        assert task.reward_space.contains(np.array(vector))


def test_nothing_else_differs(task: Any) -> None:
    """The same actions give the same seasons, and the hypervolume counts every one of them."""
    assert {*vars(TomatoObjectives)} >= {"__init__", "reward"}
    assert not {*vars(TomatoObjectives)} & {
        "transition",
        "initial",
        "observation",
        "sample_params",
        "terminal",
        "cost",
    }
    # All actuators on for 3,840 hours, and no fruit.
    dearest = np.array([0.08 * 576 + 0.25 * 69.12, 576, 69.12])
    np.testing.assert_allclose(task.reward_space.low[1:] * SEASON, -dearest[1:], rtol=1e-5)
    assert hypervolume(-dearest[None], np.array(CARD.hypervolume_reference)) > 0
