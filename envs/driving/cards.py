"""Cards of the family ``driving``."""

from rlbench_suite.card import Constraint, TaskCard

DENSITIES = {"medium": 16.0, "easy": 10.0, "hard": 25.0}
"""Vehicles per kilometre and lane."""
GAPS = {"medium": 9.0, "easy": 10.0, "hard": 8.0}
"""s: time without new cars in each cycle of the traffic lights up the road."""
RING_GAPS = {"medium": 10.0, "easy": 11.0, "hard": 9.0}
"""s: the same before the roundabout, where cars of two lanes that drive at different speeds fill the gaps."""
SOURCE = (
    "Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805; Kesting et al. 2007, "
    "doi:10.3141/1999-10; Polack et al. 2017, doi:10.1109/IVS.2017.7995816"
)
INTERSECTIONS = (
    "Jayawardana et al. 2025, IntersectionZoo, arXiv:2410.15221; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805"
)
PENETRATIONS = {"medium": 0.5, "easy": 1.0, "hard": 0.2}
"""Share of cars that are controlled."""
DELAY = Constraint(
    counts="delay at the stop line against human drivers, s per car",
    limit=1.0,
    reason="nobody notices a second, and savings that slow traffic down are none (IntersectionZoo)",
)


def _constraint(step: float, more: str = "") -> Constraint:
    """Return the limit of near misses for a step of so many seconds."""
    return Constraint(
        counts=f"steps of {step:g} s that end in a crash or with less than 1.5 s to a collision{more}",
        limit=0.2 / step,
        reason="a fifth of a second in 40 s of driving: one second of near miss in every fifth episode",
    )


CARDS = (
    TaskCard(
        id="rlsuite/Highway-v2",
        family="driving",
        summary="Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by lane and speed commands.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.highway:Highway",
        reference="rlbench_suite.envs.driving.gap_testing:GapTestingDriver",
        horizon=40,
        replay_tolerance=0.0001,
        difficulties=DENSITIES,
        constraint=_constraint(1.0),
        chance="in thin traffic a few random drives overtake somebody and hit nobody",
        tags=("discrete", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/HighwayContinuous-v3",
        family="driving",
        summary="Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by pedals and steering.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.highway_continuous:HighwayContinuous",
        reference="rlbench_suite.envs.driving.gap_testing:GapTestingPedals",
        horizon=200,
        replay_tolerance=0.001,
        difficulties=DENSITIES,
        constraint=_constraint(0.2, "; a crash counts as a second, five steps"),
        tags=("continuous", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/Merge-v2",
        chance="drivers on the highway brake for an ego that cuts in, so that a change at random may do",
        family="driving",
        summary="Merge from a ramp into 40 IDM and MOBIL drivers on two lanes before the ramp ends.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.merge:Merge",
        reference="rlbench_suite.envs.driving.merge:MergingDriver",
        horizon=25,
        replay_tolerance=0.0001,
        difficulties=DENSITIES,
        constraint=_constraint(1.0),
        variant=True,
        tags=("discrete", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/Exit-v2",
        family="driving",
        summary="Cross three lanes of IDM and MOBIL drivers to the exit on the right, and do not miss it.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.motorway_exit:Exit",
        reference="rlbench_suite.envs.driving.motorway_exit:ExitingDriver",
        horizon=30,
        replay_tolerance=0.0001,
        difficulties=DENSITIES,
        constraint=_constraint(1.0),
        variant=True,
        tags=("discrete", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/TwoWay-v1",
        family="driving",
        summary="Overtake slow vehicles on a country road through the lane of oncoming traffic.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.two_way:TwoWay",
        reference="rlbench_suite.envs.driving.two_way:OvertakingDriver",
        horizon=40,
        replay_tolerance=0.0001,
        difficulties={"medium": 4.5, "easy": 3.0, "hard": 6.0},
        constraint=_constraint(1.0),
        variant=True,
        tags=("discrete", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/UTurn-v1",
        family="driving",
        summary="Overtake slow vehicles before and behind a U-turn of two lanes, and brake for the bend.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.u_turn:UTurn",
        reference="rlbench_suite.envs.driving.u_turn:UTurnDriver",
        horizon=40,
        replay_tolerance=0.0001,
        difficulties={"medium": 21.0, "easy": 18.0, "hard": 24.0},
        constraint=_constraint(1.0),
        variant=True,
        tags=("discrete", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/LanguageDriving-v2",
        family="driving",
        summary="Drive as a passenger says, into a lane or at a speed, among 49 IDM and MOBIL drivers.",
        source=SOURCE,
        entry_point="rlbench_suite.envs.driving.language_driving:LanguageDriving",
        reference="rlbench_suite.envs.driving.language_driving:ObedientDriver",
        horizon=60,
        difficulties=DENSITIES,
        constraint=_constraint(1.0),
        variant=True,
        tags=("discrete", "safe", "language", "driving"),
    ),
    TaskCard(
        id="rlsuite/Parking-v0",
        family="driving",
        summary="Park a car in a given spot of a lot, forwards or backwards, and stand still there.",
        source="Leurent 2018, highway-env; Reeds & Shepp 1990; Polack et al. 2017, doi:10.1109/IVS.2017.7995816",
        entry_point="rlbench_suite.envs.driving.parking:Parking",
        reference="rlbench_suite.envs.driving.parking:ParkingDriver",
        horizon=200,
        replay_tolerance=1.0,
        constraint=Constraint(
            counts="crashes", limit=0.01, reason="one crash in a hundred episodes, as in fleets of quadcopters"
        ),
        variant=True,
        tags=("continuous", "goal-conditioned", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/LaneKeeping-v0",
        family="driving",
        summary="Keep a car of unknown mass and friction on a winding lane at constant speed, by steering alone.",
        source="Rajamani 2012, sections 2.3 and 2.5; Hoffmann et al. 2007, doi:10.1109/ACC.2007.4282788; Leurent 2018, "
        "highway-env",
        entry_point="rlbench_suite.envs.driving.lane_keeping:LaneKeeping",
        reference="rlbench_suite.envs.driving.lane_keeping:Stanley",
        horizon=200,
        replay_tolerance=0.01,
        constraint=Constraint(
            counts="steps of 0.1 s that end with a wheel on the line", limit=2.0, reason="a hundredth of an episode"
        ),
        variant=True,
        tags=("continuous", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/Racetrack-v0",
        family="driving",
        summary="Steer a car around a closed track of two lanes, past slower cars.",
        source="Leurent 2018, highway-env; Polack et al. 2017, doi:10.1109/IVS.2017.7995816",
        entry_point="rlbench_suite.envs.driving.racetrack:Racetrack",
        reference="rlbench_suite.envs.driving.racetrack:TrackDriver",
        horizon=300,
        replay_tolerance=0.01,
        difficulties={"medium": 2.0, "easy": 1.0, "hard": 4.0},
        constraint=Constraint(
            counts="steps of 0.2 s that end in a crash or with less than 1.5 s to a collision",
            limit=0.05,
            reason="one crash or near miss in twenty episodes; a car that looks ahead has none",
        ),
        variant=True,
        tags=("continuous", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/Roundabout-v0",
        chance="traffic from the west pauses for a fifth of the time, so that a car that never looks may find a gap",
        family="driving",
        summary="Wait for a gap, enter the inner lane of a roundabout, and leave by the second exit.",
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805",
        entry_point="rlbench_suite.envs.driving.roundabout:Roundabout",
        reference="rlbench_suite.envs.driving.gap_acceptance:GapAcceptance",
        horizon=100,
        difficulties=RING_GAPS,
        constraint=_constraint(1.0),
        variant=True,
        tags=("discrete", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/Intersection-v0",
        chance="the main road is empty for a fifth of the time, so that even a car that never looks may find it so",
        family="driving",
        summary="Turn left from a minor road across a main road without traffic lights.",
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805",
        entry_point="rlbench_suite.envs.driving.intersection:Intersection",
        reference="rlbench_suite.envs.driving.gap_acceptance:GapAcceptance",
        horizon=100,
        difficulties=GAPS,
        constraint=_constraint(1.0),
        variant=True,
        tags=("discrete", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/OwnRoads-v1",
        family="driving",
        summary="Drive to a goal on roads of your own, among recorded vehicles that do not react.",
        source="Kothari et al. 2021, DriverGym, arXiv:2111.06889; Leurent 2018, highway-env",
        entry_point="rlbench_suite.envs.driving.own_roads:OwnRoads",
        reference="rlbench_suite.envs.driving.foresight:Foresight",
        horizon=300,
        replay_tolerance=0.01,
        constraint=Constraint(
            counts="steps of 0.2 s that end with less than 1.5 s to a collision; a crash counts as five",
            limit=0.25,
            reason="a crash or a second of near miss in every twentieth episode; a driver that looks ahead has less",
        ),
        variant=True,
        tags=("continuous", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/EcoDriving-v0",
        family="driving",
        summary="Cars that know the signal plan of a junction ease off in time, so that all traffic emits less CO2.",
        source=INTERSECTIONS,
        entry_point="rlbench_suite.envs.driving.eco_driving:EcoDriving",
        reference="rlbench_suite.envs.driving.speed_advice:SpeedAdvice",
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
        source=INTERSECTIONS,
        entry_point="rlbench_suite.envs.driving.eco_driving_car:EcoDrivingCar",
        reference="rlbench_suite.envs.driving.eco_driving_car:OwnSpeedAdvice",
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
        source=f"{INTERSECTIONS}; EMEP/EEA air pollutant emission inventory guidebook, 1.A.3.b",
        entry_point="rlbench_suite.envs.driving.eco_driving_city:EcoDrivingCity",
        reference="rlbench_suite.envs.driving.eco_driving_city:CityAdvice",
        horizon=240,
        difficulties=PENETRATIONS,
        agents=48,
        constraint=DELAY,
        variant=True,
        tags=("continuous", "multi-agent", "partially-observed", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/TrafficSim-v0",
        family="driving",
        summary="Drive all cars around an ego as the humans would whom you have watched, and obey commands.",
        source="Chen et al. 2025, RIFT, arXiv:2505.03344; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805",
        entry_point="rlbench_suite.envs.driving.traffic_sim:TrafficSim",
        reference="rlbench_suite.envs.driving.estimated_drivers:EstimatedDrivers",
        horizon=120,
        replay_tolerance=0.1,
        difficulties={"medium": 0.4, "easy": 0.2, "hard": 0.6},
        agents=23,
        constraint=Constraint(
            counts="collisions", limit=0.01, reason="one in a hundred episodes, which are 23 minutes of driving each"
        ),
        variant=True,
        tags=("continuous", "multi-agent", "partially-observed", "safe", "driving"),
    ),
)
