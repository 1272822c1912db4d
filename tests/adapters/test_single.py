"""The face of every id through ``gymnasium.make``."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit
from trajectories import digest, flat, random_actions

from rlbench_suite.adapters.entry_points import make, make_vec
from rlbench_suite.core.episode import (
    NO_LIMIT,
    ContextSource,
    action_sizes,
    advance,
    begin,
    seed_key,
)
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.process import precision

VIEWS = ("structured", "text", "pixels")


@pytest.mark.parametrize("view", VIEWS)
def test_gymnasium_checks_pass(card: TaskCard, view: str) -> None:
    with warnings.catch_warnings():
        # The checker expects scalar rewards and dislikes unbounded or non-unit boxes; both are by
        # design here.
        warnings.simplefilter("ignore")
        check_env(gymnasium.make(card.id, view=view).unwrapped)


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_render_modes(card: TaskCard, mode: str) -> None:
    env = gymnasium.make(card.id, render_mode=mode)
    env.reset(seed=0)
    picture = env.render()
    if mode == "ansi":
        assert isinstance(picture, str)
        assert picture.strip()
    else:
        assert picture.shape == env.unwrapped.task.picture_shape
        assert picture.dtype == np.uint8
        assert picture.std() > 0, "a picture of one colour shows nothing"


def test_human_rendering_opens_a_window(card: TaskCard) -> None:
    pytest.importorskip("pygame")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium says that it wraps the environment
        env = gymnasium.make(card.id, render_mode="human")
    env.reset(seed=0)
    env.step(env.unwrapped.task.noop_action())
    env.close()


def test_observations_rewards_and_flags_are_what_the_spaces_say(card: TaskCard) -> None:
    env = gymnasium.make(card.id)
    task = env.unwrapped.task
    observation, info = env.reset(seed=3)
    assert observation in env.observation_space
    names = info.keys() | {"end_reason", "invalid_reason"}
    episodes = 0
    for action in random_actions(env.action_space, 3, 400):
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space
        # Recorders keep one array for each name.
        assert info.keys() | {"end_reason", "invalid_reason"} == names
        assert type(terminated) is bool
        assert type(truncated) is bool
        assert type(info["success"]) is bool
        assert set(task.measures) <= info.keys()
        assert ("privileged" in info) == (task.privileged_space is not None)
        assert task.privileged_space is None or info["privileged"] in task.privileged_space
        assert card.objectives or type(reward) is float
        assert np.asarray(reward, env.unwrapped.reward_space.dtype) in env.unwrapped.reward_space
        if terminated or truncated:
            episodes += 1
            assert not terminated or info["end_reason"]
            env.reset()
    assert episodes > 0 or card.horizon > 400


def test_every_action_at_its_bounds_keeps_the_observation_inside(card: TaskCard) -> None:
    env = gymnasium.make(card.id)
    rng = np.random.default_rng(0)
    space = env.action_space
    env.reset(seed=0)
    for step in range(600):
        if isinstance(space, spaces.Box):
            action = np.where(rng.random(space.shape) < 0.5, space.low, space.high).astype(
                space.dtype
            )
            if step % 50 < 25:
                action = space.high if step % 100 < 50 else space.low
        else:
            action = space.sample()
        observation, reward, terminated, truncated, _ = env.step(action)
        assert observation in env.observation_space
        assert np.isfinite(reward).all()
        if terminated or truncated:
            env.reset()


def test_same_seed_same_bytes_over_many_episodes(card: TaskCard) -> None:
    assert digest(gymnasium.make(card.id), 11, 300) == digest(gymnasium.make(card.id), 11, 300)
    assert digest(gymnasium.make(card.id), 11, 300) != digest(gymnasium.make(card.id), 12, 300)


@pytest.fixture(scope="session")
def another_process() -> Iterator[subprocess.Popen[str]]:
    """It gives the digest of each id that it is told, a line each."""
    code = (
        "import sys, gymnasium, rlbench_suite; sys.path.insert(0, sys.argv[1]); from trajectories "
        "import digest\nfor line in sys.stdin: print('digest', "
        "digest(gymnasium.make(line.strip()), 5, 200), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(Path(__file__).parents[1] / "support")],
        env={
            **os.environ,
            "PYTHONHASHSEED": "1",
        },  # this process has a random one, or another if it is set
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.mark.every_id
def test_same_seed_same_bytes_in_another_process(
    card: TaskCard, another_process: subprocess.Popen[str]
) -> None:
    assert another_process.stdin
    assert another_process.stdout
    print(card.id, file=another_process.stdin, flush=True)
    lines = iter(another_process.stdout.readline, "")  # simulators print, too
    there = next((line.split()[1] for line in lines if line.startswith("digest ")), "it ended")
    assert digest(gymnasium.make(card.id), 5, 200) == there


def test_reset_without_seed_goes_on_with_new_episodes(card: TaskCard) -> None:
    env = gymnasium.make(card.id)
    first, _ = env.reset(seed=0)
    firsts = {flat(first)}
    for _ in range(5):
        firsts.add(flat(env.reset()[0]))
    # Texts and tools may begin with equal words, and MarsExplorer with the same view of an open
    # corner.
    if card.contexts and card.family not in ("text", "tools") and card.name != "MarsExplorer-v0":
        assert len(firsts) == 6
    assert flat(env.reset(seed=0)[0]) == flat(first)


def test_an_episode_begun_ahead_is_the_one_that_is_begun_when_due(card: TaskCard) -> None:
    if card.host:
        pytest.skip(
            "a host simulator draws resets from a generator of its own, which no episode holds "
            "(HostEnv)"
        )
    env = gymnasium.make(card.id).unwrapped
    env.reset(seed=5)
    first = env.episode
    env.reset()
    ahead = env.episode
    env.episode = first  # what was begun ahead belongs to it no more
    env.reset()
    for leaf, expected in zip(_leaves(ahead), _leaves(env.episode), strict=True):
        np.testing.assert_array_equal(leaf, expected)


def test_view_text_and_pixels_show_the_same_instance(card: TaskCard) -> None:
    plain, text, pixels = (gymnasium.make(card.id, view=view) for view in VIEWS)
    for env in (plain, text, pixels):
        env.reset(seed=9)
    for env in (text, pixels):
        for leaf, expected in zip(
            _leaves(env.unwrapped.episode.state),
            _leaves(plain.unwrapped.episode.state),
            strict=True,
        ):
            np.testing.assert_array_equal(leaf, expected)
    assert text.unwrapped.task.how_to_act() in text.reset(seed=9)[0]


def _leaves(tree):
    import jax

    return jax.tree.leaves(tree)


def test_state_is_a_value_to_save_restore_and_branch_from(card: TaskCard) -> None:
    """The rest of a random episode is the same after a restore.

    It is the same in this environment and in another.
    """
    env, another = (gymnasium.make(card.id, split="test", max_episode_steps=9) for _ in range(2))
    env.reset(seed=1)
    for action in random_actions(env.action_space, 1, 3):
        if any(env.step(action)[2:4]):
            env.reset()
    actions = random_actions(env.action_space, 2, 10)
    saved = pickle.dumps(env.unwrapped.state)
    future = _play_on(env, actions)
    assert len(future) <= 9 + 2  # Nine steps at most, then the state and the reset.
    for branch in (env, another):
        branch.reset(seed=2)
        branch.unwrapped.state = pickle.loads(saved)
        again = _play_on(branch, actions)
        assert len(again) == len(future)
        for leaf, expected in zip(_leaves(again), _leaves(future), strict=True):
            np.testing.assert_array_equal(leaf, expected)


def _play_on(env: gymnasium.Env, actions: list) -> list:
    """Return what an episode shows until its end and at the next reset.

    These are the outcomes of its steps, its value at the end, and the first observation of the next
    episode.
    """
    outcomes = []
    for action in actions:
        observation, *outcome, info = env.step(action)
        outcomes.append((observation, *outcome, info))
        if outcome[1] or outcome[2]:
            break
    return [*outcomes, env.unwrapped.state, env.reset()]


@pytest.mark.parametrize("name", ["DeepSeaTreasure-v0", "Hopper-v0", "SQL-v0"])
def test_a_time_limit_comes_at_the_step_of_the_restored_state(name: str) -> None:
    # One by make, one by hand.
    env = TimeLimit(gymnasium.make(f"rlsuite/{name}", max_episode_steps=10), 12)
    env.reset(seed=0)
    noop = env.unwrapped.task.noop_action()
    start = env.unwrapped.state
    for _ in range(6):
        env.step(noop)
    middle = env.unwrapped.state
    env.unwrapped.state = start
    assert [env.step(noop)[3] for _ in range(10)] == [False] * 9 + [True]
    over = env.unwrapped.state
    env.unwrapped.state = middle
    assert [env.step(noop)[3] for _ in range(4)] == [False] * 3 + [True]
    env.unwrapped.state = over
    with pytest.raises(ResetNeeded, match="over"):
        env.step(noop)


def test_the_task_s_own_state_is_not_the_state() -> None:
    env = gymnasium.make("rlsuite/DeepSeaTreasure-v0").unwrapped
    env.reset(seed=0)
    with pytest.raises(TypeError, match=r"env\.unwrapped\.episode"):
        env.state = env.episode.state
    with pytest.raises(AttributeError, match=r"'row'.*episode\.state"):
        _ = env.state.row


@pytest.mark.parametrize("view", ["structured", "text", "pixels"])
@pytest.mark.parametrize("name", ["DeepSeaTreasure-v0", "Hopper-v0"])
def test_no_step_follows_the_end(name: str, view: str) -> None:
    """The last treasure is paid once. Every end counts: the task's own, and the time limit's."""
    env = gymnasium.make(f"rlsuite/{name}", view=view, max_episode_steps=30)
    env.reset(seed=0)
    if view == "text":
        action = "down" if name.startswith("Deep") else "0 0 0"
    else:
        action = 1 if name.startswith("Deep") else np.zeros(3, np.float32)
    while not any(env.step(action)[2:4]):
        pass
    with pytest.raises(ResetNeeded, match=r"The episode is over: call reset\(\)"):
        env.step(action)
    env.reset()
    env.step(action)


def test_hostile_actions_are_refused_with_a_sentence(card: TaskCard) -> None:
    env = gymnasium.make(card.id)
    env.reset(seed=0)
    space = env.action_space
    hostile = ["left", None, np.zeros((7, 3)), [[1]], {}, object()]
    if isinstance(space, spaces.Box):
        hostile += [np.full(space.shape, value) for value in (np.nan, np.inf, -np.inf, 1e9)]
        hostile += [np.zeros(space.shape, complex)]
    else:
        hostile += [-1, 10**9, 0.5, np.nan]
    before = env.unwrapped.episode
    for action in hostile:
        with pytest.raises((ValueError, TypeError), match="action"):
            env.unwrapped.step(action)
    for leaf, expected in zip(_leaves(before), _leaves(env.unwrapped.episode), strict=True):
        np.testing.assert_array_equal(leaf, expected)


def test_bad_seeds_are_refused(card: TaskCard) -> None:
    env = gymnasium.make(card.id).unwrapped
    for seed in (-1, 2**64, 0.5, "seven", True):
        with pytest.raises(ValueError, match="seed"):
            env.reset(seed=seed)


WRONG_KEYWORDS = [
    ("split", "tset", "Did you mean 'test'"),
    ("split", -1, "context number"),
    ("view", "txt", "Did you mean 'text'"),
    ("dtype", "float16", "float32"),
    ("difficulty", "hrad", "hrad"),
    ("render_mode", "rgb", "rgb_array"),
    ("spilt", "test", "Did you mean 'split'"),
]


def test_wrong_keywords_name_the_nearest_right_one(card: TaskCard) -> None:
    for keyword, value, message in WRONG_KEYWORDS:
        with pytest.raises(ValueError, match=message):
            make(card.id, **{keyword: value})


def test_settings_choose_the_variant_that_has_them() -> None:
    finite = gymnasium.make("rlsuite/PMSMCurrent-v0", control="finite")
    assert finite.unwrapped.card.id == "rlsuite/PMSMCurrentFinite-v0"
    assert isinstance(finite.action_space, spaces.Discrete)
    batch = gymnasium.make_vec("rlsuite/PMSMTorque-v0", num_envs=2, machine="SCIM", goal="current")
    assert batch.unwrapped.card.id == "rlsuite/SCIMCurrent-v0"
    with pytest.raises(ValueError, match="Did you mean 'finite'"):
        gymnasium.make("rlsuite/PMSMCurrent-v0", control="finit")
    with pytest.raises(ValueError, match="Did you mean 'control'"):
        gymnasium.make("rlsuite/PMSMCurrent-v0", contrl="finite")


def test_whole_numbers_in_info_keep_their_sign(toys: Path) -> None:
    for dtype in ("float32", "float64"):
        env = make("ToyWalk-v0", dtype=dtype)
        env.reset(seed=0)
        for _ in range(4):
            *_, info = env.step(env.task.noop_action())
            assert info["x"] == int(env.episode.state.x)
        assert info["x"] < 0


def test_settings_that_no_task_has_together_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"No task has .*'gem_compat': True}\. Nearest: rlsuite/SCIMPosition-v0, "
    ):
        make("rlsuite/PMSMTorque-v0", gem_compat=True, machine="SCIM", goal="position")
    with pytest.raises(
        ValueError, match="SCIMTorqueGem-v0 got an unexpected keyword argument 'noise'"
    ):
        make("rlsuite/PMSMTorque-v0", machine="SCIM", gem_compat=True, noise="one percent")


def test_choices_make_another_task_of_the_same_id(toys: Path) -> None:
    plain = make("ToyDrift-v0", friction="none")
    windy = make("ToyDrift-v0", push="strong", friction="air")
    assert plain.card is make("ToyDrift-v0").card
    assert windy.card.id == "rlsuite/ToyDrift-v0?friction=air&push=strong"
    assert windy.card.id not in cards()
    assert not windy.card.scores()
    plain.reset(seed=0)
    windy.reset(seed=0)
    start = float(plain.episode.state.v)
    assert plain.step(np.ones(1))[0][1] == pytest.approx(start + 0.1)
    observation = windy.step(np.ones(1))[0]
    assert observation[1] == pytest.approx(0.5 * start + 0.2)
    batch = make_vec("ToyDrift-v0", 2, friction="air", push="strong")
    batch.reset(seed=[0, 1])
    np.testing.assert_array_equal(batch.step(np.ones((2, 1)))[0][0], observation)
    assert make("ToyDrift-v0?push=strong", friction="air").task is windy.task
    for task_id, keywords, message in (
        ("ToyDrift-v0", {"friction": "ar"}, "Did you mean 'air'"),
        ("ToyDrift-v0?fricton=air", {}, "Did you mean 'friction'"),
        ("ToyDrift-v0?friction", {}, "Unknown friction"),
        (
            "ToyWalk-v0",
            {"friction": "air"},
            "rlsuite/ToyWalk-v0 got an unexpected keyword argument 'friction'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make(task_id, **keywords)


def test_an_unknown_keyword_is_refused_in_the_words_of_python() -> None:
    """By which TorchRL learns that it may leave its ``frameskip`` out."""
    for door in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(
            TypeError, match=r"got an unexpected keyword argument 'frameskip'.* Known: .*split"
        ):
            door("rlsuite/QuadcopterHover-v0", frameskip=1)


def test_a_fixed_context_stays_and_the_splits_never_overlap(card: TaskCard) -> None:
    if not card.contexts:
        with pytest.raises(ValueError, match="single context"):
            gymnasium.make(card.id, split=3)
        return
    env = gymnasium.make(card.id, split=3)
    env.reset(seed=0)
    first = _leaves(env.unwrapped.params)
    env.reset()
    for leaf, expected in zip(first, _leaves(env.unwrapped.params), strict=True):
        np.testing.assert_array_equal(leaf, expected)

    def contexts(split: str) -> set[bytes]:
        env = gymnasium.make(card.id, split=split)
        env.reset(seed=0)
        contexts_of_split = set()
        for _ in range(200):
            env.reset()
            contexts_of_split.add(
                b"".join(leaf.tobytes() for leaf in _leaves(env.unwrapped.params))
            )
        return contexts_of_split

    train = contexts("train")
    test = contexts("test")
    assert len(train) > 20
    assert not train & test


def test_float64_is_really_double_and_leaves_the_default_alone(card: TaskCard) -> None:
    """By the types of everything that is computed, which need no compiling; two tasks run below."""
    import jax
    import jax.numpy as jnp

    task = card.build(dtype="float64")
    if not card.host:
        source = ContextSource(np.int32(0), np.int32(-1))
        with precision(task):
            kind = jax.dtypes.canonicalize_dtype(task.action_space.dtype)
            action = np.zeros(task.action_space.shape or (), kind)
            first = jax.eval_shape(lambda seed: begin(task, seed, np.int32(0), source), seed_key(0))
            later = jax.eval_shape(lambda e, a: advance(task, e, a, NO_LIMIT), first[0], action)
        real = {leaf.dtype for leaf in _leaves((first, later)) if leaf.dtype.kind == "f"}
        assert real == {np.dtype(np.float64)}
    assert jnp.zeros(1).dtype == jnp.float32


@pytest.mark.parametrize("name", ["PMSMCurrent-v0", "Wordle-v0", "Hopper-v0"])
def test_float64_runs(name: str) -> None:
    import jax.numpy as jnp

    env = gymnasium.make(f"rlsuite/{name}", dtype="float64")
    env.reset(seed=0)
    for action in random_actions(env.action_space, 0, 5):
        env.step(action)
    assert env.unwrapped.episode.total.dtype == np.float64
    assert np.float32 not in {
        np.asarray(leaf).dtype
        for leaf in _leaves((env.unwrapped.episode.state, env.unwrapped.params))
    }
    assert jnp.zeros(1).dtype == jnp.float32


def test_time_limit_is_truncation(card: TaskCard) -> None:
    env = gymnasium.make(card.id, max_episode_steps=1)
    env.reset(seed=0)
    *_, truncated, info = env.step(env.unwrapped.task.noop_action())
    assert truncated
    assert "success" in info
    assert gymnasium.spec(card.id).max_episode_steps == card.horizon


def test_both_flags_are_set_only_where_a_time_limit_meets_the_end(card: TaskCard) -> None:
    """The limit truncates at its step, whether or not the task ends there itself.

    Gymnasium's ``TimeLimit`` does the same.
    """
    bare = gymnasium.make(card.id, max_episode_steps=-1)
    actions = random_actions(bare.action_space, 4, min(card.horizon, 40))
    bare.reset(seed=4)
    flags = []
    for action in actions:
        flags.append(bare.step(action)[2:4])
        if flags[-1][0]:
            break
    assert not any(truncated for _, truncated in flags)
    length = len(flags)
    for limit, truncated in ((length, True), (length + 1, False)):
        env = gymnasium.make(card.id, max_episode_steps=limit)
        env.reset(seed=4)
        assert [env.step(action)[2:4] for action in actions[:length]] == [
            *flags[:-1],
            (flags[-1][0], truncated),
        ]


def test_mask_agrees_between_info_and_method(card: TaskCard) -> None:
    env = gymnasium.make(card.id)
    _, info = env.reset(seed=0)
    if "action_mask" not in info:
        with pytest.raises(AttributeError, match="no action mask"):
            env.unwrapped.action_masks()
        return
    for _ in range(20):
        np.testing.assert_array_equal(
            info["action_mask"].astype(bool), env.unwrapped.action_masks()
        )
        if not info["action_mask"].all():
            episode = env.unwrapped.episode
            refused = env.unwrapped.task.after_illegal_action(episode.state, episode.params)
            *_, terminated, truncated, invalid = env.step(
                _illegal_action(env.action_space, info["action_mask"])
            )
            assert invalid["invalid_action"]
            assert invalid["invalid_reason"]
            for leaf, expected in zip(
                _leaves(refused), _leaves(env.unwrapped.episode.state), strict=True
            ):
                np.testing.assert_array_equal(leaf, expected)
            if terminated or truncated:  # time passes, and it may have been the last turn
                _, info = env.reset()
                continue
        _, _, terminated, truncated, info = env.step(
            _legal_action(env.action_space, info["action_mask"])
        )
        assert not info["invalid_action"]
        if terminated or truncated:
            _, info = env.reset()


def _legal_action(space: spaces.Space, mask: np.ndarray) -> int | np.ndarray:
    """Return a random legal action.

    The mask of a multi-discrete action holds its parts one after another.
    """
    masks = tuple(np.split(mask, np.cumsum(action_sizes(space))[:-1]))
    return space.sample(masks) if space.shape else int(space.sample(mask))


def _illegal_action(space: spaces.Space, mask: np.ndarray) -> int | np.ndarray:
    """Return a random action that is legal but for the first forbidden choice."""
    position = np.flatnonzero(mask == 0)[0]
    if not space.shape:
        return int(position)
    ends = np.cumsum(action_sizes(space))
    index = np.searchsorted(ends, position, side="right")
    action = _legal_action(space, mask)
    action[index] = position - (0 if index == 0 else ends[index - 1])
    return action


def test_the_module_prefix_needs_no_import() -> None:
    code = (
        "import gymnasium; e = gymnasium.make('rlbench_suite:rlsuite/SAT-v0'); e.reset(seed=0); "
        "print(e.spec.id)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "rlsuite/SAT-v0"
