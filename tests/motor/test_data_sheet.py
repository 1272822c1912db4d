"""Own data sheets of drives.

The shipped one gives the same bits, other units give the same episodes, and SciPy agrees.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from random_plants import DRAWS, data_sheet, judge_plant, stable
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.contexts.context import template, times
from rlbench_suite.core.registry import card, cards
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.envs.motor.control.cascade import Cascade
from rlbench_suite.envs.motor.plants.catalogue import PLANTS
from rlbench_suite.envs.motor.plants.data_sheet import constants, own_plant
from rlbench_suite.envs.motor.plants.three_phase import PMSM
from rlbench_suite.numerics.process import precision

SERVO = {
    "resistance": [0.32, 0.40],
    "inductance_d": 0.52e-3,
    "inductance_q": 0.52e-3,
    "magnet_flux": [9.2e-3, 10.4e-3],
    "pole_pairs": 5,
    "inertia": 3.6e-5,
    "nominal_current": 7,
    "current_limit": 21,
    "speed_limit": 600,
    "link_voltage": 48,
}
"""A 48 V servo without saliency."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path))


def play_cascade(drive: TaskCard, episodes: int = 8) -> Any:
    task: Any = drive.build()
    return play(task, Cascade.for_task(task), range(episodes))


@pytest.mark.parametrize("name", ["PMSMSpeed-v0", "SCIMTorque-v0", "SeriesDcSpeed-v0"])
def test_the_shipped_data_sheet_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    shipped = card(name)
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text(template(shipped.id, shipped.build().constants()))
    copied_record, shipped_record = play_cascade(card(name, context=sheet)), play_cascade(shipped)
    np.testing.assert_array_equal(copied_record.total, shipped_record.total)
    for measure, values in copied_record.info.items():
        np.testing.assert_array_equal(values, shipped_record.info[measure])


def test_a_machine_in_other_units_plays_the_same_episodes() -> None:
    """Twice the voltage and current, with the same R and L, doubles the flux.

    Torque and inertia are four times as large.

    Factors of two change no bits.
    """
    shipped = card("PMSMSpeed-v0")
    sheet = {c.name: (c.low, c.high) for c in shipped.build().constants()}

    def times(name: str, factor: float) -> list[float]:
        return [factor * end for end in sheet[name]]

    doubled = {
        name: times(name, 2)[0] for name in ("nominal_current", "current_limit", "link_voltage")
    }
    doubled |= {"magnet_flux": times("magnet_flux", 2), "inertia": times("inertia", 4)[0]}
    doubled_record = play_cascade(card(shipped.id, context=doubled))
    shipped_record = play_cascade(shipped)
    np.testing.assert_allclose(doubled_record.total, shipped_record.total, rtol=1e-5)
    np.testing.assert_allclose(
        doubled_record.info["torque"], 4 * shipped_record.info["torque"], rtol=1e-3, atol=1e-2
    )


def test_another_machine_moves_as_scipy_says() -> None:
    """A surface-mounted machine at a held speed, against the equations written out, at float64."""
    task: Any = card("PMSMTorque-v0", context=SERVO).build(dtype="float64")
    r, l, psi, p, speed = 0.36, 0.52e-3, 9.8e-3, 5, 150.0  # noqa: E741 - an inductance
    limit, unit = 21.0, 48 / math.sqrt(3)
    with precision(task):
        params = jax.jit(task.sample_params)(jax.random.key(0), 1)
        machine = type(params.machine)(r, l, l, psi, p, 3.6e-5)
        params = params._replace(machine=machine, speed=np.float64(speed))
        state = jax.jit(task.initial)(jax.random.key(1), params)
        step, rng, truth = jax.jit(task.transition), np.random.default_rng(0), np.zeros(2)
        for k in range(40):
            u = rng.uniform(-0.3, 0.3, 2)
            state = step(state, u, jax.random.key(k), params)

            def rate(t: float, i: np.ndarray, u: np.ndarray = u) -> list[float]:
                return [
                    (unit * u[0] - r * i[0] + p * speed * l * i[1]) / l,
                    (unit * u[1] - r * i[1] - p * speed * (l * i[0] + psi)) / l,
                ]

            truth = solve_ivp(rate, (0, task.period), truth, "DOP853", rtol=1e-11, atol=1e-11).y[
                :, -1
            ]
        measured = np.array(task.plant.measure(state.electrical))
        torque = float(task.controlled_values(state, params)[0])
    np.testing.assert_allclose(measured, truth / limit, atol=1e-6)
    assert torque == pytest.approx(1.5 * p * psi * truth[1], rel=1e-4)


def test_goals_and_the_reference_follow_the_data_sheet() -> None:
    task: Any = card("PMSMTorque-v0", context=SERVO).build()
    shipped: Any = card("PMSMTorque-v0").build()
    torque = 1.5 * 5 * 9.8e-3 * 7
    assert task.plant.base().torque == pytest.approx(torque)
    assert task.goal.high[0] / torque == pytest.approx(
        shipped.goal.high[0] / shipped.plant.base().torque
    )
    part = (
        task.plant.unit / task.plant.nominal.inductance_d * task.period / task.plant.nominal_current
    )
    usual = (
        shipped.plant.unit
        / shipped.plant.nominal.inductance_d
        * shipped.period
        / shipped.plant.nominal_current
    )
    assert part == pytest.approx(usual)
    record = play(task, Cascade.for_task(task), range(64))
    assert not record.terminated.any()
    assert record.total.mean() > 0.9 * task.card.horizon


@pytest.mark.parametrize(
    ("name", "sheet"),
    [
        ("PMSMTorque-v0", None),
        ("PMSMTorque-v0", SERVO),
        ("SCIMCurrent-v0", None),
        ("PMSMCurrent-v0", None),
    ],
)
def test_key_figures_are_those_of_episodes(name: str, sheet: dict[str, Any] | None) -> None:
    """First set points fill the ranges and never leave them.

    An error of the stated size halves the reward.
    """
    task: Any = (card(name, context=sheet) if sheet else card(name)).build()
    figures = {figure.name: figure for figure in task.key_figures()}
    setpoint_figures = [
        figure
        for name, figure in figures.items()
        if name.startswith("setpoint_") and name != "setpoint_length"
    ]
    key = jax.random.key(0)
    params = jax.jit(task.sample_params)(key, 1)
    first = jax.jit(jax.vmap(task.initial, (0, None)))(jax.random.split(key, 4096), params).setpoint
    for figure, values in zip(setpoint_figures, first, strict=True):
        span = figure.high - figure.low
        assert figure.low - 1e-6 * span <= values.min() < figure.low + 0.02 * span
        assert figure.high - 0.02 * span < values.max() <= figure.high + 1e-6 * span
    if "setpoint_length" in figures:
        longest = np.hypot(first[0], first[1]).max()
        assert figures["setpoint_length"].high == pytest.approx(longest, rel=0.01)
    state = jax.jit(task.initial)(key, params)
    values = (
        task.controlled_values(state, params)
        if hasattr(task, "controlled_values")
        else state.current
    )
    missed = [
        value - figures[f"halving_error_{figure.name.removeprefix('setpoint_')}"].low
        for value, figure in zip(values, setpoint_figures, strict=True)
    ]
    before = state._replace(
        setpoint=type(state.setpoint)(*missed) if name == "PMSMCurrent-v0" else tuple(missed)
    )
    assert float(task.reward(before, None, state, key, params)) == pytest.approx(0.5)


def test_base_speed_is_where_the_voltage_holds_the_nominal_current() -> None:
    """Solve |u| = U for the speed by bisection, with the plant's own equations."""
    plant = PMSM()
    base = plant.base()
    i_d, i_q = (float(part) for part in plant.currents_for(base.torque, None))
    assert math.hypot(i_d, i_q) == pytest.approx(plant.nominal_current, rel=1e-4)
    machine, low, high = plant.nominal, 0.0, 1000.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        w = plant.pole_pairs * middle
        u_d = machine.resistance * i_d - w * machine.inductance_q * i_q
        u_q = machine.resistance * i_q + w * (machine.inductance_d * i_d + machine.magnet_flux)
        low, high = (middle, high) if math.hypot(u_d, u_q) < plant.unit else (low, middle)
    assert base.speed == pytest.approx(low, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inductance_d": 2e-3}, "inductance_d is above inductance_q"),
        ({"nominal_current": 500}, "nominal_current 500 A is above current_limit 400 A"),
        ({"link_voltage": 2}, "link_voltage 2 V does not hold the nominal current at standstill"),
        ({"period": 1e-2}, "too long: full voltage moves a current by"),
        ({"period": 1e-8}, "too short: at least 1e-06 s"),
    ],
)
def test_what_the_model_cannot_hold_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match="context own-") as caught:
        card("PMSMTorque-v0", context=change).build()
    assert message in str(caught.value)


def test_a_rotor_that_one_period_takes_past_its_limit_is_refused() -> None:
    with pytest.raises(
        ValueError, match="is too small: the torque of the nominal current changes the speed by"
    ):
        card("PMSMSpeed-v0", context={"inertia": 1e-12}).build()
    card("PMSMTorque-v0", context={"inertia": 1e-12}).build()  # its speed is given


def test_every_drive_either_takes_a_data_sheet_or_says_that_it_does_not() -> None:
    machines = {
        drive.settings["machine"]
        for drive in cards().values()
        if drive.family == "motor" and drive.build().constants()
    }
    assert machines == {"PMSM", "SynRM", "SCIM", "PermExDc", "SeriesDc"}
    assert constants(PMSM(), 1e-4)[-1].derived
    with pytest.raises(ValueError, match="takes no context"):
        card("EESMTorque-v0", context=SERVO)
    assert (
        own_plant(PMSM(), card("PMSMTorque-v0", context={"pole_pairs": 4}).context).pole_pairs == 4
    )


@pytest.mark.parametrize(("machine", "seed"), [("SCIM", 2), ("SynRM", 5)])
def test_random_plausible_machines_are_controlled(machine: str, seed: int) -> None:
    """Two of those that ``benchmarks/audits/random_plants.py`` draws; it reports all of them."""
    assert stable(judge_plant(machine, seed))


def test_random_machines_can_be_simulated() -> None:
    """Another machine for each seed, and none is refused before it is built."""
    for machine in DRAWS:
        sheets = [data_sheet(machine, seed) for seed in range(5)]
        assert len({sheet["link_voltage"] for sheet in sheets}) == len(sheets)
        for sheet in sheets:
            plant = own_plant(PLANTS[machine](), card(f"{machine}Speed-v0", context=sheet).context)
            assert plant.base().speed > 0


@pytest.mark.parametrize(
    ("name", "currents"),
    [
        ("PMSMSpeed-v0", (-150.0, 200.0)),
        ("PMSMSpeed-v0", (-100.0, 0.0)),
        ("SeriesDcTorque-v0", (500.0,)),
    ],
    ids=["overload", "within the nominal current", "beyond the limit"],
)
def test_a_context_prices_overload(name: str, currents: tuple[float, ...]) -> None:
    """The excess over the nominal current is charged up to the limit, where the drive trips."""
    shipped: Any = card(name).build()
    weights = {"tracking": 0.8, "overload": 0.5}
    task: Any = card(name, context={"reward": weights}).build()
    with precision(task):
        params = task.sample_params(jax.random.key(0), 1)
        state = task.initial(jax.random.key(1), params)
        next_state = state._replace(
            electrical=type(state.electrical)(*(np.float32(i) for i in currents))
        )
        reward = np.asarray(task.reward(state, None, next_state, None, params))
        tracking = float(shipped.reward(state, None, next_state, None, params))
        value = float(task.controlled_values(next_state, params)[0])
    error = abs(value - float(state.setpoint[0])) / task.goal.halving[0]
    assert tracking == pytest.approx(1 / (1 + error), rel=1e-4)
    plant = task.plant
    excess = max(min(math.hypot(*currents), plant.current_limit) / plant.nominal_current - 1, 0)
    assert float(reward) == pytest.approx(0.8 / (1 + error) - 0.5 * excess, rel=1e-4)
    assert task.reward_space.contains(reward.astype(np.float32))
    largest_excess = plant.current_limit / plant.nominal_current - 1
    np.testing.assert_allclose(
        [task.reward_space.low, task.reward_space.high], [-0.5 * largest_excess, 0.8], rtol=1e-5
    )


def test_a_price_of_overload_takes_off_so_much_of_the_cost() -> None:
    """Check whole episodes under random voltages.

    What lies beyond the limit as the drive trips is not charged.
    """
    shipped_task, priced_task = (
        card("PMSMTorque-v0", context=context).build()
        for context in (None, {"reward": {"overload": 0.5}})
    )
    voltages = (
        np.random.default_rng(0).uniform(-0.1, 0.1, (8, 25, 2)).repeat(20, 1).astype(np.float32)
    )
    shipped, priced = (replay(task, voltages, range(8)) for task in (shipped_task, priced_task))
    assert shipped.cost.min() > 1
    assert 0 < shipped.terminated.sum() < 8
    beyond = np.maximum(shipped.info["current"] - 1, 0) * (400 / 240)
    np.testing.assert_allclose(
        priced.total, shipped.total - 0.5 * (shipped.cost - beyond), rtol=1e-4
    )
    np.testing.assert_array_equal(priced.cost, shipped.cost)


def test_weights_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"reward\.overload must be at least 0"):
        card("PMSMSpeed-v0", context={"reward": {"overload": -0.5}})
    with pytest.raises(ValueError, match="takes no context"):
        card("PMSMCurrent-v0", context={"reward": {"overload": 0.5}})


def test_a_record_beside_a_slower_machine_plays_the_same_episodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything takes twice the time on the slower machine.

    Inductance, flux and torque are doubled, speed is halved, and inertia is eight times as large.
    """
    drive = card("PMSMSpeed-v0")
    shipped: Any = drive.build()
    time = shipped.period * np.arange(2 * (drive.horizon + 1) + 10)
    speed, torque = 100 * np.sin(20 * time) + 30, 20 * np.sign(np.sin(60 * time))

    def records(factor: float) -> dict[str, Any]:
        return {
            "setpoint": {"time": factor * time, "speed": speed / factor},
            "load": {"time": factor * time, "load_torque": factor * torque},
        }

    sheet = {c.name: (c.low, c.high) for c in shipped.constants()}
    factors = {"inductance_d": 2, "inductance_q": 2, "magnet_flux": 2, "inertia": 8}
    slower: dict[str, Any] = {
        name: [by * end for end in sheet[name]] for name, by in factors.items()
    }
    slower["speed_limit"] = sheet["speed_limit"][0] / 2
    slower_card = card(drive.id, context=slower | records(2))
    slower_record = play_cascade(slower_card)
    record = play_cascade(card(drive.id, context=records(1)))
    assert not record.terminated.any()
    np.testing.assert_allclose(slower_record.total, record.total, rtol=1e-4)
    np.testing.assert_allclose(2 * slower_record.info["speed"], record.info["speed"], rtol=1e-4)
    np.testing.assert_allclose(
        slower_record.info["torque"], 2 * record.info["torque"], rtol=1e-2, atol=0.1
    )

    # The cache has it too. Where another constant changes the period, the record is not played at a
    # wrong pace.
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})
    assert card(slower_card.id) == slower_card
    constants = {constant.name: constant for constant in shipped.constants()}
    card(drive.id, context=times(slower_card.context, constants["inertia"], 1.2)).build()
    with pytest.raises(
        ValueError,
        match=r"was read at steps of 0\.0002 s, and a step is now 0\.00018 s: give its file",
    ):
        card(drive.id, context=times(slower_card.context, constants["inductance_d"], 0.9))
    fixed_period: Any = card(drive.id, context=slower | records(2) | {"period": 2e-4})
    card(drive.id, context=times(fixed_period.context, constants["inductance_d"], 0.9)).build()


def test_a_record_outside_the_range_of_the_own_machine_is_refused_with_its_row() -> None:
    half = {"speed_limit": card("PMSMSpeed-v0").build().plant.speed_limit / 2}  # type: ignore[attr-defined]
    time = np.linspace(0, 1, 11)
    speed = np.where(np.arange(11) == 4, 100.0, 0.0)
    with pytest.raises(ValueError, match="speed must be from -70 to 70 rad/s, got 100 in row 5"):
        card("PMSMSpeed-v0", context=half | {"setpoint": {"time": time, "speed": speed}})
    for context, printed in (
        (None, "speed (rad/s, -140 to 140)"),
        (half, "speed (rad/s, -70 to 70)"),
    ):
        task: Any = card("PMSMSpeed-v0", context=context).build()
        assert f"columns time (s), {printed}" in template(
            task.card.id, task.constants(), task.series()
        )
    with pytest.raises(ValueError, match="does not hold the nominal current at standstill"):
        card(
            "PMSMSpeed-v0", context={"link_voltage": 2, "setpoint": {"time": time, "speed": speed}}
        )


def test_a_record_takes_the_place_of_settings_and_runs_with_one_as_long() -> None:
    time = 1e-4 * np.arange(4000)
    setpoint = {"time": time, "speed": 50 * np.sin(20 * time)}
    with pytest.raises(
        ValueError, match="a record of the setpoint, so setpoint=step has no effect"
    ):
        card("PMSMSpeed-v0?setpoint=step", context={"setpoint": setpoint}).build()
    load = {"time": time[:-1], "load_torque": np.ones(3999)}
    with pytest.raises(ValueError, match="must be equally long; got 4000 and 3999 periods"):
        card("PMSMSpeed-v0", context={"setpoint": setpoint, "load": load}).build()


def test_the_file_of_a_context_has_what_that_context_sets() -> None:
    time = 1e-4 * np.arange(4000)
    recorded: Any = card(
        "PMSMSpeed-v0",
        context={"period": 5e-5, "load": {"time": time, "load_torque": np.ones(4000)}},
    )
    task = recorded.build()
    text = template(recorded.id, task.constants(), task.series(), context=recorded.context)
    assert "\nperiod: 5e-05  # s" in text
    assert "# load: the context has a record of it" in text
    shipped: Any = card("PMSMSpeed-v0").build()
    assert "\n# period: 0.0001  # s" in template(shipped.card.id, shipped.constants())
