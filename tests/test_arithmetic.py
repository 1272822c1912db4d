"""Nothing that a task computes may depend on the maker of the processor: what replays would then differ."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rlbench_suite.adapters.single import programs
from rlbench_suite.card import TaskCard
from rlbench_suite.episode import Draw
from rlbench_suite.process import precision


@pytest.mark.every_id
def test_no_approximate_instruction(card: TaskCard) -> None:
    """XLA makes ``1 / sqrt(x)`` of x86's RSQRTPS, a table lookup that Intel and AMD fill differently."""
    if card.host:
        pytest.skip("computed by a simulator of its own")
    task = card.build()
    begin, draw = programs(task).begin, Draw.parse("train", task)
    arguments = np.zeros(2, np.uint32), np.int32(0), draw
    with precision(task):
        program = begin.lower(*arguments).compile()
        compiled = program.as_text()
        compiled += programs(task).advance.lower(program(*arguments), task.action_space.sample()).compile().as_text()
    assert " = " in compiled
    assert not re.search(r"\brsqrt\(", compiled)
