"""Test records of users.

Tasks play what the file says, splits lie apart in it, and bad files cost one sentence.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.contexts.time_series import MAX_BYTES, Column, Series, read_record
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.numerics.process import precision

SERIES = Series(
    "load",
    "torque",
    (Column("torque", "N m", -5, 5, ""), Column("speed", "rad/s", 0, 9, "")),
    "s",
    0.5,
    3,
)
OPTIONAL = SERIES._replace(columns=(*SERIES.columns[:1], SERIES.columns[1]._replace(optional=True)))
DEMAND = np.random.default_rng(0).poisson(6, (400, 3))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})


def demand_file(folder: Path, demand: np.ndarray = DEMAND) -> Path:
    rows = "\n".join(",".join(map(str, (t, *row))) for t, row in enumerate(demand.tolist()))
    (folder / "demand.csv").write_text(f"time,shop_1,shop_2,shop_3\n{rows}\n")
    (folder / "mine.yaml").write_text("demand: demand.csv\n")
    return folder / "mine.yaml"


def test_files_and_mappings_are_one_record(tmp_path: Path) -> None:
    columns = {"time": [0.0, 1.0, 2.0], "torque": [0.0, 2.0, -2.0], "speed": [1.0, 1.0, 3.0]}
    (tmp_path / "a.csv").write_text("speed,other,time,torque\n1,x,0,0\n1,y,1,2\n3,z,2,-2\n")
    pq.write_table(pa.table({**columns, "other": ["x", "y", "z"]}), tmp_path / "a.parquet")
    record = read_record(columns, SERIES, tmp_path)
    assert (
        record
        == read_record("a.csv", SERIES, tmp_path)
        == read_record(tmp_path / "a.parquet", SERIES, Path("/none"))
    )
    # Linear between rows.
    np.testing.assert_array_equal(record.values(), [[0, 1], [1, 1], [2, 1], [0, 2], [-2, 3]])


def test_ends_of_lines_drop_no_column(tmp_path: Path) -> None:
    text = "time,torque,speed\n0,0,1\n1,2,1\n2,-2,3\n"
    records = []
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "a.csv").write_bytes(text.replace("\n", end).encode())
        records.append(read_record("a.csv", OPTIONAL, tmp_path))
    assert records[0].columns == ("torque", "speed")
    assert records[0] == records[1] == records[2]


def test_prices_hold_until_the_next_row(tmp_path: Path) -> None:
    """Read prices of hours, halves and quarters.

    A step has the mean of its time, and the last row holds to its end.
    """
    series = Series(
        "prices", "", (Column("price", "EUR", -1, 9, "", holds=True, longest_gap=4),), "h", 2.0, 3
    )
    for times, values, means in (
        ([0, 4, 8], [1, -1, 3], [1, 1, -1, -1, 3]),
        ([0, 1, 2, 3, 4], [1, 2, 3, 5, 7], [1.5, 4, 7]),
        ([0, 3, 5, 7], [2, 4, 6, 8], [2, 3, 5, 7]),
    ):
        values_at_steps = read_record({"time": times, "price": values}, series, tmp_path).values()
        np.testing.assert_allclose(values_at_steps[:, 0], means, rtol=1e-12)
    with pytest.raises(
        ValueError,
        match="time must go up by at most 4 h from row to row, and goes up by 5 in row 2",
    ):
        read_record({"time": [0, 5, 6], "price": [1, 1, 1]}, series, tmp_path)


def test_demand_is_that_of_the_record(tmp_path: Path) -> None:
    with_record = card("Inventory-v0", context=demand_file(tmp_path))
    (tmp_path / "demand.csv").unlink()
    assert card(with_record.id) == with_record  # from this process; below from the cache
    task: Any = card(with_record.id).build()
    keys = jax.random.split(jax.random.key(0), 1000)
    starts = [
        np.asarray(jax.vmap(task.sample_params, (0, None))(keys, np.int32(split)).start)
        for split in (0, 1)
    ]
    assert (starts[0].min(), starts[0].max()) == (0, 100)
    assert (starts[1].min(), starts[1].max()) == (200, 300)
    key = jax.random.key(3)
    params = task.sample_params(key, np.int32(1))
    state = task.initial(key, params)
    assert float(params.shops[1].demand) == pytest.approx(DEMAND[:, 1].mean())
    step = jax.jit(task.transition)
    for period in range(3):
        after = step(state, np.zeros(4, np.int32), jax.random.fold_in(key, period), params)
        assert int(after.demanded - state.demanded) == DEMAND[int(params.start) + period].sum()
        state = after


def test_a_record_is_a_part_of_the_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory_card = card("Inventory-v0", context=demand_file(tmp_path))
    changed = DEMAND.copy()
    changed[7, 1] += 1
    assert card("Inventory-v0", context=demand_file(tmp_path, changed)).id != inventory_card.id
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})
    assert card(inventory_card.id).context == inventory_card.context
    for stored_copy in (tmp_path / "cache" / "contexts").glob("*.record"):
        stored_copy.write_bytes(b"\0" * 8 + stored_copy.read_bytes()[8:])
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})
    with pytest.raises(ValueError, match="its copy in the cache was changed"):
        card(inventory_card.id)


def test_weather_and_prices_are_those_of_the_records() -> None:
    hours = np.arange(100 * 24 + 1.0)
    sheet = {
        "weather": {
            "time": 3600 * hours,
            "radiation": 100 + 50 * np.sin(hours),
            "temperature": 5 + 0.001 * hours,
            "humidity": np.full(len(hours), 80.0),
        },
        "prices": {"time": 3600 * hours, "heat": 0.1 + 1e-5 * hours},
        "first_day": 31,
    }
    task: Any = card("Lettuce-v0", context=sheet).build()
    key = jax.random.key(0)
    for split, (first, last) in enumerate([(0, 9), (50, 59)]):
        params = task.sample_params(key, np.int32(split))
        day = int(params.row) // 48
        assert int(params.row) % 48 == 0
        assert first <= day <= last
        assert float(params.site.start) == 31 + day
        state = task.initial(key, params)
        step = jax.jit(task.transition)
        for steps in range(3):
            hour = 24 * day + 0.5 * steps
            observation = np.asarray(task.observation(state, key, params)) * np.concatenate(
                [[1] * 4, [500, 20, 100], [1] * 11]
            )
            np.testing.assert_allclose(observation[5:7], [5 + 0.001 * hour, 80], rtol=1e-5)
            assert float(observation[16]) * task.price_scales[1] == pytest.approx(
                0.1 + 1e-5 * hour, rel=1e-5
            )
            after = step(state, np.array([0, 0, 1], np.float32), key, params)
            reward = float(task.reward(state, None, after, key, params))
            gained = float(after.climate.dry_weight - state.climate.dry_weight) * float(
                params.prices.lettuce
            )
            # 150 W/m2, half an hour.
            assert gained - reward == pytest.approx(0.075 * (0.1 + 1e-5 * hour), rel=1e-3)
            state = after


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("time,torque\n0,1\n", "it has no column 'speed'"),
        (
            "time,torque,speed\n0,1,1\n1,1,1\n1,1,1\n",
            "time must increase from row to row, and does not in row 3",
        ),
        ("time,torque,speed\n0,1,1\n1,nan,1\n2,1,1\n", "torque is not finite in row 2: nan"),
        ("time,torque,speed\n0,1,1\n1,1e999,1\n2,1,1\n", "torque is not finite in row 2: inf"),
        (
            "time,torque,speed\n0,1,1\n1,-6,1\n2,1,1\n",
            "torque must be from -5 to 5 N m, got -6 in row 2",
        ),
        ("time,torque,speed\n0,1,1\n1,abc,1\n", "torque is no number in row 2: 'abc'"),
        ("time,torque,speed\n0,1,1\n1,,1\n", "torque is no number in row 2: ''"),
        (
            "time,torque,speed\n0,1,1\n0.5,1,1\n",
            "it has 2 steps of 0.5 s, and at least 3 are needed",
        ),
        ("time,torque,speed\n0,1,1\n1e9,1,1\n", "more than 200,000 steps"),
        ("time,torque,speed\n0,1,1\n0,1\n", "row 2 has 2 columns, and the header 3"),
        ("time,torque,speed\n", "time must increase"),
        ("time,torque,speed\n" + "1\n" * 200_002, "more than 200,000 rows"),
        ("\0" * (MAX_BYTES + 1), "larger than 33,554,432 bytes"),
        ("", "it has no column 'time'"),
        ("\xff" * 100, "it has no column 'time'"),
    ],
    ids=[
        "missing column",
        "time stands",
        "nan",
        "infinite",
        "range",
        "word",
        "empty cell",
        "short",
        "long time",
        "ragged",
        "header only",
        "many rows",
        "huge",
        "empty",
        "binary",
    ],
)
def test_a_bad_record_costs_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "bad.csv").write_text(text, "latin-1")
    with pytest.raises(ValueError, match=r"load 'bad\.csv': ") as caught:
        read_record("bad.csv", SERIES, tmp_path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_table_is_refused_for_its_size_and_for_names_that_stand_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = pa.array(np.arange(30.0))
    zeros = pa.array(np.zeros(30))
    twice = pa.table([times, zeros, zeros, zeros], ["time", "speed", "torque", "torque"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    (tmp_path / "twice.csv").write_text("time,speed,torque,torque\n0,1,2,2\n1,1,2,2\n")
    for name in ("twice.parquet", "twice.csv"):
        with pytest.raises(ValueError, match="the column 'torque' more than once"):
            read_record(name, SERIES, tmp_path)
    monkeypatch.setattr("rlbench_suite.contexts.time_series.MAX_ROWS", 20)
    table = pa.table([times, zeros, zeros], ["time", "speed", "torque"])
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    (tmp_path / "a.csv").write_bytes(
        b"time,speed,torque,z\r" + b"".join(b"%d,0,0,0\r" % t for t in range(30))
    )
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(ValueError, match="more than 20 rows"):
            read_record(name, SERIES, tmp_path)


def test_a_drive_follows_the_record_of_its_setpoint() -> None:
    task: Any = card("PMSMTorque-v0").build()
    rows = 2 * (task.card.horizon + 1) + 40
    torque = 50 * np.sin(0.01 * np.arange(rows))
    with_record: Any = card(
        "PMSMTorque-v0",
        context={"setpoint": {"time": task.period * np.arange(rows), "torque": torque}},
    )
    with_record = with_record.build()
    range_of_setpoint = with_record.key_figures()[0]
    assert (range_of_setpoint.low, range_of_setpoint.high) == (
        np.float32(torque.min()),
        np.float32(torque.max()),
    )
    key = jax.random.key(5)
    for split in (0, 1):
        params = with_record.sample_params(key, np.int32(split))
        first = int(params.pace)
        assert split * rows // 2 <= first <= split * rows // 2 + 20
        state = with_record.initial(key, params)
        step = jax.jit(with_record.transition)
        for after in range(3):
            assert float(state.setpoint[0]) == pytest.approx(torque[first + after], rel=1e-4)
            state = step(state, np.zeros(with_record.action_space.shape, np.float32), key, params)
    with pytest.raises(
        ValueError, match="setpoint: it has no column 'speed'"
    ):  # known, but of another quantity
        card(with_record.card.id.replace("Torque", "Speed"))
    with pytest.raises(ValueError, match="torque must be from -120 to 120 N m, got 200 in row 1"):
        card("PMSMTorque-v0", context={"setpoint": {"time": [0, 1], "torque": [200, 0]}})


def test_a_drive_works_against_the_record_of_its_load() -> None:
    """A step of a machine at rest under no voltage gains -T dt / (J + J_L).

    A record of zeros changes no bit.
    """
    plain: Any = card("PMSMSpeed-v0").build(dtype="float64")
    rows = 2 * (plain.card.horizon + 1)
    time = plain.period * np.arange(rows)
    torque = np.where(np.arange(rows) % 2, 3.0, -1.0)
    loaded, idle = (
        card("PMSMSpeed-v0", context={"load": {"time": time, "load_torque": values}}).build(
            dtype="float64"
        )
        for values in (torque, np.zeros(rows))
    )
    key = jax.random.key(2)
    with precision(plain):
        params: Any = loaded.sample_params(key, np.int32(0))
        loaded_state, plain_state, idle_state = (
            task.initial(key, task.sample_params(key, np.int32(0)))
            for task in (loaded, plain, idle)
        )
        steps = [jax.jit(task.transition) for task in (loaded, plain, idle)]
        inertia = float(params.machine.inertia + params.load.inertia)
        for number in range(3):
            still = np.zeros(2)
            before = float(loaded_state.speed - plain_state.speed)
            loaded_state = steps[0](loaded_state, still, key, params)
            plain_state = steps[1](plain_state, still, key, plain.sample_params(key, np.int32(0)))
            idle_state = steps[2](idle_state, still, key, idle.sample_params(key, np.int32(0)))
            gained = float(loaded_state.speed - plain_state.speed) - before
            against = torque[int(params.load.row) + number]
            assert gained == pytest.approx(-against * plain.period / inertia, rel=2e-2)
            assert (idle_state.speed, idle_state.electrical) == (
                plain_state.speed,
                plain_state.electrical,
            )
    record = play(loaded, reference_player(loaded), range(16))
    assert not record.terminated.any()
    with pytest.raises(ValueError, match="Unknown constant 'load'"):
        card("PMSMTorque-v0", context={"load": {"time": time, "load_torque": torque}})


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + b"\0" * 100)
    for source, sentence in (
        ("a.parquet", "Parquet"),
        ("none.csv", "there is no such file"),
        ("a" * 300 + ".csv", "File name too long"),
        ("/etc/passwd", "not a .csv or .parquet file"),
        (3, "load is a file"),
        ({"time": [0, 1]}, "it has no column 'torque'"),
        ({"time": [0, 1], "torque": ["a", "b"], "speed": [1, 1]}, "sequences of numbers"),
    ):
        with pytest.raises(ValueError, match=r"^load") as caught:
            read_record(source, SERIES, tmp_path)
        assert sentence in str(caught.value)
    with pytest.raises(ValueError, match="shop_1_demand follows from the record of demand"):
        card("Inventory-v0", context={"shop_1_demand": 3, "demand": {
            "time": range(400), **{f"shop_{i}": [1] * 400 for i in (1, 2, 3)},
        }}).build()  # fmt: skip


@pytest.mark.parametrize("name", ["Lettuce-v0", "Tomato-v0"])
def test_fractions_in_place_of_per_cent_are_refused(tmp_path: Path, name: str) -> None:
    [series] = [source for source in card(name).build().series() if source.name == "weather"]
    columns = {
        source.name: np.full(2 * series.min_steps, max(source.minimum, 0.9))
        for source in series.columns
    }
    weather = {"time": series.step * np.arange(2 * series.min_steps), **columns}
    weather["humidity"][7] = 1.5
    with pytest.raises(
        ValueError,
        match=r"humidity must be in %, and its largest value is 1\.5: multiply .* by 100",
    ):
        read_record(weather, series, tmp_path)
    weather["humidity"][7] = 1.6
    assert read_record(weather, series, tmp_path).values().max() == 1.6


def test_gaps_and_beginnings_by_day_are_refused(tmp_path: Path) -> None:
    daily = SERIES._replace(longest_gap=1.5, begins_at=24.0)
    for times, sentence in (
        (
            [0.0, 1.0, 3.0, 4.0],
            "time must go up by at most 1.5 s from row to row, and goes up by 2 in row 3",
        ),
        ([7.0, 8.0, 9.0, 10.0], "time must begin at a midnight, a multiple of 24 s, got 7"),
    ):
        columns = {"time": times, "torque": [0.0] * 4}
        read_record(columns, SERIES._replace(columns=SERIES.columns[:1]), tmp_path)
        with pytest.raises(ValueError, match=sentence):
            read_record(columns, daily._replace(columns=SERIES.columns[:1]), tmp_path)
    for name, gap in (("weather", 7200.0), ("prices", math.inf)):
        [series] = [source for source in card("Lettuce-v0").build().series() if source.name == name]
        assert (series.longest_gap, series.begins_at) == (gap, 86_400.0)
