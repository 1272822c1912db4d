"""Drives under real conditions: equations, energy, heat, age, and the reference player.

The equations are integrated by SciPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.control import real_cascade
from rlbench_suite.envs.motor.control.real_cascade import RealCascade
from rlbench_suite.envs.motor.machines.frames import DQ
from rlbench_suite.envs.motor.plants.real_pmsm import RealPermanentMagnet, RealPMSM, Warm
from rlbench_suite.envs.motor.tasks import real
from rlbench_suite.numerics.process import precision

IDS = ("PMSMTorqueReal-v0", "PMSMSpeedReal-v0")
MACHINE = RealPermanentMagnet()
SPLITS = np.int32(0), np.int32(1)
each = pytest.mark.parametrize("name", IDS)


@pytest.fixture
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def begin_episode(task: Any, seed: int = 0) -> Any:
    with precision(task):
        return jax.jit(partial(begin, task))(
            seed_key(seed), 0, ContextSource(np.int32(1), np.int32(-1))
        )[0]


@each
def test_conditions_choose_the_id(name: str) -> None:
    ideal = f"rlsuite/{name.replace('Real', '')}"
    env, plain = gymnasium.make(ideal, conditions="real").unwrapped, gymnasium.make(ideal).unwrapped
    assert env.card.id == f"rlsuite/{name}"
    assert (env.observation_space, env.action_space) == (
        plain.observation_space,
        plain.action_space,
    )


@each
def test_transition_equals_scipy(name: str) -> None:
    """Integrate equations written out.

    Temperatures stand still within a step, and the losses warm them at its end.

    One Runge-Kutta step of 0.1 ms leaves less than 1e-5 of the limits.
    """
    task: Any = card(name).build(dtype="float64")
    episode = begin_episode(task, 3)
    params, state = episode.params, episode.state._replace(speed=np.float64(90.0))
    m = jax.tree.map(float, params.machine)
    load = jax.tree.map(float, params.load)
    speed, y = 90.0, np.array([float(state.electrical.flux_d), float(state.electrical.flux_q)])
    temperatures = np.array([float(t) for t in state.electrical.temperatures])
    rng = np.random.default_rng(0)
    step = jax.jit(task.transition)
    a_d0 = 1 / m.inductance_d - 2 * 3e3 * m.magnet_flux
    for k in range(30):
        action = np.array([-0.1, 0.15]) + rng.uniform(-0.1, 0.1, 2)
        with precision(task):
            state = step(state, action, jax.random.key(k), params)
        volts = action * 300 / np.sqrt(3)
        ohm = m.resistance * (1 + 3.93e-3 * (temperatures[0] - 20))
        magnet = m.magnet_flux * (1 - 1.1e-3 * (temperatures[2] - 20))
        i_m = (a_d0 + 3e3 * magnet) * magnet

        def currents(d: float, q: float, i_m: float = i_m) -> tuple[float, float]:
            i_d = (a_d0 + 3e3 * abs(d) + 2e5 / 3 * abs(q) ** 3) * d - i_m
            return i_d, (1 / m.inductance_q + m.saturation * abs(q) ** 5 + 1e5 * d**2 * abs(q)) * q

        def drag(d: float, q: float, w: float) -> float:
            return float(3 * (m.hysteresis + m.eddy * 3 * w) * (d**2 + q**2))  # w > 0 throughout

        def rate(
            _: float,
            y: np.ndarray,
            volts: np.ndarray = volts,
            ohm: float = ohm,
            currents: Any = currents,
        ) -> list[float]:
            d, q, w = y
            i_d, i_q = currents(d, q)
            torque = 4.5 * (d * i_q - q * i_d) - drag(d, q, w)
            change = 0.0
            if task.kind == "speed":
                change = (torque - load.coulomb - load.viscous * w) / (load.inertia + m.inertia)
            return [volts[0] - ohm * i_d + 3 * w * q, volts[1] - ohm * i_q - 3 * w * d, change]

        solution = solve_ivp(rate, (0, 1e-4), [*y, speed], "DOP853", rtol=1e-11, atol=1e-11)
        *flux, speed = solution.y[:, -1]
        y = np.array(flux)
        i_d, i_q = currents(*y)
        copper, iron = 1.5 * ohm * (i_d**2 + i_q**2), drag(*y, speed) * speed
        w, s, g = temperatures
        heat = [
            (copper - 40 * (w - s)) / 2000,
            (0.9 * iron + 40 * (w - s) + 5 * (g - s) - 100 * (s - m.coolant)) / 6000,
            (0.1 * iron - 5 * (g - s)) / 1500,
        ]
        temperatures = temperatures + 2000 * 1e-4 * np.array(heat)
    ours = state.electrical
    np.testing.assert_allclose([float(ours.d), float(ours.q)], [i_d, i_q], atol=1e-5 * 400)
    np.testing.assert_allclose(float(state.speed), speed, rtol=1e-7)
    np.testing.assert_allclose(ours.temperatures, temperatures, atol=1e-3)
    assert abs(i_q) > 20  # the machine was driven


@pytest.mark.usefixtures("float64")
def test_energy_in_is_mechanical_work_losses_and_field() -> None:
    """Integrate 20 ms of turning voltages through saturation by SciPy.

    All joules are accounted for.
    """
    flux_map = MACHINE.flux_map(80.0)
    speed, winding = 100.0, 120.0

    @jax.jit
    def rates(t: Any, y: Any) -> Any:
        flux = DQ(y[0], y[1])
        current = flux_map.current(flux)
        voltage = DQ(-40 + 15 * jnp.cos(700 * t), 25 + 15 * jnp.sin(900 * t))
        change = MACHINE.flux_rate(flux, current, voltage, speed, winding)
        iron = MACHINE.iron_torque(flux, speed)
        shaft = MACHINE.inner_torque(flux, current) - iron
        power_in = 1.5 * (voltage.d * current.d + voltage.q * current.q)
        return jnp.stack(
            [
                *change,
                power_in,
                shaft * speed,
                MACHINE.copper_losses(current, winding),
                iron * speed,
            ]
        )

    start = np.array([MACHINE.magnet_flux, 0, 0, 0, 0, 0])
    end = solve_ivp(
        lambda t, y: np.asarray(rates(t, y)), (0, 0.02), start, "DOP853", rtol=1e-12, atol=1e-12
    ).y[:, -1]
    stored = flux_map.energy(DQ(*end[:2])) - flux_map.energy(DQ(*start[:2]))
    electrical, work, copper, iron = end[2:]
    assert min(abs(electrical), abs(work), copper, iron, abs(stored)) > 0.5
    assert electrical == pytest.approx(work + copper + iron + stored, abs=1e-8 * copper)


def test_table_has_the_most_torque_for_its_currents() -> None:
    """Currents of equal length and another angle than a table entry's make less torque.

    The torque of an entry is the table's.
    """
    plant = RealPMSM()
    torques, currents = plant.table
    length, angle = np.hypot(*currents), np.arctan2(-currents.d, currents.q)
    for turn in (-0.02, 0.02):
        beside = DQ(-length * np.sin(angle + turn), length * np.cos(angle + turn))
        torque = plant.nominal.inner_torque(plant.nominal_map.flux(beside), beside)
        assert (torque[1:] < torques[1:]).all()
    d, q = plant.currents_for(jnp.float32(-70.0), None)
    torque = plant.nominal.inner_torque(
        plant.nominal_map.flux(DQ(float(d), float(q))), DQ(float(d), float(q))
    )
    assert torque == pytest.approx(-70, abs=0.05)  # of lines between entries


@each
def test_contexts_start_warm_and_ages_of_train_and_test_are_apart(name: str) -> None:
    task: Any = card(name).build()
    keys = jax.random.split(jax.random.key(0), 2000)

    def context(key: jax.Array, split: jax.Array) -> Any:
        fresh = super(type(task), task).sample_params(key, split)
        params = task.sample_params(key, split)
        return params.machine.magnet_flux / fresh.machine.magnet_flux, task.initial(
            key, params
        ).electrical

    for split in SPLITS:
        left, start = jax.jit(jax.vmap(context, (0, None)))(keys, split)
        bands = (1 - np.asarray(left, float)) / real.LOST_FLUX * 40
        assert set(np.floor(bands).astype(int)) == set(range(split, 40, 2))
        assert start.winding.min() > 84
        assert start.winding.max() < real.PERMISSIBLE_TEMPERATURE
        assert (start.iron < start.winding).all()


def test_heat_costs_and_ends() -> None:
    task: Any = card(IDS[0]).build()
    episode = begin_episode(task)

    def at(winding: float) -> Any:
        warm = Warm(0.0, 240.0, 0.06, 0.15, winding, 90.0, 90.0)
        return episode.state._replace(electrical=warm)

    params = episode.params
    assert float(task.cost(at(100.0), None, at(139.0), params)) == pytest.approx(0, abs=1e-6)
    assert float(task.cost(at(100.0), None, at(146.0), params)) == pytest.approx(0.4, abs=1e-6)
    assert not task.terminal(at(154.9), None, params)
    assert task.terminal(at(155.1), None, params)
    for winding, success in ((154.9, True), (155.1, False)):  # the torque is what is asked for
        exact = at(winding)._replace(setpoint=task.controlled_values(at(winding), params))
        assert bool(task.info(exact, params)["success"]) == success
    hot = at(155.1)
    assert "over-temperature: a winding of 155.1" in task.why_over(
        hot, params, task.info(hot, params)
    )


@each
def test_the_reference_succeeds_and_never_trips(name: str) -> None:
    task, seeds = card(name).build(), range(256)
    record = play(task, RealCascade.for_task(task), seeds)
    assert record.info["success"].mean() >= 0.94
    assert not record.terminated.any()
    assert (record.info["winding"] < real.PERMISSIBLE_TEMPERATURE).all()
    chance = replay(
        task,
        np.random.default_rng(0).uniform(-1, 1, record.actions.shape).astype(np.float32),
        seeds,
    )
    assert np.quantile(record.total, 0.05) > np.quantile(chance.total, 0.95)


@pytest.mark.parametrize("name", IDS[:1])
def test_derating_is_what_keeps_it_cool(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the same player follows more set points, and overheats windings."""
    task = card(name).build()
    monkeypatch.setattr(real_cascade, "DERATING_TEMPERATURES", (900.0, 1000.0))

    class Careless(RealCascade):
        """A type of its own, so that no program compiled for the other is taken."""

    record = play(task, Careless.for_task(task), range(256))
    assert record.info["winding"].max() > real.PERMISSIBLE_TEMPERATURE
