"""Meanings of the observation's blocks and of the action's parts."""

from __future__ import annotations

from collections.abc import Mapping

from rlbench_suite.core.component import Component

from . import columns
from .apps.apis import COLUMN_APIS
from .apps.column_api import Error
from .apps.kinds import KINDS, ActionPart

_ONE_HOT = "one-hot, zeros for none"
MEANINGS = {
    "template": "which of the tier's templates the instruction is made from, one-hot",
    "ask_limit": "most euros that may be spent on it",
    "last_api": f"API of the last call, in the order of the action, {_ONE_HOT}",
    "last_error": (
        f"error of the last call, {_ONE_HOT}: "
        f"{', '.join(error.name.lower() for error in Error if error)}"
    ),
    "known_contacts": "whether each contact was shown",
    "known_relations": "whether the relation to each contact was shown",
    "known_events": "whether each event was shown",
    "note_guests": "[event, contact]: 1 a guest, -1 not one, 0 not known",
    "note_hours": "for each time of the week: 1 taken, -1 free, 0 not known",
    "note_accounts": "whether the accounts are known; balance and savings in parts of 128 euros",
    "asked_requests": "whether the requests were listed",
    "asked_transfers": "whether the transfers of each contact were listed",
}


def blocks(sizes: Mapping[str, int]) -> tuple[Component, ...]:
    """List the blocks of the observation by their names and lengths."""
    return tuple(_block(name, size) for name, size in sizes.items())


def _block(name: str, size: int) -> Component:
    unit = f"{columns.MAX_AMOUNT} euros" if name == "ask_limit" else "1"
    shape = (columns.EVENTS, columns.CONTACTS) if name == "note_guests" else (size,)
    return Component(name, MEANINGS.get(name) or _block_meaning(name), unit, shape)


def _block_meaning(name: str) -> str:
    """Return the meaning of a block that is one of several of its kind."""
    kind, _, block = name.partition("_")
    what = block.replace("_", " ")
    return {
        "ask": f"the {what} that the instruction names, {_ONE_HOT}",
        "last": f"which {what} the last call returned",
        "note": (
            f"{what} of each row that is known, in parts of its largest number; 0 where not known"
        ),
        "asked": f"which {what} were searched for",
    }[kind]


def action_parts() -> tuple[Component, ...]:
    """List the parts of a call; 0 is not given."""
    apis = ", ".join(f"{number} {api.name}" for number, api in enumerate(COLUMN_APIS))
    components = [Component("api", f"which API to call: {apis}")]
    for action_part in ActionPart:
        if action_part != ActionPart.API:
            kinds = ", ".join(
                f"{kind.name} ({kind.meaning})" for kind in KINDS if kind.action_part == action_part
            )
            meaning = f"0 for none, or from 1 on the argument of its kind: {kinds}"
            components.append(Component(action_part.name.lower(), meaning))
    return tuple(components)
