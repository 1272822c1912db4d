"""Measure how much returns differ when actions are replayed with other processors' arithmetic.

python benchmarks/audits/across_processors.py            # every id, one line each
python benchmarks/audits/across_processors.py rlsuite/Vicsek-v0

The random and the reference player play episodes of the test split. Other processes, in which XLA
may use only a part of this processor's instructions (``--xla_cpu_max_isa``), replay their actions.
The table shows the largest difference of a return, and how many episodes end differently (length,
terminated, success). The cards' ``replay_tolerance`` comes from this table.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import rlbench_suite  # noqa: F401
from rlbench_suite.core.registry import agent, card, cards

SETS = ("AVX2", "AVX", "SSE4_2")
"""Instruction sets; only the first has fused multiply-add."""
EPISODES = range(2**32, 2**32 + 256)


def record_both_players(task_id: str) -> dict[str, Any]:
    """Play the episodes with both players; return their records by player."""
    from rlbench_suite.adapters.rollout import play
    from rlbench_suite.core.policy import reference_player

    task = card(task_id).build()
    players = {
        "random": list(agent("random").train(task, seed=0, budget="smoke"))[-1],
        "reference": reference_player(task),
    }
    return {name: play(task, player, EPISODES) for name, player in players.items()}


def replay_records(task_id: str, records: dict[str, Any]) -> dict[str, Any]:
    """Replay the same episodes from their actions."""
    from rlbench_suite.adapters.rollout import replay

    return {
        name: replay(card(task_id).build(), record.actions, EPISODES)
        for name, record in records.items()
    }


def main() -> None:
    """Print the table.

    As a child process with ``--replay FILE``, replay the file's records and write them back.
    """
    if sys.argv[1:2] == ["--replay"]:
        path = Path(sys.argv[2])
        task_id, records = pickle.loads(path.read_bytes())  # written by the process that called
        path.write_bytes(pickle.dumps((task_id, replay_records(task_id, records))))
        return
    print(
        f"{'id':32}{'player':11}{'return':>10}  " + "".join(f"{name:>22}" for name in SETS),
        flush=True,
    )
    for task_id in sys.argv[1:] or [
        task_card.id for task_card in cards().values() if not task_card.host
    ]:
        records = record_both_players(task_id)
        columns: dict[str, list[str]] = {name: [] for name in records}
        for instructions in SETS:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "records"
                path.write_bytes(pickle.dumps((task_id, records)))
                flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={instructions}"
                command = [sys.executable, __file__, "--replay", str(path)]
                subprocess.run(
                    command,
                    env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
                    check=True,
                )
                _, replays = pickle.loads(path.read_bytes())
            for name, record in records.items():
                replay = replays[name]
                largest = np.abs(record.total.astype(np.float64) - replay.total).max()
                otherwise = (record.length != replay.length) | (
                    record.terminated != replay.terminated
                )
                otherwise |= record.info["success"] != replay.info["success"]
                columns[name].append(f"{largest:12.3g}, {int(otherwise.sum()):3} ends")
        for name, record in records.items():
            cells = f"{record.total.mean():10.2f}  " + "".join(
                f"{column:>22}" for column in columns[name]
            )
            print(f"{task_id:32}{name:11}{cells}", flush=True)


if __name__ == "__main__":
    main()
