"""Cards of eco-driving."""

from typing import Any

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard

SOURCE = (
    "Jayawardana et al. 2025, IntersectionZoo, arXiv:2410.15221; Treiber et al. 2000, "
    "doi:10.1103/PhysRevE.62.1805"
)
PENETRATIONS = {"medium": 0.5, "easy": 1.0, "hard": 0.2}  # Share of cars that are controlled
DELAY = Constraint(
    counts="delay at the stop line against human drivers, s per car",
    limit=1.0,
    reason="nobody notices a second, and savings that slow traffic down are none (IntersectionZoo)",
)

# Tags of tasks with many cars.
FLEET = ("continuous", "multi-agent", "partially-observed", "safe", "driving")


def _eco_driving(name: str, task: str, player: str, **fields: Any) -> TaskCard:
    """Make a card of eco-driving.

    Args:
        name: the id without its prefix.
        task: its ``module:Class`` in this folder.
        player: the reference player's ``module:Class`` in the family.
        fields: of the card.
    """
    usual: dict[str, Any] = {
        "source": SOURCE,
        "difficulties": PENETRATIONS,
        "agents": 48,
        "tags": FLEET,
    }
    return TaskCard(
        id=f"rlsuite/{name}",
        family="driving",
        entry_point=f"rlbench_suite.envs.driving.tasks.eco_driving.{task}",
        reference=f"rlbench_suite.envs.driving.{player}",
        horizon=240,
        constraint=DELAY,
        variant=True,
        **(usual | fields),
    )


CARDS = (
    _eco_driving(
        "EcoDriving-v0",
        "eco_driving:EcoDriving",
        "players.speed_advice:SpeedAdvice",
        summary=(
            "Cars that know the signal plan of a junction ease off in time, so that all traffic "
            "emits less CO2."
        ),
    ),
    _eco_driving(
        "EcoDrivingCar-v0",
        "eco_driving_car:EcoDrivingCar",
        "tasks.eco_driving.eco_driving_car:OwnSpeedAdvice",
        summary=(
            "A car that knows the signal plan eases off in time, so that it and those behind it "
            "emit less CO2."
        ),
        difficulties={},
        agents=1,
        tags=("continuous", "partially-observed", "safe", "driving"),
    ),
    _eco_driving(
        "EcoDrivingCity-v0",
        "eco_driving_city:EcoDrivingCity",
        "tasks.eco_driving.eco_driving_city:CityAdvice",
        summary=(
            "Vehicles that know the signal plans of cities they have never seen ease off in time, "
            "with trucks and cold engines among them."
        ),
        source=f"{SOURCE}; EMEP/EEA air pollutant emission inventory guidebook, 1.A.3.b",
    ),
    _eco_driving(
        "EcoDrivingLanes-v0",
        "eco_driving_lanes:EcoDrivingLanes",
        "tasks.eco_driving.eco_driving_lanes:LanesAdvice",
        summary=(
            "Cars that know the signal plan of a junction ease off in time, on roads with lane "
            "changes and turns."
        ),
        source=f"{SOURCE}; Kesting et al. 2007, doi:10.3141/1999-10",
    ),
)
