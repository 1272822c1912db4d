"""Check FlockFormation against matrix exponentials, geometry, a plain observer, and stability.

Stability is by the criterion of Routh and Hurwitz.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl import flock_formation
from rlbench_suite.envs.marl.flock_formation import (
    COLLISION,
    HORIZONTAL_ACCELERATION,
    LOST_DISTANCE,
    MAX_OBSERVATION,
    MEMORY,
    SAFE_DISTANCE,
    SCALE,
    STEP,
    TURN_RATE,
    VERTICAL_ACCELERATION,
    FlockFormation,
    Leader,
    Params,
    State,
    Vehicles,
    formations,
    step_leader,
)
from rlbench_suite.envs.marl.formation_control import LAG, FormationControl
from rlbench_suite.numerics.process import precision

CARD = card("FlockFormation-v0")
N = CARD.agents


@pytest.fixture(scope="module")
def task() -> FlockFormation:
    return CARD.build()


@pytest.fixture(scope="module")
def exact() -> FlockFormation:
    """The task at float64, where rounding is far below what the tests look for."""
    return CARD.build(dtype="float64")


def random_params(rng: np.random.Generator, **fixed: float) -> Params:
    slots = rng.uniform(-2, 2, (2, N))
    values = {
        "heading": rng.uniform(-3, 3),
        "speed": rng.uniform(0, 2),
        "turn_rate": rng.uniform(-0.5, 0.5),
        "climb": rng.uniform(-0.3, 0.3),
        "wind_x": rng.uniform(-2, 2),
        "wind_y": rng.uniform(-2, 2),
        "drag": rng.uniform(0.2, 0.5),
        "lag": rng.uniform(0.1, 0.2),
    } | fixed
    return Params(*slots, **{name: np.float64(value) for name, value in values.items()})


def random_state(rng: np.random.Generator, spread: float = 3.0) -> State:
    vehicles = Vehicles(*rng.uniform(-spread, spread, (9, N)))
    return State(vehicles, Leader(*rng.uniform(-1, 1, 4)), np.float64(0.5))


def on_device(tree: State | Params) -> State | Params:
    return jax.tree.map(jnp.asarray, tree)


# -- dynamics --------------------------------------------------------------------------------------


def test_a_step_is_the_matrix_exponential(exact: FlockFormation) -> None:
    """The equations are linear under a constant command, so the matrix exponential solves them.

    RK4's error a step is below (STEP / lag)^5 / 120 = 2.6e-4 of what the acceleration moves at the
    shortest lag, which STEP^2 / 2 turns into micrometres.
    """
    rng = np.random.default_rng(0)
    step = jax.jit(exact.transition)
    for _ in range(5):
        state, params, action = random_state(rng), random_params(rng), rng.uniform(-1, 1, (N, 3))
        with precision(exact):
            after = step(on_device(state), jnp.asarray(action), None, on_device(params)).vehicles
        for i in range(N):
            horizontal = action[i, :2] * HORIZONTAL_ACCELERATION / max(1, np.hypot(*action[i, :2]))
            command = [*horizontal, VERTICAL_ACCELERATION * action[i, 2]]
            for axis, wind in enumerate((params.wind_x, params.wind_y, 0.0)):
                # Of (position, velocity, acceleration, 1).
                matrix = np.array([
                    [0, 1, 0, 0],
                    [0, -params.drag, 1, params.drag * wind],
                    [0, 0, -1 / params.lag, command[axis] / params.lag],
                    [0, 0, 0, 0],
                ])  # fmt: skip
                start = [*(state.vehicles[k + axis][i] for k in (0, 3, 6)), 1]
                position, velocity, acceleration, _ = expm(matrix * STEP) @ start
                assert float(after[axis][i]) == pytest.approx(position, abs=1e-5)
                assert float(after[3 + axis][i]) == pytest.approx(velocity, abs=1e-4)
                assert float(after[6 + axis][i]) == pytest.approx(acceleration, abs=3e-3)


def test_the_leader_flies_a_circle(exact: FlockFormation) -> None:
    """300 steps agree with the closed form, also in straight flight.

    The heading stays within one turn.
    """
    for turn_rate in (0.5, -0.31, 0.0):
        params = random_params(
            np.random.default_rng(1), speed=1.7, turn_rate=turn_rate, heading=3.0, climb=0.2
        )
        with precision(exact):
            params = on_device(params)
            leader = Leader(*(jnp.zeros(()),) * 3, params.heading)
            path = jax.jit(
                lambda leader, p: jax.lax.scan(
                    lambda now, _: (step_leader(now, p),) * 2, leader, length=300
                )[1]
            )(leader, params)
        t = STEP * np.arange(1, 301)
        if turn_rate:
            radius = 1.7 / turn_rate
            x = radius * (np.sin(3 + turn_rate * t) - math.sin(3))
            y = -radius * (np.cos(3 + turn_rate * t) - math.cos(3))
        else:
            x, y = 1.7 * t * math.cos(3), 1.7 * t * math.sin(3)
        np.testing.assert_allclose(path.x, x, atol=1e-7)
        np.testing.assert_allclose(path.y, y, atol=1e-7)
        np.testing.assert_allclose(path.z, 0.2 * t, atol=1e-12)
        assert np.abs(path.heading).max() <= math.pi
        np.testing.assert_allclose(
            np.exp(1j * np.asarray(path.heading)), np.exp(1j * (3 + turn_rate * t)), atol=1e-12
        )


def test_slot_velocities_are_the_slots_motion(exact: FlockFormation) -> None:
    """Velocities agree with central differences of the slots' places over one step either way.

    Their error is STEP^2 / 6 times the jerk, below 1e-3.
    """
    rng = np.random.default_rng(2)
    params = random_params(rng)
    still = Vehicles(*np.zeros((9, N)))

    def slots(leader: Leader) -> np.ndarray:
        return np.array(flock_formation.errors(still, leader, params))

    leaders = [Leader(*map(np.float64, (1.0, 2.0, 0.5, 0.7)))]
    with precision(exact):
        for _ in range(2):
            leaders.append(step_leader(Leader(*map(jnp.asarray, leaders[-1])), on_device(params)))
        before, now, after = (slots(leader) for leader in leaders)
    np.testing.assert_allclose(now[3:], (after[:3] - before[:3]) / (2 * STEP), atol=1e-3)
    assert np.abs(now[3:5]).max() > 0.1


def test_formations_are_rigid_and_one_apart() -> None:
    for slots in formations(N):
        apart = np.hypot(*(slots[:, None] - slots).transpose(2, 0, 1)) + 9 * np.eye(N)
        np.testing.assert_allclose(apart.min(1), 1)
        assert abs(slots[:, 1].mean()) < 1e-12, "left and right alike"
    wedge, ring, line = formations(N)
    np.testing.assert_allclose(np.hypot(*ring.T), np.hypot(*ring[0]))
    assert (wedge[1:, 0] < 0).all(), "the leader's slot is the tip"
    assert (line[:, 0] == 0).all()


# -- contexts and starts ---------------------------------------------------------------------------


def test_train_and_test_distances_never_meet(task: FlockFormation) -> None:
    sample = jax.jit(jax.vmap(task.sample_params, (0, None)))
    keys = jax.random.split(jax.random.key(0), 3000)
    bands = []
    for split in (0, 1):
        params = sample(keys, jnp.int32(split))
        slots = np.stack([params.slot_ahead, params.slot_left], -1).astype(float)
        spacing = np.hypot(*(slots[:, :, None] - slots[:, None]).transpose(3, 0, 1, 2))
        spacing = (spacing + 9 * np.eye(N)).min((1, 2))
        place = (spacing - 0.7) / 0.04
        assert ((place > 0) & (place < 20)).all()
        bands.append(set(np.floor(place).astype(int)))
        assert np.abs(place - np.round(place)).min() > 0.04, "a gap at every border"
        assert np.abs(params.turn_rate).max() <= TURN_RATE
        assert 0.5 <= params.speed.min() <= params.speed.max() <= 1.0  # medium: up to 1 m/s
    assert bands == [set(range(0, 20, 2)), set(range(1, 20, 2))]


def test_starts_are_apart_and_any_cell_is_any_vehicles(task: FlockFormation) -> None:
    params = on_device(random_params(np.random.default_rng(3)))
    states = jax.jit(jax.vmap(task.initial, (0, None)))(
        jax.random.split(jax.random.key(1), 2000), params
    )
    x, y = np.asarray(states.vehicles.x), np.asarray(states.vehicles.y)
    apart = np.hypot(x[:, :, None] - x[:, None], y[:, :, None] - y[:, None]) + 9 * np.eye(N)
    assert apart.min() >= 0.6 - 1e-5
    cell = np.round(x / 1.2) * 3 + np.round(y / 1.2)
    for vehicle in range(N):
        counts = np.unique(cell[:, vehicle], return_counts=True)[1]
        assert len(counts) == 9
        np.testing.assert_allclose(counts, 2000 / 9, atol=5 * math.sqrt(2000 / 9))


# -- what is seen and paid -------------------------------------------------------------------------


def test_observation_reward_cost_and_ends_by_plain_python(exact: FlockFormation) -> None:
    rng = np.random.default_rng(4)
    see, pay, charge, over = map(
        jax.jit, (exact.observation, exact.reward, exact.cost, exact.terminal)
    )
    ends = []
    for trial in range(60):
        params, state = random_params(rng), random_state(rng, spread=(0.3, 1.0, 9.0)[trial % 3])
        v, leader = state.vehicles, state.leader
        place, velocity = np.array(v[:3]).T, np.array(v[3:6]).T
        cos, sin = math.cos(leader.heading), math.sin(leader.heading)
        turn = np.array([[cos, -sin], [sin, cos]])
        slot_offset = np.c_[
            np.stack([params.slot_ahead, params.slot_left], 1) @ turn.T, np.zeros(N)
        ]
        slot = np.array(leader[:3]) + slot_offset
        leader_velocity = np.array([params.speed * cos, params.speed * sin, params.climb])
        slot_velocity = leader_velocity + np.cross([0, 0, params.turn_rate], slot_offset)
        rows, rewards = [], []
        pairs = [np.linalg.norm(place[i] - place[j]) for i in range(N) for j in range(i)]
        for i in range(N):
            neighbours = sorted(
                (j for j in range(N) if j != i), key=lambda j: np.linalg.norm(place[j] - place[i])
            )
            offsets = [slot[i] - place[i], slot_velocity[i] - velocity[i], velocity[i]]
            near = [
                offset
                for j in neighbours[:2]
                for offset in (place[j] - place[i], velocity[j] - velocity[i])
            ]
            thrust = np.array(
                [
                    v.ax[i] / HORIZONTAL_ACCELERATION,
                    v.ay[i] / HORIZONTAL_ACCELERATION,
                    v.az[i] / VERTICAL_ACCELERATION,
                ]
            )
            row = np.concatenate(
                [
                    *(p / SCALE for p in offsets),
                    thrust,
                    *(p / SCALE for p in near),
                    [params.turn_rate / 0.5],
                ]
            )
            rows.append(np.clip(row, -MAX_OBSERVATION, MAX_OBSERVATION))
            nearest = np.linalg.norm(place[neighbours[0]] - place[i])
            proximity = min(max((0.4 - nearest) / 0.15, 0), 1)
            rewards.append(1 / (1 + np.linalg.norm(offsets[0]) / 0.25) - proximity)
        lost = any(np.linalg.norm(slot[i] - place[i]) > LOST_DISTANCE for i in range(N))
        with precision(exact):
            there, context = on_device(state), on_device(params)
            np.testing.assert_allclose(see(there, None, context), rows, atol=1e-12)
            np.testing.assert_allclose(pay(there, None, there, None, context), rewards, atol=1e-12)
            assert float(charge(there, None, there, context)) == sum(
                pair < SAFE_DISTANCE for pair in pairs
            )
            assert bool(over(there, None, context)) == (lost or min(pairs) < COLLISION)
        ends.append((lost, min(pairs) < COLLISION))
    assert {(True, False), (False, True), (False, False)} <= set(ends)


def test_success_is_an_average_over_the_last_second(exact: FlockFormation) -> None:
    """The average decays by 1 - STEP / MEMORY a step when vehicles sit in their slots."""
    params = random_params(
        np.random.default_rng(5), speed=0, turn_rate=0, climb=0, wind_x=0, wind_y=0, heading=0
    )
    params = params._replace(slot_ahead=formations(N)[1][:, 0], slot_left=formations(N)[1][:, 1])
    zero = np.zeros(N)
    vehicles = Vehicles(params.slot_ahead, params.slot_left, *(zero,) * 7)
    steps = 0
    with precision(exact):
        state = on_device(State(vehicles, Leader(*(np.float64(0),) * 4), np.float64(1.0)))
        step = jax.jit(exact.transition)
        while not bool(exact.info(state, on_device(params))["success"]):
            state = step(state, jnp.zeros((N, 3)), None, on_device(params))
            steps += 1
    assert steps == math.ceil(math.log(0.1) / math.log(1 - STEP / MEMORY))


# -- the reference player --------------------------------------------------------------------------


def test_gains_are_stable_for_every_lag_and_drag(task: FlockFormation) -> None:
    """The loop of one vehicle and its controller is stable near the slot, by its roots.

    The lag is the one assumed before it is measured.
    """
    player = FormationControl.for_task(task)
    for lag in (0.1, 0.15, 0.2):
        for drag in (0.0, 0.2, 0.5):
            # a' = lead (wanted - a) / lag, velocity' = a - drag velocity, wanted = -stiffness
            # (velocity + slope place)
            lead = min(1 / (1 - np.exp(-STEP / LAG)), player.lead)
            pull = lead / lag
            loop = np.polymul([1, pull], [1, drag, 0])
            roots = np.roots(
                np.polyadd(loop, pull * player.stiffness * np.array([1, player.slope]))
            )
            assert roots.real.max() < -0.3


@pytest.mark.parametrize("tier", ["easy", "hard"])
def test_the_reference_gathers_without_collision(tier: str) -> None:
    task: FlockFormation = CARD.build(difficulty=tier)
    record = play(task, FormationControl.for_task(task), range(64))
    assert record.terminated.mean() <= 1 / 64, "it collides in two of a thousand flights"
    assert record.info["success"].mean() > 0.97
    assert np.median(record.info["formation_error"]) < 0.05
    idle = play(task, Constant(np.zeros((N, 3), np.float32)), range(20))
    assert record.total.mean() > 220 + idle.total.mean()


def test_it_measures_wind_and_lag(task: FlockFormation) -> None:
    """After two seconds the estimates are the truth, which the vehicles are not shown."""
    env = TaskEnv(task, split="test")
    player = FormationControl.for_task(task)
    act = jax.jit(
        lambda memory, observation: player.act(memory, View(observation, None, None, None), None)
    )
    observation, _ = env.reset(seed=3)
    memory = player.initial(env.params)
    for _ in range(40):
        action, memory = act(memory, observation)
        observation, *_ = env.step(np.asarray(action))
    share = np.asarray(memory.response / memory.requested)[:, 0]
    np.testing.assert_allclose(share, 1 - np.exp(-STEP / float(env.params.lag)), rtol=0.05)
    params, vehicles = env.params, env.episode.state.vehicles
    drift = -np.stack([
        float(params.drag) * (np.asarray(vehicles.vx) - float(params.wind_x)),
        float(params.drag) * (np.asarray(vehicles.vy) - float(params.wind_y)),
        float(params.drag) * np.asarray(vehicles.vz),
    ], 1)  # fmt: skip
    np.testing.assert_allclose(memory.disturbance, drift, atol=0.15)


# -- views -----------------------------------------------------------------------------------------


def test_words_and_picture(task: FlockFormation) -> None:
    env = TaskEnv(task)
    observation, _ = env.reset(seed=0)
    lines = task.describe(env.episode.state, env.params).splitlines()
    assert len(lines) == N + 1
    x, y, z = SCALE * observation[2, :3]
    assert lines[3].startswith(f"agent_2: slot at ({x:+.2f}, {y:+.2f}, {z:+.2f}) m")
    picture = task.draw(env.episode.state, env.params)
    assert picture.shape == task.picture_shape
    env.step(np.ones((N, 3), np.float32))
    assert (task.draw(env.episode.state, env.params) != picture).any()


def test_why_an_episode_is_over(task: FlockFormation) -> None:
    params, state = random_params(np.random.default_rng(6)), random_state(np.random.default_rng(6))
    close = state._replace(vehicles=state.vehicles._replace(**{a: np.full(N, 0.05) for a in "xyz"}))
    assert "collision" in task.why_over(close, params, task.info(close, params))
    scattered = state._replace(vehicles=state.vehicles._replace(x=np.arange(N) * 50.0))
    assert "lost" in task.why_over(scattered, params, task.info(scattered, params))


def test_a_speed_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="m/s"):
        CARD.build(difficulty=10)
