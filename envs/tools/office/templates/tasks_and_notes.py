"""Instructions about tasks and notes."""

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


def _complete_task(a: Ask) -> Plan:
    yield call("tasks_complete", task=a.task)


@template(
    EASY, _complete_task, "Task {task} is done.", "Tick off task {task}.",
    "Mark task {task} as done.",
)  # fmt: skip
def complete_task(s: Scene) -> Tables:
    """The task is done."""
    task = s.row("tasks", done=False)
    s.say(task=task)
    goal = s.goal()
    goal["tasks"][task]["done"] = True
    return goal


def _set_due(a: Ask) -> Plan:
    yield call("tasks_set_due", task=a.task, due=a.day)


@template(
    EASY, _set_due, "Task {task} is now due on {day}.", "Put task {task} off to {day}.",
    "Change the day of task {task} to {day}.",
)  # fmt: skip
def set_due(s: Scene) -> Tables:
    """The task is due on the day."""
    task = s.row("tasks")
    day = s.another_word(words.DAYS, s.world["tasks"][task]["due"])
    s.say(task=task, day=day)
    goal = s.goal()
    goal["tasks"][task]["due"] = day
    return goal


def _create_task(a: Ask) -> Plan:
    yield call("tasks_create", title=a.title, project=a.project, due=a.day)


@template(
    EASY, _create_task, 'Add the task "{title}" to the project {project}, due on {day}.',
    'I have to "{title}" by {day}; make it a task of {project}.',
    'New task in {project}: "{title}", until {day}.',
)  # fmt: skip
def create_task(s: Scene) -> Tables:
    """There is one more task, of normal priority and not done."""
    title = s.unused(words.TASKS[:16], "tasks", "title")
    project = s.dice.choice(words.PROJECTS)
    day = s.dice.choice(words.DAYS)
    s.say(title=title, project=project, day=day)
    goal = s.goal()
    goal["tasks"][1000] = {
        "title": title,
        "project": project,
        "due": day,
        "priority": "normal",
        "done": False,
    }
    return goal


def _delete_note(a: Ask) -> Plan:
    yield call("notes_delete", note=a.note)


@template(
    EASY, _delete_note, "Delete note {note}.", "Throw note {note} away.", "Remove note {note}.",
)  # fmt: skip
def delete_note(s: Scene) -> Tables:
    """The note is gone."""
    (note,) = s.pick("notes")
    s.say(note=note)
    goal = s.goal()
    del goal["notes"][note]
    return goal


def _pin_note(a: Ask) -> Plan:
    yield call("notes_pin", note=a.note)


@template(
    EASY, _pin_note, "Pin note {note}.", "Note {note} should stay on top; pin it.",
    "Keep note {note} pinned.", test=True,
)  # fmt: skip
def pin_note(s: Scene) -> Tables:
    """The note is pinned."""
    note = s.row("notes", pinned=False)
    s.say(note=note)
    goal = s.goal()
    goal["notes"][note]["pinned"] = True
    return goal


def _task(s: Scene, **columns: object) -> int:
    """Name a task by its title."""
    task = s.row("tasks", **columns)
    s.say(title=s.world["tasks"][task]["title"])
    return task


def _complete(a: Ask) -> Plan:
    task = yield from find_row_id("task", "tasks_find", title=a.title)
    yield call("tasks_complete", task=task)


@template(
    MEDIUM, _complete, 'I did "{title}"; tick it off.', 'The task "{title}" is done.',
    'Mark "{title}" as done.',
)  # fmt: skip
def complete_by_title(s: Scene) -> Tables:
    """The task is done."""
    task = _task(s, done=False)
    goal = s.goal()
    goal["tasks"][task]["done"] = True
    return goal


def _set_project(a: Ask) -> Plan:
    task = yield from find_row_id("task", "tasks_find", title=a.title)
    yield call("tasks_set_project", task=task, project=a.project)


@template(
    MEDIUM, _set_project, 'Move the task "{title}" to the project {project}.',
    '"{title}" belongs to {project}.', 'The task "{title}" should be part of {project}.',
)  # fmt: skip
def set_project(s: Scene) -> Tables:
    """The task is in the project."""
    task = _task(s)
    project = s.another_word(words.PROJECTS, s.world["tasks"][task]["project"])
    s.say(project=project)
    goal = s.goal()
    goal["tasks"][task]["project"] = project
    return goal


def _set_priority(a: Ask) -> Plan:
    task = yield from find_row_id("task", "tasks_find", title=a.title)
    yield call("tasks_set_priority", task=task, priority=a.priority)


@template(
    MEDIUM, _set_priority, 'The priority of "{title}" is {priority} now.',
    'Give the task "{title}" {priority} priority.', 'Change "{title}" to {priority} priority.',
    test=True,
)  # fmt: skip
def set_priority(s: Scene) -> Tables:
    """The task has the priority."""
    task = _task(s)
    priority = s.another_word(words.PRIORITIES, s.world["tasks"][task]["priority"])
    s.say(priority=priority)
    goal = s.goal()
    goal["tasks"][task]["priority"] = priority
    return goal


def _note_phone(a: Ask) -> Plan:
    who = yield from find_person(a)
    (row,) = yield call("contacts_get", contact=who)
    note = yield from find_row_id("note", "notes_find", title=a.title)
    yield call("notes_write", note=note, text=row["phone"])


@template(
    MEDIUM, _note_phone, "Write the phone number of {name} into the note {title}.",
    "The note {title} should hold nothing but the number of {name}.",
    "Replace the text of the note {title} by the phone number of {name}.", reasons=UNCLEAR,
)  # fmt: skip
def note_phone(s: Scene) -> Tables:
    """The text of the note is the phone number of the contact."""
    who = s.person()
    note = s.row("notes")
    s.say(title=s.world["notes"][note]["title"])
    goal = s.goal()
    goal["notes"][note]["text"] = s.world["contacts"][who]["phone"]
    return goal


def _tasks_from_mails(a: Ask) -> Plan:
    rows = yield call("mail_starred")
    for row in rows:
        if row["folder"] == "inbox":
            yield call("tasks_create", title=row["subject"], project=a.project, due=a.day)
            yield call("mail_unstar", mail=row["mail"])


@template(
    HARD, _tasks_from_mails,
    "Make each mail with a star in the inbox a task of {project}, due on {day}, with the subject "
    "as its title; then take the star away.",
    "For every starred mail of the inbox add a task to {project} until {day}, named like its "
    "subject, and remove the star.",
    "Turn the stars of my inbox into tasks of the project {project}: the subject as title, due on "
    "{day}. No star remains there.",
    test=True,
)  # fmt: skip
def tasks_from_mails(s: Scene) -> Tables:
    """One more task stands for each mail of the inbox that had a star; these mails have none."""
    project = s.dice.choice(words.PROJECTS)
    day = s.dice.choice(words.DAYS)
    s.say(project=project, day=day)
    *starred, distractor = s.pick("mails", 3)
    for number, row in s.world["mails"].items():
        if row["folder"] == "inbox":
            row["starred"] = number in starred
        if number in starred:
            row.update(folder="inbox", starred=True)
    s.world["mails"][distractor].update(folder="family", starred=True)
    goal = s.goal()
    for mail in starred:
        goal["mails"][mail]["starred"] = False
        goal["tasks"][1000 + mail] = {
            "title": goal["mails"][mail]["subject"], "project": project, "due": day,
            "priority": "normal", "done": False,
        }  # fmt: skip
    return goal


def _delete_done(a: Ask) -> Plan:
    rows = yield call("tasks_of_project", project=a.project)
    for row in rows:
        if row["done"]:
            yield call("tasks_delete", task=row["task"])


@template(
    HARD, _delete_done, "Delete the tasks of {project} that are done.",
    "Clean up {project}: throw finished tasks away.",
    "In the project {project} only open tasks should be left; delete the others.",
)  # fmt: skip
def delete_done(s: Scene) -> Tables:
    """The tasks of the project that were done are gone; open ones are still there."""
    project = s.dice.choice(words.PROJECTS)
    s.say(project=project)
    *finished, unfinished, other_project = s.pick("tasks", 4)
    for task in finished:
        s.world["tasks"][task].update(project=project, done=True)
    s.world["tasks"][unfinished].update(project=project, done=False)
    s.world["tasks"][other_project].update(
        project=s.another_word(words.PROJECTS, project), done=True
    )
    goal = s.goal()
    for number, row in s.world["tasks"].items():
        if row["project"] == project and row["done"]:
            del goal["tasks"][number]
    return goal


def _put_off(a: Ask) -> Plan:
    rows = yield call("tasks_due", due=a.day)
    for row in rows:
        if row["priority"] == a.priority and not row["done"]:
            yield call("tasks_set_due", task=row["task"], due=a.later)


@template(
    HARD, _put_off,
    "Put the open tasks of {priority} priority that are due on {day} off to {later}.",
    "What is due on {day}, not done and of {priority} priority is due on {later} instead.",
    "Move every open {priority} priority task from {day} to {later}.", test=True,
)  # fmt: skip
def put_off(s: Scene) -> Tables:
    """The open tasks of the priority that were due on the day are due on the later one.

    No other task is changed.
    """
    day, later = s.dice.sample(words.DAYS, 2)
    priority = s.dice.choice(words.PRIORITIES)
    s.say(priority=priority, day=day, later=later)
    *open_tasks, other_priority, finished = s.pick("tasks", 4)
    for task in open_tasks:
        s.world["tasks"][task].update(due=day, priority=priority, done=False)
    s.world["tasks"][other_priority].update(
        due=day, priority=s.another_word(words.PRIORITIES, priority), done=False
    )
    s.world["tasks"][finished].update(due=day, priority=priority, done=True)
    goal = s.goal()
    for row in goal["tasks"].values():
        if (row["due"], row["priority"], row["done"]) == (day, priority, False):
            row["due"] = later
    return goal


TEMPLATES = (
    complete_task, set_due, create_task, delete_note, pin_note, complete_by_title, set_project,
    set_priority, note_phone, tasks_from_mails, delete_done, put_off,
)  # fmt: skip
