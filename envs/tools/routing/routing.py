"""Send each query of a stream to one of several experts, or answer it oneself, within a budget.

A query shows its topic (one of 4) and its level (easy, medium, hard); both are uniform and
independent. An expert asks a price, is right with a probability that depends on topic and level,
and answers late. Oneself answers at once and for nothing, but is seldom right. A data sheet says
all of this before the stream begins, and no query can be asked twice.

=============  =====================================================================================
action         0 answer oneself, 1 to E ask that expert. Masked: experts whose price exceeds what is
               left
observation    ``Box(0, 1, (8 E + 15,))``: topic and level of the query, one-hot; for each choice,
               oneself first, what its answer to this query is worth; prices and delays of the
               experts; skill of each choice in each topic; loss of skill a level; budget left,
               queries left
reward         a right answer is worth (1 - delay) / 24, a wrong one nothing; ``reward="thrifty"``
               takes off half of the price as well, as a share of 8: (1 - delay) (1 - price / 16) /
               24
termination    after 24 queries
success        the choices were worth at least 95 % of what the best policy earns on average
               (``info["par"]``), luck with right and wrong answers aside
difficulty     E, from 1 to 8
context        prices 1 to 8, delays 0 to 0.3, skills, losses. Skills of the splits lie in
               alternating bands
=============  =====================================================================================

A skill is the probability of a right answer to an easy query; the probability falls by the loss of
the choice, 5 to 35 % of the skill, for each level. The budget is 48, two for each query.

**Optimum**: a dynamic programme over queries left and budget left (:func:`best_values`), exact for
each context.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Float, FloatArray, Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ..shared.page import INK, PALE, PAPER
from ..shared.tool import Argument, Tool, read_tool_call

QUERIES = 24
"""Queries of a stream."""
BUDGET = 48
"""Credits for a stream."""
MAX_PRICE = 8
"""Credits that the dearest expert takes for an answer."""
MIN_SUCCESS_SHARE = 0.95
"""Share of the best policy's return that is a success."""
TOPICS = ("law", "medicine", "geography", "chemistry")
LEVELS = ("easy", "medium", "hard")
NAMES = ("Ada", "Bruno", "Chen", "Dalia", "Emeka", "Freya", "Gita", "Hugo")
MAX_EXPERTS = len(NAMES)
ANSWER = Tool("answer", "Answer this query yourself, at once and for nothing.")


class Params(NamedTuple):
    """Data sheet of the choices; oneself is choice 0."""

    skill: FloatArray
    """Probability of a right answer to an easy query by choice and topic, ``(E + 1, 4)``."""
    loss: FloatArray
    """Share of the skill lost a level, ``(E + 1,)``."""
    delay: FloatArray
    """Share of an answer's worth that is lost because it comes late, ``(E + 1,)``."""
    price: IntArray
    """int32 ``(E + 1,)``."""
    par: Float
    """Expected return of the best policy."""


class State(NamedTuple):
    """A stream; int32 unless said."""

    topic: Int
    level: Int
    queries_left: Int
    """Queries not yet answered, this one included."""
    budget: Int
    right_answers: Int
    """Right answers so far."""
    correct: Flag
    """Whether the last answer was right, bool."""
    last_choice: Int
    """Last choice; -1 before the first."""
    merit: Float
    """Expected worth of the choices so far, float."""


class Routing(Task[Params, State]):
    """The task; see the module's docstring.

    Attributes:
        experts: number of experts.
    """

    measures: ClassVar[dict[str, str]] = {
        "right": "right answers",
        "spent": "part of the budget of 48 that was spent",
        "par": (
            "expected return of the best policy in this context once the stream is over, -1 before"
        ),
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (300, 520, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 4.0 if difficulty is None else difficulty
        if not (1 <= number <= MAX_EXPERTS and number == int(number)):
            raise ValueError(
                f"A difficulty of {card.id} is the number of experts, a whole number from 1 to "
                f"{MAX_EXPERTS}; got {difficulty!r}."
            )
        self.experts = int(number)
        self.thrifty = card.settings.get("reward") == "thrifty"
        self._names = NAMES[: self.experts]
        ask = {"expert": Argument("name of the expert", self._names)}
        self._tools = (ANSWER, Tool("ask", "Send this query to an expert, for a price.", ask))
        self.action_space = spaces.Discrete(self.experts + 1)
        self.observation_space = self.box(0.0, 1.0, (8 * self.experts + 15,))
        self.reward_space = self.box(0.0, 1 / QUERIES, ())
        self._sheet = lru_cache(maxsize=256)(self._write_sheet)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a data sheet; a dearer expert is better on average."""
        choices = self.experts + 1
        topics = len(TOPICS)
        random_numbers = self.uniform(key, choices * (topics + 3))
        talent = alternating_bands(
            random_numbers[: choices * topics].reshape(choices, topics), split, 0.0, 1.0, 8
        )
        loss, delay, price = random_numbers[choices * topics :].reshape(3, choices)
        is_self = np.arange(choices) == 0
        price = jnp.where(is_self, 0, 1 + (price * MAX_PRICE).astype(jnp.int32)).astype(jnp.int32)
        skill = jnp.where(
            is_self[:, None], 0.1 + 0.3 * talent, 0.2 + 0.04 * price[:, None] + 0.45 * talent
        )
        params = Params(
            skill=skill.astype(self.dtype),
            loss=(0.05 + 0.3 * loss).astype(self.dtype),
            delay=jnp.where(is_self, 0, 0.3 * delay).astype(self.dtype),
            price=price,
            par=jnp.zeros((), self.dtype),
        )
        return params._replace(par=best_values(self, params)[QUERIES, BUDGET].astype(self.dtype))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Draw the first query."""
        topic, level = _query(jax.random.bits(key, (), jnp.uint32))
        zero = jnp.int32(0)
        return State(
            topic=topic,
            level=level,
            queries_left=jnp.int32(QUERIES),
            budget=jnp.int32(BUDGET),
            right_answers=zero,
            correct=jnp.bool_(False),
            last_choice=zero - 1,
            merit=jnp.zeros((), self.dtype),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Answer the query, and draw the next one, all from one draw."""
        bits = jax.random.bits(key, (2,), jnp.uint32)
        topic, level = _query(bits[0])
        chance = params.skill[action, state.topic] * (
            1 - params.loss[action] * state.level.astype(self.dtype)
        )
        correct = (bits[1] >> 8).astype(self.dtype) * 2.0**-24 < chance
        return State(
            topic=topic,
            level=level,
            queries_left=state.queries_left - 1,
            budget=state.budget - params.price[action],
            right_answers=state.right_answers + correct,
            correct=correct,
            last_choice=action.astype(jnp.int32),
            merit=state.merit + (chance * self.prize(params)[action]).astype(self.dtype),
        )

    def prize(self, params: Params) -> jax.Array:
        """Return what a right answer of each choice earns, ``(E + 1,)``."""
        prize = (1 - params.delay) * (1 / QUERIES)
        return prize * (1 - params.price.astype(self.dtype) * (1 / 16)) if self.thrifty else prize

    def worths(self, params: Params, topic: jax.Array, level: jax.Array) -> jax.Array:
        """Return the expected reward of each choice for such a query, ``(E + 1,)``."""
        chance = params.skill[:, topic] * (1 - params.loss * level.astype(self.dtype))
        return chance * self.prize(params)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the worth of a right answer."""
        paid = (next_state.queries_left < state.queries_left) & next_state.correct
        return jnp.where(paid, self.prize(params)[action], 0).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the stream is over."""
        return state.queries_left <= 0

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": (state.queries_left <= 0) & (state.merit >= MIN_SUCCESS_SHARE * params.par),
            "right": state.right_answers,
            "spent": BUDGET - state.budget,
            "par": jnp.where(state.queries_left <= 0, params.par, -1).astype(self.dtype),
        }

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark choices that can be paid."""
        return params.price <= state.budget

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return query, worths, data sheet and what is left; ``(8 E + 15,)``."""
        return jnp.concatenate([
            (jnp.arange(len(TOPICS)) == state.topic).astype(self.dtype),
            (jnp.arange(len(LEVELS)) == state.level).astype(self.dtype),
            jnp.clip(self.worths(params, state.topic, state.level) * QUERIES, 0, 1),
            params.price[1:].astype(self.dtype) * (1 / MAX_PRICE),
            params.delay[1:],
            params.skill.ravel(),
            params.loss,
            self.stack(state.budget * (1 / BUDGET), state.queries_left * (1 / QUERIES)),
        ]).astype(self.dtype)  # fmt: skip

    def observation_components(self) -> tuple[Component, ...]:
        """List the blocks of the observation."""
        choices = self.experts + 1
        experts = self.experts
        return (
            Component(
                "topic", f"topic of the query, one-hot: {', '.join(TOPICS)}", shape=(len(TOPICS),)
            ),
            Component(
                "level", f"level of the query, one-hot: {', '.join(LEVELS)}", shape=(len(LEVELS),)
            ),
            Component(
                "worth",
                "expected worth of an answer by oneself, then by each expert",
                "1/24",
                (choices,),
            ),
            Component(
                "price", "price of each expert", f"{MAX_PRICE} credits", (experts,), MAX_PRICE
            ),
            Component(
                "delay", "share of the worth that the delay of each expert takes", shape=(experts,)
            ),
            Component(
                "skill",
                "[choice, topic]: probability of a right answer",
                shape=(choices, len(TOPICS)),
            ),
            Component(
                "loss", "share of the skill that each choice loses a level", shape=(choices,)
            ),
            Component("budget", "credits left", f"{BUDGET} credits", scale=BUDGET),
            Component("left", "queries left", f"{QUERIES} queries", scale=QUERIES),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the choices."""
        return (
            Component("answer", "answer the query oneself, which costs nothing"),
            *(
                Component(f"ask_{name.lower()}", f"send the query to {name}, who is paid")
                for name in self._names
            ),
        )

    # -- host side ---------------------------------------------------------------------------------

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"You receive {QUERIES} queries, one a turn. Topics ({', '.join(TOPICS)}) and levels "
            f"({', '.join(LEVELS)}) are equally likely. Answer each yourself, or send it to an "
            f"expert, whose price is taken from a budget of {BUDGET}. Late answers are worth less "
            "by the delay. A right answer earns "
            f"(1 - delay) / {QUERIES}{' times (1 - price / 16)' if self.thrifty else ''}, "
            "a wrong one nothing, and what is left of the budget nothing. The chance of a right "
            "answer is the skill in the topic, less the loss for each level above easy.\n"
            + "\n".join(tool.line() for tool in self._tools)
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe the data sheet, the last answer and the query."""
        sheet = np.concatenate([np.ravel(column) for column in params[:4]], dtype=np.float64)
        return "\n\n".join([self._sheet(sheet.tobytes()), self._news(state)])

    def _write_sheet(self, numbers: bytes) -> str:
        """Return the data sheet in words, from skill, loss, delay and price of the choices."""
        skills, other_columns = np.split(np.frombuffer(numbers), [(self.experts + 1) * len(TOPICS)])
        rows = []
        for name, skill, loss, delay, price in zip(
            ("yourself", *self._names),
            skills.reshape(-1, len(TOPICS)),
            *other_columns.reshape(3, -1),
            strict=True,
        ):
            chances = ", ".join(
                f"{topic} {chance:.2f}" for topic, chance in zip(TOPICS, skill, strict=True)
            )
            rows.append(
                f"{name}: price {int(price)}, delay {delay:.2f}, loss {loss:.2f}; skills: {chances}"
            )
        return "\n".join(rows)

    def _news(self, state: State) -> str:
        lines = []
        if int(state.last_choice) >= 0:
            who = ("You", *self._names)[int(state.last_choice)]
            lines.append(f"{who} answered the last query {'right' if state.correct else 'wrong'}.")
        lines.append(f"Budget left: {int(state.budget)}. Queries left: {int(state.queries_left)}.")
        if int(state.queries_left) > 0:
            lines.append(f"Query: {TOPICS[int(state.topic)]}, {LEVELS[int(state.level)]}.")
        return "\n".join(lines)

    def tools(self) -> list[dict[str, Any]]:
        """Return the two tools."""
        return [tool.schema() for tool in self._tools]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with one call: {ANSWER.call()} or {self._tools[1].call(expert=0)}"

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a call.

        Raises:
            ValueError: the text is no call of one of the tools.
        """
        tool, arguments = read_tool_call(self._tools, text)
        return np.array(0 if tool is ANSWER else 1 + arguments["expert"], self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the call as JSON."""
        number = int(action)
        return self._tools[1].call(expert=number - 1) if number else ANSWER.call()

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say that the budget is too small."""
        number = int(action)
        return (
            f"{self._names[number - 1]} asks {int(params.price[number])}, and {int(state.budget)} "
            "are left"
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how many answers were right."""
        return f"all {QUERIES} queries are answered, {int(state.right_answers)} of them right"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the skills of each choice as bars by topic.

        The query's topic is in colour, and experts that cannot be afforded are pale.
        """
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(image)
        for number, line in enumerate(self._news(state).split("\n")):
            pen.text((12, 8 + 18 * number), line, INK, font_size=13)
        column = (width - 20) / (self.experts + 1)
        for number, name in enumerate(("yourself", *self._names)):
            x = 10 + column * number
            price = int(params.price[number])
            ink = INK if price <= int(state.budget) else PALE
            for topic in range(len(TOPICS)):
                chance = float(
                    params.skill[number, topic] * (1 - params.loss[number] * state.level)
                )
                left = x + topic * (column - 8) / 4
                right = x + (topic + 1) * (column - 8) / 4 - 2
                fill = "#d55e00" if topic == int(state.topic) else "#0072b2"
                pen.rectangle((left, 240 - 160 * chance, right, 240), fill if ink == INK else PALE)
            pen.text((x, 246), name, ink, font_size=12)
            pen.text((x, 264), f"{price} credits", ink, font_size=11)
            pen.text((x, 280), f"late {float(params.delay[number]):.2f}", ink, font_size=11)
        return np.asarray(image)


def _query(bits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return topic and level from random bits.

    The remainder of 2**30 favours a level by less than one in 10**8.
    """
    return (bits & 3).astype(jnp.int32), ((bits >> 2) % np.uint32(3)).astype(jnp.int32)


def best_values(task: Routing, params: Params) -> jax.Array:
    """Return the best expected rest of the return by queries left and budget left, ``(25, 49)``."""
    kinds = [(topic, level) for topic in range(len(TOPICS)) for level in range(len(LEVELS))]
    worth = jnp.stack(
        [task.worths(params, jnp.int32(topic), jnp.int32(level)) for topic, level in kinds]
    )
    budget_left = np.arange(BUDGET + 1)[None] - params.price[:, None]  # (E + 1, 49)

    def value_before(later: jax.Array, _: Any) -> tuple[jax.Array, jax.Array]:
        later_values = jnp.where(budget_left >= 0, later[jnp.maximum(budget_left, 0)], -jnp.inf)
        total = jnp.zeros(BUDGET + 1, task.dtype)
        for kind in range(len(kinds)):
            total = total + (worth[kind][:, None] + later_values).max(0)
        values = (total * (1 / len(kinds))).astype(task.dtype)
        return values, values

    nothing = jnp.zeros(BUDGET + 1, task.dtype)
    _, values = jax.lax.scan(value_before, nothing, length=QUERIES)
    return jnp.concatenate([nothing[None], values])


@privileged_player
class Planner(eqx.Module):
    """The optimal player: it weighs the answer's worth against what its price would earn later."""

    task: Routing = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Routing) -> Planner:
        """Make the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> jax.Array:
        """Return the table of :func:`best_values`."""
        return best_values(self.task, params)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the choice with the best sum of worth now and value later."""
        state = view.state
        params = view.params
        worth = self.task.worths(params, state.topic, state.level)
        budget_left = state.budget - params.price
        total = worth + memory[state.queries_left - 1, jnp.maximum(budget_left, 0)]
        return jnp.argmax(jnp.where(budget_left >= 0, total, -1)).astype(jnp.int32), memory


@privileged_player
class PriceWatcher(eqx.Module):
    """A heuristic player, which takes the best worth less a fixed rate for the price.

    It does not plan.
    """

    task: Routing = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Routing) -> PriceWatcher:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the choice with the best difference that can be paid."""
        state = view.state
        params = view.params
        scores = self.task.worths(params, state.topic, state.level) - 0.002 * params.price
        return jnp.argmax(jnp.where(params.price <= state.budget, scores, -1)).astype(
            jnp.int32
        ), memory
