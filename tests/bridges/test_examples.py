"""The examples of the documentation run as they stand there."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def output(name: str, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_client_of_openenv_plays_on_the_command() -> None:
    pytest.importorskip("openenv.core", reason="OpenEnv's client is not installed")
    port = free_port()
    code = "from rlbench_suite.cli.suite import app; app()"
    command = [sys.executable, "-c", code, "serve", "Wordle-v0", "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr
        # A server whose programs take long to compile says so first.
        assert any(f"127.0.0.1:{port}/ws" in line for line in server.stderr)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        text = output("play_openenv.py", f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait()
    assert "crane: reward" in text
    assert float(text.rsplit("score:", 1)[1]) < 1


def test_the_client_of_mcp_solves_a_puzzle() -> None:
    pytest.importorskip("mcp", reason="MCP is not installed")
    text = output("play_mcp.py")
    assert "['submit_answer']" in text
    assert "'score': 1.0" in text


def test_the_command_of_the_page_evaluates_the_scripted_model_with_verifiers(
    tmp_path: Path,
) -> None:
    pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
    blocks = re.findall(
        r"```bash\n(.*?)\n```", (ROOT / "docs" / "language_models.md").read_text(), re.DOTALL
    )
    (command,) = [block for block in blocks if "vf-eval" in block]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    with subprocess.Popen(
        [sys.executable, EXAMPLES / "scripted_model.py", "0"], stdout=subprocess.PIPE
    ) as model:
        try:
            assert model.stdout
            url = model.stdout.readline().decode().strip()
            command = (
                command.replace("http://localhost:8123/v1", url)
                + f" --no-rich --output-dir {tmp_path}"
            )
            ran = subprocess.run(
                ["bash", "-ec", command],
                cwd=ROOT,
                env=os.environ | {"PATH": path},
                capture_output=True,
                check=False,
            )
        finally:
            model.kill()
    assert ran.returncode == 0, ran.stderr
    (file,) = tmp_path.rglob("traces.jsonl")
    traces = [
        trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]
    ]
    assert len(traces) == 20
    assert not any(trace["errors"] for trace in traces)
    assert all(trace["rewards"]["answer_score"]["score"] in (0, 1) for trace in traces)
