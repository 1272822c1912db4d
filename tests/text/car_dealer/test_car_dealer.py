"""CarDealer against its rules in plain Python.

Its dynamic programme is compared with search over histories.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.text.car_dealer import players
from rlbench_suite.envs.text.car_dealer import task as car_dealer
from rlbench_suite.envs.text.car_dealer.players import Haggler, Programme, population
from rlbench_suite.envs.text.car_dealer.task import SIZES, TEMPERS, CarDealer, Params, sizes

pytestmark = pytest.mark.of_variants

CARD = card("CarDealer-v0")


def offer_of(z: int, temper: str, level: int, t: int, lowest: int, steps: int) -> int:
    """Return what the other side would offer in round t, in steps for the agent."""
    progress = {"boulware": (t / 10) ** 3, "conceder": (t / 10) ** (1 / 3)}.get(temper, t / 10)
    if temper == "tit for tat":
        offer = (4 + level) * z // 20 + (4 + level) * (steps - lowest) // 10
    else:
        offer = math.floor(round(z * (4 + level + (14 - level) * progress) / 20, 9))
    return min(offer, 9 * z // 10)


def has_left(temper: str, level: int, t: int) -> bool:
    """Tell whether the other side has left before round t."""
    return t >= 10 or (temper == "impatient" and t > 2 + level)


def test_games_are_those_of_the_rules() -> None:
    env: Any = gymnasium.make(CARD.id, difficulty="easy")
    rng = np.random.default_rng(0)
    ends = set()
    for seed in range(60):
        observation, _ = env.reset(seed=seed)
        steps = env.unwrapped.task.steps
        params = env.unwrapped.params
        who = int(params.surplus), TEMPERS[int(params.temper)], int(params.firmness)
        assert who[0] in SIZES
        assert (SIZES.index(who[0]) + int(params.temper) + who[2]) % 2 == 0  # train
        lowest = steps
        standing = offer_of(*who, 0, steps, steps)
        for t in itertools.count():
            assert observation[1 + t] == pytest.approx(standing / steps)
            action = int(rng.choice(steps + 2, p=[*[0.94 / steps] * steps, 0.03, 0.03]))
            observation, reward, terminated, truncated, info = env.step(action)
            gain = standing if action == steps else None
            if action < steps:
                lowest = min(lowest, steps - action)
                standing = offer_of(*who, t + 1, lowest, steps)
                gain = steps - action if steps - action <= standing else None
            too_much = action < steps and steps - action > who[0]
            over = gain is not None or action >= steps or has_left(*who[1:], t + 1) or too_much
            assert (terminated, truncated) == (over, False)
            share = 0 if gain is None else gain / who[0]
            assert reward == pytest.approx(max(0, share - 0.5) / 0.4 * 0.95**t, abs=1e-6)
            assert info["success"] is (gain is not None and share >= 0.5)
            assert info["deal"] == (gain is not None)
            assert info["walked"] == (action == steps + 1)
            assert info["left"] == (over and gain is None and action < steps)
            if over:
                ends.add((info["deal"], info["walked"], info["left"]))
                break
    assert len(ends) == 3


# -- the dynamic programme -------------------------------------------------------------------------


def pay_of(gain: float, z: int) -> float:
    """Return what a deal pays before the discount."""
    return max(0.0, gain / z - 0.5) / 0.4


@pytest.mark.parametrize("level", [0, 3])
def test_against_one_known_person_the_programme_finds_the_closed_form(level: int) -> None:
    """The best demand is what the other side is about to offer, in the best round.

    Time alone moves all but tit for tat.
    """
    steps = 16
    for temper, name in enumerate(TEMPERS):
        for z in sizes(steps):
            if name == "tit for tat":
                gains = [d for d in range(1, z + 1) if d <= offer_of(z, name, level, 1, d, steps)]
                best = max(pay_of(gain, z) for gain in gains)
            else:
                rounds = [t for t in range(10) if not has_left(name, level, t)]
                best = max(
                    0.95**t * pay_of(offer_of(z, name, level, t + 1, steps, steps), z)
                    for t in rounds
                )
            assert Programme(steps, [(z, temper, level)]).value() == pytest.approx(best), (name, z)


def test_the_programme_is_search_over_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """In three rounds, all plans that see what was said are searched.

    People are split by their words, and never counted in sets.
    """
    monkeypatch.setattr(players, "ROUNDS", 3)
    monkeypatch.setattr(car_dealer, "ROUNDS", 3)
    steps = 8
    people = population(steps)
    table = car_dealer.offer_table(steps)

    def best_value(
        heard: list[tuple[int, int, int]], demands: tuple[int, ...], standing: int
    ) -> float:
        t = len(demands)
        values = [sum(0.95**t * pay_of(standing, z) for z, *_ in heard)]
        for demand in range(1, steps + 1):
            total = 0.0
            answers = {}
            for z, k, f in heard:
                offer = int(table[k, f, z, t + 1, min([*demands, demand])])
                if demand <= offer:
                    total += 0.95**t * pay_of(demand, z)
                elif demand <= z and t + 1 < 3 and not (k == 4 and t + 1 > 2 + f):
                    answers.setdefault(offer, []).append((z, k, f))
            values.append(
                total
                + sum(
                    best_value(those, (*demands, demand), offer) for offer, those in answers.items()
                )
            )
        return max(values)

    openings: dict[int, list[tuple[int, int, int]]] = {}
    for z, k, f in people:
        openings.setdefault(int(table[k, f, z, 0, steps]), []).append((z, k, f))
    expected = sum(best_value(those, (), offer) for offer, those in openings.items()) / len(people)
    assert Programme(steps).value() == pytest.approx(expected, rel=1e-12)


def play_against_everyone(task: CarDealer) -> np.ndarray:
    """Return of the reference against every surplus, temper and firmness, ``(people,)``."""
    player = Haggler.for_task(task)
    key = np.zeros(2, np.uint32)
    people = population(task.steps)

    def game(surplus: jax.Array, temper: jax.Array, firmness: jax.Array) -> jax.Array:
        params = Params(surplus, temper, firmness, jnp.int32(0), jnp.int32(20_000), jnp.int32(0))
        visible_params = params._replace(
            surplus=jnp.int32(-1), temper=jnp.int32(-1), firmness=jnp.int32(-1)
        )

        def turn(carry: Any, _: None) -> Any:
            state, memory, total = carry
            action, memory = player.act(memory, View(None, None, state, visible_params), key)
            after = task.transition(state, action, key, params)
            reward = task.reward(state, action, after, key, params)
            over = task.terminal(state, key, params)
            after = jax.tree.map(lambda old, new: jnp.where(over, old, new), state, after)
            return (after, memory, total + jnp.where(over, 0, reward)), None

        begin = task.initial(key, params), player.initial(visible_params), jnp.float32(0)
        return jax.lax.scan(turn, begin, None, 10)[0][2]

    return np.asarray(jax.jit(jax.vmap(game))(*np.array(people, np.int32).T))


def test_the_reference_earns_the_value_of_the_programme() -> None:
    """Against everyone once: no chance is left."""
    task = CARD.build()
    returns = play_against_everyone(task)
    assert returns.mean() == pytest.approx(Programme(task.steps).value(), abs=1e-6)
    people = population(task.steps)
    test = [people.index(each) for each in population(task.steps, 1)]
    assert CARD.optimum == pytest.approx(
        Programme(task.steps, population(task.steps, 1)).value(), rel=1e-12
    )
    assert 0.9 * CARD.optimum < returns[test].mean() <= CARD.optimum  # it does not know the split


def test_sizes_tempers_and_levels_are_as_frequent_on_both_splits_and_no_person_is_in_both() -> None:
    for tier in CARD.difficulties.values():
        train, test = (np.array(population(int(tier), split)) for split in (0, 1))
        assert not {*map(tuple, train.tolist())} & {*map(tuple, test.tolist())}
        for column in range(3):
            counts = [np.unique(side[:, column], return_counts=True)[1] for side in (train, test)]
            # Half of an odd number of people with a level is one more on one side.
            odd = column == 2 and len(sizes(int(tier))) % 2
            np.testing.assert_allclose(*counts, rtol=0, atol=int(odd))


def blind_values(
    sequences: np.ndarray, steps: int, people: list[tuple[int, int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean return and success of open-loop sequences, exactly.

    Args:
        sequences: demand in each round, 0 to take the offer, int ``(sequences, 10)``.
        steps: Z.
        people: the population.
    """
    table = car_dealer.offer_table(steps)
    z, k, f = np.array(people).T[:, None]
    shape = len(sequences), len(people)
    lowest = np.full(len(sequences), steps)
    standing = np.broadcast_to(table[k, f, z, 0, steps], shape)
    here = np.ones(shape, bool)
    value = np.zeros(shape)
    share = np.zeros(shape)
    for t, demand in enumerate(sequences.T[..., None]):
        lowest = np.where(demand[:, 0] > 0, np.minimum(lowest, demand[:, 0]), lowest)
        offer = table[k, f, z, t + 1, lowest[:, None]]
        deal = here & ((demand == 0) | (demand <= offer))
        gained = np.where(demand == 0, standing, demand) / z
        share = np.where(deal, gained, share)
        value = np.where(deal, 0.95**t * np.maximum(0, gained - 0.5) / 0.4, value)
        here = here & ~deal & (demand <= z) & ~((k == 4) & (t + 1 > 2 + f))
        standing = offer
    return value.mean(1), (share >= 0.5).mean(1)


@pytest.mark.parametrize("tier", CARD.difficulties)
def test_no_sequence_of_demands_that_ignores_the_offers_scores_a_quarter(tier: str) -> None:
    """1,000 random sequences, all ladders and all waits are tried.

    The best of them are improved by hill climbing on train, and their values on test are exact.
    """
    steps = int(CARD.difficulties[tier])
    rng = np.random.default_rng(0)
    ladders = [
        [max(1, round(first - fall * t)) for t in range(10)]
        for first in range(1, steps + 1)
        for fall in (0, 0.5, 1, 2)
    ]
    waits = [
        [demand] * wait + [0] * (10 - wait) for demand in range(1, steps + 1) for wait in range(10)
    ]
    sequences = np.array([*rng.integers(0, steps + 1, (1000, 10)), *ladders, *waits])
    random = blind_values(sequences[:1000], steps, population(steps, 1))[0].mean()
    train = population(steps, 0)
    tuned = []
    for start in np.argsort(-blind_values(sequences, steps, train)[0])[:4]:
        sequence = sequences[start]
        value = -1.0
        while True:
            nearby = np.repeat(sequence[None], 10 * (steps + 1), 0)
            nearby[np.arange(len(nearby)), np.arange(len(nearby)) // (steps + 1)] = np.arange(
                len(nearby)
            ) % (steps + 1)
            values = blind_values(nearby, steps, train)[0]
            if values.max() <= value + 1e-12:
                break
            sequence = nearby[values.argmax()]
            value = values.max()
        tuned.append(sequence)
    values, successes = blind_values(np.array(tuned), steps, population(steps, 1))
    reference = CARD.scores(tier)["reference"].mean
    assert ((values - random) / (reference - random)).max() < 0.25
    assert successes.max() < 0.35


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attack",
    [
        "offer 0",
        "offer -500",
        "offer 999999999",
        "offer {limit}",
        "offer 21000 22000",
        "offer NaN",
        "accept $1",
        "accept accept",
        "The other side offers $1. accept",
        "SYSTEM: there is a deal",
        "offer",
        "",
    ],
)
def test_words_that_are_no_offer_cost_a_round_and_pay_nothing(attack: str) -> None:
    """They are played as the greatest demand."""
    env: Any = gymnasium.make(CARD.id, view="text")
    env.reset(seed=2)
    limit = int(env.unwrapped.params.limit)
    over = False
    total = 0.0
    while not over:
        _, reward, terminated, truncated, info = env.step(attack.format(limit=limit))
        over = terminated or truncated
        total = total + reward
        assert info["invalid_action"]
        assert not info["success"]
    assert total == 0
    assert (info["deal"], info["walked"], info["left"]) == (0, 0, 1)


def test_words_tell_the_offers_and_nothing_hidden() -> None:
    env: Any = gymnasium.make(CARD.id, view="text")
    for seed in range(4):
        text, _ = env.reset(seed=seed)
        task = env.unwrapped.task
        state = env.unwrapped.episode.state
        params = env.unwrapped.params
        hidden = params._replace(surplus=np.int32(1), temper=np.int32(0), firmness=np.int32(0))
        assert task.describe(state, params) == task.describe(state, hidden)
        price = task.price(int(state.offers[0]), params)
        assert f"Round 1: the other side offers ${price}." in text
        # The most for which the other side stays, and which it never gives.
        demand = int(params.surplus)
        text, *_ = env.step(f"Offer ${task.price(demand, params):,}.")
        assert f"You offered ${task.price(demand, params)}." in text
        assert env.unwrapped.episode.state.demands[0] == demand
        _, _, over, _, info = env.step("walk away")
        assert over
        assert "you walked away (its limit was" in info["end_reason"]
    with pytest.raises(ValueError, match="one of 48, 64, 96"):
        CARD.build(difficulty=3)
