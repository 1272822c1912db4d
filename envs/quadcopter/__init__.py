"""Quadcopters: rigid-body flight with motor lag, in SI units."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/QuadcopterHover-v0",
        family="quadcopter",
        summary="Reach and hold a hover from a random attitude and velocity with four rotor commands.",
        source="Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds), arXiv:2311.13081",
        entry_point="rlbench_suite.envs.quadcopter.hover:QuadcopterHover",
        reference="rlbench_suite.envs.quadcopter.geometric_control:GeometricControl",
        horizon=500,
        replay_tolerance=1.0,
        tags=("continuous", "stabilisation"),
    ),
)
