"""Cards of the family ``driving``, but for those of eco-driving."""

from typing import Any

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard

FAMILY = "rlbench_suite.envs.driving"
DENSITIES = {"medium": 16.0, "easy": 10.0, "hard": 25.0}  # Vehicles per kilometre and lane
# s: time without new cars in each cycle of the traffic lights up the road.
GAPS = {"medium": 9.0, "easy": 10.0, "hard": 8.0}
# s: the same before the roundabout, where cars of two lanes that drive at different speeds fill the
# gaps.
RING_GAPS = {"medium": 10.0, "easy": 11.0, "hard": 9.0}
SOURCE = (
    "Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805; Kesting et al. "
    "2007, doi:10.3141/1999-10; Polack et al. 2017, doi:10.1109/IVS.2017.7995816"
)


def _constraint(step: float, more: str = "") -> Constraint:
    """Return the limit of near misses for a step of so many seconds."""
    return Constraint(
        counts=(
            f"steps of {step:g} s that end in a crash or with less than 1.5 s to a collision{more}"
        ),
        limit=0.2 / step,
        reason=(
            "a fifth of a second in 40 s of driving: one second of near miss in every fifth episode"
        ),
    )


def _driving(name: str, task: str, player: str, **fields: Any) -> TaskCard:
    """Make a card of the family.

    Args:
        name: the id without its prefix.
        task: its ``module:Class`` in ``tasks``.
        player: the reference player's ``module:Class`` in the family.
        fields: of the card.
    """
    return TaskCard(
        id=f"rlsuite/{name}",
        family="driving",
        entry_point=f"{FAMILY}.tasks.{task}",
        reference=f"{FAMILY}.{player}",
        **({"variant": True} | fields),
    )


def _in_traffic(name: str, task: str, player: str, **fields: Any) -> TaskCard:
    """Make the card of a task of one decision a second among drivers on a road of lanes."""
    usual = {
        "source": SOURCE,
        "difficulties": DENSITIES,
        "replay_tolerance": 0.0001,
        "constraint": _constraint(1.0),
        "tags": ("discrete", "safe", "driving"),
    }
    return _driving(name, task, player, **(usual | fields))


CARDS = (
    _in_traffic(
        "Highway-v0",
        "highway:Highway",
        "players.gap_testing:GapTestingDriver",
        summary=(
            "Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by lane and "
            "speed commands."
        ),
        horizon=40,
        chance="in thin traffic a few random drives overtake somebody and hit nobody",
        variant=False,
    ),
    _driving(
        "HighwayContinuous-v0",
        "highway_continuous:HighwayContinuous",
        "players.gap_testing:GapTestingPedals",
        summary=(
            "Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by pedals and "
            "steering."
        ),
        source=SOURCE,
        horizon=200,
        difficulties=DENSITIES,
        replay_tolerance=0.001,
        constraint=_constraint(0.2, "; a crash counts as a second, five steps"),
        variant=False,
        tags=("continuous", "safe", "driving"),
    ),
    _in_traffic(
        "Merge-v0",
        "merge:Merge",
        "tasks.merge:MergingDriver",
        summary=(
            "Merge from a ramp into 40 IDM and MOBIL drivers on two lanes before the ramp ends."
        ),
        horizon=25,
        chance=(
            "drivers on the highway brake for an ego that cuts in, so that a change at random may "
            "do"
        ),
        open_loop=(
            "drivers on the highway brake for an ego that cuts in, so that a change at a fixed "
            "time does in half of the episodes"
        ),
    ),
    _in_traffic(
        "Exit-v0",
        "motorway_exit:Exit",
        "tasks.motorway_exit:ExitingDriver",
        summary=(
            "Cross three lanes of IDM and MOBIL drivers to the exit on the right, and do not miss "
            "it."
        ),
        horizon=30,
        open_loop=(
            "the exit lies at the same place in every episode, and a plan to move right three "
            "times finds free gaps in three of ten"
        ),
    ),
    _in_traffic(
        "TwoWay-v0",
        "two_way:TwoWay",
        "tasks.two_way:OvertakingDriver",
        summary="Overtake slow vehicles on a country road through the lane of oncoming traffic.",
        horizon=40,
        difficulties={"medium": 4.5, "easy": 3.0, "hard": 6.0},
        open_loop=(
            "the vehicles ahead drive at much the same speeds, so that a fixed programme of speeds "
            "earns what following them earns. Success asks to overtake them, which no blind player "
            "of the search does"
        ),
    ),
    _in_traffic(
        "UTurn-v0",
        "u_turn:UTurn",
        "tasks.u_turn:UTurnDriver",
        summary=(
            "Overtake slow vehicles before and behind a U-turn of two lanes, and brake for the "
            "bend."
        ),
        horizon=40,
        difficulties={"medium": 21.0, "easy": 18.0, "hard": 24.0},
    ),
    _driving(
        "LanguageDriving-v0",
        "language_driving:LanguageDriving",
        "tasks.language_driving:ObedientDriver",
        summary=(
            "Drive as a passenger says, into a lane or at a speed, among 49 IDM and MOBIL drivers."
        ),
        source=SOURCE,
        horizon=60,
        difficulties=DENSITIES,
        constraint=_constraint(1.0),
        hard_for_reference=(
            "near a jam hardly any lane flows at 25 m/s, as a third of the wishes for a speed ask"
        ),
        tags=("discrete", "safe", "language", "driving"),
    ),
    _driving(
        "Parking-v0",
        "parking:Parking",
        "tasks.parking:ParkingDriver",
        summary=(
            "Park a car in a given spot of a lot, forwards or backwards, and stand still there."
        ),
        source=(
            "Leurent 2018, highway-env; Reeds & Shepp 1990; Polack et al. 2017, "
            "doi:10.1109/IVS.2017.7995816"
        ),
        horizon=200,
        replay_tolerance=1.0,
        constraint=Constraint(
            counts="crashes",
            limit=0.01,
            reason="one crash in a hundred episodes, as in fleets of quadcopters",
        ),
        choices={"goal": ("False", "True")},
        tags=("continuous", "goal-conditioned", "safe", "driving"),
    ),
    _driving(
        "LaneKeeping-v0",
        "lane_keeping:LaneKeeping",
        "tasks.lane_keeping:Stanley",
        summary=(
            "Keep a car of unknown mass and friction on a winding lane at constant speed, by "
            "steering alone."
        ),
        source=(
            "Rajamani 2012, sections 2.3 and 2.5; Hoffmann et al. 2007, "
            "doi:10.1109/ACC.2007.4282788; Leurent 2018, highway-env"
        ),
        horizon=200,
        replay_tolerance=0.01,
        constraint=Constraint(
            counts="steps of 0.1 s that end with a wheel on the line",
            limit=2.0,
            reason="a hundredth of an episode",
        ),
        tags=("continuous", "safe", "driving"),
    ),
    _driving(
        "LaneKeepingObstacles-v0",
        "lane_keeping_obstacles:LaneKeepingObstacles",
        "tasks.lane_keeping_obstacles:StanleyAround",
        summary=(
            "Keep a car on a winding road by steering alone, around obstacles that a lidar sees."
        ),
        source=(
            "Rajamani 2012, sections 2.3 and 2.5; Hoffmann et al. 2007, "
            "doi:10.1109/ACC.2007.4282788; Leurent 2018, highway-env"
        ),
        horizon=200,
        replay_tolerance=0.01,
        constraint=Constraint(
            counts="steps of 0.1 s with an obstacle nearer than 0.3 m; a crash counts as ten",
            limit=1.0,
            reason="a crash or a second of near miss in every tenth episode",
        ),
        choices={"observation": ("lidar", "state", "camera")},
        tags=("continuous", "safe", "driving"),
    ),
    _driving(
        "Racetrack-v0",
        "racetrack:Racetrack",
        "tasks.racetrack:TrackDriver",
        summary="Steer a car around a closed track of two lanes, past slower cars.",
        source="Leurent 2018, highway-env; Polack et al. 2017, doi:10.1109/IVS.2017.7995816",
        horizon=300,
        difficulties={"medium": 2.0, "easy": 1.0, "hard": 4.0},
        replay_tolerance=0.01,
        constraint=Constraint(
            counts="steps of 0.2 s that end in a crash or with less than 1.5 s to a collision",
            limit=0.05,
            reason="one crash or near miss in twenty episodes; a car that looks ahead has none",
        ),
        tags=("continuous", "safe", "driving"),
    ),
    _driving(
        "Roundabout-v0",
        "roundabout:Roundabout",
        "players.gap_acceptance:GapAcceptance",
        summary=(
            "Wait for a gap, enter the inner lane of a roundabout, and leave by the second exit."
        ),
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805",
        horizon=100,
        difficulties=RING_GAPS,
        constraint=_constraint(1.0),
        chance=(
            "traffic from the west pauses for a fifth of the time, so that a car that never looks "
            "may find a gap"
        ),
        tags=("discrete", "safe", "driving"),
    ),
    _driving(
        "Intersection-v0",
        "intersection:Intersection",
        "players.gap_acceptance:GapAcceptance",
        summary="Turn left from a minor road across a main road without traffic lights.",
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805",
        horizon=100,
        difficulties=GAPS,
        constraint=_constraint(1.0),
        chance=(
            "the main road is empty for a fifth of the time, so that even a car that never looks "
            "may find it so"
        ),
        tags=("discrete", "safe", "driving"),
    ),
    _driving(
        "OwnRoads-v0",
        "own_roads:OwnRoads",
        "players.foresight:Foresight",
        summary="Drive to a goal on roads of your own, among recorded vehicles that do not react.",
        source="Kothari et al. 2021, DriverGym, arXiv:2111.06889; Leurent 2018, highway-env",
        horizon=300,
        replay_tolerance=0.01,
        constraint=Constraint(
            counts=(
                "steps of 0.2 s that end with less than 1.5 s to a collision; a crash counts as "
                "five"
            ),
            limit=0.25,
            reason=(
                "a crash or a second of near miss in every twentieth episode; a driver that looks "
                "ahead has less"
            ),
        ),
        chance="a car that keeps its speed and never looks may find a gap in the recorded traffic",
        tags=("continuous", "safe", "driving"),
    ),
    _driving(
        "TrafficSim-v0",
        "traffic_sim:TrafficSim",
        "players.estimated_drivers:EstimatedDrivers",
        summary=(
            "Drive all cars around an ego as the humans would whom you have watched, and obey "
            "commands."
        ),
        source=(
            "Chen et al. 2025, RIFT, arXiv:2505.03344; Treiber et al. 2000, "
            "doi:10.1103/PhysRevE.62.1805"
        ),
        horizon=120,
        difficulties={"medium": 0.4, "easy": 0.2, "hard": 0.6},
        replay_tolerance=0.1,
        constraint=Constraint(
            counts="times that a car brakes by itself",
            limit=1.0,
            reason="one an episode of 23 minutes of driving; humans need none",
        ),
        hard_for_reference=(
            "20 s of watching do not show how fast a driver would like to drive who is held up"
        ),
        agents=23,
        tags=("continuous", "multi-agent", "partially-observed", "safe", "driving"),
    ),
)
