"""Check tasks under real conditions against the calm tasks and SciPy.

Nothing changes without the conditions, and with them the tasks can be solved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.control.disturbance_observer import (
    Rates,
    initial_estimate,
    observe,
)
from rlbench_suite.envs.quadcopter.physics import battery, dynamics, wind
from rlbench_suite.envs.quadcopter.physics.dynamics import NOMINAL, STEP, Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.payload import Payload
from rlbench_suite.envs.quadcopter.physics.rigid_body import GRAVITY, RigidBody, rotation_matrix
from rlbench_suite.envs.quadcopter.physics.vehicles import CRAZYFLIE_AIR
from rlbench_suite.envs.quadcopter.physics.wind import Wind
from rlbench_suite.envs.quadcopter.tasks import rough

pytestmark = pytest.mark.of_variants

GOALS = ("Hover", "Waypoints", "Trajectory")
SPLITS = np.int32(0), np.int32(1)


@pytest.fixture
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


every_goal = pytest.mark.parametrize("goal", GOALS)


def build(goal: str, dtype: str = "float32") -> rough.Rough:
    task: rough.Rough = card(f"Quadcopter{goal}Rough-v0").build(dtype=dtype)
    return task


@every_goal
def test_conditions_choose_the_id(goal: str) -> None:
    calm, harsh = (f"rlsuite/Quadcopter{goal}{name}-v0" for name in ("", "Rough"))
    env = gymnasium.make(calm, conditions="rough")
    assert env.unwrapped.card.id == harsh
    assert env.unwrapped.card.partially_observed
    assert card(harsh, conditions="calm").id == calm
    assert env.observation_space == gymnasium.make(calm).observation_space
    with pytest.raises(ValueError, match="Did you mean 'rough'"):
        gymnasium.make(calm, conditions="rogh")


@every_goal
@pytest.mark.usefixtures("float64")
def test_without_conditions_it_is_the_calm_task(goal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without wind and payload the states are the calm task's over two seconds, at float64.

    The source never sags.
    """
    if goal == "Hover":  # which has no rotor drag in calm
        monkeypatch.setattr(rough, "CRAZYFLIE_AIR", CRAZYFLIE_AIR._replace(drag_xy=0.0, drag_z=0.0))
    task = build(goal, "float64")
    key = jax.random.key(3)
    params = task.sample_params(key, SPLITS[1])
    # Twice full: above 5.5 V.
    none = rough.Conditions(Wind(0.0, 0.0), Payload(0.0, 0.01, 0.01, -0.01), 2.0)
    params = params._replace(conditions=jax.tree.map(jnp.float64, none))
    state = task.initial(key, params)
    calm = state.calm
    harsh_step, calm_step = jax.jit(task.transition), jax.jit(task.calm.transition)
    for t, action in enumerate(np.random.default_rng(0).uniform(0.1, 0.6, (200, 4))):
        state = harsh_step(state, action, jax.random.fold_in(key, t), params)
        calm = calm_step(calm, action, None, params.calm)
        assert battery.voltage(state.battery, 20.0) > battery.RATED_VOLTAGE
    for leaf, calm_leaf in zip(jax.tree.leaves(state.calm), jax.tree.leaves(calm), strict=True):
        assert float(leaf) == pytest.approx(float(calm_leaf), rel=1e-6, abs=1e-6)


@pytest.mark.usefixtures("float64")
def test_a_step_is_that_of_the_equations_as_matrices() -> None:
    """A step agrees with one rigid body of vehicle and payload, solved by DOP853.

    It has drag in the wind, and rotors below the battery's full speed.
    """
    task = build("Hover", "float64")
    params = task.sample_params(jax.random.key(1), SPLITS[0])
    payload = Payload(*map(jnp.float64, (0.004, 0.009, -0.006, -0.018)))
    params = params._replace(
        conditions=params.conditions._replace(payload=payload, charge=jnp.float64(0.2))
    )
    start = task.initial(jax.random.key(2), params)
    body = start.calm.body._replace(wx=jnp.float64(4.0), wy=jnp.float64(-3.0), wz=jnp.float64(5.0))
    start = start._replace(calm=start.calm._replace(body=body))
    action = np.array([0.9, 0.2, 1.0, -0.3])
    moved = jax.jit(task.transition)(start, action, jax.random.key(3), params)

    airframe, conditions = params.calm, jax.tree.map(float, params.conditions)
    mass, *moments = (float(value) for value in airframe.inertia)
    extra, place = conditions.payload.mass, np.array(conditions.payload[1:])
    total_mass, centre = mass + extra, extra / (mass + extra) * place

    def parallel_axes(weight: float, offset: np.ndarray) -> np.ndarray:
        return weight * (offset @ offset * np.eye(3) - np.outer(offset, offset))

    inertia = np.diag(moments) + parallel_axes(mass, -centre) + parallel_axes(extra, place - centre)
    k, c, lag = (float(value) for value in airframe[1:4])
    rotors = np.array(start.calm.rotors)
    # The battery: P = V I, V = U - R I, of the rotors at the start of the step.
    power = c / battery.EFFICIENCY * k * (rotors**3).sum() + battery.ELECTRONICS
    inner, resistance = float(battery.open_circuit_voltage(0.2)), battery.SERIES_RESISTANCE
    volts = inner - resistance * np.roots([resistance, -inner, power]).real.min()
    assert volts < battery.RATED_VOLTAGE
    command = 0.5 * (action + 1) * dynamics.ROTOR_SPEED_LIMIT * volts / battery.RATED_VOLTAGE
    blowing = np.array(wind.air_velocity(start.gusts, params.conditions.wind), float)
    places = np.stack([dynamics.ROTOR_X, dynamics.ROTOR_Y, np.zeros(4)], 1) - centre
    reaction = np.array([-1, 1, -1, 1.0])

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        q, v, w, n = y[3:7], y[7:10], y[10:13], y[13:]
        rotation = np.array(rotation_matrix(RigidBody(*y[:13]))).reshape(3, 3)
        thrust = k * n**2
        drag = (
            -n.sum()
            * np.diag([CRAZYFLIE_AIR.drag_xy] * 2 + [CRAZYFLIE_AIR.drag_z])
            @ rotation.T
            @ (v - blowing)
        )
        torque = sum(np.cross(p, [0, 0, f]) for p, f in zip(places, thrust, strict=True))
        torque = torque + np.array([0, 0, c * reaction @ thrust]) + np.cross(-centre, drag)
        spin = np.linalg.solve(inertia, torque - np.cross(w, inertia @ w))
        acceleration = rotation @ (drag + np.array([0, 0, thrust.sum()])) / total_mass - [
            0,
            0,
            GRAVITY,
        ]
        return np.r_[
            v,
            0.5 * np.r_[-q[1:] @ w, q[0] * w + np.cross(q[1:], w)],
            acceleration,
            spin,
            (command - n) / lag,
        ]

    first = np.array([*start.calm.body, *start.calm.rotors], float)
    exact = solve_ivp(rate, (0, STEP), first, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    # Of one RK4 step, as in calm: 1e-6 of angular velocities of some rad/s.
    np.testing.assert_allclose(
        np.array([*moved.calm.body, *moved.calm.rotors], float), exact, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        float(moved.battery.charge), 0.2 - STEP * power / volts / battery.CAPACITY, rtol=1e-12
    )


@every_goal
def test_the_same_seed_is_the_same_calm_episode(goal: str) -> None:
    ids = (f"rlsuite/Quadcopter{goal}{name}-v0" for name in ("Rough", ""))
    harsh, calm = (gymnasium.make(name, split="test") for name in ids)
    np.testing.assert_array_equal(harsh.reset(seed=5)[0], calm.reset(seed=5)[0])
    for leaf, calm_leaf in zip(
        jax.tree.leaves(harsh.unwrapped.params.calm),
        jax.tree.leaves(calm.unwrapped.params),
        strict=True,
    ):
        np.testing.assert_array_equal(leaf, calm_leaf)


def test_contexts_fill_their_ranges_and_winds_of_train_and_test_are_apart() -> None:
    task = build("Hover")
    keys = jax.random.split(jax.random.key(0), 4000)
    for split in SPLITS:
        conditions = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, split).conditions
        band = (np.asarray(conditions.wind.speed, float) - 2) / 0.25
        assert set(np.floor(band)) == set(range(split, 24, 2))
        # Of 4,000 uniform numbers the ends come this near with a probability of 1 - exp(-20) each.
        for values, low, high in (
            (conditions.wind.heading, 0, 2 * math.pi),
            (conditions.payload.mass, 0, 0.004),
            (conditions.payload.x, -0.01, 0.01),
            (conditions.payload.y, -0.01, 0.01),
            (conditions.payload.z, -0.02, -0.01),
            (conditions.charge, 0.5, 1.0),
        ):
            edge = 0.005 * (high - low)
            assert low - 1e-6 <= values.min() < low + edge
            assert high - edge < values.max() <= high + 1e-6


def test_measures_tell_the_conditions() -> None:
    env = gymnasium.make("rlsuite/QuadcopterTrajectoryRough-v0")
    _, info = env.reset(seed=1)
    speeds, volts = [info["wind_speed"]], [info["battery_voltage"]]
    for _ in range(60):
        *_, info = env.step(np.full(4, 0.4, np.float32))
        speeds.append(info["wind_speed"])
        volts.append(info["battery_voltage"])
    mean = float(env.unwrapped.params.conditions.wind.speed)
    # Within four standard deviations along, across and up together, and never twice the same.
    assert all(abs(speed - mean) < 4 * 0.34 * mean for speed in speeds)
    assert len(set(speeds)) == len(speeds)
    charge = float(env.unwrapped.params.conditions.charge)
    rested = float(battery.open_circuit_voltage(charge))
    assert all(rested - 0.8 < v < rested for v in volts)


@pytest.mark.usefixtures("float64")
def test_the_observer_finds_a_force_and_a_torque() -> None:
    """The observer finds what Newton says of a push, wind, and a payload aside that turns.

    The push is constant; it is found after some time constants.

    Rotors give 1.21 of the weight, so that what the model expects counts too.
    """
    rotors = Rotors(*jnp.full(4, 1.1 * float(dynamics.hover_speed(NOMINAL))))
    share = Rates(*(jnp.float64(0.2),) * 6)

    def estimate(**disturbed: Any) -> Rates:
        vehicle = Quadcopter(RigidBody(*jnp.zeros(13))._replace(qw=jnp.float64(1)), rotors)
        memory = initial_estimate()
        step = jax.jit(lambda v: dynamics.step(v, rotors, NOMINAL, STEP, **disturbed))
        for _ in range(60):
            memory = observe(memory, vehicle, NOMINAL, share)
            vehicle = step(vehicle)
        return memory.disturbance

    pushed = estimate(push=0.03)
    mass, _, jy, _ = NOMINAL.inertia
    np.testing.assert_allclose(pushed, [0, 0, 0.03 / mass, 0, 0, 0], atol=1e-4)
    blown = estimate(air=CRAZYFLIE_AIR, wind=(4.0, -2.0, 0.0))
    drag = CRAZYFLIE_AIR.drag_xy * 4 * float(rotors.r1) / mass
    # Six tenths of a second of drag carry it along a little.
    np.testing.assert_allclose(blown[:2], [4 * drag, -2 * drag], rtol=0.15)
    turned = estimate(payload=Payload(0.001, 0.0005, 0.0, 0.0))
    moment = 1.21 * mass * GRAVITY * 0.0005 * 0.001 / (mass + 0.001)
    assert float(turned.pitch) == pytest.approx(moment / jy, rel=0.01)


@every_goal
def test_the_reference_succeeds_far_above_random(goal: str) -> None:
    task, seeds = build(goal), range(256)
    flights = play(task, reference_player(task), seeds, split="test")
    assert flights.info["success"].mean() >= 0.94
    assert flights.terminated.mean() <= 0.06
    # Its actions alone give the record again, to the bit: what was recorded is what was flown.
    np.testing.assert_array_equal(replay(task, flights.actions, seeds).total, flights.total)
    chance = replay(
        task,
        np.random.default_rng(0).uniform(-1, 1, flights.actions.shape).astype(np.float32),
        seeds,
    )
    assert np.quantile(flights.total, 0.05) > np.quantile(chance.total, 0.95)
    assert not chance.info["success"].any()


def test_what_is_hidden_matters() -> None:
    """Without its observer, even with a voltmeter, the reference tracks ten times worse."""
    task = build("Trajectory")
    observing = reference_player(task)
    blind = observing._replace(share=Rates(*(0.0,) * 6))
    errors = [
        play(task, pilot, range(256), split="test").info["mean_error"]
        for pilot in (observing, blind)
    ]
    assert np.median(errors[1]) > 10 * np.median(errors[0])
