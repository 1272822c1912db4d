"""CubeRotation-v0 against rotation matrices in space."""

from __future__ import annotations

import re
from itertools import pairwise, product
from typing import Any

import jax
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.moves.cube_rotation import (
    COLOURS,
    CUBE,
    SIDES,
    TURNS,
    CubeRotationPuzzle,
    Instance,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params

pytestmark = pytest.mark.of_variants
AWAY = dict(zip(CUBE.elements, CUBE.away, strict=True))

NORMALS = {
    "top": (0, 0, 1),
    "bottom": (0, 0, -1),
    "right": (1, 0, 0),
    "left": (-1, 0, 0),
    "back": (0, 1, 0),
    "front": (0, -1, 0),
}
SIDE_OF = {normal: side for side, normal in NORMALS.items()}
MATRICES = {
    "forward": np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]),  # about x: up goes to the front
    "rightward": np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),  # about y: up goes to the right
    "counterclockwise": np.array(
        [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    ),  # about z, seen from above: right goes back
}
MATRICES |= {
    opposite: MATRICES[turn].T
    for turn, opposite in (
        ("forward", "backward"),
        ("rightward", "leftward"),
        ("counterclockwise", "clockwise"),
    )
}


def side_after(matrix: np.ndarray, side: str) -> str:
    """Return the side to which a rotation takes a side."""
    return SIDE_OF[tuple((matrix @ NORMALS[side]).tolist())]


def rotation(turns: list[str]) -> np.ndarray:
    """Return the product of all turns, about axes that stay where they are."""
    matrix = np.eye(3, dtype=int)
    for turn in turns:
        matrix = MATRICES[turn] @ matrix
    return matrix


def all_rotations() -> list[np.ndarray]:
    """Return the 24 rotations: signed permutations of determinant 1."""
    rotations = []
    for columns in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        for signs in product((1, -1), repeat=3):
            matrix = np.eye(3, dtype=int)[list(columns)] * signs
            if round(np.linalg.det(matrix)) == 1:
                rotations.append(matrix)
    return rotations


def permutation(matrix: np.ndarray) -> tuple[int, ...]:
    """For each side, the side from which what is there came."""
    sources = [0] * 6
    for side in SIDES:
        sources[SIDES.index(side_after(matrix, side))] = SIDES.index(side)
    return tuple(sources)


@pytest.mark.engine("rotation matrices in space: the answer")
@pytest.mark.parametrize("tier", [4, 8, 16])
def test_answers_are_those_of_rotations_in_space(tier: int, compared: Compared) -> None:
    """Read from the prompt."""
    puzzle = CubeRotationPuzzle(tier)
    for seed in range(400):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        text = puzzle.question(instance)
        colours = dict(re.findall(rf"({'|'.join(SIDES)}) ({'|'.join(COLOURS)})\b", text))
        turns = re.search(r"is turned: (.*)\.", text)[1].split(", ")  # type: ignore[index]
        asked_side = re.search(r"now on the (\w+) side\?", text)[1]  # type: ignore[index]
        assert len(turns) == tier
        total_rotation = rotation(turns)
        right = next(
            colour
            for side, colour in colours.items()
            if side_after(total_rotation, side) == asked_side
        )
        for colour in COLOURS:
            assert puzzle.verify(instance, colour).score == (colour == right)
        assert puzzle.solve(instance) == right
        assert (
            CUBE.elements[int(instance.element)]
            == permutation(total_rotation)
            != permutation(np.eye(3, dtype=int))
        )
        path = [next(side for side in SIDES if side_after(total_rotation, side) == asked_side)]
        for turn in turns:
            path.append(side_after(MATRICES[turn], path[-1]))
        assert puzzle.difficulty(instance) == sum(a != b for a, b in pairwise(path))
        compared(puzzle, instance)


def test_words_that_are_no_colour_are_refused() -> None:
    puzzle = CubeRotationPuzzle(8)
    for answer in ("", "Red", "red green", "red\n", "purple", "0"):
        assert not puzzle.verify(puzzle.generate(0), answer).valid


def test_distances_are_exact() -> None:
    """Compare all 24 orientations with products of matrices.

    Those that k quarter turns reach first are all products of k matrices.
    """
    assert sorted(CUBE.elements) == sorted(permutation(matrix) for matrix in all_rotations())
    visited: set[tuple[int, ...]] = set()
    for count in range(4):
        reached = {
            permutation(rotation(list(turns))) for turns in product(TURNS, repeat=count)
        } - visited
        assert reached == {orientation for orientation, away in AWAY.items() if away == count}
        visited |= reached
    assert len(visited) == 24


def test_a_cube_seen_from_elsewhere_is_the_same_puzzle() -> None:
    puzzle = CubeRotationPuzzle(8)
    rng = np.random.default_rng(0)
    matrices = all_rotations()
    for seed in range(50):
        instance = puzzle.generate(seed)
        for view in matrices:
            turns = []
            for turn in instance.turns.tolist():
                viewed_turn = view @ MATRICES[TURNS[turn]] @ view.T
                turns.append(
                    next(k for k, name in enumerate(TURNS) if (MATRICES[name] == viewed_turn).all())
                )
            asked_side = SIDES.index(side_after(view, SIDES[int(instance.side)]))
            colours = rng.permutation(6).astype(np.int8)
            viewed_instance = Instance(
                colours, np.array(turns, np.int8), np.int8(asked_side), instance.element
            )
            assert puzzle.canonical(viewed_instance) == puzzle.canonical(instance)
        questions = [instance._replace(side=np.int8(side)) for side in range(6)]
        assert len({puzzle.canonical(question) for question in questions}) > 1


def test_as_many_puzzles_as_it_says() -> None:
    """Go through all questions about three turns.

    Those about turns around one axis look alike from more sides.
    """
    puzzle = CubeRotationPuzzle(3)
    every = [
        Instance(np.arange(6, dtype=np.int8), np.array(turns, np.int8), np.int8(side), np.int8(1))
        for turns in product(range(6), repeat=3)
        for side in range(6)
    ]
    assert (
        puzzle.space <= len({puzzle.canonical(instance) for instance in every}) < 1.2 * puzzle.space
    )


def test_the_task_keeps_the_rules() -> None:
    """Random turns and plans against matrices: orientation, distance, reward, end."""
    task = card("CubeRotation-v0").build()
    puzzle, key = task.puzzle, jax.random.key(0)
    rng = np.random.default_rng(0)
    instances = [puzzle.generate(seed) for seed in range(1000)]
    actions = rng.integers(6, size=(1000, 3))
    plans = [puzzle.plan(instance) for instance in instances]
    for number in range(0, 1000, 2):
        actions[number, : len(plans[number])] = plans[number]
    params = Params(
        Instance(*map(np.stack, zip(*instances, strict=True))), np.zeros((1000, 1), np.int16)
    )

    def episode(params: Params, actions: jax.Array) -> list[Any]:
        states = [task.initial(key, params)]
        for k in range(3):
            states.append(task.transition(states[-1], actions[k], key, params))
        rewards = [task.reward(states[k], actions[k], states[k + 1], key, params) for k in range(3)]
        observations = [task.observation(state, key, params) for state in states]
        return [
            states,
            rewards,
            observations,
            [task.terminal(s, key, params) for s in states],
            [task.info(s, params) for s in states],
        ]

    states, rewards, observations, ends, infos = jax.jit(jax.vmap(episode))(params, actions)
    solved = 0
    for number, instance in enumerate(instances):
        turns = [TURNS[turn] for turn in instance.turns.tolist()]
        at_first, total = AWAY[permutation(rotation(turns))], 0.0
        for k in range(4):
            sources = permutation(rotation(turns))
            assert CUBE.elements[int(states[k].element[number])] == sources
            np.testing.assert_array_equal(
                observations[k][number].reshape(6, 6), np.eye(6)[list(sources)]
            )
            assert int(infos[k]["away"][number]) == AWAY[sources]
            assert (
                bool(ends[k][number]) == bool(infos[k]["success"][number]) == (AWAY[sources] == 0)
            )
            if AWAY[sources] == 0:
                expected = 2 - k * 0.5 / at_first
                assert total == pytest.approx(expected, abs=1e-5)
                if number % 2 == 0:
                    assert k == at_first == len(plans[number])
                    assert total == pytest.approx(task.card.optimum, abs=1e-5)
                    solved += 1
                break
            if k < 3:
                total += float(rewards[k][number])
                turns.append(TURNS[actions[number, k]])
    assert solved == 500


def test_the_words_of_the_task() -> None:
    task = card("CubeRotation-v0").build()
    instance = task.puzzle.generate(0)
    params = Params(instance, np.array(task.puzzle.plan(instance), np.int16))
    key = jax.random.key(0)
    state = task.initial(key, params)
    now, goal = task.describe(state, params).splitlines()[-2:]
    assert sorted(now.split()[3:]) != sorted(goal.split()[8:])
    for turn in task.puzzle.plan(instance):
        state = task.transition(state, task.parse(f"{TURNS[turn]}\n", state, params), key, params)
    now, goal = task.describe(state, params).splitlines()[-2:]
    assert now.removeprefix("The sides now: ") == goal.removeprefix("The sides must become: ")
    assert task.why_over(state, params, {}) == "the cube lies as it is to lie"
    assert (task.draw(state, params) != task.draw(task.initial(key, params), params)).any()
    for text in ("", "up", "forward forward", "1"):
        with pytest.raises(ValueError, match="expected one of forward, backward"):
            task.parse(text, state, params)


@pytest.mark.parametrize("tier", [0, 31, 2.5])
def test_other_tiers_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="number of turns, 1 to 30"):
        CubeRotationPuzzle(tier)
