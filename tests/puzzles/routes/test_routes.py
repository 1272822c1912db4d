"""Tests of Maze and Navigation against what their prompts say.

The tests read the prompts themselves and solve them by plain relaxation.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.routes.navigation import NAMES
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
IDS = ["Maze-v0", "Navigation-v0"]
every_id = pytest.mark.parametrize("name", IDS)
every_tier = pytest.mark.parametrize("tier", ["easy", "medium", "hard"])

Map = dict[str, dict[str, int]]


def read_maze(prompt: str) -> tuple[Map, str, str]:
    """Rooms by 'row,column', walls from the picture in characters."""
    lines = [line for line in prompt.split("\n") if line[:1] in ("+", "|")]
    side = len(lines) // 2
    roads: Map = {}
    ends = {}
    for r in range(side):
        for c in range(side):
            roads[f"{r},{c}"] = {}
            mark = lines[2 * r + 1][4 * c + 2]
            if mark != " ":
                ends[mark] = f"{r},{c}"
            for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                if lines[2 * r + 1 + down][4 * c + 2 + 2 * right] == " ":
                    roads[f"{r},{c}"][f"{r + down},{c + right}"] = 1
    return roads, ends["S"], ends["G"]


def read_roads(prompt: str) -> tuple[Map, str, str]:
    """Places by name, from the sentences."""
    roads: Map = {}
    for place, roads_text in re.findall(r"From (\w+) (?:a road leads|roads lead) (.*)\.", prompt):
        for length, neighbour in re.findall(r"(\d+) km \w+ to (\w+)", roads_text):
            assert neighbour not in roads.get(place, {}), "a road is told once"
            roads.setdefault(place, {})[neighbour] = int(length)
            roads.setdefault(neighbour, {})[place] = int(length)
    start, goal = re.findall(r"route from (\w+) to (\w+)\.", prompt)[0]
    return roads, start, goal


def read_map(name: str, puzzle: Any, instance: Any) -> tuple[Map, str, str]:
    return (read_maze if name == "Maze-v0" else read_roads)(puzzle.prompt(instance))


def distances(roads: Map, goal: str) -> dict[str, int]:
    """Relax every road until nothing gets shorter (Bellman and Ford)."""
    to_goal = dict.fromkeys(roads, 10**6) | {goal: 0}
    before: dict[str, int] = {}
    while to_goal != before:
        before = to_goal.copy()
        for place, around in roads.items():
            to_goal[place] = min(
                [
                    to_goal[place],
                    *(length + to_goal[neighbour] for neighbour, length in around.items()),
                ]
            )
    return to_goal


def length_of(name: str, roads: Map, start: str, goal: str, words: list[str]) -> int | None:
    """Return the length of an answer's route; None if it is none."""
    places = [start]
    if name == "Maze-v0":
        for word in words:
            row, column = map(int, places[-1].split(","))
            down, right = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}[word]
            places.append(f"{row + down},{column + right}")
    else:
        places = words
    steps = list(pairwise(places))
    if places[0] != start or places[-1] != goal or any(b not in roads[a] for a, b in steps):
        return None
    return sum(roads[a][b] for a, b in steps)


@pytest.mark.engine("relaxation over what the prompt says: no shorter route")
@every_tier
@every_id
def test_no_route_is_shorter(name: str, tier: str, compared: Compared) -> None:
    puzzle = puzzle_of(name, tier)
    for seed in range({"easy": 700, "medium": 200, "hard": 100}[tier]):
        instance = puzzle.generate(seed)
        roads, start, goal = read_map(name, puzzle, instance)
        to_goal = distances(roads, goal)
        assert len(roads) == puzzle.places
        assert max(to_goal.values()) < 10**6, "every place can be reached"
        assert to_goal[start] == instance.shortest == puzzle.difficulty(instance)
        assert 3 * to_goal[start] >= 2 * max(to_goal.values())
        words = puzzle.solve(instance).split()
        assert length_of(name, roads, start, goal, words) == to_goal[start]
        compared(puzzle, instance)


@every_id
def test_any_shortest_route_is_right(name: str) -> None:
    """Walk down the distances at random where there are several routes."""
    puzzle = puzzle_of(name)
    rng = np.random.default_rng(0)
    other_routes = 0
    for seed in range(200):
        instance = puzzle.generate(seed)
        roads, start, goal = read_map(name, puzzle, instance)
        to_goal = distances(roads, goal)
        places = [start]
        while places[-1] != goal:
            here = places[-1]
            places.append(
                rng.choice(
                    [b for b, length in roads[here].items() if to_goal[b] + length == to_goal[here]]
                )
            )
        if name == "Maze-v0":
            cells = [tuple(map(int, place.split(","))) for place in places]
            ways = {(-1, 0): "U", (1, 0): "D", (0, -1): "L", (0, 1): "R"}
            places = [ways[b[0] - a[0], b[1] - a[1]] for a, b in pairwise(cells)]
        answer = " ".join(places)
        other_routes += answer != puzzle.solve(instance)
        assert puzzle.verify(instance, answer) == (True, True, True, 1.0, "")
    assert other_routes > 5


@every_id
def test_a_verdict_says_what_a_route_is_worth(name: str) -> None:
    puzzle = puzzle_of(name, "easy")
    rng = np.random.default_rng(0)
    scores = []
    for seed in range(1000):
        instance = puzzle.generate(seed)
        roads, start, goal = read_map(name, puzzle, instance)
        words = (
            puzzle.solve(instance),
            puzzle.guess(instance, Dice(1, seed)),
            puzzle.heuristic(instance),
        )[seed % 3].split()
        if seed % 7 == 0:  # there and back first
            there = (
                ["DULR"["UDRL".index(words[0])], words[0]][::-1] if name == "Maze-v0" else words[:2]
            )
            words = there + words
        if seed % 2:
            at = rng.integers(len(words))
            words[at] = rng.choice(puzzle.moves if name == "Maze-v0" else list(roads))
        if name == "Maze-v0" and not all(re.fullmatch("[UDLR]", word) for word in words):
            continue
        verdict = puzzle.verify(instance, " ".join(words))
        length = length_of_or_none(name, roads, start, goal, words)
        assert verdict.valid
        assert verdict.solved == (length is not None)
        assert verdict.score == pytest.approx(int(instance.shortest) / length if length else 0)
        scores.append(verdict.score)
    assert scores.count(1) > 200
    assert scores.count(0) > 200
    assert sum(0 < score < 1 for score in scores) > 5


def length_of_or_none(name: str, roads: Map, start: str, goal: str, words: list[str]) -> int | None:
    try:
        return length_of(name, roads, start, goal, words)
    except KeyError:  # out of the maze
        return None


@pytest.mark.parametrize(
    ("name", "answer"),
    [("Maze-v0", a) for a in ("", "UU", "up", "U,D", "U  D", "U\nD", "U " * 1001 + "U")]
    + [("Navigation-v0", a) for a in ("", "Atlantis", "0 1 2", "ashbury", "north east")],
)
def test_other_formats_are_invalid(name: str, answer: str) -> None:
    puzzle = puzzle_of(name)
    assert not puzzle.verify(puzzle.generate(0), answer).valid


@every_id
def test_disguises(name: str) -> None:
    """Maps turned by NumPy have the same canonical form; maps with another goal have another."""
    puzzle: Any = puzzle_of(name)
    side = puzzle.side
    for seed in range(20):
        instance = puzzle.generate(seed)
        right, down = (
            np.array(line).reshape(side, side) for line in (instance.right, instance.down)
        )
        ends = np.zeros((side, side), int)
        ends.flat[int(instance.start)], ends.flat[int(instance.goal)] = 1, 2
        forms = set()
        for _ in range(4):
            for mirrored in (False, True):
                r, d, e = (right.T, down.T, ends.T) if mirrored else (right, down, ends)
                r, d = (d, r) if mirrored else (r, d)
                start, goal = (np.flatnonzero(e == k)[0] for k in (1, 2))
                fields = {
                    "right": r.ravel(),
                    "down": d.ravel(),
                    "start": np.int16(start),
                    "goal": np.int16(goal),
                }
                forms.add(puzzle.canonical(instance._replace(**fields)))
            # a quarter counterclockwise: what lay on the right lies above, so a road down comes
            # from the left of it
            right, down = np.rot90(down), np.roll(np.rot90(right), -1, 0)
            ends = np.rot90(ends)
        assert len(forms) == 1
        assert forms.isdisjoint(
            {puzzle.canonical(instance._replace(goal=instance.start, start=instance.goal))}
        )


@every_id
def test_the_task_plays_by_the_same_rules(name: str) -> None:
    """Random legal walks, in one batch: places, masks, rewards, ends."""
    task: Any = card(name).build(difficulty="easy")
    puzzle, count, steps = task.puzzle, 64, 10
    instances = [puzzle.generate(seed) for seed in range(count)]
    stacked = type(instances[0])(*(jnp.stack(column) for column in zip(*instances, strict=True)))
    context = Params(stacked, jnp.zeros((count, 1), jnp.int16))
    key = jax.random.key(0)
    state = jax.vmap(lambda p: task.initial(key, p))(context)
    masks = jax.jit(jax.vmap(task.action_mask))

    @jax.jit
    @jax.vmap
    def step(state: Any, action: jax.Array, p: Params) -> Any:
        new = task.transition(state, action, key, p)
        return (
            new,
            task.reward(state, action, new, key, p),
            task.terminal(new, key, p),
            task.observation(new, key, p),
        )

    rng = np.random.default_rng(0)
    places = [int(instance.start) for instance in instances]
    side = puzzle.side
    ways = [(-1, 0), (1, 0), (0, -1), (0, 1)]

    def road(instance: Any, place: int, direction: int) -> int:
        row, column = divmod(place, side)
        to_row, to_column = row + ways[direction][0], column + ways[direction][1]
        if not (0 <= to_row < side and 0 <= to_column < side):
            return 0
        table = instance.down if direction < 2 else instance.right
        return int(table[min(place, to_row * side + to_column)])

    def place_name(place: int) -> str:
        return f"{place // side},{place % side}"

    to_goal = [distances(*read_map(name, puzzle, instance)[::2]) for instance in instances]

    def distance_left(k: int, place: int) -> int:
        """Moves of a shortest way through a maze; rows plus columns on a map."""
        if name == "Maze-v0":
            return to_goal[k][place_name(place)]
        goal = int(instances[k].goal)
        return abs(place // side - goal // side) + abs(place % side - goal % side)

    for _ in range(steps):
        lengths = [
            [road(i, place, direction) for direction in range(4)]
            for i, place in zip(instances, places, strict=True)
        ]
        assert np.asarray(masks(state, context)).tolist() == [
            [length > 0 for length in row] for row in lengths
        ]
        actions = [int(rng.choice(np.flatnonzero(row))) for row in lengths]
        state, reward, over, observations = step(state, jnp.asarray(actions), context)
        for k, (instance, action) in enumerate(zip(instances, actions, strict=True)):
            before, place = places[k], places[k] + ways[action][0] * side + ways[action][1]
            places[k] = place
            first = distance_left(k, int(instance.start))
            expected = (distance_left(k, before) - distance_left(k, place)) / first
            expected += place == int(instance.goal) != before
            expected -= 0.1 * lengths[k][action] / int(instance.shortest)
            assert reward[k] == pytest.approx(expected, abs=1e-5)
            assert over[k] == (place == int(instance.goal))
            assert task.observation_space.contains(np.asarray(observations[k]))
        assert np.asarray(state.place).tolist() == places


def test_passages_taken_are_marked() -> None:
    """Walk at random in a maze, and keep the marks by pairs of rooms.

    The marks are read from the observation and from the map in text.
    """
    task: Any = card("Maze-v0").build(difficulty="easy")
    side, places = task.puzzle.side, task.places
    key, rng = jax.random.key(0), np.random.default_rng(0)
    marks_met: set[int] = set()
    for seed in range(5):
        params = Params(task.puzzle.generate(seed), np.zeros(1, np.int16))
        state = task.initial(key, params)
        marks: dict[frozenset[int], int] = {}
        for _ in range(20):
            before = int(state.place)
            action = int(rng.choice(np.flatnonzero(task.action_mask(state, params))))
            state = task.transition(state, np.int32(action), key, params)
            here = int(state.place)
            marks[frozenset((before, here))] = min(2, marks.get(frozenset((before, here)), 0) + 1)
            observed_marks = np.asarray(task.observation(state, key, params))[-2 * places - 4 :] * 2
            rows = task.describe(state, params).split("\n")[2:]
            for place in range(places):
                row, column = divmod(place, side)
                right, down = (marks.get(frozenset((place, place + step)), 0) for step in (1, side))
                assert (observed_marks[place], observed_marks[places + place]) == (right, down)
                assert " .:".index(rows[2 * row + 1][4 * column + 4].replace("|", " ")) == right
                assert " .:".index(rows[2 * row + 2][4 * column + 2].replace("-", " ")) == down
            around = [marks.get(frozenset((here, here + step)), 0) for step in (-side, side, -1, 1)]
            assert observed_marks[-4:].tolist() == around
        marks_met |= set(marks.values())
    assert marks_met == {1, 2}


@every_id
def test_the_plan_earns_the_optimum(name: str) -> None:
    task = card(name).build(difficulty="easy")
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, task.card.optimum, atol=1e-4)


def test_success_of_navigation_is_a_shortest_route() -> None:
    """One step to and fro, and the same plan after it, arrives without success."""
    task, key = card("Navigation-v0").build(difficulty="easy"), jax.random.key(0)
    for seed in range(5):
        params = Params(task.puzzle.generate(seed), np.zeros(1, np.int16))
        plan = list(task.puzzle.plan(params.instance))
        away = plan[0]
        for moves, success in ((plan, True), ([away, away ^ 1, *plan], False), (plan[:-1], False)):
            state = task.initial(key, params)
            for move in moves:
                state = task.transition(state, np.int32(move), key, params)
            assert bool(task.info(state, params)["success"]) == success
            assert bool(task.terminal(state, key, params)) == (len(moves) >= len(plan))


@every_id
def test_people_can_play(name: str) -> None:
    task: Any = card(name).build(difficulty="easy")
    instance = task.puzzle.generate(0)
    params = Params(instance, np.zeros(1, np.int16))
    key = jax.random.key(0)
    state = task.initial(key, params)
    legal = np.asarray(task.action_mask(state, params))
    assert "@" in task.describe(state, params) or "You are in" in task.describe(state, params)
    for action, direction in enumerate(task.ways):
        assert direction in task.how_to_act()
        assert task.parse(f" {direction} ", state, params) == action
    blocked = int(np.argmin(legal))
    assert (
        task.why_illegal(np.int64(blocked), state, params)
        == f"there is no way {task.ways[blocked]} from here"
    )
    with pytest.raises(ValueError, match="expected one of"):
        task.parse("around", state, params)
    picture = task.draw(state, params)
    assert picture.shape == task.picture_shape
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3


def test_names_are_different_words() -> None:
    assert len(set(NAMES)) == len(NAMES) == 120
    assert all(re.fullmatch("[A-Z][a-z]+", name) for name in NAMES)


@pytest.mark.parametrize(
    ("name", "tier"),
    [("Maze-v0", 2), ("Maze-v0", 16), ("Navigation-v0", 9), ("Navigation-v0", 3.5)],
)
def test_other_sizes_are_refused(name: str, tier: float) -> None:
    with pytest.raises(ValueError, match="difficulty is the side of the map"):
        puzzle_of(name, tier)
