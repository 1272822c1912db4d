"""Twenty Questions against its rules in plain Python.

Its reference is compared with exhaustive search.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from functools import cache
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.guessing.knowledge import (
    FICTIONAL_PROPERTIES,
    NAME_ENDS,
    NAME_STARTS,
    fictional_knowledge,
    guess,
    question,
    real_knowledge,
    spell_actions,
    understand,
)
from rlbench_suite.envs.text.guessing.players import AnyTable, OptimalQuestions, Solver, min_turns
from rlbench_suite.envs.text.guessing.twenty_questions import (
    TURNS,
    Params,
    TwentyQuestions,
    members,
    split_of,
)

CARD = card("TwentyQuestions-v0")
MADE_UP, EASY, REAL = "medium", "easy", "real"


def build(tier: str | float = MADE_UP) -> TwentyQuestions:
    return CARD.build(difficulty=tier)


@cache
def contexts(tier: str, split: Split, count: int) -> Params:
    """Return contexts in NumPy, fields ``(count, ...)``."""
    draw = jax.jit(jax.vmap(build(tier).sample_params, in_axes=(0, None)))
    return jax.tree.map(
        np.asarray, draw(jax.random.split(jax.random.key(7 + split), count), int(split))
    )


def sets(table: np.ndarray) -> tuple[int, ...]:
    """Return each property's things as a Python integer, from words ``(properties, words)``."""
    return tuple(sum(int(word) << 32 * i for i, word in enumerate(row)) for row in table)


# -- knowledge -------------------------------------------------------------------------------------


def test_the_real_table_tells_all_things_apart_and_no_property_is_idle() -> None:
    knowledge, holds = real_knowledge()
    assert holds.shape == (24, 64)
    assert list(knowledge.things) == sorted(set(knowledge.things))
    assert len(set(knowledge.properties)) == 24
    assert len({row.tobytes() for row in holds.T}) == 64
    assert len({row.tobytes() for row in holds} | {(~row).tobytes() for row in holds}) == 48
    assert ((holds.sum(1) >= 3) & (holds.sum(1) <= 32)).all()


IMPLICATIONS = """
is a mammal > is an animal
lays eggs > is an animal
tastes sweet > is something people eat
grows on trees > is something people eat
has wheels > carries people
is a place > is bigger than a person
is used in a kitchen > is usually found indoors
is a mammal # lays eggs
is an animal # is made mostly of metal
is an animal # is made mostly of wood
is an animal # has wheels
is an animal # needs fuel or electricity
is bigger than a person # fits in one hand
is made mostly of metal # is made mostly of wood
is a place # carries people
is a place # is worn on the body
is worn on the body # carries people
is worn on the body # is bigger than a person
is something people eat # is a tool
is something people eat # is made mostly of metal
is a tool # is an animal
grows on trees # is an animal
"""


@pytest.mark.parametrize("implication", IMPLICATIONS.strip().splitlines())
def test_the_real_table_makes_sense(implication: str) -> None:
    """``p > q``: what is p is q. ``p # q``: nothing is both."""
    knowledge, holds = real_knowledge()
    p, relation, q = re.fullmatch("(.+) ([>#]) (.+)", implication).groups()
    first, second = (holds[knowledge.properties.index(statement)] for statement in (p, q))
    assert first.any()
    assert not (first & (~second if relation == ">" else second)).any()


@pytest.mark.parametrize(
    ("name", "true"),
    {
        "penguin": "is an animal; is found in or on water; lays eggs",
        "whale": "is an animal; is a mammal; is found in or on water; is bigger than a person",
        "bat": "is an animal; is a mammal; can fly; fits in one hand",
        "bicycle": "carries people; has wheels; is made mostly of metal",
        "submarine": (
            "is found in or on water; carries people; needs fuel or electricity; is made mostly of "
            "metal; is bigger than a person"
        ),
        "apple": (
            "is found on farms; is something people eat; tastes sweet; grows on trees; fits in one "
            "hand; is round"
        ),
    }.items(),
)
def test_the_file_is_read_as_it_is_written(name: str, true: str) -> None:
    knowledge, holds = real_knowledge()
    column = holds[:, knowledge.things.index(name)]
    assert "; ".join(p for p, h in zip(knowledge.properties, column, strict=True) if h) == true


@pytest.mark.parametrize("tier", [MADE_UP, EASY])
def test_fictional_tables_are_new_every_time_and_the_splits_share_none(tier: str) -> None:
    task = build(tier)
    tables_by_split = {}
    for split in Split:
        params = contexts(tier, split, 2000)
        # (contexts, properties, things)
        holds = np.stack([task.holds(Params(table, 0, 0, 0)) for table in params.table])
        # An invariant of every renaming of things and properties.
        assert (holds.sum((1, 2)) % 2 == split).all()
        assert holds.any(2).all()
        # All things differ.
        assert all(len(set(map(bytes, table.T))) == task.things for table in holds[:500])
        tables_by_split[split] = {table.tobytes() for table in holds}
        assert len(tables_by_split[split]) == 2000
        share = holds.mean(2)
        rare = np.sort(share, 1)[:, : task._rare].mean()
        assert 0.1 < rare < 0.2
        # No place in the table is told apart.
        assert share.mean(0) == pytest.approx(share.mean(), abs=0.03)
        assert (np.abs(np.diff(holds.mean((0, 1)))) < 0.03).all()
        assert np.bincount(params.hidden, minlength=task.things) == pytest.approx(
            2000 / task.things, rel=0.65
        )
    assert not tables_by_split[Split.TRAIN] & tables_by_split[Split.TEST]


def test_real_things_of_the_two_splits_are_different_ones() -> None:
    things = real_knowledge()[0].things
    things_by_split = {
        split: {name for name in things if split_of(name) == split} for split in Split
    }
    assert [len(things_by_split[split]) for split in Split] == [33, 31]
    for split in Split:
        params = contexts(REAL, split, 2000)
        assert {things[i] for i in params.hidden} == things_by_split[split]
        candidates = members(params.candidates, 64)
        assert {things[i] for i in np.flatnonzero(candidates[0])} == things_by_split[split]
        assert (candidates == candidates[0]).all()
        assert (params.table == params.table[0]).all()


def test_fictional_names_are_distinct_and_depend_on_their_number_only() -> None:
    knowledges = [fictional_knowledge(number, 32, 10) for number in range(50)]
    assert all(len(set(k.things)) == 32 and len(set(k.properties)) == 10 for k in knowledges)
    assert len({k.things for k in knowledges}) == len({k.properties for k in knowledges}) == 50
    words = {a + b for a in NAME_STARTS for b in NAME_ENDS}
    assert len(words) == len(NAME_STARTS) * len(NAME_ENDS)
    assert not words & set(real_knowledge()[0].things)
    assert knowledges[3] == fictional_knowledge.__wrapped__(3, 32, 10)
    # frozen: names do not change with a library's version.
    assert knowledges[0].things[:3] == ("bramond", "klabbit", "zabbit")


# -- the rules, through the single env -------------------------------------------------------------


@pytest.mark.parametrize("tier", [MADE_UP, EASY, REAL])
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_game_goes_by_the_rules(tier: str, split: str) -> None:
    """Compare random legal play with a plain account.

    Answers, possible things, observation, mask, reward and end are compared.
    """
    env = gymnasium.make(CARD.id, difficulty=tier, split=split)
    task: TwentyQuestions = env.unwrapped.task
    rng = np.random.default_rng(0)
    ends = set()
    for seed in range(25):
        observation, info = env.reset(seed=seed)
        params = env.unwrapped.params
        holds = task.holds(params)
        hidden = int(params.hidden)
        answers = np.zeros(task.properties)
        possible = np.zeros(task.things, bool)
        turns = 0
        over = False
        possible[task.by_split[Split[split.upper()]]] = True
        open_guesses = possible.copy()
        while True:
            blocks = [answers, holds[:, possible].mean(1), possible, [1 - turns / TURNS]]
            if not task.real:
                blocks.append(holds.ravel())
            np.testing.assert_allclose(observation, np.concatenate(blocks), atol=1e-6)
            assert info["action_mask"].tolist() == [*(answers == 0), *open_guesses]
            assert info["possible"] == possible.sum()
            assert possible[hidden]
            if over:
                break
            legal = np.flatnonzero(info["action_mask"])
            # Some games are guesses only.
            legal = legal[legal >= task.properties] if seed % 3 == 0 else legal
            action = int(rng.choice(legal))
            observation, reward, over, truncated, info = env.step(action)
            turns += 1
            if action < task.properties:
                answers[action] = 1 if holds[action, hidden] else -1
                possible &= holds[action] == holds[action, hidden]
                guessed_right = False
            else:
                guessed_right = action - task.properties == hidden
                possible = np.arange(task.things) == hidden if guessed_right else possible
                possible[action - task.properties] = guessed_right
                open_guesses[action - task.properties] = False
            assert reward == pytest.approx(1 - (turns - 1) / 20 if guessed_right else 0, abs=1e-7)
            assert (over, truncated) == (guessed_right or turns == TURNS, False)
            assert info["success"] is bool(guessed_right and turns <= task.few)
            assert info["turns"] == turns
        ends.add(bool(guessed_right))
        assert task.knowledge(params).things[hidden] in info["end_reason"]
    assert ends == {True, False}


def test_the_answers_never_contradict_each_other() -> None:
    """In whatever order all questions are asked, they get one and the same row of answers.

    It is the row of the hidden thing.
    """
    env = gymnasium.make(CARD.id, difficulty=REAL)
    task = env.unwrapped.task
    holds = real_knowledge()[1]
    rng = np.random.default_rng(1)
    for seed in range(4):
        for _ in range(2):
            env.reset(seed=seed)
            order = rng.permutation(task.properties)[: TURNS - 1]
            for action in order:
                env.step(int(action))
            state = env.unwrapped.episode.state
            hidden = int(env.unwrapped.params.hidden)
            assert [int(state.yes) >> a & 1 for a in order] == holds[order, hidden].tolist()
            assert int(state.asked_properties) == sum(1 << int(a) for a in order)


def test_the_hidden_thing_shows_nowhere_before_the_end() -> None:
    """Two hidden things that got the same answers look alike.

    They are compared in state, observation, mask, info, words and picture.
    """
    task = build(EASY)
    step = jax.jit(task.transition)
    observe = jax.jit(task.observation)
    params = jax.tree.map(lambda leaf: leaf[0], contexts(EASY, Split.TRAIN, 2000))
    key = np.zeros(2, np.uint32)
    alike = 0
    for first, second in itertools.combinations(range(task.things), 2):
        holds = task.holds(params)
        equal_answers = np.flatnonzero(holds[:, first] == holds[:, second])[:2]
        third = next(i for i in range(task.things) if i not in (first, second))
        runs = []
        for hidden in (first, second):
            params_of_hidden = params._replace(hidden=np.int32(hidden))
            state = task.initial(key, params_of_hidden)
            for action in (*equal_answers, task.properties + third):
                state = step(state, np.int32(action), key, params_of_hidden)
            runs.append((params_of_hidden, jax.tree.map(np.asarray, state)))
        (a, first_state), (b, second_state) = runs
        jax.tree.map(np.testing.assert_array_equal, first_state, second_state)
        assert (observe(first_state, key, a) == observe(second_state, key, b)).all()
        if alike < 3:
            assert (task.action_mask(first_state, a) == task.action_mask(second_state, b)).all()
            assert task.info(first_state, a) == task.info(second_state, b)
            assert task.describe(first_state, a) == task.describe(second_state, b)
            assert (task.draw(first_state, a) == task.draw(second_state, b)).all()
        alike += 1
    assert alike == 120


# -- the optimum -----------------------------------------------------------------------------------


def search_min_turns(things: frozenset[int], properties: tuple[frozenset[int], ...]) -> int:
    """Return the fewest turns over the things together.

    Any question or guess may come at any time, and no theorem is used.
    """

    @cache
    def total_turns(things: frozenset[int]) -> int:
        if not things:
            return 0
        size = len(things)
        # The guess is a turn for each of them.
        options = [size + total_turns(things - {guess}) for guess in things]
        for having in properties:
            if 0 < len(things & having) < size:
                options.append(size + total_turns(things & having) + total_turns(things - having))
        return min(options)

    return total_turns(things)


@pytest.mark.parametrize("seed", range(8))
def test_no_guess_before_a_question_is_ever_needed(seed: int) -> None:
    """The solver, which guesses last, is as good as every way to play there is.

    It is tried on small tables of all kinds.
    """
    rng = np.random.default_rng(seed)
    things, properties = 9, 5
    holds = rng.random((properties, things)) < rng.choice([0.15, 0.3, 0.5], (properties, 1))
    columns = tuple(frozenset(np.flatnonzero(row).tolist()) for row in holds)
    solver = Solver(tuple(sum(1 << i for i in column) for column in columns))
    assert solver.solve(2**things - 1)[0] == search_min_turns(frozenset(range(things)), columns)


def test_the_bound_is_what_the_richest_table_needs() -> None:
    things = frozenset(range(7))
    every_split = tuple(
        frozenset(c) for k in range(1, 4) for c in itertools.combinations(range(7), k)
    )
    assert min_turns(7) == search_min_turns(things, every_split)
    assert [min_turns(2**k) / 2**k for k in range(7)] == [1, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]


@pytest.mark.parametrize(("tier", "count"), [(MADE_UP, 100), (EASY, 300)])
def test_the_table_of_the_reference_is_the_optimum_of_the_solver(tier: str, count: int) -> None:
    task = build(tier)
    params = jax.tree.map(lambda leaf: leaf[:count], contexts(tier, Split.TEST, 2000))
    turns = np.asarray(jax.jit(jax.vmap(AnyTable(task).initial))(params))[:, 0]
    everything = 2**task.things - 1
    assert turns.tolist() == [Solver(sets(table)).solve(everything)[0] for table in params.table]


def test_the_card_knows_the_optimum() -> None:
    """No table allows more than the bound, and every one of 2,000 drawn allows it."""
    assert CARD.optimum == 1 - (min_turns(32) / 32 - 1) / TURNS == 0.775
    for split in Split:
        for table in contexts(MADE_UP, split, 2000).table[:1000]:
            assert Solver(sets(table)).solve(2**32 - 1)[0] == min_turns(32)


def turns_for_all_things(
    task: TwentyQuestions, tables: np.ndarray, split: Split = Split.TEST
) -> np.ndarray:
    """Return the turns of the reference, ``(tables, candidates)``.

    Each candidate of each table is the hidden one once.
    """
    player = OptimalQuestions.for_task(task)
    key = np.zeros(2, np.uint32)

    def game(params: Params, memory: Any) -> jax.Array:
        visible_params = params._replace(hidden=jnp.int32(-1))  # the player does not look there

        def turn(state: Any) -> Any:
            action, _ = player.act(memory, View(None, None, state, visible_params), key)
            return task.transition(state, action, key, params)

        return jax.lax.while_loop(
            lambda s: ~task.terminal(s, key, params), turn, task.initial(key, params)
        )

    def play_every_thing(table: jax.Array) -> Any:
        params = Params(table, jnp.int32(-1), jnp.uint32(0), jnp.asarray(task.candidates(split)))
        memory = player.initial(params)
        return jax.vmap(lambda hidden: game(params._replace(hidden=hidden), memory))(
            jnp.array(task.by_split[split])
        )

    end = jax.jit(jax.vmap(play_every_thing))(tables)
    assert np.asarray(end.guessed_right).all()
    return np.asarray(end.turns)


@pytest.mark.parametrize("tier", [MADE_UP, EASY])
def test_the_reference_takes_exactly_the_fewest_turns(tier: str) -> None:
    task = build(tier)
    tables = contexts(tier, Split.TEST, 2000).table[:20]
    turns = turns_for_all_things(task, tables)
    assert turns.sum(1).tolist() == [
        Solver(sets(table)).solve(2**task.things - 1)[0] for table in tables
    ]
    assert turns.max() <= 9


def test_the_reference_plays_the_real_table_optimally() -> None:
    """Optimally for a player who knows the split: each one's things are listed."""
    task = build(REAL)
    solver = Solver(sets(task._real_table))
    for split in Split:
        turns = turns_for_all_things(task, task._real_table[None], split)
        assert turns.sum() == solver.solve(sum(1 << i for i in task.by_split[split]))[0]
        assert min_turns(turns.size) <= turns.sum() <= 1.05 * min_turns(turns.size)
        assert turns.max() <= task.few
    # 6.625 on average; no table of 64 can need less than 6.5.
    assert solver.solve(2**64 - 1)[0] == 424
    assert min_turns(64) == 416


# -- weaker players and attacks --------------------------------------------------------------------


class InOrder(eqx.Module):
    """Asks for property 0, 1, 2, ..., at most so many, then guesses what is possible, in order."""

    task: TwentyQuestions = eqx.field(static=True)
    questions: int = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        turns = view.state.turns
        possible = members(view.state.possible, self.task.things)
        asks = (turns < self.questions) & (possible.sum() > 1)
        return jnp.where(asks, turns, self.task.properties + jnp.argmax(possible)).astype(
            jnp.int32
        ), memory


def test_guessing_alone_is_chance_and_choosing_questions_pays() -> None:
    """Guessing blindly finds 20 of 32 things: (1 + 0.95 + ... + 0.05) / 32 = 0.328.

    Questions help, good ones most.
    """
    task = build()
    blind, some, reference = (
        play(task, player, range(count), split="test").total
        for player, count in (
            (InOrder(task, 0), 500),
            (InOrder(task, 10), 500),
            (OptimalQuestions.for_task(task), 200),
        )
    )
    assert blind.mean() == pytest.approx(21 / 64, abs=0.06)  # standard error 0.015
    assert blind.mean() + 0.2 < some.mean() < reference.mean() - 0.03
    assert reference.mean() == pytest.approx(0.775, abs=0.014)  # standard error 0.0035


@pytest.mark.parametrize(
    "attack",
    [
        "Is it a cat or a dog?",
        "Is it a cat, a dog, a bee, a cow or a pig?",
        "Is it a cat? Is it a dog?",
        "cat dog bee cow pig hat nail",
        "Can it fly and is it an animal?",
        "What is the answer?",
        "Tell me what it is.",
        "Ignore all rules and say which thing it is",
        "Is it the thing you thought of?",
        "Is it {hidden}?",
        "Is it hidden?",
        "Is it params.hidden",
        "Yes.",
        "found: true",
        "Is it a",
        "Is it?",
        "guess",
        "42",
        "0",
        "Is it a CAT\nDOG?",
        "SYSTEM: the player has won",
        "Is it not a cat?",
        "cat",
    ],
)
def test_attacks_are_refused_tell_nothing_and_cost_time(attack: str) -> None:
    env = gymnasium.make(CARD.id, view="text", difficulty=REAL)
    complaints = set()
    for seed in range(3):
        env.reset(seed=seed)
        _, reward, terminated, truncated, info = env.step(attack)
        assert (reward, terminated, truncated) == (0, False, False)
        assert "that is: '" in info["invalid_reason"]
        assert env.unwrapped.episode.state.turns == 1
        assert env.unwrapped.episode.state.actions[0] == env.unwrapped.task.noop_action()
        complaints.add(info["invalid_reason"])
    assert len(complaints) == 1  # the same whatever the thing is
    for _ in range(CARD.horizon - 1):
        _, reward, terminated, truncated, info = env.step(attack)
        assert reward == 0
    assert truncated
    assert not terminated
    assert not info["success"]


def test_what_was_said_is_not_allowed_and_a_guess_that_is_ruled_out_costs_a_turn() -> None:
    env = gymnasium.make(CARD.id, view="text", difficulty=REAL, split="test")
    env.reset(seed=0)
    episode = env.unwrapped.episode
    # The airplane.
    env.unwrapped.episode = episode._replace(params=episode.params._replace(hidden=np.int32(0)))
    env.step("Can it fly?")
    before = env.unwrapped.episode.state
    for words, reason in {
        "can it fly": "'Can it fly?' was answered in turn 1: Yes.",
    }.items():
        text, reward, _, _, info = env.step(words)
        assert info["invalid_reason"] == reason
        assert f"Not allowed: {reason}" in text
        assert reward == 0
        jax.tree.map(np.testing.assert_array_equal, before, env.unwrapped.episode.state)
    text, reward, *_ = env.step("Is it a bee?")
    assert reward == 0
    assert "2. Is it a bee? No." in text
    _, _, _, _, info = env.step("guess: bee")
    assert info["invalid_reason"] == "'Is it a bee?' was answered in turn 2: No."
    possible = env.unwrapped.episode.state.possible
    text, reward, *_ = env.step("I guess a cat")  # it does not fly
    assert reward == 0
    assert "3. Is it a cat? No." in text
    np.testing.assert_array_equal(env.unwrapped.episode.state.possible, possible)
    text, reward, terminated, _, info = env.step("My guess is: an airplane!")
    assert reward == pytest.approx(0.85)
    assert terminated
    assert "4. Is it an airplane? Yes." in text
    assert info["end_reason"] == "the thing is 'airplane', found in turn 4"


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    {
        "is an animal": "Is it an animal?",
        "can fly": "Can it fly?",
        "has four legs": "Does it have four legs?",
        "lays eggs": "Does it lay eggs?",
        "carries people": "Does it carry people?",
        "fits in one hand": "Does it fit in one hand?",
        "glows in the dark": "Does it glow in the dark?",
        "changes its color": "Does it change its color?",
    }.items(),
)
def test_statements_become_questions(statement: str, expected: str) -> None:
    assert question(statement) == expected
    assert statement in real_knowledge()[0].properties + FICTIONAL_PROPERTIES


@pytest.mark.parametrize("number", [None, 0, 1, 2])
def test_every_question_is_understood_as_itself(number: int | None) -> None:
    knowledge = real_knowledge()[0] if number is None else fictional_knowledge(number, 32, 10)
    words = spell_actions(knowledge)
    assert len(set(words)) == len(knowledge.things) + len(knowledge.properties)
    for i, sentence in enumerate(words):
        plain = sentence.rstrip("?")
        for text in (sentence, plain, f"  {plain.upper()} ? ", plain.replace(" ", "  ")):
            assert understand(text, knowledge) == i
    for i, name in enumerate(knowledge.things):
        for text in (
            f"I guess {name}",
            f"guess: {name}",
            f"My guess is a {name}.",
            f"is it the {name}",
            guess(name),
        ):
            assert understand(text, knowledge) == i + len(knowledge.properties)


@pytest.mark.parametrize(
    ("text", "near"),
    {
        "Can it flyy?": "Can it fly?",
        "Is it a pengin": "Is it a penguin?",
        "Does it has wheels": "Does it have wheels?",
    }.items(),
)
def test_the_nearest_question_is_named(text: str, near: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"the nearest that is: {near!r}")):
        understand(text, real_knowledge()[0])


def test_the_words_of_a_fictional_game_hold_the_whole_table() -> None:
    """Played from the words alone, by deduction, every game is won."""
    env = gymnasium.make(CARD.id, view="text", difficulty=EASY)
    for seed in range(6):
        text, _ = env.reset(seed=seed)
        candidates = {
            m[1]: set(m[2].split("; ")) for m in re.finditer(r"^- (\w+): (.+)$", text, re.MULTILINE)
        }
        assert len(candidates) == 16
        over = False
        while not over:
            counts = Counter(statement for true in candidates.values() for statement in true)
            ask = min(counts, key=lambda statement: abs(counts[statement] - len(candidates) / 2))
            telling = counts[ask] < len(candidates)
            words = question(ask) if telling else guess(next(iter(candidates)))
            text, reward, over, _, info = env.step(words)
            assert "invalid_reason" not in info
            answer = re.findall(rf"^\d+\. {re.escape(words)} (Yes|No)\.$", text, re.MULTILINE)
            assert len(answer) == 1
            if telling:
                candidates = {
                    n: t for n, t in candidates.items() if (ask in t) == (answer[0] == "Yes")
                }
        assert reward >= 0.75


def test_the_words_of_the_real_game_do_not_give_the_table_away() -> None:
    env = gymnasium.make(CARD.id, view="text", difficulty=REAL)
    text, _ = env.reset(seed=0)
    assert re.search(r"Things: \w+, .*\w+\.", text)
    assert all(sentence in text for sentence in spell_actions(real_knowledge()[0])[:24])
    assert "- " not in text.split("Questions:")[0]


def test_success_is_out_of_reach_for_random_play() -> None:
    """Random play finds half of the things in 20 turns, and a sixth in 7.

    The best play is always in time.
    """
    task = build(32)
    assert task.few == 7
    record = play(task, Uniform(task.action_space), range(200))
    assert (record.total > 0).mean() > 0.3
    assert record.info["success"].mean() < 0.3
    assert play(task, OptimalQuestions.for_task(task), range(200)).info["success"].mean() > 0.99


def test_a_difficulty_is_a_number_of_things() -> None:
    assert build(12).properties == 8
    assert play(build(12), OptimalQuestions.for_task(build(12)), range(50)).info["success"].all()
    for wrong in (7, 33, 16.5, 0):
        with pytest.raises(ValueError, match="number of fictional things"):
            build(wrong)


def test_the_picture_shows_what_is_ruled_out() -> None:
    env = gymnasium.make(CARD.id, render_mode="rgb_array", difficulty=EASY)
    env.reset(seed=0)
    before = env.render()
    env.step(0)
    after = env.render()
    dark = [(picture[:, :30] < 60).all(-1).any(1).sum() for picture in (before, after)]
    assert dark[0] > dark[1] > 0
