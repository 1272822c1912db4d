"""The Ornstein-Uhlenbeck process about zero, exact at any step: dx = -x / T dt + s sqrt(2 / T) dW.

Its deviation is s once it has run for long, and its correlation over a time t is e^(-t/T).

Source: Uhlenbeck & Ornstein 1930, doi:10.1103/PhysRev.36.823; Gillespie 1996,
doi:10.1103/PhysRevE.54.2084, eq. 3.1.
"""

from __future__ import annotations

import math

from ..machines.frames import Scalar


def next_value(
    value: Scalar, normal: Scalar, deviation: float, time_constant: float, step: float
) -> Scalar:
    """Return the value ``step`` s later.

    ``normal`` is a standard normal number, ``time_constant`` is T, s, and ``deviation`` is s in the
    formula above.
    """
    decay = math.exp(-step / time_constant)
    return decay * value + (deviation * math.sqrt(1 - decay * decay)) * normal
