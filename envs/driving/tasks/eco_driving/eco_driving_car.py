"""Save CO2 at traffic lights with a single car among humans: ``EcoDriving`` for one driver.

One lane of the junction of ``eco_driving.py``, whose lanes do not touch each other. One of its cars
is driven, all others are human. The episode begins when the driven car enters, and ends when the
lane is empty, so that the journeys of those behind it count. Rules of driving, the twin and the
reward are those of ``EcoDriving``.

The driven car is drawn from all cars of the lane. The offset of the signals is drawn so that the
car, if it could drive at its desired speed, would reach the line at red, 5 s or more before green.
So there is something to win in every episode, while the queue that stands or comes before it
differs.

======================  ============================================================================
action ``(1,)``         once a second, -1 to 1: 1 is 1.5 m/s^2 less than the driver would
                        accelerate, 0 and below leave the driver alone
observation ``(18,)``   of the driven car, as in ``EcoDriving``, without the entries for other
                        controlled cars. The first nine are 0 once it has left
reward                  CO2 of the lane's twin less that of the lane in this second, g of all its
                        cars
terminated              all cars of the lane have left, in the twin too
success                 all cars of the lane have left, it emitted less than its twin by at least a
                        tenth of what a car of the twin emits on average, and the delay is at most 1
                        s a car
cost                    delay, s per car of the lane: cars that have left in the twin and not here,
                        once a second
context                 that of ``EcoDriving`` for one lane; which car is driven
======================  ============================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from ...players.speed_advice import SpeedAdvice
from ...roads.signal_plan import AMBER, TICK
from .eco_driving import (
    INFLOW_SECONDS,
    MAX_DELAY,
    MAX_EASE,
    MAX_REWARD,
    NEVER,
    SLOTS,
    EcoDriving,
    Entry,
    Params,
    State,
    bounds,
    have_all_left,
)

MIN_SAVING = 10.0  # % of the emission of a car: least saving of a success
MIN_RED_LEFT = 10  # Ticks of red that a car at its desired speed finds left, at least
# Entries of an agent's observation that are about other agents.
HIDDEN_COMPONENTS = "leader_controlled", "penetration"
# Entries of an agent's observation that are shown: all but those of HIDDEN_COMPONENTS. They have 32
# bits, because JAX keeps an array of 64 bits as it first saw it, so that indexing would fail in
# float64 after a run in float32.
OWN_ENTRIES = np.delete(
    np.arange(len(Entry), dtype=np.int32), [Entry.LEADER_CONTROLLED, Entry.PENETRATION]
)


class EcoDrivingCar(EcoDriving):
    """The task of this file's docstring."""

    lanes = 1
    picture_shape = (110, 720, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super(EcoDriving, self).__init__(card, difficulty=difficulty, dtype=dtype)
        self.penetration = 0.0
        low, high = bounds()
        self.observation_space = self.box(low[OWN_ENTRIES], high[OWN_ENTRIES])
        self.action_space = self.box(-1, 1, (1,))
        self.reward_space = self.box(-SLOTS * MAX_REWARD, SLOTS * MAX_REWARD, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a lane, one of its cars, and lights that are red for it."""
        params = super().sample_params(key, split)
        arrival = params.arrival.at[0, 0].min(int(INFLOW_SECONDS / TICK))  # at least one car comes
        cars = (arrival < NEVER).sum()
        u_car, u_wait = self.uniform(jax.random.fold_in(key, 1), 2)
        driven_slot = jnp.minimum(jnp.floor(u_car * cars).astype(jnp.int32), cars - 1)
        plan = params.plan
        max_wait = plan.cycle - plan.first - AMBER - MIN_RED_LEFT
        to_green = MIN_RED_LEFT + jnp.minimum(
            jnp.floor(u_wait * (max_wait + 1)).astype(jnp.int32), max_wait
        )
        ticks_to_line = params.approach / (params.driver.desired_speed[0, driven_slot] * TICK)
        reaches = arrival[0, driven_slot] + jnp.ceil(ticks_to_line).astype(jnp.int32)
        return params._replace(
            plan=plan._replace(offset=-(reaches + to_green) % plan.cycle),
            arrival=arrival,
            controlled=jnp.arange(SLOTS)[None] == driven_slot,
            cars=cars.astype(self.dtype),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Let humans drive until the driven car has entered."""

        def is_outside(state: State) -> jax.Array:
            return (params.controlled & (state.traffic.x[1] < 0)).any()

        nobody = jnp.zeros((1, SLOTS), self.dtype)
        empty = super().initial(key, params)
        state = jax.lax.while_loop(
            is_outside, lambda state: self.drive(state, nobody, params), empty
        )
        return state._replace(co2=jnp.zeros_like(state.co2), fuel=jnp.zeros_like(state.fuel))

    def per_car(self, action: jax.Array) -> jax.Array:
        """Return the action, which broadcasts to ``(lanes, slots)``."""
        return action

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the observation of the driven car, ``(18,)``; see the table."""
        return self.car_observations(state, params)[params.controlled[0].argmax(), OWN_ENTRIES]

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries; see the table."""
        return tuple(
            component
            for component in super().observation_components()
            if component.name not in HIDDEN_COMPONENTS
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the CO2 saved in this step, g."""
        return self.co2_saving(state, next_state)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        info = super().info(state, params)
        saves = (info["saving"] * params.cars >= MIN_SAVING) & (info["delay"] <= MAX_DELAY)
        return {**info, "success": have_all_left(state, params) & saves}

    # -- words -------------------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with a number from 0 to 1: how much less you accelerate than the driver would, "
            f"1 is {MAX_EASE:g} m/s^2."
        )

    def describe_agents(self, x: np.ndarray, params: Params) -> str:
        """Say how many cars are to come."""
        return (
            f"{int(((np.asarray(params.arrival) < NEVER) & (x < 0)).sum())} cars are still to come."
        )

    def name_agent(self, lane: int, slot: int) -> str:
        """Name the driven car."""
        return "you"


class OwnSpeedAdvice(NamedTuple):
    """Player of ``EcoDrivingCar``: that of ``EcoDriving`` with numbers of its own.

    Its numbers are the best of a random search for this task.
    """

    advice: SpeedAdvice = SpeedAdvice(
        headway=2.4,
        start=2.1,
        reserve=3.9,
        pickup=0.15,
        patience=3.2,
        gain=0.37,
        braking=0.9,
        slowest=1.1,
        grace=1.2,
    )

    @classmethod
    def for_task(cls, task: EcoDrivingCar) -> OwnSpeedAdvice:
        """Make the player."""
        return cls()

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return how much the car eases off, ``(1,)``."""
        observation = (
            jnp.zeros(len(Entry), view.observation.dtype).at[OWN_ENTRIES].set(view.observation)
        )
        return self.advice.ease(observation[None]), memory
