"""Test TRL's environments with tools, reward functions and datasets.

Its trainer runs both forms where it is installed.
"""

import copy
import importlib.util
import inspect
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from rlbench_suite.language import CompositeDataset, PuzzleDataset
from rlbench_suite.language.rows import instance_of
from rlbench_suite.language.session import begin
from rlbench_suite.language.trl import (
    check_chat_template,
    environment_factory,
    episode_rows,
    format_reward,
    make_reward,
    prompt_dataset,
    puzzle_reward,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_trl = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None, reason="needs the extra trl"
)


def tools_of(environment: Any) -> set[str]:
    """Return the names of the methods that the trainer offers as tools, as it finds them."""
    methods = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    return {name for name, _ in methods if not name.startswith("_")} - {"reset", "get_reward"}


def pad_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row as a Hugging Face dataset of several kinds returns it.

    The columns of other kinds are None.
    """
    return {
        **row,
        "environment": None,
        "metadata": {**row["metadata"], "clauses": None},
        "label": None,
    }


# -- environments ----------------------------------------------------------------------------------


def test_rows_of_several_puzzles_and_tiers_reach_one_environment() -> None:
    env = environment_factory(["Sudoku4-v0", "rlsuite/SAT-v0"])()
    assert tools_of(env) == {"submit_answer"}
    rows = [
        *PuzzleDataset("Sudoku4-v0", size=3, difficulty=("easy", "hard")),
        *PuzzleDataset("SAT-v0", size=2),
    ]
    for row in rows:
        question = env.reset(**pad_columns(row))
        puzzle, instance = instance_of(row)
        assert question.startswith(puzzle.question(instance))
        assert "<answer>" not in question
        assert env.get_reward() == 0
        env.submit_answer(row["answer"])
        assert env.get_reward() == 1


@pytest.mark.parametrize(
    "wrapped", ["{}", "<answer>{}</answer>", "I think it is <answer>{}</answer>."]
)
def test_an_answer_may_have_its_tags(wrapped: str) -> None:
    env = environment_factory("Sudoku4-v0")()
    (row,) = PuzzleDataset("Sudoku4-v0", size=1)
    env.reset(**row)
    env.submit_answer(answer=wrapped.format(row["answer"]))
    assert env.get_reward() == 1
    with pytest.raises(RuntimeError, match="is over"):
        env.submit_answer(row["answer"])


def test_answers_can_be_read_leniently() -> None:
    (row,) = PuzzleDataset("Sudoku4-v0", size=1)
    for lenient in (False, True):
        env = environment_factory("Sudoku4-v0", lenient=lenient)()
        env.reset(**row)
        env.submit_answer(f"```\n{row['answer']}\n```")
        assert env.get_reward() == lenient


def test_an_instance_can_be_used_again() -> None:
    env = environment_factory("Sudoku4-v0", difficulty="easy")()
    first = env.reset(seed=1)
    env.submit_answer("1 1 1 1\n" * 3 + "1 1 1 1")
    assert env.get_reward() == 0
    with pytest.raises(RuntimeError, match="is over"):
        env.submit_answer("again")
    assert env.reset(seed=2) != first
    assert env.reset(seed=1) == first
    assert env.get_reward() == 0


def test_games_are_played_by_replies() -> None:
    env = environment_factory(["Wordle-v0", "Sudoku4-v0"], split="test")()
    assert tools_of(env) == {"reply", "submit_answer"}
    with pytest.raises(RuntimeError, match="begun"):
        env.reply("crane")
    (wordle, sudoku) = episode_rows(["Wordle-v0", "Sudoku4-v0"], size=1, split="test", seed=4)
    text = env.reset(**wordle)
    alone = begin("Wordle-v0", seed=4, split="test")
    assert alone.opening in text
    assert alone.system in text
    assert env.reply(text="crane") == alone.call("reply", {"text": "crane"}).text
    while not alone.done:
        assert env.reply("crane") == alone.call("reply", {"text": "crane"}).text
    assert env.get_reward() == alone.score
    assert "Sudoku" in env.reset(**sudoku)


def test_a_puzzle_can_be_played_turn_by_turn() -> None:
    env = environment_factory("Sudoku4-v0", one_shot=False)()
    assert tools_of(env) == {"reply"}
    assert "Call reply" in env.reset(seed=0)


def test_tools_have_typed_signatures_and_descriptions() -> None:
    """Trainers make schemas of them, which need a type and a description for each argument."""
    for task_id in ("Sudoku4-v0", "Wordle-v0", "OfficeApps-v0"):
        env = environment_factory(task_id)()
        schemas = {
            schema["function"]["name"].replace(".", "_"): schema for schema in begin(task_id).tools
        }
        assert {name.removesuffix("_") for name in tools_of(env)} == set(schemas)
        for name in tools_of(env):
            method = getattr(env, name)
            expected = schemas[name.removesuffix("_")]["function"]["parameters"]
            arguments = inspect.signature(method).parameters
            assert list(arguments) == sorted(
                expected["properties"], key=lambda key: key not in expected.get("required", ())
            )
            for key, argument in arguments.items():
                assert argument.annotation is not inspect.Parameter.empty
                assert (argument.default is inspect.Parameter.empty) == (
                    key in expected.get("required", ())
                )
                assert f"    {key}: " in inspect.getdoc(method)


@pytest.mark.parametrize(
    ("ids", "keywords", "message"),
    [
        ([], {}, "at least one"),
        (["Sudoku4-v0", "Wordl-v0"], {}, "Did you mean 'rlsuite/Wordle-v0'"),
        ("Sudoku4-v0", {"split": "tets"}, "Did you mean 'test'"),
        ("Sudoku4-v0", {"difficulty": "eazy"}, "easy"),
    ],
)
def test_wrong_arguments_are_named_at_once(
    ids: Any, keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        environment_factory(ids, **keywords)


def test_rows_of_other_tasks_are_refused() -> None:
    (row,) = PuzzleDataset("SAT-v0", size=1)
    with pytest.raises(ValueError, match=r"Unknown task of this environment 'rlsuite/SAT-v0'"):
        environment_factory("Sudoku4-v0")().reset(**row)
    several = environment_factory(["SAT-v0", "Sudoku4-v0"])()
    for bad in (
        {},
        {"seed": 3},
        {"metadata": None},
        {"metadata": {"id": "rlsuite/SAT-v0", "seed": None}},
    ):
        with pytest.raises(ValueError, match="needs metadata"):
            several.reset(**bad)


# -- rewards and datasets --------------------------------------------------------------------------


def batch() -> dict[str, Any]:
    """Return columns of two puzzles and of a row of no puzzle, as the trainer passes them on."""
    rows = [*CompositeDataset({"Sudoku4-v0": 1, "SAT-v0": 1}, size=6)]
    columns = {
        "answer": [row["answer"] for row in rows],
        "metadata": [row["metadata"] for row in rows],
    }
    return {
        "answer": [*columns["answer"], None],
        "metadata": [*columns["metadata"], None],
        "prompts": [""] * 7,
    }


def test_rewards_are_scores() -> None:
    columns = batch()
    right = [f"So <answer>{answer}</answer>" for answer in columns["answer"]]
    chats = [[{"role": "assistant", "content": text}] for text in right]
    for completions in (right, chats):
        assert puzzle_reward(completions=completions, **columns) == [1.0] * 6 + [None]
        assert format_reward(completions=completions, **columns) == [1.0] * 6 + [None]
    without = {**columns, "answer": None}
    assert puzzle_reward(completions=right, **without) == [1.0] * 6 + [None]
    assert puzzle_reward(completions=["<answer></answer>"] * 7, **columns) == [0.0] * 6 + [None]
    texts = {
        **columns,
        "metadata": [json.dumps(entry) if entry else None for entry in columns["metadata"]],
    }
    assert puzzle_reward(completions=right, **texts) == [1.0] * 6 + [None]


def test_rewards_have_options() -> None:
    data = PuzzleDataset("Sudoku4-v0", size=1)
    columns = {"answer": [data[0]["answer"]], "metadata": [data[0]["metadata"]]}
    best = columns["answer"][0]
    fenced = [f"<answer>```\n{best}\n```</answer>"]
    assert puzzle_reward(completions=fenced, **columns) == [0.0]
    assert make_reward(lenient=True)(completions=fenced, **columns) == [1.0]
    wrong = copy.copy(best)
    instance = data.puzzle.from_plain(json.loads(columns["metadata"][0]["instance"]))
    cell = instance.givens.tolist().index(0)
    wrong = wrong[: 2 * cell] + str(int(wrong[2 * cell]) % 4 + 1) + wrong[2 * cell + 1 :]
    near = [f"<answer>{wrong}</answer>"]
    assert puzzle_reward(completions=near, **columns) == [0.0]
    (partial,) = make_reward(partial=True)(completions=near, **columns)
    assert 0.5 < partial < 1
    assert make_reward(partial=True, format_weight=0.2)(completions=near, **columns) == [
        0.8 * partial + 0.2
    ]
    assert make_reward(format_weight=0.2)(completions=["nothing"], **columns) == [0.0]
    with pytest.raises(TypeError, match="Did you mean 'lenient'"):
        make_reward(lenint=True)
    with pytest.raises(ValueError, match=r"format_weight is in \[0, 1\), got 2"):
        make_reward(format_weight=2)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    monkeypatch.setitem(__import__("sys").modules, "trl.chat_template_utils", None)
    with pytest.raises(ImportError, match=r"datasets is not installed.*rlbench-suite\[trl\]"):
        prompt_dataset(PuzzleDataset("Sudoku4-v0", size=1))
    with pytest.raises(ImportError, match=r"trl is not installed.*rlbench-suite\[trl\]"):
        check_chat_template(None)


# -- the real trainer ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / "train_with_trl.py"))


@needs_trl
def test_one_shot_training_runs(example: dict[str, Any], tmp_path: Path) -> None:
    tokenizer = example["make_tokenizer"]()
    trainer = example["one_shot"](
        example["make_model"](tokenizer),
        tokenizer,
        ["Sudoku4-v0", "SAT-v0"],
        example["settings"](str(tmp_path)),
    )
    assert trainer.state.global_step == 2
    assert trainer.reward_func_names == ["puzzle_reward", "format_reward"]
    assert all("rewards/puzzle_reward/mean" in line for line in trainer.state.log_history[:2])


@needs_trl
def test_a_model_that_calls_the_right_tool_earns_the_reward(
    example: dict[str, Any], tmp_path: Path
) -> None:
    import torch

    (row,) = PuzzleDataset("Sudoku4-v0", size=1)
    call = json.dumps({"name": "submit_answer", "arguments": {"answer": row["answer"]}})
    tokenizer = example["make_tokenizer"]()
    call_tokens = tokenizer(f"<tool_call>\n{call}\n</tool_call><|im_end|>")["input_ids"]
    end_tokens = tokenizer("Done.<|im_end|>")["input_ids"]
    model = example["make_model"](tokenizer)
    prompts: list[str] = []

    def generate(input_ids: Any, **_: Any) -> Any:
        prompts.append(tokenizer.decode(input_ids[0]))
        turn = call_tokens if "<tool_response>" not in prompts[-1] else end_tokens
        return torch.cat([input_ids, torch.tensor([turn] * len(input_ids))], dim=1)

    model.generate = generate
    args = example["settings"](
        str(tmp_path), max_steps=1, max_completion_length=400, per_device_train_batch_size=2
    )
    constants = {"ROWS": 1}
    example["environment"].__globals__.update(constants)
    trainer = example["environment"](model, tokenizer, ["Sudoku4-v0"], args)
    log = trainer.state.log_history[0]
    assert log["rewards/Sudoku4Environment/mean"] == 1
    assert log["tools/call_frequency"] == 1
    assert log["tools/failure_frequency"] == 0
    assert '"name": "submit_answer"' in prompts[0]
    assert "Right." in prompts[1]


@needs_trl
def test_a_template_without_tools_is_refused(example: dict[str, Any]) -> None:
    tokenizer = example["make_tokenizer"]()
    check_chat_template(tokenizer)
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    with pytest.raises(ValueError, match="does not render tool calls"):
        check_chat_template(tokenizer)
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="does not render tool calls"):
        check_chat_template(tokenizer)


@needs_trl
def test_the_tiny_model_trains(capsys: pytest.CaptureFixture[str]) -> None:
    """Two steps of each phase run.

    Whether it learns takes minutes, and the docs page has the figures.
    """
    tiny = runpy.run_path(str(EXAMPLES / "train_tiny_model.py"))
    tiny["main"].__globals__.update(ROWS=300, TEST_ROWS=20)
    tokenizer = tiny["make_tokenizer"]()
    (row,) = PuzzleDataset("Sudoku4-v0", size=1)
    reply = f"<answer>{row['answer']}</answer>"
    assert tokenizer.decode(tokenizer(reply)["input_ids"]) == reply
    assert len(tokenizer(reply)["input_ids"]) == tiny["REPLY"] - 1
    assert tiny["likeness_reward"]([reply, "no"], [row["answer"]] * 2, [row["metadata"]] * 2) == [
        1.0,
        0.0,
    ]
    before, after = tiny["main"](steps=2, warm_up_steps=2)
    assert 0 <= before.low <= before.mean <= before.high <= 1
    assert after.episodes == 20
    output = capsys.readouterr().out
    assert "random answers: 0.000 [0.000, " in output
    assert "end of GRPO, 2 steps" in output
