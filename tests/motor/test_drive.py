"""The drives: dynamics, set points, rewards, ends, contexts, and their reference player.

The dynamics are compared with SciPy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import agent, card, cards
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.core.task_card import load as loaded
from rlbench_suite.envs.motor.control.cascade import Cascade
from rlbench_suite.envs.motor.machines.frames import DQ, AlphaBeta
from rlbench_suite.envs.motor.machines.induction import Currents, Electrical
from rlbench_suite.envs.motor.machines.synchronous import DQXY, Excited
from rlbench_suite.envs.motor.plants.induction_plant import DFIM, SCIM
from rlbench_suite.envs.motor.plants.three_phase import EESM, PMSM, SixPhasePMSM, SynRM
from rlbench_suite.envs.motor.tasks.drive import Drive, Params, State
from rlbench_suite.numerics.process import precision

DRIVES = [drive for drive in cards().values() if drive.entry_point.endswith(":Drive")]
CONTINUOUS = [drive for drive in DRIVES if drive.settings["control"] == "continuous"]
MEASURED = [
    drive
    for drive in CONTINUOUS
    if drive.settings["goal"] != "torque" or drive.settings["noise"] == "0"
]
"""Without the noisy torques, which are those of the data sheet's machine."""
TEST = ContextSource(np.int32(1), np.int32(-1))


def card_name(drive: TaskCard) -> str:
    return drive.name


def begin_episode(task: Any, seed: int = 0) -> Any:
    with precision(task):
        return jax.jit(partial(begin, task))(seed_key(seed), 0, TEST)[0]


def test_there_are_drives_of_every_kind() -> None:
    assert {drive.settings["goal"] for drive in DRIVES} == {
        "current",
        "torque",
        "speed",
        "position",
    }
    assert {drive.settings["control"] for drive in DRIVES} == {"continuous", "finite"}
    assert len({drive.settings["machine"] for drive in DRIVES}) == 10


@pytest.mark.parametrize("drive", DRIVES, ids=card_name)
def test_transition_equals_scipy(drive: TaskCard) -> None:
    """Thirty steps of small voltages, or of all switch states in turn, at float64.

    One Runge-Kutta step a period leaves less than 1e-5 of the limits where the load has no corners;
    Coulomb friction's corner at standstill is not passed here.
    """
    task: Any = drive.build(dtype="float64")
    episode = begin_episode(task)
    params, state = episode.params, episode.state
    rng = np.random.default_rng(0)
    voltages: list[Any] = []
    if task.kind == "position":
        state = state._replace(speed=state.speed + 20)  # away from the friction's corner
    start = (state.electrical, state.speed, state.speed * 0)
    waiting: Any = state.memories.waiting  # under a delay: what the first period applies
    with precision(task):
        step = jax.jit(task.transition)
        for k in range(30):
            choice = (
                np.int32(k % task.plant.states)
                if task.finite
                else rng.uniform(-0.02, 0.02, task.plant.inputs)
            )
            action, waiting = (np.asarray(waiting), choice) if task.delayed else (choice, choice)
            if task.finite:
                voltages.append(task.plant.switched_voltage(action, state.electrical, state.angle))
            else:
                voltages.append(task.plant.voltage(tuple(action), state.electrical, state.angle))
            state = step(state, choice, jax.random.key(k), params)
        flat, unravel = ravel_pytree(start)

        @jax.jit
        def rate(y: jax.Array, voltage: Any) -> jax.Array:
            electrical, speed, _ = unravel(y)
            acceleration = params.load.acceleration(
                speed, params.machine.torque(electrical), params.machine.inertia
            )
            return ravel_pytree(
                (params.machine.derivative(electrical, voltage, speed), acceleration, speed)
            )[0]

        y = np.asarray(flat)
        for voltage in voltages:
            constant = jax.tree.map(np.float64, voltage)
            solution = solve_ivp(
                lambda t, y, constant=constant: np.asarray(rate(y, constant)),
                (0, task.period),
                y,
                "DOP853",
                rtol=1e-11,
                atol=1e-11,
            )
            y = solution.y[:, -1]
        truth = unravel(jnp.asarray(y))
        ours = np.array(
            [*task.plant.measure(state.electrical), state.speed / task.plant.speed_limit]
        )
        exact = np.array([*task.plant.measure(truth[0]), truth[1] / task.plant.speed_limit])
        turned, ours_turned = float(truth[2]), float(state.angle)
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-5)
    if task.kind == "position":
        assert ours_turned == pytest.approx(turned, rel=1e-6)


@pytest.mark.parametrize("drive", DRIVES, ids=card_name)
def test_reference_player_tracks_and_never_trips(drive: TaskCard) -> None:
    task = drive.build()
    assert loaded(drive.reference) is Cascade
    record = play(task, Cascade.for_task(task), range(64))
    assert not record.terminated.any()
    # Nobody measures it, so it is missed now and then.
    noisy_torque = drive in CONTINUOUS and drive not in MEASURED
    assert record.info["success"].mean() > (0.8 if noisy_torque else 0.9)
    assert record.total.mean() > 0.7 * drive.horizon
    assert drive.normalise(float(record.total.mean())) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("drive", MEASURED, ids=card_name)
def test_reference_player_leaves_no_steady_error(drive: TaskCard) -> None:
    """Set points stand still, on a machine that is not the data sheet's.

    Noise has a mean of zero.
    """
    task: Any = drive.build()
    player = Cascade.for_task(task)
    episode = begin_episode(task, 3)
    middle = tuple(
        np.float32(low + 0.7 * (high - low))
        for low, high in zip(task.goal.low, task.goal.high, strict=True)
    )
    params = episode.params
    if task.kind == "speed":
        middle = (np.float32(np.clip(params.speed + 5, task.goal.low[0], task.goal.high[0])),)

    def body(carry: Any, k: jax.Array) -> Any:
        state, memory = carry
        key = jax.random.fold_in(jax.random.key(0), k)
        observation = task.observation(state, key, params)
        action, memory = player.act(
            memory, View(observation, None, state, params), jax.random.key(0)
        )
        state = task.transition(state, action, key, params)._replace(setpoint=middle)
        return (state, memory), jnp.stack(task.controlled_values(state, params))

    start = episode.state._replace(setpoint=middle)
    run = jax.jit(
        lambda s: jax.lax.scan(body, (s, player.initial(params)), jnp.arange(4 * drive.horizon))[1]
    )
    values = np.asarray(run(start))[-drive.horizon :].mean(axis=0)
    assert (np.abs(values - np.array(middle)) < 0.2 * np.array(task.goal.halving)).all()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "DFIMCurrent-v0",
            "DFIMTorque-v0",
            "DFIMSpeed-v0",
            "EESMCurrent-v0",
            "EESMTorque-v0",
            "EESMSpeed-v0",
        ),
        *("PMSMTorque-v0", "SeriesDcCurrent-v0"),
    ],
)
def test_reference_player_hardly_overshoots(name: str) -> None:
    """Overshoot is at most a tenth of a step over a third of the range, in any context.

    Voltages do not suffice for such steps.

    Also where windings of one flux share their voltages.
    """
    task: Any = card(name).build()
    player, low, high = Cascade.for_task(task), np.array(task.goal.low), np.array(task.goal.high)

    def answer(seed: jax.Array) -> tuple[jax.Array, ...]:
        episode = begin(task, seed, 0, TEST)[0]
        params = episode.params
        before = jnp.array([params.speed]) if task.kind == "speed" else (low + high) / 2
        after = before + (task.jump or (high - low) / 3)
        after = jnp.where(after > high, 2 * before - after, after)

        def body(carry: Any, t: jax.Array) -> Any:
            state, memory = carry
            state = state._replace(setpoint=tuple(jnp.where(t < 200, before, after)))
            action, memory = player.act(memory, View(None, None, state, params), jax.random.key(0))
            state = task.transition(state, action, jax.random.key(0), params)
            return (state, memory), jnp.stack(task.controlled_values(state, params))

        values = jax.lax.scan(body, (episode.state, player.initial(params)), jnp.arange(800))[1]
        return (values[200:] - before) / (after - before)

    seeds = jnp.stack([seed_key(seed) for seed in range(32)])
    responses = np.asarray(jax.jit(jax.vmap(answer))(seeds))
    assert responses.max() < 1.1
    assert (np.abs(responses[:, -100:] - 1) < 0.03).all()


def test_reward_by_hand() -> None:
    task: Any = card("SynRMCurrent-v0").build()
    plant = SynRM()
    params = begin_episode(task).params

    def at(d: float, q: float, setpoint: tuple[float, float]) -> State:
        return State(DQ(d, q), 0.0, 0.0, setpoint, (0.0, 0.0))

    state = at(0, 0, (4.0, -3.0))
    assert float(task.reward(state, None, at(4, -3, (9, 9)), None, params)) == pytest.approx(1)
    assert float(task.reward(state, None, at(4.5, -3, (9, 9)), None, params)) == pytest.approx(0.75)
    assert float(task.reward(state, None, at(3, -1.5, (9, 9)), None, params)) == pytest.approx(
        (1 / 3 + 1 / 4) / 2
    )
    assert float(task.cost(state, None, at(6, 8, (0, 0)), params)) == pytest.approx(0, abs=1e-6)
    assert float(task.cost(state, None, at(9, 12, (0, 0)), params)) == pytest.approx(0.5)
    assert not task.terminal(at(10.8, 14.3, (0, 0)), None, params)
    assert task.terminal(at(10.8, 14.5, (0, 0)), None, params)
    assert "over-current" in task.why_over(
        at(10.8, 14.5, (0, 0)), params, task.info(at(10.8, 14.5, (0, 0)), params)
    )
    fast = at(0, 0, (0, 0))._replace(speed=1.01 * plant.speed_limit)
    assert task.terminal(fast, None, params)
    assert "over-speed" in task.why_over(fast, params, task.info(fast, params))
    for tripped in (fast, at(10.8, 14.5, (10.8, 14.5))):  # without any error
        assert float(task.info(tripped, params)["error"]) == pytest.approx(0, abs=1e-6)
        assert not task.info(tripped, params)["success"]
    assert task.info(at(10.8, 14.3, (10.8, 14.3)), params)["success"]


def test_induction_machine_is_seen_from_its_rotor_s_flux() -> None:
    plant = SCIM()
    angle = 2.1
    turned = np.exp(1j * angle)
    current, flux = turned * (2.0 + 1.5j), turned * 0.3
    state = Electrical(AlphaBeta(current.real, current.imag), AlphaBeta(flux.real, flux.imag))
    measured = plant.measure(state)
    np.testing.assert_allclose(measured, [2 / 5.5, 1.5 / 5.5, 0.3 / plant.nominal_flux], rtol=1e-6)
    voltage = plant.voltage((0.5, -0.2), state, 0.0).stator
    assert complex(*map(float, voltage)) == pytest.approx(
        turned * (0.5 - 0.2j) * plant.unit, rel=1e-6
    )


def test_currents_for_a_torque() -> None:
    """They make it on the data sheet's machine; the synchronous machine's are the least for it."""
    for torque in (-110.0, 3.0, 80.0):
        d, q = PMSM().currents_for(np.float32(torque), None)
        machine = PMSM.nominal
        assert float(machine.torque(DQ(d, q))) == pytest.approx(torque, rel=1e-4)
        length, angle = np.hypot(d, q), np.arctan2(-d, abs(q))
        angles_beside = angle + np.array([-0.05, 0.05])
        assert (
            machine.torque(DQ(-length * np.sin(angles_beside), length * np.cos(angles_beside)))
            < abs(torque)
        ).all()
    d, q = SynRM().currents_for(np.float32(-1.2), None)
    assert float(SynRM.nominal.torque(DQ(d, q))) == pytest.approx(-1.2, rel=1e-5)
    assert float(d) == pytest.approx(-float(q), rel=1e-5)


def test_currents_of_the_excited_machine_lose_least() -> None:
    """No currents nearby with the same torque lose less."""
    plant = EESM()
    d, q, field = map(float, plant.currents_for(np.float32(40.0), Excited(0.0, 0.0, 60.0)))
    d, q, field = map(float, plant.currents_for(np.float32(40.0), Excited(d, q, field)))
    machine = plant.nominal
    assert float(machine.torque(Excited(d, q, field))) == pytest.approx(40, rel=1e-5)

    def losses(d: Any, q: Any, field: Any) -> Any:
        return 1.5 * machine.resistance * (d**2 + q**2) + machine.field_resistance * field**2

    other_d, other_field = np.meshgrid(
        d + np.linspace(-15, 15, 31), field + np.linspace(-15, 15, 31)
    )
    other_q = 40 / np.asarray(machine.torque(Excited(other_d, 1.0, other_field)))
    assert losses(d, q, field) <= losses(other_d, other_q, other_field).min() * (1 + 1e-6)


def test_doubly_fed_machine_is_seen_from_its_rotor_s_flux() -> None:
    """Currents that the controller asks for make the torque.

    Stator and rotor voltages turn with the field.
    """
    plant, turned = DFIM(), np.exp(2.1j)
    d, q, rotor_d = (
        float(i) for i in plant.currents_for(np.float32(5.0), plant.state_at_rest(plant.nominal))
    )
    machine = plant.nominal
    rotor_q = -machine.mutual_inductance / machine.rotor_inductance() * q
    stator, rotor = turned * complex(d, q), turned * complex(rotor_d, rotor_q)
    state = Currents(AlphaBeta(stator.real, stator.imag), AlphaBeta(rotor.real, rotor.imag))
    assert float(machine.torque(state)) == pytest.approx(5, rel=1e-5)
    np.testing.assert_allclose(
        plant.measure(state), [*np.array([d, q, rotor_d, rotor_q]) / 9, 1], rtol=1e-5
    )
    voltage = plant.voltage((0.5, -0.2, 0.1, 0.3), state, 0.0)
    assert complex(*map(float, voltage.stator)) == pytest.approx(
        turned * (0.5 - 0.2j) * plant.unit, rel=1e-5
    )
    assert complex(*map(float, voltage.rotor)) == pytest.approx(
        turned * (0.1 + 0.3j) * plant.unit, rel=1e-5
    )


def test_how_far_one_step_of_full_voltage_moves_currents() -> None:
    """Parts of the limit that trips, by the data sheet: the table in docs/families/drives.md."""
    moved = {}
    for name in ("EESMTorque-v0", "PMSMTorque-v0"):
        task: Any = card(name).build()
        plant = task.plant
        start, nominal = plant.state_at_rest(plant.nominal), Params(plant.nominal, None, 0.0, 0.0)
        for axis, full in zip(plant.voltages, np.eye(plant.inputs, dtype=np.float32), strict=True):
            next_state = task.machine_after(
                start, 0.0, plant.voltage(tuple(full), start, 0.0), nominal
            )
            moved[plant.current_limit, axis] = (
                np.array(next_state) - np.array(start)
            ) / plant.current_limit
    np.testing.assert_allclose(moved[150, "u_d"], [0.55, 0, -0.62], atol=0.005)
    np.testing.assert_allclose(moved[150, "u_q"], [0, 0.33, 0], atol=0.005)
    np.testing.assert_allclose(moved[150, "u_e"], [-0.71, 0, 0.91], atol=0.005)
    np.testing.assert_allclose(moved[400, "u_d"], [0.12, 0], atol=0.005)
    np.testing.assert_allclose(moved[400, "u_q"], [0, 0.04], atol=0.005)
    task = card("EESMTorque-v0").build()
    (player,) = agent("random").train(task, seed=0, budget="smoke")
    assert play(task, player, range(200)).length.mean() == pytest.approx(3.6, abs=0.5)


@pytest.mark.parametrize("plant", [DFIM(), EESM()], ids=["DFIM", "EESM"])
def test_windings_of_one_flux_are_given_as_much_as_both_converters_have(plant: Any) -> None:
    """Against the largest share by search."""
    units = np.array(plant.units)
    shares = np.linspace(0, 1, 20_001)
    for holding, changing in np.random.default_rng(0).normal(
        0, [[[0.3], [2.0]]] * 50, (50, 2, len(units))
    ):
        demand = (holding + shares[:, None] * changing).T
        first = np.hypot(*demand[:2])
        second = np.hypot(*demand[2:]) if len(units) == 4 else np.abs(demand[2])
        fits = np.maximum(first, second) <= 1
        granted = (
            np.array(plant.limit_changes(tuple(changing * units), tuple(holding * units))) / units
        )
        if fits[0] and np.maximum(first[0], second[0]) < 0.9:
            np.testing.assert_allclose(granted, shares[fits].max() * changing, atol=1e-3)


def test_switch_states_of_several_converters() -> None:
    """Each converter has its own voltage, whatever the other does."""
    link = PMSM().link
    vectors = [complex(*map(float, PMSM().phases(PMSM().legs(np.int32(k))))) for k in range(8)]
    assert vectors[4] == pytest.approx(link * 2 / 3)
    angle = 0.6
    for number in range(64):
        first, second = vectors[number % 8], vectors[number // 8]
        if number < 32:
            d, q, field = EESM().switched_voltage(np.int32(number), None, angle)
            assert complex(d, q) == pytest.approx(first * np.exp(-1j * angle), abs=1e-4)
            assert float(field) == (0, link, -link, 0)[number // 8]
        stator, rotor = DFIM().switched_voltage(np.int32(number), None, angle)
        assert complex(*stator) == pytest.approx(first * 1.4, abs=1e-3)
        assert complex(*rotor) == pytest.approx(second * 1.4 * np.exp(1j * angle), abs=1e-3)
        d, q, x, y = map(float, SixPhasePMSM().switched_voltage(np.int32(number), None, angle))
        first_system = complex(d + x, q - y) * np.exp(1j * angle)
        second_system = complex(d - x, q + y) * np.exp(1j * (angle - np.pi / 6))
        assert first_system == pytest.approx(first / 5, abs=1e-4)
        assert second_system == pytest.approx(second / 5, abs=1e-4)


def test_windings_of_the_six_phase_machine_stay_within_their_bridges() -> None:
    plant = SixPhasePMSM()
    for action in np.random.default_rng(0).uniform(-1, 1, (50, 4)):
        d, q, x, y = map(float, plant.limit_action(tuple(action)))
        longest = max(abs(complex(d + x, q - y)), abs(complex(d - x, q + y)))
        longest_demand = max(
            abs(complex(*action[:2]) + z * complex(action[2], -action[3])) for z in (1, -1)
        )
        assert longest == pytest.approx(min(longest_demand, 1), rel=1e-6)
        np.testing.assert_allclose(
            np.array([d, q, x, y]) * max(longest_demand, 1), action, rtol=1e-5
        )
    assert float(plant.length(DQXY(120.0, 160.0, 0.0, 240.0))) == pytest.approx(
        312.41 / 400, rel=1e-4
    )


@pytest.mark.parametrize(
    "name",
    [
        "SynRMCurrent-v0",
        "SCIMTorque-v0",
        "SeriesDcSpeed-v0",
        "PMSMCurrentFinite-v0",
        "EESMPosition-v0",
    ],
)
def test_contexts_never_overlap_and_setpoints_stay_within_bounds(name: str) -> None:
    task: Any = card(name).build()
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    keys = jax.random.split(jax.random.key(0), 4000)
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        low, high = (0.0, task.plant.nominal.inertia) if task.loaded else task.goal.speeds
        banded = params.load.inertia if task.loaded else params.speed
        band = (banded.astype(np.float64) - low) / (high - low) * 40
        assert set(np.floor(band)) == set(range(split, 40, 2))
        for values, nominal, tolerance in zip(
            params.machine, task.plant.nominal, task.plant.tolerance, strict=True
        ):
            ends = [nominal * (1 - tolerance), nominal * (1 + tolerance)]
            np.testing.assert_allclose([values.min(), values.max()], ends, rtol=0.01)
    keys = np.stack([seed_key(seed) for seed in range(256)])
    episodes, _ = jax.jit(jax.vmap(lambda seed: begin(task, seed, 0, TEST)))(keys)
    still = jnp.zeros(
        (256, *(task.action_space.shape or ())), np.int32 if task.finite else np.float32
    )

    def body(episodes: Any, _: None) -> Any:
        episodes, _ = jax.vmap(partial(advance, task), in_axes=(0, 0, None))(
            episodes, still, np.int32(500)
        )
        return episodes, jnp.stack(episodes.state.setpoint)

    walk = np.asarray(jax.jit(lambda e: jax.lax.scan(body, e, None, 400))(episodes)[1])
    for i, (low, high) in enumerate(zip(task.goal.low, task.goal.high, strict=True)):
        assert walk[:, i].min() >= low
        assert walk[:, i].max() <= high
    moves = np.diff(walk[:, 0], axis=0)
    inside = (walk[:-1, 0] > task.goal.low[0] + 0.2 * (task.goal.high[0] - task.goal.low[0])) & (
        walk[:-1, 0] < task.goal.high[0] - 0.2 * (task.goal.high[0] - task.goal.low[0])
    )
    pace = task.period / task.goal.period
    ratio = task.goal.fastest[0] / task.goal.slowest[0]
    deviation = pace * task.goal.slowest[0] * ratio ** np.asarray(episodes.params.pace)
    scaled = (moves / deviation)[inside]
    assert [scaled.mean(), scaled.std()] == pytest.approx([0, 1], abs=0.03)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(TypeError, match="controls drives"):
        Cascade.for_task(card("Inventory-v0").build())


@pytest.mark.parametrize("drive", DRIVES, ids=card_name)
def test_words_and_picture(drive: TaskCard) -> None:
    task: Any = drive.build()
    episode = begin_episode(task)
    words = task.describe(episode.state, episode.params)
    assert all(f"{name} " in words for name in (*task.names, *task.plant.measured_names))
    assert task.quantity.unit in words
    picture = task.draw(episode.state, episode.params)
    assert picture.shape == task.picture_shape
    assert (picture == [255, 0, 0]).all(-1).any()
    assert isinstance(task, Drive)


class Comparators(eqx.Module):
    """A rule of two comparators for the shunt-wound machine.

    One gives full voltage towards a current, the other chooses that current by the error of the
    speed.
    """

    task: Any = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        state, limit = view.state, self.task.plant.nominal_current
        current = jnp.clip(20 + 300 * (state.setpoint[0] - state.speed), -limit, limit)
        forwards, backwards = 1, 2  # switch states
        return jnp.where(state.electrical.armature < current, forwards, backwards).astype(
            jnp.int32
        ), memory


def test_the_reference_of_the_shunt_wound_machine_brakes() -> None:
    """It used to coast, and a rule of two comparators that brakes beat it by 7 % of the scale."""
    task: Any = card("ShuntDcSpeedFinite-v0").build()
    record = play(task, Cascade.for_task(task), range(32))
    rival = play(task, Comparators(task), range(32))
    score = task.card.scale().score
    assert score(float(rival.total.mean())) > 0.9
    assert score(float(record.total.mean())) > score(float(rival.total.mean())) - 0.03
    assert record.cost.mean() < task.card.constraint.limit


@pytest.mark.parametrize("converter", ["4qc", "2qc", "1qc"])
def test_the_shunt_wound_machine_asks_for_braking_torque_if_its_current_reverses(
    converter: str,
) -> None:
    task: Any = card("ShuntDcSpeed-v0", converter=converter).build()
    low, high = task.plant.speed_torques(begin_episode(task).state.electrical)
    nominal = 97 * 1.7e-3 * 10  # A, H, A of field
    assert float(high) == pytest.approx(nominal)
    assert float(low) == pytest.approx(0 if converter == "1qc" else -nominal)
    record = play(task, Cascade.for_task(task), range(32))
    assert record.info["success"].mean() > 0.9
    assert not record.terminated.any()
