"""Torque with two objectives: losses by hand, and currents of least losses by an optimiser.

What these currents save is tested too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core import registry
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.control.least_losses import SPEEDS, TORQUES, LeastLosses, least_losses
from rlbench_suite.envs.motor.control.real_cascade import RealCascade
from rlbench_suite.envs.motor.machines.frames import DQ
from rlbench_suite.envs.motor.plants.real_pmsm import RealPMSM, Warm
from rlbench_suite.envs.motor.tasks.real import RealDrive

NAMES = ["PMSMTorqueEfficient-v0"]
each = pytest.mark.parametrize("name", NAMES)


def losses(i: np.ndarray, speed: float) -> float:
    """Return the losses at 110 degrees Celsius, W.

    Copper gains 0.393 %/K. The iron's coefficients are 30 and 0.05, by electrical frequency.
    """
    flux = RealPMSM().nominal_map.flux(DQ(*i))
    copper = 1.5 * 18e-3 * (1 + 3.93e-3 * 90) * (i @ i)
    return float(copper + (30 * 3 * speed + 0.05 * (3 * speed) ** 2) * (flux.d**2 + flux.q**2))


@pytest.mark.parametrize(
    ("torque", "speed"), [(0.0, 300.0), (10.0, 150.0), (40.0, 0.0), (60.0, 300.0), (100.0, 200.0)]
)
def test_table_equals_a_numeric_optimiser(torque: float, speed: float) -> None:
    flux_map = RealPMSM().nominal_map

    def torque_error(i: np.ndarray) -> float:
        flux = flux_map.flux(DQ(*i))
        return float(4.5 * (flux.d * i[1] - flux.q * i[0]) - torque)

    start = np.array([-torque - 1, torque + 1])
    optimum = minimize(
        losses, start, (speed,), "SLSQP", constraints={"type": "eq", "fun": torque_error}, tol=1e-12
    )
    assert optimum.success
    place = np.flatnonzero(torque == TORQUES)[0], np.flatnonzero(speed == SPEEDS)[0]
    i = np.array([part[place] for part in least_losses()])
    assert torque_error(i) == pytest.approx(0, abs=1e-2)  # of lines between currents 1 A apart
    # Losses are flat about their least: half an ampere of i_d beside it costs a hundredth of a per
    # cent.
    np.testing.assert_allclose(i, optimum.x, atol=0.5)
    assert losses(i, speed) == pytest.approx(optimum.fun, rel=2e-4, abs=1e-3)


@each
def test_reward_by_hand(name: str) -> None:
    task: Any = card(name).build()
    episode = jax.jit(partial(begin, task))(
        seed_key(0), 0, ContextSource(np.int32(1), np.int32(-1))
    )[0]
    m = jax.tree.map(float, episode.params.machine)
    now = Warm(-60.0, 70.0, 0.04, 0.08, 110.0, 90.0, 85.0)
    state = episode.state._replace(electrical=now, speed=200.0)
    copper = 1.5 * m.resistance * (1 + 3.93e-3 * 90) * (60**2 + 70**2)
    drag = 3 * (m.hysteresis + m.eddy * 600) * (0.04**2 + 0.08**2)
    shaft = 4.5 * (0.04 * 70 + 0.08 * 60) - drag
    before = episode.state._replace(setpoint=(np.float32(shaft + 6),))
    tracking, efficiency = task.reward(before, None, state, None, episode.params)
    assert float(tracking) == pytest.approx(0.5, rel=1e-4)  # an error of the halving one
    assert float(efficiency) == pytest.approx(-(copper + drag * 200) / 4000, rel=1e-5)


@each
def test_reference_loses_less_than_least_current(name: str) -> None:
    """And follows torques as well."""
    task: Any = card(name).build()
    saving, plain = (
        play(task, player.for_task(task), range(256)) for player in (LeastLosses, RealCascade)
    )
    assert saving.info["success"].mean() >= 0.95
    assert not saving.terminated.any()
    assert saving.total[:, 1].mean() > 0.95 * plain.total[:, 1].mean()
    assert saving.total[:, 0].mean() > 0.99 * plain.total[:, 0].mean()
    assert (saving.total[:, 1] > plain.total[:, 1] - 0.5).mean() > 0.9


def test_cards_of_drives_with_a_warm_winding_say_that_its_heat_costs() -> None:
    drives = [each for each in registry.cards().values() if each.family == "motor"]
    warm = {each.name for each in drives if isinstance(each.build(), RealDrive)}
    assert warm == {
        each.name for each in drives if "winding's temperature" in each.constraint.counts
    }
    assert card("PMSMTorqueEfficient-v0").name in warm
