"""Crossword-v0 against a SAT solver and the rules written out."""

from __future__ import annotations

import re
from itertools import combinations, pairwise, product
from statistics import fmean
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from fill_tasks import stack_instances
from pysat.card import CardEnc
from pysat.formula import IDPool
from pysat.solvers import Cadical153

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.envs.puzzles.words.crossword import TIERS, CrosswordPuzzle, Instance, patterns
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "Crossword-v0"
TIER_NAMES = ["easy", "medium", "hard"]
Cells = dict[tuple[int, int], str]


def read_puzzle(prompt: str) -> tuple[list[str], list[str]]:
    """Read the words, and the rows of the grid, from the prompt."""
    words = re.search(r"^Words: (.*)$", prompt, re.MULTILINE)
    assert words
    rows = re.findall(r"^(?:[A-Z_#] )+[A-Z_#]$", prompt, re.MULTILINE)
    return words[1].split(), [row.replace(" ", "") for row in rows]


def runs(rows: list[str]) -> list[list[tuple[int, int]]]:
    """Return the slots of a grid: every maximal run of two or more cells."""
    side = len(rows)
    slots = []
    lines = [[(r, c) for c in range(side)] for r in range(side)] + [
        [(r, c) for r in range(side)] for c in range(side)
    ]
    for line in lines:
        text = "".join(rows[r][c] for r, c in line)
        slots += [line[match.start() : match.end()] for match in re.finditer("[^#]{2,}", text)]
    return slots


def solutions_by_sat(words: list[str], rows: list[str], limit: int) -> list[list[str]]:
    """Return grids that keep the rules, from clauses.

    A cell has a letter, a slot a word, and a word's letters are in its slot.
    """
    pool, side = IDPool(), len(rows)
    letters = sorted(set("".join(words)) | (set("".join(rows)) - set("_#")))
    cells = [(r, c) for r, c in product(range(side), repeat=2) if rows[r][c] != "#"]
    letter = {(cell, x): pool.id(("letter", cell, x)) for cell in cells for x in letters}
    slots = runs(rows)
    placed = {(s, w): pool.id(("word", s, w)) for s in range(len(slots)) for w in range(len(words))}
    groups = [[letter[cell, x] for x in letters] for cell in cells]
    groups += [[placed[s, w] for w in range(len(words))] for s in range(len(slots))]
    groups += [[placed[s, w] for s in range(len(slots))] for w in range(len(words))]
    solver = Cadical153()
    for group in groups:
        for clause in CardEnc.equals(group, 1, vpool=pool).clauses:
            solver.add_clause(clause)
    for (s, w), word_in_slot in placed.items():
        if len(words[w]) != len(slots[s]):
            solver.add_clause([-word_in_slot])
            continue
        for cell, x in zip(slots[s], words[w], strict=True):
            solver.add_clause([-word_in_slot, letter[cell, x]])
    for r, c in cells:
        if rows[r][c] != "_":
            solver.add_clause([letter[(r, c), rows[r][c]]])
    solutions = []
    while len(solutions) < limit and solver.solve():
        model = set(solver.get_model())
        letter_in = {cell: x for (cell, x), variable in letter.items() if variable in model}
        solutions.append(
            ["".join(letter_in.get((r, c), "#") for c in range(side)) for r in range(side)]
        )
        solver.add_clause([-letter[cell, x] for cell, x in letter_in.items()])
    solver.delete()
    return solutions


def keeps_the_rules(words: list[str], rows: list[str], answer: list[str]) -> bool:
    """Check the definition."""
    cells = [
        (old, new)
        for row, answer_row in zip(rows, answer, strict=True)
        for old, new in zip(row, answer_row, strict=True)
    ]
    fits = all((old == "#") == (new == "#") and old in ("_", new) for old, new in cells)
    return fits and sorted("".join(answer[r][c] for r, c in run) for run in runs(rows)) == words


@pytest.mark.engine("CaDiCaL: one solution")
@pytest.mark.parametrize(("tier", "count"), [("easy", 700), ("medium", 250), ("hard", 120)])
def test_there_is_one_solution(tier: str, count: int, compared: Compared) -> None:
    puzzle: Any = puzzle_of(NAME, tier)
    num_givens = 0
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        words, rows = read_puzzle(puzzle.question(instance))
        answer = [line.replace(" ", "") for line in puzzle.solve(instance).split("\n")]
        assert solutions_by_sat(words, rows, 2) == [answer]
        assert keeps_the_rules(words, rows, answer)
        assert words == sorted(set(words))
        num_givens += sum(x not in "_#" for x in "".join(rows))
        compared(puzzle, instance)
    assert 0 < num_givens < count * TIERS[puzzle.side].most_given


def test_the_search_finds_all_solutions() -> None:
    """Without the letters that are given there may be several, with a word changed none."""
    puzzle: Any = CrosswordPuzzle(4)
    dice = Dice(1, 1)
    solution_counts = set()
    for seed in range(400):
        instance = puzzle.generate(seed)
        givens = np.where(instance.givens == len(puzzle.symbols), instance.givens, 0).astype(
            np.int8
        )
        words = instance.words.copy()
        if seed % 3 == 0:
            words[dice.below(len(words)), 0] = 1 + dice.below(6)
        changed = instance._replace(givens=givens, words=words)
        listed = puzzle.word_list(changed)
        rows = [line.replace(" ", "") for line in read_rows(puzzle, changed)]
        if len(set(listed)) < len(listed):
            continue
        solutions = {
            puzzle.write_answer(puzzle.as_rows(cells))
            for cells in puzzle._search(changed).solutions(1000)
        }
        expected = solutions_by_sat(listed, rows, 1000)
        assert {text.replace(" ", "") for text in solutions} == {
            "\n".join(grid) for grid in expected
        }
        solution_counts.add(min(len(expected), 2))
    assert solution_counts == {0, 1, 2}


def read_rows(puzzle: Any, instance: Instance) -> list[str]:
    return puzzle.write_answer(puzzle.clue_rows(instance)).split("\n")


def test_no_solution_is_an_error() -> None:
    puzzle: Any = CrosswordPuzzle(4)
    with pytest.raises(ValueError, match="no place in the grid"):
        puzzle.solution(puzzle.generate(0)._replace(words=np.ones((6, 4), np.int8)))


@pytest.mark.parametrize("side", [3, 7, 4.5])
def test_other_sides_are_refused(side: float) -> None:
    with pytest.raises(ValueError, match="difficulty is the side, 4 to 6, got"):
        CrosswordPuzzle(side)


@pytest.mark.parametrize("side", [4, 5, 6])
def test_patterns(side: int) -> None:
    """Check that patterns have slots of three letters or more and are in one piece.

    They are the same after half a turn, and every cell is in a slot.
    """
    for pattern in patterns(side):
        assert pattern == pattern[::-1]
        rows = [
            "".join("_" if pattern[r * side + c] else "#" for c in range(side)) for r in range(side)
        ]
        slots = runs(rows)
        assert len(slots) == TIERS[side].slots
        assert min(map(len, slots)) >= 3
        assert "".join(rows).count("#") == TIERS[side].blocks
        pieces = [set(slot) for slot in slots]
        for first, second in [*combinations(range(len(pieces)), 2)] * len(pieces):
            if pieces[first] & pieces[second]:
                pieces[first] = pieces[second] = pieces[first] | pieces[second]
        assert max(map(len, pieces)) == side * side - TIERS[side].blocks
    assert len(set(patterns(side))) == len(patterns(side)) > 3


@pytest.mark.parametrize("tier", TIER_NAMES)
def test_the_verifier_knows_the_rules(tier: str) -> None:
    puzzle: Any = puzzle_of(NAME, tier)
    dice, kinds = Dice(1, 2), set()
    for seed in range(100):
        instance = puzzle.generate(seed)
        words, rows = read_puzzle(puzzle.question(instance))
        for kind in ("right", "one changed", "transposed", "random", "by rule of thumb"):
            answer = [list(line.replace(" ", "")) for line in puzzle.solve(instance).split("\n")]
            if kind == "one changed":
                answer[dice.below(len(rows))][dice.below(len(rows))] = dice.choice(puzzle.symbols)
            elif kind == "transposed":
                answer = [list(column) for column in zip(*answer, strict=True)]
            elif kind in ("random", "by rule of thumb"):
                text = (
                    puzzle.guess(instance, dice) if kind == "random" else puzzle.heuristic(instance)
                )
                answer = [line.split(" ") for line in text.split("\n")]
            verdict = puzzle.verify(instance, "\n".join(" ".join(line) for line in answer))
            assert verdict.solved == keeps_the_rules(
                words, rows, ["".join(line) for line in answer]
            )
            kinds.add((kind, verdict.solved))
    assert {
        ("right", True),
        ("one changed", False),
        ("transposed", False),
        ("random", False),
    } <= kinds
    assert ("by rule of thumb", False) in kinds


@pytest.mark.parametrize(
    ("answer", "valid", "reason"),
    [
        ("# A B A\nB I D #\n# D A B\nA B E #", True, ""),
        ("# A B A\nB I D #\n# D A B\nA B I #", True, "ABI is no word of the list"),
        ("# A B A\nA B A #\n# D A B\nA B E #", True, "ABA stands in two slots"),
        ("A A B A\nB I D #\n# D A B\nA B E #", True, "the symbol in row 1, column 1 was given"),
        ("# # B A\nB I D #\n# D A B\nA B E #", False, "row 1, column 2: # is not to be filled in"),
        ("# _ B A\nB I D #\n# D A B\nA B E #", False, "line 1: expected symbols among"),
        ("# A B A\nB I D #\n# D A B", False, "expected 4 lines, got 3"),
    ],
)
def test_reasons(answer: str, valid: bool, reason: str) -> None:
    puzzle = CrosswordPuzzle(4)
    rows = ["#ABA", "BID#", "#DAB", "ABE#"]
    words = sorted("".join(rows[r][c] for r, c in run) for run in runs(rows))
    givens = [7 if x == "#" else 0 for x in "".join(rows)]
    table = [[" ABDEIL".index(x) for x in word] + [-1] * (4 - len(word)) for word in words]
    slots = [[4 * r + c for r, c in run] + [-1] * (4 - len(run)) for run in runs(rows)]
    starts = np.where(np.array(slots) < 0, -1, 0)
    instance = Instance(*(np.array(field, np.int8) for field in (givens, table, slots, starts)))
    verdict = puzzle.verify(instance, answer)
    assert (verdict.valid, verdict.solved) == (valid, not reason)
    assert verdict.reason.startswith(reason)


def test_disguises() -> None:
    puzzle: Any = CrosswordPuzzle(5)
    dice, forms = Dice(5, 6), set()
    for seed in range(40):
        instance = puzzle.generate(seed)
        forms.add(form := puzzle.canonical(instance))
        names = np.array([0, *dice.shuffled(range(1, 7)), 7], np.int8)
        order = dice.shuffled(range(len(instance.words)))
        words = np.where(instance.words < 0, -1, names[instance.words])[order].astype(np.int8)
        renamed = instance._replace(givens=names[instance.givens], words=words)
        assert puzzle.canonical(renamed) == form
        board = np.arange(25).reshape(5, 5)
        givens = instance.givens.reshape(5, 5)
        assert (
            puzzle.canonical(
                reorder_cells(puzzle, instance, givens.T, board.T, words=instance.words)
            )
            == form
        )
        backwards = np.full_like(instance.words, -1)
        for line, word in zip(backwards, instance.words, strict=True):
            letters = word[word >= 0][::-1]
            line[: len(letters)] = letters
        turned = reorder_cells(
            puzzle, instance, givens[::-1, ::-1], board[::-1, ::-1], words=backwards
        )
        assert puzzle.canonical(turned) == form
        hidden = np.flatnonzero(instance.givens == 0)[0]
        solution = [value for row in puzzle.solution(instance) for value in row]
        told_more = instance.givens.copy()
        told_more[hidden] = solution[hidden]
        assert puzzle.canonical(instance._replace(givens=told_more)) != form
    assert len(forms) == 40


def reorder_cells(
    puzzle: Any, instance: Instance, givens: np.ndarray, board: np.ndarray, words: np.ndarray
) -> Instance:
    """Return the grid with its cells in another order; slots as they lie there."""
    side = puzzle.side
    rows = ["".join("#" if value == 7 else "_" for value in row) for row in givens]
    slots = [[r * side + c for r, c in run] for run in runs(rows)]
    table = np.array([slot + [-1] * (side - len(slot)) for slot in slots], np.int8)
    return instance._replace(givens=givens.ravel(), words=words, slots=table)


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIER_NAMES:
        puzzle = puzzle_of(NAME, tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(150)))
    assert means[0] < 0.7 * means[1]
    assert means[1] < 0.95 * means[2]


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIER_NAMES)
def test_the_task_plays_by_the_rules(tier: str) -> None:
    """Compare random legal placements with a grid of letters, in one batch.

    The solver guides half of them.
    """
    task: Any = card(NAME).build(difficulty=tier)
    puzzle, count, batch = task.puzzle, task.count, 128
    instances = [puzzle.generate(seed) for seed in range(batch)]
    context = Params(stack_instances(instances), jnp.zeros((batch, 1), jnp.int16))
    key = jax.random.key(0)

    @jax.jit
    @jax.vmap
    def look(state: Any, p: Params) -> Any:
        return (
            task.action_mask(state, p),
            task.terminal(state, key, p),
            task.info(state, p),
            task.observation(state, key, p),
        )

    @jax.jit
    @jax.vmap
    def step(state: Any, action: jax.Array, p: Params) -> Any:
        new = task.transition(state, action, key, p)
        return new, task.reward(state, action, new, key, p)

    state = jax.vmap(lambda p: task.initial(key, p))(context)
    tables = [read_puzzle(puzzle.question(instance)) for instance in instances]
    grids = [
        {(r, c): x for r, row in enumerate(rows) for c, x in enumerate(row)} for _, rows in tables
    ]
    slots = [runs(rows) for _, rows in tables]
    used: list[dict[int, int]] = [{} for _ in instances]
    plans = [list(puzzle.plan(instance)) for instance in instances]
    rng, over, successes = np.random.default_rng(0), [False] * batch, 0
    for _ in range(count + 1):
        mask, terminal, info, observations = (
            jax.tree.map(np.asarray, leaf) for leaf in look(state, context)
        )
        actions = []
        for k in range(batch):
            expected = legal(tables[k][0], slots[k], grids[k], used[k])
            assert mask[k].tolist() == expected
            assert terminal[k] == (not any(expected))
            all_placed = len(used[k]) == count
            assert info["success"][k] == all_placed
            assert info["placed"][k] == pytest.approx(len(used[k]) / count)
            assert task.observation_space.contains(observations[k])
            assert observations[k][-(count**2) :].tolist() == expected
            if terminal[k] and not over[k]:
                over[k] = True
                if all_placed:
                    successes += 1
                    side = puzzle.side
                    answer = ["".join(grids[k][r, c] for c in range(side)) for r in range(side)]
                    assert keeps_the_rules(*tables[k], answer)
                    assert puzzle.verify(
                        instances[k], "\n".join(" ".join(row) for row in answer)
                    ).solved
            ready = [action for action in plans[k] if mask[k][action]]
            choices = ready if ready and k % 2 else np.flatnonzero(mask[k])
            actions.append(int(rng.choice(choices)) if len(choices) else 0)
        new, reward = step(state, jnp.asarray(actions), context)
        going = jnp.asarray([not o for o in over])
        state = jax.tree.map(
            lambda n, o, g=going: jnp.where(g.reshape(-1, *[1] * (n.ndim - 1)), n, o), new, state
        )
        for k, action in enumerate(actions):
            if not over[k]:
                slot, word = divmod(action, count)
                used[k][slot] = word
                grids[k] |= dict(zip(slots[k][slot], tables[k][0][word], strict=True))
                assert reward[k] == pytest.approx(1 / count + (len(used[k]) == count))
    assert all(over)
    assert batch / 2 <= successes < batch


def legal(
    words: list[str], slots: list[list[tuple[int, int]]], grid: Cells, used: dict[int, int]
) -> list[bool]:
    """Check the definition."""
    return [
        s not in used
        and w not in used.values()
        and len(slot) == len(word)
        and all(grid[cell] in ("_", x) for cell, x in zip(slot, word, strict=True))
        for s, slot in enumerate(slots)
        for w, word in enumerate(words)
    ]


def test_people_can_play() -> None:
    task: Any = card(NAME).build()
    instance = task.puzzle.generate(0)
    params = Params(instance, np.zeros(1, np.int16))
    key = jax.random.key(0)
    state = task.initial(key, params)
    words = task.puzzle.word_list(instance)
    pictures = [task.draw(state, params)]
    for number, action in enumerate(task.puzzle.plan(instance)):
        slot, word = divmod(action, task.count)
        text = task.describe(state, params)
        assert words[word] in text.split("Words left: ")[1].split("\n")[0].split()
        assert text.endswith(
            "Slots that have got a word: " + (", ".join(map(str, range(1, number + 1))) or "none")
        )
        parsed = task.parse(f"{slot + 1}  {words[word]}\n", state, params)
        assert parsed == action
        state = task.transition(state, jnp.asarray(parsed), key, params)
        pictures.append(task.draw(state, params))
        assert (
            task.why_illegal(np.int64(action), state, params)
            == f"slot {slot + 1} has got a word already"
        )
        if slot + 1 < task.count:
            again = np.int64(action + task.count)
            assert task.why_illegal(again, state, params) == f"{words[word]} was placed already"
    assert "Words left: none" in task.describe(state, params)
    assert task.puzzle.solve(instance) in task.describe(state, params)
    assert task.why_over(state, params, task.info(state, params)) == "every word is placed"
    assert all((picture != next_picture).any() for picture, next_picture in pairwise(pictures))
    first = task.initial(key, params)
    assert (
        task.why_over(first, params, task.info(first, params))
        == "no word that is left fits an open slot"
    )
    short = next(w for w, word in enumerate(words) if len(word) == 3)
    long_slot = next(s for s, slot in enumerate(instance.slots) if slot[3] >= 0)
    reason = task.why_illegal(np.int64(long_slot * task.count + short), first, params)
    assert (
        reason
        == f"{words[short]} does not fit the length of slot {long_slot + 1} and the letters in it"
    )
    for text, reason in (
        ("1", "expected 'SLOT WORD'"),
        (f"0 {words[0]}", "a slot from 1"),
        ("1 XXX", "expected one of"),
    ):
        with pytest.raises(ValueError, match=reason):
            task.parse(text, state, params)
