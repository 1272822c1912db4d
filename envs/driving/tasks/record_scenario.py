"""Record the shipped scenario: the simulated traffic of ``intersection.py`` while the ego waits.

    python -m rlbench_suite.envs.driving.tasks.record_scenario

writes ``envs/driving/roads/scenarios/intersection.json``. Points are a second apart, in mm and
mm/s.
"""

from __future__ import annotations

import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.registry import card
from rlbench_suite.numerics.process import precision

from ..roads import routes, scenario
from .crossing_task import SLOWER
from .intersection import Intersection

SECONDS = 400  # Length of the recording
SEED = 0
GAP = 10.0  # s: time without new cars in each cycle of the traffic lights up the main road
SPEED_LIMIT = 9.0  # m/s: the ego's highest target speed in the junction's task


class MainRoad(Intersection):
    """The junction with traffic on the main road only.

    Cars that come towards the ego would not yield in a replay.
    """

    demand = (
        *Intersection.demand[:2],
        Intersection.demand[2]._replace(cars=0),
        Intersection.demand[3],
    )


def trajectories() -> list[dict[str, Any]]:
    """Return what the cars did that were there for two points or more."""
    task = MainRoad(card("Intersection-v0"), difficulty=GAP, dtype="float64")
    with precision(task):
        key = jax.random.key(SEED)
        params = task.sample_params(key, jnp.int32(0))
        step = jax.jit(lambda state, key: task.transition(state, jnp.int32(SLOWER), key, params))
        state = task.initial(key, params)
        seconds = [jax.tree.map(np.asarray, state.cars)]
        for second in range(SECONDS):
            state = step(state, jax.random.fold_in(key, second))
            seconds.append(jax.tree.map(np.asarray, state.cars))
    recorded: list[dict[str, Any]] = []
    on_road: dict[int, dict[str, Any]] = {}
    for second, cars in enumerate(seconds):
        for i in range(1, len(cars.s)):
            fresh = cars.present[i] and (i not in on_road or cars.s[i] < on_road[i]["s"])
            if i in on_road and (fresh or not cars.present[i]):
                recorded.append(on_road.pop(i))
            if cars.present[i]:
                car = on_road.setdefault(
                    i, {"time": [], "x": [], "y": [], "heading": [], "speed": []}
                )
                x, y, heading = routes.points(
                    Intersection.layout.route(int(cars.route[i])), float(cars.s[i])
                )[0]
                car["s"] = cars.s[i]
                for name, value in zip(
                    car, (second, x, y, heading, float(cars.speed[i])), strict=False
                ):
                    car[name].append(round(float(value), 4 if name == "heading" else 3))
    recorded += on_road.values()
    return [
        {name: car[name] for name in car if name != "s"} for car in recorded if len(car["time"]) > 1
    ]


def lanes() -> list[dict[str, Any]]:
    """Return the four ways in, the four ways out, and the twelve ways between them."""
    layout = Intersection.layout
    arms = "south", "east", "north", "west"
    turns = "right", "straight", "left"
    listed: list[dict[str, Any]] = []

    def lane(name: str, route: int, begin: float, end: float, follows: list[str]) -> None:
        line = layout.route(route)
        x, y, heading = routes.points(line, begin)[0].tolist()
        kappa = float(line.curvature[np.searchsorted(line.start, begin + 0.01, "right") - 1])
        piece = {"length": end - begin} | ({"radius": 1 / kappa} if kappa else {})
        start = {"x": x, "y": y, "heading": math.remainder(heading, 2 * math.pi)}
        listed.append(
            {
                "name": name,
                "start": start,
                "pieces": [piece],
                "speed_limit": SPEED_LIMIT,
                "width": 4.0,
                "next": follows,
            }
        )

    for arm, name in enumerate(arms):
        lane(
            f"from_{name}",
            3 * arm,
            0.0,
            float(layout.line[3 * arm]),
            [f"{name}_{turn}" for turn in turns],
        )
        out = float(layout.out[3 * arm + 1])
        lane(f"to_{arms[(arm + 2) % 4]}", 3 * arm + 1, out, out + 60.0, [])
        for turn, turn_name in enumerate(turns):
            route = 3 * arm + turn
            target = arms[(arm + 1 + turn) % 4]
            ends = float(layout.line[route]), float(layout.out[route])
            lane(f"{name}_{turn_name}", route, *ends, [f"to_{target}"])
    return listed


def main() -> None:
    """Write the file."""
    document = {
        "version": 1,
        "units": "m, s, rad",
        "name": "intersection",
        "description": (
            "Simulated traffic of the main road of rlsuite/Intersection-v0, a point a second."
        ),
        "duration": float(SECONDS),
        "lanes": lanes(),
        "ego": {
            "start": {"lane": "from_south", "s": float(Intersection.layout.line[0]) - 35.0},
            "goal": {"lane": "to_west", "s": 25.0},
        },
        "trajectories": trajectories(),
    }
    scenario.check(document)
    scenario.SHIPPED_PATH.parent.mkdir(exist_ok=True)
    scenario.SHIPPED_PATH.write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
