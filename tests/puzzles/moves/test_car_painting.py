"""CarPainting against all permutations, and its task against the plain definition."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.moves.car_painting import Instance
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "CarPainting-v0"


def legal_orders(count: int) -> list[tuple[int, ...]]:
    """Permutations in which nobody goes farther than three places."""
    return [
        p
        for p in itertools.permutations(range(count))
        if all(abs(car - k) <= 3 for k, car in enumerate(p))
    ]


def changes(colours: list[int], order: Any) -> int:
    painted = [colours[car] for car in order]
    return sum(painted[k] != painted[k + 1] for k in range(len(painted) - 1))


@pytest.mark.engine("all orders: none is better")
def test_no_order_is_better(compared: Compared) -> None:
    """Try all orders of all cars of the easy tier, on 1,000 lines."""
    puzzle = puzzle_of(NAME, "easy")
    orders = np.array(legal_orders(8))
    for seed in range(1000):
        instance = puzzle.generate(seed)
        painted = instance.colours[orders]
        num_changes = (painted[:, 1:] != painted[:, :-1]).sum(1)
        assert num_changes.min() == instance.fewest < changes(instance.colours.tolist(), range(8))
        answer = [int(word) - 1 for word in puzzle.solve(instance).split()]
        assert tuple(answer) in {
            tuple(order) for order in orders[num_changes == num_changes.min()].tolist()
        }
        compared(puzzle, instance)


def fewest_changes(colours: list[int]) -> int:
    """Return the fewest changes by a search over all states.

    A state is the whole set of used cars, and no car is preferred to another.
    """
    n = len(colours)
    layer = {(0, -1): 0}
    for place in range(n):
        new: dict[tuple[int, int], int] = {}
        for (used, last), cost in layer.items():
            for car in range(max(0, place - 3), min(n, place + 4)):
                if not used >> car & 1:
                    key = used | 1 << car, colours[car]
                    new[key] = min(new.get(key, 99), cost + (last not in (-1, colours[car])))
        layer = new
    return min(layer.values())


@pytest.mark.engine("dynamic programming over all sets of cars: none is better")
@pytest.mark.parametrize("tier", ["medium", "hard"])
def test_longer_lines_too(tier: str, compared: Compared) -> None:
    puzzle = puzzle_of(NAME, tier)
    for seed in range(120):
        instance = puzzle.generate(seed)
        colours = instance.colours.tolist()
        answer = [int(word) - 1 for word in puzzle.solve(instance).split()]
        assert fewest_changes(colours) == instance.fewest == changes(colours, answer)
        assert sorted(answer) == list(range(len(colours)))
        assert all(abs(car - place) <= 3 for place, car in enumerate(answer))
        compared(puzzle, instance)


def test_a_verdict_says_what_an_order_is_worth() -> None:
    puzzle = puzzle_of(NAME, "easy")
    rng = np.random.default_rng(0)
    outcomes = set()
    for seed in range(1000):
        instance = puzzle.generate(seed)
        colours = instance.colours.tolist()
        words = (puzzle.solve if seed % 3 else lambda i, s=seed: puzzle.guess(i, Dice(1, s)))(
            instance
        ).split()
        order = [int(word) - 1 for word in words]
        if seed % 3 == 1:
            first_position, second_position = rng.choice(8, 2)
            order[first_position], order[second_position] = (
                order[second_position],
                order[first_position],
            )
            if seed % 2:
                order[first_position] = order[second_position]
        verdict = puzzle.verify(instance, " ".join(str(car + 1) for car in order))
        assert verdict.valid
        legal = sorted(order) == list(range(8)) and all(
            abs(car - place) <= 3 for place, car in enumerate(order)
        )
        assert verdict.solved == legal
        first = changes(colours, range(8))
        saved = (first - changes(colours, order)) / (first - int(instance.fewest))
        assert verdict.score == pytest.approx(max(0, saved) if legal else 0)
        assert verdict.optimal == (legal and saved == 1)
        outcomes.add((legal, verdict.score in (0, 1)))
    assert len(outcomes) >= 3


@pytest.mark.parametrize(
    "answer",
    ["", "1 2 3", "1,2,3,4,5,6,7,8", "0 1 2 3 4 5 6 7", "1 2 3 4 5 6 7 9", "A B C D E F G H"],
)
def test_other_formats_are_invalid(answer: str) -> None:
    puzzle = puzzle_of(NAME, "easy")
    assert not puzzle.verify(puzzle.generate(0), answer).valid


def test_disguises() -> None:
    puzzle = puzzle_of(NAME)
    for seed in range(50):
        instance = puzzle.generate(seed)
        unrelated = puzzle.generate(seed + 50)
        renamed = np.array([2, 0, 1], np.int8)[instance.colours]
        for colours in (instance.colours[::-1], renamed, renamed[::-1]):
            assert puzzle.canonical(Instance(colours, instance.fewest)) == puzzle.canonical(
                instance
            )
        assert puzzle.canonical(unrelated) != puzzle.canonical(instance)


def test_the_task_plays_by_the_same_rules() -> None:
    """Random legal play of whole episodes, in one batch."""
    task: Any = card(NAME).build(difficulty="easy")
    count, n = 128, task.count
    instances = [task.puzzle.generate(seed) for seed in range(count)]
    stacked = Instance(
        jnp.stack([i.colours for i in instances]), jnp.stack([i.fewest for i in instances])
    )
    context = Params(stacked, jnp.zeros((count, 1), jnp.int16))
    key = jax.random.key(0)
    state = jax.vmap(lambda p: task.initial(key, p))(context)
    masks = jax.jit(jax.vmap(task.action_mask))

    @jax.jit
    @jax.vmap
    def step(state: Any, action: jax.Array, p: Params) -> Any:
        new = task.transition(state, action, key, p)
        return (
            new,
            task.reward(state, action, new, key, p),
            task.terminal(new, key, p),
            task.observation(new, key, p),
        )

    rng = np.random.default_rng(0)
    orders: list[list[int]] = [[] for _ in range(count)]
    total = np.zeros(count)
    for place in range(n):
        mask = np.asarray(masks(state, context))
        for k in range(count):
            free = [
                car for car in range(place - 3, place + 4) if 0 <= car < n and car not in orders[k]
            ]
            legal = [place - 3] if place - 3 in free else free
            assert [place - 3 + a for a in np.flatnonzero(mask[k])] == legal
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
        for order, action in zip(orders, actions.tolist(), strict=True):
            order.append(place - 3 + action)
        state, reward, over, observation = step(state, jnp.asarray(actions), context)
        total += np.asarray(reward)
        assert (np.asarray(over) == (place == n - 1)).all()
        assert np.asarray(observation).min() >= 0
    legal_ones = set(legal_orders(n))
    for k, instance in enumerate(instances):
        colours = instance.colours.tolist()
        assert tuple(orders[k]) in legal_ones
        num_at_first = changes(colours, range(n))
        num_changes = changes(colours, orders[k])
        saved = (num_at_first - num_changes) / (num_at_first - int(instance.fewest))
        assert total[k] == pytest.approx(saved, abs=1e-5)
        assert task.info(jax.tree.map(lambda x, k=k: x[k], state), Params(instance, None))[
            "success"
        ] == (num_changes == instance.fewest)


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_plan_earns_the_optimum(tier: str) -> None:
    task = card(NAME).build(difficulty=tier)
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, 1, atol=1e-4)


def test_people_can_play() -> None:
    task: Any = card(NAME).build(difficulty="easy")
    instance = task.puzzle.generate(0)
    params = Params(instance, np.zeros(1, np.int16))
    key = jax.random.key(0)
    state = task.initial(key, params)
    for car in ("2", " 3", "4"):
        state = task.transition(state, jnp.asarray(task.parse(car, state, params)), key, params)
    text = task.describe(state, params)
    assert task.puzzle.coloured_line(instance) in text
    assert [word.split(":")[0] for word in text.splitlines()[-1].split()] == ["2", "3", "4"]
    assert (
        task.why_illegal(np.int64(5 - 4 + 3), state, params)
        == "car 1 may not go any farther back than here"
    )
    assert task.why_illegal(np.int64(2), state, params) == "car 3 has its place already"
    with pytest.raises(ValueError, match="expected a car from 1 to 7, got '8'"):
        task.parse("8", state, params)
    assert task.draw(state, params).shape == task.picture_shape


@pytest.mark.parametrize("tier", [5, 29, 8.5])
def test_other_sizes_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="the number of cars, 6 to 28, got"):
        puzzle_of(NAME, tier)
