"""The contract of a task, checked while its functions are traced.

A function that returns another shape or dtype than promised corrupts whatever is built on it: the
single env reads its state from one packed buffer, a reset casts, a comparison promotes. So the
engine (:mod:`rlbench_suite.core.episode`) passes every result through this file. It compares
abstract values only, so compiled programs do not get slower.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.task import Described

DType = np.dtype[Any]
Result = TypeVar("Result")
ENGINE_NAMES = (
    "score", "action_mask", "invalid_action", "invalid_reason", "end_reason", "alive", "acting",
    "privileged", "global_state", "cost", "cost_so_far", "violates",
)  # fmt: skip
"""Names of ``info`` that the engine fills in."""


class ContractError(TypeError):
    """A task or a player does not keep its contract. Each sentence of the message names a fault."""


def check_spaces(task: Described) -> None:
    """Check a task's three spaces, the number of its rewards, and that a cost has a limit.

    Run no JAX.

    Raises:
        ContractError: a space is missing or of a kind that no adapter takes, or task and card
            disagree.
    """
    name = type(task).__name__
    card = task.card
    for attribute in ("observation_space", "action_space", "reward_space"):
        if not isinstance(getattr(task, attribute, None), spaces.Space):
            raise ContractError(f"{name} sets no {attribute} in its __init__.")
    if not isinstance(task.action_space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete):
        raise ContractError(
            f"{name}.action_space is {task.action_space}: only Box, Discrete and MultiDiscrete "
            "work."
        )
    numbers = {"agents": card.agents if card.agents > 1 else 0, "objectives": len(card.objectives)}
    shape = tuple(number for number in numbers.values() if number)
    if not isinstance(task.reward_space, spaces.Box) or task.reward_space.shape != shape:
        counts = [f"{number} {name}" for name, number in numbers.items() if number]
        why = " and ".join(counts) or "a scalar reward"
        raise ContractError(
            f"{name}.reward_space is {task.reward_space}: the card says {why}, so a Box of {shape}."
        )
    if task.has_cost and card.constraint is None:
        raise ContractError(
            f"{name} has a cost, and its card no constraint: say what it counts and its limit."
        )
    if card.constraint is not None and not task.has_cost:
        raise ContractError(f"The card of {card.id} has a constraint, and {name} no cost.")


def check_same_shapes(task: Described, function: str, result: Result, earlier: Any) -> Result:
    """Return a function's result if it has the same tree, shapes and dtypes as an earlier value.

    Raises:
        ContractError: a leaf differs.
    """
    return _compare(
        f"{type(task).__name__}.{function}", result, earlier, "initial gave", operator.eq
    )


def check_result(
    task: Described, function: str, result: Result, space: Any, source: str = "its space says"
) -> Result:
    """Return a function's result if it has the declared shapes and dtypes.

    Signed integers may have any width.

    Args:
        task: the task.
        function: its name.
        result: what it returned.
        space: a space, or a ``jax.ShapeDtypeStruct``.
        source: where this is declared, with a verb, for the message.

    Raises:
        ContractError: a leaf differs.
    """
    return _compare(
        f"{type(task).__name__}.{function}", result, _declared(space), source, _same_kind
    )


def check_flag(task: Described, function: str, result: Result) -> Result:
    """Return a function's result if it is a single bool.

    Raises:
        ContractError: it is not.
    """
    return check_result(task, function, result, jax.ShapeDtypeStruct((), np.bool_), "a flag is")


def check_info(task: Described, info: dict[str, Any]) -> dict[str, Any]:
    """Return the result of ``info`` if it has ``success`` and the declared measures.

    Each is a number, or one number for each agent.

    Raises:
        ContractError: one is missing, not declared, or of another shape.
    """
    name = f"{type(task).__name__}.info"
    if "success" not in info:
        raise ContractError(f"{name} gives no 'success'.")
    check_flag(task, "info", info["success"])
    measures = info.keys() - {"success"}
    if missing := sorted(task.measures.keys() - measures):
        raise ContractError(f"{name} gives no {missing[0]!r}, which measures declares.")
    if reserved := sorted(measures & set(ENGINE_NAMES)):
        raise ContractError(f"{name} gives {reserved[0]!r}, a name that the engine fills in.")
    if undeclared := sorted(measures - task.measures.keys()):
        raise ContractError(f"{name} gives {undeclared[0]!r}, which measures does not declare.")
    shapes = [(), (task.card.agents,)] if task.card.agents > 1 else [()]
    for measure in sorted(measures):
        shape = jnp.shape(info[measure])
        if shape not in shapes:
            raise ContractError(
                f"{name} gives {measure!r} of shape {shape}; a measure is one number."
            )
    return info


def check_action(player: Any, action: Result, space: spaces.Space[Any]) -> Result:
    """Return a player's action if it has the shape that the action space requires.

    Raises:
        ContractError: it is not.
    """
    return _compare(
        f"{_class_of(player)}.act", action, _declared(space), "the action space says", _same_kind
    )


def check_memory(player: Any, next_memory: Result, memory: Any) -> Result:
    """Return a player's next memory if it has the same tree, shapes and dtypes as the last one.

    Raises:
        ContractError: a leaf differs.
    """
    return _compare(f"{_class_of(player)}.act", next_memory, memory, "its memory was", operator.eq)


def _class_of(player: Any) -> str:
    """Return the name of a player's class, or of the class of the policy that it wraps."""
    return type(getattr(player, "policy", player)).__name__


def _declared(space: Any) -> Any:
    """Return the shapes and dtypes of the elements of a space, as JAX would hold them."""
    if isinstance(space, jax.ShapeDtypeStruct):
        return space
    if isinstance(space, spaces.Dict):
        return {name: _declared(subspace) for name, subspace in space.items()}
    return jax.ShapeDtypeStruct(space.shape or (), jax.dtypes.canonicalize_dtype(space.dtype))


def _same_kind(dtype: DType, expected: DType) -> bool:
    return dtype == expected or dtype.kind == expected.kind == "i"


def _compare(
    name: str,
    result: Result,
    expected: Any,
    source: str,
    same_dtype: Callable[[DType, DType], bool],
) -> Result:
    """Compare trees leaf by leaf and return the first."""
    leaves = _leaves(result)
    expected_leaves = _leaves(expected)
    for leaf in [*expected_leaves, *leaves]:
        fault = f"{name} returns {leaf}".removesuffix(" ")
        if leaf not in leaves:
            raise ContractError(
                f"{name} returns no {leaf or 'array'}, but {source} "
                f"{_spell(expected_leaves[leaf])}."
            )
        if leaf not in expected_leaves:
            names = ", ".join(filter(None, expected_leaves)) or "what it may return"
            raise ContractError(f"{fault}, which is none of {names}.")
        shape, dtype = leaves[leaf]
        expected_shape, expected_dtype = expected_leaves[leaf]
        if shape != expected_shape or not same_dtype(dtype, expected_dtype):
            fault += " as" if leaf else ""
            raise ContractError(
                f"{fault} {_spell(leaves[leaf])}, {source} {_spell(expected_leaves[leaf])}."
            )
    structure = str(jax.tree.structure(result))
    expected_structure = str(jax.tree.structure(expected))
    if structure != expected_structure:
        raise ContractError(f"{name} returns {structure}, {source} {expected_structure}.")
    return result


def _leaves(tree: Any) -> dict[str, tuple[tuple[int, ...], DType]]:
    """Return shape and dtype of each leaf by its name.

    A tree that is one array has one leaf without a name.
    """
    paths_and_leaves = jax.tree_util.tree_leaves_with_path(tree)
    spell = jax.tree_util.keystr
    return {
        spell(path, simple=True, separator="."): (jnp.shape(leaf), _dtype(leaf))
        for path, leaf in paths_and_leaves
    }


def _dtype(leaf: Any) -> DType:
    dtype = getattr(leaf, "dtype", None)
    return jax.dtypes.canonicalize_dtype(jnp.result_type(leaf) if dtype is None else dtype)


def _spell(leaf: tuple[tuple[int, ...], DType]) -> str:
    shape, dtype = leaf
    return f"{dtype} {shape}"


def wrong_shape(
    space: spaces.Space[Any], shape: tuple[int, ...], other_shape: tuple[int, ...]
) -> str:
    """Return the beginning of a sentence on an action of another shape than it should have."""
    return f"An action has shape {shape} for {space}, got {other_shape}"
