"""Survival against its rules in plain Python.

Tests also take closures over what can be had, and floods over the worlds.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from itertools import permutations
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.core.episode import Role, draw_key
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.survival.rules import solvable_worlds
from rlbench_suite.envs.text.survival.task import COLOURS, INK, LOOK_COLOURS, PLAYER, TILE, UNSEEN

pytestmark = pytest.mark.of_variants

# -- the rules, written out ------------------------------------------------------------------------

KINDS = [
    "edge", "grass", "sand", "path", "water", "lava", "tree", "stone", "coal", "iron", "diamond",
    "table", "furnace",
]  # fmt: skip
ITEMS = ["wood", "stone", "coal", "iron", "diamond", "sapling"]
TOOLS = [
    f"{material} {tool}" for tool in ("pickaxe", "sword") for material in ("wood", "stone", "iron")
]
ACTIONS = [
    "noop",
    "left",
    "right",
    "up",
    "down",
    "do",
    "sleep",
    "stone",
    "table",
    "furnace",
    "sapling",
    *TOOLS,
]
ACHIEVEMENTS = [f"collect {item}" for item in ITEMS] + [
    "drink", "eat cow", "eat plant", "wake up", "defeat zombie", "defeat skeleton", "place stone",
    "place table", "place furnace", "place sapling", *(f"make {tool}" for tool in TOOLS),
]  # fmt: skip
STEPS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
GROUND = {"grass", "sand", "path"}
SKY = {"grass", "sand", "path", "water", "lava"}
ROLES = ["cow", "cow", "zombie", "zombie", "zombie", "skeleton", "skeleton"]
TAKES = {
    "wood": {"wood": 1}, "stone": {"wood": 1, "stone": 1},
    "iron": {"wood": 1, "coal": 1, "iron": 1},
}  # fmt: skip
Cell = tuple[int, int]


def steps_between(cell: Cell, target: Cell) -> int:
    return abs(cell[0] - target[0]) + abs(cell[1] - target[1])


def step_from(cell: Cell, step: Cell) -> Cell:
    return cell[0] + step[0], cell[1] + step[1]


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


class Plain:
    """The world, the player and the creatures, one object at a time."""

    def __init__(self, state: Any, params: Any) -> None:
        world = np.asarray(state.world)
        rules = params.rules
        planes = world[:, None, :] >> np.arange(32, dtype=np.uint32)[:, None] & 1
        numbers = planes @ (1 << np.arange(4))  # (row, column)
        self.grid = [[KINDS[number] for number in row] for row in numbers.tolist()]
        self.holds = {
            kind: ITEMS[int(rules.contents) >> 3 * i & 7] for i, kind in enumerate(KINDS[6:11])
        }
        self.level = {kind: int(rules.levels) >> 2 * i & 3 for i, kind in enumerate(KINDS[6:11])}
        self.made_of = {
            "table": (ITEMS[int(rules.table_item)], 2),
            "furnace": (ITEMS[int(rules.furnace_item)], 4),
        }
        self.saplings = KINDS[int(rules.sapling_from)]
        self.swapped = bool(rules.swapped)
        self.me: Cell = (16, 16)
        self.facing = "down"
        self.asleep = False
        self.time = 0
        self.health = self.food = self.drink = self.energy = 9
        self.recovery = self.hunger = self.thirst = self.fatigue = 0
        self.items = dict.fromkeys(ITEMS, 0)
        self.tools = set[str]()
        self.achievements = set[str]()
        self.beasts: list[Cell | None] = [None] * 7
        self.hearts = [0] * 7
        self.waits = [0] * 7
        self.arrows: list[Cell | None] = [None] * 2
        self.flights: list[Cell] = [(0, 0)] * 2
        self.plants: list[list[Any] | None] = [None] * 2

    def at(self, cell: Cell) -> str:
        return self.grid[cell[0]][cell[1]]

    def occupied_cells(self) -> list[Cell]:
        plants = [plant[0] for plant in self.plants if plant]
        return [cell for cell in (*self.beasts, *self.arrows, *plants) if cell]

    def near(self, kind: str) -> bool:
        row, column = self.me
        return any(
            self.grid[r][c] == kind
            for r in range(row - 1, row + 2)
            for c in range(column - 1, column + 2)
        )

    def step(self, action: str, words: list[int]) -> None:
        before = self.health
        self.time += 1
        self.act(action, words[2] >> 25 & 7)
        self.live()
        self.creatures(words[:2])
        self.come_and_go(words[2])
        if self.health < before:
            self.asleep = False

    def act(self, action: str, luck: int) -> None:
        if self.asleep and self.energy >= 9:
            self.asleep = False
            self.achievements.add("wake up")
        if self.asleep:
            return
        if action in STEPS:
            self.facing = action
        ahead = step_from(self.me, STEPS[self.facing])
        kind = self.at(ahead)
        occupied = ahead in self.occupied_cells()
        if action in STEPS and not occupied and kind in {*GROUND, "lava"}:
            self.me = ahead
            if kind == "lava":
                self.health = 0
        elif action == "sleep" and self.energy < 9:
            self.asleep = True
        elif action == "do" and occupied:
            self.strike(ahead)
        elif action == "do":
            self.gather(ahead, kind, luck)
        elif action in ("stone", "table", "furnace", "sapling") and not occupied:
            self.put_down(action, ahead, kind)
        elif action in TOOLS:
            material = action.split(maxsplit=1)[0]
            ready = self.near("table") and (material != "iron" or self.near("furnace"))
            if ready and action not in self.tools and self.pay(TAKES[material]):
                self.tools.add(action)
                self.achievements.add(f"make {action}")

    def strike(self, ahead: Cell) -> None:
        best = [
            5 * ("iron sword" in self.tools),
            3 * ("stone sword" in self.tools),
            2 * ("wood sword" in self.tools),
            1,
        ]
        for i, beast in enumerate(self.beasts):
            if beast == ahead:
                self.hearts[i] -= max(best)
                if self.hearts[i] <= 0:
                    self.beasts[i] = None
                    self.achievements.add("eat cow" if ROLES[i] == "cow" else f"defeat {ROLES[i]}")
                    if ROLES[i] == "cow":
                        self.fill(self.swapped, 6)
        for plant in self.plants:
            if plant and plant[0] == ahead and plant[1] >= 200:
                plant[1] = 0
                self.achievements.add("eat plant")
                self.fill(self.swapped, 4)

    def fill(self, drink: bool, amount: int) -> None:
        if drink:
            self.drink = min(9, self.drink + amount)
            self.thirst = 0
        else:
            self.food = min(9, self.food + amount)
            self.hunger = 0

    def gather(self, ahead: Cell, kind: str, luck: int) -> None:
        if kind == "water":
            self.achievements.add("drink")
            self.fill(not self.swapped, 1)
        best = max([0, *(1 + i for i, tool in enumerate(TOOLS[:3]) if tool in self.tools)])
        item = self.holds[kind] if kind in self.holds and best >= self.level[kind] else None
        if kind == self.saplings and luck == 0:
            item = "sapling"
        if item and self.items[item] < 9:
            self.items[item] += 1
            self.achievements.add(f"collect {item}")
            if kind in self.holds and kind != "tree":
                self.grid[ahead[0]][ahead[1]] = "path"

    def pay(self, price: dict[str, int]) -> bool:
        if any(self.items[item] < number for item, number in price.items()):
            return False
        for item, number in price.items():
            self.items[item] -= number
        return True

    def put_down(self, what: str, ahead: Cell, kind: str) -> None:
        if what == "sapling":
            if kind == "grass" and None in self.plants and self.pay({"sapling": 1}):
                self.plants[self.plants.index(None)] = [ahead, 0]
                self.achievements.add("place sapling")
            return
        item, number = self.made_of.get(what, ("stone", 1))
        allowed = kind in (SKY if what == "stone" else GROUND) and (
            what != "furnace" or self.near("table")
        )
        if allowed and self.pay({item: number}):
            self.grid[ahead[0]][ahead[1]] = what
            self.achievements.add(f"place {what}")

    def live(self) -> None:
        pace = 1 if self.asleep else 2
        self.hunger = self.hunger + pace
        self.thirst = self.thirst + pace
        self.fatigue = min(self.fatigue - 1, 0) if self.asleep else self.fatigue + 1
        if self.hunger > 50:
            self.hunger = 0
            self.food = max(0, self.food - 1)
        if self.thirst > 40:
            self.thirst = 0
            self.drink = max(0, self.drink - 1)
        if self.fatigue < -10:
            self.fatigue = 0
            self.energy = min(9, self.energy + 1)
        if self.fatigue > 30:
            self.fatigue = 0
            self.energy = max(0, self.energy - 1)
        if self.food and self.drink and (self.energy or self.asleep):
            self.recovery += 4 if self.asleep else 2
        else:
            self.recovery -= pace
        change = (self.recovery > 50) - (self.recovery < -30)
        if change:
            self.recovery = 0
            self.health = min(9, max(0, self.health + change)) if self.health else 0

    def toward(self, cell: Cell, longer: bool) -> Cell:
        down, right = self.me[0] - cell[0], self.me[1] - cell[1]
        vertical = (abs(down) > abs(right)) == longer
        return (sign(down), 0) if vertical else (0, sign(right))

    def creatures(self, words: list[int]) -> None:  # noqa: PLR0912, PLR0915
        wishes: list[tuple[Cell, Cell] | None] = []  # where from, where to
        shoots = [False] * 7
        for i, beast in enumerate(self.beasts):
            roll = words[i // 4] >> 8 * (i % 4) & 255
            side, three_bits, two_bits, one_bit = roll & 3, roll >> 2 & 7, roll >> 5 & 3, roll >> 7
            if ROLES[i] == "skeleton":
                self.waits[i] = max(0, self.waits[i] - 1)
            if beast is None:
                wishes.append(None)
                continue
            anywhere = [(0, -1), (0, 1), (-1, 0), (1, 0)][side]
            away = steps_between(beast, self.me)
            step = (0, 0)
            walks = {"path"} if ROLES[i] == "skeleton" else GROUND
            if ROLES[i] == "cow":
                step = anywhere if one_bit else step
            elif ROLES[i] == "zombie":
                step = self.toward(beast, two_bits != 0) if away <= 8 and three_bits else anywhere
            elif away <= 5 and one_bit:
                shoots[i] = True
                walks = SKY
                if self.waits[i] == 0 and self.arrows[i - 5] is None:
                    step = self.toward(beast, True)
            elif away <= 8 and two_bits == 0:
                step = self.toward(beast, three_bits % 2 == 1)
            elif three_bits >= 6:
                step = anywhere
            target = step_from(beast, step)
            wishes.append((beast, target) if step != (0, 0) and self.at(target) in walks else None)
        for arrow, step in zip(self.arrows, self.flights, strict=True):
            target = step_from(arrow, step) if arrow else None
            wishes.append((arrow, target) if arrow and target and self.at(target) in SKY else None)
        hurt = sum(
            2
            for arrow, step in zip(self.arrows, self.flights, strict=True)
            if arrow and step_from(arrow, step) == self.me
        )
        occupied = {*self.occupied_cells(), self.me}
        allowed: list[Cell | None] = []
        for wish in wishes:
            target = wish[1] if wish and wish[1] not in occupied else None
            allowed.append(target)
            if target:
                occupied.add(target)
        self.arrows = allowed[7:]
        for i, beast in enumerate(self.beasts):
            target = allowed[i]
            if target and beast and shoots[i]:
                self.arrows[i - 5] = target
                self.flights[i - 5] = (target[0] - beast[0], target[1] - beast[1])
                self.waits[i] = 4
            elif target:
                self.beasts[i] = target
            now = self.beasts[i]
            if ROLES[i] == "zombie" and now and steps_between(now, self.me) <= 1:
                if self.waits[i]:
                    self.waits[i] -= 1
                else:
                    hurt += 7 if self.asleep else 2
                    self.waits[i] = 5
        self.health = max(0, self.health - hurt)
        for i, plant in enumerate(self.plants):
            if plant:
                plant[1] += 1
                if any(beast and steps_between(beast, plant[0]) == 1 for beast in self.beasts):
                    self.plants[i] = None

    def light(self) -> int:
        to_midnight = min(abs(self.time % 300 - hour) for hour in (-60, 240, 540))
        return min(8, to_midnight // 8)

    def come_and_go(self, word: int) -> None:
        offset = (word & 15, word >> 4 & 15)
        chance = word >> 8 & 255
        slot = word >> 16 & 7
        fades = word >> 19 & 63
        for i, beast in enumerate(self.beasts):
            if beast:
                away = steps_between(beast, self.me)
                pales = ROLES[i] == "zombie" and self.light() == 8 and fades == 0 and away > 4
                self.beasts[i] = None if away > 12 or pales else beast
        cell = step_from(self.me, (offset[0] - 8, offset[1] - 8))
        outside = not (0 < cell[0] < 31 and 0 < cell[1] < 31)
        if outside or cell in self.occupied_cells() or slot == 7 or self.beasts[slot]:
            return
        odds = {"cow": 64, "zombie": 6 + 15 * (8 - self.light()), "skeleton": 128}[ROLES[slot]]
        home, min_distance = (
            ("path", 4)
            if ROLES[slot] == "skeleton"
            else ("grass", 6 if ROLES[slot] == "zombie" else 4)
        )
        if chance < odds and self.at(cell) == home and steps_between(cell, self.me) >= min_distance:
            self.beasts[slot] = cell
            self.waits[slot] = 0
            self.hearts[slot] = 5 if ROLES[slot] == "zombie" else 3


def assert_equal_states(plain: Plain, state: Any) -> None:
    """Compare all that matters later."""
    number = lambda cell: 32 * cell[0] + cell[1] if cell else 0  # noqa: E731
    world = np.asarray(state.world)
    codes = (world[:, None, :] >> np.arange(32, dtype=np.uint32)[:, None] & 1) @ (1 << np.arange(4))
    assert [[KINDS[code] for code in row] for row in codes.tolist()] == plain.grid
    assert int(state.cell) == number(plain.me)
    assert state[3:7] == (plain.health, plain.food, plain.drink, plain.energy)
    assert state[7:11] == (plain.recovery, plain.hunger, plain.thirst, plain.fatigue)
    assert (bool(state.sleeping), int(state.time)) == (plain.asleep, plain.time)
    assert list(STEPS)[int(state.facing)] == plain.facing
    assert [int(state.items) >> 5 * i & 31 for i in range(6)] == [*plain.items.values()]
    assert {tool for i, tool in enumerate(TOOLS) if int(state.tools) >> i & 1} == plain.tools
    assert {
        name for i, name in enumerate(ACHIEVEMENTS) if int(state.unlocked) >> i & 1
    } == plain.achievements
    plants = [plant[0] if plant else None for plant in plain.plants]
    assert list(state.occupied_cells) == [
        number(cell) for cell in (*plain.beasts, *plain.arrows, *plants)
    ]
    for i, beast in enumerate(plain.beasts):
        if beast:
            assert (int(state.hearts[i]), int(state.waits[i])) == (plain.hearts[i], plain.waits[i])
            assert plain.at(beast) in GROUND  # never inside what is solid
    # Nor in one another.
    assert len({*plain.occupied_cells(), plain.me}) == len(plain.occupied_cells()) + 1
    for i, plant in enumerate(plain.plants):
        assert plant is None or int(state.ages[i]) == plant[1]


@cache
def contexts(difficulty: int) -> dict[Split, Any]:
    """Return 150 contexts of each split."""
    task: Any = card("Survival-v0").build(difficulty=difficulty)
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    keys = jax.random.split(jax.random.key(5), 150)
    return {split: jax.tree.map(np.asarray, draw(keys, int(split))) for split in Split}


def test_every_step_is_that_of_the_rules() -> None:
    """The reference player, disturbed by random actions, goes through all of the rules.

    It comes through the tree, fights, sleeps and dies.

    It plays usual worlds and permuted ones; the rules are a part of the context, so one environment
    plays both.
    """
    env: Any = gymnasium.make("rlsuite/Survival-v0")
    task = env.unwrapped.task
    player = reference_player(task)
    choose: Any = jax.jit(
        lambda state, params: player.act((), View(None, None, state, params), None)[0]
    )
    draw: Any = jax.jit(
        lambda seed, index, t: task.bits(draw_key(seed, index, t, Role.TRANSITION), 3)
    )
    rng = np.random.default_rng(1)
    reached_achievements: set[str] = set()
    reached_counts: dict[tuple[int, float], list[int]] = {}
    plays = [(10, 0, 1.0), (3, 0, 0.9), (4, 0, 0.0), (15, 3, 1.0), (6, 3, 0.9), (7, 3, 0.0)]
    for seed, permuted, care in plays:
        env.reset(seed=seed)
        if permuted:
            params = jax.tree.map(
                lambda leaf, seed=seed: leaf[seed], contexts(permuted)[Split.TRAIN]
            )
            start = env.unwrapped.episode.state._replace(world=params.world)
            env.unwrapped.episode = env.unwrapped.episode._replace(params=params, state=start)
        plain = Plain(env.unwrapped.episode.state, env.unwrapped.params)
        over = False
        earned = 0.0
        total = 0.0
        while not over:
            episode = env.unwrapped.episode
            calm = rng.random() < care
            action = int(choose(episode.state, episode.params)) if calm else int(rng.integers(17))
            words = np.asarray(draw(episode.seed, episode.index, episode.t + 1)).tolist()
            health = plain.health
            reached_before = len(plain.achievements)
            plain.step(ACTIONS[action], words)
            _, reward, terminated, truncated, info = env.step(action)
            assert_equal_states(plain, env.unwrapped.episode.state)
            earned = len(plain.achievements) - reached_before + (plain.health - health) / 10
            assert reward == pytest.approx(earned, abs=1e-6)
            total += earned
            assert terminated == (plain.health == 0 or len(plain.achievements) == 22)
            assert info["success"] == (len(plain.achievements) == 22)
            over = terminated or truncated
        assert total == pytest.approx(len(plain.achievements) - (9 - plain.health) / 10)
        reached_achievements |= plain.achievements
        reached_counts.setdefault((permuted, care), []).append(len(plain.achievements))
    assert len(reached_achievements) >= 18  # so most rules were at work
    # With these seeds the reference comes through the whole tree, under usual rules and permuted
    # ones.
    assert reached_counts[0, 1.0] == reached_counts[3, 1.0] == [22]
    assert max(*reached_counts[0, 0.0], *reached_counts[3, 0.0]) < 8


# -- what can be had -------------------------------------------------------------------------------


def closure(
    contents: tuple[str, ...], levels: tuple[int, ...], table: str, furnace: str
) -> set[str]:
    """Return what can be had under some rules, found one by one."""
    had: set[str] = set()
    while True:
        best = max([0, *(i + 1 for i, tool in enumerate(TOOLS[:3]) if tool in had)])
        new = {item for item, level in zip(contents, levels, strict=True) if best >= level}
        new |= {"the table"} & {"the table" if table in had else ""}
        new |= {"the furnace"} & {"the furnace" if {furnace, "the table"} <= had else ""}
        for tool in TOOLS:
            material = tool.split()[0]
            buildings = {"the table", "the furnace"} if material == "iron" else {"the table"}
            if {*TAKES[material], *buildings} <= had:
                new.add(tool)
        if new <= had:
            return had
        had |= new


ALL_OF_IT = {*ITEMS[:5], *TOOLS, "the table", "the furnace"}
NEEDED_FOR = {
    **{f"collect {item}": item for item in ITEMS[:5]}, **{f"make {tool}": tool for tool in TOOLS},
    "place stone": "stone", "place table": "the table", "place furnace": "the furnace",
}  # fmt: skip
"""Achievements that need a thing, with that thing."""


@pytest.mark.parametrize("difficulty", [0, 3])
def test_bare_hands_reach_every_achievement_that_needs_nothing(difficulty: int) -> None:
    """Beside what the closures below are about: so these reach all 22 where they reach all things.

    Water, grass, sand, and paths for skeletons are within reach of every world, as the flood below
    finds.
    """
    params_of_split = contexts(difficulty)[Split.TEST]
    for i in range(20):
        params = jax.tree.map(lambda leaf, i=i: leaf[i], params_of_split)
        plain = Plain(params, params)
        row, column = ahead = step_from(plain.me, STEPS[plain.facing])
        for kind, action in (("water", "do"), (plain.saplings, "do"), ("grass", "sapling")):
            plain.grid[row][column] = kind
            plain.act(action, 0)
        plain.plants[0] = [ahead, 200]
        plain.act("do", 0)
        plain.plants[0] = None
        for beast, hearts in ((0, 3), (2, 5), (5, 3)):
            plain.beasts[beast] = ahead
            plain.hearts[beast] = hearts
            for _ in range(hearts):
                plain.act("do", 0)
        for action, plain.energy in (("sleep", 8), ("noop", 9)):
            plain.act(action, 0)
        assert plain.achievements == {*ACHIEVEMENTS} - NEEDED_FOR.keys()
        assert not plain.tools
    assert {*NEEDED_FOR.values()} == ALL_OF_IT


def test_the_usual_tree_depends_on_what_it_should() -> None:
    """Without a thing, exactly what stands on it cannot be had."""
    usual = (*ITEMS[:5],), (0, 1, 1, 2, 3), "wood", "stone"
    assert closure(*usual) == ALL_OF_IT
    no_stone = closure(("wood", "wood", "coal", "iron", "diamond"), *usual[1:])
    assert ALL_OF_IT - no_stone == {
        "stone",
        "the furnace",
        "iron",
        "diamond",
        *TOOLS[1:3],
        *TOOLS[4:],
    }
    # No wood, no world.
    assert ALL_OF_IT - closure(usual[0], (1, 1, 1, 2, 3), *usual[2:]) == ALL_OF_IT
    assert ALL_OF_IT - closure(usual[0], (0, 1, 3, 2, 3), *usual[2:]) == {
        "coal", "diamond", "iron pickaxe", "iron sword",
    }  # fmt: skip


@pytest.mark.parametrize("costs", [False, True])
def test_exactly_the_solvable_permutations_are_drawn(costs: bool) -> None:
    shipped = {
        (
            tuple(ITEMS[world >> 3 * i & 7] for i in range(5)),
            tuple(world >> 15 + 2 * i & 3 for i in range(5)),
            ITEMS[world >> 25 & 7],
            ITEMS[world >> 28 & 7],
        )
        for world in solvable_worlds(costs).tolist()
    }
    assert len(shipped) == len(solvable_worlds(costs))
    buildings = [(a, b) for a in ITEMS[:5] for b in ITEMS[:5]] if costs else [("wood", "stone")]
    levels = sorted({*permutations((0, 1, 1, 2, 3))})
    every = [
        (contents, level, *pair)
        for contents in permutations(ITEMS[:5])
        for level in levels
        for pair in buildings
    ]
    selected_rules = (
        every
        if not costs
        else [every[i] for i in np.random.default_rng(0).choice(len(every), 4000, replace=False)]
    )
    for rules in selected_rules:
        assert (rules in shipped) == (closure(*rules) == ALL_OF_IT), rules
    assert all(closure(*rules) == ALL_OF_IT for rules in shipped)


# -- worlds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("difficulty", "needed"), [
    (0, {"coal": 8, "iron": 5, "diamond": 3}), (3, {"coal": 12, "iron": 12, "diamond": 12}),
])  # fmt: skip
def test_every_world_has_enough_of_everything_within_reach_on_foot(
    difficulty: int, needed: dict[str, int]
) -> None:
    needed = needed | {"tree": 1, "water": 1, "sand": 1, "stone": 12, "path": 1, "grass": 20}
    rules: dict[Split, set[Any]] = {split: set() for split in Split}
    for split, params in contexts(difficulty).items():
        codes = (params.world[:, :, None] >> np.arange(32, dtype=np.uint32)[:, None] & 1) @ (
            1 << np.arange(4)
        )
        assert not codes[:, [0, -1]].any()
        assert not codes[:, :, [0, -1]].any()
        assert codes.max() == 10
        assert {*((codes == KINDS.index("tree")).sum((1, 2)) % 2).tolist()} == {int(split)}
        for world in codes:
            grid = [[KINDS[code] for code in row] for row in world.tolist()]
            reachable = {(16, 16)}
            queue = deque([(16, 16)])
            cells_by_kind: dict[str, set[Cell]] = {kind: set() for kind in KINDS}
            while queue:
                here = queue.popleft()
                for step in STEPS.values():
                    cell = step_from(here, step)
                    cells_by_kind[grid[cell[0]][cell[1]]].add(cell)
                    if grid[cell[0]][cell[1]] in GROUND and cell not in reachable:
                        reachable.add(cell)
                        queue.append(cell)
            assert {
                kind: number for kind, number in needed.items() if len(cells_by_kind[kind]) < number
            } == {}
        rules[split] = {*zip(*(codes.tolist() for codes in params.rules[:4]), strict=True)}
    if difficulty:
        assert not rules[Split.TRAIN] & rules[Split.TEST]


def test_days_are_those_of_the_closed_form() -> None:
    env: Any = gymnasium.make("rlsuite/Survival-v0")
    observation, info = env.reset(seed=0)
    for t in range(140):
        from_midnight = min((t - 240) % 300, (240 - t) % 300)
        assert info["light"] == min(8, from_midnight // 8)
        assert env.unwrapped.task.named(observation)["light"] == np.float32(info["light"] / 8)
        observation, _, terminated, _, info = env.step(0)
        if terminated:
            break


# -- players and words -----------------------------------------------------------------------------


def test_words_numbers_and_pictures_show_the_same() -> None:
    env: Any = gymnasium.make("rlsuite/Survival-v0", view="text")
    numbers: Any = gymnasium.make("rlsuite/Survival-v0")
    text, _ = env.reset(seed=4)
    flags, _ = numbers.reset(seed=4)
    rng = np.random.default_rng(2)
    marks = dict(zip("#.,_~!T^cidtfCZS*pP", range(19), strict=True))
    for step in range(150):
        lines = text.split("\n\n")[1].splitlines()
        view = numbers.unwrapped.task.named(flags)["view"]
        if step % 10 == 0:
            picture = env.unwrapped.task.draw(env.unwrapped.episode.state, env.unwrapped.params)
            assert picture.shape == (7 * TILE + 64, 9 * TILE, 3)
            for i, j in np.ndindex(7, 9):
                mark = marks.get(lines[i][j], -1)
                tile = picture[i * TILE : (i + 1) * TILE, j * TILE : (j + 1) * TILE]
                if lines[i][j] == "@":
                    down, right = [*STEPS.values()][int(env.unwrapped.episode.state.facing)]
                    assert tuple(tile[TILE // 2 + 6, TILE // 2 - 6]) == PLAYER
                    assert tuple(tile[TILE // 2 + 9 * down, TILE // 2 + 9 * right]) == INK
                elif mark >= 13:
                    assert tuple(tile[17, 9]) == tuple(LOOK_COLOURS[mark - 13])
                else:
                    assert tuple(tile[2, 2]) == tuple(UNSEEN if mark < 0 else COLOURS[mark])
        for i in range(7):
            for j in range(9):
                mark = lines[i][j]
                if mark not in "@":
                    here = view[:, 9 * i + j]
                    top = max(np.flatnonzero(here[13:]) + 13, default=-1)
                    top = top if top >= 0 else max(np.flatnonzero(here[:13]), default=-1)
                    assert marks.get(mark, -1) == top
        action = int(rng.integers(17))
        text, *_, info = env.step(env.unwrapped.task.spell(np.int32(action), None, None))
        assert "invalid_reason" not in info
        flags, _, terminated, *_ = numbers.step(action)
        if terminated:
            break
    env.reset(seed=4)
    *_, info = env.step("move left right")
    assert "invalid_reason" in info


def test_wrong_difficulties_are_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 3"):
        gymnasium.make("rlsuite/Survival-v0", difficulty=4)
