"""Contexts of one's own: constants of a data sheet, from a mapping or a file, in place of those that a task ships with.

A task names its constants (:meth:`~rlbench_suite.task.Described.constants`). A context gives some of them other values:
a number is fixed, a range ``[low, high]`` is drawn anew for each episode. The others stay as shipped. In YAML or JSON::

    resistance: [0.14, 0.18]   # Ohm
    magnet_flux: 0.0098 V s
    pole_pairs: 4

A context may also set the weights of the terms of a reward, and give records of the conditions over time in place of
those that a task draws (:mod:`rlbench_suite.time_series`), or documents (:mod:`rlbench_suite.document`)::

    reward: {heat: 0.5}
    weather: my_weather.csv

The task of a context has an id of its own, ``rlsuite/Name-v0?context=my_motor-0f3a51c29d7b``: the file's name, and a
hash of the values. A copy is kept in the cache, so that this id can be used instead of the file. Such a task is in no
list or suite, and its measured scores lie beside the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rlbench_suite.atomic_files import replacing
from rlbench_suite.bank import cache_folder
from rlbench_suite.document import Document, read_document
from rlbench_suite.numerals import read_real
from rlbench_suite.plain_yaml import fault, read_plain_yaml, read_small_file
from rlbench_suite.task_card import LONGEST_GIVEN, unknown
from rlbench_suite.time_series import Record, Series, read_record, refuse_other_steps, sha256_of

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
    """Largest value that makes sense"""
    whole: bool = False
    """True for a whole number"""
    drawn: bool = True
    """True if it may be a range"""
    derived: bool = False
    """True if it follows from others unless it is set"""
    least: float | None = None
    """Least value that makes sense; None if any value above zero does"""
    bands: int = 0
    """Number of bands of its range that lie in turn in train and test; 0 if both splits draw from the whole range"""


REWARD = "reward."
"""Beginning of the names of constants that are weights of a reward's terms; a file has them below ``reward``."""


LARGEST_WEIGHT = 1e6
"""Largest weight of a term; products of much larger ones leave float32."""


def weights(**terms: tuple[float, str]) -> tuple[Constant, ...]:
    """Return weights of a reward's terms as constants, from the shipped weight and the meaning of each term."""
    return tuple(
        Constant(f"{REWARD}{name}", "", weight, weight, meaning, LARGEST_WEIGHT, drawn=False, least=0.0)
        for name, (weight, meaning) in terms.items()
    )


@dataclass(frozen=True)
class Context:
    """Values of constants: name to least and largest value of an episode, by name."""

    name: str
    values: tuple[tuple[str, float, float], ...]
    file: str = ""
    """Absolute path of the file that it was read from; empty if it was given as a mapping"""
    records: tuple[Record, ...] = ()
    """Records of conditions over time"""

    @property
    def label(self) -> str:
        """Name, and a hash of the values and records: ``my_motor-0f3a51c29d7b``."""
        records = [(record.name, record.columns, record.sha256) for record in self.records]
        told = json.dumps([self.values, records] if records else self.values)
        return f"{self.name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"

    @property
    def scores_path(self) -> Path:
        """Path of the file of measured scores: beside the file, else in the cache."""
        return (
            Path(self.file).with_suffix(".scores.json") if self.file else _kept(self.label).with_suffix(".scores.json")
        )

    def get(self, name: str) -> tuple[float, float] | None:
        """Return least and largest value of a constant, or None if it stays as shipped."""
        return next(((low, high) for known, low, high in self.values if known == name), None)

    def mapping(self) -> dict[str, Any]:
        """Return the mapping that describes this context; it may be read again."""
        values = {name: [low, high] if low != high else low for name, low, high in self.values}
        return values | {record.name: record for record in self.records}

    def record(self, name: str) -> Record | None:
        """Return the record of a series, or None if the task draws it as shipped."""
        return next((record for record in self.records if record.name == name), None)


def read_context(
    given: Mapping[str, Any] | str | Path,
    task_id: str,
    constants: Sequence[Constant],
    series: Sequence[Series | Document] = (),
    own_series: Callable[[Context], Sequence[Series | Document]] | None = None,
) -> Context:
    """Return the context that a mapping, a file or the label of an earlier one describes.

    Args:
        given: constants by name; or the path of a YAML or JSON file; or a label, as ids have it.
        task_id: id of the task, for messages.
        constants: the constants that may be set.
        series: the series of which records may be given, and the documents.
        own_series: function that returns them for the task with other constants, where they follow from those.

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
                return _remembered(str(given), constants, series, own_series)
            file, name = str(path.absolute()), path.stem.replace("-", "_")
            if not _NAME.fullmatch(name):
                raise ValueError("its name must begin with a letter or digit and have only letters, digits, _ . and -")
            given = read_plain_yaml(read_small_file(path, "a context"))
            if not isinstance(given, dict):
                raise ValueError("it is not a mapping of constants to values")
        context = _checked(name, given, constants, series, file, own_series)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        if file and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{file or 'This'} is not a context of {task_id}: {fault(error)}.") from None
    keep(context)
    return context


def times(context: Context | None, constant: Constant, factor: float) -> dict[str, Any]:
    """Return the mapping of a context in which one constant is multiplied.

    Args:
        context: the other constants; None if they are the shipped ones.
        constant: the constant.
        factor: multiple of its present value, or of both ends of its range.

    Raises:
        ValueError: multiples of the constant have no meaning.
    """
    low, high = (context and context.get(constant.name)) or (constant.low, constant.high)
    if constant.whole or low == high == 0:
        raise ValueError(f"{constant.name} is {'a whole number' if constant.whole else 'zero'}: it has no multiples.")
    scaled = sorted((factor * low, factor * high))
    return {**(context.mapping() if context else {}), constant.name: scaled if low != high else scaled[0]}


def template(
    task_id: str,
    constants: Sequence[Constant],
    series: Sequence[Series | Document] = (),
    source: str = "",
    context: Context | None = None,
) -> str:
    """Return a file of the constants' present values, with units and meanings as comments.

    What follows from others is commented out, unless ``context`` sets it. Records have no file to name.
    """
    lines = [
        f"# Constants of {task_id}. A number is fixed; of a range [low, high] each episode draws a value.",
        "# Constants that are left out stay as shipped, or follow from the others (those that are commented out).",
    ]
    if source:
        lines.append(f"# Source of the shipped values: {source}")
    plain = [constant for constant in constants if not constant.name.startswith(REWARD)]
    given = {name for name, _, _ in context.values} if context else set()
    lines += [f"{'# ' * (one.derived and one.name not in given)}{_template_line(one)}" for one in plain]
    if terms := [constant for constant in constants if constant.name.startswith(REWARD)]:
        lines += ["reward:  # weights of the terms of the reward"]
        lines += [f"  {_template_line(term._replace(name=term.name.removeprefix(REWARD)))}" for term in terms]
    for one in series:
        if context and context.record(one.name):
            lines.append(f"# {one.name}: the context has a record of it; name its file here")
        if isinstance(one, Document):
            lines.append(f"# {one.name}: my_{one.name}.json  # {one.meaning}")
            continue
        columns = ", ".join(f"{c.name} ({c.unit}, {c.least:g} to {c.most:g})" for c in one.columns)
        other = "".join(f"; or a {suffix} file" for suffix in one.readers)
        lines.append(
            f"# {one.name}: my_{one.name}.csv  # {one.meaning}; columns time ({one.time_unit}), {columns}{other}"
        )
    return "\n".join(lines) + "\n"


def _template_line(constant: Constant) -> str:
    low, high = (str(int(value)) if constant.whole else repr(value) for value in (constant.low, constant.high))
    value = low if constant.low == constant.high else f"[{low}, {high}]"
    kept_apart = "train and test draw from bands in turn" if constant.bands and constant.low < constant.high else ""
    return f"{constant.name}: {value}  # {'; '.join(filter(None, (constant.unit, constant.meaning, kept_apart)))}"


def _checked(
    name: str,
    given: Mapping[Any, Any],
    constants: Sequence[Constant],
    series: Sequence[Series | Document],
    file: str,
    own_series: Callable[[Context], Sequence[Series | Document]] | None,
) -> Context:
    """Return the context of a mapping of names to values."""
    by_name, series_by_name = {constant.name: constant for constant in constants}, {one.name: one for one in series}
    values, recorded = [], {}
    for key, value in _flat(given, by_name).items():
        if key in by_name:
            values.append((key, *_range(by_name[key], value)))
        elif key in series_by_name:
            recorded[key] = value
        else:
            raise ValueError(unknown("constant", key, [*by_name, *series_by_name]))
    if not values and not recorded:
        raise ValueError("it sets no constant")
    context = Context(name, tuple(sorted(values)), file)
    if values and own_series and any(_follows_constants(series_by_name[key]) for key in recorded):
        series_by_name = {one.name: one for one in own_series(context)}
    folder = Path(file).parent if file else Path()
    records = (_record(value, series_by_name[key], folder) for key, value in recorded.items())
    return replace(context, records=tuple(sorted(records)))


def _follows_constants(one: Series | Document) -> bool:
    return isinstance(one, Series) and one.follows_constants


def _record(given: Any, one: Series | Document, folder: Path) -> Record:
    """Return the record of a series or a document."""
    if isinstance(given, Record):
        if isinstance(one, Series):
            refuse_other_steps(given, one)
        return given
    return read_document(given, one, folder) if isinstance(one, Document) else read_record(given, one, folder)


def _flat(given: Mapping[Any, Any], by_name: Mapping[str, Constant]) -> dict[Any, Any]:
    """Return the mapping with the weights of the reward beside the other constants."""
    flat, key = dict(given), REWARD.removesuffix(".")
    if key in flat and any(name.startswith(REWARD) for name in by_name):
        terms = flat.pop(key)
        if not isinstance(terms, Mapping):
            raise ValueError(f"{key} is a mapping of terms to weights, got {str(terms)[:LONGEST_GIVEN]!r}")
        flat |= {f"{REWARD}{name}": weight for name, weight in terms.items()}
    return flat


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
        number = math.inf * (1 if value > 0 else -1) if abs(value) >= 1e300 else float(value)
    else:
        raise ValueError(f"{constant.name}: expected a number, got {str(value)[:LONGEST_GIVEN]!r}")
    above = number > 0 if constant.least is None else number >= constant.least
    if not (above and number <= constant.most) or math.isinf(number):
        least = "above 0" if constant.least is None else f"at least {constant.least:g}"
        most = f" and at most {constant.most:g}" if math.isfinite(constant.most) else " and finite"
        raise ValueError(f"{constant.name} must be {least}{most}, got {number:g}{f' {unit}' if unit else ''}")
    if constant.whole and number != int(number):
        raise ValueError(f"{constant.name} must be a whole number, got {number:g}")
    return number


def _kept(label: str) -> Path:
    return cache_folder() / "contexts" / f"{label}.json"


def keep(context: Context) -> None:
    """Remember a context in this process and, where the cache can be written, for later ones."""
    _KNOWN[context.label] = context
    records = [(record.name, record.columns, record.sha256, record.step) for record in context.records]
    told = {"name": context.name, "file": context.file, "values": context.values, "records": records}
    with suppress(OSError):
        for record in context.records:
            _keep(_kept_record(record.sha256), record.data)
        _keep(_kept(context.label), json.dumps(told).encode())


def _keep(path: Path, data: bytes) -> None:
    """Write a file of the cache whole, unless it exists."""
    if not path.exists():
        with replacing(path) as unfinished:
            unfinished.write_bytes(data)


def _kept_record(sha256: str) -> Path:
    return cache_folder() / "contexts" / f"{sha256}.record"


def _remembered(
    label: str,
    constants: Sequence[Constant],
    series: Sequence[Series | Document],
    own_series: Callable[[Context], Sequence[Series | Document]] | None,
) -> Context:
    """Return the context of a label, from this process or the cache.

    Raises:
        ValueError: none is known, or the copy in the cache is damaged.
    """
    if label in _KNOWN:  # perhaps as a context of another task
        known = _KNOWN[label]
        given: dict[str, Any] = {name: [low, high] if low != high else low for name, low, high in known.values}
        given |= {record.name: record for record in known.records}
        return _checked(known.name, given, constants, series, known.file, own_series)
    if not _LABEL.fullmatch(label) or not _kept(label).is_file():
        raise ValueError(f"{label[:LONGEST_GIVEN]!r} is neither a file ({', '.join(SUFFIXES)}) nor known by this name")
    kept = read_plain_yaml(read_small_file(_kept(label), "a context"))
    try:
        given = {name: [low, high] if low != high else low for name, low, high in kept["values"]}
        for name, columns, sha256, *step in kept.get("records", []):
            given[name] = Record(name, tuple(columns), sha256, _kept_record(sha256).read_bytes(), *step)
        context = _checked(kept["name"], given, constants, series, kept["file"], own_series)
    except (TypeError, KeyError, OSError) as error:
        raise ValueError(f"its copy in the cache is damaged ({error})") from None
    if context.label != label or any(record.sha256 != sha256_of(record.data) for record in context.records):
        raise ValueError("its copy in the cache was changed")
    _KNOWN[label] = context
    return context
