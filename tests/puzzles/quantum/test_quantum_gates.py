"""QuantumGates-v0 against complex matrices."""

from __future__ import annotations

import re
from collections import Counter
from functools import reduce
from typing import Any

import jax
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.quantum.quantum_gates import (
    GATES,
    Instance,
    QuantumGatesPuzzle,
    clifford,
    tableau_text,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params

pytestmark = pytest.mark.of_variants

IDENTITY = np.eye(2)
PAULI = {
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}
H, S = np.array([[1, 1], [1, -1]]) / np.sqrt(2), np.diag([1, 1j])
UNITARY = {
    "H1": np.kron(H, IDENTITY),
    "H2": np.kron(IDENTITY, H),
    "S1": np.kron(S, IDENTITY),
    "S2": np.kron(IDENTITY, S),
    "Sdg1": np.kron(S.conj(), IDENTITY),
    "Sdg2": np.kron(IDENTITY, S.conj()),
    "CNOT12": np.eye(4)[[0, 1, 3, 2]],
    "CNOT21": np.eye(4)[[0, 3, 2, 1]],
}
GENERATORS = ("X1", "Z1", "X2", "Z2")


def operator(text: str) -> np.ndarray:
    """``-Y1 Z2`` as a matrix."""
    matrix = -np.eye(4) if text.startswith("-") else np.eye(4)
    for letter, qubit in re.findall(r"([XYZ])([12])", text):
        matrix = matrix @ (
            np.kron(PAULI[letter], IDENTITY) if qubit == "1" else np.kron(IDENTITY, PAULI[letter])
        )
    return matrix


EVERY_PAULI = {
    text: operator(text)
    for a in ("", "X1", "Y1", "Z1")
    for b in ("", "X2", "Y2", "Z2")
    for sign in ("", "-")
    if (text := sign + " ".join(factor for factor in (a, b) if factor)).strip("-")
}


def circuit(gates: list[str]) -> np.ndarray:
    """Multiply the gates; the first gate acts first."""
    return reduce(lambda product, gate: UNITARY[gate] @ product, gates, np.eye(4))


def write_images(unitary: np.ndarray) -> str:
    """Return the images of X1, Z1, X2 and Z2 under a unitary, as the prompt writes them."""
    lines = []
    for name in GENERATORS:
        image = unitary @ operator(name) @ unitary.conj().T
        lines.append(
            f"{name} -> "
            f"{next(text for text, matrix in EVERY_PAULI.items() if np.allclose(matrix, image))}"
        )
    return "\n".join(lines)


def normalise(unitary: np.ndarray) -> bytes:
    """Return the same matrix for unitaries that differ by a phase."""
    unitary = unitary.astype(complex)
    first = unitary.ravel()[np.flatnonzero(np.abs(unitary.ravel()) > 1e-6)[0]]
    return (np.round(unitary * (abs(first) / first), 6) + 0.0).tobytes()


def read_images(puzzle: QuantumGatesPuzzle, instance: Instance) -> list[np.ndarray]:
    """Read the images of X1, Z1, X2, Z2 from the question."""
    lines = re.findall(r"^([XZ][12]) -> (.*)$", puzzle.question(instance), re.MULTILINE)
    assert tuple(name for name, _ in lines) == GENERATORS
    return [operator(text) for _, text in lines]


def undone(images: list[np.ndarray], gates: list[str]) -> bool:
    unitary = circuit(gates)
    return all(
        np.allclose(unitary @ image @ unitary.conj().T, operator(name))
        for image, name in zip(images, GENERATORS, strict=True)
    )


def test_distances_are_those_of_unitaries_up_to_phase() -> None:
    """Compare distances with breadth-first search over matrices, four gates deep.

    The order of the group and the number of elements at each distance are known.
    """
    group = clifford()
    assert len(group.elements) == 11_520
    counts = Counter(group.away)
    assert (counts[3], counts[6], counts[8], max(counts)) == (173, 2_278, 2_688, 10)
    assert [QuantumGatesPuzzle(tier).space for tier in (3, 6, 8)] == [55, 639, 752]
    depths = {normalise(np.eye(4)): 0}
    level = [np.eye(4)]
    for depth in range(5):
        texts = {write_images(unitary) for unitary in level}
        assert texts == {
            tableau_text(e)
            for e, away in zip(group.elements, group.away, strict=True)
            if away == depth
        }
        assert len(texts) == len(level)
        new_unitaries = {}
        for unitary in level if depth < 4 else ():
            for gate in UNITARY.values():
                key = normalise(following := gate @ unitary)
                if key not in depths:
                    depths[key], new_unitaries[key] = depth + 1, following
        level = list(new_unitaries.values())
    assert Counter(depths.values()) == Counter(away for away in group.away if away <= 4)


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_does_to_tableaus_what_its_matrix_does(gate: str) -> None:
    """From random circuits."""
    group, rng = clifford(), np.random.default_rng(0)
    for _ in range(60):
        gates = [GATES[k] for k in rng.integers(8, size=12)]
        number = 0
        for name in gates:
            number = group.following[number][GATES.index(name)]
        assert tableau_text(group.elements[number]) == write_images(circuit(gates))
        after = group.elements[group.following[number][GATES.index(gate)]]
        assert tableau_text(after) == write_images(UNITARY[gate] @ circuit(gates))


@pytest.mark.parametrize("tier", [3, 6, 8])
def test_solutions_undo_and_the_verifier_knows(tier: int) -> None:
    puzzle, rng = QuantumGatesPuzzle(tier), np.random.default_rng(tier)
    solved = 0
    for seed in range(120):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        images = read_images(puzzle, instance)
        right = puzzle.solve(instance).split(" ")
        assert len(right) == tier
        assert undone(images, right)
        assert puzzle.verify(instance, " ".join(right)) == (True, True, True, 1.0, "")
        longer = puzzle.verify(instance, " ".join([*right, "H1", "H1"]))
        assert longer.solved
        assert not longer.optimal
        assert longer.score == pytest.approx(tier / (tier + 2))
        for _ in range(10):
            answer = right.copy()
            answer[rng.integers(tier)] = GATES[rng.integers(8)]
            verdict = puzzle.verify(instance, " ".join(answer))
            assert verdict.valid
            assert verdict.solved == undone(images, answer)
            solved += verdict.solved
    assert solved > 20, "some changes change nothing, or find another shortest circuit"


@pytest.mark.parametrize(
    "answer", ["", "H", "H3", "H1,H2", "h1", "H1  H2", "H1\nH2", "T1", "CNOT11"]
)
def test_what_is_no_circuit_is_refused(answer: str) -> None:
    puzzle = QuantumGatesPuzzle(3)
    assert not puzzle.verify(puzzle.generate(0), answer).valid


def gates_needed() -> dict[bytes, int]:
    """Return the number of gates of every unitary, by breadth-first search over matrices."""
    level = [np.eye(4, dtype=complex)]
    gate_counts = {normalise(level[0]): 0}
    while level:
        following = []
        for unitary in level:
            for gate in UNITARY.values():
                if (key := normalise(after := gate @ unitary)) not in gate_counts:
                    gate_counts[key] = gate_counts[normalise(unitary)] + 1
                    following.append(after)
        level = following
    return gate_counts


@pytest.mark.engine("breadth-first search over matrices: no shorter circuit")
def test_no_shorter_circuit_undoes_it(compared: Compared) -> None:
    needed = gates_needed()
    assert len(needed) == 11_520
    for tier, count in ((3, 300), (6, 600), (8, 500)):
        puzzle = QuantumGatesPuzzle(tier)
        for seed in range(count):
            instance = puzzle.generate(seed, ("train", "test")[seed % 2])
            right = puzzle.solve(instance).split(" ")
            assert undone(read_images(puzzle, instance), right)
            assert needed[normalise(circuit(right))] == len(right) == tier
            compared(puzzle, instance)


def test_no_shorter_circuit_undoes_an_easy_one() -> None:
    puzzle = QuantumGatesPuzzle(3)
    short = [[], *([a] for a in GATES), *([a, b] for a in GATES for b in GATES)]
    for seed in range(8):
        images = read_images(puzzle, puzzle.generate(seed))
        assert not any(undone(images, gates) for gates in short)


def test_renumbered_qubits_and_conjugation_do_not_matter() -> None:
    """Made by matrices; and a puzzle's disguises are no more than these four."""
    puzzle, group = QuantumGatesPuzzle(6), clifford()
    number = {tableau_text(element): k for k, element in enumerate(group.elements)}
    swap = np.eye(4)[[0, 2, 1, 3]]
    rng = np.random.default_rng(0)
    for seed in range(60):
        original = puzzle.generate(seed)
        gates = puzzle.solve(original).split(" ")
        unitary = circuit(gates).conj().T
        assert number[write_images(unitary)] == int(original.element)
        forms = {}
        for variant in (
            unitary,
            swap @ unitary @ swap,
            unitary.conj(),
            swap @ unitary.conj() @ swap,
        ):
            disguised = number[write_images(variant)]
            instance = Instance(
                np.array(group.elements[disguised], np.int8), np.int16(disguised), original.shortest
            )
            assert group.away[disguised] == 6
            forms[disguised] = puzzle.canonical(instance)
        assert set(forms.values()) == {puzzle.canonical(original)}
        stranger = puzzle.generate(int(rng.integers(1000, 2000)))
        assert (puzzle.canonical(stranger) == puzzle.canonical(original)) == (
            int(stranger.element) in forms
        )


def test_the_task_keeps_the_rules() -> None:
    """Random gates against matrices; plans earn the best return."""
    task = card("QuantumGates-v0").build()
    puzzle, key = task.puzzle, jax.random.key(0)
    rng = np.random.default_rng(0)
    instances = [puzzle.generate(seed) for seed in range(120)]
    actions = rng.integers(8, size=(120, 6))
    actions[::2] = [puzzle.plan(instance) for instance in instances[::2]]
    params = Params(
        Instance(*map(np.stack, zip(*instances, strict=True))), np.zeros((120, 1), np.int16)
    )

    def episode(params: Params, actions: jax.Array) -> list[Any]:
        states = [task.initial(key, params)]
        for k in range(6):
            states.append(task.transition(states[-1], actions[k], key, params))
        rewards = [task.reward(states[k], actions[k], states[k + 1], key, params) for k in range(6)]
        shown_flags = [task.observation(state, key, params) for state in states]
        ends = [task.terminal(state, key, params) for state in states]
        return [states, rewards, shown_flags, ends, [task.info(state, params) for state in states]]

    states, rewards, flags, ends, infos = jax.jit(jax.vmap(episode))(params, actions)
    for number, instance in enumerate(instances):
        unitary = circuit(puzzle.solve(instance).split(" ")).conj().T
        total = 0.0
        for k in range(7):
            text = write_images(unitary)
            assert tableau_text(task.group.elements[int(states[k].element[number])]) == text
            bits = flags[k][number].reshape(5, 4).astype(int) @ (1 << np.arange(4))
            assert tableau_text(bits.tolist()) == text
            goal = text == "\n".join(f"{name} -> {name}" for name in GENERATORS)
            assert bool(ends[k][number]) == bool(infos[k]["success"][number]) == goal
            if goal:
                break
            if k < 6:
                total += float(rewards[k][number])
                unitary = UNITARY[GATES[actions[number, k]]] @ unitary
        left = int(infos[k]["away"][number])
        assert total == pytest.approx(goal + 1 - left / 6 - k * 0.5 / 6, abs=1e-5)
        if number % 2 == 0:
            assert goal
            assert total == pytest.approx(task.card.optimum, abs=1e-5)


def test_the_words_of_the_task() -> None:
    task = card("QuantumGates-v0").build()
    instance = task.puzzle.generate(0)
    params = Params(instance, np.array(task.puzzle.plan(instance), np.int16))
    key = jax.random.key(0)
    begin = state = task.initial(key, params)
    assert tableau_text(instance.tableau.tolist()) in task.describe(state, params)
    for gate in task.puzzle.plan(instance):
        state = task.transition(state, task.parse(f" {GATES[gate]}\n", state, params), key, params)
    assert "X1 -> X1\nZ1 -> Z1\nX2 -> X2\nZ2 -> Z2" in task.describe(state, params)
    assert task.why_over(state, params, {}) == "everything is undone"
    assert (task.draw(state, params) != task.draw(begin, params)).any()
    for text in ("", "H", "H1 H2", "0"):
        with pytest.raises(ValueError, match="expected one of H1, H2"):
            task.parse(text, state, params)


@pytest.mark.parametrize("tier", [0, 11, 2.5])
def test_other_tiers_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="shortest circuit, 1 to 10"):
        QuantumGatesPuzzle(tier)
