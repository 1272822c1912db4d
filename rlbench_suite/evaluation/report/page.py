"""HTML pages from Jinja2 templates.

Every value is escaped, an undefined name raises, and all pages share one style.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from rlbench_suite.evaluation.statistics.intervals import Estimate

NO_WIDTH = "[all equal]"
"""Text in place of an interval whose resamples are all the same."""


def render(package: str, template: str, **values: Any) -> str:
    """Render a template from the folder ``templates`` of ``package``.

    It may extend ``base.html`` and import from ``parts.html``, which lie in the templates of this
    package.

    Raises:
        jinja2.UndefinedError: the template uses a name that has no value.
    """
    return _environment(package).get_template(template).render(values)


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(package), PackageLoader("rlbench_suite.evaluation.report")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["interval"] = interval
    return environment


def interval(estimate: Estimate) -> str:
    """Return an interval as text, such as ``[0.10, 0.25]``; empty where there is none.

    The ends have a third digit, as the point has, where two digits would leave the point outside.
    An interval without width is no knowledge, so it is said in words.
    """
    if not math.isfinite(estimate.low):
        return ""
    if estimate.low == estimate.high:
        return NO_WIDTH
    digits = (
        2 if round(estimate.low, 2) <= round(estimate.point, 3) <= round(estimate.high, 2) else 3
    )
    return f"[{estimate.low:z.{digits}f}, {estimate.high:z.{digits}f}]"
