"""Heuristic players beside the references.

Their scores are measured, and each rule is compared with enumeration or plain Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import chess
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.record import Record
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View, player_for
from rlbench_suite.core.registry import card, cards
from rlbench_suite.core.task import Split
from rlbench_suite.core.task_card import Score, TaskCard
from rlbench_suite.envs.text.chess.endgame.task import LOST_PIECE, STALEMATED
from rlbench_suite.envs.text.chess.notation import fen, move_name
from rlbench_suite.envs.text.diagnosis.task import COST, PERCENT
from rlbench_suite.envs.text.guessing.knowledge import real_knowledge
from rlbench_suite.envs.text.guessing.twenty_questions import TURNS
from rlbench_suite.envs.text.survival.newcomer import in_sight
from rlbench_suite.envs.text.survival.rules import ACHIEVEMENTS, DO, SLEEP
from rlbench_suite.envs.text.survival.state import State
from rlbench_suite.envs.text.wordle.task import encode, feedback
from rlbench_suite.envs.tools.interpreter.interpreter import CASES, EXAMPLES
from rlbench_suite.envs.tools.interpreter.specifications import SPECIFICATIONS
from rlbench_suite.envs.tools.office.instance import instance
from rlbench_suite.envs.tools.search.corpus import PER_PAGE, RELATIONS, list_documents
from rlbench_suite.envs.tools.sql.sql import instance as question

pytestmark = pytest.mark.of_variants

CARDS = [each for each in cards().values() if "heuristic" in each.yardsticks]
CLOSE = {("Recommend-v0", "easy"), ("TextNav-v0", None)}
"""Tiers in which the rule is nearly best.

Four questions cost 0.08 together, and a small house costs few steps.
"""

NO_BETTER = {("Chess-v0", "hard")}
"""Tiers that the rule loses nearly always, as random play does."""


def play_heuristic(task: Any, episodes: int) -> Record:
    """Return test episodes of the heuristic player of a task."""
    return play(
        task, player_for(task, task.card.yardsticks["heuristic"]), range(episodes), split="test"
    )


def contexts(task: Any, number: int) -> Any:
    """Draw contexts of the test split, batched."""
    keys = jax.random.split(jax.random.key(5), number)
    return jax.jit(jax.vmap(lambda key: task.sample_params(key, jnp.int32(Split.TEST))))(keys)


def agrees(measured: Score, exact: float) -> bool:
    """Return whether a measured mean is near the exact one.

    It is if it lies within twice its interval's half-width.
    """
    return abs(measured.mean - exact) <= measured.high - measured.low


@pytest.mark.parametrize("each", CARDS, ids=[each.name for each in CARDS])
def test_the_heuristic_scores_between_random_play_and_the_reference(each: TaskCard) -> None:
    for tier in each.difficulties or (None,):
        scores = each.scores(tier)
        if (each.name, tier) not in NO_BETTER:
            assert scores["random"].high < scores["heuristic"].low, tier
        if (each.name, tier) in CLOSE:
            assert scores["heuristic"].mean < scores["reference"].mean
        else:
            assert scores["heuristic"].high < scores["reference"].low, tier


@pytest.mark.parametrize("name", ["TextMazePartial-v0", "GuessMyCity-v0", "Recommend-v0"])
def test_other_episodes_agree_with_the_measured_score(name: str) -> None:
    task: Any = card(name).build()
    record = play_heuristic(task, 256)
    measured = task.card.scores(None)["heuristic"]
    returns = np.asarray(record.total, float)
    assert (
        abs(returns.mean() - measured.mean)
        <= 4 * returns.std() * (1 / 256 + 1 / measured.episodes) ** 0.5
    )
    # An illegal action is a step more, and changes nothing else.
    legal = {"GuessMyCity-v0": ("turns", 0), "Recommend-v0": ("known", 1)}
    if name in legal:
        measure, more = legal[name]
        np.testing.assert_array_equal(record.length, record.info[measure] + more)


def test_a_word_that_is_guessed_fits_all_marks_before() -> None:
    task: Any = card("Wordle-v0").build()
    env: Any = gymnasium.make("rlsuite/Wordle-v0", split="test").unwrapped
    record = play_heuristic(task, 64)
    for seed, (actions, length) in enumerate(zip(record.actions, record.length, strict=True)):
        env.reset(seed=seed)
        hidden = task.letters[int(env.params.hidden)]
        guesses = task.letters[actions[:length]]
        for before, after in itertools.combinations(guesses, 2):
            assert encode(feedback(before, after)) == encode(feedback(before, hidden))


@pytest.mark.parametrize("name", ["GuessMyCity-v0", "TwentyQuestions-v0"])
def test_questions_in_order_need_as_many_turns_as_on_paper(name: str) -> None:
    """Over all real things of the test split: questions that split what is left, then the guess."""
    task: Any = card(name).build(difficulty="real")
    holds = real_knowledge(task.file)[1]
    earned = []
    for hidden in task.by_split[Split.TEST]:
        remaining = set(task.by_split[Split.TEST])
        turns = 1
        for answers in holds:
            alike = {candidate for candidate in remaining if answers[candidate] == answers[hidden]}
            turns += alike != remaining
            remaining = alike
        assert remaining == {hidden}
        earned.append(1 - (turns - 1) / TURNS)
    assert agrees(card(name).scores("real")["heuristic"], float(np.mean(earned)))


def test_all_symptoms_are_worth_what_bayes_says() -> None:
    """The score is the chance of the likeliest disease over all answers to the symptoms.

    Tables are drawn.
    """
    task: Any = card("Diagnosis-v0").build()
    symptoms = task.diseases - 1
    params = contexts(task, 2000)
    # (tables, diseases, symptoms)
    chance = PERCENT[0][np.asarray(params.levels)[..., :symptoms]] / 100
    prior = np.asarray(params.weights) / np.asarray(params.weights).sum(1, keepdims=True)
    best_chance = sum(
        (prior * np.where(answers, chance, 1 - chance).prod(2)).max(1)
        for answers in itertools.product((False, True), repeat=symptoms)
    )
    assert agrees(
        task.card.scores(None)["heuristic"], float(best_chance.mean() - symptoms * COST[0] / 100)
    )


def test_who_asks_everything_recommends_the_best_item() -> None:
    assert all(
        card("Recommend-v0").scores(tier)["heuristic"].success == 1
        for tier in card("Recommend-v0").difficulties
    )


@pytest.mark.parametrize("layout", ["double_t", "umaze"])
def test_the_wall_follower_finds_the_goal_of_a_maze_without_rings(layout: str) -> None:
    """It passes each way at most twice, once in each direction, and meets no wall."""
    task: Any = card("TextMaze-v0", layout=layout).build()
    record = play_heuristic(task, 64)
    cells = sum(bin(row).count("1") for row in task._cells.tolist())
    assert record.info["reached"].all()
    assert (record.length <= 2 * (cells - 1)).all()
    assert not record.info["bumps"].any()


def test_first_pages_tell_as_often_as_they_show_the_latest_report() -> None:
    """With one look-up. Where they show none, one guess in 31 is right by luck."""
    task: Any = card("Search-v0").build(difficulty="easy")
    params = contexts(task, 4000)
    facts = len(RELATIONS) * params.start + params.path[:, 0]
    about, report = jax.jit(jax.vmap(lambda seed, fact: list_documents(seed, fact, task.boost)))(
        params.seed, facts
    )
    latest = ((about == facts[:, None]) & (report == 0))[:, :PER_PAGE].any(1).mean()
    measured = task.card.scores("easy")["heuristic"]
    width = measured.high - measured.low
    assert latest - width <= measured.mean <= latest + (1 - latest) / 31 + width


def test_who_confines_the_king_mates_at_once_where_that_can_be_and_gives_nothing_away() -> None:
    """Mates in one are those of the tables.

    With a queen there is always a move without stalemate or loss.
    """
    record = play_heuristic(card("Endgame-v0").build(), 256)
    at_once = record.info["shortest"] == 1
    assert at_once.any()
    assert (record.length[at_once] == 1).all()
    assert not np.isin(record.info["end"], (STALEMATED, LOST_PIECE)).any()


def test_who_captures_takes_the_piece_that_is_worth_most_and_any_of_its_captors() -> None:
    """By python-chess; a capture in passing ends on an empty square and counts nothing."""
    worth = {
        chess.PAWN: 100,
        chess.KNIGHT: 320,
        chess.BISHOP: 330,
        chess.ROOK: 500,
        chess.QUEEN: 900,
    }
    env: Any = gymnasium.make("rlsuite/Chess-v0", difficulty="easy").unwrapped
    player = player_for(env.task, env.task.card.yardsticks["heuristic"])

    def act_once(observation: Any, mask: Any, key: jax.Array) -> jax.Array:
        return player.act((), View(observation, mask, None, None), key)[0]

    act = jax.jit(jax.vmap(act_once, (None, None, 0)))
    keys = jax.random.split(jax.random.key(0), 64)
    captures = 0
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        for _ in range(40):
            position = env.episode.state.position
            black = bool(env.params.black)
            board = chess.Board(fen(position, black, 1))
            worths = {
                move.uci(): worth.get(board.piece_type_at(move.to_square), 0)
                for move in board.legal_moves
            }
            best = {name for name, gain in worths.items() if gain == max(worths.values())}
            moves = np.asarray(act(observation, info["action_mask"], keys))
            played_moves = {move_name(int(move), position, black) for move in moves}
            assert played_moves == best if len(best) < 4 else played_moves <= best
            captures += max(worths.values()) > 0
            observation, _, terminated, truncated, info = env.step(moves[0])
            if terminated or truncated:
                break
    assert captures > 20


def test_the_newcomer_needs_only_what_is_shown_and_comes_to_tools_of_stone() -> None:
    """It plays without the world, creatures and rules.

    What it takes for its view is what the words show.
    """
    env: Any = gymnasium.make("rlsuite/Survival-v0", split="test").unwrapped
    task = env.task
    player = player_for(task, task.card.yardsticks["heuristic"])
    act: Any = jax.jit(
        lambda observation, state, key: player.act((), View(observation, None, state, None), key)[0]
    )
    visible_fields = ("facing", "food", "drink", "energy", "items", "tools", "unlocked")
    observation, _ = env.reset(seed=0)
    for step in range(300):
        state = env.episode.state
        visible_state = State(
            **{
                name: getattr(state, name) if name in visible_fields else None
                for name in State._fields
            }
        )
        action = int(act(observation, visible_state, jax.random.key(step)))
        materials, looks = task._view(env.episode.state, env.params)
        if step % 20 == 0:
            cells = (
                np.asarray(in_sight(jnp.asarray(observation)))[:, 13:20, None] >> np.arange(12, 21)
                & 1
                == 1
            )
            for kind, there in enumerate(cells):
                np.testing.assert_array_equal(
                    there, materials == kind if kind < 13 else looks == kind - 13
                )
        if action == SLEEP:
            assert env.episode.state.energy <= 3
        if action == DO:  # a material or a creature, and no empty ground
            row, column = ((3, 3), (3, 5), (2, 4), (4, 4))[int(env.episode.state.facing)]
            assert materials[row, column] >= 4 or looks[row, column] >= 0
        observation, _, over, _, info = env.step(action)
        if over:
            break
    reached = {name for i, name in enumerate(ACHIEVEMENTS) if info["unlocked"] >> i & 1}
    assert reached >= {
        "drink",
        "collect wood",
        "place table",
        "make wood pickaxe",
        "collect stone",
        "make stone sword",
    }


def test_who_never_refuses_is_right_in_small_offices_unless_one_must_refuse() -> None:
    """Their templates call no API twice.

    One instance in eight of the templates that know obstacles has one.
    """
    scores = card("OfficeApps-v0").scores
    assert agrees(scores("easy")["heuristic"], 1 - 3 / 8 / 8)
    assert agrees(scores("medium")["heuristic"], 1 - 1 / 8)
    record = play_heuristic(card("OfficeApps-v0").build(difficulty="easy"), 128)
    assert 0 < record.info["must_refuse"].sum() < 128
    np.testing.assert_array_equal(record.info["success"], ~record.info["must_refuse"].astype(bool))


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_who_repeats_nothing_is_right_in_large_offices_where_a_plan_neither_refuses_nor_repeats(
    difficulty: str,
) -> None:
    task: Any = card("OfficeAppsLarge-v0").build(difficulty=difficulty)
    env: Any = gymnasium.make(
        "rlsuite/OfficeAppsLarge-v0", split="test", difficulty=difficulty
    ).unwrapped
    straight = []
    for seed in range(64):
        env.reset(seed=seed)
        names = [name for name, _ in instance(task.tier, 1, int(env.params.number)).solution]
        straight.append(len(set(names)) == len(names) and names[-1] != "assistant_refuse")
    np.testing.assert_array_equal(play_heuristic(task, 64).info["success"], straight)
    assert 0 < sum(straight) < 64


ONE_TABLE = {
    "easy": ("What is the average age",),
    "medium": ("For each year, what is the total",),
    "hard": ("never occur",),
}
"""Question of the test split, of each difficulty, for which one table and one condition do."""


@pytest.mark.parametrize("difficulty", ONE_TABLE)
def test_keywords_answer_questions_of_one_table_and_one_condition(difficulty: str) -> None:
    task: Any = card("SQL-v0").build(difficulty=difficulty)
    env: Any = gymnasium.make("rlsuite/SQL-v0", split="test", difficulty=difficulty).unwrapped
    simple = []
    for seed in range(48):
        env.reset(seed=seed)
        text = question(task.tier, 1, int(env.params.number)).question
        simple.append(any(words in text for words in ONE_TABLE[difficulty]))
    np.testing.assert_array_equal(play_heuristic(task, 48).info["success"], simple)
    assert 0 < sum(simple) < 48


def guesses(k: int) -> list[Callable[[list[int]], list[int]]]:
    """Return the programs that first come to mind, in plain Python."""
    some = (lambda x: True, lambda x: x < k, lambda x: x > k)
    each = (
        lambda x: x, lambda x: x + k, lambda x: x - k, lambda x: k - x, lambda x: x * k,
        lambda x: x // k, lambda x: x % k,
    )  # fmt: skip
    return [
        *(lambda xs, a=a, f=f: [f(x) for x in xs if a(x)] for a in some for f in each),
        *(
            lambda xs, a=a, f=f: [sum(f(x) for x in xs if a(x))]
            for a in some
            for f in (lambda x: 1, lambda x: x)
        ),
        *(lambda xs, a=a: [x for x in xs[::-1] if a(x)] for a in some),
    ]


@pytest.mark.parametrize(
    ("difficulty", "guessable"),
    [
        ("easy", {"K minus each number", "the remainder of each number by K"}),
        ("medium", {"the sum of the numbers greater than K"}),
        ("hard", {"the numbers less than K, from the last to the first"}),
    ],
)
def test_the_first_program_that_fits_is_that_of_plain_python(
    difficulty: str, guessable: set[str]
) -> None:
    task: Any = card("Interpreter-v0").build(difficulty=difficulty)
    player = player_for(task, task.card.yardsticks["heuristic"])
    params, key = contexts(task, 96), jax.random.key(0)

    def answered(context: Any) -> jax.Array:
        state = task.initial(key, context)
        action, _ = player.act((), View(None, None, state, context), key)
        return task.transition(state, action, key, context).verdict == 1

    outputs, counts = jax.jit(jax.vmap(task.target_outputs))(params)
    right = []
    for number in range(96):
        context, output, count = jax.tree.map(
            lambda leaf, at=number: np.asarray(leaf[at]), (params, outputs, counts)
        )
        lists = [context.inputs[case, : context.lengths[case]].tolist() for case in range(CASES)]
        targets = [output[case, : count[case]].tolist() for case in range(CASES)]
        fits = [[guess(values) for values in lists] for guess in guesses(int(context.constant))]
        first = next(
            (results for results in fits if results[:EXAMPLES] == targets[:EXAMPLES]), None
        )
        right.append(first == targets)
        assert not right[-1] or SPECIFICATIONS[int(context.function)].words in guessable
    np.testing.assert_array_equal(jax.jit(jax.vmap(answered))(params), right)
    assert sum(right) > 16
