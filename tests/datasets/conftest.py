"""One small dataset, built once a session, and an empty datasets folder for every test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("minari")
pytest.importorskip("h5py")

from rlbench_suite.cli import data
from rlbench_suite.datasets import access
from rlbench_suite.datasets.catalogue import Entry


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A datasets folder that holds ``rlsuite/hover/random-v0``."""
    path = tmp_path_factory.mktemp("shelf")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(path))
        access.build(access.find("hover/random"))
    return path


@pytest.fixture
def entry() -> Entry:
    """The dataset that the shelf holds."""
    return access.find("hover/random")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty datasets folder of the test's own, and no remote configured."""
    path = tmp_path / "root"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RLSUITE_DATA_REMOTE", raising=False)
    return path


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run ``rlsuite-data`` in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(data, "prepare_jax", lambda *_: None)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            data.app(list(arguments))
        output = capsys.readouterr()
        return int(left.value.code or 0), output.out, output.err

    return call
