"""Replay of recorded trajectories: vehicles that do what they did, whatever the ego does.

Between two recorded points a vehicle moves along the cubic Hermite curve through both, in the
recorded directions and at the recorded speeds there (Bartels, Beatty & Barsky 1987, chapter 3). Its
heading turns evenly, the shorter way round, and its speed changes evenly. Before its first point
and after its last one it is away.

Vehicles that are never on the road at the same time share a slot, so that there are as many slots
as vehicles at the busiest time. A slot is a list of points in the order of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Scalar
from ..roads.scenario import Trajectory
from ..vehicle import reeds_shepp
from ..vehicle.bicycle import Pose


class Recording(NamedTuple):
    """Slots; arrays ``(slots, points)``, plain NumPy.

    Times behind the last point of a slot are infinite.
    """

    time: np.ndarray  # s
    x: np.ndarray  # m
    y: np.ndarray
    heading: np.ndarray  # rad
    speed: np.ndarray  # m/s
    joined: np.ndarray  # bool: the vehicle of a point goes on to the next one
    length: np.ndarray  # m, of the vehicle of each point
    width: np.ndarray


class Vehicles(NamedTuple):
    """The vehicles of a moment; arrays ``(slots,)``."""

    pose: Pose
    length: Scalar
    width: Scalar
    present: Scalar  # bool


def recording_of(trajectories: Sequence[Trajectory]) -> Recording:
    """Sort trajectories into slots."""
    slots: list[list[Trajectory]] = []
    for trajectory in sorted(trajectories, key=lambda trajectory: trajectory.time[0]):
        free_slot = next((slot for slot in slots if slot[-1].time[-1] < trajectory.time[0]), None)
        if free_slot is None:
            slots.append([trajectory])
        else:
            free_slot.append(trajectory)
    slots = slots or [[]]
    points = max(2, *(sum(len(trajectory.time) for trajectory in slot) for slot in slots))

    def table(value: Any, fill: float) -> np.ndarray:
        rows = [
            np.concatenate([np.zeros(0), *(value(trajectory) for trajectory in slot)])
            for slot in slots
        ]
        return np.stack([np.pad(row, (0, points - len(row)), constant_values=fill) for row in rows])

    return Recording(
        time=table(lambda trajectory: trajectory.time, np.inf),
        x=table(lambda trajectory: trajectory.x, 0),
        y=table(lambda trajectory: trajectory.y, 0),
        heading=table(lambda trajectory: trajectory.heading, 0),
        speed=table(lambda trajectory: trajectory.speed, 0),
        joined=table(
            lambda trajectory: np.arange(len(trajectory.time)) < len(trajectory.time) - 1, 0
        ).astype(bool),
        length=table(lambda trajectory: np.full(len(trajectory.time), trajectory.length), 1),
        width=table(lambda trajectory: np.full(len(trajectory.time), trajectory.width), 1),
    )


def vehicles_at(recording: Recording, time: Scalar) -> Vehicles:
    """Return the vehicles at a time, s."""
    dtype = time.dtype
    times = jnp.asarray(recording.time, dtype)
    index = (
        jax.vmap(lambda row: jnp.searchsorted(row, time, side="right"))(times).astype(jnp.int32) - 1
    )
    slots = np.arange(len(recording.time))
    joined = jnp.asarray(recording.joined)
    # At its last point a vehicle is still there.
    at_end = (index > 0) & ~joined[slots, index] & (times[slots, index] == time)
    index = jnp.where(at_end, index - 1, index)
    present = (index >= 0) & joined[slots, index]
    index = jnp.clip(index, 0, recording.time.shape[1] - 2)

    def ends(values: np.ndarray) -> tuple[Scalar, Scalar]:
        row = jnp.asarray(values, dtype)
        return row[slots, index], row[slots, index + 1]

    (t, t1), (x, x1), (y, y1), (heading, heading1), (speed, speed1) = map(ends, recording[:5])
    step = jnp.where(present, t1 - t, 1)
    w = jnp.where(present, (time - t) / step, 0)
    back = 1 - w
    place, place1 = back * back * (1 + 2 * w), w * w * (3 - 2 * w)
    push, push1 = step * speed * w * back * back, -step * speed1 * w * w * back
    pose = Pose(
        place * x + place1 * x1 + push * jnp.cos(heading) + push1 * jnp.cos(heading1),
        place * y + place1 * y1 + push * jnp.sin(heading) + push1 * jnp.sin(heading1),
        heading + w * reeds_shepp.wrap(heading1 - heading),
        speed + w * (speed1 - speed),
    )
    return Vehicles(pose, ends(recording.length)[0], ends(recording.width)[0], present)
