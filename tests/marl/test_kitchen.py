"""The kitchen against recorded episodes of Overcooked-AI, and against its rules in plain Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import View, privileged_player, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.kitchen.kitchen import KitchenTask, Params, State, mirror_action
from rlbench_suite.envs.marl.kitchen.layouts import LAYOUTS, Place
from rlbench_suite.envs.marl.kitchen.rules import (
    ACTIONS,
    DISH,
    FULL_POT,
    STAY,
    Cook,
    Events,
    Kitchen,
    Pot,
)
from rlbench_suite.envs.marl.kitchen.words import pack

CARD = card("Kitchen-v0")
RECORDS = json.loads(Path(__file__).with_name("kitchen_records.json").read_text())["episodes"]
LETTERS = "XNSEWI"
WAYS = ((-1, 0), (1, 0), (0, 1), (0, -1))
EPISODES, STEPS = 210, 40
NAMES = (None, "onion", "dish", "soup1", "soup2", "soup3")


def build(layout: str, **choices: str) -> KitchenTask:
    return card("Kitchen-v0", layout=layout, **choices).build()


def plain_params(cooks: tuple[Cook, Cook]) -> Params:
    """Return a context without mirrors."""
    return Params(cooks, jnp.bool_(False), jnp.bool_(False))


def cooks_of(numbers: list[int]) -> tuple[Cook, Cook]:
    first, second = (Cook(*map(jnp.int32, numbers[4 * i : 4 * i + 4])) for i in range(2))
    return first, second


def listed(kitchen: Any, task: KitchenTask) -> list[int]:
    """Return a kitchen as the records have it."""
    numbers = [int(number) for cook in kitchen.cooks for number in cook]
    numbers += [int(number) for pot in kitchen.pots for number in pot]
    for row, word in enumerate(kitchen.counters):
        for column in range(task.layout.width):
            item = int(word) >> 3 * column & 7
            numbers += [row, column, item] if item else []
    return numbers


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["layout"])
def test_recorded_episodes_of_overcooked(record: dict[str, Any]) -> None:
    """States and both rewards; one cook of the first record makes a soup alone in 49 steps.

    Overcooked-AI pays 5 for a thin soup that is lifted. Here it pays back 3 for each of its onions.
    """
    task = build(record["layout"])
    served = build(record["layout"], reward="served")
    params = plain_params(cooks_of(record["start"]))
    actions = np.array(
        [[LETTERS.index(letter) for letter in pair] for pair in record["actions"].split()], np.int32
    )

    def step(state: State, action: jax.Array) -> Any:
        after = task.transition(state, action, jax.random.key(0), params)
        rewards = [t.reward(state, action, after, None, params) for t in (task, served)]
        return after, (after.kitchen, *rewards)

    _, (kitchens, rewards, served_rewards) = jax.jit(lambda s, a: jax.lax.scan(step, s, a))(
        task.initial(None, params), actions
    )
    kitchens = jax.tree.map(np.asarray, kitchens)
    for number, numbers in enumerate(record["states"]):
        kitchen = jax.tree.map(lambda leaf, k=number: leaf[k], kitchens)
        assert listed(kitchen, task) == numbers
    assert np.asarray(served_rewards).tolist() == [[value] * 2 for value in record["served"]]
    total = np.add(record["served"], record["shaped"])
    items = np.stack([cook.item for cook in kitchens.cooks], -1)
    lifted_onions = np.where(items[:-1] == DISH, items[1:] - DISH, 0)
    is_thin = (lifted_onions > 0) & (lifted_onions < FULL_POT)
    total[1:] -= np.where(is_thin, 5 + 3 * lifted_onions, 0).sum(-1)
    assert np.asarray(rewards).tolist() == [[value] * 2 for value in total]
    assert sum(record["served"]) >= 20


class PlainKitchen:
    """The rules in plain Python, with a dict of what lies on each counter and in each pot."""

    def __init__(
        self, plan: tuple[str, ...], cooks: list[dict], counters: dict, pots: dict
    ) -> None:
        self.plan = plan
        self.cooks = cooks
        self.counters = counters
        self.pots = pots

    def step(self, actions: list[str]) -> dict[str, int]:
        """Make a step and return what it earned."""
        events = dict.fromkeys(("onion", "dish", "lift", "serve"), 0)
        filled = 0
        for soup in self.pots.values():
            if soup["age"] is not None or soup["onions"] in (1, 2):
                filled += 1
        for cook, action in zip(self.cooks, actions, strict=True):
            if action == "interact":
                self.interact(cook, events, filled)
        goals = [self.goal(cook, action) for cook, action in zip(self.cooks, actions, strict=True)]
        here = [cook["cell"] for cook in self.cooks]
        if goals[0] != goals[1] and goals != here[::-1]:
            for cook, goal in zip(self.cooks, goals, strict=True):
                cook["cell"] = goal
        for soup in self.pots.values():
            if soup["age"] is not None:
                soup["age"] = min(soup["age"] + 1, 20)
        return events

    def numbers(self) -> list[int]:
        """Return cooks, pots and words of counters, in the order of a state."""
        numbers = []
        for cook in self.cooks:
            numbers += [*cook["cell"], cook["faces"], NAMES.index(cook["item"])]
        for soup in self.pots.values():
            numbers += [soup["onions"], -1 if soup["age"] is None else soup["age"]]
        words = [0] * len(self.plan)
        for (row, column), item in self.counters.items():
            words[row] += NAMES.index(item) * 8**column
        return numbers + words

    def goal(self, cook: dict, action: str) -> tuple[int, int]:
        """Turn a cook and return where the move leads."""
        if action not in ("north", "south", "east", "west"):
            return cook["cell"]
        cook["faces"] = ("north", "south", "east", "west").index(action)
        front = self.front(cook)
        return front if self.plan[front[0]][front[1]] == " " else cook["cell"]

    def front(self, cook: dict) -> tuple[int, int]:
        down, right = WAYS[cook["faces"]]
        return cook["cell"][0] + down, cook["cell"][1] + right

    def interact(self, cook: dict, events: dict[str, int], filled: int) -> None:
        """Do what the cell ahead allows."""
        front = self.front(cook)
        symbol, item = self.plan[front[0]][front[1]], cook["item"]
        if symbol == "X":
            if item and front not in self.counters:
                self.counters[front] = item
                cook["item"] = None
            elif not item and front in self.counters:
                cook["item"] = self.counters.pop(front)
        elif symbol == "O" and not item:
            cook["item"] = "onion"
        elif symbol == "D" and not item:
            dishes = [mate["item"] for mate in self.cooks].count("dish")
            if "dish" not in self.counters.values() and dishes < filled:
                events["dish"] += 1
            cook["item"] = "dish"
        elif symbol == "S" and item and item.startswith("soup"):
            events["serve"] += item == "soup3"
            cook["item"] = None
        elif symbol == "P":
            soup = self.pots[front]
            if item == "onion" and soup["age"] is None and soup["onions"] < 3:
                soup["onions"] += 1
                cook["item"] = None
                events["onion"] += 1
            elif not item and soup["age"] is None and soup["onions"]:
                soup["age"] = 0
            elif item == "dish" and soup["age"] == 20:
                cook["item"] = f"soup{soup['onions']}"
                events["lift"] += soup["onions"] == 3
                events["onion"] -= soup["onions"] % 3
                self.pots[front] = {"onions": 0, "age": None}


def sampled_kitchens(layout: str, rng: np.random.Generator) -> tuple[list[PlainKitchen], State]:
    """Return random kitchens, plain ones and a batch of states."""
    task = build(layout)
    plan = task.layout.plan
    plain, states = [], []
    for _ in range(EPISODES):
        pair = task.layout.starts[rng.integers(len(task.layout.starts))]
        headings, items = rng.integers(4, size=2).tolist(), rng.integers(6, size=2).tolist()
        pots = []
        for _ in task.layout.pots:
            onions = int(rng.integers(4))
            is_started = onions > 0 and rng.random() < 0.6
            pots.append((onions, int(rng.integers(10, 21)) if is_started else -1))
        lying = {
            cell: int(rng.integers(1, 6)) for cell in task.layout.counters if rng.random() < 0.2
        }
        plain.append(
            PlainKitchen(
                plan,
                [
                    {"cell": tuple(cell), "faces": heading, "item": NAMES[item]}
                    for cell, heading, item in zip(pair, headings, items, strict=True)
                ],
                {tuple(cell): NAMES[item] for cell, item in lying.items()},
                {
                    tuple(cell): {"onions": onions, "age": None if age < 0 else age}
                    for cell, (onions, age) in zip(task.layout.pots, pots, strict=True)
                },
            )
        )
        words = []
        for row in range(task.layout.height):
            words.append(
                pack(lying.get(Place(row, column), 0) for column in range(task.layout.width))
            )
        cooks = [
            Cook(*cell, heading, item)
            for cell, heading, item in zip(pair, headings, items, strict=True)
        ]
        kitchen = Kitchen((cooks[0], cooks[1]), tuple(Pot(*pot) for pot in pots), tuple(words))
        states.append(State(kitchen, Events(0, 0, 0, 0)))
    return plain, jax.tree.map(lambda *leaves: np.array(leaves, np.int32), *states)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rules_over_random_episodes(layout: str) -> None:
    """1,050 episodes of all layouts that start in random kitchens; cooks interact often."""
    task = build(layout)
    rng = np.random.default_rng(len(layout))
    plain, states = sampled_kitchens(layout, rng)
    shape = (STEPS, EPISODES, 2)
    actions = np.where(rng.random(shape) < 0.35, 5, rng.integers(6, size=shape)).astype(np.int32)
    params = plain_params(states.kitchen.cooks)

    def step(state: State, action: jax.Array) -> Any:
        after = task.transition(state, action, jax.random.key(0), params)
        return after, after

    program = jax.jit(jax.vmap(lambda s, a: jax.lax.scan(step, s, a), (0, 1)))
    _, after = program(states, actions)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(after)]
    numbers = np.stack(leaves, -1).tolist()
    total = np.zeros(4, int)
    for episode, kitchen in enumerate(plain):
        events = [0, 0, 0, 0]
        for number in range(STEPS):
            names = [ACTIONS[action] for action in actions[number, episode]]
            earned = kitchen.step(names)
            events = [a + b for a, b in zip(events, earned.values(), strict=True)]
            assert numbers[episode][number] == kitchen.numbers() + events
        total += np.abs(events)
    assert (total > 0).all()


def shown_cooks(layout: str, split: int) -> Any:
    """Return contexts of a split."""
    task = build(layout)
    keys = jax.random.split(jax.random.key(3), 500)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
    return jax.tree.map(np.asarray, params)


def test_contexts_of_the_splits_differ_by_a_parity() -> None:
    for layout in LAYOUTS:
        floor = LAYOUTS[layout].floor
        for split in (0, 1):
            first, second = shown_cooks(layout, split).cooks
            total = first.row + first.column + first.heading
            total = total + second.row + second.column + second.heading
            assert (total % 2 == split).all()
            cells = {*zip(first.row.tolist(), first.column.tolist(), strict=True)}
            assert cells == {tuple(cell) for cell in floor}
            assert ((first.row != second.row) | (first.column != second.column)).all()
            assert set(second.heading.tolist()) == {0, 1, 2, 3}


def test_rooms() -> None:
    """Two kitchens have two rooms, with one cook in each."""
    rooms = {name: len(set(layout.rooms.values())) for name, layout in LAYOUTS.items()}
    assert rooms == {
        "cramped_room": 1,
        "asymmetric_advantages": 2,
        "coordination_ring": 1,
        "forced_coordination": 2,
        "counter_circuit": 1,
    }
    for layout in LAYOUTS.values():
        reach = [layout.rooms[first] != layout.rooms[second] for first, second in layout.starts]
        assert all(reach) or layout.name not in ("asymmetric_advantages", "forced_coordination")


def seen_cell(task: KitchenTask, body: Any, params: Params) -> tuple[int, int]:
    """Return where the cooks see a cook or a pot."""
    row, column = task.mirror_place(Place(body.row, body.column), params)
    return int(row), int(column)


@pytest.mark.parametrize("mirrors", [(True, False), (False, True), (True, True)])
def test_a_mirrored_kitchen_is_seen_and_played_like_a_mirrored_plan(
    mirrors: tuple[bool, bool],
) -> None:
    """A task whose plan is mirrored shows the same in each step, but for the order of fixtures."""
    task = build("cramped_room")
    rows, columns = mirrors
    cells = task.layout.plan[:: -1 if rows else 1]
    cells = tuple(row[:: -1 if columns else 1] for row in cells)
    params = plain_params(cooks_of([1, 1, 0, 0, 2, 3, 2, 0]))
    params = params._replace(mirrors_rows=jnp.bool_(rows), mirrors_columns=jnp.bool_(columns))
    first, second = params.cooks
    plain = PlainKitchen(
        cells,
        [
            {
                "cell": tuple(
                    int(number) for number in task.mirror_place(Place(*cook[:2]), params)
                ),
                "faces": int(cook.heading) ^ (rows if cook.heading < 2 else columns),
                "item": None,
            }
            for cook in (first, second)
        ],
        {},
        {seen_cell(task, pot, params): {"onions": 0, "age": None} for pot in task.layout.pots},
    )
    step = jax.jit(lambda state, action: task.transition(state, action, None, params))
    see = jax.jit(lambda state: task.observation(state, None, params))
    state = task.initial(None, params)
    scale = np.array([task.layout.height - 1, task.layout.width - 1])
    rng = np.random.default_rng(0)
    for _ in range(300):
        action = np.where(rng.random(2) < 0.4, 5, rng.integers(6, size=2)).astype(np.int32)
        state = step(state, action)
        plain.step([ACTIONS[number] for number in action])
        observations = np.asarray(see(state))
        for i, cook in enumerate(plain.cooks):
            view = task.named(observations[i])
            assert np.rint(view["place"] * scale).tolist() == list(cook["cell"])
            assert np.argmax(view["heading"]) == cook["faces"]
            assert bool(view["item"][0]) == (cook["item"] == "onion")
            assert view["teammate"] == pytest.approx(
                (np.array(plain.cooks[1 - i]["cell"]) - cook["cell"]) / scale, abs=1e-6
            )
            kinds = "OODPS"
            for kind, offset in zip(kinds, np.rint(view["fixtures"] * scale), strict=True):
                row, column = (np.array(cook["cell"]) + offset).astype(int)
                assert cells[row][column] == kind
        counters = [
            cell
            for cell in np.ndindex(4, 5)
            if cells[cell[0]][cell[1]] == "X" and cell not in ((0, 0), (0, 4), (3, 0), (3, 4))
        ]
        flags = task.named(observations[0])["counters"]
        for cell, row in zip(counters, flags, strict=True):
            expected = [plain.counters.get(cell) == name for name in ("onion", "dish", "soup3")]
            assert row[:3].astype(bool).tolist() == expected
    assert plain.counters


def test_mirrored_actions_are_their_own_inverse() -> None:
    for rows, columns in ((0, 0), (0, 1), (1, 0), (1, 1)):
        params = Params(None, jnp.bool_(rows), jnp.bool_(columns))
        actions = jnp.arange(len(ACTIONS))
        there = mirror_action(actions, params)
        assert (mirror_action(there, params) == actions).all()


@pytest.mark.parametrize("layout", ["coordination_ring", "forced_coordination", "counter_circuit"])
def test_the_reference_serves_from_each_start(layout: str) -> None:
    """Cooks who meet in a ring, or cannot reach everything, do not wait for each other for ever."""
    task = build(layout)
    record = play(task, reference_player(task), range(64))
    assert record.info["success"].all()


@privileged_player
class Alone(eqx.Module):
    """Plays the first cook of the reference, while the other one stays."""

    team: Any

    def initial(self, params: Params) -> Any:
        return self.team.initial(params)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        actions, memory = self.team.act(memory, view, key)
        return actions.at[1].set(STAY), memory


@pytest.mark.parametrize("layout", ["cramped_room", "asymmetric_advantages", "forced_coordination"])
def test_a_cook_alone(layout: str) -> None:
    """It succeeds in two layouts where the one who stays is not in the way."""
    task = build(layout)
    record = play(task, Alone(reference_player(task)), range(64))
    success = record.info["success"].astype(bool)
    if layout == "forced_coordination":
        assert not record.info["soups"].any()
        return
    assert success.mean() > 0.25
    assert record.total[success].min() > 0.5 * task.card.scores(None)["reference"].mean


@pytest.mark.parametrize("layout", LAYOUTS)
def test_words_of_the_rules(layout: str) -> None:
    """Words name only what earns something by the chosen reward."""
    rules = build(layout).rules()
    for words in (
        "A good soup has 3 onions",
        "with empty hands, let it cook. After 20 steps the soup is ready",
        "served earns 20; an onion that goes into a pot 3; a good soup that is taken from a pot 5;",
        "a dish that is taken from the pile 3 if",
        f"with at least {LAYOUTS[layout].good} good soups served",
    ):
        assert words in rules
    assert "earn the same: a good soup that is served earns 20.\n" in (
        build(layout, reward="served").rules()
    )


def test_random_play_serves_nothing() -> None:
    task = CARD.build()
    record = play(task, Uniform(task.action_space), range(64))
    assert not record.info["success"].any()
    assert record.total.mean() < 20


def test_pettingzoo() -> None:
    parallel_api_test(TaskParallelEnv(CARD.build(), max_cycles=30), num_cycles=60)
