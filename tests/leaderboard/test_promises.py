"""SECURITY.md names tests that exist and limits that hold."""

import re
from pathlib import Path

from rlbench_suite.leaderboard import archive, child, schema, verify
from rlbench_suite.leaderboard.judge import LIMITS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
GIB, MIB = 2**30, 2**20


def test_every_promise_is_linked_to_a_test_that_exists():
    links = re.findall(r"\[`(\w+)`\]\((tests/[\w/]+\.py)\)", TEXT)
    assert len(links) > 15
    for name, path in links:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"
    table = TEXT.split("| --- | --- | --- |\n")[1].split("\n\n")[0]
    for row in table.splitlines():
        assert "](tests/" in row, row


def test_limits_are_those_of_the_code():
    for promise in (
        f"{LIMITS.silence:.0f} seconds without progress, {LIMITS.seconds / 3600:.0f} hours in all",
        f"{LIMITS.memory // GIB} GiB resident",
        f"{2 * LIMITS.memory // GIB} GiB of written memory",
        f"{LIMITS.output // MIB} MiB of findings, {child._MAX_FILE_BYTES // GIB} GiB for a file",
        f"{verify.MAX_PROBLEMS} faults in a verdict",
        f"{archive.MAX_ARCHIVE // GIB} GiB an archive, {archive.MAX_INFLATED // GIB} GiB inflated",
        (
            f"{schema.MAX_JSON // MIB} MiB of JSON, {schema.MAX_TASKS:,} tasks, {schema.MAX_SEEDS} "
            "seeds a task"
        ),
    ):
        assert promise in TEXT, promise
