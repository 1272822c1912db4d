"""Put a user's constants in place of those that a task ships with.

They come from a mapping or from a file, such as a data sheet.

A task names its constants (:meth:`~rlbench_suite.core.task.Described.constants`). A context gives
some of them other values: a number is fixed, a range ``[low, high]`` is drawn anew for each
episode. The others stay as shipped. In YAML or JSON::

    resistance: [0.14, 0.18]   # Ohm
    magnet_flux: 0.0098 V s
    pole_pairs: 4

A context may also set the weights of the terms of a reward, and give records of the conditions over
time in place of those that a task draws (:mod:`rlbench_suite.contexts.time_series`), or documents
(:mod:`rlbench_suite.contexts.document`)::

    reward: {heat: 0.5}
    weather: my_weather.csv

The task of a context has an id of its own, ``rlsuite/Name-v0?context=my_motor-0f3a51c29d7b``: the
file's name, and a hash of the values. A copy is kept in the cache, so that this id can be used
instead of the file. Such a task is in no list or suite, and its measured scores lie beside the
file.
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

from rlbench_suite.contexts.document import Document, read_document
from rlbench_suite.contexts.numerals import read_real
from rlbench_suite.contexts.plain_yaml import fault, read_plain_yaml, read_small_file
from rlbench_suite.contexts.time_series import (
    Record,
    Series,
    read_record,
    refuse_other_steps,
    sha256_of,
)
from rlbench_suite.foundation.atomic_files import replacing
from rlbench_suite.foundation.cache_folder import cache_folder
from rlbench_suite.foundation.unknown_names import MAX_QUOTE, unknown

SUFFIXES = (".yaml", ".yml", ".json")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]{0,47}")
_LABEL = re.compile(rf"{_NAME.pattern}-[0-9a-f]{{12}}")
_QUANTITY = re.compile(r"\s*(\S+)(?:\s+(\S.*?))?\s*")
_CONTEXTS: dict[str, Context] = {}
"""Contexts that this process has read, by label."""


class Constant(NamedTuple):
    """A constant that a context may set."""

    name: str
    unit: str
    """SI, as a file may write it after the number; empty for a plain number"""
    low: float
    """Lowest value of an episode"""
    high: float
    """Highest value of an episode; equal to ``low`` if the constant is fixed"""
    meaning: str
    maximum: float = math.inf
    """Highest value that makes sense"""
    is_integer: bool = False
    may_vary: bool = True
    """True if it may be a range, of which each episode samples a value"""
    derived: bool = False
    """True if it follows from others unless it is set"""
    minimum: float | None = None
    """Lowest value that makes sense; None if any value above zero does"""
    bands: int = 0
    """Number of bands of its range that lie in turn in train and test.

    It is 0 if both splits sample from the whole range.
    """


class _Settable(NamedTuple):
    """Constants and records of a task that a context may set."""

    constants: Sequence[Constant]
    series: Sequence[Series | Document]
    series_for: Callable[[Context], Sequence[Series | Document]] | None


REWARD = "reward."
"""Prefix of the names of constants that are weights of a reward's terms.

A file has them below ``reward``.
"""
MAX_WEIGHT = 1e6
"""Largest weight of a term; products of much larger ones leave float32."""


def weights(**terms: tuple[float, str]) -> tuple[Constant, ...]:
    """Return weights of a reward's terms as constants.

    They are made from the shipped weight and the meaning of each term.
    """
    return tuple(
        Constant(
            f"{REWARD}{name}",
            "",
            weight,
            weight,
            meaning,
            MAX_WEIGHT,
            may_vary=False,
            minimum=0.0,
        )
        for name, (weight, meaning) in terms.items()
    )


@dataclass(frozen=True)
class Context:
    """Values of constants, and records of conditions over time."""

    name: str
    values: tuple[tuple[str, float, float], ...]
    """Name of each constant, with the lowest and the highest value of an episode"""
    file: str = ""
    """Absolute path of the file that it was read from; empty if it was given as a mapping"""
    records: tuple[Record, ...] = ()

    @property
    def label(self) -> str:
        """Name, and a hash of the values and records: ``my_motor-0f3a51c29d7b``."""
        records = [(record.name, record.columns, record.sha256) for record in self.records]
        text = json.dumps([self.values, records] if records else self.values)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def scores_path(self) -> Path:
        """Path of the file of measured scores: beside the file, else in the cache."""
        path = Path(self.file) if self.file else _cached_file(self.label)
        return path.with_suffix(".scores.json")

    def get(self, name: str) -> tuple[float, float] | None:
        """Return lowest and highest value of a constant, or None if it stays as shipped."""
        return next(((low, high) for constant, low, high in self.values if constant == name), None)

    def mapping(self) -> dict[str, Any]:
        """Return the mapping that describes this context; it may be read again."""
        values = _numbers_and_ranges(self.values)
        return values | {record.name: record for record in self.records}

    def record(self, name: str) -> Record | None:
        """Return the record of a series, or None if the task samples it as shipped."""
        return next((record for record in self.records if record.name == name), None)


def _numbers_and_ranges(values: Sequence[tuple[str, float, float]]) -> dict[str, Any]:
    """Return values as a file has them: a number, or ``[low, high]``."""
    return {name: [low, high] if low != high else low for name, low, high in values}


def read_context(
    source: Mapping[str, Any] | str | Path,
    task_id: str,
    constants: Sequence[Constant],
    series: Sequence[Series | Document] = (),
    series_for: Callable[[Context], Sequence[Series | Document]] | None = None,
) -> Context:
    """Return the context that a mapping, a file or the label of an earlier one describes.

    Args:
        source: constants by name; or the path of a YAML or JSON file; or a label, as ids have it.
        task_id: id of the task, for messages.
        constants: the constants that may be set.
        series: the series of which records may be given, and the documents.
        series_for: function from a context's constants to the series, where they follow from those.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no context of this task. The message is one sentence.
    """
    if not constants:
        raise ValueError(f"{task_id} takes no context: its constants cannot be set.")
    settable = _Settable(constants, series, series_for)
    path = None if isinstance(source, Mapping) else Path(source)
    is_file = path is not None and path.suffix.lower() in SUFFIXES
    try:
        if isinstance(source, Mapping):
            context = _from_mapping(source, settable, name="own")
        elif is_file:
            context = _from_file(Path(source), settable)
        else:
            return _from_label(str(source), settable)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        if is_file and str(error).startswith(str(path)):  # the message names the file already
            raise
        subject = path.absolute() if path and is_file else "This"
        raise ValueError(f"{subject} is not a context of {task_id}: {fault(error)}.") from None
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
    present = context.get(constant.name) if context else None
    low, high = present or (constant.low, constant.high)
    if constant.is_integer or low == high == 0:
        kind = "a whole number" if constant.is_integer else "zero"
        raise ValueError(f"{constant.name} is {kind}: it has no multiples.")
    scaled = sorted((factor * low, factor * high))
    mapping = context.mapping() if context else {}
    return {**mapping, constant.name: scaled if low != high else scaled[0]}


def template(
    task_id: str,
    constants: Sequence[Constant],
    series: Sequence[Series | Document] = (),
    source: str = "",
    context: Context | None = None,
) -> str:
    """Return a file of the constants' present values, with units and meanings as comments.

    What follows from others is commented out, unless ``context`` sets it. Records have no file to
    name.
    """
    lines = [
        (
            f"# Constants of {task_id}. A number is fixed; of a range [low, high] each episode "
            "draws a value."
        ),
        (
            "# Constants that are left out stay as shipped, or follow from the others (those that "
            "are commented out)."
        ),
    ]
    if source:
        lines.append(f"# Source of the shipped values: {source}")
    set_names = {name for name, _, _ in context.values} if context else set()
    terms = []
    for constant in constants:
        if constant.name.startswith(REWARD):
            terms.append(constant._replace(name=constant.name.removeprefix(REWARD)))
        else:
            follows_others = constant.derived and constant.name not in set_names
            lines.append(f"{'# ' if follows_others else ''}{_template_line(constant)}")
    if terms:
        lines.append("reward:  # weights of the terms of the reward")
        lines += [f"  {_template_line(term)}" for term in terms]
    for source_of_data in series:
        if context and context.record(source_of_data.name):
            lines.append(
                f"# {source_of_data.name}: the context has a record of it; name its file here"
            )
        if isinstance(source_of_data, Document):
            lines.append(_document_line(source_of_data))
        else:
            lines.append(_series_line(source_of_data))
    return "\n".join(lines) + "\n"


def _template_line(constant: Constant) -> str:
    low, high = (
        str(int(value)) if constant.is_integer else repr(value)
        for value in (constant.low, constant.high)
    )
    value = low if constant.low == constant.high else f"[{low}, {high}]"
    has_bands = constant.bands and constant.low < constant.high
    splits = "train and test draw from bands in turn" if has_bands else ""
    return (
        f"{constant.name}: {value}  # "
        f"{'; '.join(filter(None, (constant.unit, constant.meaning, splits)))}"
    )


def _document_line(document: Document) -> str:
    return f"# {document.name}: my_{document.name}.json  # {document.meaning}"


def _series_line(series: Series) -> str:
    columns = ", ".join(
        f"{c.name} ({c.unit}, {c.minimum:g} to {c.maximum:g})" for c in series.columns
    )
    other_files = "".join(f"; or a {suffix} file" for suffix in series.readers)
    return (
        f"# {series.name}: my_{series.name}.csv  # {series.meaning}; columns time "
        f"({series.time_unit}), {columns}{other_files}"
    )


def _from_mapping(
    mapping: Mapping[Any, Any], settable: _Settable, *, name: str, file: str = ""
) -> Context:
    """Return the context of a mapping of names to values.

    Args:
        mapping: values by the names of constants; paths, mappings or records by the names of series
            and documents.
        settable: what the task lets a context set.
        name: name of the context.
        file: path of the file that the mapping was read from.
    """
    constants = {constant.name: constant for constant in settable.constants}
    series = {source.name: source for source in settable.series}
    values = []
    conditions = {}
    for key, value in _flat(mapping, constants).items():
        if key in constants:
            values.append((key, *_range(constants[key], value)))
        elif key in series:
            conditions[key] = value
        else:
            raise ValueError(unknown("constant", key, [*constants, *series]))
    if not values and not conditions:
        raise ValueError("it sets no constant")
    context = Context(name, tuple(sorted(values)), file)
    if (
        values
        and settable.series_for
        and any(_follows_constants(series[key]) for key in conditions)
    ):
        series = {source.name: source for source in settable.series_for(context)}
    folder = Path(file).parent if file else Path()
    records = (_record(value, series[key], folder) for key, value in conditions.items())
    return replace(context, records=tuple(sorted(records)))


def _from_file(path: Path, settable: _Settable) -> Context:
    """Return the context of a YAML or JSON file. It has the name of the file."""
    name = path.stem.replace("-", "_")
    if not _NAME.fullmatch(name):
        raise ValueError(
            "its name must begin with a letter or digit and have only letters, digits, _ . and -"
        )
    mapping = read_plain_yaml(read_small_file(path, "a context"))
    if not isinstance(mapping, dict):
        raise ValueError("it is not a mapping of constants to values")
    return _from_mapping(mapping, settable, name=name, file=str(path.absolute()))


def _from_label(label: str, settable: _Settable) -> Context:
    """Return the context of a label, from this process or the cache.

    Raises:
        ValueError: there is none, or the copy in the cache is damaged.
    """
    if label in _CONTEXTS:  # perhaps as a context of another task
        earlier = _CONTEXTS[label]
        return _from_mapping(earlier.mapping(), settable, name=earlier.name, file=earlier.file)
    if not _LABEL.fullmatch(label) or not _cached_file(label).is_file():
        raise ValueError(
            f"{label[:MAX_QUOTE]!r} is neither a file ({', '.join(SUFFIXES)}) nor known by "
            "this name"
        )
    cached = read_plain_yaml(read_small_file(_cached_file(label), "a context"))
    try:
        mapping = _numbers_and_ranges(cached["values"])
        for name, columns, sha256, *step in cached.get("records", []):
            mapping[name] = Record(
                name, tuple(columns), sha256, _cached_record(sha256).read_bytes(), *step
            )
        context = _from_mapping(mapping, settable, name=cached["name"], file=cached["file"])
    except (TypeError, KeyError, OSError) as error:
        raise ValueError(f"its copy in the cache is damaged ({error})") from None
    if context.label != label or any(
        record.sha256 != sha256_of(record.data) for record in context.records
    ):
        raise ValueError("its copy in the cache was changed")
    _CONTEXTS[label] = context
    return context


def _follows_constants(source: Series | Document) -> bool:
    return isinstance(source, Series) and source.follows_constants


def _record(data: Any, source: Series | Document, folder: Path) -> Record:
    """Return the record of a series or a document."""
    if isinstance(data, Record):
        if isinstance(source, Series):
            refuse_other_steps(data, source)
        return data
    return (
        read_document(data, source, folder)
        if isinstance(source, Document)
        else read_record(data, source, folder)
    )


def _flat(mapping: Mapping[Any, Any], constants: Mapping[str, Constant]) -> dict[Any, Any]:
    """Return the mapping with the weights of the reward beside the other constants."""
    flat = dict(mapping)
    key = REWARD.removesuffix(".")
    if key in flat and any(name.startswith(REWARD) for name in constants):
        terms = flat.pop(key)
        if not isinstance(terms, Mapping):
            raise ValueError(
                f"{key} is a mapping of terms to weights, got {str(terms)[:MAX_QUOTE]!r}"
            )
        flat |= {f"{REWARD}{name}": weight for name, weight in terms.items()}
    return flat


def _range(constant: Constant, value: Any) -> tuple[float, float]:
    """Return the lowest and the highest value of a constant."""
    if not isinstance(value, list | tuple):
        number = _number(constant, value)
        return number, number
    if not constant.may_vary:
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
        match = _QUANTITY.fullmatch(value[:MAX_QUOTE])
        try:
            number = read_real(match[1] if match else value)
        except ValueError:
            raise ValueError(
                f"{constant.name}: expected a number, got {value[:MAX_QUOTE]!r}"
            ) from None
        if match and match[2] and match[2] != unit:
            raise ValueError(f"{constant.name} is in {unit or 'no unit'}, got {match[2]!r}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = math.inf * (1 if value > 0 else -1) if abs(value) >= 1e300 else float(value)
    else:
        raise ValueError(f"{constant.name}: expected a number, got {str(value)[:MAX_QUOTE]!r}")
    above = number > 0 if constant.minimum is None else number >= constant.minimum
    if not (above and number <= constant.maximum) or math.isinf(number):
        lower = "above 0" if constant.minimum is None else f"at least {constant.minimum:g}"
        upper = f"at most {constant.maximum:g}" if math.isfinite(constant.maximum) else "finite"
        quantity = f"{number:g} {unit}" if unit else f"{number:g}"
        raise ValueError(f"{constant.name} must be {lower} and {upper}, got {quantity}")
    if constant.is_integer and number != int(number):
        raise ValueError(f"{constant.name} must be a whole number, got {number:g}")
    return number


def keep(context: Context) -> None:
    """Remember a context in this process and, where the cache can be written, for later ones."""
    _CONTEXTS[context.label] = context
    records = [
        (record.name, record.columns, record.sha256, record.step) for record in context.records
    ]
    text = json.dumps(
        {"name": context.name, "file": context.file, "values": context.values, "records": records}
    )
    with suppress(OSError):
        for record in context.records:
            _keep(_cached_record(record.sha256), record.data)
        _keep(_cached_file(context.label), text.encode())


def _keep(path: Path, data: bytes) -> None:
    """Write a file of the cache whole, unless it exists."""
    if not path.exists():
        with replacing(path) as unfinished:
            unfinished.write_bytes(data)


def _cached_file(label: str) -> Path:
    return cache_folder() / "contexts" / f"{label}.json"


def _cached_record(sha256: str) -> Path:
    return cache_folder() / "contexts" / f"{sha256}.record"
