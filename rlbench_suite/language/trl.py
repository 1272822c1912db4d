"""Tasks in the forms that TRL's ``GRPOTrainer`` takes: datasets of prompts, reward functions, environments with tools.

There are two ways to train. A one-shot puzzle needs :func:`prompt_dataset` and :func:`puzzle_reward`. A task that is
played in turns, or by tools, needs :func:`environment_factory`, whose class holds one conversation of
:mod:`rlbench_suite.language.session` for each rollout. Nothing here judges an answer itself.

Only :func:`prompt_dataset` imports ``datasets`` and only :func:`check_chat_template` imports ``trl``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Optional

from rlbench_suite.card import SPLITS, unknown
from rlbench_suite.language.session import PuzzleSession, Session, Turn, begin
from rlbench_suite.puzzle import CLOSING, OPENING
from rlbench_suite.registry import card as find_card

MISSING = "{} is not installed; install the extra that brings it: pip install 'rlbench-suite[trl]'."


class TaskEnvironment:
    """A conversation with a task, as an environment for TRL's ``GRPOTrainer(environment_factory=...)``.

    The trainer makes it without arguments, calls ``reset`` with a row of its dataset, and offers the other public
    methods to the model as tools. :func:`environment_factory` makes a subclass that has the tools of its tasks.
    """

    ids: ClassVar[tuple[str, ...]]
    split: ClassVar[str]
    difficulty: ClassVar[str | float | None]
    one_shot: ClassVar[bool | None]

    def __init__(self) -> None:
        self._session: Session | None = None

    def reset(self, seed: int | None = None, metadata: Mapping[str, Any] | None = None, **_: Any) -> str:
        """Begin the episode of a row and return what the model reads first.

        Rows with one seed share their episode, as the members of a group must.

        Args:
            seed: seed of the episode, for rows without ``metadata``.
            metadata: the row's ``id``, ``tier``, ``split`` and ``seed``.

        Raises:
            ValueError: the row does not say which episode, or belongs to another task.
        """
        given = {name: value for name, value in (metadata or {}).items() if value is not None}
        seed = given.get("seed", seed)
        if seed is None or ("id" not in given and len(self.ids) > 1):
            raise ValueError("A row needs metadata with the id, tier, split and seed of its episode.")
        task_id = find_card(given.get("id", self.ids[0])).id
        if task_id not in self.ids:
            raise ValueError(unknown("task of this environment", task_id, self.ids))
        difficulty = given.get("tier") if metadata else self.difficulty
        split = given.get("split", self.split)
        self._session = begin(task_id, seed=seed, split=split, difficulty=difficulty, one_shot=self.one_shot)
        return _opening(self._session)

    def get_reward(self) -> float:
        """Return the score of the episode so far."""
        return float(self._session.score) if self._session else 0.0

    def _asked(self, one_shot: bool) -> Session:
        """Return the conversation, if its task takes such a tool."""
        if self._session is None:
            raise RuntimeError("The episode has not begun.")
        if isinstance(self._session, PuzzleSession) != one_shot:
            raise ValueError(f"This task takes no such call. Call {'reply' if one_shot else 'submit_answer'} instead.")
        return self._session


def _submit_answer(self: TaskEnvironment, answer: str) -> str:
    """Submit the final answer to the puzzle. Only the first call counts.

    Args:
        answer: The answer, in exactly the format that the puzzle asks for.

    Returns:
        Whether the answer is right, and if not, why.
    """
    session = self._asked(one_shot=True)
    return session.reply(answer if CLOSING in answer else f"{OPENING}{answer}{CLOSING}").text


def _reply(self: TaskEnvironment, text: str) -> str:
    """Play the next turn.

    Args:
        text: The move, in the format that the task asks for.

    Returns:
        What happened.
    """
    return _told(self._asked(one_shot=False).reply(text))


def _told(turn: Turn) -> str:
    """Return the text of a turn, with a last line if the episode is over."""
    return f"{turn.text}\nThe episode is over." if turn.done else turn.text


def _opening(session: Session) -> str:
    """Return the rules, the instance, and which tool to call."""
    if isinstance(session, PuzzleSession):
        return session.puzzle.question(session.instance) + "\nGive your answer by calling submit_answer, once."
    how = "Act by calling the tools." if session.uses_tools else "Play each turn by calling reply."
    return "\n\n".join(part for part in (session.system, session.opening, how) if part)


_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> Callable[..., str]:
    """Make a method that calls a tool of the conversation, with the signature and docstring that trainers read."""
    required, annotations, parameters = set(schema.get("required", ())), {}, []
    lines = [description, "", "Args:"] if schema.get("properties") else [description]
    for key, of in sorted(schema.get("properties", {}).items(), key=lambda item: item[0] not in required):
        kind: Any = Literal[tuple(of["enum"])] if "enum" in of else _TYPES[of["type"]]
        annotations[key] = kind if key in required else Optional[kind]  # noqa: UP045 (the kind is a value)
        default = inspect.Parameter.empty if key in required else None
        parameters.append(inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
        lines.append(f"    {key}: {of.get('description', key)}")

    def method(self: TaskEnvironment, **arguments: Any) -> str:
        given = {key: value for key, value in arguments.items() if value is not None}
        return _told(self._asked(one_shot=False).call(name, given))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "\n".join(lines)
    method.__annotations__ = {**annotations, "return": str}
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    typed = [parameter.replace(annotation=annotations[parameter.name]) for parameter in parameters]
    method.__signature__ = inspect.Signature([first, *typed], return_annotation=str)  # type: ignore[attr-defined]
    return method


def environment_factory(
    task_ids: str | Sequence[str],
    *,
    split: str = "train",
    difficulty: str | float | None = None,
    one_shot: bool | None = None,
) -> type[TaskEnvironment]:
    """Make a class of environments of one task or several, see :class:`TaskEnvironment`.

    Puzzles get the tool ``submit_answer``, tool worlds get their tools, all other tasks get ``reply``. Rows of several
    tasks may be mixed: ``metadata`` of a row says which task it is.

    Args:
        task_ids: ids; ``rlsuite/`` may be left out.
        split: split of rows whose ``metadata`` does not name it.
        difficulty: a tier's name, or the number that defines it, for rows without ``metadata``.
        one_shot: True to ask puzzles for one answer, False to play them turn by turn. By default they are asked.

    Raises:
        ValueError: no task, an unknown one, or a wrong split or difficulty.
    """
    asked = [task_ids] if isinstance(task_ids, str) else list(task_ids)
    if not asked:
        raise ValueError("An environment needs at least one task id.")
    if split not in SPLITS:
        raise ValueError(unknown("split", split, SPLITS))
    ids = tuple(dict.fromkeys(find_card(task_id).id for task_id in asked))
    methods: dict[str, Any] = {}
    for task_id in ids:
        session = begin(task_id, split=split, difficulty=difficulty, one_shot=one_shot)
        if isinstance(session, PuzzleSession):
            methods["submit_answer"] = _submit_answer
        elif not session.uses_tools:
            methods["reply"] = _reply
        for tool in session.tools if session.uses_tools else ():
            of = tool["function"]
            methods[of["name"]] = _tool(of["name"], of["description"], of["parameters"])
    for public, method in methods.items():
        method.__name__ = public
    name = ids[0].split("/")[1].split("-")[0] if len(ids) == 1 else "Mixed"
    settings = {"ids": ids, "split": split, "difficulty": difficulty, "one_shot": one_shot}
    return type(f"{name}Environment", (TaskEnvironment,), {**settings, **methods, "__doc__": TaskEnvironment.__doc__})
