"""Every machine's equations: balance of power, textbook steady states, and SciPy.

All is computed at float64.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

from rlbench_suite.envs.motor.loads.load import ConstantSpeed, Polynomial
from rlbench_suite.envs.motor.machines import dc, synchronous
from rlbench_suite.envs.motor.machines.dc import Armature, Windings
from rlbench_suite.envs.motor.machines.frames import (
    DQ,
    AlphaBeta,
    Phases,
    clarke,
    inverse_clarke,
    inverse_park,
    park,
    wrap_angle,
)
from rlbench_suite.envs.motor.machines.induction import (
    DOUBLY_FED,
    Currents,
    Electrical,
    Induction,
    Voltages,
)
from rlbench_suite.envs.motor.machines.synchronous import DQXY, Excited
from rlbench_suite.envs.motor.plants.catalogue import PLANTS
from rlbench_suite.envs.motor.plants.three_phase import ThreePhase
from rlbench_suite.envs.motor.power_electronics.converter import (
    bridge_state,
    four_quadrant_state,
)
from rlbench_suite.envs.shared.runge_kutta import rk4

SPEED = 73.0


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def excited_energy(m: synchronous.ExternallyExcited, i: Excited) -> Any:
    excitation = m.field_seen_from_stator(i.field)
    inductance = 1.5 * m.turns_ratio**2 * m.field_inductance
    self_terms = m.inductance_d * i.d**2 + m.inductance_q * i.q**2 + inductance * excitation**2
    return 0.75 * (self_terms + 2 * m.magnetising_inductance() * i.d * excitation)


def induction_energy(m: Induction, state: Electrical) -> Any:
    """Half of currents times fluxes of both windings."""
    s, r = state.current, m.rotor_current(state)
    energy = 0.0
    for i_s, i_r, psi_r in zip(s, r, state.flux, strict=True):
        energy = energy + 0.75 * (
            (m.stator_inductance() * i_s + m.mutual_inductance * i_r) * i_s + psi_r * i_r
        )
    return energy


def induction_losses(m: Induction, state: Electrical) -> Any:
    rotor = m.rotor_current(state)
    stator = state.current.alpha**2 + state.current.beta**2
    return 1.5 * (
        m.stator_resistance * stator + m.rotor_resistance * (rotor.alpha**2 + rotor.beta**2)
    )


def induction_input(m: Induction, state: Electrical, u: Voltages) -> Any:
    rotor = m.rotor_current(state)
    s = u.stator.alpha * state.current.alpha + u.stator.beta * state.current.beta
    return 1.5 * (s + u.rotor.alpha * rotor.alpha + u.rotor.beta * rotor.beta)


ELECTRICAL = Electrical(AlphaBeta(1.7, -2.3), AlphaBeta(0.4, 0.6))
FED = Voltages(AlphaBeta(90.0, -170.0), AlphaBeta(33.0, 21.0))

# machine, state, voltage; then of (machine, state): stored energy and losses, and of (machine,
# state, voltage): input.
BALANCES: dict[
    str, tuple[Any, Any, Any, Callable[..., Any], Callable[..., Any], Callable[..., Any]]
] = {
    "PermExDc": (
        dc.PermanentlyExcited(),
        Armature(81.0),
        Armature(33.0),
        lambda m, i: 0.5 * m.inductance * i.armature**2,
        lambda m, i: m.resistance * i.armature**2,
        lambda m, i, u: u.armature * i.armature,
    ),
    "SeriesDc": (
        dc.Series(),
        Armature(81.0),
        Armature(33.0),
        lambda m, i: 0.5 * (m.armature_inductance + m.field_inductance) * i.armature**2,
        lambda m, i: (m.armature_resistance + m.field_resistance) * i.armature**2,
        lambda m, i, u: u.armature * i.armature,
    ),
    "ExtExDc": (
        dc.ExternallyExcited(),
        Windings(81.0, 120.0),
        Windings(33.0, 21.0),
        lambda m, i: (
            0.5 * (m.armature_inductance * i.armature**2 + m.field_inductance * i.field**2)
        ),
        lambda m, i: m.armature_resistance * i.armature**2 + m.field_resistance * i.field**2,
        lambda m, i, u: u.armature * i.armature + u.field * i.field,
    ),
    "ShuntDc": (
        dc.Shunt(),
        Windings(81.0, 120.0),
        Armature(33.0),
        lambda m, i: (
            0.5 * (m.armature_inductance * i.armature**2 + m.field_inductance * i.field**2)
        ),
        lambda m, i: m.armature_resistance * i.armature**2 + m.field_resistance * i.field**2,
        lambda m, i, u: u.armature * (i.armature + i.field),
    ),
    "PMSM": (
        synchronous.PermanentMagnet(),
        DQ(-60.0, 110.0),
        DQ(-40.0, 75.0),
        lambda m, i: 0.75 * (m.inductance_d * i.d**2 + m.inductance_q * i.q**2),
        lambda m, i: 1.5 * m.resistance * (i.d**2 + i.q**2),
        lambda m, i, u: 1.5 * (u.d * i.d + u.q * i.q),
    ),
    "SynRM": (
        synchronous.Reluctance(),
        DQ(6.0, 11.0),
        DQ(-40.0, 75.0),
        lambda m, i: 0.75 * (m.inductance_d * i.d**2 + m.inductance_q * i.q**2),
        lambda m, i: 1.5 * m.resistance * (i.d**2 + i.q**2),
        lambda m, i, u: 1.5 * (u.d * i.d + u.q * i.q),
    ),
    "EESM": (
        PLANTS["EESM"].nominal,
        Excited(-30.0, 80.0, 90.0),
        Excited(-40.0, 75.0, 12.0),
        excited_energy,
        lambda m, i: 1.5 * m.resistance * (i.d**2 + i.q**2) + m.field_resistance * i.field**2,
        lambda m, i, u: 1.5 * (u.d * i.d + u.q * i.q) + u.field * i.field,
    ),
    "SCIM": (
        Induction(),
        ELECTRICAL,
        FED._replace(rotor=AlphaBeta(0.0, 0.0)),
        induction_energy,
        induction_losses,
        induction_input,
    ),
    "DFIM by flux": (
        Induction(*DOUBLY_FED),
        ELECTRICAL,
        FED,
        induction_energy,
        induction_losses,
        induction_input,
    ),
    "DFIM": (
        DOUBLY_FED,
        Currents(AlphaBeta(1.7, -2.3), AlphaBeta(0.4, 2.6)),
        FED,
        lambda m, i: induction_energy(Induction(*m), m.with_flux(i)),
        lambda m, i: induction_losses(Induction(*m), m.with_flux(i)),
        lambda m, i, u: induction_input(Induction(*m), m.with_flux(i), u),
    ),
    "SixPhase": (
        synchronous.SixPhase(),
        DQXY(-30.0, 80.0, 11.0, -17.0),
        DQXY(-4.0, 7.0, 2.0, 3.0),
        lambda m, i: (
            1.5
            * (
                m.inductance_d * i.d**2
                + m.inductance_q * i.q**2
                + m.inductance_x * i.x**2
                + m.inductance_y * i.y**2
            )
        ),
        lambda m, i: 3 * m.resistance * (i.d**2 + i.q**2 + i.x**2 + i.y**2),
        lambda m, i, u: 3 * (u.d * i.d + u.q * i.q + u.x * i.x + u.y * i.y),
    ),
}


@pytest.mark.parametrize("name", BALANCES)
def test_power_balance(name: str) -> None:
    """Electrical power in is mechanical power, losses, and what the inductances store.

    The stored part comes from differentiating the energy.

    In the six-phase machine's x-y plane the coupling by different L_x and L_y moves power, as in
    d-q.
    """
    machine, state, voltage, energy, losses, input_power = BALANCES[name]
    state, voltage = jax.tree.map(jnp.float64, (state, voltage))
    rate = machine.derivative(state, voltage, SPEED)
    _, stored = jax.jvp(lambda at: energy(machine, at), (state,), (rate,))
    mechanical = machine.torque(state) * SPEED
    if name == "SixPhase":
        mechanical += (
            3
            * machine.pole_pairs
            * SPEED
            * (machine.inductance_y - machine.inductance_x)
            * state.x
            * state.y
        )
    out = float(mechanical + losses(machine, state) + stored)
    assert float(input_power(machine, state, voltage)) == pytest.approx(out, rel=1e-10)


@pytest.mark.parametrize("name", [name for name in BALANCES if name != "DFIM by flux"])
def test_plants_take_the_power_of_their_machines_and_converters_lose_none(name: str) -> None:
    """Power at the terminals is that of the balances above, and that of the legs.

    A leg gives its part of the link's voltage times the current out of it, whatever the angle.
    """
    machine, state, voltage, _, _, input_power = BALANCES[name]
    plant = PLANTS["SixPhasePMSM" if name == "SixPhase" else name]()
    assert plant.power(voltage, state) == pytest.approx(
        input_power(machine, state, voltage), rel=1e-12
    )
    link = plant.link if isinstance(plant, ThreePhase) else plant.unit
    rng = np.random.default_rng(0)
    for angle in (0.0, 1.3, -2.9):
        legs = tuple(rng.random(plant.switches))
        currents = plant.leg_currents(state, angle)
        by_legs = link * sum(leg * current for leg, current in zip(legs, currents, strict=True))
        assert plant.power(plant.voltage_of_legs(legs, state, angle), state) == pytest.approx(
            float(by_legs), rel=1e-9
        )


@pytest.mark.parametrize("name", BALANCES)
def test_runge_kutta_equals_scipy(name: str) -> None:
    """Compare 20 ms under a constant voltage with DOP853 at 1e-12.

    One step each 0.1 ms is cut into four.
    """
    machine, state, voltage, *_ = BALANCES[name]
    flat, unravel = ravel_pytree(jax.tree.map(np.float64, state))

    def rate(y: Any) -> Any:
        return machine.derivative(y, voltage, SPEED)

    plain = jax.jit(lambda y: ravel_pytree(rate(unravel(y)))[0])
    truth = solve_ivp(
        lambda t, y: np.asarray(plain(y)),
        (0, 0.02),
        np.asarray(flat),
        "DOP853",
        rtol=1e-12,
        atol=1e-12,
    )
    steps = jax.jit(
        lambda y: jax.lax.fori_loop(
            0, 800, lambda _, now: rk4(lambda _, at: rate(at), now, 2.5e-5), y
        )
    )
    ours = ravel_pytree(steps(unravel(flat)))[0]
    np.testing.assert_allclose(ours, truth.y[:, -1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", BALANCES)
def test_runge_kutta_is_of_order_four(name: str) -> None:
    """Half the step leaves a sixteenth of the error against DOP853.

    The tolerance covers what the fifth order adds.
    """
    machine, state, voltage, *_ = BALANCES[name]
    flat, unravel = ravel_pytree(jax.tree.map(np.float64, state))
    step = {"SixPhase": 2e-5, "PermExDc": 5e-5}.get(name, 2e-4)
    plain = jax.jit(lambda y: ravel_pytree(machine.derivative(unravel(y), voltage, SPEED))[0])
    truth = solve_ivp(
        lambda t, y: np.asarray(plain(y)),
        (0, 8 * step),
        np.asarray(flat),
        "DOP853",
        rtol=1e-13,
        atol=0,
    )
    errors = []
    for parts in (1, 2):

        def body(_: int, y: Any, parts: int = parts) -> Any:
            return rk4(lambda _, at: plain(at), y, step / parts)

        ours = jax.lax.fori_loop(0, 8 * parts, body, flat)
        errors.append(np.abs(np.asarray(ours) - truth.y[:, -1]).max())
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.25)


def test_torque_and_speed_of_direct_current_machines() -> None:
    """Compare steady speeds at a voltage U with closed forms.

    Permanently excited, w = U/psi - R T/psi^2; shunt, the same with psi = L' U/R_e; series, T = L'
    (U / (R + L' w))^2.
    """
    magnets, current, u = dc.PermanentlyExcited(), 60.0, 48.0
    torque = magnets.torque(Armature(current))
    speed = u / magnets.magnet_flux - magnets.resistance * torque / magnets.magnet_flux**2
    assert magnets.derivative(Armature(current), Armature(u), speed).armature == pytest.approx(
        0, abs=1e-6
    )
    shunt = dc.Shunt()
    flux = shunt.rotation_inductance * u / shunt.field_resistance
    torque = flux * current
    speed = u / flux - shunt.armature_resistance * torque / flux**2
    at = Windings(current, u / shunt.field_resistance)
    assert np.abs(shunt.derivative(at, Armature(u), speed)).max() < 1e-6
    assert shunt.torque(at) == pytest.approx(torque)
    series = dc.Series()
    resistance = series.armature_resistance + series.field_resistance
    torque = (
        series.rotation_inductance * (u / (resistance + series.rotation_inductance * SPEED)) ** 2
    )
    at = Armature(np.sqrt(torque / series.rotation_inductance))
    assert series.derivative(at, Armature(u), SPEED).armature == pytest.approx(0, abs=1e-9)
    assert series.torque(at) == pytest.approx(torque)


def test_torque_and_slip_of_the_induction_machine() -> None:
    """A steady state under 50 Hz is that of the equivalent circuit.

    It has phasors of stator and rotor loops at the slip.
    """
    machine, amplitude, pulsation = Induction(), 200.0, 2 * np.pi * 50
    for slip in (0.02, 0.1, 0.5, 1.0):
        x_m = pulsation * machine.mutual_inductance
        loops = np.array(
            [
                [
                    machine.stator_resistance + 1j * pulsation * machine.stator_inductance(),
                    1j * x_m,
                ],
                [
                    1j * x_m,
                    machine.rotor_resistance / slip + 1j * pulsation * machine.rotor_inductance(),
                ],
            ]
        )
        stator, rotor = np.linalg.solve(loops, [amplitude, 0])
        torque = (
            1.5 * machine.pole_pairs / pulsation * machine.rotor_resistance / slip * abs(rotor) ** 2
        )
        flux = machine.rotor_inductance() * rotor + machine.mutual_inductance * stator
        state = Electrical(AlphaBeta(stator.real, stator.imag), AlphaBeta(flux.real, flux.imag))
        assert machine.torque(state) == pytest.approx(torque, rel=1e-10)
        speed = (1 - slip) * pulsation / machine.pole_pairs
        rate = machine.derivative(
            state, Voltages(AlphaBeta(amplitude, 0.0), AlphaBeta(0.0, 0.0)), speed
        )
        for got, turning in ((rate.current, stator), (rate.flux, flux)):
            assert complex(*got) == pytest.approx(1j * pulsation * turning, rel=1e-9)


def test_doubly_fed_machine_at_any_slip() -> None:
    """A steady state under 50 Hz and the slip's frequency is that of the equivalent circuit.

    The circuit has both voltages. The power over the air gap divides into (1 - s) at the shaft and
    s at the slip rings.
    """
    machine = DOUBLY_FED
    stator_voltage = 200.0
    rotor_voltage = 35.0 * np.exp(0.4j)
    pulsation = 2 * np.pi * 50
    x_m = pulsation * machine.mutual_inductance
    for slip in (-0.3, -0.05, 0.1, 0.6):
        loops = np.array(
            [
                [
                    machine.stator_resistance + 1j * pulsation * machine.stator_inductance(),
                    1j * x_m,
                ],
                [
                    1j * slip * x_m,
                    machine.rotor_resistance + 1j * slip * pulsation * machine.rotor_inductance(),
                ],
            ]
        )
        stator, rotor = np.linalg.solve(loops, [stator_voltage, rotor_voltage])
        state = Currents(AlphaBeta(stator.real, stator.imag), AlphaBeta(rotor.real, rotor.imag))
        gap = 1.5 * (
            (stator_voltage * np.conj(stator)).real - machine.stator_resistance * abs(stator) ** 2
        )
        assert machine.torque(state) == pytest.approx(
            gap * machine.pole_pairs / pulsation, rel=1e-9
        )
        rings = 1.5 * (
            (rotor_voltage * np.conj(rotor)).real - machine.rotor_resistance * abs(rotor) ** 2
        )
        assert rings == pytest.approx(-slip * gap, rel=1e-9)
        voltage = Voltages(
            AlphaBeta(stator_voltage, 0.0), AlphaBeta(rotor_voltage.real, rotor_voltage.imag)
        )
        rate = machine.derivative(state, voltage, (1 - slip) * pulsation / machine.pole_pairs)
        for got, turning in ((rate.current, stator), (rate.rotor, rotor)):
            assert complex(*got) == pytest.approx(1j * pulsation * turning, rel=1e-9)


def test_both_forms_of_the_doubly_fed_machine_agree() -> None:
    machine, state = DOUBLY_FED, BALANCES["DFIM"][1]
    by_flux = Induction(*machine).derivative(machine.with_flux(state), FED, SPEED)
    rate = machine.derivative(state, FED, SPEED)
    np.testing.assert_allclose(rate.current, by_flux.current, rtol=1e-12)
    np.testing.assert_allclose(machine.with_flux(rate).flux, by_flux.flux, rtol=1e-9)
    assert machine.torque(state) == pytest.approx(
        Induction(*machine).torque(machine.with_flux(state)), rel=1e-12
    )


def test_six_phases_turn_in_steady_state() -> None:
    """Six sinusoidal phases hold the currents that phasors give.

    The phases are 30 degrees apart by windings. Each winding sees u = (R + j p w L) i + j p w psi
    where the axes are alike, and the torque is 3 p psi i_q.
    """
    machine = synchronous.SixPhase(inductance_q=125e-6)
    pulsation = machine.pole_pairs * SPEED
    current = -20.0 + 60.0j
    voltage = (
        machine.resistance + 1j * pulsation * machine.inductance_d
    ) * current + 1j * pulsation * machine.magnet_flux
    angle = 0.83
    shifts = np.array([0, 2, 4]) * np.pi / 3
    first = Phases(*(voltage * np.exp(1j * (angle - shifts))).real)
    second = Phases(*(voltage * np.exp(1j * (angle - shifts - np.pi / 6))).real)
    state = DQXY(current.real, current.imag, 0.0, 0.0)
    rate = machine.derivative(state, synchronous.six_phase_vector(first, second, angle), SPEED)
    np.testing.assert_allclose(rate, 0, atol=1e-7)
    assert machine.torque(state) == pytest.approx(
        3 * machine.pole_pairs * machine.magnet_flux * 60.0
    )
    three = synchronous.PermanentMagnet(
        0.0, 125e-6, 125e-6, machine.magnet_flux, machine.pole_pairs
    )
    assert machine.torque(state) == pytest.approx(2 * three.torque(DQ(state.d, state.q)))


def test_excited_machine_in_steady_state() -> None:
    """u_d = R i_d - w L_q i_q, u_q = R i_q + w (L_d i_d + l_m i_e), u_e = r_e i_e."""
    machine, current = synchronous.ExternallyExcited(), Excited(-30.0, 80.0, 90.0)
    electrical = machine.pole_pairs * SPEED
    linked = machine.inductance_d * current.d + machine.mutual_inductance * current.field
    voltage = Excited(
        machine.resistance * current.d - electrical * machine.inductance_q * current.q,
        machine.resistance * current.q + electrical * linked,
        machine.field_resistance * current.field,
    )
    assert np.abs(machine.derivative(current, voltage, SPEED)).max() < 1e-7


def test_excited_machine_of_the_peer_is_impossible() -> None:
    """The d axis of the peer's machine runs away without any voltage.

    With the coupling reduced as the docstring says it decays.
    """
    peer = synchronous.ExternallyExcited()
    possible = peer._replace(mutual_inductance=peer.mutual_inductance / np.sqrt(1.5))
    for machine, leaks in ((peer, False), (possible, True)):
        rates = [
            machine.derivative(Excited(*unit), Excited(0.0, 0.0, 0.0), 0.0) for unit in np.eye(3)
        ]
        assert (np.linalg.eigvals(np.array(rates).T).real < 0).all() == leaks


def test_most_torque_for_a_current() -> None:
    machine = synchronous.PermanentMagnet()
    best = synchronous.max_torque_angle(machine, 240.0)
    angles = best + np.array([-1e-3, 0, 1e-3])
    torques = machine.torque(DQ(-240 * np.sin(angles), 240 * np.cos(angles)))
    assert torques[1] > torques[0]
    assert torques[1] > torques[2]
    assert synchronous.max_torque_angle(machine._replace(inductance_q=0.37e-3), 240.0) == 0


def test_frames() -> None:
    """Transformations undo each other, and keep the amplitude.

    Six phases have their textbook angles.
    """
    angle, amplitude, at = 0.7, 3.0, 1.9
    phases = Phases(*(amplitude * np.cos(at - np.array([0, 2, 4]) * np.pi / 3)))
    vector = clarke(phases)
    np.testing.assert_allclose(vector, [amplitude * np.cos(at), amplitude * np.sin(at)], rtol=1e-12)
    np.testing.assert_allclose(inverse_clarke(vector), phases, rtol=1e-12)
    turned = park(vector, angle)
    np.testing.assert_allclose(
        turned, [amplitude * np.cos(at - angle), amplitude * np.sin(at - angle)], rtol=1e-12
    )
    np.testing.assert_allclose(inverse_park(turned, angle), vector, rtol=1e-12)
    second = Phases(*(amplitude * np.cos(at - np.array([1, 5, 9]) * np.pi / 6)))
    six = synchronous.six_phase_vector(phases, second, angle)
    np.testing.assert_allclose(six, [*turned, 0, 0], atol=1e-12)
    windings = synchronous.six_phases(DQXY(1.0, 2.0, 3.0, 4.0), angle)
    np.testing.assert_allclose(
        synchronous.six_phase_vector(*windings, angle), [1, 2, 3, 4], rtol=1e-12
    )
    np.testing.assert_allclose([sum(windings[0]), sum(windings[1])], 0, atol=1e-12)
    np.testing.assert_allclose(
        wrap_angle(np.array([3.2, -3.2, 9.0])), [3.2 - 2 * np.pi, 2 * np.pi - 3.2, 9 - 2 * np.pi]
    )


def test_switch_states() -> None:
    for state, voltage in enumerate((0.0, 1.0, -1.0, 0.0)):
        assert four_quadrant_state(np.int32(state)) == voltage
    for state, ends in enumerate(itertools.product((-0.5, 0.5), repeat=3)):
        assert tuple(bridge_state(np.int32(state))) == ends


def test_load() -> None:
    """Coulomb friction brakes a coasting rotor evenly, then stops it with the breakaway time.

    The bench holds its speed.
    """
    load, rotor = Polynomial(coulomb=0.3, inertia=1e-3), 2e-3
    assert load.acceleration(50.0, 0.0, rotor) == pytest.approx(-0.3 / 3e-3)
    assert load.acceleration(-50.0, 0.0, rotor) == pytest.approx(0.3 / 3e-3)
    assert load.acceleration(1e-3, 0.0, rotor) == pytest.approx(-1e-3 / 1e-3)
    drag = Polynomial(viscous=0.01, quadratic=0.002, inertia=1e-3)
    assert drag.acceleration(-10.0, 1.0, rotor) == pytest.approx((1 + 0.1 + 0.2) / 3e-3)
    assert ConstantSpeed().acceleration(50.0, 9.0, rotor) == 0
