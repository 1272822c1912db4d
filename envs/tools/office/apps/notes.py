"""The app ``notes``."""

from __future__ import annotations

from .. import words
from ..rows import World
from ..values import TEXT
from .row_api import add_row, getter, lister, marker, one_of, remover, setter, writes

TITLE, FOLDER = one_of("title of a note", words.NOTES), one_of("folder", words.NOTE_FOLDERS)
ENTRY = ("title", "folder", "pinned")


@writes(title=TITLE, folder=FOLDER, text=TEXT)
def notes_create(world: World, title: str, folder: str, text: str) -> World:
    """Add a note."""
    return add_row(world, "notes", title=title, folder=folder, text=text, pinned=False)


ROW_APIS = (
    lister("notes_list", "List all notes.", "notes", ENTRY),
    lister("notes_of_folder", "List the notes of a folder.", "notes", ENTRY, folder=FOLDER),
    lister("notes_find", "Find notes by title.", "notes", ENTRY, title=TITLE),
    lister("notes_pinned", "List pinned notes.", "notes", ENTRY, lambda row: row["pinned"]),
    getter("notes_get", "Show all of a note.", "notes", (*ENTRY, "text")),
    notes_create,
    remover("notes_delete", "Delete a note.", "notes"),
    setter("notes_write", "Replace the text of a note.", "notes", "text", TEXT),
    setter("notes_rename", "Change the title of a note.", "notes", "title", TITLE),
    setter("notes_move", "Move a note to a folder.", "notes", "folder", FOLDER),
    marker("notes_pin", "Pin a note.", "notes", "pinned", True),
    marker("notes_unpin", "Unpin a note.", "notes", "pinned", False),
)
