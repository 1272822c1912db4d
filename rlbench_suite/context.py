"""Contexts of one's own: constants of a data sheet, from a mapping or a file, in place of those that a task ships with.

A task names its constants (:meth:`~rlbench_suite.task.Described.constants`). A context gives some of them other values:
a number is fixed, a range ``[low, high]`` is drawn anew for each episode. The others stay as shipped. In YAML or JSON::

    resistance: [0.14, 0.18]   # Ohm
    magnet_flux: 0.0098 V s
    pole_pairs: 4

The task of a context has an id of its own, ``rlsuite/Name-v0?context=my_motor-0f3a51c29d7b``: the file's name, and a
hash of the values. A copy is kept in the cache, so that this id can be used instead of the file. Such a task is in no
list or suite, and its measured scores lie beside the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rlbench_suite.bank import cache_folder
from rlbench_suite.card import LONGEST_GIVEN, unknown
from rlbench_suite.numerals import read_real
from rlbench_suite.plain_yaml import fault, read_plain_yaml, read_small_file

SUFFIXES = (".yaml", ".yml", ".json")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]{0,47}")
_LABEL = re.compile(rf"{_NAME.pattern}-[0-9a-f]{{12}}")
_QUANTITY = re.compile(r"\s*(\S+)(?:\s+(\S.*?))?\s*")
_KNOWN: dict[str, Context] = {}
"""Contexts that this process has read, by label."""


class Constant(NamedTuple):
    """A constant that a context may set."""

    name: str
    unit: str
    """SI, as a file may write it after the number; empty for a plain number"""
    low: float
    """Least value of an episode"""
    high: float
    """Largest value of an episode; equal to ``low`` if the constant is fixed"""
    meaning: str
    most: float = math.inf
    """Largest value that makes sense; all values are above zero"""
    whole: bool = False
    """True for a whole number"""
    drawn: bool = True
    """True if it may be a range"""
    derived: bool = False
    """True if it follows from others unless it is set"""


@dataclass(frozen=True)
class Context:
    """Values of constants: name to least and largest value of an episode, by name."""

    name: str
    values: tuple[tuple[str, float, float], ...]
    file: str = ""
    """Absolute path of the file that it was read from; empty if it was given as a mapping"""

    @property
    def label(self) -> str:
        """Name, and a hash of the values: ``my_motor-0f3a51c29d7b``."""
        return f"{self.name}-{hashlib.sha256(json.dumps(self.values).encode()).hexdigest()[:12]}"

    @property
    def scores_path(self) -> Path:
        """Path of the file of measured scores: beside the file, else in the cache."""
        return (
            Path(self.file).with_suffix(".scores.json") if self.file else _kept(self.label).with_suffix(".scores.json")
        )

    def get(self, name: str) -> tuple[float, float] | None:
        """Return least and largest value of a constant, or None if it stays as shipped."""
        return next(((low, high) for known, low, high in self.values if known == name), None)


def read_context(given: Mapping[str, Any] | str | Path, task_id: str, constants: Sequence[Constant]) -> Context:
    """Return the context that a mapping, a file or the label of an earlier one describes.

    Args:
        given: constants by name; or the path of a YAML or JSON file; or a label, as ids have it.
        task_id: id of the task, for messages.
        constants: the constants that may be set.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no context of this task. The message is one sentence.
    """
    if not constants:
        raise ValueError(f"{task_id} takes no context: its constants cannot be set.")
    file, name = "", "own"
    try:
        if not isinstance(given, Mapping):
            path = Path(given)
            if path.suffix.lower() not in SUFFIXES:
                return _remembered(str(given), constants)
            file, name = str(path.absolute()), path.stem.replace("-", "_")
            if not _NAME.fullmatch(name):
                raise ValueError("its name must begin with a letter or digit and have only letters, digits, _ . and -")
            given = read_plain_yaml(read_small_file(path, "a context"))
            if not isinstance(given, dict):
                raise ValueError("it is not a mapping of constants to values")
        context = Context(name, _checked(given, constants), file)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        if file and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{file or 'This'} is not a context of {task_id}: {fault(error)}.") from None
    keep(context)
    return context


def template(task_id: str, constants: Sequence[Constant]) -> str:
    """Return a file of the constants' present values, with units and meanings as comments."""
    lines = [
        f"# Constants of {task_id}. A number is fixed; of a range [low, high] each episode draws a value.",
        "# Constants that are left out stay as shipped, or follow from the others (those that are commented out).",
    ]
    for constant in constants:
        low, high = (str(int(value)) if constant.whole else repr(value) for value in (constant.low, constant.high))
        value = low if constant.low == constant.high else f"[{low}, {high}]"
        comment = "; ".join(filter(None, (constant.unit, constant.meaning)))
        lines.append(f"{'# ' * constant.derived}{constant.name}: {value}  # {comment}")
    return "\n".join(lines) + "\n"


def _checked(given: Mapping[Any, Any], constants: Sequence[Constant]) -> tuple[tuple[str, float, float], ...]:
    by_name = {constant.name: constant for constant in constants}
    values = []
    for name, value in given.items():
        if name not in by_name:
            raise ValueError(unknown("constant", name, by_name))
        values.append((name, *_range(by_name[name], value)))
    if not values:
        raise ValueError("it sets no constant")
    return tuple(sorted(values))


def _range(constant: Constant, value: Any) -> tuple[float, float]:
    """Return the least and the largest value of a constant."""
    if not isinstance(value, list | tuple):
        number = _number(constant, value)
        return number, number
    if not constant.drawn:
        raise ValueError(f"{constant.name} is fixed: one number, not a range")
    if len(value) != 2:
        raise ValueError(f"{constant.name}: a range has two numbers, got {len(value)}")
    low, high = (_number(constant, end) for end in value)
    if low > high:
        raise ValueError(f"{constant.name}: the range [{low:g}, {high:g}] ends below its beginning")
    return low, high


def _number(constant: Constant, value: Any) -> float:
    """Return a number, which may be written with the constant's unit."""
    unit = constant.unit
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value[:LONGEST_GIVEN])
        try:
            number = read_real(match[1] if match else value)
        except ValueError:
            raise ValueError(f"{constant.name}: expected a number, got {value[:LONGEST_GIVEN]!r}") from None
        if match and match[2] and match[2] != unit:
            raise ValueError(f"{constant.name} is in {unit or 'no unit'}, got {match[2]!r}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) < 1e300 else math.inf
    else:
        raise ValueError(f"{constant.name}: expected a number, got {str(value)[:LONGEST_GIVEN]!r}")
    if not 0 < number <= constant.most or math.isinf(number):
        most = f" and at most {constant.most:g}" if math.isfinite(constant.most) else " and finite"
        raise ValueError(f"{constant.name} must be above 0{most}, got {number:g}{f' {unit}' if unit else ''}")
    if constant.whole and number != int(number):
        raise ValueError(f"{constant.name} must be a whole number, got {number:g}")
    return number


def _kept(label: str) -> Path:
    return cache_folder() / "contexts" / f"{label}.json"


def keep(context: Context) -> None:
    """Remember a context in this process and, where the cache can be written, for later ones."""
    _KNOWN[context.label] = context
    path = _kept(context.label)
    if path.exists():
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as unfinished:
            json.dump({"name": context.name, "file": context.file, "values": context.values}, unfinished)
        Path(unfinished.name).replace(path)


def _remembered(label: str, constants: Sequence[Constant]) -> Context:
    """Return the context of a label, from this process or the cache.

    Raises:
        ValueError: none is known, or the copy in the cache is damaged.
    """
    if label in _KNOWN:
        return _KNOWN[label]
    if not _LABEL.fullmatch(label) or not _kept(label).is_file():
        raise ValueError(f"{label[:LONGEST_GIVEN]!r} is neither a file ({', '.join(SUFFIXES)}) nor known by this name")
    kept = read_plain_yaml(read_small_file(_kept(label), "a context"))
    try:
        values = {name: [low, high] if low != high else low for name, low, high in kept["values"]}
        context = Context(kept["name"], _checked(values, constants), kept["file"])
    except (TypeError, KeyError) as error:
        raise ValueError(f"its copy in the cache is damaged ({error})") from None
    if context.label != label:
        raise ValueError("its copy in the cache was changed")
    _KNOWN[label] = context
    return context
