"""Test step responses against closed forms and SciPy's roots, and recordings against the env."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy.optimize import brentq

from rlbench_suite.adapters.entry_points import make
from rlbench_suite.cli import suite
from rlbench_suite.core import registry
from rlbench_suite.core.policy import reference_player
from rlbench_suite.evaluation.analysis.step_response import (
    Tracked,
    responses,
    step_response,
    steps_of,
    summarise,
    tracked_quantities,
)
from rlbench_suite.evaluation.trajectory import Trajectory, columns, play

TIME = np.linspace(0, 8, 80_001)


def test_a_first_order_lag_answers_as_its_closed_form() -> None:
    lag = 0.5
    response = step_response(TIME, 3 - 5 * (1 - np.exp(-TIME / lag)), 3.0, -2.0)  # downwards
    assert response.rise == pytest.approx(lag * math.log(9), abs=1e-6)
    assert response.settling == pytest.approx(lag * math.log(50), abs=1e-6)
    assert response.overshoot == 0


@pytest.mark.parametrize("damping", [0.2, 0.5, 0.707])
def test_a_second_order_lag_answers_as_its_closed_form(damping: float) -> None:
    fast, root = 4.0, math.sqrt(1 - damping**2)

    def at(t: float) -> float:
        phase = fast * root * t
        return 1 - math.exp(-damping * fast * t) * (
            math.cos(phase) + damping / root * math.sin(phase)
        )

    response = step_response(TIME, 10 + 2 * np.vectorize(at)(TIME), 10.0, 12.0)
    assert response.overshoot == pytest.approx(math.exp(-math.pi * damping / root), abs=1e-6)
    peak = math.pi / (fast * root)
    rise = brentq(lambda t: at(t) - 0.9, 0, peak) - brentq(lambda t: at(t) - 0.1, 0, peak)
    assert response.rise == pytest.approx(rise, abs=1e-6)
    # The error's extremes lie at whole multiples of the peak's time; it settles behind the last one
    # beyond 2 %.
    last = max(k for k in range(200) if abs(at(k * peak) - 1) > 0.02)
    edge = 1 + math.copysign(0.02, at(last * peak) - 1)
    assert response.settling == pytest.approx(
        brentq(lambda t: at(t) - edge, last * peak, (last + 1) * peak), abs=1e-5
    )


def test_ripple_and_what_never_settles() -> None:
    wave = np.sin(2 * np.pi * 50 * TIME)
    response = step_response(TIME, 1 - np.exp(-TIME / 0.01) + 0.01 * wave, 0.0, 1.0)
    assert response.ripple == pytest.approx(0.01 / math.sqrt(2), rel=0.01)
    never = step_response(TIME, 0.5 * (1 - np.exp(-TIME)), 0.0, 1.0)
    assert math.isnan(never.rise)
    assert math.isnan(never.settling)
    assert never.overshoot == 0


def test_steps_of_a_setpoint_are_found_and_walks_have_none() -> None:
    square = np.repeat([1.0, -1.0, 2.0], 100)
    assert steps_of(square) == [(0, 100), (100, 200), (200, 300)]
    walk = np.cumsum(np.random.default_rng(0).normal(size=300))
    assert steps_of(walk) == []
    time = np.arange(300) * 1e-3
    # One sample late.
    followed = Tracked("speed", "rad/s", time, square, np.concatenate([[0.0], square[:-1]]))
    assert len(responses(followed)) == 3
    [summary] = summarise([[followed]])
    assert (summary.steps, summary.settled_share, summary.overshoot) == (3, 1.0, 0.0)
    assert summary.rms_error == pytest.approx(math.sqrt((1 + 4 + 9) / 300))
    assert math.isnan(summarise([[followed._replace(setpoint=walk)]])[0].rise)


def test_a_recording_is_the_environments_own_episode_in_physical_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, picture = tmp_path / "run.csv", tmp_path / "run.png"
    with pytest.raises(SystemExit) as exit_info:
        suite.app(
            ["record", "PMSMCurrent-v0", "--agent", "noop", "--episodes", "2", "--seed", "5",
             "--out", str(out), "--plot", str(picture)]
        )  # fmt: skip
    output = capsys.readouterr().out
    assert not exit_info.value.code
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "rms error" in output
    table = pa_csv.read_csv(out)
    assert set(table["player"].to_pylist()) == {"noop", "reference"}
    rows = [row for row in table.to_pylist() if (row["player"], row["seed"]) == ("noop", 6)]
    env = make("PMSMCurrent-v0", split="test")
    observation, _ = env.reset(seed=6)
    signals = env.signals["observation"]
    for t, row in enumerate(rows):
        assert row["time [s]"] == pytest.approx(t * 1e-4)
        for value, signal in zip(observation, signals, strict=True):
            assert row[f"{signal.name} [{signal.unit}]"] == pytest.approx(
                float(value) * signal.scale, rel=1e-6
            )
        observation, reward, terminated, _, info = env.step(np.zeros(2, np.float32))
        assert row["reward [1]"] == pytest.approx(reward)
        assert row["measure.torque [N m]"] == pytest.approx(info["torque"])
        if terminated:
            break
    assert t == len(rows) - 1


def test_a_position_is_known_where_its_error_is() -> None:
    task = registry.card("PMSMPosition-v0").build()
    names = [signal.name for signal in task.signals["observation"]]
    scale = {signal.name: signal.scale for signal in task.signals["observation"]}
    observations = np.zeros((100, 1, len(names)), np.float32)
    value = 1 - np.exp(-np.arange(100) / 10)  # towards a set point of one
    observations[:, 0, names.index("setpoint_position")] = 1 / scale["setpoint_position"]
    observations[:, 0, names.index("error_position")] = np.clip(
        (1 - value) / scale["error_position"], -1.5, 1.5
    )
    none = np.zeros((100, 1, 2))
    episode = Trajectory(0, observations, None, none, np.zeros(100), None, {}, False, True)
    [position] = tracked_quantities(task, episode)
    end = 1.5 * scale["error_position"]
    assert 0 < position.time[0] == task.period * np.argmax(1 - value < 0.999 * end)
    np.testing.assert_allclose(position.value, value[-len(position.value) :], atol=1e-6)


def test_a_noisy_speed_is_judged_by_its_true_value() -> None:
    task = registry.card("PMSMSpeedIndustrial-v0?setpoint=step").build()
    [episode] = play(task, reference_player(task), range(1), split="test")
    table = columns(task, episode)
    [speed] = tracked_quantities(task, episode)
    np.testing.assert_array_equal(speed.value[1:], table["measure.speed [rad/s]"][:-1])
    np.testing.assert_array_equal(speed.setpoint, table["setpoint_speed [rad/s]"])
    assert np.abs(speed.value - table["speed [rad/s]"]).max() > 1


def test_every_column_but_the_count_of_steps_has_a_unit() -> None:
    task = registry.card("PMSMSpeed-v0").build()
    [episode] = play(task, reference_player(task), range(1), split="test")
    units = dict(
        name.removesuffix("]").split(" [") for name in columns(task, episode) if name != "step"
    )
    assert {name: unit for name, unit in units.items() if name.startswith("measure.")} == {
        "measure.error": "1",
        "measure.current": "1",
        "measure.torque": "N m",
        "measure.speed": "rad/s",
    }


def test_a_machines_energy_is_torque_losses_and_field() -> None:
    task = registry.card("PMSMCurrent-v0").build()
    [episode] = play(task, reference_player(task), [3])
    values_by_name = {
        name.rsplit(" [", 1)[0]: values for name, values in columns(task, episode).items()
    }
    env = make("PMSMCurrent-v0", split="test")
    env.reset(seed=3)
    resistance, *inductances, _ = map(float, env.params.machine)
    i_d = values_by_name["i_d"]
    i_q = values_by_name["i_q"]
    torque = values_by_name["measure.torque"]
    middle = [0.5 * (i[1:] + i[:-1]) for i in (i_d, i_q)]
    shaft = float(env.params.speed) * np.sum(0.5 * (torque[1:] + torque[:-1])[:-1]) * task.period
    losses = 1.5 * resistance * sum(np.sum(i**2) for i in middle) * task.period
    field = sum(
        0.75 * ind * (i[-1] ** 2 - i[0] ** 2)
        for ind, i in zip(inductances, (i_d, i_q), strict=True)
    )
    # The machine brakes here. The trapezoidal rule on steps of 0.1 ms leaves about a percent.
    assert task.energy(values_by_name) == pytest.approx(
        shaft + losses + field, abs=0.02 * (abs(shaft) + losses)
    )


def test_a_trained_policy_needs_its_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, message in (
        (["--agent", "ppo"], "'ppo' learns: train it with rlsuite-eval"),
        ([], "Name a player"),
        (["--agent", "noop", "--out", "run.txt"], "--out is a .parquet or .csv file"),
        (["--run", str(tmp_path), "ppo"], "is not a run directory"),
    ):
        with pytest.raises(SystemExit) as exit_info:
            suite.app(["record", "PMSMCurrent-v0", *arguments])
        assert exit_info.value.code == 2
        assert message in capsys.readouterr().err


def test_a_swarm_has_a_row_for_each_vehicle(tmp_path: Path) -> None:
    out = tmp_path / "swarm.parquet"
    with pytest.raises(SystemExit):
        suite.app(
            [
                "record",
                "QuadcopterMultiHover-v0",
                "--agent",
                "reference",
                "--episodes",
                "1",
                "--out",
                str(out),
            ]
        )
    table = pq.read_table(out)
    assert "goal.2 [m]" in table.column_names
    assert set(table["agent"].to_pylist()) == {0, 1}
