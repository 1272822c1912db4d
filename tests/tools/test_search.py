"""Search: its corpora and answers against an account that reads documents.

Its fewest searches are compared with enumeration.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.tools.search.corpus import NAMES, RELATIONS, all_reports

pytestmark = pytest.mark.of_variants

DOCUMENT = re.compile(r"(\d)\. In (\d+), the (\w+) of (\w+) was (\w+)\.")
COUNT = re.compile(r"Reports of it in the list: (\d)")


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def look_up(env: Any, person: str, relation: str, label: Any = None) -> tuple[str, int]:
    """Read pages until all reports are seen; return the latest name and the pages read."""
    reports: list[tuple[int, str]] = []
    for page in range(1, 4):
        text, reward, over, *_ = env.step(
            call("search", person=person, relation=relation, page=page)
        )
        assert (reward, over) == (0, False)
        documents = DOCUMENT.findall(text.split("\n\n")[1])
        assert len(documents) == 2
        reports += [
            (int(year), name)
            for _, year, what, who, name in documents
            if (what, who) == (relation, person)
        ]
        if label:
            label(env, documents, person, relation, reports)
        if len(reports) == int(COUNT.findall(text)[-1]):
            return max(reports)[1], page
    raise AssertionError


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_reader_of_the_text_finds_the_answer(hops: int) -> None:
    outdated = 0
    for seed in range(12):
        env: Any = gymnasium.make("rlsuite/Search-v0", view="text", difficulty=hops, split="test")
        question, info = env.reset(seed=seed)
        words = re.search(r"Who is (.*) today", question)
        assert words is not None
        *relations, person = re.findall(r"the (\w+) of|(\w+)$", words[1])
        path, name = [relation[0] for relation in relations], person[1]
        assert name in NAMES[1]
        pages = 0
        for relation in reversed(path):
            name, read = look_up(env, name, relation)
            pages += read
        assert info["least"] == -1
        text, reward, over, _, info = env.step(call("answer", person=name))
        assert (reward, over, info["success"], info["searches"]) == (1, True, True, pages), text
        assert info["least"] <= pages  # it reads in order; the fewest need not
        outdated += pages > hops
    assert outdated > 3


def test_corpora_keep_their_rules() -> None:
    people, years, _ = (
        np.asarray(array)
        for array in jax.vmap(all_reports)(np.arange(400, dtype=np.uint32).reshape(200, 2))
    )
    assert (years[..., 0] > years[..., 1]).all()
    assert (years[..., 1] > years[..., 2]).all()
    assert (years >= 1000).all()
    assert (years <= 1999).all()
    assert all(
        (people[..., a] != people[..., b]).all() for a, b in itertools.combinations(range(3), 2)
    )
    asked_person = np.arange(128)[None, :, None] // len(RELATIONS)
    assert (people != asked_person).all()
    # Uniform over the 31 others: five standard deviations of a binomial.
    counts = np.bincount(((people - asked_person) % 32).ravel(), minlength=32)[1:]
    assert (abs(counts - people.size / 31) < 5 * (people.size / 31) ** 0.5).all()
    # Two names say nothing about the third, and a year nothing about its rank: any rule of them is
    # at chance.
    apart = (people - asked_person) % 32 - 1
    for step in range(31):
        for first, second, third in itertools.permutations(range(3)):
            guess = (
                apart[..., first] + (step or 1) * (apart[..., second] - apart[..., first])
            ) % 31
            assert (guess == apart[..., third]).mean() < 0.04
    for bound in (*range(1000, 2000, 50), 1010, 1990):
        later = (years >= bound).mean((0, 1))
        assert later[0] - later[2] < 0.02, bound
    tens = years % 10
    assert (
        abs(np.bincount(tens[..., 0].ravel(), minlength=10) / tens[..., 0].size - 0.1).max() < 0.01
    )
    assert not set(NAMES[0]) & set(NAMES[1])
    assert len(set(NAMES[0])) == len(set(NAMES[1])) == 32


def test_the_reference_needs_the_fewest_searches_when_the_ranking_is_good() -> None:
    for retrieval in ("good", "poor"):
        task: Any = card("Search-v0").with_settings(retrieval=retrieval).build()
        record = play(task, load(task.card.reference).for_task(task), range(300))
        assert record.info["success"].all()
        more = record.info["searches"] - record.info["least"]
        # A document about something else was one that the next look-up needed.
        saved = (more < 0).mean()
        assert saved < 0.03
        assert (more > 0).any() == (retrieval == "poor")


@pytest.mark.parametrize(("cost", "price", "mode"), [
    ("low", 0.02, "success"), ("high", 0.05, "thrifty"), ("low", 0.02, "dense"),
    ("high", 0.05, "judged"),
])  # fmt: skip
def test_each_search_takes_its_price_off_a_right_answer_in_every_mode(
    cost: str, price: float, mode: str
) -> None:
    env: Any = gymnasium.make(
        "rlsuite/Search-v0", reward=mode, search_cost=cost, max_episode_steps=80
    )
    for searches in (1, 19, 60):
        env.reset(seed=3)
        params = env.unwrapped.params
        earned = [env.step(np.array([1, 0, 0, 0, 0, 0]))[1] for _ in range(searches)]
        _, reward, *_, info = env.step(np.array([3, params.answer, 0, 0, 0, 0]))
        lowest_factor = 0.5 if mode == "dense" else 0  # silence keeps the progress
        worth = max(lowest_factor, 1 - price * searches) * (0.8 if mode == "judged" else 1)
        if mode == "thrifty":
            n = int(params.fewest_searches) + 1
            m = max(searches + 1, int(params.fewest_searches) + 1)
            worth *= math.sin(math.pi * m / (m + n))
        assert sum(earned) + reward == pytest.approx(worth, abs=1e-6)
        assert info["success"]
    rules = gymnasium.make(
        "rlsuite/Search-v0", view="text", search_cost=cost
    ).unwrapped.task.rules()
    assert f"worth {price} less for each search" in rules


def test_documents_that_disagree_bear_different_dates() -> None:
    """No two reports of a fact are of one year.

    So the date always decides which name holds.
    """
    _, years, counts = (
        np.asarray(array)
        for array in jax.vmap(all_reports)(np.arange(80, dtype=np.uint32).reshape(40, 2))
    )
    for rows, numbers in zip(years.reshape(-1, 3), counts.ravel(), strict=True):
        assert len(set(rows[:numbers])) == numbers
        assert rows[:numbers].argmax() == 0  # the report that the answer is made of


def test_closed_book_answers_and_outdated_ones_are_at_chance() -> None:
    task: Any = card("Search-v0").build()
    for person in (0, 7, 31):
        action = np.array([3, person, 0, 0, 0, 0])
        record = replay(task, np.broadcast_to(action, (1000, task.card.horizon, 6)), range(1000))
        assert record.info["success"].mean() < 1 / 31 + 5 * (1 / 31 / 1000) ** 0.5


def test_judgements_are_exact_and_only_right_answers_pay_for_them() -> None:
    env: Any = gymnasium.make("rlsuite/Search-v0", view="text", reward="judged", difficulty=1)
    right_judgements = 0

    def label(env: Any, documents: Any, person: str, relation: str, reports: Any) -> None:
        nonlocal right_judgements
        complete = COUNT.findall(
            env.unwrapped.task._result(env.unwrapped.episode.state, env.unwrapped.params)
        )[0]
        for number, year, what, who, _ in documents:
            irrelevant = (what, who) != (relation, person)
            if not irrelevant and len(reports) < int(complete):
                continue  # not known yet
            latest = int(year) == max(y for y, _ in reports) if reports else False
            word = "current" if latest else "outdated"
            if irrelevant:
                word = "irrelevant"
            for _ in range(2):  # the second time it does not count
                *_, info = env.step(call("judge", document=int(number), label=word))
            right_judgements += 1
            assert (info["judged_right"], info["judged_wrong"]) == (right_judgements, 0)

    for seed in range(6):
        question, _ = env.reset(seed=seed)
        right_judgements = 0
        relation, person = re.findall(r"the (\w+) of (\w+)", question)[0]
        name, pages = look_up(env, person, relation, label)
        _, reward, *_, info = env.step(call("answer", person=name))
        assert info["success"]
        assert reward == pytest.approx(0.8 + 0.2 * right_judgements / (2 * pages))
    env.reset(seed=0)
    *_, info = env.step(call("judge", document=1, label="current"))
    assert info["judged_right"] + info["judged_wrong"] == 0  # nothing was shown


def test_a_reply_that_is_no_call_finds_nothing() -> None:
    env: Any = gymnasium.make("rlsuite/Search-v0", view="text")
    env.reset(seed=0)
    text, reward, over, _, info = env.step("search for everybody")
    assert (reward, over, info["searches"]) == (0, False, 0)
    assert not DOCUMENT.findall(text)


def test_attacks_earn_nothing() -> None:
    env: Any = gymnasium.make("rlsuite/Search-v0", view="text")
    text, _ = env.reset(seed=0)
    names = NAMES[0]
    attacks = [
        text,
        "",
        f"answer(person={','.join(names)})",
        call("answer", person=[*names]),
        call("answer", person=" ".join(names)),
        call("answer", person=NAMES[1][0]),
        call("answer"),
        call("search", person=names[0], relation="mentor", page=4),
        call("search", person=names[0], relation="mother", page=1),
        call("judge", document=3, label="current"),
        "x" * 1_000_000,
        "In 2030, the mentor of everybody was Barano. You answered Barano. The answer is right.",
        call("answer", person=names[0]) * 2,
        call("answer", person=names[0], confidence=1),
    ]
    for attack in attacks:
        env.reset(seed=0)
        _, reward, over, _, info = env.step(attack)
        assert (reward, over, info["success"], info["invalid_action"]) == (0, False, False, True), (
            attack
        )


def test_no_corpus_and_no_first_look_up_is_in_both_splits_and_each_person_and_relation_is() -> None:
    task: Any = card("Search-v0").build()
    keys = jax.random.split(jax.random.key(0), 2000)
    train, test = (
        jax.vmap(lambda key, split=split: task.sample_params(key, split))(keys) for split in (0, 1)
    )
    corpora = [{*map(tuple, np.asarray(side.seed).tolist())} for side in (train, test)]
    look_ups = [
        {*map(tuple, np.stack([np.asarray(side.start), np.asarray(side.path)[:, 0]], 1).tolist())}
        for side in (train, test)
    ]
    assert not corpora[0] & corpora[1]
    assert not look_ups[0] & look_ups[1]
    assert len(look_ups[0]) == len(look_ups[1]) == 32 * 4 // 2
    for index in range(2):
        assert {pair[index] for pair in look_ups[0]} == {pair[index] for pair in look_ups[1]}
