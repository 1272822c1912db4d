"""Cards of the tasks of one quadcopter."""

from rlbench_suite.core.task_card import TaskCard

_ROUGH = {
    "Hover": ("Reach and hold a hover", 500, "stabilisation"),
    "Waypoints": ("Fly to one waypoint after another", 1000, "navigation"),
    "Trajectory": ("Track Lissajous figures, figures of eight and helices", 1000, "tracking"),
}
"""Goals that are also flown in rough conditions: instruction, steps, tag."""

_LEVELS = {
    "Rates": ("collective thrust and body rates", "commands.by_command"),
    "Velocity": ("a velocity and a yaw rate", "commands.by_command"),
    "Waypoint": ("a place to fly to", "commands.by_command"),
    "One": ("one command for all four rotors, straight up and down", "commands.hover_by_command"),
}
"""Action levels besides the four rotors.

Each has the command of an action, and the module of the reference player.
"""

_COURSES = {
    "Waypoints": ("Fly to one waypoint after another, as many as time allows,", "navigation"),
    "Trajectory": ("Track Lissajous figures, figures of eight and helices", "tracking"),
}
"""Goals that are also flown by body rates and by velocities: instruction, tag."""

_LATENCY = ("0", "10", "20", "30")
"""Milliseconds by which commands arrive late."""

_LATE = {
    "Hover": ("Reach and hold a hover", 500, "stabilisation", "control.geometric:GeometricControl"),
    "Trajectory": (_COURSES["Trajectory"][0], 1000, "tracking", "tasks.trajectory:TrajectoryPilot"),
    "Land": ("Touch down softly on a pad", 600, "landing", "tasks.land:LandingPilot"),
    "Gates": ("Race through a ring of gates", 1000, "navigation", "tasks.gates:GatePilot"),
}
"""Goals that are also flown with latency and noise: instruction, steps, tag, reference player."""

CARDS = (
    TaskCard(
        id="rlsuite/QuadcopterHover-v0",
        family="quadcopter",
        summary=(
            "Reach and hold a hover from a random attitude and velocity with four rotor commands."
        ),
        source="Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds), arXiv:2311.13081",
        entry_point="rlbench_suite.envs.quadcopter.tasks.hover:make",
        reference="rlbench_suite.envs.quadcopter.control.geometric:GeometricControl",
        horizon=500,
        settings={"goal": "hover", "conditions": "calm", "action": "rotors"},
        choices={"latency": _LATENCY},
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterHoverPyBullet-v0",
        family="quadcopter",
        summary="Reach and hold a hover as in QuadcopterHover-v0, in another simulator.",
        source=(
            "Eschmann, Albani & Loianno 2024, arXiv:2311.13081; Coumans & Bai, PyBullet, "
            "pybullet.org"
        ),
        entry_point="rlbench_suite.envs.quadcopter.tasks.hover_pybullet:QuadcopterHoverPyBullet",
        reference="rlbench_suite.envs.quadcopter.control.geometric:GeometricControl",
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
            source=(
                "Kaufmann, Bauersfeld & Scaramuzza 2022, arXiv:2202.10796; Panerati et al. 2021, "
                "arXiv:2103.02142"
            ),
            entry_point=(
                f"rlbench_suite.envs.quadcopter.tasks.commands.hover_by_command:Hover{level}"
            ),
            reference=f"rlbench_suite.envs.quadcopter.tasks.{module}:{level}Pilot",
            horizon=500,
            settings={"goal": "hover", "conditions": "calm", "action": level.lower()},
            variant=True,
            replay_tolerance=1.0,
            tags=("continuous", "stabilisation", "action-level"),
        )
        for level, (what, module) in _LEVELS.items()
    ),
    TaskCard(
        id="rlsuite/QuadcopterHoverLearningToFly-v0",
        family="quadcopter",
        summary=(
            "Reach and hold a hover despite noise, pushes and slow motors; rotor speeds are hidden."
        ),
        source="Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds), arXiv:2311.13081",
        entry_point="rlbench_suite.envs.quadcopter.tasks.hover_learning_to_fly:HoverLearningToFly",
        reference="rlbench_suite.envs.quadcopter.tasks.hover_learning_to_fly:LearningToFlyPilot",
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
        entry_point="rlbench_suite.envs.quadcopter.tasks.recover:make",
        reference="rlbench_suite.envs.quadcopter.tasks.recover:RecoveryControl",
        horizon=400,
        settings={"goal": "recover", "conditions": "calm", "action": "rotors"},
        choices={"latency": _LATENCY},
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterWaypoints-v0",
        family="quadcopter",
        summary="Fly to one waypoint after another, as many as time allows.",
        source=(
            "Hwangbo, Sa, Siegwart & Hutter 2017, doi:10.1109/LRA.2017.2720851; Song et al. 2021, "
            "arXiv:2103.08624"
        ),
        entry_point="rlbench_suite.envs.quadcopter.tasks.waypoints:make",
        reference="rlbench_suite.envs.quadcopter.tasks.waypoints:WaypointPilot",
        horizon=1000,
        settings={"goal": "waypoints", "conditions": "calm", "action": "rotors"},
        choices={"latency": _LATENCY},
        replay_tolerance=1.0,
        tags=("continuous", "navigation"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterTrajectory-v0",
        family="quadcopter",
        summary=(
            "Track Lissajous figures, figures of eight and helices, with a preview of half a "
            "second."
        ),
        source="Eschmann, Albani & Loianno 2024, arXiv:2311.13081; Mellinger & Kumar 2011",
        entry_point="rlbench_suite.envs.quadcopter.tasks.trajectory:make",
        reference="rlbench_suite.envs.quadcopter.tasks.trajectory:TrajectoryPilot",
        horizon=1000,
        settings={"goal": "trajectory", "conditions": "calm", "action": "rotors"},
        choices={"latency": _LATENCY},
        replay_tolerance=1.0,
        tags=("continuous", "tracking"),
    ),
    *(
        TaskCard(
            id=f"rlsuite/Quadcopter{goal}{level}-v0",
            family="quadcopter",
            summary=f"{what} by {_LEVELS[level][0]}.",
            source="Kaufmann, Bauersfeld & Scaramuzza 2022, arXiv:2202.10796",
            entry_point=(
                f"rlbench_suite.envs.quadcopter.tasks.commands.courses_by_command:{goal}{level}"
            ),
            reference=f"rlbench_suite.envs.quadcopter.tasks.commands.by_command:{level}Pilot",
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
        source=(
            "Shi et al. 2019 (Neural Lander), arXiv:1811.08027; Panerati et al. 2021, "
            "arXiv:2103.02142"
        ),
        entry_point="rlbench_suite.envs.quadcopter.tasks.land:make",
        reference="rlbench_suite.envs.quadcopter.tasks.land:LandingPilot",
        horizon=600,
        settings={"goal": "land", "conditions": "calm", "action": "rotors"},
        choices={"latency": _LATENCY},
        replay_tolerance=0.5,
        tags=("continuous", "landing"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterGates-v0",
        family="quadcopter",
        summary="Race through a procedural ring of gates, as many as time allows.",
        source="Song, Steinweg, Kaufmann & Scaramuzza 2021, arXiv:2103.08624",
        entry_point="rlbench_suite.envs.quadcopter.tasks.gates:make",
        reference="rlbench_suite.envs.quadcopter.tasks.gates:GatePilot",
        horizon=1000,
        settings={"goal": "gates", "conditions": "calm", "action": "rotors"},
        choices={"latency": _LATENCY},
        replay_tolerance=1.0,
        tags=("continuous", "navigation", "racing"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterRotorFailure-v0",
        family="quadcopter",
        summary="Lose a rotor in flight and hold a place with the other three, spinning.",
        source="Mueller & D'Andrea 2014, doi:10.1109/ICRA.2014.6906588",
        entry_point="rlbench_suite.envs.quadcopter.tasks.rotor_failure:QuadcopterRotorFailure",
        reference="rlbench_suite.envs.quadcopter.tasks.rotor_failure:SpinningControl",
        horizon=600,
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation", "failure"),
    ),
    TaskCard(
        id="rlsuite/QuadcopterVision-v0",
        family="quadcopter",
        summary="Fly to one ball after another, round pillars, by the image of a camera on board.",
        source=(
            "Loquercio et al. 2018, doi:10.1109/LRA.2018.2795643; Chaumette & Hutchinson 2006; "
            "Song et al. 2021"
        ),
        entry_point="rlbench_suite.envs.quadcopter.tasks.vision:QuadcopterVision",
        reference="rlbench_suite.envs.quadcopter.tasks.vision:VisionPilot",
        horizon=600,
        partially_observed=True,
        replay_tolerance=1.0,
        tags=("continuous", "navigation", "vision"),
    ),
    TaskCard(
        id="rlsuite/TemporalLogicQuadcopter-v0",
        family="quadcopter",
        summary=(
            "Fly a quadcopter so that a specification in signal temporal logic holds: reach, "
            "avoid, order, stay."
        ),
        source=(
            "Donze & Maler 2010, doi:10.1007/978-3-642-15297-9_9; Pant, Abbas, Quaye & Mangharam "
            "2018, doi:10.1109/ICCPS.2018.00026; Kaufmann, Bauersfeld & Scaramuzza 2022, "
            "arXiv:2202.10796"
        ),
        entry_point="rlbench_suite.envs.quadcopter.tasks.temporal_logic:TemporalLogicQuadcopter",
        reference="rlbench_suite.envs.quadcopter.tasks.specification_pilot:SpecificationPilot",
        horizon=150,
        variant=True,
        replay_tolerance=1.0,
        tags=("continuous", "navigation", "temporal-logic"),
    ),
    *(
        TaskCard(
            id=f"rlsuite/Quadcopter{goal}Rough-v0",
            family="quadcopter",
            summary=(
                f"{what} in wind and gusts, with a payload and a battery that sags, none of which "
                "is seen."
            ),
            source=(
                "MIL-F-8785C (Dryden turbulence); Chen & Rincon-Mora 2006, "
                "doi:10.1109/TEC.2006.874229"
            ),
            entry_point=f"rlbench_suite.envs.quadcopter.tasks.rough:Rough{goal}",
            reference="rlbench_suite.envs.quadcopter.tasks.rough:RoughPilot",
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
            id=f"rlsuite/Quadcopter{goal}Latency-v0",
            family="quadcopter",
            summary=(
                f"{what} with commands that arrive 20 ms late, noisy sensors and an inertia known "
                "within a factor."
            ),
            source=(
                "Eschmann, Albani & Loianno 2024, arXiv:2311.13081; Forster 2015, "
                "doi:10.3929/ethz-b-000214143"
            ),
            entry_point=f"rlbench_suite.envs.quadcopter.tasks.latency:{goal}Latency",
            reference=f"rlbench_suite.envs.quadcopter.{player}",
            horizon=horizon,
            settings={"goal": goal.lower(), "conditions": "latency", "action": "rotors"},
            choices={"latency": ("20", "0", "10", "30")},
            variant=True,
            partially_observed=True,
            replay_tolerance=1.0,
            tags=("continuous", tag, "disturbance"),
        )
        for goal, (what, horizon, tag, player) in _LATE.items()
    ),
)
