"""Serve chat completions of scripted models on this machine.

There are good models, bad ones and hostile ones.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Request = dict[str, Any]


@dataclass
class Answer:
    """An answer of the server: a body, whatever it is, or nothing at all."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    """Seconds before the answer."""
    drip: float = 0.0
    """Seconds between two bytes."""
    drop: str = ""
    """Moment at which to close the connection; empty for none.

    ``before`` closes it without an answer, ``within`` in the middle of one.
    """


Script = Callable[[Request, int], Answer]
"""A model, as a function that returns its answer.

Its arguments are a request, and the number of times that these very messages were sent before.
"""


def completion(
    content: Any = "",
    *,
    tool_calls: Any = None,
    usage: Any = "count",
    **more: Any,
) -> Answer:
    """Return a chat completion; ``usage`` is 100 tokens in and 10 out if it is to count."""
    message = {"role": "assistant", "content": content} | (
        {} if tool_calls is None else {"tool_calls": tool_calls}
    )
    body = {
        "id": "1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    if usage == "count":
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    if usage is not None:
        body["usage"] = usage
    return Answer(json.dumps(body).encode(), **more)


def tool_call(name: Any, arguments: Any, number: Any = "call_a") -> dict[str, Any]:
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return Answer(
        json.dumps(body).encode(),
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
    )


class ModelServer:
    """A server of one scripted model on a free port of this machine, for use with ``with``."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    before = sum(
                        earlier["messages"] == request["messages"] for earlier in outer.requests
                    )
                    outer.requests.append(request)
                    outer.headers.append(dict(self.headers.items()))
                    outer._at_once += 1
                    outer.most_at_once = max(outer.most_at_once, outer._at_once)
                try:
                    self.say(
                        outer.script(request, before)
                        if self.path == "/v1/chat/completions"
                        else error(404)
                    )
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                finally:
                    with outer._lock:
                        outer._at_once -= 1

            def say(self, answer: Answer) -> None:
                time.sleep(answer.wait)
                if answer.drop == "before":
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if answer.drop == "within":
                    self.wfile.write(answer.body[: len(answer.body) // 2])
                    self.close_connection = True
                elif answer.drip:
                    for byte in answer.body:
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                        time.sleep(answer.drip)
                else:
                    self.wfile.write(answer.body)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_: Any) -> None:
                """Say nothing of clients that went away."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
