"""The app ``tasks``: things to do."""

from __future__ import annotations

from .. import words as v
from ..row_api import added, getter, lister, marker, remover, setter, words, writes
from ..rows import World

TITLE, PROJECT = words("title of a task", v.TASKS), words("project", v.PROJECTS)
DUE, PRIORITY = words("day on which it is due", v.DAYS), words("priority", v.PRIORITIES)
ENTRY = ("title", "project", "due", "priority", "done")


@writes(title=TITLE, project=PROJECT, due=DUE)
def tasks_create(world: World, title: str, project: str, due: str) -> World:
    """Add a task of normal priority."""
    return added(world, "tasks", title=title, project=project, due=due, priority="normal", done=False)


APIS = (
    lister("tasks_open", "List the tasks that are not done.", "tasks", ENTRY[:3], lambda row: not row["done"]),
    lister("tasks_done", "List the tasks that are done.", "tasks", ENTRY[:3], lambda row: row["done"]),
    lister("tasks_of_project", "List the tasks of a project.", "tasks", ENTRY, project=PROJECT),
    lister("tasks_due", "List the tasks due on a day.", "tasks", ENTRY, due=DUE),
    lister("tasks_find", "Find tasks by title.", "tasks", ENTRY, title=TITLE),
    getter("tasks_get", "Show a task.", "tasks", ENTRY),
    tasks_create,
    remover("tasks_delete", "Delete a task.", "tasks"),
    marker("tasks_complete", "Mark a task as done.", "tasks", "done", True),
    marker("tasks_reopen", "Mark a task as not done.", "tasks", "done", False),
    setter("tasks_set_due", "Change the day on which a task is due.", "tasks", "due", DUE),
    setter("tasks_set_priority", "Change the priority of a task.", "tasks", "priority", PRIORITY),
    setter("tasks_set_project", "Move a task to a project.", "tasks", "project", PROJECT),
)
