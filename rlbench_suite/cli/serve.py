"""``rlsuite serve``: episodes for language models over a network or a pipe."""

from enum import StrEnum
from typing import Annotated

import typer

from rlbench_suite.cli import check_at_least, prepare_jax


class Pipe(StrEnum):
    """Transport of MCP."""

    stdio = "stdio"
    http = "http"


class Split(StrEnum):
    """Split that clients get."""

    train = "train"
    test = "test"
    any = "any"


def serve(
    task_id: Annotated[str, typer.Argument(help="Id of a task; `rlsuite/` may be left out.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    split: Annotated[Split, typer.Option(help="Split of the instances; `any` lets clients choose.")] = Split.train,
    difficulty: Annotated[
        str | None,
        typer.Option(help="Difficulty where a client asks for none. [default: the task's own]", show_default=False),
    ] = None,
    turns: Annotated[bool, typer.Option("--turns", help="Play puzzles turn by turn, not as one question.")] = False,
    max_sessions: Annotated[int, typer.Option(help="Number of clients who play at a time.")] = 1000,
    mcp: Annotated[
        Pipe | None,
        typer.Option(help="Serve one episode as tools by MCP instead: `stdio` or `http`.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="With --mcp: seed of the episode that is served.")] = 0,
) -> None:
    """Serve episodes to language models, in OpenEnv's form over WebSocket, or as tools by MCP.

    **Examples**

    * `rlsuite serve Wordle-v0 --port 8000`

    * `rlsuite serve OfficeApps-v0 --mcp stdio`
    """
    check_at_least("--max-sessions", max_sessions, 1)
    check_at_least("--seed", seed, 0)
    if not 0 <= port < 2**16:
        raise ValueError(f"--port must be from 0 to 65535, got {port}.")
    prepare_jax()
    from rlbench_suite.language import mcp as mcp_server
    from rlbench_suite.language import openenv

    offer = openenv.Offer(task_id, split.value, difficulty, False if turns else None)
    if mcp is not None:
        mcp_server.run(offer.begin(seed), mcp.value, host=host, port=port)
        return
    app = openenv.make_app(offer, max_sessions=max_sessions)
    typer.echo(f"Serving {task_id} on ws://{host}:{port}/ws (split {split.value}). Press Ctrl+C to end.", err=True)
    openenv.run(app, host=host, port=port)
