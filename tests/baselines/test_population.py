"""Populations of best responses come closer to an equilibrium of Kuhn poker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.games.fictitious_play import FictitiousPlay
from rlbench_suite.baselines.games.population import PopulationAgent, with_strategy
from rlbench_suite.baselines.games.psro import PSRO
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.game import Duel
from rlbench_suite.core.policy import MixedPolicy, Policy
from rlbench_suite.core.registry import card
from rlbench_suite.envs.games.poker.exploitability import uniform_table, value
from rlbench_suite.envs.games.poker.tabulate import table_of_policy

AGENTS = (FictitiousPlay, PSRO)


@pytest.mark.parametrize("agent_class", AGENTS)
def test_kuhn_poker_becomes_hard_to_exploit(
    agent_class: type[PopulationAgent], tmp_path: Path
) -> None:
    """Uniform play has an exploitability of .458 chips a hand, the first response to it .5.

    Seeds 0 to 3 of both agents end between .10 and .25. A mixture is no easier to exploit than its
    policies are on average, since exploitability is convex; it can be easier than the best of them.
    """
    task: Any = card("Poker-v0", game="kuhn").build()
    agent = agent_class(total_steps=400_000, iterations=10, games=100)
    *progress, policy = agent.train(task, seed=0, budget="smoke")
    assert all(isinstance(report, Progress) for report in progress)
    steps = [report.steps for report in progress]
    assert steps == [steps[0] * i for i in range(1, 11)]
    assert isinstance(policy, Policy)
    assert isinstance(policy, MixedPolicy)
    mean = sum(share * task.game.exploitability(member) for share, member in policy.mixture())
    assert not isinstance(task.opponent, Duel)  # others share the task
    assert task.game.exploitability(policy) < 0.3
    assert task.game.exploitability(policy) <= mean + 1e-9

    file = str(tmp_path / "policy.safetensors")
    agent.save(policy, file)
    loaded = agent.load(file, task)
    assert task.game.exploitability(loaded) == task.game.exploitability(policy)
    for record in (play(task, policy, range(20)), play(task, loaded, range(20))):
        assert np.isfinite(record.total).all()


def test_a_mixture_earns_the_mean_of_its_members() -> None:
    """Returns are linear in the probabilities of policies, which pure ones check best."""
    task: Any = card("Poker-v0", game="kuhn").build()
    agent = PSRO(total_steps=1, iterations=2, evaluate="mode")
    population = agent.untrained_policy(task, agent.config(task, "smoke"))
    generator = np.random.default_rng(0)
    actors = jax.tree.map(
        lambda leaf: generator.normal(size=leaf.shape).astype(np.float32), population.actor.actors
    )
    members = population.actor._replace(actors=actors)
    population = type(population)(members, population.moments, population.flat, population.config)
    mixture = with_strategy(population, np.array([0.5, 0.3, 0.2]))
    betting = task.game.betting
    opponent = uniform_table(betting)
    table = table_of_policy(task.game, mixture)
    assert table is not None
    for swapped in (False, True):

        def earned(table: Any, swapped: bool = swapped) -> float:
            return value(betting, opponent, table) if swapped else value(betting, table, opponent)

        expected = sum(
            share * earned(table_of_policy(task.game, member))
            for share, member in mixture.mixture()
        )
        assert earned(table) == pytest.approx(expected, abs=1e-6)


def test_strategies_of_populations() -> None:
    """The first policy, which is untrained, leaves fictitious play; a dominated one leaves PSRO."""
    ladder = np.array([[0.0, -1.0, -3.0], [1.0, 0.0, -1.0], [3.0, 1.0, 0.0]])
    assert FictitiousPlay().meta_strategy(np.zeros((1, 1))).tolist() == [1]
    assert FictitiousPlay().meta_strategy(ladder).tolist() == [0, 0.5, 0.5]
    assert PSRO().meta_strategy(ladder) == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("agent_class", AGENTS)
def test_a_task_without_another_seat_is_refused(agent_class: type[PopulationAgent]) -> None:
    with pytest.raises(CannotPlay, match="in both seats of a game of two"):
        agent_class().check(card("SAT-v0").build())
