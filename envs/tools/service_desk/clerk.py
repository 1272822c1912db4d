"""The reference player of ``ServiceDesk``."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View, no_memory, privileged_player

from .actions import ASK_ORDER, ASK_PIN, ASK_WISH, DENY, DONE, LOOK_UP, RESTART, WRITE
from .policy import ORDERS, REASONS, WISHES
from .service_desk import Params, ServiceDesk


@privileged_player
class Clerk(eqx.Module):
    """A clerk who asks for what is not known yet, looks the order up, and acts by the policy.

    It uses only what was said and shown.
    """

    task: ServiceDesk = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: ServiceDesk) -> Clerk:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first step that is still missing."""
        state = view.state
        params = view.params
        order = jnp.maximum(state.named_order, 0)
        # The row shows another item than the wish.
        wrong = params.items[order] != params.items[params.order]
        reason = self.task.verdict(params)
        granted_change = self.task.granted_change(params)
        device = params.wish == WISHES.index("replace")
        written = state.changed[params.order, granted_change]
        steps = (
            (~state.checked, ASK_PIN),
            (~params.honest, DENY + REASONS.index("not_verified")),
            (~state.wish_known, ASK_WISH),
            (state.named_order < 0, ASK_ORDER),
            (~state.looked_up[order], LOOK_UP + order),
            (wrong, ASK_ORDER),
            (reason >= 0, DENY + reason),
            (device & ~state.restarted, RESTART),
            ((granted_change >= 0) & ~written, WRITE + ORDERS * granted_change + params.order),
        )
        action = jnp.int32(DONE)
        for missing, step in reversed(steps):
            action = jnp.where(missing, step, action).astype(jnp.int32)
        return action, memory


class _GrantingDesk(ServiceDesk):
    """A desk whose policy denies nothing."""

    def verdict(self, params: Params) -> jax.Array:
        """Return -1: the wish is granted."""
        return jnp.int32(-1)


class YesClerk(Clerk):
    """A heuristic player, which does as the reference but grants every wish.

    It denies only customers without the right PIN.
    """

    @classmethod
    def for_task(cls, task: ServiceDesk) -> YesClerk:
        """Make the player of a task."""
        return cls(_GrantingDesk(task.card, difficulty=task.difficulty, dtype=task.dtype.name))
