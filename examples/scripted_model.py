"""Serve a scripted model at http://localhost:8123/v1 in place of a real language model.

It guesses cells of TicTacToe and words of Wordle at random. Run it, and in another terminal:

    rlsuite-eval llm scripted --base-url http://localhost:8123/v1 --suite TicTacToe-v0,Wordle-v0 \
        --episodes 10 --samples 4
"""

import json
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ("crane", "sound", "light", "money", "plant", "chest", "black", "story")


def reply(messages: list[dict[str, str]]) -> str:
    """Return the model's reply to a conversation."""
    if any("Wordle" in message["content"] for message in messages):
        return f"Let me try <action>{random.choice(WORDS)}</action>."
    return f"I play <answer>{random.randint(1, 4)} {random.randint(1, 4)}</answer>."


class Handler(BaseHTTPRequestHandler):
    """Answers of the OpenAI form."""

    def do_POST(self) -> None:
        """Answer a request for a chat completion."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = reply(request["messages"])
        read = sum(len(message["content"]) for message in request["messages"]) // 4
        written = len(text) // 4
        completion: dict[str, Any] = {
            "id": "scripted",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            },
        }
        body = json.dumps(completion).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing for each request."""


class Server(ThreadingHTTPServer):
    """Server that many clients may call at once."""

    request_queue_size = 128


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8123
    with Server(("127.0.0.1", port), Handler) as server:
        print(f"http://localhost:{server.server_address[1]}/v1", flush=True)
        server.serve_forever()
