"""The policy of the shop of ``service_desk.py``: one rule for each wish.

The rules are there as data, as columns of arrays, and in words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

ORDERS = 3
ITEMS = ("router", "lamp", "kettle", "tent", "scale", "radio")
STATUSES = ("processing", "shipped", "delivered", "cancelled")
REASONS = ("not_verified", "wrong_status", "final_sale", "too_late", "not_late_enough")
TEMPERS = ("clear", "vague", "confused", "impatient")


class Days(NamedTuple):
    """A limit in days, which is another one for gold customers."""

    plain: int
    gold: int


NO_LIMIT = int(np.iinfo(np.int32).max)


class Rule(NamedTuple):
    """Conditions on an order under which the policy grants a wish."""

    wish: str
    status: str
    """Status that the order must have"""
    sampled_reasons: tuple[str, str, str, str]
    """Reasons to deny that are sampled for this wish, equally likely.

    Reasons that are sampled more often are repeated.
    """
    not_final_sale: bool = False
    days: Days = Days(NO_LIMIT, gold=NO_LIMIT)
    """Days since delivery up to which the wish is granted in full"""
    credit_days: int = 0
    """Further days up to which credit is granted instead"""
    days_late: Days = Days(0, gold=0)
    """Days late from which the wish is granted"""

    @property
    def last_day(self) -> Days:
        """The last day since delivery on which the policy grants something."""
        return Days(self.days.plain + self.credit_days, self.days.gold + self.credit_days)


_CANCEL = Rule(
    "cancel",
    "processing",
    ("wrong_status", "wrong_status", "final_sale", "final_sale"),
    not_final_sale=True,
)
_RETURN = Rule(
    "return",
    "delivered",
    ("final_sale", "too_late", "too_late", "too_late"),
    not_final_sale=True,
    days=Days(30, gold=60),
    credit_days=30,
)
_REDIRECT = _CANCEL._replace(wish="redirect")
_COMPENSATE = Rule(
    "compensate",
    "shipped",
    ("wrong_status", "not_late_enough", "not_late_enough", "not_late_enough"),
    days_late=Days(6, gold=3),
)
_REPLACE = Rule(
    "replace",
    "delivered",
    ("wrong_status", "too_late", "too_late", "too_late"),
    days=Days(90, gold=90),
)
RULES = (_CANCEL, _RETURN, _REDIRECT, _COMPENSATE, _REPLACE)
WISHES = tuple(rule.wish for rule in RULES)
RETURN, COMPENSATE, REPLACE = (RULES.index(rule) for rule in (_RETURN, _COMPENSATE, _REPLACE))
CHANGES = (*WISHES, "credit")
CREDIT = CHANGES.index("credit")
MAX_DAYS = 120
"""Most days since delivery."""
MAX_DAYS_LATE = 12
"""Number of days late that no order reaches."""

# The columns of the table of rules, by the number of the wish; limits also by whether the customer
# is gold.
STATUS_COLUMN = np.array([STATUSES.index(rule.status) for rule in RULES], np.int32)
SAMPLED_REASONS_COLUMN = np.array(
    [[REASONS.index(reason) for reason in rule.sampled_reasons] for rule in RULES], np.int32
)
NOT_FINAL_SALE_COLUMN = np.array([rule.not_final_sale for rule in RULES])
FULL_DAYS_COLUMN = np.array([rule.days for rule in RULES], np.int32)
LAST_DAY_COLUMN = np.array([rule.last_day for rule in RULES], np.int32)
DAYS_LATE_COLUMN = np.array([rule.days_late for rule in RULES], np.int32)


def rule_entry(column: np.ndarray, wish: Any, gold: Any = None) -> jax.Array:
    """Return the entry of a column of the rules for a wish.

    If the column has two, it is the one for the kind of customer.
    """
    entry = jnp.asarray(column)[wish]
    return entry if gold is None else jnp.where(gold, entry[1], entry[0])


_POLICY = """\
1. Check the PIN before you look anything up or write. If it is wrong, deny: not_verified. \
Else look the order up before
   you end the conversation.
2. cancel and redirect: only orders in {cancel.status}; else deny: wrong_status. \
Not of a final sale; else deny: final_sale.
3. return: only {return.status} orders (wrong_status), not of a final sale (final_sale). \
Up to {return.days.plain} days after delivery, for
   gold customers {return.days.gold}, write return; \
up to {return.credit_days} days more, write credit instead; then deny: too_late.
4. compensate: only {compensate.status} orders (wrong_status) that are at least \
{compensate.days_late.plain} days late, for gold customers {compensate.days_late.gold} \
(not_late_enough).
5. replace: only {replace.status} orders (wrong_status), \
at most {replace.days.plain} days after delivery (too_late). First ask the customer to
   restart the device. If the light turns green, you are done, and nothing is replaced.
6. Do what the customer wants, nothing else. Where several reasons hold, \
give the first in the order above."""
POLICY = _POLICY.format(**{rule.wish: rule for rule in RULES})
