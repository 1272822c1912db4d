"""Scenarios: roads and recorded trajectories of one's own, as JSON.

Lengths are in m, times in s, speeds in m/s, angles in rad from east to the left. :class:`Scenario`
lists the fields. A lane is a centre line of straights and arcs; where it ends, other lanes may
begin. The way of the ego is the shortest one from its start to its goal. A trajectory is what one
vehicle did: its centre, heading and speed at some times.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlbench_suite.foundation.unknown_names import MAX_QUOTE, unknown

from .routes import Route, points

MAX_LANES = 500
MAX_PIECES = 200  # of a lane
MAX_VEHICLES = 2000  # trajectories
MAX_POINTS = 200_000  # of all trajectories
MAX_COORDINATE = 1e5  # m
MAX_SPEED = 100.0  # m/s
# Largest difference between the speed of a trajectory and that of its places, as a part of the
# former and 2 m/s
MAX_SPEED_MISMATCH = 0.5
# Between the end of a lane and the beginning of the next one.
MAX_JOINT_GAP = 0.1  # m
MAX_JOINT_ANGLE = 0.05  # rad
SHIPPED_PATH = Path(__file__).parent / "scenarios" / "intersection.json"

Coordinate = Annotated[float, Field(ge=-MAX_COORDINATE, le=MAX_COORDINATE, allow_inf_nan=False)]
Angle = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
Speed = Annotated[float, Field(ge=0, le=MAX_SPEED, allow_inf_nan=False)]
Time = Annotated[float, Field(ge=0, le=MAX_COORDINATE, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
VehicleLength = Annotated[float, Field(ge=0.5, le=30, allow_inf_nan=False)]
VehicleWidth = Annotated[float, Field(ge=0.3, le=4, allow_inf_nan=False)]


class StrictModel(BaseModel):
    """A part of the format: unknown fields and values of other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Beginning(StrictModel):
    """Beginning of a lane."""

    x: Coordinate
    y: Coordinate
    heading: Angle


class Piece(StrictModel):
    """A straight, or an arc."""

    length: Annotated[float, Field(ge=0.1, le=MAX_COORDINATE, allow_inf_nan=False)]
    # m of an arc, positive to the left, negative to the right; None for a straight
    radius: Coordinate | None = None


class Lane(StrictModel):
    """A lane, given by its centre line."""

    name: Name
    start: Beginning
    pieces: Annotated[list[Piece], Field(min_length=1, max_length=MAX_PIECES)]
    speed_limit: Annotated[float, Field(ge=1, le=MAX_SPEED, allow_inf_nan=False)]
    width: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = 3.5  # m, of the picture
    next: list[Name] = []  # lanes that begin where it ends


class OnLane(StrictModel):
    """A place on a lane."""

    lane: Name
    s: Annotated[float, Field(ge=0, le=MAX_COORDINATE, allow_inf_nan=False)]  # m from its beginning


class Ego(StrictModel):
    """The vehicle that is driven."""

    start: OnLane
    goal: OnLane
    length: VehicleLength = 5.0
    width: VehicleWidth = 2.0


class Trajectory(StrictModel):
    """Motion of a vehicle; the lists are equally long."""

    time: Annotated[list[Time], Field(min_length=2)]
    x: list[Coordinate]
    y: list[Coordinate]
    heading: list[Angle]
    speed: list[Speed]
    length: VehicleLength = 5.0
    width: VehicleWidth = 2.0


class Scenario(StrictModel):
    """The whole document."""

    version: Literal[1]
    units: Literal["m, s, rad"]
    name: Name
    description: Annotated[str, Field(max_length=2000)] = ""
    # s of the recording, which begins at 0
    duration: Annotated[float, Field(gt=0, le=MAX_COORDINATE, allow_inf_nan=False)]
    lanes: Annotated[list[Lane], Field(min_length=1, max_length=MAX_LANES)]
    ego: Ego
    trajectories: Annotated[list[Trajectory], Field(max_length=MAX_VEHICLES)] = []


# -- reading ---------------------------------------------------------------------------------------


def check(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario with its defaults as plain data.

    Raises:
        ValueError: it is none. The message is a part of a sentence.
    """
    return read(document).model_dump()


def read(document: Mapping[str, Any]) -> Scenario:
    """Return the scenario that plain data describes.

    Raises:
        ValueError: it is none. The message is a part of a sentence.
    """
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        raise ValueError(_first_fault(error)) from None
    names = [lane.name for lane in scenario.lanes]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"lanes: two of them are called {name!r}")
    for lane in scenario.lanes:
        _refuse_bad_lane(lane, scenario)
    for which, place in (("start", scenario.ego.start), ("goal", scenario.ego.goal)):
        if place.lane not in names:
            raise ValueError(f"ego.{which}: {unknown('lane', place.lane, names)}")
        if place.s > length_of(lane_of(scenario, place.lane)):
            length = length_of(lane_of(scenario, place.lane))
            raise ValueError(
                f"ego.{which}.s: lane {place.lane!r} is {length:g} m long, got {place.s:g}"
            )
    for k, trajectory in enumerate(scenario.trajectories):
        _refuse_bad_trajectory(trajectory, f"trajectories.{k}")
    if sum(len(trajectory.time) for trajectory in scenario.trajectories) > MAX_POINTS:
        raise ValueError(f"trajectories: they have more than {MAX_POINTS:,} points")
    way_of(scenario)
    return scenario


def _first_fault(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        model: Any = Scenario
        for step in first["loc"][:-1]:
            if isinstance(step, str):
                annotation = str(model.model_fields[step].annotation)
                kinds = [
                    kind
                    for kind in StrictModel.__subclasses__()
                    if f".{kind.__name__}" in annotation
                ]
                model = kinds[0] if kinds else model
        return f"{where}: {unknown('field', str(first['loc'][-1]), model.model_fields)}"
    message = f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}"
    value = first["input"]
    if first["type"] == "missing" or isinstance(value, list | dict):
        return message
    return f"{message}, got {(repr(value) if isinstance(value, str) else str(value))[:MAX_QUOTE]}"


def _refuse_bad_lane(lane: Lane, scenario: Scenario) -> None:
    for k, piece in enumerate(lane.pieces):
        if piece.radius is not None and not abs(piece.radius) >= 2:
            raise ValueError(
                f"lanes.{lane.name}.pieces.{k}.radius: at least 2 m to either side, got "
                f"{piece.radius:g}"
            )
        if piece.radius is not None and piece.length > 1.9 * math.pi * abs(piece.radius):
            raise ValueError(f"lanes.{lane.name}.pieces.{k}: an arc must not close to a circle")
    end = points(line_of(lane), length_of(lane))[0]
    names = [lane_in_scenario.name for lane_in_scenario in scenario.lanes]
    for name in lane.next:
        if name not in names:
            raise ValueError(f"lanes.{lane.name}.next: {unknown('lane', name, names)}")
        begin = lane_of(scenario, name).start
        distance = math.hypot(begin.x - end[0], begin.y - end[1])
        turn = abs(math.remainder(begin.heading - end[2], 2 * math.pi))
        if distance > MAX_JOINT_GAP or turn > MAX_JOINT_ANGLE:
            raise ValueError(
                f"lanes.{lane.name}.next: it ends at ({end[0]:.2f}, {end[1]:.2f}) in direction "
                f"{end[2]:.3f}, and {name!r} begins {distance:.2f} m and {turn:.3f} rad from "
                f"there; at most {MAX_JOINT_GAP} m and {MAX_JOINT_ANGLE} rad"
            )


def _refuse_bad_trajectory(trajectory: Trajectory, where: str) -> None:
    for name in ("x", "y", "heading", "speed"):
        if len(getattr(trajectory, name)) != len(trajectory.time):
            count = len(getattr(trajectory, name))
            raise ValueError(
                f"{where}.{name}: it has {count} values, and time has {len(trajectory.time)}"
            )
    step = np.diff(trajectory.time)
    if (step <= 0).any():
        raise ValueError(
            f"{where}.time must increase, and does not at value {int(np.argmax(step <= 0)) + 1}"
        )
    dx, dy = np.diff(trajectory.x), np.diff(trajectory.y)
    moved_speeds = np.hypot(dx, dy) / step
    if (moved_speeds > MAX_SPEED).any():
        k = int(np.argmax(moved_speeds > MAX_SPEED))
        raise ValueError(
            f"{where}: at most {MAX_SPEED:g} m/s from point to point, got {moved_speeds[k]:g} "
            f"after point {k}"
        )
    stated_speeds = 0.5 * (np.array(trajectory.speed[1:]) + np.array(trajectory.speed[:-1]))
    differs = np.abs(moved_speeds - stated_speeds) > MAX_SPEED_MISMATCH * (2 + stated_speeds)
    if differs.any():
        k = int(np.argmax(differs))
        raise ValueError(
            f"{where}.speed: after point {k} the vehicle moves at {moved_speeds[k]:.1f} m/s on "
            f"average, and its speeds say {stated_speeds[k]:.1f} m/s"
        )
    heading = np.array(trajectory.heading)
    ahead = dx * (np.cos(heading[1:]) + np.cos(heading[:-1])) + dy * (
        np.sin(heading[1:]) + np.sin(heading[:-1])
    )
    backwards = (ahead < 0) & (moved_speeds * step > 1)
    if backwards.any():
        raise ValueError(
            f"{where}.heading: the vehicle drives backwards after point {int(np.argmax(backwards))}"
        )


@cache
def load_shipped() -> Scenario:
    """Return the scenario that the package ships."""
    return Scenario.model_validate_json(SHIPPED_PATH.read_bytes())


# -- lanes -----------------------------------------------------------------------------------------


def lane_of(scenario: Scenario, name: str) -> Lane:
    """Return a lane by its name."""
    return next(lane for lane in scenario.lanes if lane.name == name)


def length_of(lane: Lane) -> float:
    """Return the length of a lane, m."""
    return sum(piece.length for piece in lane.pieces)


def line_of(lane: Lane) -> Route:
    """Return the centre line of a lane; plain NumPy."""
    rows: list[tuple[float, ...]] = []
    place: tuple[float, ...] = (0.0, lane.start.x, lane.start.y, lane.start.heading)
    for piece in lane.pieces:
        rows.append((*place, 1 / piece.radius if piece.radius else 0.0))
        end = points(Route(*np.array(rows).T), place[0] + piece.length)[0]
        place = place[0] + piece.length, *(float(value) for value in end)
    return Route(*np.array(rows).T)


def way_of(scenario: Scenario) -> list[str]:
    """Return the names of the lanes on the shortest way of the ego (Dijkstra's algorithm).

    Raises:
        ValueError: no way leads to the goal.
    """
    start, goal = scenario.ego.start, scenario.ego.goal
    if start.lane == goal.lane and start.s < goal.s:
        return [start.lane]
    lanes = {lane.name: lane for lane in scenario.lanes}
    queue = [(length_of(lanes[start.lane]), [start.lane])]
    done: set[str] = set()
    while queue:
        length, lane_names = heapq.heappop(queue)
        for name in lanes[lane_names[-1]].next:
            if name == goal.lane:
                return [*lane_names, name]
            if name not in done:
                done.add(name)
                heapq.heappush(queue, (length + length_of(lanes[name]), [*lane_names, name]))
    raise ValueError(
        f"ego: no way leads from lane {start.lane!r} to {goal.s:g} m on lane {goal.lane!r}"
    )


def route_of(scenario: Scenario) -> tuple[Route, np.ndarray, float, float]:
    """Return the route of the ego; plain NumPy.

    It consists of the centre line, the speed limit of each piece (m/s), and the ego's start and
    goal along the line (m).
    """
    rows = []
    limits = []
    begin = 0.0
    lane_names = way_of(scenario)
    for name in lane_names:
        lane = lane_of(scenario, name)
        line = line_of(lane)
        rows.append(np.stack([line.start + begin, *line[1:]]))
        limits += [lane.speed_limit] * len(line.start)
        begin += length_of(lane)
    last = begin - length_of(lane_of(scenario, lane_names[-1]))
    return (
        Route(*np.concatenate(rows, 1)),
        np.array(limits),
        scenario.ego.start.s,
        last + scenario.ego.goal.s,
    )
