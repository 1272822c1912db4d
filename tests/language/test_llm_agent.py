"""Test the agent ``llm``.

Scripted models on a real server play puzzles and games, in one sitting and in several.
"""

import asyncio
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from model_server import Answer, ModelServer, Request, completion, error, tool_call
from rich.console import Console

from rlbench_suite.cli import evaluate
from rlbench_suite.cli.run_commands import execution
from rlbench_suite.core.registry import card
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.protocol import evaluation_seeds
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.pass_at_k import pass_at_k, pass_hat_k, passing
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs.language_model import LanguageModel, transcripts_path
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_manifest
from rlbench_suite.evaluation.runs.runner import in_process, plan
from rlbench_suite.language import chat
from rlbench_suite.language.chat import ChatError, Endpoint
from rlbench_suite.language.playing import Game, Transcript, TranscriptFile, play_all, rejudge
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.language.session import begin
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry

PUZZLES = ("SAT-v0", "KnightsAndKnaves-v0")
EPISODES = 5


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture(scope="module")
def solutions() -> dict[str, str]:
    """Answers of the exact solvers to the test instances of two seeds, by prompt."""
    answers = {}
    for name in PUZZLES:
        puzzle = puzzle_of(name)
        first, second = (evaluation_seeds(card(name), seed, "smoke") for seed in range(2))
        for seed in (*first[:EPISODES], *second[:EPISODES]):
            instance = puzzle.generate(seed, "test")
            answers[puzzle.prompt(instance)] = puzzle.solve(instance)
    return answers


def question(request: Request) -> str:
    return str(request["messages"][0]["content"])


def model(server: ModelServer, **settings: Any) -> LanguageModel:
    endpoint = {
        name: settings.pop(name) for name in ("input_price", "output_price") if name in settings
    }
    at = Endpoint(model="toy/model:1", base_url=server.url, timeout=10.0, concurrency=8, **endpoint)
    return LanguageModel(endpoint=at, **{"episodes": EPISODES} | settings)


def run_all(
    path: Path, player: LanguageModel, tasks: str = ",".join(PUZZLES), seeds: int = 2
) -> Report:
    with OpenRun.open(path, plan("", tasks, seeds, "smoke", model=player)) as run, run.sitting():
        for event in in_process(run, player):
            assert event.kind != "failed", event.value
        run.merge()
        return Report.of(run)


def table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path / "episodes.parquet").to_pylist()
    return rows


def play_one(server: ModelServer, game: Game) -> Transcript:
    (transcript,) = play_all([game], Endpoint(model="toy", base_url=server.url))
    return transcript


# -- scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "c"), [(1, 0), (1, 1), (5, 0), (5, 2), (6, 5), (6, 6)])
def test_pass_at_k_and_pass_hat_k_are_means_over_all_choices_of_k(n: int, c: int) -> None:
    attempts = [True] * c + [False] * (n - c)
    for k in range(1, n + 1):
        choices = list(combinations(attempts, k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))
        assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    for estimate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=f"got n = {n}, c = {c}, k = {k}"):
            estimate(n, c, k)


def test_a_model_with_failed_cells_has_no_chances() -> None:
    """Those of its other cells would reward it for failing."""
    task = "rlsuite/Game24-v0"
    measures = [("input_tokens", 1.0), ("output_tokens", 1.0), ("estimated", 0.0)]
    row = {"episode_seed": 1, "success": True, "measures": measures}
    schema = pa.schema([
        ("episode_seed", pa.int64()), ("success", pa.bool_()),
        ("measures", pa.map_(pa.string(), pa.float64())),
    ])  # fmt: skip
    settings = {"samples": 1, "one_shot": True, "lenient": False}
    cells = {seed: Cell("llm", task, seed) for seed in (0, 1)}
    run: Any = SimpleNamespace(
        results=lambda: [SimpleNamespace(agent="llm", cell=cells[0])],
        read_episodes=lambda cell: pa.Table.from_pylist([row], schema),
        failures=lambda: [],
        manifest=SimpleNamespace(
            models={"llm": {}}, references={task: {}}, hyperparameters={"llm": {task: settings}}
        ),
    )
    assert [each.agent for each in passing(run)] == ["llm"]
    run.failures = lambda: [cells[1]]
    assert passing(run) == []


def test_a_run_has_the_scores_that_the_replies_earn(
    solutions: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Make i of four attempts right at the instance in place i; the last one has none or four."""
    position_of_question: dict[str, int] = {}

    def script(request: Request, before: int) -> Answer:
        right = before < position_of_question.setdefault(
            question(request), list(solutions).index(question(request)) % EPISODES
        )
        return completion(f"<answer>{solutions[question(request)] if right else 'no'}</answer>")

    with ModelServer(script) as server:
        player = model(server, samples=4, input_price=3.0, output_price=15.0)
        report = run_all(tmp_path, player)
    assert len(server.requests) == 2 * 2 * EPISODES * 4
    counts = [0, 1, 2, 3, 4]
    for row, each, task in zip(report.rows, report.models, PUZZLES, strict=True):
        means = {name: trivial.mean for name, trivial in card(task).one_shot_scores().items()}
        assert row.card.name == each.card.name == task
        assert row.agent == each.agent == "llm.toy-model-1"
        assert row.mean_return == pytest.approx(0.5)
        assert row.success_rate == pytest.approx(0.5)
        assert row.score.point == pytest.approx(
            (0.5 - means["guess"]) / (means["solver"] - means["guess"])
        )
        assert row.scale.zero.mean == means["guess"]
        assert row.scale.reference.mean == means["solver"]
        assert (each.instances, each.samples, each.form) == (2 * EPISODES, 4, "one answer")
        assert list(each.at_least_one) == [1, 2, 4]
        for k, at in each.at_least_one.items():
            hat = each.all_right[k]
            assert at.mean == pytest.approx(sum(pass_at_k(4, c, k) for c in counts) / 5)
            assert hat.mean == pytest.approx(sum(pass_hat_k(4, c, k) for c in counts) / 5)
            assert 0 <= at.low < at.mean < at.high <= 1
            assert at.episodes == 2 * EPISODES  # an instance counts once
        assert (each.input_tokens, each.output_tokens, each.estimated) == (100, 10, False)
        assert each.dollars == pytest.approx(2 * EPISODES * 4 * (100 * 3 + 10 * 15) / 1e6)
        assert each.best_trivial == max(
            means[name] for name in ("nothing", "guess", "constant", "heuristic")
        )
    rows = table(tmp_path)
    assert len(rows) == 2 * 2 * EPISODES * 4
    assert {row["length"] for row in rows} == {1}
    assert all(row["terminated"] for row in rows)

    # The same numbers in the terminal and on the page.
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=140))
    output = stream.getvalue()
    assert re.search(
        r"SAT-v0 +llm.toy-model-1 .*0\.500 \[.*0\.800 \[.*0\.200 \[.*100 +10 +\$0\.018", output
    )
    assert "0 is a random answer of the right format, 1 the exact solver" in " ".join(
        output.split()
    )
    write_html(report)
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Language models</h2>" in page
    assert "4: 0.800 <small>[" in page
    assert "$0.018" in page

    # All of it can be judged again, and a changed transcript is found.
    file = transcripts_path(tmp_path, Cell(player.name, card("SAT-v0").id, 1))
    assert rejudge_run(tmp_path, capsys) == (
        0,
        f"{len(rows)} of {len(rows)}",
    )
    lines = file.read_text().splitlines()
    forged = json.loads(lines[3]) | {
        "result": {"score": 0.75, "total_reward": 1.0, "success": True, "turns": 1}
    }
    file.write_text("\n".join([*lines[:3], json.dumps(forged), *lines[4:]]) + "\n")
    assert rejudge_run(tmp_path, capsys) == (
        1,
        f"{len(rows) - 1} of {len(rows)}",
    )

    # A board replays actions, so it refuses replies.
    entry = Entry(name="words", agent=player.name)
    with pytest.raises(ValueError, match="is a language model, which answers in words"):
        pack(tmp_path, entry, tmp_path / "entry.zip")


def rejudge_run(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        evaluate.app(["rejudge", str(path)])
    return int(left.value.code or 0), capsys.readouterr().out.partition(" transcripts")[0]


# -- games -----------------------------------------------------------------------------------------

GUESSES = (
    "crane",
    "I try <action>slot</action>.",
    "sound",
    "<think>crane?</think> <action>sound</action>",
    "x" * 2**20,
)
"""Replies to Wordle, after which the model repeats the first.

They are a word, no word of the list, words of the list, and a megabyte.
"""


def guess(request: Request) -> str:
    num_guesses = sum(message["role"] == "assistant" for message in request["messages"])
    return GUESSES[num_guesses % len(GUESSES)]


def play_by_hand(seed: int, moves: Callable[[int], str]) -> Any:
    session = begin("Wordle-v0", seed=seed, split="test", one_shot=False)
    number = 0
    while not session.done:
        session.reply(moves(number))
        number += 1
    return session


def test_a_game_has_the_score_of_its_replies(tmp_path: Path) -> None:
    with ModelServer(lambda request, before: completion(guess(request))) as server:
        report = run_all(tmp_path, model(server, samples=2), "Wordle-v0", seeds=1)
    (each,) = report.models
    assert (each.form, each.best_trivial) == ("turns", None)
    rows = table(tmp_path)
    assert [row["episode_seed"] for row in rows] == [
        seed
        for seed in evaluation_seeds(card("Wordle-v0"), 0, "smoke")[:EPISODES]
        for _ in range(2)
    ]
    for row in rows:
        session = play_by_hand(
            row["episode_seed"],
            lambda number: GUESSES[number % len(GUESSES)][-chat.MAX_REPLY_CHARACTERS :],
        )
        assert (row["return"], row["success"], row["length"]) == (
            session.total_reward,
            session.success,
            session.turns,
        )
        assert row["score"] == pytest.approx(session.score)
        assert dict(row["measures"])["input_tokens"] == 100 * session.turns
    assert report.rows[0].scale == card("Wordle-v0").scale()
    assert "exact solver" not in " ".join(report_text(report).split())


def report_text(report: Report) -> str:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=140))
    return stream.getvalue()


CALLS: dict[str, Any] = {
    "good": [tool_call("reply", {"text": "crane"})],
    "two": [tool_call("reply", {"text": "crane"}, "a"), tool_call("reply", {"text": "sound"}, "b")],
    "no JSON": [tool_call("reply", "{'text': crane}")],
    "no object": [tool_call("reply", "[1, 2]")],
    "another name": [tool_call("rm", {"text": "crane"})],
    "another argument": [tool_call("reply", {"word": "crane"})],
    "too deep": [tool_call("reply", "[" * 100_000)],
    "a hundred thousand characters": [tool_call("reply", {"text": "c" * 100_000})],
    "none": [],
}


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
def test_tool_calls_good_and_bad_are_played_and_answered(calls: list[Any]) -> None:
    seed = evaluation_seeds(card("Wordle-v0"), 0, "smoke")[0]
    with ModelServer(lambda request, before: completion(None, tool_calls=calls)) as server:
        transcript = play_one(server, Game(card("Wordle-v0").id, seed, tools=True))
        assert server.requests[0]["tools"] == begin("Wordle-v0", one_shot=False).tools
        for request in server.requests[
            1:
        ]:  # each call has one answer, in order, as every server demands
            call_ids = [
                call["id"]
                for message in request["messages"]
                for call in message.get("tool_calls", ())
            ]
            answered_ids = [
                message["tool_call_id"]
                for message in request["messages"]
                if message["role"] == "tool"
            ]
            assert call_ids == answered_ids
    readable = calls if calls in (CALLS["good"], CALLS["two"]) else ()
    good = [json.loads(call["function"]["arguments"])["text"] for call in readable]
    session = play_by_hand(seed, lambda number: good[number % len(good)] if good else "")
    assert transcript.result == (
        session.score,
        session.total_reward,
        session.success,
        session.turns,
    )
    assert rejudge(Transcript.from_json(transcript.to_json())) == transcript.result


def test_without_tools_a_call_is_no_reply() -> None:
    seed = evaluation_seeds(card("Wordle-v0"), 0, "smoke")[0]
    with ModelServer(
        lambda request, before: completion("sound", tool_calls=CALLS["good"])
    ) as server:
        transcript = play_one(server, Game(card("Wordle-v0").id, seed))
    assert not any(
        "tools" in request or "tool_calls" in str(request) for request in server.requests
    )
    assert transcript.result.score == play_by_hand(seed, lambda number: "sound").score


def test_a_game_that_the_server_refuses_to_continue_is_played_to_its_end() -> None:
    """A model must not save its score by making a conversation too long."""
    seed = evaluation_seeds(card("Wordle-v0"), 0, "smoke")[0]

    def script(request: Request, before: int) -> Answer:
        return (
            error(400, code="context_length_exceeded")
            if len(request["messages"]) > 6
            else completion("sound")
        )

    with ModelServer(script) as server:
        transcript = play_one(server, Game(card("Wordle-v0").id, seed))
    num_replies = len(server.requests) - 1
    assert num_replies == 3
    session = play_by_hand(seed, lambda number: "sound" if number < num_replies else "")
    assert transcript.result == (
        session.score,
        session.total_reward,
        session.success,
        session.turns,
    )
    assert transcript.result.turns > num_replies
    assert (
        "context_length" in transcript.gave_up or "refuses this conversation" in transcript.gave_up
    )
    assert rejudge(Transcript.from_json(transcript.to_json())) == transcript.result


def test_puzzles_are_played_turn_by_turn_if_asked(tmp_path: Path) -> None:
    with ModelServer(lambda request, before: completion("1")) as server:
        report = run_all(tmp_path, model(server, turns=True, episodes=2), "SAT-v0", seeds=1)
    assert report.models[0].form == "turns"
    assert report.rows[0].scale == card("SAT-v0").scale()
    assert all(row["length"] > 1 for row in table(tmp_path))


def test_a_transcript_without_an_end_or_with_a_score_that_is_no_number_is_refused() -> None:
    seed = evaluation_seeds(card("Wordle-v0"), 0, "smoke")[0]
    with ModelServer(lambda request, before: completion("crane")) as server:
        transcript = play_one(server, Game(card("Wordle-v0").id, seed))
    with pytest.raises(ValueError, match=f"seed {seed}, ends too early"):
        rejudge(transcript._replace(messages=transcript.messages[:4]))
    result = transcript.result._replace(score=math.nan)
    with pytest.raises(ValueError, match="it has the number NaN"):
        Transcript.from_json(transcript._replace(result=result).to_json())


def test_games_are_played_inside_a_running_loop() -> None:
    """A notebook has one."""
    seed = evaluation_seeds(card("Wordle-v0"), 0, "smoke")[0]

    async def notebook(game: Game) -> Transcript:
        return play_one(server, game)

    with ModelServer(lambda request, before: completion("crane")) as server:
        game = Game(card("Wordle-v0").id, seed)
        assert asyncio.run(notebook(game)).result == play_one(server, game).result


# -- interruptions ---------------------------------------------------------------------------------


def test_a_resumed_run_repeats_nothing_and_has_the_same_table(
    solutions: dict[str, str], tmp_path: Path
) -> None:
    """The server refuses after some requests, again and again.

    A killed program left half a line.
    """
    left = 0

    def reply(request: Request) -> Answer:
        if "Wordle" in question(request):
            return completion(guess(request))
        good = len(question(request)) % 2
        return completion(
            f"<answer>{solutions[question(request)] if good else 'no'}</answer>", usage=None
        )

    def script(request: Request, before: int) -> Answer:
        nonlocal left
        left -= 1
        return reply(request) if left >= 0 else error(401, "key expired")

    def lines() -> list[str]:
        files = tmp_path.glob("parts/transcripts/*/*/*")
        return [
            line for file in files for line in file.read_text().splitlines() if line.endswith("}")
        ]

    tasks = f"{PUZZLES[0]},Wordle-v0"
    with ModelServer(lambda request, before: reply(request)) as server:
        run_all(tmp_path / "whole", model(server, samples=2), tasks)
        needed = len(server.requests)
    refusals = 0
    finished = 0
    with ModelServer(script) as server:
        while True:
            left = 60
            try:
                run_all(tmp_path / "parts", model(server, samples=2), tasks)
                break
            except ChatError:
                refusals += 1
            assert len(lines()) > finished
            finished = len(lines())
            last = max(
                tmp_path.glob("parts/transcripts/*/*/*"), key=lambda file: file.stat().st_mtime_ns
            )
            with last.open("a") as file:
                file.write('{"game": {"task": "rlsuite/Wor')
    assert refusals > 1
    assert table(tmp_path / "parts") == table(tmp_path / "whole")
    assert len(lines()) == 2 * 2 * 2 * EPISODES  # nothing was lost or played twice
    # The episodes in progress.
    assert len(server.requests) - needed <= refusals * 8 * card("Wordle-v0").horizon


@pytest.mark.parametrize("half", ["{", '{"game": {"task": "rlsuite/Wor'])
@pytest.mark.parametrize("num_lines", [0, 2])
def test_half_a_line_that_a_killed_program_left_is_removed(
    tmp_path: Path, num_lines: int, half: str
) -> None:
    with ModelServer(lambda request, before: completion("no")) as server:
        first, second, third = (
            play_one(server, Game(card(PUZZLES[0]).id, seed, one_shot=True)) for seed in range(3)
        )
    path = tmp_path / "0.jsonl"
    path.write_text("".join(each.to_json() + "\n" for each in (first, second)[:num_lines]) + half)
    file = TranscriptFile(path)
    assert list(file.transcripts.values()) == [first, second][:num_lines]
    file.add(third)
    assert list(TranscriptFile(path).transcripts.values()) == [*(first, second)[:num_lines], third]


def test_a_damaged_transcript_is_named(tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    path.write_text('{"game": 3}\n')
    with pytest.raises(ValueError, match=r"Line 1 of .*0\.jsonl is damaged .* delete the line"):
        TranscriptFile(path)


def toy(server: ModelServer) -> tuple[str, ...]:
    """Return arguments that evaluate the scripted model on the first puzzle."""
    return ("llm", "toy", "--base-url", server.url, "--task", PUZZLES[0], "--seeds", "1")


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-c",
        "from rlbench_suite.cli.evaluate import app; app()",
        *arguments,
    ]
    # Background processes ignore SIGINT.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_interrupting_keeps_what_is_done_and_says_how_to_go_on(
    solutions: dict[str, str], tmp_path: Path
) -> None:
    server_is_slow = True

    def script(request: Request, before: int) -> Answer:
        slow = server_is_slow and list(solutions).index(question(request)) % EPISODES > 2
        return completion(
            f"<answer>{solutions[question(request)]}</answer>", wait=60 if slow else 0
        )

    with ModelServer(script) as server:
        arguments = (*toy(server), "--episodes", str(EPISODES), "--out", str(tmp_path / "run"))
        run = start(*arguments)
        file = transcripts_path(tmp_path / "run", Cell("llm.toy", card(PUZZLES[0]).id, 0))
        deadline = time.monotonic() + 300
        while not (file.exists() and len(file.read_text().splitlines()) == 3):
            assert time.monotonic() < deadline, run.communicate(timeout=1)
            time.sleep(0.05)
        os.kill(run.pid, signal.SIGINT)
        out, err = run.communicate(timeout=300)
        assert run.returncode == 130, err
        assert (
            "Interrupted: 0 of 1 cells are done and saved. Transcripts of finished episodes "
            "are kept, too. "
        ) in out
        assert "Continue with: rlsuite-eval llm" in out
        assert "Traceback" not in out + err

        server_is_slow = False
        num_requests = len(server.requests)
        out, err = start(*arguments).communicate(timeout=300)
    assert err == ""
    assert len(server.requests) - num_requests == 2
    assert "score 1.000" in out
    assert [row["success"] for row in table(tmp_path / "run")] == [True] * EPISODES


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the program in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(execution, "prepare_jax", lambda *_: None)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            evaluate.app(list(arguments))
        output = capsys.readouterr()
        return int(left.value.code or 0), output.out, output.err

    return call


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("llm", "m", "--samples", "0"), "samples must be at least 1, got 0."),
        (("llm", "m", "--episodes", "0"), "episodes must be from 1 to 65536, got 0."),
        (("llm", "m", "--prices", "-1", "1"), "input_price"),
        (("llm", "m", "--base-url", "http://no-such-host.invalid/v1", "--suite", "SAT-v0"),
         "Cannot reach http://no-such-host.invalid/v1/chat/completions"),
        (("llm", "m", "--suite", "Vicsek-v0"), "a conversation has one player"),
    ],
)  # fmt: skip
def test_wrong_arguments(call: Any, arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    code, _, err = call(*arguments, "--out", str(tmp_path / "run"))
    assert code == 2
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


def test_the_example_of_the_documentation(call: Any, tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "scripted_model.py"
    with subprocess.Popen(
        [sys.executable, str(example), "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            code, out, err = call(
                "llm", "scripted", "--base-url", url, "--suite", "TicTacToe-v0,Wordle-v0",
                "--seeds", "2", "--episodes", "3", "--samples", "2", "--lenient", "--out",
                str(tmp_path),
            )  # fmt: skip
        finally:
            server.kill()
    assert (code, err) == (0, "")
    assert (
        "Answers were read leniently, formatted in another way than asked for: llm.scripted."
        in " ".join(out.split())
    )
    page = (tmp_path / "report.html").read_text()
    assert "<td>one answer, lenient</td>" in page
    assert "<td>turns, lenient</td>" in page


def test_the_key_is_stored_nowhere(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solutions: dict[str, str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    accepted = []

    def script(request: Request, before: int) -> Answer:
        if not accepted:
            return error(401, "sk-very-secret is no key")
        return completion(
            f"Your key is sk-very-secret. <answer>{solutions[question(request)]}</answer>"
        )

    with ModelServer(script) as server:
        arguments = (*toy(server), "--episodes", "2", "--out", str(tmp_path))
        code, out, err = call(*arguments)
        assert (code, "*** is no key" in err) == (2, True)
        accepted.append(True)
        code, more, _ = call(*arguments)
        assert code == 0
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in out + more + err
    assert not [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and b"sk-very-secret" in path.read_bytes()
    ]
    assert read_manifest(tmp_path).models["llm.toy"].model == "toy"


def test_runs_that_cannot_be_compared_are_not_mixed(
    solutions: dict[str, str], tmp_path: Path
) -> None:
    with ModelServer(lambda request, before: completion("")) as server:
        run_all(tmp_path, model(server, episodes=1), PUZZLES[0], seeds=1)
        for settings, words in (
            ({"samples": 2}, "samples on rlsuite/SAT-v0 = 1, but now it is 2"),
            ({"lenient": True}, "lenient on rlsuite/SAT-v0 = False, but now it is True"),
            (
                {"turns": True},
                "one_shot on rlsuite/SAT-v0 = True, but now it is False|score of rlsuite/SAT-v0 = ",
            ),
        ):
            with pytest.raises(ValueError, match=words):
                run_all(tmp_path, model(server, episodes=1, **settings), PUZZLES[0], seeds=1)
