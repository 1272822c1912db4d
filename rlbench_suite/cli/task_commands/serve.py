"""``rlsuite serve`` and ``rlsuite mcp``: episodes for language models over a network or a pipe."""

import secrets
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rlbench_suite.cli import check_at_least, check_positive, prepare_jax

if TYPE_CHECKING:
    from rlbench_suite.language.openenv import Offer


class Transport(StrEnum):
    """Transport of MCP."""

    stdio = "stdio"
    http = "http"


class Split(StrEnum):
    """Split that clients get."""

    train = "train"
    test = "test"
    any = "any"


TaskId = Annotated[str, typer.Argument(help="Id of a task; `rlsuite/` may be left out.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on.")]
InstanceSplit = Annotated[
    Split, typer.Option(help="Split of the instances; `any` lets clients choose.")
]
Difficulty = Annotated[
    str | None,
    typer.Option(
        help="Difficulty where a client asks for none. [default: the task's own]",
        show_default=False,
    ),
]
Turns = Annotated[
    bool, typer.Option("--turns", help="Play puzzles turn by turn, not as one question.")
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="RLSUITE_TOKEN",
        help=(
            "Token that clients must present. [default: none on this machine; else one is drawn "
            "and shown]"
        ),
        show_default=False,
    ),
]


def serve(
    task_id: TaskId,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    split: InstanceSplit = Split.train,
    difficulty: Difficulty = None,
    turns: Turns = False,
    max_sessions: Annotated[int, typer.Option(help="Number of clients who play at a time.")] = 1000,
    idle_seconds: Annotated[
        float, typer.Option(help="Time after which a client that sends nothing loses its place.")
    ] = 900.0,
    token: Token = None,
) -> None:
    """Serve episodes to language models, in OpenEnv's form over WebSocket.

    **Example**: `rlsuite serve Wordle-v0 --port 8000`
    """
    check_at_least("--max-sessions", max_sessions, 1)
    check_positive("--idle-seconds", idle_seconds)
    _check_port(port)
    prepare_jax()
    from rlbench_suite.language import openenv

    token = _require_token(host, token)
    app = openenv.make_app(
        _offer(task_id, split, difficulty, turns=turns),
        max_sessions=max_sessions,
        idle_seconds=idle_seconds,
        token=token,
    )
    address = _address(host, port, token)
    typer.echo(
        f"Serving {task_id} on ws://{address}/ws (split {split.value}). Press Ctrl+C to end.",
        err=True,
    )
    openenv.run(app, host=host, port=port)


def mcp(
    task_id: TaskId,
    transport: Annotated[
        Transport,
        typer.Option(
            help="`stdio`, a pipe to the client, or `http`, which alone takes host, port and token."
        ),
    ] = Transport.stdio,
    seed: Annotated[int, typer.Option(help="Seed of the episode that is served.")] = 0,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    split: InstanceSplit = Split.train,
    difficulty: Difficulty = None,
    turns: Turns = False,
    token: Token = None,
) -> None:
    """Serve one episode as tools by MCP, the Model Context Protocol.

    **Example**: `rlsuite mcp OfficeApps-v0 --seed 3`
    """
    check_at_least("--seed", seed, 0)
    _check_port(port)
    prepare_jax()
    from rlbench_suite.language import mcp as mcp_server

    if transport == Transport.http:
        token = _require_token(host, token)
        typer.echo(
            f"Serving {task_id} on http://{_address(host, port, token)}/mcp. Press Ctrl+C to end.",
            err=True,
        )
    session = _offer(task_id, split, difficulty, turns=turns).begin(seed)
    mcp_server.run(session, transport.value, host=host, port=port, token=token)


def _offer(task_id: str, split: Split, difficulty: str | None, *, turns: bool) -> "Offer":
    from rlbench_suite.language import openenv

    return openenv.Offer(task_id, split.value, difficulty, False if turns else None)


def _check_port(port: int) -> None:
    if not 0 <= port < 2**16:
        raise ValueError(f"--port must be from 0 to 65535, got {port}.")


def _require_token(host: str, token: str | None) -> str | None:
    """Return the token of a server, and warn if other machines can reach it.

    A server that they can reach always has a token.
    """
    from rlbench_suite.language.guard import is_loopback

    if is_loopback(host):
        return token
    if token is None:
        token = secrets.token_urlsafe(16)
    typer.echo(
        (
            f"Other machines can reach {host}: who has the token {token} can play. Nothing is "
            "encrypted."
        ),
        err=True,
    )
    return token


def _address(host: str, port: int, token: str | None) -> str:
    return f"{host}:{port}" if token is None else f"{host}:{port}/{token}"
