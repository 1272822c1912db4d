"""Give tasks the forms that TRL's ``GRPOTrainer`` takes.

These are datasets of prompts, reward functions, and environments with tools.

There are two ways to train. A one-shot puzzle needs :func:`prompt_dataset` and
:func:`puzzle_reward`. A task that is played in turns or by tools needs :func:`environment_factory`:
the trainer gives each rollout an environment, which holds one conversation of
:mod:`rlbench_suite.language.session`. Nothing here judges an answer itself.

The libraries are imported by the functions that need them: ``datasets`` by :func:`prompt_dataset`,
``trl`` by :func:`check_chat_template`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import SPLITS
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.language.rows import Completion, Row, score, verdict
from rlbench_suite.language.session import Session, begin
from rlbench_suite.language.tools import Schema, function_of

if TYPE_CHECKING:
    import datasets

RewardFunction = Callable[..., list[float | None]]
"""A reward function of TRL, which returns a number a completion.

It is called as ``function(completions=..., COLUMN=..., **others)``.
"""


class TaskEnvironment:
    """A conversation with a task, as an environment for TRL.

    ``GRPOTrainer(environment_factory=...)`` takes it.

    The trainer makes it without arguments, calls ``reset`` with a row of its dataset, and offers
    the other public methods to the model as tools. :func:`environment_factory` makes a subclass
    that has the tools of its tasks.
    """

    ids: ClassVar[tuple[str, ...]]
    split: ClassVar[str]
    difficulty: ClassVar[str | float | None]
    one_shot: ClassVar[bool | None]
    lenient: ClassVar[bool]

    def __init__(self) -> None:
        self._session: Session | None = None

    def reset(
        self, seed: int | None = None, metadata: Mapping[str, Any] | None = None, **_: Any
    ) -> str:
        """Begin the episode of a row and return what the model reads first.

        Rows with one seed share their episode, as the members of a group must.

        Args:
            seed: seed of the episode, for rows without metadata.
            metadata: ``id``, ``tier``, ``split`` and ``seed`` of the row. Keys may be absent or
                None.

        Raises:
            ValueError: the row does not say which episode, or belongs to another task.
        """
        row_metadata = {
            name: value for name, value in (metadata or {}).items() if value is not None
        }
        seed = row_metadata.get("seed", seed)
        if seed is None or ("id" not in row_metadata and len(self.ids) > 1):
            raise ValueError(
                "A row needs metadata with the id, tier, split and seed of its episode."
            )
        task_id = find_card(row_metadata.get("id", self.ids[0])).id
        if task_id not in self.ids:
            raise ValueError(unknown("task of this environment", task_id, self.ids))
        difficulty = row_metadata.get("tier", self.difficulty)
        split = row_metadata.get("split", self.split)
        self._session = begin(
            task_id,
            seed=seed,
            split=split,
            difficulty=difficulty,
            one_shot=self.one_shot,
            lenient=self.lenient,
        )
        return self._session.briefing

    def get_reward(self) -> float:
        """Return the score of the episode.

        One that is not over earns 0 at most: giving up must not pay.
        """
        if not self._session:
            return 0.0
        value = self._session.score_so_far
        if math.isnan(value):
            return 0.0
        return value if self._session.done else min(value, 0.0)

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        """Play the call of a tool and return what the model reads next.

        Raises:
            RuntimeError: no episode has begun, or it is over. The trainer tells the model.
        """
        if self._session is None:
            raise RuntimeError("No episode has begun.")
        return self._session.call(name, arguments).text


def environment_factory(
    task_ids: str | Sequence[str],
    *,
    split: str = "train",
    difficulty: str | float | None = None,
    one_shot: bool | None = None,
    lenient: bool = False,
) -> type[TaskEnvironment]:
    """Make a class of environments of one task or several, see :class:`TaskEnvironment`.

    A puzzle has the tool ``submit_answer``, a tool world has its own tools, any other task has
    ``reply``. Rows of several tasks and tiers may be mixed, because the metadata of a row name
    them.

    Args:
        task_ids: ids; ``rlsuite/`` may be left out.
        split: split of rows that do not name one.
        difficulty: a tier's name, or the number that defines it, for rows that do not name one.
        one_shot: True to ask puzzles for one answer, False to play them turn by turn. By default
            they are asked.
        lenient: True to read answers that are formatted in another way than the task asks for.

    Raises:
        ValueError: no task, an unknown task, split or difficulty, or tasks with different tools of
            one name.
    """
    names = [task_ids] if isinstance(task_ids, str) else list(task_ids)
    if not names:
        raise ValueError("An environment needs at least one task id.")
    if split not in SPLITS:
        raise ValueError(unknown("split", split, SPLITS))
    ids = tuple(dict.fromkeys(find_card(task_id).id for task_id in names))
    schemas: dict[str, Schema] = {}
    for task_id in ids:
        for schema in begin(task_id, split=split, difficulty=difficulty, one_shot=one_shot).tools:
            name = schema["function"]["name"]
            if schemas.setdefault(name, schema) != schema:
                raise ValueError(
                    f"{task_id} has another tool {name!r} than a task before it: make a factory "
                    "for each."
                )
    methods = dict(map(_method, schemas.values()))
    title = ids[0].split("/")[1].split("-")[0] if len(ids) == 1 else "Mixed"
    settings = {
        "ids": ids,
        "split": split,
        "difficulty": difficulty,
        "one_shot": one_shot,
        "lenient": lenient,
    }
    return type(
        f"{title}Environment",
        (TaskEnvironment,),
        {**settings, **methods, "__doc__": TaskEnvironment.__doc__},
    )


def _method(schema: Schema) -> tuple[str, Callable[..., str]]:
    """Make a method that calls a tool; return it and its name.

    It has the signature and docstring that the trainer reads.

    A method whose name the environment needs itself gets an underscore at its end.
    """

    def method(self: TaskEnvironment, *args: Any, **keywords: Any) -> str:
        return function_of(schema, self._call)(*args, **keywords)

    like = function_of(schema, lambda name, arguments: "")
    typed: Signature = like.__signature__  # type: ignore[attr-defined]
    self_parameter = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = typed.replace(parameters=[self_parameter, *typed.parameters.values()])  # type: ignore[attr-defined]
    method.__name__ = method.__qualname__ = like.__name__ + "_" * hasattr(
        TaskEnvironment, like.__name__
    )
    method.__doc__ = like.__doc__
    method.__annotations__ = like.__annotations__
    return method.__name__, method


def puzzle_reward(
    completions: Sequence[Completion],
    metadata: Sequence[Mapping[str, Any] | str | None],
    answer: Sequence[str | None] | None = None,
    **_: Any,
) -> list[float | None]:
    """Score completions from 0 to 1, strictly, as a reward function of TRL.

    See :func:`make_reward` for options.

    A row without metadata belongs to another dataset. Its reward is None, which leaves it to other
    reward functions.
    """
    return _each(score, completions, metadata, answer)


def format_reward(
    completions: Sequence[Completion],
    metadata: Sequence[Mapping[str, Any] | str | None],
    answer: Sequence[str | None] | None = None,
    **_: Any,
) -> list[float | None]:
    """Return 1 for each completion whose answer has the format that the puzzle asks for.

    It is 1 whether the answer is right or wrong, and 0 for other formats.
    """
    return _each(
        lambda row, completion: float(verdict(row, completion).valid), completions, metadata, answer
    )


def make_reward(*, format_weight: float = 0.0, **reading: Any) -> RewardFunction:
    """Make a reward function of TRL.

    It scores completions in another way than :func:`puzzle_reward`.

    Args:
        format_weight: share of the reward that a well-formed answer earns, right or wrong; the
            score is the rest.
        reading: arguments of :func:`rlbench_suite.language.rows.verdict`, such as ``lenient=True``
            or ``partial=True``.

    Raises:
        ValueError: a weight outside [0, 1).
        TypeError: an unknown argument.
    """
    if not 0 <= format_weight < 1:
        raise ValueError(f"format_weight is in [0, 1), got {format_weight!r}.")
    parameters = signature(verdict).parameters.values()
    allowed = [
        parameter.name for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY
    ]
    for name in reading:
        if name not in allowed:
            raise TypeError(unknown("argument", name, ["format_weight", *allowed]))

    def reward_of_row(row: Row, completion: Completion) -> float:
        judged = verdict(row, completion, **reading)
        return (1 - format_weight) * judged.score + format_weight * judged.valid

    def puzzle_reward(
        completions: Sequence[Completion],
        metadata: Sequence[Mapping[str, Any] | str | None],
        answer: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        return _each(reward_of_row, completions, metadata, answer)

    return puzzle_reward


def _each(
    reward: Callable[[Row, Completion], float],
    completions: Sequence[Completion],
    metadata: Sequence[Mapping[str, Any] | str | None],
    answer: Sequence[str | None] | None,
) -> list[float | None]:
    """Return the reward of each completion; None for rows of other datasets."""
    return [
        reward({"answer": best or "", "metadata": row_metadata}, completion)
        if _is_ours(row_metadata)
        else None
        for completion, row_metadata, best in zip(
            completions, metadata, answer or [""] * len(metadata), strict=True
        )
    ]


def _is_ours(metadata: Mapping[str, Any] | str | None) -> bool:
    """Return whether metadata may be a puzzle's.

    In a mixed table, rows of others have our keys without values.
    """
    return (
        bool(metadata)
        if metadata is None or isinstance(metadata, str)
        else metadata.get("id") is not None
    )


def prompt_dataset(rows: Iterable[Row], *, environment: bool = False) -> datasets.Dataset:
    """Return rows as a Hugging Face dataset.

    It has the column ``prompt`` of chat messages, as trainers take it.

    Args:
        rows: rows of any puzzles, such as a :class:`rlbench_suite.language.PuzzleDataset`, or of
            :func:`episode_rows`.
        environment: True to leave the prompt empty, because an environment's ``reset`` returns the
            question.

    Raises:
        ImportError: ``datasets`` is not installed.
    """
    library = _library("datasets")
    prompted = (
        {
            "prompt": [{"role": "user", "content": "" if environment else row["question"]}],
            "answer": row["answer"],
            "metadata": row["metadata"],
        }
        for row in rows
    )
    table: datasets.Dataset = library.Dataset.from_list(list(prompted))
    return table


def episode_rows(
    task_ids: str | Sequence[str],
    *,
    size: int,
    split: str = "train",
    seed: int = 0,
    difficulty: str | float | None = None,
) -> Iterable[Row]:
    """Yield rows for :func:`environment_factory`.

    There are ``size`` episodes of each task, whether or not it is a puzzle.

    Nothing is generated yet: the environment makes the episode of a row from its seed.

    Args:
        task_ids: ids; ``rlsuite/`` may be left out.
        size: number of episodes of each task.
        split: ``train`` or ``test``.
        seed: seed of the first.
        difficulty: a tier's name, or the number that defines it.

    Raises:
        ValueError: no such task, split or difficulty.
    """
    if split not in SPLITS:
        raise ValueError(unknown("split", split, SPLITS))
    cards = [
        find_card(task_id) for task_id in ([task_ids] if isinstance(task_ids, str) else task_ids)
    ]
    tiers = [card.check_difficulty(difficulty) for card in cards]
    for number in range(seed, seed + size):
        for card, tier in zip(cards, tiers, strict=True):
            metadata = {"id": card.id, "tier": tier, "split": split, "seed": number}
            yield {"question": "", "answer": "", "metadata": metadata}


def check_chat_template(tokenizer: Any) -> None:
    """Check that a tokenizer's chat template renders tool calls, which every environment needs.

    Raises:
        ImportError: ``trl`` is not installed.
        ValueError: it does not.
    """
    utils = _library("trl.chat_template_utils")
    if not utils.supports_tool_calling(tokenizer):
        raise ValueError(
            "The chat template of this tokenizer does not render tool calls, so no environment can "
            "be played. Take a model with a template that does, set tokenizer.chat_template to one "
            "that the model was trained on (trl ships several in trl/chat_templates, such as "
            "qwen3.jinja), or train one-shot with puzzle_reward."
        )


def _library(name: str) -> Any:
    """Import a module that an extra brings.

    Raises:
        ImportError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        message = f"{name.partition('.')[0]} is not installed: pip install 'rlbench-suite[trl]'."
        raise ImportError(message) from error
