"""Values that a call may carry, numbered so that an action can hold them."""

from __future__ import annotations

from ..shared.tool import Argument
from . import words

_LISTS = (
    words.FIRST_NAMES,
    words.LAST_NAMES,
    words.CITIES,
    words.RELATIONS,
    words.PHONES,
    words.DAYS,
    words.TIMES,
    words.EVENTS,
    words.PLACES,
    words.DIRECTIONS,
    words.STATUSES,
    words.MAIL_FOLDERS,
    words.SUBJECTS,
    words.PHRASES,
    words.TASKS,
    words.PROJECTS,
    words.PRIORITIES,
    words.NOTES,
    words.NOTE_FOLDERS,
    words.SONGS,
    words.ARTISTS,
    words.GENRES,
    words.PLAYLISTS,
    words.PRODUCTS,
    words.CATEGORIES,
    words.ORDER_STATUSES,
    words.REASONS,
    ("True", "False"),
)
_UNIQUE_WORDS = dict.fromkeys(word for words_of_kind in _LISTS for word in words_of_kind)
VALUES: tuple[int | str, ...] = (*range(words.MAX_NUMBER + 1), *_UNIQUE_WORDS)
"""Every value, whole numbers first."""
VALUE_NUMBERS = {str(value): number for number, value in enumerate(VALUES, 1)}
"""Numbers of values, from 1, by their texts."""
FOLDED = {text.lower(): text for text in VALUE_NUMBERS}
TEXT = Argument(f"a word or phrase of the office, or a whole number up to {words.MAX_NUMBER}")
