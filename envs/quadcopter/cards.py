"""Cards of the family ``quadcopter``."""

from rlbench_suite.card import TaskCard

_SWARMS = {"": (8, 2.0), "2": (2, 2.0), "32": (32, 2.5), "128": (128, 4.0)}
"""Suffix of the id to how many vehicles, and the radius of the sphere that they cross, m."""

_ROUGH = {
    "Hover": ("Reach and hold a hover", 500, "stabilisation"),
    "Waypoints": ("Fly to one waypoint after another", 1000, "navigation"),
    "Trajectory": ("Track Lissajous figures, figures of eight and helices", 1000, "tracking"),
}
"""Goals that are also flown under real conditions: what to do, steps, tag."""

_LEVELS = {
    "Rates": "collective thrust and body rates",
    "Velocity": "a velocity and a yaw rate",
    "Waypoint": "a place to fly to",
    "One": "one command for all four rotors, straight up and down",
}
"""What an action may command instead of the four rotors."""

_COURSES = {
    "Waypoints": ("Fly to one waypoint after another, as many as time allows,", "navigation"),
    "Trajectory": ("Track Lissajous figures, figures of eight and helices", "tracking"),
}
"""Goals that are also flown by body rates and by velocities: what to do, tag."""

CARDS = (
    TaskCard(
        id="rlsuite/QuadcopterHover-v0",
        family="quadcopter",
        summary="Reach and hold a hover from a random attitude and velocity with four rotor commands.",
        source="Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds), arXiv:2311.13081",
        entry_point="rlbench_suite.envs.quadcopter.hover:QuadcopterHover",
        reference="rlbench_suite.envs.quadcopter.geometric_control:GeometricControl",
        horizon=500,
        settings={"goal": "hover", "conditions": "calm", "action": "rotors"},
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterHoverPyBullet-v0",
        family="quadcopter",
        summary="Reach and hold a hover as in QuadcopterHover-v0, in another simulator.",
        source="Eschmann, Albani & Loianno 2024, arXiv:2311.13081; Coumans & Bai, PyBullet, pybullet.org",
        entry_point="rlbench_suite.envs.quadcopter.hover_pybullet:QuadcopterHoverPyBullet",
        reference="rlbench_suite.envs.quadcopter.geometric_control:GeometricControl",
        horizon=500,
        variant=True,
        host=True,
        requires="pybullet",
        trained_on="rlsuite/QuadcopterHover-v0",
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation", "transfer"),
    ),
    *(
        TaskCard(
            id=f"rlsuite/QuadcopterHover{level}-v0",
            family="quadcopter",
            summary=f"Reach and hold a hover by {what}.",
            source="Kaufmann, Bauersfeld & Scaramuzza 2022, arXiv:2202.10796; Panerati et al. 2021, arXiv:2103.02142",
            entry_point=f"rlbench_suite.envs.quadcopter.hover_levels:Hover{level}",
            reference=f"rlbench_suite.envs.quadcopter.{'hover_levels' if level == 'One' else 'levels'}:{level}Pilot",
            horizon=500,
            settings={"goal": "hover", "conditions": "calm", "action": level.lower()},
            variant=True,
            replay_tolerance=1.0,
            tags=("continuous", "stabilisation", "action-level"),
        )
        for level, what in _LEVELS.items()
    ),
    TaskCard(
        id="rlsuite/QuadcopterHoverLearningToFly-v0",
        family="quadcopter",
        summary="Reach and hold a hover through noise, pushes and slow motors, rotor speeds unseen, past actions seen.",
        source="Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds), arXiv:2311.13081",
        entry_point="rlbench_suite.envs.quadcopter.hover_learning_to_fly:HoverLearningToFly",
        reference="rlbench_suite.envs.quadcopter.hover_learning_to_fly:LearningToFlyPilot",
        horizon=500,
        settings={"goal": "hover", "conditions": "learning-to-fly", "action": "rotors"},
        variant=True,
        difficulties={"easy": 0, "medium": 2, "hard": 14},
        replay_tolerance=5.0,
        tags=("continuous", "stabilisation", "disturbance"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterRecover-v0",
        family="quadcopter",
        summary="Get level and stop after a throw, from any attitude, spinning, at speed.",
        source="Faessler, Fontana, Forster & Scaramuzza 2015, doi:10.1109/ICRA.2015.7139420",
        entry_point="rlbench_suite.envs.quadcopter.recover:QuadcopterRecover",
        reference="rlbench_suite.envs.quadcopter.recover:RecoveryControl",
        horizon=400,
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterWaypoints-v0",
        family="quadcopter",
        summary="Fly to one waypoint after another, as many as time allows.",
        source="Hwangbo, Sa, Siegwart & Hutter 2017, doi:10.1109/LRA.2017.2720851; Song et al. 2021, arXiv:2103.08624",
        entry_point="rlbench_suite.envs.quadcopter.waypoints:QuadcopterWaypoints",
        reference="rlbench_suite.envs.quadcopter.waypoints:WaypointPilot",
        horizon=1000,
        settings={"goal": "waypoints", "conditions": "calm", "action": "rotors"},
        replay_tolerance=1.0,
        tags=("continuous", "navigation"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterTrajectory-v0",
        family="quadcopter",
        summary="Track Lissajous figures, figures of eight and helices, with a preview of half a second.",
        source="Eschmann, Albani & Loianno 2024, arXiv:2311.13081; Mellinger & Kumar 2011",
        entry_point="rlbench_suite.envs.quadcopter.trajectory:QuadcopterTrajectory",
        reference="rlbench_suite.envs.quadcopter.trajectory:TrajectoryPilot",
        horizon=1000,
        settings={"goal": "trajectory", "conditions": "calm", "action": "rotors"},
        replay_tolerance=1.0,
        tags=("continuous", "tracking"),
    ),
    *(
        TaskCard(
            id=f"rlsuite/Quadcopter{goal}{level}-v0",
            family="quadcopter",
            summary=f"{what} by {_LEVELS[level]}.",
            source="Kaufmann, Bauersfeld & Scaramuzza 2022, arXiv:2202.10796",
            entry_point=f"rlbench_suite.envs.quadcopter.course_levels:{goal}{level}",
            reference=f"rlbench_suite.envs.quadcopter.levels:{level}Pilot",
            horizon=1000,
            settings={"goal": goal.lower(), "conditions": "calm", "action": level.lower()},
            variant=True,
            replay_tolerance=1.0,
            tags=("continuous", tag, "action-level"),
        )
        for goal, (what, tag) in _COURSES.items()
        for level in ("Rates", "Velocity")
    ),
    TaskCard(
        id="rlsuite/QuadcopterLand-v0",
        family="quadcopter",
        summary="Touch down softly, level and near the middle of a pad, through the ground effect.",
        source="Shi et al. 2019 (Neural Lander), arXiv:1811.08027; Panerati et al. 2021, arXiv:2103.02142",
        entry_point="rlbench_suite.envs.quadcopter.land:QuadcopterLand",
        reference="rlbench_suite.envs.quadcopter.land:LandingPilot",
        horizon=600,
        replay_tolerance=0.5,
        tags=("continuous", "landing"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterGates-v0",
        family="quadcopter",
        summary="Race through a procedural ring of gates, as many as time allows.",
        source="Song, Steinweg, Kaufmann & Scaramuzza 2021, arXiv:2103.08624",
        entry_point="rlbench_suite.envs.quadcopter.gates:QuadcopterGates",
        reference="rlbench_suite.envs.quadcopter.gates:GatePilot",
        horizon=1000,
        replay_tolerance=1.0,
        tags=("continuous", "navigation", "racing"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterRotorFailure-v0",
        family="quadcopter",
        summary="Lose a rotor in flight and hold a place with the three that are left, spinning.",
        source="Mueller & D'Andrea 2014, doi:10.1109/ICRA.2014.6906588",
        entry_point="rlbench_suite.envs.quadcopter.rotor_failure:QuadcopterRotorFailure",
        reference="rlbench_suite.envs.quadcopter.rotor_failure:SpinningControl",
        horizon=600,
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation", "failure"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterVision-v0",
        family="quadcopter",
        summary="Fly to one ball after another, round pillars, by what a camera on board sees.",
        source="Loquercio et al. 2018, doi:10.1109/LRA.2018.2795643; Chaumette & Hutchinson 2006; Song et al. 2021",
        entry_point="rlbench_suite.envs.quadcopter.vision:QuadcopterVision",
        reference="rlbench_suite.envs.quadcopter.vision:VisionPilot",
        horizon=600,
        partially_observed=True,
        replay_tolerance=1.0,
        tags=("continuous", "navigation", "vision"),
    ),
    *(
        TaskCard(
            id=f"rlsuite/Quadcopter{goal}Rough-v0",
            family="quadcopter",
            summary=f"{what} in wind and gusts, with a payload and a battery that sags, none of which is seen.",
            source="MIL-F-8785C (Dryden turbulence); Chen & Rincon-Mora 2006, doi:10.1109/TEC.2006.874229",
            entry_point=f"rlbench_suite.envs.quadcopter.rough:Rough{goal}",
            reference="rlbench_suite.envs.quadcopter.rough:RoughPilot",
            horizon=horizon,
            settings={"goal": goal.lower(), "conditions": "rough", "action": "rotors"},
            variant=True,
            partially_observed=True,
            replay_tolerance=1.0,
            tags=("continuous", tag, "disturbance"),
        )
        for goal, (what, horizon, tag) in _ROUGH.items()
    ),
    *(
        TaskCard(
            id=f"rlsuite/QuadcopterSwarm{suffix}-v0",
            family="quadcopter",
            summary=f"{count} quadcopters cross to the other side through the middle, and none hits another.",
            source="van den Berg, Guy, Lin & Manocha 2011, doi:10.1007/978-3-642-19457-3_1; arXiv:2306.09537",
            entry_point="rlbench_suite.envs.quadcopter.swarm:QuadcopterSwarm",
            reference="rlbench_suite.envs.quadcopter.swarm:SwarmPilot",
            horizon=1000,
            settings={"radius": radius},
            variant=bool(suffix),
            replay_tolerance=1.0,
            agents=count,
            tags=("continuous", "multi-agent", "navigation", "safety"),
        )
        for suffix, (count, radius) in _SWARMS.items()
    ),
    *(
        TaskCard(
            id=f"rlsuite/QuadcopterMultiHover{suffix}-v0",
            family="quadcopter",
            summary=f"{count} quadcopters hover one above another, the lower ones in the wakes of the upper ones.",
            source="Panerati et al. 2021 (gym-pybullet-drones), arXiv:2103.02142",
            entry_point="rlbench_suite.envs.quadcopter.multi_hover:QuadcopterMultiHover",
            reference="rlbench_suite.envs.quadcopter.multi_hover:MultiHoverPilot",
            horizon=500,
            settings={"vehicles": count},
            variant=bool(suffix),
            # Wakes are centimetres wide: commands replayed where processors round otherwise (without fused
            # multiply-add) part ways by up to two fifths of the return. No tolerance would mean anything: there
            # a replay fails.
            replay_tolerance=1.0,
            agents=count,
            tags=("continuous", "multi-agent", "stabilisation"),
        )
        for suffix, count in {"": 2, "4": 4}.items()
    ),
)
