"""Cards of the electric drives."""

from dataclasses import replace

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard

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


_HEADLINE = (
    "rlsuite/PermExDcSpeed-v0",
    "rlsuite/PMSMTorque-v0",
    "rlsuite/PMSMPosition-v0",
    "rlsuite/SCIMCurrent-v0",
    "rlsuite/PMSMCurrentFinite-v0",
)
"""One drive of each goal, control and principle; the others are variants of them."""

_ONE_SIGN = ("SeriesDc", "ShuntDc")
"""Machines whose torque cannot change its sign, so that they can hold no position."""


_STEPS = {
    ("ExtExDc", "current"): 2500,
    ("EESM", "current"): 1000,
    ("PermExDc", "speed"): 5000,
    ("ExtExDc", "speed"): 5000,
    ("SeriesDc", "speed"): 1000,
    ("ShuntDc", "speed"): 5000,
    ("EESM", "speed"): 2500,
    ("SixPhasePMSM", "speed"): 1000,
    ("SCIM", "speed"): 1000,
}
"""Horizons by switch states that are not 500 steps.

Speeds get 50 ms, and currents 5 ms if a field's is among them.
"""


_SETPOINTS = ("walk", "laplace", "sinus", "triangle", "sawtooth", "step", "switched")


_NEAR_ZERO = (
    "no or random voltages leave it near zero, and one set point in fifteen to twenty lies within "
    "the tolerance of it"
)
_NEAR_START = (
    "set points begin near the first speed and hardly move, and without voltage or under random "
    "ones the shaft coasts past some"
)
_ANY_TORQUE = (
    "windings without voltage make the torque of a brake, and one set point in {} lies within the "
    "tolerance of any torque"
)
_ANY_SPEED = (
    "a shaft without voltage coasts on or stands, and one set point in twenty lies within the "
    "tolerance of its speed"
)
_CHANCE = {
    "rlsuite/SeriesDcCurrent-v0": _NEAR_ZERO,
    "rlsuite/SeriesDcTorque-v0": _NEAR_ZERO,
    "rlsuite/PMSMTorqueFinite-v0": _NEAR_ZERO,
    "rlsuite/SeriesDcTorqueFinite-v0": _NEAR_ZERO,
    "rlsuite/SixPhasePMSMTorqueFinite-v0": _NEAR_ZERO,
    **{
        f"rlsuite/{machine}Speed{control}-v0": _NEAR_START
        for machine in ("SynRM", "SixPhasePMSM")
        for control in ("", "Finite")
    },
    **{
        f"rlsuite/{drive}-v0": _ANY_TORQUE.format("about twenty")
        for drive in (
            "PMSMTorque",
            "SynRMTorque",
            "SixPhasePMSMTorque",
            "PMSMTorqueReal",
            "PMSMTorqueIndustrial",
        )
    },
    **{
        f"rlsuite/PMSMTorque{conditions}-v0": _ANY_TORQUE.format("ten")
        for conditions in ("Faulty", "Demagnetised", "Efficient")
    },
    "rlsuite/PMSMSpeedFinite-v0": _ANY_SPEED,
    "rlsuite/PMSMSpeedWide-v0": _ANY_SPEED,
    "rlsuite/PermExDcPosition-v0": (
        "without voltage the shaft stands still, and one set point in twenty ends within the "
        "tolerance of its place"
    ),
}
"""Why random play or doing nothing succeeds in more than 5 % of episodes, by id."""
_EXCESS = 0.02
"""Largest mean excess over the nominal current, in parts of it."""

_OVERHEATING = ", and of the winding's temperature over 140 degC, in parts of 15 K"
"""Second part of the cost of drives whose winding warms up (``real.py``)."""


def _settings(
    machine: str, goal: str, control: str = "continuous", conditions: str = "ideal"
) -> dict[str, str | bool]:
    """Return the settings that distinguish the drives of this family."""
    return {
        "machine": machine,
        "goal": goal,
        "control": control,
        "conditions": conditions,
        "gem_compat": False,
    }


def _converters(machine: str, goal: str) -> dict[str, tuple[str, ...]]:
    """Return the converters of a direct-current machine that have enough quadrants for the goal."""
    if not machine.endswith("Dc"):
        return {}
    # A field of 34 ms decays too slowly.
    any_quadrants = goal != "position" and (machine, goal) != ("ExtExDc", "current")
    two_quadrants = any_quadrants and machine != "SeriesDc"
    one_quadrant = any_quadrants and (goal != "speed" or machine in _ONE_SIGN)
    return {"converter": ("4qc", *["2qc"] * two_quadrants, *["1qc"] * one_quadrant)}


def _choices(machine: str, goal: str) -> dict[str, tuple[str, ...]]:
    """Return the parts of a drive by setting, the default first; see ``drive.py``."""
    bench = goal in ("current", "torque")
    return _converters(machine, goal) | {
        "setpoint": _SETPOINTS,
        "supply": ("ideal", "rc", "ac1", "ac3"),
        "delay": ("0", "1"),
        "interlocking": ("0", "0.01", "0.03"),
        "load": ("bench", "profile") if bench else ("friction", "constant", "ornstein-uhlenbeck"),
        "solver": ("rk4", "euler", *["exact"] * bench),
        "noise": ("0", "0.01", "0.03"),
    }


def _setpoints_only(machine: str, goal: str) -> dict[str, tuple[str, ...]]:
    """Return the choices of drives whose other parts are fixed."""
    return {
        name: choices if name == "setpoint" else choices[:1]
        for name, choices in _choices(machine, goal).items()
    }


def _constraint(horizon: int, details: str = "") -> Constraint:
    """Return the limit of a drive's excess current; see ``parts/limit.py``."""
    return Constraint(
        counts=(
            f"excess of the largest current over the nominal one, in parts of it{details}, summed "
            "over the steps"
        ),
        limit=_EXCESS * horizon,
        reason=(
            "2 % of the nominal current on average: a drive may exceed its rating for moments, not "
            "as a rule"
        ),
    )


def _drive(machine: str, goal: str, control: str, horizon: int) -> TaskCard:
    """Return the card of one drive; see ``drive.py``."""
    finite = control == "finite"
    task_id = f"rlsuite/{machine}{goal.capitalize()}{'Finite' if finite else ''}-v0"
    return TaskCard(
        id=task_id,
        family="motor",
        summary=(
            f"Make the {goal} of {_MACHINES[machine]} follow a set point by "
            f"{'the switch states' if finite else 'the voltage'} of its converter."
        ),
        source=(
            "Schroeder, Elektrische Antriebe (2015); gym-electric-motor, doi:10.21105/joss.02498"
        ),
        entry_point="rlbench_suite.envs.motor.tasks.drive:Drive",
        reference="rlbench_suite.envs.motor.control.cascade:Cascade",
        horizon=horizon,
        settings=_settings(machine, goal, control),
        variant=task_id not in _HEADLINE,
        replay_tolerance=0.02,
        tags=("discrete" if finite else "continuous", "tracking"),
        choices=_choices(machine, goal),
        constraint=_constraint(horizon),
        chance=_CHANCE.get(task_id, ""),
    )


_DRIVES = (
    TaskCard(
        id="rlsuite/PMSMCurrent-v0",
        family="motor",
        summary=(
            "Track d and q current set points of a permanent-magnet synchronous machine with its "
            "voltages."
        ),
        source=(
            "Schroeder, Elektrische Antriebe (2015); parameters: gym-electric-motor, "
            "doi:10.21105/joss.02498"
        ),
        entry_point="rlbench_suite.envs.motor.tasks.pmsm_current:make",
        reference="rlbench_suite.envs.motor.control.field_oriented_control:FieldOrientedControl",
        horizon=500,
        settings=_settings("PMSM", "current"),
        replay_tolerance=0.02,
        tags=("continuous", "tracking"),
        choices=_choices("PMSM", "current"),
        constraint=_constraint(500),
    ),
    *(_drive(machine, "current", "continuous", 500) for machine in _MACHINES if machine != "PMSM"),
    *(_drive(machine, "torque", "continuous", 500) for machine in _MACHINES),
    *(_drive(machine, "speed", "continuous", 1000) for machine in _MACHINES),
    *(
        _drive(machine, "position", "continuous", 2000)
        for machine in _MACHINES
        if machine not in _ONE_SIGN
    ),
    *(
        _drive(machine, goal, "finite", _STEPS.get((machine, goal), 500))
        for goal in ("current", "torque", "speed")
        for machine in _MACHINES
    ),
)


def _gem_compatible(drive: TaskCard) -> TaskCard:
    """Return the card of the same drive as gym-electric-motor has it; see ``gem/drive.py``."""
    return replace(
        drive,
        id=drive.id.replace("-v0", "Gem-v0"),
        summary=f"{drive.summary[:-1]}, as in gym-electric-motor 3.0.3.",
        source="gym-electric-motor 3.0.3, doi:10.21105/joss.02498",
        entry_point="rlbench_suite.envs.motor.gem.drive:GemDrive",
        reference="",
        contexts=False,
        settings=drive.fixed | {"gem_compat": True},
        choices={},
        constraint=None,
        listed=False,
    )


_REAL = tuple(
    TaskCard(
        id=f"rlsuite/PMSM{goal.capitalize()}Real-v0",
        family="motor",
        summary=(
            f"Make the {goal} of a saturated, lossy, warm and aged PMSM follow a set point without "
            "overheating it."
        ),
        source=(
            "Hinkkanen et al. 2017, doi:10.1109/TIA.2016.2644624; Bertotti 1988, "
            "doi:10.1109/20.43994"
        ),
        entry_point="rlbench_suite.envs.motor.tasks.real:RealDrive",
        reference="rlbench_suite.envs.motor.control.real_cascade:RealCascade",
        horizon=horizon,
        settings=_settings("PMSM", goal, conditions="real"),
        variant=True,
        partially_observed=True,
        replay_tolerance=0.02,
        tags=("continuous", "tracking", "safety"),
        choices=_setpoints_only("PMSM", goal),
        constraint=_constraint(horizon, _OVERHEATING),
        chance=_CHANCE.get(f"rlsuite/PMSM{goal.capitalize()}Real-v0", ""),
    )
    for goal, horizon in (("torque", 500), ("speed", 1000))
)
"""Drives under real conditions; see ``real.py``."""

_INDUSTRIAL = tuple(
    TaskCard(
        id=f"rlsuite/{machine}{goal.capitalize()}Industrial-v0",
        family="motor",
        summary=(
            f"Make the {goal} of {_MACHINES[machine]} follow a set point behind a period of "
            "computation delay, noisy "
            "currents and an encoder."
        ),
        source=(
            "Schroeder, Elektrische Antriebe (2015); Cortes et al. 2012, "
            "doi:10.1109/TIE.2011.2157284 (delay)"
        ),
        entry_point="rlbench_suite.envs.motor.tasks.drive:Drive",
        reference="rlbench_suite.envs.motor.control.cascade:Cascade",
        horizon=horizon,
        settings=_settings(machine, goal, conditions="industrial"),
        constraint=_constraint(horizon),
        variant=True,
        partially_observed=True,
        replay_tolerance=0.05,
        tags=("continuous", "tracking"),
        choices=_setpoints_only(machine, goal) | {"delay": ("1",), "noise": ("0.01",)},
        chance=_CHANCE.get(f"rlsuite/{machine}{goal.capitalize()}Industrial-v0", ""),
    )
    for machine, goal, horizon in (
        ("PMSM", "torque", 500),
        ("PMSM", "speed", 1000),
        ("SCIM", "speed", 1000),
        ("PermExDc", "speed", 1000),
    )
)
"""Drives with the instruments and the delay of a digital control."""

_WIDE = tuple(
    TaskCard(
        id=f"rlsuite/{machine}SpeedWide-v0",
        family="motor",
        summary=(
            f"Take {_MACHINES[machine]} far beyond its base speed and back, against load steps: "
            "weaken its flux."
        ),
        source="Morimoto et al. 1990, doi:10.1109/28.60058; Schroeder, Elektrische Antriebe (2015)",
        entry_point="rlbench_suite.envs.motor.tasks.wide:WideDrive",
        reference="rlbench_suite.envs.motor.control.field_weakening:WeakeningCascade",
        horizon=5000,
        settings=_settings(machine, "speed", conditions="wide"),
        constraint=_constraint(5000),
        variant=True,
        replay_tolerance=0.05,
        tags=("continuous", "tracking"),
        choices=_setpoints_only(machine, "speed") | {"setpoint": ("ramps",), "load": ("steps",)},
        chance=_CHANCE.get(f"rlsuite/{machine}SpeedWide-v0", ""),
    )
    for machine in ("PMSM", "SynRM", "SCIM")
)
"""Drives beyond their base speed; see ``wide.py``."""

_SENSORLESS = tuple(
    TaskCard(
        id=f"rlsuite/{machine}SpeedSensorless-v0",
        family="motor",
        summary=(
            f"Make the speed of {_MACHINES[machine]} follow a set point that is measured by "
            "nothing but currents."
        ),
        source=(
            "Schroeder, Elektrische Antriebe (2015); Chen, Tomita, Doki & Okuma 2003 (extended "
            "electromotive force)"
        ),
        entry_point=f"rlbench_suite.envs.motor.tasks.sensorless:{task}",
        reference="rlbench_suite.envs.motor.control.sensorless_cascade:SensorlessCascade",
        horizon=1000,
        settings=_settings(machine, "speed", conditions="sensorless"),
        variant=True,
        partially_observed=True,
        replay_tolerance=0.02,
        tags=("continuous", "tracking"),
        choices=_setpoints_only(machine, "speed"),
        constraint=_constraint(1000),
    )
    for machine, task in (("PermExDc", "Sensorless"), ("PMSM", "SensorlessPMSM"))
)
"""Drives whose speed is not shown; see ``sensorless.py``."""

_EFFICIENT = TaskCard(
    id="rlsuite/PMSMTorqueEfficient-v0",
    family="motor",
    summary=(
        "Make the torque of a saturated, lossy PMSM follow a set point with little loss: two "
        "objectives."
    ),
    source=(
        "Morimoto, Tong, Takeda & Hirasa 1994 (least losses); Hinkkanen et al. 2017, "
        "doi:10.1109/TIA.2016.2644624"
    ),
    entry_point="rlbench_suite.envs.motor.tasks.efficient:EfficientDrive",
    reference="rlbench_suite.envs.motor.control.least_losses:LeastLosses",
    horizon=500,
    settings={"machine": "PMSM", "goal": "torque", "control": "continuous"},
    variant=True,
    objectives=("tracking", "efficiency"),
    weights=(0.5, 0.5),
    hypervolume_reference=(0.0, -1500.0),
    replay_tolerance=0.02,
    tags=("continuous", "tracking", "multi-objective"),
    choices=_setpoints_only("PMSM", "torque"),
    constraint=_constraint(500, _OVERHEATING),
    chance=_CHANCE["rlsuite/PMSMTorqueEfficient-v0"],
)
"""A card without ``conditions``, for its reward is a vector; see ``efficient.py``."""

_FAULTY = TaskCard(
    id="rlsuite/PMSMTorqueFaulty-v0",
    family="motor",
    summary=(
        "Make the torque of a PMSM follow a set point by its phase voltages, and go on when a "
        "phase breaks."
    ),
    source=(
        "Bolognani, Zordan & Zigliotto 2000 (fault-tolerant control of a PMSM drive with a "
        "connected neutral point)"
    ),
    entry_point="rlbench_suite.envs.motor.tasks.faulty:FaultyDrive",
    reference="rlbench_suite.envs.motor.control.fault_tolerant:FaultTolerant",
    horizon=500,
    settings=_settings("PMSM", "torque", conditions="faulty"),
    variant=True,
    partially_observed=True,
    replay_tolerance=0.6,  # a phase may open a step later
    tags=("continuous", "tracking", "failure"),
    choices=_setpoints_only("PMSM", "torque"),
    constraint=_constraint(500),
    chance=_CHANCE["rlsuite/PMSMTorqueFaulty-v0"],
)
"""A drive that breaks; see ``faulty.py``."""

_DEMAGNETISED = TaskCard(
    id="rlsuite/PMSMTorqueDemagnetised-v0",
    family="motor",
    summary=(
        "Make the torque of a PMSM follow a set point without measuring it, while its magnets lose "
        "their flux."
    ),
    source="Sergakis et al. 2025, doi:10.3390/en18051177 (faults of permanent-magnet machines)",
    entry_point="rlbench_suite.envs.motor.tasks.demagnetised:DemagnetisedDrive",
    reference="rlbench_suite.envs.motor.control.flux_observing:FluxObserving",
    horizon=500,
    settings=_settings("PMSM", "torque", conditions="demagnetised"),
    variant=True,
    partially_observed=True,
    replay_tolerance=0.02,
    tags=("continuous", "tracking", "failure"),
    choices=_setpoints_only("PMSM", "torque"),
    constraint=_constraint(500),
    chance=_CHANCE["rlsuite/PMSMTorqueDemagnetised-v0"],
)
"""A drive whose magnets fail; see ``demagnetised.py``."""


CARDS = (
    *_DRIVES,
    *(_gem_compatible(drive) for drive in _DRIVES if drive.settings["goal"] != "position"),
    *_REAL,
    *_INDUSTRIAL,
    *_WIDE,
    *_SENSORLESS,
    _FAULTY,
    _DEMAGNETISED,
    _EFFICIENT,
)
