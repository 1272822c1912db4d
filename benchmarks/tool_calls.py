"""Measure calls a second of the tool worlds in their text view, resets included.

    python benchmarks/tool_calls.py

A language model's call costs the reading of the reply, the step, and the words of the answer. One environment plays a
fixed cycle of calls, most of which are understood.
"""

from __future__ import annotations

import time

import gymnasium

import rlbench_suite  # noqa: F401  (registers the ids)

SECONDS = 3.0
CALLS = {
    "OfficeApps-v0": (
        "contacts.list()",
        "calendar.list_day(day=monday)",
        "payments.balance()",
        "payments.list_requests()",
    ),
    "OfficeAppsLarge-v0": (
        "contacts_find(first=Ana)",
        "calendar_list_day(day=Mon)",
        "payments_balance()",
        "mail_list(folder=inbox)",
        "music_of_genre(genre=jazz)",
        "shop_put_in_cart(product=7, quantity=1)",
    ),
    "Routing-v0": ("answer()", "ask(expert=Ada)", "ask(expert=Bruno)"),
    "SQL-v1": ("schema", "run SELECT 1 + 1 AS two", "run SELECT name FROM products", "run SELECT name FROM books"),
    "Interpreter-v0": (
        "run\na = read; write a; goto 1",
        "run\nif left == 0 goto 5; a = read; b = b + a; goto 1; write b",
    ),
    "Search-v1": ("search(person=Barano, relation=heir, page=1)", "judge(document=1, label=current)"),
    "ServiceDesk-v1": ("ask(what=pin)", "ask(what=wish)", "ask(what=order)", "look_up(order=1)", "look_up(order=2)"),
}


def calls_per_second(name: str, calls: tuple[str, ...]) -> float:
    """Play the cycle of calls for some seconds."""
    env = gymnasium.make(f"rlsuite/{name}", view="text")
    env.reset(seed=0)
    env.step(calls[0])  # compile
    env.reset()
    made, begun = 0, time.perf_counter()
    while (spent := time.perf_counter() - begun) < SECONDS:
        *_, terminated, truncated, _ = env.step(calls[made % len(calls)])
        made += 1
        if terminated or truncated:
            env.reset()
    return made / spent


if __name__ == "__main__":
    for name, calls in CALLS.items():
        print(f"{name:15} {calls_per_second(name, calls):8,.0f} calls/s")
