"""Read a zip file of stable-baselines3 without running any code in it.

``model.save()`` writes a zip of ``policy.pth`` (weights), ``data`` (JSON) and more. Much of it is
pickled, and a pickle can run any code when it is read; SB3's own ``load`` reads all of it. This
file reads ``policy.pth`` only as tensors (torch's ``weights_only``), and from ``data`` only plain
JSON: the widths of the layers and the name of the activation. It refuses a model that needs more
than that.
"""

from __future__ import annotations

import io
import json
import lzma
import pickle
import re
import zipfile
import zlib
from typing import Any

import torch

from rlbench_suite.foundation.unknown_names import unknown

ACTIVATIONS = ("Tanh", "ReLU", "ELU", "LeakyReLU", "GELU", "SiLU", "Sigmoid")
"""Names in ``torch.nn``."""

_WITHOUT_EFFECT = {
    "use_sde",
    "log_std_init",
    "ortho_init",
    "optimizer_class",
    "optimizer_kwargs",
    "normalize_images",
}
"""Arguments of SB3's policies that do not affect trained weights."""
_MAX_BYTES = 2**30
"""Limit on the size of a member of the zip."""


def read_zip(path: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Return the weights by name, and the arguments of their policy.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a zip of SB3, or a part of it cannot be read safely; the message says
            which.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = {name: _member(file, name, path) for name in ("data", "policy.pth")}
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        KeyError,
        RuntimeError,
        EOFError,
    ) as error:
        raise ValueError(
            f"{path} is not a zip that stable-baselines3's model.save() wrote ({error})."
        ) from None
    _refuse_bomb(members["policy.pth"], path)
    try:
        weights = torch.load(
            io.BytesIO(members["policy.pth"]), map_location="cpu", weights_only=True
        )
    except (
        pickle.UnpicklingError,
        RuntimeError,
        ValueError,
        EOFError,
        KeyError,
        AttributeError,
    ) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise ValueError(
            f"{path}: policy.pth cannot be read as weights only, so it is refused ({reason})."
        ) from None
    if not isinstance(weights, dict) or not all(
        isinstance(w, torch.Tensor) for w in weights.values()
    ):
        raise ValueError(f"{path}: policy.pth must be a dict of named tensors.")
    return weights, _policy_arguments(members["data"], path)


def _member(file: zipfile.ZipFile, name: str, path: str) -> bytes:
    if (size := file.getinfo(name).file_size) > _MAX_BYTES:
        raise ValueError(f"{path}: {name} has {size:,} bytes; at most {_MAX_BYTES:,} are allowed.")
    return file.read(name)


def _refuse_bomb(policy: bytes, path: str) -> None:
    """Refuse weights that inflate to more than they take: torch stores them as they are.

    Raises:
        ValueError: they do.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(policy)) as file:
            inflated = sum(member.file_size for member in file.infolist())
    except zipfile.BadZipFile:
        return  # not a zip, so nothing in it is compressed; torch says whether it can read it
    if inflated > len(policy):
        raise ValueError(
            f"{path}: policy.pth has {len(policy):,} bytes and would inflate to {inflated:,}; "
            "refused."
        )


def _policy_arguments(data: bytes, path: str) -> dict[str, Any]:
    """Return the policy's architecture from the plain JSON in ``data``."""
    try:
        model = json.loads(data)
        arguments = dict(model.get("policy_kwargs", {}))
        state_dependent = bool(model.get("use_sde"))
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise ValueError(f"{path}: data is not a JSON object with policy_kwargs.") from None
    if state_dependent:
        raise ValueError(
            f"{path} uses gSDE (use_sde=True), which cannot be rebuilt without running code from "
            "the file."
        )
    arguments = {
        name: value for name, value in arguments.items() if not re.fullmatch(r":\w+:", name)
    }
    for name in _WITHOUT_EFFECT & arguments.keys():
        del arguments[name]
    if "activation_fn" in arguments:  # the text of a class
        text = str(arguments["activation_fn"])
        arguments["activation_fn"] = re.sub(
            r"<class 'torch\.nn\.modules\.\w+\.(\w+)'>", r"\1", text
        )
    return check_arguments(arguments, path)


def check_arguments(arguments: dict[str, Any], path: str) -> dict[str, Any]:
    """Check that all arguments of a policy are known and plain data, and return them.

    Raises:
        ValueError: an argument is unknown or has another type.
    """
    for name, value in arguments.items():
        match name:
            case "net_arch":
                layers = list(value.values()) if isinstance(value, dict) else [value]
                fits = all(
                    isinstance(units, list) and all(type(n) is int for n in units)
                    for units in layers
                )
                fits &= not isinstance(value, dict) or value.keys() <= {"pi", "vf", "qf"}
            case "activation_fn":
                if value not in ACTIVATIONS:
                    raise ValueError(f"{path}: {unknown('activation', value, ACTIVATIONS)}")
                fits = True
            case "n_critics":
                fits = type(value) is int and 1 <= value <= 10
            case "share_features_extractor":
                fits = isinstance(value, bool)
            case _:
                fits = False
        if not fits:
            argument = f"{name}={str(value)[:60]}"
            raise ValueError(
                f"{path}: its policy was built with {argument}, which cannot be rebuilt safely."
            )
    return arguments
