"""Honest archives are accepted to the bit; forged ones are rejected with a reason in a sentence."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from forgery import DRIFT, Forgery, run_agents
from scipy.stats import trim_mean
from ways_to_forge import FORGERIES

from rlbench_suite.core import registry
from rlbench_suite.evaluation.protocol import evaluation_seeds
from rlbench_suite.evaluation.runs.computer import Computer
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.leaderboard import verify as judge
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry, Rejected, Submission
from rlbench_suite.leaderboard.verify import verify

# -- what is honest --------------------------------------------------------------------------------


def test_an_honest_archive_is_accepted_and_gives_the_runs_own_numbers(honest: Path, toy_run: Path):
    verdict = verify(honest)
    assert verdict.problems == ()
    assert verdict.exact
    run = Run.read(toy_run)
    stored = {result.cell: result for result in run.results() if result.agent == "toy"}
    assert len(verdict.cells) == len(stored) == 4
    for result in stored.values():
        (cell,) = [c for c in verdict.cells if (c.task, c.seed) == (result.task, result.seed)]
        for name in (
            "episodes",
            "mean_return",
            "score",
            "success_rate",
            "mean_length",
            "mean_cost",
        ):
            assert getattr(cell, name) == getattr(result, name), name
    assert verdict.submission is not None
    scores = [result.score for result in stored.values()]
    assert verdict.submission.iqm == pytest.approx(trim_mean(scores, 0.25), rel=1e-12)
    assert verdict.submission.mean == pytest.approx(np.mean(scores), rel=1e-12)


def test_archives_of_real_tasks_hold_what_a_single_environment_gives(shelf: Path, tmp_path: Path):
    run = run_agents(tmp_path / "run", "random", "DeepSeaTreasure-v0,SAT-v0", 2)
    path = tmp_path / "random-v1.zip"
    pack(run, Entry(name="random", agent="random"), path)
    assert verify(path).problems == ()
    forgery = Forgery(path)
    for task in ("rlsuite/DeepSeaTreasure-v0", "rlsuite/SAT-v0"):
        env = gymnasium.make(task, split="test", disable_env_checker=True)
        claimed, actions = (forgery.groups(kind, task)[1] for kind in ("episodes", "actions"))
        begins = np.cumsum(claimed["length"]) - claimed["length"]
        for i in (0, 49):
            env.reset(seed=int(evaluation_seeds(registry.card(task), 1, "smoke")[i]))
            total: Any = 0.0
            for action in actions["action_0"][begins[i] :][: claimed["length"][i]]:
                _, reward, terminated, truncated, info = env.step(int(action))
                total = np.add(total, reward)
            assert terminated or truncated
            assert info["success"] == claimed["success"][i]
            assert np.ravel(total).tolist() == pytest.approx(
                [claimed[name][i] for name in claimed if name.startswith("return_")], rel=1e-6
            )


def test_the_same_run_gives_the_same_bytes(honest: Path, toy_run: Path, tmp_path: Path):
    pack(toy_run, Entry(name="toy", agent="toy", authors=("Ada Lovelace",)), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == honest.read_bytes()


def test_no_path_and_no_setting_of_the_machine_is_told(honest: Path, toy_run: Path):
    claims = Forgery(honest).members["submission.json"].decode()
    assert str(Path.home()) not in claims
    assert "JAX_" not in claims
    assert str(toy_run) not in claims


# -- forged claims and traces ----------------------------------------------------------------------


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_rejected_with_the_reason(name: str, honest: Path, tmp_path: Path):
    forge, words = FORGERIES[name]
    forged = Forgery(honest)
    forge(forged)
    verdict = verify(forged.write(tmp_path / "forged.zip"))
    assert not verdict.accepted
    assert any(words in problem for problem in verdict.problems), verdict.problems
    assert len(verdict.problems) <= 50
    for problem in verdict.problems:
        assert "\n" not in problem
        assert problem.endswith(".")
        assert problem.isprintable()
    assert not list(tmp_path.parent.rglob("outside.txt"))


# -- submission.json as text -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            lambda t: t.replace('"protocol":', '"protocol": 2, "protocol":'),
            "'protocol' occurs twice",
        ),
        (lambda t: t.replace('"mean":', '"mean": NaN, "m":'), "NaN is not a JSON number"),
        (lambda t: t.replace('"mean":', '"mean": 1e999, "m":'), "finite number"),
        (lambda t: "[" * 100_000, "nested too deeply"),
        (lambda t: '{"a":' * 900 + "1" + "}" * 900, "is n"),
        (lambda t: t[:-10], "is not JSON"),
        (lambda t: "9" * 10_000, "is not JSON"),
        (lambda t: "null", "is not what"),
        (lambda t: t.replace("Ada", "\\ud800"), "submission.json"),
        (lambda t: " " * (5 * 2**20), "inflates to 5,242,880 bytes; at most 4,194,304"),
    ],
)
def test_text_that_is_no_claim_is_rejected(
    text: Callable[[str], str], words: str, honest: Path, tmp_path: Path
):
    forged = Forgery(honest)
    forged.members["submission.json"] = text(json.dumps(forged.claims)).encode()
    verdict = verify(forged.write_members(tmp_path / "forged.zip"))
    assert len(verdict.problems) == 1
    assert words in verdict.problems[0]
    assert verdict.submission is None


def test_hostile_claims_are_read_in_linear_time():
    """40,000 names took a minute when each was compared with all before it."""
    for names, words in (
        (1000, "'name7' occurs twice"),
        (200_000, "has 200,001 names; at most 1,000"),
    ):
        table = ", ".join(
            [*(f'"name{i}": 1' for i in range(names - 1)), '"name7": 1']
            + ['"last": 1'] * (names > 1000)
        )
        began = time.process_time()
        with pytest.raises(Rejected, match=words):
            Submission.parse(f"{{{table}}}".encode())
        assert time.process_time() - began < 5


def test_of_a_million_wrong_elements_the_first_is_told():
    began = time.process_time()
    with pytest.raises(Rejected, match="is not what"):
        Submission.parse(b'{"tasks": [1' + b",1" * 1_000_000 + b"]}")
    assert time.process_time() - began < 5


def test_a_verdict_names_a_hundred_faults_and_counts_the_others(honest: Path, tmp_path: Path):
    forged = Forgery(honest)
    forged.members |= {f"more/{i}": b"" for i in range(1500)}
    verdict = verify(forged.write(tmp_path / "forged.zip"))
    assert len(verdict.problems) == 101
    assert verdict.problems[-1] == "There are 1,400 more faults, at least."


def test_there_are_many_kinds_of_forgery():
    assert len(FORGERIES) >= 85


# -- other machines --------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(toys: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The judge stands on another instruction set.

    The card allows a difference of 0.01 on returns.
    """
    here = Computer.this()
    monkeypatch.setattr(
        judge.Computer, "this", lambda: here.model_copy(update={"instruction_set": "riscv64"})
    )
    card = registry.card(DRIFT)
    object.__setattr__(card, "replay_tolerance", 0.01)  # cards are frozen
    yield
    object.__setattr__(card, "replay_tolerance", 0.0)


@pytest.mark.parametrize(
    ("by", "accepted"), [(0.0, True), (0.009, True), (-0.009, True), (0.011, False)]
)
def test_across_classes_of_machines_returns_agree_within_the_cards_tolerance(
    by: float, accepted: bool, honest: Path, elsewhere: None, tmp_path: Path
):
    forged = Forgery(honest)
    value = forged.groups("episodes", DRIFT)[0]["return_0"][5]
    forged.change("episodes", "return_0", 5, value + by, DRIFT)
    forged.settle()
    verdict = verify(forged.write(tmp_path / "forged.zip"))
    assert not verdict.exact
    assert verdict.accepted == accepted, verdict.problems
    if not accepted:
        assert (
            "another class of machine; the card allows a difference of 0.01" in verdict.problems[0]
        )


@pytest.mark.parametrize(("by", "accepted"), [(0.008, True), (-0.008, True), (0.01, False)])
def test_across_classes_of_machines_costs_agree_within_a_thousandth_of_the_limit(
    by: float, accepted: bool, honest: Path, elsewhere: None, tmp_path: Path
):
    card = registry.card(DRIFT)
    assert card.constraint
    assert card.constraint.limit == 9.0
    object.__setattr__(card, "replay_tolerance", 1e-6)  # elsewhere sets it back
    forged = Forgery(honest)
    value = forged.groups("episodes", DRIFT)[0]["cost"][5]
    forged.change("episodes", "cost", 5, value + by, DRIFT)
    forged.settle()
    verdict = verify(forged.write(tmp_path / "forged.zip"))
    assert verdict.accepted == accepted, verdict.problems
    if not accepted:
        assert (
            "another class of machine; the card allows a difference of 0.009" in verdict.problems[0]
        )


def test_a_run_that_trained_on_an_accelerator_is_judged_to_the_bit(honest: Path, tmp_path: Path):
    """Its episodes were played on the CPU."""
    forged = Forgery(honest)
    forged.cell()["device"] = "NVIDIA H100"
    verdict = verify(forged.write(tmp_path / "forged.zip"))
    assert verdict.accepted
    assert verdict.exact
