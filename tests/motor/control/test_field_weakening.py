"""Flux weakening against the ellipse of the voltage and the circle of the current.

The best currents come from closed forms and from a search.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.control.field_weakening import WeakeningCascade, currents_within_flux
from rlbench_suite.envs.motor.machines.frames import DQ
from rlbench_suite.envs.motor.plants.three_phase import PMSM, SynRM

pytestmark = pytest.mark.of_variants

IDS = "PMSMSpeedWide-v0", "SynRMSpeedWide-v0", "SCIMSpeedWide-v0"


def machine_of(plant: Any) -> Any:
    return plant.nominal.without_magnets() if isinstance(plant, SynRM) else plant.nominal


def grid(machine: Any, limit: float, flux: float) -> tuple[Any, Any, Any]:
    """Return currents within both limits, and their torque."""
    length, angle = np.meshgrid(np.linspace(0, limit, 1500), np.linspace(0, np.pi, 3000))
    d, q = (length * np.cos(angle)).ravel(), (length * np.sin(angle)).ravel()
    linked = np.hypot(machine.inductance_d * d + machine.magnet_flux, machine.inductance_q * q)
    d, q = d[linked <= flux], q[linked <= flux]
    return (
        d,
        q,
        1.5
        * machine.pole_pairs
        * (machine.magnet_flux + (machine.inductance_d - machine.inductance_q) * d)
        * q,
    )


@pytest.mark.parametrize("plant", [PMSM(), SynRM()], ids=lambda plant: type(plant).__name__)
@pytest.mark.parametrize("speed", [1.3, 2.0, 3.0])
def test_currents_are_the_best_within_ellipse_and_circle(plant: Any, speed: float) -> None:
    """At multiples of the base speed the largest torque is that of all currents.

    Half of it takes the least current.

    A point of the grid is within 0.2 % of the best one.
    """
    machine, limit = machine_of(plant), plant.nominal_current
    flux = plant.unit / (plant.pole_pairs * speed * plant.base().speed)
    d, q, torques = grid(machine, limit, flux)

    def best(torque: float) -> tuple[DQ, float]:
        with jax.enable_x64(True):
            shortest = DQ(*plant.currents_for(jnp.float64(torque), None))
            current = currents_within_flux(
                machine, jnp.float64(torque), shortest, jnp.float64(flux), jnp.float64(limit)
            )
            return DQ(*map(float, current)), float(machine.torque(current))

    (i_d, i_q), largest = best(10 * plant.base().torque)
    assert largest == pytest.approx(torques.max(), rel=2e-3)
    assert math.hypot(i_d, i_q) < limit * 1.0001
    half = 0.5 * largest
    (i_d, i_q), reached = best(-half)
    assert reached == pytest.approx(-half, rel=1e-3)
    assert (
        math.hypot(machine.inductance_d * i_d + machine.magnet_flux, machine.inductance_q * i_q)
        < flux * 1.0001
    )
    assert math.hypot(i_d, i_q) == pytest.approx(np.hypot(d, q)[torques >= half].min(), rel=5e-3)


def test_a_reluctance_machine_has_its_largest_torque_at_45_degrees_of_flux() -> None:
    """Its largest torque at a flux (MTPV) is 3/2 p (L_d - L_q) psi^2 / (2 L_d L_q).

    The speed is far beyond base speed, where the current does not bind.
    """
    plant = SynRM()
    machine, flux = machine_of(plant), plant.unit / (4 * 430.0)
    current = currents_within_flux(
        machine, jnp.float32(5.0), DQ(7.0, 7.0), jnp.float32(flux), jnp.float32(10.0)
    )
    truth = 1.5 * 4 * (10.1e-3 - 4.1e-3) * flux**2 / (2 * 10.1e-3 * 4.1e-3)
    assert float(machine.torque(current)) == pytest.approx(truth, rel=1e-3)


def test_a_held_speed_is_on_the_ellipse() -> None:
    """At 390 rad/s, |R i + p w J psi| is within the voltage on the data sheet's machine.

    That speed is beyond the base speed.
    """
    task: Any = card("PMSMSpeedWide-v0").build()
    player, plant = WeakeningCascade.for_task(task), PMSM()
    params = task.sample_params(jax.random.key(0), np.int32(1))._replace(
        machine=jax.tree.map(jnp.float32, plant.nominal)
    )
    state = task.initial(jax.random.key(0), params)._replace(setpoint=(jnp.float32(390.0),))

    def step(carry: Any, _: Any) -> tuple[Any, None]:
        state, memory = carry
        action, memory = player.act(memory, View(None, None, state, params), jax.random.key(0))
        now = task.advance_period(state, task.actuator.choose(action), params)
        return (now._replace(setpoint=state.setpoint), memory), None

    (state, _), _ = jax.lax.scan(step, (state, player.initial(params)), length=5000)
    i_d, i_q = map(float, state.electrical)
    w, m = 3 * 390.0, plant.nominal
    u_d = m.resistance * i_d - w * m.inductance_q * i_q
    u_q = m.resistance * i_q + w * (m.inductance_d * i_d + m.magnet_flux)
    assert float(state.speed) == pytest.approx(390.0, abs=1.0)
    assert math.hypot(u_d, u_q) < plant.unit
    assert float(plant.currents_for(jnp.float32(m.torque(DQ(i_d, i_q))), None)[0]) > i_d - 0.5


@pytest.mark.parametrize("name", IDS)
def test_the_reference_player_holds_the_speed(name: str) -> None:
    """The player never trips, and keeps to the nominal current.

    That of the plain task, without weakening, does much worse.
    """
    plain = name.replace("Wide", "")
    task: Any = card(name).build()
    assert gymnasium.make(f"rlsuite/{plain}", conditions="wide").unwrapped.card.id == task.card.id
    record = play(task, WeakeningCascade.for_task(task), range(32))
    assert not record.terminated.any()
    assert record.info["success"].mean() > 0.9
    assert record.total.mean() > 0.9 * task.card.horizon
    assert record.info["cost"].mean() < 1
