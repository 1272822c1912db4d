"""Settings of the environment that change results are said; others are not."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs.computer import Computer, on_settings, simulator_versions
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.runner import in_process, plan


@pytest.mark.parametrize(
    ("name", "value", "numbers"),
    [
        ("XLA_FLAGS", "--xla_cpu_enable_fast_math=true", "episodes and trained weights"),
        (
            "XLA_FLAGS",
            "--xla_cpu_max_isa=AVX2 --xla_dump_to=/tmp/x",
            "episodes and trained weights",
        ),
        ("JAX_ENABLE_X64", "1", "trained weights"),
        ("JAX_ENABLE_X64", "True", "trained weights"),
        ("JAX_DEFAULT_MATMUL_PRECISION", "bfloat16", "trained weights"),
        ("JAX_THREEFRY_PARTITIONABLE", "false", "episodes and trained weights"),
        ("JAX_ENABLE_X64", "0", ""),
        ("JAX_DEFAULT_MATMUL_PRECISION", "default", ""),
        ("JAX_THREEFRY_PARTITIONABLE", "1", ""),
        (
            "XLA_FLAGS",
            "--xla_force_host_platform_device_count=4 --xla_cpu_multi_thread_eigen=false",
            "",
        ),
        ("JAX_COMPILATION_CACHE_DIR", "/tmp/cache", ""),
        ("OMP_NUM_THREADS", "2", ""),
    ],
)
def test_settings_that_change_numbers_are_said(
    name: str, value: str, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in [variable for variable in os.environ if variable.startswith(("JAX_", "XLA_"))]:
        monkeypatch.delenv(variable)
    assert list(on_settings([Computer.this()])) == []
    monkeypatch.setenv(name, value)
    sentences = list(on_settings([Computer.this(), Computer.this()]))
    assert len(sentences) == bool(numbers)
    for sentence in sentences:
        assert sentence.startswith(
            f"{name}={value.partition(' --xla_dump')[0]} is set. It may change {numbers}: "
        )


def test_the_terminal_and_the_report_say_it(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_ENABLE_X64", "true")
    with (
        OpenRun.open(tmp_path / "run", plan("toy", "ToyWalk-v0", 1, "smoke")) as run,
        run.sitting(),
    ):
        assert [event.value for event in in_process(run) if event.kind == "failed"] == []
        run.merge()
        report = Report.of(run)
        print_report(report, Console(file=(stream := io.StringIO()), width=200))
        write_html(report)
    for text in (stream.getvalue(), (tmp_path / "run" / "report.html").read_text()):
        assert "JAX_ENABLE_X64=true is set. It may change trained weights" in " ".join(text.split())


def test_fast_mathematics_does_change_an_episode() -> None:
    """The warning is not idle: the same episode of the reference has another return."""
    code = (
        "from rlbench_suite.core import registry; from rlbench_suite.core.policy import "
        "reference_player; from rlbench_suite.adapters.rollout import play; task = "
        "registry.card('PMSMTorque-v0').build(); print(play(task, reference_player(task), "
        "range(8)).total.tobytes().hex())"
    )
    returns = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600,
            env=os.environ | {"XLA_FLAGS": flags},
        ).stdout
        for flags in ("", "--xla_cpu_enable_fast_math=true")
    ]  # fmt: skip
    assert returns[0] != returns[1]


def test_a_manifest_names_simulators_and_vector_instructions() -> None:
    machine = Computer.this()
    assert simulator_versions().items() <= machine.packages.items()
    if Path("/proc/cpuinfo").exists() and machine.platform.startswith("Linux"):
        flags = Path("/proc/cpuinfo").read_text()
        assert not machine.vector_instructions or machine.vector_instructions in flags
        assert machine.vector_instructions == "avx512f" or "avx512f" not in flags
    older = machine.model_dump(exclude={"vector_instructions"})
    assert Computer.model_validate(older).vector_instructions == ""
