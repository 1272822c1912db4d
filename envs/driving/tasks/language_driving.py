"""Drive on a highway as a passenger says: into a lane, at a speed, or both.

The road is that of ``highway.py`` (IDM, MOBIL, kinematic bicycle at 15 Hz, five decisions, once a
second), with 49 vehicles on four lanes. Every 15 s the passenger says something new, in one of nine
wordings: lanes are counted from the right or from the left, speeds are in m/s, km/h or mph. Neither
the lane nor the speed that the ego keeps is ever wanted next, so that a driver who just drives on
obeys nothing.

======================  ============================================================================
action                  as in ``highway.py``
observation             as in ``highway.py``, with the return so far by the 60 s of an episode, and
                        before that: whether a lane is wanted, which (0 the right one, 1 the left
                        one), whether a speed is wanted, which (by 40 m/s), time until the passenger
                        says something else (by 15 s). The text view has the passenger's words
                        instead
reward                  1 for a second at whose end all that is wanted holds: the ego is in the lane
                        and changes to no other, and its speed is within 2 m/s. A crash takes back
                        all that the episode has earned (60 at most), so that its return is 0
terminated              a crash, as in ``highway.py``
success                 no crash, and each wish was fulfilled at some time before the next one
start, cost             as in ``highway.py``
context, difficulty     as in ``highway.py``
wishes                  a lane (probability 0.4), a speed (0.3) or both; the other three lanes are
                        equally likely, and so are the speeds of 10, 15, 20 and 25 m/s that the ego
                        is not told to keep
======================  ============================================================================

The reference player reads the observation, not the words. It accepts gaps, as drivers do who must
change lanes (Gipps 1986, doi:10.1016/0191-2615(86)90012-3), opens one where there is none, and
keeps a speed from which it can brake behind the leader.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..arrays import Scalar
from ..players.gap_testing import AHEAD, BEHIND, EGO_LANE, LEFT, RIGHT, Manner, see_ego, see_lanes
from ..traffic.fleet import TOP_SPEED
from ..traffic.traffic import LANES, Fleet
from . import highway
from .highway import LANE_LEFT, LANE_RIGHT, LEVEL_STEP, LEVELS, MIN_TARGET_SPEED, Highway, ego_pose

PATIENCE = 15  # Steps from one wish to the next
MAX_SPEED_ERROR = 2.0  # m/s: largest difference from the wanted speed
NUM_SPEEDS = 4  # Number of speeds that are wanted: the slowest of the target speeds
LANE_ONLY_PROBABILITY = 0.4  # of a wish for a lane alone
SPEED_ONLY_PROBABILITY = 0.3  # of a wish for a speed alone
NUM_WORDINGS = 9
_ORDINALS = ("first", "second", "third", "fourth")
_UNITS = (("m/s", 1.0), ("km/h", 3.6), ("mph", 3600 / 1609.344))
LANE_WORDS = (
    lambda lane: f"take lane {lane}",
    lambda lane: f"take the {_ORDINALS[lane]} lane from the right",
    lambda lane: f"take the {_ORDINALS[LANES - 1 - lane]} lane from the left",
)
NONE = -1
NUM_WISH_COMPONENTS = 5  # Components of the observation before those of the road
RELATIVE_SPEED_SCALE = Highway.speed_scale  # m/s, by which the observation divides relative speeds


class State(NamedTuple):
    """The road, and what the passenger wants."""

    road: highway.State
    lane: Scalar  # int32: wanted lane; -1 if any will do
    level: Scalar  # int32: number of the wanted speed; -1 if any will do
    wording: Scalar  # int32
    fulfilled: Scalar  # bool: the present wish was fulfilled at some time
    wishes: Scalar  # int32: wishes fulfilled so far, the present one included
    obeyed: Scalar  # int32: seconds at whose end the wish was fulfilled


def speed_of_level(level: Any) -> Any:
    """Return the speed of a number, m/s."""
    return MIN_TARGET_SPEED + LEVEL_STEP * level


def is_obeyed(state: State) -> Scalar:
    """Say whether all that is wanted holds."""
    road = state.road.traffic
    in_lane = (state.lane == NONE) | ((road.lane[0] == state.lane) & (road.target[0] == state.lane))
    speed_error = jnp.abs(ego_pose(state.road).speed - speed_of_level(state.level))
    return in_lane & ((state.level == NONE) | (speed_error <= MAX_SPEED_ERROR))


def sentence(lane: int, level: int, wording: int) -> str:
    """Return the words for a wish."""
    wishes = []
    if lane != NONE:
        wishes.append(LANE_WORDS[wording % 3](lane))
    if level != NONE:
        unit, scale = _UNITS[wording // 3]
        wishes.append(f"drive {speed_of_level(level) * scale:.0f} {unit}")
    return f"Please {' and '.join(wishes)}."


class PassengersRoad(Highway):
    """The road with the return of this task, and with words that no passenger says."""

    def see_itself(self, state: highway.State, lane: Scalar) -> list[Scalar]:
        """Return the entries about the ego; a crash takes back up to a whole episode."""
        *moves, _ = super().see_itself(state, lane)
        return [*moves, jnp.minimum(state.earned * (1 / self.card.horizon), 1)]

    def own_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see_itself`."""
        *moves, earned = super().own_components()
        return (*moves, dataclasses.replace(earned, unit=f"{self.card.horizon}"))

    def describe_plan(self, state: highway.State) -> str:
        """Describe target speed and lane."""
        speed = speed_of_level(int(state.level))
        return f"Your controls are set to {speed:.0f} m/s and lane {int(state.traffic.target[0])}."


class LanguageDriving(Task[Fleet, State]):
    """Wishes of a passenger on the road of ``Highway``."""

    measures: ClassVar[dict[str, str]] = {
        "obeyed": "time for which all that was wanted held, in whole seconds, s",
        "wishes": "wishes fulfilled at some time",
        **Highway.measures,
    }
    picture_shape = Highway.picture_shape

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.road = PassengersRoad(card, difficulty=difficulty, dtype=dtype)
        self.period = self.road.period
        self.action_space = self.road.action_space
        road_space: Any = self.road.observation_space
        self.observation_space = self.box(
            np.r_[np.zeros(NUM_WISH_COMPONENTS), road_space.low],
            np.r_[np.ones(NUM_WISH_COMPONENTS), road_space.high],
        )
        self.reward_space = self.box(-card.horizon, 1)

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants of the road without the weights of its reward.

        That reward does not count here.
        """
        return tuple(
            constant
            for constant in self.road.constants()
            if not constant.name.startswith("reward.")
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Fleet:
        """Sample drivers, vehicles and density."""
        return self.road.sample_params(key, split)

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start the road, and let the passenger say the first thing."""
        road = self.road.initial(key, params)
        zero = jnp.int32(0)
        u = self.uniform(jax.random.fold_in(key, 1), 4)
        return self._wish(State(road, zero, zero, zero, jnp.bool_(False), zero, zero), u)

    def _wish(self, state: State, u: jax.Array) -> State:
        """Return the state with a new wish, given four uniform numbers.

        The wish is never for the lane or the speed that the ego keeps.
        """
        target = state.road.traffic.target[0]
        level = state.road.level
        other_lane = (target + 1 + jnp.floor(u[1] * (LANES - 1)).astype(jnp.int32)) % LANES
        other_speeds = jnp.where(level < NUM_SPEEDS, NUM_SPEEDS - 1, NUM_SPEEDS)
        speed = jnp.floor(u[2] * other_speeds).astype(jnp.int32)
        speed = speed + (speed >= level)
        speed_only = (u[0] >= LANE_ONLY_PROBABILITY) & (
            u[0] < LANE_ONLY_PROBABILITY + SPEED_ONLY_PROBABILITY
        )
        return state._replace(
            lane=jnp.where(speed_only, NONE, other_lane),
            level=jnp.where(u[0] < LANE_ONLY_PROBABILITY, NONE, speed),
            wording=jnp.floor(u[3] * NUM_WORDINGS).astype(jnp.int32),
            fulfilled=jnp.bool_(False),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Fleet) -> State:
        """Drive for a second; then the passenger may say something new."""
        driven_state = state._replace(road=self.road.transition(state.road, action, key, params))
        obeyed = is_obeyed(driven_state) & ~driven_state.road.crashed
        next_state = driven_state._replace(
            fulfilled=state.fulfilled | obeyed,
            wishes=state.wishes + (obeyed & ~state.fulfilled),
            obeyed=state.obeyed + obeyed,
        )
        new_wish = self._wish(next_state, self.uniform(key, 4))
        is_due = next_state.road.steps % PATIENCE == 0
        return jax.tree.map(lambda fresh, old: jnp.where(is_due, fresh, old), new_wish, next_state)

    def observation(self, state: State, key: jax.Array, params: Fleet) -> jax.Array:
        """Return shape ``(58,)``; see the table."""
        wants_lane, wants_speed = state.lane != NONE, state.level != NONE
        return jnp.concatenate([
            self.stack(
                wants_lane,
                jnp.where(wants_lane, state.lane * (1 / (LANES - 1)), 0),
                wants_speed,
                jnp.where(wants_speed, speed_of_level(state.level) * (1 / TOP_SPEED), 0),
                (PATIENCE - state.road.steps % PATIENCE) * (1 / PATIENCE),
            ),
            self.road.observation(self._with_return(state), key, params),
        ])  # fmt: skip

    def _with_return(self, state: State) -> highway.State:
        """Return the road with the return of this task in place of the road's own."""
        return state.road._replace(earned=state.obeyed.astype(self.dtype))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            Component("lane_wanted", "whether the passenger wants a lane"),
            Component(
                "wanted_lane",
                "the lane that is wanted, counted from the right",
                f"{LANES - 1} lanes",
            ),
            Component("speed_wanted", "whether the passenger wants a speed"),
            Component("wanted_speed", "the speed that is wanted", f"{TOP_SPEED:g} m/s"),
            Component(
                "patience", "time until the passenger says something else", f"{PATIENCE:g} s"
            ),
            *self.road.observation_components(),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the five decisions."""
        return self.road.action_components()

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Fleet
    ) -> jax.Array:
        """Return 1 for a second at whose end the wish is fulfilled.

        A crash gives what it takes back instead.
        """
        obeyed = (next_state.obeyed - state.obeyed).astype(self.dtype)
        loss = jnp.minimum(state.obeyed, self.card.horizon).astype(self.dtype)
        return jnp.where(next_state.road.crashed, -loss, obeyed)

    def terminal(self, state: State, key: jax.Array, params: Fleet) -> jax.Array:
        """Say whether the ego crashed."""
        return state.road.crashed

    def cost(self, state: State, action: jax.Array, next_state: State, params: Fleet) -> jax.Array:
        """Return 1 for a crash or a near miss."""
        return self.road.cost(state.road, action, next_state.road, params)

    def info(self, state: State, params: Fleet) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        num_wishes = (state.road.steps + PATIENCE - 1) // PATIENCE
        fulfilled_all = ~state.road.crashed & (state.wishes == num_wishes) & (num_wishes > 0)
        measures = {"success": fulfilled_all, "obeyed": state.obeyed, "wishes": state.wishes}
        return {**self.road.info(state.road, params), **measures}

    def why_over(self, state: State, params: Fleet, info: dict[str, Any]) -> str:
        """Say what the ego hit."""
        return self.road.why_over(state.road, params, info)

    def describe(self, state: State, params: Fleet) -> str:
        """Describe the passenger's words, the ego and the vehicles around it."""
        seconds = PATIENCE - int(state.road.steps) % PATIENCE
        words = sentence(int(state.lane), int(state.level), int(state.wording))
        return (
            f'The passenger says: "{words}" It counts for another {seconds} s.\n\n'
            + self.road.describe(state.road, params)
        )

    def rules(self) -> str:
        """Return what a player must know of every episode."""
        return (
            f"You drive for {self.card.horizon} s on a highway of {LANES} lanes, numbered from the "
            "right; lane 0 is "
            f"the right one. Do what the passenger says, who wants something else every {PATIENCE} "
            "s. Each second at "
            "whose end all that was said holds earns 1 point: you are in the lane and change to no "
            "other, and your "
            f"speed is within {MAX_SPEED_ERROR:g} m/s. A crash costs all points. You can keep "
            f"{', '.join(f'{speed_of_level(level):.0f}' for level in range(LEVELS))} m/s. A change "
            "of lanes takes 3 s."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return self.road.how_to_act()

    def noop_action(self) -> np.ndarray:
        """Return IDLE."""
        return self.road.noop_action()

    def parse(self, text: str, state: State, params: Fleet) -> np.ndarray:
        """Return the action of this name, in any case."""
        return self.road.parse(text, state.road, params)

    def spell(self, action: np.ndarray, state: State, params: Fleet) -> str:
        """Return the name of the action."""
        return self.road.spell(action, state.road, params)

    def draw(self, state: State, params: Fleet) -> np.ndarray:
        """Draw the road from above."""
        return self.road.draw(state.road, params)


class ObedientDriver(NamedTuple):
    """Player of ``LanguageDriving``, which keeps the wanted speed.

    On the way to the wanted lane it takes the next gap that lasts. Where there is none beside it,
    it falls behind the vehicle ahead in that lane, or passes it, whichever is nearer. If a speed
    alone is wanted, it takes a lane in which that can be driven. Numbers were found by random
    search, and by trials.
    """

    manner: Manner = Manner()
    slack: Scalar = 0.5  # m/s above the possible speed of a target speed that it still takes
    cruise: Scalar = (
        20.0  # m/s at which it looks for a gap if no speed is wanted: about the traffic's
    )
    away: Scalar = 7.0  # m/s by which it is slower to fall behind
    push: Scalar = 4.0  # m/s by which it is faster to pass
    faster: Scalar = 1.0  # m/s by which another lane must be faster
    top_speed: Scalar = TOP_SPEED  # m/s, by which the observation divides the ego's speed

    @classmethod
    def for_task(cls, task: LanguageDriving) -> ObedientDriver:
        """Make the player of an ego with the limits of a task."""
        return cls(cls().manner.for_task(task.road), top_speed=task.road.top_speed)

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        wish = view.observation[:NUM_WISH_COMPONENTS]
        lane_wanted, wanted_lane, speed_wanted, wanted_speed, _ = wish
        ego = see_ego(view.observation[NUM_WISH_COMPONENTS:], Highway.own_entries)
        lanes = see_lanes(view.observation[NUM_WISH_COMPONENTS:], RELATIVE_SPEED_SCALE)
        speed = ego.speed * self.top_speed
        level = jnp.round(ego.speed_to_keep * (LEVELS - 1))
        lane = ego.target_lane * (LANES - 1)
        speeds = self.manner.speeds(lanes, speed)
        has_gap = self.manner.has_lasting_gap(lanes)
        keeps_lane = ego.changing == 0
        lanes_to_go = jnp.where(lane_wanted > 0, jnp.round(wanted_lane * (LANES - 1) - lane), 0)
        side = jnp.where(lanes_to_go > 0, LEFT, RIGHT)
        ahead, behind = (speed + lanes.gain[side, place] for place in (AHEAD, BEHIND))
        falls_behind = lanes.gap[side, AHEAD] < lanes.gap[side, BEHIND]
        passing_speed = jnp.where(
            falls_behind, ahead - self.away, jnp.maximum(ahead, behind) + self.push
        )
        cruise_speed = jnp.where(
            speed_wanted > 0,
            wanted_speed * TOP_SPEED,
            jnp.where(lanes_to_go != 0, self.cruise, MIN_TARGET_SPEED + LEVEL_STEP * level),
        )
        is_blocked = (lanes_to_go != 0) & keeps_lane & ~has_gap[side]
        target_speed = jnp.where(is_blocked, passing_speed, cruise_speed)
        level_wanted = jnp.round((target_speed - MIN_TARGET_SPEED) * (1 / LEVEL_STEP))
        max_level = jnp.floor((speeds[EGO_LANE] + self.slack - MIN_TARGET_SPEED) * (1 / LEVEL_STEP))
        faster = jnp.minimum(level_wanted, max_level) - level
        pace = jnp.where(
            faster > 0.5, highway.FASTER, jnp.where(faster < -0.5, highway.SLOWER, highway.IDLE)
        )
        # A lane in which the wanted speed can be driven, if any lane will do
        gain = jnp.where(has_gap, jnp.minimum(speeds, cruise_speed), 0) - jnp.minimum(
            speeds[EGO_LANE], cruise_speed
        )
        useful = gain > self.faster
        useful = useful & (lane_wanted == 0) & (speed_wanted > 0)
        goes_left = jnp.where(
            lanes_to_go != 0, (lanes_to_go > 0) & has_gap[LEFT], useful[LEFT] & (lane < LANES - 1.5)
        )
        goes_right = jnp.where(
            lanes_to_go != 0, (lanes_to_go < 0) & has_gap[RIGHT], useful[RIGHT] & (lane > 0.5)
        )
        change = jnp.where(goes_left, LANE_LEFT, LANE_RIGHT)
        return jnp.where(keeps_lane & (goes_left | goes_right), change, pace), memory
