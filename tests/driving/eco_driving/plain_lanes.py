"""The approaches of EcoDrivingLanes once more, one car at a time in plain Python.

Neighbours are found by looking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from plain_signals import EXIT, HARD_BRAKING, Car, Lane, colour, idm

# m: the solid line before the stop line, the lane's end behind it, and a detour.
SOLID = 30.0
LANE_END = 10.0
DETOUR = 300.0
RADIUS = {0: 9.0, 2: 13.0}


@dataclass
class LaneCar(Car):
    """A car that has a lane, left or not, and a way that it wants to go.

    The ways are 0 to the right, 1 straight on and 2 to the left.
    """

    left: bool = False
    wants: int = 1

    @property
    def goes(self) -> int:
        """Way on which its lane takes it."""
        forbidden = 0 if self.left else 2
        return 1 if self.wants == forbidden else self.wants


def place(car: LaneCar) -> tuple[int, int]:
    """Return where a car is in the order of an approach.

    Of two cars side by side to 1/64 m, that with the higher number is ahead.
    """
    return math.floor(64 * (car.x + 1)), car.number


class Road(Lane):
    """An approach of two lanes."""

    road: list[LaneCar]  # type: ignore[assignment]
    waiting: list[LaneCar]  # type: ignore[assignment]
    changes = 0

    def cars_in_lane(self, in_left: bool) -> list[LaneCar]:
        """List the cars in a lane, without those that have parted."""
        return [
            car
            for car in self.road
            if car.left == in_left and car.x - car.length < self.line + LANE_END
        ]

    def ahead(self, car: LaneCar, in_left: bool) -> LaneCar | None:
        """Find the nearest car ahead in a lane."""
        return min(
            (o for o in self.cars_in_lane(in_left) if place(o) > place(car)),
            key=place,
            default=None,
        )

    def behind(self, car: LaneCar, in_left: bool) -> LaneCar | None:
        """Find the nearest car behind in a lane."""
        return max(
            (o for o in self.cars_in_lane(in_left) if place(o) < place(car)),
            key=place,
            default=None,
        )

    def leads(self, ahead: LaneCar, car: LaneCar) -> bool:
        """Say whether a driver may not run into a car ahead."""
        parted = ahead.x - ahead.length >= self.line + LANE_END
        return ahead.x > car.x and ahead.left == car.left and (ahead.goes == car.goes or not parted)

    def all_ahead(self, car: LaneCar) -> list[LaneCar]:
        """List all cars that a driver may not run into, the nearest one first."""
        return sorted((o for o in self.road if self.leads(o, car)), key=lambda o: o.x)

    def all_behind(self, car: LaneCar) -> list[LaneCar]:
        """List all cars that may not run into this one, the nearest one first."""
        return sorted((o for o in self.road if self.leads(car, o)), key=lambda o: -o.x)

    def accelerates(self, car: LaneCar, *leaders: LaneCar | None) -> float:
        """Return the acceleration by the published equation behind leaders and a held line."""
        obstacles = [(1e6, 0.0), *((o.x - o.length - car.x, o.v) for o in leaders if o)]
        if car.is_held:
            obstacles.append((self.line - car.x, 0.0))
        return idm(car.driver, car.v, obstacles)

    def room(self, car: Car) -> float:
        """Return how far the car may go until it stands behind all others, m."""
        assert isinstance(car, LaneCar)
        rooms = [o.x - o.length - car.x + o.v**2 / (2 * HARD_BRAKING) for o in self.all_ahead(car)]
        return min([*rooms, self.line - car.x] if car.is_held else [*rooms, 1e6])

    def expects(self, car: LaneCar) -> int:
        """Return where the driver expects to go."""
        return car.wants if car.x < self.line - SOLID else car.goes

    def wish(self, car: Car) -> float:
        """Return the acceleration that the driver chooses behind its leaders and before its bend.

        There is a nearest leader of each kind.
        """
        assert isinstance(car, LaneCar)
        same_turn = [o for o in self.all_ahead(car) if o.goes == car.goes]
        wish = self.accelerates(car, self.ahead(car, car.left), *same_turn[:1])
        radius = RADIUS.get(self.expects(car))
        if radius and car.x < self.line + math.pi * radius / 2:
            *_, a, b = car.driver
            distance = max(self.line - car.x - 0.5 * (car.v + 0.5 * a), 0.0)
            wish = min(wish, (math.sqrt(3 * radius + 2 * b * distance) - car.v) / 0.5)
        return wish

    def wants_to_change(self, car: LaneCar) -> bool:
        """Say whether a driver changes to the other lane by MOBIL.

        b_safe is 4 m/s^2, politeness is 0.3, and the threshold is 0.1 m/s^2.
        """
        other_lane = not car.left
        leader, follower = self.ahead(car, other_lane), self.behind(car, other_lane)
        old_leader, old_follower = self.ahead(car, car.left), self.behind(car, car.left)
        if car.x >= self.line - SOLID or car.v < 2:
            return False
        for back, front in ((car, leader), (follower, car)):
            if back and front:
                gap = front.x - front.length - back.x
                if (
                    gap <= 0
                    or back.v**2 > front.v**2 + 2 * HARD_BRAKING * gap
                    or self.accelerates(back, front) <= -4
                ):
                    return False
        acceleration_after = self.accelerates(car, leader)
        if acceleration_after <= -4:
            return False
        if car.wants != 1:
            return car.goes != car.wants
        gain = acceleration_after - self.accelerates(car, old_leader)
        if follower:
            gain += 0.3 * (self.accelerates(follower, car) - self.accelerates(follower, leader))
        if old_follower:
            gain += 0.3 * (
                self.accelerates(old_follower, old_leader) - self.accelerates(old_follower, car)
            )
        return gain > 0.1

    def change(self, tick: int) -> None:
        """Let the drivers in one lane decide at once: those in the right one in even seconds."""
        self.hold(tick)
        changing = [
            car
            for car in self.road
            if car.left == (tick // 2 % 2 == 1) and self.wants_to_change(car)
        ]
        for car in changing:
            car.left = not car.left
        self.changes += len(changing)

    def detour(self, car: Car) -> float:
        """Return what the car is charged for a detour, mg."""
        assert isinstance(car, LaneCar)
        v0 = car.driver[0]
        return (
            DETOUR / v0 * (9449 - 467.1 * v0 + 28.26 * v0**2) / 3.6
            if car.goes != car.wants
            else 0.0
        )

    def enter(self) -> None:
        """Let the next car of each lane enter if there is room."""
        for in_left in (False, True):
            queue = [car for car in self.waiting if car.left == in_left]
            last = min((o for o in self.road if o.left == in_left), key=lambda o: o.x, default=None)
            room = (last.x - last.length if last else 1e6) - (queue[0].driver[2] if queue else 0.0)
            if queue and room >= 0:
                car = queue[0]
                safe = math.sqrt((last.v if last else 0.0) ** 2 + 2 * car.driver[4] * room)
                car.x, car.v = 0.0, min(car.driver[0], safe)
                self.waiting.remove(car)
                self.road.append(car)


class Roads:
    """The approaches of the parameters; agents may ease off unless it is the twin."""

    def __init__(self, params: Any) -> None:
        self.params, self.time = params, 0
        self.lanes = []
        for road in (0, 1):
            cars = [
                LaneCar(
                    24 * road + i,
                    tuple(float(values[road, i]) for values in params.driver),
                    int(params.arrival[road, i]),
                    bool(params.controlled[road, i]),
                    left=i >= 12,
                    wants=int(params.turn[road, i]),
                )
                for i in range(24)
                if params.arrival[road, i] < 1_000_000
            ]
            plan = tuple(int(values) for values in params.plan)
            self.lanes.append(Road(cars, float(params.approach), plan, road))  # type: ignore[arg-type]
        self.cars: dict[int, Any] = {car.number: car for lane in self.lanes for car in lane.to_come}

    def step(self, action: np.ndarray | None) -> None:
        """Let a second pass."""
        eases = {n: 1.5 * max(float(action[n, 0]), 0.0) for n in self.cars if action is not None}
        eases = {n: ease for n, ease in eases.items() if self.cars[n].controlled}
        for lane in self.lanes:
            lane.change(self.time)
        for _ in range(2):
            for lane in self.lanes:
                lane.tick(self.time, eases)
            self.time += 1

    def observations(self, penetration: float) -> np.ndarray:
        """Return what the agents observe, ``(48, 31)``."""
        rows = np.zeros((48, 31))
        first, second, _ = (int(ticks) for ticks in self.params.plan)
        for number, road in enumerate(self.lanes):
            light, to_green, to_amber = colour(road.plan, road.phase, self.time)
            green = (first, second)[road.phase]
            road.hold(self.time)
            rows[24 * number : 24 * number + 24, 10:20] = (
                *(light == name for name in ("green", "amber", "red")),
                to_green / 180,
                to_amber / 180,
                green / 180,
                (first + second + 20 - green) / 180,
                road.line / 250,
                float(self.params.limit) / 15,
                penetration,
            )
            for car in road.road:
                if not car.controlled or car.x >= road.line + EXIT:
                    continue
                leader, follower = (
                    next(iter(cars), None) for cars in (road.all_ahead(car), road.all_behind(car))
                )
                before_line = car.x < road.line
                queue = (
                    [o for o in road.cars_in_lane(car.left) if car.x < o.x < road.line]
                    if before_line
                    else []
                )
                side = road.ahead(car, not car.left) if before_line else None
                side_behind = road.behind(car, not car.left) if before_line else None
                goes = road.expects(car)
                crossing = math.sqrt(3 * RADIUS[goes]) if goes in RADIUS else 1e6
                rows[car.number, :10] = (
                    1,
                    car.v / 15,
                    (road.line - car.x) / 250,
                    min((leader.x - leader.length - car.x) / 250, 1) if leader else 1,
                    leader.v / 15 if leader else 0,
                    leader.controlled if leader else 0,
                    min((car.x - car.length - follower.x) / 250, 1) if follower else 1,
                    follower.v / 15 if follower else 0,
                    np.clip(road.wish(car) / 4.5, -1, 1),
                    len(queue) / 12,
                )
                rows[car.number, 20:] = (
                    car.left,
                    *(goes == turn for turn in (0, 1, 2)),
                    min(crossing, float(self.params.limit)) / 15,
                    sum(road.expects(o) != 1 for o in queue) / 12,
                    car.goes != car.wants,
                    min((side.x - side.length - car.x) / 250, 1) if side else 1,
                    side.v / 15 if side else 0,
                    min((car.x - car.length - side_behind.x) / 250, 1) if side_behind else 1,
                    side_behind.v / 15 if side_behind else 0,
                )
        return rows
