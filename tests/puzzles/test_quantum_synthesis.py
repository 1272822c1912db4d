"""QuantumSynthesis-v0 against complex matrices."""

from __future__ import annotations

import re
from functools import cache, reduce
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

from rlbench_suite.adapters.rollout import play
from rlbench_suite.dice import Dice
from rlbench_suite.envs.puzzles.puzzle_task import Params
from rlbench_suite.envs.puzzles.quantum_synthesis import (
    FINE,
    GATES,
    Instance,
    QuantumSynthesisPuzzle,
    _haar,
    _rounded,
    circuits,
)
from rlbench_suite.policy import reference_player
from rlbench_suite.registry import card

pytestmark = pytest.mark.of_variants

T = np.diag([1, np.exp(0.25j * np.pi)])
MATRIX = {
    "H": np.array([[1, 1], [1, -1]]) / np.sqrt(2),
    "T": T,
    "Tdg": T.conj(),
    "S": T @ T,
    "Sdg": (T @ T).conj(),
}
PAULI = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])


def circuit(gates: list[str]) -> np.ndarray:
    """The first gate acts first."""
    return reduce(lambda whole, gate: MATRIX[gate] @ whole, gates, np.eye(2, dtype=complex))


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sqrt(max(0.0, 1 - abs(np.trace(one.conj().T @ other)) / 2)))


def told(puzzle: QuantumSynthesisPuzzle, instance: Instance) -> tuple[np.ndarray, float]:
    """The target and the wanted distance, read from the prompt."""
    text = puzzle.prompt(instance)
    entries = re.findall(r"^U\d\d = ([+-][\d.]+) ([+-][\d.]+) i$", text, re.MULTILINE)
    match = re.search(r"at most (\d+) gates with a distance of at most ([\d.]+)\.\n", text)
    assert len(entries) == 4
    assert match
    assert int(match[1]) == puzzle.gates
    return np.array([float(a) + 1j * float(b) for a, b in entries]).reshape(2, 2), float(match[2])


def normal(unitary: np.ndarray) -> bytes:
    """The same for unitaries that differ by a phase."""
    first = unitary.ravel()[np.flatnonzero(np.abs(unitary.ravel()) > 1e-6)[0]]
    return (np.round(unitary * (abs(first) / first), 6) + (0.0 + 0.0j)).tobytes()


@cache
def levels(most: int) -> list[np.ndarray]:
    """Different unitaries by the least number of gates, by floating-point search: ``(n, 2, 2)`` each."""
    known, found = {normal(np.eye(2, dtype=complex))}, [np.eye(2, dtype=complex)[None]]
    for _ in range(most):
        level = []
        for unitary in found[-1]:
            for gate in MATRIX.values():
                key = normal(following := gate @ unitary)
                if key not in known:
                    known.add(key)
                    level.append(following)
        found.append(np.array(level))
    return found


def test_every_unitary_is_found_once_by_a_shortest_circuit() -> None:
    known = circuits(9)
    assert np.diff(known.begins).tolist() == [len(level) for level in levels(9)]
    keys = {normal(unitary): depth for depth, level in enumerate(levels(9)) for unitary in level}
    for quaternion, word in zip(known.quaternions, known.words, strict=True):
        unitary = circuit([GATES[gate] for gate in word])
        assert keys.pop(normal(unitary)) == len(word)
        w, x, y, z = quaternion
        of_quaternion = w * np.eye(2) - 1j * (x * PAULI[0] + y * PAULI[1] + z * PAULI[2])
        assert distance(unitary, of_quaternion) < 1e-7
    assert not keys


@pytest.mark.parametrize(("tier", "count"), [(3, 1000), (6, 300), (10, 60)])
def test_the_wanted_distance_needs_all_gates(tier: int, count: int) -> None:
    """Against all unitaries; nothing is near the border; one of eight targets is a product."""
    puzzle = QuantumSynthesisPuzzle(tier)
    *shorter, longest = levels(tier)
    products = 0
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed // (count // 2)])
        target, wanted = told(puzzle, instance)
        assert np.allclose(target @ target.conj().T, np.eye(2), atol=1e-5)

        gaps = [np.sqrt(1 - np.abs(np.einsum("ij,nij->n", target.conj(), level)).clip(0, 2) / 2) for level in
                (np.concatenate(shorter), longest)]  # fmt: skip
        assert gaps[0].min() > wanted + 5e-5
        assert gaps[1].min() < wanted - 5e-5
        assert np.abs(gaps[1] - wanted).min() > 5e-5
        assert gaps[0][0] > wanted + 0.099, "doing nothing is far from enough"
        near = (gaps[1] < wanted).sum()
        assert 2 ** puzzle.difficulty(instance) == pytest.approx(sum(map(len, levels(tier))) / near)
        products += gaps[1].min() < 2e-3 and wanted == 0.01
    assert abs(products - count / 8) <= 1 + (tier == 10)


def test_random_targets_follow_haars_measure() -> None:
    """Each coordinate of a uniform point of the 3-sphere has a semicircular distribution."""
    points = np.array([_haar(Dice(1, seed)) for seed in range(2000)])
    np.testing.assert_allclose((points**2).sum(1), 1)
    for column in points.T:
        assert stats.kstest(column, stats.semicircular.cdf).pvalue > 1e-3
    pairs = points[:, None] * points[:, :, None]
    np.testing.assert_allclose(pairs.mean(0), np.eye(4) / 4, atol=0.025)


# -- the verifier ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", [3, 6])
def test_the_verifier_measures(tier: int) -> None:
    puzzle, rng, seen = QuantumSynthesisPuzzle(tier), np.random.default_rng(tier), {True: 0, False: 0}
    for seed in range(200):
        instance = puzzle.generate(seed)
        target, wanted = told(puzzle, instance)
        right = puzzle.solve(instance).split(" ")
        assert len(right) == tier
        answers = [right, [GATES[k] for k in rng.integers(5, size=tier)], right[:-1], right[::-1]]
        for _ in range(6):
            changed = right.copy()
            changed[rng.integers(tier)] = GATES[rng.integers(5)]
            answers.append(changed)
        for gates in answers:
            verdict = puzzle.verify(instance, " ".join(gates))
            near = distance(target, circuit(gates)) <= wanted
            assert verdict.valid
            assert verdict.solved == verdict.optimal == (verdict.score == 1) == near
            seen[near] += 1
        longer = puzzle.verify(instance, " ".join([*right, "S", "Sdg"]))
        assert longer.valid
        assert longer.score == 0
        assert f"{tier + 2} gates, {tier} are allowed" in longer.reason
    assert min(seen.values()) > 200


@pytest.mark.parametrize("answer", ["", "X", "h", "H,T", "H  T", "H\nT", "T^-1", "Tdag", "H T ", "S" + " S" * 2000])
def test_what_is_no_circuit_is_refused(answer: str) -> None:
    puzzle = QuantumSynthesisPuzzle(3)
    assert not puzzle.verify(puzzle.generate(0), answer).valid


# -- disguises -------------------------------------------------------------------------------------------------------


def test_conjugation_and_inversion_do_not_matter() -> None:
    """Made by matrices; the solution's gates, conjugated or turned round, solve the disguise."""
    puzzle, forms = QuantumSynthesisPuzzle(6), set()
    inverse = {"H": "H", "T": "Tdg", "Tdg": "T", "S": "Sdg", "Sdg": "S"}
    for seed in range(150):
        one = puzzle.generate(seed)
        target, _ = told(puzzle, one)
        right = puzzle.solve(one).split(" ")
        conjugated = [inverse[gate] for gate in right]
        for other, gates in (
            (target.conj(), conjugated),
            (target.conj().T, conjugated[::-1]),
            (target.T, right[::-1]),
            (-target, right),
        ):
            w, z = other[0, 0].real, -other[0, 0].imag
            y, x = -other[0, 1].real, -other[0, 1].imag
            instance = one._replace(target=_rounded(np.array([w, x, y, z])))
            assert puzzle.canonical(instance) == puzzle.canonical(one)
            assert puzzle.verify(instance, " ".join(gates)).score == 1
        assert puzzle.canonical(one._replace(wanted=one.wanted + 1)) != puzzle.canonical(one)
        if one.wanted != 100:
            forms.add(puzzle.canonical(one))
    assert len(forms) >= 129, "random targets never meet"


# -- the task --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_task_keeps_the_rules(tier: str) -> None:
    """Random gates and plans against matrices and the verifier."""
    task = card("QuantumSynthesis-v0").build(difficulty=tier)
    puzzle, key, rng = task.puzzle, jax.random.key(0), np.random.default_rng(0)
    n, count = puzzle.gates, 200
    instances = [puzzle.generate(seed) for seed in range(count)]
    actions = rng.integers(5, size=(count, n))
    actions[::2] = [puzzle.plan(instance) for instance in instances[::2]]
    params = Params(Instance(*map(np.stack, zip(*instances, strict=True))), np.zeros((count, 1), np.int16))

    @jax.jit
    @jax.vmap
    def look(state: Any, params: Params) -> Any:
        return task.terminal(state, key, params), task.info(state, params), task.observation(state, key, params)

    @jax.jit
    @jax.vmap
    def step(state: Any, action: jax.Array, params: Params) -> Any:
        after = task.transition(state, action, key, params)
        return after, task.reward(state, action, after, key, params)

    state, rewards = jax.vmap(task.initial, in_axes=(None, 0))(key, params), []
    looks = [jax.tree.map(np.asarray, look(state, params))]
    for k in range(n):
        state, reward = step(state, actions[:, k], params)
        rewards.append(np.asarray(reward))
        looks.append(jax.tree.map(np.asarray, look(state, params)))
    solved = 0
    for number, instance in enumerate(instances):
        target, wanted = told(puzzle, instance)
        target /= np.sqrt(abs(np.linalg.det(target)))
        first = distance(target, np.eye(2))
        total = 0.0
        for k in range(n + 1):
            gates = [GATES[a] for a in actions[number, :k]]
            left = target @ circuit(gates).conj().T
            gap = distance(target, circuit(gates))
            near = gap <= wanted
            over, info, seen = looks[k]
            assert bool(info["success"][number]) == near
            assert bool(over[number]) == (near or k == n)
            assert float(info["distance"][number]) == pytest.approx(gap, abs=2e-3 if gap < 0.01 else 1e-4)
            rotation = np.einsum("aij,jk,bkl,il->ab", PAULI, left, PAULI, left.conj()).real / 2
            np.testing.assert_allclose(seen[number], [*rotation.ravel(), wanted, 1 - k / n], atol=1e-5)
            assert task.observation_space.contains(seen[number])
            excess = max(gap - wanted, 0) / (first - wanted)
            assert total == pytest.approx(1 - excess + near, abs=2e-3)
            if gates:
                assert (puzzle.verify(instance, " ".join(gates)).score == 1) == near
            if near or k == n:
                solved += near
                break
            total += float(rewards[k][number])
        if number % 2 == 0:
            assert near
    assert count // 2 <= solved < count


@pytest.mark.parametrize("tier", ["easy", "hard"])
def test_the_plan_earns_the_best_return(tier: str) -> None:
    task = card("QuantumSynthesis-v0").build(difficulty=tier)
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, task.card.optimum, atol=1e-5)
    assert (record.length == task.puzzle.gates).all()


def test_the_words_of_the_task() -> None:
    task = card("QuantumSynthesis-v0").build()
    instance = task.puzzle.generate(3)
    params = Params(instance, np.array(task.puzzle.plan(instance), np.int16))
    key = jax.random.key(0)
    begin = state = task.initial(key, params)
    assert task.puzzle.question(instance).split("\n\n")[1] in task.describe(state, params)
    for gate in task.puzzle.solve(instance).split(" "):
        assert "Gates left: 0" not in task.describe(state, params)
        state = task.transition(state, task.parse(f" {gate}\n", state, params), key, params)
    assert "Gates left: 0" in task.describe(state, params)
    assert f"at most {int(instance.wanted) / FINE:.4f} is wanted" in task.describe(state, params)
    assert task.why_over(state, params) == "the circuit is near enough"
    assert "not near enough" in task.why_over(begin._replace(used=state.used), params)
    assert (task.draw(state, params) != task.draw(begin, params)).any()
    for text in ("", "X", "H T", "0"):
        with pytest.raises(ValueError, match="expected one of H, T"):
            task.parse(text, state, params)


@pytest.mark.parametrize("tier", [1, 15, 2.5])
def test_other_tiers_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="number of gates, 2 to 14"):
        QuantumSynthesisPuzzle(tier)
