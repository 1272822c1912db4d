"""Agents that learn from vector rewards: their parts by hand, and fronts that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from toy_tasks import EXITS, Exits, TwoAgentsTwoObjectives, TwoAims, card_of

from rlbench_suite.baselines.morl import stored_episodes
from rlbench_suite.baselines.morl.envelope import Envelope, envelope
from rlbench_suite.baselines.morl.gpi_ls import GPILS, corner_weights
from rlbench_suite.baselines.morl.morl_d import MORLD, adapt_weights
from rlbench_suite.baselines.morl.pcn import PCN
from rlbench_suite.baselines.morl.weighted_sac import WeightedSAC
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.policy import FinitePolicySet, PolicySet
from rlbench_suite.core.registry import card
from rlbench_suite.evaluation import protocol
from rlbench_suite.evaluation.statistics.pareto import non_dominated

TASK = card_of(Exits, **EXITS).build()
SHORT: dict[str, Any] = {
    "total_steps": 4_000,
    "num_envs": 8,
    "updates": 4,
    "target_period": 50,
    "learning_starts": 200,
    "learning_rate": 3e-3,
    "reports": 8,
}
"""Settings of agents with replay, for the toy."""


def front_of(agent: Any, folder: Path) -> protocol.Front:
    """Return the front after training, which a saved and loaded policy also has."""
    *_, outcome = protocol.run_cell(agent, TASK, protocol.resolve_cell(agent, TASK, 0, "smoke"))
    assert isinstance(outcome, protocol.Outcome)
    assert outcome.front is not None
    file = str(folder / "policy.safetensors")
    agent.save(outcome.policy, file)
    loaded = agent.load(file, TASK)
    again = protocol.evaluate_front(TASK, loaded, range(20))
    assert again is not None
    assert again.returns == pytest.approx(outcome.front.returns)
    assert isinstance(loaded, FinitePolicySet if isinstance(agent, PCN | MORLD) else PolicySet)
    return outcome.front


# -- learning --------------------------------------------------------------------------------------


def test_pcn_learns_a_concave_front_whole(tmp_path: Path) -> None:
    agent = PCN(total_steps=2_000, num_envs=16, capacity=32, updates=400, batch_size=64, reports=2)
    front = front_of(agent, tmp_path)
    assert non_dominated(front.returns.round(4)) == pytest.approx(TASK.pareto_front())


def test_chebyshev_members_reach_the_concave_part(tmp_path: Path) -> None:
    agent = MORLD(scalarisation="chebyshev", gamma=1.0, **SHORT)
    front = front_of(agent, tmp_path)
    assert non_dominated(front.returns.round(4)) == pytest.approx(TASK.pareto_front())


@pytest.mark.parametrize("agent_class", [Envelope, GPILS, MORLD])
def test_weighted_sums_reach_the_corners_of_the_hull(agent_class: Any, tmp_path: Path) -> None:
    front = front_of(agent_class(**SHORT), tmp_path)
    ends = TASK.pareto_front()[[0, 2]]  # which alone are best for some weighted sum
    assert non_dominated(front.returns.round(4)) == pytest.approx(ends)


def test_weighted_sac_steers_to_what_weights_ask_for(tmp_path: Path) -> None:
    """The ball settles near 1 for the first aim, near -1 for the second, and between for both."""
    task = card_of(TwoAims).build()
    agent = WeightedSAC(total_steps=3_000, num_envs=8, hidden=[32, 32], reports=1)
    *_, policy = agent.train(task, seed=0, budget="smoke")
    file = str(tmp_path / "policy.safetensors")
    agent.save(policy, file)
    front = protocol.evaluate_front(task, agent.load(file, task), range(5))
    assert front is not None
    left_only, *_, right_only = front.returns
    assert right_only[0] > left_only[0] + 4
    assert left_only[1] > right_only[1] + 4
    assert (front.weights * front.returns).sum(1).min() > -12
    with pytest.raises(CannotPlay, match="weighted-sac plays bounded Box"):
        agent.check(TASK)


def test_they_say_what_they_cannot_play() -> None:
    for agent in (PCN(), MORLD(), Envelope(), GPILS()):
        for task, reason in (
            (card("SAT-v0").build(), "has one objective"),
            (card_of(TwoAims).build(), r"plays Discrete actions, not Box"),
            (TwoAgentsTwoObjectives(), "plays for one agent"),
        ):
            with pytest.raises(CannotPlay, match=f"{agent.name} .*{reason}"):
                agent.check(task)


# -- parts -----------------------------------------------------------------------------------------


def test_the_front_of_stored_episodes_is_that_of_the_definition() -> None:
    returns = np.random.default_rng(0).integers(0, 6, (60, 3)).astype(np.float32)
    on_front = returns[np.asarray(stored_episodes.is_on_front(jnp.asarray(returns)))]
    assert sorted(on_front.tolist()) == non_dominated(returns).tolist()


def test_crowding_distances_by_hand() -> None:
    points = jnp.array([[0.0, 10.0], [1.0, 9.0], [2.0, 4.0], [10.0, 0.0]])
    expected = [2, 0.2 + 0.6, 0.9 + 0.9, 2]
    assert stored_episodes.crowding_distance(points).tolist() == pytest.approx(expected)


def test_far_and_repeated_episodes_go_first() -> None:
    returns = jnp.array([[4.0, 0.0], [0.0, 4.0], [4.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    order = np.argsort(-np.asarray(stored_episodes.closeness(returns, 0.0)), kind="stable")
    assert order.tolist() == [0, 1, 3, 2, 4]


def test_an_envelope_is_the_best_of_all_actions_for_all_weights() -> None:
    generator = np.random.default_rng(1)
    values, target_values = generator.standard_normal((2, 3, 4, 5, 2)).astype(np.float32)
    weights = generator.dirichlet((1, 1), 3).astype(np.float32)
    mask = generator.random((4, 5)) < 0.6
    mask[:, 0] = True
    best = np.asarray(envelope(*map(jnp.asarray, (values, target_values, weights, mask))))
    for w in range(3):
        for b in range(4):
            utility = {
                (v, a): weights[w] @ values[v, b, a]
                for v in range(3)
                for a in range(5)
                if mask[b, a]
            }
            v, a = max(utility, key=utility.__getitem__)
            assert best[w, b].tolist() == target_values[v, b, a].tolist()


def test_corners_of_two_objectives_by_hand() -> None:
    """Between (0, 4) and (3, 3) the best changes at w = 1/4, between (3, 3) and (4, 0) at 3/4."""
    values = np.array([[0.0, 4.0], [3.0, 3.0], [4.0, 0.0], [1.0, 1.0]])
    corners = corner_weights(values)
    assert corners[:, 0].tolist() == pytest.approx([0, 0.25, 0.75, 1])


def test_utilities_of_three_objectives_are_linear_between_corners() -> None:
    """A maximum of linear functions is largest relative to any chord at corners.

    So a bound that is linear in the weights and holds at all corners holds everywhere: here the
    utility of a further value, lowered until it gains nothing at any corner.
    """
    generator = np.random.default_rng(2)
    values = generator.random((6, 3))
    corners = corner_weights(values)
    weights = generator.dirichlet((1, 1, 1), 2_000)
    for further in generator.random((50, 3)) + 0.2:
        gain = (corners @ further - (corners @ values.T).max(1)).max()
        everywhere = (weights @ further - (weights @ values.T).max(1)).max()
        assert everywhere <= gain + 1e-3  # corners are rounded to four digits


def test_weights_move_members_apart() -> None:
    weights = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    values = np.array([[0.0, 1.0], [0.5, 0.9], [0.5, 0.9]])
    adapted = adapt_weights(weights, values)
    assert adapted[0, 1] == pytest.approx(1.1 / (1.1 + 1 / 1.1))
    assert adapted[1, 0] == adapted[2, 0] == pytest.approx(1.1 / (1.1 + 1 / 1.1))
