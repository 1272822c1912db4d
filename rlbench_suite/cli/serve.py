"""``rlsuite serve``: episodes for language models over a network or a pipe."""

import secrets
from enum import StrEnum
from typing import Annotated

import typer

from rlbench_suite.cli import check_at_least, check_positive, prepare_jax


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
    idle_seconds: Annotated[
        float, typer.Option(help="Time after which a client that sends nothing loses its place.")
    ] = 900.0,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="RLSUITE_TOKEN",
            help="Token that clients must present. [default: none on this machine; else one is drawn and shown]",
            show_default=False,
        ),
    ] = None,
    mcp: Annotated[
        Pipe | None,
        typer.Option(help="Serve one episode as tools by MCP instead: `stdio` or `http`.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="With --mcp: seed of the episode that is served.")] = 0,
) -> None:
    """Serve episodes to language models, in OpenEnv's form over WebSocket, or as tools by MCP.

    **Examples**

    * `rlsuite serve Wordle-v0 --port 8000`

    * `rlsuite serve OfficeApps-v1 --mcp stdio`
    """
    check_at_least("--max-sessions", max_sessions, 1)
    check_at_least("--seed", seed, 0)
    if not 0 <= port < 2**16:
        raise ValueError(f"--port must be from 0 to 65535, got {port}.")
    check_positive("--idle-seconds", idle_seconds)
    prepare_jax()
    from rlbench_suite.language import mcp as mcp_server
    from rlbench_suite.language import openenv
    from rlbench_suite.language.guard import is_loopback

    if token is None and not is_loopback(host) and mcp != Pipe.stdio:
        token = secrets.token_urlsafe(16)
    address = f"{host}:{port}" if token is None else f"{host}:{port}/{token}"
    if not is_loopback(host) and mcp != Pipe.stdio:
        typer.echo(
            f"Other machines can reach {host}: who has the token {token} can play. Nothing is encrypted.", err=True
        )
    offer = openenv.Offer(task_id, split.value, difficulty, False if turns else None)
    if mcp is not None:
        if mcp == Pipe.http:
            typer.echo(f"Serving {task_id} on http://{address}/mcp. Press Ctrl+C to end.", err=True)
        mcp_server.run(offer.begin(seed), mcp.value, host=host, port=port, token=token)
        return
    app = openenv.make_app(offer, max_sessions=max_sessions, idle_seconds=idle_seconds, token=token)
    typer.echo(f"Serving {task_id} on ws://{address}/ws (split {split.value}). Press Ctrl+C to end.", err=True)
    openenv.run(app, host=host, port=port)
