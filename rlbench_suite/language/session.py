"""One episode as a conversation: the core on which all bridges to language models stand."""

from __future__ import annotations

import abc
import json
import math
import re
from typing import Any, Literal, NamedTuple, get_args

import gymnasium
import numpy as np

from rlbench_suite.adapters.text import MAX_ACTION_CHARACTERS, TextEnv, action_in, why_over
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.language.lenient import find_answer, judge_answer, plain
from rlbench_suite.language.rows import puzzle_of, text_of
from rlbench_suite.language.tools import Schema, read_arguments, text_tool
from rlbench_suite.puzzle.puzzle import Verdict

Message = dict[str, Any]
"""A chat message of OpenAI's form.

It has ``role`` and ``content``, and ``tool_calls`` or ``tool_call_id`` where there are any.
"""

History = Literal["delta", "full", "window"]

FREE_TEXT = (
    "You may think and write first. Then put your action between <action> and </action>; only the "
    "last one counts. A reply that is nothing but the action needs no tags."
)
WITH_TOOLS = (
    "Act by calling one tool in each turn. Without tool calls, "
    + FREE_TEXT[0].lower()
    + FREE_TEXT[1:]
)
REPLY = text_tool(
    "reply", "Send your action for this turn, and read what happens.", "text", "The action."
)
SUBMIT = text_tool(
    "submit_answer",
    "Submit the final answer. The first answer that can be read is judged and counts.",
    "answer",
    "The answer, in exactly the format that is asked for.",
)
LABEL = re.compile(
    r"[*_ ]*+(?:(?:my|the|next|final) )*+(?:action|move|guess|question|call)[*_ ]*+:[*_ ]*+",
    re.IGNORECASE,
)
"""A label before an action, such as ``**Action:**``."""
UNREADABLE_CALLS = 3
"""Calls of ``submit_answer`` that may be unreadable; the last of them ends the episode."""


class Turn(NamedTuple):
    """Result of one reply."""

    text: str
    """Text that the player reads next: the change, or the reason why the episode is over."""
    reward: float
    """Reward of this turn."""
    done: bool
    """True if the episode is over."""


class Session(abc.ABC):
    """A conversation of a player with one episode.

    Attributes:
        system: rules and format of replies, said once; may be empty.
        opening: first message of the user: the instance.
        tools: tools that the player may call, in OpenAI's form. A task without tools of its own has
            one that takes the text of a reply.
        uses_tools: True if the task's actions are tool calls by nature, so that a chat client
            should offer ``tools``.
        done: True if the episode is over.
        total_reward: sum of the rewards so far.
        turns: number of replies and calls so far.
        messages_by_turn: messages of each turn: the player's, then the answers to it; empty if they
            are not kept.
        keeps_messages: False if nobody asks for the conversation, so that long replies take no
            memory.
    """

    system: str
    opening: str
    tools: list[Schema]
    uses_tools: bool = False
    keeps_messages: bool = True

    def __init__(self) -> None:
        self.done = False
        self.total_reward = 0.0
        self.turns = 0
        self.messages_by_turn: list[list[Message]] = []

    def reply(self, text: str) -> Turn:
        """Play a whole reply of a player.

        Raises:
            RuntimeError: the episode is over.
        """
        return self.play({"role": "assistant", "content": text})

    def call(self, name: str, arguments: dict[str, Any] | str | None = None) -> Turn:
        """Play one call of a tool.

        A call that cannot be read is played as a reply that cannot be read.

        Args:
            name: name of one of ``tools``.
            arguments: its arguments, or their JSON.

        Raises:
            RuntimeError: the episode is over.
        """
        arguments_text = arguments if isinstance(arguments, str) else _json(arguments or {})
        function = {"name": name, "arguments": arguments_text}
        call = {"id": f"call_{self.turns + 1}", "type": "function", "function": function}
        return self.play({"role": "assistant", "content": None, "tool_calls": [call]})

    def play(self, message: Message) -> Turn:
        """Play a message of a chat model: its tool calls one after another, or else its text.

        Raises:
            RuntimeError: the episode is over.
        """
        if self.done:
            raise RuntimeError("The episode is over: begin another.")
        message = message | {"role": "assistant"}  # whatever it is, the player has said it
        turn_messages = [message]
        rewards = 0.0
        calls = message.get("tool_calls") or []
        for call in calls if isinstance(calls, list) else [calls]:
            text = "The episode is over; this call was not made."
            reward = 0.0
            if not self.done:
                function = _dictionary(_dictionary(call).get("function"))
                text, reward = self._play_call(
                    str(function.get("name", "")), function.get("arguments") or "{}"
                )
            rewards += reward
            turn_messages.append(
                {"role": "tool", "tool_call_id": _dictionary(call).get("id", ""), "content": text}
            )
        if not calls:
            text, rewards = self._play_reply(text_of([message]) or "")
            turn_messages.append({"role": "user", "content": text})
        if self.keeps_messages:
            self.messages_by_turn.append(turn_messages)
        return Turn(text, rewards, self.done)

    @abc.abstractmethod
    def _play_reply(self, text: str) -> tuple[str, float]:
        """Play a reply; return what the player reads next, and the reward."""

    @abc.abstractmethod
    def _play_call(self, name: str, arguments: str) -> tuple[str, float]:
        """Play a call; return what the player reads next, and the reward."""

    @property
    def score(self) -> float:
        """Score of the episode.

        A one-shot puzzle has 0 to 1; other tasks are normalised (:mod:`rlbench_suite.core.scale`).

        It is not a number before the end, because a loss can still come, and if the card has no
        measured scores.
        """
        return self.score_so_far if self.done else math.nan

    @property
    @abc.abstractmethod
    def score_so_far(self) -> float:
        """Score that the episode would have if it ended now."""

    @property
    @abc.abstractmethod
    def success(self) -> bool:
        """Whether the episode is solved."""

    @property
    def briefing(self) -> str:
        """Everything that a player who acts by tool calls reads first: rules, and the instance."""
        hint = "" if self.uses_tools else "Call reply in each turn."
        return "\n\n".join(
            paragraph for paragraph in (self.system, self.opening, hint) if paragraph
        )

    def messages(self) -> list[Message]:
        """Return the whole conversation so far, as a chat endpoint takes it.

        Raises:
            RuntimeError: the session does not keep it.
        """
        if not self.keeps_messages:
            raise RuntimeError("This session keeps no messages: begin it with keep_messages=True.")
        return [*self._head(), *(message for turn in self.messages_by_turn for message in turn)]

    def _head(self) -> list[Message]:
        """Return the messages with which the conversation begins."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.opening}]


class PuzzleSession(Session):
    """A puzzle in its one-shot form: one prompt, one answer.

    The first reply is judged, whatever it is. Only a call of ``submit_answer`` that cannot be read
    does not count yet: it is told its fault and may be made again. The fault follows from the
    prompt alone, so nothing is learnt about the solution.
    """

    def __init__(
        self,
        task_id: str,
        *,
        seed: int,
        split: str,
        difficulty: str | float | None,
        lenient: bool = False,
    ) -> None:
        super().__init__()
        self.lenient = lenient
        self.puzzle = puzzle_of(task_id, difficulty)
        self.instance = self.puzzle.generate(seed, split)
        self.system = ""
        self.opening = self.puzzle.prompt(self.instance)
        self.tools = [SUBMIT]
        self.verdict: Verdict | None = None

    @property
    def briefing(self) -> str:
        """Question and example without answer tags, for a player who calls ``submit_answer``."""
        question = (
            f"{self.puzzle.question(self.instance)}\n{self.puzzle.shown_examples(self.instance)}"
        )
        return f"{question}\nGive your answer by calling submit_answer."

    def _play_reply(self, text: str) -> tuple[str, float]:
        return self._judge_answer(find_answer(text, lenient=self.lenient))

    def _play_call(self, name: str, arguments: str) -> tuple[str, float]:
        self.turns += 1
        answer = None
        fault = ""
        try:
            answer = self._submitted_answer(name, arguments)
            if not (verdict := self._verdict(answer)).valid:
                fault = verdict.reason
        except ValueError as error:
            fault = str(error)
        if fault and self.turns < UNREADABLE_CALLS:
            return (
                (
                    f"Not understood: {fault}\nCall submit_answer again, in the format that is "
                    "asked for."
                ),
                0.0,
            )
        return self._judge_answer(answer)

    def _submitted_answer(self, name: str, arguments: str) -> str:
        """Return the answer in a call, with or without its tags.

        Raises:
            ValueError: the call has none.
        """
        if name != "submit_answer":
            raise ValueError(unknown("tool", name, ["submit_answer"]))
        answer = read_arguments(arguments).get("answer")
        if not isinstance(answer, str):
            raise ValueError("submit_answer takes the text of the answer as its argument 'answer'")
        extracted = self.puzzle.extract(answer)
        return answer.strip() if extracted is None else extracted

    def _verdict(self, answer: str | None) -> Verdict:
        return judge_answer(self.puzzle, self.instance, answer, lenient=self.lenient)

    def _judge_answer(self, answer: str | None) -> tuple[str, float]:
        """End the episode with an answer."""
        self.verdict = self._verdict(answer)
        self.done = True
        self.total_reward = self.verdict.score
        judgement = f"Not right: {self.verdict.reason}" if self.verdict.reason else "Right"
        return f"{judgement}. Score: {self.verdict.score:g}.", self.verdict.score

    @property
    def score_so_far(self) -> float:
        """Score of the answer, from 0 to 1; 0 before there is one."""
        return self.verdict.score if self.verdict else 0.0

    @property
    def success(self) -> bool:
        """Whether the answer is right, and none is better where the best is asked for."""
        return bool(self.verdict and self.verdict.optimal)


class EpisodeSession(Session):
    """An episode of any id, played through its text view.

    Attributes:
        env: the environment.
        info: of the last step. It is not for the player.
    """

    def __init__(
        self,
        task_id: str,
        *,
        seed: int,
        split: str,
        difficulty: str | float | None,
        lenient: bool = False,
        history: History = "delta",
        window: int = 8,
    ) -> None:
        super().__init__()
        self._card = find_card(task_id)
        self.env = gymnasium.make(self._card.id, view="text", split=split, difficulty=difficulty)
        self.view: TextEnv = self.env.unwrapped  # type: ignore[assignment]
        self.task = self.view.task
        self.lenient = lenient
        self.history = history
        self.window = window
        observation, self.info = self.env.reset(seed=seed)
        self._state = self.view.episode.state
        task_tools = self.task.tools()
        self.tools = task_tools or [REPLY]
        self.uses_tools = bool(task_tools)
        form = WITH_TOOLS if task_tools else FREE_TEXT
        self.system = "\n\n".join((self.task.rules(), f"{self.task.how_to_act()}\n{form}"))
        first_turn = self.task.describe_turn(None, self._state, self.view.params)
        self.opening = (
            observation if history == "full" else "\n".join((first_turn, *self._time_left()))
        )

    def _play_reply(self, text: str) -> tuple[str, float]:
        return self._step(self._mend_reply(text) if self.lenient else text)

    def _mend_reply(self, reply: str) -> str:
        """Return the action of a reply in a form that can be read.

        Return the reply itself if it has none.

        A reply that can be read as it stands is. Else its action is looked for without the marks
        around it, then in the last code block, then in the last line. Whether it can be read
        depends on its format alone, never on how good it is.
        """
        action = action_in(reply).strip()[-MAX_ACTION_CHARACTERS:]
        readings = [reply]
        for candidate in (
            action,
            "```".join(action.split("```")[-2:-1]),
            action.rpartition("\n")[2],
        ):
            bare = plain(
                f"```{candidate}```" if "\n" in candidate and candidate is not action else candidate
            )
            label = LABEL.match(bare)
            unlabelled = bare[label.end() :] if label else bare
            readings += [bare, unlabelled, unlabelled.rstrip(".! "), plain(unlabelled)]
        return next(filter(self.view.reads, filter(None, readings)), reply)

    def _play_call(self, name: str, arguments: str) -> tuple[str, float]:
        if self.uses_tools:
            return self._step(_json({"name": name, "arguments": arguments}))
        if name != "reply":
            return self._step("", unknown("tool", name, ["reply"]))
        try:
            text = read_arguments(arguments).get("text")
        except ValueError as error:
            return self._step("", str(error))
        if not isinstance(text, str):
            return self._step("", "reply takes the text of the action as its argument 'text'")
        return self._step(text)

    def _step(self, action: str, fault: str = "") -> tuple[str, float]:
        """Play one turn; ``fault`` says why there is no action."""
        _, reward, terminated, truncated, self.info = self.env.step(action)
        earned = float(
            scalar_return(self.task, reward) if isinstance(reward, np.ndarray) else reward
        )
        self.done = terminated or truncated
        self.turns += 1
        self.total_reward += earned
        last_state = self._state
        self._state = self.view.episode.state
        remarks = self.view.remarks
        if fault:
            remarks[0] = f"Not understood: {fault}"
        if self.history == "full":
            lines = [self.task.describe(self._state, self.view.params), *remarks]
        else:
            lines = list(remarks)
            if not (
                remarks and remarks[0].startswith("Not allowed")
            ):  # such an action leaves the state as it is
                lines.append(self.task.describe_turn(last_state, self._state, self.view.params))
        if self.done:
            return "\n".join((*lines, why_over(self.info))), earned
        lines += self._time_left()
        if remarks or self.history == "full":
            lines.append(self.task.how_to_act())
        return "\n".join(lines), earned

    def _time_left(self) -> list[str]:
        """Return the line that says how many turns are left, unless the task says so itself."""
        return [] if self.task.counts_turns else [f"Turns left: {self._card.horizon - self.turns}."]

    @property
    def score_so_far(self) -> float:
        """Normalised score of the episode so far."""
        return float(self.info.get("score", math.nan))

    @property
    def success(self) -> bool:
        """Whether the episode is solved."""
        return self.done and bool(self.info["success"])

    def messages(self) -> list[Message]:
        """Return the conversation so far under the history policy, as a chat endpoint takes it."""
        left_out = len(self.messages_by_turn) - self.window
        if self.history != "window" or left_out <= 0:
            return super().messages()
        *head, opening = self._head()
        opening = opening | {
            "content": f"{self.opening}\n\n(The first {left_out} turns are left out here.)"
        }
        messages = [
            *head,
            opening,
            *(message for turn in self.messages_by_turn[left_out:] for message in turn),
        ]
        if not self.done:
            situation = self.task.describe_turn(None, self._state, self.view.params)
            messages[-1] = messages[-1] | {
                "content": f"{messages[-1]['content']}\n\nAll that is known now:\n{situation}"
            }
        return messages


def begin(
    task_id: str,
    *,
    seed: int = 0,
    split: str = "train",
    difficulty: str | float | None = None,
    one_shot: bool | None = None,
    lenient: bool = False,
    history: History = "delta",
    window: int = 8,
    keep_messages: bool = True,
) -> Session:
    """Begin a conversation with one instance.

    Args:
        task_id: id of a task; ``rlsuite/`` may be left out.
        seed: seed of the instance.
        split: ``train`` or ``test``.
        difficulty: a tier's name, or the number that defines it.
        one_shot: True to ask for one answer, False to play turn by turn. By default puzzles are
            asked.
        lenient: True to read answers that are formatted in another way than the prompt asks for.
        history: the text of turns. ``delta`` says what changed. ``full`` says everything again in
            each turn. ``window`` says what changed, and ``messages`` has the last turns only, with
            all that is known now.
        window: number of turns that ``window`` keeps.
        keep_messages: False where nobody calls :meth:`Session.messages`, as on a server.

    Raises:
        ValueError: a wrong argument, or a task without the form asked for.
    """
    if history not in get_args(History):
        raise ValueError(unknown("history", history, get_args(History)))
    if window < 1:
        raise ValueError(f"window is at least 1, got {window}.")
    is_one_shot = bool(find_card(task_id).puzzle) if one_shot is None else one_shot
    session: Session
    if is_one_shot:
        session = PuzzleSession(
            task_id, seed=seed, split=split, difficulty=difficulty, lenient=lenient
        )
    else:
        session = EpisodeSession(
            task_id,
            seed=seed,
            split=split,
            difficulty=difficulty,
            lenient=lenient,
            history=history,
            window=window,
        )
    session.keeps_messages = keep_messages
    return session


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(value: Any) -> str:
    """Return the JSON of a value; nonsense that has none becomes a text that cannot be read."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return "?"
