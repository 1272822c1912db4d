"""Knowledge for Twenty Questions: things, yes/no properties, and the questions that ask for them.

A property is a statement about a thing ("can fly", "has four legs", "is round", "lays eggs"); its
first word decides the question: "Can it fly?", "Does it have four legs?", "Is it round?", "Does it
lay eggs?". A question is a filled-in slot of this grammar: no lists, no "or", no free text.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

NAME_STARTS = (
    "bra", "cle", "dro", "fli", "gri", "ho", "ju", "kla", "zo", "lu", "plo", "qui", "ru", "sto",
    "tru", "vo", "wi", "za"
)  # fmt: skip
NAME_ENDS = (
    "bbit",
    "dle",
    "fen",
    "gar",
    "kin",
    "lop",
    "mond",
    "nix",
    "pple",
    "rak",
    "sp",
    "tor",
    "vil",
    "xo",
    "zzle",
)
"""A fictional thing's name is one of each."""

FICTIONAL_PROPERTIES = (
    "glows in the dark", "hums softly", "can fly", "can swim", "has a tail", "has spots",
    "has a hard shell", "has two horns", "is blue", "is warm to the touch", "is hollow",
    "is magnetic", "is transparent", "is heavy", "floats on water", "tastes salty",
    "smells of smoke", "changes its color", "grows at night", "burns easily", "breaks easily",
    "lives underground", "can be folded", "is worth a fortune",
)  # fmt: skip


class Fiction(NamedTuple):
    """Words for fictional tables."""

    first: tuple[str, ...]
    """Beginnings of names."""
    second: tuple[str, ...]
    """Their endings."""
    properties: tuple[str, ...]


THINGS = Fiction(NAME_STARTS, NAME_ENDS, FICTIONAL_PROPERTIES)


class Knowledge(NamedTuple):
    """Names only; a table of bits says which thing has which property."""

    things: tuple[str, ...]
    properties: tuple[str, ...]


@cache
def real_knowledge(file: str = "knowledge.txt") -> tuple[Knowledge, np.ndarray]:
    """Return the things and properties of a file in this folder, and their table.

    The table is bool ``(properties, things)``.

    A line ``key: statement`` is a property, ``name = key key ...`` a thing and the properties that
    hold of it. A line ``@name = key key ...`` gives a name to several properties.
    """
    properties: dict[str, str] = {}
    groups: dict[str, set[str]] = {}
    things: dict[str, set[str]] = {}
    for line in Path(__file__).with_name(file).read_text("ascii").splitlines():
        if name := re.fullmatch(r"(\w+): (.+)", line):
            properties[name[1]] = name[2]
        elif name := re.fullmatch(r"(@?)([\w ]+) = (.+)", line):
            keys = {key for word in name[3].split() for key in groups.get(word, {word})}
            (groups if name[1] else things)[name[1] + name[2]] = keys
    if unknown := set().union(*things.values()) - properties.keys():
        raise ValueError(
            f"{file} names properties that it does not define: {', '.join(sorted(unknown))}"
        )
    holds = np.array([[key in keys for keys in things.values()] for key in properties])
    return Knowledge(tuple(things), tuple(properties.values())), holds


@cache
def fictional_knowledge(
    names: int, things: int, properties: int, fiction: Fiction = THINGS
) -> Knowledge:
    """Return names of a fictional table.

    They are the first of each list in the order of their hashes with the number ``names``.
    """

    def pick_names(pool: list[str], count: int) -> tuple[str, ...]:
        return tuple(
            sorted(pool, key=lambda name: hashlib.sha256(f"{names} {name}".encode()).digest())[
                :count
            ]
        )

    return Knowledge(
        pick_names([a + b for a in fiction.first for b in fiction.second], things),
        pick_names(list(fiction.properties), properties),
    )


def question(statement: str) -> str:
    """Return the question whether a statement holds."""
    verb, predicate = statement.split(" ", 1)
    if verb in ("is", "can"):
        return f"{verb.capitalize()} it {predicate}?"
    infinitive = verb.removesuffix("s")
    if verb.endswith("ies"):
        infinitive = verb[:-3] + "y"
    if verb == "has":
        infinitive = "have"
    return f"Does it {infinitive} {predicate}?"


def guess(name: str) -> str:
    """Return the question that asks for a thing by name.

    A proper name, which begins with a capital letter, has no article.
    """
    if name[0].isupper():
        return f"Is it {name}?"
    return f"Is it {'an' if name[0] in 'aeiou' else 'a'} {name}?"


@cache
def spell_actions(knowledge: Knowledge) -> tuple[str, ...]:
    """Return the words of all actions.

    They are a question for each property, then a guess for each thing.
    """
    return (*map(question, knowledge.properties), *map(guess, knowledge.things))


def understand(text: str, knowledge: Knowledge, candidates: Collection[int] | None = None) -> int:
    """Return the number of the action that a text names; see :func:`spell_actions`.

    Case, punctuation and articles do not count. "I guess X", "guess X" and "my guess is X" mean "Is
    it X?".

    Args:
        text: the words of a player.
        knowledge: names of things and properties.
        candidates: numbers of the things that the error's message may name; None for all.

    Raises:
        ValueError: the text is no question of the grammar; the message gives one that is, the
            nearest if any is near.
    """
    words = _plain_words(text)
    if match := re.fullmatch(r"(?:i guess|guess|my guess is)(?: it is)? (.+)", words):
        words = f"is it {match[1]}"
    numbers = _by_plain_words(knowledge)
    if words not in numbers:
        properties = len(knowledge.properties)
        sentences = [
            sentence
            for sentence, number in numbers.items()
            if number < properties or candidates is None or number - properties in candidates
        ]
        # Which spares most comparisons.
        near = difflib.get_close_matches(words[:100], sentences, n=1, cutoff=0.4)
        which, name = ("the nearest", near[0]) if near else ("one", next(iter(numbers)))
        raise ValueError(
            f"{text.strip()[:100]!r} is no question about one known property and names no known "
            f"thing; {which} that is: {spell_actions(knowledge)[numbers[name]]!r}"
        )
    return numbers[words]


@cache
def _by_plain_words(knowledge: Knowledge) -> dict[str, int]:
    return {_plain_words(words): number for number, words in enumerate(spell_actions(knowledge))}


def _plain_words(text: str) -> str:
    """Reduce to lower case and single spaces, without punctuation and articles."""
    return " ".join(
        word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in ("a", "an", "the")
    )
