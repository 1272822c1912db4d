"""Minecart against recorded steps of MO-Gymnasium and plain rules."""

from math import copysign, cos, hypot, radians, sin

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import Record, play
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.morl.minecart import (
    ACCELERATE,
    BRAKE,
    DIG,
    NONE,
    RIGHT,
    Minecart,
    Params,
    State,
    outside_home,
)
from rlbench_suite.envs.morl.minecart_planner import RoutePlanner, heading_error

CARD = card("Minecart-v0")

# Recorded with MO-Gymnasium 1.3.2: actions, and observations after some of them. The first record
# meets walls and corners, the others mine and come home.
WALLS = (
    "133333333555400000011113333333355",
    {
        11: (0.9219214, 1.0, 0.0007087, 0.9063078, -0.4226183, 0, 0),
        21: (0.9219214, 1.0, 0.0, 0.5735765, 0.8191521, 0, 0),
        24: (0.9749544, 0.946967, 0.03, -0.7071068, 0.7071068, 0, 0),
        32: (0.3395007, 0.0406542, 0.0639319, 0.0871557, -0.9961947, 0, 0),
        33: (0.0847464, 0.0629423, 0.0639319, 0.0871557, -0.9961947, 0, 0),
    },
    (0, 0, -3.46),
)
MINED = (
    "355555555540022223555552555",
    {
        3: (0.2227386, 0.2227386, 0.03, 0.7071068, 0.7071068, 0, 0),
        12: (0.8167084, 0.8167084, 0.0, 0.7071068, 0.7071068, 0.5, 0.5),
        26: (0.0278486, 0.2237428, 0.03, -0.9063078, -0.4226182, 0.5, 0.5),
        27: (0.0, 0.1421751, 0.0273032, -0.9063078, -0.4226182, 0, 0),
    },
    (0.75, 0.75, -1.14),
)
MINED_WITH_NOISE = (
    "312555555540022223555555255",
    {
        3: (0.2656152, 0.1521617, 0.03, 0.7071068, 0.7071068, 0, 0),
        12: (0.8595849, 0.7461314, 0.0, 0.7071068, 0.7071068, 0.5014205, 0.4985795),
        26: (0.0126824, 0.2112086, 0.03, -0.9063078, -0.4226182, 0.5014205, 0.4985795),
        27: (0.0, 0.1321884, 0.0246418, -0.9659258, -0.258819, 0, 0),
    },
    (0.7521307, 0.7478693, -1.14),
)
NOISE = (0.1257, -0.1321, 0.6404, 0.1049, -0.5357, 0.3616, 1.304, 0.9471)
"""Normal numbers of the first mining in that record, of both ores in turn."""


@pytest.fixture(scope="module")
def task() -> Minecart:
    return CARD.build()


@pytest.fixture(scope="module")
def reference_record(task: Minecart) -> Record:
    """Episodes of the reference."""
    return play(task, RoutePlanner(task), range(32))


@pytest.mark.parametrize(
    ("mines", "record"),
    [("deterministic", WALLS), ("deterministic", MINED), ("published", MINED_WITH_NOISE)],
)
def test_recorded_steps_of_mo_gymnasium(mines: str, record: tuple) -> None:
    """Observations are float32 in the records."""
    actions, recorded, returns = record
    task = card("Minecart-v0", mines=mines).build(dtype="float64")
    with jax.enable_x64(True):
        params = task.only_context()

        @jax.jit
        def step_task(state: State, action: jax.Array) -> tuple:
            next_state = task.drive(state, action, np.array(NOISE), params)
            reward = task.reward(state, action, next_state, None, params)
            observation = task.observation(next_state, None, params)
            return next_state, observation, reward, task.terminal(next_state, None, params)

        state = task.initial(None, params)
        total = np.zeros(3)
        for step, letter in enumerate(actions, 1):
            state, observation, reward, terminated = step_task(state, jnp.int32(int(letter)))
            total += reward
            assert terminated == (step == len(actions))
            if step in recorded:
                assert np.asarray(observation) == pytest.approx(recorded[step], abs=1e-7)
        assert total == pytest.approx(returns, abs=1e-6)


class PlainCart:
    """The rules of MO-Gymnasium in plain words, in float64."""

    def __init__(self, state: State, mines: list[list[float]]) -> None:
        self.x, self.y, self.speed = (float(field) for field in state[:3])
        self.angle = 45 + 10 * int(state.heading)
        self.load = [float(state.first), float(state.second)]
        self.has_left = bool(state.has_left)
        self.is_back = False
        self.sold = [0.0, 0.0]
        self.mines = mines
        self.touches_wall = False
        """True once it came to a wall without being stopped: rounding decides what follows."""

    def step(self, action: int, noise: np.ndarray) -> float:
        """Drive and mine for a step, and return the fuel."""
        for substep in range(4):
            if action in (1, 2):
                self.angle += 20 * action - 30
            elif action == 3:
                self.speed = min(self.speed + 0.0075, 1)
            elif action == 4:
                self.speed = 0.0
            elif action == 0 and self.speed < 0.001:
                self.dig(noise[2 * substep : 2 * substep + 2])
            if self.is_back:
                break
            if self.speed >= 0.001:
                self.roll()
            if hypot(self.x, self.y) >= 0.15:
                self.has_left = True
            elif self.has_left:
                self.is_back = True
                self.sold, self.load = self.load, [0.0, 0.0]
        return -0.02 - 0.1 * (action == 3) - 0.2 * (action == 0)

    def dig(self, noise: np.ndarray) -> None:
        """Mine once at the nearest mine."""
        x, y, *means = min(self.mines, key=lambda site: hypot(site[0] - self.x, site[1] - self.y))
        if hypot(x - self.x, y - self.y) > 0.14:
            return
        ores = [max(0, mean + 0.05 * number) for mean, number in zip(means, noise, strict=True)]
        room = 1.5 - sum(self.load)
        share = room / sum(ores) if sum(ores) > room else 1
        self.load = [load + share * ore for load, ore in zip(self.load, ores, strict=True)]

    def roll(self) -> None:
        """Move, and bend along walls."""
        right = self.speed * cos(radians(self.angle))
        down = self.speed * sin(radians(self.angle))
        x, y = self.x, self.y
        if 0 < y < 1 and abs(down) > 0.001:
            if x == 1 and right > 0:
                self.angle += copysign(10, down)
            if x == 0 and right < 0:
                self.angle -= copysign(10, down)
        if 0 < x < 1 and abs(right) > 0.001:
            if y == 1 and down > 0:
                self.angle -= copysign(10, right)
            if y == 0 and down < 0:
                self.angle += copysign(10, right)
        places = (x + right, 1 - x - right, y + down, 1 - y - down)
        self.touches_wall |= min(map(abs, places)) < 1e-12
        self.x = min(max(x + right, 0), 1)
        self.y = min(max(y + down, 0), 1)
        self.speed = hypot(self.x - x, self.y - y)


def test_random_episodes_are_those_of_plain_rules() -> None:
    """1,000 episodes from random places and headings, with half of the actions mining or braking.

    Some carts mine, some come home, and many slide along walls.
    """
    task = CARD.build(dtype="float64")
    random = np.random.default_rng(0)
    count, steps = 1_000, 30
    zeros = np.zeros(count)
    starts = State(
        random.uniform(0, 1, count),
        random.uniform(0, 1, count),
        random.choice([0, 0.03, 0.06], count),
        random.integers(0, 36, count).astype(np.int32),
        random.uniform(0, 0.7, count),
        random.uniform(0, 0.7, count),
        np.ones(count, bool),
        zeros > 0,
        zeros,
        zeros,
    )
    actions = random.choice(6, (count, steps), p=[0.3, 0.1, 0.1, 0.15, 0.1, 0.25])
    noise = random.normal(size=(count, steps, 8))
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(0))

        def run(start: State, params: Params, actions: jax.Array, noise: jax.Array) -> tuple:
            def step(state: State, choice: tuple) -> tuple:
                next_state = task.drive(state, *choice, params)
                reward = task.reward(state, choice[0], next_state, None, params)
                return next_state, (next_state, reward)

            return jax.lax.scan(step, start, (actions, noise))[1]

        states, rewards = jax.device_get(
            jax.jit(jax.vmap(run))(starts, params, actions.astype(np.int32), noise)
        )
    params = jax.device_get(params)
    returns = mined = ties = 0
    for episode in range(count):
        start = State(*(field[episode] for field in starts))
        mines = np.stack([field[episode] for field in params[:4]], 1).tolist()
        weights = [float(field[episode]) for field in params[4:]]
        cart = PlainCart(start, mines)
        for step in range(steps):
            fuel = cart.step(actions[episode, step], noise[episode, step])
            if cart.is_back or cart.touches_wall:
                break
        if cart.touches_wall:
            ties += 1
            continue
        last = State(*(field[episode, step] for field in states))
        assert bool(last.is_back) == cart.is_back
        assert last[:3] == pytest.approx((cart.x, cart.y, cart.speed), abs=1e-9)
        assert int(last.heading) == round((cart.angle - 45) / 10) % 36
        assert last[4:6] == pytest.approx(cart.load, abs=1e-9)
        assert last[8:] == pytest.approx(cart.sold, abs=1e-9)
        expected = np.array([*cart.sold, fuel]) * weights
        assert rewards[episode, step] == pytest.approx(expected, abs=1e-9)
        returns += cart.is_back
        mined += sum(cart.load) + sum(cart.sold) > float(start.first + start.second) + 0.01
    assert ties < 60
    assert returns > 20
    assert mined > 50


def test_reference_comes_home_with_what_is_wanted(reference_record: Record) -> None:
    assert reference_record.info["success"].mean() > 0.8
    assert reference_record.total.sum(1).min() > -0.5


def test_players_rank_as_they_should(task: Minecart, reference_record: Record) -> None:
    """Standing at home burns fuel until the time limit; random play brings nothing."""
    noop = play(task, Constant(task.noop_action()), range(32))
    random = play(task, Uniform(task.action_space), range(32))
    fuel = noop.total[:, 2]
    assert (noop.total[:, :2] == 0).all()
    assert fuel.min() > -0.02 * 60 * 0.2 - 1e-3
    assert random.info["success"].mean() < 0.05
    best_of_them = max(noop.total.sum(1).mean(), random.total.sum(1).mean())
    assert reference_record.total.sum(1).mean() > best_of_them + 0.5


def test_reference_on_published_mines() -> None:
    """It earns more than the recorded plan that mines, whose return is 0.36."""
    published = card("Minecart-v0", mines="deterministic").build()
    record = play(published, RoutePlanner(published), range(2))
    assert record.info["success"].all()
    assert record.total.sum(1).mean() > 0.36


@pytest.mark.parametrize("split", Split)
def test_contexts(task: Minecart, split: Split) -> None:
    """The weight of the wanted ore lies in the bands of its split; yields are published ones."""
    keys = jax.random.split(jax.random.key(1), 2_000)
    params = jax.device_get(
        jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, jnp.int32(split))
    )
    weights = np.stack([params.first_weight, params.second_weight])
    wanted_weight, other_weight = weights.max(0).astype(np.float64), weights.min(0)
    assert (np.floor((wanted_weight - 0.5) / 0.025) % 2 == split).all()
    assert -1 <= other_weight.min() < -0.99
    assert 0.49 < other_weight.max() < 0.5
    assert 0.45 < (weights[0] > weights[1]).mean() < 0.55
    pairs = np.sort(params.first_yield + 10 * params.second_yield, 1)
    expected = np.sort([0.2, 1.15, 2.2, 1.6, 2.0])
    np.testing.assert_allclose(pairs, np.broadcast_to(expected, pairs.shape), rtol=1e-5)
    # Each kind of mine has each number equally often; a standard error is 0.009.
    assert np.abs((params.first_yield == 0).mean(0) - 0.2).max() < 0.04


def test_mines_are_uniform_outside_home() -> None:
    """The area is 0.64 - 0.35**2. Standard errors of the fractions are below 0.002."""
    unit = np.random.default_rng(0).uniform(size=(2, 100_000))
    x, y = (np.asarray(value) for value in outside_home(*unit))
    assert ((x >= 0.1 - 1e-6) & (x <= 0.9) & (y >= 0.1 - 1e-6) & (y <= 0.9)).all()
    assert ((x >= 0.45 - 1e-6) | (y >= 0.45 - 1e-6)).all()
    area = 0.64 - 0.35**2
    assert (x < 0.45).mean() == pytest.approx(0.35 * 0.45 / area, abs=0.01)
    assert (y < 0.45).mean() == pytest.approx(0.35 * 0.45 / area, abs=0.01)
    assert ((x > 0.7) & (y > 0.7)).mean() == pytest.approx(0.04 / area, abs=0.01)


@pytest.mark.parametrize("mines", CARD.choices["mines"])
def test_observation_shows_cart_and_context(mines: str) -> None:
    task = card("Minecart-v0", mines=mines).build()
    params = jax.jit(task.sample_params)(jax.random.key(0), jnp.int32(0))
    for heading in range(36):
        state = State(
            *(jnp.float32(number) for number in (0.3, 0.6, 0.03)),
            jnp.int32(heading),
            jnp.float32(0.5),
            jnp.float32(0.25),
            jnp.bool_(True),
            jnp.bool_(False),
            jnp.float32(0),
            jnp.float32(0),
        )
        read_state, read_params = task.read_observation(task.observation(state, None, params))
        for read, field in zip((*read_state, *read_params), (*state, *params), strict=True):
            np.testing.assert_allclose(read, field, rtol=1e-6, atol=1e-7)


def test_heading_error_is_the_turn_to_a_place(task: Minecart) -> None:
    params = jax.jit(task.sample_params)(jax.random.key(0), jnp.int32(0))
    start = task.initial(None, params)
    for heading in range(36):
        state = start._replace(heading=jnp.int32(heading))
        error = float(heading_error(state, jnp.float32(-0.3), jnp.float32(0.4)))
        assert -18 <= error < 18
        angle = np.radians(45 + 10 * (heading + error))
        assert (np.cos(angle), np.sin(angle)) == pytest.approx((-0.6, 0.8), abs=1e-5)


def test_words_and_picture(task: Minecart) -> None:
    params = jax.device_get(jax.jit(task.sample_params)(jax.random.key(0), jnp.int32(0)))
    state = jax.device_get(task.initial(None, params))
    text = task.describe(state, params)
    assert text.startswith("The cart is at (0.000, 0.000), heads for 45 degrees")
    assert text.count("Mine at") == 5
    assert "Mine at" not in card("Minecart-v0", mines="published").build().describe(state, params)
    actions = [
        task.parse(word, state, params) for word in (" Mine", "right", "accelerate", "BRAKE")
    ]
    assert actions == [DIG, RIGHT, ACCELERATE, BRAKE]
    assert task.noop_action() == NONE
    state = state._replace(y=np.float32(0.5))
    states = [
        state,
        state._replace(heading=np.int32(5)),
        state._replace(x=np.float32(0.5)),
        state._replace(x=np.float32(0.5), first=np.float32(1)),
    ]
    assert len({task.draw(each, params).tobytes() for each in states}) == 4
