"""Electric drives: machine, inverter, load, reference and controller, in SI units."""

from rlbench_suite.card import TaskCard

_MACHINES = {
    "PermExDc": "a permanently excited direct-current machine",
    "ExtExDc": "an externally excited direct-current machine",
    "SeriesDc": "a series-wound direct-current machine",
    "ShuntDc": "a shunt-wound direct-current machine",
    "PMSM": "a permanent-magnet synchronous machine",
    "SynRM": "a synchronous reluctance machine",
    "EESM": "an externally excited synchronous machine",
    "SixPhasePMSM": "a permanent-magnet synchronous machine with two three-phase windings",
    "SCIM": "a squirrel-cage induction machine",
    "DFIM": "a doubly fed induction machine",
}


_SHOWN = ("rlsuite/PermExDcSpeed-v0", "rlsuite/PMSMTorque-v0", "rlsuite/SCIMCurrent-v0", "rlsuite/PMSMCurrentFinite-v0")
"""One drive of each goal, control and principle; the others are variants of them."""


_BY_SWITCHES = tuple(machine for machine in _MACHINES if machine != "ExtExDc")
"""Machines whose currents a switch state moves alike: the field's of that one takes a thousand times longer."""


_SPEED_STEPS = {"SeriesDc": 1000, "PMSM": 500, "SynRM": 500, "SixPhasePMSM": 1000, "SCIM": 1000, "DFIM": 500}
"""Of episodes of speed by switch states, 50 ms and more: machines whose states last 50 us, others take thousands."""


def _drive(machine: str, goal: str, control: str, horizon: int) -> TaskCard:
    """The card of one drive; see ``drive.py``."""
    finite = control == "finite"
    task_id = f"rlsuite/{machine}{goal.capitalize()}{'Finite' if finite else ''}-v0"
    return TaskCard(
        id=task_id,
        family="motor",
        summary=(
            f"Make the {goal} of {_MACHINES[machine]} follow a reference by "
            f"{'the switch states' if finite else 'the voltage'} of its converter."
        ),
        source="Schroeder, Elektrische Antriebe (2015); gym-electric-motor, doi:10.21105/joss.02498",
        entry_point="rlbench_suite.envs.motor.drive:Drive",
        reference="rlbench_suite.envs.motor.cascade:Cascade",
        horizon=horizon,
        settings={"machine": machine, "goal": goal, "control": control},
        variant=task_id not in _SHOWN,
        replay_tolerance=0.02,
        tags=("discrete" if finite else "continuous", "tracking"),
    )


CARDS = (
    TaskCard(
        id="rlsuite/PMSMCurrent-v0",
        family="motor",
        summary="Track d and q current references of a permanent-magnet synchronous machine with its voltages.",
        source="Schroeder, Elektrische Antriebe (2015); parameters: gym-electric-motor, doi:10.21105/joss.02498",
        entry_point="rlbench_suite.envs.motor.pmsm_current:PMSMCurrent",
        reference="rlbench_suite.envs.motor.field_oriented_control:FieldOrientedControl",
        horizon=500,
        settings={"machine": "PMSM", "goal": "current", "control": "continuous"},
        replay_tolerance=0.02,
        tags=("continuous", "tracking"),
    ),
    *(_drive(machine, "current", "continuous", 500) for machine in _MACHINES if machine != "PMSM"),
    *(_drive(machine, "torque", "continuous", 500) for machine in _MACHINES if machine != "ShuntDc"),
    *(_drive(machine, "speed", "continuous", 1000) for machine in _MACHINES if machine != "ShuntDc"),
    *(_drive(machine, "current", "finite", 1000 if machine == "EESM" else 500) for machine in _BY_SWITCHES),
    _drive("ExtExDc", "torque", "finite", 500),
    *(_drive(machine, "torque", "finite", 500) for machine in _BY_SWITCHES if machine != "ShuntDc"),
    *(_drive(machine, "speed", "finite", steps) for machine, steps in _SPEED_STEPS.items()),
)
