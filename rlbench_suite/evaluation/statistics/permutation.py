"""Paired permutation test of a mean difference, and Holm's correction for several tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

EXACT = 14
"""Largest number of pairs whose signs are flipped in every way."""

FLIPS = 20_000
"""Random ways to flip the signs of more pairs."""

_CHUNK = 2_000


def sign_flip_test(differences: Mapping[str, Sequence[float]], *, seed: int = 0) -> float:
    """Return the two-sided p-value of a paired permutation test.

    It tests the mean over tasks of the mean difference.

    Under the null hypothesis every difference is as likely as its negative. Random flips count the
    observed signs as one of them, so that a p-value is never 0 (Phipson and Smyth 2010,
    doi:10.2202/1544-6115.1585).

    Args:
        differences: differences of the pairs by task, at least one for each task.
        seed: of the random flips.
    """
    weighted = np.concatenate(
        [np.asarray(values, float) / len(values) for values in differences.values()]
    )
    weighted = weighted[weighted != 0] / len(differences)
    observed = abs(float(weighted.sum()))
    # Rounding must not tell equal sums apart.
    threshold = observed - 1e-12 * float(np.abs(weighted).sum())
    pairs = len(weighted)
    if pairs <= EXACT:
        signs = 1.0 - 2.0 * ((np.arange(2**pairs)[:, None] >> np.arange(pairs)) & 1)
        return float((np.abs(signs @ weighted) >= threshold).mean())
    rng, extreme = np.random.default_rng(seed), 1
    for _ in range(FLIPS // _CHUNK):
        signs = 1.0 - 2.0 * rng.integers(2, size=(_CHUNK, pairs))
        extreme += int((np.abs(signs @ weighted) >= threshold).sum())
    return extreme / (FLIPS + 1)


def least_p(pairs: int) -> float:
    """Return the smallest p-value that :func:`sign_flip_test` can give.

    All others are multiples of it.
    """
    return 2.0 ** (1 - pairs) if pairs <= EXACT else 1 / (FLIPS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method (1979), in the order given."""
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected
