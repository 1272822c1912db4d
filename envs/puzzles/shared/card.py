"""Make the card of a puzzle from its own properties. This module imports neither JAX nor a task."""

from typing import Any

from rlbench_suite.card import TaskCard


def puzzle_card(cards: str, name: str, task: str, puzzle: str, *tags: str, player: str = "", **facts: Any) -> TaskCard:
    """Return the card of a puzzle.

    Args:
        cards: name of the module ``cards`` beside the task.
        name: the id without its namespace and version.
        task, puzzle, player: ``module:Class`` of the task, its one-shot form and its reference player, all in the
            package of ``cards``. Without a player, the exact solver's plan is played.
        tags: words for filtering, beside ``discrete``.
        facts: further attributes of the card.
    """
    package = cards.rpartition(".")[0]
    return TaskCard(
        id=f"rlsuite/{name}-v0",
        family="puzzles",
        entry_point=f"{package}.{task}",
        puzzle=f"{package}.{puzzle}",
        reference=f"{package}.{player}" if player else f"{__package__}.puzzle_task:SolverPlayer",
        tags=("discrete", *tags),
        **facts,
    )
