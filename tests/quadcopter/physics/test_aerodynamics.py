"""Check ground effect, rotor drag and downwash against closed forms and their sources.

All checks are at float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from control_period import step_period

from rlbench_suite.envs.quadcopter.physics import aerodynamics, vehicles
from rlbench_suite.envs.quadcopter.physics.rigid_body import RigidBody, rotation_matrix
from rlbench_suite.envs.quadcopter.physics.semi_implicit import Effects
from rlbench_suite.envs.quadcopter.physics.vehicles import CF2X, RPM

AIR = CF2X.air
PLACES = CF2X.rotor_x, CF2X.rotor_y


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def body(height: float = 1.0, roll: float = 0.0, **fields: float) -> RigidBody:
    start = RigidBody(*[0.0] * 13)._replace(
        z=height, qw=np.cos(roll / 2), qx=np.sin(roll / 2), **fields
    )
    return jax.tree.map(np.float64, start)


def test_ground_effect_has_the_form_of_its_source_and_a_ceiling() -> None:
    for height in (0.05, 0.1, 0.5):
        expected = 11.36859 * (2.31348e-2 / (4 * height)) ** 2
        assert float(aerodynamics.ground_effect(height, AIR)) == pytest.approx(expected, rel=1e-12)
    # The peer's lowest height, 0.25 r sqrt(15 MAX_RPM^2 KF c / MAX_THRUST), prints as 0.0377637 m.
    lowest = float(aerodynamics.ground_effect(0.0377637, AIR))
    assert lowest == pytest.approx(4 / 15, rel=1e-5)
    assert float(aerodynamics.ground_effect(0.0, AIR)) == pytest.approx(4 / 15, rel=1e-12)
    assert float(aerodynamics.ground_effect(0.0, AIR._replace(ground=0.0))) == 0


def test_hover_in_ground_effect_settles_where_cushion_and_weight_agree() -> None:
    """With 96 % of the hover thrust it floats where the ground gives the rest.

    That holds to the last digit.
    """
    speed = float(vehicles.hover_speed(CF2X)) * np.sqrt(0.96)
    effects = Effects(bullet_damping=True, ground=True)
    end = jax.jit(lambda b: step_period(b, (speed,) * 4, CF2X, 9.81, 240 * 600, effects))(
        body(0.12)
    )
    expected = 0.25 * AIR.propeller_radius * np.sqrt(AIR.ground / (1 / 0.96 - 1))
    assert float(end.z) == pytest.approx(expected, abs=1e-4)


def test_a_tilted_vehicle_feels_the_ground_more_on_its_lower_side() -> None:
    forces = aerodynamics.add_ground_effect((1.0,) * 4, body(0.1, roll=0.3), *PLACES, AIR)
    heights = aerodynamics.rotor_heights(body(0.1, roll=0.3), *PLACES)
    np.testing.assert_allclose(heights, 0.1 + np.array(CF2X.rotor_y) * np.sin(0.3), rtol=1e-12)
    assert forces[0] > forces[3]  # rolling lifts the left side
    upside_down = aerodynamics.add_ground_effect((1.0,) * 4, body(0.1, roll=3.0), *PLACES, AIR)
    np.testing.assert_array_equal(upside_down, 1.0)


def test_rotor_drag_upright_is_the_peer_s() -> None:
    """Its formula, -c v times the sum of rotor speeds in rad/s (2 pi RPM / 60)."""
    speeds = tuple(RPM * rpm for rpm in (14_000.0, 14_500.0, 15_000.0, 15_500.0))
    drag = aerodynamics.rotor_drag(body(vx=1.0, vy=-2.0, vz=3.0), speeds, AIR)
    total = 2 * np.pi * 59_000 / 60
    np.testing.assert_allclose(
        drag, np.array([-9.1785e-7, 2 * 9.1785e-7, -3 * 10.311e-7]) * total, rtol=1e-12
    )


def test_rotor_drag_turns_with_the_body_and_takes_energy() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.normal(size=13)
        values[3:7] /= np.linalg.norm(values[3:7])
        moving = RigidBody(*values)
        velocity, rotation = values[7:10], np.array(rotation_matrix(moving)).reshape(3, 3)
        coefficients = np.diag([AIR.drag_xy, AIR.drag_xy, AIR.drag_z])
        expected = -4000.0 * rotation @ coefficients @ rotation.T @ velocity
        drag = np.array(aerodynamics.rotor_drag(moving, (1000.0,) * 4, AIR))
        np.testing.assert_allclose(drag, expected, rtol=1e-12)
        assert drag @ velocity < 0


def test_sinking_with_rotor_drag_ends_at_terminal_velocity() -> None:
    """Thrust of 90 % of the weight: the remaining 10 % against drag along the rotors' axis."""
    speed = float(vehicles.hover_speed(CF2X, 9.8)) * np.sqrt(0.9)
    end = jax.jit(lambda b: step_period(b, (speed,) * 4, CF2X, 9.8, 240 * 120, Effects(drag=True)))(
        body()
    )
    assert float(end.vz) == pytest.approx(-0.1 * 0.027 * 9.8 / (AIR.drag_z * 4 * speed), rel=1e-6)


def test_downwash_has_the_form_of_its_source() -> None:
    for dx, dy, dz in ((0.0, 0.0, 0.5), (0.1, -0.05, 0.9), (0.3, 0.2, 3.0)):
        expected = (
            -2267.18
            * (2.31348e-2 / (4 * dz)) ** 2
            * np.exp(-0.5 * (np.hypot(dx, dy) / (0.16 * dz - 0.11)) ** 2)
        )
        assert float(aerodynamics.downwash(dx, dy, dz, AIR)) == pytest.approx(expected, rel=1e-9)
    assert float(aerodynamics.downwash(0.0, 0.0, -0.5, AIR)) == 0
    assert float(aerodynamics.downwash(11.0, 0.0, 0.5, AIR)) == 0
