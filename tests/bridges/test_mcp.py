"""The server of an episode's tools, used by the real client of MCP."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("mcp", reason="MCP is not installed")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from rlbench_suite.language import begin
from rlbench_suite.language.mcp import server
from rlbench_suite.language.openenv import listed
from rlbench_suite.language.rows import puzzle_of

META = "rlbench-suite/episode"


def test_the_client_sees_the_task_and_the_tools() -> None:
    session = begin("OfficeApps-v0", seed=2)

    async def look() -> None:
        async with Client(server(session)) as client:
            assert session.opening in (client.instructions or "")
            prompt = await client.get_prompt("task")
            assert prompt.messages[0].content.text == client.instructions
            tools = (await client.list_tools()).tools
            schemas = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.input_schema,
                }
                for tool in tools
            ]
            assert schemas == listed(session.tools)

    asyncio.run(look())


def test_calls_play_the_episode_and_metadata_tell_its_score() -> None:
    puzzle = puzzle_of("Game24-v0")
    answer = puzzle.solve(puzzle.generate(6))
    session = begin("Game24-v0", seed=6)

    async def play() -> None:
        async with Client(server(session)) as client:
            wrong = await client.call_tool("submit_answer", {"answr": answer})
            assert wrong.is_error
            assert "Not understood" in wrong.content[0].text
            assert wrong.meta[META]["score"] is None
            right = await client.call_tool("submit_answer", {"answer": answer})
            assert not right.is_error
            assert right.meta[META] == {"reward": 1.0, "done": True, "score": 1.0, "success": True}
            over = await client.call_tool("submit_answer", {"answer": answer})
            assert over.is_error
            assert "is over" in over.content[0].text

    asyncio.run(play())
    assert session.score == 1


def test_calls_are_those_of_the_session() -> None:
    served, ours = (begin("OfficeApps-v0", seed=4) for _ in range(2))
    name = ours.tools[0]["function"]["name"]
    required = ours.tools[0]["function"]["parameters"].get("required", [])
    calls = [
        (name, dict.fromkeys(required, "x")),
        (name, {"no such": 1}),
        ("nothing", {}),
        (name, {"text": [[]]}),
    ]

    async def play() -> list[tuple[str, bool]]:
        async with Client(server(served)) as client:
            results = [await client.call_tool(*call) for call in calls]
            return [(result.content[0].text, result.is_error) for result in results]

    answers = asyncio.run(play())
    turns = [ours.call(*call).text for call in calls]
    assert [text for text, _ in answers] == turns
    assert [error for _, error in answers][1:] == [True] * 3


def test_calls_at_once_are_played_one_after_another() -> None:
    session = begin("Wordle-v0", seed=3)

    async def play() -> None:
        async with Client(server(session)) as client:
            await asyncio.gather(
                *(client.call_tool("reply", {"text": word}) for word in ("crane", "moist", "bulky"))
            )

    asyncio.run(play())
    assert session.turns == 3


def test_the_command_serves_a_pipe() -> None:
    code = "from rlbench_suite.cli.suite import app; app()"
    arguments = ["-c", code, "mcp", "Game24-v0", "--seed", "6"]

    async def play() -> None:
        async with Client(
            stdio_client(StdioServerParameters(command=sys.executable, args=arguments))
        ) as client:
            assert begin("Game24-v0", seed=6).briefing == client.instructions
            assert (await client.call_tool("submit_answer", {"answer": "1"})).meta[META][
                "done"
            ] in (True, False)

    asyncio.run(play())


def test_the_command_serves_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from rlbench_suite.cli.suite import app; app()"
    arguments = ["mcp", "Game24-v0", "--transport", "http", "--seed", "6", "--port", str(port)]
    puzzle = puzzle_of("Game24-v0")
    answer = puzzle.solve(puzzle.generate(6))

    async def play() -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            assert begin("Game24-v0", seed=6).briefing == client.instructions
            result = await client.call_tool("submit_answer", {"answer": answer})
            assert result.meta[META] == {"reward": 1.0, "done": True, "score": 1.0, "success": True}
        async with Client(f"http://127.0.0.1:{port}/mcp") as another:  # a server has one episode
            assert (await another.call_tool("submit_answer", {"answer": answer})).is_error

    with subprocess.Popen([sys.executable, "-c", code, *arguments]) as process:
        try:
            wait_until_open(port, process)
            asyncio.run(play())
        finally:
            process.terminate()


def wait_until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port}")
