"""Cards of the puzzles in ``quantum``."""

from functools import partial

from ..shared.card import puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "QuantumGates", "quantum_gates:QuantumGates", "quantum_gates:QuantumGatesPuzzle", "text",
        "moves", "quantum",
        summary="Undo what a Clifford circuit did to two qubits, a gate a step.",
        source=(
            "Aaronson & Gottesman 2004, doi:10.1103/PhysRevA.70.052328; shortest circuits by "
            "breadth-first search"
        ),
        horizon=24, optimum=1.5, variant=True,
        difficulties={"medium": 6, "easy": 3, "hard": 8},
    ),
    _card(
        "QuantumSynthesis", "quantum_synthesis:QuantumSynthesis",
        "quantum_synthesis:QuantumSynthesisPuzzle", "text", "sequence", "quantum",
        summary="Come near enough to a one-qubit unitary by few Clifford+T gates, a gate a step.",
        source=(
            "distance: Fowler 2011, arXiv:quant-ph/0411206; what can be reached, by exact "
            "enumeration"
        ),
        horizon=10, optimum=2.0, variant=True,
        difficulties={"medium": 6, "easy": 3, "hard": 10},
    ),
    _card(
        "TwoQubitSynthesis", "two_qubit_synthesis:TwoQubitSynthesis",
        "two_qubit_synthesis:TwoQubitSynthesisPuzzle", "text", "sequence", "quantum",
        summary="Come near enough to a two-qubit unitary by few Clifford+T gates, a gate a step.",
        source=(
            "exact synthesis: Giles & Selinger 2013, arXiv:1212.0506; what can be reached, by "
            "exact enumeration"
        ),
        horizon=7, optimum=2.0, variant=True,
        difficulties={"medium": 5, "easy": 3, "hard": 7},
    ),
)
