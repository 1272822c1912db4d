"""rlsuite/OfficeApps-v0: carry out an instruction by calling the APIs of three apps.

Nothing else may change.

A user has a phone book, a calendar and a payment account, and asks for one thing: "Move the review
to the first free hour on Wed". The player looks things up through 33 APIs, makes the change, and
says that it is done; or it refuses, and says why. The judge compares the world at the end with the
world at the start, as AppWorld (Trivedi et al. 2024, arXiv:2407.18901) does: how a goal was reached
does not count, and any change beyond it fails the episode.

=============  =====================================================================================
action         one call, ``MultiDiscrete([33, 13, 11, 17, 32])``: API, contact id, record id (event
               or request), word (name, city, title, ...), number (euros, time, phone); 0 in a part
               means "not given", and parts that the API does not take have no effect. Legal are ids
               that the instruction or an answer has shown, and APIs whose table has room for what
               they add. Any other mistake is an error of the API, which changes nothing
observation    ``Box(608)``: the instruction (one-hot), the last call and what it returned, and a
               notebook: everything shown so far, as it is now, and the questions asked
reward         1 at the end if the outcome is right, else 0. ``reward`` sets another of the modes
               (``reward_modes.py``): ``thrifty`` and ``matched`` against the calls of the
               template's program; ``dense``, the share of the cells in which the world differed
               from the wanted one and no longer does, less those in which it now does
termination    ``assistant.finish``, ``assistant.answer`` or ``assistant.refuse`` was called
success        the end is the right one (finish, the right answer, or a refusal with the right
               reason), and the world is, cell by cell, the first one with the instruction carried
               out
context        a random office, an instruction from one of the tier's templates, an obstacle in one
               instance of eight of the templates that know obstacles. Train and test share no
               person (``population.py``), and equal seeds draw different offices
=============  =====================================================================================

Tiers: ``easy`` names rows by their ids (1 to 3 calls and the last word), ``medium`` by name and
title (1 to 4), ``hard`` needs up to a dozen calls among namesakes and near misses. Each has
templates of its own: 26 in all (``templates``).

The notebook replaces a memory of all answers: a policy without memory can play perfectly, and the
reference does. Only errors are not kept beyond the next call.

Published tool benchmarks have rewarded players who do nothing: 38 % of tau-bench's airline tasks
(Zhu et al. 2025, arXiv:2507.02825). Here each instance asks for a change, an answer or a refusal
with its reason, and reading earns nothing: ``tests/tools/test_attacks.py`` plays players who do
nothing, refuse, list everything, or call everything.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import split_bits
from ..shared.reward_modes import SENTENCES, Tally, likeness, progress_reward, thrift
from . import columns, components, sentences
from .apps.apis import COLUMN_APIS, part_sizes
from .apps.column_api import Api, Ending, Error, Notebook, Result, State, carry_out
from .apps.kinds import KINDS, ActionPart, Reason
from .calls import parse_call
from .columns import World, bit, distance, equal_worlds, flags_of
from .documentation import as_tool, call_text, reference_text
from .picture import HEIGHT, WIDTH, picture
from .population import RANDOM_WORDS, Crowd, random_columns
from .templates import easy, hard, medium
from .templates.column_template import Ask, Scene, Sight, Template, choose, first_call_of, sight_of

TIERS: dict[int, tuple[tuple[Template, ...], Crowd]] = {
    1: (easy.TEMPLATES, Crowd(contacts=6, events=4, requests=3, transfers=2)),
    2: (medium.TEMPLATES, Crowd(contacts=9, events=7, requests=4, transfers=3)),
    3: (hard.TEMPLATES, Crowd(contacts=11, events=7, requests=5, transfers=4)),
}
MAX_TEMPLATES = max(len(templates) for templates, _ in TIERS.values())
OBSTACLES = 8
"""One in this many instances has an obstacle, if the template knows any."""
MAX_CALLS = 20
"""Calls of a template's program, and rows of an episode's list of them."""


def _has_effect(api: Api, action_part: ActionPart) -> bool:
    return action_part == ActionPart.API or any(
        kind.action_part == action_part for kind in api.arguments.values()
    )


HAS_EFFECT = np.array(
    [[_has_effect(api, action_part) for action_part in ActionPart] for api in COLUMN_APIS]
)
"""Whether a part of an action has an effect on a call, by API and part."""
MAX_MONEY = 128.0
"""Euros; no account ever holds as much: nothing comes in, and there are 130 in all."""


class Params(NamedTuple):
    """An instance."""

    start: World
    ask: Ask
    reason: Int
    """:class:`Reason` for which the instruction must be refused; 0 for none. Hidden."""
    wording: Int
    """Number of the template's sentence that the text view says, int32."""
    solution: IntArray = None
    """Calls of the template's program, int32 ``(20, 5)``, -1 after the last.

    Hidden; None where the reward does not ask.
    """


class OfficeApps(Task[Params, State]):
    """The task; see the module's docstring. ``difficulty`` is 1, 2 or 3."""

    measures: ClassVar[dict[str, str]] = {
        "template": (
            "number of the instruction's template in its tier once the episode is over, -1 before"
        ),
        "must_refuse": "1 if the episode is over and the instruction had to be refused, else 0",
        "refused": "1 if the player refused, else 0",
        "unchanged": "1 if the world is as it was at the start, else 0",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (HEIGHT, WIDTH, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in TIERS:
            raise ValueError(
                f"{card.id}: difficulty is 1, 2 or 3, or one of {', '.join(card.difficulties)}; "
                f"got {difficulty!r}."
            )
        self.templates, self.crowd = TIERS[int(difficulty)]
        self.mode = card.settings.get("reward", "success")
        self._counts_calls = self.mode in ("thrifty", "matched")
        sizes = part_sizes()
        self.action_space = spaces.MultiDiscrete(list(sizes.values()))
        self._part_sizes = sizes
        self.observation_space = self.box(-1.0, 1.0, (OBSERVATION_SIZE,))
        self.reward_space = self.box(-0.5 if self.mode == "dense" else 0.0, 1.0, ())
        self._mask = jax.jit(self.action_mask)
        """Mask for the host side, compiled at its first use."""

    # -- the episode -------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a random office, and make room in it for an instruction. One draw."""
        # Only cities tell offices of the splits apart, and few calls show them. So both are drawn
        # from other bits.
        words = split_bits(jax.random.bits(key, (RANDOM_WORDS,), jnp.uint32), split)
        office, cast, limit, chance = random_columns(words, split, self.crowd)
        template = (chance[0] % len(self.templates)).astype(jnp.int32)
        reason = self._reason(template, chance)
        blank = Ask(*(jnp.int32(0) for _ in Ask._fields))
        scene = Scene(office, blank._replace(template=template, limit=limit), cast)
        scene = choose(template, [option.plant(scene, reason) for option in self.templates], scene)
        params = Params(scene.world, scene.ask, reason, (chance[3] % 3).astype(jnp.int32))
        return params._replace(solution=self._solution(params)) if self._counts_calls else params

    def _solution(self, params: Params) -> jax.Array:
        """Return the calls of the template's program."""

        def step(state: State, _: None) -> tuple[State, jax.Array]:
            call = self.oracle_call(sight_of(state, params.ask))
            over = state.ending != Ending.RUNNING
            after_call = carry_out(COLUMN_APIS, state, call)
            next_state = jax.tree.map(lambda new, old: jnp.where(over, old, new), after_call, state)
            return next_state, jnp.where(over, -1, call)

        _, calls = jax.lax.scan(step, self._blank_state(params), length=MAX_CALLS)
        return calls.astype(jnp.int32)

    def _reason(self, template: jax.Array, chance: jax.Array) -> jax.Array:
        counts = jnp.asarray(
            np.array([len(option.reasons) for option in self.templates], np.uint32)
        )
        width = max(len(option.reasons) for option in self.templates)
        rows = [(option.reasons * width)[:width] or (0,) * width for option in self.templates]
        table = jnp.asarray(np.array(rows, np.int32))
        column = chance[2] % jnp.maximum(counts[template], 1)
        return jnp.where(chance[1] % OBSTACLES == 0, table[template, column], 0)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Show nothing but the instruction; the first look shows the documentation."""
        state = self._blank_state(params)
        return state._replace(tally=Tally.begin(params.solution)) if self._counts_calls else state

    def _blank_state(self, params: Params) -> State:
        empty = jnp.uint32(0)
        zero = jnp.int32(0)
        notebook = Notebook(*(empty for _ in Notebook._fields))
        result = Result(*(empty for _ in Result._fields))
        return State(params.start, notebook, result, api=zero, error=zero, ending=zero, reply=zero)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make one call."""
        next_state = carry_out(COLUMN_APIS, state, action)
        if state.tally is None:
            return next_state
        call = jnp.where(jnp.asarray(HAS_EFFECT)[action[ActionPart.API]], action, 0)
        return next_state._replace(tally=state.tally.with_call(call, params.solution))

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for the right end, once, or what the mode makes of it."""
        ends = (state.ending == Ending.RUNNING) & (next_state.ending != Ending.RUNNING)
        success = ends & self.solved(next_state, params)
        if self.mode == "dense":
            progress = self._progress(state.world, params)
            next_progress = self._progress(next_state.world, params)
            return progress_reward(progress, next_progress, ends, success).astype(self.dtype)
        tally = next_state.tally
        if tally is None:
            return success.astype(self.dtype)
        solution_length = (params.solution[:, 0] >= 0).sum().astype(self.dtype)
        call_count = tally.call_count.astype(self.dtype)
        if self.mode == "thrifty":
            return jnp.where(success, thrift(call_count, solution_length), 0).astype(self.dtype)
        names = tally.names.sum().astype(self.dtype)
        calls = tally.calls.sum().astype(self.dtype)
        return jnp.where(ends, likeness(names, calls, call_count, solution_length), 0).astype(
            self.dtype
        )

    def _progress(self, world: World, params: Params) -> jax.Array:
        """Return the share of the changes to the goal that are made, at least 0.

        Changes that are not in the goal are subtracted.
        """
        differences = distance(world, self._goal(world, params)).astype(self.dtype)
        start_differences = distance(params.start, self._goal(params.start, params)).astype(
            self.dtype
        )
        return jnp.where(
            start_differences > 0,
            jnp.maximum(0, 1 - differences / jnp.maximum(start_differences, 1)),
            0,
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the player has ended the episode."""
        return state.ending != Ending.RUNNING

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: the episode ended, and in the right way."""
        over = state.ending != Ending.RUNNING
        return {
            "success": self.solved(state, params),
            "template": jnp.where(over, params.ask.template, -1),
            "must_refuse": over & (params.reason > 0),
            "refused": state.ending == Ending.REFUSED,
            "unchanged": equal_worlds(params.start, state.world),
        }

    def solved(self, state: State, params: Params) -> jax.Array:
        """Return whether the end is right, in its last call and in every cell of the world.

        The world must be the first one with the instruction carried out.
        """
        must_refuse = params.reason > 0
        goal = self._goal(state.world, params)
        answers = [self._answer(option, params) for option in self.templates]
        answer = choose(params.ask.template, answers, jnp.int32(0))
        ending = jnp.where(answer > 0, Ending.ANSWERED, Ending.FINISHED)
        right_ending = state.ending == jnp.where(must_refuse, Ending.REFUSED, ending)
        right_reply = state.reply == jnp.where(must_refuse, params.reason, answer)
        return right_ending & right_reply & equal_worlds(goal, state.world)

    def _answer(self, template: Template, params: Params) -> jax.Array:
        """Return the answer to a question, 0 for instructions that ask none."""
        return (
            jnp.int32(0) if template.answer is None else template.answer(params.start, params.ask)
        )

    def _goal(self, world: World, params: Params) -> World:
        """Return the world that must be reached.

        It depends on the reached ``world``, because some instructions leave a choice open.
        """
        outcomes = [option.outcome(params.start, params.ask, world) for option in self.templates]
        goal: World = choose(
            jnp.where(params.reason > 0, -1, params.ask.template), outcomes, params.start
        )
        return goal

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark ids that were shown, and APIs with room for their row; bool ``(106,)``."""
        notebook = state.notebook
        ask = params.ask
        sizes = self._part_sizes
        tables = sorted({api.room for api in COLUMN_APIS if api.room})
        room = {column: (getattr(state.world, column) == 0).any() for column in tables}
        always = jnp.bool_(True)
        no_id = jnp.bool_(True)[None]
        apis = jnp.stack([room.get(api.room, always) for api in COLUMN_APIS])
        contacts = notebook.contacts | bit(ask.contact)
        contact_flags = flags_of(contacts, columns.CONTACTS)
        records = notebook.events | notebook.requests | bit(ask.event) | bit(ask.request)
        return jnp.concatenate([
            apis,
            no_id, contact_flags,
            no_id, flags_of(records, sizes[ActionPart.RECORD] - 1),
            jnp.ones(sizes[ActionPart.WORD] + sizes[ActionPart.NUMBER], bool),
        ])  # fmt: skip

    # -- observation -------------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return instruction, last call, notebook: ``(608,)``; :data:`BLOCKS` names the blocks."""
        see = sight_of(state, params.ask)
        blocks = observation_blocks(see, self.dtype)
        return jnp.concatenate([jnp.ravel(blocks[name]).astype(self.dtype) for name in BLOCKS])

    def observation_components(self) -> tuple[Component, ...]:
        """List the blocks."""
        return components.blocks(BLOCKS)

    def action_components(self) -> tuple[Component, ...]:
        """List the parts of a call."""
        return components.action_parts()

    def oracle_call(self, see: Sight) -> jax.Array:
        """Return the next call of the template's own program, int32 ``(5,)``.

        The program knows only what was shown.
        """
        calls = [first_call_of(option.plan(see)) for option in self.templates]
        return choose(see.ask.template, calls, jnp.zeros(len(ActionPart), jnp.int32))

    # -- host side: the text and pixel views -------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe instruction, rules, the last call's result, and the notebook.

        The documentation is added when it was asked for.
        """
        see = self._sight(state, params)
        paragraphs = [self._instruction(params), self._rules(f"{int(see.ask.limit)} euros")]
        if int(state.api) == 0:
            paragraphs.append(reference_text(COLUMN_APIS))
        return "\n\n".join(
            [*paragraphs, sentences.last_result(COLUMN_APIS, state, see), sentences.notebook(see)]
        )

    def rules(self) -> str:
        """Return the rules and the documentation of the APIs."""
        return "\n\n".join([
            (
                "You are the assistant of a user who has a phone book, a calendar and a payment "
                "account."
            ),
            self._rules("the user's limit"),
            "An id may be used once the user or the result of a call has named it.",
            reference_text(COLUMN_APIS),
        ])  # fmt: skip

    def _rules(self, limit: str) -> str:
        return f"{sentences.rules(limit)}\n{SENTENCES[self.mode]}".rstrip()

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe the instruction and the notebook at first, then the result of the last call."""
        see = self._sight(state, params)
        result = sentences.last_result(COLUMN_APIS, state, see)
        if before is not None:
            return (
                result
                if int(state.api)
                else "The documentation stands at the beginning of this conversation."
            )
        instruction = (
            f"{self._instruction(params)}\nThe user's limit is {int(see.ask.limit)} euros in one "
            "payment."
        )
        if int(state.api) == 0:
            return instruction
        return "\n\n".join([instruction, result, sentences.notebook(see)])

    def tools(self) -> list[dict[str, Any]]:
        """Return the APIs as tools."""
        return [as_tool(api).schema() for api in COLUMN_APIS]

    def _sight(self, state: State, params: Params) -> Sight:
        # NumPy: compiled, it would take a dozen times as long to be called.
        return sight_of(state, params.ask)

    def _instruction(self, params: Params) -> str:
        return sentences.instruction(
            self.templates[int(params.ask.template)], params.ask, int(params.wording)
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with one call, as JSON: "
            '{"name": "contacts.search_by_name", "arguments": {"name": "Ana"}}, or as a line: '
            'contacts.search_by_name(name="Ana")'
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a call; see :func:`.calls.parse_call`.

        Raises:
            ValueError: the text is not one call of a known API with its arguments; the message says
                what is wrong, and the nearest valid name.
        """
        return parse_call(COLUMN_APIS, text).astype(self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the call as JSON.

        Raises:
            ValueError: an argument is not given, or has no meaning.
        """
        return call_text(COLUMN_APIS, action)

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say which part of the call is not allowed yet."""
        mask = np.asarray(self._mask(state, params))
        call = [int(number) for number in action]
        if not mask[call[ActionPart.API]]:
            return f"{COLUMN_APIS[call[ActionPart.API]].name}: the app has no room for more"
        offset = len(COLUMN_APIS)
        for id_part, noun in (
            (ActionPart.CONTACT, "contact"),
            (ActionPart.RECORD, "event or request"),
        ):
            if not mask[offset + call[id_part]]:
                return (
                    f"id {call[id_part]} of {noun} has not been shown by the instruction or an "
                    "answer"
                )
            offset += self._part_sizes[id_part]
        return "the call is allowed"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the player ended it, and what the judge says."""
        ending = int(state.ending)
        reply = int(state.reply)
        how = {
            Ending.FINISHED: "the player says it is done",
            Ending.ANSWERED: f"the player answered {reply}",
            Ending.REFUSED: f"the player refused: {Reason(reply).name.lower()}"
            if ending == Ending.REFUSED
            else "",
        }[Ending(ending)]
        return f"{how}; that is {'right' if info['success'] else 'wrong'}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the three apps as they are; what the player has not seen is pale."""
        return picture(state, self._instruction(params), self.card.name)


# -- the observation, block by block ---------------------------------------------------------------

SLOTS = {
    "contact": columns.CONTACTS,
    "event": columns.EVENTS,
    "request": columns.REQUESTS,
    "name": len(columns.NAMES),
    "city": len(columns.CITIES),
    "relation": len(columns.RELATIONS),
    "day": len(columns.DAYS),
    "title": len(columns.TITLES),
    "place": len(columns.PLACES),
    "number": columns.MAX_AMOUNT,
}
QUESTION_COUNTS = {
    "asked_names": len(columns.NAMES),
    "asked_cities": len(columns.CITIES),
    "asked_relations": len(columns.RELATIONS),
    "asked_titles": len(columns.TITLES),
    "asked_requests": 1,
    "asked_transfers": columns.CONTACTS,
}
RESULTS = {
    "contacts": columns.CONTACTS,
    "events": columns.EVENTS,
    "requests": columns.REQUESTS,
    "transfers": columns.TRANSFERS,
    "times": len(columns.TIMES),
}
COLUMNS = {
    "name": len(columns.NAMES),
    "city": len(columns.CITIES),
    "relation": len(columns.RELATIONS),
    "phone": columns.MAX_AMOUNT,
    "title": len(columns.TITLES),
    "time": len(columns.TIMES),
    "place": len(columns.PLACES),
    "request_contact": columns.CONTACTS,
    "request_amount": columns.MAX_AMOUNT,
    "request_direction": len(columns.Direction),
    "request_status": len(columns.Status),
    "transfer_contact": columns.CONTACTS,
    "transfer_amount": columns.MAX_AMOUNT,
    "transfer_direction": len(columns.Direction),
}
"""Columns of the notebook, shown as value / largest value, and 0 if not known."""

BLOCKS: dict[str, int] = {
    "template": MAX_TEMPLATES,
    **{f"ask_{slot}": count for slot, count in SLOTS.items()},
    "ask_limit": 1,
    "last_api": len(COLUMN_APIS),
    "last_error": len(Error) - 1,
    **{f"last_{name}": count for name, count in RESULTS.items()},
    "known_contacts": columns.CONTACTS,
    "known_relations": columns.CONTACTS,
    "known_events": columns.EVENTS,
    **{
        f"note_{column}": {
            "title": columns.EVENTS,
            "time": columns.EVENTS,
            "place": columns.EVENTS,
        }.get(
            column,
            columns.CONTACTS
            if column in ("name", "city", "relation", "phone")
            else columns.REQUESTS,
        )
        for column in COLUMNS
    },
    "note_guests": columns.EVENTS * columns.CONTACTS,
    "note_hours": len(columns.TIMES),
    "note_accounts": 3,
    **QUESTION_COUNTS,
}
"""Blocks of the observation in their order, with their lengths."""
OBSERVATION_SIZE = sum(BLOCKS.values())


def observation_blocks(see: Sight, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the blocks of the observation.

    ``template``, ``ask_*``, ``last_api``, ``last_error`` are one-hot (all 0 for none);
    ``ask_limit`` is a share of 31 euros; ``last_*`` and ``known_*`` are sets; ``note_guests``
    (event by event) and ``note_hours`` hold 1 for yes, -1 for no, 0 for not known;
    ``note_accounts``: known, balance and savings as shares of 128 euros; ``asked_*`` are sets.
    """

    def one_hot(value: Any, count: int, low: int = 1) -> jax.Array:
        return value == np.arange(low, low + count)

    ask = see.ask
    world = see.world
    notebook = see.notebook
    guests = jnp.where(flags_of(world.guests, columns.CONTACTS), 1, -1)
    hours = jnp.where(flags_of(see.busy_times, len(columns.TIMES)), 1, -1)
    money = jnp.stack(
        [
            jnp.where(notebook.accounts > 0, 1.0, 0.0),
            world.balance / MAX_MONEY,
            world.savings / MAX_MONEY,
        ]
    )
    return {
        "template": one_hot(ask.template, MAX_TEMPLATES, 0),
        **{f"ask_{slot}": one_hot(getattr(ask, slot), count) for slot, count in SLOTS.items()},
        "ask_limit": ask.limit.astype(dtype) * dtype.type(1 / columns.MAX_AMOUNT),
        "last_api": one_hot(see.api, len(COLUMN_APIS), 0),
        "last_error": one_hot(see.error, len(Error) - 1),
        **{
            f"last_{name}": flags_of(getattr(see.result, name), count)
            for name, count in RESULTS.items()
        },
        "known_contacts": flags_of(notebook.contacts, columns.CONTACTS),
        "known_relations": flags_of(notebook.relations, columns.CONTACTS),
        "known_events": flags_of(notebook.events, columns.EVENTS),
        **{
            f"note_{c}": getattr(world, c).astype(dtype) * dtype.type(1 / count)
            for c, count in COLUMNS.items()
        },
        "note_guests": jnp.where(flags_of(notebook.guests, columns.EVENTS)[:, None], guests, 0),
        "note_hours": jnp.where(flags_of(notebook.times, len(columns.TIMES)), hours, 0),
        "note_accounts": money,
        **{
            name: flags_of(getattr(notebook, name), count)
            for name, count in QUESTION_COUNTS.items()
        },
    }


assert {kind.action_part for kind in KINDS} == set(ActionPart) - {ActionPart.API}
