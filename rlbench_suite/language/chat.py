"""An asynchronous client of any OpenAI-compatible endpoint for chat completions.

A request that the network or a busy server lost is sent again, after a pause that grows. A request
that the server refuses is not. Everything that a server sends is untrusted: its size is limited,
and a field of the wrong type counts as absent.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx

Message = dict[str, Any]

OPENAI = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"

MAX_REPLY_CHARACTERS = 200_000
"""Most characters of a reply, about 50,000 tokens.

A longer reply loses its beginning, because answers come last.
"""

MAX_BODY_BYTES = 16 * 2**20
"""Most bytes of a response. A longer one is dropped and counts as an empty reply."""

MAX_TOOL_CALLS = 100
"""Most tool calls of one reply. Further calls are dropped."""

MIN_KEY_CHARACTERS = 12
"""Least number of characters of a key; a shorter one is a placeholder and may be a word."""

ATTEMPTS = 8
FIRST_PAUSE_SECONDS = 0.5
"""Seconds before the second attempt.

Each pause is twice as long as the one before, give or take half.
"""
MAX_PAUSE_SECONDS = 30.0
"""Seconds of a pause, at most."""

MAX_REQUESTED_PAUSE_SECONDS = 300.0
"""Longest pause in seconds that a server may ask for with ``Retry-After``."""

CHARACTERS_PER_TOKEN = 4
"""Usual length of a token in English, for servers that do not count."""

_BUSY = {408, 409, 425, 429}
_HOPELESS = {"context_length_exceeded", "content_filter", "content_policy_violation"}
_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|maximum context|prompt is too long|too many tokens", re.I
)


class ChatError(OSError):
    """An endpoint cannot be used: it cannot be reached, refuses our requests, or stays busy.

    The message says why.
    """


class NoReply(ChatError):
    """The server refuses this one conversation.

    It is too long for the model, or breaks the server's policy.
    """


class _Lost(Exception):
    """An attempt failed and may succeed later. ``pause`` is the server's wish in seconds."""

    def __init__(self, reason: str, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.pause = pause


class Usage(NamedTuple):
    """Tokens of one request."""

    input_tokens: int
    output_tokens: int
    estimated: bool
    """True if the server did not count.

    The numbers are then estimates from the lengths of the texts.
    """


class Reply(NamedTuple):
    """Reply of a model."""

    message: Message
    """The reply as the next request repeats it.

    It has ``role``, ``content``, and ``tool_calls`` where there are any.
    """
    usage: Usage
    finish_reason: str
    """Reason why the model stopped, as the server says it; ``too large`` where we stopped reading.
    """

    @property
    def text(self) -> str:
        """Text of the reply, perhaps empty."""
        return str(self.message["content"])


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model, where it is served, and how it is asked.

    Attributes:
        model: name of the model, as the server knows it.
        base_url: address before ``/chat/completions``; it usually ends in ``/v1``.
        api_key_env: environment variable that holds the key. Without it no key is sent.
        temperature: temperature of sampling; None leaves it to the server.
        max_tokens: most tokens of a reply; None leaves it to the server.
        concurrency: most requests at a time.
        timeout: seconds after which a request without a complete reply counts as lost.
        input_price: dollars for a million tokens of the prompt; None if unknown.
        output_price: dollars for a million tokens of the reply; None if unknown.

    Raises:
        ValueError: a value is out of range, or the address holds a key.
    """

    model: str
    base_url: str = OPENAI
    api_key_env: str = KEY_VARIABLE
    temperature: float | None = None
    max_tokens: int | None = None
    concurrency: int = 16
    timeout: float = 180.0
    input_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("A model has a name; it is empty.")
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"A base URL is like http://localhost:8000/v1, got {self.base_url!r}.")
        if url.username or url.password or url.query:
            raise ValueError(
                "A key belongs into an environment variable, not into the base URL of "
                f"{url.hostname}."
            )
        if self.api_key_env != KEY_VARIABLE and not os.environ.get(self.api_key_env):
            raise ValueError(
                f"There is no API key: the environment variable {self.api_key_env} is not set."
            )
        for name in ("temperature", "input_price", "output_price"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be at least 0, got {value}.")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise ValueError(f"timeout must be a finite number above 0, got {self.timeout}.")
        for name in ("concurrency", "max_tokens"):
            if (count := getattr(self, name)) is not None and count < 1:
                raise ValueError(f"{name} must be at least 1, got {count}.")

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the price of tokens in dollars; None if a price is unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1e6


class ChatClient:
    """A client of one endpoint, for use with ``async with``.

    Raises:
        ImportError: httpx is not installed.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            import httpx
        except ImportError:
            raise ImportError(
                "Language models are asked with httpx, which is not installed: pip install "
                "'rlbench-suite[llm]'"
            ) from None
        self.endpoint = endpoint
        self._url = f"{endpoint.base_url.rstrip('/')}/chat/completions"
        self._key = os.environ.get(endpoint.api_key_env, "")
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._reached = False
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = httpx.Limits(
            max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency
        )
        # The time limit holds for a whole request. That of httpx holds for each part of one, which
        # may never end.
        self._http = httpx.AsyncClient(headers=headers, timeout=None, limits=limits)

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def ask(
        self, messages: list[Message], tools: list[dict[str, Any]] | None = None
    ) -> Reply:
        """Return the model's reply to a conversation.

        Args:
            messages: the conversation so far.
            tools: JSON schemas of the tools that the model may call.

        Raises:
            NoReply: the server refuses this conversation.
            ChatError: the server cannot be reached, refuses the request, or was busy for
                :data:`ATTEMPTS` attempts.
        """
        request: dict[str, Any] = {"model": self.endpoint.model, "messages": messages}
        request |= {"tools": tools} if tools else {}
        for name in ("temperature", "max_tokens"):
            if (value := getattr(self.endpoint, name)) is not None:
                request[name] = value
        pause = FIRST_PAUSE_SECONDS
        async with self._slots:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return await self._attempt(request)
                except _Lost as lost:
                    if attempt == ATTEMPTS:
                        raise ChatError(
                            f"{self._url} gave no reply in {ATTEMPTS} attempts: {lost}."
                        ) from None
                    # Without jitter, all requests that a busy server refused would come back at the
                    # same moment.
                    await asyncio.sleep(lost.pause + pause * random.uniform(0.5, 1.5))
                    pause = min(2 * pause, MAX_PAUSE_SECONDS)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, request: dict[str, Any]) -> Reply:
        """Send a request once.

        Raises:
            _Lost: it may succeed later.
            ChatError: it cannot succeed.
        """
        import httpx

        try:
            async with asyncio.timeout(self.endpoint.timeout):
                status, headers, body = await self._send(request)
        except TimeoutError:
            raise _Lost(f"no complete reply within {self.endpoint.timeout:g} s") from None
        except httpx.ConnectError as error:
            if self._reached:
                raise _Lost(f"the connection failed ({error})") from None
            raise ChatError(f"Cannot reach {self._url}: {error}. Check --base-url.") from None
        except httpx.TransportError as error:
            raise _Lost(f"the connection was lost ({error or type(error).__name__})") from None
        self._reached = True
        if body is None:
            return Reply(
                {"role": "assistant", "content": ""},
                _estimate(request, "x" * MAX_BODY_BYTES),
                "too large",
            )
        if len(self._key) >= MIN_KEY_CHARACTERS:
            # Some servers repeat it, and replies are stored.
            body = body.replace(self._key.encode(), b"***")
        if status == 200:
            return _read(body, request)
        raise self._refusal(status, headers, body)

    def _refusal(self, status: int, headers: httpx.Headers, body: bytes) -> _Lost | ChatError:
        """Return the error of a response that is no completion."""
        reason = f"status {status}: {_error_message(body)}"
        if status in _BUSY or status >= 500:
            wish = _retry_after(headers.get("retry-after", ""))
            if _code(body) == "insufficient_quota":
                return ChatError(f"{self._url} refused, {reason}")
            if wish > MAX_REQUESTED_PAUSE_SECONDS:
                return ChatError(f"{self._url} asks to come back in {wish:.0f} s, {reason}")
            return _Lost(reason, wish)
        if status in (400, 413) and (
            _code(body) in _HOPELESS or _TOO_LONG.search(_error_message(body))
        ):
            return NoReply(f"{self._url} refuses this conversation, {reason}")
        advice = ""
        if status in (401, 403) and not self._key:
            advice = (
                f" No key was sent, because the environment variable {self.endpoint.api_key_env} "
                "is not set."
            )
        elif status == 404:
            advice = (
                f" Check the model {self.endpoint.model!r} and the base URL, which usually ends in "
                "/v1."
            )
        return ChatError(f"{self._url} refused, {reason.rstrip('.')}.{advice}")

    async def _send(self, request: dict[str, Any]) -> tuple[int, httpx.Headers, bytes | None]:
        """Return status, headers and body of a response; the body is None if it is too large."""
        async with self._http.stream("POST", self._url, json=request) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    return response.status_code, response.headers, None
            return response.status_code, response.headers, bytes(body)


def _error_message(body: bytes) -> str:
    """Return the server's message on one line."""
    error = _dictionary(_parse(body)).get("error")
    message = error if isinstance(error, str) else _dictionary(error).get("message")
    text = message if isinstance(message, str) else body[:2000].decode(errors="replace")
    return " ".join(text.split())[:300] or "(no message)"


def _read(body: bytes, request: dict[str, Any]) -> Reply:
    """Read a completion.

    Raises:
        _Lost: there is none in the body.
    """
    parsed = _dictionary(_parse(body))
    choices = parsed.get("choices")
    choice = _dictionary(choices[0]) if isinstance(choices, list) and choices else {}
    completion = choice.get("message")
    if not isinstance(completion, dict):
        raise _Lost(f"the response is no chat completion ({body[:100].decode(errors='replace')!r})")
    message: Message = {
        "role": "assistant",
        "content": _clean(_join_content(completion.get("content")))[-MAX_REPLY_CHARACTERS:],
    }
    if calls := _tool_calls(completion.get("tool_calls")):
        message["tool_calls"] = calls
    usage = _dictionary(parsed.get("usage"))
    counts: list[int] = []
    for name in ("prompt_tokens", "completion_tokens"):
        count = usage.get(name)
        if isinstance(count, int) and 0 <= count < 2**53:
            counts.append(count)
    if len(counts) == 2:
        counted = Usage(counts[0], counts[1], False)
    else:
        counted = _estimate(request, json.dumps(completion))
    return Reply(message, counted, _clean(str(choice.get("finish_reason")))[:100])


def _tool_calls(entries: Any) -> list[dict[str, Any]]:
    """Return the well-formed tool calls of a reply.

    Their arguments are still text that a model wrote.
    """
    calls = []
    for number, entry in enumerate(entries[:MAX_TOOL_CALLS] if isinstance(entries, list) else ()):
        call = _dictionary(entry)
        function = _dictionary(call.get("function"))
        name = function.get("name")
        arguments = function.get("arguments")
        call_id = call.get("id")
        if not isinstance(name, str):
            continue
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        calls.append({
            "id": (
                _clean(call_id)[:200]
                if isinstance(call_id, str) and call_id
                else f"call_{number}"
            ),
            "type": "function",
            "function": {
                "name": _clean(name)[:200],
                "arguments": _clean(arguments)[:MAX_REPLY_CHARACTERS],
            },
        })  # fmt: skip
    return calls


def _join_content(content: Any) -> str:
    """Return content as one text. Some servers send a list of parts."""
    if isinstance(content, list):
        content = "".join(
            text for entry in content if isinstance(text := _dictionary(entry).get("text"), str)
        )
    return content if isinstance(content, str) else ""


def _clean(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON allows and UTF-8 does not."""
    return text.encode("utf-8", "replace").decode()


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _parse(body: bytes) -> Any:
    """Return a JSON text as data; None if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _code(body: bytes) -> Any:
    return _dictionary(_dictionary(_parse(body)).get("error")).get("code")


def _retry_after(header: str) -> float:
    """Return the pause in seconds that a header asks for, as a number or a date.

    Return 0 if it asks for none.
    """
    try:
        return max(0.0, float(header)) if math.isfinite(float(header)) else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):  # years beyond 9999, too
        return 0.0


def _estimate(request: dict[str, Any], reply: str) -> Usage:
    sent = sum(len(str(message.get("content") or "")) for message in request["messages"])
    return Usage(
        math.ceil(sent / CHARACTERS_PER_TOKEN), math.ceil(len(reply) / CHARACTERS_PER_TOKEN), True
    )
