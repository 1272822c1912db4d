"""Tests of puzzles that move tiles against plain moves on lists.

The puzzles are EightPuzzle, FifteenPuzzle, NinePuzzle, SixteenPuzzle and Twiddle. On 3 x 3 cells
all distances are computed, on 4 x 4 balls of arrangements around start and goal, which must not
meet.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.moves.tiles import Instance, RearrangementPuzzle
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants

Board = tuple[int, ...]
Moves = dict[str, Callable[[Board], Board | None]]


def slides(side: int) -> Moves:
    def slide(board: Board, down: int, right: int) -> Board | None:
        row, column = divmod(board.index(side**2 - 1), side)
        if not (0 <= row + down < side and 0 <= column + right < side):
            return None
        hole, tile = row * side + column, (row + down) * side + column + right
        cells = list(board)
        cells[hole], cells[tile] = cells[tile], cells[hole]
        return tuple(cells)

    ways = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
    return {name: lambda board, step=step: slide(board, *step) for name, step in ways.items()}


def shifts(side: int) -> Moves:
    def shift_along(board: Board, cells: list[int], by: int) -> Board:
        new = list(board)
        for position, cell in enumerate(cells):
            new[cells[(position + by) % side]] = board[cell]
        return tuple(new)

    moves: Moves = {}
    for line in range(side):
        row = [line * side + k for k in range(side)]
        column = [k * side + line for k in range(side)]
        for sign, by in (("+", 1), ("-", -1)):
            moves[f"R{line + 1}{sign}"] = lambda board, cells=row, by=by: shift_along(
                board, cells, by
            )
            moves[f"C{line + 1}{sign}"] = lambda board, cells=column, by=by: shift_along(
                board, cells, by
            )
    return moves


def turns() -> Moves:
    def turn(board: Board, corner: int, clockwise: bool) -> Board:
        ring = [corner, corner + 1, corner + 4, corner + 3]  # clockwise
        new = list(board)
        for position, cell in enumerate(ring):
            new[ring[(position + (1 if clockwise else -1)) % 4]] = board[cell]
        return tuple(new)

    return {
        name + sign: lambda board, corner=corner, clockwise=sign == "+": turn(
            board, corner, clockwise
        )
        for name, corner in (("A", 0), ("B", 1), ("C", 3), ("D", 4))
        for sign in "+-"
    }


RULES: dict[str, Moves] = {
    "EightPuzzle-v0": slides(3),
    "FifteenPuzzle-v0": slides(4),
    "NinePuzzle-v0": shifts(3),
    "SixteenPuzzle-v0": shifts(4),
    "Twiddle-v0": turns(),
}
every_id = pytest.mark.parametrize("name", RULES)
every_tier = pytest.mark.parametrize("tier", ["easy", "medium", "hard"])


def board_of(instance: Any) -> Board:
    return tuple(instance.cells.tolist())


def ball(board: Board, moves: Moves, radius: int) -> set[Board]:
    visited, rim = {board}, {board}
    for _ in range(radius):
        rim = {
            b for board in rim for move in moves.values() if (b := move(board)) is not None
        } - visited
        visited |= rim
    return visited


def distances(name: str, max_distance: int) -> dict[Board, int]:
    """Return the distance of every arrangement within so many moves of the goal."""
    rim = [tuple(range(puzzle_of(name).cells))]
    distance_of = dict.fromkeys(rim, 0)
    for length in range(1, max_distance + 1):
        after = {
            b for board in rim for move in RULES[name].values() if (b := move(board)) is not None
        }
        rim = [board for board in after if board not in distance_of]
        distance_of |= dict.fromkeys(rim, length)
    return distance_of


@pytest.mark.engine("breadth-first search from the goal: no shorter solution")
@pytest.mark.parametrize(("name", "searched_depth"), [*zip(RULES, (31, 16, 8, 4, 11), strict=True)])
def test_no_solution_is_shorter(name: str, searched_depth: int, compared: Compared) -> None:
    """Search from the start too, where the goal's distances end before the solution does.

    Arrangements as near to the start as a shorter solution still needs must not be among those
    searched from the goal.
    """
    moves, distance_of = RULES[name], distances(name, searched_depth)
    for tier, count in (("easy", 200), ("medium", 600), ("hard", 500)):
        puzzle = puzzle_of(name, tier)
        length = int(puzzle.tier)
        for seed in range(count):
            instance = puzzle.generate(seed, ("train", "test")[seed % 2])
            start = board_of(instance)
            board: Board | None = start
            answer = puzzle.solve(instance).split()
            for word in answer:
                board = None if board is None else moves[word](board)
            assert board == tuple(range(puzzle.cells))
            assert len(answer) == length == instance.shortest
            if length <= searched_depth:
                assert distance_of[start] == length
            else:
                assert distance_of.keys().isdisjoint(
                    ball(start, moves, length - 1 - searched_depth)
                )
            compared(puzzle, instance)


@every_id
def test_how_many_puzzles_there_are(name: str) -> None:
    """Count all arrangements at the distance of the easy tier, disguises counted once."""
    puzzle, moves = puzzle_of(name, "easy"), RULES[name]
    length, goal = int(puzzle.tier), tuple(range(puzzle.cells))
    boards = ball(goal, moves, length) - ball(goal, moves, length - 1)
    instances = (Instance(np.array(board, np.int8), np.int16(length)) for board in boards)
    assert len({puzzle.canonical(instance) for instance in instances}) == puzzle.space


def sizes_of_levels(name: str, disguises: list[np.ndarray], max_distance: int) -> list[int]:
    """Count the puzzles at each distance, by breadth-first search over one arrangement of each.

    An arrangement of 16 tiles is a number of 64 bits; ``disguises`` say which cell comes to each
    cell.
    """
    shifts_of_cells = np.arange(0, 64, 4, dtype=np.uint64)
    ways = []
    for hole in range(16) if name == "FifteenPuzzle-v0" else [15]:
        labels = list(range(16))
        labels[hole], labels[15] = 15, hole
        after = (move(tuple(labels)) for move in RULES[name].values())
        ways += [
            (hole, [labels.index(tile) for tile in board]) for board in after if board is not None
        ]

    def smallest_forms(boards: np.ndarray) -> np.ndarray:
        forms = (
            (np.argsort(cells).astype(np.uint64)[boards[:, cells]] << shifts_of_cells).sum(1)
            for cells in disguises
        )
        return np.unique(reduce(np.minimum, forms))

    before, level = np.zeros(0, np.uint64), smallest_forms(np.arange(16)[None])
    sizes = [1]
    for _ in range(max_distance):
        boards = (level[:, None] >> shifts_of_cells & np.uint64(15)).astype(np.int8)
        holes = boards.argmax(1) if name == "FifteenPuzzle-v0" else np.full(len(boards), 15)
        next_level = np.unique(
            np.concatenate(
                [smallest_forms(boards[holes == hole][:, cells]) for hole, cells in ways]
            )
        )
        next_level = next_level[~np.isin(next_level, before) & ~np.isin(next_level, level)]
        before, level = level, next_level
        sizes.append(len(level))
    return sizes


def test_how_many_sixteen_puzzles_there_are() -> None:
    """Turned, mirrored and moved on around the rings they are the same."""
    board = np.arange(16).reshape(4, 4)
    turned = [np.rot90(side, quarters) for side in (board, board.T) for quarters in range(4)]
    disguises = [
        np.roll(turned_board, by, (0, 1)).ravel()
        for turned_board in turned
        for by in itertools.product(range(4), repeat=2)
    ]
    sizes = sizes_of_levels("SixteenPuzzle-v0", disguises, 7)
    assert sizes[2:] == [puzzle_of("SixteenPuzzle-v0", length).space for length in range(2, 8)]


def test_how_many_fifteen_puzzles_there_are() -> None:
    """Compare the numbers of puzzles with what OEIS A089484 counts.

    Mirror images in the falling diagonal are the same puzzle. Few arrangements are their own mirror
    images, so about half are left.
    """
    board = np.arange(16).reshape(4, 4)
    sizes = sizes_of_levels("FifteenPuzzle-v0", [board.ravel(), board.T.ravel()], 20)
    assert sizes[2:] == [puzzle_of("FifteenPuzzle-v0", length).space for length in range(2, 21)]
    for length, count in ((8, 446), (16, 119000), (20, 1637383)):
        assert 0 <= 2 * sizes[length] - count < 40


def test_the_eight_puzzle_is_known_completely() -> None:
    """Check two facts from outside.

    Half of all arrangements can be solved, and the farthest two need 31 moves.
    """
    distance_of = distances("EightPuzzle-v0", 32)
    counts = Counter(distance_of.values())
    assert (len(distance_of), max(counts), counts[31]) == (181440, 31, 2)
    for length in (8, 20, 27):
        puzzle = puzzle_of("EightPuzzle-v0", length)
        boards = {board_of(puzzle.compose(Dice(7, seed))) for seed in range(600)}
        assert {distance_of[board] for board in boards} == {length}
        # Uniform draws, with repeats.
        expected = counts[length] * (1 - (1 - 1 / counts[length]) ** 600)
        assert abs(len(boards) - expected) < 0.1 * expected


@every_id
def test_a_verdict_says_what_the_moves_do(name: str) -> None:
    """Right answers, right ones with a detour, perturbed ones, and walks."""
    puzzle, moves = puzzle_of(name), RULES[name]
    rng = np.random.default_rng(0)
    names = list(moves)
    scores = []
    for seed in range(300):
        instance = puzzle.generate(seed)
        words = puzzle.solve(instance).split()
        if seed % 3 == 1:
            at = rng.integers(len(words))
            words[at] = rng.choice([word for word in names if word != words[at]])
        elif seed % 3 == 2:
            at = rng.integers(len(words) + 1)
            pair = (
                [("L", "R"), ("U", "D")]
                if "L" in moves
                else [(w, w[:-1] + "+-"[w[-1] == "+"]) for w in names]
            )
            words[at:at] = pair[rng.integers(len(pair))]
        board: Board | None = board_of(instance)
        for word in words:
            board = None if board is None else moves[word](board)
        verdict = puzzle.verify(instance, " ".join(words))
        assert verdict.valid
        assert verdict.solved == (board == tuple(range(puzzle.cells)))
        assert verdict.score == pytest.approx(puzzle.tier / len(words) if verdict.solved else 0)
        assert verdict.optimal == (verdict.score == 1)
        scores.append(verdict.score)
    assert scores.count(1) >= 100
    assert scores.count(0) >= 80
    assert any(0 < score < 1 for score in scores)


@pytest.mark.parametrize("answer", ["", "X", "U  D", "u", "UD", "U,D", "U D ", "U\nD"])
def test_other_formats_are_invalid(answer: str) -> None:
    puzzle = puzzle_of("EightPuzzle-v0")
    verdict = puzzle.verify(puzzle.generate(0), answer)
    assert not verdict.valid
    assert "expected" in verdict.reason


def test_no_more_than_a_thousand_moves() -> None:
    puzzle = puzzle_of("Twiddle-v0")
    verdict = puzzle.verify(puzzle.generate(0), "A+ " * 1000 + "A+")
    assert verdict.reason == "expected at most 1000 moves, got 1001"


@every_id
def test_symmetries_keep_moves_and_goal(name: str) -> None:
    """Check that symmetries keep an arrangement's canonical form and distance.

    The arrangements are those of solutions.
    """
    puzzle: RearrangementPuzzle = puzzle_of(name, "easy")
    moves = RULES[name]
    boards = {
        board_of(puzzle.generate(seed, split)): None
        for seed in range(40)
        for split in ("train", "test")
    }
    for board in list(boards)[:6]:
        instance = Instance(np.array(board, np.int8), np.int16(puzzle.tier))
        before = {b for move in moves.values() if (b := move(board)) is not None}
        for order in puzzle.symmetries():
            number = np.argsort(order)
            turned = {tuple(int(number[b[cell]]) for cell in order) for b in (board, *before)}
            disguise = tuple(int(number[board[cell]]) for cell in order)
            after = {b for move in moves.values() if (b := move(disguise)) is not None}
            assert turned == {disguise, *after}
            assert puzzle.canonical(
                Instance(np.array(disguise, np.int8), instance.shortest)
            ) == puzzle.canonical(instance)


def test_canonical_forms_count_the_orbits() -> None:
    """Compare all arrangements of the Twiddle at 4 moves.

    Two with the same form are the same up to a symmetry.
    """
    moves = RULES["Twiddle-v0"]
    goal = tuple(range(9))
    level = ball(goal, moves, 4) - ball(goal, moves, 3)
    assert len(level) == 1996
    puzzle: RearrangementPuzzle = puzzle_of("Twiddle-v0", "easy")
    orbits = set()
    for board in level:
        numbers = [(order, np.argsort(order)) for order in puzzle.symmetries()]
        orbits.add(frozenset(tuple(int(n[board[cell]]) for cell in order) for order, n in numbers))
    forms = {puzzle.canonical(Instance(np.array(board, np.int8), np.int16(4))) for board in level}
    assert len(forms) == len(orbits)


@every_id
def test_the_task_plays_by_the_same_rules(name: str) -> None:
    """Random walks, in one batch: boards, masks, rewards, ends."""
    task: Any = card(name).build(difficulty="easy")
    puzzle, moves = task.puzzle, [RULES[name][move] for move in task.puzzle.moves]
    count, steps = 64, 12
    instances = [puzzle.generate(seed) for seed in range(count)]
    params = jax.tree.map(
        lambda *rows: jnp.stack(rows), *[(i.cells, i.shortest) for i in instances]
    )

    context = Params(Instance(*params), jnp.zeros((count, 1), jnp.int16))
    key = jax.random.key(0)
    begin = jax.jit(jax.vmap(lambda p: task.initial(key, p)))

    @jax.jit
    @jax.vmap
    def step(state: Any, action: jax.Array, p: Any) -> Any:
        mask = task.action_mask(state, p)
        new = task.transition(state, action, key, p)
        return new, mask, task.reward(state, action, new, key, p), task.terminal(new, key, p)

    rng = np.random.default_rng(1)
    state = begin(context)
    boards = [board_of(instance) for instance in instances]
    total = np.zeros(count)
    for _ in range(steps):
        after = [[move(board) for move in moves] for board in boards]
        actions = np.array(
            [rng.choice([k for k, b in enumerate(row) if b is not None]) for row in after]
        )
        state, mask, reward, over = step(state, jnp.asarray(actions), context)
        if mask is not None:
            assert np.asarray(mask).tolist() == [[b is not None for b in row] for row in after]
        total += np.asarray(reward)
        boards = [row[action] for row, action in zip(after, actions, strict=True)]
        assert np.asarray(state.cells).tolist() == [list(board) for board in boards]
        assert np.asarray(over).tolist() == [
            board == tuple(range(puzzle.cells)) for board in boards
        ]
        assert task.reward_space.low <= reward.min() <= reward.max() <= task.reward_space.high
    apart = [
        puzzle.tile_distance(bytes(board)) / puzzle.tile_distance(bytes(i.cells))
        for board, i in zip(boards, instances)  # noqa: B905
    ]
    # 1 for each arrival at the goal.
    visits = total - (1 - np.array(apart) - 0.1 * steps / puzzle.tier)
    np.testing.assert_allclose(visits, np.round(visits), atol=1e-4)
    assert set(np.round(visits)) <= {0, 1, 2, 3}


@every_id
def test_the_plan_earns_the_optimum(name: str) -> None:

    task = card(name).build(difficulty="easy")
    record = play(task, reference_player(task), range(100))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, task.card.optimum, atol=1e-4)
    assert (record.length == task.difficulty).all()


@every_id
def test_people_can_play(name: str) -> None:
    task: Any = card(name).build(difficulty="easy")

    instance = task.puzzle.generate(0)
    params = Params(instance, np.zeros(1, np.int16))
    state = task.initial(jax.random.key(0), params)
    text = task.describe(state, params)
    assert task.puzzle.board_text(bytes(instance.cells)) in text
    for action, move in enumerate(task.puzzle.moves):
        assert move in task.how_to_act()
        assert task.parse(f" {move}\n", state, params) == action
    with pytest.raises(ValueError, match="expected one of"):
        task.parse("sideways", state, params)
    picture = task.draw(state, params)
    assert picture.shape == task.picture_shape
    assert picture.dtype == np.uint8
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3


@pytest.mark.parametrize("tier", [1, 32, 2.5])
def test_other_lengths_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="shortest solution, 2 to 31, got"):
        puzzle_of("EightPuzzle-v0", tier)
