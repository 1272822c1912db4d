"""Evaluate tasksets of verifiers by the library's own command.

A local chat server gives known replies.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("verifiers.v1", reason="verifiers is not installed")

from rlbench_suite.language import CompositeDataset, begin
from rlbench_suite.language.verifiers import Choice, Episodes, Puzzles

EXAMPLES = Path(__file__).parents[2] / "examples"
Replier = Callable[[list[dict[str, str]]], str]


@contextmanager
def chat_server(reply: Replier) -> Iterator[str]:
    """Serve a model whose replies are a function of the messages; yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", "content": reply(request["messages"])}
            answer = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def evaluate_taskset(folder: Path, module: str, reply: Replier, *arguments: str) -> list[dict]:
    """Evaluate the taskset of an example; return the traces."""
    with chat_server(reply) as url:
        command = [
            sys.executable,
            "-c",
            "from verifiers.v1.cli.eval.main import main; main()",
            module,
        ]
        command += [
            "--model",
            "scripted",
            "--client.base-url",
            url,
            "--client.api-key-var",
            "KEY",
            "--no-push",
        ]
        command += ["--no-rich", "--output-dir", str(folder / "out"), *arguments]
        paths = os.pathsep.join((str(EXAMPLES), os.environ.get("PYTHONPATH", "")))
        env = os.environ | {"PYTHONPATH": paths, "KEY": "none"}
        ran = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
    assert ran.returncode == 0, ran.stderr
    files = list((folder / "out").rglob("traces.jsonl"))
    assert files, ran.stderr
    return [
        trace for line in files[0].read_text().splitlines() for trace in json.loads(line)["traces"]
    ]


def test_rows_of_puzzles_are_asked_and_scored(tmp_path: Path) -> None:
    ids = ["Game24-v0", "Sudoku4-v0"]
    dataset = CompositeDataset(dict.fromkeys(ids, 1.0), size=6, split="test")
    answers = {row["question"]: row["answer"] for row in dataset}
    wrong = dataset[2]["question"]

    def reply(messages: list[dict[str, str]]) -> str:
        question = messages[-1]["content"]
        return (
            "none of it" if question == wrong else f"I think <answer>{answers[question]}</answer>"
        )

    arguments = (
        "--env.taskset.ids",
        json.dumps(ids),
        "--env.taskset.size",
        "6",
        "--env.taskset.split",
        "test",
    )
    traces = evaluate_taskset(tmp_path, "verifiers_puzzles", reply, *arguments)
    scores = {trace["task"]["key"]: trace["rewards"]["answer_score"]["score"] for trace in traces}
    assert scores == {row["metadata"]["row"]: float(row["question"] != wrong) for row in dataset}
    assert not any(trace["errors"] for trace in traces)


def test_episodes_are_played_turn_by_turn(tmp_path: Path) -> None:
    words = ["crane", "moist", "bulky", "fudge", "whelp", "vixen"]

    def reply(messages: list[dict[str, str]]) -> str:
        assert messages[0]["role"] == "system"
        turn = sum(message["role"] == "assistant" for message in messages)
        return f"Perhaps <action>{words[turn]}</action>"

    traces = evaluate_taskset(
        tmp_path,
        "verifiers_episodes",
        reply,
        "--env.taskset.ids",
        '["Wordle-v0"]',
        "--env.taskset.size",
        "3",
        "-r",
        "2",
    )
    expected = {}
    for seed in range(3):
        session = begin("Wordle-v0", seed=seed)
        for word in words:
            if not session.done:
                session.reply(f"<action>{word}</action>")
        expected[seed] = session.score, float(session.success), session.turns
    assert len(traces) == 6
    for trace in traces:
        turns = sum(node["message"]["role"] == "assistant" for node in trace["nodes"])
        result = trace["rewards"]["episode_score"]["score"], trace["metrics"]["success"], turns
        assert result == pytest.approx(expected[trace["task"]["data"]["seed"]])


def test_tasksets_are_made_on_request_and_have_stable_keys() -> None:
    puzzles = list(Puzzles(Choice(ids=["Sudoku4-v0"], size=3)))
    assert [task.key for task in puzzles] == [
        f"rlsuite/Sudoku4-v0/{puzzles[0].key.split('/')[2]}/train/{i}" for i in range(3)
    ]
    episodes = list(Episodes(Choice(ids=["Wordle-v0", "Game24-v0"], size=4, split="test")))
    assert [(task.data.task_id, task.data.seed) for task in episodes] == [
        ("rlsuite/Wordle-v0", 0), ("rlsuite/Game24-v0", 0), ("rlsuite/Wordle-v0", 1),
        ("rlsuite/Game24-v0", 1),
    ]  # fmt: skip
    assert episodes[0].data.system_prompt == begin("Wordle-v0").system
    with pytest.raises(ValueError, match="needs ids"):
        list(Puzzles(Choice()))
