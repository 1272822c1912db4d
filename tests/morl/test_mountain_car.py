"""Mountain Car against recorded steps of MO-Gymnasium, plain rules, and dynamic programming."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import Record, play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.morl.mountain_car import (
    COAST,
    FORWARD,
    REVERSE,
    MountainCar,
    Params,
    State,
)
from rlbench_suite.envs.morl.mountain_car_planner import RolloutPlanner, barrier

CARD = card("MOMountainCar-v0")
PUBLISHED = card("MOMountainCar-v0", rewards="pushes")

# A trajectory of MO-Gymnasium 1.3.2, seed 1: start, runs of equal actions, positions and
# velocities after some steps. It arrives with the last step.
START = -0.4976356625556946
RUNS = [
    (2, 3),
    (1, 1),
    (2, 16),
    (1, 1),
    (2, 16),
    (1, 1),
    (0, 16),
    (1, 1),
    (0, 16),
    (1, 1),
    (0, 10),
    (2, 6),
    (1, 1),
    (2, 16),
    (1, 1),
    (2, 16),
]
RECORDED = {
    1: (-0.49683019518852234, 0.000805473595391959),
    21: (-0.371290385723114, 0.008110813796520233),
    38: (-0.2865176200866699, -0.00020140557899139822),
    61: (-0.8097274303436279, -0.028950687497854233),
    101: (-0.4688129425048828, 0.055790215730667114),
    121: (0.47654953598976135, 0.040149517357349396),
    122: (0.5173473358154297, 0.04079781845211983),
}


@pytest.fixture(scope="module")
def task() -> MountainCar:
    return CARD.build()


@pytest.fixture(scope="module")
def reference_record(task: MountainCar) -> Record:
    """Four episodes of the reference."""
    return play(task, RolloutPlanner(task), range(4))


def roll(
    position: np.ndarray, velocity: np.ndarray, action: np.ndarray, gravity: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the next position and velocity, and whether the car has arrived."""
    velocity = velocity + (action - 1) * 0.001 - gravity * np.cos(3 * position)
    velocity = np.clip(velocity, -0.07, 0.07)
    position = np.clip(position + velocity, -1.2, 0.6)
    velocity = np.where((position == -1.2) & (velocity < 0), 0.0, velocity)
    return position, velocity, (position >= 0.5) & (velocity >= 0)


def published_reward(names: tuple[str, ...], action: int, velocity: float, is_last: bool) -> list:
    """Return the reward of objectives by the rules of MO-Gymnasium."""
    by_name = {
        "time": is_last - 1,
        "reverse": -(action == 0),
        "forward": -(action == 2),
        "move": -(action != 1),
        "speed": 15 * abs(velocity),
    }
    return [by_name[name] for name in names]


@pytest.mark.parametrize(
    ("rewards", "names"),
    {
        "pushes": ("time", "reverse", "forward"),
        "moves": ("time", "move"),
        "speed": ("time", "speed"),
        "moves-speed": ("time", "move", "speed"),
    }.items(),
)
def test_recorded_trajectory_of_mo_gymnasium(rewards: str, names: tuple[str, ...]) -> None:
    """Positions are float32 in the record; rewards of time and pushes are exact."""
    variant = card("MOMountainCar-v0", rewards=rewards)
    assert variant.objectives == names
    task = variant.build(dtype="float64")
    with jax.enable_x64(True):
        params = task.sample_params(None, None)
        step_task = jax.jit(
            lambda state, action: (
                next_state := task.transition(state, action, None, params),
                task.reward(state, action, next_state, None, params),
                task.terminal(next_state, None, params),
            )
        )
        state = State(jnp.float64(START), jnp.float64(0))
        actions = [action for action, count in RUNS for _ in range(count)]
        assert len(actions) == 122
        for step, action in enumerate(actions, 1):
            state, reward, terminated = step_task(state, action)
            is_last = step == len(actions)
            assert terminated == is_last
            if step in RECORDED:
                assert tuple(map(float, state)) == pytest.approx(RECORDED[step], rel=1e-6)
                expected = published_reward(names, action, RECORDED[step][1], is_last)
                assert reward == pytest.approx(expected, rel=1e-6)


def test_settings_change_the_objectives_and_back() -> None:
    moves = CARD.with_settings(rewards="moves")
    assert moves.id == "rlsuite/MOMountainCar-v0?rewards=moves"
    assert (moves.weights, moves.hypervolume_reference) == ((1, 1), (-200, -200))
    assert moves.build().reward_space.shape == (2,)
    assert moves.with_settings(rewards="weighted") == CARD
    with pytest.raises(ValueError, match="moves"):
        CARD.with_settings(rewards="move")


def test_random_episodes_are_those_of_plain_rules() -> None:
    """1,000 episodes of random runs of actions, in float64; 20 of them arrive."""
    task = CARD.build(dtype="float64")
    random = np.random.default_rng(0)
    count, steps = 1_000, 150
    starts = random.uniform(-0.6, -0.4, count)
    gravities = random.uniform(0.002, 0.003, count)
    actions = np.repeat(random.integers(0, 3, (count, steps // 15)), 15, axis=1)
    with jax.enable_x64(True):

        def run(start: jax.Array, gravity: jax.Array, actions: jax.Array) -> tuple:
            params = Params(gravity, jnp.float64(0.25), jnp.float64(0.5))

            def step(state: State, action: jax.Array) -> tuple:
                next_state = task.transition(state, action, None, params)
                reward = task.reward(state, action, next_state, None, params)
                return next_state, (next_state, reward, task.terminal(next_state, None, params))

            return jax.lax.scan(step, State(start, jnp.float64(0)), actions)[1]

        states, rewards, arrived = map(
            jax.device_get, jax.jit(jax.vmap(run))(starts, gravities, actions)
        )
    position, velocity = starts, np.zeros(count)
    on_the_way = np.ones(count, bool)
    for step in range(steps):
        action = actions[:, step]
        position, velocity, arrives = roll(position, velocity, action, gravities)
        expected = np.stack([arrives - 1, -0.25 * (action == 0), -0.5 * (action == 2)], 1)
        np.testing.assert_array_equal(rewards[on_the_way, step], expected[on_the_way])
        np.testing.assert_array_equal(arrived[on_the_way, step], arrives[on_the_way])
        assert np.abs(states.position[:, step] - position)[on_the_way].max() < 1e-11
        assert np.abs(states.velocity[:, step] - velocity)[on_the_way].max() < 1e-11
        on_the_way &= ~arrives
    assert (~on_the_way).sum() == 20


def test_a_wall_stops_the_car(task: MountainCar) -> None:
    params = Params(np.float32(0.0025), np.float32(0), np.float32(0))
    state = task.move(State(np.float32(-1.19), np.float32(-0.05)), np.int32(REVERSE), params)
    assert (float(state.position), float(state.velocity)) == (pytest.approx(-1.2), 0)
    away = task.move(state, np.int32(FORWARD), params)
    assert float(away.velocity) > 0


def best_returns(params: Params, starts: np.ndarray, cells: int = 81) -> np.ndarray:
    """Return what value iteration on a grid earns from these starts, played on the true motion."""
    gravity, *weights = (float(field) for field in params)
    push_costs = (weights[0], 0.0, weights[1])
    low, size = np.array([-1.2, -0.07]), np.array([1.7, 0.14]) / (cells - 1)
    axes = low[:, None] + size[:, None] * np.arange(cells)
    position, velocity = np.meshgrid(*axes, indexing="ij")

    def weigh_corners(position: np.ndarray, velocity: np.ndarray) -> list[tuple]:
        places = (np.clip(position, -1.2, 0.5) - low[0]) / size[0], (velocity - low[1]) / size[1]
        i, j = (np.minimum(place.astype(int), cells - 2) for place in places)
        right, up = places[0] - i, places[1] - j
        return [
            (i, j, (1 - right) * (1 - up)),
            (i, j + 1, (1 - right) * up),
            (i + 1, j, right * (1 - up)),
            (i + 1, j + 1, right * up),
        ]

    def action_costs(value: np.ndarray, outcomes: list[tuple]) -> np.ndarray:
        return np.stack(
            [
                push + ~arrives * (1 + sum(share * value[i, j] for i, j, share in corners))
                for push, (arrives, corners) in zip(push_costs, outcomes, strict=True)
            ]
        )

    def outcomes(position: np.ndarray, velocity: np.ndarray) -> list[tuple]:
        ends = [roll(position, velocity, action, gravity) for action in range(3)]
        return [(arrives, weigh_corners(*place)) for *place, arrives in ends]

    value = np.zeros((cells, cells))
    grid_outcomes = outcomes(position, velocity)
    for _ in range(150):
        value = action_costs(value, grid_outcomes).min(0)
    position, velocity = starts.astype(float), np.zeros(len(starts))
    returns, arrived = np.zeros(len(starts)), np.zeros(len(starts), bool)
    for _ in range(200):
        action = action_costs(value, outcomes(position, velocity)).argmin(0)
        ends = [roll(position, velocity, choice, gravity) for choice in range(3)]
        position, velocity, arrives = (
            np.choose(action, [end[field] for end in ends]) for field in range(3)
        )
        returns -= ~arrived * (np.choose(action, push_costs) + ~arrives)
        arrived |= arrives
    return returns


def test_reference_is_near_dynamic_programming(task: MountainCar, reference_record: Record) -> None:
    """Value iteration on a grid of 81 x 81 cells, with weights and gravity of four episodes."""
    env = TaskEnv(task, split="test")
    best = []
    for seed in range(4):
        env.reset(seed=seed)
        start = np.array([float(env.episode.state.position)])
        best.append(best_returns(env.episode.params, start)[0])
    assert reference_record.info["success"].all()
    loss = np.mean(np.maximum(best - reference_record.total.sum(1), 0))
    assert loss < 0.06 * (200 + np.mean(best))


def test_players_rank_as_they_should(task: MountainCar, reference_record: Record) -> None:
    """Doing nothing loses 200 steps, random play some pushes more, constant pushes most."""
    players = {
        "random": Uniform(task.action_space),
        "noop": Constant(task.noop_action()),
        "forward": Constant(np.int32(FORWARD)),
    }
    totals = {
        name: play(task, player, range(50)).total.sum(1).mean() for name, player in players.items()
    }
    assert totals["noop"] == -200
    assert totals["forward"] < totals["random"] < totals["noop"]
    assert reference_record.total.sum(1).mean() > -150


def test_reference_leaves_the_published_valley() -> None:
    """Value iteration earns about -179 a start, the reference about -185, doing nothing -200."""
    task = PUBLISHED.build()
    record = play(task, RolloutPlanner(task), range(8))
    assert record.info["success"].all()
    assert record.total.sum(1).mean() > -195


@pytest.mark.parametrize("gravity", [0.002, 0.0025, 0.003])
def test_the_barrier_is_the_highest_potential_of_slope_and_push(gravity: float) -> None:
    positions = np.linspace(-0.5, 0.5, 10_001)
    potential = gravity / 3 * np.sin(3 * positions) - 0.001 * positions
    params = Params(np.float32(gravity), np.float32(0), np.float32(0))
    assert float(barrier(params)) == pytest.approx(potential.max(), abs=1e-8)


@pytest.mark.parametrize("split", Split)
def test_gravity_lies_in_the_bands_of_its_split(task: MountainCar, split: Split) -> None:
    keys = jax.random.split(jax.random.key(1), 2_000)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(split))
    gravity = np.asarray(params.gravity, np.float64)
    assert (np.floor((gravity - 0.002) / 0.00005) % 2 == split).all()
    for weight in (params.reverse_weight, params.forward_weight):
        assert 0 <= float(weight.min()) < 0.01
        assert 0.49 < float(weight.max()) < 0.5


@pytest.mark.parametrize("rewards", CARD.choices["rewards"])
def test_observation_shows_motion_and_context(rewards: str) -> None:
    task = card("MOMountainCar-v0", rewards=rewards).build()
    params = jax.jit(task.sample_params)(jax.random.key(0), jnp.int32(0))
    state = State(jnp.float32(-0.3), jnp.float32(0.02))
    read_state, read_params = task.read_observation(task.observation(state, None, params))
    np.testing.assert_allclose(read_state, state, rtol=1e-6)
    np.testing.assert_allclose(read_params, params, rtol=1e-6)


def test_words_and_picture(task: MountainCar) -> None:
    params = Params(np.float32(0.0025), np.float32(0.25), np.float32(0.125))
    states = [State(np.float32(x), np.float32(v)) for x, v in ((-0.5, 0), (-0.5, 0.03), (0.2, 0))]
    text = task.describe(states[1], params)
    assert text.startswith("The car is at -0.5000 and moves by +0.03000 a step.")
    assert "push back costs 0.2500, a push forth 0.1250" in text
    assert "Gravity" not in PUBLISHED.build().describe(states[1], params)
    assert task.parse(" Coast", states[0], params) == COAST
    pictures = {task.draw(state, params).tobytes() for state in states}
    assert len(pictures) == 3
