"""The peer's recorded open-loop runs, all that ``gem_golden.json`` holds, at float64.

Recorded from gym-electric-motor 3.0.3 after step 1 and at the end of up to ten steps. Continuous
ids: duty k at step n is 0.3 cos(0.2 n + 1.3 k); finite ids: switch state k at step n is 3 n + 1 + k
modulo the number of states.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import ode

from rlbench_suite.envs.motor.gem import environment as gem_compat
from rlbench_suite.envs.motor.gem.environment import Environment, environment

pytestmark = pytest.mark.of_variants

GOLDEN = json.loads((Path(__file__).parent / "gem_golden.json").read_text())


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def actions(golden: dict[str, Any], steps: int) -> np.ndarray:
    """The recorded inputs, shape ``(steps, n)``."""
    n = np.arange(steps)[:, None]
    if golden["action_space"].startswith("Box"):
        k = np.arange(int(re.search(r"\((\d+),\)", golden["action_space"])[1]))
        return 0.3 * np.cos(0.2 * n + 1.3 * k)
    sizes = np.array([int(size) for size in re.findall(r"\d+", golden["action_space"])])
    return (3 * n + 1 + np.arange(len(sizes))) % sizes


def run(env: Environment, inputs: np.ndarray) -> np.ndarray:
    program = jax.jit(lambda u: jax.lax.scan(env.step, env.initial(), u)[1])
    return np.asarray(program(inputs))


def with_dopri5(env: Environment, inputs: np.ndarray, rtol: float) -> np.ndarray:
    """Return the same run with SciPy's dopri5, the peer's integrator, at a relative tolerance.

    The peer's default tolerance is 1e-6.
    """
    begin, unravel = ravel_pytree(env.initial())
    applied = jax.jit(lambda y, u: env.apply_action(unravel(y), u))
    rate = jax.jit(lambda y, voltage: ravel_pytree(env.rate(unravel(y), voltage))[0])
    observe = jax.jit(
        lambda y, y1, terminals, voltage: env.observe(terminals, voltage, unravel(y), unravel(y1))
    )
    solver = ode(lambda t, y, voltage: np.asarray(rate(y, voltage))).set_integrator(
        "dopri5", rtol=rtol, atol=1e-12
    )
    solver.set_initial_value(np.asarray(begin), 0.0)
    observations = []
    for action in inputs:
        y = solver.y.copy()
        terminals, voltage = applied(y, action)
        solver.set_f_params(voltage).integrate(solver.t + env.tau)
        observations.append(observe(y, solver.y, terminals, voltage))
    return np.stack(observations)


@pytest.mark.parametrize("name", GOLDEN)
def test_recorded_run(name: str) -> None:
    """Names, scales, ends and every number.

    With the peer's integrator our equations give its numbers to 3e-12, so that what is left between
    our own steps and the record is its integrator's error: at 1e-6 a step, 1e-9 over these runs but
    for two machines whose time constants are of the length of a step.
    """
    golden, env = GOLDEN[name], environment(name)
    assert list(env.state_names) == golden["state_names"]
    np.testing.assert_allclose(env.limits, golden["limits"], rtol=1e-13)
    assert [*env.low] == golden["low"]
    assert [*env.high] == golden["high"]
    assert env.tau == golden["tau"]
    assert env.violation_reward == pytest.approx(golden["violation_reward"], rel=1e-12)
    inputs = actions(golden, golden["n_steps"])
    ours, by_dopri5 = run(env, inputs), with_dopri5(env, inputs, 1e-6)
    np.testing.assert_allclose(
        by_dopri5[[0, -1]], [golden["step1"], golden["last"]], rtol=0, atol=1e-11
    )
    tolerance = 1e-9
    if "SIXPMSM" in name:
        tolerance = 3e-8
    elif "PermExDc" in name:
        tolerance = 2e-9
    np.testing.assert_allclose(
        ours[[0, -1]], [golden["step1"], golden["last"]], rtol=0, atol=tolerance
    )
    # Where the load's Coulomb friction has its corners, about standstill, steps of fixed length
    # lose their order.
    tolerance = 1e-10 if "-SC-" in name else 1e-12
    np.testing.assert_allclose(ours, with_dopri5(env, inputs, 1e-13), rtol=0, atol=tolerance)
    for k, observation in enumerate(ours):
        assert bool(env.is_violated(observation)) == (
            golden["terminated"] and k == golden["n_steps"] - 1
        )


def test_every_id_of_the_peer_runs() -> None:
    """Sixty ids; those without a record too."""
    for control in ("Cont", "Finite"):
        for goal in ("CC", "TC", "SC"):
            for machine in gem_compat.machines():
                env = environment(f"{control}-{goal}-{machine}-v0")
                action = np.zeros(6) if control == "Cont" else np.ones(2, int)
                _, observation = env.step(env.initial(), action)
                assert observation.shape == (len(env.state_names),)
                assert np.isfinite(observation).all()


def test_angle_stays_within_a_turn() -> None:
    env = environment("Cont-CC-PMSM-v0")
    near = env.initial()._replace(angle=jax.numpy.float64(3.13))
    next_state, observation = env.step(near, np.zeros(3))
    turned = 3.13 + 3 * 100 * 1e-4 - 2 * np.pi  # three pole pairs at 100 rad/s
    assert float(next_state.angle) == pytest.approx(turned)
    assert float(observation[env.state_names.index("epsilon")]) == pytest.approx(turned / np.pi)


def test_limits_as_published() -> None:
    """Torque limits that the peer computes, of machines without a record."""
    for name, torque in (("SynRM", 5.832), ("EESM", 129.42)):
        env = environment(f"Cont-CC-{name}-v0")
        assert env.limits[1] == pytest.approx(torque, rel=1e-4)


def test_reward_by_hand() -> None:
    env = environment("Cont-CC-PMSM-v0")
    observation = np.zeros(14)
    observation[5:7] = 0.3, -0.4
    assert float(env.reward(observation, {"i_sd": 0.1, "i_sq": 0.0})) == pytest.approx(
        -0.5 * (0.2 + 0.4) / 2
    )
    observation[5:7] = 0.8, -0.7
    assert float(env.reward(observation, {"i_sd": 0.8, "i_sq": -0.7})) == pytest.approx(-10)
    forward = environment("Cont-SC-SeriesDc-v0")
    # Of a range of one.
    assert float(forward.reward(np.zeros(5), {"omega": 0.25})) == pytest.approx(-0.25)


def test_unknown_id_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="Cont-CC-PMSM-v0"):
        environment("Cont-CC-PSMS-v0")
