"""The app ``messages``: short messages on the phone."""

from __future__ import annotations

from ..rows import World
from ..values import TEXT
from .contacts import ENTRY as CONTACT_ENTRY
from .row_api import Failed, add_row, find_row, getter, lister, marker, remover, row_id, writes

CONTACT = row_id("contacts")
ENTRY = ("contact", "direction", "text", "read")


@writes(contact=CONTACT, text=TEXT)
def messages_send(world: World, contact: int, text: str) -> World:
    """Send a message to a contact. Fails if the contact is blocked."""
    if find_row(world, "contacts", contact)["blocked"]:
        raise Failed("blocked")
    return add_row(world, "messages", contact=contact, direction="outgoing", text=text, read=True)


ROW_APIS = (
    lister(
        "messages_with",
        "List the messages from and to a contact.",
        "messages",
        ENTRY,
        contact=CONTACT,
    ),
    lister(
        "messages_unread",
        "List the messages that are not read.",
        "messages",
        ENTRY,
        lambda row: not row["read"],
    ),
    lister("messages_search", "List the messages of a text.", "messages", ENTRY, text=TEXT),
    getter("messages_get", "Show a message.", "messages", ENTRY),
    messages_send,
    remover("messages_delete", "Delete a message.", "messages"),
    marker("messages_mark_read", "Mark a message as read.", "messages", "read", True),
    marker("messages_mark_unread", "Mark a message as not read.", "messages", "read", False),
    marker("messages_mute", "Mute a contact.", "contacts", "muted", True),
    marker("messages_unmute", "Unmute a contact.", "contacts", "muted", False),
    marker("messages_block", "Block a contact.", "contacts", "blocked", True),
    marker("messages_unblock", "Unblock a contact.", "contacts", "blocked", False),
    lister(
        "messages_muted",
        "List muted contacts.",
        "contacts",
        CONTACT_ENTRY,
        lambda row: row["muted"],
    ),
    lister(
        "messages_blocked",
        "List blocked contacts.",
        "contacts",
        CONTACT_ENTRY,
        lambda row: row["blocked"],
    ),
)
