"""Test that only policies declared privileged see state and params, and that tables mark them."""

import io
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core import registry
from rlbench_suite.core.policy import (
    HIDDEN,
    UndeclaredAccess,
    View,
    is_privileged,
    privileged_player,
    reference_player,
)
from rlbench_suite.evaluation.analysis.sweeps import _HeldAction
from rlbench_suite.evaluation.cell import CellSpec
from rlbench_suite.evaluation.protocol import Outcome, evaluate, run_cell
from rlbench_suite.evaluation.report import export_formats
from rlbench_suite.evaluation.report.comparison import verdicts
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.report.verdict_remarks import remarks
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_runs
from rlbench_suite.evaluation.runs.runner import in_process, plan


class Peeking:
    """Reads the hidden word of Wordle, in one of several ways."""

    def __init__(self, read: Any) -> None:
        self.read = read

    def initial(self, params: Any) -> Any:
        return ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        return jnp.asarray(self.read(view), jnp.int32), memory


jax.tree_util.register_static(Peeking)

WAYS = {
    "a field of params": lambda view: view.params.hidden,
    "an index": lambda view: view.params[0],
    "all of them": lambda view: jax.tree.leaves(tuple(view.params))[0],
    "arithmetic": lambda view: jnp.add(view.params, 1),
    "a field of state": lambda view: view.state.guesses,
    "getattr with a default": lambda view: getattr(view.params, "hidden", 0),
    "hasattr": lambda view: view.params.hidden if hasattr(view.params, "hidden") else 0,
}


SPEC = CellSpec("yielding", "rlsuite/Wordle-v0", 0, "smoke", {})


class Yielding:
    """Agent that gives one policy."""

    name = "yielding"

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def train(self, task: Any, *, seed: int, budget: str, hyperparameters: Any) -> Any:
        yield self.policy


@pytest.mark.parametrize("read", WAYS.values(), ids=WAYS)
def test_an_undeclared_policy_cannot_read_what_agents_do_not_see(read: Any) -> None:
    task = registry.card("Wordle-v0").build()
    with pytest.raises(UndeclaredAccess, match="declares it by the attribute privileged = True"):
        list(run_cell(Yielding(Peeking(read)), task, SPEC))


def test_a_first_memory_is_made_without_params() -> None:
    class Remembering(Peeking):
        def initial(self, params: Any) -> Any:
            return params.hidden

    jax.tree_util.register_static(Remembering)
    task = registry.card("Wordle-v0").build()
    with pytest.raises(UndeclaredAccess):
        evaluate(task, Remembering(lambda view: 0), range(2))


def test_a_declared_policy_reads_them_and_solves_wordle_at_once() -> None:
    @privileged_player
    class Declared(Peeking):
        """Plays the hidden word."""

    jax.tree_util.register_static(Declared)
    task = registry.card("Wordle-v0").build()
    (*_, outcome) = run_cell(Yielding(Declared(WAYS["a field of params"])), task, SPEC)
    assert isinstance(outcome, Outcome)
    assert outcome.record.length.max() == 1
    assert is_privileged(outcome.policy)


def test_hidden_bits_are_those_of_a_plain_play(toys: Path) -> None:
    """Hiding what a policy does not read changes no bit."""
    for name in ("ToyWalk-v0", "ToyDrift-v0"):
        task, policy = registry.card(name).build(), registry.agent("toy").policy(0)  # type: ignore[attr-defined]
        hidden, plain = evaluate(task, policy, range(50)), play(task, policy, range(50))
        for left, right in zip(jax.tree.leaves(hidden), jax.tree.leaves(plain), strict=True):
            assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


def test_a_wrapped_policy_is_as_privileged_as_the_one_inside() -> None:
    player = reference_player(registry.card("PointMaze-v0").build())
    assert not is_privileged(player)
    assert not is_privileged(_HeldAction(player, np.int32(2), np.zeros(2)))
    controller = reference_player(registry.card("PMSMCurrent-v0").build())
    assert is_privileged(controller)
    assert is_privileged(_HeldAction(controller, np.int32(2), np.zeros(2)))
    assert "HIDDEN" not in repr(View(0, None, 1, 2))
    with pytest.raises(UndeclaredAccess):
        bool(HIDDEN)


def test_an_undeclared_agent_fails_and_a_declared_one_is_marked_in_every_table(
    toys: Path, tmp_path: Path
) -> None:
    manifest = plan("toy,toy-peek,toy-oracle", "ToyWalk-v0,ToyDrift-v0", 3, "smoke")
    with OpenRun.open(tmp_path / "run", manifest) as run, run.sitting():
        failed = [event for event in in_process(run) if event.kind == "failed"]
        assert {event.cell.agent for event in failed} == {"toy-peek"}
        assert all("privileged = True" in str(event.value) for event in failed)
        run.merge()
        results = {(result.agent, result.privileged) for result in run.results()}
        assert results == {("toy", False), ("toy-oracle", True)}
        report = Report.of(run)
        print_report(report, Console(file=(stream := io.StringIO()), width=240))
        write_html(report)
    text, page = stream.getvalue(), (tmp_path / "run" / "report.html").read_text()
    assert text.count("toy-oracle †") == 3  # two tasks, and both together
    assert "toy †" not in text
    assert page.count('<span class="soft">privileged</span>') == 2
    assert "privileged on 2 tasks" in page
    sentence = "toy-oracle on ToyWalk-v0, ToyDrift-v0."
    assert sentence in " ".join(text.split())
    assert sentence in " ".join(page.split())

    runs = read_runs([tmp_path / "run"])
    (verdict,) = verdicts(runs)
    assert {task.privileged for task in verdict.tasks} == {("toy-oracle",)}
    assert any(sentence in remark for remark in remarks(runs, [verdict]))
    rows = export_formats.tidy_csv(runs[0]).splitlines()
    assert rows[0].endswith("privileged,failed")
    assert {row.split(",")[1]: row.split(",")[-2] for row in rows[1:]} == {
        "toy": "False",
        "toy-oracle": "True",
        "toy-peek": "",  # its cells failed
    }
    assert r"toy-oracle$^\ddagger$" in export_formats.latex(runs[0])
    assert export_formats.huggingface(runs[0]).count("1: reference, privileged)") == 2
