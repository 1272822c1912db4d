"""Array types of the family."""

from __future__ import annotations

from typing import Any

Scalar = Any  # A scalar array, or an array with one entry a vehicle; on the host a float
