"""Populations of best responses come closer to an equilibrium of Kuhn poker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.games.fictitious_play import FictitiousPlay
from rlbench_suite.baselines.games.league import League, Role, role
from rlbench_suite.baselines.games.population import PopulationAgent, with_strategy
from rlbench_suite.baselines.games.psro import PSRO
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.game import Duel
from rlbench_suite.core.policy import MixedPolicy, Policy
from rlbench_suite.core.registry import card
from rlbench_suite.envs.games.poker.exploitability import uniform_table, value
from rlbench_suite.envs.games.poker.tabulate import table_of_policy

AGENTS = (FictitiousPlay, PSRO, League)


@pytest.mark.parametrize("agent_class", AGENTS)
def test_kuhn_poker_becomes_hard_to_exploit(
    agent_class: type[PopulationAgent], tmp_path: Path
) -> None:
    """Uniform play has an exploitability of .458 chips a hand, the first response to it .5.

    Seeds 0 to 3 of the first two agents end between .10 and .25, 0 to 2 of the league below .18. A
    mixture is no easier to exploit than its policies are on average, since exploitability is
    convex; it can be easier than the best of them.
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


def test_the_league_trains_three_kinds_of_agents_in_turn() -> None:
    """Place 0 has the untrained policy, 1 and 4 the main agent, 2 and 3 have exploiters.

    Here the league exploiter beats the main agent, which beats all else; other games are drawn.
    """
    league = League()
    assert [role(place) for place in (1, 2, 3, 4)] == [*Role, Role.MAIN]
    assert [league.predecessor(place) for place in (1, 2, 3, 4, 5, 6, 7)] == [0, 0, 0, 1, 0, 0, 4]
    wins = np.array([[0, -1, 0, 0], [1, 0, 1, -1], [0, -1, 0, 0], [0, 1, 0, 0]], float)
    # The main exploiter, for place 2, meets the main agent alone.
    np.testing.assert_array_equal(league.meta_strategy(wins[:2, :2]), [0, 1])
    # The league exploiter has no copy yet, so that those count who beat the untrained policy.
    np.testing.assert_allclose(league.meta_strategy(wins[:3, :3]), np.array([1, 4, 1]) / 6)
    # The main agent meets itself, and those who beat it: places 0 to 3 with weights 0, 1, 0, 4.
    np.testing.assert_allclose(
        league.meta_strategy(wins), 0.35 * np.eye(4)[1] + 0.65 * np.array([0, 1, 0, 4]) / 5
    )
    np.testing.assert_array_equal(league.last_strategy(np.zeros((5, 5))), np.eye(5)[4])
