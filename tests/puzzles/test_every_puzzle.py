"""Laws that every puzzle's one-shot form must keep, over all ids and tiers.

They are those of `rlbench_suite.puzzle.puzzle`.
"""

from __future__ import annotations

import math
import re
import time
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hostile_replies import MAX_READING_SECONDS

from rlbench_suite.core.task_card import SPLITS, TaskCard
from rlbench_suite.evaluation.analysis.one_shot import best_constant
from rlbench_suite.evaluation.statistics.wilson import wilson_interval
from rlbench_suite.language.dataset import PuzzleDataset
from rlbench_suite.language.lenient import judge_answer
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.language.trl import environment_factory
from rlbench_suite.puzzle.bank import STOP, bank_of_both_splits, build_bank, load_bank
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import CLOSING, MAX_ANSWER_SIZE, OPENING, Puzzle

pytestmark = pytest.mark.every_puzzle
every_tier = pytest.mark.parametrize("tier", ["easy", "medium", "hard"])

SAMPLE = 60


@cache
def sample(
    task_id: str, tier: str | None = None, split: str = "test", count: int = SAMPLE
) -> list[Any]:
    """Some instances, made once."""
    puzzle = puzzle_of(task_id, tier)
    return [puzzle.generate(seed, split) for seed in range(count)]


# -- attacks: no trick scores above chance, none takes long, none raises ---------------------------


def attacks(puzzle: Puzzle[Any], instances: list[Any]) -> dict[str, Any]:
    """Name to an answer, or to a function of the instance that gives one."""
    right = [puzzle.solve(instance) for instance in instances]
    constant = best_constant(puzzle, SAMPLE)
    fixed = {
        "nothing": "",
        "whitespace": " \n \n ",
        "constant": constant,
        "every answer listed": "\n".join(dict.fromkeys(right)),
        "every answer on a line": " ".join(" ".join(answer.split()) for answer in right),
        "python": "__import__('os').system('true')",
        "eval": "eval('1+1') or (lambda: True)()",
        "template": "{{7*7}} ${7*7} %s%s%n",
        "million digits": "9" * 1_000_000,
        "thousands of digits": "9" * MAX_ANSWER_SIZE,
        "many numbers": "1 " * (MAX_ANSWER_SIZE // 2),
        "deep parentheses": "(" * 4_999 + "1" + ")" * 4_999,
        "deeper parentheses": "(" * 10_000 + "1" + ")" * 10_000,
        "operators": "1" + "+1" * 4_000,
        "powers": "9**9**9**9",
        "not a number": "nan inf -inf 1e999",
        "boxed nothing": "\\boxed{}",
        "yes": "yes",
        "null": "\0",
        "tags": f"{OPENING}{CLOSING}" * 100,
    }
    of_instance = {
        "echo": puzzle.prompt,
        "the example": lambda instance: puzzle.example_answers(instance)[0].answer,
        "the last example": lambda instance: puzzle.example_answers(instance)[-1].answer,
        "the prompt's last tags": lambda instance: puzzle.extract(puzzle.prompt(instance)),
        "the prompt without its last line": lambda instance: puzzle.extract(
            puzzle.prompt(instance).rpartition("\n")[0]
        ),
        "twice": lambda instance: puzzle.solve(instance) + "\n" + puzzle.solve(instance),
        "superset": lambda instance: puzzle.solve(instance) + " " + constant,
        "full width": lambda instance: puzzle.solve(instance).translate(WIDE),
        "look-alikes": lambda instance: puzzle.solve(instance).translate(CYRILLIC) + "\u0430",
        "zero width": lambda instance: puzzle.solve(instance) + "\u200b",
        "comment": lambda instance: puzzle.solve(instance) + " # right",
        "code fence": lambda instance: f"```\n{puzzle.solve(instance)}\n```",
        "duplicated key": lambda instance: f'{{"answer": 1, "answer": "{puzzle.solve(instance)}"}}',
    }
    return fixed | of_instance


WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
"""Visible ASCII to its forms of full width; ``str.isdigit`` and ``int`` take the digits among them.
"""
CYRILLIC = {ord("a"): "\u0430", ord("o"): "\u043e", ord("e"): "\u0435", ord("1"): "\u0661"}


DECORATED = {"full width", "code fence"}
"""Attacks whose answer is right for a lenient reader."""


def test_no_attack_beats_chance(card: TaskCard) -> None:
    puzzle, instances = puzzle_of(card.id), sample(card.id)
    measured = card.one_shot_scores()
    chance = max(
        measured["guess"].mean, measured["constant"].mean if "constant" in measured else 0.0
    )
    allowed = chance + 3 * math.sqrt(max(chance * (1 - chance), 1 / 1000) / len(instances))
    for (name, attack), lenient in product(attacks(puzzle, instances).items(), (False, True)):
        if lenient and name in DECORATED:
            continue
        scores = []
        for instance in instances:
            answer = attack(instance) if callable(attack) else attack
            start_time = time.process_time()
            scores.append(judge_answer(puzzle, instance, answer, lenient=lenient).score)
            assert time.process_time() - start_time < MAX_READING_SECONDS, name
        assert fmean(scores) <= allowed, (
            f"{name} scores {fmean(scores)}, chance is {chance}, lenient is {lenient}"
        )


def test_the_answer_is_what_stands_in_the_last_tags(card: TaskCard) -> None:
    puzzle, instance = puzzle_of(card.id), sample(card.id)[0]
    right = puzzle.solve(instance)
    reply = f"I try {OPENING}no{CLOSING} first.\n{OPENING}\n{right}\n{CLOSING} That is it."
    assert puzzle.verify(instance, puzzle.extract(reply)).score == 1
    assert puzzle.extract(f"{right}") is None
    assert puzzle.extract(f"{CLOSING}{right}{OPENING}") is None
    assert (
        puzzle.verify(
            instance, puzzle.extract(f"{OPENING}{right}{CLOSING}{OPENING}{CLOSING}")
        ).score
        < 1
    )
    assert not puzzle.verify(instance, None).valid


# -- the generator ---------------------------------------------------------------------------------


@every_tier
def test_the_solver_solves_and_the_card_says_so(card: TaskCard, tier: str) -> None:
    puzzle = puzzle_of(card.id, tier)
    for instance in sample(card.id, tier):
        verdict = puzzle.verify(instance, puzzle.solve(instance))
        assert verdict == (True, True, True, 1.0, ""), verdict
    assert card.one_shot_scores(tier)["solver"].mean == 1


@every_tier
def test_measured_scores_are_found_again(card: TaskCard, tier: str) -> None:
    """Measure again on fewer instances of the same seeds.

    Each interval holds, up to the noise of both.
    """
    puzzle, measured = puzzle_of(card.id, tier), card.one_shot_scores(tier)
    instances = sample(card.id, tier)
    assert measured["nothing"].mean == 0
    for name, answers in (
        ("heuristic", [puzzle.heuristic(instance) for instance in instances]),
        (
            "guess",
            [puzzle.guess(instance, Dice(0, seed)) for seed, instance in enumerate(instances)],
        ),
    ):
        verdicts = [
            puzzle.verify(instance, answer)
            for instance, answer in zip(instances, answers, strict=True)
        ]
        interval = wilson_interval([verdict.score for verdict in verdicts])
        wide = 1.6 * (interval.high - interval.low) / 2
        middle = (interval.low + interval.high) / 2
        assert middle - wide <= measured[name].high and measured[name].low <= middle + wide, (  # noqa: PT018
            name,
            interval,
        )
        if name == "guess":
            assert all(verdict.valid for verdict in verdicts), "a guess has the right format"


def test_the_card_knows_which_difficulties_there_are(card: TaskCard) -> None:
    tiers = card.one_shot_difficulties
    assert list(tiers) == sorted(tiers)
    assert set(card.difficulties.values()) <= set(tiers)
    for beyond in (min(tiers) - 1, max(tiers) + 1, min(tiers) + 0.5):
        with pytest.raises(ValueError, match=r"difficulty is .*, got ") as error:
            puzzle_of(card.id, beyond)
        assert puzzle_of(card.id).known_tiers() in str(error.value)


def test_harder_tiers_are_harder(card: TaskCard) -> None:
    easy, medium, hard = (
        card.one_shot_scores(tier)["difficulty"] for tier in ("easy", "medium", "hard")
    )
    assert easy.high < medium.low
    assert medium.high < hard.low


def test_instances_depend_on_seed_split_and_tier_alone(card: TaskCard) -> None:
    first_copy, second_copy = (puzzle_of(card.id) for _ in range(2))
    backwards = [
        second_copy.to_plain(second_copy.generate(seed, "test")) for seed in reversed(range(10))
    ]
    assert [first_copy.to_plain(instance) for instance in sample(card.id)[:10]] == backwards[::-1]
    with pytest.raises(ValueError, match="Did you mean 'test'"):
        first_copy.generate(0, "tests")
    with pytest.raises(ValueError, match="A seed is an integer"):
        first_copy.generate(-1)


def test_splits_never_overlap(card: TaskCard) -> None:
    puzzle = puzzle_of(card.id)
    for split in SPLITS:
        instances = sample(card.id, None, split)
        assert {puzzle.split_of(instance) for instance in instances} == {split}


@every_tier
def test_seeds_give_different_puzzles(card: TaskCard, tier: str) -> None:
    puzzle = puzzle_of(card.id, tier)
    if puzzle.space > 100 * SAMPLE**2:  # few meet by chance
        canonical = {puzzle.canonical(instance) for instance in sample(card.id, tier)}
        assert len(canonical) >= 0.95 * SAMPLE


def test_an_instance_survives_json(card: TaskCard) -> None:
    puzzle, instance = puzzle_of(card.id), sample(card.id)[0]
    again = puzzle.from_plain(puzzle.to_plain(instance))
    assert puzzle.prompt(again) == puzzle.prompt(instance)
    assert puzzle.canonical(again) == puzzle.canonical(instance)
    with pytest.raises(ValueError, match="has the fields"):
        puzzle.from_plain({"nothing": 1})


@every_tier
def test_the_prompt_tells_all_in_ascii(card: TaskCard, tier: str) -> None:
    puzzle = puzzle_of(card.id, tier)
    prompts = [puzzle.prompt(instance) for instance in sample(card.id, tier)]
    assert all(prompt.isascii() for prompt in prompts)
    assert max(map(len, prompts)) < 20_000
    assert max(len(puzzle.solve(instance)) for instance in sample(card.id, tier)) < MAX_ANSWER_SIZE
    canonical = {
        puzzle.canonical(instance): prompt
        for instance, prompt in zip(sample(card.id, tier), prompts)  # noqa: B905
    }
    assert len(set(canonical.values())) == len(canonical), (
        "different puzzles have different prompts"
    )


ASK = f"Put your final answer between {OPENING} and {CLOSING}."
SEVERAL_KINDS = {"Entailment": 3} | dict.fromkeys(
    ("HamiltonianCycle", "HamiltonianPath", "RefuteSAT", "StackPermutation", "ThresholdSAT"), 2
)
"""Puzzles whose answers are of several kinds, and the number of kinds. Each kind has an example."""
OTHER_SIZE = re.compile(
    r"for a (grid|graph|line|row|route|strip|text) |from 3, 5 and 7|if there were|if the (letters "
    r"were|only clauses)"
)
"""Words of a lead that tell of something of another size than the puzzle, or of another map."""


@every_tier
def test_the_prompt_shows_an_example_of_each_kind_of_answer(card: TaskCard, tier: str) -> None:
    puzzle = puzzle_of(card.id, tier)
    for instance in sample(card.id, tier)[:10]:
        question, prompt = puzzle.question(instance), puzzle.prompt(instance)
        assert prompt.replace("\n", "").isprintable()
        assert OPENING not in question
        assert prompt.startswith(question + "\n")
        assert prompt.endswith("\n" + ASK)
        examples = prompt.removeprefix(question).removesuffix(ASK)
        answers = re.findall(rf"{OPENING}\n?(.*?)\n?{CLOSING}", examples, re.DOTALL)
        assert answers == [answer for _, answer in puzzle.example_answers(instance)]
        assert len(answers) == SEVERAL_KINDS.get(puzzle.name, 1)
        assert len(examples) < 250
        for lead, answer in puzzle.example_answers(instance):
            assert answer == answer.strip(" \n")
            assert puzzle.verify(instance, answer).valid or OTHER_SIZE.search(lead), (lead, answer)


@every_tier
def test_copying_an_example_pays_no_more_than_a_constant(card: TaskCard, tier: str) -> None:
    puzzle = puzzle_of(card.id, tier)
    instances = sample(card.id, tier)
    measured = card.one_shot_scores(tier)
    chance = max(measured["guess"].mean, measured["constant"].mean)
    allowed = chance + 3 * math.sqrt(max(chance * (1 - chance), 1 / 1000) / len(instances))
    for kind in range(SEVERAL_KINDS.get(puzzle.name, 1)):
        answers = [puzzle.example_answers(instance)[kind].answer for instance in instances]
        verdicts = [
            puzzle.verify(instance, answer)
            for instance, answer in zip(instances, answers, strict=True)
        ]
        assert fmean(verdict.score for verdict in verdicts) <= allowed, answers[0]


def test_an_engine_agrees_on_a_thousand_instances(card: TaskCard) -> None:
    """Check that the docs say so and name a file with such a test.

    ``pytest -m engine`` counts the instances.
    """
    docs = (Path(__file__).parents[2] / "docs" / "audits" / "puzzles.md").read_text()
    name = puzzle_of(card.id).name
    row = re.search(rf"^\| {name} \| ([\d,]+) \| .* \| `(test_\w+\.py)` \|$", docs, re.MULTILINE)
    assert row
    assert int(row[1].replace(",", "")) >= 1000
    [file] = Path(__file__).parent.rglob(row[2])
    assert "@pytest.mark.engine(" in file.read_text()


# -- banks -----------------------------------------------------------------------------------------


def test_a_bank_holds_the_instances_of_its_seeds(
    card: TaskCard, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path))
    puzzle = puzzle_of(card.id)
    built = build_bank(puzzle, "test", 5)
    for load in range(2):  # built, then read from the cache
        bank = load_bank(puzzle, "test", 5)
        assert bank.digest == built.digest, load
    for number, instance in enumerate(sample(card.id)[:5]):
        stored = type(instance)(*(column[number] for column in bank.instances))
        assert puzzle.to_plain(stored) == puzzle.to_plain(instance)
        plan = list(puzzle.plan(instance))
        assert bank.plans[number].tolist() == plan + [STOP] * (bank.plans.shape[1] - len(plan))
    merged = bank_of_both_splits(puzzle, 5)
    assert len(merged.plans) == 10
    file = next(tmp_path.rglob("*test-5*.npz"))
    file.write_bytes(file.read_bytes()[:50])  # cut short: made anew, not believed
    assert load_bank(puzzle, "test", 5).digest == built.digest


# -- datasets and environments for trainers of language models -------------------------------------


def test_a_dataset_scores_its_own_answers(card: TaskCard, tmp_path: Any) -> None:
    data = PuzzleDataset(card.id, split="test", size=3, seed=1)
    for number, entry in enumerate(data):
        assert set(entry) == {"question", "answer", "metadata"}
        assert entry["metadata"]["seed"] == number + 1
        reply = f"So: {OPENING}{entry['answer']}{CLOSING}"
        assert data.score_answer(reply, entry) == 1
        assert data.score_answer(f"{reply} That is it.", entry) == 1
        assert data.score_answer(f"{reply}{OPENING}{CLOSING}", entry) == 0, "the last answer counts"
        assert data.score_answer(reply, entry | {"answer": ""}) == 1, "any right answer is right"
        assert data.score_answer(f"{OPENING}{CLOSING}", entry | {"answer": ""}) == 0
        assert data.score_answer(entry["answer"], entry) == 0, "an answer stands in tags"
        assert data.score_answer(None, entry) == 0


def test_an_environment_takes_one_answer(card: TaskCard) -> None:
    env = environment_factory(card.id, split="test")()
    data = PuzzleDataset(card.id, split="test", size=3)
    question, again = env.reset(seed=3), env.reset(seed=3)
    assert question == again
    assert env.get_reward() == 0
    env.submit_answer(data.puzzle.solve(sample(card.id)[3]))
    assert env.get_reward() == 1
    with pytest.raises(RuntimeError, match="episode is over"):
        env.submit_answer("other")
    env.reset(**data[2])
    assert env.get_reward() == 0
