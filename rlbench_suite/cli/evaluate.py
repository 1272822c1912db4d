"""Build ``rlsuite-eval``, which trains agents, plays held-out episodes and reports scores."""

from typing import Any

from rlbench_suite.cli import HELP, App, Commands
from rlbench_suite.cli.run_commands import (
    compare,
    exploit,
    export,
    judge,
    llm,
    query,
    report,
    run,
    sweep,
)


class _RunUnlessNamed(Commands):
    """Commands of which ``run`` is meant where none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, those of ``run`` if they begin with an option."""
        is_option = (
            bool(args) and args[0].startswith("-") and args[0] not in HELP["help_option_names"]
        )
        if not args or is_option:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = App(commands=_RunUnlessNamed)
for command in (
    run.run,
    run.ray,
    judge.judge,
    llm.llm,
    llm.rejudge,
    report.report,
    compare.compare,
    compare.power,
    query.query,
    query.tables,
    export.export,
    export.deploy,
    sweep.sweep,
    sweep.frequency,
    exploit.exploit,
):
    app.command()(command)


@app.callback()
def program() -> None:
    """Train agents, evaluate them on held-out episodes, and report scores with intervals.

    Without a command, options are those of `run`.

    **Examples**

    * `rlsuite-eval` trains PPO on the smoke suite with five seeds in a few minutes

    * `rlsuite-eval --agent ppo,reference,random --suite motor --seeds 10 --budget quick`

    * `rlsuite-eval judge policy.onnx --task PMSMCurrent-v0`

    * `rlsuite-eval llm qwen3 --base-url http://localhost:8000/v1 --task SAT-v0`

    * `rlsuite-eval compare runs/ppo-smoke-smoke runs/sac-smoke-smoke`
    """
