"""The compiled program is the same in every process, so that JAX's cache on disk finds it."""

import hashlib
import os
import re
import subprocess
import sys

import jax
import numpy as np

from rlbench_suite.core.episode import NO_LIMIT, ContextSource, advance, begin
from rlbench_suite.core.registry import card

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import test_programs; "
    "print(test_programs.spell())"
)


def spell() -> str:
    """Return a digest of what is traced of a step."""
    task = card("OfficeApps-v0").build()
    episode, _ = jax.eval_shape(
        lambda: begin(task, np.zeros(2, np.uint32), 0, ContextSource(np.int32(0), np.int32(-1)))
    )
    action = jax.ShapeDtypeStruct(task.action_space.shape, np.int32)
    traced = jax.make_jaxpr(lambda episode, action: advance(task, episode, action, NO_LIMIT))(
        episode, action
    )
    return hashlib.sha256(re.sub("0x[0-9a-f]+", "", str(traced)).encode()).hexdigest()


def test_the_order_of_sets_does_not_reach_the_program() -> None:
    def digest_in_process(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM, os.path.dirname(__file__)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert digest_in_process("1") == digest_in_process("2")
