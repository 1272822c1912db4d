"""Cards of eco-driving."""

from rlbench_suite.task_card import Constraint, TaskCard

SOURCE = "Jayawardana et al. 2025, IntersectionZoo, arXiv:2410.15221; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805"
PENETRATIONS = {"medium": 0.5, "easy": 1.0, "hard": 0.2}  # Share of cars that are controlled
DELAY = Constraint(
    counts="delay at the stop line against human drivers, s per car",
    limit=1.0,
    reason="nobody notices a second, and savings that slow traffic down are none (IntersectionZoo)",
)

CARDS = (
    TaskCard(
        id="rlsuite/EcoDriving-v0",
        family="driving",
        summary="Cars that know the signal plan of a junction ease off in time, so that all traffic emits less CO2.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.tasks.eco_driving.eco_driving:EcoDriving",
        reference="rlbench_suite.envs.driving.players.speed_advice:SpeedAdvice",
        horizon=240,
        difficulties=PENETRATIONS,
        agents=48,
        constraint=DELAY,
        variant=True,
        tags=("continuous", "multi-agent", "partially-observed", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/EcoDrivingCar-v0",
        family="driving",
        summary="A car that knows the signal plan eases off in time, so that it and those behind it emit less CO2.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_car:EcoDrivingCar",
        reference="rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_car:OwnSpeedAdvice",
        horizon=240,
        constraint=DELAY,
        variant=True,
        tags=("continuous", "partially-observed", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/EcoDrivingCity-v0",
        family="driving",
        summary="Vehicles that know the signal plans of cities they have never seen ease off in time, with trucks and "
        "cold engines among them.",
        source=f"{SOURCE}; EMEP/EEA air pollutant emission inventory guidebook, 1.A.3.b",
        entry_point="rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_city:EcoDrivingCity",
        reference="rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_city:CityAdvice",
        horizon=240,
        difficulties=PENETRATIONS,
        agents=48,
        constraint=DELAY,
        variant=True,
        tags=("continuous", "multi-agent", "partially-observed", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/EcoDrivingLanes-v0",
        family="driving",
        summary="Cars that know the signal plan of a junction ease off in time, on roads with lane changes and turns.",
        source=f"{SOURCE}; Kesting et al. 2007, doi:10.3141/1999-10",
        entry_point="rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_lanes:EcoDrivingLanes",
        reference="rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_lanes:LanesAdvice",
        horizon=240,
        difficulties=PENETRATIONS,
        agents=48,
        constraint=DELAY,
        variant=True,
        tags=("continuous", "multi-agent", "partially-observed", "safe", "driving"),
    ),
)
