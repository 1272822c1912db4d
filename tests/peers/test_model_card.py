"""Exported results through Hugging Face's own reader of model cards."""

from pathlib import Path

import pytest
import yaml
from made_runs import make_run

from rlbench_suite.evaluation.report.export_formats import huggingface
from rlbench_suite.evaluation.runs.run import read_run

hub = pytest.importorskip("huggingface_hub", reason="needs the extra huggingface")


def test_huggingface_hub_reads_the_results(tmp_path: Path) -> None:
    run = read_run(
        make_run(tmp_path / "run", {"ppo": {"rlsuite/A-v0": [0.1, 0.3], "rlsuite/B-v0": [0.5]}})
    )
    (model,) = yaml.safe_load(huggingface(run))["model-index"]
    card = hub.ModelCardData(**{"model-index": [model]}, ignore_metadata_errors=False)
    metrics = {
        (result.dataset_type, result.metric_type): result.metric_value
        for result in card.eval_results
    }
    assert len(metrics) == 2 * 4
    assert metrics["rlsuite/A-v0", "normalised_score"] == pytest.approx(0.2)
