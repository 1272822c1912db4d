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
from made_runs import make_run

from rlbench_suite.evaluation.exports import FORMATS, huggingface, latex, tidy_csv
from rlbench_suite.evaluation.reading import FinishedRun, read_run

SCORES = {
    "ppo_2 & co": {"rlsuite/A_b-v0": [0.1, 0.3, 0.2], "rlsuite/C-v0": [0.9, 0.7, 0.8]},
    "sac": {"rlsuite/A_b-v0": [0.4, 0.5, 0.6]},
}


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    return read_run(make_run(tmp_path / "run", SCORES))


def test_latex_has_every_score_and_no_bare_special_character(run: FinishedRun):
    text = latex(run)
    lines = text.splitlines()
    assert lines[1] == r"\begin{tabular}{lrr}"
    assert [line for line in lines if line.startswith("\\")][1:] == [
        r"\toprule", r"\midrule", r"\midrule", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    assert r"Task & ppo\_2 \& co & sac \\" in lines
    rows = [line for line in lines if line.endswith(r"\\")]
    assert [line.count(" & ") for line in rows] == [2] * 5
    first, second, mean, iqm = rows[1:]
    assert re.match(r"A\\_b-v0 & 0\.200 \{\\scriptsize\[-?0\.", first)
    assert r"\textbf{0.500}" in first
    assert second.startswith(r"C-v0 & 0.800 ")
    assert second.endswith(r" & -- \\")  # the only agent there is not the best of several
    assert mean.startswith("Mean (1 task) & 0.200")
    assert iqm.startswith("IQM (1 task) & 0.200")


def test_csv_has_every_cell_with_all_digits(run: FinishedRun):
    rows = list(csv.DictReader(io.StringIO(tidy_csv(run))))
    assert list(rows[0]) == ["task", "agent", "seed", "score", "return", "success", "cost"]
    read = {(row["agent"], row["task"], int(row["seed"])): float(row["score"]) for row in rows}
    assert read == {
        (agent, task, seed): score
        for agent, tasks in SCORES.items()
        for task, scores in tasks.items()
        for seed, score in enumerate(scores)
    }
    assert {(row["success"], row["cost"]) for row in rows} == {("0.5", "0.25")}


def test_huggingface_has_the_required_keys(run: FinishedRun):
    index = yaml.safe_load(huggingface(run))["model-index"]
    assert [model["name"] for model in index] == list(SCORES)
    for model in index:
        own = SCORES[model["name"]]
        assert [result["dataset"]["type"] for result in model["results"]] == list(own)
        for result in model["results"]:
            assert result["task"]["type"] == "reinforcement-learning"
            assert result["dataset"]["name"]
            assert result["dataset"]["args"]["seeds"] == 3
            values = {metric["type"]: metric["value"] for metric in result["metrics"]}
            assert values["normalised_score"] == pytest.approx(np.mean(own[result["dataset"]["type"]]))
            assert values["mean_reward"] == pytest.approx(2 * values["normalised_score"])
            assert (values["success_rate"], values["mean_cost"]) == (0.5, 0.25)


def test_exports_need_neither_jax_nor_huggingface_hub(run: FinishedRun):
    program = (
        "import sys; from pathlib import Path\n"
        "from rlbench_suite.evaluation.exports import FORMATS\n"
        "from rlbench_suite.evaluation.reading import read_run\n"
        f"for export in FORMATS.values(): export(read_run(Path({str(run.path)!r})))\n"
        "print({'jax', 'huggingface_hub', 'datasets'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"
    assert list(FORMATS) == ["latex", "csv", "huggingface"]
