"""Test that every player of every task is a value.

Its functions have a hash, so that ``jax.jit`` takes them as they are.
"""

from __future__ import annotations

from rlbench_suite.core.policy import player_for
from rlbench_suite.core.registry import cards


def test_functions_of_every_player_can_be_jitted_as_they_are() -> None:
    """Nothing is compiled: ``jax.jit(player.act)`` needs the hash when it is first called."""
    without_hash = []
    for card in cards().values():
        if not card.installed or not card.reference:
            continue
        task = card.build()
        for name, entry_point in {"reference": card.reference, **card.yardsticks}.items():
            player = player_for(task, entry_point)
            for function in (player.initial, player.act):
                try:
                    hash(function)
                except TypeError as error:
                    without_hash.append(f"{card.id} {name} {function.__name__}: {error}")
    assert not without_hash, "\n".join(without_hash)
