"""Turn puzzles and episodes into tasks of the library ``verifiers``.

They are tasks of ``verifiers.v1``, which ``prime-rl`` trains on.

The library finds a taskset by the name of a module of yours, which exports one taskset, and the
environment and the harness of this file::

    from rlbench_suite.language.verifiers import Chat, Play, Puzzles  # or Episodes
    __all__ = ["Chat", "Play", "Puzzles"]
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.language import rows
from rlbench_suite.language.dataset import CompositeDataset
from rlbench_suite.language.session import Session, begin

try:
    import httpx
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire
except ImportError as error:
    raise ImportError(
        "Tasks of verifiers need verifiers 0.4: pip install 'rlbench-suite[verifiers]'"
    ) from error

NO_REPLY = 1
"""Exit code of a harness whose model gave no reply."""


class Choice(vf.TasksetConfig):
    """Instances that make up a taskset.

    Attributes:
        ids: ids of tasks.
        size: number of instances, of all ids together.
        seed: seed of the first instance of each id.
        split: ``train`` or ``test``.
        difficulty: a tier's name, or the number that defines it.
    """

    ids: list[str] = Field(default_factory=list)
    size: int = 100
    seed: int = 0
    split: str = "train"
    difficulty: str | float | None = None

    def check(self) -> None:
        """Check what the datasets do not check themselves.

        Raises:
            ValueError: there are no ids, or a size below 1.
        """
        if not self.ids or self.size < 1:
            raise ValueError(
                f"A taskset needs ids and a size of at least 1, got ids {self.ids} and size "
                f"{self.size}."
            )


class Question(vf.TaskData):
    """A row of a dataset of puzzles; ``prompt`` is its question."""

    row: str
    """The row as JSON. The model does not see it."""


class Puzzle(vf.Task[Question]):
    """A puzzle with one answer."""

    @property
    def key(self) -> str:
        """Stable id of the row."""
        return str(json.loads(self.data.row)["metadata"]["row"])

    @vf.reward(weight=1.0)
    async def answer_score(self, trace: vf.Trace) -> float:
        """Score the last reply, from 0 to 1."""
        return await asyncio.to_thread(rows.score, json.loads(self.data.row), trace.last_reply)


class Puzzles(vf.Taskset[Puzzle, Choice]):
    """Rows of puzzles, in their one-shot form."""

    def load(self) -> Iterable[Puzzle]:
        """Make the tasks."""
        self.config.check()
        config = self.config
        dataset = CompositeDataset(
            dict.fromkeys(config.ids, 1.0),
            size=config.size,
            seed=config.seed,
            split=config.split,
            difficulty=config.difficulty,
        )
        for row in dataset:
            yield Puzzle(Question(prompt=row["question"], row=json.dumps(row)), config.task)


class Instance(vf.TaskData):
    """An instance that is played turn by turn; the environment says what the model reads."""

    task_id: str
    seed: int
    split: str
    difficulty: str | float | None

    def begin(self) -> Session:
        """Begin the episode."""
        return begin(
            self.task_id,
            seed=self.seed,
            split=self.split,
            difficulty=self.difficulty,
            one_shot=False,
        )


class Episode(vf.Task[Instance]):
    """An episode of any id."""

    @property
    def key(self) -> str:
        """Stable id of the instance."""
        return f"{self.data.task_id}/{self.data.difficulty}/{self.data.split}/{self.data.seed}"

    @vf.reward(weight=1.0)
    async def episode_score(self, trace: vf.Trace) -> float:
        """Return the normalised score that :class:`Play` has noted.

        It is 0 if the episode was not played to its end.
        """
        return float(trace.info.get("score", 0.0))

    @vf.metric
    async def success(self, trace: vf.Trace) -> float:
        """Return 1 if the episode was solved, else 0."""
        return float(trace.info.get("success", False))


class Episodes(vf.Taskset[Episode, Choice]):
    """Episodes of any ids, turn by turn. Ids take turns."""

    def load(self) -> Iterable[Episode]:
        """Make the tasks."""
        self.config.check()
        config = self.config
        systems: dict[str, str] = {}
        for number in range(config.size):
            round_, index = divmod(number, len(config.ids))
            data = Instance(
                task_id=find_card(config.ids[index]).id,
                seed=config.seed + round_,
                split=config.split,
                difficulty=config.difficulty,
            )
            if data.task_id not in systems:
                systems[data.task_id] = data.begin().system  # the same for all instances
            yield Episode(
                data.model_copy(update={"system_prompt": systems[data.task_id]}), config.task
            )


class PlayConfig(vf.EnvConfig):
    """One seat, whose program runs on this machine."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime={"type": "subprocess"})


class Play(vf.Env[PlayConfig]):
    """Plays episodes turn by turn, and asks puzzles once."""

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Play one task."""
        if not isinstance(task, Episode):
            await agents.agent.run(task)
            return
        session = await asyncio.to_thread(task.data.begin)
        async with agents.agent.interaction(task) as chat:
            text = session.opening
            while not session.done:
                segment = await chat.turn(text)
                if segment.terminated:
                    break
                text = (await asyncio.to_thread(session.reply, segment.last_reply)).text
            score = session.score if session.done else 0.0
            chat.trace.info["score"] = score if math.isfinite(score) else session.total_reward
            chat.trace.info["success"] = session.success


class Chat(vf.Harness[vf.HarnessConfig]):
    """A chat without tools, in this process.

    It installs nothing, unlike the harnesses of the library.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Ask for one reply."""
        system, prompt = self.resolve_prompt(data)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or []]
        async with httpx.AsyncClient(timeout=None, trust_env=False) as client:
            response = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"Authorization": f"Bearer {secret}"},
            )
        if response.is_error:
            return vf.ProgramResult(NO_REPLY, "", response.text)
        return vf.ProgramResult(0, response.json()["choices"][0]["message"]["content"] or "", "")
