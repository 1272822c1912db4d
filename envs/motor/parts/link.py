"""The converters' direct-current link.

Its voltage is nominal, or varies with a supply of its own.
"""

from __future__ import annotations

from typing import Any

import jax

from rlbench_suite.core.component import Component

from ..machines.frames import Scalar, Values
from ..plants.plant import Plant
from ..power_electronics.supply import Link, Supply
from .part import Part


class IdealLink(Part):
    """The voltage is nominal."""

    def begin(self, key: jax.Array, dtype: Any) -> Any:
        """Return the memory at the start."""
        return ()

    def voltage(self, memory: Any) -> Any:
        """Return what a step integrates: the voltage in parts of the nominal one, if it varies."""
        return ()

    def memory(self, observe: Values) -> Any:
        """Return the memory, as far as the observation shows it."""
        return ()

    def machine_voltage(self, voltage: Any, link: Any) -> Any:
        """Return the machine's voltage, V, from that on a nominal link.

        ``link`` is what :meth:`voltage` returns.
        """
        return voltage

    def rate(self, memory: Any, link: Any, passed: float, voltage: Any, electrical: Any) -> Any:
        """Return dv/dt, 1/s, ``passed`` s into a step, under that voltage on a nominal link (V)."""
        return ()

    def advance(self, memory: Any, link: Any, duration: float) -> Any:
        """Return the memory ``duration`` s later, with the integrated voltage."""
        return memory


class SuppliedLink(IdealLink):
    """A capacitor between a supply and the converters; the memory is a :class:`Link`."""

    def __init__(self, supply: Supply, plant: Plant) -> None:
        self.supply, self.plant = supply, plant

    def begin(self, key: jax.Array, dtype: Any) -> Link:
        """Return a charged link, at any phase of the mains."""
        return self.supply.begin(jax.random.uniform(key, (), dtype))

    def voltage(self, memory: Link) -> Scalar:
        """Return the voltage in parts of the nominal one."""
        return memory.voltage

    def memory(self, observe: Values) -> Link:
        """Return a link of this voltage; the phase of the mains is not shown."""
        return Link(observe[0], 0.0 * observe[0])

    def machine_voltage(self, voltage: Any, link: Scalar) -> Any:
        """Scale the voltages with the link's."""
        return jax.tree.map(lambda volts: link * volts, voltage)

    def rate(
        self, memory: Link, link: Scalar, passed: float, voltage: Any, electrical: Any
    ) -> Scalar:
        """Charge from the supply, and discharge by the power that the machine takes."""
        current = self.plant.power(voltage, electrical) * (1 / self.plant.rating)
        return self.supply.rate(link, self.supply.advance_phase(memory.phase, passed), current)

    def advance(self, memory: Link, link: Scalar, duration: float) -> Link:
        """Return the link with the mains' phase moved on."""
        return Link(link, self.supply.advance_phase(memory.phase, duration))

    def observe(self, memory: Link) -> Values:
        """Return the voltage."""
        return (memory.voltage,)

    def components(self) -> list[Component]:
        """Describe the voltage."""
        return [Component("link", "voltage of the link, in parts of the nominal one")]

    def words(self, memory: Link) -> str:
        """Tell the voltage."""
        return f" Link {float(memory.voltage):.4f} of nominal voltage."
