"""The office a second time, in plain Python.

Its APIs follow their documentation, its judge the specifications.

Nothing here is taken from the task's own functions: rows become dicts and tuples, sets become
Python sets.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

INCOMING, OUTGOING = 1, 2
OPEN, PAID, DECLINED, WITHDRAWN = 1, 2, 3, 4


@dataclass
class Office:
    contacts: dict[int, dict[str, int]] = field(default_factory=dict)
    events: dict[int, dict[str, Any]] = field(default_factory=dict)
    requests: dict[int, list[int]] = field(default_factory=dict)
    transfers: list[tuple[int, int, int]] = field(default_factory=list)
    balance: int = 0
    savings: int = 0

    @classmethod
    def of(cls, world: Any) -> Office:
        """Read the office from the task's tables."""
        w = world
        return cls(
            {
                i + 1: {"name": int(w.name[i]), "city": int(w.city[i]),
                        "relation": int(w.relation[i]), "phone": int(w.phone[i])}
                for i in range(12) if w.name[i]
            },
            {
                i + 1: {"title": int(w.title[i]), "time": int(w.time[i]), "place": int(w.place[i]),
                        "guests": {k + 1 for k in range(12) if int(w.guests[i]) >> k & 1}}
                for i in range(10) if w.title[i]
            },
            {
                i + 1: [int(w.request_contact[i]), int(w.request_amount[i]),
                        int(w.request_direction[i]), int(w.request_status[i])]
                for i in range(10) if w.request_contact[i]
            },
            [
                (int(w.transfer_contact[i]), int(w.transfer_amount[i]),
                 int(w.transfer_direction[i]))
                for i in range(10) if w.transfer_contact[i]
            ],
            int(w.balance),
            int(w.savings),
        )  # fmt: skip

    def sheet(self) -> Any:
        """Return a value to compare, without the order of requests and transfers."""
        requests = Counter(map(tuple, self.requests.values()))
        return (
            self.contacts,
            self.events,
            requests,
            Counter(self.transfers),
            self.balance,
            self.savings,
        )

    def copy(self) -> Office:
        return copy.deepcopy(self)

    def times(self) -> set[int]:
        return {event["time"] for event in self.events.values()}

    def day(self, day: int) -> set[int]:
        """Return the six times of a day."""
        return set(range(6 * day - 5, 6 * day + 1))

    # -- the calls that change something; each gives the name of its error, or None ----------------

    def call(self, name: str, /, **a: int) -> str | None:
        app, verb = name.split(".")
        needs_contact = (
            "contact" in a and app in ("contacts", "payments") and verb != "list_transfers"
        )
        if needs_contact and a["contact"] not in self.contacts:
            return "not_found"
        if "event" in a and a["event"] not in self.events:
            return "not_found"
        if "request" in a and verb != "request":
            if a["request"] not in self.requests:
                return "not_found"
            if self.requests[a["request"]][2] != (
                OUTGOING if verb == "withdraw_request" else INCOMING
            ):
                return "wrong_direction"
            if self.requests[a["request"]][3] != OPEN:
                return "not_open"
        act = getattr(self, f"_{app}_{verb}", None)
        return act(**a) if act else None

    def _contacts_set_phone(self, contact: int, phone: int) -> None:
        self.contacts[contact]["phone"] = phone

    def _contacts_set_city(self, contact: int, city: int) -> None:
        self.contacts[contact]["city"] = city

    def _contacts_add(self, name: int, phone: int) -> None:
        row = min(set(range(1, 13)) - self.contacts.keys())
        self.contacts[row] = {"name": name, "city": 0, "relation": 0, "phone": phone}

    def _contacts_delete(self, contact: int) -> None:
        del self.contacts[contact]

    def _calendar_create(self, title: int, time: int) -> str | None:
        if time in self.times():
            return "time_taken"
        row = min(set(range(1, 11)) - self.events.keys())
        self.events[row] = {"title": title, "time": time, "place": 0, "guests": set()}
        return None

    def _calendar_cancel(self, event: int) -> None:
        del self.events[event]

    def _calendar_move(self, event: int, time: int) -> str | None:
        if self.events[event]["time"] == time:
            return "already_so"
        if time in self.times():
            return "time_taken"
        self.events[event]["time"] = time
        return None

    def _calendar_set_place(self, event: int, place: int) -> None:
        self.events[event]["place"] = place

    def _calendar_invite(self, event: int, contact: int) -> str | None:
        if contact not in self.contacts:
            return "not_found"
        if contact in self.events[event]["guests"]:
            return "already_so"
        self.events[event]["guests"].add(contact)
        return None

    def _calendar_uninvite(self, event: int, contact: int) -> str | None:
        if contact not in self.events[event]["guests"]:
            return "already_so"
        self.events[event]["guests"].remove(contact)
        return None

    def _payments_send(self, contact: int, amount: int) -> str | None:
        if amount > self.balance:
            return "insufficient_funds"
        self.balance -= amount
        self.transfers.append((contact, amount, OUTGOING))
        return None

    def _payments_request(self, contact: int, amount: int) -> None:
        row = min(set(range(1, 11)) - self.requests.keys())
        self.requests[row] = [contact, amount, OUTGOING, OPEN]

    def _payments_pay_request(self, request: int) -> str | None:
        contact, amount, _, _ = self.requests[request]
        error = self._payments_send(contact, amount)
        if error is None:
            self.requests[request][3] = PAID
        return error

    def _payments_decline_request(self, request: int) -> None:
        self.requests[request][3] = DECLINED

    def _payments_withdraw_request(self, request: int) -> None:
        self.requests[request][3] = WITHDRAWN

    def _payments_save(self, amount: int) -> str | None:
        if amount > self.balance:
            return "insufficient_funds"
        self.balance, self.savings = self.balance - amount, self.savings + amount
        return None

    def _payments_use_savings(self, amount: int) -> str | None:
        if amount > self.savings:
            return "insufficient_funds"
        self.balance, self.savings = self.balance + amount, self.savings - amount
        return None


# -- the judge -------------------------------------------------------------------------------------


@dataclass
class Verdict:
    """Demands of an instruction on an office.

    They are a reason to refuse, or the offices to end in and a number to answer.
    """

    reason: str | None
    goals: list[Office]
    answer: int = 0


PERSON = {"pay_by_name", "pay_back", "withdraw_request", "tell_phone", "delete_contact",
          "settle_debts", "pay_with_savings", "schedule", "return_money", "guest_is_ill",
          "total_owed"}  # fmt: skip
EVENT = {"move_to_day", "change_place", "invite_city", "split_bill"}


def verdict(template: str, start: Office, ask: Any) -> Verdict:  # noqa: PLR0912, PLR0915  (a case a template)
    """Return the verdict by the rules and the template's specification.

    All reasons that hold must be one.
    """
    a = {name: int(value) for name, value in ask._asdict().items()}
    end, reasons = start.copy(), []
    people, events = sorted(start.contacts), sorted(start.events)
    who = event = 0
    if template in PERSON:
        namesakes = [i for i in people if start.contacts[i]["name"] == a["name"]]
        if a["city"]:
            namesakes = [i for i in namesakes if start.contacts[i]["city"] == a["city"]]
        reasons += clarity(namesakes)
        who = namesakes[0] if len(namesakes) == 1 else 0
    if template == "phone_by_relation":
        namesakes = [i for i in people if start.contacts[i]["relation"] == a["relation"]]
        reasons += clarity(namesakes)
        who = namesakes[0] if len(namesakes) == 1 else 0
    if template in EVENT:
        titled = [i for i in events if start.events[i]["title"] == a["title"]]
        reasons += [] if titled else ["no_such_event"]
        event = titled[0] if titled else 0
    if reasons:
        (reason,) = reasons
        return Verdict(reason, [start])

    answer, goals = 0, [end]
    payments: list[int] = []
    money = start.balance
    open_requests = [i for i, r in start.requests.items() if r[0] == who and r[3] == OPEN]
    match template:
        case "pay_contact" | "pay_by_name" | "pay_with_savings":
            who = who or a["contact"]
            payments = [a["number"]]
            if template == "pay_with_savings":
                money += start.savings
                gap = max(a["number"] - start.balance, 0)
                end.savings, end.balance = end.savings - gap, end.balance + gap
            end.balance -= a["number"]
            end.transfers.append((who, a["number"], OUTGOING))
        case "return_money":
            (amount,) = [n for c, n, d in start.transfers if c == who and d == INCOMING]
            payments = [amount]
            end.balance -= amount
            end.transfers.append((who, amount, OUTGOING))
        case "pay_request" | "pay_back" | "settle_debts":
            rows = (
                [i for i in open_requests if start.requests[i][2] == INCOMING]
                if who
                else [a["request"]]
            )
            assert len(rows) == (2 if template == "settle_debts" else 1)
            for row in rows:
                payments.append(start.requests[row][1])
                end.requests[row][3] = PAID
                end.balance -= payments[-1]
                end.transfers.append((start.requests[row][0], payments[-1], OUTGOING))
        case "decline_request":
            assert start.requests[a["request"]][2:] == [INCOMING, OPEN]
            end.requests[a["request"]][3] = DECLINED
        case "withdraw_request":
            (row,) = [i for i in open_requests if start.requests[i][2] == OUTGOING]
            end.requests[row][3] = WITHDRAWN
        case "ask_for_money":
            end.requests[99] = [a["contact"], a["number"], OUTGOING, OPEN]
        case "cancel_event":
            del end.events[a["event"]]
        case "invite_contact":
            assert a["contact"] not in start.events[a["event"]]["guests"]
            end.events[a["event"]]["guests"].add(a["contact"])
        case "move_event":
            if a["number"] in start.times():
                reasons.append("no_free_time")
            end.events[a["event"]]["time"] = a["number"]
        case "move_to_day":
            free = sorted(start.day(a["day"]) - start.times())
            assert start.events[event]["time"] not in start.day(a["day"])
            if not free:
                reasons.append("no_free_time")
            else:
                end.events[event]["time"] = free[0]
        case "change_place":
            assert start.events[event]["place"] != a["place"]
            end.events[event]["place"] = a["place"]
        case "change_phone" | "phone_by_relation":
            end.contacts[who or a["contact"]]["phone"] = a["number"]
        case "tell_phone":
            answer = start.contacts[who]["phone"]
        case "delete_contact":
            del end.contacts[who]
        case "invite_city":
            dwellers = {i for i in people if start.contacts[i]["city"] == a["city"]}
            assert dwellers - start.events[event]["guests"]
            end.events[event]["guests"] |= dwellers
        case "split_bill":
            guests = start.events[event]["guests"]
            share, remainder = divmod(a["number"], len(guests) + 1)
            assert guests
            assert remainder == 0
            for guest in guests:
                end.requests[100 + guest] = [guest, share, OUTGOING, OPEN]
        case "cancel_duplicate":
            event_a, event_b = [i for i in events if start.events[i]["title"] == a["title"]]
            del end.events[max(event_a, event_b, key=lambda i: start.events[i]["time"])]
        case "schedule":
            assert all(event["title"] != a["title"] for event in start.events.values())
            free = sorted(start.day(a["day"]) - start.times())
            row = min(set(range(1, 11)) - start.events.keys())
            goals = []
            for time in free:
                goals.append(start.copy())
                goals[-1].events[row] = {
                    "title": a["title"],
                    "time": time,
                    "place": 0,
                    "guests": {who},
                }
            if not free:
                reasons.append("no_free_time")
        case "clear_day":
            gone = [i for i in events if start.events[i]["time"] in start.day(a["day"])]
            gone = [i for i in gone if start.events[i]["title"] != a["title"]]
            assert len(gone) >= 2
            for i in gone:
                del end.events[i]
        case "guest_is_ill":
            for event in end.events.values():
                if event["time"] in start.day(a["day"]):
                    event["guests"].discard(who)
        case "total_owed":
            answer = sum(
                start.requests[i][1] for i in open_requests if start.requests[i][2] == OUTGOING
            )
        case _:
            raise AssertionError(f"no specification of {template} here")
    if any(amount > a["limit"] for amount in payments):
        reasons.append("over_limit")
    if sum(payments) > money:
        reasons.append("insufficient_funds")
    if reasons:
        # over_limit is said first: it needs no look at money.
        return Verdict(sorted(reasons, reverse=True)[0], [start])
    return Verdict(None, goals, answer)


def clarity(namesakes: list[int]) -> list[str]:
    """Name the faults of a description that fits these contacts."""
    return {0: ["no_such_contact"], 1: []}.get(len(namesakes), ["ambiguous_contact"])


def is_success(
    decision: Verdict, end: Office, ending: str, reply: int, reasons: dict[str, int]
) -> bool:
    """Return whether an episode that ended so is a success."""
    if all(end.sheet() != office.sheet() for office in decision.goals):
        return False
    if decision.reason:
        return ending == "refused" and reply == reasons[decision.reason]
    return (
        (ending == "answered" and reply == decision.answer)
        if decision.answer
        else ending == "finished"
    )
