"""Suite files: what they name, and that hostile ones cost one sentence."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from rlbench_suite.contexts.plain_yaml import MAX_BYTES
from rlbench_suite.core import registry
from rlbench_suite.evaluation.runs.suite_file import read_suite_file

EXAMPLE = Path(__file__).parents[3] / "examples" / "drives_and_puzzles.yaml"
GOOD = "name: mine\nbudget: smoke\nseeds: 2\ntasks: [SAT-v0]\n"


def write_suite(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_example_names_cells_as_the_command_line_does():
    suite = read_suite_file(EXAMPLE)
    assert (suite.name, suite.budget, suite.seeds) == ("drives-and-puzzles", "smoke", 5)
    assert suite.tasks == (
        "rlsuite/PMSMCurrent-v0", "rlsuite/SAT-v0", "rlsuite/SAT-v0?difficulty=hard",
        "rlsuite/DeepSeaTreasure-v0",
    )  # fmt: skip
    assert suite.sha256 == hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()
    assert tuple(card.id for card in registry.resolve_suite(suite.ids)) == suite.tasks
    assert (
        EXAMPLE.read_text().strip()
        in EXAMPLE.parents[1].joinpath("docs", "evaluation.md").read_text()
    )


def test_a_difficulty_of_an_id_is_the_difficulty_of_its_task_and_of_its_scores():
    plain, hard = registry.card("SAT-v0"), registry.card("SAT-v0?difficulty=hard")
    assert hard.build() is not plain.build()
    assert (
        hard.build().difficulty
        == plain.build(difficulty="hard").difficulty
        == plain.difficulties["hard"]
    )
    assert hard.scores() == plain.scores("hard") != plain.scores()
    assert hard.build(difficulty="easy").difficulty == plain.difficulties["easy"]
    assert registry.card("SAT-v0?difficulty=medium") is plain
    assert registry.card(hard.id) == hard
    assert hard.file_name == "SAT-v0,difficulty=hard"
    hard_and_solvable = registry.card("HamiltonianCycle-v0?difficulty=hard&answers=solvable")
    assert hard_and_solvable.id == "rlsuite/HamiltonianCycle-v0?answers=solvable&difficulty=hard"
    assert registry.card(hard_and_solvable.id) == hard_and_solvable
    assert hard_and_solvable.registered_id == "rlsuite/HamiltonianCycle-v0"


def test_keywords_of_a_task_lead_to_its_card(tmp_path: Path):
    text = GOOD.replace(
        "[SAT-v0]",
        "[{id: PMSMCurrent-v0, noise: 0.03, delay: 1}, {id: PMSMCurrent-v0, goal: torque}]",
    )
    assert read_suite_file(write_suite(tmp_path, text)).tasks == (
        "rlsuite/PMSMCurrent-v0?delay=1&noise=0.03", "rlsuite/PMSMTorque-v0",
    )  # fmt: skip


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("seeds", "seed"), "Unknown key 'seed'. Did you mean 'seeds'?"),
        (GOOD.replace("smoke", "smok"), "Unknown budget 'smok'. Did you mean 'smoke'?"),
        (GOOD.replace("SAT-v0", "SATT-v0"),
         "Unknown task 'SATT-v0'. Did you mean 'rlsuite/SAT-v0'?"),
        (GOOD.replace("SAT-v0", "{id: SAT-v0, difficulti: hard}"),
         "keyword of rlsuite/SAT-v0 'difficulti'. Did"),
        (GOOD.replace("SAT-v0", "{id: SAT-v0, difficulty: hart}"), "Did you mean 'hard'?"),
        (GOOD.replace("SAT-v0", "{id: SAT-v0, difficulty: .nan}"),
         "Unknown difficulty for rlsuite/SAT-v0 nan"),
        (GOOD.replace("SAT-v0", "{id: Wordle-v0, difficulty: easy}"),
         "Unknown keyword of rlsuite/Wordle-v0"),
        (GOOD.replace("SAT-v0", "{difficulty: hard}"), "also needs its id"),
        (GOOD.replace("SAT-v0", "SAT-v0, rlsuite/SAT-v0"), "it names rlsuite/SAT-v0 twice"),
        (GOOD.replace("[SAT-v0]", "[smoke]"), "'smoke' is a suite, not a task; name its tasks"),
        (GOOD.replace("[SAT-v0]", "[]"), "its list of tasks is empty"),
        (GOOD.replace("[SAT-v0]", "SAT-v0"), "tasks: input should be a valid list"),
        (GOOD.replace("2", ".nan"), "seeds: input should be a valid integer, got nan"),
        (GOOD.replace("2", "true"), "seeds: input should be a valid integer, got True"),
        (GOOD.replace("2", "0"), "seeds: input should be greater than or equal to 1, got 0"),
        (GOOD.replace("2", "9" * 5000), "is not a suite file: "),
        (GOOD.replace("mine", "../mine"), "name: string should match pattern"),
        (GOOD.replace("name: mine\n", ""), "name: field required"),
        (GOOD + "seeds: 3\n", "it has the key 'seeds' twice"),
        (GOOD + "<<: {seeds: 3}\n", "it merges mappings"),
        (GOOD + "? [a]\n: b\n", "a key is not plain text"),
        (GOOD + "x: !!python/object/apply:os.system [id]\n", "it has a tag in line 5"),
        (GOOD + "x: !!binary aGk=\n", "it has a tag in line 5"),
        (BOMB, "it has an anchor or alias in line 1"),
        ("[" * 5000, "it is nested more than 8 levels deep"),
        ("tasks: [", "is not a suite file: line 1:"),
        ("- SAT-v0\n", "it is not a mapping"),
        ("", "it is not a mapping"),
        (GOOD + "---\na: b\n", "is not a suite file: line"),
        (b"\xff\xfe\x00", "it is not UTF-8 text"),
        (b"name: \x00", "is not a suite file: "),
        ("#" * (MAX_BYTES + 1), f"it is larger than {MAX_BYTES:,} bytes"),
    ],
)  # fmt: skip
def test_a_bad_file_costs_one_sentence(tmp_path: Path, text: str | bytes, words: str):
    with pytest.raises(ValueError, match="is not a suite file: ") as caught:
        read_suite_file(write_suite(tmp_path, text))
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert len(message) < 600


def test_a_file_that_is_not_there(tmp_path: Path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(
            OSError, match=f"Cannot read the suite file {path}: there is no such file"
        ):
            read_suite_file(path)
