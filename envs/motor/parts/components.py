"""Explanations of a drive's observations and actions, component by component.

They follow from the names that plants give to their quantities.

A name is a kind (``i`` current, ``u`` voltage, ``psi`` flux linkage) and a place: ``i_sd`` is the
stator's current along the d axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rlbench_suite.core.component import Component, scaled_component

from ..plants.direct_current import DirectCurrent
from ..plants.induction_plant import SCIM
from ..plants.plant import Plant

KINDS = {"i": "current", "u": "voltage", "psi": "flux linkage"}
AXES = {
    "a": "in phase a",
    "b": "in phase b",
    "c": "in phase c",
    "d": "along the {whose} (d axis)",
    "q": "across the {whose} (q axis)",
    "x": "along the x axis, which makes losses and no torque",
    "y": "along the y axis, which makes losses and no torque",
    "alpha": "along phase a (alpha axis, fixed to the stator)",
    "beta": "across phase a (beta axis, fixed to the stator)",
}
WINDINGS = {"s": "stator", "r": "rotor"}
NUMBERS = {"1": "first", "2": "second"}
ARMATURE = "of the armature"
TERMINALS = {
    "SeriesDc": "of armature and field winding in series",
    "ShuntDc": "of both windings in parallel",
}
"""Part to which a voltage or current without a place belongs, if it is not the armature."""
BY_NAME = {
    "e": "of the field winding",
    "sum": "of both windings together",
    "sup": "of the supply",
    "r": "of the rotor",
}


def electrical(name: str, machine: str) -> str:
    """Explain an electrical quantity of a machine (``card.settings``) by the quantity's name."""
    kind, _, axis = name.partition("_")
    if axis in BY_NAME:
        return f"{KINDS[kind]} {BY_NAME[axis]}"
    if machine.endswith("Dc"):
        return f"{KINDS[kind]} {TERMINALS.get(machine, ARMATURE) if axis == '' else ARMATURE}"
    winding = ""
    if axis[-1] in NUMBERS:
        axis, winding = axis[:-1], f" of the {NUMBERS[axis[-1]]} winding"
    elif axis[0] in WINDINGS and axis[1:] in AXES:
        axis, winding = axis[1:], f" of the {WINDINGS[axis[0]]}"
    whose = "rotor flux" if machine in ("SCIM", "DFIM") else "rotor"
    return f"{KINDS[kind]}{winding} {AXES[axis].format(whose=whose)}"


def describe_measured(plant: Plant, machine: str, error: str = "") -> list[Component]:
    """Describe the measured electrical quantities, then the speed.

    ``error`` is added to each meaning.
    """
    flux = {"psi_r": (plant.nominal_flux, "V s")} if isinstance(plant, SCIM) else {}
    entries = [
        scaled_component(
            name, electrical(name, machine) + error, *flux.get(name, (plant.current_limit, "A"))
        )
        for name in plant.measured_names
    ]
    return [
        *entries,
        scaled_component(
            "speed", f"mechanical speed of the shaft{error}", plant.speed_limit, "rad/s"
        ),
    ]


def energy(
    quantities: Mapping[str, np.ndarray], voltages: tuple[str, ...], period: float
) -> float | None:
    """Return the energy that converters gave to a machine, J, from recorded quantities.

    Return None where the quantities do not tell it.

    A vector of d and q is of constant amplitude, so its power is 3/2 of the product. A step's
    voltage is seen after the step, and its current is the mean of before and after.
    """
    pairs = [(f"applied_{name}", f"i{name[1:]}") for name in voltages]
    if voltages not in (("u_d", "u_q"), ("u",), ("u_a", "u_e")) or not all(
        n in quantities for p in pairs for n in p
    ):
        return None
    factor = 1.5 if voltages == ("u_d", "u_q") else 1.0
    power = sum(quantities[u][1:] * (quantities[i][:-1] + quantities[i][1:]) / 2 for u, i in pairs)
    return float(factor * period * np.sum(power))


def turning(plant: Plant) -> list[Component]:
    """Describe cosine and sine of each angle that the effect of a switch state depends on."""
    angles = ["rotor"]
    if isinstance(plant, SCIM):
        angles = ["flux", "rotor"][: plant.turning]
    whose = {
        "rotor": "of the electrical angle of the rotor",
        "flux": "of the angle of the rotor flux in the stator",
    }
    return [
        Component(f"{function}_{angle}", f"{function}ine {whose[angle]}".replace("sinine", "sine"))
        for angle in angles
        for function in ("cos", "sin")
    ]


def legs(plant: Plant) -> list[tuple[str, str]]:
    """Return name and meaning of each leg of the converters, in the order of a switch state's bits.

    The lowest bit is first.
    """
    pairs = []
    for fed, states in plant.converters:
        names = {8: ("c", "b", "a"), 4: ("forward", "backward"), 2: ("only",)}[states]
        pairs += [(f"{fed.replace(' ', '_')}_{name}", _leg(name, fed)) for name in names]
    return pairs


def _leg(name: str, fed: str) -> str:
    whose = {
        "forward": f"the leg that drives the {fed} forward",
        "backward": f"the leg that drives the {fed} backward",
    }
    whose |= {"only": f"the only leg that feeds the {fed}"}
    leg = whose.get(name, f"the leg of phase {name} of the {fed}")
    return f"whether {leg} is at the upper end of the link (1) or the lower (0)"


def voltages(plant: Plant, machine: str) -> list[Component]:
    """Describe each part of a continuous action."""
    return [
        scaled_component(name, electrical(name, machine), unit, "V")
        for name, unit in zip(plant.voltages, plant.units, strict=True)
    ]


def voltage_actions(plant: Plant, machine: str) -> tuple[Component, ...]:
    """Describe each voltage as a part of an action."""
    circle = (
        ""
        if isinstance(plant, DirectCurrent)
        else "; a vector beyond the inverter's reach is shortened to it"
    )
    return tuple(
        replace(voltage, meaning=voltage.meaning + ("" if voltage.name == "u_e" else circle))
        for voltage in voltages(plant, machine)
    )


MAX_NAMED_STATES = 20
"""Switch states that are named one by one."""
STATE_EFFECTS = {
    8: "0 to 7, whose bits 4, 2 and 1 put phase a, b and c at the upper end of the link",
    4: "0 or 3 no voltage, 1 the link's voltage forward, 2 backward",
}
"""Effects of a converter's switch states, by their number."""


def switch_states(converters: tuple[tuple[str, int], ...]) -> tuple[Component, ...]:
    """Describe each state of one converter, or of two; the first one's counts fastest."""
    (first, count), *second_converter = converters
    if not second_converter:
        return tuple(Component(*_state(state, count, first)) for state in range(count))
    [(second, second_count)] = second_converter
    if count * second_count <= MAX_NAMED_STATES:
        pairs = [
            (_state(low, count, first), _state(high, second_count, second))
            for high in range(second_count)
            for low in range(count)
        ]
        return tuple(
            Component(f"{low[0]} {high[0]}", f"{low[1]}; {high[1]}") for low, high in pairs
        )
    rule = (
        f"state of the {first} + {count} * state of the {second}. States of the {first}: "
        f"{STATE_EFFECTS[count]}"
    )
    rule += (
        f"; of the {second}: {STATE_EFFECTS[second_count]}"
        if second_count != count
        else f"; those of the {second} likewise"
    )
    return (Component("switch_state", rule, "1", (count * second_count,)),)


STATE_NAMES = {
    4: (
        ("low", "both legs low: no voltage"),
        ("forward", "the link's voltage forward"),
        ("backward", "the link's voltage backward"),
        ("high", "both legs high: no voltage"),
    ),
    2: (
        ("off", "no voltage, current through the lower switch or diode"),
        ("on", "the link's voltage"),
    ),
}
"""Name and meaning of each state of a direct-current converter, by their number."""


def _state(state: int, count: int, fed: str) -> tuple[str, str]:
    """Return name and meaning of a converter's switch state."""
    if count == 8:
        bits = f"{state:03b}"
        high = [phase for phase, bit in zip("abc", bits, strict=True) if bit == "1"]
        where = {
            0: "all phases at the lower end of the link",
            3: "all phases at the upper end of the link",
        }
        meaning = where.get(len(high), f"only {' and '.join(high)} at the upper end of the link")
        return f"{fed} {bits}", meaning + (": no voltage" if len(high) in where else "")
    name, meaning = STATE_NAMES[count][state]
    return f"{fed} {name}", f"{fed}: {meaning}"
