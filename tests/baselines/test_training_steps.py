"""Training lengths: the task's own number of steps, the same for every agent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from rlbench_suite.baselines.configuration import BUDGETS, STEPS, training_steps
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.replay.sac import SAC
from rlbench_suite.core import registry
from rlbench_suite.evaluation.protocol import EPISODES

LEARNERS = [name for name in registry.AGENTS if name not in ("random", "noop", "reference", "mpc")]


def hyperparameters(agent: Any, task_id: str, budget: str) -> dict[str, Any]:
    """Return the steps of an agent on a task that is not built."""
    values: dict[str, Any] = agent.hyperparameters(
        SimpleNamespace(card=registry.card(task_id)), budget
    )
    return values


@pytest.mark.parametrize("name", LEARNERS)
def test_every_agent_trains_for_the_tasks_own_steps(name: str) -> None:
    agent = registry.agent(name)
    offline = getattr(agent, "step_unit", "environment") == "gradient"
    assert offline == (name in ("bc", "td3-bc"))
    tasks = ["QuadcopterHover-v0", "PMSMCurrent-v0", "PointMaze-v0"]
    tasks += (
        []
        if offline
        else ["SAT-v0", "Wordle-v0", "Vicsek-v0", "DeepSeaTreasure-v0", "Hopper-v0", "Slant-v0"]
    )
    for task in tasks:
        for budget in BUDGETS:
            steps = training_steps(
                registry.card(task), budget, "gradient" if offline else "environment"
            )
            assert hyperparameters(agent, task, budget)["total_steps"] == steps, (task, budget)


def test_the_table_names_tasks_that_are_there_and_every_budget() -> None:
    assert set(BUDGETS) == set(EPISODES)
    valid_names = (
        {"default"} | set(registry.cards()) | {card.family for card in registry.cards().values()}
    )
    for table in yaml.safe_load(STEPS.read_text()).values():
        assert table.keys() <= valid_names
        for name, steps in table.items():
            assert list(steps) == list(BUDGETS), name
            assert 0 < steps["smoke"] <= steps["quick"] <= steps["full"], name


def test_an_agents_own_file_may_only_shorten_its_training() -> None:
    """More steps would flatter it. A caller may ask for any number. The report warns of both."""
    shortened = []
    for path in STEPS.parent.glob("*.yaml"):
        for name, values in yaml.safe_load(path.read_text()).items() if path != STEPS else ():
            for budget, steps in values.get("total_steps", {}).items():
                shortened.append((path.stem, name, budget))
                assert 0 < steps < training_steps(registry.card(name), budget), shortened[-1]
    assert shortened == [("mbppo", "rlsuite/Lettuce-v0", budget) for budget in BUDGETS]
    assert hyperparameters(PPO(total_steps=7), "SAT-v0", "smoke")["total_steps"] == 7


def test_unknown_budgets_are_refused() -> None:
    for name in ("ppo", "sb3-ppo"):
        with pytest.raises(ValueError, match=r"Unknown budget 'smok'\. Did you mean 'smoke'"):
            hyperparameters(registry.agent(name), "SAT-v0", "smok")


def test_long_runs_give_signs_of_life() -> None:
    """No chunk of a replay agent makes more updates than take seconds, however long the run."""
    task: Any = SimpleNamespace(card=registry.card("QuadcopterHover-v0"))
    for budget in BUDGETS:
        config = SAC().config(task, budget)
        assert config.chunk * config.updates <= 10_000
        assert (
            config.total_steps <= config.steps < config.total_steps + config.chunk * config.num_envs
        )
