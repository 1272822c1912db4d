"""Test PettingZoo environments.

They pass PettingZoo's conformance tests and checks of what those leave out, and equal the joint
env.
"""

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pettingzoo
import pytest
from gymnasium import spaces
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from rlbench_suite.adapters.parallel import TaskParallelEnv, agent_spaces
from rlbench_suite.core import registry
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

IDS = [card.id for card in registry.cards().values() if card.agents > 1]


@pytest.fixture(params=IDS)
def task_id(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """PettingZoo reports most faults as warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def weights_of(task_id: str) -> dict[str, Any]:
    """Return the keyword that makes one number of the rewards of several objectives."""
    card = registry.card(task_id)
    return {"weights": card.weights} if card.objectives else {}


def parallel(task_id: str, **keywords: Any) -> TaskParallelEnv:
    return pettingzoo.make("parallel", task_id, **weights_of(task_id), **keywords)


def aec(task_id: str, **keywords: Any) -> Any:
    return pettingzoo.make("aec", task_id, **weights_of(task_id), **keywords)


def steps_of_every_episode(task_id: str, limit: int) -> int:
    """Return a number of steps that no task is over before, at most the limit."""
    return min(limit, registry.card(task_id).horizon // 2)


def random_actions(env: TaskParallelEnv, rng: np.random.Generator) -> dict[str, np.ndarray]:
    actions = {}
    for agent in env.agents:
        env.action_space(agent).seed(int(rng.integers(2**31)))
        actions[agent] = env.action_space(agent).sample()
    return actions


def stack_observations(observations: dict[str, Any]) -> np.ndarray:
    """Return the agents' observations in rows, without masks."""
    return np.stack(
        [each["observation"] if isinstance(each, dict) else each for each in observations.values()]
    )


def test_registries_hold_what_can_be_made_there() -> None:
    # Tasks against opponents are there as games in which all sides are agents.
    ids = [card.id for card in registry.cards().values() if card.joint().agents > 1]
    for kind, table in (
        ("parallel", pettingzoo.parallel_registry),
        ("aec", pettingzoo.aec_registry),
    ):
        assert [name for name in table if name.startswith("rlsuite/")] == ids
        with pytest.raises(pettingzoo.env_registry.exceptions.NameNotFound, match="rlsuite/SAT-v0"):
            pettingzoo.make(kind, "rlsuite/SAT-v0")


# -- PettingZoo's own tests ------------------------------------------------------------------------


def test_parallel_api(task_id: str) -> None:
    parallel_api_test(parallel(task_id), num_cycles=120)


def test_aec_api(task_id: str) -> None:
    # The observations are plain vectors, or vectors with masks as PettingZoo prescribes them, which
    # this test warns of.
    if "masked" in registry.card(task_id).tags:
        warnings.filterwarnings(
            "ignore", "Observation (space for each agent probably should be|is not a NumPy array)"
        )
    # Where roles differ, so do the bounds of what they see. Before the first round of a matrix game
    # there is nothing to see.
    warnings.filterwarnings(
        "ignore",
        "Agents have different observation space sizes|Observation numpy array is all zeros",
    )
    api_test(aec(task_id, max_cycles=20), num_cycles=60)


def test_seeds(task_id: str) -> None:
    parallel_seed_test(lambda: parallel(task_id), num_cycles=20)
    seed_test(lambda: aec(task_id), num_cycles=20)


# -- what those leave out --------------------------------------------------------------------------


def trace(env: TaskParallelEnv, episodes: int, seed: int) -> list[Any]:
    """Everything shown over whole episodes; only the first is seeded."""
    rng = np.random.default_rng(3)
    outcomes = []
    for episode in range(episodes):
        outcomes.append(env.reset(seed=seed if episode == 0 else None))
        while env.agents:
            outcomes.append(env.step(random_actions(env, rng)))
            outcomes.append(env.state())
            assert outcomes[-1] in env.state_space
    return outcomes


def assert_equal(tree: Any, expected: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, tree, expected)


def test_seeded_runs_repeat_over_whole_episodes(task_id: str) -> None:
    """Compare three episodes to the bit.

    PettingZoo 1.27's parallel_seed_test stops after one step.
    """
    steps = steps_of_every_episode(task_id, 8)  # a random pilot of two tumbles within 15
    first = parallel(task_id, max_cycles=steps)
    second = parallel(task_id, max_cycles=steps)
    second.reset(seed=77)
    first_trace = trace(first, 3, seed=5)
    second_trace = trace(second, 3, seed=5)
    assert len(first_trace) == 3 * (1 + 2 * steps)
    assert_equal(first_trace, second_trace)
    assert_equal(first_trace, trace(first, 3, seed=5))
    starts = [
        stack_observations(reset[0])
        for reset in (first_trace[0], first_trace[1 + 2 * steps], trace(second, 1, seed=6)[0])
    ]
    if task_id != "rlsuite/MatrixGame-v0":  # every match begins alike
        assert all((a != b).any() for a, b in [starts[:2], starts[1:], starts[::2]])


def test_equals_the_joint_env(task_id: str) -> None:
    """Row by row the Gymnasium env of the same id and seed; its reward is the agents' mean."""
    env = parallel(task_id)
    joint = gymnasium.make(task_id, disable_env_checker=True, **weights_of(task_id))
    rng = np.random.default_rng(4)
    for episode in range(2):
        seed = 11 if episode == 0 else None
        observations, infos = env.reset(seed=seed)
        observation, info = joint.reset(seed=seed)
        np.testing.assert_array_equal(stack_observations(observations), observation)
        over = False
        steps = 0
        while not over:
            actions = random_actions(env, rng)
            observations, rewards, terminations, truncations, infos = env.step(actions)
            observation, reward, terminated, truncated, info = joint.step(
                np.stack(list(actions.values()))
            )
            steps += 1
            np.testing.assert_array_equal(stack_observations(observations), observation)
            # The joint env takes the mean in the task's float32, which holds seven digits.
            assert np.mean(list(rewards.values())) == pytest.approx(reward, rel=2e-6, abs=1e-6)
            assert set(terminations.values()) == {terminated}
            # At the very last step both flags may be true in Gymnasium, but not in PettingZoo.
            assert set(truncations.values()) == {truncated and not terminated}
            vectors = [each.pop("vector_reward", 0.0) for each in infos.values()]
            vector = info.pop("vector_reward", 0.0)
            np.testing.assert_allclose(np.mean(vectors, axis=0), vector, rtol=2e-6, atol=1e-6)
            mask = info.pop("action_mask", [])
            assert_equal(
                [n for each in observations.values() if len(mask) for n in each["action_mask"]],
                list(mask),
            )
            acting = [each.pop("acting", None) for each in infos.values()]
            assert acting == list(info.pop("acting", [None] * len(infos)))
            assert all(agent_info == info for agent_info in infos.values())
            over = terminated or truncated
        assert env.agents == []
        assert terminated or steps == joint.unwrapped.card.horizon


def test_plain_values_inside_the_spaces(task_id: str) -> None:
    env = parallel(task_id)
    assert env.unwrapped is env
    assert env.possible_agents == [f"agent_{i}" for i in range(env.card.agents)]
    observations, infos = env.reset(seed=0)
    for agent in env.possible_agents:
        assert env.observation_space(agent).contains(observations[agent])
        assert type(infos[agent]["success"]) is bool
    assert len({id(env.action_space(agent)) for agent in env.agents}) == env.card.agents
    _, rewards, terminations, truncations, _ = env.step(
        random_actions(env, np.random.default_rng(0))
    )
    for values, kind in ((rewards, float), (terminations, bool), (truncations, bool)):
        assert [type(value) for value in values.values()] == [kind] * env.card.agents


def test_making_an_env_runs_no_jax(task_id: str) -> None:
    import subprocess
    import sys

    program = (
        "import pettingzoo, rlbench_suite\n"
        f"for kind in ('parallel', 'aec'): pettingzoo.make(kind, {task_id!r})\n"
        "from rlbench_suite.numerics.compat import jax_has_run\n"
        "raise SystemExit(jax_has_run())"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_time_limits(task_id: str) -> None:
    horizon = registry.card(task_id).horizon
    for kind in ("parallel", "aec"):
        assert pettingzoo.spec(kind, task_id).max_cycles == horizon
    assert parallel(task_id).max_cycles == horizon
    assert parallel(task_id, max_cycles=-1).max_cycles is None
    cycles = steps_of_every_episode(task_id, 3)
    env = parallel(task_id, max_cycles=cycles)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for cycle in range(1, cycles + 1):
        *_, terminations, truncations, _ = env.step(random_actions(env, rng))
        assert set(truncations.values()) == {cycle == cycles}
        assert not any(terminations.values())
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step({agent: env.action_space(agent).sample() for agent in env.possible_agents})
    env.reset()
    assert env.agents == env.possible_agents


def test_rendering(task_id: str) -> None:
    env = parallel(task_id, render_mode="rgb_array")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.state()
    env.reset(seed=0)
    assert env.render().shape == env.task.picture_shape
    words = parallel(task_id, render_mode="ansi")
    words.reset(seed=0)
    assert isinstance(words.render(), str)
    words.close()


def test_reference_plays_all_agents(task_id: str) -> None:
    assert isinstance(
        parallel(task_id).reference(), registry.load(registry.card(task_id).reference)
    )


# -- wrong arguments -------------------------------------------------------------------------------


def test_wrong_actions_name_the_agent(task_id: str) -> None:
    env = parallel(task_id)
    good = {agent: env.action_space(agent).sample() for agent in env.possible_agents}
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(good)
    env.reset(seed=0)
    before = env.state()
    last = env.agents[-1]
    good = {agent: np.asarray(action) for agent, action in good.items()}
    kind = good[last].dtype
    floats = []
    if kind.kind == "f":
        nan = np.full_like(good[last], np.nan)
        floats = [
            (good | {last: nan}, f"{last}: The action is not finite"),
            (good | {last: nan * 0 + 2}, f"{last}: The action"),
        ]
    for actions, message in (
        ({}, "missing: agent_0, agent_1"),
        ({agent: good[agent] for agent in env.agents[1:]}, "missing: agent_0."),
        (good | {"agent_999": good["agent_0"]}, "Unknown agent 'agent_999'. Did you mean"),
        *floats,
        (good | {last: np.zeros(5, kind)}, f"{last}: An action has shape"),
        (good | {last: np.full_like(good[last], 9_999)}, f"{last}: The action is out of bounds"),
    ):
        with pytest.raises(ValueError, match=message):
            env.step(actions)
    with pytest.raises(TypeError, match=last):
        env.step(good | {last: np.array(["left"])})
    np.testing.assert_array_equal(env.state(), before)
    env.step(good)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"render_mode": "rgb"}, "Did you mean 'rgb_array'"),
        ({"split": "tset"}, "Did you mean 'test'"),
        ({"dtype": "float16"}, "Did you mean"),
        ({"max_cycles": 0}, "at least 1"),
        ({"difficulty": "impossible"}, "difficulty"),
    ],
)
def test_wrong_keywords(task_id: str, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parallel(task_id, **keywords)


def test_wrong_seed(task_id: str) -> None:
    with pytest.raises(ValueError, match="seed"):
        parallel(task_id).reset(seed=-1)


def test_a_task_for_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one agent; make it with gymnasium\.make"):
        TaskParallelEnv(registry.card("DeepSeaTreasure-v0").build())


# -- tasks of other shapes: masks, dict observations, discrete actions, rewards that end the episode


class HeldActions(NamedTuple):
    coins: Any


class Coins(Task[tuple[()], HeldActions]):
    """Three agents hold coins; each takes 0, 1 or 2 from itself, never more than it has.

    Over when all are spent.
    """

    measures: ClassVar[dict[str, str]] = {"left": "coins of each agent"}

    def __init__(self) -> None:
        card = TaskCard(
            id="test/Coins-v0",
            family="test",
            summary="",
            source="",
            entry_point="json.decoder:JSONDecoder",
            reference="",
            horizon=9,
            agents=3,
        )
        super().__init__(card, difficulty=None, dtype="float32")
        self.observation_space = spaces.Dict(
            coins=self.box(np.zeros((3, 1)), np.full((3, 1), 9)),
            rank=spaces.MultiDiscrete([3, 3, 3]),
        )
        self.action_space = spaces.MultiDiscrete([3, 3, 3])
        self.reward_space = self.box(np.zeros(3), np.full(3, 2))

    def sample_params(self, key: Any, split: Any) -> tuple[()]:
        return ()

    def initial(self, key: Any, params: Any) -> HeldActions:
        return HeldActions(jnp.array([1, 4, 2]))

    def transition(self, state: HeldActions, action: Any, key: Any, params: Any) -> HeldActions:
        return HeldActions(state.coins - action)

    def observation(self, state: HeldActions, key: Any, params: Any) -> Any:
        return {"coins": state.coins[:, None].astype(np.float32), "rank": jnp.arange(3)}

    def reward(
        self, state: HeldActions, action: Any, next_state: HeldActions, key: Any, params: Any
    ) -> Any:
        return (state.coins - next_state.coins).astype(np.float32)

    def terminal(self, state: HeldActions, key: Any, params: Any) -> Any:
        return (state.coins == 0).all()

    def info(self, state: HeldActions, params: Any) -> dict[str, Any]:
        return {"success": (state.coins == 0).all(), "left": state.coins}

    def action_mask(self, state: HeldActions, params: Any) -> Any:
        return (jnp.arange(3) <= state.coins[:, None]).ravel()

    def describe(self, state: HeldActions, params: Any) -> str:
        return str(state)

    def draw(self, state: HeldActions, params: Any) -> np.ndarray:
        raise NotImplementedError


def test_masks_dicts_and_discrete_actions() -> None:
    env = TaskParallelEnv(Coins())
    assert env.action_space("agent_1") == spaces.Discrete(3)
    observations, infos = env.reset(seed=0)
    for i, (coins, mask) in enumerate([(1, [1, 1, 0]), (4, [1, 1, 1]), (2, [1, 1, 1])]):
        observation = observations[f"agent_{i}"]
        assert env.observation_space(f"agent_{i}").contains(observation)
        assert observation["action_mask"].tolist() == mask
        assert observation["observation"]["coins"] == [coins]
        assert observation["observation"]["rank"] == i
        assert infos[f"agent_{i}"] == {"success": False, "left": coins, "invalid_action": False}
    observations, rewards, terminations, _, infos = env.step(
        {"agent_0": 1, "agent_1": np.int64(2), "agent_2": 2}
    )
    assert rewards == {"agent_0": 1.0, "agent_1": 2.0, "agent_2": 2.0}
    assert not any(terminations.values())
    assert observations["agent_0"]["action_mask"].tolist() == [1, 0, 0]
    # agent_0 has none left: its move is illegal, so nobody's counts, and everybody is told.
    _, rewards, _, _, infos = env.step({"agent_0": 1, "agent_1": 2, "agent_2": 0})
    assert set(rewards.values()) == {0.0}
    assert all(info["invalid_action"] and info["invalid_reason"] for info in infos.values())
    _, rewards, terminations, truncations, infos = env.step(
        {"agent_0": 0, "agent_1": 2, "agent_2": 0}
    )
    assert rewards["agent_1"] == 2.0
    assert all(terminations.values())
    assert not any(truncations.values())
    assert all(info["success"] and info["end_reason"] for info in infos.values())
    assert env.agents == []
    env.reset()
    with pytest.raises(TypeError, match="agent_1"):
        env.step({"agent_0": 0, "agent_1": 1.5, "agent_2": 0})


def test_ending_at_the_time_limit_is_termination() -> None:
    env = TaskParallelEnv(Coins(), max_cycles=2)
    env.reset(seed=0)
    env.step({"agent_0": 1, "agent_1": 2, "agent_2": 2})
    *_, terminations, truncations, _ = env.step({"agent_0": 0, "agent_1": 2, "agent_2": 0})
    assert all(terminations.values())
    assert not any(truncations.values())


def test_masked_task_passes_pettingzoo() -> None:
    parallel_api_test(TaskParallelEnv(Coins(), max_cycles=9), num_cycles=30)


@pytest.mark.parametrize("task_id", ["rlsuite/Vicsek-v0", "rlsuite/MarsFleet-v0"])
def test_a_joint_state_is_restored_with_its_time_limit(task_id: str) -> None:
    env = parallel(task_id, max_cycles=5)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = [random_actions(env, rng) for _ in range(5)]
    start = env.joint_state
    steps = [env.step(action) for action in actions]
    end = env.joint_state
    assert end.over
    env.joint_state = start
    jax.tree.map(np.testing.assert_array_equal, [env.step(action) for action in actions], steps)
    env.joint_state = start
    env.joint_state = end
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(actions[0])


def test_rows_of_spaces() -> None:
    wide = agent_spaces(spaces.MultiDiscrete([[2, 3], [4, 5]]), 2)
    assert wide == [spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([4, 5])]
    for space in (spaces.Discrete(3), spaces.Box(0, 1, (3,)), spaces.Text(3)):
        with pytest.raises(TypeError, match="2 agents"):
            agent_spaces(space, 2)


def test_wrappers_find_random_numbers_that_a_reset_seeds() -> None:
    """SuperSuit's ``frame_skip_v0`` asks the environment for them."""
    env = pettingzoo.make("parallel", "rlsuite/Vicsek-v0")
    sampled = []
    for _ in range(2):
        env.reset(seed=5)
        sampled.append(env.unwrapped.np_random.random())
    assert sampled[0] == sampled[1]
