"""Check Execution against a replica, linear algebra, and the figures of Almgren & Chriss 2000."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.operations import execution
from rlbench_suite.envs.operations.execution import (
    STEPS,
    BestSchedule,
    Params,
    best_holding,
    best_schedule,
    expected_saving_of_best,
)


class ConstantPace(NamedTuple):
    """The same action in every step."""

    action: Any

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: Any, view: View, key: Any) -> Any:
        return self.action, memory


@pytest.fixture(scope="module")
def task() -> Any:
    return card("Execution-v0").build()


@pytest.fixture(scope="module")
def contexts(task: Any) -> Params:
    """A thousand test contexts."""
    keys = jax.random.split(jax.random.key(0), 1_000)
    sample = jax.jit(jax.vmap(lambda key: task.sample_params(key, jnp.int32(Split.TEST))))
    return jax.device_get(sample(keys))


def cost_matrices(params: Any, steps: int = STEPS) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and b such that holdings x after each step but the last cost x Q x / 2 - b x.

    The cost is the expected shortfall plus the penalty of risk, but for a constant.
    """
    volatility, aversion, temporary, permanent, drift, _ = (float(field) for field in params)
    step_time = 1 / steps
    sold = np.eye(steps, steps - 1, k=-1) - np.eye(steps, steps - 1)  # x before less x after
    impact = 2 * temporary / step_time * sold.T @ sold
    # permanent impact: the sum of x (x before - x)
    after = np.eye(steps, steps - 1)
    cross = permanent * after.T @ sold
    risk = 2 * aversion * volatility**2 * step_time * np.eye(steps - 1)
    linear = np.full(steps - 1, drift * step_time)
    linear[0] += 2 * temporary / step_time - permanent  # the whole order is held before
    return impact + cross + cross.T + risk, linear


# -- the closed form -------------------------------------------------------------------------------


def test_best_schedules_solve_the_linear_equations(contexts: Params) -> None:
    schedules = np.asarray(jax.jit(jax.vmap(best_schedule))(contexts), np.float64)
    for index in range(0, 1_000, 10):
        quadratic, linear = cost_matrices([field[index] for field in contexts])
        truth = np.linalg.solve(quadratic, linear)
        np.testing.assert_allclose(schedules[index, 1:-1], truth, atol=2e-4)


def test_best_schedules_only_sell(contexts: Params) -> None:
    """So the closed form, which knows no limits of the pace, is the best that the task allows."""
    schedules = np.asarray(jax.jit(jax.vmap(best_schedule))(contexts), np.float64)
    sold = -np.diff(schedules, axis=1)
    assert sold.min() > -1e-5
    pace = sold[:, :-1] / schedules[:, :-2] * np.arange(STEPS, 1, -1)
    steep = schedules[:, :-2] > 1e-3
    assert pace[steep].max() < 6
    assert pace[steep].min() > 1 / 6


def test_the_paper_s_example_has_the_paper_s_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million shares at 50 USD in 5 days: lambda 1e-6 / USD gives kappa 0.61 a day.

    Volatility is 0.95 USD, eta 2.5e-6 and gamma 2.5e-7 USD a share.
    """
    monkeypatch.setattr(execution, "STEPS", 5)
    monkeypatch.setattr(execution, "STEP_TIME", 1 / 5)
    order = 1e6 * 50  # USD
    penalty = 1e-6 * 0.95**2 * 1e12 * 5 / order * 1e4  # bp, of the whole order for 5 days
    volatility = 0.95 * 5**0.5 / 50 * 1e4
    temporary = 2.5e-6 * 1e12 / 5 / order * 1e4
    params = Params(
        *(np.float32(x) for x in (volatility, penalty / volatility**2, temporary, 50, 0, 0))
    )
    kappa = np.arccosh(0.5 * 1e-6 * 0.95**2 / (2.5e-6 - 0.5 * 2.5e-7) + 1)
    assert kappa == pytest.approx(0.61, abs=0.005)
    day = np.arange(6)
    truth = np.sinh(kappa * (5 - day)) / np.sinh(5 * kappa)
    np.testing.assert_allclose(best_schedule(params), truth, atol=1e-5)


def test_without_risk_and_drift_the_best_pace_is_even() -> None:
    calm = Params(*(np.float32(x) for x in (100, 1e-9, 10, 5, 0, 0)))
    assert float(best_holding(np.float32(0.5), np.float32(4), calm)) == pytest.approx(0.375, 1e-4)


# -- the rules -------------------------------------------------------------------------------------


def test_days_equal_a_numpy_replica(task: Any, contexts: Params) -> None:
    """A thousand orders with random paces: proceeds of the sales, penalties and the even order."""
    count = 1_000
    keys = jax.random.split(jax.random.key(3), count)
    actions = np.random.default_rng(0).uniform(-1, 1, (STEPS, count, 1)).astype(np.float32)

    def step(state: Any, inputs: Any) -> Any:
        action, number = inputs
        step_keys = jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)
        next_state = jax.vmap(task.transition)(state, action, step_keys, contexts)
        units = jax.vmap(lambda key: task.uniform(key, 1)[0])(step_keys)
        return next_state, (next_state, units)

    start = jax.vmap(task.initial)(keys, contexts)
    scan = jax.jit(lambda start: jax.lax.scan(step, start, (actions, jnp.arange(STEPS))))
    states, units = jax.device_get(scan(start)[1])
    volatility, aversion, temporary, permanent, drift, _ = (
        np.asarray(field, np.float64) for field in contexts
    )
    # Row 0 is the order, row 1 the one that is sold evenly in the same moves.
    left, price, proceeds, risk = np.ones((2, count)), *np.zeros((3, 2, count))
    for number in range(STEPS):
        share = np.minimum(6 ** actions[number, :, 0].astype(np.float64) / (STEPS - number), 1)
        sold = np.stack([left[0] * share, np.full(count, 1 / STEPS)])
        if number == STEPS - 1:
            sold = left.copy()
        proceeds += sold * (price - temporary * sold * STEPS)
        left -= sold
        moves = np.where(units[number] < 0.5, -1, 1) * volatility / STEPS**0.5
        price += drift / STEPS + moves - permanent * sold
        risk += aversion * volatility**2 * left**2 / STEPS
        np.testing.assert_allclose(states.left[number], left[0], atol=1e-5)
        np.testing.assert_allclose(states.price[number], price[0], atol=0.01, rtol=1e-4)
    np.testing.assert_allclose(states.shortfall[-1], -proceeds[0], atol=0.05, rtol=1e-3)
    np.testing.assert_allclose(states.risk[-1], risk[0], rtol=1e-3)
    costs = risk - proceeds
    gains = states.gain.astype(np.float64).sum(0)
    np.testing.assert_allclose(
        gains, (costs[1] - costs[0]) / (aversion * volatility**2), atol=2e-3, rtol=1e-3
    )


def test_shortfall_has_the_mean_and_the_variance_of_the_paper(task: Any, contexts: Params) -> None:
    """Equations 4 and 5 of the paper, with drift: the even schedule in one market, many days."""
    params = jax.tree.map(lambda field: field[7], contexts)
    days = 20_000

    def day(key: jax.Array) -> jax.Array:
        def step(state: Any, number: jax.Array) -> Any:
            key_of_step = jax.random.fold_in(key, number)
            return task.transition(state, jnp.zeros(1), key_of_step, params), None

        return jax.lax.scan(step, task.initial(key, params), jnp.arange(STEPS))[0].shortfall

    shortfalls = np.asarray(jax.jit(jax.vmap(day))(jax.random.split(jax.random.key(0), days)))
    volatility, _, temporary, permanent, drift, _ = (float(field) for field in params)
    left = 1 - np.arange(1, STEPS + 1) / STEPS
    net = temporary - 0.5 * permanent / STEPS
    mean = 0.5 * permanent + net - drift * left.sum() / STEPS
    variance = volatility**2 * (left**2).sum() / STEPS
    assert shortfalls.mean() == pytest.approx(mean, abs=4 * (variance / days) ** 0.5)
    assert shortfalls.var() == pytest.approx(variance, rel=0.04)


def test_an_even_pace_saves_nothing(task: Any) -> None:
    episodes = play(task, ConstantPace(np.zeros(1, np.float32)), range(100))
    np.testing.assert_allclose(episodes.total, 0, atol=1e-4)
    assert not episodes.info["success"].any()
    assert (episodes.info["left"] == 0).all()


def test_train_and_test_urgencies_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 4_000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        net = params.temporary - 0.5 * params.permanent / STEPS
        urgency = params.volatility * np.sqrt(params.risk_aversion / net)
        bands = np.floor(np.log(urgency / 0.5) / np.log(12) * 20)
        assert set(bands) == set(range(split, 20, 2))


# -- the optimum -----------------------------------------------------------------------------------


def test_expected_savings_are_those_of_the_quadratic_form(contexts: Params) -> None:
    savings = np.asarray(jax.jit(jax.vmap(expected_saving_of_best))(contexts), np.float64)
    even = 1 - np.arange(1, STEPS) / STEPS
    for index in range(0, 1_000, 10):
        params = [field[index] for field in contexts]
        quadratic, linear = cost_matrices(params)
        best = np.linalg.solve(quadratic, linear)
        saved = (even @ quadratic @ even - best @ quadratic @ best) / 2 - linear @ (even - best)
        penalty = float(params[1]) * float(params[0]) ** 2
        assert savings[index] == pytest.approx(saved / penalty, rel=0.01, abs=1e-4)
    assert savings.min() > 0


def mean_optimum() -> float:
    """Return the mean of the best expected return over the contexts of tests, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    nodes, weights = (nodes + 1) / 2, weights / 2
    bands = np.arange(1, 20, 2)[:, None] + 0.05 + 0.9 * nodes
    log_urgency = np.log(0.5) + np.log(12) / 20 * bands.ravel()
    weight_of_urgency = np.tile(weights / 10, 10)
    axes = np.meshgrid(log_urgency, nodes, nodes, indexing="ij")
    urgency, permanent, share = np.exp(axes[0]), axes[1] / np.exp(2 * axes[0]), 1.8 * axes[2] - 0.9
    temporary = 1 / urgency**2 + 0.5 * permanent / STEPS
    drift = 2 * share / (np.cosh(urgency) - 1)
    unit = np.ones_like(urgency)
    fields = (unit, unit, temporary, permanent, drift, unit)
    params = Params(*(field.ravel().astype(np.float32) for field in fields))
    savings = np.asarray(jax.jit(jax.vmap(expected_saving_of_best))(params), np.float64)
    weight = np.prod(np.meshgrid(weight_of_urgency, weights, weights, indexing="ij"), 0)
    return float(savings @ weight.ravel())


def test_reference_saves_what_the_best_schedule_saves(task: Any) -> None:
    expected = mean_optimum()
    assert task.card.optimum == pytest.approx(expected, rel=2e-3)
    episodes = play(task, BestSchedule.for_task(task), range(4_000))
    error = float(episodes.total.std()) / 4_000**0.5
    assert episodes.total.mean() == pytest.approx(expected, abs=4 * error)
    assert episodes.info["success"].mean() > 0.98


def test_no_constant_pace_comes_near_the_reference(task: Any) -> None:
    best = task.card.optimum
    for number in (-0.5, -0.2, 0.1, 0.2, 0.3, 0.5, 1):
        player = ConstantPace(np.full(1, number, np.float32))
        assert play(task, player, range(500)).total.mean() < 0.3 * best


def test_words_and_picture(task: Any, contexts: Params) -> None:
    params = jax.tree.map(lambda field: field[0], contexts)
    state = task.initial(jax.random.key(0), params)
    assert "Step 0 of 32: 100.00 % of the order is left" in task.describe(state, params)
    assert task.draw(state, params).shape == task.picture_shape
    with pytest.raises(ValueError, match="expected an action"):
        task.parse("2", state, params)
