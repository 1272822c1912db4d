"""Check TemporalLogic against robustness over whole traces, and the car against SciPy."""

import math
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from robustness_by_definition import Trace, robustness
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.exploration import temporal_logic
from rlbench_suite.envs.exploration.specification_driver import SpecificationDriver
from rlbench_suite.envs.exploration.temporal_logic import STEP
from rlbench_suite.envs.shared.temporal_logic.formula import (
    Always,
    And,
    Eventually,
    Formula,
    In,
    Not,
    Or,
    Until,
    in_symbols,
    in_words,
)
from rlbench_suite.envs.shared.temporal_logic.monitor import MIN_ROBUSTNESS, Monitor
from rlbench_suite.envs.shared.temporal_logic.specifications import FORMULAS, LEAD_IN, STEPS

pytestmark = pytest.mark.of_variants
CARD = card("TemporalLogic-v0")


def prefixes(formula: Formula, trace: Trace) -> list[float]:
    """Robustness of every beginning of a trace by the monitor."""
    monitor = Monitor(formula)
    memory, values_so_far = (MIN_ROBUSTNESS,) * monitor.size, []
    for sample in range(len(next(iter(trace.values())))):
        value, memory = monitor.step(
            memory, {name: values[sample] for name, values in trace.items()}, sample
        )
        values_so_far.append(float(value))
    return values_so_far


P, Q, R = (In(name) for name in "PQR")
HARDER = (
    Always(Or((Not(P), Q))),
    Eventually(And((P, Eventually(Or((And((Q, R)), Not(P))))))),
    Eventually(And((P, Eventually(Always(Q, 2))))),
    Eventually(And((P, Until(Q, R)))),
    Eventually(Always(P, 2), 3),
    And((Or((Until(P, Q), Eventually(R, 2))), Always(Not(R)))),
    Eventually(Or((Always(P, 1), And((Q, Eventually(R)))))),
)


@pytest.mark.parametrize("formula", HARDER, ids=[in_symbols(formula, 1.0) for formula in HARDER])
def test_monitors_agree_with_the_definition_on_every_prefix(formula: Formula) -> None:
    with jax.disable_jit():
        for seed in range(3):
            trace = {
                name: np.random.default_rng((seed, ord(name))).normal(size=8).tolist()
                for name in "PQR"
            }
            expected = [
                robustness(formula, {n: v[: k + 1] for n, v in trace.items()}) for k in range(8)
            ]
            np.testing.assert_allclose(prefixes(formula, trace), expected, rtol=1e-6)


def test_a_value_of_a_peer() -> None:
    """As stljax computes it: F (x > 3) & G (y < 2) has robustness 0.5 on this trace."""
    trace = {
        "X": [x - 3 for x in (0, 1, 2, 3.5, 2, 1)],
        "Y": [2 - y for y in (0, 0.5, 1, 1.5, 1, 0)],
    }
    assert prefixes(And((Eventually(In("X")), Always(In("Y")))), trace)[-1] == pytest.approx(0.5)


def test_formulas_beyond_the_fragment_are_refused() -> None:
    with pytest.raises(ValueError, match="two parts"):
        Monitor(Eventually(And((Eventually(P), Eventually(Q)))))
    with pytest.raises(ValueError, match="at the top"):
        Monitor(Eventually(And((P, Eventually(Q, 3)))))
    with pytest.raises(ValueError, match="lasts longer"):
        Monitor(Always(Eventually(P))).step((0.0,), {"P": 1.0}, 0)


def test_formulas_in_words() -> None:
    assert in_words(FORMULAS[3], STEP) == (
        "always stay in free, and at some time be in A, and from then on at some time be in B, and "
        "from then on at some time be in C"
    )
    assert in_symbols(FORMULAS[4], STEP) == "(G free & (!A U B) & F A)"


def test_no_plan_satisfies_more_than_four_specifications() -> None:
    """Apply the definition to traces that visit regions for eleven samples each.

    Small letters are visits of two samples.
    """
    satisfied_by = {
        "A": {0, 1, 5},
        "a": {0, 1},
        "AbC": {1, 3, 6},
        "aBC": {1, 3, 6},
        "bA": {1, 2, 4, 6},
        "bAbc": {1, 3, 4, 6},
        "c": set(),
    }
    for plan, expected in satisfied_by.items():
        places = " " * LEAD_IN + "".join(
            f" {name * (11 if name.isupper() else 2)} ".upper() for name in plan
        )
        trace = {name: [1.0 if place == name else -1.0 for place in places] for name in "ABC"}
        trace["free"] = [1.0] * len(places)
        assert {
            i for i, formula in enumerate(FORMULAS) if robustness(formula, trace) > 0
        } == expected, plan


def test_the_text_tells_the_clock() -> None:
    task = CARD.build()
    params = task.sample_params(jax.random.key(0), np.int32(0))
    text = task.describe(task.initial(jax.random.key(0), params), params)
    assert (
        "Its clock shows 2 s before the first step and 32 s after the last: 150 steps of 0.2 s."
        in text
    )
    assert "Step 0 of 150, clock 2.0 s." in text


def plain_values(x: float, y: float, params: Any) -> dict[str, float]:
    values = {
        name: 1.2 - math.hypot(x - float(params.region_x[i]), y - float(params.region_y[i]))
        for i, name in enumerate("ABC")
    }
    hazards = zip(params.hazard_x, params.hazard_y, params.hazard_radius, strict=True)
    away = [math.hypot(x - float(a), y - float(b)) - float(r) for a, b, r in hazards]
    return {**values, "free": min(x, y, 20 - x, 20 - y, *away)}


def test_returns_are_final_robustness_of_whole_traces() -> None:
    """Rewards of the driver's episodes telescope, and success is satisfaction.

    Every specification is played at float64.
    """
    task = CARD.build(dtype="float64")
    env, player = TaskEnv(task, split="test"), SpecificationDriver()
    act = jax.jit(player.act)
    driven_specifications, successes = set(), 0
    for seed in range(40):
        env.reset(seed=seed)
        params = env.params
        if (specification := int(params.specification)) in driven_specifications:
            continue
        driven_specifications.add(specification)
        with jax.enable_x64():
            memory = player.initial(jax.tree.map(jax.numpy.asarray, params))
        start = plain_values(float(params.start.x), float(params.start.y), params)
        trace = {name: [value] * (LEAD_IN + 1) for name, value in start.items()}
        first, total, over = robustness(FORMULAS[specification], trace), 0.0, False
        while not over:
            with jax.enable_x64():
                view = temporal_logic_view(env)
                action, memory = act(memory, view, jax.random.key(0))
            _, reward, over, _, info = env.step(np.clip(np.asarray(action), -1, 1))
            total += reward
            for name, value in plain_values(
                float(env.episode.state.car.x), float(env.episode.state.car.y), params
            ).items():
                trace[name].append(value)
        last = robustness(FORMULAS[specification], trace)
        collided = min(trace["free"]) <= 0
        assert float(env.episode.state.robustness) == pytest.approx(last, abs=1e-9)
        assert info["success"] == (last > 0 and len(trace["free"]) == LEAD_IN + 1 + STEPS)
        telescoped = (
            (np.clip(last, -20, 0) - np.clip(first, -20, 0)) / 10 + info["success"] - collided
        )
        assert total == pytest.approx(telescoped, abs=1e-9)
        successes += info["success"]
    assert driven_specifications == set(range(len(FORMULAS)))
    assert successes >= len(driven_specifications) - 1


def temporal_logic_view(env: Any) -> Any:
    return View(None, None, *jax.tree.map(jax.numpy.asarray, (env.episode.state, env.params)))


def test_car_against_scipy() -> None:
    """One Runge-Kutta step errs by v h (turn h)^4 / 2880 = 6e-6 m (Simpson's rule).

    That is at 3 m/s and at the sharpest turn.
    """
    rng = np.random.default_rng(0)
    with jax.enable_x64():
        step = jax.jit(temporal_logic.drive)
        for _ in range(10):
            start = np.array([3.0, 4.0, rng.uniform(0, 6), rng.uniform(-0.5, 2.5)])
            a, delta = rng.uniform(-2, 2), rng.uniform(-0.6, 0.6)

            def slopes(_: float, y: np.ndarray, a: float, delta: float) -> list[float]:
                return [y[3] * math.cos(y[2]), y[3] * math.sin(y[2]), y[3] * math.tan(delta), a]

            truth = solve_ivp(
                partial(slopes, a=a, delta=delta), (0, STEP), start, rtol=1e-11, atol=1e-12
            ).y[:, -1]
            np.testing.assert_allclose(
                np.array(step(temporal_logic.Pose(*start), a, delta)), truth, atol=1e-5
            )


def test_driver_satisfies_most_specifications_and_standing_none() -> None:
    record = play(CARD.build(), SpecificationDriver(), range(140))
    of = record.info["specification"]
    rates = [record.info["success"][of == index].mean() for index in range(len(FORMULAS))]
    assert min(rates) > 0.7, rates
    assert not record.info["success"][record.info["collided"]].any()


def test_splits_differ_in_the_sum_of_cells() -> None:
    task = CARD.build()
    draw = jax.jit(jax.vmap(task.sample_params, (0, None)))
    for split in (0, 1):
        params = draw(jax.random.split(jax.random.key(1), 200), np.int32(split))
        cells = np.asarray(params.region_x) // 5 + 4 * (np.asarray(params.region_y) // 5)
        assert (cells.sum(1) % 2 == split).all()
        x = np.concatenate(
            [np.asarray(params.start.x)[:, None], params.region_x, params.hazard_x], 1
        )
        y = np.concatenate(
            [np.asarray(params.start.y)[:, None], params.region_y, params.hazard_y], 1
        )
        used = x // 5 + 4 * (y // 5)
        assert all(len(set(row)) == 8 for row in used)
