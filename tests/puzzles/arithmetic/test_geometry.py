"""Tests of Geometry-v0, whose prompts are read back as English.

Points are checked by what defines them, answers by other formulas.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from comparison import Compared
from writing_tasks import check_rewards, observations_after

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.arithmetic.geometry import (
    MAX_GIVEN,
    BoardGeometryPuzzle,
    GeometryPuzzle,
    Instance,
)
from rlbench_suite.envs.puzzles.arithmetic.plane import CONSTRUCTIONS, QUESTIONS, TURN
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.envs.puzzles.shared.writing import WritingState
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "Geometry-v0"
TIERS = {"easy": 1, "medium": 2, "hard": 3}
Point = tuple[Fraction, Fraction]


def square(p: Point, q: Point) -> Fraction:
    return (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2


def shoelace(*corners: Point) -> Fraction:
    following = corners[1:] + corners[:1]
    return abs(
        sum(p[0] * q[1] - q[0] * p[1] for p, q in zip(corners, following, strict=True))
    ) / Fraction(2)


def is_on_line(x: Point, p: Point, q: Point) -> bool:
    return p != q and shoelace(x, p, q) == 0


def perpendicular(p: Point, q: Point, r: Point, s: Point) -> bool:
    return (q[0] - p[0]) * (s[0] - r[0]) + (q[1] - p[1]) * (s[1] - r[1]) == 0


def halfway(p: Point, q: Point) -> Point:
    return (p[0] + q[0]) / 2, (p[1] + q[1]) / 2


def counterclockwise(p: Point, q: Point, r: Point) -> bool:
    return (q[0] - p[0]) * (r[1] - p[1]) > (q[1] - p[1]) * (r[0] - p[0])


P = "([A-H])"
DEFINITIONS: dict[str, Callable[..., bool]] = {
    f"the midpoint of {P} and {P}": lambda x, p, q: (
        square(x, p) * 4 == square(x, q) * 4 == square(p, q)
    ),
    rf"the centroid of triangle {P}{P}{P} \(the mean of its corners\)": lambda x, p, q, r: (
        is_on_line(x, p, halfway(q, r))
        and is_on_line(x, q, halfway(p, r))
        and shoelace(p, q, r) > 0
    ),
    f"the reflection of {P} in the point {P}": lambda x, p, q: halfway(x, p) == q,
    "the fourth corner of the parallelogram "
    f"whose other corners are, in order, {P}, {P}, {P}": lambda x, p, q, r: (
        halfway(x, q) == halfway(p, r) and shoelace(p, q, r) > 0
    ),
    f"{P} rotated by 90 degrees counterclockwise about {P}": lambda x, p, q: (
        square(x, q) == square(p, q) and perpendicular(q, p, q, x) and counterclockwise(q, p, x)
    ),
    f"the foot of the perpendicular from {P} to the line {P}{P}": lambda x, p, q, r: (
        is_on_line(x, q, r) and perpendicular(p, x, q, r)
    ),
    f"the reflection of {P} in the line {P}{P}": lambda x, p, q, r: (
        is_on_line(halfway(x, p), q, r) and perpendicular(p, x, q, r)
    ),
    f"the intersection of the lines {P}{P} and {P}{P}": lambda x, p, q, r, s: (
        is_on_line(x, p, q) and is_on_line(x, r, s)
    ),
    f"the centre of the circle through {P}, {P} and {P}": lambda x, p, q, r: (
        square(x, p) == square(x, q) == square(x, r)
    ),
    rf"the orthocentre of triangle {P}{P}{P} \(where its altitudes meet\)": lambda x, p, q, r: (
        perpendicular(p, x, q, r) and perpendicular(q, x, p, r) and shoelace(p, q, r) > 0
    ),
}
"""Conditions that English words put on a point, which only one point meets; written here once more.
"""


def from_line(p: Point, q: Point, r: Point) -> Fraction:
    a, b = q[1] - r[1], r[0] - q[0]
    return (a * (p[0] - q[0]) + b * (p[1] - q[1])) ** 2 / (a * a + b * b)


def tangent(p: Point, q: Point, r: Point) -> float:
    angle = abs(math.atan2(p[1] - q[1], p[0] - q[0]) - math.atan2(r[1] - q[1], r[0] - q[0]))
    return math.tan(min(angle, 2 * math.pi - angle))


def count_inside(p: Point, q: Point, r: Point) -> int:
    """Counted one by one."""
    xs, ys = zip(p, q, r, strict=True)
    count = 0
    for x, y in itertools.product(
        range(int(min(xs)), int(max(xs)) + 1), range(int(min(ys)), int(max(ys)) + 1)
    ):
        turns = {counterclockwise(a, b, (x, y)) for a, b in ((p, q), (q, r), (r, p))}
        border = any(shoelace(a, b, (x, y)) == 0 for a, b in ((p, q), (q, r), (r, p)))
        count += len(turns) == 1 and not border
    return count


def convex_area(p: Point, q: Point, r: Point, s: Point) -> Fraction:
    """The diagonals of a convex quadrilateral part both others."""
    assert counterclockwise(p, r, q) != counterclockwise(p, r, s)
    assert counterclockwise(q, s, p) != counterclockwise(q, s, r)
    return shoelace(p, q, r, s)


ANSWERS: dict[str, Callable[..., Any]] = {
    rf"What are the coordinates of {P}\?": lambda p: p,
    rf"What is the square of the distance between {P} and {P}\?": square,
    rf"What is the area of triangle {P}{P}{P}\?": shoelace,
    rf"What is the square of the distance of {P} from the line {P}{P}\?": from_line,
    rf"What is the tangent of the angle at {P} in triangle {P}\1{P}\?": lambda q, p, r: tangent(
        p, q, r
    ),
    rf"What is the square of the length of a tangent "
    rf"from {P} to the circle with centre {P} "
    rf"through {P}, measured from "
    r"\1 to the point of contact\?": lambda p, q, r: square(p, q) - square(q, r),
    rf"What is the square of the radius of the circle through {P}, {P} and {P}\?": lambda p, q, r: (
        square(p, q) * square(q, r) * square(r, p) / (16 * shoelace(p, q, r) ** 2)
    ),
    rf"How many points with whole coordinates lie inside triangle {P}{P}{P}, "
    rf"not on its sides\?": count_inside,
    rf"What is the area of the convex quadrilateral {P}{P}{P}{P}\?": convex_area,
}


def meaning(
    table: dict[str, Callable[..., Any]], words: str
) -> tuple[str, Callable[..., Any], list[str]]:
    """Return the meaning of a sentence, and the points it names."""
    ((form, match),) = [(form, m) for form in table if (m := re.fullmatch(form, words))]
    return form, table[form], list(match.groups())


def question_of(prompt: str) -> str:
    (words,) = re.findall(r"^(.*\?) The answer is exact\.", prompt, re.MULTILINE)
    return words


def figure_of(prompt: str, claimed: list[Point]) -> dict[str, Point]:
    """Return all points by name, the given ones and the claimed ones.

    Each claimed point must be what the prompt says.
    """
    free_points = re.findall(rf"{P} = \((-?\d+), (-?\d+)\)", prompt)
    figure = {name: (Fraction(x), Fraction(y)) for name, x, y in free_points}
    constructions = re.findall(rf"^{P} is (.*)\.$", prompt, re.MULTILINE)
    for (name, words), point in zip(constructions, claimed, strict=True):
        _, holds, points = meaning(DEFINITIONS, words)
        assert holds(point, *(figure[p] for p in points)), (words, point)
        figure[name] = point
    return figure


@pytest.mark.engine("other formulas, from the prompt: the answer")
@pytest.mark.parametrize("constructions", [1, 2, 3, 4])
def test_figures_and_answers_are_what_the_prompt_says(
    constructions: int, compared: Compared
) -> None:
    puzzle = GeometryPuzzle(constructions)
    constructed, question_counts = Counter(), Counter()
    for seed in range(300):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        prompt = puzzle.prompt(instance)
        figure = figure_of(prompt, puzzle.figure(instance)[MAX_GIVEN:])
        form, value, points = meaning(ANSWERS, question_of(prompt))
        right, answer = value(*(figure[p] for p in points)), puzzle.solve(instance)
        question_counts[form] += 1
        constructed.update(
            meaning(DEFINITIONS, words)[0]
            for words in re.findall(r"^[E-H] is (.*)\.$", prompt, re.M)
        )
        if isinstance(right, float):
            assert float(Fraction(answer)) == pytest.approx(right, rel=1e-9)
        elif isinstance(right, tuple):
            assert answer == f"({right[0]}, {right[1]})"
        else:
            assert Fraction(answer) == right
        coordinates = [
            [(v.numerator, v.denominator) for v in figure[name]] for name in "EFGH"[:constructions]
        ]
        assert instance.constructed.tolist() == np.array(coordinates).tolist()
        compared(puzzle, instance)
    assert len(question_counts) == len(ANSWERS)
    assert len(constructed) == {1: 5, 2: 8, 3: 10, 4: 10}[constructions]


def test_the_verifier_compares_values() -> None:
    puzzle = GeometryPuzzle(2)
    rng = np.random.default_rng(0)
    for seed in range(500):
        instance = puzzle.generate(seed)
        right = puzzle.solve(instance)
        values = [Fraction(word) for word in re.findall(r"[-/\d]+", right)]

        def write(numbers: list[Fraction], times: int) -> str:
            words = [f"{v.numerator * times}/{v.denominator * times}" for v in numbers]
            return f"({words[0]},{words[1]})" if len(words) == 2 else words[0]

        assert puzzle.verify(instance, right).solved
        assert puzzle.verify(instance, write(values, int(rng.integers(1, 9)))).solved
        for change in (Fraction(1), Fraction(-1, 7), -2 * values[-1] or Fraction(1, 1000)):
            verdict = puzzle.verify(instance, write([*values[:-1], values[-1] + change], 1))
            assert verdict.valid
            assert not verdict.solved
        if len(values) == 2 and values[0] != values[1]:
            assert not puzzle.verify(instance, write(values[::-1], 1)).solved


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "0.5",
        "1/0",
        "1 /2",
        "+1",
        "1/-2",
        "1e3",
        "1234567890",
        "1/1234567890",
        "sqrt(2)",
        "(1, 2)",
        "1 2",
        "--1",
        "\n1",
    ],
)
def test_other_formats_of_numbers_are_invalid(answer: str) -> None:
    puzzle = GeometryPuzzle(1)
    instance = next(i for i in map(puzzle.generate, range(99)) if i.question[0])
    assert not puzzle.verify(instance, answer).valid


@pytest.mark.parametrize(
    "answer",
    ["", "1", "1, 2", "(1 2)", "(1,  2)", "(1, 2, 3)", "(1.0, 2)", "(1, 2/0)", "[1, 2]", "(1, )"],
)
def test_other_formats_of_points_are_invalid(answer: str) -> None:
    puzzle = GeometryPuzzle(1)
    instance = next(i for i in map(puzzle.generate, range(99)) if not i.question[0])
    assert not puzzle.verify(instance, answer).valid


@pytest.mark.parametrize("table", [CONSTRUCTIONS, QUESTIONS], ids=["constructions", "questions"])
def test_orders_of_points_that_make_no_difference_are_those(table: Any) -> None:
    """Try all orders on random points."""
    dice = Dice(3, 4)
    for entry in table:
        neutral_orders = set(itertools.permutations(range(entry.uses)))
        for _ in range(300):
            places = dice.sample(itertools.product(range(20), repeat=2), entry.uses)
            points = [(Fraction(x), Fraction(y)) for x, y in places]
            orders = itertools.permutations(range(entry.uses))
            results = {order: entry[-1](*(points[k] for k in order)) for order in orders}
            expected = results[tuple(range(entry.uses))]
            if expected is not None:
                neutral_orders &= {order for order, result in results.items() if result == expected}
        assert neutral_orders == set(entry.orders), entry.words


def move_figure(instance: Instance, turns: int, reflect: bool, dice: Dice) -> Instance:
    """Turn, reflect and shift the figure, and name and order its points anew, all at random."""
    x, y = instance.points.T.astype(int)
    for _ in range(turns):
        x, y = -y, x
    if reflect:
        x = -x
    order = dice.shuffled(range(MAX_GIVEN))
    points = np.stack([x + dice.between(-9, 9), y + dice.between(-9, 9)], axis=1)[order]
    new = {old: place for place, old in enumerate(order)} | {
        k: k for k in (-1, *range(MAX_GIVEN, 2 * MAX_GIVEN))
    }

    def line(table: Any, kind: int, used: list[int]) -> list[int]:
        alike = dice.choice(table[kind].orders)
        return [kind, *(new[used[k]] for k in alike), *[-1] * (4 - len(alike))]

    steps = [line(CONSTRUCTIONS, kind, used) for kind, *used in instance.steps.tolist()]
    kind, *used = instance.question.tolist()
    question = line(QUESTIONS, kind, used)
    return Instance(
        points.astype(np.int8),
        np.array(steps, np.int8),
        np.array(question, np.int8),
        instance.constructed,
    )


@pytest.mark.parametrize("constructions", TIERS.values())
def test_canonical_forgets_place_and_names(constructions: int) -> None:
    puzzle, dice = GeometryPuzzle(constructions), Dice(1, 2)
    forms = set()
    reflected = 0
    for seed in range(200):
        instance = puzzle.generate(seed)
        form = puzzle.canonical(instance)
        forms.add(form)
        disguised = move_figure(instance, dice.below(4), False, dice)
        assert puzzle.canonical(disguised) == form
        assert puzzle.answer_to(disguised, puzzle.figure(disguised)) is not None
        if TURN not in instance.steps[:, 0]:
            assert puzzle.canonical(move_figure(instance, dice.below(4), True, dice)) == form
            reflected += 1
        points = instance.points.copy()
        points[0] += (1, 0)
        assert puzzle.canonical(instance._replace(points=points)) != form
    assert reflected > 50
    assert len(forms) > 195


def test_tiers_are_ordered_by_difficulty() -> None:
    puzzles = map(GeometryPuzzle, TIERS.values())
    means = [
        np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(200)])
        for puzzle in puzzles
    ]
    assert 1.5 * means[0] < means[1] < means[2] / 1.5
    with pytest.raises(ValueError, match="1 to 4, got 0"):
        GeometryPuzzle(0)


def test_a_circle_through_three_points_of_a_line_does_not_exist() -> None:
    points = np.array([[0, 0], [1, 1], [2, 2], [0, 0]], np.int8)
    steps, question = np.array([[8, 0, 1, 2, -1]], np.int8), np.array([0, 4, -1, -1, -1], np.int8)
    with pytest.raises(ValueError, match="no such point: the centre"):
        GeometryPuzzle(1).solve(Instance(points, steps, question, np.ones((1, 2, 2), np.int16)))


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
def test_on_a_board_all_points_are_whole_and_the_plan_writes_them(tier: str) -> None:
    task: Any = card(NAME).build(difficulty=tier)
    puzzle: BoardGeometryPuzzle = task.puzzle
    instances = [puzzle.generate(seed) for seed in range(300)]
    tokens = []
    for instance in instances:
        constructed = puzzle.figure(instance)[MAX_GIVEN:]
        figure = figure_of(puzzle.prompt(instance), constructed)
        assert all(value in range(puzzle.side) for point in figure.values() for value in point)
        tokens.append([int(value) for point in constructed for value in point])
        assert tokens[-1] == puzzle.plan(instance)
    check_rewards(task, instances, tokens, seed=2)


@pytest.mark.parametrize("tier", TIERS)
def test_the_observation_is_construction_and_coordinates(tier: str) -> None:
    """Decoded at a random place of each instance."""
    task: Any = card(NAME).build(difficulty=tier)
    puzzle, dice, n = task.puzzle, Dice(5, 6), TIERS[tier]
    instances = [puzzle.generate(seed) for seed in range(300)]
    written = [dice.below(2 * n) for _ in instances]
    sizes = np.cumsum([len(DEFINITIONS), 8 * puzzle.side, 8, puzzle.side, 1])
    for row, count, instance in zip(
        observations_after(task, instances, written), written, instances, strict=True
    ):
        kind, places, numbers, x, y_is_due, which = np.split(row, sizes)
        constructed = puzzle.figure(instance)[MAX_GIVEN:]
        figure = figure_of(puzzle.prompt(instance), constructed)
        words = re.findall(r"^[E-H] is (.*)\.$", puzzle.prompt(instance), re.MULTILINE)[count // 2]
        form, _, names = meaning(DEFINITIONS, words)
        assert np.flatnonzero(kind).tolist() == [list(DEFINITIONS).index(form)]
        values = [
            int(v) for name in names for v in (figure[name][::-1] if count % 2 else figure[name])
        ]
        nothing = [[]] * (8 - len(values))
        coordinates = [np.flatnonzero(flags).tolist() for flags in places.reshape(8, puzzle.side)]
        assert coordinates == [[value] for value in values] + nothing
        np.testing.assert_allclose(
            numbers * puzzle.side, [v + 1 for v in values] + [0] * len(nothing), rtol=1e-6
        )
        assert np.flatnonzero(x).tolist() == ([constructed[count // 2][0]] if count % 2 else [])
        assert y_is_due.tolist() == [count % 2]
        assert np.flatnonzero(which).tolist() == [count // 2]


def test_people_can_play() -> None:
    task: Any = card(NAME).build(difficulty="medium")
    points = np.array([[0, 0], [4, 2], [6, 6], [0, 0]], np.int8)
    steps = np.array([[0, 0, 1, -1, -1], [3, 0, 4, 2, -1]], np.int8)
    constructed = np.array([[[2, 1], [1, 1]], [[4, 1], [5, 1]]], np.int16)
    instance = Instance(points, steps, np.array([0, 5, -1, -1, -1], np.int8), constructed)
    params = Params(instance, np.zeros(1, np.int16))
    text = task.describe(WritingState(np.int32(3), np.bool_(False)), params)
    assert (
        "A = (0, 0), B = (4, 2), C = (6, 6)\nE is the midpoint of A and B.\nF is the fourth corner"
        in text
    )
    assert "E = (2, 1)" in text
    assert text.endswith("Next is y of F; its x is 4.")
    assert "F is" not in task.describe(WritingState(np.int32(1), np.bool_(False)), params)
    assert int(task.parse(" 10", None, params)) == 10
    with pytest.raises(ValueError, match="expected one of 0, 1"):
        task.parse("11", None, params)
    first, last = (
        task.draw(WritingState(np.int32(count), np.bool_(False)), params) for count in (0, 4)
    )
    assert first.shape == task.picture_shape
    assert (first != last).any()
    assert "wrong: 5 comes next" in task.why_over(
        WritingState(np.int32(3), np.bool_(True)), params, {}
    )
    assert puzzle_of(NAME, "medium").verify(instance, "(4, 5)").solved
