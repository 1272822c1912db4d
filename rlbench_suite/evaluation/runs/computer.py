"""Description of the computer that produced a number, as far as the number depends on it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel

import rlbench_suite

_SETTINGS = ("JAX_", "XLA_", "PJRT_", "OMP_")
_EVERYTHING = "episodes and trained weights"
_WEIGHTS = "trained weights"
_OFF = ("", "0", "f", "false", "n", "no", "off")
_ON = ("1", "t", "true", "y", "yes", "on")
_CHANGING = {
    "ENABLE_X64": (_WEIGHTS, _OFF),
    "DEFAULT_MATMUL_PRECISION": (_WEIGHTS, ("", "default")),
    "DEFAULT_DTYPE_BITS": (_WEIGHTS, ("", "64")),
    "NUMPY_DTYPE_PROMOTION": (_WEIGHTS, ("", "standard")),
    "RANDOM_SEED_OFFSET": (_EVERYTHING, ("", "0")),
    "DEFAULT_PRNG_IMPL": (_EVERYTHING, ("", "threefry2x32")),
    "THREEFRY_PARTITIONABLE": (_EVERYTHING, ("", *_ON)),
    "DISABLE_JIT": (_EVERYTHING, _OFF),
}
"""Settings of JAX by which the same command gives other numbers, without their prefix ``JAX_``.

Each has the numbers that change, and the values that change nothing."""
_HARMLESS_FLAGS = (
    "--xla_dump", "--xla_force_host_platform_device_count", "--xla_cpu_multi_thread_eigen",
    "--xla_hlo_profile",
)  # fmt: skip
"""Beginnings of flags of XLA that change no number.

Others may: fast mathematics, other instructions, precision.
"""
_INSTRUCTIONS = ("fma",)
"""CPU flags that bits depend on: products fused into sums.

Wider vectors change nothing, and no task uses instructions that processors only approximate
(``benchmarks/audits/across_processors.py``, ``tests/test_arithmetic.py``).
"""

_VECTORS = ("avx512f", "avx2", "avx", "sse4_2", "asimd")
"""CPU flags of vector instructions, the widest first."""
_SIMULATORS = ("mujoco", "pybullet")
"""Packages of simulators of the host.

Their versions decide the bits of the tasks that they compute.
"""


def simulator_versions() -> dict[str, str]:
    """Return the versions of the installed simulators by package."""
    versions = {}
    for name in _SIMULATORS:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


class Computer(BaseModel):
    """Computer that produced numbers. Equal bits are promised within one ``instruction_set``."""

    python: str
    packages: dict[str, str]
    platform: str
    cpu: str
    cores: int
    instruction_set: str
    vector_instructions: str = ""
    """Widest vector instructions, on which weights depend that are trained on a CPU.

    Episodes do not depend on them. Empty in manifests of versions that did not record them, and on
    processors that do not name them.
    """
    settings: dict[str, str]
    """Environment variables that configure JAX and its thread pools."""
    git_revision: str | None

    def changes(self) -> dict[str, str]:
        """Return the settings that change numbers, and which numbers each changes."""
        changing = {}
        for name, value in self.settings.items():
            if name == "XLA_FLAGS":
                if flags := [
                    flag for flag in value.split() if not flag.startswith(_HARMLESS_FLAGS)
                ]:
                    changing[f"XLA_FLAGS={' '.join(flags)}"] = _EVERYTHING
            elif (setting := name.removeprefix("JAX_")) in _CHANGING:
                numbers, usual = _CHANGING[setting]
                if value.lower() not in usual:
                    changing[f"{name}={value}"] = numbers
        return changing

    @classmethod
    def this(cls) -> Computer:
        """Describe this machine without starting an accelerator."""
        cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
        entries = {
            key.strip(): value.strip()
            for key, _, value in (line.partition(":") for line in cpuinfo.splitlines())
        }
        flags = entries.get("flags", entries.get("Features", "")).split()
        return cls(
            python=platform.python_version(),
            packages={name: version(name) for name in ("gymnasium", "numpy", "jax", "jaxlib")}
            | simulator_versions(),
            platform=platform.platform(),
            cpu=entries.get("model name") or platform.processor() or platform.machine(),
            cores=os.cpu_count() or 1,
            instruction_set=" ".join(
                [platform.machine(), *(flag for flag in _INSTRUCTIONS if flag in flags)]
            ),
            vector_instructions=next((name for name in _VECTORS if name in flags), ""),
            settings={
                name: value
                for name, value in sorted(os.environ.items())
                if name.startswith(_SETTINGS)
            },
            git_revision=_git_revision(Path(rlbench_suite.__file__).parents[1]),
        )


def on_settings(machines: Iterable[Computer]) -> Iterator[str]:
    """Yield a sentence on each setting of the environment that changes the numbers of a run."""
    changing = {
        setting: numbers for machine in machines for setting, numbers in machine.changes().items()
    }
    for setting, numbers in changing.items():
        more = " Archives may not replay to the bit." if numbers == _EVERYTHING else ""
        yield (
            f"{setting} is set. It may change {numbers}: without it the same command gives other "
            f"numbers.{more}"
        )


def _git_revision(root: Path) -> str | None:
    if not (root / ".git").exists():
        return None
    command = [
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def joules() -> float | None:
    """Return the energy in joules that the processors counted so far; None if unreadable.

    The counters are RAPL's, by Linux's powercap.
    """
    try:
        counters = [
            int((zone / "energy_uj").read_text())
            for zone in Path("/sys/class/powercap").glob("intel-rapl:?")
        ]
    except OSError:
        return None
    return sum(counters) / 1e6 if counters else None


def energy_text(measured: Sequence[float | None], solved: float) -> str:
    """Return the joules of all launches, and those for each solved episode, as text.

    It is a dash if a launch did not measure them.
    """
    energies = [energy for energy in measured if energy is not None]
    if len(energies) < len(measured):
        return "-"
    return f"{sum(energies):.3g} J" + (
        f", {sum(energies) / solved:.3g} J for each solved episode" if solved else ""
    )
