"""Files of policies: equal bytes for equal policies, read back by the library."""

import json
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save

from rlbench_suite.baselines import checkpoint


def test_equal_policies_are_equal_files(tmp_path: Path):
    """The library orders the metadata anew in every process, so both orders are written by hand."""
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.ones(3, np.float32)}
    metadata = {"agent": "ppo", "task": "rlsuite/Ä-v0", "config": '{"x": 1}'}
    content = save(arrays, metadata=metadata)
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    written = []
    for order in (1, -1):
        reordered = dict(
            list((header | {"__metadata__": dict(list(metadata.items())[::order])}).items())[
                ::order
            ]
        )
        text = json.dumps(reordered).encode()
        path = tmp_path / str(order)
        checkpoint.write_bytes(str(path), len(text).to_bytes(8, "little") + text + content[end:])
        written.append(path.read_bytes())
        assert all((load_file(path)[name] == array).all() for name, array in arrays.items())
        with safe_open(path, framework="numpy") as file:
            assert file.metadata() == metadata
    assert written[0] == written[1]
    assert int.from_bytes(written[0][:8], "little") % 8 == 0
