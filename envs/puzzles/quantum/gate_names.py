"""Names of quantum gates in words."""

from __future__ import annotations

from collections.abc import Iterable

from rlbench_suite.core.component import Component, singles

WORDS = {
    "H": "Hadamard gate",
    "S": "phase gate S, a quarter turn about z",
    "Sdg": "inverse of the phase gate S",
    "T": "gate T, an eighth of a turn about z",
    "Tdg": "inverse of the gate T",
}


def gate_actions(gates: Iterable[str]) -> tuple[Component, ...]:
    """Return the actions that apply one gate each, in order.

    Digits at the end of a name are qubits.
    """
    return singles({gate: _meaning(gate) for gate in gates})


def _meaning(gate: str) -> str:
    kind, qubits = gate.rstrip("12"), gate[len(gate.rstrip("12")) :]
    if kind == "CNOT":
        return f"controlled not: qubit {qubits[0]} controls, qubit {qubits[1]} is turned"
    return f"{WORDS[kind]}{f', on qubit {qubits}' * bool(qubits)}"
