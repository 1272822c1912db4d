"""Save CO2 at traffic lights of cities that no agent has seen.

The task is ``EcoDriving`` with trucks, cold engines and cities.

The junction, the twin and the reward are those of ``eco_driving.py``. A junction belongs to one of
16 synthetic cities. Agents train in those with even numbers, and are tested in the others. A city
is a row of CITIES, around which its junctions differ:

======================  ============================================================================
approach                within 8 % of the city's
speed limit             the city's, or at a quarter of the junctions 10 km/h less
signal plan             the sum of both greens within 10 s of the city's, in steps of half a second;
                        the first one within 3 s of the city's share; any offset
demand                  of each lane 70 to 130 % of the city's for its direction
trucks                  50 to 150 % of the city's share
temperature             within 6 degrees of the city's
======================  ============================================================================

So the cities have 1,129,960 signal plans, 575,640 of them for training, before all that is
continuous. A **truck** is 10 m long, accelerates half as hard as a car, desires 90 % of its speed,
and keeps 1 m and 30 % of a time gap more. It emits as a diesel truck of Euro 4. Some **cars** have
cold engines, more of them the colder it is, and these emit 1.2 to 1.56 times as much
(``emissions.py``).

The agents, the action, the cost, success and the end are those of ``EcoDriving``. The observation
``(48, 25)`` of each car has five entries more: 1 if it is a truck; by how much a cold engine emits
more, 0 if it is warm; trucks between it and the line (by 12); and of all, temperature (by 40
degrees Celsius) and the share of trucks.

Cities, sizes and drivers of trucks are chosen, not measured. All vehicles can brake equally hard in
emergencies. Turns and lane changes are left out here (``eco_driving_lanes.py`` has them).
``fuel_saving`` is that of cars, because its model has no trucks.

Sources: those of ``eco_driving.py`` and ``emissions.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from ...arrays import Scalar
from ...players.speed_advice import SpeedAdvice
from ...roads.signal_plan import AMBER, CLEARANCE, Plan
from ...traffic.approach import LENGTH
from ...traffic.car_following import Driver
from ...vehicle.emissions import CAR, TRUCK, Engine, cold_ratio, cold_share, fuel
from .eco_driving import LANES, NEVER, SLOTS, EcoDriving, Entry, State, arrivals, bounds, drivers

# Approach in m, speed limit in km/h, cycle in s, share of the first green, vehicles an hour on a
# lane of each direction, share of trucks, temperature in degrees Celsius.
CITIES = np.array(
    [
        (170, 40, 50, 0.50, 200, 200, 0.02, 12),
        (190, 40, 60, 0.55, 260, 180, 0.04, 9),
        (220, 50, 70, 0.60, 340, 200, 0.08, 16),
        (200, 50, 60, 0.50, 300, 300, 0.06, 22),
        (320, 60, 80, 0.60, 360, 240, 0.15, 4),
        (300, 60, 70, 0.50, 320, 260, 0.20, -2),
        (260, 50, 80, 0.40, 200, 340, 0.10, 24),
        (240, 50, 70, 0.45, 240, 300, 0.12, 24),
        (180, 40, 60, 0.50, 280, 260, 0.05, -4),
        (210, 40, 70, 0.60, 320, 180, 0.08, 2),
        (290, 60, 60, 0.55, 240, 200, 0.25, 18),
        (310, 60, 80, 0.45, 220, 320, 0.10, 14),
        (200, 40, 80, 0.40, 180, 300, 0.12, 8),
        (180, 40, 50, 0.50, 220, 220, 0.03, 18),
        (230, 50, 60, 0.50, 360, 360, 0.05, 20),
        (260, 50, 60, 0.40, 260, 360, 0.15, 6),
    ]
)
MAX_GREENS_SHIFT = 20  # Ticks by which the sum of greens differs from the city's
MAX_FIRST_SHIFT = 6  # Ticks by which the first green differs from the city's share
TRUCKS_BETWEEN = len(Entry) + 2  # Entry of the observation: trucks between a vehicle and the line
TRUCK_LENGTH = 10.0  # m
TEMPERATURE_SCALE = 40.0  # Degrees Celsius that are shown as 1
MAX_REWARD = 400.0  # g per car: no step emits more, and none saves more


class CityParams(NamedTuple):
    """The context. Fields of drivers and vehicles are ``(lanes, slots)``."""

    city: Scalar  # int32: row of CITIES
    approach: Scalar  # m from the entry to the stop line
    limit: Scalar  # m/s
    plan: Plan
    driver: Driver
    arrival: Scalar  # int32: tick at which the vehicle reaches the entry, or NEVER
    controlled: Scalar  # bool
    cars: Scalar  # Vehicles of the episode, at least 1
    truck: Scalar  # bool
    cold: Scalar  # bool: a car with a cold engine
    temperature: Scalar  # Degrees Celsius
    trucks: Scalar  # Share of trucks


class EcoDrivingCity(EcoDriving):
    """The task of this file's docstring."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        low, high = bounds()
        low, high = np.append(low, (0, 0, 0, -0.3, 0)), np.append(high, (1, 1, 1, 0.8, 1))
        self.observation_space = self.box(low, high, (LANES * SLOTS, 25))
        self.reward_space = self.box(-MAX_REWARD, MAX_REWARD, (LANES * SLOTS,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Any:
        """Sample a city, a junction of it, and its traffic."""
        u = self.uniform(key, 8 + LANES + 9 * LANES * SLOTS)
        u_cars = u[8 + LANES :].reshape(9, LANES, SLOTS)
        city = (
            2 * jnp.minimum(jnp.floor(len(CITIES) // 2 * u[0]), len(CITIES) // 2 - 1) + split
        ).astype(jnp.int32)
        row = jnp.asarray(CITIES, self.dtype)[city]
        limit = (row[1] - jnp.where(u[2] < 0.25, 10, 0)) / 3.6
        demand = jnp.repeat(row[4:6], LANES // 2) * (0.7 + 0.6 * u[8 : 8 + LANES])
        arrival = arrivals(demand[:, None], u_cars[0])
        trucks = row[6] * (0.5 + u[6])
        temperature = row[7] + 12 * u[7] - 6
        truck = u_cars[7] < trucks
        car = drivers(limit, u_cars[1:6])
        return CityParams(
            city=city,
            approach=row[0] * (0.92 + 0.16 * u[1]),
            limit=limit,
            plan=sample_plan(row, u[3:6]),
            driver=Driver(
                desired_speed=car.desired_speed * jnp.where(truck, 0.9, 1),
                time_gap=car.time_gap * jnp.where(truck, 1.3, 1),
                jam_gap=car.jam_gap + jnp.where(truck, 1, 0),
                acceleration=car.acceleration * jnp.where(truck, 0.5, 1),
                deceleration=car.deceleration,
            ),
            arrival=arrival,
            controlled=u_cars[6] < self.penetration,
            cars=jnp.maximum((arrival < NEVER).sum(), 1).astype(self.dtype),
            truck=truck,
            cold=~truck & (u_cars[8] < cold_share(temperature)),
            temperature=temperature,
            trucks=trucks,
        )

    def lengths(self, params: Any) -> Scalar:
        """Return the length of every vehicle, m."""
        return jnp.where(params.truck, TRUCK_LENGTH, LENGTH)

    def engines(self, params: Any) -> Engine:
        """Return the engine of every vehicle."""
        warmth = jnp.where(params.cold, cold_ratio(params.temperature), 1)
        return Engine(
            *(
                warmth * jnp.where(params.truck, truck, car)
                for truck, car in zip(TRUCK, CAR, strict=True)
            )
        )

    def petrol_consumption(self, speed: Scalar, acceleration: Scalar, params: Any) -> jax.Array:
        """Return the consumption of petrol, L/s; trucks burn none."""
        used = fuel(speed, acceleration) * jnp.where(params.cold, cold_ratio(params.temperature), 1)
        return jnp.where(params.truck, 0, used)

    def observation(self, state: State, key: jax.Array, params: Any) -> jax.Array:
        """Return the observation of each vehicle, ``(48, 25)``; see the docstring of this file."""
        shared_entries = self.car_observations(state, params)
        x = state.traffic.x[1]
        approaching = (x >= 0) & (x < params.approach)
        ahead = approaching & params.truck
        vehicle_columns = (
            params.truck,
            jnp.where(params.cold, cold_ratio(params.temperature) - 1, 0),
            jnp.where(approaching, jnp.cumsum(ahead, -1) - ahead, 0) * (1 / SLOTS),
        )
        agent = shared_entries[:, Entry.AGENT] > 0
        city_columns = params.temperature * (1 / TEMPERATURE_SCALE), params.trucks
        columns = (
            *(jnp.where(agent, column.reshape(-1), 0) for column in vehicle_columns),
            *city_columns,
        )
        city_entries = [
            jnp.broadcast_to(column, agent.shape).astype(self.dtype) for column in columns
        ]
        return jnp.concatenate([shared_entries, jnp.stack(city_entries, -1)], -1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of each vehicle."""
        return (
            *super().observation_components(),
            Component("truck", "1 if it is a truck"),
            Component("cold", "part by which its cold engine emits more, 0 if it is warm"),
            Component("trucks_between", "trucks between it and the line", f"{SLOTS} trucks"),
            Component("temperature", "of the air", f"{TEMPERATURE_SCALE:g} degC"),
            Component("trucks", "share of trucks"),
        )

    def describe_agents(self, x: np.ndarray, params: Any) -> str:
        """Tell temperature and trucks, and how many agents have entered."""
        trucks = [
            f"{SLOTS * lane + slot}"
            for lane, slot in np.argwhere(np.asarray(params.truck) & (x >= 0))
        ]
        cold = [
            f"{SLOTS * lane + slot}"
            for lane, slot in np.argwhere(np.asarray(params.cold) & (x >= 0))
        ]
        return (
            f"{super().describe_agents(x, params)} {float(params.temperature):.0f} degrees "
            f"Celsius, {100 * float(params.trucks):.0f} % of the vehicles are trucks. Numbers of "
            f"those that have entered: {', '.join(trucks) or 'none'}. Numbers of cars with cold "
            f"engines, which emit more: {', '.join(cold) or 'none'}."
        )


def sample_plan(row: jax.Array, u: jax.Array) -> Plan:
    """Return a signal plan of a city for three uniform numbers."""
    step = (
        jnp.minimum(jnp.floor((2 * MAX_GREENS_SHIFT + 1) * u[0]), 2 * MAX_GREENS_SHIFT).astype(
            jnp.int32
        )
        - MAX_GREENS_SHIFT
    )
    greens = jnp.round(2 * row[2]).astype(jnp.int32) - 2 * (AMBER + CLEARANCE) + step
    shift = (
        jnp.minimum(jnp.floor((2 * MAX_FIRST_SHIFT + 1) * u[1]), 2 * MAX_FIRST_SHIFT).astype(
            jnp.int32
        )
        - MAX_FIRST_SHIFT
    )
    first = jnp.round(greens * row[3]).astype(jnp.int32) + shift
    return Plan(first, greens - first, jnp.int32(0)).start_at(u[2])


class CityAdvice(NamedTuple):
    """The player of ``EcoDriving``, who knows that trucks take longer to leave a queue.

    Its numbers are the best of a random search on training episodes.
    """

    advice: SpeedAdvice = SpeedAdvice(
        headway=2.05, start=2.3, reserve=2.6, patience=3.3, braking=0.59, slowest=1.1, grace=1.8
    )
    truck_headway: Scalar = 1.4  # s more than a car

    @classmethod
    def for_task(cls, task: EcoDrivingCity) -> CityAdvice:
        """Make the player."""
        return cls()

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return how much each vehicle eases off, ``(48, 1)``."""
        observation = view.observation
        longer = observation[:, TRUCKS_BETWEEN] * (self.truck_headway / self.advice.headway)
        return self.advice.ease(observation.at[:, Entry.BETWEEN].add(longer))[:, None], memory
