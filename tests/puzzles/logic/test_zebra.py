"""Zebra-v0: prompts are read back as English and handed to a SAT solver."""

from __future__ import annotations

import itertools
import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.solvers import Cadical153

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.logic.zebra import Instance, ZebraPuzzle
from rlbench_suite.envs.puzzles.shared.grid_filling import CellFillTask
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = {"easy": 3, "medium": 4, "hard": 5}


@cache
def make_instance(houses: int, seed: int) -> Instance:
    """Return an instance of either split."""
    return ZebraPuzzle(houses).generate(seed, ("train", "test")[seed % 2])


RELATIONS = {
    "is not": lambda x, y: x != y,
    "is": lambda x, y: x == y,
    "lives directly beside": lambda x, y: abs(x - y) == 1,
    "lives directly to the left of": lambda x, y: y - x == 1,
    "lives somewhere to the left of": lambda x, y: y > x,
    "lives in house": None,
}
"""Meanings of the clues, written here once more; the longer ones are tried first."""


def read_clues(prompt: str) -> tuple[list[list[str]], list[tuple[str, str, str]]]:
    """Read the rows of values, and the clues as (relation, value, value or house), all in words."""
    rows = [
        [value.split(" ")[1] for value in line.split(", ", 1)[1].split(": ")[1].split(", ")]
        for line in re.findall(r"^Row \d, .*$", prompt, re.MULTILINE)
    ]
    values = {value for row in rows for value in row}
    clues = []
    for line in re.findall(r"^\d+\. (.*)\.$", prompt, re.MULTILINE):
        words = re.sub(r"does not (?:live in|own|drink|love)", "is not", line)
        words = re.sub(r"lives in the|owns|drinks|loves", "is", words)
        relation = max((r for r in RELATIONS if f" {r} " in words), key=len)
        left, right = words.split(f" {relation} ")
        operands = [
            next(w for w in reversed(side.split()) if w in values or w.isdigit())
            for side in (left, right)
        ]
        clues.append((relation, *operands))
    return rows, clues


class Street:
    """The puzzle as clauses: variable (value, house) says who is where."""

    def __init__(self, prompt: str) -> None:
        self.rows, self.clues = read_clues(prompt)
        n = len(self.rows[0])
        self.houses = range(1, n + 1)
        pairs = itertools.product([value for row in self.rows for value in row], self.houses)
        self.variable = {pair: number for number, pair in enumerate(pairs, 1)}
        self.frame = []
        for row in self.rows:
            for h in self.houses:
                self.frame.append([self.variable[v, h] for v in row])
                self.frame += [
                    [-self.variable[v, h], -self.variable[w, h]]
                    for v, w in itertools.combinations(row, 2)
                ]
            self.frame += [[self.variable[v, h] for h in self.houses] for v in row]

    def clauses(self, clue: tuple[str, str, str]) -> list[list[int]]:
        relation, v, w = clue
        if relation == "lives in house":
            return [[self.variable[v, int(w)]]]
        return [
            [-self.variable[v, x], -self.variable[w, y]]
            for x, y in itertools.product(self.houses, repeat=2)
            if not RELATIONS[relation](x, y)
        ]

    def solution(self) -> tuple[str, list[bool]]:
        """Return a solution and whether there are others.

        The solution is written like an answer. The latter is told with all clues and without each
        of them.

        A clue counts while the variable that it brings along is assumed.
        """
        first = len(self.variable) + 1
        clauses = self.frame + [
            [-first - k, *clause]
            for k, clue in enumerate(self.clues)
            for clause in self.clauses(clue)
        ]
        every = [first + k for k in range(len(self.clues))]
        with Cadical153(bootstrap_with=clauses) as solver:
            assert solver.solve(assumptions=every)
            true = {x for x in solver.get_model() if 0 < x < first}
            solver.add_clause([-x for x in true])
            has_more = [solver.solve(assumptions=every)]
            has_more += [
                solver.solve(assumptions=[x for x in every if x != spared]) for spared in every
            ]
        return "\n".join(
            " ".join(
                next(v[0].upper() for v in row if self.variable[v, h] in true) for h in self.houses
            )
            for row in self.rows
        ), has_more


@pytest.mark.engine("CaDiCaL, from the prompt: one solution, no clue to spare")
@pytest.mark.parametrize(("houses", "count"), [(3, 900), (4, 150), (5, 40)])
def test_clues_have_one_solution_and_none_can_be_spared(
    houses: int, count: int, compared: Compared
) -> None:
    puzzle = ZebraPuzzle(houses)
    for seed in range(count):
        instance = make_instance(houses, seed)
        street = Street(puzzle.prompt(instance))
        assert len(street.clues) == (instance.clues[:, 0] > 0).sum()
        solution, has_more = street.solution()
        assert solution == puzzle.solve(instance)
        assert has_more == [False] + [True] * len(street.clues)
        compared(puzzle, instance)


@pytest.mark.parametrize("houses", TIERS.values())
def test_the_verifier_keeps_the_clues(houses: int) -> None:
    """Compare the verifier with the clues in words.

    Answers are solutions with two values exchanged, random rows and random symbols.
    """
    puzzle, dice = ZebraPuzzle(houses), Dice(1, houses)
    letters = "ABCDE"[:houses]
    solved = []
    for seed in range(60):
        instance = make_instance(houses, seed)
        street = Street(puzzle.prompt(instance))
        right = [line.split() for line in puzzle.solve(instance).split("\n")]
        swapped = [row.copy() for row in right]
        a, b = dice.sample(range(houses), 2)
        row = dice.choice(swapped)
        row[a], row[b] = row[b], row[a]
        shuffled = [dice.shuffled(letters) for _ in range(houses)]
        random_rows = [[dice.choice(letters) for _ in letters] for _ in range(houses)]
        for grid in (right, swapped, shuffled, random_rows):
            is_proper = all(sorted(line) == list(letters) for line in grid)
            place = {
                value: line.index(value[0].upper()) + 1
                for row, line in zip(street.rows, grid, strict=True)
                for value in row
                if value[0].upper() in line
            }
            holds = is_proper and all(
                place[v] == int(w)
                if RELATIONS[relation] is None
                else RELATIONS[relation](place[v], place[w])
                for relation, v, w in street.clues
            )
            verdict = puzzle.verify(instance, "\n".join(" ".join(line) for line in grid))
            assert verdict.valid
            assert verdict.solved == holds
            assert bool(verdict.reason) != holds
            solved.append(holds)
    assert sum(solved) >= 60
    assert not all(solved)


def test_every_kind_of_clue_comes_up() -> None:
    puzzle = ZebraPuzzle(4)
    relations = set()
    for seed in range(30):
        _, clues = read_clues(puzzle.prompt(make_instance(4, seed)))
        relations |= {relation for relation, _, _ in clues}
    assert relations == RELATIONS.keys()


def test_contradictions_and_sizes_are_refused() -> None:
    puzzle = ZebraPuzzle(3)
    clues = np.zeros((9, 3), np.int8)
    clues[:2] = [(6, 0, 0), (6, 0, 1)]
    with pytest.raises(ValueError, match="contradict"):
        puzzle.solve(Instance(np.zeros(9, np.int8), clues))
    with pytest.raises(ValueError, match="one of 3, 4, 5, got 6"):
        ZebraPuzzle(6)


def test_tiers_are_ordered_by_difficulty() -> None:
    means = [
        np.mean([ZebraPuzzle(n).difficulty(make_instance(n, seed)) for seed in range(40)])
        for n in TIERS.values()
    ]
    assert 2 * means[0] < means[1] < means[2] / 2


def disguise(instance: Instance, n: int, dice: Dice) -> Instance:
    """Rename values, exchange attributes and reorder clues.

    Half of the time the street is seen from the other side.
    """
    rows, names = dice.shuffled(range(n)), [dice.shuffled(range(n)) for _ in range(n)]
    new = {a * n + v: rows[a] * n + names[a][v] for a in range(n) for v in range(n)}
    mirror = dice.below(2)
    clues = []
    for kind, first, second in instance.clues.tolist():
        if kind == 6:
            clues.append((kind, new[first], n - 1 - second if mirror else second))
        elif kind:
            pair = (new[first], new[second])
            turned = mirror if kind in (4, 5) else dice.below(2)
            clues.append((kind, *(pair[::-1] if turned else pair)))
    padded = dice.shuffled(clues) + [(0, 0, 0)] * (n * n - len(clues))
    return instance._replace(clues=np.array(padded, np.int8))


@pytest.mark.parametrize("houses", TIERS.values())
def test_canonical_forgets_names_and_sides_and_nothing_else(houses: int) -> None:
    puzzle, dice = ZebraPuzzle(houses), Dice(5, 6)
    for seed in range(40):
        instance = make_instance(houses, seed)
        form = puzzle.canonical(instance)
        for _ in range(5):
            assert puzzle.canonical(disguise(instance, houses, dice)) == form
        clues = instance.clues.copy()
        clues[0, 0] = {1: 2, 2: 1, 3: 5, 4: 5, 5: 4, 6: 6}[int(clues[0, 0])]
        if clues[0, 0] != 6:
            assert puzzle.canonical(instance._replace(clues=clues)) != form


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
def test_mask_and_success_are_those_of_the_clues(tier: str) -> None:
    """Check that a value is forbidden exactly where its row has it or a clue fails.

    The clue must be seen to fail. Partial grids are tried in one batch.
    """
    task: CellFillTask = card("Zebra-v0").build(difficulty=tier)
    puzzle, dice, n = task.puzzle, Dice(3, 4), TIERS[tier]
    instances, grids = [], []
    for seed in range(40):
        instance = make_instance(n, seed)
        right = np.array(
            [
                ["ABCDE".index(x) + 1 for x in line.split()]
                for line in puzzle.solve(instance).split("\n")
            ]
        )
        if seed % 4 == 1:
            right = np.array([dice.shuffled(range(1, n + 1)) for _ in range(n)])
        if seed % 4 >= 2:
            right = (
                right
                if seed % 4 == 2
                else np.array([dice.shuffled(range(1, n + 1)) for _ in range(n)])
            )
            right = right * np.array([[dice.below(2) for _ in range(n)] for _ in range(n)])
        instances.append(instance)
        grids.append(right.ravel())
    cells = np.array(grids, np.int8)
    batch = jax.tree.map(jnp.asarray, Instance(*map(np.stack, zip(*instances, strict=True))))
    allowed, solved = (
        np.asarray(f(cells, batch))
        for f in (jax.jit(jax.vmap(task.allowed_symbols)), jax.jit(jax.vmap(task.is_solved)))
    )
    answers = [puzzle.write_answer(puzzle.as_rows(row.tolist())) for row in cells]
    full = (cells > 0).all(axis=1)
    expected = [
        puzzle.verify(instance, answer).solved
        for instance, answer in zip(instances, answers, strict=True)
    ]
    assert solved[full].tolist() == np.array(expected)[full].tolist()
    assert solved[::4].all()
    assert not solved[1::4].all()
    forbidden = 0
    for row, instance in enumerate(instances):
        rows, clues = read_clues(puzzle.prompt(instance))
        grid = cells[row].reshape(n, n)
        place = {rows[a][v - 1]: h + 1 for a in range(n) for h, v in enumerate(grid[a]) if v}
        for a, h in zip(*np.nonzero(grid == 0), strict=True):
            for v, value in enumerate(rows[a]):
                wrong = value in place
                for relation, first, second in clues:
                    if value not in (first, second):
                        continue
                    if RELATIONS[relation] is None:
                        wrong |= h + 1 != int(second)
                        continue
                    elsewhere = place.get(second if value == first else first)
                    some = range(1, n + 1) if elsewhere is None else [elsewhere]
                    if relation == "is not" and elsewhere is None:
                        continue
                    pairs = [(h + 1, x) if value == first else (x, h + 1) for x in some]
                    wrong |= not any(RELATIONS[relation](x, y) for x, y in pairs)
                assert allowed[row, a * n + h, v] == (not wrong), (row, a, h, value)
                forbidden += wrong and value not in place
    assert forbidden > 10
