"""Description of the machine that computed a number, as far as the number depends on it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel

import rlbench_suite

_SETTINGS = ("JAX_", "XLA_", "PJRT_", "OMP_")
_INSTRUCTIONS = ("fma",)
"""CPU flags that bits depend on: products fused into sums. Wider vectors change nothing, and no task uses instructions
that processors only approximate (``benchmarks/across_processors.py``, ``tests/test_arithmetic.py``)."""

_VECTORS = ("avx512f", "avx2", "avx", "sse4_2", "asimd")
"""CPU flags of vector instructions, the widest first."""
_SIMULATORS = ("mujoco", "pybullet")
"""Packages of simulators of the host. Their versions decide the bits of the tasks that they compute."""


def simulator_versions() -> dict[str, str]:
    """Return the versions of the installed simulators by package."""
    versions = {}
    for name in _SIMULATORS:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


class Machine(BaseModel):
    """Machine that computed numbers. Equal bits are promised within one ``instruction_set``."""

    python: str
    packages: dict[str, str]
    platform: str
    cpu: str
    cores: int
    instruction_set: str
    vector_instructions: str = ""
    """Widest vector instructions. Weights that are trained on a CPU depend on them, episodes do not. Empty in manifests
    of versions that did not record them, and on processors that do not name them."""
    settings: dict[str, str]
    """Environment variables that configure JAX and its thread pools."""
    git_revision: str | None

    @classmethod
    def this(cls) -> Machine:
        """Describe this machine without starting an accelerator."""
        cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
        known = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in cpuinfo.splitlines())}
        flags = known.get("flags", known.get("Features", "")).split()
        return cls(
            python=platform.python_version(),
            packages={name: version(name) for name in ("gymnasium", "numpy", "jax", "jaxlib")} | simulator_versions(),
            platform=platform.platform(),
            cpu=known.get("model name") or platform.processor() or platform.machine(),
            cores=os.cpu_count() or 1,
            instruction_set=" ".join([platform.machine(), *(flag for flag in _INSTRUCTIONS if flag in flags)]),
            vector_instructions=next((name for name in _VECTORS if name in flags), ""),
            settings={name: value for name, value in sorted(os.environ.items()) if name.startswith(_SETTINGS)},
            git_revision=_git_revision(Path(rlbench_suite.__file__).parents[1]),
        )


def _git_revision(root: Path) -> str | None:
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def joules() -> float | None:
    """Return the energy counted so far by the processors (RAPL, by Linux's powercap); None if it cannot be read."""
    try:
        counters = [int((zone / "energy_uj").read_text()) for zone in Path("/sys/class/powercap").glob("intel-rapl:?")]
    except OSError:
        return None
    return sum(counters) / 1e6 if counters else None


def energy_text(measured: Sequence[float | None], solved: float) -> str:
    """Return the joules of all launches, and those for each solved episode; a dash if a launch did not measure them."""
    known = [energy for energy in measured if energy is not None]
    if len(known) < len(measured):
        return "-"
    return f"{sum(known):.3g} J" + (f", {sum(known) / solved:.3g} J for each solved episode" if solved else "")
