"""The folder of the cache: ``RLSUITE_CACHE``, by default ``~/.cache/rlbench_suite``."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder of the cache."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("RLSUITE_CACHE") or Path(user, "rlbench_suite"))
