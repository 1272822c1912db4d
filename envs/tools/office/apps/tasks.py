"""The app ``tasks``: things to do."""

from __future__ import annotations

from .. import words
from ..rows import World
from .row_api import add_row, getter, lister, marker, one_of, remover, setter, writes

TITLE, PROJECT = one_of("title of a task", words.TASKS), one_of("project", words.PROJECTS)
DUE_DAY = one_of("day on which it is due", words.DAYS)
PRIORITY = one_of("priority", words.PRIORITIES)
ENTRY = ("title", "project", "due", "priority", "done")


@writes(title=TITLE, project=PROJECT, due=DUE_DAY)
def tasks_create(world: World, title: str, project: str, due: str) -> World:
    """Add a task of normal priority."""
    return add_row(
        world, "tasks", title=title, project=project, due=due, priority="normal", done=False
    )


ROW_APIS = (
    lister(
        "tasks_open",
        "List the tasks that are not done.",
        "tasks",
        ENTRY[:3],
        lambda row: not row["done"],
    ),
    lister(
        "tasks_done", "List the tasks that are done.", "tasks", ENTRY[:3], lambda row: row["done"]
    ),
    lister("tasks_of_project", "List the tasks of a project.", "tasks", ENTRY, project=PROJECT),
    lister("tasks_due", "List the tasks due on a day.", "tasks", ENTRY, due=DUE_DAY),
    lister("tasks_find", "Find tasks by title.", "tasks", ENTRY, title=TITLE),
    getter("tasks_get", "Show a task.", "tasks", ENTRY),
    tasks_create,
    remover("tasks_delete", "Delete a task.", "tasks"),
    marker("tasks_complete", "Mark a task as done.", "tasks", "done", True),
    marker("tasks_reopen", "Mark a task as not done.", "tasks", "done", False),
    setter("tasks_set_due", "Change the day on which a task is due.", "tasks", "due", DUE_DAY),
    setter("tasks_set_priority", "Change the priority of a task.", "tasks", "priority", PRIORITY),
    setter("tasks_set_project", "Move a task to a project.", "tasks", "project", PROJECT),
)
