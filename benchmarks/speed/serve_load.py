"""Play many episodes at once on a server on loopback, and check that each client gets its own.

python benchmarks/speed/serve_load.py  # 1,000 clients of Game24-v0, then of Wordle-v0
python benchmarks/speed/serve_load.py --clients 200 OfficeApps-v0

Each client resets to a seed of its own. When all have begun, each plays a script that depends on
its seed. Every text, reward and score must be those of the same episode played alone in this
process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from websockets.asyncio.client import connect

from rlbench_suite.language import begin
from rlbench_suite.language.session import PuzzleSession, Session

PORT = 8765
WORDS = ["crane", "moist", "bulky", "fudge", "whelp", "vixen"]
TURNS = 6

Transcript = list[tuple[str, float | None, bool]]


def replies(session: Session, seed: int) -> Iterator[str]:
    """Yield a player's replies.

    In puzzles they are the solver's answers, of which every third is wrong; else they are words by
    the seed.
    """
    if isinstance(session, PuzzleSession):
        yield "?" if seed % 3 == 0 else f"<answer>{session.puzzle.solve(session.instance)}</answer>"
    else:
        for turn in range(TURNS):
            yield f"<action>{WORDS[(turn + seed) % len(WORDS)]}</action>"


def alone(task_id: str, seed: int) -> tuple[list[str], Transcript]:
    """Play an episode in this process; return the replies, and what the player was told."""
    session = begin(task_id, seed=seed)
    sent, transcript = [], [(session.opening, None, False)]
    for reply in replies(session, seed):
        if not session.done:
            sent.append(reply)
            transcript.append(tuple(session.reply(reply)))
    return sent, transcript


async def play(
    seed: int, sent: list[str], together: asyncio.Barrier, waits: list[float]
) -> Transcript:
    """Play an episode on the server, and note how long each answer took."""
    async with connect(
        f"ws://127.0.0.1:{PORT}/ws", open_timeout=60, ping_timeout=None
    ) as connection:

        async def ask(kind: str, data: dict[str, object]) -> tuple[str, float | None, bool]:
            start = time.perf_counter()
            await connection.send(json.dumps({"type": kind, "data": data}))
            answer = json.loads(await connection.recv())
            waits.append(time.perf_counter() - start)
            if answer["type"] == "error":
                raise RuntimeError(answer["data"]["message"])
            return (
                answer["data"]["observation"]["text"],
                answer["data"]["reward"],
                answer["data"]["done"],
            )

        transcript = [await ask("reset", {"seed": seed})]
        await together.wait()
        return transcript + [await ask("step", {"text": reply}) for reply in sent]


async def play_all(scripts: list[list[str]]) -> tuple[list[Transcript], list[float]]:
    """Play all episodes at once."""
    together, waits = asyncio.Barrier(len(scripts)), list[float]()
    transcripts = await asyncio.gather(
        *(play(seed, sent, together, waits) for seed, sent in enumerate(scripts))
    )
    return transcripts, sorted(waits)


def measure(task_id: str, clients: int) -> None:
    """Print how many episodes were right, and the times."""
    expected = [alone(task_id, seed) for seed in range(clients)]
    code = "from rlbench_suite.cli.suite import app; app()"
    command = [
        sys.executable,
        "-c",
        code,
        "serve",
        task_id,
        "--port",
        str(PORT),
        "--max-sessions",
        str(clients),
    ]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr
        server.stderr.readline()  # it says that it serves, and then listens
        while True:
            try:
                socket.create_connection(("127.0.0.1", PORT)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        start = time.perf_counter()
        transcripts, waits = asyncio.run(play_all([sent for sent, _ in expected]))
        took = time.perf_counter() - start
        with open(f"/proc/{server.pid}/status") as status:
            memory = next(
                int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")
            )
    finally:
        server.terminate()
        server.wait()
    right = sum(
        heard == expected_transcript
        for heard, (_, expected_transcript) in zip(transcripts, expected, strict=True)
    )
    print(
        f"{task_id}: {right} of {clients} episodes as alone, {took:.1f} s, "
        f"{len(waits) / took:,.0f} answers/s, answer median {1e3 * waits[len(waits) // 2]:.0f} ms, "
        f"99 % {1e3 * waits[int(0.99 * len(waits))]:.0f} ms, server {memory:.0f} MB"
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", default=["Game24-v0", "Wordle-v0"])
    parser.add_argument("--clients", type=int, default=1000)
    arguments = parser.parse_args()
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # the server inherits it
    for task_id in arguments.ids:
        measure(task_id, arguments.clients)


if __name__ == "__main__":
    main()
