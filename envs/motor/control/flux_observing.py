"""Control of a torque that nothing measures.

The player is the cascade of ``cascade.py`` on an estimate of the magnets' flux.

Sources: those of ``cascade.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task

from ..machines.frames import Scalar, Values
from ..tasks.demagnetised import DemagnetisedDrive
from ..tasks.drive import Params
from .cascade import Cascade


class Observed(NamedTuple):
    """Memory."""

    voltage: Values
    """V, of each current's integrator"""
    lost: Scalar
    """V s: difference of the magnets' flux from the data sheet; negative if flux is lost"""


class FluxObserving(Cascade):
    """The reference player: the cascade of the other drives, with an estimated torque.

    At a given speed, the integrator of the q voltage learns by how much the magnets' induced
    voltage exceeds the data sheet's (and the effect of errors in other parameters). Smoothed, this
    gives the lost flux. From it follows the torque, and what the data sheet's machine must be asked
    for instead.
    """

    MIN_TELLING_SPEED = 60.0
    """rad/s, electrical: at lower speeds an induced voltage tells little."""
    SMOOTHING = 0.01
    """Weight of each step's measurement in the estimate: a time constant of 10 ms."""
    FLUX_CHANGE_BOUNDS = (-0.7, 0.2)
    """Changes of the flux, in parts of its nominal value."""

    def initial(self, params: Params) -> Any:
        """Begin with nothing learnt and nothing lost."""
        zero = jnp.zeros_like(params.speed)
        return Observed((zero, zero), zero)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return voltages."""
        plant, state = self.task.plant, view.state
        electrical, flux = plant.pole_pairs * state.speed, plant.nominal.magnet_flux
        observed_flux = (
            memory.voltage[1] * electrical / (electrical * electrical + self.MIN_TELLING_SPEED**2)
        )
        observed_flux = jnp.clip(
            observed_flux, self.FLUX_CHANGE_BOUNDS[0] * flux, self.FLUX_CHANGE_BOUNDS[1] * flux
        )
        lost_flux = memory.lost + self.SMOOTHING * (observed_flux - memory.lost)
        torque_error = 1.5 * plant.pole_pairs * lost_flux * state.electrical.q
        currents = plant.currents_for(state.setpoint[0] - torque_error, state.electrical)
        action, voltage = self._voltages(currents, memory.voltage, state, state)
        return jnp.stack(action), Observed(voltage, lost_flux)

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> FluxObserving:
        """Return the player of such a drive.

        Raises:
            TypeError: another kind of task.
        """
        if not isinstance(task, DemagnetisedDrive):
            raise TypeError(
                f"FluxObserving controls drives whose magnets fail, got {type(task).__name__}."
            )
        return cls(task)
