"""Keep a car on a winding road and steer around obstacles, by a lidar.

The car drives at a constant speed, and the obstacles stand in the way.

Car, lane and reward are those of ``LaneKeeping-v0`` (``lane_keeping.py``), on a road of 8 m. Six
round obstacles stand on it, each to the left or to the right, so near the middle that a car that
keeps the middle hits them. Swerves bring tyres to their limits, so an axle's force is at most the
friction times its load, m g b / (a + b) in front and m g a / (a + b) behind.

======================  ============================================================================
action                  ten times a second, ``(1,)`` in [-1, 1]: angle of the front wheels, by 0.35
                        rad, to the left
observation             by the setting ``observation``. All show eight numbers of feedback, cut off
                        at +-1: d (by 3 m), its integral (by 3 m s) and its change in the last step
                        (by 3 m/s), e (by 0.5 rad), r (by 1 rad/s), u (by 25 m/s), the last angle of
                        the wheels (by 0.35 rad), return so far (by 200). ``"lidar"``: with the
                        distances to obstacles and edges of the road along 32 beams, from 90 degrees
                        to the right to 90 degrees to the left (by 50 m). ``"state"``: with v (by 2
                        m/s), the curvature at the car and 5, 10, 20 and 40 m ahead (by 0.03 / m),
                        and of the next two obstacles the way (by 50 m), the place to the left of
                        the lane's centre (by 3 m) and the radius (by 1.5 m). ``"camera"``:
                        ``felt``, the feedback, and ``picture``, uint8 ``(48, 24, 3)``, the road
                        from above, 1 m a pixel, from 44 m ahead to 4 m behind
reward                  1 / (1 + (d / 0.5 m)^2), in [0, 1]. Touching an obstacle or leaving the road
                        takes back all that was earned
terminated              the car (2 m x 4.5 m) touches an obstacle, or its centre is more than 3 m
                        from the lane's centre
success                 20 s on the road, without touching an obstacle
start                   up to 0.5 m from the centre, with an angle of up to 0.05 rad
cost                    1 for a step that passes an obstacle by less than 0.3 m; that of a second,
                        10, for one that touches it or leaves the road
context                 speed 10..14 m/s; mass, friction and curves as in LaneKeeping, wavelengths
                        of train and test in alternating bands; obstacles every 45 m, the first
                        after 45 m, up to 5 m to and fro, of radius 0.8..1.3 m, whose inner edge is
                        from 0.6 m short of the lane's centre to 0.3 m beyond it
======================  ============================================================================

The car touches what its rectangle meets at the end of a sub-step of 25 ms. The reference steers by
Stanley's law along a path that bends around the obstacles, with the curve ahead fed forward; it
does not know mass and friction.

Sources: Rajamani, Vehicle Dynamics and Control (2012), sections 2.3 and 2.5; Hoffmann, Tomlin,
Montemerlo & Thrun 2007, doi:10.1109/ACC.2007.4282788 (Stanley); Leurent 2018, highway-env,
https://github.com/Farama-Foundation/HighwayEnv (lane-keeping-v0, racetrack-v0 with obstacles).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image

from rlbench_suite.core.component import Component, Components
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ...shared.runge_kutta import rk4
from ..arrays import Scalar
from ..roads import winding_lane
from ..roads.winding_lane import BEAMS, COLUMNS, RANGE, ROWS, Discs
from ..vehicle import dynamic_bicycle
from ..vehicle.dynamic_bicycle import FRONT, MASS, REAR, STIFFNESS, Car, curvature, slopes
from .lane_keeping import (
    CURVATURE_DISTANCES,
    CURVATURE_SCALE,
    HALF_REWARD_DISTANCE,
    MAX_STEERING,
    SPEED_SCALE,
    STEP,
    SUBSTEPS,
)
from .observation_bounds import lower_bounds

EDGE = 4.0  # m from the lane's centre to an edge of the road
MAX_OFFSET = 3.0  # m from the lane's centre to the car's centre
# m from the centre of gravity to the ends and sides of the car.
NOSE = 2.0
TAIL = 2.5
HALF_WIDTH = 1.0
OBSTACLES = 6
SPACING = 45.0  # m from one obstacle to the next
JITTER = 5.0  # m by which an obstacle is moved along the lane, to and fro
# m, of obstacles.
MIN_RADIUS = 0.8
MAX_RADIUS = 1.3
MAX_INNER_EDGE_BEYOND = 0.3  # m by which an obstacle's inner edge lies beyond the lane's centre
MAX_INNER_EDGE_SHORT = 0.6  # m by which an obstacle's inner edge lies short of the lane's centre
NEAR_MISS_DISTANCE = 0.3  # m
NUM_SHOWN = 2  # Obstacles that ``"state"`` shows
# Obstacles further along the lane are taken to be there.
CONTACT_DISTANCE = 12.0  # m: too far to touch
SIGHT_DISTANCE = 60.0  # m: too far to see

# Components that are never negative. ``way_1`` is negative while the car passes the obstacle.
NONNEGATIVE = {"u", "earned", "beams", "radius_1", "way_2", "radius_2"}


class Params(NamedTuple):
    """The context."""

    lane: dynamic_bicycle.Params
    s: jax.Array  # ``(6,)`` m along the lane, ascending
    d: jax.Array  # ``(6,)`` m to the left of the lane's centre
    radius: jax.Array  # ``(6,)`` m


class State(NamedTuple):
    """The car, and its record so far."""

    car: Car
    wheel: Scalar  # rad: last angle of the front wheels
    earned: Scalar  # Return so far
    strayed: Scalar  # m: sum over the steps of the distance from the centre
    steps: Scalar  # int32
    previous_d: Scalar  # m: d a step ago
    integral: Scalar  # m s: of d, within +-3
    gap: Scalar  # m: least distance from an obstacle during the last step


def discs(car: Car, params: Params, farthest: float) -> Discs:
    """Return the obstacles as the car sees them.

    Those further along the lane than ``farthest`` (m) are taken to be there.
    """
    distance = jnp.clip(params.s - car.s, -CONTACT_DISTANCE, farthest)
    return Discs(*winding_lane.place(car, params.lane, distance, params.d), params.radius)


def clearance(car: Car, params: Params) -> Scalar:
    """Return the distance (m) from the car's rectangle to the nearest obstacle.

    It is negative where they touch.
    """
    x, y, radius = discs(car, params, CONTACT_DISTANCE)
    along = jnp.maximum(jnp.maximum(x - NOSE, -TAIL - x), 0.0)
    across = jnp.maximum(jnp.abs(y) - HALF_WIDTH, 0.0)
    return (jnp.sqrt(along * along + across * across) - radius).min()


class LaneKeepingObstacles(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "touched": "whether the car has touched an obstacle",
        "left_road": "whether the car has left the road",
        "mean_distance": "from the lane's centre since the start, m",
        "gap": "least distance from an obstacle during the step, m",
    }
    ends_in_failure = True
    picture_shape = (384, 192, 3)
    period = STEP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1], [1])
        self.view = card.settings["observation"]
        components: Any = self.observation_components()
        shown_components = components["felt"] if self.view == "camera" else components
        low = lower_bounds(shown_components, NONNEGATIVE)
        self.shown_space = self.box(low, np.ones(len(low)))
        self.observation_space = self.shown_space
        if self.view == "camera":
            picture = spaces.Box(0, 255, (ROWS, COLUMNS, 3), np.uint8)
            self.observation_space = spaces.Dict({"felt": self.shown_space, "picture": picture})
        self.reward_space = self.box(-card.horizon, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample speed, car, curves and obstacles."""
        u = self.uniform(key, 6 + 4 * OBSTACLES)
        lane = dynamic_bicycle.Params(
            speed=10 + 4 * u[0],
            mass=1300 + 600 * u[1],
            friction=0.7 + 0.4 * u[2],
            sharpness=0.008 + 0.01 * u[3],
            wavelength=alternating_bands(u[4], split, 80.0, 160.0, bands=20),
            phase=2 * math.pi * u[5],
        )
        along, side, size, depth = u[6:].reshape(4, OBSTACLES)
        s = SPACING * (1 + jnp.arange(OBSTACLES, dtype=self.dtype)) + JITTER * (2 * along - 1)
        radius = MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * size
        d = jnp.where(side < 0.5, -1, 1) * (
            radius - MAX_INNER_EDGE_BEYOND + (MAX_INNER_EDGE_BEYOND + MAX_INNER_EDGE_SHORT) * depth
        )
        return Params(lane, s, d, radius)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start near the centre."""
        u = 2 * self.uniform(key, 2) - 1
        zero = jnp.zeros((), self.dtype)
        car = Car(zero, 0.5 * u[0], 0.05 * u[1], zero, zero)
        return State(car, zero, zero, zero, jnp.int32(0), car.d, zero, clearance(car, params))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a tenth of a second."""
        wheel = MAX_STEERING * action[0]

        def substep(_: int, carry: tuple[Car, Scalar]) -> tuple[Car, Scalar]:
            car = rk4(
                lambda _, y: slopes(y, wheel, params.lane, slides=True), carry[0], STEP / SUBSTEPS
            )
            return car, jnp.minimum(carry[1], clearance(car, params))

        no_gap = jnp.full((), RANGE, self.dtype)
        car, gap = jax.lax.fori_loop(0, SUBSTEPS, substep, (state.car, no_gap))
        # The limit may be lifted.
        earned = jnp.minimum(state.earned + pay(state, car, gap), self.card.horizon)
        integral = jnp.clip(state.integral + STEP * car.d, -3, 3)
        return State(
            car,
            wheel,
            earned,
            state.strayed + jnp.abs(car.d),
            state.steps + 1,
            state.car.d,
            integral,
            gap,
        )

    # -- observation -------------------------------------------------------------------------------

    def feedback(self, state: State, params: Params) -> tuple[Scalar, ...]:
        """Return the numbers of feedback."""
        car = state.car
        return (
            *(
                car.d * (1 / MAX_OFFSET),
                state.integral * (1 / 3),
                (car.d - state.previous_d) * (1 / (3 * STEP)),
            ),
            *(car.e * 2, car.r, params.lane.speed * (1 / SPEED_SCALE)),
            *(state.wheel * (1 / MAX_STEERING), state.earned * (1 / self.card.horizon)),
        )

    def true_state(self, car: Car, params: Params) -> tuple[Scalar, ...]:
        """Return what ``"state"`` shows beside the feedback."""
        bends = (
            curvature(car.s + distance, params.lane) * (1 / CURVATURE_SCALE)
            for distance in CURVATURE_DISTANCES
        )
        behind = (params.s < car.s - TAIL - MAX_RADIUS).sum(dtype=jnp.int32)
        ahead: list[Scalar] = []
        for number in range(NUM_SHOWN):
            index = jnp.minimum(behind + number, OBSTACLES - 1)
            distance = jnp.where(behind + number < OBSTACLES, params.s[index] - car.s, RANGE)
            is_ahead = distance < RANGE
            d, radius = params.d[index] * (1 / MAX_OFFSET), params.radius[index] / 1.5
            ahead += [distance * (1 / RANGE), d * is_ahead, radius * is_ahead]
        return (car.v * 0.5, *bends, *ahead)

    def beams(self, car: Car, params: Params) -> jax.Array:
        """Return the distances that the lidar measures, ``(32,)`` m."""
        return winding_lane.lidar(car, params.lane, EDGE, discs(car, params, SIGHT_DISTANCE))

    def photograph(self, car: Car, params: Params) -> jax.Array:
        """Return the picture, uint8 ``(48, 24, 3)``."""
        return winding_lane.picture(car, params.lane, EDGE, discs(car, params, SIGHT_DISTANCE))

    def observation(self, state: State, key: jax.Array, params: Params) -> Any:
        """Return what the setting says; see the table."""
        measured = self.stack(*self.feedback(state, params))
        if self.view == "lidar":
            measured = jnp.concatenate([measured, self.beams(state.car, params) / RANGE])
        if self.view == "state":
            measured = jnp.concatenate([measured, self.stack(*self.true_state(state.car, params))])
        measured = jnp.clip(measured, self.shown_space.low, self.shown_space.high)
        if self.view == "camera":
            return {"felt": measured, "picture": self.photograph(state.car, params)}
        return measured

    def observation_components(self) -> Components:
        """List the entries of :meth:`observation`, in order."""
        measured = (
            Component(
                "d", "place across the lane, from its centre to the left", f"{MAX_OFFSET:g} m"
            ),
            Component("d_integral", "integral of d over time, kept within its scale", "3 m s"),
            Component("d_change", "change of d in the last step", "3 m/s"),
            Component("e", "angle to the lane, to the left", "0.5 rad"),
            Component("r", "yaw rate, to the left", "rad/s"),
            Component("u", "speed along the car", f"{SPEED_SCALE:g} m/s"),
            Component(
                "wheel",
                "angle of the front wheels in the last step, to the left",
                f"{MAX_STEERING:g} rad",
            ),
            Component(
                "earned",
                "return so far, which touching and leaving take back",
                f"{self.card.horizon}",
            ),
        )
        if self.view == "lidar":
            beams = (
                "distance to an obstacle or an edge, from 90 degrees to the right to 90 degrees to "
                "the left"
            )
            return (*measured, Component("beams", beams, f"{RANGE:g} m", (BEAMS,)))
        if self.view == "camera":
            words = (
                "[row, column, channel]: the road from above, from 44 m ahead and from the left; "
                "red, green, blue"
            )
            return {
                "felt": measured,
                "picture": (Component("picture", words, shape=(ROWS, COLUMNS, 3)),),
            }
        return (
            *measured,
            Component("v", "speed across the car, to the left", "2 m/s"),
            *(
                Component(
                    f"curvature_{distance:g}",
                    f"of the lane {distance:g} m ahead, to the left",
                    "0.03 / m",
                )
                for distance in CURVATURE_DISTANCES
            ),
            *(
                component
                for number in range(1, NUM_SHOWN + 1)
                for component in (
                    Component(
                        f"way_{number}",
                        f"along the lane to obstacle {number} ahead, 1 if none",
                        f"{RANGE:g} m",
                    ),
                    Component(
                        f"left_{number}",
                        f"place of obstacle {number}, left of the lane's centre",
                        "3 m",
                    ),
                    Component(
                        f"radius_{number}", f"of obstacle {number}, 0 if there is none", "1.5 m"
                    ),
                )
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the wheel."""
        return (
            Component("steering", "angle of the front wheels to the left", f"{MAX_STEERING:g} rad"),
        )

    # -- reward and end ----------------------------------------------------------------------------

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what the distance from the centre pays; after a crash what that takes back."""
        return pay(state, next_state.car, next_state.gap)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the car touched an obstacle or left the road."""
        return has_failed(state.car, state.gap)

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return 1 for a near miss, and for a crash the steps of a second."""
        near_miss = (next_state.gap < NEAR_MISS_DISTANCE).astype(self.dtype)
        return jnp.where(
            has_failed(next_state.car, next_state.gap), np.asarray(1 / STEP, self.dtype), near_miss
        )

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": ~has_failed(state.car, state.gap) & (state.steps >= self.card.horizon),
            "touched": state.gap <= 0,
            "left_road": jnp.abs(state.car.d) > MAX_OFFSET,
            "mean_distance": state.strayed / jnp.maximum(state.steps, 1),
            "gap": state.gap,
        }

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say that the car touched an obstacle or left the road."""
        return "the car touched an obstacle" if info["touched"] else "the car left the road"

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe the car and what the setting shows, with units."""
        car = Car(*(float(value) for value in state.car))
        side = "left" if car.d >= 0 else "right"
        text = (
            f"You drive {float(params.lane.speed):.1f} m/s, {abs(car.d):.2f} m to the {side} of "
            f"the lane's centre; the road's edges are {EDGE:g} m from it. To the left: your place "
            f"changed by {car.d - float(state.previous_d):.3f} m in the last step and sums up to "
            f"{float(state.integral):.2f} m s, your angle to the lane is {car.e:.3f} rad, your yaw "
            f"rate {car.r:.3f} rad/s, your wheels stood at {float(state.wheel):.3f} rad. You have "
            f"earned {float(state.earned):.2f}."
        )
        if self.view == "lidar":
            beams = " ".join(
                f"{float(beam):.1f}" for beam in _compiled_beams(self, state.car, params)
            )
            return (
                f"{text} Lidar, m, from 90 degrees to the right to 90 degrees to the left: {beams}."
            )
        if self.view == "camera":
            image = np.asarray(_compiled_photograph(self, state.car, params)).astype(int)
            red, green = image[..., 0] > 1.3 * image[..., 1], image[..., 1] > 1.15 * image[..., 0]
            letters = np.where(red, "O", np.where(green, ".", "#"))
            rows = "\n".join("".join(row) for row in letters)
            return f"{text} From above, 1 m a letter (O obstacle, # road, . ground):\n{rows}"
        ahead = ", ".join(
            f"{float(curvature(car.s + distance, params.lane)):.4f}"
            for distance in CURVATURE_DISTANCES
        )
        next_ones = [
            (
                f"{float(s) - car.s:.1f} m ahead, {float(d):+.2f} m to the left of the centre, "
                f"radius {float(r):.2f} m"
            )
            for s, d, r in zip(params.s, params.d, params.radius, strict=True)
            if -TAIL - MAX_RADIUS <= float(s) - car.s < RANGE
        ]
        return (
            f"{text} Your sideways speed is {car.v:.2f} m/s to the left. The lane's curvature 0, "
            f"5, 10, 20 and 40 m ahead is {ahead} per metre. Obstacles: "
            f"{'; '.join(next_ones[:NUM_SHOWN]) or 'none within 50 m'}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with a number from -1 to 1: the angle of the front wheels (1: 0.35 rad to the "
            "left), for 0.1 s."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the picture larger, with the car in it."""
        height, width, _ = self.picture_shape
        image = Image.fromarray(np.asarray(_compiled_photograph(self, state.car, params)))
        pixels = np.array(image.resize((width, height), Image.Resampling.BILINEAR))
        scale = height / ROWS
        bottom = height - winding_lane.VIEW_BEHIND * scale
        middle = 0.5 * width
        rows = slice(round(bottom - NOSE * scale), round(bottom + TAIL * scale))
        crashed = bool(has_failed(state.car, state.gap))
        pixels[rows, round(middle - HALF_WIDTH * scale) : round(middle + HALF_WIDTH * scale)] = (
            (255, 0, 0) if crashed else (0, 255, 0)
        )
        return pixels


_compiled_beams = jax.jit(LaneKeepingObstacles.beams, static_argnums=0)
_compiled_photograph = jax.jit(LaneKeepingObstacles.photograph, static_argnums=0)


def has_failed(car: Car, gap: Scalar) -> Scalar:
    """Say whether the car touches an obstacle or is off the road."""
    return (gap <= 0) | (jnp.abs(car.d) > MAX_OFFSET)


def pay(state: State, car: Car, gap: Scalar) -> Scalar:
    """Return the reward of a step that ends with the car there."""
    share = car.d * (1 / HALF_REWARD_DISTANCE)
    return jnp.where(has_failed(car, gap), -state.earned, 1 / (1 + share * share))


@privileged_player
class StanleyAround(NamedTuple):
    """Player of ``LaneKeepingObstacles``: Stanley's law along a path around the obstacles.

    Curves are fed forward.

    The path leaves the lane's centre before an obstacle that is in the way, passes it beside it and
    comes back, by the polynomial of fifth order whose slope and curvature are zero at both ends.
    """

    margin: Scalar = 0.44  # m from an obstacle
    ramp: Scalar = 0.79  # s from the centre to the place beside
    flat: Scalar = 1.05  # m along the lane beside an obstacle, to and fro
    gain: Scalar = 4.8  # 1/s: of the distance of the front axle
    damping: Scalar = 0.03  # s: of the yaw rate against that of the path
    preview: Scalar = 0.145  # s: way ahead at which the curvature is taken

    @classmethod
    def for_task(cls, task: LaneKeepingObstacles) -> StanleyAround:
        """Make the player."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def path(self, s: Scalar, params: Params) -> tuple[Scalar, Scalar, Scalar]:
        """Return the path's place, slope and second derivative.

        The place is in m to the left of the lane's centre.
        """
        side = jnp.sign(params.d)
        inner = jnp.abs(params.d) - params.radius
        shift = -side * jnp.maximum(HALF_WIDTH + self.margin - inner, 0.0)
        distance = s - params.s
        ramp = self.ramp * params.lane.speed
        share = jnp.clip((jnp.abs(distance) - self.flat) / ramp, 0, 1)
        unshifted = 1 - share
        height = 1 - share**3 * (10 - 15 * share + 6 * share**2)
        slope = -30 * share**2 * unshifted**2 * jnp.sign(distance) / ramp
        bend = -60 * share * unshifted * (1 - 2 * share) / ramp**2
        shifted_terms = [shift * values for values in (height, slope, bend)]
        total = [values[0] for values in shifted_terms]
        for i in range(1, OBSTACLES):
            total = [
                so_far + values[i] for so_far, values in zip(total, shifted_terms, strict=True)
            ]
        return total[0], total[1], total[2]

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the steering, shape ``(1,)``."""
        params: Params = view.params
        car: Car = view.state.car
        u = params.lane.speed
        wheelbase = FRONT + REAR
        preview_s = car.s + self.preview * u
        kappa = curvature(preview_s, params.lane) + self.path(preview_s, params)[2]
        forward = kappa * (wheelbase + MASS * (REAR - FRONT) / (STIFFNESS * wheelbase) * u * u)
        aside, slope, _ = self.path(car.s + FRONT, params)
        angle = car.e - jnp.arctan(slope)
        front = car.d + FRONT * jnp.sin(car.e) - aside
        # In a steady curve the car points inwards by its slip angle.
        slip = kappa * (REAR - FRONT * MASS * u * u / (STIFFNESS * wheelbase))
        wheel = forward - (angle + slip) - jnp.arctan(self.gain * front / u)
        wheel = wheel - self.damping * (car.r - kappa * u)
        return jnp.clip(jnp.stack([wheel / MAX_STEERING]), -1, 1), memory
