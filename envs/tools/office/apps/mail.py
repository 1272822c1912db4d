"""The app ``mail``."""

from __future__ import annotations

from typing import Any

from .. import words
from ..rows import World
from ..values import TEXT
from .row_api import (
    add_row,
    find_row,
    getter,
    lister,
    marker,
    one_of,
    remover,
    row_id,
    setter,
    writes,
)

MAIL, CONTACT = row_id("mails"), row_id("contacts")
SUBJECT, FOLDER = one_of("subject", words.SUBJECTS), one_of("folder", words.MAIL_FOLDERS)
ENTRY = ("contact", "direction", "folder", "subject")


def send_mail(world: World, contact: int, subject: str, text: str) -> World:
    """Return the world after a mail was sent; it lies in the archive."""
    find_row(world, "contacts", contact)
    mail: dict[str, Any] = {
        "contact": contact,
        "direction": "outgoing",
        "folder": "archive",
        "subject": subject,
    }
    return add_row(world, "mails", **mail, text=text, read=True, starred=False)


@writes(contact=CONTACT, subject=SUBJECT, text=TEXT)
def mail_send(world: World, contact: int, subject: str, text: str) -> World:
    """Send a mail to a contact."""
    return send_mail(world, contact, subject, text)


@writes(mail=MAIL, text=TEXT)
def mail_reply(world: World, mail: int, text: str) -> World:
    """Reply to a mail: send its contact a text with the same subject."""
    row = find_row(world, "mails", mail)
    return send_mail(world, row["contact"], row["subject"], text)


@writes(mail=MAIL, contact=CONTACT)
def mail_forward(world: World, mail: int, contact: int) -> World:
    """Forward a mail: send subject and text to a contact."""
    row = find_row(world, "mails", mail)
    return send_mail(world, contact, row["subject"], row["text"])


ROW_APIS = (
    lister("mail_list", "List the mails of a folder.", "mails", ENTRY, folder=FOLDER),
    lister("mail_with", "List the mails from and to a contact.", "mails", (*ENTRY, "read"),
           contact=CONTACT),
    lister("mail_about", "List the mails of a subject.", "mails", ENTRY, subject=SUBJECT),
    lister("mail_unread", "List the mails that are not read.", "mails", ENTRY,
           lambda row: not row["read"]),
    lister("mail_starred", "List the mails with a star.", "mails", ENTRY,
           lambda row: row["starred"]),
    getter("mail_get", "Show all of a mail; that does not mark it as read.", "mails",
           (*ENTRY, "text", "read", "starred")),
    mail_send,
    mail_reply,
    mail_forward,
    remover("mail_delete", "Delete a mail.", "mails"),
    setter("mail_move", "Move a mail to a folder.", "mails", "folder", FOLDER),
    marker("mail_star", "Give a mail a star.", "mails", "starred", True),
    marker("mail_unstar", "Take the star from a mail.", "mails", "starred", False),
    marker("mail_mark_read", "Mark a mail as read.", "mails", "read", True),
    marker("mail_mark_unread", "Mark a mail as not read.", "mails", "read", False),
)  # fmt: skip
