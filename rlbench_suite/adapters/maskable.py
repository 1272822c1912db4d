"""Action spaces of several choices whose ``sample`` takes the flat mask of ``info["action_mask"]``.

The mask of a ``MultiDiscrete`` action is one vector, the parts one after another, as agents with
masks read it. Gymnasium's own ``MultiDiscrete.sample`` takes a tuple with one mask for each part,
and its batches take none. The spaces of this file are equal to Gymnasium's and take both forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from rlbench_suite.core.task import Task


class MaskableMultiDiscrete(spaces.MultiDiscrete):  # Gymnasium 1.2 takes no type in brackets here
    """A ``MultiDiscrete`` space whose ``sample`` also takes a flat mask.

    The flat mask holds all parts one after another.
    """

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        """Sample an action.

        Args:
            mask: legal choices, bool or int8 with one entry for each choice of each part (any
                shape), or Gymnasium's tuple of masks.
            probability: Gymnasium's tuple of probabilities.

        Raises:
            ValueError: a flat mask has another number of entries.
        """
        if mask is None or isinstance(mask, tuple):
            return super().sample(mask, probability)
        return super().sample(self.mask_of_parts(mask), probability)

    def mask_of_parts(self, mask: Any) -> tuple[Any, ...]:
        """Return a flat mask in Gymnasium's form.

        It is nested tuples in the shape of the action, with int8 masks inside.

        Raises:
            ValueError: the mask has another number of entries.
        """
        flat = np.asarray(mask).astype(np.int8).ravel()
        choices = int(self.nvec.sum())
        if flat.size != choices:
            raise ValueError(
                f"A mask of {self} has {choices} entries, one for each choice; got "
                f"{np.shape(mask)}."
            )
        ends = np.cumsum(self.nvec.ravel())[:-1]
        masks: tuple[Any, ...] = _nest(iter(np.split(flat, ends)), self.nvec)
        return masks


def _nest(masks: Iterator[np.ndarray], sizes: np.ndarray) -> Any:
    """Return the next masks as nested tuples in the shape of ``sizes``."""
    if np.ndim(sizes) == 0:
        return next(masks)
    return tuple(_nest(masks, row) for row in sizes)


class MaskableBatch(spaces.Box):
    """Actions of a batch of :class:`MaskableMultiDiscrete` spaces.

    It is Gymnasium's integer ``Box``, sampled with masks.

    Args:
        single: the space of one environment.
        count: number of environments.
    """

    def __init__(self, single: MaskableMultiDiscrete, count: int) -> None:
        shape = (count, *single.shape)
        low = np.broadcast_to(single.start, shape)
        high = np.broadcast_to(single.start + single.nvec - 1, shape)
        super().__init__(low, high, shape, single.dtype.type, deepcopy(single.np_random))
        self.single = single

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        """Sample one action for each environment.

        Args:
            mask: one mask for each environment, ``(count, choices)``; None if every action is
                legal.
            probability: as for Gymnasium's ``Box``, which takes none.

        Raises:
            ValueError: there is not one mask for each environment.
        """
        if mask is None:
            return super().sample(None, probability)
        if len(mask) != self.shape[0]:
            raise ValueError(
                f"sample takes one mask for each of {self.shape[0]} environments, got {len(mask)}."
            )
        single = MaskableMultiDiscrete(
            self.single.nvec, self.single.dtype, self.np_random, self.single.start
        )
        return np.stack([single.sample(row) for row in mask])


@batch_space.register(MaskableMultiDiscrete)
def _batch(space: MaskableMultiDiscrete, n: int = 1) -> MaskableBatch:
    return MaskableBatch(space, n)


def maskable(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Return a copy of an action space that takes flat masks if it is a ``MultiDiscrete``."""
    if isinstance(space, spaces.MultiDiscrete):
        return MaskableMultiDiscrete(space.nvec, space.dtype, start=space.start)
    return deepcopy(space)


def has_masks(task: Task[Any, Any]) -> bool:
    """Return whether the task forbids actions in some states; simulators of the host do not."""
    return task.defines("action_mask")


def shown_action_space(task: Task[Any, Any]) -> spaces.Space[Any]:
    """Return a copy of a task's action space, which takes flat masks if the task has masks.

    A space holds the generator of its samples, so each environment has its own.
    """
    return maskable(task.action_space) if has_masks(task) else deepcopy(task.action_space)


def batched_action_space(task: Task[Any, Any], count: int) -> spaces.Space[Any]:
    """Return the space of the actions of a batch.

    It takes one mask for each environment if the task has masks.
    """
    batched = batch_space(shown_action_space(task), count)
    return maskable(batched) if has_masks(task) else batched
