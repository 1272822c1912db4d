"""The meaning of each entry of a space, for people who look at a task before they train on it.

A task names the components of its observations and actions in the order of its spaces. ``rlsuite
show`` and the pages of the documentation print them beside the bounds, which only the space knows.
:func:`signals` gives the same facts to programs: recordings and exported controllers convert
entries to physical quantities with them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces

from rlbench_suite.core.task_card import TaskCard


@dataclass(frozen=True)
class Component:
    """One entry of a space, or a run of entries that share a meaning.

    Attributes:
        name: name in the task's code and its docstring.
        meaning: meaning of the entries and their values, and their order.
        unit: quantity that the value 1 stands for: ``m/s``, or ``400 A`` if the entry is scaled;
            ``1`` if it has no unit.
        shape: shape of the run, flattened in row-major order; ``()`` is a single entry.
        scale: number in ``unit`` with all its digits; None where ``unit`` has them.
    """

    name: str
    meaning: str
    unit: str = "1"
    shape: tuple[int, ...] = ()
    scale: float | None = None

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


Components = tuple[Component, ...] | Mapping[str, tuple[Component, ...]]
"""Components in the order of a space; for a ``Dict``, the components of each part by its name.

The entries of a ``Discrete`` space are its values, those of a ``MultiDiscrete`` its parts. In a
task of several agents the components are those of one agent.
"""


class NamesComponents(Protocol):
    """Part of a task (``task.Described``) that this file reads; the task stands on this file."""

    card: TaskCard
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]

    def observation_components(self) -> Components:
        """Return the meaning of each entry of an observation; empty where the task says none."""
        ...

    def action_components(self) -> Components:
        """Return the meaning of each entry of an action; empty where the task says none."""
        ...


def singles(meanings: Mapping[str, str]) -> tuple[Component, ...]:
    """Make single components without a unit, from names and meanings.

    The values of a discrete action are such components.
    """
    return tuple(Component(name, meaning) for name, meaning in meanings.items())


def scaled_component(name: str, meaning: str, scale: float, unit: str) -> Component:
    """Make a single component whose value 1 stands for ``scale`` units.

    Four digits of it are printed.
    """
    return Component(name, meaning, f"{scale:.4g} {unit}", scale=scale)


class Row(NamedTuple):
    """One row of a table of components: indices, name, meaning, unit and bounds."""

    entries: str
    """Indices: ``3``, ``3:6``, ``part[3:6]``, or ``all`` for an array that is not flat"""
    name: str
    meaning: str
    unit: str
    low: float | None
    """Lowest bound in the run; None for a discrete action, whose value is its index"""
    high: float | None


def rows(space: spaces.Space[Any], components: Components, agents: int = 1) -> list[Row]:
    """Return a table of the components with their indices in a space and its bounds.

    Raises:
        ValueError: the components do not cover the space exactly.
    """
    if isinstance(space, spaces.Dict) or isinstance(components, Mapping):
        subspaces = space.spaces if isinstance(space, spaces.Dict) else {}
        groups = components if isinstance(components, Mapping) else {}
        if subspaces.keys() != groups.keys():
            raise ValueError(
                f"components are of the parts {[*groups]}, the space has {[*subspaces]}"
            )
        return [
            row._replace(entries=f"{name}[{row.entries}]")
            for name in subspaces
            for row in rows(subspaces[name], groups[name], agents)
        ]
    entries, bounds = _entries(space, agents)
    if isinstance(space, spaces.Box) and len(space.shape) > 1 + (agents > 1):
        shapes = [component.shape for component in components]
        if shapes != [space.shape]:
            raise ValueError(f"components have the shapes {shapes}, {space} has one array")
    if (num_covered := sum(component.size for component in components)) != entries:
        raise ValueError(f"components cover {num_covered} entries, {space} has {entries}")
    table = []
    start = 0
    for component in components:
        end = start + component.size
        indices = str(start) if component.shape == () else f"{start}:{end}"
        if component.shape == space.shape and len(component.shape) > 1:
            indices = "all"
        shape = f" {component.shape}" if len(component.shape) > 1 else ""
        low, high = (
            (float(bounds[0][start:end].min()), float(bounds[1][start:end].max()))
            if bounds
            else (None, None)
        )
        table.append(
            Row(indices, component.name + shape, component.meaning, component.unit, low, high)
        )
        start = end
    return table


def named(components: Components, observation: Any) -> dict[str, Any]:
    """Return the entries of an observation by name: scalars, or arrays of the components' shapes.

    Observations of several agents or environments have their axes before the entries, and so have
    the results. Of an observation with parts the result has parts, too.
    """
    if isinstance(components, Mapping):
        return {key: named(components[key], observation[key]) for key in components}
    entries = {}
    start = 0
    for component in components:
        end = start + component.size
        values = observation[..., start:end]
        entries[component.name] = values.reshape(values.shape[:-1] + component.shape)
        start = end
    return entries


def component_tables(task: NamesComponents) -> dict[str, list[Row]]:
    """Return the tables of a task's observation and action, if the task names their components."""
    agents = task.card.agents
    tables = {}
    if observation := task.observation_components():
        tables["observation"] = rows(task.observation_space, observation, agents)
    if action := task.action_components():
        tables["action"] = rows(_space_of_choices(task), action, agents)
    return tables


def _space_of_choices(task: NamesComponents) -> spaces.Space[Any]:
    """Return the space of actions that the components of a task are about.

    It is that of one agent where each agent makes one choice and the components name the choices.
    """
    space = task.action_space
    agents = task.card.agents
    if agents > 1 and isinstance(space, spaces.MultiDiscrete) and space.shape == (agents,):
        choices = int(space.nvec[0])
        if (space.nvec == choices).all() and len(task.action_components()) == choices:
            return spaces.Discrete(choices, start=int(space.start[0]))
    return space


def action_in_words(task: NamesComponents, action: np.ndarray) -> str:
    """Return an action of a task by the names of its components.

    Examples are ``sink (0)`` and ``pedal 0, steering 0.5``.

    That of several agents is one agent's, if all of them do the same. A task that names no
    components has numbers only.
    """
    numbers = np.asarray(action)
    declared = task.action_components()
    components = () if isinstance(declared, Mapping) else declared
    space = _space_of_choices(task)
    if isinstance(space, spaces.Discrete):
        choice = int(numbers.flat[0])
        if (numbers != choice).any():
            return _numbers_in_words(numbers.ravel())
        if not components:
            return str(choice)
        return f"{_name_of_value(components, choice - int(space.start))} ({choice})"
    size = sum(component.size for component in components)
    agents = (
        numbers.reshape(-1, size) if size and numbers.size % size == 0 else numbers.reshape(1, -1)
    )
    if not components or (agents != agents[0]).any():
        return _numbers_in_words(numbers.ravel())
    phrases = []
    start = 0
    for component in components:
        phrases.append(
            f"{component.name} {_numbers_in_words(agents[0, start : start + component.size])}"
        )
        start += component.size
    return ", ".join(phrases) + (", each agent" if len(agents) > 1 else "")


def _name_of_value(components: tuple[Component, ...], index: int) -> str:
    """Return the name of a value of a ``Discrete`` space.

    The name of one in a run has its index there: ``fill[0, 0, 3]``.
    """
    for component in components:
        if index < component.size:
            position = ", ".join(
                str(int(axis)) for axis in np.unravel_index(index, component.shape or (1,))
            )
            return f"{component.name}[{position}]" if component.shape else component.name
        index -= component.size
    raise ValueError(f"components cover too few values: {index + 1} are missing")


def _numbers_in_words(numbers: np.ndarray) -> str:
    """Return the number that all of them are, or all of them in brackets, with four digits."""
    texts = [f"{number:.4g}" for number in numbers.tolist()]
    return texts[0] if len(set(texts)) == 1 else f"[{', '.join(texts)}]"


class Signal(NamedTuple):
    """A physical quantity in an observation or action.

    It is one entry, or a run of entries that share a meaning.
    """

    name: str
    unit: str
    """SI, or the task's own, such as ``cells``; ``1`` for a plain number"""
    scale: float
    """Quantity that the value 1 of an entry stands for, in ``unit``"""
    meaning: str
    low: float | None
    """Lowest bound in the run, in ``unit``; None for a value of a discrete action"""
    high: float | None
    shape: tuple[int, ...] = ()
    """Shape of the run, flattened in row-major order; ``()`` is a single entry"""

    def columns(self) -> list[str]:
        """Name each entry: ``velocity.0``, ``rotation.1.2``, or the name alone."""
        return [".".join([self.name, *map(str, index)]) for index in np.ndindex(self.shape)]


class KeyFigure(NamedTuple):
    """A number or a range in physical units that an engineer asks for and no space shows."""

    name: str
    unit: str
    low: float
    high: float
    """Equal to ``low`` for a single number"""
    meaning: str

    @property
    def value(self) -> str:
        """The number, or the ends of the range, with four digits."""
        return f"{self.low:.4g}" if self.low == self.high else f"{self.low:.4g} to {self.high:.4g}"


Signals = dict[str, tuple[Signal, ...]]
"""Signals of a task's ``observation`` and ``action``, in the order of the flattened spaces."""

_UNIT = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)(?: (.+))?")
_SYMBOL = r"(?:%|ppm|degC|rad|nats|EUR|kWh|kg|km|mm|Hz|Wb|g|m|s|h|l|A|V|N|W|J|K|T)(?:\^?[23])?"
_OF_MEASURE = re.compile(rf"(?:.*, )?({_SYMBOL}(?:[ /]{_SYMBOL})*)", re.DOTALL)
_SI = {
    "degrees": (math.pi / 180, "rad"), "km": (1e3, "m"), "mm/s": (1e-3, "m/s"),
    "mg/(m2 s)": (1e-6, "kg/(m2 s)"), "m/s^2": (1.0, "m/s2"), "%": (1e-2, "1"), "ppm": (1e-6, "1"),
}  # fmt: skip
"""Factor and SI unit of other units that components have."""


def unit_of_measure(words: str) -> str:
    """Return the unit with which a measure's description ends.

    In ``of the shaft, N m`` that is ``N m``; it is ``1`` if the description ends with none.
    """
    match = _OF_MEASURE.fullmatch(words)
    return match[1].replace("^", "") if match else "1"


def signals(task: NamesComponents) -> Signals:
    """Return the signals of a task, if it names its components.

    Those of several agents are one agent's.
    """
    by_side: Signals = {}
    for side, table in component_tables(task).items():
        components = getattr(task, f"{side}_components")()
        if isinstance(components, Mapping):
            names = [*getattr(task, f"{side}_space").spaces]
            entries = [
                (f"{name}.{component.name}", component)
                for name in names
                for component in components[name]
            ]
        else:
            entries = [(component.name, component) for component in components]
        pairs = zip(entries, table, strict=True)
        by_side[side] = tuple(_signal(name, component, row) for (name, component), row in pairs)
    return by_side


def _signal(name: str, component: Component, row: Row) -> Signal:
    match = _UNIT.fullmatch(component.unit)
    scale, unit = (float(match[1]), match[2] or "1") if match else (1.0, component.unit)
    factor, unit = _SI.get(unit, (1.0, unit))
    scale = (component.scale or scale) * factor
    low, high = (None if bound is None else bound * scale for bound in (row.low, row.high))
    return Signal(name, unit, scale, component.meaning, low, high, component.shape)


def _entries(space: Any, agents: int) -> tuple[int, tuple[np.ndarray, np.ndarray] | None]:
    """Return what the components must cover.

    That is the number of entries, and the least and the largest value of each.
    """
    if isinstance(space, spaces.Discrete):
        return int(space.n), None
    if isinstance(space, spaces.MultiDiscrete):
        return space.nvec.size, (space.start.ravel(), (space.start + space.nvec - 1).ravel())
    low, high = (bound.reshape(agents, -1) for bound in (space.low, space.high))
    return low.shape[1], (low.min(axis=0), high.max(axis=0))
