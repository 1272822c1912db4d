"""Arguments of the compiled office, and the parts of an action that carry them.

The arguments are whole numbers from 1 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from ...shared.tool import Argument
from .. import columns


class ActionPart(IntEnum):
    """Parts of an action. In every part 0 means: not given."""

    API = 0
    CONTACT = 1
    RECORD = 2
    WORD = 3
    NUMBER = 4


class Reason(IntEnum):
    """Reasons for which an instruction cannot be carried out."""

    NONE = 0
    INSUFFICIENT_FUNDS = 1
    OVER_LIMIT = 2
    NO_SUCH_CONTACT = 3
    AMBIGUOUS_CONTACT = 4
    NO_SUCH_EVENT = 5
    NO_FREE_TIME = 6


@dataclass(frozen=True)
class Kind:
    """Kind of argument: its name, the part of an action that carries it, and its sense in texts."""

    name: str
    action_part: ActionPart
    argument: Argument

    @property
    def meaning(self) -> str:
        """Meaning in words."""
        return self.argument.meaning

    @property
    def words(self) -> tuple[str, ...]:
        """Words that it may be, the first for 1; empty for ids and numbers."""
        return self.argument.words

    @property
    def size(self) -> int:
        """The largest number of the kind in an action."""
        return len(self.words) or self.argument.high or 0


def _word(
    name: str, meaning: str, words: Sequence[str], action_part: ActionPart = ActionPart.WORD
) -> Kind:
    return Kind(name, action_part, Argument(meaning, tuple(words)))


def _number(name: str, action_part: ActionPart, meaning: str, high: int) -> Kind:
    return Kind(name, action_part, Argument(meaning, low=1, high=high))


CONTACT = _number("contact", ActionPart.CONTACT, "id of a contact", columns.CONTACTS)
EVENT = _number("event", ActionPart.RECORD, "id of an event", columns.EVENTS)
REQUEST = _number("request", ActionPart.RECORD, "id of a request for money", columns.REQUESTS)
NAME = _word("name", "first name", columns.NAMES)
CITY = _word("city", "city", columns.CITIES)
RELATION = _word("relation", "what a contact is to the user", columns.RELATIONS)
DAY = _word("day", "day", columns.DAYS)
TITLE = _word("title", "title of an event", columns.TITLES)
PLACE = _word("place", "place", columns.PLACES)
REASON = _word(
    "reason", "why the instruction cannot be carried out", [r.name.lower() for r in Reason if r]
)
AMOUNT = _number("amount", ActionPart.NUMBER, "whole euros", columns.MAX_AMOUNT)
NUMBER = _number("number", ActionPart.NUMBER, "whole number", columns.MAX_AMOUNT)
TIME = _word("time", "day and hour", columns.TIMES, ActionPart.NUMBER)
PHONE = _word("phone", "phone number", columns.PHONES, ActionPart.NUMBER)
KINDS = (
    CONTACT,
    EVENT,
    REQUEST,
    NAME,
    CITY,
    RELATION,
    DAY,
    TITLE,
    PLACE,
    REASON,
    AMOUNT,
    NUMBER,
    TIME,
    PHONE,
)
