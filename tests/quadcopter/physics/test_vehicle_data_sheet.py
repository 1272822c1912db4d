"""Check own data sheets of vehicles against the shipped one and SciPy.

The shipped sheet gives the same bits, and other units give the same episodes.
"""

from __future__ import annotations

import math
import re
import runpy
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from rlbench_suite.adapters.rollout import play
from rlbench_suite.contexts.context import template
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card, cards
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.process import precision

PAGE = Path(__file__).parents[3] / "docs" / "extend" / "your_drone.md"
BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "audits" / "random_vehicles.py"
RACER = {
    "mass": 0.716,
    "inertia_x": 0.007,
    "inertia_y": 0.007,
    "inertia_z": 0.012,
    "thrust_coefficient": 8.54858e-6,
    "torque_coefficient": 0.016,
    "motor_time_constant": 0.02,
    "arm_length": 0.17,
    "rotor_speed_limit": 838.0,
    "propeller_radius": 0.1,
}
"""The Hummingbird of Furrer et al. 2016 (RotorS), doi:10.1007/978-3-319-26054-9_23.

It has 0.716 kg and arms of 0.17 m.
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path))


def play_reference(flight_card: TaskCard, episodes: int = 8) -> Any:
    task: Any = flight_card.build()
    return play(task, reference_player(task), range(episodes), limit=100)


def test_the_shipped_data_sheet_gives_the_same_bits(tmp_path: Path) -> None:
    shipped = card("QuadcopterHover-v0")
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text(template(shipped.id, shipped.build().constants()))
    copied = card(shipped.id, context=sheet)
    assert copied.build().sheet == shipped.build().sheet  # type: ignore[attr-defined]
    np.testing.assert_array_equal(play_reference(copied).total, play_reference(shipped).total)


def test_a_vehicle_in_other_units_flies_the_same_episodes() -> None:
    """Mass, inertia, thrust and rotor speed twice as large give the same episodes.

    The thrust coefficient is half as large, so that the thrust is twice as large.

    The drag coefficients stay: rotor speed and mass are both twice as large. A data sheet rounds
    the shipped numbers to six digits, so the episodes are the same to about that.
    """
    shipped = card("QuadcopterWaypoints-v0")
    sheet = {c.name: (c.low, c.high) for c in shipped.build().constants()}

    def times(name: str, factor: float) -> list[float]:
        return [factor * end for end in sheet[name]]

    heavier = {name: times(name, 2) for name in ("mass", "inertia_x", "inertia_y", "inertia_z")}
    heavier["thrust_coefficient"] = times("thrust_coefficient", 0.5)
    single: dict[str, Any] = {"rotor_speed_limit": 2 * sheet["rotor_speed_limit"][0]}
    rescaled_record = play_reference(card(shipped.id, context=heavier | single))
    shipped_record = play_reference(shipped)
    np.testing.assert_allclose(rescaled_record.total, shipped_record.total, rtol=1e-5)


def test_another_vehicle_moves_as_scipy_says() -> None:
    """Newton, Euler and the rotors' lag written out with SciPy's rotations, at float64."""
    task: Any = card("QuadcopterHover-v0", context=RACER).build(dtype="float64")
    arm = RACER["arm_length"] / math.sqrt(2)
    k = RACER["thrust_coefficient"]
    limit = 838.0
    lag = 0.02
    mass = RACER["mass"]
    moments = np.array([RACER["inertia_x"], RACER["inertia_y"], RACER["inertia_z"]])
    with precision(task):
        params = jax.jit(task.sample_params)(jax.random.key(0), 1)
        mass = float(params.inertia.mass)
        state = jax.jit(task.initial)(jax.random.key(1), params)
        step, rng = jax.jit(task.transition), np.random.default_rng(0)
        body = [float(value) for value in state.body]
        truth = np.array(
            [*body[:3], *body[4:7], body[3], *body[7:], *(float(speed) for speed in state.rotors)]
        )
        for number in range(20):
            action = rng.uniform(-0.3, 0.6, 4)
            state = step(state, action, jax.random.key(number), params)

            def rate(
                t: float, now: np.ndarray, command: np.ndarray = 0.5 * limit * (action + 1)
            ) -> np.ndarray:
                turn, v, w, rotors = Rotation.from_quat(now[3:7]), now[7:10], now[10:13], now[13:]
                f = k * rotors**2
                torque = [
                    arm * (f[2] + f[3] - f[0] - f[1]),
                    arm * (f[1] + f[2] - f[0] - f[3]),
                    RACER["torque_coefficient"] * (f[1] + f[3] - f[0] - f[2]),
                ]
                x, y, z, s = now[3:7]
                spin = 0.5 * np.array(
                    [
                        s * w[0] + y * w[2] - z * w[1],
                        s * w[1] + z * w[0] - x * w[2],
                        s * w[2] + x * w[1] - y * w[0],
                        -x * w[0] - y * w[1] - z * w[2],
                    ]
                )
                push = turn.apply([0, 0, f.sum() / mass]) - [0, 0, 9.81]
                return np.array(
                    [
                        *v,
                        *spin,
                        *push,
                        *((torque - np.cross(w, moments * w)) / moments),
                        *((command - rotors) / lag),
                    ]
                )

            truth = solve_ivp(rate, (0, 0.01), truth, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose([float(value) for value in state.body[:3]], truth[:3], atol=1e-5)
    np.testing.assert_allclose(
        [float(value) for value in state.body[10:]], truth[10:13], rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose([float(value) for value in state.rotors], truth[13:], rtol=1e-9)


def test_limits_and_the_reference_follow_the_data_sheet_of_the_page(tmp_path: Path) -> None:
    [sheet] = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "my_drone.yaml").write_text(sheet)
    own_drone = card("QuadcopterHover-v0", context=tmp_path / "my_drone.yaml")
    task: Any = own_drone.build()
    hover = math.sqrt(0.715 * 9.81 / (4 * 8.54858e-6))
    assert task.noop_action()[0] == pytest.approx(2 * hover / 838 - 1, rel=1e-5)
    record = play(task, reference_player(task), range(64))
    assert record.info["success"].mean() > 0.95


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": 0.06}, "its rotors carry 0.91 times the weight"),
        ({"inertia_z": 3e-5}, "no body has the moments of inertia"),
        (
            {"inertia_x": 2e-4, "inertia_y": 2e-4, "inertia_z": 3e-4},
            "s to turn by 90 degrees, above 0.4 s",
        ),
        (
            {"inertia_x": 1e-6, "inertia_y": 1e-6, "inertia_z": 1.5e-6},
            "rad/s in a step, above 60 rad/s",
        ),
    ],
)
def test_what_cannot_fly_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match="context own-") as caught:
        card("QuadcopterHover-v0", context=change).build()
    assert message in str(caught.value)


def test_flights_take_a_data_sheet_or_say_that_they_do_not() -> None:
    flights = [
        flight for flight in cards().values() if flight.family == "quadcopter" and flight.installed
    ]
    with_sheet = {flight.name for flight in flights if flight.build().constants()}
    goals = ("Hover", "Recover", "Waypoints", "Trajectory", "Land", "Gates")
    late = ("Hover", "Trajectory", "Land", "Gates")
    # If it is installed.
    bullet = {"QuadcopterHoverPyBullet-v0"} & {flight.name for flight in flights}
    plain = {f"Quadcopter{goal}-v0" for goal in goals} | bullet
    assert with_sheet == plain | {f"Quadcopter{goal}Latency-v0" for goal in late}


def test_random_plausible_vehicles_are_stable_or_refused() -> None:
    flights = runpy.run_path(str(BENCHMARK))["fly"](40, seed=1)
    assert len(flights.success_rate) >= 20
    assert (flights.success_rate >= 0.95).mean() >= 0.95
