"""Tests of Jigsaw-v0 against independent references.

They are permutations tried one by one, a SAT solver, breadth-first search over swaps, and pixels
compared in the picture itself.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.card import CardEnc
from pysat.solvers import Cadical153

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.moves.jigsaw import (
    SIDE,
    Instance,
    JigsawPuzzle,
    PatchState,
    restoring_swaps,
)
from rlbench_suite.envs.puzzles.moves.random_pictures import (
    BRIGHT,
    CODES,
    DARK,
    as_rgb,
    paint_picture,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "Jigsaw-v0"
TIERS = {"easy": 2, "medium": 3, "hard": 4}


def agrees(pieces: list[np.ndarray], order: tuple[int, ...] | list[int], side: int) -> bool:
    """Check the definition: laid out, the pixels on both sides of every cut are equal."""
    rows = [np.hstack([pieces[k] for k in order[r * side : (r + 1) * side]]) for r in range(side)]
    picture = np.vstack(rows)
    cuts = range(SIDE, side * SIDE, SIDE)
    return all(
        (picture[k - 1] == picture[k]).all() and (picture[:, k - 1] == picture[:, k]).all()
        for k in cuts
    )


def lying_patches(instance: Instance) -> list[np.ndarray]:
    return [instance.patches[patch] for patch in instance.cells]


def arrangements_by_sat(pieces: list[np.ndarray], side: int) -> list[list[int]]:
    """At most two."""
    count = side**2

    def literal(position: int, piece: int) -> int:
        return position * count + piece + 1

    clauses: list[list[int]] = []
    for number in range(count):
        for literals in (
            [literal(number, k) for k in range(count)],
            [literal(k, number) for k in range(count)],
        ):
            clauses += CardEnc.equals(literals, 1, encoding=0).clauses
    for a, b in itertools.permutations(range(count), 2):
        beside = (pieces[a][:, -1] == pieces[b][:, 0]).all()
        above = (pieces[a][-1] == pieces[b][0]).all()
        for position in range(count):
            if not beside and (position + 1) % side:
                clauses.append([-literal(position, a), -literal(position + 1, b)])
            if not above and position + side < count:
                clauses.append([-literal(position, a), -literal(position + side, b)])
    arrangements = []
    with Cadical153(bootstrap_with=clauses) as solver:
        while len(arrangements) < 2 and solver.solve():
            true = [x - 1 for x in solver.get_model() if x > 0]
            arrangements.append([x % count for x in true])
            solver.add_clause([-x - 1 for x in true])
    return arrangements


@pytest.mark.engine("all permutations: one arrangement")
def test_one_arrangement_of_all_of_four_patches(compared: Compared) -> None:
    puzzle = JigsawPuzzle(2)
    for seed in range(500):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        pieces = lying_patches(instance)
        arrangements = [
            order for order in itertools.permutations(range(4)) if agrees(pieces, order, 2)
        ]
        assert arrangements == [tuple(puzzle.solution(instance))]
        for order in itertools.permutations(range(4)):
            verdict = puzzle.verify(instance, " ".join(str(k + 1) for k in order))
            assert verdict.solved == (order in arrangements)
            assert verdict.valid
        compared(puzzle, instance)


@pytest.mark.engine("a SAT solver: one arrangement")
@pytest.mark.parametrize(("tier", "count"), [(3, 450), (4, 60)])
def test_a_sat_solver_finds_the_same_arrangement_and_no_other(
    tier: int, count: int, compared: Compared
) -> None:
    puzzle = JigsawPuzzle(tier)
    for seed in range(count):
        instance = puzzle.generate(seed)
        assert arrangements_by_sat(lying_patches(instance), tier) == [puzzle.solution(instance)]
        compared(puzzle, instance)


def test_what_is_left_out_has_other_arrangements() -> None:
    """Pictures that the generator refuses, drawn again from the same dice."""
    puzzle, refused = JigsawPuzzle(3), 0
    for seed in range(150):
        if puzzle.compose(Dice(9, seed)) is None:
            picture = paint_picture(Dice(9, seed), 3, SIDE - 1)
            pieces = [picture[r : r + SIDE, c : c + SIDE] for r in (0, 11, 22) for c in (0, 11, 22)]
            assert len(arrangements_by_sat(pieces, 3)) == 2
            refused += 1
    assert refused > 5


@pytest.mark.parametrize("tier", [2, 3, 4])
def test_a_verdict_says_whether_the_picture_is_whole(tier: int) -> None:
    """Judge right answers, wrong ones that are nearly right, and random orders.

    The wrong ones have two patches swapped or one repeated.
    """
    puzzle, dice = JigsawPuzzle(tier), Dice(1, tier)
    solved = 0
    for seed in range(200):
        instance = puzzle.generate(seed)
        order = puzzle.solution(instance)
        if seed % 4 == 1:
            first, second = dice.sample(range(tier**2), 2)
            order[first], order[second] = order[second], order[first]
        elif seed % 4 == 2:
            first, second = dice.sample(range(tier**2), 2)
            order[first] = order[second]
        elif seed % 4 == 3:
            dice.shuffle(order)
        correct = len(set(order)) == len(order) and agrees(lying_patches(instance), order, tier)
        verdict = puzzle.verify(instance, " ".join(str(k + 1) for k in order))
        assert verdict.valid
        assert verdict.solved == correct
        assert bool(verdict.reason) != correct
        solved += correct
    assert 50 <= solved < 70


@pytest.mark.parametrize(
    "answer", ["", "1 2 3", "1 2 3 4 5", "0 1 2 3", "1,2,3,4", "1 2\n3 4", "1 2 3 04x", "a b c d"]
)
def test_other_formats_are_invalid(answer: str) -> None:
    puzzle = JigsawPuzzle(2)
    verdict = puzzle.verify(puzzle.generate(0), answer)
    assert not verdict.valid
    assert "expected" in verdict.reason


def test_the_prompt_shows_the_borders() -> None:
    puzzle = JigsawPuzzle(3)
    instance = puzzle.generate(5)
    lines = [line for line in puzzle.prompt(instance).split("\n") if line.startswith("patch ")]
    for number, (line, piece) in enumerate(zip(lines, lying_patches(instance), strict=True), 1):
        words = line.replace(",", "").split()
        assert words[:2] == ["patch", f"{number}:"]
        written_borders = dict(zip(words[2::2], words[3::2], strict=True))
        borders = {"top": piece[0], "bottom": piece[-1], "left": piece[:, 0], "right": piece[:, -1]}
        assert written_borders == {
            name: "".join(CODES[colour] for colour in border) for name, border in borders.items()
        }


# -- swaps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [4, 6])
def test_no_fewer_swaps_restore_the_order(size: int) -> None:
    """Breadth-first search from the order over every permutation."""
    goal = tuple(range(size))
    distance, rim = {goal: 0}, [goal]
    while rim:
        after = []
        for cells in rim:
            for first, second in itertools.combinations(range(size), 2):
                swapped = list(cells)
                swapped[first], swapped[second] = swapped[second], swapped[first]
                if tuple(swapped) not in distance:
                    distance[tuple(swapped)] = distance[cells] + 1
                    after.append(tuple(swapped))
        rim = after
    for cells, fewest in distance.items():
        swaps = restoring_swaps(cells)
        assert len(swaps) == fewest
        lying = list(cells)
        for first, second in swaps:
            assert first < second
            lying[first], lying[second] = lying[second], lying[first]
        assert lying == list(goal)


def test_shuffles_are_uniform_but_for_the_picture_itself() -> None:
    puzzle = JigsawPuzzle(2)
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(1500):
        instance = puzzle.compose(Dice(4, seed))
        if instance is not None:
            order = tuple(instance.cells.tolist())
            counts[order] = counts.get(order, 0) + 1
            assert instance.shortest == len(restoring_swaps(order)) > 0
    assert len(counts) == 23
    expected = sum(counts.values()) / 23
    # chi-squared, 22 d.f., 0.999.
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 48.3


# -- canonical forms -------------------------------------------------------------------------------


def transform(
    instance: Instance, side: int, turn: int, mirrored: bool, colours: list[int]
) -> Instance:
    """Return the picture turned, reflected and recoloured.

    Its patches lie in some other order.
    """
    pieces = np.array(colours, np.int8)[instance.patches].reshape(side, side, SIDE, SIDE)
    pieces = np.rot90(np.rot90(pieces, turn, (0, 1)), turn, (2, 3))
    if mirrored:
        pieces = pieces.transpose(1, 0, 3, 2)
    return instance._replace(
        patches=pieces.reshape(-1, SIDE, SIDE), cells=np.roll(instance.cells, 1)
    )


@pytest.mark.parametrize("tier", [2, 3, 4])
def test_disguises_have_one_canonical_form(tier: int) -> None:
    puzzle, dice = JigsawPuzzle(tier), Dice(2, tier)
    for seed in range(15):
        instance = puzzle.generate(seed)
        form = puzzle.canonical(instance)
        for turn, mirrored in itertools.product(range(4), (False, True)):
            disguise = transform(instance, tier, turn, mirrored, dice.shuffled(range(8)))
            assert agrees(list(disguise.patches), range(tier**2), tier)
            assert puzzle.canonical(disguise) == form
        inside = instance.patches.copy()
        inside[0, 5, 5] ^= 1  # which no cut shows
        assert puzzle.canonical(instance._replace(patches=inside)) == form
        corner = instance.patches.copy()
        corner[0, 0, 0] = (corner[0, 0, 0] + 1) % 8  # of the frame, on no other patch
        if len(np.unique(instance.patches[0])) > 2:
            assert puzzle.canonical(instance._replace(patches=corner)) != form


def test_pictures_do_not_repeat() -> None:
    puzzle = JigsawPuzzle(2)
    instances = [puzzle.compose(Dice(6, seed)) for seed in range(3000)]
    forms = [puzzle.canonical(instance) for instance in instances if instance is not None]
    assert len(set(forms)) >= 0.99 * len(forms) > 2000


def test_larger_pictures_are_harder() -> None:
    means = []
    for tier in TIERS.values():
        puzzle = JigsawPuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)]))
    assert 4 * means[0] < means[1]
    assert 4 * means[1] < means[2]


@pytest.mark.parametrize("tier", [1, 6, 2.5])
def test_only_sides_of_two_to_five(tier: float) -> None:
    with pytest.raises(ValueError, match="2 to 5, got"):
        JigsawPuzzle(tier)


# -- the task --------------------------------------------------------------------------------------


def batch(puzzle: JigsawPuzzle, count: int) -> tuple[list[Instance], Params]:
    instances = [puzzle.generate(seed) for seed in range(count)]
    stacked = Instance(*(np.stack(column) for column in zip(*instances, strict=True)))
    return instances, Params(stacked, np.zeros((count, 1), np.int16))


@pytest.mark.parametrize("tier", TIERS)
def test_the_task_swaps_by_the_same_rules(tier: str) -> None:
    """Compare random swaps with lists, then follow the plan to the end.

    This covers places, rewards, measures and ends, in one batch.
    """
    task: Any = card(NAME).build(difficulty=tier)
    puzzle, key = task.puzzle, jax.random.key(0)
    instances, params = batch(puzzle, 64)
    swaps = list(itertools.combinations(range(puzzle.cells), 2))
    assert task.action_space.n == len(swaps)

    @jax.jit
    @jax.vmap
    def step(state: PatchState, action: jax.Array, params: Params) -> Any:
        new = task.transition(state, action, key, params)
        return (
            new,
            task.reward(state, action, new, key, params),
            task.terminal(new, key, params),
            task.info(new, params),
        )

    state = jax.vmap(lambda params: task.initial(key, params))(params)
    lying = [instance.cells.tolist() for instance in instances]
    rng = np.random.default_rng(3)
    for _ in range(20):
        actions = rng.integers(len(swaps), size=64)
        before = [sum(k != position for position, k in enumerate(cells)) for cells in lying]
        state, reward, over, info = step(state, jnp.asarray(actions), params)
        for cells, action in zip(lying, actions, strict=True):
            left_patch, right_patch = swaps[action]
            cells[left_patch], cells[right_patch] = cells[right_patch], cells[left_patch]
        assert np.asarray(state.cells).tolist() == lying
        wrong = [sum(k != position for position, k in enumerate(cells)) for cells in lying]
        first = [
            sum(k != position for position, k in enumerate(i.cells.tolist())) for i in instances
        ]
        fewest = [int(i.shortest) for i in instances]
        expected = [
            (b - w) / f + (b > 0 and w == 0) - 0.1 / s
            for b, w, f, s in zip(before, wrong, first, fewest, strict=True)
        ]
        np.testing.assert_allclose(reward, expected, atol=1e-6)
        assert np.asarray(info["misplaced"]).tolist() == wrong
        assert (
            np.asarray(over).tolist()
            == np.asarray(info["success"]).tolist()
            == [w == 0 for w in wrong]
        )
        assert task.reward_space.low <= reward.min() <= reward.max() <= task.reward_space.high

    state = jax.vmap(lambda params: task.initial(key, params))(params)
    plans = [puzzle.plan(instance) for instance in instances]
    total, finished = np.zeros(64), np.zeros(64, bool)
    for t in range(max(map(len, plans))):
        assert not finished[[len(plan) > t for plan in plans]].any()
        actions = np.array([plan[t] if t < len(plan) else 0 for plan in plans])
        state, reward, over, _ = step(state, jnp.asarray(actions), params)
        total += np.where(finished, 0, reward)
        finished |= np.asarray(over)
    assert finished.all()
    np.testing.assert_allclose(total, card(NAME).optimum, atol=1e-5)


@pytest.mark.parametrize("tier", TIERS)
def test_both_observations_show_what_lies_there(tier: str) -> None:
    structured: Any = card(NAME).build(difficulty=tier)
    pixels: Any = card(NAME, observation="pixels").build(difficulty=tier)
    puzzle, key = structured.puzzle, jax.random.key(0)
    n, count = puzzle.side, 20
    instances, params = batch(puzzle, count)
    cells = np.stack(
        [np.random.default_rng(seed).permutation(n * n) for seed in range(count)]
    ).astype(np.int8)
    structured_view, picture = (
        np.asarray(
            jax.jit(jax.vmap(lambda c, p, task=task: task.observation(PatchState(c), key, p)))(
                cells, params
            )
        )
        for task in (structured, pixels)
    )
    assert structured_view.shape[1:] == structured.observation_space.shape
    assert picture.dtype == np.uint8
    assert picture.shape[1:] == pixels.observation_space.shape == (12 * n, 12 * n, 3)
    for row in range(count):
        pieces = instances[row].patches[cells[row]]
        laid = np.vstack([np.hstack(list(pieces[r * n : (r + 1) * n])) for r in range(n)])
        for light in range(3):
            np.testing.assert_array_equal(
                picture[row, ..., light], np.where(laid >> light & 1, BRIGHT, DARK)
            )
        expected = []
        for piece in pieces:
            for border in (piece[0], piece[:, -1], piece[-1], piece[:, 0]):
                expected += [
                    border[point] >> light & 1 for point in (1, 5, 10) for light in range(3)
                ]
        for last, first in ((np.s_[:, -1], np.s_[:, 0]), (np.s_[-1], np.s_[0])):
            expected += [np.mean(a[last] == b[first]) for a in pieces for b in pieces]
        np.testing.assert_allclose(structured_view[row], expected, atol=1e-6)


def test_colours_are_bits() -> None:
    assert as_rgb(np.array([0, 1, 2, 4, 6, 7]), np.where).tolist() == [
        [40, 40, 40], [225, 40, 40], [40, 225, 40], [40, 40, 225], [40, 225, 225], [225, 225, 225],
    ]  # fmt: skip
    assert CODES[6] == "C"


def test_words_name_the_actions() -> None:
    task: Any = card(NAME).build(difficulty="easy")
    instance = task.puzzle.generate(0)
    params, state = Params(instance, np.zeros(1, np.int16)), PatchState(instance.cells)
    for action, (first, second) in enumerate(itertools.combinations(range(1, 5), 2)):
        assert int(task.parse(f"{first} {second}", state, params)) == action
        assert int(task.parse(f" {second} {first} ", state, params)) == action
    for text, message in (
        ("2 2", "two different places"),
        ("1", "expected 2 places"),
        ("0 1", "from 1 to 4"),
    ):
        with pytest.raises(ValueError, match=message):
            task.parse(text, state, params)
    described = task.describe(state, params)
    assert all(f"place {number}: top" in described for number in range(1, 5))
