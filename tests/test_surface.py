"""Test the names that users meet.

They are those of ``rlbench_suite`` itself, ``play``, ``rlbench_suite.stats`` and its functional
form.
"""

import re
import subprocess
import sys
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from scipy.stats import trim_mean

import rlbench_suite
import rlbench_suite.core.task_card
from rlbench_suite import functional, stats
from rlbench_suite.adapters import rollout
from rlbench_suite.adapters.play import PLAYERS
from rlbench_suite.core import registry
from rlbench_suite.core.episode import ContextSource
from rlbench_suite.evaluation.statistics import aggregates

# -- the package -----------------------------------------------------------------------------------


def test_the_package_shows_its_exports_and_nothing_else() -> None:
    public_names = [name for name in dir(rlbench_suite) if not name.startswith("__")]
    assert public_names == sorted(rlbench_suite.__all__)
    assert all(getattr(rlbench_suite, name).__doc__ for name in public_names)


def test_names_that_are_not_exported_are_unknown() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'cards'"):
        rlbench_suite.cards  # type: ignore[attr-defined]  # noqa: B018


def test_statistics_import_no_jax() -> None:
    code = (
        "import sys, rlbench_suite; rlbench_suite.stats.interval([0.4, 0.6, 0.7]); sys.exit('jax' "
        "in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tasks_cards_and_suites_name_the_same_ids() -> None:
    ids = rlbench_suite.tasks()
    assert set(ids) == {name for name in gymnasium.registry if name.startswith("rlsuite/")}
    assert {task_id for suite in rlbench_suite.suites().values() for task_id in suite} == set(ids)
    assert all(rlbench_suite.card(task_id).id == task_id for task_id in ids)


@pytest.mark.parametrize(
    ("name", "task_id"),
    [
        ("SAT-v0", "rlsuite/SAT-v0"),
        ("rlsuite/SAT-v0", "rlsuite/SAT-v0"),
        ("PMSMSpeed-v0?noise=0.01", "rlsuite/PMSMSpeed-v0?noise=0.01"),
        ("PMSMCurrentGem-v0", "rlsuite/PMSMCurrentGem-v0"),  # a card that no list has
    ],
)
def test_make_takes_every_name_of_a_task(name: str, task_id: str) -> None:
    env = rlbench_suite.make(name)
    core: Any = env.unwrapped
    assert core.card.id == task_id
    assert env.spec is not None
    assert env.spec.max_episode_steps == core.card.horizon
    envs: Any = rlbench_suite.make_vec(name, 2)
    assert envs.card.id == task_id


def test_make_takes_the_keywords_of_gymnasium() -> None:
    env = rlbench_suite.make("SAT-v0", view="text", difficulty="hard", max_episode_steps=7)
    gym_env = gymnasium.make("rlsuite/SAT-v0", view="text", difficulty="hard", max_episode_steps=7)
    assert env.spec == gym_env.spec
    assert env.reset(seed=3)[0] == gym_env.reset(seed=3)[0]
    with pytest.raises(ValueError, match="Unknown view 'txt'"):
        rlbench_suite.make("SAT-v0", view="txt")
    with pytest.raises(ValueError, match="Did you mean 'rlsuite/SAT-v0'"):
        rlbench_suite.make("SATT-v0")


@pytest.mark.parametrize("make", [rlbench_suite.make, rlbench_suite.make_vec])
def test_make_takes_what_gymnasium_takes(make: Any) -> None:
    spec = gymnasium.spec("rlsuite/SAT-v0")
    for name in (spec, "rlbench_suite:rlsuite/SAT-v0", "rlbench_suite:SAT-v0"):
        assert make(name).unwrapped.card.id == "rlsuite/SAT-v0"
    hard = rlbench_suite.make("SAT-v0", difficulty="hard", max_episode_steps=3)
    again = make(hard.spec)
    assert again.unwrapped.task.difficulty == hard.unwrapped.task.difficulty  # type: ignore[attr-defined]
    assert again.spec.max_episode_steps == 3
    with pytest.raises(ValueError, match="CartPole-v1 is no task of the suite"):
        make(gymnasium.spec("CartPole-v1"))
    for wrong in (3, None, b"SAT-v0"):
        with pytest.raises(ValueError, match=f"A task is named by its id.* got {wrong!r}"):
            make(wrong)


def test_make_vec_makes_the_batch_of_gymnasium() -> None:
    envs, gym_envs = (
        make("rlsuite/SAT-v0", 3, split="test")
        for make in (rlbench_suite.make_vec, gymnasium.make_vec)
    )
    assert type(envs) is type(gym_envs)
    assert envs.spec == gym_envs.spec
    np.testing.assert_equal(envs.reset(seed=5), gym_envs.reset(seed=5))


# -- play ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", ["SAT-v0", "DeepSeaTreasure-v0"])
def test_play_gives_what_an_evaluation_gives(name: str, player: str) -> None:
    env = rlbench_suite.make(name, split="test")
    core: Any = env.unwrapped
    (policy,) = registry.agent(player).train(core.task, seed=0, budget="smoke")
    results = rlbench_suite.play(env, player, seed=3, episodes=2)
    record = rollout.play(core.task, policy, range(3, 5))
    np.testing.assert_array_equal(results.seeds, [3, 4])
    np.testing.assert_array_equal(results.lengths, record.length)
    np.testing.assert_array_equal(results.successes, record.info["success"])
    np.testing.assert_array_equal(results.scores.astype(np.float32), record.info["score"])
    np.testing.assert_allclose(results.returns, record.total, rtol=1e-5)
    assert [info["success"] for info in results.infos] == results.successes.tolist()


def test_wrappers_see_the_episodes_that_are_played() -> None:
    env = gymnasium.wrappers.RecordEpisodeStatistics(
        rlbench_suite.make("SAT-v0", max_episode_steps=4)
    )
    results = rlbench_suite.play(env, "noop", episodes=3)
    assert results.lengths.tolist() == list(env.length_queue) == [4, 4, 4]
    assert results.returns.tolist() == pytest.approx(list(env.return_queue))


def test_play_refuses_what_it_cannot_play() -> None:
    env = rlbench_suite.make("SAT-v0")
    with pytest.raises(ValueError, match=r"Unknown player 'refrence'\. Did you mean 'reference'\?"):
        rlbench_suite.play(env, "refrence")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        rlbench_suite.play(env, episodes=0)
    with pytest.raises(ValueError, match="structured view of rlsuite/SAT-v0"):
        rlbench_suite.play(rlbench_suite.make("SAT-v0", view="text"))
    with pytest.raises(ValueError, match="leave its observation_space as it is"):
        rlbench_suite.play(
            gymnasium.wrappers.RescaleObservation(rlbench_suite.make("PMSMCurrent-v0"), -2, 2)
        )
    with pytest.raises(TypeError, match="one environment of the suite"):
        rlbench_suite.play(rlbench_suite.make_vec("SAT-v0", 2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one environment of the suite"):
        rlbench_suite.play(gymnasium.make("CartPole-v1"))


@pytest.mark.parametrize("number", [1.5, np.float64(1), "1", None, True])
def test_counts_and_seeds_are_integers(number: Any) -> None:
    """Seed 1.5 once played seed 1 and was reported as 1.5."""
    env = rlbench_suite.make("SAT-v0", max_episode_steps=2)
    with pytest.raises(ValueError, match=r"A seed is an integer in \[0, 2\*\*64\), got"):
        rlbench_suite.play(env, "noop", seed=number)
    with pytest.raises(ValueError, match="number of episodes is an integer of at least 1, got"):
        rlbench_suite.play(env, "noop", episodes=number)
    with pytest.raises(ValueError, match="seed must be an integer of at least 0; given"):
        stats.interval([0.1, 0.5], seed=number)
    with pytest.raises(ValueError, match="seed must be an integer of at least 0; given"):
        stats.compare({"ppo": [0.1, 0.5]}, seed=number)
    with pytest.raises(ValueError, match="num_envs is an integer of at least 1, got"):
        rlbench_suite.make_vec("SAT-v0", number)
    if number is not None:
        with pytest.raises(ValueError, match="max_episode_steps is an integer of at least 1, got"):
            rlbench_suite.make_vec("SAT-v0", 2, max_episode_steps=number)
        if number != "1":  # a list of seeds
            with pytest.raises(ValueError, match="A seed is an integer in"):
                rlbench_suite.make_vec("SAT-v0", 2).reset(seed=number)


def test_integers_of_numpy_are_integers() -> None:
    env = rlbench_suite.make("SAT-v0", max_episode_steps=2)
    results = rlbench_suite.play(env, "noop", seed=np.uint32(7), episodes=np.int8(2))  # type: ignore[arg-type]
    assert results.seeds.tolist() == [7, 8]
    scores = [0.1, 0.5]
    assert stats.interval(scores, seed=np.int64(1)) == stats.interval(scores, seed=1)  # type: ignore[arg-type]
    envs, second_envs = (rlbench_suite.make_vec("SAT-v0", 2) for _ in range(2))
    np.testing.assert_equal(envs.reset(seed=np.int64(3)), second_envs.reset(seed=3))


# -- statistics ------------------------------------------------------------------------------------

SCORES = np.random.default_rng(0).normal(0.6, 0.3, (8, 3))


def test_iqm_is_the_trimmed_mean() -> None:
    assert stats.iqm(SCORES) == pytest.approx(trim_mean(SCORES.ravel(), 0.25))
    assert stats.iqm([0, 1, 1, 2, 2, 9]) == pytest.approx(1.5)


@pytest.mark.parametrize("statistic", ["iqm", "mean", "median", "optimality_gap"])
def test_intervals_are_those_of_reports(statistic: Any) -> None:
    by_task = dict(zip("abc", SCORES.T, strict=True))
    estimate = stats.interval(SCORES, statistic, confidence=0.9, seed=1)
    assert estimate == stats.interval(by_task, statistic, confidence=0.9, seed=1)
    assert estimate == getattr(aggregates, statistic)(by_task, confidence=0.9, seed=1)
    assert estimate.low < estimate.point < estimate.high


def test_columns_keep_their_order_from_ten_on() -> None:
    wide = np.random.default_rng(1).random((4, 12))
    by_task = {f"{index:03}": column for index, column in enumerate(wide.T)}
    assert stats.interval(wide) == stats.interval(by_task)


def test_profiles_and_probabilities_are_shares_of_runs() -> None:
    profile = stats.profile(SCORES, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(profile.fraction, [np.mean(tau < SCORES) for tau in (0.0, 0.5, 1.0)])
    better = SCORES[:5] + 0.1
    wins = [np.mean([x > y for x in better[:, task] for y in SCORES[:, task]]) for task in range(3)]
    assert stats.probability_of_improvement(better, SCORES).point == pytest.approx(np.mean(wins))


def test_compare_has_all_of_them() -> None:
    better = SCORES + 0.1
    comparison = stats.compare({"ppo": SCORES, "sac": better})
    assert comparison.agents["sac"].iqm == stats.interval(better)
    assert (
        comparison.improvement["sac", "ppo"].point
        == stats.probability_of_improvement(better, SCORES).point
    )
    assert len(comparison.tasks) == 3


def test_statistics_name_what_is_wrong() -> None:
    with pytest.raises(
        ValueError, match=r"shape \(1, 1, 1\); \(n_seeds,\) or \(n_seeds, n_tasks\)"
    ):
        stats.iqm([[[0.5]]])
    with pytest.raises(ValueError, match="score of task 'column 1' at index 0 is nan"):
        stats.iqm([[0.5, np.nan]])
    with pytest.raises(ValueError, match="Unknown statistic 'iqmean'"):
        stats.interval(SCORES, "iqmean")  # type: ignore[arg-type]
    for bounds in ((1, 0), (0.5, 0.5), (np.nan, 1), (0, np.nan), (0, 1, 2)):
        with pytest.raises(ValueError, match="Bounds are two numbers, the lower one first; given"):
            stats.interval(SCORES, bounds=bounds)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"compare takes a mapping .* given \[\[1\.0, 2\]\]"):
        stats.compare([[1.0, 2]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the numbers of columns are \{'x': 3, 'y': 1\}"):
        stats.probability_of_improvement(SCORES, SCORES[:, 0])


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.ma.array([0.1, 9.0], mask=[False, True]), "are a masked array"),
        ([np.ma.array([0.1, 9.0], mask=[False, True])] * 2, "are a masked array"),
        (["0.5", "0.6"], "must be real numbers; given ['0.5', '0.6']"),
        (np.array(["0.5"], object), "must be real numbers"),
        ([0.5, 0.6j], "must be real numbers"),
        ([[0.5], [0.5, 0.6]], "are lists of different lengths"),
        ([0.5, None, "x"], "must be real numbers"),
        ({1.0, 2.0}, "must be real numbers"),
    ],
)
def test_scores_are_plain_real_numbers(scores: Any, words: str) -> None:
    """NumPy would count a masked score, read a text and drop an imaginary part."""
    for statistic in (
        lambda: stats.iqm(scores),
        lambda: stats.iqm({"a": scores}),
        lambda: stats.compare({"ppo": scores}),
        lambda: stats.profile(scores),
        lambda: stats.profile([0.5, 0.6], scores),
        lambda: stats.probability_of_improvement([0.5], scores),
    ):
        with pytest.raises(ValueError, match=re.escape(words)) as refusal:
            statistic()
        assert len(str(refusal.value).splitlines()) == 1
        assert str(refusal.value).endswith(".")


# -- functional form -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SAT-v0", "PMSMCurrent-v0", "DeepSeaTreasure-v0"])
def test_pure_functions_play_the_episode_of_the_environment(name: str) -> None:
    env, params = functional.make(name)
    gym_env = rlbench_suite.make(name)
    gym_env.action_space.seed(0)
    gym_observation, info = gym_env.reset(seed=7)
    observation, state = jax.jit(env.reset)(jax.random.key(7), params)
    step = jax.jit(env.step)
    over = False
    while not over:
        np.testing.assert_allclose(observation, gym_observation, rtol=1e-4, atol=1e-4)
        mask = env.action_mask(state)
        assert ("action_mask" in info) == (mask is not None)
        if mask is not None:
            np.testing.assert_array_equal(mask, info["action_mask"])
        action = gym_env.action_space.sample(info.get("action_mask"))
        gym_observation, earned, terminated, truncated, info = gym_env.step(action)
        observation, state, reward, done, step_info = step(jax.random.key(8), state, action, params)
        np.testing.assert_allclose(
            step_info.get("vector_reward", reward), earned, rtol=1e-4, atol=1e-4
        )
        over = terminated or truncated
        assert (bool(step_info["terminated"]), bool(step_info["truncated"]), bool(done)) == (
            terminated,
            truncated,
            over,
        )
    assert bool(step_info["success"]) == info["success"]
    assert float(step_info["score"]) == pytest.approx(info["score"], rel=1e-3)
    # The next episode.
    np.testing.assert_allclose(observation, gym_env.reset(seed=8)[0], rtol=1e-5, atol=1e-5)
    assert int(state.t) == 0


def test_params_change_time_limit_and_split_without_another_program() -> None:
    env, params = functional.make("SAT-v0")
    traces = []

    def episode(key: jax.Array, params: functional.EnvParams) -> Any:
        traces.append(key)
        observation, state = env.reset(key, params)
        _, state, _, done, info = env.step_env(key, state, np.int32(0), params)
        return observation, state.t, done, info["truncated"]

    run = jax.jit(jax.vmap(episode, (0, None)))
    keys = jax.random.split(jax.random.key(0), 4)
    train, _, done, _ = run(keys, params._replace(max_steps_in_episode=60))
    assert not done.any()
    test, steps, done, truncated = run(
        keys,
        params._replace(max_steps_in_episode=1, contexts=ContextSource.parse("test", env.task)),
    )
    assert (steps == 1).all()  # step_env begins no other episode
    assert done.all()
    assert truncated.all()
    assert (train != test).any()
    assert len(traces) == 1


def test_actions_outside_of_a_box_are_clipped() -> None:
    env, params = functional.make("PMSMCurrent-v0")
    _, state = env.reset(jax.random.key(0), params)
    high = env.action_space(params).high  # type: ignore[attr-defined]
    step = jax.jit(env.step_env)
    beyond, bound = (
        step(jax.random.key(0), state, action, params)[0] for action in (high * 3, high)
    )
    np.testing.assert_array_equal(beyond, bound)


@pytest.mark.parametrize(
    ("name", "invalid"),
    [
        ("SAT-v0", [999, -1, 2**31 - 1]),
        ("DeepSeaTreasure-v0", [4, -1]),
        ("PMSMCurrent-v0", [np.array([np.nan, 0.5], np.float32), np.full(2, np.nan)]),
    ],
)
def test_an_invalid_action_changes_nothing_but_the_time(name: str, invalid: list[Any]) -> None:
    env, params = functional.make(name)
    _, state = env.reset(jax.random.key(0), params)
    step = jax.jit(env.step_env)
    mask = env.action_mask(state)
    valid = env.action_space().sample(None if mask is None else np.asarray(mask, np.int8))
    assert not step(jax.random.key(0), state, valid, params)[4]["invalid_action"]
    for action in invalid:
        observation, after, reward, _, info = step(jax.random.key(0), state, action, params)
        assert bool(info["invalid_action"])
        assert int(after.t) == int(state.t) + 1
        jax.tree.map(np.testing.assert_array_equal, after.state, state.state)
        assert np.isfinite(observation).all()
        assert np.isfinite(reward)
    infinite = np.full(env.action_space().shape or (), np.inf)
    if name == "PMSMCurrent-v0":  # clipped
        assert not step(jax.random.key(0), state, infinite, params)[4]["invalid_action"]


@pytest.mark.parametrize(
    ("name", "action"),
    [("PMSMCurrent-v0", 0.5), ("PMSMCurrent-v0", np.zeros(3)), ("SAT-v0", np.zeros(1, int))],
)
def test_an_action_of_another_shape_is_refused(name: str, action: Any) -> None:
    """A number once counted for both voltages of a drive."""
    env, params = functional.make(name)
    _, state = env.reset(jax.random.key(0), params)
    shape = re.escape(str(env.action_space().shape))
    for step in (env.step, jax.jit(env.step_env)):
        with pytest.raises(
            ValueError, match=rf"An action has shape {shape} for .*, got \("
        ) as text:
            step(jax.random.key(0), state, action, params)
        assert len(str(text.value).splitlines()) == 1


def test_functional_make_names_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="simulator of the host"):
        functional.make("QuadcopterHoverPyBullet-v0")
    with pytest.raises(ValueError, match="unexpected keyword argument 'view'"):
        functional.make("SAT-v0", view="text")
    env, params = functional.make("SAT-v0")
    with pytest.raises(ValueError, match=r"one threefry key.*\(4,\)"):
        env.reset(jax.random.key(0, impl="rbg"), params)
