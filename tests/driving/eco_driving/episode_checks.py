"""Checks of whole episodes of eco-driving against plain simulations, second by second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.core.episode import ContextSource, advance, begin

HORIZON = 240  # Steps of an episode


def episode_programs(task: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return compiled programs that begin an episode and that make a step of it."""

    def start(seed: Any, split: Any) -> Any:
        return begin(task, seed, 0, ContextSource(split, np.int32(-1)))

    def go_on(episode: Any, action: Any) -> Any:
        return advance(task, episode, action, np.int32(HORIZON))

    return jax.jit(start), jax.jit(go_on)


def delay_of_second(fleet: Any, twin: Any) -> int:
    """Return by how much the fleet's cars are behind those of its twin, s of all cars."""
    lanes = zip(fleet.lanes, twin.lanes, strict=True)
    return sum(max(of_twin.num_left - lane.num_left, 0) for lane, of_twin in lanes)


def check_emissions(state: Any, worlds: Sequence[Any], within: int) -> None:
    """Compare CO2 (mg) and fuel (ul) of a state with those of plain worlds."""
    for world, plain in enumerate(worlds):
        assert abs(int(state.co2[world]) - sum(lane.mg for lane in plain.lanes)) <= within
        assert abs(int(state.fuel[world]) - sum(lane.ul for lane in plain.lanes)) <= within


def check_end(step: Any, saved: float, fleet: Any, twin: Any) -> None:
    """Check that nobody ran a red light, what was saved, and that the episode ended in time.

    Args:
        step: the last one.
        saved: sum of the rewards, g per car.
        fleet: the plain world of the agents.
        twin: the plain world without them.
    """
    assert not any(lane.ran_red for lane in (*fleet.lanes, *twin.lanes))
    total = [sum(lane.mg for lane in plain.lanes) for plain in (twin, fleet)]
    assert saved == pytest.approx((total[0] - total[1]) / 1000 / len(fleet.cars), abs=1e-3)
    all_left = sum(lane.num_left for lane in fleet.lanes) == len(fleet.cars)
    assert bool(step.terminated) == all_left
