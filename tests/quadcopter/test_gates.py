"""Check gates with a ruler.

It says what is passed, hit and missed. The return is the sum of progress and passages.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.tasks import gates

HOVER = np.full(4, 0.334, np.float32)


@pytest.fixture(scope="module")
def task() -> Any:
    return card("QuadcopterGates-v0").build()


def axes(track: Any, gate: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle of a gate, direction of passage, and to the left, in the world."""
    heading = float(track.heading[gate])
    middle = np.array([track.x[gate], track.y[gate], track.z[gate]], np.float64)
    return (
        middle,
        np.array([np.cos(heading), np.sin(heading), 0]),
        np.array([-np.sin(heading), np.cos(heading), 0]),
    )


def state_at_gate(
    start: Any, gate: int, along: float, left: float = 0.0, up: float = 0.0, speed: float = 0.0
) -> Any:
    """Level before (or behind) a gate, moving along its axis."""
    middle, axis, side = axes(start.params, gate)
    place = middle + along * axis + left * side + np.array([0, 0, up])
    fields = dict(zip(("x", "y", "z"), place, strict=True)) | dict(
        zip(("vx", "vy", "vz"), speed * axis, strict=True)
    )
    still = dict.fromkeys(start.state.vehicle.body._fields, 0.0) | {"qw": 1.0} | fields
    body = type(start.state.vehicle.body)(
        **{name: np.float32(value) for name, value in still.items()}
    )
    return start.state._replace(
        vehicle=start.state.vehicle._replace(body=body), passed=np.int32(gate)
    )


@pytest.mark.parametrize(
    ("along", "left", "up", "speed", "passed", "hit"),
    [
        (-0.02, 0.0, 0.0, 4.0, True, False),
        (-0.02, 0.29, -0.28, 4.0, True, False),  # within the opening, even in its corner
        (-0.02, 0.31, 0.0, 4.0, False, True),
        (-0.02, 0.0, -0.45, 4.0, False, True),
        (-0.02, 0.51, 0.0, 4.0, False, False),  # beside the frame: nothing
        (-0.02, 0.0, 0.6, 4.0, False, False),
        (0.02, 0.0, 0.0, -4.0, False, False),  # backwards it does not count
        (0.02, 0.4, 0.0, -4.0, False, True),  # but its frame is hard from behind, too
        (-0.2, 0.0, 0.0, 4.0, False, False),  # not there yet
        (0.02, 0.0, 0.0, 4.0, False, False),  # behind it already
    ],
)
def test_a_gate_is_passed_hit_or_missed(
    task: Any,
    start: Any,
    along: float,
    left: float,
    up: float,
    speed: float,
    passed: bool,
    hit: bool,
) -> None:
    for gate in (0, 4):
        state = state_at_gate(start, gate, along, left, up, speed)
        after = jax.device_get(task.transition(state, HOVER, None, start.params))
        assert (int(after.passed) - gate, bool(after.hit)) == (int(passed), hit)
        assert bool(task.terminal(after, None, start.params)) is hit
        if hit:
            assert "frame" in task.why_over(after, start.params, {})


def test_a_slanting_passage_counts_where_it_crossed_the_plane(task: Any, start: Any) -> None:
    """A vehicle at 20 m/s sideways passes by its place in the gate's plane, the middle.

    It is outside of the opening's width before and after the step.
    """
    state = state_at_gate(start, 2, -0.1, 0.1, 0.0, 20.0)
    _, _, side = axes(start.params, 2)
    body = state.vehicle.body
    body = body._replace(
        vx=np.float32(body.vx - 35 * side[0]), vy=np.float32(body.vy - 35 * side[1])
    )
    after = task.transition(
        state._replace(vehicle=state.vehicle._replace(body=body)), HOVER, None, start.params
    )
    # 0.1 m left at the start, 0.25 m right at the end; at half of the step, 0.075 m right.
    assert int(after.passed) == 3


def test_reward_is_progress_plus_passages_and_a_crash_costs_what_flying_off_costs(
    task: Any, start: Any
) -> None:
    near, nearer = state_at_gate(start, 1, -1.5), state_at_gate(start, 1, -0.7)
    reward = float(task.reward(near, HOVER, nearer, None, start.params))
    assert reward == pytest.approx(0.8, abs=1e-5)
    behind = state_at_gate(start, 1, 0.05)._replace(passed=np.int32(2))
    assert float(task.reward(nearer, HOVER, behind, None, start.params)) == pytest.approx(
        0.65 + 1, abs=1e-5
    )
    for crash in (nearer._replace(hit=np.bool_(True)), state_at_gate(start, 1, -5.1)):
        assert task.terminal(crash, None, start.params)
        assert float(task.reward(near, HOVER, crash, None, start.params)) == pytest.approx(
            1.5 - 5, abs=1e-5
        )


def test_tracks_are_rings_and_starts_lie_before_the_first_gate(starts: Any) -> None:
    track = starts.params
    radius, around = np.hypot(track.x, track.y), np.unwrap(np.arctan2(track.y, track.x))
    assert [radius.min(), radius.max()] == pytest.approx([1.7, 2.3], abs=0.01)
    np.testing.assert_allclose(np.diff(around, axis=1), np.pi / 3, atol=1e-5)
    turned = (track.heading - around - np.pi / 2 + np.pi) % (2 * np.pi) - np.pi
    assert [turned.min(), turned.max()] == pytest.approx([-0.4, 0.4], abs=0.01)
    assert [track.z.min(), track.z.max()] == pytest.approx([-0.4, 0.4], abs=0.01)
    # No leg is so long that a crash could pay: progress on it stays below the distance at which a
    # vehicle is lost.
    places = np.stack([track.x, track.y, track.z], -1)
    legs = np.linalg.norm(places - np.roll(places, 1, axis=1), axis=-1)
    assert (
        legs.max() + np.hypot(gates.OPENING_HALF_WIDTH, gates.OPENING_HALF_WIDTH)
        < gates.LOST_DISTANCE
    )
    body = starts.state.vehicle.body
    ahead = np.cos(track.heading[:, 0]) * (track.x[:, 0] - body.x) + np.sin(track.heading[:, 0]) * (
        track.y[:, 0] - body.y
    )
    assert np.abs(ahead - 1).max() < 0.15
