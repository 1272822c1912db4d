"""Help a customer of a shop by the shop's policy, with a database and a customer who can act, too.

A customer wants one of five things for one of three orders. The agent asks, looks orders up, writes
to the database, asks the customer to restart a device, and ends the conversation: done, or denied
with a reason. Some customers are not who they say, half of the wishes are denied by the policy
(``policy.py``), some are granted in part, and nobody but the agent checks it: the
database carries out whatever it is told. After tau-bench (Yao et al. 2024, arXiv:2406.12045), with
a script in place of the model that plays the customer, and with a denial that has to be said,
because doing nothing must not pay.

=============  =====================================================================================
action         one of 32: wait; ask for the PIN, the wish, the number of the order; look up, cancel,
               return, redirect, compensate, replace or credit one of the orders; ask the customer
               to restart the device; deny for one of five reasons; done
observation    ``Box(0, 1, (109,))``: the last action; what the customer has said; the rows that
               were looked up; turns used
reward         1 for the right end, else 0. ``reward`` sets another of the modes
               (``reward_modes.py``): ``thrifty``; ``matched``; ``dense``, the share done of what
               the policy asks for before the end, 0 after a breach
termination    the agent ended the conversation, or the customer left
success        the database is, cell by cell, the first one with what the policy grants; the end is
               the right one; the order was looked up; nothing was looked up or written before the
               PIN was checked, and nothing replaced before the device was restarted
difficulty     1 customers who are clear and honest, 2 all
context        customer, orders, wish, temper. The three items follow each other in the order of the
               list (router, lamp, kettle, ...) in the train split, against it in the test split, so
               no list of orders is in both. PINs are even in the train split, odd in the test
               split. All else has the same distribution
=============  =====================================================================================

Tempers: clear customers say at once what they want; vague ones when asked; confused ones first give
a wrong number of the order, which its item shows; impatient ones are vague and leave after 8 turns.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, FlagArray, Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import split_bits
from ..shared.page import HEIGHT, WIDTH, page
from ..shared.reward_modes import SENTENCES, likeness, progress_reward, thrift
from ..shared.tool import read_tool_call
from .actions import (
    ACTIONS,
    ASK_ORDER,
    ASK_PIN,
    ASK_WISH,
    DENY,
    DONE,
    FIRST_OF_TOOL,
    LOOK_UP,
    RESTART,
    TOOLS,
    WAIT,
    WRITE,
)
from .policy import (
    CHANGES,
    COMPENSATE,
    CREDIT,
    DAYS_LATE_COLUMN,
    FULL_DAYS_COLUMN,
    ITEMS,
    LAST_DAY_COLUMN,
    MAX_DAYS,
    MAX_DAYS_LATE,
    NOT_FINAL_SALE_COLUMN,
    ORDERS,
    POLICY,
    REASONS,
    REPLACE,
    RETURN,
    RULES,
    SAMPLED_REASONS_COLUMN,
    STATUS_COLUMN,
    STATUSES,
    TEMPERS,
    WISHES,
    rule_entry,
)


class Slot(IntEnum):
    """Places of the random words of a customer; twelve words of the orders follow."""

    PIN = 0
    HONEST = 1
    GOLD = 2
    TEMPER = 3
    WISH = 4
    ORDER = 5
    ITEM_STEP = 6
    DENIED = 7
    REASON = 8
    FIRST_ITEM = 9
    AT_LIMIT = 10
    CREDIT = 11
    DAYS = 12
    DAYS_LATE = 13
    FIXABLE = 14
    OTHER_STATUS = 15


IMPATIENT_TURNS = 8
"""Turns after which an impatient customer leaves."""
MAX_TURNS = 20
"""Turns after which everybody has left."""


class Params(NamedTuple):
    """A customer with three orders."""

    pin: Int
    """The PIN, of four digits, int32."""
    honest: Flag
    """Whether the customer knows the PIN, bool."""
    gold: Flag
    """Whether it is a gold customer, for whom limits are longer, bool."""
    temper: Int
    """Number of the temper in ``TEMPERS``, int32."""
    wish: Int
    """Number of the wish in ``WISHES``, int32."""
    order: Int
    """Order that is meant, from 0, int32."""
    fixable: Flag
    """Whether a restart mends the device, bool."""
    items: IntArray
    """Number of each order's item in ``ITEMS``, all different, int32 ``(3,)``."""
    statuses: IntArray  # (3,)
    """Number of each order's status in ``STATUSES``, int32 ``(3,)``."""
    days: IntArray
    """Days since delivery, int32 ``(3,)``."""
    late: IntArray
    """Days late, int32 ``(3,)``."""
    final: FlagArray
    """Whether the sale was final, bool ``(3,)``."""


class State(NamedTuple):
    """A conversation."""

    checked: Flag
    """Whether the PIN was asked for, bool."""
    wish_known: Flag
    """Whether the customer has told the wish, bool."""
    named_order: Int
    """Order last named by the customer, from 0, int32; -1 for none."""
    looked_up: FlagArray
    """Orders looked up, bool ``(3,)``."""
    changed: FlagArray
    """Changes written, bool ``(3, 6)``: order and change."""
    restarted: Flag
    """Whether the customer has restarted the device, bool."""
    breach: Flag
    """Whether the policy's order of things was broken, bool."""
    turns: Int
    """Turns used, int32."""
    last: Int
    """Last action, int32; -1 at first."""
    ending: Int
    """0 running, 1 done, 2 denied, 3 the customer left; int32."""
    reason: Int
    """Number of the reason given in ``REASONS``, int32; -1 for none."""
    action_counts: IntArray = None
    """Times that each action was taken, int32 ``(32,)``; None where the reward does not ask."""


class ServiceDesk(Task[Params, State]):
    """The task; see the module's docstring. ``difficulty`` is 1 or 2."""

    measures: ClassVar[dict[str, str]] = {
        "actions": "actions taken",
        "breach": "1 if something was done before the policy allows it, else 0",
        "left": "1 if the customer left, else 0",
        "denied": "1 if the wish was denied, else 0",
        "must_deny": "1 if the conversation is over and the wish had to be denied, else 0",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (HEIGHT, WIDTH, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in (1, 2):
            raise ValueError(
                f"{card.id}: difficulty is 1 or 2, or one of {', '.join(card.difficulties)}; got "
                f"{difficulty!r}."
            )
        self.all_customers = difficulty == 2
        self.mode = card.settings.get("reward", "success")
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = self.box(
            0.0, 1.0, (sum(component.size for component in self.observation_components()),)
        )
        self.reward_space = self.box(-0.5 if self.mode == "dense" else 0.0, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a customer and three orders at once.

        Half of the honest customers have a reason to be denied.
        """
        bits = split_bits(jax.random.bits(key, (len(Slot) + 4 * ORDERS,), jnp.uint32), split)
        is_test = jnp.asarray(split, jnp.int32)

        def draw_below(slot: Slot, count: Any) -> jax.Array:
            return (bits[slot] % jnp.asarray(count, jnp.uint32)).astype(jnp.int32)

        def draw_between(slot: Slot, low: Any, high: Any) -> jax.Array:
            return low + draw_below(slot, high - low + 1)

        wish = draw_below(Slot.WISH, len(WISHES))
        order = draw_below(Slot.ORDER, ORDERS)
        gold = draw_below(Slot.GOLD, 3) == 0
        sampled_reason = rule_entry(SAMPLED_REASONS_COLUMN, wish)[
            draw_below(Slot.REASON, SAMPLED_REASONS_COLUMN.shape[1])
        ]
        reason = jnp.where(draw_below(Slot.DENIED, 2) == 0, sampled_reason, -1)
        denied_for = {name: reason == number for number, name in enumerate(REASONS)}
        rows = bits[len(Slot) :].reshape(4, ORDERS)
        at_limit = draw_below(Slot.AT_LIMIT, 4) == 0
        # Wishes whose rule has no limit have days as if they were returns, or late as if they were
        # to be compensated.
        last_day = rule_entry(LAST_DAY_COLUMN, jnp.where(wish == REPLACE, REPLACE, RETURN), gold)
        in_time = jnp.where(
            at_limit,
            last_day - RULES[RETURN].credit_days * draw_below(Slot.CREDIT, 2),
            draw_between(Slot.DAYS, 1, last_day),
        )
        too_late = jnp.where(
            at_limit, last_day + 1, draw_between(Slot.DAYS, last_day + 1, MAX_DAYS)
        )
        days = jnp.where(denied_for["too_late"], too_late, in_time)
        least_late = rule_entry(DAYS_LATE_COLUMN, COMPENSATE, gold)
        late_enough = jnp.where(
            at_limit, least_late, draw_between(Slot.DAYS_LATE, least_late, MAX_DAYS_LATE - 1)
        )
        too_early = jnp.where(at_limit, least_late - 1, draw_below(Slot.DAYS_LATE, least_late))
        late = jnp.where(denied_for["not_late_enough"], too_early, late_enough)
        status = (
            rule_entry(STATUS_COLUMN, wish)
            + denied_for["wrong_status"] * (1 + draw_below(Slot.OTHER_STATUS, 3))
        ) % 4
        meant = jnp.arange(ORDERS) == order
        final_sale_matters = meant & rule_entry(NOT_FINAL_SALE_COLUMN, wish)
        # Steps of 1 and 2 give three different items of six, and so do -1 and -2.
        first_item = draw_below(Slot.FIRST_ITEM, len(ITEMS))
        item_step = (1 + draw_below(Slot.ITEM_STEP, 2)) * (1 - 2 * is_test)
        return Params(
            pin=2 * (500 + draw_below(Slot.PIN, 4500)) + is_test,
            honest=(draw_below(Slot.HONEST, 8) > 0) if self.all_customers else jnp.bool_(True),
            gold=gold,
            temper=draw_below(Slot.TEMPER, len(TEMPERS)) if self.all_customers else jnp.int32(0),
            wish=wish,
            order=order,
            fixable=draw_below(Slot.FIXABLE, 2) == 0,
            items=(first_item + item_step * jnp.arange(ORDERS)) % len(ITEMS),
            statuses=jnp.where(meant, status, (rows[0] % 4).astype(jnp.int32)),
            days=jnp.where(meant, days, 1 + (rows[1] % MAX_DAYS).astype(jnp.int32)),
            late=jnp.where(meant, late, (rows[2] % MAX_DAYS_LATE).astype(jnp.int32)),
            final=jnp.where(final_sale_matters, denied_for["final_sale"], rows[3] % 4 == 0),
        )

    def verdict(self, params: Params) -> jax.Array:
        """Return the number of the reason to deny the wish, -1 if the policy grants it."""
        wish = params.wish
        gold = params.gold
        order = params.order
        reason = jnp.int32(-1)
        # The first reason of the policy that holds counts, so it is written last.
        for holds, name in (
            (params.late[order] < rule_entry(DAYS_LATE_COLUMN, wish, gold), "not_late_enough"),
            (params.days[order] > rule_entry(LAST_DAY_COLUMN, wish, gold), "too_late"),
            (rule_entry(NOT_FINAL_SALE_COLUMN, wish) & params.final[order], "final_sale"),
            (params.statuses[order] != rule_entry(STATUS_COLUMN, wish), "wrong_status"),
            (~params.honest, "not_verified"),
        ):
            reason = jnp.where(holds, REASONS.index(name), reason)
        return reason.astype(jnp.int32)

    def granted_change(self, params: Params) -> jax.Array:
        """Return the number of the change that the policy grants, -1 for none.

        Credit is a return in part.
        """
        beyond_full_days = params.days[params.order] > rule_entry(
            FULL_DAYS_COLUMN, params.wish, params.gold
        )
        mended = (params.wish == REPLACE) & params.fixable
        change = jnp.where((params.wish == RETURN) & beyond_full_days, CREDIT, params.wish)
        return jnp.where((self.verdict(params) < 0) & ~mended, change, -1).astype(jnp.int32)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin with the customer's first sentence."""
        no = jnp.bool_(False)
        none = jnp.int32(-1)
        return State(
            checked=no,
            wish_known=params.temper == 0,
            named_order=none,
            looked_up=jnp.zeros(ORDERS, bool),
            changed=jnp.zeros((ORDERS, len(CHANGES)), bool),
            restarted=no,
            breach=no,
            turns=jnp.int32(0),
            last=none,
            ending=jnp.int32(0),
            reason=none,
            action_counts=jnp.zeros(len(ACTIONS), jnp.int32) if self.mode == "matched" else None,
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Carry out the action; the customer answers, acts, or leaves."""
        action = action.astype(jnp.int32)
        orders = jnp.arange(ORDERS)
        changes = jnp.arange(len(CHANGES))
        looks = (action >= LOOK_UP) & (action < WRITE)
        writes = (action >= WRITE) & (action < RESTART)
        order = (action - WRITE) % ORDERS
        change = (action - WRITE) // ORDERS
        turns = state.turns + 1
        denies = (action >= DENY) & (action < DONE)
        patience = jnp.where(
            params.temper == TEMPERS.index("impatient"), IMPATIENT_TURNS, MAX_TURNS
        )
        ending = jnp.where(
            action == DONE, 1, jnp.where(denies, 2, jnp.where(turns >= patience, 3, 0))
        )
        confused = (params.temper == TEMPERS.index("confused")) & (state.named_order < 0)
        customer_order = jnp.where(confused, (params.order + 1) % ORDERS, params.order)
        verified = state.checked & params.honest
        hasty = writes & (change == REPLACE) & ~state.restarted
        counts = state.action_counts
        if counts is not None:
            counts = counts + (jnp.arange(len(ACTIONS)) == action)
        return State(
            checked=state.checked | (action == ASK_PIN),
            wish_known=state.wish_known | (action == ASK_WISH),
            named_order=jnp.where(action == ASK_ORDER, customer_order, state.named_order).astype(
                jnp.int32
            ),
            looked_up=state.looked_up | (looks & (orders == action - LOOK_UP)),
            changed=state.changed
            | (writes & (orders[:, None] == order) & (changes[None] == change)),
            restarted=state.restarted | (action == RESTART),
            breach=state.breach | ((looks | writes) & ~verified) | hasty,
            turns=turns,
            last=action,
            ending=ending.astype(jnp.int32),
            reason=jnp.where(denies, action - DENY, -1).astype(jnp.int32),
            action_counts=counts,
        )

    def solved(self, state: State, params: Params) -> jax.Array:
        """Judge the conversation: database, end, and order of things."""
        reason = self.verdict(params)
        goal = jnp.arange(len(CHANGES))[None] == self.granted_change(params)
        goal = goal & (jnp.arange(ORDERS)[:, None] == params.order)
        device = params.wish == REPLACE
        end = jnp.where(
            reason < 0, state.ending == 1, (state.ending == 2) & (state.reason == reason)
        )
        careful = state.checked & ~state.breach & (state.looked_up[params.order] | ~params.honest)
        restarted = state.restarted | ~device | (reason >= 0)
        return end & careful & restarted & (state.changed == goal).all()

    def fewest_actions(self, params: Params) -> jax.Array:
        """Return the fewest actions of an agent who checks everything."""
        reason = self.verdict(params)
        confused = (params.temper == TEMPERS.index("confused")).astype(jnp.int32)
        device = params.wish == REPLACE
        grant = jnp.where(device, 2 - params.fixable.astype(jnp.int32), 1)
        honest = 4 + (params.temper != 0) + 2 * confused + jnp.where(reason < 0, grant, 0)
        return jnp.where(params.honest, honest, 2).astype(jnp.int32)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for the right end, or what the mode makes of it."""
        success = self.solved(next_state, params)
        over = next_state.ending > 0
        earned: Any = success
        if self.mode == "thrifty":
            factor = thrift(
                next_state.turns.astype(self.dtype), self.fewest_actions(params).astype(self.dtype)
            )
            earned = jnp.where(success, factor, 0)
        if self.mode == "matched":
            needed_counts = self.wanted_calls(params)
            names = jnp.minimum(_by_tool(next_state.action_counts), _by_tool(needed_counts)).sum()
            calls = jnp.minimum(next_state.action_counts, needed_counts).sum()
            common = names.astype(self.dtype), calls.astype(self.dtype)
            alike = likeness(
                *common, next_state.turns.astype(self.dtype), needed_counts.sum().astype(self.dtype)
            )
            earned = jnp.where(over & (next_state.ending < 3), alike, 0)
        if self.mode == "dense":
            earned = progress_reward(
                self._progress(state, params), self._progress(next_state, params), over, success
            )
        return earned.astype(self.dtype)

    def wanted_calls(self, params: Params) -> jax.Array:
        """Return how often an agent who checks everything takes each action, int32 ``(32,)``."""
        reason = self.verdict(params)
        granted_change = self.granted_change(params)
        order = params.order
        confused = params.temper == TEMPERS.index("confused")
        device = params.wish == REPLACE
        honest = params.honest
        steps: tuple[tuple[Any, Any], ...] = (
            (ASK_PIN, True),
            (ASK_WISH, honest & (params.temper != 0)),
            (ASK_ORDER, honest),
            (ASK_ORDER, honest & confused),
            (LOOK_UP + (order + 1) % ORDERS, honest & confused),
            (LOOK_UP + order, honest),
            (RESTART, device & (reason < 0)),
            (WRITE + ORDERS * granted_change + order, granted_change >= 0),
            (jnp.where(reason < 0, DONE, DENY + reason), True),
        )
        counts = [(jnp.arange(len(ACTIONS)) == step) & is_needed for step, is_needed in steps]
        return jnp.stack(counts).sum(0, dtype=jnp.int32)

    def _progress(self, state: State, params: Params) -> jax.Array:
        """Return the share done of what the policy asks for before the end.

        It is 0 if anything was done against the policy.
        """
        granted_change = self.granted_change(params)
        order = params.order
        device = (params.wish == REPLACE) & (self.verdict(params) < 0)
        goal = (jnp.arange(len(CHANGES)) == granted_change) & (jnp.arange(ORDERS)[:, None] == order)
        needed = jnp.stack([jnp.bool_(True), params.honest, device, granted_change >= 0])
        achieved = jnp.stack(
            [state.checked, state.looked_up[order], state.restarted, (state.changed & goal).any()]
        )
        clean = ~state.breach & ~(state.changed & ~goal).any()
        share = (needed & achieved).sum().astype(self.dtype) / needed.sum().astype(self.dtype)
        return jnp.where(clean, share, 0)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the conversation is over."""
        return state.ending > 0

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": self.solved(state, params),
            "actions": state.turns,
            "breach": state.breach.astype(jnp.int32),
            "left": (state.ending == 3).astype(jnp.int32),
            "denied": (state.ending == 2).astype(jnp.int32),
            "must_deny": ((state.ending > 0) & (self.verdict(params) >= 0)).astype(jnp.int32),
        }

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return last action, what was said, rows and turns; ``(109,)``."""
        looked_up = state.looked_up
        light = state.restarted & (params.wish == REPLACE)
        blocks = [
            jnp.arange(len(ACTIONS)) == state.last,
            jnp.stack([state.checked & params.honest, state.checked & ~params.honest]),
            state.wish_known & (jnp.arange(len(WISHES)) == params.wish),
            state.wish_known & (jnp.arange(len(ITEMS)) == params.items[params.order]),
            jnp.arange(ORDERS) == state.named_order,
            (state.checked & params.honest & params.gold)[None],
            (looked_up[:, None] & (params.items[:, None] == jnp.arange(len(ITEMS)))).ravel(),
            (looked_up[:, None] & (params.statuses[:, None] == jnp.arange(len(STATUSES)))).ravel(),
            looked_up * params.days / MAX_DAYS,
            looked_up * params.late / MAX_DAYS_LATE,
            looked_up & params.final,
            state.changed.ravel(),
            jnp.stack([light & params.fixable, light & ~params.fixable]),
            (state.turns / MAX_TURNS)[None],
        ]
        return jnp.concatenate([block.astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """List the blocks of the observation."""
        return (
            Component("last", "last action, one-hot", shape=(len(ACTIONS),)),
            Component("pin", "whether the PIN was right, whether it was wrong", shape=(2,)),
            Component("wish", f"wish if told, one-hot: {', '.join(WISHES)}", shape=(len(WISHES),)),
            Component(
                "item",
                f"item of the wish if told, one-hot: {', '.join(ITEMS)}",
                shape=(len(ITEMS),),
            ),
            Component("order", "order last named by the customer, one-hot", shape=(ORDERS,)),
            Component("gold", "whether the customer is known to be gold"),
            Component("row_item", "[order looked up]: item, one-hot", shape=(ORDERS, len(ITEMS))),
            Component(
                "row_status",
                f"[order]: status, one-hot: {', '.join(STATUSES)}",
                shape=(ORDERS, len(STATUSES)),
            ),
            Component(
                "row_days", "[order]: days since delivery", f"{MAX_DAYS} days", (ORDERS,), MAX_DAYS
            ),
            Component(
                "row_late", "[order]: days late", f"{MAX_DAYS_LATE} days", (ORDERS,), MAX_DAYS_LATE
            ),
            Component("row_final", "[order]: whether the sale was final", shape=(ORDERS,)),
            Component(
                "changed", "[order, change]: whether it was written", shape=(ORDERS, len(CHANGES))
            ),
            Component(
                "light",
                "after a restart: whether the light is green, whether it is red",
                shape=(2,),
            ),
            Component("turns", "turns used", f"{MAX_TURNS} turns", scale=MAX_TURNS),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the actions."""
        orders = range(1, ORDERS + 1)
        meanings = {"wait": "say nothing while a turn passes"}
        meanings |= {
            name: f"ask the customer for the {name.removeprefix('ask_')}"
            for name in ACTIONS[ASK_PIN:LOOK_UP]
        }
        meanings |= {
            f"look_up_{order}": f"look order {order} up in the database" for order in orders
        }
        meanings |= {
            f"{change}_{n}": f"write to the database: {change} order {n}"
            for change in CHANGES
            for n in orders
        }
        meanings["restart"] = "have the customer restart the device"
        meanings |= {
            f"deny_{reason}": f"deny the wish, for {reason.replace('_', ' ')}" for reason in REASONS
        }
        meanings["done"] = "end the conversation"
        return singles(meanings)

    # -- host side ---------------------------------------------------------------------------------

    def rules(self) -> str:
        """Return the policy and the tools."""
        return "\n".join([
            "You are at the service desk of a shop. A customer has three orders, and one "
            "wish for one of them. Act by "
            f"this policy; the database does not check it. {SENTENCES[self.mode]}".rstrip(),
            POLICY,
            *(tool.line() for tool in TOOLS),
        ])  # fmt: skip

    def describe(self, state: State, params: Params) -> str:
        """Describe what was said last, and everything known."""
        return "\n\n".join([self._last_turn(state, params), self._facts(state, params)])

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe everything at first, then what was said last."""
        return self.describe(state, params) if before is None else self._last_turn(state, params)

    def _wish(self, params: Params) -> str:
        item = ITEMS[int(params.items[int(params.order)])]
        return (
            f"Please cancel my order of the {item}.",
            f"I want to return the {item}.",
            f"Please send the {item} to another address.",
            f"The {item} is late. I want to be compensated.",
            f"The light of the {item} is red. I want a new one.",
        )[int(params.wish)]

    def _last_turn(self, state: State, params: Params) -> str:
        last = int(state.last)
        order = int(state.named_order) + 1
        if last < 0:
            return f"Customer: {self._wish(params) if int(params.temper) == 0 else 'Hello, I need help with an order.'}"  # noqa: E501
        if last == WAIT:
            text = "Customer: Are you still there?"
        elif last == ASK_PIN:
            fits = "It is right" if params.honest else "It is wrong"
            gold = ", and the customer is gold" if params.honest and params.gold else ""
            pin = int(params.pin) if params.honest else 10_999 - int(params.pin)
            text = f"Customer: My PIN is {pin}.\nSystem: {fits}{gold}."
        elif last == ASK_WISH:
            text = f"Customer: {self._wish(params)}"
        elif last == ASK_ORDER:
            text = f"Customer: It is order {order}."
        elif last < WRITE:
            text = self._row(last - LOOK_UP, params)
        elif last < RESTART:
            change, number = divmod(last - WRITE, ORDERS)
            text = f"System: {CHANGES[change]} is written to order {number + 1}."
        elif last == RESTART:
            light = "green" if params.fixable else "still red"
            device = int(params.wish) == REPLACE
            text = (
                f"Customer: I have restarted it. The light is {light}."
                if device
                else "Customer: Restart what?"
            )
        else:
            text = "You ended the conversation."
        return f"{text}\nThe customer has left." if int(state.ending) == 3 else text

    def _row(self, order: int, params: Params) -> str:
        status = STATUSES[int(params.statuses[order])]
        days = f", {int(params.days[order])} days ago" if status == "delivered" else ""
        late = f", {int(params.late[order])} days late" if status == "shipped" else ""
        final = ", final sale" if params.final[order] else ""
        return f"Order {order + 1}: {ITEMS[int(params.items[order])]}, {status}{days}{late}{final}."

    def _facts(self, state: State, params: Params) -> str:
        lines = [f"Turns used: {int(state.turns)}."]
        if state.checked:
            lines.append(f"The PIN is {'right' if params.honest else 'wrong'}.")
            if params.honest and params.gold:
                lines.append("The customer is gold.")
        if state.wish_known:
            lines.append(f"Wish: {self._wish(params)}")
        if int(state.named_order) >= 0:
            lines.append(f"The customer named order {int(state.named_order) + 1}.")
        lines += [self._row(order, params) for order in range(ORDERS) if state.looked_up[order]]
        for order, written in enumerate(np.asarray(state.changed).tolist(), 1):
            lines += [
                f"Written to order {order}: {change}."
                for change, yes in zip(CHANGES, written, strict=True)
                if yes
            ]
        return "\n".join(lines)

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools."""
        return [tool.schema() for tool in TOOLS]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            'Answer with one call: {"name": "ask", "arguments": {"what": "pin"}}, or a line: '
            "ask(what=pin)"
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a call.

        Raises:
            ValueError: the text is no call of one of the tools.
        """
        tool, arguments = read_tool_call(TOOLS, text)
        number = {
            "wait": WAIT,
            "ask": ASK_PIN + arguments.get("what", 0),
            "look_up": LOOK_UP + arguments.get("order", 1) - 1,
            "write": WRITE + ORDERS * arguments.get("change", 0) + arguments.get("order", 1) - 1,
            "restart": RESTART,
            "deny": DENY + arguments.get("reason", 0),
            "done": DONE,
        }[tool.name]
        return np.array(number, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the call as JSON."""
        number = int(action)
        tools = {tool.name: tool for tool in TOOLS}
        if ASK_PIN <= number < LOOK_UP:
            return tools["ask"].call(what=number - ASK_PIN)
        if LOOK_UP <= number < WRITE:
            return tools["look_up"].call(order=number - LOOK_UP + 1)
        if WRITE <= number < RESTART:
            change, order = divmod(number - WRITE, ORDERS)
            return tools["write"].call(change=change, order=order + 1)
        if DENY <= number < DONE:
            return tools["deny"].call(reason=number - DENY)
        return tools[ACTIONS[number]].call()

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how it ended, and what the judge says."""
        if int(state.ending) == 3:
            return "the customer left"
        how = "the wish was denied" if int(state.ending) == 2 else "the agent is done"
        return f"{how}; that is {'right' if info['success'] else 'wrong'}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the conversation's last turn and what is known."""
        last = ACTIONS[int(state.last)].replace("_", " ") if int(state.last) >= 0 else "-"
        status = f"last action: {last}   turns: {int(state.turns)}"
        return page(
            self.card.name, status, [self._last_turn(state, params), "", self._facts(state, params)]
        )


def _by_tool(counts: jax.Array) -> jax.Array:
    """Return how often each tool was called, from the counts of actions."""
    ends = (*FIRST_OF_TOOL[1:], len(ACTIONS))
    return jnp.stack(
        [counts[start:end].sum() for start, end in zip(FIRST_OF_TOOL, ends, strict=True)]
    )
