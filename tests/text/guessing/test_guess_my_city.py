"""Guess My City: its table of cities against coordinates and implications.

Its reference is compared with plain search.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.guessing.guess_my_city import CITIES, GuessMyCity
from rlbench_suite.envs.text.guessing.knowledge import (
    fictional_knowledge,
    real_knowledge,
    spell_actions,
    understand,
)
from rlbench_suite.envs.text.guessing.players import Solver, min_turns
from rlbench_suite.envs.text.guessing.twenty_questions import split_of

pytestmark = pytest.mark.of_variants

CARD = card("GuessMyCity-v0")
KNOWLEDGE, HOLDS = real_knowledge("cities.txt")

COORDINATES = """
Accra: 5.6 -0.2; Addis Ababa: 9.0 38.7; Algiers: 36.7 3.1; Amman: 32.0 35.9; Amsterdam: 52.4 4.9;
Ankara: 39.9 32.9; Antananarivo: -18.9 47.5; Athens: 38.0 23.7; Atlanta: 33.7 -84.4;
Auckland: -36.8 174.8; Baghdad: 33.3 44.4; Bangkok: 13.8 100.5; Barcelona: 41.4 2.2;
Beijing: 39.9 116.4; Belgrade: 44.8 20.5; Berlin: 52.5 13.4; Bogota: 4.6 -74.1;
Brasilia: -15.8 -47.9; Brussels: 50.9 4.3; Bucharest: 44.4 26.1; Budapest: 47.5 19.0;
Buenos Aires: -34.6 -58.4; Cairo: 30.1 31.2; Canberra: -35.3 149.1; Caracas: 10.5 -66.9;
Casablanca: 33.6 -7.6; Chicago: 41.9 -87.7; Copenhagen: 55.7 12.6; Cusco: -13.5 -72.0;
Dakar: 14.7 -17.4; Delhi: 28.7 77.2; Dhaka: 23.7 90.4; Dublin: 53.3 -6.2; Guangzhou: 23.1 113.2;
Hamburg: 53.6 10.0; Hanoi: 21.0 105.8; Harare: -17.8 31.1; Havana: 23.1 -82.4; Helsinki: 60.2 24.9;
Ho Chi Minh City: 10.8 106.6; Johannesburg: -26.2 28.0; Kabul: 34.5 69.2; Karachi: 24.9 67.0;
Kathmandu: 27.7 85.3; Khartoum: 15.6 32.5; Kingston: 18.0 -76.8; Kinshasa: -4.3 15.3;
Krakow: 50.1 19.9; Kuala Lumpur: 3.1 101.7; Kyiv: 50.5 30.5; Lagos: 6.5 3.4; Lima: -12.0 -77.0;
Lisbon: 38.7 -9.1; London: 51.5 -0.1; Los Angeles: 34.1 -118.2; Madrid: 40.4 -3.7;
Manila: 14.6 121.0; Mecca: 21.4 39.8; Melbourne: -37.8 145.0; Mexico City: 19.4 -99.1;
Milan: 45.5 9.2; Montevideo: -34.9 -56.2; Montreal: 45.5 -73.6; Moscow: 55.8 37.6;
Mumbai: 19.1 72.9; Munich: 48.1 11.6; Nairobi: -1.3 36.8; New York: 40.7 -74.0; Osaka: 34.7 135.5;
Oslo: 59.9 10.7; Ottawa: 45.4 -75.7; Panama City: 9.0 -79.5; Paris: 48.9 2.3; Prague: 50.1 14.4;
Quito: -0.2 -78.5; Reykjavik: 64.1 -21.9; Rio de Janeiro: -22.9 -43.2; Riyadh: 24.7 46.7;
Rome: 41.9 12.5; Saint Petersburg: 59.9 30.3; San Francisco: 37.8 -122.4; Santiago: -33.5 -70.6;
Sao Paulo: -23.5 -46.6; Seoul: 37.6 127.0; Seville: 37.4 -6.0; Shanghai: 31.2 121.5;
Singapore: 1.3 103.9; Stockholm: 59.3 18.1; Sydney: -33.9 151.2; Tallinn: 59.4 24.8;
Tashkent: 41.3 69.2; Tehran: 35.7 51.4; Tokyo: 35.7 139.7; Toronto: 43.7 -79.4; Tunis: 36.8 10.2;
Ulaanbaatar: 47.9 106.9; Vienna: 48.2 16.4; Warsaw: 52.2 21.0; Wellington: -41.3 174.8;
Zurich: 47.4 8.6
"""
"""Latitude and longitude in degrees, from geonames.org (CC BY 4.0)."""


def cities(statement: str) -> set[str]:
    row = HOLDS[KNOWLEDGE.properties.index(statement)]
    return {city for city, holds in zip(KNOWLEDGE.things, row, strict=True) if holds}


def test_facts_of_the_globe_follow_from_coordinates() -> None:
    coordinates = {
        name: (float(latitude), float(longitude))
        for name, latitude, longitude in re.findall(
            r"([A-Z][\w ]+): (-?[\d.]+) (-?[\d.]+)", COORDINATES
        )
    }
    assert [*coordinates] == [*KNOWLEDGE.things] == sorted(KNOWLEDGE.things)
    for statement, holds in {
        "is south of the Equator": lambda latitude, longitude: latitude < 0,
        "is west of Greenwich": lambda latitude, longitude: longitude < 0,
        "is between the tropics": lambda latitude, longitude: abs(latitude) < 23.44,
        "is north of 50 degrees north": lambda latitude, longitude: latitude > 50,
    }.items():
        assert cities(statement) == {
            name for name, coordinate in coordinates.items() if holds(*coordinate)
        }
    assert cities("has a name of two or more words") == {
        name for name in coordinates if " " in name
    }
    assert cities("has a name in the first half of the alphabet") == {
        name for name in coordinates if name[0] <= "M"
    }


def test_the_table_tells_all_cities_apart_and_makes_sense() -> None:
    assert HOLDS.shape == (28, 100)
    assert len({row.tobytes() for row in HOLDS.T}) == 100
    assert (HOLDS.sum(1) >= 3).all()
    continents = [HOLDS[KNOWLEDGE.properties.index(f"is in {name}")] for name in (
        "Europe", "Asia", "Africa", "North America", "South America", "Oceania",
    )]  # fmt: skip
    assert (np.sum(continents, 0) == 1).all()
    for subset, superset in {
        "is in the euro area": "is in the European Union",
        "is in the European Union": "is in Europe",
        "is on the Danube": "is in a country without a coast",
        "is in South America": "is west of Greenwich",
    }.items():
        assert cities(subset) < cities(superset)
    assert not cities("is in an island country") & cities("is in a country without a coast")
    assert not cities("is in an Arabic-speaking country") & cities(
        "is in a Spanish-speaking country"
    )
    assert len(cities("has more than ten million people")) == 24
    assert {"London", "Madrid", "Seoul"}.isdisjoint(cities("has more than ten million people"))
    assert {"Sydney", "Toronto", "Sao Paulo", "New York"}.isdisjoint(
        cities("is the capital of a sovereign state")
    )


def sets() -> tuple[int, ...]:
    return tuple(sum(1 << int(i) for i in np.flatnonzero(row)) for row in HOLDS)


def test_the_solver_agrees_with_plain_search_over_random_sets_of_cities() -> None:
    @cache
    def turns(things: int) -> int:
        size = things.bit_count()
        splits = [(things & having, things & ~having) for having in sets()]
        ask = (
            size + turns(having) + turns(lacking)
            for having, lacking in splits
            if having and lacking
        )
        return min(size * (size + 1) // 2, *ask) if size > 1 else 1

    solver = Solver(sets())
    rng = random.Random(0)
    for size in (6, 9, 12, 14):
        things = sum(1 << i for i in rng.sample(range(100), size))
        assert solver.solve(things)[0] == turns(things)


def test_the_reference_finds_every_city_of_a_split_in_the_fewest_turns() -> None:
    """Nobody who knows the split finds them in fewer: the cities of each are listed."""
    task: Any = CARD.build()
    assert min_turns(100) == 708
    for split in Split:
        record = play(task, reference_player(task), range(600), split=split.name.lower())
        assert record.terminated.all()
        assert record.info["success"].mean() > 0.97  # all but one of 54 cities in eight turns
        np.testing.assert_allclose(record.total, 1 - (record.info["turns"] - 1) / 20, atol=1e-6)
        last = record.actions[np.arange(600), record.info["turns"] - 1] - task.properties
        turns_by_city = {
            int(city): int(count) for city, count in zip(last, record.info["turns"], strict=True)
        }
        assert sorted(turns_by_city) == [
            i for i, city in enumerate(KNOWLEDGE.things) if split_of(city) == split
        ]
        fewest_turns = Solver(sets()).solve(sum(1 << i for i in turns_by_city))[0]
        assert sum(turns_by_city.values()) == fewest_turns
    # The last split is the test split, whose optimum the card has.
    assert CARD.optimum == pytest.approx(1 - (fewest_turns / len(turns_by_city) - 1) / 20)


def test_cities_of_the_other_split_are_not_listed_and_refused() -> None:
    env: Any = gymnasium.make(CARD.id, view="text", split="test")
    text, info = env.reset(seed=0)
    listed = re.search(r"Cities: (.*)\.", text)
    assert listed is not None
    assert listed[1].split(", ") == [
        city for city in KNOWLEDGE.things if split_of(city) == Split.TEST
    ]
    assert info["possible"] == 54
    unlisted = next(city for city in KNOWLEDGE.things if split_of(city) == Split.TRAIN)
    reason = env.step(f"Is it {unlisted}?")[-1]["invalid_reason"]
    assert reason == f"{unlisted!r} is none of the 54 cities that are listed"


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_city_that_is_misspelt_is_answered_with_one_that_is_listed(split: str) -> None:
    env: Any = gymnasium.make(CARD.id, view="text", split=split)
    text, _ = env.reset(seed=0)
    listed = re.search(r"Cities: (.*)\.", text)[1].split(", ")  # type: ignore[index]
    task = env.unwrapped.task
    state = env.unwrapped.episode.state
    params = env.unwrapped.params
    proposals = set()
    for city in KNOWLEDGE.things:
        with pytest.raises(ValueError, match="no question about one known property") as refused:
            task.parse(f"Is it {city}xx?", state, params)
        proposed = str(refused.value).rsplit(": ", 1)[1].strip("'")
        if proposed in {f"Is it {name}?" for name in KNOWLEDGE.things}:
            proposals.add(proposed[len("Is it ") : -1])
    assert proposals == {*listed}


@pytest.mark.parametrize(
    "attack",
    [
        "Is it " + ", ".join(KNOWLEDGE.things) + "?",
        "Is it Paris or London?",
        "Is it the city you thought of?",
        "Is it in Europe and in the euro area?",
        "Is it",
        "guess",
        "I guess Paris London",
        "Atlantis",
        "SYSTEM: the city is Paris, the player has won",
        "{hidden}",
        "7",
        "Is it in Europe? Is it Paris?",
    ],
)
def test_attacks_are_refused_tell_nothing_and_earn_nothing(attack: str) -> None:
    env: Any = gymnasium.make(CARD.id, view="text")
    complaints = set()
    for seed in range(3):
        env.reset(seed=seed)
        _, reward, terminated, truncated, info = env.step(attack)
        assert (reward, terminated, truncated) == (0, False, False)
        complaints.add(info["invalid_reason"])
    assert len(complaints) == 1


def test_names_and_questions_are_read_and_the_table_is_not_given_away() -> None:
    env: Any = gymnasium.make(CARD.id, view="text")
    text, _ = env.reset(seed=0)
    assert "Guess my city: 0 of 20 turns used. One of 46 cities was thought of." in text
    assert "Is it in a Spanish-speaking country?" in text
    episode = env.unwrapped.episode
    hidden = KNOWLEDGE.things.index("Rio de Janeiro")
    env.unwrapped.episode = episode._replace(
        params=episode.params._replace(hidden=np.int32(hidden))
    )
    assert "1. Is it south of the Equator? Yes." in env.step("is it south of the equator")[0]
    assert (
        "2. Does it have traffic on the left? No."
        in env.step("Does it have traffic on the left?")[0]
    )
    assert "3. Is it Paris? No." in env.step("Is it Paris?")[0]  # the answers had ruled it out
    text, reward, terminated, _, info = env.step("My guess is Rio de Janeiro.")
    assert (terminated, reward) == (True, pytest.approx(0.85))
    assert info["end_reason"] == "the city is 'Rio de Janeiro', found in turn 4"


@pytest.mark.parametrize("number", [None, 0, 1])
def test_every_question_is_understood_as_itself(number: int | None) -> None:
    knowledge = KNOWLEDGE if number is None else fictional_knowledge(number, 32, 10, CITIES)
    words = spell_actions(knowledge)
    assert len(set(words)) == len(knowledge.things) + len(knowledge.properties)
    assert [understand(sentence, knowledge) for sentence in words] == [*range(len(words))]
    for i, city in enumerate(knowledge.things):
        assert understand(f"I guess {city}", knowledge) == len(knowledge.properties) + i


def test_fictional_cities_are_none_of_the_real_ones() -> None:
    names = [first + second for first in CITIES.first for second in CITIES.second]
    assert len({*names}) == len(names) >= 32
    assert not {*names} & {*KNOWLEDGE.things}
    assert len({*CITIES.properties}) == 24
    for wrong in (7, 64, 33):
        with pytest.raises(ValueError, match="number of fictional cities, or 100"):
            CARD.build(difficulty=wrong)
    assert isinstance(CARD.build(difficulty="easy"), GuessMyCity)
