"""Compare the tables on the pages with what ``rlsuite dev calibrate`` has stored.

``rlsuite show`` prints the stored values.

``python tests/test_measured_tables.py`` writes the stored values into all tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlbench_suite.core import registry
from rlbench_suite.core.task_card import TaskCard

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))

PLAYERS = ("random", "noop", "heuristic", "planner", "reference")
"""Names of columns and rows that hold a player's measurement."""

ID = re.compile(r"`([A-Z]\w*-v\d+)`")
NUMBER = re.compile(r"(-?\d*\.?\d+)( %)?(?: \((\d*\.?\d+)\))?")
"""A printed value, perhaps in per cent, perhaps with the limit of a cost behind it."""


@dataclass(frozen=True)
class Table:
    """A Markdown table, and where it stands.

    It knows the index of its first row among the lines, and the last id calibrated in the text
    before.
    """

    first_line: int
    header: list[str]
    rows: list[list[str]]
    calibrated_id: str


@dataclass(frozen=True)
class Cell:
    """A printed value and the measured value in the same unit.

    Line and column are counted from 0.
    """

    line: int
    column: int
    name: str
    printed: str
    measured: float

    @property
    def decimals(self) -> int:
        """Number of printed digits after the point."""
        return len(self.printed.partition(".")[2])

    @property
    def agrees(self) -> bool:
        """Whether the printed value is the measured one, rounded."""
        return abs(self.measured - float(self.printed)) <= 0.5 * 10**-self.decimals + 1e-9

    @property
    def rounded(self) -> str:
        """The measured value as it is to be printed."""
        text = f"{self.measured:.{self.decimals}f}"
        return text.replace("0.", ".", 1) if self.printed.lstrip("-").startswith(".") else text


def cells_of(line: str) -> list[str]:
    """Return the texts of the cells of a line."""
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a page."""
    lines = text.splitlines()
    calibrated_id = ""
    for index, line in enumerate(lines):
        calibrated = re.search(r"rlsuite dev calibrate ([A-Z]\w*-v\d+)", line)
        if calibrated:
            calibrated_id = calibrated[1]
        if index and re.fullmatch(r"\|( -+:? \|)+", line):
            rows = []
            for row in lines[index + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(cells_of(row))
            yield Table(index + 1, cells_of(lines[index - 1]), rows, calibrated_id)


def quantity(column: str) -> tuple[str, str] | None:
    """Return player and quantity (``mean``, ``success``, ``cost``) of a column.

    Return None if it has no such values.
    """
    name = column.replace("no-op", "noop").removesuffix(" player")
    if name in PLAYERS:
        return name, "mean"
    if name.startswith("its cost"):
        return "reference", "cost"
    if name == "its success":
        return "reference", "success"
    success = re.fullmatch(r"(?:success )?of (?:the )?(\w+)", name)
    return (success[1], "success") if success and success[1] in PLAYERS else None


def of_the_row(row: str, column: str) -> tuple[str, str] | None:
    """Return player and quantity of a cell in a table whose rows are players."""
    player = re.search(rf"\b({'|'.join(PLAYERS)})\b", row)
    quantities = {"return": "mean", "success": "success"}
    return (player[1], quantities[column]) if player and column in quantities else None


def card_of(task_id: str) -> TaskCard | None:
    """Return the card of an id, or None if there is no such id."""
    return registry.cards().get(f"rlsuite/{task_id}")


def measured_cells(table: Table) -> Iterator[Cell]:
    """Yield the values of a table that ``rlsuite dev calibrate`` measures.

    Rows are ids, difficulties or players.
    """
    kind = table.header[0]
    if kind not in ("id", "difficulty", "player"):
        return
    card = card_of(table.calibrated_id)
    for line, row in enumerate(table.rows, table.first_line):
        written_id = ID.fullmatch(row[0])
        if kind == "id" and row[0]:
            card = card_of(written_id[1]) if written_id else None
        if card is None:
            continue
        cells = dict(zip(table.header, row, strict=True))
        tier = cells.get("difficulty") or None
        if tier and tier not in card.difficulties:
            continue
        for index, (column, text) in enumerate(cells.items()):
            number = NUMBER.fullmatch(text)
            if number is None:
                continue
            name = " ".join(filter(None, (card.name, tier, column)))
            if number[3] and card.constraint:
                yield Cell(line, index, f"{name}, limit", number[3], card.constraint.limit)
            measured = of_the_row(row[0], column) if kind == "player" else quantity(column)
            scores = card.scores(tier)
            if "heuristic" in table.header and column in card.difficulties:
                measured = "heuristic", "mean"
                scores = card.scores(column)
            if column == "optimum" and kind == "id" and not tier and card.optimum is not None:
                yield Cell(line, index, name, number[1], card.optimum)
            if measured and measured[0] in scores:
                value = getattr(scores[measured[0]], measured[1])
                if value is not None:
                    yield Cell(line, index, name, number[1], 100 * value if number[2] else value)


def wrong_cells(page: Path) -> list[Cell]:
    """Return the values of a page that differ from the stored ones."""
    return [
        cell
        for table in tables(page.read_text())
        for cell in measured_cells(table)
        if not cell.agrees
    ]


def mend(page: Path) -> None:
    """Write the stored values into the tables of a page."""
    lines = page.read_text().splitlines()
    for cell in wrong_cells(page):
        texts = cells_of(lines[cell.line])
        texts[cell.column] = texts[cell.column].replace(cell.printed, cell.rounded, 1)
        lines[cell.line] = f"| {' | '.join(texts)} |".replace("|  |", "| |")
    page.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_have_the_stored_values(page: Path) -> None:
    wrong = [
        f"{page.name}:{cell.line + 1} {cell.name}: {cell.printed}, not {cell.rounded}"
        for cell in wrong_cells(page)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_tables_are_found() -> None:
    numbers = {
        page.relative_to(ROOT / "docs").as_posix(): sum(
            len([*measured_cells(table)]) for table in tables(page.read_text())
        )
        for page in PAGES
    }
    assert {page for page, number in numbers.items() if number > 15} >= {
        "audits/ppo.md",
        "details/asking_and_bargaining.md",
        "details/driving.md",
        "details/quadcopters.md",
        "details/text_games.md",
        "details/tools.md",
        "families/exploration.md",
        "families/greenhouse.md",
    }


if __name__ == "__main__":
    for page in PAGES:
        if wrong_cells(page):
            mend(page)
            print(page)
