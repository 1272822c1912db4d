"""Make the card of a puzzle from its own properties. This module imports neither JAX nor a task."""

from typing import Any

from rlbench_suite.core.task_card import TaskCard

SMALL = (
    "instances are small and the mask forbids what breaks a rule, so that few values are left to "
    "chance"
)
EASY_IS_SMALL = f"easy {SMALL}"
"""Why random play solves some puzzles at every difficulty, or at the easy one."""


def puzzle_card(
    cards: str,
    name: str,
    task: str,
    puzzle: str,
    *tags: str,
    player: str = "",
    solvable: str = "",
    **facts: Any,
) -> TaskCard:
    """Return the card of a puzzle.

    Args:
        cards: name of the module ``cards`` beside the task.
        name: the id without its namespace and version.
        task, puzzle, player, solvable: ``module:Class`` of the task, its one-shot form, its
            reference player, and the one-shot form of solvable instances, all in the package of
            ``cards``. Without a player, the exact solver's plan is played.
        tags: words for filtering, beside ``discrete``.
        facts: further attributes of the card.
    """
    package = cards.rpartition(".")[0]
    return TaskCard(
        id=f"rlsuite/{name}-v0",
        family="puzzles",
        entry_point=f"{package}.{task}",
        puzzle=f"{package}.{puzzle}",
        solvable=f"{package}.{solvable}" if solvable else "",
        reference=f"{package}.{player}" if player else f"{__package__}.puzzle_task:SolverPlayer",
        tags=("discrete", *tags),
        **facts,
    )
