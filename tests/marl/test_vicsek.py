"""Check the Vicsek task against a NumPy model, closed-form limits, and its own symmetries."""

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl import vicsek
from rlbench_suite.envs.marl.vicsek import (
    CELLS,
    DENSITY,
    MAX_TURN,
    SPEED,
    NeighbourAveraging,
    Params,
    State,
    Vicsek,
    mean_heading,
    tree_sum,
)
from rlbench_suite.numerics.process import precision

CARD = card("Vicsek-v0")
N = CARD.agents


@pytest.fixture(scope="module")
def task() -> Vicsek:
    return CARD.build()


@pytest.fixture(scope="module")
def exact() -> Vicsek:
    """The task at float64, where rounding is far below what the tests look for."""
    return CARD.build(dtype="float64")


def random_state(rng: np.random.Generator, side: float, n: int = N) -> State:
    return State(rng.uniform(0, side, n), rng.uniform(0, side, n), rng.uniform(-np.pi, np.pi, n))


def params_of(
    side: float = 3.0, speed: float = 0.2, noise: float = 0.0, radius: float = 1.0
) -> Params:
    return Params(*np.array([side, speed, noise, radius]))


def observe(task: Vicsek, state: State, params: Params) -> np.ndarray:
    with precision(task):
        return np.asarray(jax.jit(task.observation)(State(*map(jnp.asarray, state)), None, params))


# -- an independent model: plain loops, complex headings, all nine images of a neighbour -----------


def neighbours(state: State, side: float, radius: float) -> list[list[tuple[int, complex]]]:
    """For each agent its neighbours and where they are seen."""
    images = [complex(a, b) * side for a, b in product((-1, 0, 1), repeat=2)]
    place = state.x + 1j * state.y

    def neighbours_of(p: complex) -> list[tuple[int, complex]]:
        offsets = [(j, q - p + image) for j, q in enumerate(place) for image in images]
        return [(j, offset) for j, offset in offsets if abs(offset) <= radius]

    return [neighbours_of(p) for p in place]


def test_observation_equals_plain_loops(exact: Vicsek) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        side = rng.uniform(2, 4)
        state, params = random_state(rng, side), params_of(side=side)
        expected = []
        for i, near in enumerate(neighbours(state, side, 1.0)):
            direction = np.exp(1j * state.heading[i])
            mean = np.mean([np.exp(1j * state.heading[j]) for j, _ in near])
            centre = np.mean([where for _, where in near]) / direction
            relative = mean / abs(mean) / direction
            fraction = (len(near) - 1) / (N - 1)
            expected.append(
                [relative.real, relative.imag, abs(mean), fraction, centre.real, centre.imag]
            )
        np.testing.assert_allclose(observe(exact, state, params), expected, atol=1e-12)


def test_reference_with_unlimited_turn_is_the_vicsek_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty steps of eq. 1 and 2 of the paper, the same noise given to both."""
    monkeypatch.setattr(vicsek, "MAX_TURN", np.pi)
    task = Vicsek(CARD, difficulty=1.0, dtype="float64")
    player = NeighbourAveraging.for_task(task)
    rng = np.random.default_rng(1)
    side, speed, noise = 3.0, 0.25, 1.0
    state, params = random_state(rng, side), params_of(side, speed, noise)
    place, heading = state.x + 1j * state.y, state.heading.copy()
    with precision(task):
        for t in range(20):
            key = jax.random.key(t)
            action, _ = player.act(
                (), View(task.observation(state, None, params), None, state, params), None
            )
            draws = np.asarray(jax.random.uniform(key, (N,), np.float64))
            means = [
                np.angle(sum(np.exp(1j * heading[j]) for j, _ in near))
                for near in neighbours(State(place.real, place.imag, heading), side, 1.0)
            ]
            place = place + speed * np.exp(1j * heading)
            place = place.real % side + 1j * (place.imag % side)
            heading = np.array(means) + noise * (draws - 0.5)
            state = task.transition(state, action, key, params)
            np.testing.assert_allclose(state.x, place.real, atol=1e-9)
            np.testing.assert_allclose(state.y, place.imag, atol=1e-9)
            np.testing.assert_allclose(
                np.exp(1j * np.asarray(state.heading)), np.exp(1j * heading), atol=1e-9
            )


# -- conservation and limits -----------------------------------------------------------------------


class Flight(NamedTuple):
    states: State
    orders: np.ndarray
    rewards: np.ndarray


@cache
def flight_program(task: Vicsek, policy: Any, steps: int) -> Any:
    def step(carry: tuple[State, Params], key: jax.Array) -> tuple[Any, Any]:
        state, params = carry
        view = View(task.observation(state, key, params), None, state, params)
        action = policy(view, key)
        after = task.transition(state, action, key, params)
        order, _ = mean_heading(after.heading)
        return (after, params), (after, order, task.reward(state, action, after, key, params))

    return jax.jit(
        lambda *carry: jax.lax.scan(step, carry, jax.random.split(jax.random.key(0), steps))[1]
    )


def fly(task: Vicsek, state: State, params: Params, policy: Any, steps: int) -> Flight:
    """States 0..steps, order parameter and rewards of steps 1..steps."""
    start = State(*(leaf.astype(task.dtype) for leaf in state))
    params = Params(*(leaf.astype(task.dtype) for leaf in params))
    with precision(task):
        states, orders, rewards = flight_program(task, policy, steps)(start, params)
    states = State(*(np.concatenate([a[None], b]) for a, b in zip(start, states, strict=True)))
    return Flight(states, np.asarray(orders), np.asarray(rewards))


def random_turns(view: View, key: jax.Array) -> jax.Array:
    return jax.random.uniform(key, (N, 1), view.observation.dtype, -1, 1)


def reference_turns(view: View, key: jax.Array) -> jax.Array:
    return NeighbourAveraging().act((), view, key)[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-6)])
def test_speed_is_conserved(dtype: str, tolerance: float) -> None:
    """The displacement modulo the box is the speed, whatever is done.

    The tolerance is the rounding at coordinates up to 4.
    """
    task, params = CARD.build(dtype=dtype), params_of(side=2.5, speed=0.3, noise=2.0)
    states = fly(
        task, random_state(np.random.default_rng(2), 2.5), params, random_turns, 200
    ).states
    moved = [
        np.diff(coordinates.astype(np.float64), axis=0) for coordinates in (states.x, states.y)
    ]
    dx, dy = ((d + 1.25) % 2.5 - 1.25 for d in moved)
    np.testing.assert_allclose(np.hypot(dx, dy), 0.3, atol=tolerance)
    assert (np.abs(moved) > 1.25).any(), "no agent crossed a side"
    for coordinates in (states.x, states.y):
        assert ((coordinates >= 0) & (coordinates < np.asarray(2.5, dtype))).all()
    assert (np.abs(states.heading) <= np.asarray(np.pi, dtype)).all()


@pytest.mark.parametrize(
    "policy", [reference_turns, lambda view, key: jnp.zeros((N, 1), view.observation.dtype)]
)
def test_an_aligned_flock_stays_aligned(exact: Vicsek, policy: Any) -> None:
    state = random_state(np.random.default_rng(3), 3.0)._replace(heading=np.full(N, 3.1))
    flight = fly(exact, state, params_of(noise=0.0), policy, 100)
    np.testing.assert_allclose(flight.orders, 1, atol=1e-12)
    np.testing.assert_allclose(flight.rewards, 1, atol=1e-12)
    np.testing.assert_allclose(flight.states.heading, 3.1, atol=1e-9)


def test_seeing_all_aligns_all(exact: Vicsek) -> None:
    """With an endless radius every agent turns to the same direction.

    The turn bound delays it by a few steps.
    """
    rng = np.random.default_rng(4)
    for _ in range(5):
        flight = fly(exact, random_state(rng, 3.0), params_of(radius=100.0), reference_turns, 30)
        assert flight.orders[-1] == pytest.approx(1, abs=1e-12)


def test_random_headings_have_order_one_over_root_n(task: Vicsek) -> None:
    """For independent uniform headings E[order**2] = 1 / n exactly, within five standard errors."""
    count = 20_000
    keys = jax.random.split(jax.random.key(0), count)
    params = Params(*np.float32([3, 0.1, 1, 1]))
    headings = jax.jit(jax.vmap(lambda key: task.initial(key, params).heading))(keys)
    squares = np.asarray(jax.jit(jax.vmap(mean_heading))(headings)[0], np.float64) ** 2
    error = squares.std() / np.sqrt(count)
    assert abs(squares.mean() - 1 / N) < 5 * error
    assert error < 0.01 / N


def test_noise_is_uniform_in_its_width(task: Vicsek) -> None:
    """Noise is as in equation 2: within +-eta/2, of variance eta**2 / 12, and independent.

    It is independent between agents; the tolerance is five standard errors.
    """
    eta = 1.5
    state, params = State(*np.zeros((3, N), np.float32)), Params(*np.float32([3, 0.1, eta, 1]))
    keys = jax.random.split(jax.random.key(1), 5_000)
    turn = jax.jit(
        jax.vmap(lambda key: task.transition(state, jnp.zeros((N, 1)), key, params).heading)
    )(keys)
    turn = np.asarray(turn, np.float64)
    assert np.abs(turn).max() <= eta / 2
    assert np.abs(turn).max() > 0.99 * eta / 2
    error = np.sqrt((eta**4 / 80 - (eta**2 / 12) ** 2) / turn.size)  # of the variance of a uniform
    assert abs((turn**2).mean() - eta**2 / 12) < 5 * error
    correlation = np.corrcoef(turn.T)[~np.eye(N, dtype=bool)]
    assert np.abs(correlation).max() < 5 / np.sqrt(len(turn))


def test_the_turn_is_the_stated_angle(exact: Vicsek) -> None:
    action = np.linspace(-1, 1, N)[:, None]
    with precision(exact):
        after = exact.transition(State(*np.zeros((3, N))), action, jax.random.key(0), params_of())
    np.testing.assert_allclose(after.heading, MAX_TURN * action[:, 0], atol=1e-15)


def test_rewards_share_the_order_parameter(exact: Vicsek) -> None:
    flight = fly(
        exact, random_state(np.random.default_rng(5), 3.0), params_of(noise=1.0), random_turns, 50
    )
    unit = np.exp(1j * flight.states.heading[1:])
    total = unit.sum(1, keepdims=True)
    np.testing.assert_allclose(
        flight.rewards, (unit * (total / abs(total)).conj()).real, atol=1e-12
    )
    np.testing.assert_allclose(flight.rewards.mean(1), abs(unit.mean(1)), atol=1e-12)
    np.testing.assert_allclose(flight.orders, abs(unit.mean(1)), atol=1e-12)


def test_cancelling_headings_give_no_nan(exact: Vicsek) -> None:
    """Agents in opposite pairs in one place: no mean direction anywhere."""
    state = State(np.ones(N), np.ones(N), np.tile([0.0, np.pi], N // 2))
    observation = observe(exact, state, params_of())
    assert exact.observation_space.contains(observation)
    np.testing.assert_allclose(observation[:, :2], np.tile([1.0, 0.0], (N, 1)))
    with precision(exact):
        reward = exact.reward(state, None, state, None, params_of())
    np.testing.assert_allclose(reward, 0, atol=1e-9)


# -- symmetries ------------------------------------------------------------------------------------


def test_what_is_seen_does_not_depend_on_where_the_box_lies(exact: Vicsek) -> None:
    rng = np.random.default_rng(6)
    state, side = random_state(rng, 3.0), 3.0
    observation = observe(exact, state, params_of(side))
    moved = State((state.x + 1.234) % side, (state.y + 2.9) % side, state.heading)
    turned = State(
        side - state.y, state.x, (state.heading + np.pi / 2 + np.pi) % (2 * np.pi) - np.pi
    )
    np.testing.assert_allclose(observe(exact, moved, params_of(side)), observation, atol=1e-12)
    np.testing.assert_allclose(observe(exact, turned, params_of(side)), observation, atol=1e-12)
    mirrored = State(state.x, side - state.y, -state.heading)
    np.testing.assert_allclose(
        observe(exact, mirrored, params_of(side)), observation * [1, -1, 1, 1, 1, -1], atol=1e-12
    )
    order = rng.permutation(N)
    shuffled = State(*(values[order] for values in state))
    np.testing.assert_allclose(
        observe(exact, shuffled, params_of(side)), observation[order], atol=1e-12
    )


# -- the same bits in every layout -----------------------------------------------------------------


def test_tree_sum_sums() -> None:
    for n in (1, 2, 3, 7, 16, 33):
        values = np.random.default_rng(n).integers(-99, 99, (5, n))
        np.testing.assert_array_equal(tree_sum(jnp.asarray(values)), values.sum(-1))


# -- contexts, players, views ----------------------------------------------------------------------


def test_contexts_of_the_splits_never_meet(task: Vicsek) -> None:
    def cells(split: int) -> set[tuple[int, int]]:
        keys = jax.random.split(jax.random.key(split), 20_000)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
        density = N / np.asarray(params.side, np.float64) ** 2
        speed = np.asarray(params.speed, np.float64)
        assert density.min() > DENSITY[0] - 1e-5
        assert density.max() < DENSITY[1]
        assert speed.min() >= np.float32(SPEED[0])
        assert speed.max() < SPEED[1]
        assert (np.asarray(params.radius) == 1).all()
        assert (np.asarray(params.side) >= 2).all()  # nobody is met twice
        # Rounding of sqrt and back moves a density by parts in 1e7, the gap between cells is parts
        # in 1e4.
        place = [
            CELLS * (v - low) / (high - low)
            for v, (low, high) in ((density, DENSITY), (speed, SPEED))
        ]
        assert all(np.abs(p - p.round())[p % 1 > 0.9995].max(initial=0) < 1e-5 for p in place)
        return set(zip(*(np.floor(p + 1e-5).astype(int).tolist() for p in place), strict=True))

    train, test = cells(0), cells(1)
    assert len(train) == 48
    assert len(test) == 16
    assert not train & test


def test_a_difficulty_is_a_width_of_noise() -> None:
    with pytest.raises(ValueError, match="2 pi"):
        CARD.build(difficulty=-0.1)
    with pytest.raises(ValueError, match="2 pi"):
        CARD.build(difficulty=7)


class Constant(NamedTuple):
    """Random turns of one scale for all; 0 is no-op."""

    scale: Any

    def initial(self, params: Params) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        return self.scale * jax.random.uniform(key, (N, 1), minval=-1, maxval=1), memory


def test_order_falls_with_noise(exact: Vicsek) -> None:
    """Noise after perfect agreement leaves an order of sin(eta/2) / (eta/2) on average.

    That is the most there can be.
    """
    rng, previous = np.random.default_rng(10), 1.0
    for eta in (0.3, 1.0, 2.0):
        flights = [
            fly(exact, random_state(rng, 3.0), params_of(noise=eta), reference_turns, 100)
            for _ in range(12)
        ]
        steady_order = np.mean([flight.orders[30:] for flight in flights])
        ceiling = np.sinc(eta / 2 / np.pi)
        assert 0.9 * ceiling < steady_order < 1.01 * ceiling
        assert steady_order < previous - 0.002
        previous = steady_order


def test_reference_flocks_and_idle_or_random_agents_do_not(task: Vicsek) -> None:
    """Every one of 64 episodes of the reference is far above every one without a rule."""
    record = play(task, NeighbourAveraging.for_task(task), range(64))
    assert not record.terminated.any()
    assert (record.length == CARD.horizon).all()
    returns = record.total.mean(1)
    assert returns.mean() > 90
    for scale in (0.0, 1.0):
        idle_or_random = play(task, Constant(np.float32(scale)), range(64)).total.mean(1)
        assert idle_or_random.max() + 20 < returns.min()


def test_words_and_picture(task: Vicsek) -> None:
    env = TaskEnv(task, render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    text = task.describe(env.episode.state, env.params)
    lines = text.splitlines()
    assert len(lines) == N + 1
    for i, line in enumerate(lines[1:]):
        assert line.startswith(f"agent_{i}: {round(observation[i, 3] * (N - 1))} neighbours")
        assert f"order {observation[i, 2]:.2f}" in line
    action = task.parse(" ".join(["0.5"] * N), env.episode.state, env.params)
    np.testing.assert_array_equal(action, np.full((N, 1), 0.5, np.float32))
    with pytest.raises(ValueError, match="16 number"):
        task.parse("left", env.episode.state, env.params)
    picture = env.render()
    assert picture.shape == task.picture_shape
    env.step(action)
    assert (env.render() != picture).any()


def test_an_arrow_points_where_its_agent_flies(task: Vicsek) -> None:
    """One agent in the middle flies up: its arrow's ink lies below the middle, its tip in it."""
    state = State(*np.tile([[1.5], [1.5], [np.pi / 2]], N))
    ink = (task.draw(state, params_of()) != 250).any(-1)
    rows, columns = np.nonzero(ink)
    assert rows.min() == pytest.approx(149, abs=2)
    assert rows.max() == pytest.approx(149 + 18, abs=2)
    assert columns.mean() == pytest.approx(150, abs=2)


def test_same_seed_same_episode_in_another_process_order(task: Vicsek) -> None:
    """A second env, after other episodes ran in the first, repeats the first one's bits."""
    first, second = TaskEnv(task), TaskEnv(task)
    rng = np.random.default_rng(8)
    actions = rng.uniform(-1, 1, (20, N, 1)).astype(np.float32)
    first.reset(seed=9)
    first.reset()
    runs = []
    for env in (first, second):
        observations = [env.reset(seed=5)[0]]
        observations += [env.step(action)[0] for action in actions]
        runs.append(np.stack(observations))
    np.testing.assert_array_equal(*runs)
