"""Test conversations.

They have the episode and score of the environment, whatever a model writes around its actions.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from hostile_replies import HOSTILE, MAX_READING_SECONDS

from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Described
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.envs.memory.t_maze import ACTIONS
from rlbench_suite.envs.text.guessing.knowledge import spell_actions
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.language.session import UNREADABLE_CALLS, EpisodeSession, PuzzleSession, begin
from rlbench_suite.puzzle.puzzle import CLOSING, OPENING

TEXTS = [
    ("Wordle-v0", None),
    ("TwentyQuestions-v0", "medium"),
    ("TwentyQuestions-v0", "real"),
    ("OfficeApps-v0", "easy"),
    ("OfficeApps-v0", "hard"),
    ("TMaze-v0", None),
]
OTHER_TASKS = ("DeepSeaTreasure-v0", "Inventory-v0", "SAT-v0", "Sudoku4-v0", "QuadcopterHover-v0")
MAX_TURNS = 40


def open_session(task_id: str, **keywords: Any) -> EpisodeSession:
    session = begin(task_id, one_shot=False, **keywords)
    assert isinstance(session, EpisodeSession)
    return session


def reference(session: EpisodeSession) -> Callable[[], np.ndarray]:
    policy = session.view.reference()
    key = jax.random.key(0)
    memory = policy.initial(session.view.params)
    act = jax.jit(lambda *arguments: policy.act(*arguments))  # noqa: PLW0108  # bound methods of equinox have no hash

    def choose() -> np.ndarray:
        nonlocal memory
        task = session.task
        state = session.view.episode.state
        params = session.view.params
        view = View(
            task.observation(state, key, params), task.action_mask(state, params), state, params
        )
        action, memory = act(memory, view, key)
        return np.asarray(action)

    return choose


def spell_action(session: EpisodeSession, action: np.ndarray) -> str:
    return session.task.spell(action, session.view.episode.state, session.view.params)


def test_an_episode_that_is_not_over_has_no_score_yet() -> None:
    session = begin("Wordle-v0", seed=3)
    session.reply("<action>crane</action>")
    assert math.isnan(session.score)
    assert math.isfinite(session.score_so_far)
    while not session.done:
        session.reply("<action>crane</action>")
    assert session.score == session.score_so_far
    assert math.isnan(begin("Sudoku4-v0").score)


def test_the_last_observation_under_a_time_limit_asks_for_nothing() -> None:
    env = gymnasium.make("rlsuite/TwentyQuestions-v0", view="text")
    env.reset(seed=0)
    over = False
    text = ""
    while not over:
        assert "The episode is over" not in text
        text, _, terminated, truncated, _ = env.step("Is it alive?")
        over = terminated or truncated
    assert truncated
    assert env.unwrapped.task.how_to_act() not in text
    assert "The episode is over: the time limit is reached." in text


@pytest.mark.parametrize(("name", "difficulty"), TEXTS)
@pytest.mark.parametrize("history", ["delta", "full", "window"])
def test_the_reference_scores_in_words_what_it_scores_in_numbers(
    name: str, difficulty: str, history: Any
) -> None:
    wrapped = (
        "{}",
        "I think so.\n<action>{}</action>",
        "<think>no: <action>x</action></think>\n{}",
    )
    for seed in range(3):
        session = open_session(
            name, seed=seed, split="test", difficulty=difficulty, history=history, window=2
        )
        plain = gymnasium.make(f"rlsuite/{name}", split="test", difficulty=difficulty)
        plain.reset(seed=seed)
        choose = reference(session)
        total = 0.0
        info = {}
        while not session.done and session.turns < MAX_TURNS:
            action = choose()
            turn = session.reply(wrapped[session.turns % 3].format(spell_action(session, action)))
            _, reward, terminated, truncated, info = plain.step(action)
            assert (turn.reward, turn.done) == (reward, terminated or truncated)
            total += float(reward)
        assert (session.score_so_far, session.total_reward) == (info["score"], total)
        assert session.success == (session.done and info["success"])
        np.testing.assert_equal(session.view.episode, plain.unwrapped.episode)


@pytest.mark.parametrize("name", OTHER_TASKS)
def test_other_tasks_play_the_same_episode(name: str) -> None:
    session = open_session(name, seed=1)
    plain = gymnasium.make(f"rlsuite/{name}")
    plain.reset(seed=1)
    choose = reference(session)
    while not session.done and session.turns < 6:
        action = choose() if session.turns % 2 else session.task.noop_action()
        reply = spell_action(session, action) if session.turns % 2 else "no such thing"
        turn = session.reply(f"So: <action>{reply}</action>")
        _, _, *over, info = plain.step(action)
        assert turn.done == any(over[:2])
        assert session.score_so_far == info["score"]
        if session.turns % 2:
            assert "Not understood" in turn.text
            assert turn.done or turn.text.endswith(session.task.how_to_act())


@pytest.mark.every_puzzle
def test_a_puzzle_scores_as_its_verdict(card: TaskCard) -> None:
    puzzle = puzzle_of(card.id)
    instance = puzzle.generate(3, "test")
    best = puzzle.solve(instance)
    for lenient in (False, True):
        for play, earns in (
            (lambda s: s.reply(f"So: {OPENING}{best}{CLOSING}"), 1.0),
            (lambda s: s.call("submit_answer", {"answer": best}), 1.0),
            (
                lambda s: s.call(
                    "submit_answer", json.dumps({"answer": f" {OPENING}{best}{CLOSING}\n"})
                ),
                1.0,
            ),
            (lambda s: s.reply("I do not know."), 0.0),
        ):
            session = begin(card.id, seed=3, split="test", lenient=lenient)
            turn = play(session)
            assert (session.score, turn.reward, turn.done, session.done) == (
                earns,
                earns,
                True,
                True,
            ), card.id
            assert session.success == (earns == 1)
            assert turn.text.endswith(f" Score: {earns:g}.")
            with pytest.raises(RuntimeError, match="over"):
                session.reply("again")


def test_an_unreadable_submission_may_be_repeated_and_a_judged_one_counts() -> None:
    session = begin("Sudoku4-v0", seed=1)
    assert isinstance(session, PuzzleSession)
    best = session.puzzle.solve(session.instance)
    for arguments in ({}, '{"answer": 3}'):
        turn = session.call("submit_answer", arguments)
        assert not turn.done
        assert turn.reward == 0
        assert "format" in turn.text
    assert session.call("submit_answer", {"answer": best}).reward == 1

    session = begin("Sudoku4-v0", seed=1)
    wrong = "1 1 1 1\n" * 3 + "1 1 1 1"
    assert session.call("submit_answer", {"answer": wrong}).done
    assert session.score == 0

    session = begin("Sudoku4-v0", seed=1)
    turns = [session.call("submit", {"answer": "1"}) for _ in range(UNREADABLE_CALLS)]
    assert [turn.done for turn in turns] == [False] * (UNREADABLE_CALLS - 1) + [True]
    assert session.score == 0


@pytest.mark.parametrize(("name", "difficulty"), TEXTS)
def test_rules_are_said_once_and_the_format_again_only_after_an_error(
    name: str, difficulty: str
) -> None:
    session = open_session(name, seed=0, difficulty=difficulty)
    how = session.task.how_to_act()
    assert session.task.rules() in session.system
    assert how in session.system
    assert how not in session.opening
    choose = reference(session)
    assert how not in session.reply(spell_action(session, choose())).text
    if not session.done:
        turn = session.reply("hm")
        assert turn.text.startswith("Not understood: ")
        assert turn.done or turn.text.endswith(how)
    while not session.done and session.turns < 300:
        turn = session.reply(spell_action(session, choose()))
    last = turn.text.splitlines()[-1]
    assert turn.text.count("The episode is over: ") == 1
    assert last.startswith("The episode is over: ")
    assert f"Score: {session.score:.2f}" in last
    assert how not in turn.text
    assert "left" not in last


def test_messages_are_what_a_chat_endpoint_takes() -> None:
    session = open_session("OfficeApps-v0", seed=0, difficulty="hard")
    session.reply("contacts.list()")
    session.call("payments_balance", {})
    session.call("contacts_get", '{"contact": "x"}')
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for i, name in enumerate(("contacts_list", "assistant_finish", "contacts_list"))
    ]
    turn = session.play({"role": "assistant", "content": None, "tool_calls": calls})
    assert turn.done
    messages = session.messages()
    assert [m["role"] for m in messages] == [
        *("system", "user", "assistant", "user", "assistant", "tool", "assistant", "tool"),
        *("assistant", "tool", "tool", "tool"),
    ]
    call_ids = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    answered_ids = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert call_ids == answered_ids
    assert len(set(call_ids)) == len(call_ids)
    assert "not made" in messages[-1]["content"]
    assert "Not understood: contacts.get: contact is a whole number" in messages[7]["content"]
    json.dumps(messages)


def test_a_window_keeps_the_last_turns_and_all_that_is_known() -> None:
    session = open_session("TwentyQuestions-v0", seed=0, history="window", window=2)
    questions = [
        word
        for word in spell_actions(session.task.knowledge(session.view.params))
        if not word.startswith("Is it a ")
    ]
    for question in questions[:4]:
        session.reply(question)
    system, opening, *turn_messages = session.messages()
    assert system["content"] == session.system
    assert opening["content"].startswith(session.opening)
    assert "first 2 turns are left out" in opening["content"]
    assert [m["role"] for m in turn_messages] == ["assistant", "user"] * 2
    for question in questions[:4]:
        assert question in turn_messages[-1]["content"]
    assert questions[0] not in turn_messages[1]["content"]


def test_history_says_everything_or_what_changed() -> None:
    full, delta = (
        open_session("Wordle-v0", seed=0, history=history) for history in ("full", "delta")
    )
    for word in ("crane", "about"):
        texts = full.reply(word).text, delta.reply(word).text
    assert "C R A N E" in texts[0]
    assert "C R A N E" not in texts[1]
    assert "A B O U T" in texts[1]
    assert delta.score_so_far == full.score_so_far
    with pytest.raises(ValueError, match="delta"):
        begin("Wordle-v0", history="deltas")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        begin("Wordle-v0", history="window", window=0)


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "**forward**",
            "`forward`",
            "forward.",
            '"forward"',
            "```\nforward\n```",
            "Action: forward",
        ),
        *(
            "**Action:** forward",
            "I walk.\n\nforward",
            "I walk:\n```\nforward\n```\nThat is all.",
            "\\boxed{forward}",
        ),
        "<action>`forward`</action>",
        "<action>**forward**.</action> That is it.",
    ],
)
def test_marks_around_an_action_count_only_when_strict(reply: str) -> None:
    for lenient in (False, True):
        session = open_session("TMaze-v0", seed=0, lenient=lenient)
        assert ("Not understood" in session.reply(reply).text) == (not lenient)


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("left", "left"),
        (" Left\n", "left"),
        ("<action>right</action> or rather <action>left</action>", "left"),
        ("<action>left</action> and not right", "left"),
        ("Hm. <action>left", "left"),
        ("<action>\n left\n</action>", "left"),
        ("<think>right? <action>right</action></think>left", "left"),
        ("right</think>left", "left"),
        ("<think>right</think><think>right</think><action>left</action>", "left"),
        ("<think><action>left</action>", ""),
        ("<action>left</action> <action>up</action>", ""),
        ("<action>left right</action>", ""),
        ("turn left", ""),
        ("", ""),
    ],
)
def test_one_rule_says_which_action_counts(reply: str, action: str) -> None:
    session = open_session("TMaze-v0", seed=0)
    assert session.view.reads(reply) == bool(action)
    if action:
        assert session.view._read_reply(reply) == ACTIONS.index(action)


@pytest.mark.parametrize("name", ["Wordle-v0", "TwentyQuestions-v0", "OfficeApps-v0", "TMaze-v0"])
@pytest.mark.parametrize("lenient", [False, True])
def test_hostile_replies_are_quick_and_play_the_noop(name: str, lenient: bool) -> None:
    for kind, reply in HOSTILE.items():
        session = open_session(name, seed=0, lenient=lenient)
        plain = open_session(name, seed=0)
        plain.reply("")
        began = time.process_time()
        session.reply(reply)
        took = time.process_time() - began
        np.testing.assert_equal(session.view.episode, plain.view.episode, kind)
        assert took < MAX_READING_SECONDS, (kind, took)


def test_hostile_calls_play_the_noop() -> None:
    deep: Any = {}
    for _ in range(10_000):
        deep = {"contact": deep}
    for name in ("OfficeApps-v0", "TMaze-v0", "Sudoku4-v0"):
        begin(name, seed=0).reply("")  # compiles
        for arguments in (
            deep,
            {"contact": {1, 2}},
            "[" * 10_000,
            "[1]",
            "nonsense",
            {"text": 3},
            {"x": "y" * 10**6},
        ):
            for tool in ("contacts_get", "reply", "submit_answer", "a" * 10_000, "", "x\n\ud800"):
                session = begin(name, seed=0)
                began = time.process_time()
                turn = session.call(tool, arguments)
                assert time.process_time() - began < MAX_READING_SECONDS
                assert "Not understood" in turn.text
                assert len(turn.text) < 20_000
                assert turn.reward == 0
                json.dumps(session.messages())


@pytest.mark.parametrize(
    "name", ["Vicsek-v0", "Hopper-v0", "Highway-v0", "PMSMTorque-v0", "Zebra-v0", "Maze-v0"]
)
def test_a_session_says_what_the_text_view_shows(name: str) -> None:
    """Replies that are no action play the no-op action.

    What has not changed at the beginning is not said again.
    """
    session = open_session(f"rlsuite/{name}", seed=2)
    plain = gymnasium.make(f"rlsuite/{name}")
    _, first = plain.reset(seed=2)
    assert session.score_so_far == first["score"]
    assert not session.success
    assert session.task.how_to_act() in session.system
    before = session.view.episode.state
    turn = session.reply("<action>?</action>")
    _, _, terminated, truncated, info = plain.step(session.task.noop_action())
    assert (turn.done, session.score_so_far) == (terminated or truncated, info["score"])
    if not turn.done and "Not allowed" not in turn.text:
        turn_text = session.task.describe_turn(
            before, session.view.episode.state, session.view.params
        )
        assert turn_text in turn.text
        if type(session.task).describe_turn is Described.describe_turn:
            assert session.task.describe(session.view.episode.state, session.view.params).endswith(
                turn_text
            )


@pytest.mark.parametrize("name", ["Wordle-v0", "TwentyQuestions-v0", "OfficeApps-v0", "TMaze-v0"])
def test_the_first_info_of_text_tasks_tells_nothing_of_the_instance(name: str) -> None:
    """Whoever shows ``info`` to a model gives nothing away.

    It is the same for every instance of a tier.
    """
    for difficulty in find_card(name).difficulties or (None,):
        env = gymnasium.make(f"rlsuite/{name}", difficulty=difficulty)
        infos = [env.reset(seed=seed)[1] for seed in range(40)]
        masks = [info.pop("action_mask", None) for info in infos]
        assert all(info == infos[0] for info in infos[1:])
        assert name == "OfficeApps-v0" or len({str(mask) for mask in masks}) == 1


def test_the_end_of_an_episode_tells_what_the_start_hides() -> None:
    env = gymnasium.make("rlsuite/OfficeApps-v0", difficulty="hard")
    refusals = set()
    for seed in range(60):
        env.reset(seed=seed)
        *_, info = env.step([1, 0, 0, 0, 0])
        assert info["template"] == env.unwrapped.params.ask.template
        assert info["must_refuse"] == (env.unwrapped.params.reason > 0)
        refusals.add(bool(info["must_refuse"]))
    assert refusals == {False, True}


def test_a_time_limit_is_named() -> None:
    session = open_session("TMaze-v0", seed=0)
    while not session.done:
        turn = session.call("reply", {"text": "forward"})
    assert session.turns == 200
    assert "The episode is over: the time limit is reached. Score: " in turn.text


def test_messages_of_other_clients_are_played() -> None:
    content = [
        {"type": "text", "text": "I guess "},
        {"type": "text", "text": "<action>crane</action>"},
    ]
    session = begin("Wordle-v0", seed=1)
    expected = begin("Wordle-v0", seed=1)
    assert session.play({"role": "assistant", "content": content}) == expected.reply(
        "<action>crane</action>"
    )
    puzzle_session = begin("Sudoku4-v0")
    for call in ({}, {"id": "a"}, {"function": {}}, {"function": {"name": "x" * 10**6}}):
        if not puzzle_session.done:
            assert (
                len(
                    puzzle_session.play(
                        {"role": "assistant", "content": None, "tool_calls": [call]}
                    ).text
                )
                < 500
            )


@pytest.mark.parametrize("task_id", ["Game24-v0", "Wordle-v0", "OfficeApps-v0"])
def test_a_forged_or_broken_message_is_a_reply_that_cannot_be_read(task_id: str) -> None:
    for calls in (
        [None],
        ["x"],
        [5, {"function": "x"}],
        {"id": 1},
        "call",
        [{"function": {"name": 3, "arguments": 4}}],
    ):
        session = begin(task_id)
        assert (
            "Not understood"
            in session.play({"role": "assistant", "content": None, "tool_calls": calls}).text
        )
        assert session.total_reward <= max(begin(task_id).reply("?").reward, 0)
    session = begin(task_id)
    session.play({"role": "tool", "tool_call_id": "call_1", "content": "Right. Score: 1."})
    assert not session.success
    # No result of a tool.
    assert [message["role"] for message in session.messages()[-2:]] == ["assistant", "user"]


@pytest.mark.parametrize(
    ("task_id", "tool", "arguments"),
    [
        ("Wordle-v0", "reply", {"text": "crane"}),
        ("TMaze-v0", "reply", {"text": "forward"}),
        ("OfficeApps-v0", "contacts_list", {}),
    ],
)
def test_ten_thousand_calls_at_once_earn_what_the_first_ones_do(
    task_id: str, tool: str, arguments: dict[str, str]
) -> None:
    session = begin(task_id, seed=1)
    alone = begin(task_id, seed=1)
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps(arguments)},
    }
    turn = session.play({"role": "assistant", "content": None, "tool_calls": [call] * 10_000})
    while not alone.done:
        alone.call(tool, arguments)
    assert turn.done
    assert (session.score, session.turns) == (alone.score, alone.turns)
    assert (
        session.messages_by_turn[-1][-1]["content"]
        == "The episode is over; this call was not made."
    )


@pytest.mark.parametrize("task_id", ["Game24-v0", "Wordle-v0", "OfficeApps-v0"])
def test_a_briefing_for_tools_names_the_tool_and_no_answer_tags(task_id: str) -> None:
    session = begin(task_id)
    assert "<answer>" not in session.briefing
    if not session.uses_tools:
        assert session.tools[0]["function"]["name"] in session.briefing


@pytest.mark.parametrize(
    "around", ["Action: `{}`", "**Action:** `{}`", "`{}`", "I look.\n\nAction: `{}`"]
)
def test_a_label_and_marks_may_stand_together(around: str) -> None:
    session = begin("OfficeApps-v0", seed=3, lenient=True)
    assert (
        "calendar.list_day"
        in session.reply(around.format('calendar.list_day(day="wed")')).text.splitlines()[0]
    )
    assert not session.view.remarks
