"""FishWood against plain Python, a recorded episode, and dynamic programming over counts."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.morl import fish_wood
from rlbench_suite.envs.morl.fish_wood import (
    FISH,
    WOOD,
    FishWood,
    Params,
    State,
    contexts,
    expected_return_front,
    expected_utility_optimum,
)

CARD = card("FishWood-v0")
PUBLISHED = (0.1, 0.9)
"""The chances of MO-Gymnasium's fishwood-v0."""


@pytest.fixture(scope="module")
def task() -> FishWood:
    return CARD.build()


# MO-Gymnasium 1.3.2, fishwood-v0, seed 0: actions, random numbers, and (fish, wood) of 12 steps.
ACTIONS = [1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1]
DRAWS = [
    0.6369616873214543, 0.2697867137638703, 0.04097352393619469, 0.016527635528529094,
    0.8132702392002724, 0.9127555772777217, 0.6066357757671799, 0.7294965609839984,
    0.5436249914654229, 0.9350724237877682, 0.8158535541215322, 0.002738500170148095,
]  # fmt: skip
REWARDS = [
    (0, 1), (0, 1), (1, 0), (0, 1), (0, 1), (0, 0), (0, 1), (0, 0), (0, 1), (0, 0), (0, 1), (0, 1)
]  # fmt: skip


def start() -> State:
    return State(jnp.bool_(True), jnp.int32(0), jnp.int32(0), jnp.int32(0))


def test_steps_are_the_peers(task: FishWood) -> None:
    """A step gathers where it begins; index 0 is fish."""
    state = start()
    params = Params(*PUBLISHED)
    for action, unit, reward in zip(ACTIONS, DRAWS, REWARDS, strict=True):
        next_state = fish_wood.gather(state, action, unit, params)
        assert tuple(task.reward(state, action, next_state, None, params)[:2]) == reward
        assert bool(next_state.in_woods) == (action == WOOD)
        state = next_state


def test_rules_over_random_episodes(task: FishWood) -> None:
    """1,000 random episodes of the rules written plainly, on the same random numbers."""
    episodes = 1_000
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 2, (CARD.horizon, episodes))
    units = rng.random((CARD.horizon, episodes))
    pairs = np.concatenate([contexts(0), contexts(1)])[rng.integers(0, 81, episodes)]
    params = Params(*pairs.T)

    def step(state: State, inputs: tuple) -> tuple[State, jax.Array]:
        action, unit = inputs
        next_state = jax.vmap(fish_wood.gather)(state, action, unit, params)
        return next_state, jax.vmap(task.reward)(state, action, next_state, None, params)

    first = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (episodes,)), start())
    with jax.enable_x64(True):  # the random numbers are compared as they are
        last, rewards = jax.jit(lambda *a: jax.lax.scan(step, *a))(first, (actions, units))
    returns = np.asarray(rewards).sum(0)
    last = State(*map(np.asarray, last))
    for e in range(episodes):
        place, goods = WOOD, [0, 0]
        for action, unit in zip(actions[:, e], units[:, e], strict=True):
            goods[place] += unit < pairs[e, place]
            place = action
        fish, wood = goods
        assert (last.fish[e], last.wood[e]) == (fish, wood)
        assert tuple(returns[e]) == (fish, wood, min(fish, wood // 2))


@cache
def meals_to_come(left: int, place: int, fish: int, wood: int, chances: tuple) -> float:
    """Return the largest expected number of meals, by plain search over all counts."""
    if not left:
        return float(min(fish, wood // 2))
    chance = chances[place]
    gathered = (fish + 1, wood) if place == FISH else (fish, wood + 1)
    return max(
        chance * meals_to_come(left - 1, move, *gathered, chances)
        + (1 - chance) * meals_to_come(left - 1, move, fish, wood, chances)
        for move in (FISH, WOOD)
    )


@pytest.mark.parametrize("chances", [(0.25, 0.65), (0.1, 0.9), (0.45, 0.1), (1.0, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("steps", [1, 2, 13])
def test_optimum_is_that_of_a_plain_search(chances: tuple, steps: int) -> None:
    exact = meals_to_come(steps, WOOD, 0, 0, chances)
    assert expected_utility_optimum(*chances, steps) == pytest.approx(exact, abs=1e-12)


def test_published_optimum_and_the_two_criteria() -> None:
    """The utility of the best expected return (SER) is larger than the expected utility (ESR)."""
    assert expected_utility_optimum(*PUBLISHED) == pytest.approx(16.206612, abs=5e-7)
    assert expected_utility_optimum(0.25, 0.65, 13) == pytest.approx(1.543960, abs=5e-7)
    fish, wood = expected_return_front(*PUBLISHED).T
    assert fish[-1] == pytest.approx(19.9)
    assert wood[0] == pytest.approx(180)
    # Between both ends, where the means are in balance: 0.1 k = 0.45 (200 - k).
    balanced = 0.45 * 200 / 0.55
    assert np.interp(balanced, np.arange(200), fish) == pytest.approx(16.3636, abs=1e-4)
    assert np.minimum(fish, wood / 2).max() <= 16.3637


def test_optimum_refuses_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="Chances"):
        expected_utility_optimum(1.1, 0.5)
    with pytest.raises(ValueError, match="at least 1 step"):
        expected_utility_optimum(0.1, 0.5, 0)


def value_of_reference(fish_chance: float, wood_chance: float) -> float:
    """Return the expected meals of the reference, by its distribution over (place, wood, fish)."""
    chances, counts = (fish_chance, wood_chance), {(WOOD, 0): 1.0}
    meals = 0.0
    # With this rule a fish is only sought with wood for it: each fish is a meal but for the last.
    for _ in range(CARD.horizon):
        next_counts: dict = {}
        for (place, surplus), mass in counts.items():
            fishes = surplus + (place == WOOD) >= 2
            for gathered, share in ((1, chances[place]), (0, 1 - chances[place])):
                meals += mass * share * gathered * (place == FISH)
                after = surplus + gathered * (-2 if place == FISH else 1)
                cell = (FISH if fishes else WOOD, after)
                next_counts[cell] = next_counts.get(cell, 0.0) + mass * share
        counts = next_counts
    return meals - sum(mass * (surplus < 0) for (_, surplus), mass in counts.items())


def test_reference_is_optimal_in_every_context() -> None:
    for pair in (*contexts(0), *contexts(1)):
        assert value_of_reference(*pair) == pytest.approx(
            expected_utility_optimum(*pair), abs=1e-9
        ), pair
    assert CARD.optimum == pytest.approx(
        np.mean([expected_utility_optimum(*pair) for pair in contexts(1)]), abs=1e-12
    )


def test_reference_plays_its_value(task: FishWood) -> None:
    """The mean of 400 test episodes is within four standard errors of the optimum."""
    record = play(task, load(CARD.reference).for_task(task), range(400), split="test")
    meals = record.total[:, 2]
    assert abs(meals.mean() - CARD.optimum) < 4 * meals.std() / 20
    assert record.info["success"].mean() > 0.99
    random = play(task, Uniform(task.action_space), range(400), split="test")
    assert random.total[:, 2].mean() < 0.9 * CARD.optimum
    assert (random.total[:, 2] == np.minimum(random.total[:, 0], random.total[:, 1] // 2)).all()


def test_contexts_of_the_splits_alternate(task: FishWood) -> None:
    pairs_by_split = []
    for split in (0, 1):
        keys = jax.random.split(jax.random.key(split), 4_000)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, split)
        pairs = set(zip(*(np.asarray(chance).round(3).tolist() for chance in params), strict=True))
        assert len(pairs) == len(contexts(split))
        pairs_by_split.append(pairs)
    assert not pairs_by_split[0] & pairs_by_split[1]
    assert len(pairs_by_split[0] | pairs_by_split[1]) == 81


def test_words_and_picture(task: FishWood) -> None:
    state = State(np.bool_(False), np.int32(3), np.int32(5), np.int32(20))
    text = task.describe(state, Params(*PUBLISHED))
    for words in ("at the river", "3 fish", "5 pieces", "180 steps", "0.10", "0.90"):
        assert words in text
    assert task.parse("Wood", state, Params(*PUBLISHED)) == WOOD
    assert task.draw(state, Params(*PUBLISHED)).shape == task.picture_shape
