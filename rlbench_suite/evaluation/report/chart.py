"""Charts as inline SVG. The page sets the colours, so that one file suits light and dark mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

COLOURS = 8
"""Number of series colours that the page defines, from ``--series-0`` on."""


class Interval(NamedTuple):
    """One row of an interval chart."""

    label: str
    point: float
    low: float
    high: float
    colour: int


class Line(NamedTuple):
    """One line, with a band around it if ``low`` and ``high`` are given."""

    label: str
    x: np.ndarray
    y: np.ndarray
    colour: int
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    faint: bool = False


class Cloud(NamedTuple):
    """Points of one colour, or rings without a colour."""

    label: str
    x: np.ndarray
    y: np.ndarray
    colour: int | None


def intervals(title: str, rows: Sequence[Interval], *, width: int = 520) -> Markup:
    """Return a chart of points with whiskers, one row each, by score."""
    top, row, left_margin, right_margin = 26, 26, 108, 16
    height = top + row * len(rows) + 26
    ends = [value for r in rows for value in (r.point, r.low, r.high) if math.isfinite(value)]
    low, high, ticks = _scale(min(0.0, *ends), max(1.0, *ends))
    x = _linear(low, high, left_margin, width - right_margin)
    floor = height - 24
    elements = [_text(left_margin, 14, title, "title"), *_vertical_grid(ticks, x, top, floor)]
    for i, r in enumerate(rows):
        y = top + row * (i + 0.5)
        description = f"{r.label}: {r.point:.3f}"
        elements.append(_text(left_margin - 10, y + 4, r.label, "end"))
        if math.isfinite(r.low):
            description += f", 95 % interval {r.low:.3f} to {r.high:.3f}"
            elements.append(
                f'<line class="whisker c{r.colour}" x1="{x(r.low):.1f}" x2="{x(r.high):.1f}" '
                f'y1="{y}" y2="{y}"/>'
            )
        tooltip = f"<title>{escape(description)}</title>"
        elements.append(
            f'<circle class="c{r.colour}" cx="{x(r.point):.1f}" cy="{y}" r="5">{tooltip}</circle>'
        )
    return _svg(width, height, elements, title)


def lines(
    title: str,
    series: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    width: int = 520,
    height: int = 260,
) -> Markup:
    """Return a chart of lines over a common x axis. It is empty if no line has a finite value."""
    top, bottom, left_margin, right_margin = 26, 40, 48, 16
    drawable = [line for line in series if np.isfinite(line.y).any()]
    if not drawable:
        return Markup("")
    ys = np.concatenate(
        [
            values
            for line in drawable
            for values in (line.y, line.low, line.high)
            if values is not None
        ]
    )
    xs = np.concatenate([line.x for line in drawable])
    y_low, y_high, y_ticks = _scale(min(0.0, float(np.nanmin(ys))), max(1.0, float(np.nanmax(ys))))
    x_low, x_high = float(xs.min()), float(xs.max())
    x_ticks = [tick for tick in _scale(x_low, x_high)[2] if x_low <= tick <= x_high]
    x = _linear(x_low, x_high, left_margin, width - right_margin)
    y = _linear(y_low, y_high, height - bottom, top)
    elements = [
        _text(left_margin, 14, title, "title"),
        *_vertical_grid(x_ticks, x, top, height - bottom),
        *_horizontal_grid(y_ticks, y, left_margin, width - right_margin),
        *_axis_names(x_label, y_label, left_margin, width - right_margin, top, height - bottom),
    ]
    for line in drawable:
        finite = np.isfinite(line.y)
        if line.low is not None and line.high is not None and np.isfinite(line.low).all():
            band = _points(
                x(np.append(line.x, line.x[::-1])), y(np.append(line.high, line.low[::-1]))
            )
            elements.append(f'<polygon class="band c{line.colour}" points="{band}"/>')
        points = _points(x(line.x[finite]), y(line.y[finite]))
        look = "faint " if line.faint else ""
        elements.append(
            f'<polyline class="{look}c{line.colour}" '
            f'points="{points}"><title>{escape(line.label)}</title></polyline>'
        )
    return _svg(width, height, elements, title)


def clouds(
    title: str,
    series: Sequence[Cloud],
    *,
    x_label: str,
    y_label: str,
    width: int = 520,
    height: int = 260,
) -> Markup:
    """Return a chart of points, of which there is at least one."""
    top, bottom, left_margin, right_margin = 26, 40, 48, 16
    xs, ys = (np.concatenate([getattr(cloud, axis) for cloud in series]) for axis in "xy")
    x_low, x_high, x_ticks = _scale(float(xs.min()), float(xs.max()))
    y_low, y_high, y_ticks = _scale(float(ys.min()), float(ys.max()))
    x = _linear(x_low, x_high, left_margin, width - right_margin)
    y = _linear(y_low, y_high, height - bottom, top)
    elements = [
        _text(left_margin, 14, title, "title"),
        *_vertical_grid(x_ticks, x, top, height - bottom),
        *_horizontal_grid(y_ticks, y, left_margin, width - right_margin),
        *_axis_names(x_label, y_label, left_margin, width - right_margin, top, height - bottom),
    ]
    for cloud in series:
        look = 'class="ring" r="6"' if cloud.colour is None else f'class="c{cloud.colour}" r="3"'
        tooltip = f"<title>{escape(cloud.label)}</title>"
        for a, b in zip(cloud.x.tolist(), cloud.y.tolist(), strict=True):
            elements.append(f'<circle {look} cx="{x(a):.1f}" cy="{y(b):.1f}">{tooltip}</circle>')
    return _svg(width, height, elements, title)


def heat_map(title: str, labels: Sequence[str], values: np.ndarray) -> Markup:
    """Return a table of numbers ``(n, n)``, the darker the larger; positive ones have one colour.

    Rows and columns have the same labels.
    """
    count = len(labels)
    left_margin, top, side = 140, 40, min(44, 372 // count)
    largest = float(np.abs(values).max()) or 1.0
    elements = [_text(left_margin, 14, title, "title")]
    for i, label in enumerate(labels):
        y = top + side * i
        elements.append(_text(left_margin - 8, y + side / 2 + 4, f"{label} [{i}]", "end small"))
        elements.append(_text(left_margin + side * (i + 0.5), top - 6, str(i), "middle small"))
        for j, value in enumerate(values[i].tolist()):
            x = left_margin + side * j
            colour = 0 if value >= 0 else 1
            tooltip = f"<title>{escape(f'{label} against {labels[j]}: {value:.3f}')}</title>"
            elements.append(
                f'<rect class="c{colour}" x="{x}" y="{y}" width="{side - 1}" height="{side - 1}" '
                f'fill-opacity="{0.85 * abs(value) / largest:.3f}">{tooltip}</rect>'
            )
            if side >= 32 and i != j:
                elements.append(
                    _text(x + side / 2, y + side / 2 + 4, f"{value:.2g}", "middle small")
                )
    return _svg(520, top + side * count + 12, elements, title)


def number(value: float) -> str:
    """Return a short form of a number, such as 0.5, 20k or 3M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _scale(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return round ends and about five ticks, spaced by 1, 2 or 5 times a power of ten."""
    rough = (high - low or 1.0) / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return first * step, last * step, [i * step for i in range(first, last + 1)]


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join([f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)])


def _linear(low: float, high: float, start: float, end: float) -> Callable[[Any], Any]:
    """Return the function of a number or an array that maps [low, high] to [start, end]."""
    return lambda value: start + (value - low) / (high - low or 1.0) * (end - start)


def _vertical_grid(
    ticks: list[float], x: Callable[[float], float], top: float, bottom: float
) -> list[str]:
    return [
        element
        for tick in ticks
        for element in (
            _grid_line(x(tick), x(tick), top, bottom, tick),
            _text(x(tick), bottom + 16, number(tick), "middle small"),
        )
    ]


def _horizontal_grid(
    ticks: list[float], y: Callable[[float], float], left: float, right: float
) -> list[str]:
    return [
        element
        for tick in ticks
        for element in (
            _grid_line(left, right, y(tick), y(tick), tick),
            _text(left - 8, y(tick) + 4, number(tick), "end small"),
        )
    ]


def _axis_names(
    x_label: str, y_label: str, left: float, right: float, top: float, bottom: float
) -> list[str]:
    upright = f'transform="translate(11 {(top + bottom) / 2}) rotate(-90)"'
    return [
        _text((left + right) / 2, bottom + 34, x_label, "middle small"),
        _text(0, 0, y_label, "middle small", upright),
    ]


def _grid_line(x1: float, x2: float, y1: float, y2: float, tick: float) -> str:
    look = "grid anchor" if tick in (0.0, 1.0) else "grid"
    return f'<line class="{look}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, look: str, more: str = "") -> str:
    attributes = more or f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text class="{look}" {attributes}>{escape(text)}</text>'


def _svg(width: int, height: int, elements: list[str], title: str) -> Markup:
    content = "".join(elements)
    return Markup(
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}">{content}</svg>'
    )
