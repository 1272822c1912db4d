"""Steer a car around a closed track of two lanes, past slower cars.

The car is the kinematic bicycle of ``bicycle.py`` (5 x 2 m) at constant speed, on a track of
straights and arcs (``routes.py``): a hexagon with round corners, one of which is a dent, so that it
bends both ways. The others drive along the middle of a lane, at one speed measured along the
track's centre, and yield to nobody.

The task is highway-env's racetrack-v0 (Leurent 2018), with these changes: tracks differ from
episode to episode (there: one); bends are those that tyres allow at the car's speed; collisions are
found between sub-steps; steering costs nothing by itself; and leaving the track takes back what was
earned.

======================  ============================================================================
action                  five times a second, ``(1,)`` in [-1, 1]: steering to the left, as a
                        fraction of the largest angle: that of a lateral acceleration of 4.9 m/s^2
observation             the car: d (from the track's centre to the left, by 5 m), angle to the track
                        (by 1 rad), speed (by 8 m/s), curvature of the track at the car and 5, 10,
                        20 and 30 m ahead (by 0.06 / m), return so far (by 300). The nearest other
                        car from 8 m behind on: gap along the track between the centres (by 60 m), d
                        (by 5 m), speed along the track (by 8 m/s). Left is positive. Cut off at +-1
reward                  1 / (1 + (e / 0.5 m)^2), in [0, 1]; e is the distance from the middle of the
                        nearer lane. A crash takes back all that was earned
terminated              a crash: the car touches another one, or a corner leaves the track of 10 m,
                        or it turns by more than 90 degrees
success                 no crash in 60 s, at most 0.5 m from the middle of a lane on average
start                   in the middle of the right or left lane
cost                    1 for a step that ends in a crash or with less than 1.5 s to a collision
                        with a car ahead in whose way it is, at present speeds
context                 speed 7..8 m/s, corners of the hexagon 60..90 m from the middle (dent:
                        20..30 m), either sense; the others: speed 3..4.5 m/s, lanes, places. Train
                        and test dents lie in alternating bands of 0.5 m
difficulty              number of other cars, at equal distances
======================  ============================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (racetrack-v0).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ..arrays import Scalar
from ..pictures import road_pictures
from ..roads import routes
from ..roads.routes import Route
from ..traffic.traffic import SUBSTEP
from ..vehicle import bicycle, collision, reeds_shepp
from ..vehicle.bicycle import Motion, Pose
from ..vehicle.collision import Sweep
from .observation_bounds import lower_bounds

SUBSTEPS = 3  # Sub-steps of a step of 0.2 s
# m: body of every car.
LENGTH = 5.0
WIDTH = 2.0
LANE_WIDTH = 5.0  # m: width of a lane, as in highway-env
CORNERS = 6
# m: ranges of the corners' distances from the middle; the dent is the first corner.
DENT_DISTANCES = (20.0, 30.0)
CORNER_DISTANCES = (60.0, 90.0)
MAX_BEND_SHARE = 0.46  # Part of the shorter edge that a bend may take
MAX_RADIUS = 60.0  # m, of a bend
# m/s, of the ego.
MIN_SPEED = 7.0
MAX_SPEED = 8.0
HALF_REWARD_DISTANCE = 0.5  # m: distance from the middle of a lane at which a step pays half
CURVATURE_DISTANCES = (0.0, 5.0, 10.0, 20.0, 30.0)  # m: places where the curvature is seen
CURVATURE_SCALE = 0.06  # 1/m that are shown as 1
SIGHT = 60.0  # m: way along which the next car is seen, which is shown as 1
SIGHT_BEHIND = 8.0  # m behind the ego from which another car is the next one
NEAR_MISS_TIME = 1.5  # s: a shorter time to collision is a near miss
MAX_CARS = 6  # Number of other cars


class Params(NamedTuple):
    """The context; arrays ``(cars,)`` of the others."""

    track: Route  # its centre, ``(13,)`` pieces
    lap: Scalar  # m
    speed: Scalar  # m/s
    pace: Scalar  # m/s, of the others along the track's centre
    first: Scalar  # m, of the others at the start
    across: Scalar  # m, d of the others
    side: Scalar  # d of the ego at the start, m


class State(NamedTuple):
    """The ego, the others, and the record so far."""

    pose: Pose  # of the ego's centre
    s: Scalar  # m, of the ego, within a lap
    d: Scalar  # m
    other_s: Scalar  # s of the others, m, ``(cars,)``
    covered: Scalar  # m, along the track's centre
    strayed: Scalar  # m: sum over the steps of the distance from the middle of a lane
    earned: Scalar
    crashed: Scalar  # bool
    left_track: Scalar  # bool: by leaving the track or turning away from its direction
    steps: Scalar  # int32


def closed_track(radii: list[Scalar], sense: Scalar) -> tuple[Route, Scalar]:
    """Return the track, which begins in the middle of an edge, and its length (m).

    ``radii`` are the distances (m) of the corners from the middle. ``sense`` is 1 for a track that
    goes to the left around the middle, and -1 for one to the right.
    """
    angles = [2 * math.pi * i / CORNERS for i in range(CORNERS)]
    x = [r * math.cos(a) for r, a in zip(radii, angles, strict=True)]
    y = [sense * r * math.sin(a) for r, a in zip(radii, angles, strict=True)]
    dx = [x[(i + 1) % CORNERS] - x[i] for i in range(CORNERS)]
    dy = [y[(i + 1) % CORNERS] - y[i] for i in range(CORNERS)]
    edge = [jnp.hypot(a, b) for a, b in zip(dx, dy, strict=True)]
    direction = [jnp.arctan2(b, a) for a, b in zip(dx, dy, strict=True)]
    turn = [reeds_shepp.wrap(direction[i] - direction[i - 1]) for i in range(CORNERS)]
    tangent = [jnp.maximum(jnp.tan(0.5 * jnp.abs(t)), 1e-6) for t in turn]
    room = [MAX_BEND_SHARE * jnp.minimum(edge[i], edge[i - 1]) for i in range(CORNERS)]
    radius = [jnp.minimum(a / t, MAX_RADIUS) for a, t in zip(room, tangent, strict=True)]
    cut = [r * t for r, t in zip(radius, tangent, strict=True)]
    rows = []
    s = 0.0 * radii[0]
    heading = direction[0]
    rows.append((s, x[0] + 0.5 * dx[0], y[0] + 0.5 * dy[0], heading, 0.0 * s))
    s = s + 0.5 * edge[0] - cut[1]
    for i in (*range(1, CORNERS), 0):
        back = cut[i] / edge[i - 1]
        rows.append(
            (
                s,
                x[i] - back * dx[i - 1],
                y[i] - back * dy[i - 1],
                heading,
                jnp.sign(turn[i]) / radius[i],
            )
        )
        s = s + jnp.abs(turn[i]) * radius[i]
        heading = heading + turn[i]
        on = cut[i] / edge[i]
        rows.append((s, x[i] + on * dx[i], y[i] + on * dy[i], heading, 0.0 * s))
        s = (
            s
            + edge[i] * (0.5 if i == 0 else 1.0)
            - cut[i]
            - (0.0 if i == 0 else cut[(i + 1) % CORNERS])
        )
    return Route(*(jnp.stack(column) for column in zip(*rows, strict=True))), s


def lane_distance(d: Scalar) -> Scalar:
    """Return the distance from the middle of the nearer lane, m, without sign."""
    return jnp.abs(jnp.abs(d) - 0.5 * LANE_WIDTH)


def motion_along(track: Route, s: Scalar, d: Scalar, distance: Scalar) -> tuple[Pose, Motion]:
    """Return start and motion of a car that drives ``distance`` m along the track's centre.

    The car is ``d`` m to the left of the centre.
    """
    start, middle, end = (
        routes.place_beside(routes.place_at(track, s + fraction * distance), d)
        for fraction in (0.0, 0.5, 1.0)
    )
    pose, last = (Pose(p.x, p.y, p.heading, jnp.zeros_like(s)) for p in (start, end))
    return pose, Motion(last, jnp.cos(middle.heading), jnp.sin(middle.heading))


def next_car(state: State, params: Params) -> tuple[Scalar, Scalar]:
    """Return the gap to the nearest other car, and its d (m).

    The gap is the distance (m) of the centres along the track. Cars count from SIGHT_BEHIND m
    behind the ego on.
    """
    gap = state.other_s - state.s + SIGHT_BEHIND
    gap = gap - params.lap * jnp.floor(gap / params.lap)
    nearest = jnp.argmin(gap)
    return gap[nearest] - SIGHT_BEHIND, params.across[nearest]


class Racetrack(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "collision": "whether the car has crashed",
        "mean_distance": "from the middle of a lane since the start, m",
        "laps": "driven along the track's centre",
        "time_to_collision": (
            "with a car ahead in whose way it is, at present speeds, at most 100, s"
        ),
    }
    ends_in_failure = True
    picture_shape = (400, 400, 3)
    period = SUBSTEPS * SUBSTEP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in range(1, MAX_CARS + 1):
            raise ValueError(
                f"The difficulty of {card.id} is a whole number of other cars in [1, {MAX_CARS}], "
                f"got {difficulty!r}."
            )
        self.cars = int(difficulty)
        self.action_space = self.box([-1], [1])
        low = lower_bounds(self.observation_components(), {"speed", "earned", "other_speed"})
        self.observation_space = self.box(low, np.ones(len(low)))
        self.reward_space = self.box(-card.horizon, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample track, speeds and lanes."""
        u = self.uniform(key, CORNERS + 5 + self.cars)
        dent = alternating_bands(u[0], split, *DENT_DISTANCES, bands=20)
        corners = [
            CORNER_DISTANCES[0] + (CORNER_DISTANCES[1] - CORNER_DISTANCES[0]) * u[i]
            for i in range(1, CORNERS)
        ]
        track, lap = closed_track(
            [dent, *corners], jnp.where(u[CORNERS] < 0.5, 1.0, -1.0).astype(self.dtype)
        )
        spacing = lap * np.asarray(1 / self.cars, self.dtype)
        lanes = jnp.where(u[CORNERS + 4 :] < 0.5, 0.5 * LANE_WIDTH, -0.5 * LANE_WIDTH).astype(
            self.dtype
        )
        return Params(
            track=track,
            lap=lap,
            speed=MIN_SPEED + (MAX_SPEED - MIN_SPEED) * u[CORNERS + 1],
            pace=3 + 1.5 * u[CORNERS + 2],
            first=spacing * (np.arange(self.cars) + 0.4 + 0.4 * u[CORNERS + 3]),
            across=lanes[1:],
            side=lanes[0],
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start in the middle of a lane, in the direction of the track."""
        zero = jnp.zeros((), self.dtype)
        place = routes.place_beside(routes.place_at(params.track, zero), params.side)
        pose = Pose(place.x, place.y, place.heading, params.speed)
        false = jnp.bool_(False)
        return State(
            pose, zero, params.side, params.first, zero, zero, zero, false, false, jnp.int32(0)
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a fifth of a second; after a crash time stands still."""
        slip = action[0] * bicycle.slip_bound(params.speed, LENGTH)
        distance = params.pace * SUBSTEP
        drive = jax.vmap(lambda s, d: motion_along(params.track, s, d, distance))

        def substep(_: int, state: State) -> State:
            motion = bicycle.move(state.pose, 0.0, slip, LENGTH, SUBSTEP)
            end = motion.end._replace(speed=params.speed)
            ego = Sweep(state.pose, motion._replace(end=end), LENGTH, WIDTH)
            hit = collision.collide(
                ego, Sweep(*drive(state.other_s, params.across), LENGTH, WIDTH), SUBSTEP
            ).any()
            s, d = routes.project(params.track, end.x, end.y, state.s)
            off_track = self.off_track(end, s, params)
            progress = s - state.s
            s = jnp.where(s >= params.lap, s - params.lap, s)
            other_s = state.other_s + distance
            other_s = jnp.where(other_s >= params.lap, other_s - params.lap, other_s)
            next_state = state._replace(
                pose=end, s=s, d=d, other_s=other_s, covered=state.covered + progress
            )._replace(crashed=hit | off_track, left_track=off_track)
            return jax.tree.map(
                lambda new, old: jnp.where(state.crashed, old, new), next_state, state
            )

        next_state = jax.lax.fori_loop(0, SUBSTEPS, substep, state)
        return next_state._replace(
            strayed=state.strayed + lane_distance(next_state.d),
            # The limit of time may be lifted.
            earned=jnp.minimum(state.earned + self.pay(state, next_state), self.card.horizon),
            steps=state.steps + 1,
        )

    def off_track(self, pose: Pose, s: Scalar, params: Params) -> Scalar:
        """Say whether a corner of the car is off the track, or the car has turned around.

        It has turned around if it points against the track's direction.
        """
        c, sine = jnp.cos(pose.heading), jnp.sin(pose.heading)
        ahead = 0.5 * LENGTH * np.array([1, 1, -1, -1], self.dtype)
        beside = 0.5 * WIDTH * np.array([1, -1, 1, -1], self.dtype)
        x, y = pose.x + ahead * c - beside * sine, pose.y + ahead * sine + beside * c
        _, d = jax.vmap(lambda x, y: routes.project(params.track, x, y, s))(x, y)
        return (jnp.abs(d) > LANE_WIDTH).any() | (
            jnp.abs(self.angle(pose, s, params)) > 0.5 * math.pi
        )

    def angle(self, pose: Pose, s: Scalar, params: Params) -> Scalar:
        """Return the angle of the car to the track, rad, to the left."""
        return reeds_shepp.wrap(pose.heading - routes.place_at(params.track, s).heading)

    def pay(self, state: State, next_state: State) -> Scalar:
        """Return the reward of a step."""
        share = lane_distance(next_state.d) * (1 / HALF_REWARD_DISTANCE)
        return jnp.where(next_state.crashed, -state.earned, 1 / (1 + share * share))

    def time_to_collision(self, state: State, params: Params) -> Scalar:
        """Return the time (s) to a collision with the next car, 100 at most.

        It is 100 if the next car is not in the ego's way.
        """
        gap, d = next_car(state, params)
        in_way = (jnp.abs(state.d - d) < WIDTH) & (gap > -LENGTH)
        time = jnp.maximum(gap - LENGTH, 0) / (params.speed - params.pace)
        return jnp.where(in_way, jnp.minimum(time, 100), 100)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(12,)``; see the table."""
        gap, d = next_car(state, params)
        places = [state.s + distance for distance in CURVATURE_DISTANCES]
        places = [jnp.where(s >= params.lap, s - params.lap, s) for s in places]
        visible = gap < SIGHT
        entries = (
            *(
                state.d * (1 / LANE_WIDTH),
                self.angle(state.pose, state.s, params),
                params.speed * (1 / MAX_SPEED),
            ),
            *(routes.place_at(params.track, s).curvature * (1 / CURVATURE_SCALE) for s in places),
            *(state.earned * (1 / self.card.horizon), gap * (1 / SIGHT)),
            *(
                jnp.where(visible, value, 0)
                for value in (d * (1 / LANE_WIDTH), params.pace * (1 / MAX_SPEED))
            ),
        )
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(self.stack(*entries), low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            Component(
                "d", "place across the track, from its centre to the left", f"{LANE_WIDTH:g} m"
            ),
            Component("angle", "of the car to the track, to the left", "rad"),
            Component("speed", "of the car", f"{MAX_SPEED:g} m/s"),
            *(
                Component(
                    f"curvature_{distance:g}",
                    f"of the track {distance:g} m ahead, to the left",
                    f"{CURVATURE_SCALE:g} / m",
                )
                for distance in CURVATURE_DISTANCES
            ),
            Component("earned", "return so far, which a crash takes back", f"{self.card.horizon}"),
            Component(
                "gap",
                "way along the track to the next car, centre to centre; 1 for none",
                f"{SIGHT:g} m",
            ),
            Component("other_d", "place of that car across the track", f"{LANE_WIDTH:g} m"),
            Component("other_speed", "of that car along the track's centre", f"{MAX_SPEED:g} m/s"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the wheel."""
        return (
            Component("steering", "to the left, in parts of the largest angle that tyres allow"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what the place in the lane pays; after a crash what that takes back."""
        return self.pay(state, next_state)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the car crashed."""
        return state.crashed

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return 1 for a crash or a near miss."""
        near_miss = self.time_to_collision(next_state, params) < NEAR_MISS_TIME
        return (next_state.crashed | near_miss).astype(self.dtype)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        mean = state.strayed / jnp.maximum(state.steps, 1)
        return {
            "success": ~state.crashed
            & (mean <= HALF_REWARD_DISTANCE)
            & (state.steps >= self.card.horizon),
            "collision": state.crashed,
            "mean_distance": mean,
            "laps": state.covered / params.lap,
            "time_to_collision": self.time_to_collision(state, params),
        }

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the car left the track or hit another one."""
        return "the car left the track" if state.left_track else "the car hit another one"

    def describe(self, state: State, params: Params) -> str:
        """Describe car, track and the next car, with units."""
        s, d = (float(value) for value in (state.s, state.d))
        gap, other_d = (float(value) for value in next_car(state, params))
        bends = [
            float(routes.place_at(params.track, jnp.asarray((s + a) % float(params.lap))).curvature)
            for a in CURVATURE_DISTANCES
        ]
        angle = float(self.angle(Pose(*map(jnp.asarray, state.pose)), jnp.asarray(state.s), params))
        car = "No car is near." if gap > SIGHT else (
            f"The next car is {gap:.1f} m ahead along the track, {abs(other_d):.1f} m to the "
            f"{'left' if other_d > 0 else 'right'} of its centre, at {float(params.pace):.1f} m/s."
        )  # fmt: skip
        return (
            f"You drive {float(params.speed):.1f} m/s, {abs(d):.2f} m to the "
            f"{'left' if d >= 0 else 'right'} of the centre of a track of two lanes (their middles "
            f"are {0.5 * LANE_WIDTH:g} m to either side), at an angle of {angle:.3f} rad to the "
            "left. Its curvature to the left 0, 5, 10, 20 and 30 m ahead is "
            f"{', '.join(f'{bend:.4f}' for bend in bends)} per metre. {car} You have earned "
            f"{float(state.earned):.2f}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with a number from -1 to 1: steering to the left, in parts of the largest "
            "angle, for 0.2 s."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the track from above: the others blue, the ego green, red after a crash."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        scale = width / 196.0
        track = Route(*(np.asarray(value, np.float64) for value in params.track))

        def pixel(x: float, y: float) -> tuple[float, float]:
            return width / 2 + scale * x, height / 2 - scale * y

        ends = 0.0, float(params.lap)
        road_pictures.draw_band(canvas, pixel, track, ends, (-LANE_WIDTH, LANE_WIDTH))
        for d in (-LANE_WIDTH, LANE_WIDTH):
            road_pictures.draw_line(canvas, pixel, track, ends, d)
        road_pictures.draw_line(canvas, pixel, track, ends, 0.0, dashed=True)
        for s, d in zip(state.other_s, params.across, strict=True):
            place = tuple(routes.points(track, s, float(d))[0])
            road_pictures.draw_car(canvas, pixel, place, (LENGTH, WIDTH), "cornflowerblue")
        colour = "red" if bool(state.crashed) else "lime"
        road_pictures.draw_car(canvas, pixel, state.pose[:3], (LENGTH, WIDTH), colour)
        return np.asarray(image)


@privileged_player
class TrackDriver(NamedTuple):
    """Player of ``Racetrack``, which steers along the nearer lane.

    Past a car ahead it takes the other lane.
    """

    # m: gap to the next car, centre to centre, at which it chooses the other lane
    notice: Scalar = 20.0
    lateral_time: Scalar = 0.7  # s: time constant of the lateral loop
    heading_time: Scalar = 0.35  # s: time constant of the heading loop
    preview: Scalar = 0.15  # s: way ahead at which the curvature is taken

    @classmethod
    def for_task(cls, task: Racetrack) -> TrackDriver:
        """Make the player."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the steering, shape ``(1,)``."""
        params: Params = view.params
        state: State = view.state
        gap, other_d = next_car(state, params)
        nearer = jnp.where(state.d >= 0, 0.5 * LANE_WIDTH, -0.5 * LANE_WIDTH)
        target = jnp.where(gap < self.notice, -other_d, nearer)
        u = params.speed
        ahead = state.s + self.preview * u
        bend = routes.place_at(
            params.track, jnp.where(ahead >= params.lap, ahead - params.lap, ahead)
        ).curvature
        bend = bend / (1 - bend * state.d)
        across = jnp.clip(
            (target - state.d) / self.lateral_time,
            -bicycle.MAX_LATERAL_SPEED,
            bicycle.MAX_LATERAL_SPEED,
        )
        # The car's course differs from its heading by the slip angle.
        axle = bicycle.rear_axle(LENGTH)
        course = (
            reeds_shepp.wrap(state.pose.heading - routes.place_at(params.track, state.s).heading)
            + axle * bend
        )
        slip = axle * (bend + (across / u - course) / (self.heading_time * u))
        return jnp.clip(jnp.stack([slip / bicycle.slip_bound(u, LENGTH)]), -1, 1), memory
