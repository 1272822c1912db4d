"""Lane changing by MOBIL: minimising overall braking induced by lane changes.

A change is safe if neither the new follower nor the driver itself must brake harder than
``SAFE_BRAKING`` after it. It is worthwhile if the driver's gain, plus politeness times the gain of
both followers, passes a threshold:

    a~_n > -b_safe,   a~_c > -b_safe,   a~_c - a_c + p (a~_n - a_n + a~_o - a_o) > threshold

c is the driver, n the new and o the old follower, a~ the acceleration after the change.

Source: Kesting, Treiber & Helbing 2007, doi:10.3141/1999-10, eqs. 2 and 3 (symmetric rules) with
their values of b_safe and threshold. They require safe braking of the new follower only. Requiring
it of the driver too keeps a driver that already brakes hard from swerving behind a nearer vehicle.
"""

from __future__ import annotations

from typing import NamedTuple

from ..arrays import Scalar

SAFE_BRAKING = 4.0  # b_safe, m/s^2
THRESHOLD = 0.1  # m/s^2


class Prospect(NamedTuple):
    """Accelerations before and after a change, m/s^2."""

    own_before: Scalar  # a_c
    own_after: Scalar  # a~_c
    new_follower: Scalar  # a_n
    new_follower_after: Scalar  # a~_n
    old_follower: Scalar  # a_o
    old_follower_after: Scalar  # a~_o


def is_safe(prospect: Prospect) -> Scalar:
    """Say whether nobody must brake hard after the change."""
    return (prospect.new_follower_after > -SAFE_BRAKING) & (prospect.own_after > -SAFE_BRAKING)


def incentive(prospect: Prospect, politeness: Scalar) -> Scalar:
    """Return the left side of the criterion, m/s^2."""
    others_gain = (prospect.new_follower_after - prospect.new_follower) + (
        prospect.old_follower_after - prospect.old_follower
    )
    return (prospect.own_after - prospect.own_before) + politeness * others_gain


def wants_to_change(prospect: Prospect, politeness: Scalar) -> Scalar:
    """Say whether both criteria hold."""
    return is_safe(prospect) & (incentive(prospect, politeness) > THRESHOLD)
