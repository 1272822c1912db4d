"""A server of episodes over WebSocket that speaks OpenEnv's protocol.

It needs none of OpenEnv's packages.

Each connection to ``/ws`` plays one episode at a time, and shares nothing with other connections. A
frame is a JSON object with ``type`` and ``data``:

=========  =======================================================  ================================
``type``   ``data``                                                 answer
=========  =======================================================  ================================
``reset``  ``seed``, ``split``, ``difficulty``, ``episode_id``;     observation: ``system``,
                                                                    ``text``
           each may be left out
``step``   ``{"text": reply}``, or                                  observation, reward, done
           ``{"type": "call_tool", "tool_name", "arguments"}``
``step``   ``{"type": "list_tools"}``, which is no turn             observation: ``tools``
``state``                                                           id and settings of the episode,
                                                                    number of turns
``close``                                                           the end of the connection
=========  =======================================================  ================================

The last observation has ``score`` and ``success``, see :class:`Session`. A wrong frame is answered
by ``{"type": "error", "data": {"code", "message"}}``. It changes nothing, and the connection stays
open.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import secrets
from collections.abc import AsyncIterator, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from threading import Semaphore
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import SPLITS, TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.language.guard import Guard, check_token, impatient_protocol
from rlbench_suite.language.session import Session, begin

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_FRAME_CHARACTERS = 4 * 2**20
"""Characters of the longest frame that is read: a long reply counts as a reply.

Longer ones get an error.
"""
MAX_MESSAGE_BYTES = 4 * MAX_FRAME_CHARACTERS
"""Bytes of the longest message.

The WebSocket is closed with code 1009 on longer ones, before they are read.
"""
SEED_LIMIT = 2**31
"""Seeds that the server draws are below this."""
IDLE_SECONDS = 900.0
"""Seconds after which a client that sends nothing loses its place."""
SPARE_CONNECTIONS = 100
"""Number of clients who may be connected beyond those who can play."""
UPGRADE_REQUIRED = 426
"""HTTP status of a request that must become a WebSocket."""
POLICY_VIOLATION = 1008
"""Code with which a WebSocket is closed that breaks the server's rules."""
TRY_AGAIN_LATER = 1013
"""Code with which a WebSocket is closed that the server has no place for."""

Metadata = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


class Refused(Exception):
    """A frame that cannot be answered.

    ``code`` is one of OpenEnv's codes of errors, or ``FRAME_TOO_LARGE``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Data(BaseModel):
    """Data of a frame: no other fields, and no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reset(Data):
    """Beginning of an episode."""

    seed: int | None = Field(
        default=None, ge=0, description="Seed of the instance; drawn by the server if left out."
    )
    split: Literal["train", "test"] | None = Field(
        default=None, description="Split of the instance."
    )
    difficulty: str | float | None = Field(
        default=None, description="A tier's name, or the number that defines it."
    )
    episode_id: str | None = Field(
        default=None, max_length=255, description="Name of the episode in the state."
    )


class Say(Data):
    """A whole reply of a player."""

    text: str = Field(description="The reply.")
    metadata: Metadata = Field(default={}, description="Ignored.")


class CallTool(Data):
    """A call of a tool."""

    type: Literal["call_tool"]
    tool_name: str = Field(description="Name of the tool.")
    arguments: dict[str, Any] = Field(default={}, description="Its arguments.")
    metadata: Metadata = Field(default={}, description="Ignored.")


class ListTools(Data):
    """A question for the tools."""

    type: Literal["list_tools"]
    metadata: Metadata = Field(default={}, description="Ignored.")


ACTIONS: dict[str | None, type[Say] | type[CallTool] | type[ListTools]] = {
    None: Say,
    "call_tool": CallTool,
    "list_tools": ListTools,
}


class Observation(BaseModel):
    """Text and scores that a player receives."""

    system: str = Field(default="", description="Rules and format of replies; after a reset only.")
    text: str = Field(description="The instance, or what the last turn changed.")
    score: float | None = Field(default=None, description="Score of the episode, once it is over.")
    success: bool | None = Field(
        default=None, description="Whether the episode is solved, once it is over."
    )


class EpisodeState(BaseModel):
    """Facts of an episode, none of which tells the answer."""

    id: str
    episode_id: str | None = None
    split: str | None = None
    difficulty: str | float | None = None
    seed: int | None = None
    step_count: int = 0
    done: bool = False
    total_reward: float = 0.0


@dataclass(frozen=True)
class Offer:
    """Episodes that a server offers.

    Attributes:
        task_id: id of a task.
        split: ``train``, ``test``, or ``any`` if clients may choose; they then get ``train`` by
            default.
        difficulty: difficulty of episodes for which a client asks for none.
        one_shot: see :func:`begin`.
    """

    task_id: str
    split: str = "train"
    difficulty: str | float | None = None
    one_shot: bool | None = None

    def __post_init__(self) -> None:
        if self.split not in (*SPLITS, "any"):
            raise ValueError(unknown("split", self.split, (*SPLITS, "any")))

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits that a client may ask for; the first is the default."""
        return SPLITS if self.split == "any" else (self.split,)

    def begin(
        self, seed: int, split: str | None = None, difficulty: str | float | None = None
    ) -> Session:
        """Begin an episode.

        Raises:
            ValueError: a split that is not offered, or a wrong seed or difficulty.
        """
        if split is not None and split not in self.splits:
            raise ValueError(
                f"This server offers the split {self.split} only; start it with --split any."
            )
        tier = self.difficulty if difficulty is None else difficulty
        split = split or self.splits[0]
        return begin(
            self.task_id,
            seed=seed,
            split=split,
            difficulty=tier,
            one_shot=self.one_shot,
            keep_messages=False,
        )

    def try_out(self) -> Session:
        """Play a turn of each split and return the last episode.

        The first client then waits for no compilation.

        Raises:
            ValueError: a wrong id or difficulty.
        """
        for split in self.splits:
            tried = self.begin(0, split)
            tried.reply("")
        return tried


class Connection:
    """A client: its episode, and the answers to its frames.

    Args:
        offer: episodes that the client may play.
        tools: tools of these episodes (:func:`listed`).
        seats: one for each session that the server has room for. The first reset takes one;
            :meth:`leave` gives it back.
    """

    def __init__(self, offer: Offer, tools: list[dict[str, Any]], seats: Semaphore) -> None:
        self.offer = offer
        self.tools = tools
        self._seats = seats
        self._seated = False
        self.session: Session | None = None
        self.state = EpisodeState(id=find_card(offer.task_id).id)

    def answer(self, frame: str) -> dict[str, Any] | None:
        """Answer a frame; None means that the client says goodbye."""
        try:
            kind, data = _read(frame)
            if kind == "close":
                return None
            if kind == "state":
                return {"type": "state", "data": self.state.model_dump()}
            return {
                "type": "observation",
                "data": self._reset(data) if kind == "reset" else self._step(data),
            }
        except Refused as refused:
            return _error(refused.code, str(refused))
        except Exception:
            logging.getLogger(__name__).exception("an episode of %s failed", self.offer.task_id)
            self.session = None
            return _error(
                "EXECUTION_ERROR",
                "The episode failed; the server's log says why. Reset to begin another.",
            )

    def leave(self) -> None:
        """Make room for another client."""
        if self._seated:
            self._seats.release()
        self.session = None
        self._seated = False

    def _reset(self, data: dict[str, Any]) -> dict[str, Any]:
        request = _validate(Reset, data)
        if not self._seated and not self._seats.acquire(blocking=False):
            raise Refused(
                "CAPACITY_REACHED",
                "All sessions of this server are taken; close one, or try again later.",
            )
        self._seated = True
        seed = secrets.randbelow(SEED_LIMIT) if request.seed is None else request.seed
        try:
            self.session = self.offer.begin(seed, request.split, request.difficulty)
        except ValueError as error:
            raise Refused("VALIDATION_ERROR", str(error)) from None
        self.state = EpisodeState(
            id=self.state.id,
            episode_id=request.episode_id or secrets.token_hex(8),
            split=request.split or self.offer.splits[0],
            difficulty=self.offer.difficulty if request.difficulty is None else request.difficulty,
            seed=seed,
        )
        return _observation_frame(
            Observation(system=self.session.system, text=self.session.opening).model_dump()
        )

    def _step(self, data: dict[str, Any]) -> dict[str, Any]:
        kind = data.get("type")
        if not (kind is None or (isinstance(kind, str) and kind in ACTIONS)):
            raise Refused(
                "VALIDATION_ERROR",
                unknown("type of action", kind, [name for name in ACTIONS if name]),
            )
        action = _validate(ACTIONS[kind], data)
        if isinstance(action, ListTools):
            return _observation_frame({"tools": self.tools})
        if self.session is None:
            raise Refused("SESSION_ERROR", "No episode has begun: send a reset first.")
        if self.session.done:
            raise Refused("SESSION_ERROR", "The episode is over: send a reset to begin another.")
        if isinstance(action, CallTool):
            turn = self.session.call(action.tool_name, action.arguments)
        else:
            turn = self.session.reply(action.text)
        observation = Observation(text=turn.text).model_dump()
        if turn.done:
            score = self.session.score
            observation |= {
                "score": score if math.isfinite(score) else None,
                "success": self.session.success,
            }
        if isinstance(action, CallTool):  # the fields that OpenEnv's client of tools reads
            observation |= {"tool_name": action.tool_name, "result": turn.text, "error": None}
        self.state.step_count += 1
        self.state.done = turn.done
        self.state.total_reward = self.session.total_reward
        return _observation_frame(observation, turn.reward, turn.done)


def _read(frame: str) -> tuple[str, dict[str, Any]]:
    """Read the type and the data of a frame.

    Raises:
        Refused: it is no frame of the protocol.
    """
    if len(frame) > MAX_FRAME_CHARACTERS:
        raise Refused(
            "FRAME_TOO_LARGE",
            f"A frame has at most {MAX_FRAME_CHARACTERS:,} characters, got {len(frame):,}.",
        )
    try:
        read = json.loads(frame)
    except (ValueError, RecursionError) as error:
        raise Refused("INVALID_JSON", f"A frame is one JSON object: {error}.") from None
    if not isinstance(read, dict):
        raise Refused("INVALID_JSON", f"A frame is one JSON object, got {type(read).__name__}.")
    kind = read.pop("type", None)
    if kind not in ("reset", "step", "state", "close"):
        raise Refused(
            "UNKNOWN_TYPE", unknown("type of frame", kind, ("reset", "step", "state", "close"))
        )
    if kind == "step" and "data" not in read:
        raise Refused("VALIDATION_ERROR", "A step needs data: {'text': 'the reply'}.")
    data = read.pop("data", {})
    if read:
        raise Refused(
            "VALIDATION_ERROR", unknown("field of a frame", next(iter(read)), ("type", "data"))
        )
    if not isinstance(data, dict):
        raise Refused(
            "VALIDATION_ERROR", f"The data of a frame are a JSON object, got {type(data).__name__}."
        )
    return kind, data


def _validate(model: type[Model], data: dict[str, Any]) -> Model:
    for name in data:
        if name not in model.model_fields:
            raise Refused("VALIDATION_ERROR", unknown("field", name, model.model_fields))
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        ]
        raise Refused("VALIDATION_ERROR", "; ".join(faults) + ".") from None


def _observation_frame(
    observation: dict[str, Any], reward: float | None = None, done: bool = False
) -> dict[str, Any]:
    return {"observation": observation, "reward": reward, "done": done}


def _error(code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "data": {"code": code, "message": message}}


def listed(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tools in the form of OpenEnv and MCP: ``name``, ``description``, ``input_schema``."""
    functions = [tool["function"] for tool in tools]
    return [
        {
            "name": function["name"],
            "description": function["description"],
            "input_schema": function["parameters"],
        }
        for function in functions
    ]


def make_app(
    offer: Offer,
    *,
    max_sessions: int = 1000,
    threads: int | None = None,
    idle_seconds: float = IDLE_SECONDS,
    token: str | None = None,
) -> FastAPI:
    """Make the application that serves episodes; run it with uvicorn, or by ``rlsuite serve``.

    Args:
        offer: the episodes.
        max_sessions: number of clients who play at a time. A reset of another gets the error
            ``CAPACITY_REACHED``, and may be tried again.
        threads: threads that compute turns; one for each core by default.
        idle_seconds: time after which a client that sends nothing is disconnected, so that another
            can play.
        token: token that clients must present (:mod:`.guard`). Without one, requests from this
            machine alone are answered.

    Raises:
        ImportError: FastAPI is missing.
        ValueError: a wrong id, split, difficulty or token.
    """
    try:
        from fastapi import FastAPI
        from starlette.routing import WebSocketRoute
        from starlette.websockets import WebSocket, WebSocketDisconnect
    except ImportError as error:
        raise ImportError("The server needs FastAPI: pip install 'rlbench-suite[serve]'") from error
    check_token(token)
    card = find_card(offer.task_id)
    tools = listed(offer.try_out().tools)
    pool = ThreadPoolExecutor(threads or os.cpu_count(), thread_name_prefix="episodes")
    seats = Semaphore(max_sessions)
    connections = Semaphore(max_sessions + SPARE_CONNECTIONS)

    async def serve(websocket: WebSocket) -> None:
        await websocket.accept()
        if not connections.acquire(blocking=False):
            await websocket.close(TRY_AGAIN_LATER, "too many clients")
            return
        connection = Connection(offer, tools, seats)
        try:
            while (event := await next_event(websocket))["type"] == "websocket.receive":
                frame = event.get("text")
                if frame is None:
                    answer: dict[str, Any] | None = _error(
                        "INVALID_JSON", "A frame is text, got bytes."
                    )
                else:
                    answer = await asyncio.get_running_loop().run_in_executor(
                        pool, connection.answer, frame
                    )
                if answer is None:
                    await websocket.close()
                    break
                await websocket.send_text(json.dumps(answer))
        except WebSocketDisconnect:
            pass
        except TimeoutError:
            await websocket.close(
                POLICY_VIOLATION, f"nothing was sent for {idle_seconds:g} seconds"
            )
        finally:
            connection.leave()
            connections.release()

    async def next_event(websocket: WebSocket) -> MutableMapping[str, Any]:
        async with asyncio.timeout(idle_seconds):
            return await websocket.receive()

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        pool.shutdown(wait=False, cancel_futures=True)

    # FastAPI's pages of documentation are left out, because they load scripts from the network.
    app = FastAPI(
        title=card.id,
        lifespan=lifespan,
        routes=[WebSocketRoute("/ws", serve)],
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(Guard, token=token)

    _add_descriptions(app, card)
    return app


def _add_descriptions(app: FastAPI, card: TaskCard) -> None:
    """Add the HTTP routes, which describe the server and keep no episode."""
    from fastapi.responses import JSONResponse

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "healthy"}

    @app.get("/metadata")
    def metadata() -> dict[str, Any]:
        from rlbench_suite import __version__

        return {"name": card.id, "description": card.summary, "version": __version__}

    @app.get("/schema")
    def schema() -> dict[str, Any]:
        return {
            "reset": Reset.model_json_schema(),
            "action": {"anyOf": [action.model_json_schema() for action in ACTIONS.values()]},
            "observation": Observation.model_json_schema(),
            "state": EpisodeState.model_json_schema(),
        }

    def no_session() -> JSONResponse:
        detail = (
            "HTTP requests keep no episode: connect to the WebSocket /ws, and send frames of type "
            "reset and step."
        )
        return JSONResponse({"detail": detail}, UPGRADE_REQUIRED, {"Upgrade": "websocket"})

    for path, method in (("/reset", "POST"), ("/step", "POST"), ("/state", "GET")):
        app.add_api_route(path, no_session, methods=[method], response_model=None)


def run(app: FastAPI, *, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve an application of :func:`make_app` until interrupted.

    Raises:
        ImportError: uvicorn is missing.
    """
    try:
        import uvicorn
        import websockets  # noqa: F401  # without it, uvicorn refuses WebSockets one by one
    except ImportError as error:
        raise ImportError(
            "The server needs uvicorn and websockets: pip install 'rlbench-suite[serve]'"
        ) from error
    with suppress(KeyboardInterrupt):
        uvicorn.run(
            app,
            host=host,
            port=port,
            http=impatient_protocol(),
            ws_max_size=MAX_MESSAGE_BYTES,
            log_level="warning",
        )
