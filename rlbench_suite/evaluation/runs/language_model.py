"""Play the test episodes by a language model, an agent that plays in conversations untrained.

Each test episode is played ``samples`` times. The transcripts lie in
``transcripts/AGENT/TASK/SEED.jsonl`` of the run, so that an interrupted cell repeats no finished
episode.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from rlbench_suite.adapters.record import Record
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import Score, TaskCard
from rlbench_suite.evaluation.cell import Cell, CellSpec
from rlbench_suite.evaluation.protocol import EPISODES, Outcome, evaluation_seeds
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.foundation.atomic_files import make_folder, writing
from rlbench_suite.language.chat import Endpoint
from rlbench_suite.language.playing import (
    Game,
    Result,
    Transcript,
    TranscriptFile,
    play_all,
    rejudge,
)

NAME = "llm"
FOLDER = "transcripts"
MAX_EPISODES = 2**16
"""Size of the block of environment seeds that a seed's evaluation has (``protocol.py``)."""


class Episodes(NamedTuple):
    """State of a cell that is being played."""

    steps: int
    """Finished episodes, each sample counted."""
    total_steps: int
    tokens: int
    """Tokens of the finished episodes."""
    cost: float | None
    """Their price in dollars; None if the prices are unknown."""


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """A chat model that plays episodes.

    Attributes:
        endpoint: the model and its server.
        samples: how often each episode is played.
        episodes: episodes of a seed; those of the budget if None.
        turns: True to play puzzles turn by turn, False to ask for one answer.
        lenient: True to read answers that are formatted in another way than the prompt asks for.
        tools: True to offer the tools of tasks that have some.

    Raises:
        ValueError: a number is out of range.
    """

    endpoint: Endpoint
    samples: int = 1
    episodes: int | None = None
    turns: bool = False
    lenient: bool = False
    tools: bool = False

    learns = False

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples}.")
        if self.episodes is not None and not 1 <= self.episodes <= MAX_EPISODES:
            raise ValueError(f"episodes must be from 1 to {MAX_EPISODES}, got {self.episodes}.")

    @property
    def name(self) -> str:
        """Name of the agent in a run, which names folders too."""
        return f"{NAME}." + re.sub(r"[^A-Za-z0-9._-]+", "-", self.endpoint.model)[:80]

    def one_shot(self, card: TaskCard) -> bool:
        """Return True if the model is asked for one answer, False if it plays turn by turn."""
        return bool(card.puzzle) and not self.turns

    def anchors(self, card: TaskCard) -> dict[str, Score]:
        """Return the scores that normalise those of the model: 0 is ``random``, 1 is ``reference``.

        For a single answer they are a random answer of the right format and the exact solver.

        Raises:
            ValueError: they were never measured.
        """
        scores = card.one_shot_scores() if self.one_shot(card) else card.scores()
        low, high = ("guess", "solver") if self.one_shot(card) else ("random", "reference")
        if not {low, high} <= scores.keys():
            raise ValueError(
                f"{card.id} has no measured scores of {low} and {high}; run: "
                f"{card.measuring_command}"
            )
        return {"random": scores[low], "reference": scores[high]}

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the task does not fit a conversation.

        Its reward must be one number.
        """
        if task.card.agents > 1:
            raise CannotPlay("a conversation has one player, and the task has several agents")
        if task.reward_space.shape:
            raise CannotPlay("a conversation has one reward, and the task has several objectives")
        if task.has_cost:
            raise CannotPlay("a conversation does not record the cost of the task's constraint")

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return everything that changes what the model is asked.

        Prices, limits and addresses do not.
        """
        return {
            "model": self.endpoint.model,
            "temperature": self.endpoint.temperature,
            "max_tokens": self.endpoint.max_tokens,
            "samples": self.samples,
            "episodes": self.episodes or EPISODES[budget],
            "one_shot": self.one_shot(task.card),
            "lenient": self.lenient,
            "tools": self.tools,
        }

    def play_cell(self, spec: CellSpec, run: OpenRun) -> Iterator[Episodes | CellResult]:
        """Play the episodes of a cell and store the result.

        Yield the state after each episode and, last, the result.

        Args:
            spec: the cell and its settings.
            run: the run. Episodes whose transcripts it has are not played again.

        Raises:
            ChatError: the model's server cannot be used.
            CannotWrite: a transcript cannot be stored.
            ValueError: the file of transcripts is damaged.
        """
        task = find_card(spec.task).build()
        first_seed = evaluation_seeds(task.card, spec.seed, spec.budget)[0]
        settings = spec.hyperparameters
        form = {name: settings[name] for name in ("one_shot", "lenient", "tools")}
        games = [
            Game(task.card.id, episode, sample, **form)
            for episode in range(first_seed, first_seed + settings["episodes"])
            for sample in range(settings["samples"])
        ]
        file = TranscriptFile(transcripts_path(run.path, spec.cell))
        with writing(file.path):
            make_folder(file.path.parent)
        started = time.perf_counter()
        transcripts_played = play_all(
            [game for game in games if game not in file.transcripts], self.endpoint
        )
        for transcript in transcripts_played:
            with writing(file.path):
                file.add(transcript)
            yield self._state(file, len(games))
        transcripts = [file.transcripts[game] for game in games]
        record = _record(transcripts, task.card.horizon)
        outcome = Outcome(
            [game.seed for game in games], record, [], None, 0.0, time.perf_counter() - started
        )
        yield run.write(spec.cell, outcome, self, task, jax.devices()[0].device_kind)

    def _state(self, file: TranscriptFile, total: int) -> Episodes:
        finished = file.transcripts.values()
        tokens = sum(transcript.input_tokens + transcript.output_tokens for transcript in finished)
        costs = [transcript.cost for transcript in finished]
        return Episodes(len(finished), total, tokens, None if None in costs else sum(costs))  # type: ignore[arg-type]

    def save(self, policy: None, path: str) -> None:
        """Save nothing: the weights are not here."""


def transcripts_path(folder: Path, cell: Cell) -> Path:
    """Return the path of a cell's transcripts in a run directory."""
    return folder / FOLDER / cell.agent / find_card(cell.task).file_name / f"{cell.seed}.jsonl"


def _record(transcripts: list[Transcript], horizon: int) -> Record:
    results = [transcript.result for transcript in transcripts]
    length = np.array([result.turns for result in results])
    success = np.array([result.success for result in results])
    info = {"success": success}
    for name in ("input_tokens", "output_tokens", "estimated"):
        info[name] = np.array([getattr(transcript, name) for transcript in transcripts])
    if None not in (costs := [transcript.cost for transcript in transcripts]):
        info["dollars"] = np.array(costs)
    return Record(
        total=np.array([result.total_reward for result in results]),
        length=length,
        terminated=success | (length < horizon),  # the time limit ends episodes that are neither
        info=info,
        cost=np.zeros(len(results)),
        actions=np.zeros((len(results), 0)),  # replies are words: the transcripts have them
    )


def rejudge_run(path: Path) -> Iterator[tuple[Path, Transcript, Result]]:
    """Judge every transcript of a run again.

    Yield its file, the transcript, and the scores that its replies earn.

    Raises:
        ValueError: the run has no transcripts, or a file is damaged.
    """
    files = sorted(path.glob(f"{FOLDER}/*/*/*.jsonl"))
    if not files:
        raise ValueError(f"{path} has no transcripts: it is no run of a language model.")
    for file in files:
        for transcript in TranscriptFile(file).transcripts.values():
            yield file, transcript, rejudge(transcript)
