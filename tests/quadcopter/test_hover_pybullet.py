"""Check Bullet's hover against closed forms, Runge-Kutta, and episodes of the pure task."""

from __future__ import annotations

import io
import math
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from safetensors.numpy import load_file
from scipy.spatial.transform import Rotation

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.scripted import RandomAgent
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.control.geometric import GeometricControl
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.physics.dynamics import Quadcopter, Rotors
from rlbench_suite.envs.quadcopter.physics.rigid_body import GRAVITY, RigidBody
from rlbench_suite.envs.quadcopter.tasks import hover_pybullet
from rlbench_suite.evaluation import protocol
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs import players, runner
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.statistics.aggregates import means
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry
from rlbench_suite.leaderboard.verify import verify

pybullet = pytest.importorskip("pybullet")
pytestmark = pytest.mark.of_variants

PURE, HOST = "rlsuite/QuadcopterHover-v0", "rlsuite/QuadcopterHoverPyBullet-v0"
NOMINAL = jax.tree.map(float, dynamics.NOMINAL)
WITHOUT_ROTORS = NOMINAL._replace(thrust_coefficient=0.0)
STILL = Rotors(0.0, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def bullet() -> hover_pybullet.Bullet:
    return hover_pybullet.connection()


def body_at_rest(**fields: float) -> RigidBody:
    return RigidBody(*[0.0] * 3, 1.0, *[0.0] * 9)._replace(**fields)


def commands(seed: int, steps: int) -> np.ndarray:
    """Return random actions ``(steps, 4)``, all rotors together and a little apart.

    So the vehicle turns and does not tumble.
    """
    rng = np.random.default_rng(seed)
    return 0.33 + rng.uniform(-0.2, 0.2, (steps, 1)) + rng.uniform(-0.02, 0.02, (steps, 4))


def leaves(tree: Any) -> list[Any]:
    return jax.tree.leaves(tree)


# -- physics ---------------------------------------------------------------------------------------


def test_free_fall(bullet: hover_pybullet.Bullet) -> None:
    vehicle = Quadcopter(body_at_rest(vx=1.0, vz=0.5), STILL)
    for _ in range(100):
        vehicle = bullet.fly(vehicle, STILL, WITHOUT_ROTORS)
    t, step = 1.0, dynamics.STEP / hover_pybullet.BULLET_STEPS
    body = vehicle.body
    assert body.vz == pytest.approx(0.5 - GRAVITY * t, abs=1e-12)
    assert body.vx == pytest.approx(1.0, abs=1e-12), (
        "Bullet's default damping would slow it down by 8 %"
    )
    # Semi-implicit Euler moves by the velocity at the end of each step: g h t / 2 further than a
    # parabola.
    assert body.z == pytest.approx(0.5 * t - 0.5 * GRAVITY * t * (t + step), abs=1e-12)
    assert body.x == pytest.approx(t, abs=1e-12)


def test_hover_stays(bullet: hover_pybullet.Bullet) -> None:
    speed = math.sqrt(dynamics.MASS * GRAVITY / (4 * dynamics.THRUST_COEFFICIENT))
    vehicle = Quadcopter(body_at_rest(), Rotors(*[speed] * 4))
    for _ in range(100):
        vehicle = bullet.fly(vehicle, vehicle.rotors, NOMINAL)
    assert np.abs(np.array(vehicle.body) - np.array(body_at_rest())).max() < 1e-11
    assert np.array(vehicle.rotors) == pytest.approx(np.full(4, speed), rel=1e-14)


def test_a_climb_behind_lagging_motors(bullet: hover_pybullet.Bullet) -> None:
    """The impulse of rotors that approach a command exponentially has a closed form.

    Midpoints miss it by order two.
    """
    goal, t, lag, k = 2000.0, 0.1, dynamics.MOTOR_TIME_CONSTANT, dynamics.THRUST_COEFFICIENT
    start_error = 1000.0 - goal
    vehicle = Quadcopter(body_at_rest(), Rotors(*[1000.0] * 4))
    for _ in range(10):
        vehicle = bullet.fly(vehicle, Rotors(*[goal] * 4), NOMINAL)
    decay = math.exp(-t / lag)
    squares = (
        goal**2 * t
        + 2 * goal * start_error * lag * (1 - decay)
        + 0.5 * start_error**2 * lag * (1 - decay**2)
    )
    assert vehicle.rotors.r1 == pytest.approx(goal + start_error * decay, rel=1e-12)
    assert vehicle.body.vz == pytest.approx(4 * k * squares / dynamics.MASS - GRAVITY * t, abs=1e-5)


def test_free_rotation_of_a_symmetric_top() -> None:
    """Without torque it turns at a constant rate about its angular momentum.

    It turns at another constant rate about its own axis.
    """
    rates, t = np.array([10.0, 0.0, 20.0]), 0.1
    jx, _, jz = dynamics.INERTIA
    momentum = rates * dynamics.INERTIA
    expected_rotation = Rotation.from_rotvec(momentum / jx * t) * Rotation.from_rotvec(
        [0, 0, (1 - jz / jx) * rates[2] * t]
    )
    errors = []
    for steps in (16, 32, 64):
        bullet = hover_pybullet.Bullet(steps)
        vehicle = Quadcopter(body_at_rest(wx=rates[0], wz=rates[2]), STILL)
        for _ in range(10):
            vehicle = bullet.fly(vehicle, STILL, WITHOUT_ROTORS)
        body = vehicle.body
        errors.append(
            (
                expected_rotation.inv() * Rotation.from_quat([body.qx, body.qy, body.qz, body.qw])
            ).magnitude()
        )
    assert errors[1] < 0.002
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.02)


def test_open_loop_flights_are_those_of_runge_kutta_but_for_the_error_of_order_one() -> None:
    """Positions lead by h/2 times the change of velocity, as with any semi-implicit Euler.

    The test allows twice that.
    """
    count, length = 8, 50
    task, pure = card(HOST).build(dtype="float64"), card(PURE).build(dtype="float64")
    starts = []
    for seed in range(count):
        env: Any = gymnasium.make(HOST, dtype="float64").unwrapped
        env.reset(seed=seed)
        starts.append((env.episode.state, jax.tree.map(float, env.params)))
    assert task.observation_space == pure.observation_space
    actions = np.stack([commands(seed, length) for seed in range(count)])

    with jax.enable_x64(True):

        @jax.jit
        @jax.vmap
        def fly_runge_kutta(vehicle: Any, airframe: Any, actions: Any) -> Any:
            def step(vehicle: Any, action: Any) -> Any:
                vehicle = dynamics.step(
                    vehicle, dynamics.commanded_speeds(action), airframe, dynamics.STEP
                )
                return vehicle, jnp.stack([*vehicle.body, *vehicle.rotors])

            return jax.lax.scan(step, vehicle, actions)[1]

        states, airframes = jax.tree.map(lambda *leaves: np.stack(leaves), *starts)
        expected = np.asarray(fly_runge_kutta(states, airframes, actions))

    def fly_paths(steps: int) -> np.ndarray:
        bullet = hover_pybullet.Bullet(steps)
        paths = []
        for (vehicle, airframe), flight_actions in zip(starts, actions, strict=True):
            path, now = [], vehicle
            for action in flight_actions:
                now = bullet.fly(
                    now,
                    Rotors(*(dynamics.rotor_speed(float(command)) for command in action)),
                    airframe,
                )
                path.append([*now.body, *now.rotors])
            paths.append(path)
        return np.array(paths)

    paths_in_bullet = fly_paths(hover_pybullet.BULLET_STEPS)
    paths_at_half_steps = fly_paths(2 * hover_pybullet.BULLET_STEPS)
    # rotors: the same closed form.
    np.testing.assert_allclose(paths_in_bullet[..., 13:], expected[..., 13:], rtol=1e-13)
    step = dynamics.STEP / hover_pybullet.BULLET_STEPS
    first = np.array([[*vehicle.body[7:10]] for vehicle, _ in starts])[:, None]
    change = np.linalg.norm(expected[..., 7:10] - first, axis=-1)
    error, smaller = (
        np.linalg.norm(path[..., :3] - expected[..., :3], axis=-1)
        for path in (paths_in_bullet, paths_at_half_steps)
    )
    assert change.max() > 2
    assert (error <= step * np.maximum.accumulate(change, axis=1)).all()
    assert error.max() < 1e-3
    np.testing.assert_allclose((error / smaller)[:, -1], 2, rtol=0.02)


# -- episodes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["train", "test", 5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_seed_is_one_episode_in_both_simulators(split: str | int, dtype: str) -> None:
    pure, host = (gymnasium.make(name, split=split, dtype=dtype).unwrapped for name in (PURE, HOST))
    for seed in (3, None, 2**40):
        (pure_observation, pure_info), (host_observation, host_info) = (
            pure.reset(seed=seed),
            host.reset(seed=seed),
        )
        np.testing.assert_array_equal(pure_observation, host_observation)
        assert pure_info["distance"] == host_info["distance"]
        for host_leaf, pure_leaf in zip(
            leaves((host.episode.state, host.params)),
            leaves((pure.episode.state, pure.params)),
            strict=True,
        ):
            assert float(host_leaf) == float(pure_leaf)


def test_steps_are_judged_by_the_words_of_the_pure_task() -> None:
    pure, host = (
        gymnasium.make(name, split="test", dtype="float64").unwrapped for name in (PURE, HOST)
    )
    pure.reset(seed=0)
    host.reset(seed=0)
    for action in commands(0, 10):
        observation, reward, _, _, info = host.step(action)
        body = host.episode.state.body
        cost = (
            5 * np.dot(body[:3], body[:3])
            + 5 * (1 - body.qw**2)
            + 0.01 * np.dot(body[7:10], body[7:10])
        )
        cost += 0.01 * ((action - 0.334) ** 2).sum()
        assert reward == pytest.approx(math.exp(-cost), rel=1e-12)
        assert info["distance"] == pytest.approx(math.hypot(*body[:3]), rel=1e-12)
        pure_observation, worth, *_ = pure.step(action)
        np.testing.assert_allclose(observation, pure_observation, atol=5e-3)
        assert reward == pytest.approx(worth, abs=1e-3)
    assert host.render() is None
    assert host.task.describe(host.episode.state, host.params).startswith("Position x")


def test_own_weights_of_the_reward_count_in_both_simulators() -> None:
    context = {"reward": {"position": 1.0, "attitude": 0.0, "velocity": 0.2, "effort": 0.5}}
    pure, host = (
        gymnasium.make(name, dtype="float64", context=context).unwrapped for name in (PURE, HOST)
    )
    for seed, action in enumerate(commands(0, 3)):
        pure.reset(seed=seed)
        host.reset(seed=seed)
        reward, body = host.step(action)[1], host.episode.state.body
        cost = (
            np.dot(body[:3], body[:3])
            + 0.2 * np.dot(body[7:10], body[7:10])
            + 0.5 * ((action - 0.334) ** 2).sum()
        )
        assert reward == pytest.approx(math.exp(-cost), rel=1e-12)
        assert reward == pytest.approx(pure.step(action)[1], abs=1e-3)


def test_the_reference_flies_as_well_as_in_the_pure_task() -> None:
    pure, host = (play(card(name).build(), GeometricControl(), range(32)) for name in (PURE, HOST))
    assert not host.terminated.any()
    np.testing.assert_allclose(host.total, pure.total, rtol=0.01)


def test_a_data_sheet_flies_alike_in_both_simulators() -> None:
    """A vehicle 27 times as heavy, with arms six times as long, flies alike.

    The shipped arm or full speed would crash it.
    """
    sheet = {
        "mass": [0.68, 0.75],
        **{"inertia_x": 0.007, "inertia_y": 0.007, "inertia_z": 0.012},
        **{
            "thrust_coefficient": 8.54858e-6,
            "torque_coefficient": 0.016,
            "motor_time_constant": 0.02,
        },
        **{"arm_length": 0.17, "rotor_speed_limit": 838},
    }
    pure, host = (card(name, context=sheet).build() for name in (PURE, HOST))
    assert protocol.training_task(host).card == pure.card
    flights = [play(task, reference_player(task), range(16)) for task in (pure, host)]
    assert not flights[1].terminated.any()
    np.testing.assert_allclose(flights[1].total, flights[0].total, rtol=0.01)


def test_its_actions_replay_to_the_bit() -> None:
    task = card(HOST).build()
    record = play(task, GeometricControl(), range(3), limit=500)
    again = replay(task, record.actions, range(3))
    np.testing.assert_array_equal(again.total, record.total)
    changed = record.actions.copy()
    changed[0, 5] = -changed[0, 5]
    assert replay(task, changed, range(3)).total[0] != record.total[0]


def test_a_state_put_back_goes_on_as_before_and_so_does_the_next_episode() -> None:
    env: Any = gymnasium.make(HOST).unwrapped
    env.reset(seed=3)
    for action in commands(3, 10):
        env.step(action.astype(np.float32))
    saved = env.episode

    def play_on() -> list[bytes]:
        observations = [
            env.step(action.astype(np.float32))[0].tobytes() for action in commands(4, 10)
        ]
        return [*observations, repr(env.episode.state).encode(), env.reset()[0].tobytes()]

    before = play_on()
    env.reset(seed=9)
    env.episode = saved
    assert play_on() == before


def play_episode(seed: int) -> bytes:
    env: Any = gymnasium.make(HOST).unwrapped
    env.reset(seed=seed)
    for action in commands(seed, 100):
        if env.step(action.astype(np.float32))[2]:
            break
    return repr(env.episode.state).encode()


def test_vehicles_that_share_bullet_do_not_touch_each_other() -> None:
    alone = [play_episode(seed) for seed in range(4)]
    envs: Any = [gymnasium.make(HOST).unwrapped for _ in range(4)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    flying = [True] * 4
    for actions in zip(*(commands(seed, 100) for seed in range(4)), strict=True):
        for number, action in enumerate(actions):
            if flying[number]:
                flying[number] = not envs[number].step(action.astype(np.float32))[2]
    assert [repr(env.episode.state).encode() for env in envs] == alone
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(play_episode, range(4))) == alone
    finally:
        sys.setswitchinterval(interval)


# -- transfer --------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent and an evaluation that take seconds."""
    monkeypatch.setitem(protocol.EPISODES, "smoke", 4)
    monkeypatch.setattr(players, "_find_agent", lambda name: PPO(total_steps=100_000))


def test_agents_train_in_the_pure_task_and_are_judged_here(small: None, tmp_path: Path) -> None:
    manifest = runner.plan("ppo", f"{PURE},{HOST}", seeds=2, budget="smoke")
    assert manifest.hyperparameters["ppo"][HOST] == manifest.hyperparameters["ppo"][PURE]
    with OpenRun.open(tmp_path / "run", manifest) as run, run.sitting():
        assert [event.kind for event in runner.in_process(run) if event.kind == "failed"] == []
        cells = {
            name: [run.result(Cell("ppo", name, seed)) for seed in range(2)]
            for name in (PURE, HOST)
        }
        weights = {
            (name, seed): load_file(run.cell_path(Cell("ppo", name, seed)) / "policy.safetensors")
            for name in (PURE, HOST)
            for seed in range(2)
        }
        for layer in weights[PURE, 0]:
            for seed in range(2):
                np.testing.assert_array_equal(
                    weights[PURE, seed][layer], weights[HOST, seed][layer]
                )
        assert any(
            (weights[PURE, 0][layer] != weights[PURE, 1][layer]).any() for layer in weights[PURE, 0]
        )

        # Its traces replay in Bullet, and the judge of the leaderboard finds nothing wrong.
        task = card(HOST).build()
        seeds, actions = run.read_trace(Cell("ppo", HOST, 1), task)
        assert replay(task, actions, seeds).total.mean() == pytest.approx(
            cells[HOST][1].mean_return, rel=1e-12
        )
        run.merge()
        report = Report.of(run)
    pack(tmp_path / "run", Entry(name="ppo", agent="ppo"), tmp_path / "ppo-v1.zip")
    assert verify(tmp_path / "ppo-v1.zip").problems == ()

    # The gap is that of pairs.
    gaps = [here.score - there.score for here, there in zip(cells[HOST], cells[PURE], strict=True)]
    (transfer,) = report.transfers
    assert (transfer.agent, transfer.card.id) == ("ppo", HOST)
    assert transfer.gap.point == pytest.approx(np.mean(gaps), rel=1e-12)
    assert transfer.gap == means([{HOST: gaps}])[0]  # an interval of unpaired scores is another one
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=120))
    printed_gap = f"{transfer.gap.point:+.2g}"
    assert re.search(
        rf"QuadcopterHoverPyBullet-v0 +ppo +QuadcopterHover-v0 +{re.escape(printed_gap)} ",
        stream.getvalue(),
    )
    write_html(report)
    assert (
        f"<td>QuadcopterHover-v0</td><td>{printed_gap}"
        in (tmp_path / "run" / "report.html").read_text()
    )

    # A cell that was lost is made again as it was.
    before = pq.read_table(tmp_path / "run" / "episodes.parquet")
    shutil.rmtree(tmp_path / "run" / "cells" / "ppo" / card(HOST).name / "1")
    with OpenRun.open(tmp_path / "run", manifest, resume=True) as run, run.sitting():
        assert run.missing() == [Cell("ppo", HOST, 1)]
        list(runner.in_process(run))
        run.merge()
    assert pq.read_table(tmp_path / "run" / "episodes.parquet").equals(before)


def test_without_the_task_of_training_a_report_says_what_it_lacks(
    small: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(players, "_find_agent", lambda name: RandomAgent())
    with (
        OpenRun.open(tmp_path, runner.plan("random", HOST, seeds=1, budget="smoke")) as run,
        run.sitting(),
    ):
        list(runner.in_process(run))
        report = Report.of(run)
    assert report.transfers == []
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=200))
    assert f"random plays a policy trained on {PURE}. Run it there too" in " ".join(
        stream.getvalue().split()
    )


@pytest.mark.parametrize(
    ("trained_on", "message"),
    [
        ("rlsuite/QuadcopterLand-v0", "(?s)observation space .* to train on has"),
        ("rlsuite/QuadcopterHoover-v0", "Did you mean 'rlsuite/QuadcopterHover-v0'"),
    ],
)
def test_a_task_to_train_on_must_be_there_and_show_the_same(trained_on: str, message: str) -> None:
    changed = replace(card(HOST), trained_on=trained_on)
    task: Any = hover_pybullet.QuadcopterHoverPyBullet(changed, difficulty=None, dtype="float32")
    with pytest.raises(ValueError, match=message):
        protocol.training_task(task)


# -- the connection --------------------------------------------------------------------------------


def test_a_reset_loads_nothing(
    monkeypatch: pytest.MonkeyPatch, bullet: hover_pybullet.Bullet
) -> None:
    envs: Any = [gymnasium.make(HOST).unwrapped for _ in range(3)]

    def refuse(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("loaded again")

    for name in ("connect", "resetSimulation", "createMultiBody", "loadURDF", "removeBody"):
        monkeypatch.setattr(pybullet, name, refuse)
    for env in envs:
        for seed in (0, None, 1):
            env.reset(seed=seed)
            env.step(np.zeros(4, np.float32))
        assert env._simulator.bullet is bullet
    assert pybullet.getNumBodies(physicsClientId=bullet.client) == 1


def test_the_last_to_close_disconnects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hover_pybullet, "_connected", WeakValueDictionary())
    first, second = gymnasium.make(HOST), gymnasium.make(HOST)
    client = first.unwrapped._simulator.bullet.client
    first.reset(seed=0)
    second.reset(seed=0)
    first.close()
    with pytest.raises(gymnasium.error.Error, match="closed"):
        first.step(np.zeros(4, np.float32))
    second.step(np.zeros(4, np.float32))
    assert pybullet.isConnected(client)
    second.close()
    assert not pybullet.isConnected(client)


def test_without_pybullet_the_rest_of_a_suite_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pybullet", None)
    monkeypatch.setattr(hover_pybullet, "_connected", WeakValueDictionary())
    with pytest.raises(ImportError, match=r"rlbench-suite\[pybullet\]"):
        gymnasium.make(HOST)
    plan = runner.plan("random", f"{HOST},{PURE}", seeds=1, budget="smoke")
    assert "rlbench-suite[pybullet]" in plan.not_applicable["random"][HOST]
    assert list(plan.hyperparameters["random"]) == [PURE]
