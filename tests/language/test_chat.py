"""Test the client of chat completions against a real server on this machine.

The server answers well, badly and with malice.
"""

import asyncio
import email.utils
import json
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from model_server import Answer, ModelServer, Request, completion, error, tool_call

pytest.importorskip("httpx")

from rlbench_suite.language import chat
from rlbench_suite.language.chat import ChatClient, ChatError, Endpoint, NoReply, Reply

KEY = "sk-very-secret"
QUESTION = [{"role": "user", "content": "What is 6 x 7?"}]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def endpoint(server: ModelServer, **settings: Any) -> Endpoint:
    return Endpoint(**{"model": "toy", "base_url": server.url, "timeout": 5.0} | settings)


def ask(server: ModelServer, times: int = 1, **settings: Any) -> list[Reply]:
    async def all_at_once() -> list[Reply]:
        async with ChatClient(endpoint(server, **settings)) as client:
            return await asyncio.gather(*(client.ask(QUESTION) for _ in range(times)))

    return asyncio.run(all_at_once())


def always(answer: Answer) -> Callable[[Request, int], Answer]:
    return lambda request, before: answer


def answer_in_turn(answers: Iterable[Answer]) -> Callable[[Request, int], Answer]:
    replies = list(answers)
    return lambda request, before: replies[min(before, len(replies) - 1)]


def test_a_request_has_what_the_endpoint_says_and_no_more() -> None:
    with ModelServer(always(completion("42"))) as server:
        (reply,) = ask(server)
        ask(server, temperature=0.0, max_tokens=7)
    assert (reply.text, reply.finish_reason) == ("42", "stop")
    assert reply.usage == (100, 10, False)
    plain = {"model": "toy", "messages": QUESTION}
    assert server.requests == [plain, plain | {"temperature": 0.0, "max_tokens": 7}]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_the_key_comes_from_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "mine")
    with ModelServer(always(completion("42"))) as server:
        ask(server, api_key_env="MY_KEY")
        monkeypatch.delenv("OPENAI_API_KEY")
        ask(server)
    assert server.headers[0]["Authorization"] == "Bearer mine"
    assert "Authorization" not in server.headers[1]


LOST = {
    "rate limit": error(429, "slow down"),
    "fault of the server": error(500),
    "bad gateway": Answer(b"<html>502</html>", 502),
    "overloaded": error(503),
    "closed without an answer": Answer(drop="before"),
    "closed within an answer": completion("42", drop="within"),
    "no answer in time": completion("late", wait=1.0),
    "one byte after the other": completion("late", drip=0.05),
    "no JSON": Answer(b'{"choices": [{"mess'),
    "nothing": Answer(b""),
    "no UTF-8": Answer(b"\xff\xfe\x00"),
    "a list": Answer(b"[1, 2]"),
    "too deep": Answer(b"[" * 100_000),
    "no choices": Answer(b'{"id": "1"}'),
    "an empty list of choices": Answer(b'{"choices": []}'),
    "choices of another type": Answer(b'{"choices": {"0": 1}}'),
    "no message": Answer(b'{"choices": [{"message": "42"}]}'),
    "an error in spite of its status": Answer(b'{"error": {"message": "upstream"}}'),
}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
def test_what_was_lost_is_sent_again(lost: Answer) -> None:
    with ModelServer(answer_in_turn([lost, lost, completion("42")])) as server:
        (reply,) = ask(server, timeout=0.3)
    assert reply.text == "42"
    assert len(server.requests) == 3


REFUSED = {
    400: (error(400, "temperature must be positive"), "temperature must be positive"),
    401: (error(401, "Incorrect API key provided: " + KEY), "Incorrect API key provided: ***"),
    403: (error(403, "not you"), "not you"),
    404: (
        error(404, "no model toy"),
        "no model toy. Check the model 'toy' and the base URL, which usually ends in /v1.",
    ),
    422: (Answer(b'{"error": "messages: required"}', 422), "messages: required"),
    301: (Answer(b"", 301, {"Location": "http://127.0.0.1:1/"}), "status 301: (no message)"),
    429: (error(429, "pay first", "insufficient_quota"), "pay first"),
}


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=map(str, REFUSED))
def test_what_was_refused_is_not_sent_again(refused: Answer, words: str) -> None:
    with ModelServer(always(refused)) as server, pytest.raises(ChatError) as caught:
        ask(server)
    assert words in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


def test_a_refusal_without_a_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with (
        ModelServer(always(error(401))) as server,
        pytest.raises(ChatError, match="OPENAI_API_KEY is not set"),
    ):
        ask(server)


@pytest.mark.parametrize(
    "refused",
    [
        error(400, "This model's maximum context length is 8192 tokens."),
        error(400, "too much", "context_length_exceeded"),
        error(400, "filtered", "content_filter"),
        error(413, "prompt is too long"),
    ],
)
def test_a_conversation_may_be_refused_alone(refused: Answer) -> None:
    with ModelServer(always(refused)) as server, pytest.raises(NoReply):
        ask(server)
    assert len(server.requests) == 1


def test_a_server_that_stays_busy_is_given_up() -> None:
    with ModelServer(always(error(503, "full"))) as server, pytest.raises(ChatError) as caught:
        ask(server)
    assert f"gave no reply in {chat.ATTEMPTS} attempts: status 503: full" in str(caught.value)
    assert len(server.requests) == chat.ATTEMPTS


@pytest.mark.parametrize("wish", ["0.4", "date"])
def test_the_server_says_how_long_to_wait(wish: str) -> None:
    pause = 0.4
    if wish == "date":  # whole seconds
        pause = 1.0
        wish = email.utils.formatdate(time.time() + 2, usegmt=True)
    with ModelServer(answer_in_turn([error(429, retry_after=wish), completion("42")])) as server:
        started = time.perf_counter()
        ask(server)
        assert pause <= time.perf_counter() - started < pause + 2


@pytest.mark.parametrize("wish", ["soon", "-3", "nan", "inf", "Fri, 31 Feb 2026 99:00:00 GMT", ""])
def test_nonsense_about_waiting_is_ignored(wish: str) -> None:
    with ModelServer(answer_in_turn([error(429, retry_after=wish), completion("42")])) as server:
        started = time.perf_counter()
        ask(server)
        assert time.perf_counter() - started < 2


def test_a_server_that_wants_hours_is_given_up_at_once() -> None:
    hours = always(error(429, "daily limit", retry_after="7200"))
    with (
        ModelServer(hours) as server,
        pytest.raises(ChatError, match="come back in 7200 s, status 429: daily limit"),
    ):
        ask(server)
    assert len(server.requests) == 1


def test_pauses_grow_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(chat, "FIRST_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(chat.asyncio, "sleep", sleep)
    with ModelServer(always(error(500))) as server, pytest.raises(ChatError):
        ask(server)
    middles = [0.5, 1, 2, 4, 8, 16, 30]
    assert all(
        0.5 * middle <= pause <= 1.5 * middle for pause, middle in zip(pauses, middles, strict=True)
    )
    assert len({pause / middle for pause, middle in zip(pauses, middles, strict=True)}) == len(
        middles
    )


def test_no_more_requests_at_a_time_than_allowed() -> None:
    with ModelServer(always(completion("42", wait=0.05))) as server:
        assert len(ask(server, times=20, concurrency=4)) == 20
    assert server.most_at_once == 4


def test_a_server_that_is_not_there_is_named_at_once() -> None:
    async def ask_once(url: str) -> None:
        async with ChatClient(Endpoint(model="toy", base_url=url)) as client:
            await client.ask(QUESTION)

    for url in ("http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"):
        started = time.perf_counter()
        with pytest.raises(
            ChatError, match=f"Cannot reach {url}/chat/completions: .*Check --base-url"
        ):
            asyncio.run(ask_once(url))
        assert time.perf_counter() - started < 10


def test_a_long_reply_keeps_its_end() -> None:
    text = "x" * 2**20 + "<answer>42</answer>"
    with ModelServer(always(completion(text))) as server:
        (reply,) = ask(server)
    assert len(reply.text) == chat.MAX_REPLY_CHARACTERS
    assert reply.text.endswith("x<answer>42</answer>")


def test_a_response_without_end_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "MAX_BODY_BYTES", 2**20)
    with ModelServer(always(completion("y" * 2**21 + "<answer>42</answer>"))) as server:
        (reply,) = ask(server)
    assert (reply.text, reply.finish_reason, reply.usage.estimated) == ("", "too large", True)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""), (7, ""), ({}, ""), ([], ""), ("", ""), ("\x00\u2028", "\x00\u2028"),
        ([{"type": "text", "text": "4"}, {"type": "image"}, "no", {"text": 3},
          {"type": "text", "text": "2"}], "42"),
        ("\ud800", "?"),
    ],
)  # fmt: skip
def test_content_of_any_type_is_text(content: Any, text: str) -> None:
    with ModelServer(always(completion(content))) as server:
        (reply,) = ask(server)
    assert reply.text == text
    assert reply.message == {"role": "assistant", "content": text}
    json.dumps(reply.message, ensure_ascii=False).encode()  # it can be sent again


def test_tool_calls_are_read_and_broken_ones_dropped() -> None:
    good = tool_call("add", {"a": 1})
    calls = [
        good,
        tool_call(None, {}),
        "no",
        {"id": 3, "function": {"name": "two", "arguments": {"b": 2}}},
        {"function": 1},
    ]
    with ModelServer(always(completion(None, tool_calls=calls))) as server:
        (reply,) = ask(server)
    assert reply.message["content"] == ""
    assert reply.message["tool_calls"] == [good, tool_call("two", '{"b": 2}', "call_3")]
    for nonsense in ("x", {"a": 1}, 5, []):
        with ModelServer(always(completion("42", tool_calls=nonsense))) as server:
            assert "tool_calls" not in ask(server)[0].message


def test_a_thousand_tool_calls_are_cut() -> None:
    with ModelServer(always(completion(tool_calls=[tool_call("f", {})] * 1000))) as server:
        assert len(ask(server)[0].message["tool_calls"]) == chat.MAX_TOOL_CALLS


@pytest.mark.parametrize(
    "usage",
    [None, {}, "many", {"prompt_tokens": -1, "completion_tokens": 3}, {"prompt_tokens": 1.5}, [1]],
)
def test_tokens_that_are_not_counted_are_estimated(usage: Any) -> None:
    with ModelServer(always(completion("a" * 400, usage=usage))) as server:
        (reply,) = ask(server)
    assert reply.usage.estimated
    assert reply.usage.input_tokens == 4  # 14 characters
    assert 100 <= reply.usage.output_tokens <= 120


def test_the_price_of_tokens() -> None:
    assert Endpoint(model="toy", input_price=2.0, output_price=10.0).cost(
        1_000_000, 100_000
    ) == pytest.approx(3.0)
    assert Endpoint(model="toy", input_price=2.0).cost(1, 1) is None
    assert Endpoint(model="toy", input_price=0.0, output_price=0.0).cost(5, 5) == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": ""}, "A model has a name"),
        (
            {"base_url": "localhost:8000"},
            "A base URL is like http://localhost:8000/v1, got 'localhost:8000'",
        ),
        ({"base_url": "http://me:secret@host/v1"}, "A key belongs into an environment variable"),
        ({"base_url": "http://host/v1?key=secret"}, "A key belongs into an environment variable"),
        ({"api_key_env": "NO_SUCH_KEY"}, "the environment variable NO_SUCH_KEY is not set"),
        ({"temperature": -1}, "temperature must be at least 0, got -1"),
        ({"input_price": float("nan")}, "input_price must be at least 0, got nan"),
        ({"timeout": 0}, "timeout must be a finite number above 0, got 0"),
        ({"concurrency": 0}, "concurrency must be at least 1, got 0"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        Endpoint(**{"model": "toy"} | settings)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "header",
    [
        "Mon, 01 Jan 99999999999 00:00:00 GMT",
        "Mon, 01 Jan 2001 99999999999999999999:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 -0000",
        "Mon, 99 Jan 2001 00:00:00 GMT",
        "9" * 5000,
        "1e400",
        "nan",
        "-1",
        ", " * 10_000,
    ],
)
def test_a_pause_that_makes_no_sense_is_none(header: str) -> None:
    assert chat._retry_after(header) == 0
