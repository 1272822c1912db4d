"""Solve one puzzle through an MCP server that this program starts.

Its score is in the metadata of the result.

python examples/play_mcp.py
"""

import asyncio
import sys

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from rlbench_suite.language import PuzzleDataset

ID, SEED = "Game24-v0", 6
SERVE = "from rlbench_suite.cli.suite import app; app()"  # the command rlsuite, whatever the PATH


async def main() -> None:
    """Play the episode."""
    command = StdioServerParameters(
        command=sys.executable, args=["-c", SERVE, "mcp", ID, "--seed", str(SEED)]
    )
    async with Client(stdio_client(command)) as client:
        print(client.instructions)
        print([tool.name for tool in (await client.list_tools()).tools])
        answer = PuzzleDataset(ID, size=1, seed=SEED)[0]["answer"]  # a model would think of one
        result = await client.call_tool("submit_answer", {"answer": answer})
        print(result.content[0].text, result.meta["rlbench-suite/episode"])


asyncio.run(main())
