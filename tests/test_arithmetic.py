"""Test that nothing a task computes depends on the maker of the processor.

Otherwise a replay would differ on another processor.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from rlbench_suite.adapters.packed_episode import order, programs
from rlbench_suite.core.episode import ContextSource
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards

COMPILED = [card.id for card in cards().values() if not card.host]


@pytest.mark.parametrize("task_id", COMPILED)
def test_no_approximate_instruction(task_id: str) -> None:
    """XLA makes ``1 / sqrt(x)`` of x86's RSQRTPS.

    That is a table lookup, which Intel and AMD fill differently.
    """
    env = programs(find_card(task_id).build())
    begin = env.begin.lower(order(np.zeros(2, np.uint32), 0, ContextSource(0, -1)))
    advance = env.advance.lower(np.zeros(env.action.span.stop, env.layout.dtype))
    compiled = begin.compile().as_text() + advance.compile().as_text()
    assert " = " in compiled
    assert not re.search(r"\brsqrt\(", compiled)
