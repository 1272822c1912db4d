"""QuantumSynthesis-v0 and TwoQubitSynthesis-v0 against complex matrices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache, reduce
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from comparison import Compared
from scipy import stats

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.quantum import quantum_synthesis, two_qubit_synthesis
from rlbench_suite.envs.puzzles.quantum.gate_synthesis import (
    TOLERANCE_UNITS,
    Circuits,
    Instance,
    SynthesisPuzzle,
)
from rlbench_suite.envs.puzzles.quantum.quantum_synthesis import (
    QuantumSynthesisPuzzle,
    _haar,
    _round_to_units,
)
from rlbench_suite.envs.puzzles.quantum.two_qubit_synthesis import TwoQubitSynthesisPuzzle
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants

T = np.diag([1, np.exp(0.25j * np.pi)])
H = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
PAULI = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])


def bloch(unitary: np.ndarray) -> np.ndarray:
    """Return the rotation of the Bloch sphere."""
    return np.einsum("aij,jk,bkl,il->ab", PAULI, unitary, PAULI, unitary.conj()).real.ravel() / 2


def real_and_imaginary(unitary: np.ndarray) -> np.ndarray:
    """Return the real and the imaginary parts."""
    return np.concatenate([unitary.real.ravel(), unitary.imag.ravel()])


class Kind(NamedTuple):
    """A puzzle, and facts about it."""

    puzzle: Callable[[float], SynthesisPuzzle]
    circuits: Callable[[int], Circuits]
    matrices: dict[str, np.ndarray]
    inverse: dict[str, str]
    view: Callable[[np.ndarray], np.ndarray]

    @property
    def dimension(self) -> int:
        return len(self.matrices[next(iter(self.matrices))])


def controlled_not(control: int, target: int) -> np.ndarray:
    """CNOT, state by state; the first qubit has the greater weight."""
    gate = np.zeros((4, 4))
    for bits in product((0, 1), repeat=2):
        after = list(bits)
        after[target] ^= bits[control]
        gate[2 * after[0] + after[1], 2 * bits[0] + bits[1]] = 1
    return gate


ONE_QUBIT = {"H": H, "T": T, "Tdg": T.conj(), "S": T @ T, "Sdg": (T @ T).conj()}
TWO = {
    f"{name}{qubit}": np.kron(ONE_QUBIT[name], np.eye(2))
    if qubit == 1
    else np.kron(np.eye(2), ONE_QUBIT[name])
    for name in ("H", "T", "Tdg")
    for qubit in (1, 2)
} | {"CNOT12": controlled_not(0, 1), "CNOT21": controlled_not(1, 0)}


def undone_by(names: Any) -> dict[str, str]:
    """Return the gate that undoes each, by its name."""
    swapped = {"T": "Tdg", "Tdg": "T", "S": "Sdg", "Sdg": "S"}
    parted = {name: re.fullmatch(r"([A-Za-z]+)(\d*)", name) for name in names}
    return {
        name: swapped.get(match[1], match[1]) + match[2] for name, match in parted.items() if match
    }


KINDS = {
    "QuantumSynthesis": Kind(
        QuantumSynthesisPuzzle, quantum_synthesis.circuits, ONE_QUBIT, undone_by(ONE_QUBIT), bloch
    ),
    "TwoQubitSynthesis": Kind(
        TwoQubitSynthesisPuzzle,
        two_qubit_synthesis.circuits,
        TWO,
        undone_by(TWO),
        real_and_imaginary,
    ),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def circuit(name: str, gates: list[str]) -> np.ndarray:
    """Multiply the gates; the first gate acts first."""
    kind = KINDS[name]
    return reduce(
        lambda product, gate: kind.matrices[gate] @ product,
        gates,
        np.eye(kind.dimension, dtype=complex),
    )


def distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.sqrt(max(0.0, 1 - abs(np.trace(first.conj().T @ second)) / len(first))))


def read_question(puzzle: SynthesisPuzzle, instance: Instance) -> tuple[np.ndarray, float]:
    """Read the target and the wanted distance from the prompt."""
    text = puzzle.prompt(instance)
    entries = re.findall(r"^U\d\d = ([+-][\d.]+) ([+-][\d.]+) i$", text, re.MULTILINE)
    match = re.search(r"at most (\d+) gates with a distance of at most ([\d.]+)\.\n", text)
    assert match
    assert int(match[1]) == puzzle.gates
    return np.array([float(a) + 1j * float(b) for a, b in entries]).reshape(
        puzzle.dimension, -1
    ), float(match[2])


def normalise(unitary: np.ndarray) -> bytes:
    """Return the same matrix for unitaries that differ by a phase."""
    first = unitary.ravel()[np.flatnonzero(np.abs(unitary.ravel()) > 1e-6)[0]]
    return (np.round(unitary * (abs(first) / first), 6) + (0.0 + 0.0j)).tobytes()


@cache
def levels(name: str, max_gates: int) -> list[np.ndarray]:
    """Return different unitaries by the least number of gates, ``(n, d, d)`` each.

    A floating-point search finds them.
    """
    nothing = circuit(name, [])
    keys, levels_so_far = {normalise(nothing)}, [nothing[None]]
    for _ in range(max_gates):
        level = []
        for unitary in levels_so_far[-1]:
            for gate in KINDS[name].matrices.values():
                key = normalise(following := gate @ unitary)
                if key not in keys:
                    keys.add(key)
                    level.append(following)
        levels_so_far.append(np.array(level))
    return levels_so_far


@pytest.mark.parametrize(("name", "max_gates"), [("QuantumSynthesis", 9), ("TwoQubitSynthesis", 5)])
def test_every_unitary_is_found_once_by_a_shortest_circuit(name: str, max_gates: int) -> None:
    circuits, every = KINDS[name].circuits(max_gates), levels(name, max_gates)
    assert np.diff(circuits.begins).tolist() == [len(level) for level in every]
    keys = {normalise(unitary): depth for depth, level in enumerate(every) for unitary in level}
    for row, word in zip(circuits.unitaries, circuits.words, strict=True):
        unitary = circuit(name, [KINDS[name].puzzle.names[gate] for gate in word])
        assert keys.pop(normalise(unitary)) == len(word)
        if name == "QuantumSynthesis":
            w, x, y, z = row
            of_row = w * np.eye(2) - 1j * (x * PAULI[0] + y * PAULI[1] + z * PAULI[2])
        else:
            of_row = (row[0] + row[1] / np.sqrt(2)).reshape(4, 4)
            of_row /= np.linalg.norm(of_row[0])
        assert distance(unitary, of_row) < 1e-7
    assert not keys


def test_the_words_of_the_docs_on_two_qubits() -> None:
    circuits = two_qubit_synthesis.circuits(7)
    assert np.diff(circuits.begins)[[3, 5, 7]].tolist() == [197, 3059, 35347]
    assert [circuits.begins[n + 1] for n in (3, 5, 7)] == [249, 4114, 50164]


@pytest.mark.parametrize(("tier", "puzzles"), [(3, 38), (5, 436), (7, 4608)])
def test_how_many_puzzles_on_two_qubits_there_are(tier: int, puzzles: int) -> None:
    """Count different instances among 10,000 of the train split.

    An eighth are products, and they repeat each other as often as if there were ``space`` of them.
    """
    puzzle = TwoQubitSynthesisPuzzle(tier)
    products = [
        Instance(puzzle.circuit_target(k), np.int32(100))
        for k in range(*puzzle.circuits.begins[tier : tier + 2])
    ]
    sizes = Counter(forms := [puzzle.canonical(instance) for instance in products])
    assert len(sizes) == puzzles
    splits = {
        form: puzzle.split_of(instance)
        for form, instance in dict(zip(forms, products, strict=True)).items()
    }
    of_each = np.array([size for form, size in sizes.items() if splits[form] == "train"])
    chances = of_each / of_each.sum()
    different = 8750 + (1 - (1 - chances) ** 1250).sum()
    of_train = puzzle.space / 2
    assert of_train * (1 - np.exp(-10_000 / of_train)) == pytest.approx(different, rel=1e-3)


@pytest.mark.engine("all circuits as matrices: no shorter one is near enough")
@pytest.mark.parametrize(
    ("name", "tier", "count"),
    [
        ("QuantumSynthesis", 3, 1000),
        ("QuantumSynthesis", 6, 300),
        ("QuantumSynthesis", 10, 60),
        ("TwoQubitSynthesis", 3, 800),
        ("TwoQubitSynthesis", 5, 240),
        ("TwoQubitSynthesis", 7, 16),
    ],
)
def test_the_wanted_distance_needs_all_gates(
    name: str, tier: int, count: int, compared: Compared
) -> None:
    """Against all unitaries; nothing is near the border; one of eight targets is a product."""
    puzzle = KINDS[name].puzzle(tier)
    *shorter, longest = levels(name, tier)
    d = puzzle.dimension
    products = 0
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed // (count // 2)])
        target, tolerance = read_question(puzzle, instance)
        assert np.allclose(target @ target.conj().T, np.eye(d), atol=1e-5)

        gaps = [
            np.sqrt(1 - np.abs(level.reshape(-1, d * d) @ target.conj().ravel()).clip(0, d) / d)
            for level in (np.concatenate(shorter), longest)
        ]
        assert gaps[0].min() > tolerance + 5e-5
        assert gaps[1].min() < tolerance - 5e-5
        assert np.abs(gaps[1] - tolerance).min() > 5e-5
        assert gaps[0][0] > tolerance + 0.099, "doing nothing is far from enough"
        near = (gaps[1] < tolerance).sum()
        assert 2 ** puzzle.difficulty(instance) == pytest.approx(
            sum(map(len, levels(name, tier))) / near
        )
        assert distance(target, circuit(name, puzzle.solve(instance).split(" "))) <= tolerance
        products += gaps[1].min() < 2e-3 and tolerance == 0.01
        compared(puzzle, instance)
    assert abs(products - count / 8) <= 1 + (tier == 10)


def test_random_targets_follow_haars_measure() -> None:
    """Check that coordinates of uniform points of the 3-sphere are semicircular."""
    points = np.array([_haar(Dice(1, seed)) for seed in range(2000)])
    np.testing.assert_allclose((points**2).sum(1), 1)
    for column in points.T:
        assert stats.kstest(column, stats.semicircular.cdf).pvalue > 1e-3
    pairs = points[:, None] * points[:, :, None]
    np.testing.assert_allclose(pairs.mean(0), np.eye(4) / 4, atol=0.025)


# -- the verifier ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("QuantumSynthesis", 3),
        ("QuantumSynthesis", 6),
        ("TwoQubitSynthesis", 3),
        ("TwoQubitSynthesis", 5),
    ],
)
def test_the_verifier_measures(name: str, tier: int) -> None:
    puzzle = KINDS[name].puzzle(tier)
    rng = np.random.default_rng(tier)
    verdicts = {True: 0, False: 0}
    names = puzzle.names
    for seed in range(200):
        instance = puzzle.generate(seed)
        target, tolerance = read_question(puzzle, instance)
        solution = puzzle.solve(instance).split(" ")
        assert len(solution) == tier
        answers = [
            solution,
            [names[k] for k in rng.integers(len(names), size=tier)],
            solution[:-1],
            solution[::-1],
        ]
        for _ in range(6):
            changed = solution.copy()
            changed[rng.integers(tier)] = names[rng.integers(len(names))]
            answers.append(changed)
        for gates in answers:
            verdict = puzzle.verify(instance, " ".join(gates))
            near = distance(target, circuit(name, gates)) <= tolerance
            assert verdict.valid
            assert verdict.solved == verdict.optimal == (verdict.score == 1) == near
            verdicts[near] += 1
        longer = puzzle.verify(
            instance, " ".join([*solution, names[1], KINDS[name].inverse[names[1]]])
        )
        assert longer.valid
        assert longer.score == 0
        assert f"{tier + 2} gates, {tier} are allowed" in longer.reason
    assert min(verdicts.values()) > 200


NO_CIRCUITS = ["", "X", "h", "H,T", "H  T", "H\nT", "T^-1", "Tdag", "H T ", "S" + " S" * 2000]


@every_kind
@pytest.mark.parametrize("answer", [*NO_CIRCUITS, "H3", "CNOT", "CNOT11", "H1" + " H1" * 2000])
def test_what_is_no_circuit_is_refused(name: str, answer: str) -> None:
    puzzle = KINDS[name].puzzle(3)
    assert not puzzle.verify(puzzle.generate(0), answer).valid


# -- disguises -------------------------------------------------------------------------------------


def test_conjugation_and_inversion_do_not_matter() -> None:
    """Made by matrices; the solution's gates, conjugated or turned round, solve the disguise."""
    puzzle, forms = QuantumSynthesisPuzzle(6), set()
    inverse = KINDS["QuantumSynthesis"].inverse
    for seed in range(150):
        original = puzzle.generate(seed)
        target, _ = read_question(puzzle, original)
        solution = puzzle.solve(original).split(" ")
        conjugated = [inverse[gate] for gate in solution]
        for disguise, gates in (
            (target.conj(), conjugated),
            (target.conj().T, conjugated[::-1]),
            (target.T, solution[::-1]),
            (-target, solution),
        ):
            w, z = disguise[0, 0].real, -disguise[0, 0].imag
            y, x = -disguise[0, 1].real, -disguise[0, 1].imag
            instance = original._replace(target=_round_to_units(np.array([w, x, y, z])))
            assert puzzle.canonical(instance) == puzzle.canonical(original)
            assert puzzle.verify(instance, " ".join(gates)).score == 1
        assert puzzle.canonical(
            original._replace(tolerance=original.tolerance + 1)
        ) != puzzle.canonical(original)
        if original.tolerance != 100:
            forms.add(puzzle.canonical(original))
    assert len(forms) >= 129, "random targets never meet"


def test_renumbering_conjugation_and_inversion_do_not_matter() -> None:
    puzzle, forms = TwoQubitSynthesisPuzzle(5), set()
    inverse, swap = KINDS["TwoQubitSynthesis"].inverse, [0, 2, 1, 3]
    renumbered = {gate: gate.translate(str.maketrans("12", "21")) for gate in TWO}
    for seed in range(60):
        original = puzzle.generate(seed)
        target, _ = read_question(puzzle, original)
        assert np.linalg.det(target) == pytest.approx(1, abs=1e-5)
        solution = puzzle.solve(original).split(" ")
        conjugated = [inverse[gate] for gate in solution]
        for matrix, gates in (
            (target.conj(), conjugated),
            (target.conj().T, conjugated[::-1]),
            (target.T, solution[::-1]),
            (target[swap][:, swap], [renumbered[gate] for gate in solution]),
            (-target, solution),
            (1j * target.T[swap][:, swap], [renumbered[gate] for gate in solution[::-1]]),
        ):
            disguise = np.rint(np.stack([matrix.real, matrix.imag]) * 10**6).astype(np.int32)
            instance = original._replace(target=disguise)
            assert puzzle.canonical(instance) == puzzle.canonical(original)
            assert puzzle.verify(instance, " ".join(gates)).score == 1
        assert puzzle.canonical(
            original._replace(tolerance=original.tolerance + 1)
        ) != puzzle.canonical(original)
        if original.tolerance != 100:
            forms.add(puzzle.canonical(original))
    assert len(forms) >= 52, "targets that are no products never meet"


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tier", "count"),
    [
        ("QuantumSynthesis", "easy", 200),
        ("QuantumSynthesis", "medium", 200),
        ("QuantumSynthesis", "hard", 200),
        ("TwoQubitSynthesis", "easy", 200),
        ("TwoQubitSynthesis", "hard", 40),
    ],
)
def test_the_task_keeps_the_rules(name: str, tier: str, count: int) -> None:
    """Random gates and plans against matrices and the verifier."""
    task = card(f"{name}-v0").build(difficulty=tier)
    puzzle, key, rng = task.puzzle, jax.random.key(0), np.random.default_rng(0)
    n, names = puzzle.gates, puzzle.names
    instances = [puzzle.generate(seed) for seed in range(count)]
    actions = rng.integers(len(names), size=(count, n))
    actions[::2] = [puzzle.plan(instance) for instance in instances[::2]]
    params = Params(
        Instance(*map(np.stack, zip(*instances, strict=True))), np.zeros((count, 1), np.int16)
    )

    @jax.jit
    @jax.vmap
    def look(state: Any, params: Params) -> Any:
        return (
            task.terminal(state, key, params),
            task.info(state, params),
            task.observation(state, key, params),
        )

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
        target, tolerance = read_question(puzzle, instance)
        target /= abs(np.linalg.det(target)) ** (1 / puzzle.dimension)
        first = distance(target, circuit(name, []))
        total = 0.0
        for k in range(n + 1):
            gates = [names[a] for a in actions[number, :k]]
            remaining = target @ circuit(name, gates).conj().T
            gap = distance(target, circuit(name, gates))
            near = gap <= tolerance
            over, info, observations = looks[k]
            assert bool(info["success"][number]) == near
            assert bool(over[number]) == (near or k == n)
            assert float(info["distance"][number]) == pytest.approx(
                gap, abs=2e-3 if gap < 0.01 else 1e-4
            )
            np.testing.assert_allclose(
                observations[number],
                [*KINDS[name].view(remaining), tolerance, 1 - k / n],
                atol=1e-5,
            )
            assert task.observation_space.contains(observations[number])
            excess = max(gap - tolerance, 0) / (first - tolerance)
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


@pytest.mark.parametrize(
    ("name", "tier"),
    [("QuantumSynthesis", "easy"), ("QuantumSynthesis", "hard"), ("TwoQubitSynthesis", "easy")],
)
def test_the_plan_earns_the_best_return(name: str, tier: str) -> None:
    task = card(f"{name}-v0").build(difficulty=tier)
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, task.card.optimum, atol=1e-5)
    assert (record.length == task.puzzle.gates).all()


@every_kind
def test_the_words_of_the_task(name: str) -> None:
    task = card(f"{name}-v0").build()
    instance = task.puzzle.generate(3)
    params = Params(instance, np.array(task.puzzle.plan(instance), np.int16))
    key = jax.random.key(0)
    begin = state = task.initial(key, params)
    assert task.puzzle.question(instance).split("\n\n")[1] in task.describe(state, params)
    for gate in task.puzzle.solve(instance).split(" "):
        assert "Gates left: 0" not in task.describe(state, params)
        state = task.transition(state, task.parse(f" {gate}\n", state, params), key, params)
    assert "Gates left: 0" in task.describe(state, params)
    assert f"at most {int(instance.tolerance) / TOLERANCE_UNITS:.4f} is wanted" in task.describe(
        state, params
    )
    assert task.why_over(state, params, task.info(state, params)) == "the circuit is near enough"
    assert "not near enough" in task.why_over(
        begin._replace(used=state.used), params, task.info(begin._replace(used=state.used), params)
    )
    assert (task.draw(state, params) != task.draw(begin, params)).any()
    for text in ("", "X", "H T", "0"):
        with pytest.raises(ValueError, match="expected one of H"):
            task.parse(text, state, params)


@pytest.mark.parametrize(
    ("name", "tier", "max_gates"),
    [
        ("QuantumSynthesis", 1, 14),
        ("QuantumSynthesis", 15, 14),
        ("QuantumSynthesis", 2.5, 14),
        ("TwoQubitSynthesis", 1, 8),
        ("TwoQubitSynthesis", 9, 8),
    ],
)
def test_other_tiers_are_refused(name: str, tier: float, max_gates: int) -> None:
    with pytest.raises(ValueError, match=f"number of gates, 2 to {max_gates}"):
        KINDS[name].puzzle(tier)
