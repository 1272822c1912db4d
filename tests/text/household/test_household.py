"""Household and TextNav against their rules in plain Python.

Their reference is compared with plans of full knowledge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.household.players import Planner

pytestmark = pytest.mark.of_variants

# -- the rules, written out ------------------------------------------------------------------------

ROOMS = ["kitchen", "living room", "bedroom", "bathroom", "study"]
PLACES = {
    "kitchen": ["counter", "sink", "fridge", "microwave", "cupboard"],
    "living room": ["table", "sofa", "chest"],
    "bedroom": ["bed", "wardrobe"],
    "bathroom": ["shelf", "cabinet"],
    "study": ["desk", "drawer"],
}
NAMES = [place for room in ROOMS for place in PLACES[room]]
ROOM = {place: room for room in ROOMS for place in PLACES[room]}
OPENS = {"fridge", "microwave", "cupboard", "chest", "wardrobe", "cabinet", "drawer"}
TWICE = ("apple", "mug", "book", "cloth")
ONCE = ("potato", "tomato", "bread", "egg", "plate", "spoon", "pen", "knife")
THINGS = [f"{kind} {n}" for kind in TWICE for n in (1, 2)] + [f"{kind} 1" for kind in ONCE]
FOOD = {"apple", "mug", "potato", "tomato", "bread", "egg"}
WASHED = {*TWICE, "potato", "tomato", "plate", "spoon"}
CUT = {"apple", "potato", "tomato", "bread"}
APPLIANCE = {
    "heat": ("microwave", FOOD),
    "cool": ("fridge", FOOD),
    "clean": ("sink", WASHED - {"book"}),
}
RESULT = {"heat": "hot", "cool": "cold", "clean": "clean", "examine": "examined"}
TASKS = ["place", "examine", "clean", "heat", "cool", "two", "find"]


class Goal(NamedTuple):
    """Task in words."""

    task: str
    kind: str
    place: str
    sliced: bool


class House(NamedTuple):
    """The whole truth."""

    room: str
    where: tuple[tuple[str, str], ...]
    """Things and their places; "hand" is one."""
    opened: frozenset[str]
    marks: frozenset[tuple[str, str]]
    """Things and what was done to them."""


def in_reach(house: House, place: str) -> bool:
    return ROOM.get(place) == house.room and (place not in OPENS or place in house.opened)


def commands(house: House, doors: set[frozenset[str]]) -> Iterator[str]:
    """Yield the admissible commands."""
    where = dict(house.where)
    item_in_hand = next((item for item, place in where.items() if place == "hand"), None)
    yield "look"
    yield from (f"go {room}" for room in ROOMS if frozenset((room, house.room)) in doors)
    for place in PLACES[house.room]:
        if place in OPENS:
            yield f"close {place}" if place in house.opened else f"open {place}"
        if item_in_hand and in_reach(house, place):
            yield f"put it {place}"
    if item_in_hand is None:
        yield from (f"take {item}" for item, place in where.items() if in_reach(house, place))
    else:
        for verb, (appliance, takes) in APPLIANCE.items():
            if appliance in PLACES[house.room] and item_in_hand.split()[0] in takes:
                yield f"{verb} it"
        if house.room == "study":
            yield "examine it"
    if item_in_hand == "knife 1":
        for item, place in where.items():
            if (
                item.split()[0] in CUT
                and in_reach(house, place)
                and (item, "sliced") not in house.marks
            ):
                yield f"slice {item}"


def carry_out(house: House, command: str) -> House:
    """Return the house after an admissible command."""
    verb, _, target = command.partition(" ")
    where = dict(house.where)
    marks = set(house.marks)
    item_in_hand = next((item for item, place in where.items() if place == "hand"), "")
    if verb == "go":
        return house._replace(room=target)
    if verb in ("open", "close"):
        return house._replace(
            opened=house.opened | {target} if verb == "open" else house.opened - {target}
        )
    if verb == "take":
        where[target] = "hand"
    elif verb == "put":
        where[item_in_hand] = target.removeprefix("it ")
    elif verb == "slice":
        marks.add((target, "sliced"))
    elif verb in RESULT:
        marks -= {(item_in_hand, {"heat": "cold", "cool": "hot"}.get(verb, ""))}
        marks.add((item_in_hand, RESULT[verb]))
    return house._replace(where=tuple(where.items()), marks=frozenset(marks))


def tenths(house: House, goal: Goal) -> int:
    """Return the progress."""
    needed_mark = {"clean": "clean", "heat": "hot", "cool": "cold"}.get(goal.task)
    each = []
    for item, place in house.where:
        if item.split()[0] != goal.kind:
            continue
        marks = {mark for name, mark in house.marks if name == item}
        there = {"examine": "examined" in marks, "find": place == "hand"}.get(
            goal.task, place == goal.place
        )
        ready = (needed_mark is None or needed_mark in marks) and (
            not goal.sliced or "sliced" in marks
        )
        hand_tenths = 2 * (place == "hand")
        if goal.task == "two":
            each.append(5 if there else hand_tenths)
        else:
            so_far = (
                hand_tenths + 4 * (needed_mark in marks) + 2 * (goal.sliced and "sliced" in marks)
            )
            each.append(10 if there and ready else so_far)
    return sum(each) if goal.task == "two" else max(each)


def read(env: Any) -> tuple[House, Goal, set[frozenset[str]]]:
    """Return the truth of an environment."""
    state, params = env.unwrapped.episode.state, env.unwrapped.params
    where = tuple(
        (item, [*NAMES, "hand"][place]) for item, place in zip(THINGS, state.places, strict=True)
    )
    opened = frozenset(name for n, name in enumerate(NAMES) if int(state.opened) >> n & 1)
    sets = {"hot": state.hot, "cold": state.cold, "clean": state.clean, "sliced": state.sliced}
    sets["examined"] = state.examined
    marks = {
        (item, mark)
        for mark, of in sets.items()
        for n, item in enumerate(THINGS)
        if int(of) >> n & 1
    }
    kinds = [*TWICE, *ONCE]
    goal = Goal(TASKS[params.task], kinds[params.kind], NAMES[params.goal], bool(params.sliced))
    doors = {
        frozenset((ROOMS[a], ROOMS[b]))
        for a in range(5)
        for b in range(a)
        if params.distances[a, b] == 1
    }
    return House(ROOMS[state.room], where, opened, frozenset(marks)), goal, doors


@jax.jit
def plan(state: Any, params: Any) -> jax.Array:
    """Return the reference's action."""
    return Planner().act((), View(None, None, state, params), jax.random.key(0))[0]


# -- tests -----------------------------------------------------------------------------------------

TIERS = [
    ("Household-v0", "easy"),
    ("Household-v0", "medium"),
    ("Household-v0", "hard"),
    ("TextNav-v0", None),
]


def make(name: str, tier: str | None, **keywords: Any) -> Any:
    return gymnasium.make(f"rlsuite/{name}", **({"difficulty": tier} if tier else {}), **keywords)


@pytest.mark.parametrize(("name", "tier"), TIERS)
def test_games_are_those_of_the_rules(name: str, tier: str | None) -> None:
    env = make(name, tier)
    rng = np.random.default_rng(1)
    reached = 0
    task = env.unwrapped.task
    words = task._commands
    assert len(set(words)) == env.action_space.n
    for seed in range(8):
        env.reset(seed=seed)
        house, goal, doors = read(env)
        assert len(doors) == 4
        assert house.opened == house.marks == frozenset()
        total = 0.0
        over = False
        steps = 0
        last_places = {item: place for item, place in house.where if in_reach(house, place)}
        while not over:
            state, params = env.unwrapped.episode.state, env.unwrapped.params
            mask = env.unwrapped.action_masks()
            admissible = [command for command in commands(house, doors) if command in words]
            assert {words[n] for n in np.flatnonzero(mask)} == {*admissible}
            last_seen = zip(THINGS, state.last_seen, strict=True)
            remembered_places = {item: [*NAMES, "hand"][n] for item, n in last_seen if n <= 14}
            assert remembered_places == last_places
            # Half of the steps are the planner's, so that every kind of command and of goal is met.
            planned = words[int(plan(state, params))]
            assert planned in admissible
            command = planned if rng.random() < 0.5 else str(rng.choice(admissible))
            before, house = tenths(house, goal), carry_out(house, command)
            last_places |= {
                item: place
                for item, place in house.where
                if place == "hand" or in_reach(house, place)
            }
            _, reward, terminated, truncated, info = env.step(words.index(command))
            steps, total, over = steps + 1, total + reward, terminated or truncated
            assert read(env)[0] == house
            assert reward == pytest.approx((tenths(house, goal) - before) / 10 - 0.01, abs=1e-6)
            assert info["success"] is terminated is (tenths(house, goal) == 10)
        assert total == pytest.approx(tenths(house, goal) / 10 - 0.01 * steps, abs=1e-5)
        reached += info["success"]
    assert reached >= 5


def shortest_plan_length(house: House, goal: Goal, doors: set[frozenset[str]]) -> int:
    """Return the number of steps of the shortest plan of a player who knows where everything is."""
    relevant = {item for item, _ in house.where if item.split()[0] == goal.kind}
    relevant |= {"knife 1"} if goal.sliced else set()
    start = house._replace(
        where=tuple((item, place) for item, place in house.where if item in relevant)
    )
    useful = {place for _, place in start.where} | {goal.place}
    waiting = deque([(start, 0)])
    visited = {start}
    while waiting:
        now, steps = waiting.popleft()
        if tenths(now, goal) == 10:
            return steps
        for command in commands(now, doors):
            verb, _, target = command.partition(" ")
            # No shortest plan closes, looks, or opens what holds nothing of use; things are put
            # down anywhere alike.
            place = target.removeprefix("it ")
            if verb in ("look", "close") or (verb == "open" and place not in useful):
                continue
            if verb == "put" and place not in (goal.place, PLACES[now.room][0]):
                continue
            after = carry_out(now, command)
            if after not in visited:
                visited.add(after)
                waiting.append((after, steps + 1))
    raise AssertionError("no plan")


@pytest.mark.parametrize(
    ("name", "tier", "bound", "mean_steps"),
    [
        ("Household-v0", "medium", 7.37, 10.28),
        ("Household-v0", "hard", 9.02, 13.01),
        ("TextNav-v0", None, 2.92, 6.08),
    ],
)
def test_the_reference_reaches_every_goal_in_little_more_than_the_shortest_plan(
    name: str, tier: str | None, bound: float, mean_steps: float
) -> None:
    """The reference needs few steps more than a player who knows where everything is.

    Both are means over 100 houses.
    """
    task = make(name, tier).unwrapped.task
    record = play(task, Planner(), range(100), split="test")
    assert record.info["success"].all()
    env = make(name, tier, split="test")
    plans = []
    for seed in range(100):
        env.reset(seed=seed)
        plans.append(shortest_plan_length(*read(env)))
    steps = np.round(100 * (1 - record.total)).astype(int)
    assert (steps >= plans).all()
    assert (np.mean(plans), steps.mean()) == pytest.approx((bound, mean_steps))


@pytest.mark.parametrize(("name", "tier"), [("Household-v0", "hard"), ("TextNav-v0", None)])
def test_neither_the_reference_nor_the_words_know_what_was_not_seen(
    name: str, tier: str | None
) -> None:
    env: Any = make(name, tier)
    rng = np.random.default_rng(0)
    for seed in range(4):
        env.reset(seed=seed)
        over = False
        while not over:
            task = env.unwrapped.task
            state = env.unwrapped.episode.state
            params = env.unwrapped.params
            open_ = {n for n, place in enumerate(NAMES) if in_reach(read(env)[0], place)}
            hidden = np.array([n for n in range(14) if n not in open_])
            # Whatever was not seen may lie in any place that is not in sight.
            elsewhere = rng.choice(hidden, len(THINGS)).astype(np.int32)
            places = np.where(state.last_seen == 15, elsewhere, state.places).astype(np.int32)
            alternative = state._replace(places=places), params._replace(places=places)
            actions = [int(plan(*each)) for each in ((state, params), alternative)]
            assert actions[0] == actions[1]
            assert task.describe(state, params) == task.describe(*alternative)
            _, _, terminated, truncated, _ = env.step(actions[0])
            over = terminated or truncated


def test_the_splits_share_no_house_and_goals_are_of_all_kinds() -> None:
    task = card("Household-v0").build(difficulty="hard")
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in Split:
        params = jax.tree.map(
            np.asarray, draw(jax.random.split(jax.random.key(0), 2000), int(split))
        )
        assert (params.places.sum(1) % 2 == split).all()
        assert ((params.places >= 0) & (params.places < 14)).all()
        assert (np.bincount(params.task, minlength=6) > 250).all()
        assert params.sliced.mean() == pytest.approx(0.35, abs=0.1)
        assert (params.distances.max((1, 2)) <= 4).all()
        assert len({row.tobytes() for row in params.places}) == 2000


@pytest.mark.parametrize(
    "attack",
    [
        "take apple 1, take apple 2",
        "go kitchen go study",
        "put everything in the right place",
        "the task is done",
        "SYSTEM: progress 10",
        "open",
        "take",
        "0",
        "",
    ],
)
def test_words_that_are_no_command_cost_a_step_and_change_nothing(attack: str) -> None:
    env: Any = make("Household-v0", "medium", view="text")
    env.reset(seed=1)
    before = env.unwrapped.episode.state
    total = 0.0
    over = False
    while not over:
        _, reward, terminated, over, info = env.step(attack)
        total += reward
        assert info["invalid_action"]
        assert not terminated
        assert not info["success"]
    assert total == pytest.approx(-0.6)
    jax.tree.map(np.testing.assert_array_equal, before, env.unwrapped.episode.state)


def test_words_are_read_with_and_without_articles_and_refusals_say_why() -> None:
    env: Any = make("Household-v0", "medium", view="text")
    text, _ = env.reset(seed=0)
    task = env.unwrapped.task
    state = env.unwrapped.episode.state
    params = env.unwrapped.params
    assert "Your task: " in text
    for text, command in {"go to the study": "go study", "Open the  fridge": "open fridge"}.items():
        assert task.parse(text, state, params) == task.parse(command, state, params)
    holding_state = state._replace(places=np.where(np.arange(16) == 3, 14, state.places))
    for text in ("put mug 2 on the table", "put it in table"):
        assert (
            task.spell(task.parse(text, holding_state, params), holding_state, params)
            == "put it table"
        )
    with pytest.raises(ValueError, match="Did you mean 'open fridge'"):
        task.parse("open frige", state, params)
    with pytest.raises(ValueError, match="Unknown command"):
        task.parse("put mug 1 on the table", holding_state, params)
    *_, info = env.step("put it on the table")
    assert info["invalid_reason"] in {
        "your hands are empty",
        "the table is in another room, the living room",
    }
    *_, info = env.step("slice apple 1")
    assert info["invalid_reason"] == "the knife is not in your hand; you hold nothing"
    with pytest.raises(ValueError, match="is 1 "):
        card("Household-v0").build(difficulty=4)
