"""Keep a car on a winding lane at constant speed, by steering alone.

The car is the dynamic bicycle on linear tyres, whose lateral speed v and yaw rate r are states; the
lane's centre has the curvature kappa(s) in closed form, so that the car's place is given along the
lane (s), across it (d, to the left) and by its angle to it (e):

    m (dv/dt + u r) = F_f + F_r,   I dr/dt = a F_f - b F_r
    F_f = C_f (delta - (v + a r) / u),   F_r = -C_r (v - b r) / u
    ds/dt = (u cos e - v sin e) / (1 - d kappa),   dd/dt = u sin e + v cos e,
    de/dt = r - kappa ds/dt
    kappa = K sin(2 pi s / W + phase)

The task is highway-env's lane-keeping-v0 (Leurent 2018), with these changes: the car has the mass
and tyres of a car (there: 1 kg), curves differ from episode to episode, and leaving the lane ends
the episode and takes back all. There, an episode never ends, and standing far off the lane costs
without limit (-1412 for the wheel held straight).

======================  ============================================================================
action                  ten times a second, ``(1,)`` in [-1, 1]: angle of the front wheels, by 0.35
                        rad, to the left
observation             d (by 2 m), e (by 0.5 rad), v (by 2 m/s), r (by 1 rad/s), u (by 25 m/s),
                        curvature at the car and 5, 10, 20 and 40 m ahead (by 0.03 / m), return so
                        far (by 200); cut off at +-1
reward                  1 / (1 + (d / 0.5 m)^2), in [0, 1]. Leaving the lane takes back all that was
                        earned
terminated              the car's centre is more than 2 m from the lane's centre
success                 20 s in the lane, at most 0.5 m from its centre on average
start                   up to 0.5 m from the centre, with an angle of up to 0.05 rad
cost                    1 for a step that ends with a wheel on the line, abs(d) > 1 m (lane of 4 m,
                        car of 2 m)
context                 speed 12..18 m/s, mass 1300..1900 kg, friction (a factor of C_f and C_r)
                        0.7..1.1, curves: K of 0.008..0.018 / m, W of 80..160 m. Train and test
                        wavelengths lie in alternating bands of 4 m
======================  ============================================================================

The reference steers by Stanley's law at the front axle, with the curve ahead fed forward through
the understeer of the car on the data sheet; it does not know mass and friction.

Sources: Rajamani, Vehicle Dynamics and Control (2012), sections 2.3 and 2.5 (model and parameters
of a passenger car); Hoffmann, Tomlin, Montemerlo & Thrun 2007, doi:10.1109/ACC.2007.4282788
(Stanley); Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv
(lane-keeping-v0).
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
from ...shared.runge_kutta import rk4
from ..arrays import Scalar
from ..vehicle.dynamic_bicycle import FRONT, MASS, REAR, STIFFNESS, Car, Params, curvature, slopes
from .observation_bounds import lower_bounds

STEP = 0.1  # s
SUBSTEPS = 4  # Runge-Kutta steps of a step
MAX_STEERING = 0.35  # rad
HALF_LANE = 2.0  # m from the centre to the place where the episode ends
LINE_DISTANCE = 1.0  # m from the centre to the place where a wheel is on the line
HALF_REWARD_DISTANCE = 0.5  # m: distance at which a step pays half
CURVATURE_DISTANCES = (0.0, 5.0, 10.0, 20.0, 40.0)  # m: places where the curvature is seen
CURVATURE_SCALE = 0.03  # 1/m that are shown as 1
SPEED_SCALE = 25.0  # m/s that are shown as 1


class State(NamedTuple):
    """The car, and its record so far."""

    car: Car
    wheel: Scalar  # rad: last angle of the front wheels
    earned: Scalar  # Return so far
    strayed: Scalar  # m: sum over the steps of the distance from the centre
    steps: Scalar  # int32


class LaneKeeping(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "left_lane": "whether the car has left the lane",
        "mean_distance": "from the lane's centre since the start, m",
        "lateral_acceleration": "of the car, u r, m/s^2",
    }
    ends_in_failure = True
    picture_shape = (320, 480, 3)
    period = STEP
    errors = ("d", "e")

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1], [1])
        low = lower_bounds(self.observation_components(), {"u", "earned"})
        self.observation_space = self.box(low, np.ones(len(low)))
        self.reward_space = self.box(-card.horizon, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample speed, car and curves."""
        u = self.uniform(key, 6)
        return Params(
            speed=12 + 6 * u[0],
            mass=1300 + 600 * u[1],
            friction=0.7 + 0.4 * u[2],
            sharpness=0.008 + 0.01 * u[3],
            wavelength=alternating_bands(u[4], split, 80.0, 160.0, bands=20),
            phase=2 * math.pi * u[5],
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start near the centre."""
        u = 2 * self.uniform(key, 2) - 1
        zero = jnp.zeros((), self.dtype)
        return State(Car(zero, 0.5 * u[0], 0.05 * u[1], zero, zero), zero, zero, zero, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a tenth of a second."""
        wheel = MAX_STEERING * action[0]

        def substep(_: int, car: Car) -> Car:
            return rk4(lambda _, y: slopes(y, wheel, params), car, STEP / SUBSTEPS)

        car = jax.lax.fori_loop(0, SUBSTEPS, substep, state.car)
        # The limit may be lifted.
        earned = jnp.minimum(state.earned + self.pay(state, car), self.card.horizon)
        return State(car, wheel, earned, state.strayed + jnp.abs(car.d), state.steps + 1)

    def pay(self, state: State, car: Car) -> Scalar:
        """Return the reward of a step that ends with the car there."""
        share = car.d * (1 / HALF_REWARD_DISTANCE)
        return jnp.where(jnp.abs(car.d) > HALF_LANE, -state.earned, 1 / (1 + share * share))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(11,)``; see the table."""
        car = state.car
        entries = (
            *(
                car.d * (1 / HALF_LANE),
                car.e * 2,
                car.v * 0.5,
                car.r,
                params.speed * (1 / SPEED_SCALE),
            ),
            *(
                curvature(car.s + distance, params) * (1 / CURVATURE_SCALE)
                for distance in CURVATURE_DISTANCES
            ),
            state.earned * (1 / self.card.horizon),
        )
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(self.stack(*entries), low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            Component(
                "d", "place across the lane, from its centre to the left", f"{HALF_LANE:g} m"
            ),
            Component("e", "angle to the lane, to the left", "0.5 rad"),
            Component("v", "speed across the car, to the left", "2 m/s"),
            Component("r", "yaw rate, to the left", "rad/s"),
            Component("u", "speed along the car", f"{SPEED_SCALE:g} m/s"),
            *(
                Component(
                    f"curvature_{distance:g}",
                    f"of the lane {distance:g} m ahead, to the left",
                    "0.03 / m",
                )
                for distance in CURVATURE_DISTANCES
            ),
            Component(
                "earned", "return so far, which leaving the lane takes back", f"{self.card.horizon}"
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the wheel."""
        return (
            Component("steering", "angle of the front wheels to the left", f"{MAX_STEERING:g} rad"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return what the distance from the centre pays; out of the lane what that takes back."""
        return self.pay(state, next_state.car)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the car left the lane."""
        return jnp.abs(state.car.d) > HALF_LANE

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return 1 for a wheel on the line."""
        return (jnp.abs(next_state.car.d) > LINE_DISTANCE).astype(self.dtype)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        mean = state.strayed / jnp.maximum(state.steps, 1)
        out = jnp.abs(state.car.d) > HALF_LANE
        return {
            "success": ~out & (mean <= HALF_REWARD_DISTANCE) & (state.steps >= self.card.horizon),
            "left_lane": out,
            "mean_distance": mean,
            "lateral_acceleration": params.speed * state.car.r,
        }

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say that the car left the lane."""
        return "the car left the lane"

    def describe(self, state: State, params: Params) -> str:
        """Describe the car and the lane ahead, with units."""
        car = Car(*(float(value) for value in state.car))
        ahead = ", ".join(
            f"{float(curvature(car.s + distance, params)):.4f}" for distance in CURVATURE_DISTANCES
        )
        side = "left" if car.d >= 0 else "right"
        return (
            f"You drive {float(params.speed):.1f} m/s, {abs(car.d):.2f} m to the {side} of the "
            f"lane's centre. To the left: your angle to the lane is {car.e:.3f} rad, your sideways "
            f"speed {car.v:.2f} m/s, your yaw rate {car.r:.3f} rad/s. The lane's curvature 0, 5, "
            f"10, 20 and 40 m ahead is {ahead} per metre. You have earned "
            f"{float(state.earned):.2f}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with a number from -1 to 1: the angle of the front wheels (1: 0.35 rad to the "
            "left), for 0.1 s."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the lane from above, the car at the bottom, driving upwards."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        car = Car(*(float(value) for value in state.car))
        scale = 4.0
        distance = np.arange(-15.0, 75.0, 0.5)
        bend = float(params.sharpness) * np.sin(
            2 * math.pi * (car.s + distance) / float(params.wavelength) + params.phase
        )
        angle = np.cumsum(bend) * 0.5
        angle = angle - angle[30] - car.e
        x, y = np.cumsum(np.cos(angle)) * 0.5, np.cumsum(np.sin(angle)) * 0.5
        x, y = x - x[30] + car.d * math.sin(car.e), y - y[30] - car.d * math.cos(car.e)

        def line(side: float, colour: str, thick: int) -> None:
            points = [
                (
                    width / 2 - scale * (b + side * math.cos(t)),
                    height - 60 - scale * (a - side * math.sin(t)),
                )
                for a, b, t in zip(x, y, angle, strict=True)
            ]
            canvas.line(points, fill=colour, width=thick)

        line(0.0, "dimgray", int(2 * HALF_LANE * scale))
        for side in (-HALF_LANE, HALF_LANE):
            line(side, "white", 1)
        left, top = width / 2 - scale, height - 60 - 2 * scale
        out = abs(car.d) > HALF_LANE
        canvas.rectangle(
            (left, top, left + 2 * scale, top + 5 * scale),
            fill="red" if out else "lime",
            outline="black",
        )
        return np.asarray(image)


@privileged_player
class Stanley(NamedTuple):
    """Player of ``LaneKeeping``: Stanley's law with the curve ahead fed forward."""

    gain: Scalar = 2.5  # 1/s: of the distance of the front axle
    damping: Scalar = 0.1  # s: of the yaw rate against that of the curve
    preview: Scalar = 0.1  # s: way ahead at which the curvature is taken
    # rad s^2/m: of the data sheet
    understeer: Scalar = MASS * (REAR - FRONT) / (STIFFNESS * (FRONT + REAR))
    wheelbase: Scalar = FRONT + REAR  # m

    @classmethod
    def for_task(cls, task: LaneKeeping) -> Stanley:
        """Make the player."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the steering, shape ``(1,)``."""
        params: Params = view.params
        car: Car = view.state.car
        u = params.speed
        kappa = curvature(car.s + self.preview * u, params)
        forward = kappa * (self.wheelbase + self.understeer * u * u)
        front = car.d + FRONT * jnp.sin(car.e)
        # In a steady curve the car points inwards by its slip angle.
        slip = kappa * (REAR - FRONT * MASS * u * u / (STIFFNESS * (FRONT + REAR)))
        wheel = forward - (car.e + slip) - jnp.arctan(self.gain * front / u)
        wheel = wheel - self.damping * (car.r - kappa * u)
        return jnp.clip(jnp.stack([wheel / MAX_STEERING]), -1, 1), memory
