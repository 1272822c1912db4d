"""Check MarketMaking against a replica, the paper's results and exact optima.

The replica is plain NumPy; the optima are a dynamic programme over a grid of quotes, and the matrix
exponential of the model in continuous time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.operations import market_making
from rlbench_suite.envs.operations.market_making import (
    MAX_INVENTORY,
    STEPS,
    OptimalQuotes,
    Params,
    ReservationQuotes,
    value_tables,
)

PAPER = {"volatility": 2.0, "arrival_rate": 140.0, "decay": 1.5}
"""Setting of Avellaneda & Stoikov 2008, section 3.3."""
INVENTORY = np.arange(-MAX_INVENTORY, MAX_INVENTORY + 1)


class ConstantQuotes(NamedTuple):
    """Quotes at the same distance in every step."""

    action: Any

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: Any, view: View, key: Any) -> Any:
        return self.action, memory


@pytest.fixture(scope="module")
def task() -> Any:
    return card("MarketMaking-v0").build()


def paper_params(risk_aversion: float) -> Params:
    return Params(
        *(np.float32(value) for value in PAPER.values()), risk_aversion=np.float32(risk_aversion)
    )


def simulate(
    risk_aversion: float, quotes_follow_inventory: bool, paths: int = 20_000
) -> tuple[np.ndarray, np.ndarray]:
    """Return profit and final inventory of the paper's dealers, without limits: ``(paths,)``."""
    rng = np.random.default_rng(0)
    volatility, rate, decay = PAPER.values()
    step_time = 1 / STEPS
    profit, inventory = np.zeros(paths), np.zeros(paths)
    for step in range(STEPS):
        variance = risk_aversion * volatility**2 * (1 - step * step_time)
        half_spread = 0.5 * variance + np.log(1 + risk_aversion / decay) / risk_aversion
        shift = variance * inventory * quotes_follow_inventory
        ask, bid = half_spread - shift, half_spread + shift
        sold = rng.random(paths) < rate * step_time * np.exp(-decay * ask)
        bought = rng.random(paths) < rate * step_time * np.exp(-decay * bid)
        inventory += bought * 1.0 - sold
        move = volatility * np.sqrt(step_time) * rng.choice([-1, 1], paths)
        profit += sold * ask + bought * bid + inventory * move
    return profit, inventory


# -- the paper -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("risk_aversion", "follows", "mean", "deviation", "inventory_deviation"),
    [
        (0.1, True, 64.87, 6.50, 2.93),
        (0.1, False, 68.00, 13.32, 8.46),
        (0.01, True, 68.39, 8.95, 5.22),
        (0.5, True, 48.59, 5.89, 1.95),
    ],
)
def test_the_paper_s_dealers_earn_what_another_simulation_says(
    risk_aversion: float, follows: bool, mean: float, deviation: float, inventory_deviation: float
) -> None:
    """The figures are of 20,000 paths of a simulation that was written apart from this one."""
    profit, inventory = simulate(risk_aversion, follows)
    assert profit.mean() == pytest.approx(mean, abs=4 * deviation / np.sqrt(10_000))
    assert profit.std() == pytest.approx(deviation, rel=0.03)
    assert inventory.std() == pytest.approx(inventory_deviation, rel=0.03)


def test_the_task_has_the_paper_s_dynamics(task: Any) -> None:
    """Profit and inventory of the closed-form quotes in the task are those of the simulation."""
    params = paper_params(0.1)
    player = ReservationQuotes.for_task(task)

    def session(key: jax.Array) -> Any:
        def step(state: Any, number: jax.Array) -> Any:
            view = View(task.observation(state, key, params), None, None, None)
            action, _ = player.act((), view, key)
            return task.transition(state, action, jax.random.fold_in(key, number), params), None

        return jax.lax.scan(step, task.initial(key, params), jnp.arange(STEPS))[0]

    last = jax.jit(jax.vmap(session))(jax.random.split(jax.random.key(0), 10_000))
    profit, inventory = np.asarray(last.profit, np.float64), np.asarray(last.inventory)
    # Quotes below -1 and inventories above 20 are cut off, which costs less than this.
    assert profit.mean() == pytest.approx(64.87, abs=0.4)
    assert profit.std() == pytest.approx(6.50, rel=0.03)
    assert inventory.std() == pytest.approx(2.93, rel=0.03)


# -- the rules -------------------------------------------------------------------------------------


def test_sessions_equal_a_numpy_replica(task: Any) -> None:
    """A thousand sessions of random quotes, with the chances that the task draws."""
    sessions = 1_000
    keys = jax.random.split(jax.random.key(1), sessions)
    params = jax.jit(jax.vmap(lambda key: task.sample_params(key, Split.TEST)))(keys)
    actions = np.random.default_rng(2).uniform(-1, 0, (STEPS, sessions, 2)).astype(np.float32)

    def step(state: Any, inputs: Any) -> Any:
        action, number = inputs
        step_keys = jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)
        next_state = jax.vmap(task.transition)(state, action, step_keys, params)
        units = jax.vmap(lambda key: task.uniform(key, 3))(step_keys)
        return next_state, (next_state, units)

    start = jax.vmap(task.initial)(keys, params)
    scan = jax.jit(lambda start: jax.lax.scan(step, start, (actions, jnp.arange(STEPS))))
    states, units = jax.device_get(scan(start)[1])
    volatility, rate, decay, aversion = (np.asarray(field, np.float64) for field in params)
    inventory, profit, risk = np.zeros((3, sessions))
    for number in range(STEPS):
        ask, bid = 3 + 4 * actions[number].astype(np.float64).T
        sold = (units[number, :, 0] < rate / 200 * np.exp(-decay * ask)) & (inventory > -20)
        bought = (units[number, :, 1] < rate / 200 * np.exp(-decay * bid)) & (inventory < 20)
        inventory = inventory + bought - sold
        move = np.where(units[number, :, 2] < 0.5, -1, 1) * volatility / np.sqrt(200)
        earned = sold * ask + bought * bid + inventory * move
        penalty = aversion * volatility**2 * inventory**2 / 2 / 200
        profit, risk = profit + earned, risk + penalty
        assert (states.inventory[number] == inventory).all()
        np.testing.assert_allclose(states.gain[number], earned - penalty, atol=2e-3, rtol=1e-5)
    np.testing.assert_allclose(states.profit[-1], profit, atol=0.05)
    np.testing.assert_allclose(states.risk[-1], risk, rtol=1e-4)
    assert np.abs(inventory).max() == 20


def test_rewards_add_up_to_profit_less_risk(task: Any) -> None:
    episodes = play(task, OptimalQuotes.for_task(task), range(50))
    equivalent = episodes.info["profit"] - episodes.info["risk"]
    np.testing.assert_allclose(episodes.total, equivalent, atol=0.01)


def test_train_and_test_volatilities_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 4000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        assert set(np.floor((params.volatility - 1.5) / 0.05)) == set(range(split, 20, 2))
        assert (params.decay.min(), params.decay.max()) == pytest.approx((1, 2), abs=0.01)


# -- the optimum -----------------------------------------------------------------------------------


def grid_values(params: Params, steps: int) -> np.ndarray:
    """Return the value of each inventory before the last ``steps`` steps, ``(41,)``.

    All pairs of quotes of a grid are tried.
    """
    volatility, rate, decay, aversion = (float(field) for field in params)
    # A quote nearer than that of a certain fill earns less.
    grid = np.append(np.linspace(-1, 7, 401), max(-1, np.log(rate / STEPS) / decay))
    chance = np.minimum(1, rate / STEPS * np.exp(-decay * grid))
    value = np.zeros(len(INVENTORY))
    for _ in range(steps):
        after = value - aversion * volatility**2 * INVENTORY**2 / 2 / STEPS
        for i in range(len(INVENTORY)):
            ask_chance = chance[:, None] * (i > 0)
            bid_chance = chance[None] * (i < len(INVENTORY) - 1)
            sold, bought = after[max(i - 1, 0)], after[min(i + 1, len(INVENTORY) - 1)]
            expected = (
                ask_chance * (1 - bid_chance) * (grid[:, None] + sold)
                + bid_chance * (1 - ask_chance) * (grid[None] + bought)
                + ask_chance * bid_chance * (grid[:, None] + grid[None] + after[i])
                + (1 - ask_chance) * (1 - bid_chance) * after[i]
            )
            value[i] = expected.max()
    return value


@pytest.mark.parametrize("corner", [(1.5, 180, 1, 1), (2.5, 100, 2, 3), (2, 140, 1.5, 2)])
def test_values_are_those_of_the_best_quotes_of_a_grid(corner: tuple[float, ...]) -> None:
    params = Params(*(np.float32(number) for number in corner))
    before, _ = value_tables(params)
    truth = grid_values(params, 8)
    # Quotes of a grid are at most 0.01 away from the best ones, where the value is flat.
    np.testing.assert_allclose(before[-8], truth, atol=1e-3, rtol=1e-5)
    assert (before[-8] >= truth - 1e-4).all()


def test_values_converge_to_the_matrix_exponential(monkeypatch: pytest.MonkeyPatch) -> None:
    """In continuous time exp(k value) solves a linear equation.

    See Gueant, Lehalle & Fernandez-Tapia 2013, and Cartea, Jaimungal & Penalva 2015, chapter 10.
    """
    params = Params(*(np.float32(number) for number in (2, 140, 1.5, 2)))
    volatility, rate, decay, aversion = (float(field) for field in params)
    generator = np.diag(-decay * aversion * volatility**2 / 2 * INVENTORY**2.0)
    generator += rate / np.e * (np.eye(41, k=1) + np.eye(41, k=-1))
    truth = np.log(expm(generator) @ np.ones(41)) / decay
    errors = []
    for steps in (2_000, 4_000):
        monkeypatch.setattr(market_making, "STEPS", steps)
        monkeypatch.setattr(market_making, "STEP_TIME", 1 / steps)
        before, _ = value_tables(params)
        errors.append(np.abs(np.asarray(before[0]) - truth)[10:-10].max())
    assert errors[1] < 0.6 * errors[0]
    assert errors[1] < 0.01 * truth[MAX_INVENTORY]


def mean_optimum() -> float:
    """Return the mean value of a test session, by quadrature over its contexts."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    nodes, weights = (nodes + 1) / 2, weights / 2
    bands = 1.5 + 0.05 * (np.arange(1, 20, 2) + 0.5)
    axes = (bands, 100 + 80 * nodes, 1 + nodes, 1 + 2 * nodes)
    grids = [grid.ravel().astype(np.float32) for grid in np.meshgrid(*axes, indexing="ij")]
    weight = np.prod(np.meshgrid(np.full(10, 0.1), weights, weights, weights, indexing="ij"), 0)
    first_values = jax.jit(jax.vmap(lambda params: value_tables(params)[0][0, MAX_INVENTORY]))
    return float(np.asarray(first_values(Params(*grids)), np.float64) @ weight.ravel())


def test_reference_earns_the_value_of_the_dynamic_programme(task: Any) -> None:
    expected = mean_optimum()
    assert task.card.optimum == pytest.approx(expected, rel=1e-4)
    episodes = play(task, OptimalQuotes.for_task(task), range(1_000))
    assert episodes.total.mean() == pytest.approx(
        expected, abs=4 * float(episodes.total.std()) / 1_000**0.5
    )
    assert episodes.info["success"].mean() > 0.9


def test_reference_is_far_above_constant_quotes_and_above_the_closed_form(task: Any) -> None:
    best = play(task, OptimalQuotes.for_task(task), range(200)).total.mean()
    closed_form = play(task, ReservationQuotes.for_task(task), range(200)).total.mean()
    constants = [
        play(task, ConstantQuotes(np.full(2, number, np.float32)), range(200)).total.mean()
        for number in (-0.5, -0.25, 0, 0.5, 1)
    ]
    assert max(constants) < 0.2 * best < closed_form < best


def test_words_and_picture(task: Any) -> None:
    params = paper_params(0.1)
    state = task.initial(jax.random.key(0), params)
    assert "filled 140.00 exp(-1.5000 d) times a session" in task.describe(state, params)
    assert task.draw(state, params).shape == task.picture_shape
    assert task.parse("0.5, -1", state, params).tolist() == [0.5, -1]
    assert task.noop_action().tolist() == [1, 1]
    with pytest.raises(ValueError, match="expected an action"):
        task.parse("0.5 1.5", state, params)
