"""Check controllers between action and rotors against closed forms and linear programmes.

Lags have closed forms, allocation is a linear programme, and hover agrees to the digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.control import flight_controller
from rlbench_suite.envs.quadcopter.control.flight_controller import BodyRates, Velocity
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import STEP, Airframe, Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import GRAVITY, RigidBody

NAMES = [f"QuadcopterHover{level}-v0" for level in ("Rates", "Velocity", "Waypoint", "One")]
COURSES = [
    f"Quadcopter{goal}{level}-v0"
    for goal in ("Waypoints", "Trajectory")
    for level in ("Rates", "Velocity")
]
every_level = pytest.mark.parametrize("name", NAMES)

HEAVY = dynamics.NOMINAL._replace(
    inertia=dynamics.NOMINAL.inertia._replace(mass=1.2 * dynamics.MASS),
    thrust_coefficient=0.9 * dynamics.THRUST_COEFFICIENT,
)


def hovering_vehicle(airframe: Airframe) -> Quadcopter:
    speed = np.sqrt(airframe.inertia.mass * GRAVITY / (4 * airframe.thrust_coefficient))
    return Quadcopter(RigidBody(*np.eye(13)[3]), Rotors(*[speed] * 4))


def fly_states(
    law: Callable[[Quadcopter, Airframe], Any],
    airframe: Airframe,
    steps: int,
    start: Quadcopter | None = None,
) -> Quadcopter:
    """Return the states of a flight, arrays ``(steps + 1,)``.

    A law makes commands of a vehicle and what it is taken for.
    """
    with jax.enable_x64(True):
        first = jax.tree.map(jnp.float64, start or hovering_vehicle(airframe))
        assumed = flight_controller.assumed_airframe(float(hovering_vehicle(airframe).rotors.r1))

        def step(vehicle: Quadcopter, _: None) -> tuple[Quadcopter, Quadcopter]:
            return dynamics.step(
                vehicle, dynamics.commanded_speeds(law(vehicle, assumed)), airframe, STEP
            ), vehicle

        last, states = jax.jit(lambda vehicle: jax.lax.scan(step, vehicle, None, steps))(first)
        return jax.tree.map(np.append, states, last)


def to_velocity(*goal: float) -> Callable[[Quadcopter, Airframe], Any]:
    return lambda vehicle, assumed: flight_controller.towards_body_rates(
        vehicle, flight_controller.towards_velocity(vehicle.body, Velocity(*goal)), assumed
    )


# -- each loop reaches its set point, with its lag -------------------------------------------------
# A first-order lag 1 / k has the error exp(-k t) of a unit step, whose area is 1 / k. Motors bring
# a torque to its goal by the end of a step: sampled at the beginnings of steps the area stays 1 /
# k, and so it does where the loop below is slow, as long as it gives all that it is asked for in
# the end.


@pytest.mark.parametrize(("axis", "lag"), [("wx", 1 / 40), ("wy", 1 / 40), ("wz", 1 / 20)])
def test_body_rates_follow_by_a_first_order_lag(axis: str, lag: float) -> None:
    goal = BodyRates(GRAVITY, 0.0, 0.0, 0.0)._replace(**{axis: 0.2})
    body = fly_states(
        lambda vehicle, assumed: flight_controller.towards_body_rates(vehicle, goal, assumed),
        dynamics.NOMINAL,
        60,
    ).body
    error = 0.2 - getattr(body, axis)
    assert np.abs(error[40:]).max() < 2e-4
    assert error.sum() * STEP == pytest.approx(0.2 * lag, rel=0.01)
    # Sample by sample: an angular acceleration a goes to k times the error by 1 - exp(-t / T),
    # scaled to be there after a step; its integral over the step is a dt + (k e - a) s.
    gone = 1 - np.exp(-STEP / 0.05545)
    share, rate, acceleration = (STEP - 0.05545 * gone) / gone, 0.0, 0.0
    for sample in getattr(body, axis):
        # Thrusts are squares of speeds: not quite linear.
        assert sample == pytest.approx(rate, abs=0.002)
        target = (0.2 - rate) / lag
        rate, acceleration = rate + acceleration * STEP + (target - acceleration) * share, target
    for still_axis in {"wx", "wy", "wz"} - {axis}:
        assert np.abs(getattr(body, still_axis)).max() < 1e-9


@pytest.mark.parametrize("airframe", [dynamics.NOMINAL, HEAVY], ids=["nominal", "heavy"])
def test_velocities_are_reached_without_bias(airframe: Airframe) -> None:
    """Small steps are followed with a lag of 0.25 s, and large ones are reached to the digit.

    Large ones are of 1 m/s along all axes while yawing.
    """
    body = fly_states(to_velocity(0.02, 0.03, -0.02, 0.0), airframe, 400).body
    for name, goal in (("vx", 0.02), ("vy", 0.03), ("vz", -0.02)):
        assert ((goal - getattr(body, name)).sum() * STEP) == pytest.approx(0.25 * goal, rel=0.02)
    body = fly_states(to_velocity(1.0, -1.0, 1.0, 2.0), airframe, 600).body
    last = [float(values[-1]) for values in body]
    assert last[7:10] == pytest.approx([1, -1, 1], abs=1e-5)
    assert last[10:] == pytest.approx([0, 0, 2], abs=1e-4)


@pytest.mark.parametrize("distance", [0.01, 0.5])
def test_a_place_is_arrived_at(distance: float) -> None:
    """The vehicle reaches a place to the digit, wherever it is and wherever the nose pointed.

    Where the place is near, it lags by 0.5 s.
    """

    def law(vehicle: Quadcopter, assumed: Airframe) -> Any:
        body = vehicle.body
        goal = flight_controller.towards_place(
            body, distance - body.x, -distance - body.y, 0.5 * distance - body.z
        )
        return flight_controller.towards_body_rates(
            vehicle, flight_controller.towards_velocity(body, goal), assumed
        )

    start = hovering_vehicle(dynamics.NOMINAL)
    start = start._replace(body=start.body._replace(qw=np.cos(0.5), qz=np.sin(0.5)))
    body = fly_states(law, dynamics.NOMINAL, 900, start if distance > 0.1 else None).body
    last = [float(values[-1]) for values in body]
    assert last[:3] == pytest.approx([distance, -distance, 0.5 * distance], abs=1e-5)
    assert last[3:] == pytest.approx([1] + [0] * 9, abs=1e-4)
    if distance < 0.1:
        assert ((distance - body.x).sum() * STEP) == pytest.approx(0.5 * distance, rel=0.02)


# -- who yields where rotors cannot give everything ------------------------------------------------


def test_allocation_is_that_of_linear_programmes() -> None:
    """Thrust is the nearest to the demand that roll and pitch allow, then yaw torque is."""
    rng = np.random.default_rng(0)
    decay = np.exp(-STEP / 0.05545)
    k = dynamics.THRUST_COEFFICIENT
    arm = 0.028
    c = dynamics.TORQUE_COEFFICIENT
    limit = dynamics.ROTOR_SPEED_LIMIT
    mixing = np.array(
        [[1, 1, 1, 1], [-arm, -arm, arm, arm], [-arm, arm, arm, -arm], [-c, c, -c, c]]
    )
    allocate = jax.jit(flight_controller.prioritise_tilt)
    yielded = {"thrust": 0, "yaw": 0, "tilt": 0}
    for _ in range(60):
        speeds = rng.uniform(0.55, 0.75, 4) * limit
        demand = rng.uniform([0, -8e-4, -8e-4, -2e-4], [0.6, 8e-4, 8e-4, 2e-4])
        with jax.enable_x64(True):
            forces = np.array(
                allocate(Rotors(*map(jnp.float64, speeds)), dynamics.NOMINAL, *demand)
            )
        bounds = np.stack([k * (speeds * decay + (1 - decay) * end) ** 2 for end in (0, limit)], 1)

        def nearest(
            row: int, goal: float, fixed: list[int], values: list[float], bounds: Any = bounds
        ) -> Any:
            """Minimise |mixing[row] f - goal| within bounds, with other rows fixed.

            The last variable bounds the size.
            """
            upper = np.vstack([np.append(mixing[row], -1), np.append(-mixing[row], -1)])
            equal = np.hstack([mixing[fixed], np.zeros((len(fixed), 1))])
            solution = linprog(
                [0, 0, 0, 0, 1],
                upper,
                [goal, -goal],
                equal,
                values,
                [*map(tuple, bounds), (0, None)],
            )
            return mixing[row] @ solution.x[:4] if solution.success else None

        # A yaw torque of its own, zero in the first programme, takes no room from thrust.
        thrust = nearest(0, demand[0], [1, 2, 3], [demand[1], demand[2], 0])
        got = mixing @ forces
        if thrust is None:
            yielded["tilt"] += 1
            continue
        assert (forces > bounds[:, 0] - 1e-12).all()
        assert (forces < bounds[:, 1] + 1e-12).all()
        assert got[1:3] == pytest.approx(demand[1:3], abs=1e-12)
        assert got[0] == pytest.approx(thrust, abs=1e-8)
        assert got[3] == pytest.approx(
            nearest(3, demand[3], [0, 1, 2], [thrust, demand[1], demand[2]]), abs=1e-9
        )
        yielded["thrust"] += abs(thrust - demand[0]) > 1e-6
        yielded["yaw"] += abs(got[3] - demand[3]) > 1e-9
    assert min(yielded.values()) >= 3, yielded


@pytest.mark.parametrize("thrust", [0.0, 2 * GRAVITY])
def test_turning_does_not_wait_for_thrust(thrust: float) -> None:
    """A roll rate of 3 rad/s is reached as in a hover, however hard the vehicle climbs or falls."""

    def roll_rates(thrust: float) -> np.ndarray:
        goal = BodyRates(thrust, 3.0, 0.0, 0.0)
        law = lambda vehicle, assumed: flight_controller.towards_body_rates(vehicle, goal, assumed)  # noqa: E731
        return fly_states(law, dynamics.NOMINAL, 40).body.wx

    np.testing.assert_allclose(roll_rates(thrust), roll_rates(GRAVITY), atol=0.15)


# -- the tasks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES + COURSES)
def test_the_action_setting_chooses_the_id(name: str) -> None:
    level = card(name).settings["action"]
    base = name.replace(level.title(), "")
    env = gymnasium.make(f"rlsuite/{base}", action=level)
    assert env.unwrapped.card.id == f"rlsuite/{name}"
    assert card(name, action="rotors").id == f"rlsuite/{base}"
    with pytest.raises(ValueError, match=f"Did you mean '{level}'"):
        card(base, action=level + "x")
    with pytest.raises(ValueError, match="No task has"):
        card(base.replace("-v", "Rough-v"), action=level)


@pytest.mark.parametrize("name", NAMES + COURSES)
def test_it_is_the_same_task_by_other_commands(name: str) -> None:
    """State and reward are those of the task by rotors under the same rotor commands.

    Contexts are equal to the bit, and so are starts but for vertical flight.
    """
    task, base = card(name).build(), card(name, action="rotors").build()
    key = jax.random.key(7)
    params = task.sample_params(key, np.int32(1))
    state = task.initial(key, params)
    for ours, its in zip(
        *map(jax.tree.leaves, (params, base.sample_params(key, np.int32(1)))), strict=True
    ):
        np.testing.assert_array_equal(ours, its)
    start = base.initial(key, params)
    if name == "QuadcopterHoverOne-v0":
        body = state.body
        assert (body.z, body.vz) == (start.body.z, start.body.vz)
        assert [float(value) for value in (*body[:2], *body[3:9], *body[10:])] == [0, 0, 1] + [
            0
        ] * 8
    else:
        np.testing.assert_array_equal(jax.tree.leaves(state), jax.tree.leaves(start))

    @jax.jit
    def step_pair(state: Any, action: Any) -> Any:
        commands = task.commands(state, action, params)
        after = task.transition(state, action, key, params)
        its = base.transition(state, commands, key, params)
        rewards = (
            task.reward(state, action, after, key, params),
            base.reward(state, commands, its, key, params),
        )
        return after, its, rewards, commands

    for action in (
        np.random.default_rng(1).uniform(-1, 1, (50, task.action_size)).astype(np.float32)
    ):
        state, its, rewards, commands = step_pair(state, action)
        assert np.abs(commands).max() <= 1
        for leaf, base_leaf in zip(jax.tree.leaves(state), jax.tree.leaves(its), strict=True):
            assert float(leaf) == pytest.approx(float(base_leaf), rel=1e-5, abs=1e-6)
        assert float(rewards[0]) == pytest.approx(float(rewards[1]), rel=1e-5)


@pytest.mark.parametrize("name", NAMES[:3])
def test_zeros_hover_in_every_vehicle(name: str) -> None:
    """The command is that of the vehicle's hover speed, and nothing moves."""
    task = card(name).build(dtype="float64")
    with jax.enable_x64(True):
        for seed in range(20):
            params = task.sample_params(jax.random.key(seed), np.int32(1))
            vehicle = jax.tree.map(jnp.float64, hovering_vehicle(jax.tree.map(float, params)))
            commands = task.commands(vehicle, task.noop_action(), params)
            np.testing.assert_allclose(
                dynamics.rotor_speed(np.array(commands)), vehicle.rotors, rtol=1e-12
            )
    assert not task.noop_action().any()


def test_one_command_is_a_vertical_flight() -> None:
    """A second of a constant command: motor and height by SciPy, all else exactly as it was."""
    body = fly_states(lambda vehicle, assumed: jnp.full(4, 0.5), dynamics.NOMINAL, 100).body
    k, limit = dynamics.THRUST_COEFFICIENT, dynamics.ROTOR_SPEED_LIMIT
    rotor = float(hovering_vehicle(dynamics.NOMINAL).rotors.r1)

    def motion(_: float, now: np.ndarray) -> list[float]:
        return [
            now[1],
            4 * k * now[2] ** 2 / dynamics.MASS - GRAVITY,
            (0.75 * limit - now[2]) / 0.05545,
        ]

    exact = solve_ivp(
        motion, (0, 1), [0, 0, rotor], t_eval=np.arange(101) * STEP, rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(body.z, exact.y[0], atol=1e-6)
    for name in set(RigidBody._fields) - {"z", "vz", "qw"}:
        assert not getattr(body, name).any()


@every_level
def test_the_reference_hovers_and_others_do_not(name: str) -> None:
    task = card(name).build()
    flights = play(task, reference_player(task), range(300), split="test")
    assert flights.info["success"].mean() >= 0.95
    assert flights.total.mean() == pytest.approx(task.scores["reference"].mean, rel=0.02)
    assert task.scores["random"].high < 0.5 * task.scores["reference"].low
    assert task.scores["noop"].high < 0.8 * task.scores["reference"].low


@pytest.mark.parametrize("name", COURSES)
def test_the_reference_flies_courses_and_others_do_not(name: str) -> None:
    task = card(name).build()
    assert play(task, reference_player(task), range(32), split="test").info["success"].mean() >= 0.9
    for player in ("random", "noop"):
        assert task.scores[player].high < 0.5 * task.scores["reference"].low


@every_level
def test_words_tell_what_to_answer(name: str) -> None:
    task = card(name).build()
    numbers = " ".join(["0.5"] * task.action_size)
    np.testing.assert_array_equal(task.parse(numbers, None, None), np.full(task.action_size, 0.5))
    assert task.meaning in task.how_to_act()
