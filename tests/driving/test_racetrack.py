"""Routes in closed form, closed tracks, and the racetrack.

Whole steps are compared with plain NumPy, and no cheap player earns a reward.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_traffic import corners, overlap
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import routes
from rlbench_suite.envs.driving.tasks import racetrack
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
PIECES = [(12.0, 0.0), (20.0, 0.05), (7.0, 0.0), (25.0, -0.06), (9.0, 0.0)]
STEPS = 16


@cache
def task(dtype: str = "float32") -> Any:
    return card("Racetrack-v0").build(dtype=dtype)


def centre(
    pieces: list[tuple[float, float]], start: tuple[float, float, float], s: float
) -> np.ndarray:
    """Integrate x, y and heading of a centre line from its curvature."""
    place = np.array(start)
    for length, kappa in pieces:
        piece = min(length, s)
        if piece > 0:
            place = solve_ivp(
                lambda _, z, k=kappa: [math.cos(z[2]), math.sin(z[2]), k],
                (0, piece),
                place,
                rtol=1e-12,
                atol=1e-12,
            ).y[:, -1]
        s -= length
    return place


def test_places_are_those_that_the_curvature_integrates_to_and_points_project_onto_them() -> None:
    """Integrate the heading with SciPy, and minimise the distance of a point from that line.

    The minimum gives the point's s and d.
    """
    start = 3.0, -2.0, 2.5
    starts = np.cumsum([0.0, *(length for length, _ in PIECES[:-1])])
    rows = [
        (s, *centre(PIECES, start, s), kappa) for s, (_, kappa) in zip(starts, PIECES, strict=True)
    ]
    route = routes.Route(*np.array(rows).T)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for s in rng.uniform(0, 73, 8):
            place = routes.place_at(route, jnp.float64(s))
            truth = centre(PIECES, start, s)
            np.testing.assert_allclose([float(v) for v in place[:3]], truth, atol=1e-8)
            d, guess = rng.uniform(-5, 5), np.clip(s + rng.uniform(-2, 2), 0, 73)
            x, y = truth[0] - d * math.sin(truth[2]), truth[1] + d * math.cos(truth[2])
            projection = [
                float(v)
                for v in routes.project(route, jnp.float64(x), jnp.float64(y), jnp.float64(guess))
            ]
            np.testing.assert_allclose(projection, [s, d], atol=1e-8)
            nearest = minimize_scalar(
                lambda z, x=x, y=y: math.dist(centre(PIECES, start, z)[:2], (x, y)),
                bounds=(max(s - 4, 0), min(s + 4, 73)),
                method="bounded",
            )
            assert math.isclose(nearest.fun, abs(projection[1]), abs_tol=1e-6)


def test_tracks_close_without_a_kink_and_bend_as_tyres_allow() -> None:
    """Check that a track ends where it begins, after a whole turn.

    Joints are where curvature integrates to. The inner lane bends with at least 15 m, so that v^2 /
    r stays below 4.9 m/s^2.
    """
    which = task("float64")
    senses = set()
    for seed in range(12):
        with precision(which):
            params = jax.tree.map(
                np.asarray, which.sample_params(jax.random.key(seed), jnp.int32(seed % 2))
            )
        track, lap = params.track, float(params.lap)
        lengths = np.diff([*track.start, lap])
        assert (lengths > 0).all()
        pieces = list(zip(lengths.tolist(), track.curvature.tolist(), strict=True))
        begin_at = tuple(float(v[0]) for v in (track.x, track.y, track.heading))
        end = centre(pieces, begin_at, lap)
        turn = end[2] - begin_at[2]
        np.testing.assert_allclose(
            [*(end[:2] - begin_at[:2]), abs(turn)], [0, 0, 2 * math.pi], atol=1e-6
        )
        senses.add(turn > 0)
        for k in (3, 8):
            place = centre(pieces, begin_at, track.start[k])
            np.testing.assert_allclose(place, [track.x[k], track.y[k], track.heading[k]], atol=1e-6)
        assert np.abs(track.curvature).max() < 1 / (15 + racetrack.LANE_WIDTH / 2)
    assert senses == {True, False}
    assert racetrack.MAX_SPEED**2 / 15 < 4.9


def hostile_episodes(count: int) -> Any:
    """Return params, states before, actions and states after, under steering that wanders."""
    which = task("float64")

    def step(carry: Any, key: Any) -> Any:
        episode, wheel = carry
        wheel = jnp.clip(wheel + 0.3 * jax.random.normal(key, wheel.shape, wheel.dtype), -1, 1)
        next_episode = jax.vmap(lambda e, a: advance(which, e, a, np.int32(STEPS))[0])(
            episode, wheel
        )
        return (next_episode, wheel), (episode.state, wheel, next_episode.state)

    def reach(state: Any, params: Any) -> Any:
        """Put the ego 9 m behind the first other car, in its lane."""
        s, side = params.first[0] - 9, params.across[0]
        s = jnp.where(s < 0, s + params.lap, s)
        place = routes.place_beside(routes.place_at(params.track, s), side)
        return state._replace(pose=racetrack.Pose(*place[:3], params.speed), s=s, d=side)

    with precision(which):
        seeds = np.stack([seed_key(seed) for seed in range(count)])
        start = jax.vmap(
            lambda seed: begin(which, seed, 0, ContextSource(np.int32(1), np.int32(-1)))[0]
        )(seeds)
        start = start._replace(state=jax.vmap(reach)(start.state, start.params))
        keys = jax.random.split(jax.random.key(3), STEPS)
        _, run = jax.jit(lambda e: jax.lax.scan(step, (e, jnp.zeros((count, 1))), keys))(start)
        return jax.tree.map(np.asarray, (start.params, *run))


def body(x: float, y: float, heading: float) -> np.ndarray:
    """Return the corners of a car, ``(1, 4, 2)``."""
    return corners(np.array([[x, y, heading, 5, 2]]))


def test_every_step_is_that_of_a_plain_simulation_and_no_overlap_goes_uncounted() -> None:
    """Integrate the bicycle with SciPy, and move the others uniformly.

    Bodies are tested at each sub-step.
    """
    count = 24
    params, states, actions, next_states = hostile_episodes(count)
    at = lambda tree, *index: jax.tree.map(lambda leaf: leaf[index], tree)  # noqa: E731
    compared = crashes = 0
    for e in range(count):
        context = at(params, e)
        track = context.track
        pieces = list(
            zip(
                np.diff([*track.start, context.lap]).tolist(), track.curvature.tolist(), strict=True
            )
        )
        first = tuple(float(v[0]) for v in (track.x, track.y, track.heading))
        for t in range(STEPS):
            old, new = at(states, t, e), at(next_states, t, e)
            if old.crashed:
                break
            u, axle = context.speed, 1.5
            slip = actions[t, e, 0] * min(axle * 0.5 * 9.81 / u**2, math.sin(math.atan(0.5)))
            z = np.array(old.pose[:3])
            touched = False
            for k in range(1, 4):
                beta = math.asin(slip)
                z = solve_ivp(
                    lambda _, z, u=u,
                    b=beta: [u * math.cos(z[2] + b), u * math.sin(z[2] + b), u / 1.5 * math.sin(b)],
                    (0, 1 / 15), z, rtol=1e-11, atol=1e-11,
                ).y[:, -1]  # fmt: skip
                for s, d in zip(old.other_s, context.across, strict=True):
                    if abs((s - old.s + context.lap / 2) % context.lap - context.lap / 2) > 12:
                        continue
                    x, y, psi = centre(pieces, first, (s + k * context.pace / 15) % context.lap)
                    other_body = body(x - d * math.sin(psi), y + d * math.cos(psi), psi)
                    touched |= bool(overlap(body(*z), other_body))
                if touched:
                    break
            crashes += touched
            assert new.crashed or not touched
            if not new.crashed:
                np.testing.assert_allclose(new.pose[:3], z, atol=1e-8)
                moved = (
                    new.other_s - old.other_s - 3 * context.pace / 15 + context.lap / 2
                ) % context.lap - context.lap / 2
                np.testing.assert_allclose(moved, 0, atol=1e-9)
                compared += 1
    assert compared > 80
    assert crashes >= 5


def test_the_reference_laps_and_no_held_wheel_does() -> None:
    """Check that the reference passes slower cars and stays near the middle of lanes.

    Held wheels leave the track and earn nothing.
    """
    best = play(task(), reference_player(task()), range(100), split="test")
    assert best.info["success"].all()
    assert best.cost.mean() < card("Racetrack-v0").constraint.limit
    for wheel in (-1.0, 0.0, 0.3, 1.0):
        record = play(task(), Constant(jnp.array([wheel], jnp.float32)), range(40), split="test")
        assert record.terminated.all()
        np.testing.assert_allclose(record.total, 0, atol=1e-3)


def test_one_that_never_passes_meets_the_next_car() -> None:
    """Play the reference without a look ahead, which keeps its lane.

    It runs into a car of its lane and earns nothing then.
    """
    blind = reference_player(task())._replace(notice=-100.0)
    record = play(task(), blind, range(100), split="test")
    hit = record.info["collision"]
    assert 0.5 < hit.mean() < 1
    np.testing.assert_allclose(record.total[hit], 0, atol=1e-3)
