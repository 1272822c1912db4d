"""Puzzles of quantum-gate compilation: approximate a given unitary by few gates.

The gates belong to a universal set.

The distance of two unitaries on n qubits is sqrt(1 - |tr(U^+ V)| / 2**n), which a global phase does
not change (Fowler 2011, arXiv:quant-ph/0411206). Breadth-first search in exact arithmetic
enumerates all unitaries that circuits of so many gates make, so it is known which distances can be
reached.

``difficulty`` is the number of gates allowed, and all of them are needed. Seven of eight targets
are in general no product of so few gates; their wanted distance lies between the best of
``difficulty`` gates and the best of fewer. The eighth target is a product of ``difficulty`` gates
and of no fewer, and has to be hit. No circuit of at most so many gates has a distance within
:data:`MARGIN` of the wanted one, so rounding decides nothing.

=============  =====================================================================================
action         the gate to apply, ``Discrete(gates)``, in the order of the puzzle's ``names``
observation    the puzzle's view of what is left to do; the wanted distance; the fraction of the
               gates left
reward         decrease of what the distance exceeds the wanted one by, divided by what it is at
               first; +1 on being near enough
termination    near enough, or no gate left
=============  =====================================================================================

Rewards telescope, and the best return is 2.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Malformed, Puzzle, Verdict, wrong

from ..shared import parsing
from ..shared.puzzle_task import Params, PuzzleTask
from .gate_names import gate_actions

TOLERANCE_UNITS = 10**4
"""Units of an instance's wanted distance in 1."""
MARGIN = 1e-4
PRODUCT_TOLERANCE = 0.01
"""Required distance for a target that is a product of gates."""
_MIN_EXCESS = 0.1
"""Least amount by which the distance of the empty circuit exceeds the required one."""
_MAX_ANSWER_GATES = 1000


class Circuits(NamedTuple):
    """A shortest circuit for each unitary (up to phase), sorted by length."""

    unitaries: np.ndarray
    """Unitaries of the circuits, a row each, in the puzzle's own coordinates."""
    words: list[tuple[int, ...]]
    """Gates of each circuit, in the order in which they are applied."""
    begins: list[int]
    """Index of the first circuit with each number of gates, from 0 on.

    The number of circuits stands at the end.
    """


class Instance(NamedTuple):
    """A target unitary."""

    target: np.ndarray
    """int32: a unitary in the puzzle's own coordinates."""
    tolerance: np.int32
    """int32: distance that is near enough, in units of 10**-4."""


class SynthesisPuzzle(Puzzle[Instance]):
    """``tier`` is the number of gates allowed, all of which are needed."""

    difficulty_is = (
        "log2 of the unitaries that so many gates can make, over those of them that are near enough"
    )
    tier_is = "the number of gates"
    #: Names of the gates.
    names: ClassVar[tuple[str, ...]]
    #: The gate that undoes each.
    inverses: ClassVar[tuple[int, ...]]
    #: Number of rows of a unitary.
    dimension: ClassVar[int]

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.gates = int(tier)

    @property
    @abc.abstractmethod
    def circuits(self) -> Circuits:
        """All circuits of the allowed number of gates or fewer."""

    @abc.abstractmethod
    def circuit_target(self, number: int) -> np.ndarray:
        """Return the unitary of a circuit of :attr:`circuits`, as a target."""

    @abc.abstractmethod
    def random_target(self, dice: Dice) -> np.ndarray:
        """Return a random target that need not be a product of so few gates."""

    @abc.abstractmethod
    def distances(self, target: np.ndarray) -> np.ndarray:
        """Return the distance of each circuit from a target, float64.

        It is the same to the bit on every computer.
        """

    @abc.abstractmethod
    def distance(self, instance: Instance, gates: Sequence[int]) -> float:
        """Return the distance of a circuit from the target."""

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a random target, or a product of gates.

        Return None if the product is not a valid question.
        """
        longest, count = self.circuits.begins[-2:]
        hit = dice.share(8) == 0
        target = (
            self.circuit_target(dice.between(longest, count - 1))
            if hit
            else self.random_target(dice)
        )
        distances = self.distances(target)
        middle = (distances[:longest].min() + distances[longest:].min()) / 2
        tolerance = PRODUCT_TOLERANCE if hit else round(middle * TOLERANCE_UNITS) / TOLERANCE_UNITS
        is_near = distances <= tolerance
        if (
            is_near[:longest].any()
            or not is_near.any()
            or np.abs(distances - tolerance).min() < MARGIN
        ):
            return None
        if distances[0] < tolerance + _MIN_EXCESS:
            return None
        return Instance(target, np.int32(round(tolerance * TOLERANCE_UNITS)))

    def task_text(self, instance: Instance) -> str:
        """Return the end of the question: the task and the format of the answer."""
        return (
            "The circuit's unitary V is the product of its gates, the one that is applied first on "
            "the right. Its "
            f"distance from U is sqrt(1 - |tr(U^+ V)| / {self.dimension}), where U^+ is the "
            "conjugate transpose of U; "
            f"a global phase does not matter. Find a circuit of at most {self.gates} gates with a "
            "distance of at most "
            f"{float(instance.tolerance / TOLERANCE_UNITS):.4f}.\n"
            "Answer with gates in the order in which they are applied, among "
            f"{' '.join(self.names)}, separated by "
            "single spaces."
        )

    @property
    def caseless(self) -> Sequence[str]:
        """Names of the gates."""
        return self.names

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Multiply the gates, and measure the distance."""
        words = answer.split(" ")
        if len(words) > _MAX_ANSWER_GATES:
            raise Malformed(f"expected at most {self.gates} gates, got {len(words)}")
        gates = [parsing.word(word, self.names) for word in words]
        if len(gates) > self.gates:
            return wrong(f"the circuit has {len(gates)} gates, {self.gates} are allowed")
        gap, tolerance = self.distance(instance, gates), instance.tolerance / TOLERANCE_UNITS
        return (
            RIGHT
            if gap <= tolerance
            else wrong(f"the distance is {gap:.6f}, more than {tolerance:.4f}")
        )

    def _near_circuits(self, instance: Instance) -> np.ndarray:
        """Return the circuits that are near enough."""
        return np.flatnonzero(
            self.distances(instance.target) <= instance.tolerance / TOLERANCE_UNITS
        )

    def plan(self, instance: Instance) -> Sequence[int]:
        """Return the first circuit that is near enough."""
        return self.circuits.words[self._near_circuits(instance)[0]]

    def solve(self, instance: Instance) -> str:
        """Try all circuits, the short ones first."""
        return self._circuit_text(self.plan(instance))

    def difficulty(self, instance: Instance) -> float:
        """Return log2 of the number of known unitaries divided by that of those near enough."""
        return math.log2(len(self.circuits.words) / len(self._near_circuits(instance)))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Return the allowed number of gates. No gate undoes the one before."""
        gates = [dice.below(len(self.names))]
        while len(gates) < self.gates:
            gate = dice.below(len(self.names))
            if gate != self.inverses[gates[-1]]:
                gates.append(gate)
        return self._circuit_text(gates)

    def heuristic(self, instance: Instance) -> str:
        """Choose the gate that leads nearest, until the target is near enough.

        No more gates are chosen than are left.
        """
        gates: list[int] = []
        while len(gates) < self.gates:
            gaps = [self.distance(instance, [*gates, gate]) for gate in range(len(self.names))]
            gates.append(gaps.index(min(gaps)))
            if min(gaps) * TOLERANCE_UNITS <= instance.tolerance:
                break
        return self._circuit_text(gates)

    def example_answers(self, instance: Any) -> Sequence[Example]:
        """Show two gates."""
        return [
            Example(
                "For example, an answer of length 2 could be:", f"{self.names[0]} {self.names[-1]}"
            )
        ]

    def constants(self) -> Sequence[str]:
        """Return circuits in which the first gate, an H, alternates with one other gate."""
        return [
            self._circuit_text([0, gate] * (self.gates // 2)) for gate in range(1, len(self.names))
        ]

    def _circuit_text(self, gates: Iterable[int]) -> str:
        """Return a circuit as an answer is written."""
        return " ".join(self.names[gate] for gate in gates)


def entries_as_text(unitary: np.ndarray) -> str:
    """Return a unitary U, ``(2, n, n)`` for the real and the imaginary parts, as text."""
    return "\n".join(
        f"U{row}{column} = {real:+.6f} {imaginary:+.6f} i"
        for row, row_parts in enumerate(zip(*unitary, strict=True), 1)
        for column, (real, imaginary) in enumerate(zip(*row_parts, strict=True), 1)
    )


class SynthesisState(Protocol):
    """The state of a task: the unitary that is left to make, and ``used``.

    The unitary is in the puzzle's own coordinates.
    """

    @property
    def used(self) -> jax.Array:
        """int32: gates of the circuit."""


State = TypeVar("State", bound=SynthesisState)


class SynthesisTask(PuzzleTask[State]):
    """The interactive form: apply a gate.

    The unitary that is left to make is the target times the inverse of the circuit.

    Subclasses define state, first state, transition, view and distance.
    """

    puzzle: SynthesisPuzzle
    measures: ClassVar[dict[str, str]] = {"distance": "distance of circuit and target, 0 to 1"}
    #: Number of entries of :meth:`view`.
    view_size: ClassVar[int]

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = spaces.Discrete(len(self.puzzle.names))
        self.observation_space = self.box([-1.0] * self.view_size + [0.0, 0.0], 1.0)
        self.reward_space = self.box(-1 / _MIN_EXCESS, 2.0)

    @abc.abstractmethod
    def view(self, state: State) -> jax.Array:
        """Return the unitary that is left to make, ``(view_size,)``, entries from -1 to 1."""

    @property
    @abc.abstractmethod
    def view_components(self) -> tuple[Component, ...]:
        """Components of the numbers of :meth:`view`."""

    @abc.abstractmethod
    def gap(self, state: State) -> jax.Array:
        """Return the distance of the remaining unitary from the identity."""

    @abc.abstractmethod
    def unitary_text(self, state: State) -> str:
        """Return the unitary that is left as text."""

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the unitary that is left, the wanted distance and the gates left."""
        gates_left = (self.puzzle.gates - state.used).astype(self.dtype) / self.puzzle.gates
        return jnp.concatenate(
            [self.view(state).clip(-1, 1), self.stack(self._tolerance(params), gates_left)]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        return (
            *self.view_components,
            Component("wanted", "the distance that is near enough"),
            Component("gates_left", "fraction of the gates that are left"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the gates."""
        return gate_actions(self.puzzle.names)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return progress, plus 1 for being near enough."""
        at_first = self._excess(self.initial(key, params), params)
        excess, next_excess = self._excess(state, params), self._excess(next_state, params)
        return (excess - next_excess) / at_first + ((excess > 0) & (next_excess == 0)).astype(
            self.dtype
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether it is near enough, or no gate is left."""
        return (self._excess(state, params) == 0) | (state.used >= self.puzzle.gates)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the target is near enough."""
        return {"success": self._excess(state, params) == 0, "distance": self.gap(state)}

    def _tolerance(self, params: Params) -> jax.Array:
        tolerance: jax.Array = params.instance.tolerance.astype(self.dtype) / TOLERANCE_UNITS
        return tolerance

    def _excess(self, state: State, params: Params) -> jax.Array:
        """Return the excess of the distance over the required one; 0 if there is none."""
        return jnp.maximum(self.gap(state) - self._tolerance(params), 0)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Show the unitary that is left to make."""
        return (
            f"The gates {', '.join(self.puzzle.names)} must still make this unitary U, up to a "
            f"global phase:\n{self.unitary_text(state)}\nIts distance from the identity is "
            f"{float(self.gap(state)):.6f}; at most {float(self._tolerance(params)):.4f} is "
            "wanted. A gate G turns U into U G^-1. Gates left: "
            f"{self.puzzle.gates - int(state.used)}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return f"Answer with one of {', '.join(self.puzzle.names)}."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Read a gate.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(parsing.word(text.strip(), self.puzzle.names), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the name of the gate."""
        return self.puzzle.names[int(action)]

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the target is near enough or no gate is left."""
        is_near = info["success"]
        return (
            "the circuit is near enough"
            if is_near
            else "no gate is left, and the circuit is not near enough"
        )
