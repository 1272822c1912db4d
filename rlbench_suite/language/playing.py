"""Play conversations with a language model, many at a time, and keep their transcripts.

A transcript has every message, so that its replies can be judged again without the model
(:func:`rejudge`). It is stored as a line of JSON when its episode ends. A run that is resumed plays
only the episodes that have no line yet.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rlbench_suite.foundation.atomic_files import flush_names
from rlbench_suite.language.chat import ChatClient, Endpoint, NoReply
from rlbench_suite.language.session import Message, Session, begin


class Game(NamedTuple):
    """One episode that a model is to play. Equal games begin with the same messages."""

    task: str
    """Id of the card."""
    seed: int
    """Seed of the episode."""
    sample: int = 0
    """Number of this attempt among those at the same episode."""
    split: str = "test"
    one_shot: bool = False
    """True to ask for one answer to a puzzle, False to play turn by turn."""
    lenient: bool = False
    """True to read answers that are formatted in another way than the prompt asks for."""
    tools: bool = False
    """True to offer the session's tools to the model."""

    def begin(self) -> Session:
        """Begin the conversation."""
        return begin(
            self.task,
            seed=self.seed,
            split=self.split,
            one_shot=self.one_shot,
            lenient=self.lenient,
        )


class Result(NamedTuple):
    """Scores of a finished episode. They depend on the replies only."""

    score: float
    """Score as :attr:`Session.score` has it."""
    total_reward: float
    success: bool
    turns: int
    """Number of replies or tool calls."""


class Transcript(NamedTuple):
    """A finished episode."""

    game: Game
    messages: list[Message]
    """The whole conversation, beginning with the messages of the task."""
    result: Result
    input_tokens: int
    output_tokens: int
    estimated: bool
    """True if the server did not count the tokens of some request."""
    cost: float | None
    """Price of the tokens in dollars; None if the prices are unknown."""
    seconds: float
    gave_up: str
    """Reason why the server refused to continue the conversation; empty if it did not.

    All later replies are empty.
    """

    def to_json(self) -> str:
        """Return the transcript as one line of JSON."""
        plain = self._asdict() | {"game": self.game._asdict(), "result": self.result._asdict()}
        return json.dumps(plain)

    @classmethod
    def from_json(cls, line: str | bytes) -> Transcript:
        """Read a line of :meth:`to_json`.

        Raises:
            ValueError: it is none.
        """
        try:
            plain = json.loads(line, parse_constant=_refuse_number)
            return cls(
                **plain | {"game": Game(**plain["game"]), "result": Result(**plain["result"])}
            )
        except (TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"not a transcript ({error})") from None


class TranscriptFile:
    """A file of transcripts, to which each is added when its episode ends.

    Args:
        path: the file; it may not exist yet. If a killed program left half a line at its end, that
            line is removed.

    Attributes:
        transcripts: transcripts that the file has, by their games.

    Raises:
        ValueError: the file is damaged.
        OSError: it cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.transcripts: dict[Game, Transcript] = {}
        if not path.exists():
            return
        stored = path.read_bytes()
        end = stored.rfind(b"\n") + 1
        for number, line in enumerate(stored[:end].splitlines(), 1):
            try:
                transcript = Transcript.from_json(line)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"Line {number} of {path} is damaged ({error}); delete the line to play its "
                    "episode again."
                ) from None
            self.transcripts[transcript.game] = transcript
        if end < len(stored):
            with path.open("r+b") as file:
                file.truncate(end)

    def add(self, transcript: Transcript) -> None:
        """Write a transcript at the end of the file, so that it survives a power cut.

        Raises:
            OSError: the file cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(transcript.to_json() + "\n")
            file.flush()
            os.fsync(file.fileno())
        if new:
            flush_names(self.path.parent)
        self.transcripts[transcript.game] = transcript


async def play(game: Game, client: ChatClient, referee: ThreadPoolExecutor) -> Transcript:
    """Play one episode with a model.

    If the server refuses to continue a conversation, the rest of the episode is played with empty
    replies. Otherwise a model could save its score by ending a game early.

    Args:
        game: the episode.
        client: client of the model.
        referee: executor of one thread, in which all episodes are played: requests of others go on
            meanwhile.

    Raises:
        ChatError: the endpoint cannot be used.
    """
    started = time.perf_counter()
    loop = asyncio.get_running_loop()
    session = await loop.run_in_executor(referee, game.begin)
    tools = session.tools if game.tools else []
    sent = 0
    received = 0
    estimated = False
    gave_up = ""
    while not session.done:
        message: Message = {"role": "assistant", "content": ""}
        if not gave_up:
            try:
                reply = await client.ask(session.messages(), tools)
            except NoReply as refusal:
                gave_up = str(refusal)
            else:
                message = reply.message if tools else {"role": "assistant", "content": reply.text}
                sent += reply.usage.input_tokens
                received += reply.usage.output_tokens
                estimated |= reply.usage.estimated
        await loop.run_in_executor(referee, session.play, message)
    cost = client.endpoint.cost(sent, received)
    seconds = time.perf_counter() - started
    messages = session.messages()
    return Transcript(
        game, messages, _result(session), sent, received, estimated, cost, seconds, gave_up
    )


def rejudge(transcript: Transcript) -> Result:
    """Play the replies of a transcript again, without the model, and return the scores.

    Raises:
        ValueError: the transcript ends before its episode.
    """
    session = transcript.game.begin()
    for message in transcript.messages:
        if message["role"] == "assistant" and not session.done:
            session.play(message)
    if not session.done:
        raise ValueError(
            f"The transcript of {transcript.game.task}, seed {transcript.game.seed}, ends too "
            "early."
        )
    return _result(session)


def _refuse_number(text: str) -> float:
    raise ValueError(f"not a transcript (it has the number {text})")


def _result(session: Session) -> Result:
    # An answer is a turn.
    return Result(session.score, session.total_reward, session.success, session.turns or 1)


def play_all(games: Iterable[Game], endpoint: Endpoint) -> Iterator[Transcript]:
    """Play many episodes at a time; yield each transcript as its episode ends, in any order.

    Closing the iterator drops the episodes in progress.

    Raises:
        ImportError: httpx is not installed.
        ChatError: the endpoint cannot be used.
    """
    stream = _play_in_loop(games, endpoint)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        yield from stream
        return
    with ThreadPoolExecutor(
        max_workers=1
    ) as thread:  # a notebook has a loop of its own, and loops do not nest
        try:
            while transcript := thread.submit(next, stream, None).result():
                yield transcript
        finally:
            thread.submit(stream.close).result()


def _play_in_loop(games: Iterable[Game], endpoint: Endpoint) -> Generator[Transcript]:
    with asyncio.Runner() as runner:
        stream = _play_all(games, endpoint)

        async def following() -> Transcript | None:
            return await anext(stream, None)

        try:
            while transcript := runner.run(following()):
                yield transcript
        finally:
            runner.run(_close(stream))


async def _close(stream: Any) -> None:
    await stream.aclose()


async def _play_all(games: Iterable[Game], endpoint: Endpoint) -> AsyncIterator[Transcript]:
    waiting = iter(games)
    running: set[asyncio.Task[Transcript]] = set()
    with ThreadPoolExecutor(max_workers=1) as referee:
        async with ChatClient(endpoint) as client:
            try:
                while True:
                    while len(running) < endpoint.concurrency and (game := next(waiting, None)):
                        running.add(asyncio.create_task(play(game, client, referee)))
                    if not running:
                        return
                    finished, running = await asyncio.wait(
                        running, return_when=asyncio.FIRST_COMPLETED
                    )
                    # Episodes that ended well come first.
                    for task in sorted(finished, key=lambda task: task.exception() is not None):
                        yield task.result()
            finally:
                for task in running:
                    task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.gather(*running, return_exceptions=True)
