"""Cards of the tasks of many quadcopters."""

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard

_SWARMS = {"": (8, 2.0), "2": (2, 2.0), "32": (32, 2.5), "128": (128, 4.0)}
"""Suffix of the id to the number of vehicles and the radius of the sphere that they cross, m."""

_WRECKS = 0.01
"""Largest mean share of vehicles wrecked in an episode."""


def _constraint(vehicles: int) -> Constraint:
    """Return the limit of wrecks among so many vehicles."""
    return Constraint(
        counts="vehicles wrecked",
        limit=_WRECKS * vehicles,
        reason=f"one vehicle in {1 / _WRECKS:.0f}",
    )


CARDS = (
    *(
        TaskCard(
            id=f"rlsuite/QuadcopterSwarm{suffix}-v0",
            family="quadcopter",
            summary=(
                f"{count} quadcopters cross to the other side through the middle, and none hits "
                "another."
            ),
            source=(
                "van den Berg, Guy, Lin & Manocha 2011, doi:10.1007/978-3-642-19457-3_1; "
                "arXiv:2306.09537"
            ),
            entry_point="rlbench_suite.envs.quadcopter.tasks.multi_agent.swarm:QuadcopterSwarm",
            reference="rlbench_suite.envs.quadcopter.tasks.multi_agent.swarm:SwarmPilot",
            horizon=1000,
            settings={"vehicles": count, "radius": radius},
            variant=bool(suffix),
            replay_tolerance=1.0,
            agents=count,
            constraint=_constraint(count),
            tags=("continuous", "multi-agent", "navigation", "safety"),
        )
        for suffix, (count, radius) in _SWARMS.items()
    ),
    *(
        TaskCard(
            id=f"rlsuite/QuadcopterMultiHover{suffix}-v0",
            family="quadcopter",
            summary=(
                f"{count} quadcopters hover one above another, the lower ones in the wakes of the "
                "upper ones."
            ),
            source="Panerati et al. 2021 (gym-pybullet-drones), arXiv:2103.02142",
            entry_point=(
                "rlbench_suite.envs.quadcopter.tasks.multi_agent.multi_hover:QuadcopterMultiHover"
            ),
            reference="rlbench_suite.envs.quadcopter.tasks.multi_agent.multi_hover:MultiHoverPilot",
            horizon=500,
            settings={"vehicles": count},
            variant=bool(suffix),
            # Wakes are centimetres wide. On a processor that rounds otherwise (without fused
            # multiply-add) replayed commands change the return by up to two fifths. No tolerance
            # would mean anything there: a replay fails.
            replay_tolerance=1.0,
            agents=count,
            constraint=_constraint(count),
            tags=("continuous", "multi-agent", "stabilisation"),
        )
        for suffix, count in {"": 2, "4": 4}.items()
    ),
)
