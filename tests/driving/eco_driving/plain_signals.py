"""The junction of EcoDriving once more, in plain Python.

Cars are objects in lists, and leaders are found by looking.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

DT = 0.5  # s
BODY = 5.0  # m: length of a car
EXIT = 150.0  # m from the stop line to the exit
HARD_BRAKING = 9.0  # m/s^2
GENTLE_BRAKING = 3.0  # m/s^2


@dataclass
class Car:
    """A car, its driver, and where it is."""

    number: int
    driver: tuple[float, ...]
    arrival: int
    controlled: bool
    length: float = BODY
    engine: tuple[float, float, float, float] = (9449, 938.4, -467.1, 28.26)
    factor: float = 1.0
    petrol: float = 1.0
    x: float = math.nan
    v: float = 0.0
    is_held: bool = False


def colour(plan: tuple[int, int, int], phase: int, tick: int) -> tuple[str, int, int]:
    """Return the light, the ticks to the next green, and those to the end of a green.

    The ticks to the next green are 0 at green. The end is that of this green or else of the next
    one.
    """
    first, second, offset = plan
    cycle = [(first, "green", "red"), (6, "amber", "red"), (4, "red", "red"),
             (second, "red", "green"), (6, "red", "amber"), (4, "red", "red")]  # fmt: skip
    colours = [phases[phase] for length, *phases in cycle for _ in range(length)]
    ahead = [colours[(tick + offset + i) % len(colours)] for i in range(2 * len(colours))]
    start = ahead.index("green")
    return ahead[0], start, next(i for i in range(start, len(ahead)) if ahead[i] != "green")


def idm(driver: tuple[float, ...], v: float, obstacles: Sequence[tuple[float, float]]) -> float:
    """Return the acceleration by the published equation, m/s^2.

    Args:
        driver: v0, T, s0, a and b.
        v: m/s.
        obstacles: gap (m) and speed (m/s) of each; the one that makes it brake hardest counts.
    """
    v0, headway, s0, a, b = driver
    worst = 0.0
    for gap, leader_v in obstacles:
        desired_gap = s0 + max(0.0, v * headway + v * (v - leader_v) / (2 * math.sqrt(a * b)))
        worst = max(worst, desired_gap / max(gap, 0.1))
    return a * (1 - (v / v0) ** 4 - worst**2)


class Lane:
    """One lane, with cars to come, cars that wait at the entry, and cars on the road.

    In each list the first car is the one in front.
    """

    def __init__(
        self, cars: list[Car], line: float, plan: tuple[int, int, int], phase: int
    ) -> None:
        self.to_come, self.waiting, self.road = list(cars), list[Car](), list[Car]()
        self.line, self.plan, self.phase = line, plan, phase
        self.num_left, self.mg, self.ul, self.ran_red = 0, 0, 0, 0

    def leader(self, car: Car) -> Car | None:
        """Find the nearest car ahead."""
        ahead = [candidate for candidate in self.road if candidate.x > car.x]
        return min(ahead, key=lambda candidate: candidate.x) if ahead else None

    def hold(self, tick: int) -> None:
        """Let drivers look at the light."""
        light, _, _ = colour(self.plan, self.phase, tick)
        for car in self.road:
            distance = self.line - car.x
            can_stop = distance > 0 and car.v**2 <= 2 * distance * (
                GENTLE_BRAKING if light == "amber" else HARD_BRAKING
            )
            car.is_held = light != "green" and (car.is_held or can_stop)

    def wish(self, car: Car) -> float:
        """Return the acceleration by the published equation.

        Of the leader and a held line, the one that brakes harder counts.
        """
        leader = self.leader(car)
        obstacles = [(leader.x - leader.length - car.x, leader.v)] if leader else [(1e6, 0.0)]
        if car.is_held:
            obstacles.append((self.line - car.x, 0.0))
        return idm(car.driver, car.v, obstacles)

    def tick(self, tick: int, eases: dict[int, float]) -> None:
        """Let half a second pass."""
        self.waiting += [car for car in self.to_come if car.arrival <= tick]
        self.to_come = [car for car in self.to_come if car.arrival > tick]
        self.hold(tick)
        moves = []
        for car in self.road:
            room = self.room(car)
            inside = car.x < self.line + EXIT
            free = (
                car.is_held
                or car.x >= self.line
                or colour(self.plan, self.phase, tick)[0] == "green"
            )
            a = max(
                self.wish(car) - (eases.get(car.number, 0.0) if inside and free else 0.0),
                -HARD_BRAKING,
            )
            # The largest speed from which the car, after this step, can still stop within the room.
            a2, a1, a0 = 1 / (2 * HARD_BRAKING), DT / 2, car.v * DT / 2 - room
            max_v = (math.sqrt(max(a1**2 - 4 * a2 * a0, 0)) - a1) / (2 * a2)
            v = max(min(car.v + DT * a, max_v), 0.0)
            moves.append((car, car.x + min(DT * (car.v + v) / 2, room), v, inside))
        red = colour(self.plan, self.phase, tick)[0] == "red"
        for car, x, v, inside in moves:
            self.ran_red += red and car.x < self.line <= x
            if inside:
                speed, a = (car.v + v) / 2, (v - car.v) / DT
                c0, cav, c1, c2 = (car.factor * c for c in car.engine)
                gram_per_hour = max(c0 + cav * a * speed + c1 * speed + c2 * speed**2, 0)
                charged = DT * gram_per_hour / 3.6
                if x >= self.line + EXIT:
                    self.num_left += 1
                    charged += cav / 3.6 * max(car.driver[0] ** 2 - v**2, 0) / 2 + self.detour(car)
                self.mg += round(charged)
                resistance = 0.6128 * 0.6 * 0.98 * 3.28 * speed**2
                resistance += 9.8066 * 1430 * 1.75 / 1000 * (0.0328 * 3.6 * speed + 4.575)
                kilowatt = max((resistance + 1.04 * 1430 * a) * speed / 920, 0)
                self.ul += round(
                    DT * 1e6 * car.petrol * (7.8e-4 + 1.9556e-5 * kilowatt + 1e-6 * kilowatt**2)
                )
            car.x, car.v = x, v
        for car in self.waiting:
            self.mg += round(DT * car.factor * car.engine[0] / 3.6)
            self.ul += round(DT * 780 * car.petrol)
        self.enter()

    def room(self, car: Car) -> float:
        """Return how far the car may go until it stands, m."""
        leader = self.leader(car)
        room = (
            leader.x - leader.length - car.x + leader.v**2 / (2 * HARD_BRAKING) if leader else 1e6
        )
        return min(room, self.line - car.x) if car.is_held else room

    def detour(self, car: Car) -> float:
        """Return what the car is charged for a detour, mg."""
        return 0.0

    def enter(self) -> None:
        """Let the next car enter if there is room."""
        if self.waiting:
            car, last = self.waiting[0], self.road[-1] if self.road else None
            room = (last.x - last.length if last else 1e6) - car.driver[2]
            if room >= 0:
                safe = math.sqrt((last.v if last else 0.0) ** 2 + 2 * car.driver[4] * room)
                car.x, car.v = 0.0, min(car.driver[0], safe)
                self.road.append(self.waiting.pop(0))


def check_places(traffic: Any, junctions: Sequence[Any], within: float = 1e-9) -> None:
    """Compare places and speeds in the worlds of a task's traffic with one junction each."""
    for world, plain in enumerate(junctions):
        places, speeds = (np.asarray(values)[world].reshape(-1) for values in traffic[:2])
        for number, car in plain.cars.items():
            x, v = places[number], speeds[number]
            assert (x < 0) == np.isnan(car.x)
            if x >= 0:
                np.testing.assert_allclose((x, v), (car.x, car.v), rtol=0, atol=within)


class Junction:
    """The lanes of the parameters, four or one; agents may ease off unless it is the twin."""

    def __init__(self, params: Any) -> None:
        plan = tuple(int(values) for values in params.plan)
        self.params, self.time = params, 0
        self.lanes = []
        for lane in range(len(params.arrival)):
            cars = [
                Car(
                    12 * lane + i,
                    tuple(float(values[lane, i]) for values in params.driver),
                    int(params.arrival[lane, i]),
                    bool(params.controlled[lane, i]),
                )
                for i in range(12)
                if params.arrival[lane, i] < 1_000_000
            ]
            self.lanes.append(Lane(cars, float(params.approach), plan, lane // 2))
        self.cars = {car.number: car for lane in self.lanes for car in lane.to_come}

    def step(self, action: np.ndarray | None) -> None:
        """Let a second pass."""
        agents = [car.number for car in self.cars.values() if car.controlled and action is not None]
        eases = {n: 1.5 * max(float(action[n, 0]), 0.0) for n in agents}  # type: ignore[index]
        for _ in range(2):
            self.tick(eases)

    def tick(self, eases: dict[int, float]) -> None:
        """Let half a second pass."""
        for lane in self.lanes:
            lane.tick(self.time, eases)
        self.time += 1

    def observations(self, penetration: float) -> np.ndarray:
        """Return what the agents observe, ``(12 * lanes, 20)``."""
        rows = np.zeros((12 * len(self.lanes), 20))
        first, second, _ = (int(ticks) for ticks in self.params.plan)
        for number, lane in enumerate(self.lanes):
            light, to_green, to_amber = colour(lane.plan, lane.phase, self.time)
            green = (first, second)[lane.phase]
            lane.hold(self.time)
            rows[12 * number : 12 * number + 12, 10:] = (
                *(light == name for name in ("green", "amber", "red")),
                to_green / 180,
                to_amber / 180,
                green / 180,
                (first + second + 20 - green) / 180,
                lane.line / 250,
                float(self.params.limit) / 15,
                penetration,
            )
            for car in lane.road:
                if not car.controlled or car.x >= lane.line + EXIT:
                    continue
                leader = lane.leader(car)
                cars_behind = [other_car for other_car in lane.road if other_car.x < car.x]
                behind = max(cars_behind, key=lambda other_car: other_car.x, default=None)
                rows[car.number, :10] = (
                    1,
                    car.v / 15,
                    (lane.line - car.x) / 250,
                    min((leader.x - leader.length - car.x) / 250, 1) if leader else 1,
                    leader.v / 15 if leader else 0,
                    leader.controlled if leader else 0,
                    min((car.x - car.length - behind.x) / 250, 1) if behind else 1,
                    behind.v / 15 if behind else 0,
                    np.clip(lane.wish(car) / 4.5, -1, 1),
                    sum(car.x < other_car.x < lane.line for other_car in lane.road) / 12
                    if car.x < lane.line
                    else 0,
                )
        return rows
