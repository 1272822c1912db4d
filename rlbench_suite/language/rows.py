"""Rows of datasets of puzzles, and the one call that scores a reply to any of them.

A row is plain data: ``question``, ``answer`` and ``metadata``. The metadata of all puzzles have the
same keys, with values of the same types, so that rows of different puzzles go into one table:

==============  ====================================================================================
``row``         str: id of the row, ``ID/TIER/SPLIT/SEED``, such as
                ``rlsuite/Sudoku-v0/30/train/17``
``id``          str: id of the puzzle
``tier``        float: the number that defines the difficulty of the puzzle
``split``       str: ``train`` or ``test``
``seed``        int: seed of the instance
``difficulty``  float: difficulty of this instance, in the measure of its puzzle
``canonical``   str: hash of the canonical form; rows with equal hashes ask equivalent questions
``instance``    str: the instance as JSON
==============  ====================================================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import load
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.language.lenient import TAGS, THOUGHTS, Tags, find_answer, plain, read_answer
from rlbench_suite.puzzle.puzzle import CLOSING, MAX_ANSWER_SIZE, OPENING, Puzzle, Verdict

Row = dict[str, Any]
"""A row: ``question``, ``answer`` and ``metadata``."""
Completion = str | Sequence[Mapping[str, Any]] | None
"""A reply: its text, a list of chat messages that ends in it, or None if there is none."""

METADATA = ("row", "id", "tier", "split", "seed", "difficulty", "canonical", "instance")
_METADATA = frozenset(METADATA)
_CACHED_INSTANCES = 4096
"""Number of instances that are remembered, so that replies to one row read its instance once."""


def puzzle_of(task_id: str, difficulty: str | float | None = None) -> Puzzle[Any]:
    """Return the one-shot form of a task.

    Args:
        task_id: id of a card; ``rlsuite/`` may be left out.
        difficulty: a tier's name, or the number that defines it.

    Raises:
        ValueError: no such task or difficulty, or the task has no one-shot form.
    """
    card = find_card(task_id)
    if not card.puzzle:
        have = [candidate.id for candidate in cards().values() if candidate.puzzle]
        raise ValueError(
            f"{card.id} has no one-shot form; play it with begin(). "
            + unknown("puzzle", task_id, have)
        )
    form = card.solvable if card.settings.get("answers") == "solvable" else card.puzzle
    puzzle: Puzzle[Any] = load(form)(card.check_difficulty(difficulty))
    return puzzle


def make_row(task_id: str, puzzle: Puzzle[Any], seed: int, split: str) -> Row:
    """Return the row of an instance.

    Args:
        task_id: full id of the puzzle.
        puzzle: its one-shot form.
        seed, split: those of the instance.

    Raises:
        ValueError: see :meth:`Puzzle.generate`.
    """
    instance = puzzle.generate(seed, split)
    metadata = {
        "row": f"{task_id}/{puzzle.tier:g}/{split}/{seed}",
        "id": task_id,
        "tier": float(puzzle.tier),
        "split": split,
        "seed": seed,
        "difficulty": float(puzzle.difficulty(instance)),
        "canonical": canonical_hash(puzzle, instance),
        "instance": json.dumps(puzzle.to_plain(instance), separators=(",", ":")),
    }
    return {
        "question": puzzle.prompt(instance),
        "answer": puzzle.solve(instance),
        "metadata": metadata,
    }


def canonical_hash(puzzle: Puzzle[Any], instance: Any) -> str:
    """Return the hash of an instance's canonical form. Equivalent instances have equal hashes."""
    return hashlib.blake2b(puzzle.canonical(instance), digest_size=16).hexdigest()


def verdict(
    row: Mapping[str, Any],
    completion: Completion,
    *,
    lenient: bool = False,
    outside_thoughts: bool = False,
    tags: Tags = TAGS,
    thoughts: Tags = THOUGHTS,
    partial: bool = False,
) -> Verdict:
    """Judge a whole reply to a row of any puzzle by the rules of the puzzle.

    Args:
        row: a row of a dataset, or a copy of it that went through JSON or Arrow. Its metadata may
            be JSON text.
        completion: the text of the reply; a list of chat messages, of which the last one of the
            assistant counts; or None for no reply.
        lenient: True to accept an answer that is formatted in another way than the prompt asks for
            (:mod:`.lenient`).
        outside_thoughts: True to ignore answers inside thoughts.
        tags: tags around an answer.
        thoughts: tags around thoughts.
        partial: True to give a wrong answer the score of :meth:`.puzzle.Puzzle.partial`, which lies
            below 1.

    Raises:
        TypeError: a completion of another type.
        ValueError: not a row.
    """
    answer = text_of(completion)
    if answer is not None:
        answer = find_answer(
            answer, lenient=lenient, outside_thoughts=outside_thoughts, tags=tags, thoughts=thoughts
        )
    return _judge_answer(row, answer, lenient=lenient, partial=partial)


def score(
    row: Mapping[str, Any],
    completion: Completion,
    *,
    lenient: bool = False,
    partial: bool = False,
    **reading: Any,
) -> float:
    """Score a whole reply to a row of any puzzle, from 0 to 1.

    The row's own answer comes from the exact solver and needs no check, and so does a lenient
    reading that is it. The rules judge any other answer. So a row is trusted like an answer key:
    rows of strangers are to be made anew with :func:`make_row`. See :func:`verdict` for the
    arguments, and for what is raised.
    """
    text = text_of(completion)
    if text is None:
        return 0.0
    best = row.get("answer")
    best = best if isinstance(best, str) else ""
    if best and not reading and text.endswith(f"{OPENING}{best}{CLOSING}"):
        return 1.0  # most right replies end in the answer
    answer = find_answer(text, lenient=lenient, **reading)
    bare = (
        plain(answer) if lenient and answer is not None and len(answer) <= MAX_ANSWER_SIZE else None
    )
    if best and best in (answer, bare):
        return 1.0
    return _judge_answer(row, answer, lenient=lenient, partial=partial, bare=bare).score


def _judge_answer(
    row: Mapping[str, Any],
    answer: str | None,
    *,
    lenient: bool,
    partial: bool,
    bare: str | None = None,
) -> Verdict:
    """Judge the answer that was found in a reply.

    Raises:
        ValueError: the rules cannot judge the row's instance, which no generator has made.
    """
    metadata = metadata_of(row)
    puzzle, instance = _instance(metadata["id"], metadata["tier"], metadata["instance"])
    try:
        return _judge_by_rules(
            row, metadata, puzzle, instance, answer, lenient=lenient, partial=partial, bare=bare
        )
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
    ) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{metadata['instance']!r:.80} is no instance of {metadata['id']}: {reason}"
        ) from error


def _judge_by_rules(
    row: Mapping[str, Any],
    metadata: Mapping[str, Any],
    puzzle: Puzzle[Any],
    instance: Any,
    answer: str | None,
    *,
    lenient: bool,
    partial: bool,
    bare: str | None,
) -> Verdict:
    """Judge an answer by the rules of its puzzle."""
    judged, read = read_answer(puzzle, instance, answer, lenient=lenient, bare=bare)
    if partial and read is not None and judged.valid and judged.score < 1:
        row_answer = row.get("answer")
        solution = row_answer if isinstance(row_answer, str) else None
        best, chance = _yardsticks(metadata["id"], metadata["tier"], metadata["instance"], solution)
        credit = puzzle.credit(puzzle.likeness(instance, read, best), chance)
        return judged._replace(score=max(judged.score, credit))
    return judged


@lru_cache(maxsize=_CACHED_INSTANCES)
def _yardsticks(task_id: str, tier: float, text: str, best: str | None) -> tuple[str, float]:
    """Return what partial credit is measured by.

    That is an answer that scores 1, and the likeness that needs no effort.
    """
    puzzle, instance = _instance(task_id, tier, text)
    if not best:  # the row does not tell
        best = puzzle.solve(instance)
    elif (
        puzzle.verify(instance, best).score < 1
    ):  # solving what no generator has made could take for ever
        raise ValueError(
            f"the answer of the row, {best!r:.80}, does not solve its instance; make the row anew."
        )
    return best, puzzle.effortless(instance, best)


def text_of(completion: Completion) -> str | None:
    """Return the text of a reply: that of the last message of the assistant.

    None if there is no reply.

    Raises:
        TypeError: neither text, nor chat messages, nor None.
    """
    if completion is None or isinstance(completion, str):
        return completion
    if not isinstance(completion, Sequence) or not all(
        isinstance(message, Mapping) for message in completion
    ):
        raise TypeError(_not_a_reply(completion))
    for message in reversed(cast(Sequence[Mapping[str, Any]], completion)):
        if message.get("role") == "assistant":
            return _content(message.get("content"))
    return None


def _content(content: Any) -> str | None:
    """Return the text of a message's content.

    The content is text, None, or a list of parts, of which those with text count.
    """
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise TypeError(_not_a_reply(content))
    texts = [entry.get("text") if isinstance(entry, Mapping) else entry for entry in content]
    return "".join([text for text in texts if isinstance(text, str)])


def _not_a_reply(value: object) -> str:
    """Return the sentence of the error on a completion of a wrong type."""
    text = repr(value)
    if len(text) > 80:
        text = text[:77] + "..."
    return (
        "A completion is a str, a list of chat messages such as "
        "[{'role': 'assistant', 'content': 'text'}], or None; "
        f"got {type(value).__name__}: {text}."
    )


def metadata_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a row.

    Raises:
        ValueError: not a row.
    """
    metadata = row.get("metadata")
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except RecursionError:
            raise ValueError("The metadata of a row are nested too deeply.") from None
    if not isinstance(metadata, Mapping) or not metadata.keys() >= _METADATA:
        got = (
            ", ".join(map(str, metadata))
            if isinstance(metadata, Mapping)
            else f"metadata {metadata!r:.80}"
        )
        raise ValueError(f"The metadata of a row have the keys {', '.join(METADATA)}; got {got}.")
    task_id, tier, instance = (metadata[name] for name in ("id", "tier", "instance"))
    if not (
        isinstance(task_id, str) and isinstance(tier, (int, float)) and isinstance(instance, str)
    ):
        raise ValueError(
            "The metadata of a row have text as id, a number as tier and text as instance; "
            f"got {task_id!r:.80}, {tier!r:.80} and {instance!r:.80}."
        )
    return metadata


def instance_of(row: Mapping[str, Any]) -> tuple[Puzzle[Any], Any]:
    """Return the puzzle of a row, and its instance.

    Raises:
        ValueError: not a row, or of no puzzle that is installed.
    """
    metadata = metadata_of(row)
    return _instance(metadata["id"], metadata["tier"], metadata["instance"])


@lru_cache(maxsize=256)
def kept_puzzle(task_id: str, tier: float) -> Puzzle[Any]:
    """Return the one-shot form of a task at a difficulty, made once."""
    return puzzle_of(task_id, tier)


@lru_cache(maxsize=_CACHED_INSTANCES)
def _instance(task_id: str, tier: float, text: str) -> tuple[Puzzle[Any], Any]:
    puzzle = kept_puzzle(task_id, tier)
    try:
        instance = puzzle.from_plain(json.loads(text))
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{text!r:.80} is no instance of {task_id} at {tier:g}: {error}") from None
    for field in instance:
        if isinstance(field, np.ndarray):
            field.flags.writeable = False  # all replies to the row share it
    return puzzle, instance
