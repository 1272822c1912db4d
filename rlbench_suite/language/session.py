"""One episode as a conversation: the core on which all bridges to language models stand."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import gymnasium

from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle import Verdict
from rlbench_suite.registry import card as find_card

Message = dict[str, Any]
"""A chat message: ``role`` and ``content``, and ``tool_calls`` where there are any."""


class Turn(NamedTuple):
    """Result of one reply."""

    text: str
    """What the player reads next: what changed, or why the episode is over."""
    reward: float
    """Reward of this turn."""
    done: bool
    """True if the episode is over."""


class Session(abc.ABC):
    """A conversation of a player with one episode.

    Attributes:
        system: rules and format of replies, said once.
        opening: first message of the user: the instance.
        tools: tools that the player may call, as OpenAI's JSON schemas; empty where replies are text only.
        done: True if the episode is over.
        total_reward: sum of the rewards so far.
    """

    system: str
    opening: str
    tools: list[dict[str, Any]]
    done: bool
    total_reward: float

    @abc.abstractmethod
    def reply(self, text: str) -> Turn:
        """Play a whole reply of a player.

        Raises:
            RuntimeError: the episode is over.
        """

    @property
    @abc.abstractmethod
    def score(self) -> float:
        """Score so far: 0 to 1 for a one-shot puzzle; else normalised, with random play at 0 and the reference at 1."""

    @property
    @abc.abstractmethod
    def success(self) -> bool:
        """Whether the episode is solved."""

    def messages(self) -> list[Message]:
        """Return the messages with which the conversation begins."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.opening}]


class PuzzleSession(Session):
    """A puzzle in its one-shot form: one prompt, one reply."""

    def __init__(self, task_id: str, *, seed: int, split: str, difficulty: str | float | None) -> None:
        self.puzzle = puzzle_of(task_id, difficulty)
        self.instance = self.puzzle.generate(seed, split)
        self.system, self.opening, self.tools = "", self.puzzle.prompt(self.instance), []
        self.verdict: Verdict | None = None
        self.done, self.total_reward = False, 0.0

    def reply(self, text: str) -> Turn:
        """Judge the answer in a reply."""
        if self.done:
            raise RuntimeError("The episode is over: an answer was already given.")
        self.verdict = self.puzzle.verify(self.instance, self.puzzle.extract(text))
        self.done, self.total_reward = True, self.verdict.score
        return Turn(self.verdict.reason or "Right.", self.verdict.score, True)

    @property
    def score(self) -> float:
        """Score of the answer, from 0 to 1; 0 before there is one."""
        return self.verdict.score if self.verdict else 0.0

    @property
    def success(self) -> bool:
        """Whether the answer is right."""
        return bool(self.verdict and self.verdict.solved)


class EpisodeSession(Session):
    """An episode of any id, played through its text view."""

    def __init__(self, task_id: str, *, seed: int, split: str, difficulty: str | float | None) -> None:
        self.env = gymnasium.make(find_card(task_id).id, view="text", split=split, difficulty=difficulty)
        observation, self.info = self.env.reset(seed=seed)
        self.system, self.opening, self.tools = "", str(observation), []
        self.done, self.total_reward = False, 0.0

    def reply(self, text: str) -> Turn:
        """Play a reply as one action."""
        if self.done:
            raise RuntimeError("The episode is over.")
        observation, reward, terminated, truncated, self.info = self.env.step(text)
        self.done = terminated or truncated
        self.total_reward += float(reward)
        return Turn(str(observation), float(reward), self.done)

    @property
    def score(self) -> float:
        """Normalised score of the episode so far."""
        return float(self.info["score"])

    @property
    def success(self) -> bool:
        """Whether the episode is solved."""
        return self.done and bool(self.info["success"])


def begin(
    task_id: str,
    *,
    seed: int = 0,
    split: str = "train",
    difficulty: str | float | None = None,
    one_shot: bool | None = None,
) -> Session:
    """Begin a conversation with one instance.

    Args:
        task_id: id of a task; ``rlsuite/`` may be left out.
        seed: seed of the instance.
        split: ``train`` or ``test``.
        difficulty: a tier's name, or the number that defines it.
        one_shot: True to ask for one answer, False to play turn by turn. By default puzzles are asked.

    Raises:
        ValueError: a wrong argument, or a task without the form asked for.
    """
    asked = bool(find_card(task_id).puzzle) if one_shot is None else one_shot
    kind = PuzzleSession if asked else EpisodeSession
    return kind(task_id, seed=seed, split=split, difficulty=difficulty)
