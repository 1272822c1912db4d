"""Templates escape what they are given and refuse names that have no value."""

import re

import pytest
from jinja2 import UndefinedError

from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.report.page import _environment, interval, render
from rlbench_suite.evaluation.statistics.intervals import Estimate

OURS = (
    "rlbench_suite.evaluation.report",
    "rlbench_suite.evaluation.analysis",
    "rlbench_suite.leaderboard",
)
HOSTILE = "\"><script>alert('x')</script>"


@pytest.mark.parametrize("package", OURS)
def test_values_are_escaped(package: str):
    page = (
        _environment(package)
        .from_string('<a href="{{ link }}">{{ text }}</a>')
        .render(link=HOSTILE, text=HOSTILE)
    )
    assert "<script" not in page
    assert page.count('"') == 2
    picture = chart.intervals(HOSTILE, [chart.Interval(HOSTILE, 0.5, 0.4, 0.6, 0)])
    assert "<script" not in _environment(package).from_string("{{ picture }}").render(
        picture=picture
    )


@pytest.mark.parametrize("package", OURS)
def test_no_template_turns_escaping_off(package: str):
    environment = _environment(package)
    assert environment.autoescape is True
    for name in environment.list_templates(extensions=["html"]):
        source = environment.loader.get_source(environment, name)[0]  # type: ignore[union-attr]
        assert not re.search(r"\|\s*safe|autoescape|Markup", source), name


@pytest.mark.parametrize(
    ("point", "low", "high", "text"),
    [
        (0.2, 0.1, 0.251, "[0.10, 0.25]"),
        (1.0, 1.0, 1.0, "[all equal]"),
        (0.998, 0.996, 0.9991, "[0.996, 0.999]"),  # two digits would leave 0.998 outside
        (0.0004, -0.001, 0.3, "[0.00, 0.30]"),  # and not -0.00
        (0.5, float("nan"), float("nan"), ""),
    ],
)
def test_an_interval_is_short_and_holds_its_point(point: float, low: float, high: float, text: str):
    assert interval(Estimate(point, low, high)) == text


def test_a_name_without_a_value_is_an_error():
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        render("rlbench_suite.evaluation.report", "base.html")
