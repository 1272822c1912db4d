"""Diagnosis against Bayes' rule by enumeration in fractions.

Its reference is compared with exhaustive search.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.diagnosis import players
from rlbench_suite.envs.text.diagnosis.players import BayesOptimal, values
from rlbench_suite.envs.text.diagnosis.task import COST, DISEASES, PERCENT, Diagnosis, Params

pytestmark = pytest.mark.of_variants

CARD = card("Diagnosis-v0")
Answers = dict[int, bool]


def contexts(task: Diagnosis, split: Split, count: int) -> list[Params]:
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    params = jax.tree.map(
        np.asarray, draw(jax.random.split(jax.random.key(3 + split), count), int(split))
    )
    return [Params(*(field[i] for field in params)) for i in range(count)]


def joint(task: Diagnosis, params: Params, answers: Answers) -> list[Fraction]:
    """Sum the probabilities of all complete patients that fit the answers, by disease."""
    total = Fraction(int(params.weights.sum()))
    sums = []
    for disease in range(task.diseases):
        chances = [
            Fraction(int(PERCENT[k, v]), 100)
            for k, v in zip(task.kinds, params.levels[disease], strict=True)
        ]
        fits: Iterator[tuple[bool, ...]] = (
            patient
            for patient in itertools.product((False, True), repeat=task.findings)
            if all(patient[f] == answer for f, answer in answers.items())
        )
        mass = sum(
            math.prod(c if p else 1 - c for c, p in zip(chances, patient, strict=True))
            for patient in fits
        )
        sums.append(int(params.weights[disease]) / total * mass)
    return sums


def best_value(task: Diagnosis, params: Params, answers: Answers) -> Fraction:
    """Return the value of the best play after the answers, times their probability.

    It is found by search without memory.
    """
    now = joint(task, params, answers)
    options = [max(now)]
    for finding in set(range(task.findings)) - answers.keys():
        cost = Fraction(int(COST[task.kinds[finding]]), 100)
        values_by_answer = (
            best_value(task, params, {**answers, finding: answer}) for answer in (False, True)
        )
        options.append(sum(values_by_answer) - cost * sum(now))
    return max(options)


def test_the_shown_evidence_is_the_posterior() -> None:
    task = CARD.build(difficulty=4)
    env: Any = gymnasium.make(CARD.id, difficulty="easy")
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        answers: Answers = {}
        for finding in rng.permutation(task.findings):
            observation, reward, *_ = env.step(int(finding))
            entries = task.named(observation)
            answers[int(finding)] = entries["findings"][finding] == 1
            assert reward == pytest.approx(-COST[task.kinds[finding]] / 100)
            masses = np.array([float(mass) for mass in joint(task, env.unwrapped.params, answers)])
            log_posteriors = entries["evidence"]
            # Five findings and a prior, rounded to thousandths of a nat, on either side.
            assert log_posteriors == pytest.approx(
                np.maximum(np.log(masses / masses.max()) / 10, -1), abs=6e-4
            )
            joint_of_player = players.joint(task, env.unwrapped.episode.state, env.unwrapped.params)
            assert np.asarray(joint_of_player) == pytest.approx(masses, rel=1e-5)
        assert entries["table"] == pytest.approx(
            PERCENT[task.kinds, env.unwrapped.params.levels] / 100
        )


def test_values_are_those_of_exhaustive_search() -> None:
    task = CARD.build(difficulty=3)
    for params in contexts(task, Split.TEST, 6):
        assert float(values(task, params)[0]) == pytest.approx(
            float(best_value(task, params, {})), abs=1e-6
        )


def test_the_reference_earns_the_value_of_the_programme_and_two_questions_ahead_little_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The programme's values at the start, averaged over tables, agree with games.

    The bound is four standard errors.
    """
    task = CARD.build(difficulty="easy")
    record = play(task, BayesOptimal.for_task(task), range(1000), split="test")
    params_of_tables: Any = Params(
        *map(np.stack, zip(*contexts(task, Split.TEST, 1000), strict=True))
    )
    value = np.asarray(jax.jit(jax.vmap(lambda params: values(task, params)[0]))(params_of_tables))
    error = np.hypot(record.total.std(), value.std()) / 1000**0.5
    assert abs(record.total.mean() - value.mean()) < 4 * error
    monkeypatch.setattr(players, "MAX_EXACT_FINDINGS", 0)
    ahead = play(task, BayesOptimal(task), range(1000), split="test")
    assert abs(record.total - ahead.total).mean() < 0.05
    assert ahead.total.mean() < record.total.mean() + 0.01


def test_findings_are_as_frequent_as_the_table_says_and_the_splits_share_no_table() -> None:
    task = CARD.build()
    for split in Split:
        params_of_tables = contexts(task, split, 4000)
        assert {int(params.levels.sum()) % 2 for params in params_of_tables} == {split}
        expected = []
        findings = []
        prior = []
        ill = []
        for params in params_of_tables:
            expected.append(PERCENT[task.kinds, params.levels[params.disease]] / 100)
            findings.append([int(params.findings) >> f & 1 for f in range(task.findings)])
            prior.append(params.weights / params.weights.sum())
            ill.append(np.arange(task.diseases) == params.disease)
        for chances, happened in ((np.array(expected), findings), (np.array(prior), ill)):
            error = np.sqrt((chances * (1 - chances)).sum(0)) / len(params_of_tables)
            assert (np.abs((np.array(happened) - chances).mean(0)) < 5 * error).all()


def test_a_conclusion_without_a_question_earns_the_prior_or_chance() -> None:
    """The likeliest disease is right as often as the shown prior says.

    Any other guess is right in one of D episodes.
    """
    env: Any = gymnasium.make(CARD.id, split="test", difficulty="easy")
    findings = env.unwrapped.task.findings
    diseases = env.unwrapped.task.diseases
    games = 1000
    likeliest, blind, prior = np.zeros(games), np.zeros(games), np.zeros(games)
    for seed in range(games):
        env.reset(seed=seed)
        weights = env.unwrapped.params.weights
        prior[seed] = weights.max() / weights.sum()
        likeliest[seed] = env.step(findings + int(weights.argmax()))[1]
        env.reset(seed=seed)
        blind[seed] = env.step(findings + seed % diseases)[1]
    for earned, chance in ((likeliest, prior), (blind, np.full(games, 1 / diseases))):
        assert abs(np.mean(earned - chance)) < 4 * np.sqrt((chance * (1 - chance)).sum()) / games
    assert CARD.normalise(blind.mean(), "easy") < 0.1
    assert CARD.normalise(likeliest.mean(), "easy") < 0.5


ATTACKS = (
    "conclude " + " ".join(DISEASES),
    "conclude arvenosis or boltitis",
    "conclude {disease}",
    "conclude",
    "ask everything",
    "order biopsy, order x-ray",
    "The patient: cough: present. Spent: 0.00.",
    "SYSTEM: the conclusion is right",
    "info['success'] = True",
    "0",
    "",
)


def test_words_that_are_no_action_pay_nothing() -> None:
    """Such words are played as the no-op action.

    It asks for the first symptom and pays for it once.
    """
    env: Any = gymnasium.make(CARD.id, view="text", difficulty="easy")
    for attack in ATTACKS:
        env.reset(seed=1)
        total = 0.0
        over = False
        while not over:
            text, reward, terminated, over, info = env.step(attack)
            total += reward
            assert info["invalid_action"]
            assert not terminated
            assert not info["success"]
        assert total == pytest.approx(-0.02)
        assert "no-op action was played instead" in text
    env.reset(seed=1)
    truth = DISEASES[int(env.unwrapped.params.disease)]
    text, reward, terminated, _, info = env.step(f"Conclude  {truth}")
    assert (reward, terminated, info["success"], info["concluded"]) == (1, True, True, 1)
    assert f"the conclusion {truth!r} is right" in text


def test_text_hides_the_patient_and_a_known_finding_is_refused() -> None:
    env: Any = gymnasium.make(CARD.id, view="text")
    text, _ = env.reset(seed=0)
    task = env.unwrapped.task
    params = env.unwrapped.params
    alternative = params._replace(
        disease=(params.disease + 1) % task.diseases, findings=~params.findings
    )
    assert task.describe(env.unwrapped.episode.state, params) == task.describe(
        env.unwrapped.episode.state, alternative
    )
    assert "nothing is known yet" in text
    env.step("ask cough")
    text, reward, *_, info = env.step("ask cough")
    assert reward == 0
    assert info["invalid_reason"] in {
        "cough: present is known already",
        "cough: absent is known already",
    }
    with pytest.raises(ValueError, match="whole number from 3 to 12"):
        CARD.build(difficulty=2.5)
