"""Electric drives: machine, inverter, load, reference and controller, in SI units."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/PMSMCurrent-v0",
        family="motor",
        summary="Track d and q current references of a permanent-magnet synchronous machine with its voltages.",
        source="Schroeder, Elektrische Antriebe (2015); parameters: gym-electric-motor, doi:10.21105/joss.02498",
        entry_point="rlbench_suite.envs.motor.pmsm_current:PMSMCurrent",
        reference="rlbench_suite.envs.motor.field_oriented_control:FieldOrientedControl",
        horizon=500,
        replay_tolerance=0.02,
        tags=("continuous", "tracking"),
    ),
)
