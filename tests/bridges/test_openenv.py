"""The server of episodes, played by OpenEnv's own clients over a real socket."""

import asyncio
import json
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Semaphore, Thread
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("openenv.core", reason="OpenEnv's client is not installed")

import httpx
import uvicorn
from openenv.core import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from rlbench_suite.language import begin, guard
from rlbench_suite.language.guard import impatient_protocol
from rlbench_suite.language.openenv import (
    MAX_FRAME_CHARACTERS,
    MAX_MESSAGE_BYTES,
    Connection,
    Offer,
    listed,
    make_app,
)
from rlbench_suite.language.rows import puzzle_of


@contextmanager
def serving(offer: Offer, **keywords: Any) -> Iterator[str]:
    """Run a server on a free port; yield its address."""
    config = uvicorn.Config(
        make_app(offer, **keywords),
        port=0,
        http=impatient_protocol(),
        ws_max_size=MAX_MESSAGE_BYTES,
        log_level="warning",
        lifespan="on",
    )
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def puzzles() -> Iterator[str]:
    with serving(Offer("Game24-v0"), max_sessions=200) as url:
        yield url


@pytest.fixture(scope="module")
def words() -> Iterator[str]:
    with serving(Offer("Wordle-v0", split="any"), max_sessions=2) as url:
        yield url


def answer(seed: int) -> str:
    puzzle = puzzle_of("Game24-v0")
    return f"<answer>{puzzle.solve(puzzle.generate(seed))}</answer>"


def test_their_client_plays_an_episode(puzzles: str) -> None:
    with GenericEnvClient(base_url=puzzles).sync() as client:
        first = client.reset(seed=3)
        assert first.observation["text"] == begin("Game24-v0", seed=3).opening
        assert (first.reward, first.done) == (None, False)
        last = client.step({"text": answer(3)})
        assert (last.reward, last.done) == (1.0, True)
        assert (last.observation["score"], last.observation["success"]) == (1.0, True)
        client.reset(seed=4)
        assert client.step({"text": answer(3)}).reward < 1


def test_turns_are_those_of_the_session(words: str) -> None:
    session = begin("Wordle-v0", seed=5, split="test")
    with GenericEnvClient(base_url=words).sync() as client:
        first = client.reset(seed=5, split="test")
        assert (first.observation["system"], first.observation["text"]) == (
            session.system,
            session.opening,
        )
        for reply in ("<action>crane</action>", "no word", "I try <action>moist</action>"):
            served, ours = client.step({"text": reply}), session.reply(reply)
            assert (served.observation["text"], served.reward, served.done) == ours
        state = client.state()
        assert (state["step_count"], state["seed"], state["split"], state["done"]) == (
            3,
            5,
            "test",
            False,
        )


def test_state_and_observations_keep_the_answer() -> None:
    offer = Offer("Wordle-v0")
    connection = Connection(offer, [], Semaphore(1))
    answers = connection.answer('{"type": "reset", "data": {"seed": 1}}')
    answers = json.dumps([answers, connection.answer('{"type": "state"}')])
    session = offer.begin(1)
    secret = session.task.words[int(session.view.episode.params.hidden)]
    assert secret not in answers.lower()
    assert set(connection.state.model_dump()) == {
        "id", "episode_id", "split", "difficulty", "seed", "step_count", "done", "total_reward",
    }  # fmt: skip


def test_their_client_of_tools_lists_and_calls() -> None:
    with serving(Offer("OfficeApps-v0")) as url:
        session = begin("OfficeApps-v0", seed=2)

        async def play() -> None:
            async with MCPToolClient(base_url=url) as client:
                tools = await client.list_tools()
                assert [tool.model_dump() for tool in tools] == listed(session.tools)
                await client.reset(seed=2)
                arguments = {name: "x" for name in tools[0].input_schema.get("required", [])}
                assert (
                    await client.call_tool(tools[0].name, **arguments)
                    == session.call(tools[0].name, arguments).text
                )
                assert "Not understood" in await client.call_tool("no_such_tool")

        asyncio.run(play())


@pytest.mark.parametrize(
    ("frame", "code", "says"),
    [
        ("{", "INVALID_JSON", "one JSON object"),
        ("[1]", "INVALID_JSON", "got list"),
        ("1" * 5000, "INVALID_JSON", "one JSON object"),
        ("[" * 100_000, "INVALID_JSON", "one JSON object"),
        ('{"data": {}}', "UNKNOWN_TYPE", "Known: close, reset, state, step"),
        ('{"type": "rest"}', "UNKNOWN_TYPE", "Did you mean 'reset'?"),
        ('{"type": ["reset"]}', "UNKNOWN_TYPE", "Known"),
        ('{"type": "step"}', "VALIDATION_ERROR", "needs data"),
        ('{"type": "reset", "date": {}}', "VALIDATION_ERROR", "Did you mean 'data'?"),
        ('{"type": "reset", "data": [1]}', "VALIDATION_ERROR", "got list"),
        ('{"type": "reset", "data": {"sed": 1}}', "VALIDATION_ERROR", "Did you mean 'seed'?"),
        ('{"type": "reset", "data": {"seed": "1"}}', "VALIDATION_ERROR", "seed: "),
        ('{"type": "reset", "data": {"seed": true}}', "VALIDATION_ERROR", "seed: "),
        (
            '{"type": "reset", "data": {"seed": -1}}',
            "VALIDATION_ERROR",
            "greater than or equal to 0",
        ),
        ('{"type": "reset", "data": {"seed": 1e400}}', "VALIDATION_ERROR", "seed: "),
        (f'{{"type": "reset", "data": {{"seed": {10**40}}}}}', "VALIDATION_ERROR", "2**64"),
        ('{"type": "reset", "data": {"difficulty": "hrad"}}', "VALIDATION_ERROR", "difficulty"),
        ('{"type": "reset", "data": {"difficulty": NaN}}', "VALIDATION_ERROR", "difficulty"),
        (
            '{"type": "reset", "data": {"split": "test"}}',
            "VALIDATION_ERROR",
            "the split train only",
        ),
        ('{"type": "reset", "data": {"split": "tset"}}', "VALIDATION_ERROR", "'train' or 'test'"),
        ('{"type": "step", "data": {"text": "x"}}', "SESSION_ERROR", "send a reset first"),
        ('{"type": "step", "data": {"txt": "x"}}', "VALIDATION_ERROR", "Did you mean 'text'?"),
        ('{"type": "step", "data": {"text": 1}}', "VALIDATION_ERROR", "text: "),
        ('{"type": "step", "data": {}}', "VALIDATION_ERROR", "text: "),
        (
            '{"type": "step", "data": {"type": "call"}}',
            "VALIDATION_ERROR",
            "Did you mean 'call_tool'?",
        ),
        (
            '{"type": "step", "data": {"type": []}}',
            "VALIDATION_ERROR",
            "Known: call_tool, list_tools",
        ),
        (
            '{"type": "step", "data": {"type": "call_tool", "tool_name": 1}}',
            "VALIDATION_ERROR",
            "tool_name: ",
        ),
        ('{"type": "state", "data": "x"}', "VALIDATION_ERROR", "got str"),
    ],
)
def test_a_wrong_frame_gets_a_clear_error(frame: str, code: str, says: str) -> None:
    answer = Connection(Offer("Game24-v0"), [], Semaphore(1)).answer(frame)
    assert answer is not None
    assert answer["type"] == "error"
    assert answer["data"]["code"] == code
    assert says in answer["data"]["message"]


def test_wrong_frames_leave_the_episode_as_it_is(puzzles: str) -> None:
    async def play() -> None:
        async with connect(puzzles.replace("http", "ws") + "/ws", max_size=None) as socket:

            async def ask(frame: str | bytes) -> dict:
                await socket.send(frame)
                return json.loads(await socket.recv())

            await ask('{"type": "reset", "data": {"seed": 8}}')
            for wrong in (
                "{",
                b"\x00",
                '{"type": "x"}',
                '{"type": "step", "data": {"text": 3}}',
                "x" * (MAX_FRAME_CHARACTERS + 1),
            ):
                assert (await ask(wrong))["type"] == "error"
            reply = await ask(
                json.dumps({"type": "step", "data": {"text": "\ud800" + "?" * 10**6 + answer(8)}})
            )
            assert (reply["data"]["reward"], reply["data"]["done"]) == (1.0, True)
            reply = await ask(json.dumps({"type": "step", "data": {"text": answer(8)}}))
            assert reply["data"]["code"] == "SESSION_ERROR"
            assert "is over" in reply["data"]["message"]
            await socket.send("x" * (MAX_MESSAGE_BYTES + 1))
            with pytest.raises(ConnectionClosedError, match="1009"):
                await socket.recv()

    asyncio.run(play())


def test_a_full_server_says_so_and_has_room_again_when_a_client_leaves(words: str) -> None:
    third = GenericEnvClient(base_url=words).sync()
    with third, GenericEnvClient(base_url=words).sync() as first:
        with GenericEnvClient(base_url=words).sync() as second:
            first.reset()
            second.reset()
            with pytest.raises(RuntimeError, match=r"All sessions .* CAPACITY_REACHED"):
                third.reset()
        for _ in range(1000):  # until the server has seen that the client left
            try:
                assert third.reset().observation["text"]
                break
            except RuntimeError:
                time.sleep(0.01)
        else:
            pytest.fail("a client left, but there is no room")


def test_http_says_what_is_served_and_where_episodes_are(puzzles: str) -> None:
    assert httpx.get(puzzles + "/health").json() == {"status": "healthy"}
    assert httpx.get(puzzles + "/metadata").json()["name"] == "rlsuite/Game24-v0"
    assert {"action", "observation", "state"} <= httpx.get(puzzles + "/schema").json().keys()
    for reply in (
        httpx.post(puzzles + "/reset", json={}),
        httpx.post(puzzles + "/step"),
        httpx.get(puzzles + "/state"),
    ):
        assert reply.status_code == 426
        assert "/ws" in reply.json()["detail"]


def test_a_hundred_episodes_at_once_are_not_mixed_up(puzzles: str) -> None:
    """Each client plays its seed.

    Even ones answer rightly and odd ones with their neighbour's answer.
    """
    alone = {}
    for seed in range(100):
        session = begin("Game24-v0", seed=seed)
        alone[seed] = session.opening, session.reply(answer(seed - seed % 2)).reward

    async def play(seed: int) -> tuple[str, float]:
        async with GenericEnvClient(base_url=puzzles) as client:
            opening = (await client.reset(seed=seed)).observation["text"]
            await together.wait()  # all have begun before any goes on
            return opening, (await client.step({"text": answer(seed - seed % 2)})).reward

    async def play_all() -> list[tuple[str, float]]:
        return await asyncio.gather(*(play(seed) for seed in alone))

    together = asyncio.Barrier(len(alone))
    assert dict(enumerate(asyncio.run(play_all()))) == alone
    assert 50 <= sum(reward == 1 for _, reward in alone.values()) < 60


def test_turns_computed_in_several_threads_are_those_of_one() -> None:
    def play(seed: int) -> list[tuple[str, float]]:
        session = begin("Wordle-v0", seed=seed)
        return [tuple(session.reply(word)[:2]) for word in ("crane", "moist", "bulky")]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, range(40))) == [play(seed) for seed in range(40)]


def test_wrong_settings_are_refused_before_anything_is_served() -> None:
    with pytest.raises(ValueError, match="Wordle"):
        make_app(Offer("Wordl-v0"))
    with pytest.raises(ValueError, match="Unknown split 'tset'"):
        Offer("Wordle-v0", split="tset")


def test_pages_of_other_hosts_and_other_names_of_this_one_are_refused(puzzles: str) -> None:
    address = puzzles.replace("http", "ws") + "/ws"

    async def status(**headers: str) -> int:
        try:
            async with connect(
                address, additional_headers=headers, origin=headers.pop("origin", None)
            ):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    port = puzzles.rpartition(":")[2]
    for origin, expected in (
        (None, 101),
        ("http://localhost:3000", 101),
        (f"http://127.0.0.1:{port}", 101),
        ("http://evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("http://localhost@evil.example", 403),
        ("null", 403),
    ):
        assert asyncio.run(status(**({} if origin is None else {"origin": origin}))) == expected, (
            origin
        )
        headers = {} if origin is None else {"Origin": origin}
        assert httpx.get(puzzles + "/health", headers=headers).status_code == (
            200 if expected == 101 else expected
        )
    for host in ("evil.example", f"evil.example:{port}", "10.0.0.1"):
        assert httpx.get(puzzles + "/health", headers={"Host": host}).status_code == 421
    assert httpx.get(puzzles + "/health", headers={"Host": f"localhost:{port}"}).status_code == 200


def test_a_server_with_a_token_answers_nobody_without_it() -> None:
    token = "a-token-of-some-letters"
    with serving(Offer("Game24-v0"), token=token) as url:
        for wrong in (url, f"{url}/{token}x", f"{url}/x"):
            assert httpx.get(f"{wrong}/health").status_code == 401
            with (
                pytest.raises(ConnectionError, match="401"),
                GenericEnvClient(base_url=wrong).sync() as client,
            ):
                client.reset()
        assert (
            httpx.get(f"{url}/health", headers={"Authorization": f"Bearer {token}"}).status_code
            == 200
        )
        assert (
            httpx.get(f"{url}/{token}/health", headers={"Host": "server.example"}).status_code
            == 200
        )
        assert (
            httpx.get(
                f"{url}/{token}/health", headers={"Origin": "http://evil.example"}
            ).status_code
            == 403
        )
        with GenericEnvClient(base_url=f"{url}/{token}").sync() as client:
            assert client.reset(seed=3).observation["text"]
    with pytest.raises(ValueError, match="16 to 200"), serving(Offer("Game24-v0"), token="short"):
        pass


def test_a_client_that_says_nothing_loses_its_seat() -> None:
    async def play(url: str) -> None:
        address = url.replace("http", "ws") + "/ws"
        reset = '{"type": "reset", "data": {"seed": 1}}'
        async with connect(address) as first:
            await first.send(reset)
            await first.recv()
            for _ in range(6):
                await asyncio.sleep(0.5)
                await first.send('{"type": "state"}')  # a client who says something keeps its seat
                assert "state" in await first.recv()
            async with connect(address) as second:
                await second.send(reset)
                assert "CAPACITY_REACHED" in await second.recv()
            with pytest.raises(ConnectionClosedError, match="nothing was sent for 2 seconds"):
                await first.recv()
        async with connect(address) as third:
            await third.send(reset)
            assert "observation" in await third.recv()

    with serving(Offer("Game24-v0"), max_sessions=1, idle_seconds=2) as url:
        asyncio.run(play(url))


def test_half_a_request_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "REQUEST_SECONDS", 0.5)
    halves = (
        b"",
        b"GET /health HTTP/1.1\r\nHost: local",
        b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
    )
    with serving(Offer("Game24-v0")) as url:
        port = int(url.rpartition(":")[2])
        for half in halves:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                client.sendall(half)
                while client.recv(4096):  # an answer, if there is one, then the end
                    pass


def test_no_page_loads_scripts(puzzles: str) -> None:
    for path in ("/docs", "/redoc"):
        assert httpx.get(puzzles + path).status_code == 404


def test_long_replies_take_no_memory() -> None:
    connection = Connection(Offer("TMaze-v0", one_shot=False), [], Semaphore(1))
    connection.answer('{"type": "reset", "data": {"seed": 1}}')
    frame = json.dumps({"type": "step", "data": {"text": "x" * 1_000_000}})
    connection.answer(frame)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        turns = 0
        for _ in range(5):
            answer = connection.answer(frame)
            assert answer is not None
            turns += answer["type"] == "observation"
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert turns >= 3
    assert after - before < 500_000


def test_the_command_serves_six_clients_on_one_database() -> None:
    """Play in a process of its own.

    Threads that wait for each other inside SQLite cannot be ended.
    """
    queries = (
        "SELECT COUNT(*) FROM {0}, {0} b WHERE b.id > 0",
        "SELECT * FROM {0}",
        "SELECT COUNT(*) FROM {0}, {0} b, {0} c, {0} d, {0} e",
    )

    async def play(url: str) -> int:
        turns = 0
        async with GenericEnvClient(base_url=url) as client:
            opening = json.dumps((await client.reset(seed=1)).observation)
            assert "database" in opening
            for number in range(60):
                query = queries[number % 3].format("orders")
                result = await client.step({"text": f"run {query}"})
                turns += 1
                if result.done:
                    await client.reset(seed=1)
        return turns

    async def play_all(url: str) -> list[int]:
        async with asyncio.timeout(120):
            return await asyncio.gather(*(play(url) for _ in range(6)))

    with command("SQL-v0") as url:
        assert asyncio.run(play_all(url)) == [60] * 6


def test_the_command_draws_a_token_for_other_machines() -> None:
    code = (
        "import uvicorn; uvicorn.run = lambda *a, **k: print('never bound');"
        "from rlbench_suite.cli.suite import app; app()"
    )
    arguments = [sys.executable, "-c", code, "serve", "Game24-v0", "--host"]
    beyond = subprocess.run(
        [*arguments, "0.0.0.0"], capture_output=True, text=True, timeout=120, check=True
    )
    assert "who has the token" in beyond.stderr
    assert len(beyond.stderr.partition("ws://0.0.0.0:8000/")[2].partition("/ws")[0]) >= 16
    local = subprocess.run(
        [*arguments, "127.0.0.1"], capture_output=True, text=True, timeout=120, check=True
    )
    assert "token" not in local.stderr
    assert "ws://127.0.0.1:8000/ws" in local.stderr


@contextmanager
def command(task: str) -> Iterator[str]:
    """Run ``rlsuite serve`` on a free port; yield its address, and kill it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [
        sys.executable,
        "-c",
        "from rlbench_suite.cli.suite import app; app()",
        "serve",
        task,
    ]
    with subprocess.Popen([*arguments, "--port", str(port)], stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(1200):
                assert process.poll() is None
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
