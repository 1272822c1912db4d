"""Time the way from a data sheet to a policy in C.

It runs every command of a page, as it stands, in new processes.

    python benchmarks/speed/ten_minutes.py                      # docs/extend/your_motor.md
    python benchmarks/speed/ten_minutes.py your_drone --seeds 5

The commands run one after another in an empty folder with empty caches. Only the number of seeds is
replaced, by one unless told otherwise, and benchmarks are left out. The table has the seconds of
each command by the clock and of CPU time, that of its workers too; the latter hardly depends on
what else the machine does. ``tests/docs/test_own_plants.py`` runs the same commands with fewer
steps.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from glob import glob
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str) -> list[list[str]]:
    """Return every command of a page, one a line, without the benchmarks."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.strip().splitlines()]
    return [line for line in lines if line[0] != "python"]


def data_sheet(page: str) -> str:
    """Return the data sheet of a page."""
    [sheet] = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(sheet)


def with_files(words: list[str], folder: Path) -> list[str]:
    """Return a command with the files that its patterns find, as a shell does."""
    return [
        path
        for word in words
        for path in (sorted(glob(word, root_dir=folder)) if "*" in word else [word])
    ]


def seconds(words: list[str], folder: Path) -> tuple[float, float]:
    """Run a command in a folder; return its seconds, and its CPU seconds."""
    caches = {"XDG_CACHE_HOME": str(folder / "cache")}
    environment = {
        name: value for name, value in os.environ.items() if name != "RLSUITE_CACHE"
    } | caches
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - clock
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line for each command, and the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "page", nargs="?", default="your_motor", choices=("your_motor", "your_drone")
    )
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    page = (DOCS / f"{options.page}.md").read_text()
    times = []
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    print(f"{'seconds':>8}{'CPU':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for words in commands(re.sub(r"--seeds \d+", f"--seeds {options.seeds}", page)):
            if words[:2] == ["rlsuite", "context"]:
                times.append(seconds(words[:3], folder))
                (folder / words[-1]).write_text(data_sheet(page))
            else:
                times.append(seconds(with_files(words, folder), folder))
            print(f"{times[-1][0]:8.1f}{times[-1][1]:8.1f}  {shlex.join(words)}", flush=True)
    clock, cpu = (sum(column) for column in zip(*times, strict=True))
    print(f"{clock:8.1f}{cpu:8.1f}  together")


if __name__ == "__main__":
    main()
