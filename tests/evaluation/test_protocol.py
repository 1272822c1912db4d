"""Held-out seeds, and records that are what stepping the environment by hand gives."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlbench_suite.adapters.entry_points import make
from rlbench_suite.adapters.rollout import Record, play, replay
from rlbench_suite.core import registry
from rlbench_suite.core.agent import Progress
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.cell import CellSpec
from rlbench_suite.evaluation.protocol import (
    EPISODES,
    TRAINING_SEEDS,
    Outcome,
    calibration_seeds,
    evaluate,
    evaluation_seeds,
    resolve_cell,
    run_cell,
)

TOYS = ("ToyWalk-v0", "ToyDrift-v0")
CELLS = 100


def every_card() -> list[TaskCard]:
    """Return cards of the tasks that are trained on themselves, each at all of its difficulties."""
    return [
        at_tier
        for card in registry.cards().values()
        for at_tier in (card, *(card.with_difficulty(tier) for tier in list(card.difficulties)[1:]))
        if not card.trained_on
    ]


def share_none(blocks: list[range]) -> bool:
    ordered = sorted(blocks, key=lambda block: block.start)
    return all(block.stop <= following.start for block, following in pairwise(ordered))


def test_evaluation_seeds_are_no_training_seeds_and_no_two_cells_share_one():
    blocks = [
        evaluation_seeds(card, seed, "full")
        for card in every_card()
        for seed in (0, 1, 2, 19, TRAINING_SEEDS - 1)
    ]
    assert all(len(block) == EPISODES["full"] for block in blocks)
    assert share_none(blocks)
    first, last = min(block.start for block in blocks), max(block.stop for block in blocks)
    assert 2 * TRAINING_SEEDS < first < last <= calibration_seeds(1)[0]


def test_a_transfer_is_judged_on_the_episodes_of_the_task_that_was_trained_on():
    transfers = [card for card in registry.cards().values() if card.trained_on]
    assert transfers
    for card in transfers:
        assert evaluation_seeds(card, 1, "full") == evaluation_seeds(
            registry.card(card.trained_on), 1, "full"
        )


@pytest.mark.parametrize("tasks", [("QuadcopterHoverRates-v0", "QuadcopterHoverVelocity-v0")])
def test_tasks_that_sample_the_same_contexts_do_not_share_their_luck(tasks: tuple[str, ...]):
    """The means of the reference's cells correlate .98 between these tasks on equal seeds."""
    built = [registry.card(name).build() for name in tasks]
    separate, shared = [], []
    for task in built:
        for means, block_of in ((separate, task.card), (shared, built[0].card)):
            seeds = [
                evaluation_seeds(block_of, seed, "smoke")[i]
                for seed in range(CELLS)
                for i in range(4)
            ]
            returns = play(task, reference_player(task), seeds).total.reshape(CELLS, 4)
            means.append(returns.mean(1))
    assert np.corrcoef(shared)[0, 1] > 0.9
    # Of independent cells, a correlation lies beyond four standard errors once in 15,000 draws;
    # these seeds are fixed.
    assert abs(np.corrcoef(separate)[0, 1]) < 4 / CELLS**0.5


def test_a_larger_budget_only_adds_episodes():
    card = registry.card("SAT-v0")
    smoke, quick, full = (
        list(evaluation_seeds(card, 3, budget)) for budget in ("smoke", "quick", "full")
    )
    assert quick[: len(smoke)] == smoke
    assert full[: len(quick)] == quick


@pytest.mark.parametrize(("seed", "budget"), [(-1, "smoke"), (2**31, "smoke"), (0, "smokey")])
def test_seeds_out_of_range_and_unknown_budgets_are_refused(seed: int, budget: str):
    with pytest.raises(ValueError, match=r"smokey.*Did you mean 'smoke'|\[0, 2\*\*31\)"):
        evaluation_seeds(registry.card("SAT-v0"), seed, budget)


def by_hand(task: Task[Any, Any], record: Record, seeds: range) -> None:
    """Step each seed's single environment through the recorded actions, and compare bits."""
    env = make(task.card.id, split="test")
    for i, seed in enumerate(seeds):
        env.reset(seed=seed)
        total, cost = np.zeros(task.reward_space.shape), np.float32(0)
        for action in record.actions[i, : record.length[i]]:
            _, reward, terminated, _, info = env.step(action)
            total = total + reward
            cost += np.float32(info.get("cost", 0))
        assert env.episode.total.tobytes() == record.total[i].tobytes()
        # Against the sum of what the environment handed out: the engine adds in float32, one
        # rounding a step.
        assert record.total[i] == pytest.approx(
            total, rel=record.length[i] * np.finfo(np.float32).eps
        )
        assert (terminated, info["success"], cost) == (
            record.terminated[i],
            record.info["success"][i],
            record.cost[i],
        )
        assert terminated or record.length[i] == task.card.horizon


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("agent", ["toy", "toy-host"])
def test_a_cell_is_what_stepping_by_hand_gives_and_replays_to_the_bit(
    toys: Path, name: str, agent: str
):
    task = registry.card(name).build()
    player = registry.agent(agent)
    *progress, outcome = run_cell(player, task, resolve_cell(player, task, 2, "smoke"))
    assert all(isinstance(event, Progress) for event in progress)
    assert isinstance(outcome, Outcome)
    assert outcome.seeds == evaluation_seeds(task.card, 2, "smoke")
    assert outcome.curve == progress
    by_hand(task, outcome.record, outcome.seeds)
    again = replay(task, outcome.record.actions, outcome.seeds)
    for recorded, replayed in zip(outcome.record, again, strict=True):
        for left, right in zip(leaves(recorded), leaves(replayed), strict=True):
            assert left.tobytes() == right.tobytes()


def leaves(tree: Any) -> list[np.ndarray]:
    return [tree[name] for name in sorted(tree)] if isinstance(tree, dict) else [tree]


def test_a_changed_action_changes_the_replayed_return(toys: Path):
    task = registry.card("ToyWalk-v0").build()
    seeds = evaluation_seeds(task.card, 0, "smoke")
    record = play(task, registry.agent("toy").policy(0), seeds)
    changed = record.actions.copy()
    changed[:, 0] = 0  # to the left
    assert (replay(task, changed, seeds).total < record.total).any()
    with pytest.raises(ValueError, match="shape"):
        replay(task, changed[:, :-1], seeds)


def test_seeds_differ_for_a_player_that_learns_nothing(toys: Path):
    """Else its interval over seeds would have no width, as if its score were known exactly."""
    task = registry.card("ToyDrift-v0").build()
    policy = registry.agent("toy").policy(0)
    means = {
        scalar_return(
            task, evaluate(task, policy, evaluation_seeds(task.card, seed, "smoke")).total
        ).mean()
        for seed in range(3)
    }
    assert len(means) == 3


class Odd:
    """An agent that ends with whatever it is given, or with nothing."""

    name = "odd"

    def __init__(self, *policies: Any) -> None:
        self.policies = policies

    def train(self, task: Any, *, seed: int, budget: str, hyperparameters: Any) -> Any:
        yield from self.policies


def test_an_agent_must_give_a_policy_and_may_diverge(toys: Path):
    task = registry.card("ToyDrift-v0").build()
    spec = CellSpec("odd", task.card.id, 0, "smoke", {})
    with pytest.raises(ValueError, match="without giving a policy"):
        list(run_cell(Odd(Progress(1, 1, 1.0, 0.0, 0.0)), task, spec))
    nan = registry.agent("toy").policy(0)._replace(skill=np.float32(-1))

    class Diverged(type(nan)):  # type: ignore[misc]
        def act(self, memory: Any, view: Any, key: Any) -> Any:
            return view.observation[:1] * np.nan, memory

    # The store counts such episodes as the floor.
    *_, outcome = run_cell(Odd(Diverged(nan.skill)), task, spec)
    assert not np.isfinite(outcome.record.total).all()
