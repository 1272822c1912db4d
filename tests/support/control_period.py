"""Control periods of the explicit physics, in which rotors keep their speeds."""

from __future__ import annotations

import jax

from rlbench_suite.envs.quadcopter.physics import semi_implicit
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody
from rlbench_suite.envs.quadcopter.physics.semi_implicit import DYN, Effects
from rlbench_suite.envs.quadcopter.physics.vehicles import Four, Vehicle


def step_period(
    body: RigidBody,
    speeds: Four,
    vehicle: Vehicle,
    gravity: float,
    steps: int,
    effects: Effects = DYN,
) -> RigidBody:
    """Return the body after ``steps`` steps with the same rotor speeds (rad/s)."""

    def step(_: int, state: RigidBody) -> RigidBody:
        return semi_implicit.step(state, speeds, vehicle, gravity, effects)

    return jax.lax.fori_loop(0, steps, step, body)
