"""The reference player of the kitchen: two roles, and shortest ways.

A role says whence onions and dishes come, and whither they and soups go. Where each cook reaches
everything, a waiter takes dishes first, and a filler onions. In ``forced_coordination`` a supplier
brings onions and dishes to counters, and a chef brings them on. They are better in
``counter_circuit``, too, a ring so narrow that cooks who go round it wait for each other.

In each step a cook with empty hands starts a full pot, takes a dish or takes an onion, as many as
are needed and not on their way. Cooks go the shortest way round each other, and the one who is
farther from the goal gives way.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, FlagArray, Int, IntArray
from rlbench_suite.core.policy import View, privileged_player

from .kitchen import KitchenTask, Params, mirror_action
from .layouts import COUNTER, DISHES, ONIONS, POT, SERVING, Layout, Place
from .rules import COOKING_STEPS, DISH, FULL_POT, INTERACT, NOTHING, ONION, SOUP, Kitchen
from .ways import UNREACHABLE, Ways, find_ways
from .words import read

UNAVAILABLE = 50
"""Steps that a target which is of no use yet counts as farther."""
DETOUR = 3
"""Steps that a way through the cell of the other cook counts as longer."""
COLLISION = 200
"""Cost of a move into the way of the other cook."""
STANDOFF = 2
"""Steps from a target at which a cook waits until it is of use."""
STOCK = 3
"""Onions that a supplier has on counters beyond those that pots lack."""


class Role(NamedTuple):
    """Duties of a cook: flags of the targets, ``(t,)``, and numbers."""

    onions_from: Any
    onions_to: Any
    dishes_from: Any
    dishes_to: Any
    soups_to: Any
    dish_lead: Any
    """Steps before a soup is ready at which a dish comes before an onion."""
    supplies: Any
    """Whether the role is to bring things to counters."""
    fuller: Any
    """Steps that a pot counts as nearer for each onion in it, so that pots are filled in turn."""
    home: Any
    """Cells of the floor where the role is played, ``(floor,)``."""


class Handover(NamedTuple):
    """Counters over which a supplier hands things to a chef."""

    onions: tuple[Place, ...]
    dishes: tuple[Place, ...]
    supplier_home: tuple[Place, ...]
    chef_home: tuple[Place, ...]
    dish_lead: int
    """``dish_lead`` of the chef's role."""
    fuller: int
    """``fuller`` of the chef's role."""


HANDOVERS = {
    "forced_coordination": Handover(
        onions=(Place(1, 2), Place(2, 2), Place(3, 2)),
        dishes=(Place(1, 2), Place(2, 2), Place(3, 2)),
        supplier_home=(Place(1, 1), Place(2, 1), Place(3, 1)),
        chef_home=(Place(1, 3), Place(2, 3), Place(3, 3)),
        dish_lead=0,
        fuller=3,
    ),
    "counter_circuit": Handover(
        onions=(Place(2, 3), Place(2, 4)),
        dishes=(Place(2, 2),),
        supplier_home=tuple(Place(3, column) for column in range(1, 7)),
        chef_home=tuple(Place(1, column) for column in range(1, 7)),
        dish_lead=4,
        fuller=0,
    ),
}


def roles_of(layout: Layout) -> tuple[Role, Role]:
    """Return the two roles of a layout: waiter and filler, or supplier and chef."""
    targets = find_ways(layout).targets

    def of_kind(kind: int) -> FlagArray:
        return np.array([layout.kinds[target] == kind for target in targets])

    def among(places: tuple[Place, ...]) -> FlagArray:
        return np.array([target in places for target in targets])

    def home(places: tuple[Place, ...]) -> FlagArray:
        return np.array([cell in places for cell in layout.floor])

    alone = Role(
        onions_from=of_kind(ONIONS),
        onions_to=of_kind(POT),
        dishes_from=of_kind(DISHES),
        dishes_to=of_kind(POT),
        soups_to=of_kind(SERVING),
        dish_lead=COOKING_STEPS,
        supplies=False,
        fuller=0,
        home=home(tuple(cell for cell in layout.floor if layout.rooms[cell] == 0)),
    )
    handover = HANDOVERS.get(layout.name)
    if handover is None:
        return alone, alone._replace(dish_lead=0, home=home(tuple(layout.floor)))
    supplier = alone._replace(
        onions_to=among(handover.onions),
        dishes_to=among(handover.dishes),
        supplies=True,
        home=home(handover.supplier_home),
    )
    chef = alone._replace(
        onions_from=among(handover.onions),
        dishes_from=among(handover.dishes),
        dish_lead=handover.dish_lead,
        fuller=handover.fuller,
        home=home(handover.chef_home),
    )
    return supplier, chef


@privileged_player
class Team(eqx.Module):
    """Plays the two roles of a layout.

    It reads the kitchen from the state, which the observation shows as flags.
    """

    task: KitchenTask = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: KitchenTask) -> Team:
        """Return the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> Flag:
        """Return whether the first cook has the second role, whose home is then nearer."""
        layout = self.task.layout
        ways = find_ways(layout)
        steps_home = []
        for role in roles_of(layout):
            for cook in params.cooks:
                cell = jnp.asarray(ways.numbers)[cook.row, cook.column]
                steps = jnp.asarray(ways.steps)[cell]
                steps_home.append(jnp.where(role.home, steps, UNREACHABLE).min())
        return steps_home[0] + steps_home[3] > steps_home[1] + steps_home[2]

    def act(self, memory: Flag, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the actions of both cooks, ``(2,)``."""
        actions = team_actions(view.state.kitchen, memory, self.task.layout)
        return jnp.stack([mirror_action(action, view.params) for action in actions]), memory


def team_actions(kitchen: Kitchen, swapped: Flag, layout: Layout) -> tuple[Int, Int]:
    """Return the actions of both cooks, as in the plan.

    Args:
        kitchen: now.
        swapped: whether the first cook has the second role.
        layout: of the kitchen.
    """
    ways = find_ways(layout)
    choose = partial(jnp.where, swapped)
    first_role, second_role = roles_of(layout)
    cells = [jnp.asarray(ways.numbers)[cook.row, cook.column] for cook in kitchen.cooks]
    items = [cook.item for cook in kitchen.cooks]
    errands = []
    for i, pair in enumerate(((second_role, first_role), (first_role, second_role))):
        role = Role(*map(choose, *pair))
        scene = survey(kitchen, i, cells, role, layout)
        errand, item = choose_errand(scene, kitchen.cooks[i].item, items, role)
        errands.append(errand)
        items[i] = item  # so that the other cook does not fetch it, too
    headings = [cook.heading for cook in kitchen.cooks]
    leads = []
    next_cells = []
    for i in range(2):
        action = lead(errands[i], cells[i], headings[i], cells[1 - i], ways)
        leads.append(action)
        move = jnp.where(action == INTERACT, 0, action)
        next_cells.append(jnp.asarray(ways.next_cells)[cells[i], move])
    follows = [
        follow(errands[i], cells[i], headings[i], cells[1 - i], next_cells[1 - i], ways)
        for i in range(2)
    ]
    first_leads = errands[0].cost <= errands[1].cost
    return (
        jnp.where(first_leads, leads[0], follows[0]),
        jnp.where(first_leads, follows[1], leads[1]),
    )


class Scene(NamedTuple):
    """The targets as one cook finds them, ``(t,)`` each."""

    lying: IntArray
    """Item on a counter."""
    onions: IntArray
    """Onions in a pot."""
    missing_steps: IntArray
    """Steps until a soup is ready, far for what does not cook."""
    is_pot: FlagArray
    is_counter: FlagArray
    steps_away: IntArray
    """Steps until the cook can act on it."""
    distances: IntArray
    """The table of distances."""

    @property
    def is_cooking(self) -> FlagArray:
        """Pots that cook or are ready."""
        return self.missing_steps < UNREACHABLE

    @property
    def is_idle(self) -> FlagArray:
        """Pots that do not cook."""
        return self.is_pot & ~self.is_cooking


def survey(kitchen: Kitchen, number: int, cells: list[Int], role: Role, layout: Layout) -> Scene:
    """Return how a cook of a role finds the targets."""
    ways = find_ways(layout)
    pots = dict(zip(layout.pots, kitchen.pots, strict=True))
    lying = []
    onions = []
    missing_steps = []
    for target in ways.targets:
        lying.append(read(kitchen.counters, *target))
        pot = pots.get(target)
        onions.append(pot.onions if pot else jnp.int32(0))
        cooks = (pot.steps >= 0) if pot else jnp.bool_(False)
        missing_steps.append(jnp.where(cooks, COOKING_STEPS - pot.steps if pot else 0, UNREACHABLE))
    kinds = np.array([layout.kinds[target] for target in ways.targets])
    distances = jnp.asarray(ways.distances)
    here = distances[:, cells[number], kitchen.cooks[number].heading]
    return Scene(
        jnp.stack(lying),
        jnp.stack(onions),
        jnp.stack(missing_steps),
        jnp.asarray(kinds == POT),
        jnp.asarray(kinds == COUNTER),
        jnp.minimum(here[cells[1 - number]], here[len(layout.floor)] + DETOUR),
        distances,
    )


class Errand(NamedTuple):
    """A target, and what the cook does there."""

    distances: IntArray
    """Steps to the target from each cell and heading, for each blocked cell."""
    works: Flag
    """Whether the target is of use already."""
    standoff: Int
    """Steps from the target at which the cook waits."""
    cost: Int


def choose_errand(
    scene: Scene, item_in_hand: Int, items: list[Int], role: Role
) -> tuple[Errand, Int]:
    """Return the errand of a cook, and the item in hand after it.

    Args:
        scene: how the cook finds the targets.
        item_in_hand: of the cook.
        items: what both cooks hold, or will hold after an errand that is decided.
        role: of the cook.
    """
    cost, works, item = errand_to_fetch(scene, items, role)
    is_free = scene.lying == NOTHING
    takes_onion = scene.is_idle & (scene.onions < FULL_POT)
    onion_fits = jnp.where(scene.is_counter, is_free, takes_onion)
    onion_cost = cost_of(scene, role.onions_to, onion_fits) - role.fuller * scene.onions
    is_ready = scene.missing_steps <= 0
    dish_fits = jnp.where(scene.is_counter, is_free, is_ready)
    time_to_lift = jnp.maximum(scene.steps_away, scene.missing_steps)
    dish_steps = jnp.where(scene.is_cooking, time_to_lift, scene.steps_away)
    may_wait = dish_fits | scene.is_cooking
    dish_cost = cost_of(scene._replace(steps_away=dish_steps), role.dishes_to, may_wait)
    serving = ~scene.is_counter
    for holds, held_cost, held_works in (
        (item_in_hand == ONION, onion_cost, onion_fits),
        (item_in_hand == DISH, dish_cost, dish_fits),
        (item_in_hand >= SOUP, cost_of(scene, role.soups_to, serving), serving),
    ):
        cost = jnp.where(holds, held_cost, cost)
        works = jnp.where(holds, held_works, works)
    target = jnp.argmin(cost)
    waits_there = works[target] | ((item_in_hand == DISH) & scene.is_cooking[target])
    errand = Errand(
        scene.distances[:, :, :, target],
        works[target],
        jnp.where(waits_there, 0, STANDOFF),
        cost[target],
    )
    return errand, jnp.where(item_in_hand == NOTHING, item, item_in_hand)


def errand_to_fetch(scene: Scene, items: list[Int], role: Role) -> tuple[IntArray, FlagArray, Int]:
    """Return the errand of a cook with empty hands.

    It is the cost of each target, whether each is of use, and the item to be fetched.
    """
    in_pots = jnp.where(scene.is_idle, FULL_POT - scene.onions, 0).sum()
    handed = [
        (places & scene.is_counter & (scene.lying == item)).sum()
        for places, item in ((role.onions_to, ONION), (role.dishes_to, DISH))
    ]
    in_hands = [
        reduce(add, [(hand == item).astype(jnp.int32) for hand in items]) for item in (ONION, DISH)
    ]
    missing_onions = in_pots - in_hands[0] - handed[0]
    dishes = in_hands[1] + handed[1]
    cooking = scene.is_cooking.sum()
    started_pots = (scene.is_pot & (scene.onions > 0)).sum()
    is_full = scene.is_idle & (scene.onions == FULL_POT)
    can_start = is_full & (scene.steps_away < UNREACHABLE) & ~role.supplies
    onion_there = role.onions_from & (~scene.is_counter | (scene.lying == ONION))
    dish_there = role.dishes_from & (~scene.is_counter | (scene.lying == DISH))
    onion_cost = cost_of(scene, role.onions_from, onion_there)
    dish_cost = cost_of(scene, role.dishes_from, dish_there)
    lacks_dish = cooking > dishes
    will_lack_dish = (started_pots > dishes) & (missing_onions <= 0)
    is_urgent = scene.missing_steps.min() <= role.dish_lead
    for_later = jnp.where(
        role.supplies,
        missing_onions + STOCK > 0,
        (cooking > 0) & (in_hands[1] >= cooking) & (in_pots <= in_hands[0]),
    )
    # The last that applies counts; if none does, the cook waits where onions come from.
    fetches_onion = onion_there.any()
    fetches_dish = dish_there.any()
    cost, works, item = onion_cost + UNAVAILABLE, jnp.zeros_like(can_start), jnp.int32(NOTHING)
    for applies, new_cost, new_works, new_item in (
        (fetches_onion & for_later, onion_cost, onion_there, ONION),
        (fetches_dish & will_lack_dish, dish_cost, dish_there, DISH),
        (fetches_dish & lacks_dish, dish_cost, dish_there, DISH),
        (fetches_onion & (missing_onions > 0), onion_cost, onion_there, ONION),
        (fetches_dish & lacks_dish & is_urgent, dish_cost, dish_there, DISH),
        (can_start.any(), cost_of(scene, can_start, can_start), can_start, NOTHING),
    ):
        cost = jnp.where(applies, new_cost, cost)
        works = jnp.where(applies, new_works, works)
        item = jnp.where(applies, new_item, item)
    return cost, works, item


def cost_of(scene: Scene, targets: Any, is_useful: FlagArray) -> IntArray:
    """Return the steps to some targets, with a surcharge for those that are of no use yet."""
    return jnp.where(targets, scene.steps_away + jnp.where(is_useful, 0, UNAVAILABLE), UNREACHABLE)


def lead(errand: Errand, cell: Int, heading: Int, other_cell: Int, ways: Ways) -> Int:
    """Return the action of a cook on an errand to whom the other one gives way."""
    costs = [errand_cost(errand, cell, heading, other_cell, action, ways) for action in range(5)]
    return act_or_move(errand, cell, heading, costs)


def follow(
    errand: Errand, cell: Int, heading: Int, other_cell: Int, other_next: Int, ways: Ways
) -> Int:
    """Return the action of a cook on an errand who gives way to the other one.

    Args:
        errand: of the cook.
        cell: of the cook.
        heading: of the cook.
        other_cell: where the other cook is.
        other_next: where the other cook goes.
        ways: of the layout.
    """
    costs = []
    for action in range(5):
        cost = errand_cost(errand, cell, heading, other_next, action, ways)
        place = jnp.asarray(ways.next_cells)[cell, action]
        swaps = (place == other_cell) & (other_next == cell)
        costs.append(cost + COLLISION * ((place == other_next) | swaps))
    return act_or_move(errand, cell, heading, costs)


def errand_cost(
    errand: Errand, cell: Int, heading: Int, blocked: Int, action: int, ways: Ways
) -> Int:
    """Return the steps to the target after an action, but no fewer than the standoff."""
    place = jnp.asarray(ways.next_cells)[cell, action]
    turned = action - 1 if action else heading
    around = errand.distances[blocked, place, turned]
    straight = errand.distances[-1, place, turned]
    return jnp.maximum(jnp.minimum(around, straight + DETOUR), errand.standoff)


def act_or_move(errand: Errand, cell: Int, heading: Int, costs: list[Int]) -> Int:
    """Return the action to interact on arrival, and else that of the least cost."""
    arrived = (errand.distances[-1, cell, heading] == 0) & errand.works
    best = jnp.argmin(jnp.stack(costs)).astype(jnp.int32)
    return jnp.where(arrived, INTERACT, best)
