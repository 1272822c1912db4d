"""The traffic once more, by brute force in plain NumPy at float64.

Arrays are ``(episodes, vehicles)``. Leaders are found by distance around the road, arcs are
integrated by quadrature, and bodies are tested for overlap at eight times a sub-step by projecting
their corners.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

LANES = 4
WIDTH = 4.0  # m, of a lane
SUBSTEP = 1 / 15  # s
SAMPLES = 8  # Moments of a sub-step at which bodies are tested
NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)


def take(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, index, 1)


@dataclass
class PlainTraffic:
    """A batch of roads."""

    fleet: Any
    """Arrays of the task's ``Fleet``, float64, episodes first."""
    x: np.ndarray
    y: np.ndarray
    heading: np.ndarray
    speed: np.ndarray
    lane: np.ndarray
    target: np.ndarray
    travelled: np.ndarray
    touched: np.ndarray = field(init=False)
    """Whether the ego's body overlapped another one or left the road at a sample, ``(episodes,)``.
    """
    leaders: list[tuple[np.ndarray, np.ndarray]] = field(init=False)
    others_touched: np.ndarray = field(init=False)
    """Whether two other vehicles overlapped at the end of a sub-step, ``(episodes,)``."""
    lanes: int = LANES
    lowest: int = 0
    """The rightmost lane to which others may change."""
    steady: Any = None
    """Vehicles that keep speed and direction."""

    def __post_init__(self) -> None:
        self.touched = np.zeros(len(self.x), bool)
        self.others_touched = np.zeros(len(self.x), bool)
        self.ring = np.asarray(self.fleet.circumference)[:, None]

    # -- following and changing lanes --------------------------------------------------------------

    def idm(self, who: Any, speed: Any, gap: Any, leader_speed: Any) -> np.ndarray:
        v0, T, s0, a, b = who
        desired_gap = s0 + np.maximum(
            0, speed * T + speed * (speed - leader_speed) / (2 * np.sqrt(a * b))
        )
        return a * (1 - (speed / v0) ** 4 - (desired_gap / np.maximum(gap, 0.1)) ** 2)

    def neighbour(self, lane: np.ndarray, *, ahead: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest vehicle around the ring, and the distance (m) between both centres.

        A vehicle that finds nobody finds itself, once around.
        """
        count = self.x.shape[1]
        between = self.x[:, None, :] - self.x[:, :, None]
        between = np.mod(between if ahead else -between, self.ring[:, :, None])
        in_lane = (self.lane[:, None] == lane[:, :, None]) | (
            self.target[:, None] == lane[:, :, None]
        )
        between = np.where(in_lane, between, np.inf)
        between[:, np.arange(count), np.arange(count)] = self.ring
        index = between.argmin(2)
        return index, take(between.reshape(-1, count), index.reshape(-1, 1)).reshape(index.shape)

    def gap(self, distance: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return distance - (first + second) / 2

    def weigh_lanes(self, direction: np.ndarray) -> None:
        """Decide lane changes by MOBIL (Kesting, Treiber & Helbing 2007).

        ``direction`` is 1 for the left lane, -1 for the right one, and 0 for none.
        """
        length, driver = self.fleet.length, tuple(self.fleet.driver)
        forward = self.speed * np.cos(self.heading)
        aside = self.target + direction[:, None]
        me = np.arange(self.x.shape[1])[None]
        old_leader, old_ahead = self.neighbour(self.target, ahead=True)
        old_follower, old_behind = self.neighbour(self.target, ahead=False)
        new_leader, new_ahead = self.neighbour(aside, ahead=True)
        new_follower, new_behind = self.neighbour(aside, ahead=False)

        def own_acceleration(leader: np.ndarray, distance: np.ndarray) -> np.ndarray:
            return self.idm(
                driver,
                self.speed,
                self.gap(distance, length, take(length, leader)),
                take(forward, leader),
            )

        def behind(follower: np.ndarray, distance: np.ndarray) -> np.ndarray:
            who = tuple(take(value, follower) for value in driver)
            gap = self.gap(distance, take(length, follower), length)
            return self.idm(who, take(self.speed, follower), gap, forward)

        def without(
            follower: np.ndarray, distance: np.ndarray, leader: np.ndarray, ahead: np.ndarray
        ) -> np.ndarray:
            who = tuple(take(value, follower) for value in driver)
            distance_without = np.where(follower == me, 0, distance) + ahead
            gap = self.gap(distance_without, take(length, follower), take(length, leader))
            return self.idm(who, take(self.speed, follower), gap, take(forward, leader))

        own_after = own_acceleration(new_leader, new_ahead)
        new_after = behind(new_follower, new_behind)
        gain = own_after - own_acceleration(old_leader, old_ahead)
        others_gain = new_after - without(new_follower, new_behind, new_leader, new_ahead)
        others_gain += without(old_follower, old_behind, old_leader, old_ahead) - behind(
            old_follower, old_behind
        )
        wants = (
            (new_after > -4)
            & (own_after > -4)
            & (gain + self.fleet.politeness[:, None] * others_gain > 0.1)
        )
        may = (
            (self.lane == self.target)
            & (direction[:, None] != 0)
            & (aside >= self.lowest)
            & (aside < self.lanes)
        )
        may &= (self.speed > 1) & (me > 0)
        self.target = np.where(may & wants, aside, self.target)

    def choose_leaders(self) -> None:
        """Find whom everyone follows until the next look.

        Keep also how far ahead of it (m) that one is on unrolled positions.
        """
        self.leaders = []
        for lane in (self.lane, self.target):
            leader, distance = self.neighbour(lane, ahead=True)
            self.leaders.append((leader, distance - (take(self.x, leader) - self.x)))

    # -- moving ------------------------------------------------------------------------------------

    def substep(self, ego: Any) -> None:
        """Move everyone by a sub-step.

        ``ego(x, y, heading, speed)`` gives acceleration and sine of the slip angle of vehicle 0.
        """
        length, width = self.fleet.length, self.fleet.width
        forward = self.speed * np.cos(self.heading)
        acceleration = np.full_like(self.x, np.inf)
        for leader, around in self.leaders:
            gap = self.gap(take(self.x, leader) - self.x + around, length, take(length, leader))
            acceleration = np.minimum(
                acceleration,
                self.idm(tuple(self.fleet.driver), self.speed, gap, take(forward, leader)),
            )
        acceleration = np.maximum(acceleration, -9)
        slip = steer(self.y, self.heading, self.speed, WIDTH * (self.target + 0.5), length)
        if self.steady is not None:
            acceleration[:, self.steady] = slip[:, self.steady] = 0
        acceleration[:, 0], slip[:, 0] = ego(
            self.x[:, 0], self.y[:, 0], self.heading[:, 0], self.speed[:, 0]
        )

        rear, beta = 0.3 * length, np.arcsin(slip)
        start_heading, driven, x, y = self.heading, np.zeros_like(self.x), self.x, self.y
        for k in range(1, SAMPLES + 1):
            t = k * SUBSTEP / SAMPLES
            stop = np.where(
                acceleration < 0, -self.speed / np.minimum(acceleration, -1e-300), np.inf
            )
            rolling = np.minimum(t, stop)
            distance = self.speed * rolling + acceleration * rolling**2 / 2
            for node, weight in zip(NODES, WEIGHTS, strict=True):
                s = driven + (distance - driven) * (1 + node) / 2
                angle = start_heading + beta + s * slip / rear
                x = x + weight / 2 * (distance - driven) * np.cos(angle)
                y = y + weight / 2 * (distance - driven) * np.sin(angle)
            driven = distance
            heading = start_heading + driven * slip / rear
            self.touched |= self.ego_touches(x, y, heading, length, width)
        self.x, self.y, self.heading = x, y, heading
        self.speed = np.maximum(self.speed + acceleration * SUBSTEP, 0)
        self.others_touched |= self.others_touch()

    def ego_touches(
        self, x: np.ndarray, y: np.ndarray, heading: np.ndarray, length: Any, width: Any
    ) -> np.ndarray:
        bodies = np.stack([x, y, heading, length, width], -1)
        edges = corners(bodies[:, 0])[..., 1]
        touched = (
            (edges.min(-1) < 0)
            | (edges.max(-1) > self.lanes * WIDTH)
            | (np.abs(heading[:, 0]) > np.pi / 2)
        )
        is_close = (np.abs(x - x[:, :1]) < 14) & (np.abs(y - y[:, :1]) < 8)
        is_close[:, 0] = False
        which, vehicle = np.nonzero(is_close)
        hit = overlap(corners(bodies[which, 0]), corners(bodies[which, vehicle]))
        touched[which[hit]] = True
        return touched

    def others_touch(self) -> np.ndarray:
        bodies = np.stack([self.x, self.y, self.heading, self.fleet.length, self.fleet.width], -1)[
            :, 1:
        ]
        dx, dy = (bodies[:, :, None, k] - bodies[:, None, :, k] for k in (0, 1))
        is_close = np.triu((np.abs(dx) < 13) & (np.abs(dy) < 3), 1)
        which, first, second = np.nonzero(is_close)
        hit = overlap(corners(bodies[which, first]), corners(bodies[which, second]))
        touched = np.zeros(len(self.x), bool)
        touched[which[hit]] = True
        return touched

    def settle(self) -> None:
        """Make positions relative to the ego, and finish lane changes."""
        self.travelled = self.travelled + self.x[:, 0]
        self.x = np.mod(self.x - self.x[:, :1] + self.ring / 2, self.ring) - self.ring / 2
        inside = np.abs(self.y - WIDTH * (self.target + 0.5)) < (WIDTH - self.fleet.width) / 2
        self.lane = np.where(inside, self.target, self.lane)


def steer(y: Any, heading: Any, speed: Any, target_y: Any, length: Any) -> np.ndarray:
    """Return the sine of the slip angle by a lateral loop around a heading loop.

    The lateral loop has 1 s, 2 m/s and 0.4 rad, and the heading loop 0.2 s.
    """
    v = np.maximum(speed, 1)
    aim = np.clip(np.clip(target_y - y, -2, 2) / v, -0.4, 0.4)
    bound = slip_bound(speed, length)
    return np.clip(0.3 * length / v * (aim - heading) / 0.2, -bound, bound)


def slip_bound(speed: Any, length: Any) -> np.ndarray:
    """Bound the sine of the slip angle by half of gravity sideways and 45 degrees at the wheels."""
    return np.minimum(
        0.3 * length * 4.905 / np.maximum(speed**2, 1), np.sin(np.arctan(np.tan(np.pi / 4) / 2))
    )


def corners(bodies: np.ndarray) -> np.ndarray:
    """Return corners ``(..., 4, 2)`` of bodies ``(..., 5)``: x, y, heading, length, width."""
    x, y, heading, length, width = np.moveaxis(bodies, -1, 0)[..., None]
    a, b = length / 2 * np.array([1, 1, -1, -1]), width / 2 * np.array([1, -1, -1, 1])
    c, s = np.cos(heading), np.sin(heading)
    return np.stack([x + a * c - b * s, y + a * s + b * c], -1)


def overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Say whether rectangles ``(n, 4, 2)`` overlap: no edge's normal separates their corners."""
    meets = np.ones(len(first), bool)
    for body in (first, second):
        for k in (0, 1):
            normal = body[:, k + 1] - body[:, k]
            a, b = ((corners * normal[:, None]).sum(-1) for corners in (first, second))
            meets &= (a.min(1) <= b.max(1)) & (b.min(1) <= a.max(1))
    return meets
