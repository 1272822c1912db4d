r"""Replies to puzzles as language models write them: which part is the answer, and what it says.

One rule says which answer counts, strict or lenient: **the last complete answer of the reply**. It
alone is judged, so a reply that lists several answers gains nothing.

1. *Find the answer.* It is the text in the last pair of tags ``<answer>`` and ``</answer>``. The
   words of the prompt, "between <answer> and </answer>", are no answer. A lenient reader also skips
   empty tags and ``...``, takes the inner ones of nested tags, and reads the last ``\boxed{}`` of a
   reply in which no tags hold an answer.
2. *Read it.* A strict reader takes it as it stands. If the puzzle calls it malformed, a lenient
   reader reads it once more: :func:`plain` removes what surrounds it (code fences, bold, quotes,
   ``Answer:``). If that is malformed too, :meth:`rlbench_suite.puzzle.puzzle.Puzzle.mend` gives it
   the separators and the case that the prompt asks for.

The first well-formed reading is judged, right or wrong, and no other. So a lenient reader gives the
verdict of a strict one wherever that can read the answer, and trying cannot turn a wrong answer
into a right one. Time is linear in the length of the reply.
"""

from __future__ import annotations

import re
from typing import Any

from rlbench_suite.puzzle.puzzle import (
    CLOSING,
    MAX_ANSWER_SIZE,
    MAX_ECHOES,
    OPENING,
    Puzzle,
    Verdict,
)

Tags = tuple[str, str]
"""An opening and a closing tag."""

TAGS: Tags = (OPENING, CLOSING)
THOUGHTS: Tags = ("<think>", "</think>")

_PLACEHOLDERS = {"", "and", "...", "\u2026"}
"""Texts between tags of a reply that only speaks of them."""
_AROUND = " \t\r\n`*\"'"
"""Characters around placeholders that do not matter."""
_MAX_BOXES = 10
"""Largest number of boxes that are looked at, from the last one."""
_MAX_LAYERS = 10
"""Largest number of layers of marks around an answer."""
_BOX = r"\boxed{"

_SPACES = dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")
_DASHES = dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-")
_QUOTES = dict.fromkeys(range(0x2018, 0x201C), "'") | dict.fromkeys(
    (*range(0x201C, 0x2020), 0xAB, 0xBB), '"'
)
_FULL_WIDTH = {code + 0xFEE0: chr(code) for code in range(0x21, 0x7F)} | {0x3001: ",", 0x3002: "."}
_ASCII = str.maketrans(_SPACES | _DASHES | _QUOTES | _FULL_WIDTH | {0x2192: "->"})

_NAME = "(?:(?:the|my) )?(?:(?:final|correct) )?answer"
_LABEL = re.compile(
    rf"(?:(\*\*|__){_NAME}(?: is)?(?: ?: ?\1|\1 ?:)|{_NAME}(?: is)? ?:|{_NAME} is )\s*",
    re.IGNORECASE | re.ASCII,
)
"""A label before an answer, such as ``**Final answer:**`` or ``The answer is``."""
_LANGUAGES = {
    "",
    "text",
    "txt",
    "plain",
    "plaintext",
    "markdown",
    "md",
    "json",
    "python",
    "latex",
    "tex",
    "prolog",
}
"""Words that may follow the opening of a code fence. Any other word could be part of an answer."""
_LAYERS = (
    [(mark, mark) for mark in ("**", "__", "$", '"', "'")]
    + [(r"\(", r"\)"), (r"\[", r"\]")]
    + [
        (rf"\{command}{{", "}")
        for command in ("boxed", "text", "textbf", "mathbf", "mathrm", "texttt", "mathtt")
    ]
)
"""Marks around a whole answer."""
_OPENINGS = {"`"} | {opening[0] for opening, _ in _LAYERS}


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
    """Judge a model's whole reply, whatever the text.

    Args:
        puzzle: the puzzle.
        instance: the instance.
        reply: the reply; None if there is none.
        lenient: True to accept an answer that is formatted in another way than the prompt asks for.
        outside_thoughts: True to ignore answers inside thoughts.
        tags: tags around an answer.
        thoughts: tags around thoughts.

    Raises:
        ValueError: tags that are empty or equal.
    """
    if reply is not None:
        reply = find_answer(
            reply, lenient=lenient, outside_thoughts=outside_thoughts, tags=tags, thoughts=thoughts
        )
    return judge_answer(puzzle, instance, reply, lenient=lenient)


def judge_answer(
    puzzle: Puzzle[Any], instance: Any, answer: str | None, *, lenient: bool = False
) -> Verdict:
    """Judge an answer without its tags, such as the argument of a tool, whatever the text."""
    return read_answer(puzzle, instance, answer, lenient=lenient)[0]


def read_answer(
    puzzle: Puzzle[Any],
    instance: Any,
    answer: str | None,
    *,
    lenient: bool = False,
    bare: str | None = None,
) -> tuple[Verdict, str | None]:
    """Judge an answer as :func:`judge_answer` does.

    Return the verdict, and the reading that it is about.

    ``bare`` is :func:`plain` of the answer, where it is known already.
    """
    verdict = puzzle.verify(instance, answer)
    if verdict.valid or not lenient or answer is None or len(answer) > MAX_ANSWER_SIZE:
        return verdict, answer
    bare = plain(answer) if bare is None else bare
    if bare != answer and (verdict := puzzle.verify(instance, bare)).valid:
        return verdict, bare  # mending would change nothing
    mended = puzzle.mend(bare)
    return puzzle.verify(instance, mended), mended


# -- which part of a reply is the answer -----------------------------------------------------------


def find_answer(
    reply: str,
    *,
    lenient: bool = False,
    outside_thoughts: bool = False,
    tags: Tags = TAGS,
    thoughts: Tags = THOUGHTS,
) -> str | None:
    """Return the last complete answer of a reply; None if there is none.

    Args and Raises: see :func:`judge_reply`.
    """
    for opening, closing in (tags, thoughts):
        if not opening or not closing or opening == closing:
            raise ValueError(f"Tags are two different texts, got {opening!r} and {closing!r}.")
    if outside_thoughts:
        reply = without_thoughts(reply, thoughts)
    if not lenient:
        return Puzzle.extract(reply, *tags)
    tagged = _last_tagged(reply, tags)
    return _last_boxed(reply) if tagged is None else tagged


def without_thoughts(reply: str, thoughts: Tags = THOUGHTS) -> str:
    """Return a reply without its thoughts.

    A thought ends at the next closing tag, or at the end of the reply. All text before a closing
    tag that was never opened is a thought: many prompts end with the opening tag.
    """
    opening, closing = thoughts
    *closed, last = reply.split(closing)
    texts = [last.partition(opening)[0]]
    for passage in reversed(closed):
        before, opened, _ = passage.partition(opening)
        if not opened:
            break
        texts.append(before)
    return "\n".join(reversed(texts))


def _last_tagged(reply: str, tags: Tags) -> str | None:
    """Return the text in the last tags that hold more than a placeholder.

    If tags are nested, the inner ones count.
    """
    opening, closing = tags
    limit = reply.rfind(closing) + len(closing)
    for _ in range(MAX_ECHOES):
        start = reply.rfind(opening, 0, limit)
        if start < 0:
            return None
        end = reply.find(closing, start + len(opening), limit)
        if end >= 0 and not _is_placeholder(answer := reply[start + len(opening) : end]):
            return answer.strip()
        limit = start
    return None


def _last_boxed(reply: str) -> str | None:
    r"""Return the text in the last closed ``\boxed{}`` that holds more than a placeholder."""
    limit = len(reply)
    for _ in range(_MAX_BOXES):
        start = reply.rfind(_BOX, 0, limit)
        if start < 0:
            return None
        begin = end = start + len(_BOX)
        depth = 1
        passages = reply[begin : begin + MAX_ANSWER_SIZE].split("}")
        for passage in passages[:-1]:  # each ends at a closing brace
            depth += passage.count("{") - 1
            end += len(passage)
            if not depth:
                if not _is_placeholder(answer := reply[begin:end]):
                    return answer.strip()
                break
            end += 1
        limit = start
    return None


def _is_placeholder(text: str) -> bool:
    return len(text) < 20 and text.strip(_AROUND).lower() in _PLACEHOLDERS


# -- what an answer says ---------------------------------------------------------------------------


def plain(answer: str) -> str:
    """Return an answer without the marks around it.

    Its spaces, digits, letters, dashes and quotes become those of ASCII.
    """
    text = answer.translate(_ASCII).replace("\r\n", "\n").replace("\r", "\n").strip()
    for _ in range(_MAX_LAYERS):
        label = _LABEL.match(text)
        inner = text[label.end() :] if label else _strip_marks(text)
        if inner is None and text.endswith("."):
            inner = _strip_marks(text[:-1].rstrip())
        if inner is None:
            break
        text = inner.strip()
    return text


def _strip_marks(text: str) -> str | None:
    """Return what the outermost marks surround; None if there are none."""
    fenced = text.startswith("```")
    if text[:1] not in _OPENINGS or (fenced and (not text.endswith("```") or len(text) < 6)):
        return None
    if fenced:
        first, line_break, body = text[3:-3].partition("\n")
        if not line_break:
            return first
        return body if first.strip().lower() in _LANGUAGES else None
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text[1:-1]
    for opening, closing in _LAYERS:
        if (
            text.startswith(opening)
            and text.endswith(closing)
            and len(text) >= len(opening) + len(closing)
        ):
            return text[len(opening) : -len(closing)]
    return None
