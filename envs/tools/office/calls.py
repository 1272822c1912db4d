"""Calls of the compiled office's APIs as language models write them, read into actions.

``contacts_get`` names ``contacts.get``. Values may be spelt in other ways where that cannot change
their meaning: see :func:`read_value`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..shared.calls import read_arguments, read_call, shorten, suggest
from .apps.column_api import Api
from .apps.kinds import DAY, PHONE, TIME, ActionPart, Kind
from .documentation import tool_name

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

SYNONYMS = (
    "deny reject refuse decline disapprove dismiss",
    "delete remove erase drop cancel unschedule",
    "add create new make book schedule insert register",
    "pay settle accept approve",
    "send transfer wire give pay",
    "request ask charge invoice bill",
    "requests invoices bills pending",
    "get show read view fetch details detail info open",
    "list all every index enumerate events",
    "search find lookup look query filter",
    "move reschedule postpone shift delay",
    "invite add guest guests attendee participant",
    "uninvite disinvite remove guest guests attendee participant",
    "save deposit stash",
    "withdraw cancel retract revoke unrequest",
    "use spend withdraw",
    "set change update edit modify rename",
    "finish done complete end stop submit success",
    "answer reply respond say tell",
    "docs help documentation manual apis tools",
    "balance account money funds cash savings",
    "free available availability open slots slot",
    "place location venue room where",
    "times hours slots",
    "phone number telephone mobile",
    "city town address",
    "day date agenda",
    "transfers transactions history payments",
    "relation relationship role",
)
"""Words of nearly one meaning, by which an invented name is compared with the APIs."""


def parse_call(apis: Sequence[Api], text: str) -> np.ndarray:
    """Return the action, int ``(5,)``, of one call, in one of the forms of :mod:`..shared.calls`.

    Raises:
        ValueError: the text is anything else; the message says what is wrong, and the nearest valid
            name.
    """
    name, written_arguments = read_call(text)
    numbers = {
        spelling: number
        for number, api in enumerate(apis)
        for spelling in (api.name, tool_name(api))
    }
    if not isinstance(name, str) or name not in numbers:
        raise ValueError(
            f"unknown API {shorten(name)}.{suggestion(apis, name) if isinstance(name, str) else ''}"
        )
    api = apis[numbers[name]]
    arguments = read_arguments(api, written_arguments)
    for argument in arguments:
        if argument not in api.arguments:
            takes = ", ".join(api.arguments) or "no arguments"
            hint = suggest(argument, api.arguments)
            raise ValueError(
                f"{api.name} has no argument {shorten(argument)}.{hint} It takes: {takes}"
            )
    for argument, kind in api.arguments.items():
        if argument not in arguments:
            raise ValueError(f"{api.name} needs the argument {argument!r} ({kind.meaning})")
    action = np.zeros(len(ActionPart), np.int64)
    action[ActionPart.API] = numbers[api.name]
    for argument, kind in api.arguments.items():
        action[kind.action_part] = _number_of(api.name, argument, kind, arguments[argument])
    return action


def read_value(kind: Kind, value: Any) -> int | None:
    """Return the number of a value of a kind; None if it has none.

    Numbers may be texts of digits, or floats without a fraction. Words may differ in case, and have
    spaces or hyphens for ``_``. Days and the days of times may be written out or shortened to at
    least three letters; hours need no leading zero and no minutes. Phone numbers count by their
    digits.
    """
    if not kind.words:
        if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        fits = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= kind.size
        return int(value) if fits else None
    if not isinstance(value, str) or len(value) > 100:
        return None
    plain = _plain_word(kind, value)
    return next(
        (i for i, word in enumerate(kind.words, 1) if _plain_word(kind, word) == plain), None
    )


def _plain_word(kind: Kind, value: str) -> str:
    """Return a word without what may differ between spellings of one meaning."""
    words = value.lower().replace("_", " ").replace("-", " ").split()
    if kind is PHONE:
        return "".join(words)
    if kind in (DAY, TIME) and words and len(first := words[0].rstrip(".,")) >= 3:
        days = [day for day in WEEKDAYS if day.startswith(first)]
        words[0] = days[0] if days else first
    if (
        kind is TIME
        and len(words) == 2
        and (hour := re.fullmatch(r"([01]?[0-9])(?::00)?", words[1]))
    ):
        words[1] = f"{int(hour[1]):02d}:00"
    return " ".join(words)


def suggestion(apis: Sequence[Api], name: str) -> str:
    """Return a sentence that names the API nearest to an invented one in spelling or meaning.

    It is empty if none is near.
    """
    words = _words(name[:100])
    app_names = {_split_name(api)[0] for api in apis}
    apps = difflib.get_close_matches(words[0], app_names, 1, 0.8) if words else []
    app_apis = [api for api in apis if _split_name(api)[0] in apps]
    verb_words = words[1:] if app_apis else words
    counts = {word: sum(word in _meanings(api) for api in apis) for word in verb_words}

    def likeness(api: Api) -> float:
        """Return the likeness of an API, 0 if nothing is alike.

        Of APIs that are equally alike, the one with the short name is the likelier.
        """
        app, verb = _split_name(api)
        spelling = verb if app_apis else tool_name(api)
        ratio = difflib.SequenceMatcher(None, "_".join(verb_words), spelling).ratio()
        score = 2 * ratio if ratio >= 0.8 else 0.0
        score += sum(1 / count for word, count in counts.items() if word in _meanings(api))
        score += 0.2 * len(counts.keys() & _words(api.summary))
        return score + 0.3 * (app in words) - 0.001 * len(verb) if score else 0.0

    for candidates in (app_apis, apis):
        best = max(candidates, key=likeness, default=None)
        if best and likeness(best) > 0:
            return f" Did you mean {best.name!r}?"
    return ""


def _split_name(api: Api) -> tuple[str, str]:
    """Return app and verb of an API."""
    app, verb = api.name.split(".")
    return app, verb


def _words(text: str) -> list[str]:
    """Return the words of a name or a sentence, in lower case.

    A capital or ``_`` begins a new word.
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]{2,}", text)]


@cache
def _word_groups() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(group.split()) for group in SYNONYMS)


def _meanings(api: Api) -> frozenset[str]:
    """Return the words of an API's name without its app, and words of nearly the same meaning."""
    return _synonyms(_split_name(api)[1])


@cache
def _synonyms(name: str) -> frozenset[str]:
    words = frozenset(_words(name)) - {"by"}
    return words.union(*(group for group in _word_groups() if group & words))


def _number_of(api: str, name: str, kind: Kind, value: Any) -> int:
    number = read_value(kind, value)
    if number is not None:
        return number
    if kind.words:
        words = (
            ", ".join(kind.words)
            if len(kind.words) <= 16
            else f"{kind.words[0]} to {kind.words[-1]}"
        )
        raise ValueError(
            f"{api}: {name} is one of {words}; got {shorten(value)}.{suggest(value, kind.words)}"
        )
    raise ValueError(
        f"{api}: {name} is a whole number from 1 to {kind.size} ({kind.meaning}); got "
        f"{shorten(value)}"
    )
