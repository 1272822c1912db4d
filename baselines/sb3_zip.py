"""A model that stable-baselines3 saved as a zip, read without running anything that is in it.

``model.save()`` writes a zip of ``policy.pth`` (weights), ``data`` (JSON) and more. Much of it is pickled, and a pickle
can run any code when it is read; SB3's own ``load`` reads all of it. Here ``policy.pth`` is read as tensors and nothing
else (torch's ``weights_only``), and of ``data`` only what is plain JSON: how wide the layers are, and the name of the
activation. What cannot be known in this way is refused.
"""

from __future__ import annotations

import io
import json
import pickle
import re
import zipfile
from typing import Any

import torch

from rlbench_suite.card import unknown

ACTIVATIONS = ("Tanh", "ReLU", "ELU", "LeakyReLU", "GELU", "SiLU", "Sigmoid")
"""Names in ``torch.nn``."""

_WITHOUT_EFFECT = {"use_sde", "log_std_init", "ortho_init", "optimizer_class", "optimizer_kwargs", "normalize_images"}
"""Arguments of SB3's policies that do not change what trained weights do."""
_MOST = 2**30
"""Bytes of a member that are read at most."""


def read_zip(path: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Return the weights by name, and the arguments of the policy that they belong to.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no zip of SB3, or it holds what cannot be read safely; the message says what.
    """
    try:
        with zipfile.ZipFile(path) as file:
            members = {name: _member(file, name, path) for name in ("data", "policy.pth")}
    except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError) as error:
        raise ValueError(f"{path} is no zip that stable-baselines3's model.save() wrote ({error}).") from None
    try:
        weights = torch.load(io.BytesIO(members["policy.pth"]), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError, KeyError, AttributeError) as error:
        said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise ValueError(f"{path}: policy.pth cannot be read as weights alone, so it is not read ({said}).") from None
    if not isinstance(weights, dict) or not all(isinstance(w, torch.Tensor) for w in weights.values()):
        raise ValueError(f"{path}: policy.pth holds something else than named weights.")
    return weights, _policy_arguments(members["data"], path)


def _member(file: zipfile.ZipFile, name: str, path: str) -> bytes:
    if (size := file.getinfo(name).file_size) > _MOST:
        raise ValueError(f"{path}: {name} has {size:,} bytes; {_MOST:,} are allowed.")
    return file.read(name)


def _policy_arguments(data: bytes, path: str) -> dict[str, Any]:
    """What ``data`` says in plain JSON of the policy's architecture."""
    try:
        said = json.loads(data)
        arguments = dict(said.get("policy_kwargs", {}))
        state_dependent = bool(said.get("use_sde"))
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise ValueError(f"{path}: data is no JSON object with policy_kwargs.") from None
    if state_dependent:
        raise ValueError(f"{path} explores by gSDE (use_sde=True), which cannot be rebuilt without running its code.")
    arguments = {name: value for name, value in arguments.items() if not re.fullmatch(r":\w+:", name)}
    for name in _WITHOUT_EFFECT & arguments.keys():
        del arguments[name]
    if "activation_fn" in arguments:  # the text of a class
        text = str(arguments["activation_fn"])
        arguments["activation_fn"] = re.sub(r"<class 'torch\.nn\.modules\.\w+\.(\w+)'>", r"\1", text)
    return check_arguments(arguments, path)


def check_arguments(arguments: dict[str, Any], path: str) -> dict[str, Any]:
    """Return arguments of a policy as plain data, all of them known.

    Raises:
        ValueError: one is not known, or is of another kind.
    """
    for name, value in arguments.items():
        match name:
            case "net_arch":
                layers = list(value.values()) if isinstance(value, dict) else [value]
                fits = all(isinstance(units, list) and all(type(n) is int for n in units) for units in layers)
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
            shown = f"{name}={str(value)[:60]}"
            raise ValueError(f"{path}: its policy was built with {shown}, which cannot be rebuilt safely.")
    return arguments
