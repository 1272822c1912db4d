"""Instructions about mails."""

from __future__ import annotations

from .. import words
from ..population import Tables
from .row_template import (
    EASY,
    HARD,
    MEDIUM,
    UNCLEAR,
    Ask,
    Plan,
    Scene,
    call,
    find_person,
    find_row_id,
    template,
)


def _delete_mail(a: Ask) -> Plan:
    yield call("mail_delete", mail=a.mail)


@template(
    EASY, _delete_mail, "Delete mail {mail}.", "Throw mail {mail} away.",
    "I do not need mail {mail} any more; delete it.",
)  # fmt: skip
def delete_mail(s: Scene) -> Tables:
    """The mail is gone."""
    (mail,) = s.pick("mails")
    s.say(mail=mail)
    goal = s.goal()
    del goal["mails"][mail]
    return goal


def _star_mail(a: Ask) -> Plan:
    yield call("mail_star", mail=a.mail)


@template(
    EASY, _star_mail, "Give mail {mail} a star.", "Star mail {mail}.",
    "Mail {mail} is important; mark it with a star.",
)  # fmt: skip
def star_mail(s: Scene) -> Tables:
    """The mail has a star."""
    mail = s.row("mails", starred=False)
    s.say(mail=mail)
    goal = s.goal()
    goal["mails"][mail]["starred"] = True
    return goal


def _move_mail(a: Ask) -> Plan:
    yield call("mail_move", mail=a.mail, folder=a.folder)


@template(
    EASY, _move_mail, "Move mail {mail} to the folder {folder}.",
    "Mail {mail} belongs in {folder}.", "Put mail {mail} into the folder {folder}.", test=True,
)  # fmt: skip
def move_mail(s: Scene) -> Tables:
    """The mail lies in the folder."""
    mail = s.row("mails")
    folder = s.another_word(words.MAIL_FOLDERS, s.world["mails"][mail]["folder"])
    s.say(mail=mail, folder=folder)
    goal = s.goal()
    goal["mails"][mail]["folder"] = folder
    return goal


def _mail(s: Scene, **columns: object) -> int:
    """Name a mail by its subject."""
    mail = s.row("mails", **columns)
    s.say(subject=s.world["mails"][mail]["subject"])
    return mail


def _reply(a: Ask) -> Plan:
    mail = yield from find_row_id("mail", "mail_about", subject=a.subject)
    yield call("mail_reply", mail=mail, text=a.text)


@template(
    MEDIUM, _reply, 'Reply "{text}" to the mail about {subject}.',
    'Answer the mail on {subject} with "{text}".',
    'The mail about {subject} needs a reply: "{text}".',
)  # fmt: skip
def reply_mail(s: Scene) -> Tables:
    """One mail of the same subject and the text is sent to the contact of that mail."""
    mail = _mail(s, direction="incoming")
    text = s.dice.choice(words.PHRASES)
    s.say(text=text)
    goal = s.goal()
    row = s.world["mails"][mail]
    goal["mails"][1000] = {
        "contact": row["contact"], "direction": "outgoing", "folder": "archive",
        "subject": row["subject"], "text": text, "read": True, "starred": False,
    }  # fmt: skip
    return goal


def _forward(a: Ask) -> Plan:
    mail = yield from find_row_id("mail", "mail_about", subject=a.subject)
    who = yield from find_person(a)
    yield call("mail_forward", mail=mail, contact=who)


@template(
    MEDIUM, _forward, "Forward the mail about {subject} to {name}.",
    "{name} should see the mail on {subject}; forward it.",
    "Pass the mail about {subject} on to {name}.", reasons=UNCLEAR,
)  # fmt: skip
def forward_mail(s: Scene) -> Tables:
    """One mail of the same subject and text is sent to the contact."""
    mail = _mail(s)
    who = s.person()
    goal = s.goal()
    row = s.world["mails"][mail]
    goal["mails"][1000] = {
        "contact": who, "direction": "outgoing", "folder": "archive",
        "subject": row["subject"], "text": row["text"], "read": True, "starred": False,
    }  # fmt: skip
    return goal


def _delete_mails(a: Ask) -> Plan:
    who = yield from find_person(a)
    rows = yield call("mail_with", contact=who)
    for row in rows:
        if row["direction"] == "incoming":
            yield call("mail_delete", mail=row["mail"])


@template(
    MEDIUM, _delete_mails, "Delete all mails from {name}.",
    "Throw away everything that {name} has mailed me.",
    "No mail from {name} shall be left.", reasons=UNCLEAR,
)  # fmt: skip
def delete_mails(s: Scene) -> Tables:
    """All mails from the contact are gone; those to the contact are still there."""
    who = s.person()
    mails = s.world["mails"]
    *incoming, outgoing = s.pick("mails", 3)
    for number, row in mails.items():
        if row["contact"] == who:
            row["contact"] = s.other_contact(who)
        if number in incoming:
            row.update(contact=who, direction="incoming")
    mails[outgoing].update(contact=who, direction="outgoing")
    goal = s.goal()
    for number in incoming:
        del goal["mails"][number]
    return goal


def _mark_all_read(a: Ask) -> Plan:
    rows = yield call("mail_unread")
    for row in rows:
        if row["folder"] == a.folder:
            yield call("mail_mark_read", mail=row["mail"])


@template(
    MEDIUM, _mark_all_read, "Mark all mails in {folder} as read.",
    "I have seen everything in the folder {folder}.",
    "No mail in {folder} should be left unread.", test=True,
)  # fmt: skip
def mark_all_read(s: Scene) -> Tables:
    """All mails in the folder are read; those elsewhere are as they were."""
    folder = s.dice.choice(words.MAIL_FOLDERS)
    s.say(folder=folder)
    *unread, distractor = s.pick("mails", 3)
    for number in unread:
        s.world["mails"][number].update(folder=folder, read=False)
    s.world["mails"][distractor].update(
        folder=s.another_word(words.MAIL_FOLDERS, folder), read=False
    )
    goal = s.goal()
    for row in goal["mails"].values():
        if row["folder"] == folder:
            row["read"] = True
    return goal


def _count_unread(a: Ask) -> Plan:
    rows = yield call("mail_unread")
    return sum(row["folder"] == a.folder for row in rows)


@template(
    MEDIUM, _count_unread, "How many unread mails are in {folder}?",
    "Count the mails in {folder} that I have not read.",
    "Tell me the number of unread mails in the folder {folder}.",
)  # fmt: skip
def count_unread(s: Scene) -> tuple[Tables, int]:
    """Nothing changes; the answer is the number."""
    folder = s.dice.choice(words.MAIL_FOLDERS)
    s.say(folder=folder)
    some = s.pick("mails", s.dice.between(1, 8))
    for mail in some:
        s.world["mails"][mail].update(folder=folder, read=False)
    count = sum(row["folder"] == folder and not row["read"] for row in s.world["mails"].values())
    return s.goal(), count


def _mail_guests(a: Ask) -> Plan:
    event = yield from find_row_id("event", "calendar_find", title=a.title)
    (row,) = yield call("calendar_get", event=event)
    for guest in sorted(row["guests"]):
        yield call("mail_send", contact=guest, subject=a.subject, text=a.text)


@template(
    HARD, _mail_guests, 'Mail every guest of the {title}: subject {subject}, text "{text}".',
    'The guests of the {title} should each get a mail about {subject} that says "{text}".',
    'Write "{text}" with the subject {subject} to all who are invited to the {title}, by mail.',
)  # fmt: skip
def mail_guests(s: Scene) -> Tables:
    """One mail of subject and text is sent to each guest."""
    event = s.row("events")
    guests = s.pick("contacts", s.dice.between(2, 3))
    s.world["events"][event]["guests"] = frozenset(guests)
    subject = s.dice.choice(words.SUBJECTS)
    text = s.dice.choice(words.PHRASES)
    s.say(title=s.world["events"][event]["title"], subject=subject, text=text)
    goal = s.goal()
    for guest in guests:
        goal["mails"][1000 + guest] = {
            "contact": guest, "direction": "outgoing", "folder": "archive",
            "subject": subject, "text": text, "read": True, "starred": False,
        }  # fmt: skip
    return goal


def _forward_to_relation(a: Ask) -> Plan:
    mail = yield from find_row_id("mail", "mail_about", subject=a.subject)
    rows = yield call("contacts_of_relation", relation=a.relation)
    for row in rows:
        yield call("mail_forward", mail=mail, contact=row["contact"])


@template(
    HARD, _forward_to_relation,
    "Forward the mail about {subject} to everybody who is a {relation}.",
    "Each {relation} in my phone book should get the mail on {subject}; forward it.",
    "Pass the mail about {subject} on to all contacts of the relation {relation}.",
)  # fmt: skip
def forward_to_relation(s: Scene) -> Tables:
    """One mail of the same subject and text is sent to each contact of the relation."""
    mail = s.row("mails")
    relation = s.dice.choice(words.RELATIONS)
    row = s.world["mails"][mail]
    s.say(subject=row["subject"], relation=relation)
    for number in s.pick("contacts", 2):
        s.world["contacts"][number]["relation"] = relation
    goal = s.goal()
    for number, contact in s.world["contacts"].items():
        if contact["relation"] == relation:
            goal["mails"][1000 + number] = {
                "contact": number, "direction": "outgoing", "folder": "archive",
                "subject": row["subject"], "text": row["text"], "read": True, "starred": False,
            }  # fmt: skip
    return goal


def _archive_read(a: Ask) -> Plan:
    who = yield from find_person(a)
    rows = yield call("mail_with", contact=who)
    for row in rows:
        if row["read"] and row["direction"] == "incoming" and row["folder"] == "inbox":
            yield call("mail_move", mail=row["mail"], folder=a.folder)


@template(
    HARD, _archive_read,
    "Move the mails from {name} {last} in the inbox that I have read to {folder}.",
    "What {name} {last} mailed me, if it is read and still in the inbox, belongs in {folder}.",
    "File read mails from {name} {last}: out of the inbox, into {folder}.", reasons=UNCLEAR,
)  # fmt: skip
def archive_read(s: Scene) -> Tables:
    """The read mails from the contact that were in the inbox lie in the folder.

    No other mail is moved.
    """
    who = s.namesake()
    folder = s.another_word(words.MAIL_FOLDERS, "inbox")
    s.say(folder=folder)
    *read_mails, unread, outgoing = s.pick("mails", 4)
    mails = s.world["mails"]
    for mail in read_mails:
        mails[mail].update(contact=who, direction="incoming", folder="inbox", read=True)
    mails[unread].update(contact=who, direction="incoming", folder="inbox", read=False)
    mails[outgoing].update(contact=who, direction="outgoing", folder="inbox", read=True)
    goal = s.goal()
    for row in goal["mails"].values():
        if (row["contact"], row["direction"], row["folder"], row["read"]) == (
            who,
            "incoming",
            "inbox",
            True,
        ):
            row["folder"] = folder
    return goal


TEMPLATES = (
    delete_mail, star_mail, move_mail, reply_mail, forward_mail, delete_mails, mark_all_read,
    count_unread, mail_guests, forward_to_relation, archive_read,
)  # fmt: skip
