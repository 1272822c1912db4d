"""Check the numbers of a finished cell against the table of its episodes. No JAX is imported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from rlbench_suite.core.scale import Scale
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.tables import check_cell, read_outcomes
from rlbench_suite.evaluation.statistics.aggregates import worst_tenth

TOLERANCE = 1e-9
"""Largest rounding error of a mean, as a fraction of the largest of its numbers.

Programs add numbers in different orders. Sums of float64 in any order agree to some 1e-13.
"""


def read_episodes_of(result: CellResult, path: Path) -> pa.Table:
    """Return the columns of a cell's episodes from which its numbers follow.

    Raises:
        OSError, ValueError: the table is damaged, or of another cell.
    """
    table = read_outcomes(path, result.episodes)
    check_cell(table, result.cell)
    return table


def check_numbers(
    result: CellResult, scale: Scale, episodes: pa.Table | None, train_episodes: pa.Table | None
) -> None:
    """Compare the numbers of a cell with those that follow from its episodes.

    Args:
        result: the cell's numbers.
        scale: scale of the task's scores, by the references of the manifest.
        episodes: evaluation episodes, if they are there.
        train_episodes: episodes on the train split, if they are there.

    Raises:
        ValueError: a number is another one than its episodes give.
    """
    if episodes is not None:
        _check_evaluation(result, scale, episodes)
    if train_episodes is not None:
        returns = _column(train_episodes, "return")
        _check_mean("train_return", result.train_return, returns)
        _check_mean("train_score", result.train_score, scale.score(returns))


def _check_evaluation(result: CellResult, scale: Scale, episodes: pa.Table) -> None:
    returns = _column(episodes, "return")
    scores = scale.score(returns)
    _check_mean("mean_return", result.mean_return, returns)
    _check_mean("score", result.score, scores)
    _check_mean("success_rate", result.success_rate, _column(episodes, "success"))
    _check_mean("mean_length", result.mean_length, _column(episodes, "length"))
    _check_mean("mean_cost", result.mean_cost, _column(episodes, "cost"))
    if result.worst_tenth is not None:
        _check_close("worst_tenth", result.worst_tenth, worst_tenth(scores), scores)
    returns_by_column = _returns(episodes)
    if len(result.mean_returns) != returns_by_column.shape[1]:
        raise ValueError(
            f"its mean_returns are {len(result.mean_returns)} numbers, and its episodes have "
            f"{returns_by_column.shape[1]} returns each"
        )
    for stated, values in zip(result.mean_returns, returns_by_column.T, strict=True):
        _check_mean("mean_returns", stated, values)


def _column(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table[name].to_numpy(), np.float64)


def _returns(table: pa.Table) -> np.ndarray:
    """Return the returns by objective or agent, shape ``(n_episodes, n)``.

    Raises:
        ValueError: the episodes do not have equally many.
    """
    flat = np.asarray(table["returns"].combine_chunks().flatten(), np.float64)
    width, remainder = divmod(len(flat), len(table))
    if remainder:
        raise ValueError(f"its {len(table)} episodes have {len(flat)} returns together")
    return flat.reshape(len(table), width)


def _check_mean(name: str, stated: float | None, values: np.ndarray) -> None:
    _check_close(name, stated, float(values.mean()), values)


def _check_close(name: str, stated: float | None, computed: float, values: np.ndarray) -> None:
    """Raise ValueError if a number is not what the values give, up to rounding."""
    error = TOLERANCE * float(np.abs(values).max())
    if stated is None or not abs(stated - computed) <= error:  # NaN, too
        raise ValueError(f"its {name} is {stated}, and its episodes give {computed}")
