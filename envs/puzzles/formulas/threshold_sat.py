"""rlsuite/ThresholdSAT-v0: find a model of a random 3-SAT formula, or say that it has none.

Formulas are uniform and nothing is planted in them. They have the number of clauses at which half
of all formulas of the size have a model (:func:`.cnf.half_satisfiable`: 4.65, 4.34 and 4.30 a
variable for 20, 50 and 75 variables), where search is hardest (Mitchell, Selman & Levesque 1992).
Of every two seeds, one gets a formula with a model and the other a formula without. Formulas are
drawn until an exact search finds one of the seed's kind. So the answer ``UNSATISFIABLE`` is right
for exactly half of them in either split, and every other player has to beat that. A guess answers
so half of the time; otherwise it also has to guess a model. ``difficulty`` is the number of
variables.

Interactively, it is the game of :mod:`.flips` with one more action:

=============  =====================================================================================
action         the variable to flip, or n: there is no model, which ends the episode; ``Discrete(n +
               1)``; legal are the variables of unsatisfied clauses, and n
observation    as in :mod:`.flips`; the fraction of the flips left
reward         decrease of the fraction of clauses that are unsatisfied; +1 on reaching a model; for
               saying rightly that there is none, 1 and that fraction; for saying so wrongly, 0
termination    a model, the last action, or ``4 n`` flips
=============  =====================================================================================

So a solved episode of either kind returns 1 plus the fraction unsatisfied at first: 1 + 1/8 on
average.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.bank import Bank
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Verdict, wrong

from ..shared.puzzle_task import Params, PuzzleTask
from . import flips
from .cnf import (
    CNFPuzzle,
    DecidedCNF,
    as_answer,
    clause_list,
    cnf,
    half_satisfiable,
    judge_model,
    uniform_clause,
)
from .cnf_search import Search

UNSATISFIABLE = "UNSATISFIABLE"
_FLIPS_A_VARIABLE = 4


class ThresholdSATPuzzle(CNFPuzzle[DecidedCNF]):
    """``tier`` is the number of variables."""

    name = "ThresholdSAT"
    difficulty_is = "decisions of a DPLL search until it has a model or a refutation"
    tier_is = "the number of variables"
    tiers = range(6, 81)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.variables = int(tier)
        self.clauses = half_satisfiable(self.variables)

    def compose(self, dice: Dice) -> DecidedCNF:
        """Draw uniform formulas until one has a model or none, whichever is due for this seed."""
        return self._instance_of_kind(dice, satisfiable=dice.share(2) == 1)

    def _instance_of_kind(self, dice: Dice, *, satisfiable: bool) -> DecidedCNF:
        n = self.variables
        while True:
            clauses = [uniform_clause(dice, n) for _ in range(self.clauses)]
            if (Search(clauses, n).models > 0) == satisfiable:
                return DecidedCNF(*cnf(clauses, n), np.int8(satisfiable))

    def question(self, instance: DecidedCNF) -> str:
        """State the formula in DIMACS CNF, and both kinds of answer."""
        return (
            f"Find an assignment of true or false to the {instance.variables} variables of a "
            "formula such that every clause is satisfied, or determine that there is none. "
            f"{self.dimacs(instance)}\nIf there is one, answer with "
            f"{self.assignment_format(instance)}.\nIf there is none, answer with the word "
            f"{UNSATISFIABLE}."
        )

    def example_answers(self, instance: DecidedCNF) -> Sequence[Example]:
        """Show an assignment, and the word."""
        return [*super().example_answers(instance), Example("If there is none:", UNSATISFIABLE)]

    @property
    def caseless(self) -> Sequence[str]:
        """The word for none."""
        return (UNSATISFIABLE,)

    def judge(self, instance: DecidedCNF, answer: str) -> Verdict:
        """Accept any model, and the word if the generator's search found no model."""
        if answer != UNSATISFIABLE:
            return judge_model(instance, self.assignment(instance, answer))
        return wrong("the formula has a model") if instance.satisfiable else RIGHT

    def solve(self, instance: DecidedCNF) -> str:
        """Search with :class:`.cnf_search.Search`."""
        model = Search(clause_list(instance), self.variables).model
        return (
            UNSATISFIABLE
            if model is None
            else as_answer([model >> v & 1 == 1 for v in range(self.variables)])
        )

    def difficulty(self, instance: DecidedCNF) -> float:
        """Count the decisions of :class:`.cnf_search.Search`."""
        return float(Search(clause_list(instance), self.variables).decisions)

    def guess(self, instance: DecidedCNF, dice: Dice) -> str:
        """Answer with the word or a uniform assignment, each with probability one half."""
        return UNSATISFIABLE if dice.below(2) else super().guess(instance, dice)

    def heuristic(self, instance: DecidedCNF) -> str:
        """Set every variable by a vote of its signs; if that is no model, answer with the word."""
        vote = super().heuristic(instance)
        return (
            vote if judge_model(instance, self.assignment(instance, vote)).solved else UNSATISFIABLE
        )

    def constants(self) -> Sequence[str]:
        """Return the word, all true, all false."""
        return [UNSATISFIABLE, *super().constants()]

    def plan(self, instance: DecidedCNF) -> list[int]:
        """Return the flips from the all-false assignment to a model.

        If there is no model, return the last action.
        """
        return super().plan(instance) if instance.satisfiable else [self.variables]


class SolvableThresholdSATPuzzle(ThresholdSATPuzzle):
    """The puzzle with formulas that have a model only."""

    name = "ThresholdSAT, solvable"

    def question(self, instance: DecidedCNF) -> str:
        """State the formula in DIMACS CNF, and ask for an assignment only."""
        return CNFPuzzle.question(self, instance)

    def example_answers(self, instance: DecidedCNF) -> Sequence[Example]:
        """Show an assignment only."""
        return CNFPuzzle.example_answers(self, instance)

    def compose(self, dice: Dice) -> DecidedCNF:
        """Draw a formula with a model."""
        return self._instance_of_kind(dice, satisfiable=True)


class _Flips(flips.PuzzleFlips):
    """The game without the last action."""

    puzzle_class = ThresholdSATPuzzle
    bank_size = 256
    picture_shape = (520, 1300, 3)


class InstanceBits(NamedTuple):
    """A formula of the bank."""

    formula: flips.InstanceBits
    satisfiable: np.ndarray
    """int8: 1 if it has a model, 0 if not."""


class DecisionState(NamedTuple):
    """An assignment, and the claim."""

    game: flips.State
    claimed: jax.Array
    """bool: the player has claimed that there is no model."""
    used: jax.Array
    """int32: flips so far."""


class ThresholdSAT(PuzzleTask[DecisionState]):
    """The game of flipping variables until every clause is satisfied.

    The player may also claim that the clauses cannot all be satisfied.
    """

    puzzle: ThresholdSATPuzzle
    puzzle_class = ThresholdSATPuzzle
    bank_size = _Flips.bank_size
    measures: ClassVar[dict[str, str]] = {"unsatisfied": "number of unsatisfied clauses"}
    picture_shape: ClassVar[tuple[int, int, int]] = _Flips.picture_shape

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self._flips = _Flips(card, difficulty=difficulty, dtype=dtype)
        if card.settings["answers"] == "solvable":
            self.puzzle = self._flips.puzzle = SolvableThresholdSATPuzzle(self.puzzle.tier)
        n = self.puzzle.variables
        self.max_flips = _FLIPS_A_VARIABLE * n
        self.action_space = spaces.Discrete(n + 1)
        flips_space: Any = self._flips.observation_space
        self.observation_space = self.box([*flips_space.low, 0.0], [*flips_space.high, 1.0])
        self.reward_space = self.box(-1.0, 2.0)

    @cached_property
    def bank(self) -> Bank:
        """Instances as :class:`InstanceBits`.

        If a plan begins with the last action, its formula has no model.
        """
        bank = self._flips.bank
        return Bank(
            InstanceBits(
                bank.instances, (bank.plans[:, 0] != self.puzzle.variables).astype(np.int8)
            ),
            bank.plans,
        )

    @staticmethod
    def _formula(params: Params) -> Params:
        """Return the context of the game without the last action."""
        return Params(params.instance.formula, params.plan)

    def initial(self, key: jax.Array, params: Params) -> DecisionState:
        """Begin with a uniform assignment that is no model."""
        return DecisionState(
            self._flips.initial(key, self._formula(params)), jnp.bool_(False), jnp.int32(0)
        )

    def transition(
        self, state: DecisionState, action: jax.Array, key: jax.Array, params: Params
    ) -> DecisionState:
        """Flip a variable, or say that there is no model."""
        claims = action == self.puzzle.variables
        flipped = self._flips.transition(state.game, action, key, self._formula(params))
        game = jax.tree.map(lambda old, new: jnp.where(claims, old, new), state.game, flipped)
        return DecisionState(game, claims, state.used + 1)

    def observation(self, state: DecisionState, key: jax.Array, params: Params) -> jax.Array:
        """Return the game's observation, and the fraction of the flips left."""
        flips_left = (self.max_flips - state.used).astype(self.dtype) / self.max_flips
        return jnp.concatenate(
            [self._flips.observation(state.game, key, self._formula(params)), flips_left[None]]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the game's entries, then the fraction of the flips left."""
        return *self._flips.observation_components(), Component(
            "flips_left", "fraction of the flips that are left"
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the game's actions, then the answer that there is no model."""
        last = Component(
            "unsatisfiable", "say that the formula has no model, which ends the episode"
        )
        return *self._flips.action_components(), last

    def reward(
        self,
        state: DecisionState,
        action: jax.Array,
        next_state: DecisionState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return the fraction of clauses won, plus 1 for the right end."""
        won = self._flips.reward(state.game, action, next_state.game, key, self._formula(params))
        unsatisfied_share = (
            self._num_unsatisfied(state, params).astype(self.dtype) / self.puzzle.clauses
        )
        ends_correctly = ~state.claimed & self._claims_rightly(next_state, params)
        return won + jnp.where(ends_correctly, 1 + unsatisfied_share, 0)

    def terminal(self, state: DecisionState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether there is a model, there was a claim of none, or no flip is left."""
        return (
            (self._num_unsatisfied(state, params) == 0)
            | state.claimed
            | (state.used >= self.max_flips)
        )

    def info(self, state: DecisionState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: a model is found, or the player said rightly that there is none."""
        unsatisfied = self._num_unsatisfied(state, params)
        return {
            "success": (unsatisfied == 0) | self._claims_rightly(state, params),
            "unsatisfied": unsatisfied,
        }

    def action_mask(self, state: DecisionState, params: Params) -> jax.Array:
        """Return the variables of unsatisfied clauses, and the last action."""
        return jnp.append(self._flips.action_mask(state.game, self._formula(params)), True)

    def _num_unsatisfied(self, state: DecisionState, params: Params) -> jax.Array:
        return self._flips.info(state.game, self._formula(params))["unsatisfied"]

    @staticmethod
    def _claims_rightly(state: DecisionState, params: Params) -> jax.Array:
        """Return whether the player has correctly claimed that there is no model."""
        return state.claimed & (params.instance.satisfiable == 0)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: DecisionState, params: Params) -> str:
        """Show the game, and the last action."""
        claim_line = (
            "c Said: unsatisfiable." if bool(state.claimed) else "c You may also say: unsatisfiable"
        )
        flips_line = f"c Flips left: {self.max_flips - int(state.used)}"
        return "\n".join(
            [self._flips.describe(state.game, self._formula(params)), claim_line, flips_line]
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            f"{self._flips.how_to_act()} Or answer 'unsatisfiable' to say that there is no model, "
            "and end."
        )

    def parse(self, text: str, state: DecisionState, params: Params) -> np.ndarray:
        """Read ``flip 7``, ``7``, or the word.

        Raises:
            ValueError: anything else.
        """
        if text.strip().upper() == UNSATISFIABLE:
            return np.asarray(self.puzzle.variables, self.action_space.dtype)
        return self._flips.parse(text, state.game, self._formula(params))

    def spell(self, action: np.ndarray, state: DecisionState, params: Params) -> str:
        """Return the flip, or the word."""
        return UNSATISFIABLE if int(action) == self.puzzle.variables else f"flip {int(action) + 1}"

    def why_illegal(self, action: np.ndarray, state: DecisionState, params: Params) -> str:
        """Say which flips are legal instead."""
        return self._flips.why_illegal(action, state.game, self._formula(params))

    def why_over(self, state: DecisionState, params: Params, info: dict[str, Any]) -> str:
        """Say whether a model, a claim or the limit of flips ended it."""
        if bool(state.claimed):
            return (
                "the formula has a model"
                if int(params.instance.satisfiable)
                else "there is no model indeed"
            )
        has_model = not info["unsatisfied"]
        return (
            "every clause is satisfied" if has_model else f"the {self.max_flips} flips are used up"
        )

    def draw(self, state: DecisionState, params: Params) -> np.ndarray:
        """Draw as the game does."""
        return self._flips.draw(state.game, self._formula(params))


@privileged_player
class DecidingPlayer(NamedTuple):
    """Player that goes straight to the model in the bank, or says that there is none.

    The exact solver found this model when the bank was built.
    """

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> DecidingPlayer:
        """Return the player of this task."""
        return cls()

    def initial(self, params: Params) -> jax.Array:
        """Begin with the variables that are true in the model, bool ``(n,)``.

        The plan flips them.
        """
        variables = np.arange(params.instance.formula.positive.shape[-1])
        return (params.plan[:, None] == variables).any(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the first legal variable whose flip brings the assignment nearer."""
        legal = jnp.asarray(view.action_mask)[:-1]
        differs = flips.values(view.state.game.assignment, legal.shape[-1]) != memory
        flip = jnp.argmax(legal & differs)
        claims = view.params.instance.satisfiable == 0
        return jnp.where(claims, legal.shape[-1], flip).astype(jnp.int32), memory
