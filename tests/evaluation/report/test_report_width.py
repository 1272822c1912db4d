"""Test the report of a run in a real browser.

Tables fit 1280 pixels, and letters can be read in a narrow window.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlbench_suite.cli.evaluate import app

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
MEASURE = """<script>
const wide = [...document.querySelectorAll(".scroll")]\
.filter(e => e.scrollWidth > e.clientWidth + 1).length;
const letters = [...document.querySelectorAll(".charts svg")].map(
  e => 13 * e.getBoundingClientRect().width / e.viewBox.baseVal.width);
document.title = `wide=${wide} body=${document.documentElement.scrollWidth}\
 letters=${Math.min(...letters).toFixed(1)}`;
</script>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with a constraint and long numbers, without the policy that forbids our script."""
    folder = tmp_path_factory.mktemp("report") / "run"
    suite = "PMSMCurrent-v0,QuadcopterHover-v0"
    arguments = [
        "--agent",
        "noop,random,reference",
        "--suite",
        suite,
        "--budget",
        "smoke",
        "--workers",
        "0",
    ]
    result = CliRunner().invoke(app, [*arguments, "--out", str(folder)])
    assert result.exit_code == 0, result.output
    page = (folder / "report.html").read_text()
    page = re.sub(r"<meta http-equiv=[^>]*>", "", page)
    return page.replace("</body>", f"{MEASURE}</body>").replace(
        "PMSMCurrent-v0<", "PMSMTorqueEfficientHot-v0<"
    )


def measure_page(page: str, width: int, folder: Path) -> dict[str, float]:
    (folder / "page.html").write_text(page)
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1600", "--hide-scrollbars",
        "--virtual-time-budget=3000", "--dump-dom", (folder / "page.html").as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return {
        name: float(value)
        for name, value in re.findall(r"(wide|body|letters)=([\d.]+)", dom.split("</title>")[0])
    }


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
def test_no_table_of_a_report_is_wider_than_the_page(report: str, tmp_path: Path) -> None:
    sizes = measure_page(report, 1280, tmp_path)
    assert sizes["wide"] == 0
    assert sizes["body"] <= 1280
    assert sizes["letters"] >= 9


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
def test_letters_of_charts_can_be_read_on_a_telephone(report: str, tmp_path: Path) -> None:
    sizes = measure_page(report, 500, tmp_path)  # the least width of a window of Chromium
    assert sizes["body"] <= 500
    assert sizes["letters"] >= 9
