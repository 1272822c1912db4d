"""Test that every entry of every observation and action is explained.

Some explanations are checked by value.
"""

import re
from collections.abc import Iterator
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from rlbench_suite.core import registry
from rlbench_suite.core.component import (
    Component,
    action_in_words,
    named,
    rows,
    signals,
    unit_of_measure,
)
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard


def variations(card: TaskCard) -> Iterator[tuple[str, Any]]:
    """Yield the task of a card at every difficulty, and variations of it.

    A variation has a value of one setting that makes no listed id.
    """
    for tier in card.difficulties or (None,):
        yield f"{card.id} {tier or ''}", card.build(difficulty=tier)
    for name, allowed in registry.allowed_settings(card).items():
        for value in allowed[1:]:
            variation = registry.card(card.id, **{name: value})
            if variation.id not in registry.cards():
                yield variation.id, variation.build()


def faults(space: spaces.Space[Any], components: Any, agents: int) -> list[str]:
    """List the faults in the components of a space."""
    if not components:
        return ["none"]
    try:
        rows(space, components, agents)
    except ValueError as error:
        return [str(error)]
    groups = components.values() if isinstance(components, dict) else [components]
    messages = []
    for group in groups:
        names = [component.name for component in group]
        messages += [f"{name} comes twice" for name in set(names) if names.count(name) > 1]
        for name, meaning, unit in ((c.name, c.meaning.strip(), c.unit.strip()) for c in group):
            if (
                not name.strip()
                or not unit
                or not meaning
                or meaning.lower() == name.replace("_", " ").lower()
            ):
                messages.append(f"{name!r}: meaning {meaning!r}, unit {unit!r}")
    return messages


def test_every_entry_of_every_space_is_explained() -> None:
    # Tasks are built and nothing is compiled: all ids, tiers and settings take seconds.
    installed = [
        card
        for card in registry.cards().values()
        if card.family in registry.families() and card.installed
    ]
    offenders = []
    for card in installed:
        for name, task in variations(card):
            sides = {
                "observation": (task.observation_space, task.observation_components()),
                "action": (task.action_space, task.action_components()),
            }
            for side, (space, components) in sides.items():
                side_faults = faults(space, components, card.agents)
                offenders += [f"{name} {side}: {fault}" for fault in side_faults]
    assert not offenders, "\n".join(offenders)


def test_key_figures_have_a_name_a_meaning_and_a_unit() -> None:
    figures = []
    for card in registry.cards().values():
        if card.installed:
            for name, task in variations(card):
                figures += [(name, figure) for figure in task.key_figures()]
    assert figures
    offenders = [
        name
        for name, figure in figures
        if not (figure.name and figure.meaning and figure.unit and figure.low <= figure.high)
    ]
    assert not offenders


def test_recorded_measures_have_the_unit_that_their_words_end_with() -> None:
    words = {
        text
        for card in registry.cards().values()
        if card.family in registry.families() and card.installed
        for text in card.build().measures.values()
    }
    misplaced = [
        text
        for text in words
        for phrase in re.split("[,;]", text)[:-1]
        if unit_of_measure(phrase.strip()) != "1"
    ]
    assert not misplaced
    stated = {
        "N m": "N m", "of the shaft, rad/s": "rad/s", "of the car, u r, m/s^2": "m/s2",
        "inside, relative, %": "%", "used so far, kWh/m2": "kWh/m2", "in parts of the limit": "1",
        "at most 100 m": "1", "1 won, 2 lost": "1",
    }  # fmt: skip
    assert {text: unit_of_measure(text) for text in stated} == stated


class ObservationOnly:
    """Spaces and components alone."""

    def __init__(self, space: Any, components: Any) -> None:
        self.observation_space = space
        self.card = registry.card("SAT-v0")
        self.observation_components = lambda: components
        self.action_components = lambda: ()


def test_signals_turn_entries_into_quantities() -> None:
    task = registry.card("PMSMSpeed-v0").build()
    sides = {
        side: {signal.name: signal for signal in signals_of_side}
        for side, signals_of_side in task.signals.items()
    }
    volts = sides["action"]["u_q"]
    # With all digits: printed as 173.2.
    assert (volts.unit, volts.scale, volts.high) == ("V", 300 / 3**0.5, 300 / 3**0.5)
    speed = sides["observation"]["speed"]
    assert (speed.unit, speed.scale, speed.low) == (
        "rad/s",
        task.plant.speed_limit,
        -1.5 * task.plant.speed_limit,
    )
    rotation = registry.card("QuadcopterHover-v0").build().signals["observation"][1]
    assert (rotation.shape, rotation.columns()[5], rotation.scale) == ((3, 3), "rotation.1.2", 1.0)
    toy = ObservationOnly(
        spaces.Dict({"a": spaces.Box(-2, 3, (1,)), "b": spaces.Box(0, 1, (2,))}),
        {
            "a": (Component("turn", "how far", "90 degrees"),),
            "b": (Component("far", "place", "9 km", (2,)),),
        },
    )
    turn, distance = signals(toy)["observation"]
    assert (turn.name, turn.unit, turn.high) == ("a.turn", "rad", pytest.approx(1.5 * np.pi))
    assert (distance.columns(), distance.unit, distance.scale) == (
        ["b.far.0", "b.far.1"],
        "m",
        9000,
    )


def test_entries_have_the_names_of_their_components() -> None:
    components = (Component("speed", "of the car"), Component("place", "of the goal", shape=(2,)))
    car = named(components, np.array([3.0, 1.0, 2.0]))
    assert car["speed"] == 3
    assert car["place"].tolist() == [1, 2]
    agents = named(components, np.arange(6.0).reshape(2, 3))
    assert agents["speed"].tolist() == [0, 3]
    assert agents["place"].tolist() == [[1, 2], [4, 5]]
    by_key = named({"observation": components[:1], "desired_goal": components[1:]}, {
        "observation": np.array([3.0]), "desired_goal": np.array([1.0, 2.0])})  # fmt: skip
    assert by_key["observation"]["speed"] == 3
    assert by_key["desired_goal"]["place"].tolist() == [1, 2]


def test_components_that_do_not_cover_a_space_are_refused() -> None:
    three = spaces.Box(-1, 1, (3,))
    covering = (Component("a", "one"), Component("b", "two", shape=(2,)))
    assert [row.entries for row in rows(three, covering)] == ["0", "1:3"]
    for space, shape in (
        (three, (2,)),
        (spaces.Discrete(3), (4,)),
        (spaces.MultiDiscrete([2, 2]), (4,)),
    ):
        with pytest.raises(ValueError, match=f"cover {shape[0]} entries"):
            rows(space, (Component("a", "one", shape=shape),))
    with pytest.raises(ValueError, match="one array"):
        rows(spaces.Box(0, 1, (2, 3)), (Component("a", "one", shape=(6,)),))
    with pytest.raises(ValueError, match="parts"):
        rows(spaces.Dict({"a": three}), (Component("a", "one", shape=(3,)),))


# -- truth, by value -------------------------------------------------------------------------------


def first_state(task_id: str) -> tuple[Any, Any, Any]:
    """Return a task with the context and the first state of an episode."""
    task: Task[Any, Any] = registry.card(task_id).build()
    key = jax.random.key(0)
    params = jax.jit(task.sample_params)(key, jnp.int32(0))
    return task, params, jax.jit(task.initial)(key, params)


def observed_quantities(task: Any, state: Any, params: Any) -> dict[str, np.ndarray]:
    """Return the entries of an observation by name, in their units.

    Those of several agents are ``(agents, ...)``.
    """
    observation = np.asarray(jax.jit(task.observation)(state, jax.random.key(1), params))
    flat = observation.reshape(task.card.agents, -1)
    values = {}
    start = 0
    for component in task.signals["observation"]:
        end = start + len(component.columns())
        quantities = (
            flat[:, start:end].reshape(task.card.agents, *component.shape) * component.scale
        )
        values[component.name] = quantities if task.card.agents > 1 else quantities[0]
        start = end
    return values


def test_a_drive_shows_what_is_named() -> None:
    task, params, state = first_state("PMSMTorqueFinite-v0?supply=rc&delay=1")
    state = state._replace(
        electrical=state.electrical._replace(d=-40.0, q=80.0),
        speed=100.0,
        angle=1.0,
        setpoint=(50.0,),
        applied=(0.0, 1.0, 1.0),  # of phases c, b, a
        memories=state.memories._replace(
            link=state.memories.link._replace(voltage=0.9), waiting=jnp.int32(0b100)
        ),
    )
    observed = observed_quantities(task, state, params)
    torque = float(params.machine.torque(state.electrical))
    expected = {"i_d": -40, "i_q": 80, "speed": 100, "torque": torque, "setpoint_torque": 50}
    expected |= {
        "error_torque": 50 - torque,
        "cos_rotor": np.cos(1),
        "sin_rotor": np.sin(1),
        "link": 0.9,
    }
    expected |= {"applied_stator_a": 1, "applied_stator_b": 1, "applied_stator_c": 0}
    expected |= {"waiting_stator_a": 1, "waiting_stator_b": 0, "waiting_stator_c": 0}
    assert observed.keys() == expected.keys()
    for name, value in expected.items():
        assert observed[name] == pytest.approx(value, rel=1e-5), name


@pytest.mark.parametrize("task_id", ["PMSMCurrentFinite-v0", "ExtExDcCurrentFinite-v0"])
def test_switch_states_are_named_by_the_legs_that_they_put_up(task_id: str) -> None:
    task = registry.card(task_id).build()
    # Of the two legs of an H bridge, the first one lowest.
    order = ("low", "forward", "backward", "high")
    for state, component in enumerate(task.action_components()):
        legs = [int(leg) for leg in task.plant.legs(state)]
        if len(legs) == 3:
            # The lowest bit is phase c.
            assert component.name == f"stator {legs[2]}{legs[1]}{legs[0]}"
        else:
            armature = order[legs[0] + 2 * legs[1]]
            field = order[legs[2] + 2 * legs[3]]
            assert component.name == f"armature {armature} field {field}"


def test_a_quadcopter_shows_what_is_named() -> None:
    task, params, state = first_state("QuadcopterHover-v0")
    quarter = np.sqrt(0.5)  # a quarter turn to the left: the body's x is the world's y
    body = state.body._replace(
        x=0.1,
        y=0.2,
        z=0.3,
        vx=1.0,
        vy=2.0,
        vz=3.0,
        wx=4.0,
        wy=5.0,
        wz=6.0,
        qw=quarter,
        qx=0.0,
        qy=0.0,
        qz=quarter,
    )
    observed = observed_quantities(task, state._replace(body=body), params)
    np.testing.assert_allclose(observed["position"], [0.1, 0.2, 0.3], rtol=1e-6)
    np.testing.assert_allclose(observed["velocity"], [1, 2, 3])
    np.testing.assert_allclose(observed["angular_velocity"], [4, 5, 6])
    np.testing.assert_allclose(observed["rotation"] @ [1, 0, 0], [0, 1, 0], atol=1e-6)
    assert list(observed)[-1] == "rotors"


def test_a_swarm_shows_each_vehicle_its_neighbour() -> None:
    task, params, state = first_state("QuadcopterSwarm2-v0")
    observed = observed_quantities(task, state, params)
    body = state.vehicles.body
    positions = np.stack([body.x, body.y, body.z], 1)
    np.testing.assert_allclose(observed["neighbour_1"], positions[::-1] - positions, rtol=1e-5)
    np.testing.assert_allclose(
        np.linalg.norm(observed["goal"] + positions, axis=1), task.radius, rtol=1e-5
    )


def test_an_inventory_shows_what_is_named() -> None:
    task, params, state = first_state("Inventory-v0")
    third = state.shops[2]._replace(stock=jnp.int32(7), transit=(jnp.int32(1), jnp.int32(2)))
    state = state._replace(shops=(*state.shops[:2], third))
    observed = observed_quantities(task, state, params)
    assert observed["shop_3_stock"] == pytest.approx(7)
    assert observed["shop_3_arriving_1"] == pytest.approx(1)
    assert observed["shop_3_arriving_2"] == pytest.approx(2)
    assert observed["warehouse_stock"] == pytest.approx(float(state.warehouse.stock))
    assert observed["shop_1_penalty"] == pytest.approx(float(params.shops[0].penalty))


def test_a_grid_puzzle_shows_symbols_in_cells_and_fills_them() -> None:
    task = registry.card("Sudoku4-v0").build()
    [fill] = task.action_components()
    # The fourth symbol into the second row, third column.
    action = np.ravel_multi_index((1, 2, 3), fill.shape)
    assert action == task.parse("2 3 4", None, None)
    cells = np.zeros(16, np.int8)
    cells[1 * 4 + 2] = 4
    [component] = task.observation_components()
    one_hot = (cells[:, None] == np.arange(task.contents)).reshape(component.shape)
    assert one_hot[1, 2].tolist() == [False, False, False, False, True]
    assert one_hot[0, 0].tolist() == [True, False, False, False, False]


def test_small_observations_show_what_is_named() -> None:
    task, params, state = first_state("DeepSeaTreasure-v0")
    assert {
        k: round(float(v))
        for k, v in observed_quantities(task, state._replace(row=3, column=7), params).items()
    } == {
        "row": 3,
        "column": 7,
    }
    task, params, state = first_state("MarsCoverage-v0")
    observed = observed_quantities(task, state._replace(x=jnp.int32(5), y=jnp.int32(9)), params)
    assert (round(float(observed["x"])), round(float(observed["y"]))) == (5, 9)
    task, params, state = first_state("Lettuce-v0")
    observed = observed_quantities(task, state, params)
    assert observed["temperature"] == pytest.approx(float(state.climate.temperature), rel=1e-5)
    assert observed["dry_weight"] == pytest.approx(float(state.climate.dry_weight), rel=1e-5)
    assert observed["heat_price"] == pytest.approx(float(params.prices.heat), rel=1e-5)


def test_hopper_shows_what_is_named() -> None:
    pytest.importorskip("mujoco")
    task = registry.card("Hopper-v0").build()
    simulator: gymnasium.Env[Any, Any] = task.simulator()
    simulator.reset(seed=0)
    core: Any = simulator.unwrapped
    core.set_state(np.array([3.0, 1.1, 0.12, 0.13, 0.14, 0.15]), np.array([1.0, 2, 3, 4, 5, 6]))
    observed = dict(
        zip([c.name for c in task.observation_components()], core._get_obs(), strict=True)
    )
    joints = {
        name: float(core.data.joint(f"{name}_joint").qpos[0]) for name in ("thigh", "leg", "foot")
    }
    expected = {
        "height": 1.1,
        "torso_angle": 0.12,
        "hip_angle": joints["thigh"],
        "knee_angle": joints["leg"],
    }
    expected |= {
        "ankle_angle": joints["foot"],
        "forward_velocity": 1,
        "upward_velocity": 2,
        "torso_rate": 3,
    }
    for name, value in expected.items():
        assert observed[name] == pytest.approx(value), name
    simulator.close()


def installed_tasks() -> Iterator[Task[Any, Any]]:
    """Every task of this package whose simulator is installed, at its default difficulty."""
    for card in registry.cards().values():
        if card.family in registry.families() and card.installed:
            yield card.build()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TreasureMaps-v0", "sink (0)"),
        ("DeepSeaTreasure-v0", "up (0)"),
        ("Roundabout-v0", "IDLE (1)"),
        ("MagicSquare-v0", "fill[0, 0, 0] (0)"),
        ("HighwayContinuous-v0", "acceleration 0, steering 0"),
        ("Vicsek-v0", "turn 0, each agent"),
        ("MarsFleet-v0", "way 0"),
        ("SQL-v0", "tool 1, query 0"),
        ("QuadcopterHoverOne-v0", "rotors 0.334"),
    ],
)
def test_the_action_of_doing_nothing_has_a_name(name: str, words: str) -> None:
    task = registry.card(name).build()
    assert action_in_words(task, task.noop_action()) == words


def test_actions_in_words_are_those_of_the_space() -> None:
    maze = registry.card("ThresholdSAT-v0").build()
    last = int(maze.action_space.n) - 1
    assert action_in_words(maze, np.array(last)) == f"unsatisfiable ({last})"
    assert action_in_words(maze, np.array(7)) == "flip[7] (7)"
    car = registry.card("HighwayContinuous-v0").build()
    assert action_in_words(car, np.float32([0.5, -1 / 3])) == "acceleration 0.5, steering -0.3333"
    flock = registry.card("Vicsek-v0").build()
    # Agents that differ.
    assert action_in_words(flock, np.float32([[1], *[[0]] * 15])).startswith("[1, 0, 0")


def test_every_task_says_what_doing_nothing_and_success_are() -> None:
    for task in installed_tasks():
        assert action_in_words(task, task.noop_action()), task.card.id
        meaning = task.success_meaning
        assert len(meaning) > 3, task.card.id
        assert meaning != "the same", task.card.id
        assert not meaning.startswith("so they"), task.card.id
        assert not set("`|\n") & set(meaning), task.card.id


def test_success_is_explained_for_each_kind_of_reward() -> None:
    maze = registry.card("PointMaze-v0").build()
    assert maze.success_meaning.startswith("sparse: within 0.5 m of the goal, not later")
    assert maze.success_meaning.endswith("; dense: within 0.5 m of the goal")
    assert (
        registry.card("TMaze-v0")
        .build()
        .success_meaning.startswith("every turn was right and no step was wasted")
    )
    assert (
        registry.card("Navigation-v0").build().success_meaning
        == "the player is at the goal, by a shortest route"
    )
    assert registry.card("Hopper-v0").build().success_meaning.endswith("has not fallen")
