"""Serve one episode by the Model Context Protocol.

The tools are those of the episode, and the task is a prompt.

A client reads the task from the server's instructions or from the prompt ``task``, and calls tools
until the episode is over. A call that cannot be read is an error that the model may read, and costs
a turn as in any other conversation. Rewards and scores stand in the metadata of results, which
hosts do not show to models.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Literal

from rlbench_suite.language.guard import Guard, impatient_protocol
from rlbench_suite.language.openenv import listed
from rlbench_suite.language.session import Session

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

REFUSALS = ("Not understood: ", "Not allowed: ")
"""Beginnings of what a session says of a call that was not carried out."""
Transport = Literal["stdio", "http"]


def server(session: Session, name: str = "rlbench-suite") -> Server[Any]:
    """Make a server that plays an episode.

    The caller keeps the session, and reads the score from it.

    Raises:
        ImportError: the package ``mcp`` is missing, or older than 2.0.
    """
    try:
        import mcp_types as types
        from mcp.server.lowlevel import Server
    except ImportError as error:
        raise ImportError(
            "MCP servers need mcp 2.0 or newer: pip install 'rlbench-suite[mcp]'"
        ) from error
    task = session.briefing
    tools = [types.Tool(**tool) for tool in listed(session.tools)]
    one_at_a_time = asyncio.Lock()

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, request: types.CallToolRequestParams) -> types.CallToolResult:
        async with one_at_a_time:
            return await asyncio.to_thread(call, request.name, request.arguments or {})

    def call(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        if session.done:
            refusal = types.TextContent(
                type="text", text="The episode is over; no more calls are made."
            )
            return types.CallToolResult(content=[refusal], is_error=True)
        turn = session.call(name, arguments)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=turn.text)],
            is_error=turn.text.startswith(REFUSALS),
            _meta={"rlbench-suite/episode": standing(session, turn.reward)},
        )

    async def list_prompts(_: Any, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[types.Prompt(name="task", description="The task of the episode.")]
        )

    async def get_prompt(_: Any, request: types.GetPromptRequestParams) -> types.GetPromptResult:
        if request.name != "task":
            raise ValueError(f"The only prompt is 'task', got {request.name!r}.")
        message = types.PromptMessage(
            role="user", content=types.TextContent(type="text", text=task)
        )
        return types.GetPromptResult(messages=[message])

    return Server(
        name,
        instructions=task,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def standing(session: Session, reward: float) -> dict[str, Any]:
    """Return the reward of a turn and how the episode stands, for a trainer."""
    score = session.score if session.done and math.isfinite(session.score) else None
    return {"reward": reward, "done": session.done, "score": score, "success": session.success}


def run(
    session: Session,
    transport: Transport,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
) -> None:
    """Serve an episode until interrupted or, by ``stdio``, until the client leaves.

    ``token`` is the one that clients of ``http`` must present (:mod:`.guard`).

    Raises:
        ImportError: see :func:`server`.
        ValueError: a wrong token.
    """
    mcp_server = server(session)
    if transport == "stdio":
        asyncio.run(_serve_pipe(mcp_server))
        return
    import uvicorn

    app = Guard(mcp_server.streamable_http_app(host=host), token)
    uvicorn.run(app, host=host, port=port, http=impatient_protocol(), log_level="warning")


async def _serve_pipe(mcp_server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await mcp_server.run(read, write, mcp_server.create_initialization_options())
