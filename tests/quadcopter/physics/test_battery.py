"""The cell against a thrust stand, closed forms and SciPy, at float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.envs.quadcopter.physics import battery
from rlbench_suite.envs.quadcopter.physics.battery import Battery
from rlbench_suite.envs.quadcopter.physics.dynamics import NOMINAL, ROTOR_SPEED_LIMIT, STEP, Rotors
from rlbench_suite.envs.quadcopter.physics.vehicles import RPM

THRUST_STAND = np.array(
    [
        (0.24, 4.01, 0),
        (0.37, 3.98, 4485),
        (0.56, 3.95, 7570),
        (0.75, 3.92, 9374),
        (0.94, 3.88, 10885),
        (1.15, 3.84, 12277),
        (1.37, 3.80, 13522),
        (1.59, 3.76, 14691),
        (1.83, 3.71, 15924),
        (2.11, 3.67, 17174),
        (2.39, 3.65, 18179),
    ]
)
"""Current (A), voltage (V) and mean RPM of a Crazyflie 2.0.

Duty cycles go from 0 to 62.5 %, for four seconds each.

wiki.bitcraze.io/misc:investigations:thrust
"""
R0 = battery.SERIES_RESISTANCE
R1 = battery.POLARISATION_RESISTANCE
T = battery.TIME_CONSTANT
CAPACITY = battery.CAPACITY


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def chen(charge: float) -> float:
    """Open-circuit voltage, the paper's eq. 2."""
    return (
        -1.031 * np.exp(-35 * charge)
        + 3.685
        + 0.2156 * charge
        - 0.1178 * charge**2
        + 0.3201 * charge**3
    )


def circuit(power: Callable[[float], float], start: Battery, duration: float) -> np.ndarray:
    """Return charge, polarisation, and charge and energy delivered so far.

    They are Kirchhoff's laws, written anew and solved by DOP853.
    """

    def rate(time: float, y: np.ndarray) -> list[float]:
        inner = chen(y[0]) - y[1]
        roots = np.roots([-R0, inner, -power(time)])
        current = roots.real.min()
        return [
            -current / CAPACITY,
            (R1 * current - y[1]) / T,
            current,
            (inner - R0 * current) * current,
        ]

    first = [float(start.charge), float(start.polarisation), 0, 0]
    return solve_ivp(rate, (0, duration), first, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]


def test_sag_is_that_of_the_thrust_stand() -> None:
    """Four seconds at each measured current, from the charge that explains the first voltage."""
    charge = 0.912
    cell = Battery(jnp.float64(charge), jnp.float64(0.0))
    voltages = []
    for amperes, volts, _ in THRUST_STAND:
        for _ in range(400):
            cell = battery.discharge(cell, volts * amperes, STEP)
        voltages.append(float(battery.voltage(cell, volts * amperes)))
    np.testing.assert_allclose(voltages, THRUST_STAND[:, 1], atol=0.035)


def test_rotors_take_about_what_the_thrust_stand_says() -> None:
    """Around hovering (14,500 RPM).

    A constant efficiency is coarse: the measured one falls with rotor speed.
    """
    for amperes, volts, speed in THRUST_STAND[5:]:
        power = battery.rotor_power(Rotors(*(RPM * speed,) * 4), NOMINAL)
        assert float(power) == pytest.approx(amperes * volts, rel=0.22)
    amperes, volts, speed = THRUST_STAND[7]
    hover = battery.rotor_power(Rotors(*(RPM * speed,) * 4), NOMINAL)
    assert float(hover) == pytest.approx(amperes * volts, rel=0.05)
    idle = battery.rotor_power(Rotors(*(0.0,) * 4), NOMINAL)
    assert float(idle) == pytest.approx(THRUST_STAND[0, 0] * THRUST_STAND[0, 1], rel=0.01)


def test_the_open_circuit_is_the_paper_s() -> None:
    for charge in (0.02, 0.3, 0.77, 1.0):
        assert float(battery.open_circuit_voltage(charge)) == pytest.approx(chen(charge), rel=1e-14)


def test_current_times_voltage_is_the_power() -> None:
    for charge in (0.1, 0.5, 1.0):
        cell = Battery(charge, 0.1)
        for power in (0.0, 1.0, 8.0, 20.0):
            delivered = battery.current(cell, power) * battery.voltage(cell, power)
            assert float(delivered) == pytest.approx(power, rel=1e-12)


def test_asked_for_too_much_it_gives_the_most_that_it_can() -> None:
    """Matched load: half the inner voltage, its square by four times the resistance."""
    cell = Battery(0.6, 0.05)
    inner = chen(0.6) - 0.05
    peak_power = inner**2 / (4 * R0)
    for power in (1.0001 * peak_power, 10 * peak_power):
        assert float(battery.voltage(cell, power)) == pytest.approx(inner / 2, rel=1e-12)
        assert float(battery.current(cell, power)) == pytest.approx(inner / (2 * R0), rel=1e-12)
    assert float(battery.voltage(cell, 0.9999 * peak_power)) == pytest.approx(inner / 2, rel=0.02)


def test_under_constant_power_it_settles_where_both_resistances_carry_the_current() -> None:
    """(U - (R0 + R1) I) I = P, at a charge that is held."""
    power, cell = 9.0, Battery(0.8, 0.0)
    step = jax.jit(lambda v: battery.discharge(Battery(0.8, v), power, 1.0).polarisation)
    polarisation = jnp.float64(0.0)
    for _ in range(1000):
        polarisation = step(polarisation)
    inner = chen(0.8)
    steady_current = (inner - np.sqrt(inner**2 - 4 * (R0 + R1) * power)) / (2 * (R0 + R1))
    cell = Battery(0.8, polarisation)
    assert float(battery.current(cell, power)) == pytest.approx(steady_current, rel=1e-10)
    assert float(battery.voltage(cell, power)) == pytest.approx(power / steady_current, rel=1e-10)


def test_under_changing_power_it_is_the_circuit_to_first_order() -> None:
    """Ten seconds of a flight's swings, and what came out of it: charge and energy."""
    start = Battery(jnp.float64(0.7), jnp.float64(0.03))

    def power(time: float) -> float:
        return 8 + 5 * np.sin(3 * time)

    charge, polarisation, delivered, energy = circuit(power, start, 10.0)
    assert (0.7 - charge) * CAPACITY == pytest.approx(delivered, rel=1e-9)
    errors = []
    for steps in (1000, 2000, 4000):
        times = np.arange(steps) * 10.0 / steps

        def step(
            cell: Battery, load: jax.Array, n: int = steps
        ) -> tuple[Battery, tuple[jax.Array, jax.Array]]:
            now = (
                battery.current(cell, load),
                battery.current(cell, load) * battery.voltage(cell, load),
            )
            return battery.discharge(cell, load, 10.0 / n), now

        end, (currents, powers) = jax.jit(lambda c, p, f=step: jax.lax.scan(f, c, p))(
            start, jnp.asarray(power(times))
        )
        errors.append(np.abs(np.array(end, float) - [charge, polarisation]))
        assert (0.7 - float(end.charge)) * CAPACITY == pytest.approx(
            float(currents.sum()) * 10 / steps, rel=1e-9
        )
        assert float(powers.sum()) * 10 / steps == pytest.approx(energy, rel=3 / steps)
    # A step's worth of the swing in current, 3 A, is the most that holding it may miss.
    assert errors[0][0] < 3 * STEP / CAPACITY
    assert errors[0][1] < 3 * STEP * R1 / T
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.05)
    np.testing.assert_allclose(errors[1] / errors[2], 2, rtol=0.05)


def test_an_empty_cell_stays_empty() -> None:
    cell = Battery(jnp.float64(1e-4), jnp.float64(0.0))
    step = jax.jit(lambda c: battery.discharge(c, 10.0, STEP))
    for _ in range(50):
        cell = step(cell)
        assert cell.charge >= 0
    assert cell.charge == 0
    assert 0 < float(battery.voltage(cell, 1.0)) < 2.7


def test_below_its_rated_voltage_the_battery_limits_rotors_in_proportion() -> None:
    for volts, share in ((4.1, 1.0), (3.7, 1.0), (3.33, 0.9), (1.85, 0.5)):
        assert float(battery.full_speed(volts)) == pytest.approx(
            share * ROTOR_SPEED_LIMIT, rel=1e-6
        )
    hungry = float(battery.rotor_power(Rotors(*(ROTOR_SPEED_LIMIT,) * 4), NOMINAL))
    assert float(battery.voltage(Battery(0.5, 0.0), hungry)) < 3.3
