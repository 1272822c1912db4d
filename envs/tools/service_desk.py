"""Help a customer of a shop by the shop's policy, with a database and a customer who can act, too.

A customer wants one of five things for one of three orders. The agent asks, looks orders up, writes to the database,
asks the customer to restart a device, and ends the conversation: done, or denied with a reason. Some customers are not
who they say, some wishes come to nothing under the policy (:data:`POLICY`), and nobody but the agent checks it: the
database carries out whatever it is told. After tau-bench (Yao et al. 2024, arXiv:2406.12045), with a script in place
of the model that plays the customer, and with a denial that has to be said, because doing nothing must not pay.

=============  =====================================================================================================
action         one of 28: ask for the PIN, the wish, the number of the order; look up, cancel, return, redirect,
               compensate or replace one of the orders; ask the customer to restart the device; deny for one of five
               reasons; done
observation    ``Box(0, 1, (97,))``: the last action; what the customer has said; the rows that were looked up; turns
               used
reward         1 for the right end, else 0; ``reward="thrifty"``: times :func:`.thrift.thrift` of the actions
termination    the agent ended the conversation, or the customer left
success        the database is, cell by cell, the first one with what the policy grants; the end is the right one; the
               order was looked up; nothing was looked up or written before the PIN was checked, and nothing replaced
               before the device was restarted
difficulty     1 customers who are clear and honest, 2 all
context        customer, orders, wish, temper. The PINs of the train split are even, those of the test split odd
=============  =====================================================================================================

Tempers: clear customers say at once what they want; vague ones when asked; confused ones first give a wrong number of
the order, which its item shows; impatient ones are vague and leave after 8 turns.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Component, singles
from rlbench_suite.policy import View
from rlbench_suite.task import Task

from .page import HEIGHT, WIDTH, page
from .thrift import thrift
from .tool import Argument, Tool, read_tool_call

ORDERS = 3
ITEMS = ("router", "lamp", "kettle", "tent", "scale", "radio")
STATUSES = ("processing", "shipped", "delivered", "cancelled")
WISHES = ("cancel", "return", "redirect", "compensate", "replace")
REASONS = ("not_verified", "wrong_status", "final_sale", "too_late", "not_late_enough")
TEMPERS = ("clear", "vague", "confused", "impatient")
PATIENCE, TURNS = 8, 20
"""Turns after which an impatient customer leaves, and after which everybody has left."""
ACTIONS = (
    "ask_pin",
    "ask_wish",
    "ask_order",
    *(f"{verb}_{order}" for verb in ("look_up", *WISHES) for order in range(1, ORDERS + 1)),
    "restart",
    *(f"deny_{reason}" for reason in REASONS),
    "done",
)
ASK_PIN, ASK_WISH, ASK_ORDER, LOOK_UP, WRITE = 0, 1, 2, 3, 3 + ORDERS
RESTART = WRITE + ORDERS * len(WISHES)
DENY, DONE = RESTART + 1, RESTART + 1 + len(REASONS)
POLICY = """\
1. Check the PIN before you look anything up or write. If it is wrong, deny: not_verified. Else look the order up before
   you end the conversation.
2. cancel and redirect: only orders in processing; else deny: wrong_status.
3. return: only delivered orders (wrong_status), not of a final sale (final_sale), at most 30 days after delivery, for
gold
   customers 60 (too_late).
4. compensate: only shipped orders (wrong_status) that are at least 6 days late, for gold customers 3 (not_late_enough).
5. replace: only delivered orders (wrong_status), at most 90 days after delivery (too_late). First ask the customer to
   restart the device. If the light turns green, you are done, and nothing is replaced.
6. Do what the customer wants, nothing else. Where several reasons hold, give the first in the order above."""
_ORDER = {"order": Argument("number of the order", low=1, high=ORDERS)}
TOOLS = (
    Tool("ask", "Ask the customer.", {"what": Argument("what to ask for", ("pin", "wish", "order"))}),
    Tool("look_up", "Look an order up.", _ORDER),
    Tool("write", "Change an order in the database.", {"change": Argument("the change", WISHES), **_ORDER}),
    Tool("restart", "Ask the customer to restart the device."),
    Tool("deny", "Deny the wish. It ends the conversation.", {"reason": Argument("the first that holds", REASONS)}),
    Tool("done", "End the conversation: the wish is fulfilled."),
)


class Params(NamedTuple):
    """A customer; int32 and bool."""

    pin: Any
    honest: Any
    """Whether the customer knows the PIN."""
    gold: Any
    temper: Any
    wish: Any
    order: Any
    """Order that is meant, from 0."""
    fixable: Any
    """Whether a restart mends the device."""
    items: Any
    """``(3,)``, all different."""
    statuses: Any
    days: Any
    """Days since delivery, ``(3,)``."""
    late: Any
    """Days late, ``(3,)``."""
    final: Any
    """Whether the sale was final, ``(3,)``."""


class State(NamedTuple):
    """A conversation; int32 and bool."""

    checked: Any
    """Whether the PIN was asked for."""
    wish_known: Any
    told: Any
    """Order last named by the customer, -1 for none."""
    seen: Any
    """Orders looked up, ``(3,)``."""
    changed: Any
    """Changes written, ``(3, 5)``: order and wish."""
    restarted: Any
    breach: Any
    """Whether the policy's order of things was broken."""
    turns: Any
    last: Any
    """Last action, -1 at first."""
    ending: Any
    """0 running, 1 done, 2 denied, 3 the customer left."""
    reason: Any
    """Number of the reason given, -1 for none."""


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
                f"{card.id}: difficulty is 1 or 2, or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.all_customers = difficulty == 2
        self.thrifty = card.settings.get("reward") == "thrifty"
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = self.box(0.0, 1.0, (sum(part.size for part in self.observation_components()),))
        self.reward_space = self.box(0.0, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a customer and three orders from one draw. About a fifth of the wishes must be denied."""
        bits = jax.random.bits(key, (12 + 5 * ORDERS,), jnp.uint32)

        def below(number: int, count: int) -> jax.Array:
            return (bits[number] % np.uint32(count)).astype(jnp.int32)

        wish, order = below(4, len(WISHES)), below(5, ORDERS)
        rows = bits[12:].reshape(5, ORDERS)
        fitting = jnp.asarray(np.array([0, 2, 0, 1, 2], np.int32))[wish]
        statuses = (rows[1] % 4).astype(jnp.int32)
        meant = jnp.arange(ORDERS) == order
        first, step = below(8, len(ITEMS)), 1 + below(9, 2)  # steps of 1 and 2 give three different items of six
        return Params(
            pin=2 * (500 + below(0, 4500)) + jnp.asarray(split, jnp.int32),
            honest=(below(1, 16) > 0) if self.all_customers else jnp.bool_(True),
            gold=below(2, 3) == 0,
            temper=below(3, len(TEMPERS)) if self.all_customers else jnp.int32(0),
            wish=wish,
            order=order,
            fixable=below(6, 4) == 0,
            items=(first + step * jnp.arange(ORDERS)) % len(ITEMS),
            statuses=jnp.where(meant & (below(7, 16) > 0), fitting, statuses),
            days=(1 + rows[2] % jnp.where(meant & (below(10, 4) > 0), 30, 120).astype(jnp.uint32)).astype(jnp.int32),
            late=jnp.where(meant & (below(11, 4) > 0), 6 + rows[3] % 6, rows[3] % 12).astype(jnp.int32),
            final=rows[4] % 8 == 0,
        )

    def verdict(self, params: Params) -> jax.Array:
        """Return the number of the reason for which the policy denies the wish, -1 if it grants it."""
        status, days, late = (part[params.order] for part in (params.statuses, params.days, params.late))
        final = params.final[params.order]
        fitting = jnp.asarray(np.array([0, 2, 0, 1, 2], np.int32))[params.wish]
        too_late = ((params.wish == 1) & (days > jnp.where(params.gold, 60, 30))) | ((params.wish == 4) & (days > 90))
        early = (params.wish == 3) & (late < jnp.where(params.gold, 3, 6))
        reason = jnp.int32(-1)
        for holds, name in (
            (early, "not_late_enough"),
            (too_late, "too_late"),
            ((params.wish == 1) & final, "final_sale"),
            (status != fitting, "wrong_status"),
            (~params.honest, "not_verified"),
        ):
            reason = jnp.where(holds, REASONS.index(name), reason)
        return reason.astype(jnp.int32)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin with the customer's first sentence."""
        no, none = jnp.bool_(False), jnp.int32(-1)
        return State(
            checked=no,
            wish_known=params.temper == 0,
            told=none,
            seen=jnp.zeros(ORDERS, bool),
            changed=jnp.zeros((ORDERS, len(WISHES)), bool),
            restarted=no,
            breach=no,
            turns=jnp.int32(0),
            last=none,
            ending=jnp.int32(0),
            reason=none,
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Carry out the action; the customer answers, acts, or leaves."""
        action = action.astype(jnp.int32)
        orders, wishes = jnp.arange(ORDERS), jnp.arange(len(WISHES))
        looks = (action >= LOOK_UP) & (action < WRITE)
        writes = (action >= WRITE) & (action < RESTART)
        order, wish = (action - WRITE) % ORDERS, (action - WRITE) // ORDERS
        turns = state.turns + 1
        denies = (action >= DENY) & (action < DONE)
        patience = jnp.where(params.temper == TEMPERS.index("impatient"), PATIENCE, TURNS)
        ending = jnp.where(action == DONE, 1, jnp.where(denies, 2, jnp.where(turns >= patience, 3, 0)))
        confused = (params.temper == TEMPERS.index("confused")) & (state.told < 0)
        named = jnp.where(confused, (params.order + 1) % ORDERS, params.order)
        verified = state.checked & params.honest
        hasty = writes & (wish == WISHES.index("replace")) & ~state.restarted
        return State(
            checked=state.checked | (action == ASK_PIN),
            wish_known=state.wish_known | (action == ASK_WISH),
            told=jnp.where(action == ASK_ORDER, named, state.told).astype(jnp.int32),
            seen=state.seen | (looks & (orders == action - LOOK_UP)),
            changed=state.changed | (writes & (orders[:, None] == order) & (wishes[None] == wish)),
            restarted=state.restarted | (action == RESTART),
            breach=state.breach | ((looks | writes) & ~verified) | hasty,
            turns=turns,
            last=action,
            ending=ending.astype(jnp.int32),
            reason=jnp.where(denies, action - DENY, -1).astype(jnp.int32),
        )

    def solved(self, state: State, params: Params) -> jax.Array:
        """Judge the conversation: database, end, and order of things."""
        reason = self.verdict(params)
        mended = (params.wish == WISHES.index("replace")) & params.fixable
        granted = (reason < 0) & ~mended
        meant = (jnp.arange(ORDERS)[:, None] == params.order) & (jnp.arange(len(WISHES))[None] == params.wish)
        end = jnp.where(reason < 0, state.ending == 1, (state.ending == 2) & (state.reason == reason))
        careful = state.checked & ~state.breach & (state.seen[params.order] | ~params.honest)
        restarted = state.restarted | ~(mended & (reason < 0))
        return end & careful & restarted & (state.changed == (meant & granted)).all()

    def least(self, params: Params) -> jax.Array:
        """Return the fewest actions of an agent who checks everything."""
        reason = self.verdict(params)
        confused = (params.temper == TEMPERS.index("confused")).astype(jnp.int32)
        device = params.wish == WISHES.index("replace")
        grant = jnp.where(device, 2 - params.fixable.astype(jnp.int32), 1)
        honest = 4 + (params.temper != 0) + 2 * confused + jnp.where(reason < 0, grant, 0)
        return jnp.where(params.honest, honest, 2).astype(jnp.int32)

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return 1 for the right end, less for many actions if those count."""
        factor: Any = 1
        if self.thrifty:
            factor = thrift(next_state.turns.astype(self.dtype), self.least(params).astype(self.dtype))
        return jnp.where(self.solved(next_state, params), factor, 0).astype(self.dtype)

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
        """Return last action, what was said, rows and turns; ``(97,)``."""
        seen = state.seen
        light = state.restarted & (params.wish == WISHES.index("replace"))
        blocks = [
            jnp.arange(len(ACTIONS)) == state.last,
            jnp.stack([state.checked & params.honest, state.checked & ~params.honest]),
            state.wish_known & (jnp.arange(len(WISHES)) == params.wish),
            state.wish_known & (jnp.arange(len(ITEMS)) == params.items[params.order]),
            jnp.arange(ORDERS) == state.told,
            (state.checked & params.honest & params.gold)[None],
            (seen[:, None] & (params.items[:, None] == jnp.arange(len(ITEMS)))).ravel(),
            (seen[:, None] & (params.statuses[:, None] == jnp.arange(len(STATUSES)))).ravel(),
            seen * params.days / 120,
            seen * params.late / 12,
            seen & params.final,
            state.changed.ravel(),
            jnp.stack([light & params.fixable, light & ~params.fixable]),
            (state.turns / TURNS)[None],
        ]
        return jnp.concatenate([block.astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """List the blocks of the observation."""
        return (
            Component("last", "last action, one-hot", shape=(len(ACTIONS),)),
            Component("pin", "whether the PIN was right, whether it was wrong", shape=(2,)),
            Component("wish", f"wish if told, one-hot: {', '.join(WISHES)}", shape=(len(WISHES),)),
            Component("item", f"item of the wish if told, one-hot: {', '.join(ITEMS)}", shape=(len(ITEMS),)),
            Component("order", "order last named by the customer, one-hot", shape=(ORDERS,)),
            Component("gold", "whether the customer is known to be gold"),
            Component("row_item", "[order looked up]: item, one-hot", shape=(ORDERS, len(ITEMS))),
            Component("row_status", f"[order]: status, one-hot: {', '.join(STATUSES)}", shape=(ORDERS, len(STATUSES))),
            Component("row_days", "[order]: days since delivery", "120 days", (ORDERS,), 120),
            Component("row_late", "[order]: days late", "12 days", (ORDERS,), 12),
            Component("row_final", "[order]: whether the sale was final", shape=(ORDERS,)),
            Component("changed", "[order, wish]: whether it was written", shape=(ORDERS, len(WISHES))),
            Component("light", "after a restart: whether the light is green, whether it is red", shape=(2,)),
            Component("turns", "turns used", f"{TURNS} turns", scale=TURNS),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the actions."""
        orders = range(1, ORDERS + 1)
        found = {name: f"ask the customer for the {name.removeprefix('ask_')}" for name in ACTIONS[:LOOK_UP]}
        found |= {f"look_up_{order}": f"look order {order} up in the database" for order in orders}
        found |= {f"{wish}_{n}": f"write to the database: {wish} order {n}" for wish in WISHES for n in orders}
        found["restart"] = "have the customer restart the device"
        found |= {f"deny_{reason}": f"deny the wish, for {reason.replace('_', ' ')}" for reason in REASONS}
        found["done"] = "end the conversation"
        return singles(found)

    # -- host side -----------------------------------------------------------------------------------------------------

    def rules(self) -> str:
        """Return the policy and the tools."""
        return "\n".join([
            "You are at the service desk of a shop. A customer has three orders, and one wish for one of them. Act by "
            "this policy; the database does not check it.",
            POLICY,
            *(tool.line() for tool in TOOLS),
        ])  # fmt: skip

    def describe(self, state: State, params: Params) -> str:
        """Describe what was said last, and everything known."""
        return "\n\n".join([self._said(state, params), self._known(state, params)])

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe everything at first, then what was said last."""
        return self.describe(state, params) if before is None else self._said(state, params)

    def _wish(self, params: Params) -> str:
        item = ITEMS[int(params.items[int(params.order)])]
        return (
            f"Please cancel my order of the {item}.",
            f"I want to return the {item}.",
            f"Please send the {item} to another address.",
            f"The {item} is late. I want to be compensated.",
            f"The light of the {item} is red. I want a new one.",
        )[int(params.wish)]

    def _said(self, state: State, params: Params) -> str:
        last, order = int(state.last), int(state.told) + 1
        if last < 0:
            return f"Customer: {self._wish(params) if int(params.temper) == 0 else 'Hello, I need help with an order.'}"
        if last == ASK_PIN:
            fits = "It is right" if params.honest else "It is wrong"
            gold = ", and the customer is gold" if params.honest and params.gold else ""
            pin = int(params.pin) if params.honest else 10_999 - int(params.pin)
            said = f"Customer: My PIN is {pin}.\nSystem: {fits}{gold}."
        elif last == ASK_WISH:
            said = f"Customer: {self._wish(params)}"
        elif last == ASK_ORDER:
            said = f"Customer: It is order {order}."
        elif last < WRITE:
            said = self._row(last - LOOK_UP, params)
        elif last < RESTART:
            wish, number = divmod(last - WRITE, ORDERS)
            said = f"System: {WISHES[wish]} is written to order {number + 1}."
        elif last == RESTART:
            light = "green" if params.fixable else "still red"
            device = int(params.wish) == WISHES.index("replace")
            said = f"Customer: I have restarted it. The light is {light}." if device else "Customer: Restart what?"
        else:
            said = "You ended the conversation."
        return f"{said}\nThe customer has left." if int(state.ending) == 3 else said

    def _row(self, order: int, params: Params) -> str:
        status = STATUSES[int(params.statuses[order])]
        days = f", {int(params.days[order])} days ago" if status == "delivered" else ""
        late = f", {int(params.late[order])} days late" if status == "shipped" else ""
        final = ", final sale" if params.final[order] else ""
        return f"Order {order + 1}: {ITEMS[int(params.items[order])]}, {status}{days}{late}{final}."

    def _known(self, state: State, params: Params) -> str:
        lines = [f"Turns used: {int(state.turns)}."]
        if state.checked:
            lines.append(f"The PIN is {'right' if params.honest else 'wrong'}.")
            if params.honest and params.gold:
                lines.append("The customer is gold.")
        if state.wish_known:
            lines.append(f"Wish: {self._wish(params)}")
        if int(state.told) >= 0:
            lines.append(f"The customer named order {int(state.told) + 1}.")
        lines += [self._row(order, params) for order in range(ORDERS) if state.seen[order]]
        lines += [f"Written to order {o + 1}: {WISHES[w]}." for o, w in np.argwhere(np.asarray(state.changed))]
        return "\n".join(lines)

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools."""
        return [tool.schema() for tool in TOOLS]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return 'Answer with one call: {"name": "ask", "arguments": {"what": "pin"}}, or a line: ask(what=pin)'

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a call.

        Raises:
            ValueError: the text is no call of one of the tools.
        """
        tool, given = read_tool_call(TOOLS, text)
        number = {
            "ask": given.get("what", 0),
            "look_up": LOOK_UP + given.get("order", 1) - 1,
            "write": WRITE + ORDERS * given.get("change", 0) + given.get("order", 1) - 1,
            "restart": RESTART,
            "deny": DENY + given.get("reason", 0),
            "done": DONE,
        }[tool.name]
        return np.array(number, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the call as JSON."""
        number = int(action)
        if number < LOOK_UP:
            return TOOLS[0].call(what=number)
        if number < WRITE:
            return TOOLS[1].call(order=number - LOOK_UP + 1)
        if number < RESTART:
            change, order = divmod(number - WRITE, ORDERS)
            return TOOLS[2].call(change=change, order=order + 1)
        if DENY <= number < DONE:
            return TOOLS[4].call(reason=number - DENY)
        return TOOLS[5 if number == DONE else 3].call()

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
        return page(self.card.name, status, [self._said(state, params), "", self._known(state, params)])


class Clerk(eqx.Module):
    """The reference player: it asks for what is not known yet, looks the order up, and acts by the policy.

    It uses only what was said and shown.
    """

    task: ServiceDesk = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: ServiceDesk) -> Clerk:
        """Make the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first step that is still missing."""
        state, params = view.state, view.params
        told = jnp.maximum(state.told, 0)
        wrong = params.items[told] != params.items[params.order]  # the row shows another item than the wish
        reason = self.task.verdict(params)
        device = params.wish == WISHES.index("replace")
        written = state.changed[params.order, params.wish]
        mended = device & params.fixable
        steps = (
            (~state.checked, ASK_PIN),
            (~params.honest, DENY + REASONS.index("not_verified")),
            (~state.wish_known, ASK_WISH),
            (state.told < 0, ASK_ORDER),
            (~state.seen[told], LOOK_UP + told),
            (wrong, ASK_ORDER),
            (reason >= 0, DENY + reason),
            (device & ~state.restarted, RESTART),
            (~mended & ~written, WRITE + ORDERS * params.wish + params.order),
        )
        action = jnp.int32(DONE)
        for missing, step in reversed(steps):
            action = jnp.where(missing, step, action).astype(jnp.int32)
        return action, memory
