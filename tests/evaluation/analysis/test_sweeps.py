"""Test saved policies under other conditions.

Episodes are the same where nothing changes, and actions are really held.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines import configuration
from rlbench_suite.cli import evaluate as program
from rlbench_suite.cli.run_commands.sweep import _read_multiples
from rlbench_suite.core import registry
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import agent as find_agent
from rlbench_suite.envs.offline.point_maze import MASS
from rlbench_suite.evaluation.analysis import sweeps
from rlbench_suite.evaluation.protocol import EPISODES, evaluate, evaluation_seeds
from rlbench_suite.evaluation.runs import runner
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import Run

DRIVE, MAZE, SHEET = "rlsuite/PMSMCurrent-v0", "rlsuite/PointMaze-v0", "rlsuite/PMSMTorque-v0"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Make a run of three tasks with two seeds, eight episodes each."""
    path = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EPISODES, "smoke", 8)
        patch.setattr(configuration, "training_steps", lambda *_: 2_048)
        for agents, task in (
            ("ppo,reference,random", DRIVE),
            ("reference,random", MAZE),
            ("reference", SHEET),
        ):
            with OpenRun.open(path, runner.plan(agents, task, 2, "smoke")) as run, run.sitting():
                for event in runner.in_process(run):
                    assert event.kind != "failed", event.value
        yield Run.read(path)


def own_scores(run: Run, task: str) -> dict[str, list[float]]:
    results = [result for result in run.results() if result.task == task]
    return {
        agent: [r.score for r in results if r.agent == agent]
        for agent in dict.fromkeys(r.agent for r in results)
    }


def test_a_setting_is_swept_with_the_policies_of_the_run(run: Run):
    result = sweeps.sweep_setting(run.path, "PointMaze-v0", "difficulty", ["umaze", "medium"])
    scores = result.scores()
    # The default.
    assert {agent: table[:, 0].tolist() for agent, table in scores.items()} == own_scores(run, MAZE)
    medium = registry.card(MAZE).build(difficulty="medium")
    scale = registry.card(MAZE).scale()
    for seed in (0, 1):
        record = play(
            medium, reference_player(medium), evaluation_seeds(registry.card(MAZE), seed, "smoke")
        )
        score = scale.score(record.total.astype(float).mean())
        assert scores["reference"][seed, 1] == pytest.approx(score, abs=1e-12)
    page = sweeps.write(result)
    table = pq.read_table(page.with_suffix(".parquet"))
    assert table.schema.equals(sweeps.SCHEMA)
    assert table.num_rows == 2 * 2 * 2
    assert "<svg" in page.read_text()
    assert run.results()  # the files of the run are whole


def test_a_data_sheet_may_be_wrong(run: Run):
    """The plant changes, and nothing that the task and its reference were designed for."""
    result = sweeps.sweep_constant(run.path, SHEET, "magnet_flux", [1.0, 2.0])
    assert result.parameter == "times magnet_flux"
    assert result.values == ("1", "2")
    scores = result.scores()
    assert {agent: table[:, 0].tolist() for agent, table in scores.items()} == own_scores(
        run, SHEET
    )
    # Its gains are those of the data sheet.
    assert (scores["reference"][:, 1] < scores["reference"][:, 0]).all()
    task: Any = registry.card(SHEET).build()
    changed_task: Any = registry.card(SHEET, context={"resistance": 0.3, "inertia": 0.01}).build()
    changed: Any = sweeps._with_draws_of(task, changed_task)
    params = changed.sample_params(jax.random.key(0), 1)
    assert float(params.machine.resistance) == pytest.approx(0.3)
    assert (changed.period, changed.goal, vars(changed.plant)) == (
        task.period,
        task.goal,
        vars(task.plant),
    )


@pytest.mark.parametrize(
    ("name", "constant", "usual"), [(MAZE, "mass", MASS), (SHEET, "link_voltage", 300.0)]
)
def test_a_constant_that_is_built_in_is_swept_with_the_task(
    run: Run, name: str, constant: str, usual: float
):
    """The bench samples speeds that follow from the voltage of the link.

    They alone are not its other voltage.
    """
    result = sweeps.sweep_constant(run.path, name, constant, [1.0, 2.0])
    changed_task = registry.card(name, context={constant: 2 * usual}).build()
    scale = registry.card(name).scale()
    record = play(
        changed_task,
        reference_player(changed_task),
        evaluation_seeds(registry.card(name), 0, "smoke"),
    )
    score = scale.score(record.total.astype(float).mean())
    assert result.scores()["reference"][0, 1] == pytest.approx(score, abs=1e-12)


def test_slower_decisions_are_averaged(run: Run):
    intervals = [1, 2, 16]
    result = sweeps.sweep_frequency(run.path, DRIVE, intervals)
    scores = result.scores()
    assert {agent: table[:, 0].tolist() for agent, table in scores.items()} == own_scores(
        run, DRIVE
    )  # as trained
    # A controller that waits controls worse.
    assert scores["reference"][:, 2].max() < scores["reference"][:, 0].min()
    averaged = result.frequency_averaged()["reference"]
    by_hand = [(0.5 * (a + b) * 1 + 0.5 * (b + c) * 14) / 15 for a, b, c in scores["reference"]]
    assert averaged.point == pytest.approx(np.mean(by_hand), abs=1e-12)


def test_a_broken_constraint_is_found_at_the_value_that_breaks_it(run: Run):
    limit = registry.card(DRIVE).constraint
    assert limit
    # At two values, of two seeds, in limits.
    costs = {"ppo": [(0.1, 2.5), (0.5, 1.2)], "reference": [(0, 0), (1, 1)]}
    rows = [
        {"agent": agent, "value": value, "seed": seed, "mean_cost": cost * limit.limit}
        for agent, table in costs.items()
        for value, seeds in zip(("0", "0.01"), table, strict=True)
        for seed, cost in enumerate(seeds)
    ]
    result = sweeps.Sweep(run.path, registry.card(DRIVE), "noise", ("0", "0.01"), rows)
    assert result.violations() == {"ppo": [True, False], "reference": [False, False]}


def test_a_second_sweep_keeps_the_files_of_the_first():
    def name(parameter: str, *values: str) -> str:
        return sweeps.Sweep(Path("run"), registry.card(DRIVE), parameter, values, []).name

    names = [
        name("noise", "0", "0.01"), name("noise", "0", "0.02"), name("noise", "0.01", "0"),
        name("delay", "0", "0.01"),
        name("times inertia", *(f"{0.7 + i / 50:.6g}" for i in range(31))),
        name("times inertia", *(f"{0.7 + i / 51:.6g}" for i in range(31))), name("noise", "../0"),
        name("noise", "..:0"),
    ]  # fmt: skip
    assert len(set(names)) == len(names)
    assert names[0] == "PMSMCurrent-v0-noise-0,0.01"
    assert all(len(each) < 80 and not set(each) & set("/:") for each in names)


def test_an_agent_with_failed_cells_has_no_curve(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its other seeds are those that went well. The page and the terminal say why it is absent."""
    folder = run.path / "cells" / "random" / "PointMaze-v0"
    record, hidden = folder / "1.failed", folder / "1.away"
    (folder / "1").rename(hidden)
    record.write_text('{"error": "ValueError: diverged"}')
    try:
        for result in (
            sweeps.sweep_setting(run.path, MAZE, "difficulty", ["umaze"]),
            sweeps.sweep_frequency(run.path, MAZE, [1, 2]),
        ):
            assert list(result.curves()) == ["reference"]
            assert result.failed == {"random": 1}
            (note,) = result.notes()
            assert note.startswith("random has no curve: 1 of its cells on PointMaze-v0 failed")
            assert note in sweeps.write(result).read_text()
        with pytest.raises(SystemExit):
            program.app(["frequency", str(run.path), "--task", MAZE, "--intervals", "1,2"])
        assert "random has no curve: 1 of its cells on PointMaze-v0 failed" in " ".join(
            capsys.readouterr().out.split()
        )
    finally:
        record.unlink()
        hidden.rename(folder / "1")
    assert run.results()


def test_returns_that_are_not_finite_are_the_floor_of_a_sweep(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    play_episodes = sweeps.evaluate

    def diverging(*arguments: Any, **settings: Any) -> Any:
        record = play_episodes(*arguments, **settings)
        total = np.full_like(record.total, np.nan)
        return record._replace(total=total)

    monkeypatch.setattr(sweeps, "evaluate", diverging)
    result = sweeps.sweep_setting(run.path, MAZE, "difficulty", ["umaze"])
    floor = run.manifest.scale(MAZE).score(run.manifest.floor(MAZE))
    assert [row["score"] for row in result.rows] == pytest.approx([floor] * len(result.rows))
    assert {row["floored"] for row in result.rows} == {8}
    assert "random at umaze: 16" in result.notes()[0]


@pytest.mark.parametrize("interval", [3, 4])
def test_actions_are_held(interval: int):
    task: Any = registry.card(DRIVE).build()
    *_, policy = find_agent("random").train(task, seed=0, budget="smoke")

    class Stepping:
        """A policy of the host that gives its number of calls."""

        calls = 0

        def reset(self) -> None:
            self.calls = 0

        def act(self, observations: np.ndarray, masks: object) -> np.ndarray:
            self.calls += 1
            return np.full((len(observations), 2), self.calls / 1_000, np.float32)

    for player in (policy, Stepping()):
        record = evaluate(
            task, sweeps._hold(player, interval, task), evaluation_seeds(task.card, 0, "smoke")[:4]
        )
        for actions, length in zip(record.actions, record.length, strict=True):
            actions_played = actions[:length]
            assert (
                actions_played == actions_played[np.arange(length) // interval * interval]
            ).all()
            assert len(np.unique(actions_played[:, 0])) == -(-length // interval)


def test_wrong_arguments_cost_a_sentence(run: Run):
    for arguments, words in {
        ("SAT-v0", "noise", ("0",)): "Unknown task of the run in .* 'SAT-v0'",
        (
            MAZE,
            "dificulty",
            ("umaze",),
        ): f"Unknown parameter of {MAZE} 'dificulty'. Did you mean 'difficulty'?",
        (MAZE, "difficulty", ("medum",)): "Unknown difficulty for .* Did you mean 'medium'",
        (MAZE, "difficulty", ("umaze", "umaze")): "different and at least one; given: umaze, umaze",
    }.items():
        with pytest.raises(ValueError, match=words):
            sweeps.sweep_setting(run.path, *arguments)
    card = registry.card("PMSMCurrent-v0")  # a drive shows more under noise
    with pytest.raises(ValueError, match=r"noise=0\.03: its observations have other shapes"):
        sweeps.refuse_other_spaces(card.build(), registry.card(card.id, noise="0.03").build())
    with pytest.raises(
        ValueError, match="cannot play rlsuite/PMSMCurrentFinite-v0: its action space is another"
    ):
        sweeps.refuse_other_spaces(card.build(), registry.card(card.id, control="finite").build())
    with pytest.raises(
        ValueError, match=f"Unknown constant of {SHEET} 'inerta'. Did you mean 'inertia'?"
    ):
        sweeps.sweep_constant(run.path, SHEET, "inerta", [1.0])
    with pytest.raises(ValueError, match="pole_pairs is a whole number: it has no multiples"):
        sweeps.sweep_constant(run.path, SHEET, "pole_pairs", [1.0])
    with pytest.raises(ValueError, match="sweep it by multiples, LOW:HIGH:NUMBER"):
        sweeps.sweep_setting(run.path, SHEET, "inertia", ["1"])
    with pytest.raises(ValueError, match=f"{DRIVE} takes no context"):
        sweeps.sweep_constant(run.path, DRIVE, "inertia", [1.0])
    with pytest.raises(ValueError, match="has several tasks: name one by --task"):
        sweeps.sweep_constant(run.path, None, "inertia", [1.0])
    for intervals in ([1], [2, 1], [0, 1]):
        with pytest.raises(ValueError, match="at least two positive, increasing"):
            sweeps.sweep_frequency(run.path, MAZE, intervals)
    with pytest.raises(ValueError, match="not a run directory"):
        sweeps.sweep_frequency(run.path.parent, MAZE, [1, 2])


@pytest.mark.parametrize("text", ["", "1", "1:2", "2:1:3", "1:2:1", "1:2:1e9", "1:2:3:4"])
def test_multiples_are_a_range(text: str):
    assert _read_multiples("0.7:1.3:7") == pytest.approx([0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3])
    with pytest.raises(ValueError, match=r"Multiples (are|have) "):
        _read_multiples(text)


def test_the_commands(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_info:
            program.app(list(arguments))
        return (int(exit_info.value.code or 0), *capsys.readouterr())

    code, out, err = call("frequency", str(run.path), "--task", DRIVE, "--intervals", "1,4")
    assert (code, err) == (0, "")
    assert "Frequency-Averaged Score" in out
    assert "Do not trust intervals of fewer than 5 seeds" in " ".join(out.split())
    assert (run.path / "sweeps" / "PMSMCurrent-v0-decision_interval-1,4.parquet").exists()
    assert call("frequency", str(run.path), "--task", MAZE, "--intervals", "1,x")[0] == 2
    code, out, err = call("sweep", str(run.path), "difficulty", "umaze", "--task", MAZE)
    assert (code, err) == (0, "")
    assert call("sweep", str(run.path), "difficulty", "9", "--task", MAZE)[0] == 2
    assert "has several tasks: name one by --task" in call("frequency", str(run.path))[2]
    code, _, err = call("sweep", "s3://bucket/run", "mass", "0.5:2:2")
    assert code == 2
    assert "s3://bucket/run must be copied to this machine first" in " ".join(err.split())
    code, _, err = call("sweep", run.path.as_uri(), "mass", "0.5:2:2")
    assert code == 2
    assert "has several tasks: name one by --task" in err
    code, out, _ = call("sweep", str(run.path), "goal_radius", "1:2:2", "--task", MAZE)
    assert code == 0
    assert "times goal_radius" in out
