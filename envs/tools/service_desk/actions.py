"""Actions of the service desk: their names, their numbers, and the tools that carry them out."""

from __future__ import annotations

from ..shared.tool import Argument, Tool
from .policy import CHANGES, ORDERS, REASONS

ACTIONS = (
    "wait",
    "ask_pin",
    "ask_wish",
    "ask_order",
    *(f"{verb}_{order}" for verb in ("look_up", *CHANGES) for order in range(1, ORDERS + 1)),
    "restart",
    *(f"deny_{reason}" for reason in REASONS),
    "done",
)
WAIT, ASK_PIN, ASK_WISH, ASK_ORDER, LOOK_UP = range(5)
"""First number of each kind of action; orders are looked up in turn."""
WRITE = LOOK_UP + ORDERS
"""First action that writes a change, of each change for each order."""
RESTART = WRITE + ORDERS * len(CHANGES)
DENY = RESTART + 1
"""First action that denies; the others follow in the order of ``REASONS``."""
DONE = DENY + len(REASONS)
_ORDER = {"order": Argument("number of the order", low=1, high=ORDERS)}
TOOLS = (
    Tool("wait", "Say nothing. A turn passes."),
    Tool(
        "ask", "Ask the customer.", {"what": Argument("what to ask for", ("pin", "wish", "order"))}
    ),
    Tool("look_up", "Look an order up.", _ORDER),
    Tool(
        "write",
        "Change an order in the database.",
        {"change": Argument("the change", CHANGES), **_ORDER},
    ),
    Tool("restart", "Ask the customer to restart the device."),
    Tool(
        "deny",
        "Deny the wish. It ends the conversation.",
        {"reason": Argument("the first that holds", REASONS)},
    ),
    Tool("done", "End the conversation: the wish is fulfilled."),
)
FIRST_OF_TOOL = (WAIT, ASK_PIN, LOOK_UP, WRITE, RESTART, DENY, DONE)
"""First action of each tool."""
