"""Test threads with environments of their own that share data on the host.

Conversations and tools keep on the host what all of their episodes share.
"""

from __future__ import annotations

import pytest
from threads import assert_plays_as_alone

from rlbench_suite.core.registry import cards

pytestmark = pytest.mark.of_variants
IDS = [
    card.id
    for card in cards().values()
    if card.family in {"text", "tools"} and card.variant and card.installed
]


@pytest.mark.parametrize("task_id", IDS)
def test_environments_in_threads_play_as_they_play_alone(task_id: str) -> None:
    assert_plays_as_alone(task_id)
