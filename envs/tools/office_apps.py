"""rlsuite/OfficeApps-v0: carry out an instruction by calling the APIs of three apps, and change nothing else.

A user has a phone book, a calendar and a payment account, and asks for one thing: "Move the review to the first free
hour on Wed". The player looks things up through 33 APIs, makes the change, and says that it is done; or it refuses, and
says why. The judge compares the world at the end with the world at the start, as AppWorld (Trivedi et
al. 2024, arXiv:2407.18901) does: how a goal was reached does not count, and any change beyond it fails the episode.

=============  =====================================================================================================
action         one call, ``MultiDiscrete([33, 13, 11, 17, 32])``: API, contact id, record id (event or request), word
               (name, city, title, ...), number (euros, time, phone); 0 in a part means "not given", and parts that
               the API does not take have no effect. Legal are ids that the instruction or an answer has shown, and
               APIs whose table has room for what they add. Any other mistake is an error of the API, which
               changes nothing
observation    ``Box(608)``: the instruction (one-hot), the last call and what it returned, and a notebook: everything
               shown so far, as it is now, and the questions asked
reward         1 at the end if the outcome is right, else 0. ``reward`` sets another of the modes (``reward_modes.py``):
               ``thrifty`` and ``matched`` against the calls of the template's program; ``dense``, the share of the
               cells in which the world differed from the wanted one and no longer does, less those in which it now does
termination    ``assistant.finish``, ``assistant.answer`` or ``assistant.refuse`` was called
success        the end is the right one (finish, the right answer, or a refusal with the right reason), and the world
               is, cell by cell, the first one with the instruction carried out
context        a random office, an instruction from one of the tier's templates, an obstacle in one instance of eight
               of the templates that know obstacles. Train and test share no person (``population.py``), and equal
               seeds draw different offices
=============  =====================================================================================================

Tiers: ``easy`` names rows by their ids (1 to 3 calls and the last word), ``medium`` by name and title (1 to 4),
``hard`` needs up to a dozen calls among namesakes and near misses. Each has templates of its own: 26 in all
(``easy.py``, ``medium.py``, ``hard.py``).

The notebook replaces a memory of all answers: a policy without memory can play perfectly, and the reference does. Only
errors are not kept beyond the next call.

Published tool benchmarks have rewarded players who do nothing: 38 % of tau-bench's airline tasks (Zhu et al. 2025,
arXiv:2507.02825). Here each instance asks for a change, an answer or a refusal with its reason, and reading earns
nothing: ``tests/tools/test_attacks.py`` plays players who do nothing, refuse, list everything, or call everything.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.component import Component
from rlbench_suite.task import Task
from rlbench_suite.task_card import TaskCard

from ..shared.alternating_bands import split_bits
from . import components, easy, hard, medium, sentences
from . import world as w
from .api import KINDS, Ending, Error, Known, Part, Reason, Shown, State, carry_out
from .api_reference import call_text, json_schema, reference_text
from .apis import APIS, part_sizes
from .calls import parse_call
from .picture import HEIGHT, WIDTH, picture
from .population import WORDS, Crowd, random_office
from .reward_modes import SENTENCES, Tally, likeness, progress_reward, thrift
from .template import Ask, Scene, Sight, Template, choose, first, sight_of
from .world import World, bit, distance, flags_of, same

TIERS: dict[int, tuple[tuple[Template, ...], Crowd]] = {
    1: (easy.TEMPLATES, Crowd(contacts=6, events=4, requests=3, transfers=2)),
    2: (medium.TEMPLATES, Crowd(contacts=9, events=7, requests=4, transfers=3)),
    3: (hard.TEMPLATES, Crowd(contacts=11, events=7, requests=5, transfers=4)),
}
MOST_TEMPLATES = max(len(templates) for templates, _ in TIERS.values())
OBSTACLES = 8
"""One in this many instances has an obstacle, if the template knows any."""
MOST_CALLS = 20
"""Calls of a template's program, and rows of an episode's list of them."""
TAKEN = np.array(
    [[part == 0 or part in {kind.part for kind in one.arguments.values()} for part in Part] for one in APIS]
)
"""Whether an API takes a part of an action."""
MOST_MONEY = 128.0
"""Euros; no account ever holds as much: nothing comes in, and there are 130 in all."""


class Params(NamedTuple):
    """An instance."""

    start: World
    ask: Ask
    reason: Any
    """:class:`Reason` for which the instruction must be refused; 0 for none. Hidden."""
    wording: Any
    """Number of the template's sentence that the text view says, int32."""
    solution: Any = None
    """Calls of the template's program, int32 ``(20, 5)``, -1 after the last. Hidden; None where the reward does not
    ask."""


class OfficeApps(Task[Params, State]):
    """The task; see the module's docstring. ``difficulty`` is 1, 2 or 3."""

    measures: ClassVar[dict[str, str]] = {
        "template": "number of the instruction's template in its tier once the episode is over, -1 before",
        "must_refuse": "1 if the episode is over and the instruction had to be refused, else 0",
        "refused": "1 if the player refused, else 0",
        "unchanged": "1 if the world is as it was at the start, else 0",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (HEIGHT, WIDTH, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in TIERS:
            raise ValueError(
                f"{card.id}: difficulty is 1, 2 or 3, or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.templates, self.crowd = TIERS[int(difficulty)]
        self.mode = card.settings.get("reward", "success")
        self._counts = self.mode in ("thrifty", "matched")
        sizes = part_sizes()
        self.action_space = spaces.MultiDiscrete(list(sizes.values()))
        self._part_sizes = sizes
        self.observation_space = self.box(-1.0, 1.0, (OBSERVATION_SIZE,))
        self.reward_space = self.box(-0.5 if self.mode == "dense" else 0.0, 1.0, ())
        self._mask = jax.jit(self.action_mask)
        """Mask for the host side, compiled at its first use."""

    # -- the episode ---------------------------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a random office, and make room in it for an instruction. One draw."""
        # Only cities tell offices of the splits apart, and few calls show them. So both are drawn from other bits.
        words = split_bits(jax.random.bits(key, (WORDS,), jnp.uint32), split)
        office, cast, limit, chance = random_office(words, split, self.crowd)
        template = (chance[0] % len(self.templates)).astype(jnp.int32)
        reason = self._reason(template, chance)
        blank = Ask(*(jnp.int32(0) for _ in Ask._fields))
        scene = Scene(office, blank._replace(template=template, limit=limit), cast)
        scene = choose(template, [one.plant(scene, reason) for one in self.templates], scene)
        params = Params(scene.world, scene.ask, reason, (chance[3] % 3).astype(jnp.int32))
        return params._replace(solution=self._solution(params)) if self._counts else params

    def _solution(self, params: Params) -> jax.Array:
        """Return the calls of the template's program."""

        def step(state: State, _: None) -> tuple[State, jax.Array]:
            call, over = self.oracle_call(sight_of(state, params.ask)), state.ending != Ending.RUNNING
            after = jax.tree.map(lambda new, old: jnp.where(over, old, new), carry_out(APIS, state, call), state)
            return after, jnp.where(over, -1, call)

        _, calls = jax.lax.scan(step, self._blank(params), length=MOST_CALLS)
        return calls.astype(jnp.int32)

    def _reason(self, template: jax.Array, chance: jax.Array) -> jax.Array:
        counts = jnp.asarray(np.array([len(one.reasons) for one in self.templates], np.uint32))
        most = max(len(one.reasons) for one in self.templates)
        table = jnp.asarray(np.array([(one.reasons * most)[:most] or (0,) * most for one in self.templates], np.int32))
        which = chance[2] % jnp.maximum(counts[template], 1)
        return jnp.where(chance[1] % OBSTACLES == 0, table[template, which], 0)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Show nothing but the instruction; the first look shows the documentation."""
        state = self._blank(params)
        return state._replace(tally=Tally.begin(params.solution)) if self._counts else state

    def _blank(self, params: Params) -> State:
        nothing = jnp.uint32(0)
        zero = jnp.int32(0)
        known, shown = Known(*(nothing for _ in Known._fields)), Shown(*(nothing for _ in Shown._fields))
        return State(params.start, known, shown, api=zero, error=zero, ending=zero, said=zero)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make one call."""
        after = carry_out(APIS, state, action)
        if state.tally is None:
            return after
        call = jnp.where(jnp.asarray(TAKEN)[action[Part.API]], action, 0)
        return after._replace(tally=state.tally.with_call(call, params.solution))

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return 1 for the right end, once, or what the mode makes of it."""
        ends = (state.ending == Ending.RUNNING) & (next_state.ending != Ending.RUNNING)
        right = ends & self.solved(next_state, params)
        if self.mode == "dense":
            before, after = self._progress(state.world, params), self._progress(next_state.world, params)
            return progress_reward(before, after, ends, right).astype(self.dtype)
        if not self._counts:
            return right.astype(self.dtype)
        tally, wanted = next_state.tally, (params.solution[:, 0] >= 0).sum().astype(self.dtype)
        made = tally.made.astype(self.dtype)
        if self.mode == "thrifty":
            return jnp.where(right, thrift(made, wanted), 0).astype(self.dtype)
        names, calls = (matched.sum().astype(self.dtype) for matched in (tally.names, tally.calls))
        return jnp.where(ends, likeness(names, calls, made, wanted), 0).astype(self.dtype)

    def _progress(self, world: World, params: Params) -> jax.Array:
        """Return the share of the wanted changes that are made, less any others; at least 0."""
        left, far = (distance(one, self._wanted(one, params)).astype(self.dtype) for one in (world, params.start))
        return jnp.where(far > 0, jnp.maximum(0, 1 - left / jnp.maximum(far, 1)), 0)

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
            "unchanged": same(params.start, state.world),
        }

    def solved(self, state: State, params: Params) -> jax.Array:
        """Judge the episode: the end is right, and the world is, cell by cell, the first one with the instruction
        carried out.
        """
        start, ask = params.start, params.ask
        refuse = params.reason > 0
        wanted = self._wanted(state.world, params)
        answers = [jnp.int32(0) if one.answer is None else one.answer(start, ask) for one in self.templates]
        number = choose(ask.template, answers, jnp.int32(0))
        ending = jnp.where(number > 0, Ending.ANSWERED, Ending.FINISHED)
        words = (state.ending == jnp.where(refuse, Ending.REFUSED, ending)) & (
            state.said == jnp.where(refuse, params.reason, number)
        )
        return words & same(wanted, state.world)

    def _wanted(self, world: World, params: Params) -> World:
        """Return the world that must be reached, given the one reached: some instructions leave a choice open."""
        outcomes = [one.outcome(params.start, params.ask, world) for one in self.templates]
        wanted: World = choose(jnp.where(params.reason > 0, -1, params.ask.template), outcomes, params.start)
        return wanted

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark ids that were shown, and APIs with room for their row; bool ``(106,)``."""
        world, known, ask, sizes = state.world, state.known, params.ask, self._part_sizes
        room = {
            column: (getattr(world, column) == 0).any() for column in sorted({one.room for one in APIS if one.room})
        }
        yes = jnp.bool_(True)
        ids = jnp.bool_(True)[None]
        return jnp.concatenate([
            jnp.stack([room.get(one.room, yes) for one in APIS]),
            ids, flags_of(known.contacts | bit(ask.contact), w.CONTACTS),
            ids, flags_of(known.events | known.requests | bit(ask.event) | bit(ask.request), sizes[Part.RECORD] - 1),
            jnp.ones(sizes[Part.WORD] + sizes[Part.NUMBER], bool),
        ])  # fmt: skip

    # -- what is seen --------------------------------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return instruction, last call, notebook: ``(608,)``; :data:`BLOCKS` names the blocks."""
        see = sight_of(state, params.ask)
        blocks = observed(see, self.dtype)
        return jnp.concatenate([jnp.ravel(blocks[name]).astype(self.dtype) for name in BLOCKS])

    def observation_components(self) -> tuple[Component, ...]:
        """List the blocks."""
        return components.blocks(BLOCKS)

    def action_components(self) -> tuple[Component, ...]:
        """List the parts of a call."""
        return components.parts()

    def oracle_call(self, see: Sight) -> jax.Array:
        """Return the next call of the template's own program, from what was shown: int32 ``(5,)``."""
        calls = [first(one.plan(see)) for one in self.templates]
        return choose(see.ask.template, calls, jnp.zeros(len(Part), jnp.int32))

    # -- host side: the text and pixel views ---------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe instruction, rules, the last call's result, and the notebook; the documentation when asked."""
        see = self._seen(state, params)
        parts = [self._instruction(params), self._rules(f"{int(see.ask.limit)} euros")]
        if int(state.api) == 0:
            parts.append(reference_text(APIS))
        return "\n\n".join([*parts, sentences.last_result(APIS, state, see), sentences.notebook(see)])

    def rules(self) -> str:
        """Return the rules and the documentation of the APIs."""
        return "\n\n".join([
            "You are the assistant of a user who has a phone book, a calendar and a payment account.",
            self._rules("the user's limit"),
            "An id may be used once the user or the result of a call has named it.",
            reference_text(APIS),
        ])  # fmt: skip

    def _rules(self, limit: str) -> str:
        return f"{sentences.rules(limit)}\n{SENTENCES[self.mode]}".rstrip()

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe the instruction and the notebook at first, then the result of the last call."""
        see = self._seen(state, params)
        result = sentences.last_result(APIS, state, see)
        if before is not None:
            return result if int(state.api) else "The documentation stands at the beginning of this conversation."
        said = f"{self._instruction(params)}\nThe user's limit is {int(see.ask.limit)} euros in one payment."
        return said if int(state.api) == 0 else "\n\n".join([said, result, sentences.notebook(see)])

    def tools(self) -> list[dict[str, Any]]:
        """Return the APIs as tools."""
        return [json_schema(one) for one in APIS]

    def _seen(self, state: State, params: Params) -> Sight:
        return sight_of(state, params.ask)  # NumPy: compiled, it would take a dozen times as long to be called

    def _instruction(self, params: Params) -> str:
        return sentences.instruction(self.templates[int(params.ask.template)], params.ask, int(params.wording))

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            'Answer with one call, as JSON: {"name": "contacts.search_by_name", "arguments": {"name": "Ana"}}, or as a '
            'line: contacts.search_by_name(name="Ana")'
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a call; see :func:`.calls.parse_call`.

        Raises:
            ValueError: the text is not one call of a known API with its arguments; the message says what is wrong, and
                the nearest valid name.
        """
        return parse_call(APIS, text).astype(self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the call as JSON.

        Raises:
            ValueError: an argument is not given, or has no meaning.
        """
        return call_text(APIS, action)

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say which part of the call is not allowed yet."""
        mask = np.asarray(self._mask(state, params))
        chosen = [int(part) for part in action]
        if not mask[chosen[Part.API]]:
            return f"{APIS[chosen[Part.API]].name}: the app has no room for more"
        offset = len(APIS)
        for part in (Part.CONTACT, Part.RECORD):
            if not mask[offset + chosen[part]]:
                what = "contact" if part is Part.CONTACT else "event or request"
                return f"id {chosen[part]} of {what} has not been shown by the instruction or an answer"
            offset += self._part_sizes[part]
        return "the call is allowed"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the player ended it, and what the judge says."""
        ending, said = int(state.ending), int(state.said)
        how = {
            Ending.FINISHED: "the player says it is done",
            Ending.ANSWERED: f"the player answered {said}",
            Ending.REFUSED: f"the player refused: {Reason(said).name.lower()}" if ending == Ending.REFUSED else "",
        }[Ending(ending)]
        return f"{how}; that is {'right' if info['success'] else 'wrong'}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the three apps as they are; what the player has not seen is pale."""
        return picture(state, self._instruction(params), self.card.name)


# -- the observation, block by block -----------------------------------------------------------------------------

SLOTS = {"contact": w.CONTACTS, "event": w.EVENTS, "request": w.REQUESTS, "name": len(w.NAMES), "city": len(w.CITIES),
         "relation": len(w.RELATIONS), "day": len(w.DAYS), "title": len(w.TITLES), "place": len(w.PLACES),
         "number": w.LARGEST}  # fmt: skip
ASKED = {"asked_names": len(w.NAMES), "asked_cities": len(w.CITIES), "asked_relations": len(w.RELATIONS),
         "asked_titles": len(w.TITLES), "asked_requests": 1, "asked_transfers": w.CONTACTS}  # fmt: skip
RESULTS = {"contacts": w.CONTACTS, "events": w.EVENTS, "requests": w.REQUESTS, "transfers": w.TRANSFERS,
           "times": len(w.TIMES)}  # fmt: skip
COLUMNS = {"name": len(w.NAMES), "city": len(w.CITIES), "relation": len(w.RELATIONS), "phone": w.LARGEST,
           "title": len(w.TITLES), "time": len(w.TIMES), "place": len(w.PLACES),
           "request_contact": w.CONTACTS, "request_amount": w.LARGEST, "request_direction": 2, "request_status": 4,
           "transfer_contact": w.CONTACTS, "transfer_amount": w.LARGEST, "transfer_direction": 2}  # fmt: skip
"""Columns of the notebook, shown as value / largest value, and 0 if not known."""

BLOCKS: dict[str, int] = {
    "template": MOST_TEMPLATES,
    **{f"ask_{slot}": count for slot, count in SLOTS.items()},
    "ask_limit": 1,
    "last_api": len(APIS),
    "last_error": len(Error) - 1,
    **{f"last_{name}": count for name, count in RESULTS.items()},
    "known_contacts": w.CONTACTS,
    "known_relations": w.CONTACTS,
    "known_events": w.EVENTS,
    **{
        f"note_{column}": {"title": w.EVENTS, "time": w.EVENTS, "place": w.EVENTS}.get(
            column, w.CONTACTS if column in ("name", "city", "relation", "phone") else w.REQUESTS
        )
        for column in COLUMNS
    },
    "note_guests": w.EVENTS * w.CONTACTS,
    "note_hours": len(w.TIMES),
    "note_accounts": 3,
    **ASKED,
}
"""Blocks of the observation in their order, with their lengths."""
OBSERVATION_SIZE = sum(BLOCKS.values())


def observed(see: Sight, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the blocks of the observation.

    ``template``, ``ask_*``, ``last_api``, ``last_error`` are one-hot (all 0 for none); ``ask_limit`` is a share of 31
    euros; ``last_*`` and ``known_*`` are sets; ``note_guests`` (event by event) and ``note_hours`` hold 1 for yes, -1
    for no, 0 for not known; ``note_accounts``: known, balance and savings as shares of 128 euros; ``asked_*`` are sets.
    """

    def one_hot(value: Any, count: int, low: int = 1) -> jax.Array:
        return value == np.arange(low, low + count)

    ask, world, known = see.ask, see.world, see.known
    guests = jnp.where(flags_of(world.guests, w.CONTACTS), 1, -1)
    hours = jnp.where(flags_of(see.taken, len(w.TIMES)), 1, -1)
    money = jnp.stack([jnp.where(known.accounts > 0, 1.0, 0.0), world.balance / MOST_MONEY, world.savings / MOST_MONEY])
    return {
        "template": one_hot(ask.template, MOST_TEMPLATES, 0),
        **{f"ask_{slot}": one_hot(getattr(ask, slot), count) for slot, count in SLOTS.items()},
        "ask_limit": ask.limit.astype(dtype) * dtype.type(1 / w.LARGEST),
        "last_api": one_hot(see.api, len(APIS), 0),
        "last_error": one_hot(see.error, len(Error) - 1),
        **{f"last_{name}": flags_of(getattr(see.shown, name), count) for name, count in RESULTS.items()},
        "known_contacts": flags_of(known.contacts, w.CONTACTS),
        "known_relations": flags_of(known.relations, w.CONTACTS),
        "known_events": flags_of(known.events, w.EVENTS),
        **{f"note_{c}": getattr(world, c).astype(dtype) * dtype.type(1 / count) for c, count in COLUMNS.items()},
        "note_guests": jnp.where(flags_of(known.guests, w.EVENTS)[:, None], guests, 0),
        "note_hours": jnp.where(flags_of(known.times, len(w.TIMES)), hours, 0),
        "note_accounts": money,
        **{name: flags_of(getattr(known, name), count) for name, count in ASKED.items()},
    }


assert {kind.part for kind in KINDS} == set(Part) - {Part.API}
