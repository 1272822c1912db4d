"""The contract of a task, checked while its functions are traced.

A function that returns another shape or dtype than promised corrupts whatever is built on it: the single env reads its
state from one packed buffer, a reset casts, a comparison promotes. So the engine (:mod:`rlbench_suite.episode`) passes
every result through this file. It compares abstract values only, so compiled programs do not get slower.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.task import Described

Given = TypeVar("Given")
KERNEL = (
    "score", "action_mask", "invalid_action", "invalid_reason", "end_reason", "privileged", "cost", "cost_so_far",
    "violates",
)  # fmt: skip
"""Names of ``info`` that the kernel fills in."""


class ContractError(TypeError):
    """A task or a player does not keep its contract. Each sentence of the message names a fault."""


def check_spaces(task: Described) -> None:
    """Check a task's three spaces, the number of its rewards, and that a cost has a limit. Run no JAX.

    Raises:
        ContractError: a space is missing or of a kind that no adapter takes, or task and card disagree.
    """
    name, card = type(task).__name__, task.card
    for attribute in ("observation_space", "action_space", "reward_space"):
        if not isinstance(getattr(task, attribute, None), spaces.Space):
            raise ContractError(f"{name} sets no {attribute} in its __init__.")
    if not isinstance(task.action_space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete):
        raise ContractError(f"{name}.action_space is {task.action_space}: only Box, Discrete and MultiDiscrete work.")
    count = card.agents if card.agents > 1 else len(card.objectives)
    shape = (count,) if count else ()
    if not isinstance(task.reward_space, spaces.Box) or task.reward_space.shape != shape:
        why = f"{card.agents} agents" if card.agents > 1 else f"{count} objectives" if count else "a scalar reward"
        raise ContractError(f"{name}.reward_space is {task.reward_space}: the card says {why}, so a Box of {shape}.")
    if task.has_cost and card.constraint is None:
        raise ContractError(f"{name} has a cost, and its card no constraint: say what it counts and its limit.")
    if card.constraint is not None and not task.has_cost:
        raise ContractError(f"The card of {card.id} has a constraint, and {name} no cost.")


def keep_shapes(task: Described, function: str, given: Given, before: Any) -> Given:
    """Return a function's result if it has the same tree, shapes and dtypes as an earlier value.

    Raises:
        ContractError: a leaf differs.
    """
    return _compare(f"{type(task).__name__}.{function}", given, before, "initial gave", operator.eq)


def as_declared(task: Described, function: str, given: Given, space: Any, said: str = "its space says") -> Given:
    """Return a function's result if it has the declared shapes and dtypes. Signed integers may have any width.

    Args:
        task: the task.
        function: its name.
        given: its result.
        space: the declaration: a space, or a ``jax.ShapeDtypeStruct``.
        said: where it is declared, with a verb, for the message.

    Raises:
        ContractError: a leaf differs.
    """
    return _compare(f"{type(task).__name__}.{function}", given, _declared(space), said, _same_kind)


def as_flag(task: Described, function: str, given: Given) -> Given:
    """Return a function's result if it is a single bool.

    Raises:
        ContractError: it is not.
    """
    return as_declared(task, function, given, jax.ShapeDtypeStruct((), np.bool_), "a flag is")


def as_info(task: Described, given: dict[str, Any]) -> dict[str, Any]:
    """Return the result of ``info`` if it has ``success`` and the declared measures: numbers, or one for each agent.

    Raises:
        ContractError: one is missing, not declared, or of another shape.
    """
    name = f"{type(task).__name__}.info"
    if "success" not in given:
        raise ContractError(f"{name} gives no 'success'.")
    as_flag(task, "info", given["success"])
    measured = given.keys() - {"success"}
    if missing := sorted(task.measures.keys() - measured):
        raise ContractError(f"{name} gives no {missing[0]!r}, which measures declares.")
    if taken := sorted(measured & set(KERNEL)):
        raise ContractError(f"{name} gives {taken[0]!r}, a name that the kernel fills in.")
    if strange := sorted(measured - task.measures.keys()):
        raise ContractError(f"{name} gives {strange[0]!r}, which measures does not declare.")
    shapes = [(), (task.card.agents,)] if task.card.agents > 1 else [()]
    for measure in sorted(measured):
        shape = jnp.shape(given[measure])
        if shape not in shapes:
            raise ContractError(f"{name} gives {measure!r} of shape {shape}; a measure is one number.")
    return given


def as_action(player: Any, given: Given, space: spaces.Space[Any]) -> Given:
    """Return a player's action if it has the shape that the action space requires.

    Raises:
        ContractError: it is not.
    """
    return _compare(f"{_class_of(player)}.act", given, _declared(space), "the action space says", _same_kind)


def keep_memory(player: Any, given: Given, before: Any) -> Given:
    """Return a player's next memory if it has the same tree, shapes and dtypes as the last one.

    Raises:
        ContractError: a leaf differs.
    """
    return _compare(f"{_class_of(player)}.act", given, before, "its memory was", operator.eq)


def _class_of(player: Any) -> str:
    """Return the name of a player's class, or of the class of the policy that it wraps."""
    return type(getattr(player, "policy", player)).__name__


def _declared(space: Any) -> Any:
    """Return the shapes and dtypes of the elements of a space, as JAX would hold them."""
    if isinstance(space, jax.ShapeDtypeStruct):
        return space
    if isinstance(space, spaces.Dict):
        return {name: _declared(part) for name, part in space.items()}
    return jax.ShapeDtypeStruct(space.shape or (), jax.dtypes.canonicalize_dtype(space.dtype))


def _same_kind(given: np.dtype[Any], expected: np.dtype[Any]) -> bool:
    return given == expected or given.kind == expected.kind == "i"


def _compare(
    name: str, given: Given, expected: Any, said: str, same: Callable[[np.dtype[Any], np.dtype[Any]], bool]
) -> Given:
    """Compare trees leaf by leaf and return the first."""
    mine, theirs = _leaves(given), _leaves(expected)
    for leaf in [*theirs, *mine]:
        what = f"{name} returns {leaf}".removesuffix(" ")
        if leaf not in mine:
            raise ContractError(f"{name} returns no {leaf or 'array'}, but {said} {_spell(theirs[leaf])}.")
        if leaf not in theirs:
            raise ContractError(f"{what}, which is none of {', '.join(filter(None, theirs)) or 'what it may return'}.")
        (shape, dtype), (promised, wanted) = mine[leaf], theirs[leaf]
        if shape != promised or not same(dtype, wanted):
            what += " as" if leaf else ""
            raise ContractError(f"{what} {_spell(mine[leaf])}, {said} {_spell(theirs[leaf])}.")
    made, wanted_tree = str(jax.tree.structure(given)), str(jax.tree.structure(expected))
    if made != wanted_tree:
        raise ContractError(f"{name} returns {made}, {said} {wanted_tree}.")
    return given


def _leaves(tree: Any) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return shape and dtype of each leaf by its name; a tree that is one array has one leaf without a name."""
    named = jax.tree_util.tree_leaves_with_path(tree)
    spell = jax.tree_util.keystr
    return {spell(path, simple=True, separator="."): (jnp.shape(leaf), _dtype(leaf)) for path, leaf in named}


def _dtype(leaf: Any) -> np.dtype[Any]:
    dtype = getattr(leaf, "dtype", None)
    return jax.dtypes.canonicalize_dtype(jnp.result_type(leaf) if dtype is None else dtype)


def _spell(leaf: tuple[tuple[int, ...], np.dtype[Any]]) -> str:
    shape, dtype = leaf
    return f"{dtype} {shape}"
