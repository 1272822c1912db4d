"""``rlsuite``: quick answers, play by text, measured yardsticks."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rlbench_suite.cli import suite
from rlbench_suite.core import registry
from rlbench_suite.core.task_card import TaskCard


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple]:
    """Run the program in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(suite, "prepare_jax", lambda *_: None)

    def call(*arguments: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        with pytest.raises(SystemExit) as left:
            suite.app(list(arguments))
        output = capsys.readouterr()
        return int(left.value.code or 0), output.out, output.err

    return call


def test_list_names_every_task_and_imports_nothing_heavy():
    code = (
        "import sys; from rlbench_suite.cli.suite import app\ntry: app(['list'])\nexcept "
        "SystemExit: pass\nprint('heavy:', "
        "sorted({'jax', 'torch', 'pygame', 'pyarrow', 'matplotlib'} & sys.modules.keys()))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "heavy: []" in out
    assert all(card.name in out for card in registry.cards().values())


def list_ids(call: Callable[..., tuple], *filters: str) -> list[str]:
    """Return the ids that ``rlsuite list --json`` gives."""
    code, out, _ = call("list", *filters, "--json")
    assert code == 0
    return [task["id"] for task in json.loads(out)]


def test_filters_of_a_list_hold_together(call: Callable[..., tuple]):
    cards = registry.cards()
    assert list_ids(call) == list(cards)
    assert list_ids(call, "--family", "text") == [
        card.id for card in cards.values() if card.family == "text"
    ]
    masked_moves = [card.id for card in cards.values() if {"masked", "moves"} <= set(card.tags)]
    assert list_ids(call, "--tag", "masked", "--tag", "moves") == masked_moves
    assert masked_moves
    assert list_ids(call, "pmsm", "SPEED", "sensorless") == ["rlsuite/PMSMSpeedSensorless-v0"]
    assert list_ids(call, "speed", "--family", "text") == []
    code, out, _ = call("list", "--family", "text")
    assert (code, "Wordle-v0" in out, "SAT-v0" in out) == (0, True, False)


def test_a_list_as_data_says_what_the_card_says(call: Callable[..., tuple]):
    _, out, _ = call("list", "rlsuite/Inventory-v0", "--json")
    [task], card = json.loads(out), registry.card("Inventory-v0")
    assert task["summary"] == card.summary
    assert task["horizon"] == card.horizon
    assert task["tags"] == list(card.tags)
    assert task["difficulties"] == dict(card.difficulties)
    assert task["scores"]["shop"]["reference"]["mean"] == card.scores("shop")["reference"].mean
    assert task["constraint"] is None
    [task] = json.loads(call("list", "Lettuce", "--json")[1])
    limit = registry.card("Lettuce-v0").constraint
    assert task["constraint"] == {
        "counts": limit.counts,
        "limit": limit.limit,
        "reason": limit.reason,
    }


def test_show(call: Callable[..., tuple], card: TaskCard):
    code, out, _ = call("show", card.name)
    assert code == 0
    output = " ".join(out.split())
    assert card.id in output
    assert f"{card.horizon} steps" in output
    assert (
        (f"at most {card.constraint.limit:g} on average" in output)
        if card.constraint
        else "constraint " not in output
    )
    assert all(
        name in output for name in (*card.difficulties, *card.objectives, *card.build().measures)
    )
    code, out, _ = call("show", card.name, "--json")
    explained = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (code, explained["id"]) == (0, card.id)
    # Components of the test's own toys are missing, as those of tasks from elsewhere may be.
    assert ("action_components" in explained) == (card.family in registry.families())


def test_calibrate_measures_what_is_committed_with_the_yardsticks_of_the_card(
    call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    committed = registry.card("Autoencode-v0").scores("easy")
    monkeypatch.setattr(TaskCard, "scores_path", lambda card, file: tmp_path / file)
    assert call("dev", "calibrate", "Autoencode-v0", "--difficulty", "easy")[0] == 0
    [measured] = json.loads((tmp_path / "reference_scores.json").read_text())[
        "rlsuite/Autoencode-v0"
    ].values()
    assert list(measured) == ["random", "noop", "reference", "memoryless"]
    for player, score in measured.items():
        assert score["mean"] == committed[player].mean


def test_show_tells_what_no_player_without_a_memory_exceeds(call: Callable[..., tuple]):
    """A quarter of the answers to 100 symbols of four colours."""
    _, out, _ = call("show", "RepeatPrevious-v0")
    assert "optimum 100 ceiling without memory 25 " in " ".join(out.split())
    assert json.loads(call("show", "RepeatPrevious-v0", "--json")[1])["memoryless_ceiling"] == 25
    assert "ceiling" not in call("show", "Inventory-v0")[1]


def test_show_tells_what_doing_nothing_is_and_how_often_it_succeeds(call: Callable[..., tuple]):
    noop = registry.card("OwnRoads-v0").scores()["noop"]
    output = " ".join(call("show", "OwnRoads-v0")[1].split())
    assert "no-op action pedal 0 " in output
    assert f"score 0 doing nothing, return {noop.mean:.4g}, success {noop.success:.3g} " in output
    assert (
        f"success by chance doing nothing {100 * noop.success:.0f} %: a car that keeps its speed"
        in output
    )
    assert "success the goal " in output
    assert "no-op action sink (0) " in " ".join(call("show", "TreasureMaps-v0")[1].split())
    facts = json.loads(call("show", "TreasureMaps-v0", "--json")[1])
    assert facts["noop_action"] == {"action": 0, "meaning": "sink (0)"}
    assert facts["success"].startswith("every dive reached a treasure")
    assert {zero["player"] for zero in facts["zero"].values()} <= {"random", "noop"}
    assert all({"mean_return", "success"} < zero.keys() for zero in facts["zero"].values())


def test_no_table_calls_every_success_by_chance_random(call: Callable[..., tuple]):
    assert "random success" not in call("show", "MagicSquare-v0")[1]
    output = " ".join(call("show", "MagicSquare-v0")[1].split())
    assert "success by chance random play 26 % (easy): easy instances are small" in output


def test_an_id_without_version_is_noted_in_one_plain_line(call: Callable[..., tuple]):
    for name in ("Wordle", "rlsuite/Wordle"):
        code, _, err = call("show", name)
        assert (code, err) == (
            0,
            f"warning: Using the latest version, rlsuite/Wordle-v0, of {name}.\n",
        )


def test_show_tells_the_range_and_the_accuracy_of_setpoints(
    call: Callable[..., tuple], tmp_path: Path
):
    """Figures of the goal's table, and of a motor with another torque constant.

    It has twice the constant and a quarter of the current.
    """
    sheet = tmp_path / "own.yaml"
    sheet.write_text("magnet_flux: 0.33\nnominal_current: 24.25\ncurrent_limit: 52.5\n")
    for task_id, share in (("PermExDcTorque-v0", 1.0), (f"PermExDcTorque-v0?context={sheet}", 0.5)):
        _, out, _ = call("show", task_id, "--json")
        figures = [
            (figure["name"], figure["unit"], figure["low"], figure["high"])
            for figure in json.loads(out)["key_figures"]
        ]
        assert figures == [
            ("setpoint_torque", "N m", pytest.approx(-16 * share), pytest.approx(16 * share)),
            ("halving_error_torque", "N m", pytest.approx(0.8 * share), pytest.approx(0.8 * share)),
        ]
    rows = [
        [cell.strip() for cell in line.split("│")] for line in call("show", task_id)[1].splitlines()
    ]
    assert ["-8 to 8", "N m"] in [row[3:5] for row in rows]


def test_show_explains_entries_beside_their_bounds(call: Callable[..., tuple]):
    _, out, _ = call("show", "PMSMTorque-v0?supply=rc")
    assert "link" in out
    _, out, _ = call("show", "QuadcopterSwarm2-v0")
    assert "Observation, of each agent" in out
    assert "Key figures" not in out
    [row] = [line.split("│")[1:-1] for line in out.splitlines() if "goal" in line and "0:3" in line]
    bound = registry.card("QuadcopterSwarm2-v0").build().observation_space.high[0, 0]
    assert [cell.strip() for cell in row[-3:]] == ["m", f"{-bound:g}", f"{bound:g}"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "Sat-v0"), "Unknown task 'Sat-v0'. Did you mean 'rlsuite/SAT-v0'?"),
        (("show", "SAT-v7"), "rlsuite/SAT has no version v7. Known: v0."),
        (("bench", "SAT-v7"), "rlsuite/SAT has no version v7. Known: v0."),
        (
            ("list", "--family", "motr"),
            "Unknown family 'motr'. Did you mean 'motor'? Known: driving,",
        ),
        (("list", "--tag", "maskt"), "Unknown tag 'maskt'. Did you mean 'masked'?"),
        (("play", "Sat-v0"), "Unknown task"),
        (("play", "DeepSeaTreasure-v0", "--difficulty", "hard"), "has one difficulty only"),
        (
            ("play", "DeepSeaTreasure-v0", "--seed", "-1"),
            "A seed is an integer in [0, 2**64), got -1",
        ),
        (("bench", "nope"), "Unknown suite or task 'nope'"),
        (("bench", "--envs", "0"), "--envs must be at least 1"),
        (("dev", "calibrate", "nope"), "Unknown suite or task 'nope'"),
        (("dev", "calibrate", "Vicsek-v0", "--difficulty", "medum"), "Did you mean 'medium'?"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(
    call: Callable[..., tuple], arguments: tuple, words: str
):
    code, _, err = call(*arguments)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_window_needs_pygame(call: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(suite, "find_spec", lambda name: None)
    code, _, err = call("play", "DeepSeaTreasure-v0", "--window")
    assert code == 2
    assert "pip install 'rlbench-suite[render]'" in err


def test_play_by_typing(call: Callable[..., tuple]):
    # Down once from the corner: the nearest treasure, worth 0.7 after one step.
    code, out, _ = call("play", "DeepSeaTreasure-v0", typed="sideways\ndown\nright\nr\nq\n")
    assert code == 0
    assert "Not understood: Unknown move 'sideways'" in out
    assert "Over: found the treasure worth 0.7. Return [0.7, -1]" in out
    assert out.count("row 0, column 0") == 3  # at first, after the treasure, after r
    assert "row 0, column 1" in out


def test_watch_the_reference(call: Callable[..., tuple]):
    code, out, _ = call("play", "DeepSeaTreasure-v0", "--reference", "--seed", "0")
    assert code == 0
    assert "Over: found the treasure" in out


def test_rewards_are_printed_without_the_noise_of_float32(call: Callable[..., tuple]):
    code, out, _ = call("play", "Wordle-v0", "--reference", "--seed", "0")
    assert code == 0
    rewards = re.findall(r"^reward (.+)$", out, re.MULTILINE)
    assert rewards
    assert all(len(reward) <= 5 for reward in rewards), rewards
    assert len(re.search(r"Return (.+), score", out)[1]) <= 5


def test_bench_and_calibrate(
    call: Callable[..., tuple], toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("rlbench_suite.baselines.scripted")
    registry.register()
    code, out, _ = call("bench", "ToyWalk-v0", "--envs", "4", "--seconds", "0.01")
    assert code == 0
    speeds = [int(word.replace(",", "")) for word in out.splitlines()[-1].split()[1:]]
    assert len(speeds) == 3
    assert min(speeds) > 0

    # Calibrate a copy: the walk's noop player goes left for ever, so its return is known.
    copy = Path(shutil.copy(toys / "toyfamily" / "reference_scores.json", tmp_path))
    monkeypatch.setattr(TaskCard, "scores_path", lambda card, file: copy)
    before = json.loads(copy.read_text())
    code, out, err = call(
        "dev", "calibrate", "ToyWalk-v0", "--difficulty", "stormy", "--episodes", "200"
    )
    assert (code, err) == (0, "")
    after = json.loads(copy.read_text())
    assert after["rlsuite/ToyDrift-v0"] == before["rlsuite/ToyDrift-v0"]
    assert after["rlsuite/ToyWalk-v0"]["calm"] == before["rlsuite/ToyWalk-v0"]["calm"]
    stormy = after["rlsuite/ToyWalk-v0"]["stormy"]
    assert stormy["noop"] == {
        "mean": -12.0,
        "low": -12.0,
        "high": -12.0,
        "episodes": 200,
        "success": 0.0,
    }
    for player in ("random", "reference"):
        s, committed = stormy[player], before["rlsuite/ToyWalk-v0"]["stormy"][player]
        assert s["episodes"] == 200
        assert s["low"] < s["mean"] < s["high"]
        # 200 episodes against the committed 1000: half-widths near sqrt(5) times as wide, and one
        # inside the other.
        assert 1.6 < (s["high"] - s["low"]) / (committed["high"] - committed["low"]) < 3.2
        assert s["low"] < committed["mean"] < s["high"]
    assert np.isfinite([list(s.values()) for s in stormy.values()]).all()
    assert stormy["random"]["success"] < 0.5 < stormy["reference"]["success"]
    assert call("dev", "calibrate", "ToyDrift-v0", "--episodes", "50")[0] == 0
    drift = json.loads(copy.read_text())["rlsuite/ToyDrift-v0"]["default"]
    assert 0 < drift["random"]["cost"] < 20
    assert "cost" not in stormy["random"]
    monkeypatch.setitem(registry.agent_entry_points(), "reference", registry.AGENTS["noop"])
    code, _, err = call(
        "dev", "calibrate", "ToyWalk-v0", "--difficulty", "stormy", "--episodes", "50"
    )
    assert code == 0
    assert err.startswith("warning: on rlsuite/ToyWalk-v0 stormy, noop (-12) and random (")
    assert "earn about as much as the reference (-12). Scores of agents will say little: " in err
    code, _, err = call("dev", "calibrate", "ToyWalk-v0", "--episodes", "1")
    assert code == 2
    assert "--episodes must be at least 2, got 1" in err


def test_a_puzzle_is_shown_at_any_number_it_has(call: Callable[..., tuple]) -> None:
    code, out, _ = call("puzzles", "show", "Sudoku-v0", "--difficulty", "33")
    assert (code, "Sudoku" in out) == (0, True)
    code, _, error = call("puzzles", "show", "Sudoku-v0", "--difficulty", "99")
    assert code == 2
    assert "1 to 56" in error
