"""Every drive with ``gem_compat=True`` beside recorded episodes of gym-electric-motor 3.0.3.

``PYTHON tests/motor/gem/record_gem.py`` with a Python that has gym-electric-motor 3.0.3 records
``gem_episodes.json``: two episodes of each of its sixty ids, with the peer's own integrator, whose
error bounds what can be asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from record_gem import PUSH, push, wave
from scipy import stats

from rlbench_suite.core import registry
from rlbench_suite.envs.motor.gem import walk_setpoint
from rlbench_suite.envs.motor.gem.drive import GemDrive, State, peer_id
from rlbench_suite.envs.motor.gem.environment import environment
from rlbench_suite.envs.motor.gem.walk_setpoint import Walk, Wiener, setpoint

pytestmark = pytest.mark.of_variants

EPISODES = json.loads((Path(__file__).parent / "gem_episodes.json").read_text())
GOLDEN = json.loads((Path(__file__).parent / "gem_golden.json").read_text())
DRIVES = [
    drive
    for drive in registry.cards().values()
    if True in registry.allowed_settings(drive).get("gem_compat", ())
]
SELECTED_DRIVES = ["PMSMCurrent-v0", "ExtExDcCurrent-v0", "DFIMSpeedFinite-v0"]
"""One of each kind of machine and of action space that differs in shape."""


@pytest.fixture
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def integrator_error(name: str) -> float:
    """Return the error of the peer's dopri5 (rtol 1e-6) over about twenty steps.

    ``test_gem_compat.py`` explains it.
    """
    return 1e-7 if "SIXPMSM" in name else 2e-9


def with_setpoints(state: State, values: Any) -> State:
    walks = zip(state.setpoints, values, strict=True)
    return state._replace(setpoints=tuple(walk._replace(value=value) for walk, value in walks))


@pytest.mark.parametrize("drive", DRIVES, ids=[peer_id(drive) for drive in DRIVES])
@pytest.mark.usefixtures("float64")
def test_recorded_episodes(drive: Any) -> None:
    """States, rewards and ends are the peer's under its set points.

    What random play shows is in the space.
    """
    name = peer_id(drive)
    task: GemDrive = registry.card(drive.id, gem_compat=True).build(dtype="float64")
    recorded = EPISODES[name]
    assert list(task.env.state_names) == recorded["state_names"]
    assert str(task.action_space) == recorded["action_space"]
    key = jax.random.key(0)
    start = task.initial(key, task.sample_params(key, np.int32(0)))

    @jax.jit
    def play_recorded(actions: Any, setpoints: Any, keys: Any) -> Any:
        def step(state: State, inputs: Any) -> Any:
            action, values, key = inputs
            with_values = with_setpoints(state, values)
            next_state = task.transition(with_values, action, key, ())
            observations = task.observation(next_state, key, ())
            return next_state, (
                observations,
                task.reward(with_values, action, next_state, key, ()),
                task.terminal(next_state, key, ()),
            )

        return jax.lax.scan(step, start, (actions, setpoints, keys))[1]

    keys = jax.random.split(key, PUSH)
    for kind, act in (("wave", wave), ("push", push)):
        episode = recorded[kind]
        steps = len(episode["rewards"])
        setpoints = np.resize(np.array(episode["setpoints"][:steps]), (PUSH, len(task.wieners)))
        actions = np.stack([act(task.action_space, n) for n in range(PUSH)])
        observations, rewards, ends = map(np.asarray, play_recorded(actions, setpoints, keys))
        size = len(task.env.state_names)
        np.testing.assert_allclose(start.observed, episode["reset"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            rewards[:steps], episode["rewards"], rtol=0, atol=integrator_error(name)
        )
        np.testing.assert_allclose(
            observations[steps - 1, :size], episode["last"], rtol=0, atol=integrator_error(name)
        )
        assert ends[:steps].tolist() == [False] * (steps - 1) + [episode["terminated"]]
    task.action_space.seed(0)
    actions = np.stack([task.action_space.sample() for _ in range(PUSH)])
    observations, _, _ = play_recorded(actions, setpoints, keys)
    assert all(task.observation_space.contains(each) for each in np.asarray(observations))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("PMSMCurrent-v0", "float32"),
        ("PMSMCurrent-v0", "float64"),
        ("PermExDcTorque-v0", "float64"),
        ("SCIMSpeedFinite-v0", "float64"),
        ("SixPhasePMSMCurrent-v0", "float64"),
    ],
)
def test_golden_run_through_make(name: str, dtype: str) -> None:
    """The peer's recorded open-loop runs, through the environment that a user makes.

    At float32 ten steps of eight substeps round a current some hundred times, each time by 6e-8 of
    it at most.
    """
    env = gymnasium.make(f"rlsuite/{name}", gem_compat=True, dtype=dtype)
    peer = peer_id(env.unwrapped.card)
    golden = GOLDEN[peer]
    env.reset(seed=1)
    steps = [env.step(wave(env.action_space, n)) for n in range(golden["n_steps"])]
    error = 5e-6 if dtype == "float32" else integrator_error(peer)
    states = [step[0][: len(golden["state_names"])] for step in steps]
    expected = [golden["step1"], golden["last"]]
    np.testing.assert_allclose([states[0], states[-1]], expected, rtol=0, atol=error)
    assert [step[2] for step in steps] == [False] * (len(steps) - 1) + [golden["terminated"]]
    if golden["terminated"]:
        assert steps[-1][1] == pytest.approx(golden["violation_reward"])


def test_the_peer_leaves_its_own_space() -> None:
    """Why ours has other bounds: recorded first states of 16 ids are beyond those of the peer."""
    outside = set()
    for name, recorded in EPISODES.items():
        env = environment(name)
        first_values = zip(recorded["wave"]["reset"], env.low, env.high, strict=True)
        if any(not low - 1e-9 <= value <= high + 1e-9 for value, low, high in first_values):
            outside.add(name)
    assert len(outside) == 16
    assert "Finite-CC-PMSM-v0" in outside


# -- set points ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EPISODES)
def test_ranges_of_setpoints(name: str) -> None:
    task: GemDrive = registry.card(
        next(drive.id for drive in DRIVES if peer_id(drive) == name), gem_compat=True
    ).build()
    walks = EPISODES[name]["walks"]
    assert list(walks) == list(task.env.weights)
    for wiener, walk in zip(task.wieners, walks.values(), strict=True):
        assert [wiener.low, wiener.high] == pytest.approx(walk["margin"], abs=1e-15)
        assert [wiener.slowest, wiener.fastest] == walk["deviation"]
        assert walk["length"] == [500, 2000]


def walk(wiener: Wiener, walks: int, steps: int) -> Walk:
    """Many of them, shape ``(walks, steps + 1)``."""

    def simulate_walk(key: jax.Array) -> Walk:
        first = walk_setpoint.begin([wiener], key, np.float32)

        def step(walks: tuple[Walk, ...], t: Any) -> tuple[tuple[Walk, ...], Walk]:
            next_walks = walk_setpoint.step([wiener], walks, jax.random.fold_in(key, t))
            return next_walks, next_walks[0]

        later_walk = jax.lax.scan(step, first, np.arange(1, steps + 1))[1]
        return jax.tree.map(lambda a, b: jax.numpy.concatenate([a[None], b]), first[0], later_walk)

    return jax.tree.map(
        np.asarray, jax.jit(jax.vmap(simulate_walk))(jax.random.split(jax.random.key(7), walks))
    )


def test_sub_episodes_of_setpoints() -> None:
    """Lengths are uniform over 500..1999, deviations log-uniform, and moves normal.

    Each value is one move from the last.
    """
    wide = Wiener(-1e3, 1e3, 1e-3, 1e-1)
    walks = walk(wide, 200, 12_000)
    changed = np.diff(walks.deviation) != 0
    # A new deviation begins where the last one has no steps left.
    assert (changed == (walks.steps_left[:, :-1] == 0)).all()
    ends = [np.flatnonzero(row) for row in changed]
    lengths = np.concatenate([np.diff(row) for row in ends])
    assert len(lengths) > 1000
    assert 500 <= lengths.min() < 510
    assert 1990 < walks.steps_left.max() + 1 <= 1999
    first = 1 + walks.steps_left[:, 0]
    assert stats.kstest((first - 500) / 1500, "uniform").pvalue > 1e-3
    paces = np.log10(walks.deviation[:, 0] / 1e-3) / 2
    assert stats.kstest(paces, "uniform").pvalue > 1e-3
    moves = np.diff(walks.value.astype(float))[:, :200] / walks.deviation[:, 1:201]
    near = np.abs(walks.value[:, :1]) < 10  # elsewhere float32 rounds the moves
    assert near.any()
    assert stats.kstest(moves[near[:, 0]].ravel(), "norm").pvalue > 1e-3


def test_setpoints_begin_uniformly_and_stay_within_their_margin() -> None:
    begin = walk(Wiener(-0.25, 0.75, 1e-6, 2e-6), 3000, 0).value[:, 0]
    assert stats.kstest(begin + 0.25, "uniform").pvalue > 1e-3
    fast = walk(setpoint("Cont-CC-PermExDc-v0", "i", -1.0), 50, 3000).value
    margin = np.float32(97 / 210)
    assert fast.max() == margin  # they are held at the ends, not turned back
    assert fast.min() == -margin


def test_setpoints_move_in_the_environment() -> None:
    """Moves are normal with the deviation that the state holds.

    They are too small here to reach the margin.
    """
    env = gymnasium.make("rlsuite/PMSMCurrent-v0", gem_compat=True)

    def is_calm(seed: int) -> bool:
        env.reset(seed=seed)
        return all(
            walk.deviation < 5e-3 and abs(walk.value) < 0.3
            for walk in env.unwrapped.episode.state.setpoints
        )

    first = next(filter(is_calm, range(200)))
    setpoints = [env.reset(seed=first)[0][-2:]]
    deviations = [walk.deviation for walk in env.unwrapped.episode.state.setpoints]
    setpoints += [env.step(np.zeros(3, np.float32))[0][-2:] for _ in range(300)]
    assert np.abs(setpoints).max() < 0.6
    moves = np.diff(np.stack(setpoints), axis=0)
    for i, deviation in enumerate(deviations):
        assert stats.kstest(moves[:, i] / deviation, "norm").pvalue > 1e-3


# -- the face --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SELECTED_DRIVES)
def test_environment(name: str) -> None:
    """Gymnasium's checks; the batch goes to the bit as the single env; words and pictures."""
    env = gymnasium.make(f"rlsuite/{name}", gem_compat=True, render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    batch = gymnasium.make_vec(
        f"rlsuite/{name}",
        3,
        vectorization_mode="vector_entry_point",
        gem_compat=True,
        autoreset_mode="SameStep",
    )
    assert env.spec.max_episode_steps == registry.card(name).horizon
    observations, _ = batch.reset(seed=5)
    single, _ = env.reset(seed=6)
    assert single.tobytes() == observations[1].tobytes()
    batch.action_space.seed(5)
    for _ in range(40):
        actions = batch.action_space.sample()
        observations, rewards, ends, _, _ = batch.step(actions)
        single, reward, ended, _, info = env.step(actions[1])
        assert (reward, ended) == (rewards[1], ends[1])
        if ended:
            assert "of the limit" in info["end_reason"]
            single, _ = env.reset()
        assert single.tobytes() == observations[1].tobytes()
        assert env.observation_space.contains(single)
    assert env.render().shape == (300, 300, 3)
    words = env.unwrapped.task.describe(env.unwrapped.episode.state, env.unwrapped.params)
    assert "omega" in words
    assert "Set points" in words
    with pytest.raises(ValueError, match="no reference player"):
        env.unwrapped.reference()


def test_sixty_cards_outside_every_list() -> None:
    assert sorted(peer_id(drive) for drive in DRIVES) == sorted(EPISODES)
    listed = registry.cards()
    for drive in DRIVES:
        compatible = registry.card(drive.id, gem_compat=True)
        assert compatible.id not in listed
        assert compatible.id not in gymnasium.registry
        assert registry.card(compatible.id) is compatible
        assert registry.card(drive.id, gem_compat=False) is drive
        env = gymnasium.make(drive.id, gem_compat=True).unwrapped
        assert isinstance(env.task, GemDrive)


def test_gem_compat_goes_with_other_settings() -> None:
    finite = registry.card("PMSMTorque-v0", gem_compat=True, control="finite")
    assert finite.id == "rlsuite/PMSMTorqueFiniteGem-v0"
    assert registry.card("PMSMTorqueGem-v0", control="finite") is finite


def test_refusals() -> None:
    with pytest.raises(ValueError, match="gem_compat of rlsuite/PMSMCurrent-v0 2"):
        gymnasium.make("rlsuite/PMSMCurrent-v0", gem_compat=2)
    with pytest.raises(ValueError, match=r"'gem_compatt'.* Did you mean 'gem_compat'"):
        gymnasium.make("rlsuite/PMSMCurrent-v0", gem_compatt=True)
    with pytest.raises(ValueError, match=r"'gem_compatt'.* Did you mean 'gem_compat'"):
        gymnasium.make_vec(
            "rlsuite/PMSMCurrent-v0", vectorization_mode="vector_entry_point", gem_compatt=True
        )
    with pytest.raises(
        ValueError,
        match="rlsuite/QuadcopterHover-v0 got an unexpected keyword argument 'gem_compat'",
    ):
        gymnasium.make("rlsuite/QuadcopterHover-v0", gem_compat=True)
    with pytest.raises(ValueError, match="single context"):
        gymnasium.make("rlsuite/PMSMCurrent-v0", gem_compat=True, split=3)
