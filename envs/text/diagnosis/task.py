"""Diagnosis: ask for symptoms and order tests, each at a cost, then name the disease.

The classic problem of sequential diagnosis (Gorry and Barnett 1968,
doi:10.1016/0010-4809(68)90016-5) with a naive Bayes model: a patient has one of D diseases, and
given the disease every finding is present or absent independently of the others. A finding is drawn
once, at reset, so asking again would give the same answer. Diseases are fictional and every episode
draws its own table, which the player sees: nothing can be known beforehand.

=============  =====================================================================================
action         ``Discrete(F + D)``: ask for finding 0..F-1 (symptoms, then tests), or conclude
               disease 0..D-1. Masked: a finding that is known
observation    ``Box(-1, 1, (F + D + D F,))``: each finding (1 present, -1 absent, 0 not asked);
               each disease's log posterior less that of the likeliest one, in tens of nats, cut at
               -1; the probability of each finding given each disease, disease by disease
reward         -0.02 for a symptom, -0.06 for a test, 1 for the right conclusion
termination    a disease is concluded
success        the conclusion is right
difficulty     D, from 3 to 12; there are D - 1 symptoms and D / 2 tests (rounded down)
context        table, prior and patient. The sum of the table's levels is even for train, odd for
               test, however diseases and findings are renamed
=============  =====================================================================================

**Table.** A symptom has one of eight probabilities given a disease, a test one of eight that are
nearer to 0 and 1; all eight are equally likely. Priors are in the ratio of 1, 2 and 4.

**Optimum.** Exact, by dynamic programming over the 3**F sets of answers, up to six diseases: see
``players.py``.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, IntArray, UInt32
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

DISEASES = (
    "arvenosis", "boltitis", "corrinosis", "dulacia", "eskeritis", "farrowosis", "gillemia",
    "haskitis", "irinosis", "jorunia", "kellitis", "lomemia",
)  # fmt: skip
SYMPTOMS = (
    "cough", "fever", "rash", "headache", "nausea", "fatigue", "dizziness", "chills", "cramps",
    "swelling", "numbness",
)  # fmt: skip
TESTS = ("blood test", "x-ray", "ultrasound", "biopsy", "culture", "scan")
MIN_DISEASES = 3
MAX_DISEASES = len(DISEASES)
PERCENT = np.array([[5, 10, 20, 30, 50, 70, 80, 90], [1, 2, 3, 5, 10, 90, 95, 99]])
"""Probability of a finding by kind (symptom, test) and level, in per cent."""
LEVELS = PERCENT.shape[1]
COST = np.array([2, 6], np.int32)
"""Cost of a finding by kind, in hundredths."""
WEIGHTS = np.array([1, 2, 2, 4], np.int32)
"""Weights of a prior, drawn with equal probability."""
THRESHOLD = np.round(PERCENT / 100 * 2**32).astype(np.uint32)
MILLINATS = np.round(1000 * np.log([1 - PERCENT / 100, PERCENT / 100])).astype(np.int32)
"""Logarithm of a finding's probability, in thousandths of a nat.

Answer (absent, present), kind and level index it.
"""
WEIGHT_MILLINATS = np.round(1000 * np.log(np.maximum(np.arange(5), 1))).astype(np.int32)
SPAN = 10_000
"""Thousandths of a nat over which an observation tells log posteriors."""
NONE = -1
PRESENT = (86, 160, 90)
ABSENT = (200, 90, 80)
OPEN = (90, 110, 150)
PAPER = (250, 250, 247)
INK = (40, 40, 46)


class Params(NamedTuple):
    """Table and priors of the diseases, and the patient."""

    levels: IntArray
    """Level of the probability of each finding given each disease, int32 ``(D, F)``."""
    weights: IntArray
    """Prior of each disease, in proportion, int32 ``(D,)``."""
    disease: Int
    """Hidden: the patient's disease, int32."""
    findings: UInt32
    """Hidden: the patient's findings, one bit each, uint32."""


class State(NamedTuple):
    """Answers so far."""

    asked_findings: UInt32
    """Findings that are known, one bit each, uint32."""
    present: UInt32
    """Those of them that are present, uint32."""
    cost: Int
    """Cost so far in hundredths, int32."""
    concluded: Int
    """Disease that was concluded, int32; -1 before."""


@lru_cache(maxsize=64)
def write_table(
    names: tuple[str, ...], weights: tuple[int, ...], percent: tuple[tuple[int, ...], ...]
) -> str:
    """Return the table of chances ``[disease][finding]``, in per cent, in words."""
    lines = ["Chances of each finding, in per cent, given each disease:"]
    for disease, weight, row in zip(DISEASES, weights, percent, strict=False):
        chances = ", ".join(f"{name} {chance}" for name, chance in zip(names, row, strict=True))
        lines.append(f"- {disease} (prior {weight} in {sum(weights)}): {chances}")
    return "\n".join(lines)


class Diagnosis(Task[Params, State]):
    """The task; see the module's head for its rules.

    Attributes:
        diseases: number of diseases, D.
        findings: number of findings, F: symptoms, then tests.
        names: names of the findings.
        kinds: kind of each finding, 0 symptom, 1 test, ``(F,)``.
    """

    measures: ClassVar[dict[str, str]] = {
        "known": "findings asked for",
        "spent": "cost of the findings, in hundredths",
        "concluded": "1 after a conclusion",
    }
    picture_shape = (320, 460, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 6.0 if difficulty is None else difficulty
        if not (MIN_DISEASES <= number <= MAX_DISEASES and number == int(number)):
            raise ValueError(
                f"A difficulty of {card.id} is the number of diseases, a whole number from "
                f"{MIN_DISEASES} to {MAX_DISEASES}; got {difficulty!r}."
            )
        self.diseases = int(number)
        self.names = (*SYMPTOMS[: self.diseases - 1], *TESTS[: self.diseases // 2])
        self.findings = len(self.names)
        self.kinds = (np.arange(self.findings) >= self.diseases - 1).astype(np.int32)
        d, f = self.diseases, self.findings
        low = np.concatenate([np.full(f + d, -1.0), np.zeros(d * f)])
        high = np.concatenate([np.ones(f), np.zeros(d), np.ones(d * f)])
        self.observation_space = self.box(low, high)
        self.action_space = spaces.Discrete(f + d)
        self.reward_space = self.box(-COST.max() / 100, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a table of the split, a prior and a patient."""
        d, f = self.diseases, self.findings
        entries = -(-d * f // 8)
        bits = self.bits(key, entries + 2 + f)
        nibbles = bits[:entries, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 7
        levels = nibbles.reshape(-1)[: d * f].reshape(d, f).astype(jnp.int32)
        wrong = ((levels.sum() + split) % 2).astype(jnp.int32)
        levels = levels.at[0, 0].set(levels[0, 0] ^ wrong)
        twos = (bits[entries] >> np.arange(0, 2 * d, 2, dtype=np.uint32) & 3).astype(jnp.int32)
        weights = jnp.asarray(WEIGHTS)[twos]
        position = (bits[entries + 1] % weights.sum().astype(jnp.uint32)).astype(jnp.int32)
        disease = (jnp.cumsum(weights) <= position).sum(dtype=jnp.int32)
        present = bits[entries + 2 :] < jnp.asarray(THRESHOLD)[self.kinds, levels[disease]]
        findings = (present.astype(jnp.uint32) << np.arange(f, dtype=np.uint32)).sum(
            dtype=jnp.uint32
        )
        return Params(levels, weights, disease, findings)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Know nothing of the patient."""
        return State(jnp.uint32(0), jnp.uint32(0), jnp.int32(0), jnp.int32(NONE))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Answer a question, or note the conclusion."""
        asks = action < self.findings
        finding = jnp.minimum(action, self.findings - 1)
        bit = jnp.where(asks, np.uint32(1) << finding.astype(jnp.uint32), 0)
        return State(
            asked_findings=state.asked_findings | bit,
            present=state.present | (bit & params.findings),
            cost=state.cost + jnp.where(asks, jnp.asarray(COST[self.kinds])[finding], 0),
            concluded=jnp.where(asks, NONE, action - self.findings).astype(jnp.int32),
        )

    def evidence(self, state: State, params: Params) -> jax.Array:
        """Return each disease's log posterior without a constant, int32 ``(D,)``.

        The unit is a thousandth of a nat.

        Whole numbers, so that their sums do not depend on the order.
        """
        shifts = np.arange(self.findings, dtype=np.uint32)
        is_known = (state.asked_findings >> shifts & 1) == 1
        present = (state.present >> shifts & 1) == 1
        if_absent, if_present = (
            jnp.asarray(table)[self.kinds, params.levels] for table in MILLINATS
        )
        logarithms = jnp.where(is_known, jnp.where(present, if_present, if_absent), 0).sum(
            1, dtype=jnp.int32
        )
        return jnp.asarray(WEIGHT_MILLINATS)[params.weights] + logarithms

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return findings, log posteriors and the table; see the module's docstring."""
        shifts = np.arange(self.findings, dtype=np.uint32)
        is_known, present = (
            (field >> shifts & 1).astype(self.dtype)
            for field in (state.asked_findings, state.present)
        )
        evidence = self.evidence(state, params)
        log_posteriors = jnp.maximum(evidence - evidence.max(), -SPAN).astype(self.dtype) / SPAN
        table = jnp.asarray(PERCENT / 100, self.dtype)[self.kinds, params.levels]
        return jnp.concatenate([is_known * (2 * present - 1), log_posteriors, table.reshape(-1)])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        d, f = self.diseases, self.findings
        return (
            Component(
                "findings", "each finding: 1 present, -1 absent, 0 not asked for", shape=(f,)
            ),
            Component(
                "evidence",
                "each disease's log posterior less the greatest one, in tens of nats",
                shape=(d,),
            ),
            Component(
                "table",
                "[disease, finding]: probability of the finding given the disease",
                shape=(d, f),
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List questions, then conclusions."""
        return (
            Component("ask", "ask for the finding of this number", shape=(self.findings,)),
            Component(
                "conclude",
                "conclude the disease of this number, counted from there on",
                shape=(self.diseases,),
            ),
        )

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark findings that are not known, and every disease: bool ``(F + D,)``."""
        is_known = state.asked_findings >> np.arange(self.findings, dtype=np.uint32) & 1 == 1
        return jnp.concatenate([~is_known, jnp.ones(self.diseases, bool)])

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say that the finding is known."""
        return f"{self._finding_in_words(int(action), state)} is known already"

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for the right conclusion, less the cost of a question."""
        correct = (next_state.concluded == params.disease) & (state.concluded == NONE)
        return (100 * correct - (next_state.cost - state.cost)).astype(self.dtype) / 100

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether a disease was concluded."""
        return state.concluded != NONE

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, number and cost of the known findings, and whether it concluded.

        A finding is known once it was asked for.
        """
        return {
            "success": state.concluded == params.disease,
            "known": jax.lax.population_count(state.asked_findings).astype(jnp.int32),
            "spent": state.cost,
            "concluded": (state.concluded != NONE).astype(jnp.int32),
        }

    # -- host side: no more than the observation shows, until the end ------------------------------

    def _finding_in_words(self, finding: int, state: State) -> str:
        """Return a known finding in words."""
        return (
            f"{self.names[finding]}: {'present' if int(state.present) >> finding & 1 else 'absent'}"
        )

    def describe(self, state: State, params: Params) -> str:
        """Tell the table, then what is known of the patient."""
        percent = PERCENT[self.kinds, np.asarray(params.levels)].tolist()
        table = write_table(
            tuple(self.names),
            tuple(np.asarray(params.weights).tolist()),
            tuple(map(tuple, percent)),
        )
        findings = [
            self._finding_in_words(f, state)
            for f in range(self.findings)
            if int(state.asked_findings) >> f & 1
        ]
        patient = (
            f"The patient: {'; '.join(findings) or 'nothing is known yet'}. Spent: "
            f"{int(state.cost) / 100:.2f}."
        )
        return f"{table}\n\n{patient}"

    def rules(self) -> str:
        """Return the rules."""
        ask, order = COST / 100
        symptoms = self.names[: self.diseases - 1]
        tests = self.names[self.diseases - 1 :]
        return (
            f"A patient has exactly one of {self.diseases} diseases. Given the disease, each "
            "finding is present or "
            f"absent independently of the others. Ask for a symptom (costs {ask:g}) or order a "
            f"test ({order:g}), as "
            "often as you like, then conclude a disease: the right one earns 1, a wrong one "
            "nothing. The conclusion is "
            "final.\n"
            f"Symptoms: {', '.join(symptoms)}. Tests: {', '.join(tests)}. "
            f"Asking again for what is known is refused; after {self.card.horizon} replies the "
            "consultation is over."
        )

    def how_to_act(self) -> str:
        """Tell a text player the three kinds of replies."""
        return "Answer 'ask SYMPTOM', 'order TEST' or 'conclude DISEASE'."

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the reply for an action."""
        return self._commands[int(action)]

    @cached_property
    def _commands(self) -> list[str]:
        asks = [
            f"{('ask', 'order')[kind]} {name}"
            for kind, name in zip(self.kinds, self.names, strict=True)
        ]
        return asks + [f"conclude {disease}" for disease in DISEASES[: self.diseases]]

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a reply.

        Raises:
            ValueError: the text is none; the message names the nearest one.
        """
        words = " ".join(text.lower().split())
        if words not in self._commands:
            raise ValueError(unknown("reply", text, self._commands))
        return np.array(self._commands.index(words), self.action_space.dtype)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say the conclusion and the truth."""
        verdict = "right" if info["success"] else f"wrong: it was {DISEASES[int(params.disease)]}"
        return f"the conclusion {DISEASES[int(state.concluded)]!r} is {verdict}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the table, with a row for each disease and a column for each finding.

        The evidence is at the left. A finding has a colour once it is known.
        """
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(picture)
        down = (height - 40) / self.diseases
        across = (width - 150) / self.findings
        left, top = 140, 30
        evidence = np.asarray(self.evidence(state, params))
        for disease in range(self.diseases):
            y = top + disease * down
            pen.text((6, y + down / 2), DISEASES[disease], fill=INK, font_size=11, anchor="lm")
            share = max(0.0, 1 + (int(evidence[disease]) - int(evidence.max())) / SPAN)
            is_conclusion = disease == int(state.concluded)
            pen.rectangle(
                (80, y + 4, 80 + 50 * share, y + down - 4), fill=PRESENT if is_conclusion else INK
            )
            for finding in range(self.findings):
                chance = PERCENT[self.kinds[finding], int(params.levels[disease, finding])] / 100
                is_known = int(state.asked_findings) >> finding & 1
                present = int(state.present) >> finding & 1
                answer_tone = PRESENT if present else ABSENT
                tone = answer_tone if is_known else OPEN
                fill = tuple(round(p + (t - p) * chance) for p, t in zip(PAPER, tone, strict=True))
                x = left + finding * across
                pen.rectangle((x, y + 2, x + across - 3, y + down - 2), fill=fill)
        for finding, name in enumerate(self.names):
            pen.text(
                (left + finding * across, 10),
                name[: max(2, int(across // 6))],
                fill=INK,
                font_size=10,
            )
        return np.asarray(picture)
