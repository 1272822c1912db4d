"""Answer a question that takes several look-ups in a corpus with outdated documents.

"Who is the rival of the mentor of Barano?" The corpus (``corpus.py``) is about people who do not
exist, so that nothing but searching tells. Each fact was reported in one to three years with
different names; the latest report holds. A search lists six documents in pages of two: all reports
of the fact, among documents about something else.

=============  =====================================================================================
action         ``MultiDiscrete([4, 32, 4, 3, 2, 3])``: 0 wait, 1 search, 2 judge, 3 answer; person
               (to search or to answer); relation; page; document of the last page to judge; label:
               current, outdated, irrelevant
observation    ``Box(0, 1, (695,))``: the question; the two documents of the last page; how many
               reports the fact has that was searched for; a notebook of all facts: newest name
               seen, reports seen, reports there are, pages read
reward         1 for the right answer, else 0. ``reward`` sets another of the modes
               (``reward_modes.py``): ``thrifty`` counts searches and answer; ``dense`` pays for
               each fact on the way up whose latest report was seen; ``judged`` is 0.8, and 0.2
               times the share of shown documents that were judged rightly. ``search_cost`` sets
               what each search takes off the worth of a right answer in all of them: nothing, 0.02
               (``"low"``) or 0.05 (``"high"``); the worth is never below 0, with ``dense`` never
               below the half of the progress
termination    an answer was given
success        the answer is right as of today
difficulty     number of look-ups of the question, 1 to 3
context        corpus and question. The splits never share a corpus, nor a question's first look-up:
               its person and relation are one of half of the pairs, in which every person and every
               relation occurs. The people of the splits have different names
=============  =====================================================================================

The fewest searches of a player who looks every fact on the way up by itself and wants to be sure,
``info["least"]``, are the pages on which its reports stand. ``retrieval="good"`` ranks these first,
``"poor"`` at random. A judgement is exact: current is the latest report of the fact searched for,
outdated an earlier one, irrelevant all else. Each document of a page can be judged once, and
judging earns nothing without a right answer. Now and then a document about something else happens
to be one that the next look-up needs, and saves a search.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, IntArray, UInt32Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import split_bits
from ..shared.calls import shorten, suggest
from ..shared.page import HEIGHT, WIDTH, page
from ..shared.reward_modes import SENTENCES, progress_reward, thrift
from ..shared.tool import Argument, Tool, read_tool_call
from .corpus import (
    FACTS,
    FIRST_YEAR,
    LISTED,
    NAMES,
    PEOPLE,
    PER_PAGE,
    RELATIONS,
    REPORTS,
    YEARS,
    all_reports,
    list_documents,
    person_in,
    reports,
    year,
)

PAGES = LISTED // PER_PAGE
"""Pages of the result of a search."""
MAX_HOPS = 3
"""Look-ups that a question takes at most."""
LABELS = ("current", "outdated", "irrelevant")
BOOSTS = {"fair": 0.4, "good": 1.0, "poor": 0.0}
PRICES = {"free": 0.0, "low": 0.02, "high": 0.05}
"""Share of a right answer's worth that a search costs."""
TOOLS = (
    Tool("wait", "Let a turn pass. Nothing happens."),
    Tool(
        "search",
        "List documents about a relation of a person, two on a page.",
        {
            "person": Argument("name of the person"),
            "relation": Argument("relation of that person", RELATIONS),
            "page": Argument("page of the list", low=1, high=PAGES),
        },
    ),
    Tool(
        "judge",
        "Say what a document of the last page is worth for the search it answers.",
        {
            "document": Argument("which of the two", low=1, high=PER_PAGE),
            "label": Argument("your judgement", LABELS),
        },
    ),
    Tool(
        "answer",
        "Answer the question with a name. It ends the episode.",
        {"person": Argument("name of the person")},
    ),
)
WAIT, SEARCH, JUDGE, ANSWER = range(4)
NUMBERS = tuple({name.lower(): number for number, name in enumerate(names)} for names in NAMES)
"""Number of a person by name, for each split."""


class Params(NamedTuple):
    """A corpus and a question."""

    seed: UInt32Array
    """uint32 ``(2,)``"""
    split: Int
    start: Int
    """Person whom the question begins with."""
    path: IntArray
    """Relations to follow, the first one first, int32 ``(3,)``.

    Those beyond the number of look-ups are not asked.
    """
    answer: Int
    fewest_searches: Int
    """Fewest searches, see the module's docstring."""


class State(NamedTuple):
    """An episode; int32 unless said."""

    seen_reports: IntArray
    """Reports seen of each fact, as bits, ``(128,)``."""
    pages: IntArray
    """Pages read of each fact, as bits, ``(128,)``."""
    fact: Int
    """Fact of the last search; -1 before the first."""
    page: Int
    about: IntArray
    """Facts of the documents on the last page, ``(2,)``."""
    report: IntArray
    """Their reports, ``(2,)``."""
    judged: Int
    """Documents of the last page that were judged, as bits."""
    searches: Int
    right_judgements: Int
    """Right judgements."""
    wrong_judgements: Int
    last: Int
    """Last tool; -1 before the first."""
    answered_person: Int
    """Person answered; -1 while there is no answer."""


class Search(Task[Params, State]):
    """The task; see the module's docstring. ``difficulty`` is the number of look-ups."""

    measures: ClassVar[dict[str, str]] = {
        "searches": "searches made",
        "least": (
            "fewest searches of a player who looks every fact up by itself and wants to be sure, "
            "once an answer was given, -1 before"
        ),
        "judged_right": "documents judged rightly",
        "judged_wrong": "documents judged wrongly",
        "answered": "1 if an answer was given, right or wrong, else 0",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (HEIGHT, WIDTH, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in (1, 2, 3):
            raise ValueError(
                f"A difficulty of {card.id} is the number of look-ups, 1, 2 or 3; got "
                f"{difficulty!r}."
            )
        self.hops = int(difficulty)
        self.mode = card.settings.get("reward", "success")
        self.boost = BOOSTS[card.settings.get("retrieval", "fair")]
        self.price = PRICES[card.settings.get("search_cost", "free")]
        sizes = (len(TOOLS), PEOPLE, len(RELATIONS), PAGES, PER_PAGE, len(LABELS))
        self.action_space = spaces.MultiDiscrete(list(sizes))
        self.observation_space = self.box(
            0.0, 1.0, (sum(component.size for component in self.observation_components()),)
        )
        self.reward_space = self.box(-0.5 if self.mode == "dense" else 0.0, 1.0, ())
        # For the host side, compiled at its first use.
        self._read = lru_cache(maxsize=256)(self._library)
        self._all_reports = jax.jit(all_reports)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a seed and a question. One draw, which differs between the splits."""
        bits = split_bits(jax.random.bits(key, (6,), jnp.uint32), split)
        # The last bit of a corpus is its split. So is the parity of the question's first person and
        # relation.
        seed = jnp.concatenate(
            [bits[:1] & ~np.uint32(1) | jnp.asarray(split, jnp.uint32), bits[1:2]]
        )
        start = (bits[2] % np.uint32(PEOPLE)).astype(jnp.int32)
        path = (bits[3:] % np.uint32(len(RELATIONS))).astype(jnp.int32)
        path = path.at[0].set(path[0] & ~1 | (start + split) & 1)
        person = start
        fewest_searches = jnp.int32(0)
        for hop in range(self.hops):
            fact = len(RELATIONS) * person + path[hop]
            about, _ = list_documents(seed, fact, self.boost)
            fewest_searches += (about == fact).reshape(PAGES, PER_PAGE).any(1).sum()
            person = person_in(seed, fact, 0)
        return Params(
            seed,
            jnp.asarray(split, jnp.int32),
            start,
            path,
            answer=person,
            fewest_searches=fewest_searches.astype(jnp.int32),
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin without a search."""
        zero = jnp.int32(0)
        nothing = jnp.zeros(FACTS, jnp.int32)
        page = jnp.zeros(PER_PAGE, jnp.int32)
        return State(
            nothing, nothing, zero - 1, zero, page, page, zero, zero, zero, zero, zero - 1, zero - 1
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Search, judge or answer."""
        tool, person, relation, page, slot, label = action.astype(jnp.int32)
        truth = jnp.where(
            state.about[slot] != state.fact, 2, (state.report[slot] > 0).astype(jnp.int32)
        )
        counts = (tool == JUDGE) & (state.fact >= 0) & (state.judged >> slot & 1 == 0)
        searches = tool == SEARCH
        fact = len(RELATIONS) * person + relation
        facts = jnp.arange(FACTS)
        listed = list_documents(params.seed, fact, self.boost)
        about, report = (array[PER_PAGE * page + jnp.arange(PER_PAGE)] for array in listed)
        seen_reports = state.seen_reports
        for number in range(PER_PAGE):
            seen_reports = seen_reports | jnp.where(
                searches & (facts == about[number]), 1 << report[number], 0
            )
        return State(
            seen_reports=seen_reports,
            pages=state.pages | jnp.where(searches & (facts == fact), 1 << page, 0),
            fact=jnp.where(searches, fact, state.fact),
            page=jnp.where(searches, page, state.page),
            about=jnp.where(searches, about, state.about),
            report=jnp.where(searches, report, state.report),
            judged=jnp.where(searches, 0, state.judged | counts * (1 << slot)),
            searches=state.searches + searches,
            right_judgements=state.right_judgements + (counts & (label == truth)),
            wrong_judgements=state.wrong_judgements + (counts & (label != truth)),
            last=tool,
            answered_person=jnp.where(tool == ANSWER, person, state.answered_person),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for the right answer, or what the mode makes of it."""
        score = self._solved(next_state, params).astype(self.dtype)
        if self.price:
            # With progress paid, a right answer must stay worth more than none.
            lowest_factor = 0.5 if self.mode == "dense" else 0.0
            score = score * jnp.maximum(
                lowest_factor, 1 - self.price * next_state.searches.astype(self.dtype)
            )
        if self.mode == "dense":
            before = self._progress(state, params)
            after = self._progress(next_state, params)
            return progress_reward(before, after, next_state.answered_person >= 0, score).astype(
                self.dtype
            )
        if self.mode == "thrifty":
            calls = (next_state.searches + 1).astype(self.dtype)
            score = score * thrift(calls, (params.fewest_searches + 1).astype(self.dtype))
        if self.mode == "judged":
            shown_documents = PER_PAGE * jnp.maximum(next_state.searches, 1)
            score = score * (
                0.8
                + 0.2
                * next_state.right_judgements.astype(self.dtype)
                / shown_documents.astype(self.dtype)
            )
        return score.astype(self.dtype)

    def _progress(self, state: State, params: Params) -> jax.Array:
        """Return the share of the facts on the way up whose latest report was seen."""
        person = params.start
        known_facts = jnp.int32(0)
        for hop in range(self.hops):
            fact = len(RELATIONS) * person + params.path[hop]
            known_facts += state.seen_reports[fact] & 1
            person = person_in(params.seed, fact, 0)
        return known_facts.astype(self.dtype) / self.hops

    def _solved(self, state: State, params: Params) -> jax.Array:
        return state.answered_person == params.answer

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether an answer was given."""
        return state.answered_person >= 0

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": self._solved(state, params),
            "searches": state.searches,
            "least": jnp.where(state.answered_person >= 0, params.fewest_searches, -1),
            "judged_right": state.right_judgements,
            "judged_wrong": state.wrong_judgements,
            "answered": (state.answered_person >= 0).astype(jnp.int32),
        }

    # -- what is seen ------------------------------------------------------------------------------

    def newest_names(self, state: State, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return the newest name seen of each fact, and how many reports there are.

        -1 stands for no name, and 0 for an unknown number.
        """
        facts = jnp.arange(FACTS)
        newest = jnp.full(FACTS, -1, jnp.int32)
        for report in reversed(range(REPORTS)):
            newest = jnp.where(
                state.seen_reports >> report & 1 == 1, person_in(params.seed, facts, report), newest
            )
        return newest, jnp.where(state.pages > 0, reports(params.seed, facts), 0)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return question, last page and notebook; ``(695,)``."""
        people = jnp.arange(PEOPLE)
        relations = jnp.arange(len(RELATIONS))
        is_asked = jnp.arange(MAX_HOPS)[:, None] < self.hops
        about = state.about
        report = state.report
        there = state.fact >= 0
        newest, count = self.newest_names(state, params)
        documents = [
            jnp.concatenate([
                there & (people == about[number] // len(RELATIONS)),
                there & (relations == about[number] % len(RELATIONS)),
                there & (people == person_in(params.seed, about[number], report[number])),
                (
                    there * (year(params.seed, about[number], report[number]) - FIRST_YEAR + 1)
                    / YEARS
                )[None],
            ])
            for number in range(PER_PAGE)
        ]  # fmt: skip
        hits = jnp.where(there, reports(params.seed, jnp.maximum(state.fact, 0)), 0)
        blocks = (
            people == params.start,
            (is_asked & (params.path[:, None] == relations)).ravel(),
            *documents,
            (hits / REPORTS)[None],
            (newest + 1) / PEOPLE,
            _bits(state.seen_reports, REPORTS) / REPORTS,
            count / REPORTS,
            _bits(state.pages, PAGES) / PAGES,
        )
        return jnp.concatenate([block.astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """List the blocks of the observation."""
        relations = ", ".join(RELATIONS)
        document = PEOPLE + len(RELATIONS) + PEOPLE + 1
        return (
            Component("start", "person whom the question begins with, one-hot", shape=(PEOPLE,)),
            Component(
                "path", f"[look-up]: relation, one-hot: {relations}; zeros where there is none",
                "1", (MAX_HOPS, len(RELATIONS)),
            ),
            Component(
                "documents",
                (
                    "[document of the last page]: person and relation, one-hot; person named, "
                    "one-hot; years since 999"
                ),
                f"1, {YEARS} years",
                (PER_PAGE, document),
            ),
            Component(
                "hits", "reports of the fact that was searched for", f"{REPORTS} reports",
                scale=REPORTS,
            ),
            Component(
                "newest", "[fact]: 1 + newest person seen, 0 for none", f"{PEOPLE}", (FACTS,)
            ),
            Component("seen", "[fact]: reports seen", f"{REPORTS} reports", (FACTS,), REPORTS),
            Component(
                "count", "[fact]: reports there are, 0 if not known", f"{REPORTS} reports",
                (FACTS,), REPORTS,
            ),
            Component("pages", "[fact]: pages read", f"{PAGES} pages", (FACTS,), PAGES),
        )  # fmt: skip

    def action_components(self) -> tuple[Component, ...]:
        """List the parts of a call."""
        return (
            Component(
                "tool", ", ".join(f"{number} {tool.name}" for number, tool in enumerate(TOOLS))
            ),
            Component("person", "person to search or to answer"),
            Component("relation", f"relation to search: {', '.join(RELATIONS)}"),
            Component("page", "page of the list, from 0"),
            Component("document", "document of the last page to judge, from 0"),
            Component("label", f"judgement: {', '.join(LABELS)}"),
        )

    # -- host side ---------------------------------------------------------------------------------

    def rules(self) -> str:
        """Return the rules and the tools."""
        mode_text = SENTENCES.get(
            self.mode, "Documents judged rightly raise what a right answer earns."
        )
        if self.price:
            mode_text = (
                f"{mode_text} A right answer is worth {self.price} less for each search.".lstrip()
            )
        return "\n".join([
            f"A question is to be answered from a corpus about {PEOPLE} people and their "
            "relations "
            f"({', '.join(RELATIONS)}). What was reported once may have changed: of "
            "several reports about one relation "
            f"of one person, the latest holds. A search lists {LISTED} documents, "
            f"{PER_PAGE} a page, some of them "
            "about something else, and says how many reports of what you asked for are "
            "among them. "
            f"{mode_text}".rstrip(),
            *(tool.line() for tool in TOOLS),
        ])  # fmt: skip

    def describe(self, state: State, params: Params) -> str:
        """Describe the question, the last call, and everything seen."""
        return "\n\n".join(
            [self._question(params), self._result(state, params), self._notes(state, params)]
        )

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe the question at first, then the result of the last call."""
        return self.describe(state, params) if before is None else self._result(state, params)

    def _question(self, params: Params) -> str:
        words = NAMES[int(params.split)][int(params.start)]
        for hop in range(self.hops):
            words = f"the {RELATIONS[int(params.path[hop])]} of {words}"
        return f"Question: Who is {words} today?"

    def _library(self, seed: tuple[int, int]) -> tuple[Any, Any, Any]:
        """Return people and years of the reports of each fact, and how many there are, as lists."""
        people, years, counts = (
            np.asarray(array).tolist() for array in self._all_reports(np.array(seed, np.uint32))
        )
        return people, years, counts

    def _document(self, params: Params, fact: int, report: int) -> str:
        names = NAMES[int(params.split)]
        people, years, _ = self._read((int(params.seed[0]), int(params.seed[1])))
        person = names[fact // len(RELATIONS)]
        relation = RELATIONS[fact % len(RELATIONS)]
        return (
            f"In {years[fact][report]}, the {relation} of {person} was "
            f"{names[people[fact][report]]}."
        )

    def _result(self, state: State, params: Params) -> str:
        last = int(state.last)
        fact = int(state.fact)
        if last < 0:
            return "No search yet."
        if last == WAIT:
            return "A turn has passed."
        if last == JUDGE:
            return "The judgement is noted." if fact >= 0 else "There is no document to judge."
        if last == ANSWER:
            return f"You answered {NAMES[int(params.split)][int(state.answered_person)]}."
        count = self._read((int(params.seed[0]), int(params.seed[1])))[2][fact]
        person = NAMES[int(params.split)][fact // len(RELATIONS)]
        head = (
            f"Search for the {RELATIONS[fact % len(RELATIONS)]} of {person}, page "
            f"{int(state.page) + 1} of {PAGES}"
        )
        lines = [f"{head}. Reports of it in the list: {count}."]
        for number, (about, report) in enumerate(zip(state.about, state.report, strict=True), 1):
            lines.append(f"{number}. {self._document(params, int(about), int(report))}")
        return "\n".join(lines)

    def _notes(self, state: State, params: Params) -> str:
        lines = [
            self._document(params, fact, report)
            for fact, reports_seen in enumerate(np.asarray(state.seen_reports).tolist())
            if reports_seen
            for report in range(REPORTS)
            if reports_seen >> report & 1
        ]
        return (
            "\n".join(["Documents seen so far:", *lines]) if lines else "No documents seen so far."
        )

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools."""
        return [tool.schema() for tool in TOOLS]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with one call: "
            '{"name": "search", "arguments": {"person": "...", "relation": "heir", "page": 1}}, '
            "or a line: search(person=..., relation=heir, page=1)"
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a call.

        Raises:
            ValueError: the text is no call of one of the tools, or names nobody of the corpus.
        """
        tool, arguments = read_tool_call(TOOLS, text)
        names = NAMES[int(params.split)]
        person = 0
        if "person" in arguments:
            person = NUMBERS[int(params.split)].get(arguments["person"].strip().lower()[:100], -1)
            if person < 0:
                raise ValueError(
                    "nobody is called "
                    f"{shorten(arguments['person'])}.{suggest(arguments['person'], names)}"
                )
        action = [
            TOOLS.index(tool),
            person,
            arguments.get("relation", 0),
            arguments.get("page", 1) - 1,
        ]
        action += [arguments.get("document", 1) - 1, arguments.get("label", 0)]
        return np.array(action, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the call as JSON."""
        tool, person, relation, page_, document, label = map(int, action)
        values: dict[str, int | str] = {
            "person": NAMES[int(params.split)][person], "relation": relation, "page": page_ + 1,
            "document": document + 1, "label": label,
        }  # fmt: skip
        return TOOLS[tool].call(**{name: values[name] for name in TOOLS[tool].arguments})

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the answer is right."""
        name = NAMES[int(params.split)][int(state.answered_person)]
        return f"the answer {name} is {'right' if info['success'] else 'wrong'}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the question, the last page, and what was seen."""
        status = f"{self.card.name}   {int(state.searches)} searches"
        return page(
            self._question(params),
            status,
            [self._result(state, params), "", self._notes(state, params)],
        )


def _bits(sets: jax.Array, size: int) -> jax.Array:
    """Return the sizes of sets of up to ``size`` members."""
    return sum((sets >> member & 1 for member in range(size)), jnp.zeros_like(sets))


@privileged_player
class Reader(eqx.Module):
    """The reference player, which reads every page on which a report may stand.

    It believes the latest report.

    It knows only what the notebook shows.
    """

    task: Search = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Search) -> Reader:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Follow the question as far as the notebook goes; search there, or answer at its end."""
        state = view.state
        params = view.params
        newest, count = self.task.newest_names(state, params)
        person = params.start
        fact = jnp.int32(0)
        stuck = jnp.bool_(False)
        for hop in range(self.task.hops):
            here = len(RELATIONS) * person + params.path[hop]
            complete = (count[here] > 0) & (_bits(state.seen_reports, REPORTS)[here] == count[here])
            fact = jnp.where(stuck, fact, here)
            stuck = stuck | ~complete
            person = jnp.where(stuck, person, newest[here])
        page = jnp.argmax(state.pages[fact] >> jnp.arange(PAGES) & 1 == 0)
        tool = jnp.where(stuck, SEARCH, ANSWER)
        who = jnp.where(stuck, fact // len(RELATIONS), person)
        zero = jnp.int32(0)
        action = [tool, who, fact % len(RELATIONS), page, zero, zero]
        return jnp.stack([value.astype(jnp.int32) for value in action]), memory


@privileged_player
class FirstPages(eqx.Module):
    """A heuristic player, which reads the first page about each fact on the way up.

    It believes the newest name there.
    """

    task: Search = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Search) -> FirstPages:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Search for the first fact whose first page was not read, or answer."""
        state = view.state
        params = view.params
        newest, _ = self.task.newest_names(state, params)
        person = params.start
        fact = jnp.int32(0)
        searches = jnp.bool_(False)
        for hop in range(self.task.hops):
            here = len(RELATIONS) * person + params.path[hop]
            fact = jnp.where(searches, fact, here)
            searches = searches | (state.pages[here] == 0)
            person = jnp.where(searches, person, jnp.maximum(newest[here], 0))
        zero = jnp.int32(0)
        action = [
            jnp.where(searches, SEARCH, ANSWER),
            person,
            fact % len(RELATIONS),
            zero,
            zero,
            zero,
        ]
        return jnp.stack([value.astype(jnp.int32) for value in action]), memory
