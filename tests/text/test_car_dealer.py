"""CarDealer against its rules in plain Python, and its dynamic programme against search over histories."""

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
from rlbench_suite.adapters.rollout import play
from rlbench_suite.envs.text import car_dealer, haggler
from rlbench_suite.envs.text.car_dealer import TEMPERS, CarDealer, Params
from rlbench_suite.envs.text.haggler import Demands, Haggler, Programme
from rlbench_suite.policy import View
from rlbench_suite.registry import card

pytestmark = pytest.mark.of_variants

CARD = card("CarDealer-v0")
EVERY_TEMPER, EVERY_LEVEL = tuple(range(5)), tuple(range(5))


def offered(z: int, temper: str, level: int, t: int, lowest: int, steps: int) -> int:
    """Return what the other side would offer in round t, in steps for the agent."""
    part = {"boulware": (t / 10) ** 3, "conceder": (t / 10) ** (1 / 3)}.get(temper, t / 10)
    if temper == "tit for tat":
        offer = level * z // 10 + (4 + level) * (steps - lowest) // 10
    else:
        offer = math.floor(round(z * (level + (9 - level) * part) / 10, 9))
    return min(offer, 9 * z // 10)


def gone(temper: str, level: int, t: int) -> bool:
    """Tell whether the other side has left before round t."""
    return t >= 10 or (temper == "impatient" and t > 2 + level)


def test_games_are_those_of_the_rules() -> None:
    env: Any = gymnasium.make(CARD.id, difficulty="easy")
    rng, ends = np.random.default_rng(0), set()
    for seed in range(60):
        observation, _ = env.reset(seed=seed)
        steps, params = env.unwrapped.task.steps, env.unwrapped.params
        who = int(params.surplus), TEMPERS[int(params.temper)], int(params.firmness)
        assert 2 <= who[0] <= steps
        assert who[2] in (0, 2, 4)  # train
        lowest, standing = steps, offered(*who, 0, steps, steps)
        for t in itertools.count():
            assert observation[1 + t] == pytest.approx(standing / steps)
            action = int(rng.choice(steps + 2, p=[*[0.94 / steps] * steps, 0.03, 0.03]))
            observation, reward, terminated, truncated, info = env.step(action)
            gain = standing if action == steps else None
            if action < steps:
                lowest = min(lowest, steps - action)
                standing = offered(*who, t + 1, lowest, steps)
                gain = steps - action if steps - action <= standing else None
            over = gain is not None or action >= steps or gone(*who[1:], t + 1)
            assert (terminated, truncated) == (over, False)
            share = 0 if gain is None else gain / who[0]
            assert reward == pytest.approx(share * 0.95**t, abs=1e-6)
            assert info["success"] is (gain is not None and share >= 0.5)
            assert info["deal"] == (gain is not None)
            assert info["walked"] == (action == steps + 1)
            assert info["left"] == (over and gain is None and action < steps)
            if over:
                ends.add((info["deal"], info["walked"], info["left"]))
                break
    assert len(ends) == 3


# -- the dynamic programme ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 4])
def test_against_one_known_person_the_programme_finds_the_closed_form(level: int) -> None:
    """Time alone moves all but tit for tat: demand what the other side is about to offer, in the best round."""
    steps = 8
    for temper, name in enumerate(TEMPERS):
        value = Programme(steps, (temper,), (level,)).value()
        best = []
        for z in range(2, steps + 1):
            if name == "tit for tat":
                gains = [d for d in range(1, steps + 1) if d <= offered(z, name, level, 1, d, steps)]
                gains.append(offered(z, name, level, 0, steps, steps))
            else:
                rounds = [t for t in range(10) if not gone(name, level, t)]
                gains = [0.95**t * offered(z, name, level, t + 1, steps, steps) for t in rounds]
            best.append(max(gains) / z)
        # Opening offers tell some of the surpluses apart, never all: the programme can do no better.
        assert value <= np.mean(best) + 1e-9
        singles = []
        for z in range(2, steps + 1):
            programme = Programme(steps, (temper,), (level,))
            number = programme.people.index((z, temper, level))
            opening = next(o for o, people in programme.openings().items() if people >> number & 1)
            singles.append(programme.solve(0, steps, 1 << number, opening)[0])
        assert singles == pytest.approx(best)


def test_the_programme_is_search_over_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds, all plans that see what was said: people are split by their words, never counted in sets."""
    monkeypatch.setattr(haggler, "ROUNDS", 3)
    monkeypatch.setattr(car_dealer, "ROUNDS", 3)
    steps = 5
    people = [(z, k, f) for z in range(2, steps + 1) for k in EVERY_TEMPER for f in (1, 3)]
    table = car_dealer.offer_table(steps)

    def best(heard: list[tuple[int, int, int]], demands: tuple[int, ...], standing: int) -> float:
        t = len(demands)
        values = [sum(0.95**t * standing / z for z, *_ in heard)]
        for demand in range(1, steps + 1):
            total, answers = 0.0, {}
            for z, k, f in heard:
                offer = int(table[k, f, z, t + 1, min([*demands, demand])])
                if demand <= offer:
                    total += 0.95**t * demand / z
                elif t + 1 < 3 and not (k == 4 and t + 1 > 2 + f):
                    answers.setdefault(offer, []).append((z, k, f))
            values.append(total + sum(best(those, (*demands, demand), offer) for offer, those in answers.items()))
        return max(values)

    openings: dict[int, list[tuple[int, int, int]]] = {}
    for z, k, f in people:
        openings.setdefault(int(table[k, f, z, 0, steps]), []).append((z, k, f))
    expected = sum(best(those, (), offer) for offer, those in openings.items()) / len(people)
    assert Programme(steps, EVERY_TEMPER, (1, 3)).value() == pytest.approx(expected, rel=1e-12)


def played_against_everyone(task: CarDealer) -> np.ndarray:
    """Return of the reference against every surplus, temper and firmness, ``(people,)``."""
    player, key = Haggler.for_task(task), np.zeros(2, np.uint32)
    people = Programme(task.steps, EVERY_TEMPER, EVERY_LEVEL).people

    def game(surplus: jax.Array, temper: jax.Array, firmness: jax.Array) -> jax.Array:
        params = Params(surplus, temper, firmness, jnp.int32(0), jnp.int32(20_000), jnp.int32(0))
        shown = params._replace(surplus=jnp.int32(-1), temper=jnp.int32(-1), firmness=jnp.int32(-1))

        def turn(carry: Any, _: None) -> Any:
            state, memory, total = carry
            action, memory = player.act(memory, View(None, None, state, shown), key)
            after = task.transition(state, action, key, params)
            reward, over = task.reward(state, action, after, key, params), task.terminal(state, key, params)
            after = jax.tree.map(lambda old, new: jnp.where(over, old, new), state, after)
            return (after, memory, total + jnp.where(over, 0, reward)), None

        begin = task.initial(key, params), player.initial(shown), jnp.float32(0)
        return jax.lax.scan(turn, begin, None, 10)[0][2]

    return np.asarray(jax.jit(jax.vmap(game))(*np.array(people, np.int32).T))


def test_the_reference_earns_the_value_of_the_programme() -> None:
    """Against everyone once: no chance is left."""
    task = CARD.build()
    programme = Programme(task.steps, EVERY_TEMPER, EVERY_LEVEL)
    returns = played_against_everyone(task)
    assert returns.mean() == pytest.approx(programme.value(), abs=1e-6)
    test = [number for number, (*_, f) in enumerate(programme.people) if f in (1, 3)]
    assert CARD.optimum == pytest.approx(Programme(task.steps, EVERY_TEMPER, (1, 3)).value(), rel=1e-12)
    assert 0.97 * CARD.optimum < returns[test].mean() <= CARD.optimum  # it does not know the split


def test_no_constant_or_conceding_demand_comes_near_the_reference() -> None:
    task = CARD.build()
    reference = play(task, Haggler.for_task(task), range(1000), split="test").total
    for first, every in itertools.product(range(2, 11, 2), (1, 2, 100)):
        plain = play(task, Demands(np.int32(first), np.int32(every), task.steps), range(1000), split="test").total
        assert plain.mean() < reference.mean() - 0.02


# -- words -------------------------------------------------------------------------------------------------------------


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
    over, total = False, 0.0
    while not over:
        _, reward, terminated, truncated, info = env.step(attack.format(limit=limit))
        over, total = terminated or truncated, total + reward
        assert info["invalid_action"]
        assert not info["success"]
    assert total == 0
    assert (info["deal"], info["walked"], info["left"]) == (0, 0, 1)


def test_words_tell_the_offers_and_nothing_hidden() -> None:
    env: Any = gymnasium.make(CARD.id, view="text")
    for seed in range(4):
        shown, _ = env.reset(seed=seed)
        task, state, params = env.unwrapped.task, env.unwrapped.episode.state, env.unwrapped.params
        hidden = params._replace(surplus=np.int32(1), temper=np.int32(0), firmness=np.int32(0))
        assert task.describe(state, params) == task.describe(state, hidden)
        price = task.price(int(state.offers[0]), params)
        assert f"Round 1: the other side offers ${price}." in shown
        shown, *_ = env.step(f"Offer ${task.price(task.steps, params):,}.")
        assert f"You offered ${task.price(task.steps, params)}." in shown
        assert env.unwrapped.episode.state.demands[0] == task.steps
        _, _, over, _, info = env.step("walk away")
        assert over
        assert "you walked away (its limit was" in info["end_reason"]
    with pytest.raises(ValueError, match="whole number from 4 to 16"):
        CARD.build(difficulty=3)
