"""Check requests before they reach a server of episodes.

The checks say who may send requests, and how long a request may take.

A page in a browser can send requests to a server on the same machine. So without a token a server
answers only requests whose ``Host`` is a name of the machine itself, and it never answers pages of
another host. Beyond the machine a server has a token, which stands before each path (``/TOKEN/ws``)
or in the header ``Authorization: Bearer TOKEN``.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

REQUEST_SECONDS = 20.0
"""Seconds in which a client must have sent a whole HTTP request.

An idle HTTP connection stays open as long.
"""
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
"""Form of a token, which stands in addresses."""
UNAUTHORIZED = 401
FORBIDDEN = 403
MISDIRECTED = 421

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def is_loopback(host: str | None) -> bool:
    """Return whether a host name or address means the machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def check_token(token: str | None) -> str | None:
    """Return a token, or None if there is none.

    Raises:
        ValueError: it is too short, or has characters that an address may not have.
    """
    if token is not None and not TOKEN.fullmatch(token):
        raise ValueError(
            f"A token has 16 to 200 letters, digits, '-' and '_'; got {len(token)} characters."
        )
    return token


class Guard:
    """An ASGI application that hands allowed requests to another one, and refuses the rest.

    Args:
        app: the application.
        token: token that each request must have; None on a server that only its own machine can
            reach.

    Raises:
        ValueError: the token is too short, or has characters that an address may not have.
    """

    def __init__(self, app: Application, token: str | None = None) -> None:
        self.app = app
        self.token = check_token(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
            return
        if self.token is not None and _first_segment(scope["path"]) == self.token:
            scope = _without_first_segment(scope)
        await self.app(scope, receive, send)

    def _refusal(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """Return status and reason if a request is refused."""
        host = _host_name(f"//{headers.get(b'host', '')}")
        if self.token is None:
            if not is_loopback(host):
                return MISDIRECTED, "This server answers localhost and 127.0.0.1 only."
        else:
            presented = headers.get(b"authorization", "").removeprefix("Bearer ")
            tokens = (presented, _first_segment(scope["path"]))
            if not any(
                hmac.compare_digest(token.encode(), self.token.encode()) for token in tokens
            ):
                return (
                    UNAUTHORIZED,
                    (
                        "This server needs its token: /TOKEN/ws, or the header Authorization: "
                        "Bearer TOKEN."
                    ),
                )
        origin = headers.get(b"origin")
        if origin is not None:
            page = _host_name(origin)
            if page is None or not (page == host or is_loopback(page)):
                return FORBIDDEN, "This server does not answer pages of other hosts."
        return None


def _host_name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _first_segment(path: str) -> str:
    return path.split("/")[1] if path.startswith("/") else ""


def _without_first_segment(scope: Scope) -> Scope:
    """Return the scope of a request without the first segment of its path."""
    path = "/" + "/".join(scope["path"].split("/")[2:])
    return {**scope, "path": path, "raw_path": path.encode()}


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    """Refuse a request, a WebSocket before it is accepted."""
    kind = "http.response"
    if scope["type"] == "websocket":
        kind = "websocket.http.response"
        if kind not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008, "reason": reason})
            return
    text = reason.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
    ]
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": text})


def impatient_protocol() -> Any:
    """Return uvicorn's HTTP protocol with a limit on the time that a request may take to arrive.

    uvicorn itself waits for ever for the end of a request that has begun.

    Raises:
        ImportError: uvicorn is missing.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class ImpatientProtocol(H11Protocol):
        """Protocol that closes connections on which no whole request arrives in time."""

        def connection_made(self, transport: Any) -> None:
            """Begin to wait."""
            super().connection_made(transport)
            self._wait()

        def _wait(self) -> None:
            self.loop.call_later(REQUEST_SECONDS, self._close_if_half_open)

        def _close_if_half_open(self) -> None:
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return  # it was closed, or has become a WebSocket
            answering = self.cycle is not None and not self.cycle.response_complete
            if answering and self.conn.their_state is not h11.SEND_BODY:
                self._wait()
            else:
                self.transport.close()

    return ImpatientProtocol
