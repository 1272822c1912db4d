"""Formulas as games: find a model, or a best assignment, by flipping one variable at a time.

=============  =====================================================================================
action         the variable to flip, ``Discrete(n)``; legal are the variables of unsatisfied clauses
observation    ``Box(3 n + 1)``: each variable's value (-1 false, +1 true); its make count, then its
               break count (unsatisfied clauses that a flip would satisfy, satisfied ones it would
               not leave so), each as c / (1 + c); the fraction of clauses unsatisfied
reward         decrease of the number of unsatisfied clauses, divided by the number of clauses; +1
               on reaching the goal
termination    no more clauses are unsatisfied than must be: the goal
=============  =====================================================================================

Rewards telescope: a return is 1 if solved, plus (unsatisfied at the start - unsatisfied at the end)
/ clauses. Cycling earns nothing.

Only flips in unsatisfied clauses are legal (focused search, Papadimitriou 1991). No shortest path
is lost: let a be an assignment and a' a better one at distance d. Some clause that a leaves
unsatisfied is satisfied by a', so it holds a variable in which they differ. To flip that variable
is legal and leaves distance d - 1. So the goal is at most n legal flips away.
"""

from __future__ import annotations

import abc
import re
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.puzzle.bank import Bank, bank_of_both_splits

from ..shared.puzzle_task import Params, PuzzleTask
from .clause_picture import picture_of
from .cnf import CNFPuzzle, MaxCNF, SomeCNF, clause_list
from .dimacs import clauses_of, occurrences, to_dimacs
from .formula import (
    WORD,
    Formula,
    Verdict,
    all_bits,
    false_literals,
    flip_variable,
    judge,
    size,
    true_literals,
    values,
)

Context = TypeVar("Context", bound=tuple[Any, ...])


class State(NamedTuple):
    """An assignment and its effect.

    The verdict is kept because mask, reward and observation all need it.
    """

    assignment: jax.Array
    """uint32 ``()`` or ``(words,)``: bit v % 32 of word v // 32 is the value of variable v."""
    verdict: Verdict


class FlipTask(Task[Context, State], Generic[Context]):
    """The game on any formula.

    Subclasses call :meth:`play_on`, return the formula of a context, and begin episodes.
    """

    measures: ClassVar[dict[str, str]] = {"unsatisfied": "number of unsatisfied clauses"}
    picture_shape: ClassVar[tuple[int, int, int]] = (360, 760, 3)

    def play_on(self, variables: int, clauses: int) -> None:
        """Set size and spaces."""
        self.variables, self.clauses = variables, clauses
        self.every_clause = all_bits(clauses)
        self.action_space = spaces.Discrete(variables)
        low, high = [-1.0] * variables + [0.0] * (2 * variables + 1), [1.0] * (3 * variables + 1)
        self.observation_space = self.box(low, high)
        self.reward_space = self.box(-1.0, 2.0)

    @abc.abstractmethod
    def formula(self, params: Context) -> Formula:
        """Return the formula of an episode."""

    def min_unsatisfied(self, params: Context) -> jax.Array | int:
        """Return the number of clauses that must stay unsatisfied."""
        return 0

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Context) -> State:
        """Flip variable ``action``."""
        return self.judge_assignment(flip_variable(state.assignment, action), params)

    def judge_assignment(self, assignment: jax.Array, params: Context) -> State:
        """Return the state of an assignment."""
        return State(assignment, judge(self.formula(params), assignment, self.every_clause))

    def observation(self, state: State, key: jax.Array, params: Context) -> jax.Array:
        """Return the observation, ``(3 n + 1,)``.

        It holds the value, make count and break count of every variable, then the remaining work.
        """
        value = 2 * values(state.assignment, self.variables).astype(self.dtype) - 1
        breaks = size(
            state.verdict.critical[:, None] & true_literals(self.formula(params), state.assignment)
        )
        unsatisfied = self._fraction(size(state.verdict.unsatisfied))
        blocks = (
            value,
            squash(self._makes(state, params), self.dtype),
            squash(breaks, self.dtype),
            unsatisfied[None],
        )
        return jnp.concatenate(blocks)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        per_variable = (self.variables,)
        return (
            Component("value", "of each variable: -1 false, +1 true", shape=per_variable),
            Component(
                "make",
                "c / (1 + c) of the unsatisfied clauses c that a flip of each variable satisfies",
                shape=per_variable,
            ),
            Component(
                "break",
                "c / (1 + c) of the clauses c that a flip of each variable leaves unsatisfied",
                shape=per_variable,
            ),
            Component("unsatisfied", "fraction of the clauses that are unsatisfied"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a variable."""
        meaning = "action i negates variable i + 1; legal are those of unsatisfied clauses"
        return (Component("flip", meaning, shape=(self.variables,)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Context
    ) -> jax.Array:
        """Return the fraction of clauses won, plus 1 for the goal."""
        unsatisfied, next_unsatisfied = (
            size(state.verdict.unsatisfied),
            size(next_state.verdict.unsatisfied),
        )
        min_unsatisfied = self.min_unsatisfied(params)
        return self._fraction(unsatisfied - next_unsatisfied) + (
            (next_unsatisfied == min_unsatisfied) & (unsatisfied > min_unsatisfied)
        )

    def terminal(self, state: State, key: jax.Array, params: Context) -> jax.Array:
        """Return whether the goal is reached."""
        return size(state.verdict.unsatisfied) == self.min_unsatisfied(params)

    def info(self, state: State, params: Context) -> dict[str, jax.Array]:
        """Report success and the number of unsatisfied clauses.

        ``success``: no more clauses are unsatisfied than must be, none of a satisfiable formula.
        """
        unsatisfied = size(state.verdict.unsatisfied)
        return {"success": unsatisfied == self.min_unsatisfied(params), "unsatisfied": unsatisfied}

    def action_mask(self, state: State, params: Context) -> jax.Array:
        """Return the variables of unsatisfied clauses, bool ``(n,)``."""
        return self._makes(state, params) > 0

    def _makes(self, state: State, params: Context) -> jax.Array:
        """Count the unsatisfied clauses that a flip of each variable satisfies, int32 ``(n,)``."""
        return computed_once(self._counts)(state, self.formula(params))

    @staticmethod
    def _counts(state: State, formula: Formula) -> jax.Array:
        return size(state.verdict.unsatisfied[:, None] & false_literals(formula, state.assignment))

    def _fraction(self, clauses: jax.Array) -> jax.Array:
        return clauses.astype(self.dtype) * self.dtype.type(1 / self.clauses)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: State, params: Context) -> str:
        """Show the formula in DIMACS CNF, the assignment, and the clauses still unsatisfied.

        The assignment is a DIMACS ``v`` line.
        """
        assignment = self._true_literals(state)
        formula = self.formula(params)
        unsatisfied = [c for c in clauses_of(formula) if not set(c) & set(assignment)]
        flips = sorted({abs(literal) for clause in unsatisfied for literal in clause})
        return "\n".join([
            to_dimacs(formula),
            f"c The assignment now: {len(unsatisfied)} of {self.clauses} clauses unsatisfied.",
            f"v {' '.join(map(str, assignment))} 0",
            *(f"c unsatisfied: {' '.join(map(str, clause))}" for clause in unsatisfied),
            f"c You may flip: {' '.join(map(str, flips)) or 'nothing, every clause is satisfied'}",
        ])  # fmt: skip

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            f"Answer 'flip V' to negate variable V (1 to {self.variables}) of an unsatisfied "
            "clause."
        )

    def parse(self, text: str, state: State, params: Context) -> np.ndarray:
        """Read ``flip 7`` or ``7``: variables count from 1.

        Raises:
            ValueError: anything else.
        """
        match = re.fullmatch(r"\s*(?:flip\s+)?([0-9]{1,3})\s*", text, re.ASCII | re.IGNORECASE)
        if match is None or not 1 <= int(match[1]) <= self.variables:
            raise ValueError(
                f"expected 'flip V' with a variable V from 1 to {self.variables}, got {text!r}"
            )
        return np.asarray(int(match[1]) - 1, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Context) -> str:
        """Return the flip."""
        return f"flip {int(action) + 1}"

    def why_illegal(self, action: np.ndarray, state: State, params: Context) -> str:
        """Say which flips are legal instead."""
        legal = np.flatnonzero(self.action_mask(state, params)) + 1
        return (
            f"variable {int(action) + 1} is in no unsatisfied clause; those that are: "
            f"{', '.join(map(str, legal))}"
        )

    def why_over(self, state: State, params: Context, info: dict[str, Any]) -> str:
        """Return the only end there is."""
        if min_unsatisfied := int(self.min_unsatisfied(params)):
            return f"{min_unsatisfied} clauses are unsatisfied, and no assignment leaves fewer"
        return "every clause is satisfied"

    def _true_literals(self, state: State) -> list[int]:
        """Return the true literals, as DIMACS writes them."""
        true = np.asarray(values(state.assignment, self.variables)).tolist()
        return [v if value else -v for v, value in enumerate(true, 1)]

    def draw(self, state: State, params: Context) -> np.ndarray:
        """Draw the formula under the assignment: :func:`.clause_picture.picture_of`."""
        true = {abs(literal): literal > 0 for literal in self._true_literals(state)}
        return picture_of(clauses_of(self.formula(params)), true, self.picture_shape)


def squash(count: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """Map the counts 0, 1, 2, 3, ... to 0, 1/2, 2/3, 3/4, ...

    The results are bounded, and finest where a difference of one matters most.
    """
    count = count.astype(dtype)
    return count / (1 + count)


# -- formulas from a bank --------------------------------------------------------------------------


class InstanceBits(NamedTuple):
    """A formula of a bank, in the form of :class:`.formula.Formula`, and two facts about it."""

    positive: np.ndarray
    """uint32 ``(words of clauses, variables)``."""
    negative: np.ndarray
    """uint32 ``(words, variables)``."""
    min_unsatisfied: np.ndarray
    """int32: clauses that must stay unsatisfied."""
    elsewhere: np.ndarray
    """uint32 ``(words of variables,)``: an assignment that is not the goal.

    It leaves more clauses unsatisfied than the goal does.
    """


class PuzzleFlips(PuzzleTask[State], FlipTask[Params]):
    """The game on formulas of a puzzle.

    The best expected return depends on the formulas. A plan of the bank flips from the all-false
    assignment, wherever an episode begins.
    """

    puzzle: CNFPuzzle[Any]
    bank_size = 512

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.play_on(*self.puzzle.shape)

    @cached_property
    def bank(self) -> Bank:
        """Instances as :class:`InstanceBits`."""
        bank = bank_of_both_splits(self.puzzle, self.bank_size)
        instances = [type(bank.instances)(*fields) for fields in zip(*bank.instances, strict=True)]
        columns = zip(*(_instance_bits(instance) for instance in instances), strict=True)
        return Bank(InstanceBits(*map(np.stack, columns)), bank.plans)

    def formula(self, params: Params) -> Formula:
        """Return the formula as the bank has it."""
        return Formula(params.instance.positive, params.instance.negative)

    def min_unsatisfied(self, params: Params) -> jax.Array:
        """Return the least count as the bank has it."""
        count: jax.Array = params.instance.min_unsatisfied
        return count

    def initial(self, key: jax.Array, params: Params) -> State:
        """Draw a uniform assignment.

        If it reaches the goal already, the instance's other start replaces it.
        """
        every_variable = all_bits(self.variables)
        random_words = jax.random.key_data(key)  # random bits enough for two words
        if len(every_variable) > len(random_words):
            random_words = jax.random.bits(key, every_variable.shape, jnp.uint32)
        bits = random_words[: len(every_variable)] & every_variable
        solved = self.terminal(self.judge_assignment(bits, params), key, params)
        return self.judge_assignment(jnp.where(solved, params.instance.elsewhere, bits), params)


def _instance_bits(instance: SomeCNF) -> InstanceBits:
    """Return an instance as bits."""
    clauses, variables = clause_list(instance), int(instance.variables)
    min_unsatisfied = int(instance.min_unsatisfied) if isinstance(instance, MaxCNF) else 0

    def misses(true: set[int]) -> int:
        return sum(not any((abs(x) in true) == (x > 0) for x in clause) for clause in clauses)

    falsified = ({-x for x in clause if x < 0} for clause in clauses)
    elsewhere = next(true for true in falsified if misses(true) > min_unsatisfied)
    words = np.zeros(len(all_bits(variables)), np.uint32)
    for v in elsewhere:
        words[(v - 1) // WORD] |= np.uint32(1 << (v - 1) % WORD)
    positive, negative = occurrences(clauses, variables)
    return InstanceBits(positive, negative, np.asarray(min_unsatisfied, np.int32), words)


@privileged_player
class GoalPlayer(NamedTuple):
    """Player that goes straight to the assignment that the bank stores.

    The exact solver found this assignment when the bank was built.
    """

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> GoalPlayer:
        """Return the player of any task of this kind."""
        return cls()

    def initial(self, params: Params) -> jax.Array:
        """Begin with the variables that are true in that assignment, bool ``(n,)``.

        The plan flips them.
        """
        variables = np.arange(params.instance.positive.shape[-1])
        return (params.plan[:, None] == variables).any(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the first legal variable whose flip brings the assignment nearer."""
        mask = jnp.asarray(view.action_mask)
        differs = values(view.state.assignment, mask.shape[-1]) != memory
        return jnp.argmax(mask & differs).astype(jnp.int32), memory
