"""Values that a call may carry, numbered so that an action can hold them."""

from __future__ import annotations

from ..shared.tool import Argument
from . import words as v

_WORDS = (v.FIRST, v.LAST, v.CITIES, v.RELATIONS, v.PHONES, v.DAYS, v.TIMES, v.EVENTS, v.PLACES, v.DIRECTIONS,
          v.STATUSES, v.MAIL_FOLDERS, v.SUBJECTS, v.PHRASES, v.TASKS, v.PROJECTS, v.PRIORITIES, v.NOTES,
          v.NOTE_FOLDERS, v.SONGS, v.ARTISTS, v.GENRES, v.PLAYLISTS, v.PRODUCTS, v.CATEGORIES,
          v.ORDER_STATUSES, v.REASONS,
          ("True", "False"))  # fmt: skip
VALUES: tuple[int | str, ...] = (*range(v.LARGEST + 1), *dict.fromkeys(word for some in _WORDS for word in some))
"""Every value, whole numbers first."""
NUMBER_OF = {str(value): number for number, value in enumerate(VALUES, 1)}
"""Number of a value, from 1, by its text."""
FOLDED = {text.lower(): str(text) for text in NUMBER_OF}
TEXT = Argument(f"a word or phrase of the office, or a whole number up to {v.LARGEST}")
