"""Tests of HamiltonianPath and HamiltonianCycle against independent references.

They are a SAT solver, all permutations, and the known numbers of graphs.
"""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.card import CardEnc, EncType
from pysat.formula import IDPool
from pysat.solvers import Cadical153

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.routes.graph import (
    canonical_graph,
    hamiltonian_cycle,
    hamiltonian_path,
    random_graph,
)
from rlbench_suite.envs.puzzles.routes.hamiltonian import Instance
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
every_id = pytest.mark.parametrize("name", ["HamiltonianPath-v0", "HamiltonianCycle-v0"])
every_tier = pytest.mark.parametrize("tier", ["easy", "medium", "hard"])

Edges = set[frozenset[int]]


def edges_of(prompt: str) -> Edges:
    return {frozenset((int(a), int(b))) for a, b in re.findall(r"(\d+)-(\d+)", prompt)}


def is_solution(edges: Edges, count: int, path: list[int], closed: bool) -> bool:
    steps = list(itertools.pairwise(path)) + ([(path[-1], path[0])] if closed else [])
    return sorted(path) == list(range(1, count + 1)) and all(
        frozenset(step) in edges for step in steps
    )


def has_solution_by_force(edges: Edges, count: int, closed: bool) -> bool:
    return any(
        is_solution(edges, count, list(p), closed)
        for p in itertools.permutations(range(1, count + 1))
    )


@cache
def places(count: int) -> tuple[dict[tuple[int, int], int], list[list[int]]]:
    """Variables for vertex v at place p, and clauses: one vertex a place, one place a vertex."""
    pool = IDPool()
    at = {(v, p): pool.id((v, p)) for v in range(1, count + 1) for p in range(count)}
    clauses: list[list[int]] = []
    for k in range(count):
        for line in ([at[v, k] for v in range(1, count + 1)], [at[k + 1, p] for p in range(count)]):
            clauses += CardEnc.equals(line, 1, vpool=pool, encoding=EncType.pairwise).clauses
    return at, clauses


def has_solution_by_sat(edges: Edges, count: int, closed: bool) -> bool:
    """Return whether vertices have places in which neighbours are side by side.

    The first vertex of a cycle may be any.
    """
    at, one_each = places(count)
    clauses = [*one_each, [at[1, 0]]] if closed else [*one_each]
    for p in range(count if closed else count - 1):
        for v, w in itertools.permutations(range(1, count + 1), 2):
            if frozenset((v, w)) not in edges:
                clauses.append([-at[v, p], -at[w, (p + 1) % count]])
    with Cadical153(bootstrap_with=clauses) as solver:
        return bool(solver.solve())


@pytest.mark.parametrize("closed", [False, True])
def test_the_search_is_exact_on_all_small_graphs(closed: bool) -> None:
    """Try every graph of five vertices, and random ones of seven, whatever their degrees."""
    pairs = list(itertools.combinations(range(5), 2))
    graphs = [
        [e for e, bit in zip(pairs, bits, strict=True) if bit]
        for bits in itertools.product((0, 1), repeat=10)
    ]
    cases = [(5, {frozenset((v + 1, w + 1)) for v, w in graph}) for graph in graphs]
    for seed in range(60):
        rows = random_graph(Dice(5, seed), 7, 6 + seed % 7)
        cases.append(
            (7, {frozenset((v + 1, w + 1)) for v in range(7) for w in range(7) if rows[v] >> w & 1})
        )
    num_solvable = 0
    for count, edges in cases:
        rows = [
            sum(1 << w for w in range(count) if frozenset((v + 1, w + 1)) in edges)
            for v in range(count)
        ]
        path, entered = (hamiltonian_cycle if closed else hamiltonian_path)(rows)
        assert entered > 0
        assert (path is not None) == has_solution_by_force(edges, count, closed)
        if path is not None:
            num_solvable += 1
            assert is_solution(edges, count, [v + 1 for v in path], closed)
    assert 0.1 < num_solvable / len(cases) < 0.9


@pytest.mark.engine("CaDiCaL: whether there is one")
@every_tier
@every_id
def test_both_answers_are_proven_and_balanced(name: str, tier: str, compared: Compared) -> None:
    puzzle = puzzle_of(name, tier)
    solvable = []
    count = {"easy": 900, "medium": 200, "hard": 100}[tier]
    for seed in range(count):
        instance = puzzle.generate(seed)
        edges = edges_of(puzzle.prompt(instance))
        assert len(edges) == puzzle.edges
        degrees = [sum(v in edge for edge in edges) for v in range(1, puzzle.count + 1)]
        assert min(degrees) >= (2 if puzzle.closed else 1)
        assert puzzle.closed or degrees.count(1) <= 2
        answer = puzzle.solve(instance)
        assert (
            has_solution_by_sat(edges, puzzle.count, puzzle.closed)
            == (answer != "none")
            == bool(instance.solvable)
        )
        if answer != "none":
            assert is_solution(edges, puzzle.count, list(map(int, answer.split())), puzzle.closed)
        solvable.append(answer != "none")
        compared(puzzle, instance)
    assert sum(solvable) == count / 2


@every_id
def test_a_verdict_says_what_a_path_is(name: str) -> None:
    puzzle = puzzle_of(name, "easy")
    rng = np.random.default_rng(0)
    right = 0
    for seed in range(1000):
        instance = puzzle.generate(seed)
        edges = edges_of(puzzle.prompt(instance))
        answer = puzzle.solve(instance)
        if answer == "none" or seed % 4 == 0:
            answer = puzzle.heuristic(instance)
        if answer == "none":
            assert puzzle.verify(instance, answer).solved == (
                not has_solution_by_sat(edges, puzzle.count, puzzle.closed)
            )
            continue
        path = [int(word) for word in answer.split()]
        if seed % 2:
            i, j = rng.choice(puzzle.count, 2)
            vertex = path[i]
            path[i] = path[j]
            if seed % 3:
                path[j] = vertex
        elif seed % 3 == 0:
            path = path[2:] + path[:2]
        verdict = puzzle.verify(instance, " ".join(map(str, path)))
        assert verdict.valid
        truth = is_solution(edges, puzzle.count, path, puzzle.closed)
        assert verdict.solved == truth
        assert verdict.score == truth
        right += truth
    assert 100 < right < 900


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "None",
        "none ",
        "1 2 3",
        "0 1 2 3 4 5 6 7",
        "1-2-3-4-5-6-7-8",
        "1 2 3 4 5 6 7 8 1",
        "none none",
    ],
)
def test_other_formats_are_invalid(answer: str) -> None:
    puzzle = puzzle_of("HamiltonianCycle-v0", "easy")
    assert not puzzle.verify(puzzle.generate(0), answer).valid


def test_canonical_forms_are_the_isomorphism_classes() -> None:
    """There are 34 graphs of five vertices, and 156 of six (OEIS A000088)."""
    for count, classes in ((4, 11), (5, 34), (6, 156)):
        pairs = list(itertools.combinations(range(count), 2))
        forms = set()
        for bits in range(2 ** len(pairs)):
            rows = [0] * count
            for k, (v, w) in enumerate(pairs):
                if bits >> k & 1:
                    rows[v] |= 1 << w
                    rows[w] |= 1 << v
            if count < 6 or sorted(row.bit_count() for row in rows) == [
                row.bit_count() for row in rows
            ]:
                # Of six vertices only those in order of degree, for time.
                forms.add(canonical_graph(rows))
        assert len(forms) == classes


@every_id
def test_names_of_vertices_do_not_matter(name: str) -> None:
    puzzle = puzzle_of(name)
    rng = np.random.default_rng(0)
    forms = set()
    for seed in range(40):
        instance = puzzle.generate(seed)
        order = rng.permutation(puzzle.count)
        rows = instance.neighbours.tolist()
        renamed = [0] * puzzle.count
        for v, row in enumerate(rows):
            renamed[order[v]] = sum(1 << int(order[w]) for w in range(puzzle.count) if row >> w & 1)
        forms.add(form := puzzle.canonical(instance))
        assert puzzle.canonical(Instance(np.array(renamed, np.int32), instance.solvable)) == form
    assert len(forms) >= 39


@every_id
def test_the_task_plays_by_the_same_rules(name: str) -> None:
    """Random legal play of whole episodes, in one batch."""
    task: Any = card(name).build(difficulty="easy")
    puzzle, count, n = task.puzzle, 256, task.count
    instances = [puzzle.generate(seed) for seed in range(count)]
    assert all(instance.solvable for instance in instances), "every episode can be won"
    graphs = [edges_of(puzzle.prompt(instance)) for instance in instances]
    stacked = Instance(*(jnp.stack(column) for column in zip(*instances, strict=True)))
    context = Params(stacked, jnp.zeros((count, 1), jnp.int16))
    key = jax.random.key(0)
    state = jax.vmap(lambda p: task.initial(key, p))(context)
    look = jax.jit(
        jax.vmap(
            lambda s, p: (
                task.action_mask(s, p),
                task.terminal(s, key, p),
                task.info(s, p)["success"],
            )
        )
    )

    @jax.jit
    @jax.vmap
    def step(state: Any, action: jax.Array, p: Params) -> Any:
        new = task.transition(state, action, key, p)
        return new, task.reward(state, action, new, key, p), task.observation(new, key, p)

    rng = np.random.default_rng(0)
    paths: list[list[int]] = [[] for _ in range(count)]
    solved = np.zeros(count, bool)
    for _ in range(n + 1):
        mask, over, success = (np.asarray(leaf) for leaf in look(state, context))
        actions = np.zeros(count, int)
        for k, (path, edges) in enumerate(zip(paths, graphs, strict=True)):
            options = [
                v
                for v in range(1, n + 1)
                if v not in path and (not path or frozenset((path[-1], v)) in edges)
            ]
            assert [v + 1 for v in np.flatnonzero(mask[k])] == options
            assert over[k] == (not options)
            solved[k] = bool(path) and is_solution(edges, n, path, puzzle.closed)
            assert success[k] == solved[k]
            if options:
                free = [
                    sum(frozenset((v, w)) in edges and w not in path for w in range(1, n + 1))
                    for v in options
                ]
                path.append(
                    options[int(np.argmin(free))]
                    if rng.random() < 0.8
                    else int(rng.choice(options))
                )
                actions[k] = path[-1] - 1
        new, reward, observation = step(state, jnp.asarray(actions), context)
        state = jax.tree.map(
            lambda a, b, o=over: jnp.where(o.reshape(-1, *[1] * (a.ndim - 1)), b, a), new, state
        )
        for k in np.flatnonzero(~over):
            done = is_solution(graphs[k], n, paths[k], puzzle.closed)
            assert reward[k] == pytest.approx(1 / n + done, abs=1e-6)
            assert task.observation_space.contains(np.asarray(observation[k]))
    assert 0.05 < solved.mean() < 1


@every_tier
@every_id
def test_the_plan_solves(name: str, tier: str) -> None:
    task: Any = card(name).build(difficulty=tier)
    for seed in range(20):
        instance = task.puzzle.generate(seed)
        path = [vertex + 1 for vertex in task.puzzle.plan(instance)]
        assert is_solution(
            edges_of(task.puzzle.prompt(instance)), task.count, path, task.puzzle.closed
        )
    if tier == "easy":
        record = play(task, reference_player(task), range(200))
        assert record.info["success"].all()
        np.testing.assert_allclose(record.total, task.card.optimum, atol=1e-4)


@every_id
def test_people_can_play(name: str) -> None:
    task: Any = card(name).build(difficulty="easy")
    instance = task.puzzle.generate(0)
    params = Params(instance, np.zeros(1, np.int16))
    key = jax.random.key(0)
    state = task.initial(key, params)
    for vertex in task.puzzle.solve(instance).split():
        assert task.why_over(state, params, task.info(state, params)) != "every vertex is visited"
        state = task.transition(state, jnp.asarray(task.parse(vertex, state, params)), key, params)
    assert task.describe(state, params).endswith(task.puzzle.solve(instance))
    assert task.why_over(state, params, task.info(state, params)) == "every vertex is visited"
    assert task.why_illegal(np.int64(0), state, params) == "vertex 1 is visited already"
    with pytest.raises(ValueError, match="expected a vertex from 1 to 8, got 'one'"):
        task.parse("one", state, params)
    assert task.draw(state, params).shape == task.picture_shape


@pytest.mark.parametrize("tier", [4, 17, 7.5])
def test_other_sizes_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="the number of vertices, 5 to 16, got"):
        puzzle_of("HamiltonianPath-v0", tier)
