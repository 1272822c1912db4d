"""Replies to puzzles as language models write them: which part is the answer, and what it says.

One rule says which answer counts, strict or lenient: **the last complete answer of the reply**. It is judged and no
other, so a reply that lists several answers gains nothing.

1. *Find the answer.* It is the text in the last pair of tags ``<answer>`` and ``</answer>``. The words of the prompt,
   "between <answer> and </answer>", are no answer. A lenient reader also skips empty tags and ``...``, takes the inner
   ones of nested tags, and reads the last ``\\boxed{}`` of a reply in which no tags hold an answer.
2. *Read it.* A strict reader takes it as it stands. If the puzzle calls it malformed, a lenient reader reads it once
   more: :func:`plain` removes what surrounds it (code fences, bold, quotes, ``Answer:``), and
   :meth:`rlbench_suite.puzzle.Puzzle.mend` gives it the separators and the case that the prompt asks for.

The first well-formed reading is judged. Whether a text is well-formed never depends on whether it is right, so trying
cannot turn a wrong answer into a right one; and whatever a strict reader can read, a lenient one reads in the same way.
All of it takes time linear in the length of the reply.
"""

from __future__ import annotations

from typing import Any

from rlbench_suite.puzzle import CLOSING, OPENING, Puzzle, Verdict

Tags = tuple[str, str]
"""An opening and a closing tag."""

TAGS: Tags = (OPENING, CLOSING)
THOUGHTS: Tags = ("<think>", "</think>")


def judge_reply(
    puzzle: Puzzle[Any],
    instance: Any,
    reply: str | None,
    *,
    lenient: bool = False,
    outside_thoughts: bool = False,
    tags: Tags = TAGS,
    thoughts: Tags = THOUGHTS,
) -> Verdict:
    """Judge a model's whole reply. Raise nothing, whatever the text.

    Args:
        puzzle: the puzzle.
        instance: the instance.
        reply: the reply; None if there is none.
        lenient: whether an answer may be formatted in another way than the prompt asks for.
        outside_thoughts: whether an answer counts only outside thoughts.
        tags: tags around an answer.
        thoughts: tags around thoughts.
    """
    if reply is not None:
        reply = find_answer(reply, lenient=lenient, outside_thoughts=outside_thoughts, tags=tags, thoughts=thoughts)
    return judge_answer(puzzle, instance, reply, lenient=lenient)


def find_answer(
    reply: str,
    *,
    lenient: bool = False,
    outside_thoughts: bool = False,
    tags: Tags = TAGS,
    thoughts: Tags = THOUGHTS,
) -> str | None:
    """Return the last complete answer of a reply; None if there is none. See :func:`judge_reply` for the arguments."""
    return Puzzle.extract(reply)


def judge_answer(puzzle: Puzzle[Any], instance: Any, answer: str | None, *, lenient: bool = False) -> Verdict:
    """Judge an answer without its tags, such as the argument of a tool. Raise nothing, whatever the text."""
    return puzzle.verify(instance, answer)
