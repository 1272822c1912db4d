"""Help by ``-h``, tables in narrow terminals, and errors that name the way on."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from rlbench_suite.cli import data, evaluate, leaderboard, suite
from rlbench_suite.core import registry
from rlbench_suite.core.policy import player_for
from rlbench_suite.core.task_card import TaskCard, load
from rlbench_suite.evaluation.report.whole_table import Table

PROGRAMS = {
    "rlsuite": suite.app,
    "rlsuite-eval": evaluate.app,
    "rlsuite-data": data.app,
    "rlsuite-leaderboard": leaderboard.app,
}


MAX_OPTIONS = 15


def commands(program: str) -> dict[tuple[str, ...], Any]:
    """Return every command of a program by its words, with the program itself."""
    by_words = {}

    def add(command: Any, words: tuple[str, ...]) -> None:
        by_words[words] = command
        for name, inner in getattr(command, "commands", {}).items():
            add(inner, (*words, name))

    add(typer.main.get_command(PROGRAMS[program]), ())
    return by_words


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_explains_itself_by_h(program: str) -> None:
    assert len(commands(program)) > 3
    for words in commands(program):
        result = CliRunner().invoke(PROGRAMS[program], [*words, "-h"])
        assert result.exit_code == 0, (words, result.output)
        assert "Usage" in result.output


@pytest.mark.parametrize("command", ["judge", "llm"])
def test_commands_that_train_nothing_speak_of_no_training(command: str) -> None:
    result = CliRunner().invoke(evaluate.app, [command, "-h"])
    options = result.output[result.output.index("--seeds") :]
    assert "training" not in options.lower()
    assert "sets of episodes" in " ".join(options.split())


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_refuses_empty_values(program: str) -> None:
    """``--task ""``, as scripts with an unset variable call it, once trained on a whole suite."""
    for words, command in commands(program).items():
        for parameter in command.params:
            takes_text = not getattr(parameter, "is_flag", False)
            if hasattr(command, "commands") or not takes_text or parameter.default == "":
                continue
            for empty in ("", " "):
                values = [empty] * max(parameter.nargs, 1)
                is_option = parameter.param_type_name == "option"
                arguments = [parameter.opts[0], *values] if is_option else values
                result = CliRunner().invoke(PROGRAMS[program], [*words, *arguments])
                assert isinstance(result.exception, ValueError), (words, arguments)
                assert re.fullmatch(
                    r"[\w -]+ is empty; (give it a|leave it out or give a) value\.",
                    str(result.exception),
                )
                if is_option:
                    assert parameter.opts[0] in str(result.exception)


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_command_shows_more_than_fifteen_options(program: str) -> None:
    """An act that needs more is two acts. ``--help`` does not count."""
    for words, command in commands(program).items():
        options = [
            parameter.name for parameter in command.params if parameter.param_type_name == "option"
        ]
        assert len({*options} - {"help"}) <= MAX_OPTIONS, (words, options)


@pytest.mark.parametrize("program", PROGRAMS)
def test_suites_and_tasks_are_chosen_by_either_word(program: str) -> None:
    for words, command in commands(program).items():
        flags = {flag for parameter in command.params for flag in parameter.opts}
        assert "--suite" not in flags or "--task" in flags, words


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_table_cuts_a_word(width: int) -> None:
    table = Table("task", "interval", "steps")
    table.add_row("QuadcopterHoverLearningToFly-v0", "[0.00365128, 0.00503482]", "1,234,567,890")
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    assert "…" not in console.export_text()


@pytest.mark.every_id
def test_show_fits_eighty_columns(card: TaskCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(suite.app, ["show", card.id])
    assert result.exit_code == 0, result.output
    assert "…" not in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_a_batch_names_the_view_that_it_lacks() -> None:
    with pytest.raises((TypeError, ValueError), match=r"structured view only, got view='text'"):
        gymnasium.make_vec("rlsuite/PMSMCurrent-v0", 2, view="text")
    assert gymnasium.make_vec("rlsuite/PMSMCurrent-v0", 2, view="structured").num_envs == 2
    texts: Any = gymnasium.make_vec("rlsuite/SAT-v0", 2, view="text", vectorization_mode="sync")
    assert all(isinstance(text, str) for text in texts.reset(seed=0)[0])


def test_a_query_says_what_comes_first() -> None:
    result = CliRunner().invoke(evaluate.app, ["query", "runs/mine", "SELECT task FROM cells"])
    assert 'SQL comes first, then the runs: rlsuite-eval query "SELECT ..." runs/mine' in str(
        result.exception
    )


@pytest.mark.parametrize("name", ["CartPole-v1", "CartPole"])
def test_an_environment_of_gymnasium_is_not_trained(name: str) -> None:
    with pytest.raises(ValueError, match=r"only tasks of the suite .*CONTRIBUTING\.md"):
        registry.resolve_suite(name)


def test_a_player_without_for_task_is_named() -> None:
    task = registry.card("SAT-v0").build()
    with pytest.raises(
        ValueError, match=r"TaskCard of rlsuite/SAT-v0 lacks the class method for_task"
    ):
        player_for(task, "rlbench_suite.core.task_card:TaskCard")
    with pytest.raises(ValueError, match="has no 'Nothing'"):
        load("rlbench_suite.core.task_card:Nothing")


def test_a_refusal_ends_with_one_full_stop(tmp_path: Any) -> None:
    arguments = [
        "--agent",
        "sac",
        "--suite",
        "DeepSeaTreasure-v0",
        "--out",
        str(tmp_path / "run"),
        "--budget",
        "smoke",
    ]
    result = CliRunner().invoke(evaluate.app, arguments)
    assert "sac plays bounded Box actions" in str(result.exception)
    assert not re.search(r"\.\.", str(result.exception))
