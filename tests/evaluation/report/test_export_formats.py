"""Exports read back by other programs: YAML, CSV, and the structure of a LaTeX table."""

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from made_runs import fail_cell, make_run

from rlbench_suite.evaluation.report.export_formats import FORMATS, huggingface, latex, tidy_csv
from rlbench_suite.evaluation.runs.run import Run, read_run

SCORES = {
    "ppo_2 & co": {"rlsuite/A_b-v0": [0.1, 0.3, 0.2], "rlsuite/C-v0": [0.9, 0.7, 0.8]},
    "sac": {"rlsuite/A_b-v0": [0.4, 0.5, 0.6]},
}

SPEED = "rlsuite/PMSMSpeed-v0"
"""Its card allows a mean cost of 20."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read_run(make_run(tmp_path / "run", SCORES))


def test_latex_has_every_score_and_no_bare_special_character(run: Run):
    text = latex(run)
    lines = text.splitlines()
    assert r"\begin{tabular}{lrr}" in lines
    assert [line for line in lines if line.startswith("\\")][1:] == [
        r"\toprule", r"\midrule", r"\midrule", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    assert r"Task (3 seeds) & ppo\_2 \& co & sac \\" in lines
    rows = [line for line in lines if line.endswith(r"\\")]
    assert [line.count(" & ") for line in rows] == [2] * 5
    first, second, mean, iqm = rows[1:]
    assert re.match(r"A\\_b-v0 & 0\.200 \{\\scriptsize\[\$-\$0\.", first)
    assert "textbf" not in text  # three seeds tell nobody apart
    assert second.startswith(r"C-v0 & 0.800 ")
    assert second.endswith(r" & -- \\")  # the only agent there is not the best of several
    assert mean.startswith("Mean (1 task) & 0.200")
    assert iqm.startswith("IQM (1 task) & 0.200")


def test_latex_has_bold_where_somebody_can_be_told_from_the_best(tmp_path: Path):
    rng = np.random.default_rng(0)
    means = {
        "rlsuite/A-v0": {"x": 0.8, "y": 0.801, "z": -0.3},  # x and y are best
        "rlsuite/B-v0": {"x": 0.8, "y": 0.4, "z": -0.3},  # x is
        "rlsuite/C-v0": {"x": 0.5, "y": 0.501, "z": 0.5},  # nobody is
        SPEED: {"x": 0.5, "y": 0.7, "z": 0.9},  # z violates the constraint
    }
    scores = {
        agent: {
            task: (agent_means[agent] + rng.normal(0, 0.02, 10)).tolist()
            for task, agent_means in means.items()
        }
        for agent in "xyz"
    }
    text = latex(read_run(make_run(tmp_path / "run", scores, {"z": 129.0})))
    rows = {
        line.split(" & ")[0]: line.split(" & ")[1:]
        for line in text.splitlines()
        if line.endswith(r"\\")
    }
    bold = {
        row: "".join(agent for agent, cell in zip("xyz", cells, strict=True) if "textbf" in cell)
        for row, cells in rows.items()
    }
    assert bold == {
        "Task (10 seeds)": "", "A-v0": "xy", "B-v0": "x", "C-v0": "", "PMSMSpeed-v0": "y",
        "Mean (4 tasks)": "", "IQM (4 tasks)": "", "Constrained IQM (4 tasks)": "",
    }  # fmt: skip
    assert rows["A-v0"][2].startswith("$-$0.")
    assert r"[$-$0." in rows["A-v0"][2]
    assert not re.search(r"[^$]-\d", "".join(cell for cells in rows.values() for cell in cells))
    # The mean is over the tasks that all agents have, and so is what can be told of it.
    del scores["z"]["rlsuite/B-v0"]
    text = latex(read_run(make_run(tmp_path / "fewer", scores)))
    (mean,) = (line for line in text.splitlines() if line.startswith("Mean (3 tasks)"))
    assert [r"\textbf" in cell for cell in mean.split(" & ")[1:]] == [False, True, False]


def test_latex_says_the_number_of_seeds(tmp_path: Path):
    for seeds, words in (((1,), "1 seed"), ((1, 4, 6), "1 to 6 seeds")):
        scores = {f"rlsuite/T{n}-v0": [0.5] * n for n in seeds}
        text = latex(read_run(make_run(tmp_path / words, {"ppo": scores})))
        assert f"\nTask ({words}) & ppo " in text
        assert "\n% One seed has no interval" in text
        assert ("\n% Some scores have only 4 seeds" in text) == (4 in seeds)


def test_csv_has_every_cell_with_all_digits(run: Run):
    rows = list(csv.DictReader(io.StringIO(tidy_csv(run))))
    assert list(rows[0]) == [
        "task", "agent", "seed", "score", "return", "success", "cost", "limit", "violates",
        "constrained_score", "privileged", "failed",
    ]  # fmt: skip
    read = {(row["agent"], row["task"], int(row["seed"])): float(row["score"]) for row in rows}
    assert read == {
        (agent, task, seed): score
        for agent, tasks in SCORES.items()
        for task, scores in tasks.items()
        for seed, score in enumerate(scores)
    }
    assert {(row["success"], row["cost"], row["failed"]) for row in rows} == {
        ("0.5", "0.25", "False")
    }


def test_huggingface_has_the_required_keys(run: Run):
    index = yaml.safe_load(huggingface(run))["model-index"]
    assert [model["name"] for model in index] == list(SCORES)
    for model in index:
        agent_scores = SCORES[model["name"]]
        assert [result["dataset"]["type"] for result in model["results"]] == list(agent_scores)
        for result in model["results"]:
            assert result["task"]["type"] == "reinforcement-learning"
            assert result["dataset"]["name"]
            assert result["dataset"]["args"]["seeds"] == 3
            values = {metric["type"]: metric["value"] for metric in result["metrics"]}
            assert values["normalised_score"] == pytest.approx(
                np.mean(agent_scores[result["dataset"]["type"]])
            )
            assert values["mean_reward"] == pytest.approx(2 * values["normalised_score"])
            assert (values["success_rate"], values["mean_cost"]) == (0.5, 0.25)


def test_a_broken_constraint_is_marked_and_counts_as_random_play(tmp_path: Path):
    scores = {
        "reckless": {SPEED: [0.9, 1.1], "rlsuite/A-v0": [0.5, 0.5]},
        "careful": {SPEED: [0.6, 0.8]},
    }
    scores["careful"]["rlsuite/A-v0"] = [0.5, 0.5]
    run = read_run(make_run(tmp_path / "run", scores, {"reckless": 129.0, "careful": 1.3}))
    rows = {
        (row["agent"], row["task"]): row
        for row in csv.DictReader(io.StringIO(tidy_csv(run)))
        if row["seed"] == "1"
    }
    constraint_columns = {
        key: (row["limit"], row["violates"], row["constrained_score"]) for key, row in rows.items()
    }
    assert constraint_columns == {
        ("reckless", SPEED): ("20.0", "True", "0.0"),
        ("careful", SPEED): ("20.0", "False", "0.8"),
        ("reckless", "rlsuite/A-v0"): ("", "False", "0.5"),
        ("careful", "rlsuite/A-v0"): ("", "False", "0.5"),
    }
    lines = {
        line.split(" & ")[0]: line.split(" & ")[1:]
        for line in latex(run).splitlines()
        if " & " in line
    }
    # Alone above the others.
    assert [r"\textbf" in cell for cell in lines["Mean (2 tasks)"]] == [False, True]
    tied = {
        "reckless": scores["reckless"],
        "careful": scores["careful"],
        "other": scores["careful"],
    }
    bold = latex(read_run(make_run(tmp_path / "tied", tied, {"reckless": 129.0})))
    assert "textbf" not in bold  # all that keep the constraint tie
    reckless, careful = lines["PMSMSpeed-v0"]
    assert reckless.startswith(r"1.000$^\dagger$")
    assert careful.startswith(r"\textbf{0.700}")
    assert "dagger" not in "".join(lines["A-v0"] + lines["Constrained IQM (2 tasks)"])
    assert [cell.split(" ")[0] for cell in lines["Constrained IQM (2 tasks)"]] == ["0.250", "0.550"]
    metrics = {
        (model["name"], metric["type"]): metric
        for model in yaml.safe_load(huggingface(run))["model-index"]
        for metric in model["results"][0]["metrics"]
    }
    assert metrics["reckless", "constrained_score"]["value"] == 0
    assert metrics["careful", "constrained_score"]["value"] == pytest.approx(0.7)
    assert metrics["reckless", "mean_cost"] == {
        "type": "mean_cost", "name": "Mean constraint cost (limit 20, violated)", "value": 129.0,
    }  # fmt: skip
    assert metrics["careful", "mean_cost"]["name"] == "Mean constraint cost (limit 20)"


def test_exports_need_neither_jax_nor_huggingface_hub(run: Run):
    program = (
        "import sys; from pathlib import Path\n"
        "from rlbench_suite.evaluation.report.export_formats import FORMATS\n"
        "from rlbench_suite.evaluation.runs.run import read_run\n"
        f"for export in FORMATS.values(): export(read_run(Path({str(run.path)!r})))\n"
        "print({'jax', 'huggingface_hub', 'datasets'} & set(sys.modules))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert completed.stdout == "set()\n"
    assert list(FORMATS) == ["latex", "csv", "huggingface"]


def test_failed_cells_leave_no_result_on_a_model_card_and_a_comment_says_so(tmp_path: Path):
    path = make_run(tmp_path / "run", {"ppo": {SPEED: [0.9] * 3}, "sac": {SPEED: [0.5] * 3}})
    fail_cell(path, "ppo", SPEED, 2)
    text = huggingface(read_run(path))
    assert text.startswith("# ppo has no result on PMSMSpeed-v0: 1 of its cells failed.\n")
    assert [model["name"] for model in yaml.safe_load(text)["model-index"]] == ["sac"]
