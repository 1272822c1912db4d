"""Canonical names for the things of a puzzle whose names do not matter.

Such things are people or predicates, for example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def least_naming(
    count: int,
    look: Callable[[Sequence[int]], Sequence[Any]],
    form: Callable[[Sequence[int]], bytes],
) -> bytes:
    """Return the least form over all ways to number ``count`` things that their looks leave open.

    Things that look different are distinguished, again and again until no more can be (colour
    refinement, Weisfeiler & Leman 1968). Where some still look alike, each of them in turn is set
    apart, and so on.

    Args:
        count: number of things.
        look: what each thing looks like, given how the things are told apart so far: sortable, and
            free of names.
        form: the puzzle as bytes, given a number for each thing; different for different puzzles.
    """
    return _search([0] * count, look, form)


def _search(
    colours: list[int],
    look: Callable[[Sequence[int]], Sequence[Any]],
    form: Callable[[Sequence[int]], bytes],
) -> bytes:
    kinds = 0
    while kinds != (kinds := len(set(colours))):
        looks = list(zip(colours, look(colours), strict=True))
        order = {look_of_colour: number for number, look_of_colour in enumerate(sorted(set(looks)))}
        colours = [order[look_of_colour] for look_of_colour in looks]
    if kinds == len(colours):
        return form(colours)
    shared = min(colour for colour in colours if colours.count(colour) > 1)
    forms = []
    for item, colour in enumerate(colours):
        if colour == shared:
            new_colours = [2 * old_colour + 1 for old_colour in colours]
            new_colours[item] -= 1
            forms.append(_search(new_colours, look, form))
    return min(forms)
