"""Reward modes of the family: what the setting ``reward`` makes of a world of tools.

===========  =======================================================================================
``success``  1 for the right end, else 0
``thrifty``  that, times :func:`thrift` of the calls made and the fewest that do: OTC, Wang et al.
             2025, arXiv:2504.14870
``matched``  :func:`likeness` of the calls made and those of the reference player, at the player's
             own end: the rewards of ToolRL, Qian et al. 2025, arXiv:2504.13958, for names and
             arguments of calls. There, a junk call costs little or nothing; here, each call too
             many lowers the reward
``dense``    half of the progress towards the right end, as it is made, and 1 in its place for the
             right end: :func:`progress_reward`, shaping by a potential (Ng, Harada & Russell 1999)
``judged``   a part of its own for judgements of documents: ``Search`` only
===========  =======================================================================================

No return is above 1, which honest play earns. It falls with every call too many (``thrifty``,
``matched``), or is the same for all ways to one end (``success``, ``dense``). A card names the
modes that have a meaning in its world.

A reply that is no call is played as the world's call that lets a turn pass. It counts as a call too
many: that is the term for the format, as in ToolRL, and the mode needs no third one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import FlagArray, Int

SENTENCES = {
    "success": "",
    "thrifty": "The fewer calls, the more a right end earns.",
    "matched": (
        "The nearer your calls are to those that are needed, the more they earn; each one too many "
        "costs."
    ),
    "dense": "Progress earns up to a half at once; a wrong end takes it back.",
}
"""Modes as the rules tell them."""


def thrift(used: Any, needed: Any, sin: Callable[[Any], Any] = jnp.sin) -> Any:
    """Return the thrift of a number of calls, from 1 down towards 0.

    It is sin(f pi / (2 needed)) with f = 2 used needed / (used + needed).

    OTC estimates the least number of calls from other attempts; here the task knows it.

    Args:
        used: calls made, at least ``needed``.
        needed: fewest calls by which a player can be sure to succeed, at least 1.
        sin: ``math.sin`` on the host.
    """
    excess = used - needed
    excess = excess * (excess > 0)  # a lucky player may need fewer
    return sin(math.pi / (2 + excess / needed) * (1 + excess / needed))


def likeness(common_names: Any, common_calls: Any, call_count: Any, solution_length: Any) -> Any:
    """Return how alike two multisets of calls are, from 0 to 1.

    The likeness is the mean of their Dice coefficients, by names of calls and by whole calls.

    It is 1 for the wanted calls in any order, and every call more makes it smaller: after m of n
    wanted calls and k others it is 2 m / (m + k + n) at most.

    Args:
        common_names: size of the intersection of the multisets of names.
        common_calls: size of the intersection of the multisets of calls, names with arguments.
        call_count: calls made.
        solution_length: calls wanted, at least 1.
    """
    return (common_names + common_calls) / (call_count + solution_length)


def progress_reward(before: Any, after: Any, over: Any, success: Any) -> Any:
    """Return the reward of a step that changes the progress.

    Progress is a function of the state that is 0 at first and 1 at most.

    Rewards telescope: their sum is half of the progress so far, so that circling pays nothing. At
    an end of the player's, the sum is 1 for success and else 0.
    """
    return over * success + (1 - over) * after / 2 - before / 2


class Tally(NamedTuple):
    """Calls made in a compiled world, compared with a list of wanted ones."""

    call_count: Int
    """Calls made, int32."""
    names: FlagArray
    """Wanted calls whose name is matched by a call made, bool ``(n,)``.

    Each call made matches one at most.
    """
    calls: Any
    """The same for whole calls."""

    @classmethod
    def begin(cls, solution: Any) -> Tally:
        """Begin with no call made; ``solution`` is as in :meth:`with_call`."""
        no_call = jnp.zeros(solution.shape[0], bool)
        return cls(jnp.int32(0), no_call, no_call)

    def with_call(self, call: Any, solution: Any) -> Tally:
        """Return the tally with one more call, int32 ``(p,)``, its name first.

        ``solution`` is int32 ``(n, p)``, -1 in rows without a call.
        """
        names = _keep_first(~self.names & (solution[:, 0] == call[0]))
        calls = _keep_first(~self.calls & (solution == call).all(1))
        return Tally(self.call_count + 1, self.names | names, self.calls | calls)


def _keep_first(flags: jax.Array) -> jax.Array:
    """Keep the first flag that is set."""
    return flags & (jnp.cumsum(flags) == 1)
