"""Words and pictures of TowerDefence.

They show the observation and the rules, and say why an order is illegal.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

import numpy as np

from .maps import (
    COLUMNS,
    LENGTH,
    ROWS,
    SITES,
)
from .rules import (
    ARMOUR,
    BLOWS,
    BOUNTIES,
    BUILD,
    CALL_AGAIN,
    COSTS,
    ENEMIES,
    GROWTH_UNIT,
    HEALTH,
    HERO,
    HERO_POWER,
    INTERVAL,
    KEEP,
    LEVELS,
    LIVES,
    MAX_HEALTH,
    MOVE,
    NEXT,
    POSTS,
    POWERS,
    RECOVERY,
    REINFORCE,
    RELOADS,
    SELL,
    SERVICE,
    SLOTS,
    SLOW_TICKS,
    SOLDIER_POWER,
    SOLDIERS,
    SPEEDS,
    TICKS,
    TOWERS,
    UNIT,
    UPGRADE,
    WALK,
    WAVES,
    Params,
    State,
    count_enemies,
)

MARKS = "gwob"
"""Marks of enemies in words."""
TILE = 30
"""Pixels of a cell's side."""
BAR = 97
"""Height of the words below the map in pixels."""
SIZE = ROWS * TILE + BAR, COLUMNS * TILE
"""Height and width of the picture."""
GRASS = (150, 190, 120)
ROAD = (214, 196, 150)
INK = (30, 30, 34)
PAPER = (250, 250, 247)
FREE = (170, 160, 150)
TOWER_COLOURS = ((90, 120, 60), (90, 90, 96), (120, 80, 170))
ENEMY_COLOURS = ((60, 150, 60), (140, 140, 150), (160, 90, 40), (60, 40, 60))
HERO_COLOUR = (250, 200, 40)
SOLDIER_COLOUR = (60, 110, 200)


def _orders() -> tuple[str, ...]:
    """Return the orders in words, in the order of the actions."""
    builds = [f"build {tower} {site}" for tower in TOWERS for site in range(1, SITES + 1)]
    site_orders = [f"{verb} {site}" for verb in ("upgrade", "sell") for site in range(1, SITES + 1)]
    return (
        "wait",
        *builds,
        *site_orders,
        *(f"hero {post}" for post in range(1, KEEP + 1)),
        "reinforce",
        "call",
    )


ORDERS = _orders()


def refusal(number: int, state: State) -> str:
    """Say in words why an order cannot be carried out."""
    site = number - 1 & 7
    code = int(state.towers[site])
    coins = int(state.coins)
    tower = number - BUILD >> 3
    if number < UPGRADE and code:
        reason = f"site {site + 1} has {_tower(code)}; sell it first"
    elif number < UPGRADE:
        reason = f"{TOWERS[tower]} 1 costs {COSTS[tower][0]} coins, and you have {coins}"
    elif number < MOVE and not code:
        reason = f"site {site + 1} has no tower"
    elif number < SELL and not NEXT[code]:
        reason = f"{_tower(code)} has the highest level"
    elif number < SELL:
        reason = f"the next level costs {NEXT[code]} coins, and you have {coins}"
    elif number < REINFORCE and not int(state.hero):
        reason = f"the hero has fallen and is well in {int(state.travel)} ticks"
    elif number < REINFORCE:
        reason = f"the hero is at post {number - MOVE + 1} or on his way there"
    elif number == REINFORCE and int(state.cooldown):
        reason = f"reinforcements can be called in {int(state.cooldown)} ticks"
    elif number == REINFORCE:
        reason = "reinforcements come to the post where the hero stands, and he stands at none"
    elif int(state.wave) == WAVES:
        reason = "all waves have begun"
    else:
        reason = (
            "the last wave is still entering"
            if count_enemies(int(state.queue))
            else "the next wave begins now anyway"
        )
    return reason


def describe_state(state: State, params: Params) -> str:
    """Describe the road once, then everything that changes."""
    grid = [["." for _ in range(COLUMNS)] for _ in range(ROWS)]
    for cell in params.road.tolist():
        grid[cell // COLUMNS][cell % COLUMNS] = "#"
    for site, cell in enumerate(params.sites.tolist(), 1):
        grid[cell // COLUMNS][cell % COLUMNS] = str(site)
    reach = []
    for site, (near_bits, far_bits) in enumerate(params.reach.T.tolist(), 1):
        reach.append(
            f"Site {site}: cannons and mages reach {_cells(near_bits)}, archers {_cells(far_bits)}."
        )
    towers = []
    for site, (code, reload) in enumerate(
        zip(state.towers.tolist(), state.reloads.tolist(), strict=True), 1
    ):
        ready = f" (ready in {reload})" if reload else ""
        towers.append(f"{site} {_tower(code)}{ready}" if code else f"{site} free")
    enemies = [_enemy(state, slot) for slot in range(SLOTS) if int(state.health[slot])]
    return "\n".join([
        *("".join(row) for row in grid), *reach, "",
        *map(" ".join, progress(state, params)),
        f"Sites: {', '.join(towers)}.",
        " ".join(bodies(state)),
        f"On the road: {'; '.join(enemies) or 'nobody'}.",
    ])  # fmt: skip


def progress(state: State, params: Params) -> tuple[tuple[str, str], tuple[str, str]]:
    """Describe wave, coins and lives, the waves with a leak, and the enemies to come.

    Those still to enter in this wave come first, then the next wave.
    """
    wave = int(state.wave)
    word = lambda i: int(params.waves[wave + i]) if wave + i < WAVES else 0  # noqa: E731
    spoilt = [str(i + 1) for i in range(WAVES) if int(state.breached) >> i & 1]
    clock = f"Wave {wave} of {WAVES}" + (
        f", the next in {int(state.timer)} ticks." if wave < WAVES else "."
    )
    purse = f"Coins {int(state.coins)}, lives {max(LIVES - int(state.leaked), 0)}."
    coming = f"Still to enter: {_wave(int(state.queue))}. Next: {_wave(word(0))}."
    leaks = f"Waves with a leak: {', '.join(spoilt) or 'none'}."
    after = f"Then: {_wave(word(1))}."
    return (f"{clock} {purse}", leaks), (coming, after)


def bodies(state: State) -> tuple[str, ...]:
    """Describe the hero, reinforcements on the road, and the next ones, a sentence each."""
    post = int(state.post)
    travel = int(state.travel)
    health = int(state.hero)
    if not health:
        hero = f"The hero has fallen and is well in {travel} ticks."
    elif travel:
        hero = f"The hero (health {health}) is at post {post + 1} in {travel} ticks."
    else:
        hero = (
            f"The hero (health {health}) is "
            f"{'in the keep' if post == KEEP else f'at post {post + 1}'}."
        )
    soldiers = int(state.soldiers)
    cooldown = int(state.cooldown)
    stand = (
        f"Reinforcements (health {soldiers}) are at post {int(state.station) + 1} for "
        f"{int(state.service)} ticks."
    )
    again = (
        f"Reinforcements can be called in {cooldown} ticks."
        if cooldown
        else "Reinforcements can be called."
    )
    return (hero, stand, again) if soldiers else (hero, again)


def draw_map(state: State, params: Params) -> np.ndarray:
    """Draw the map with towers, enemies, hero and reinforcements, and below it what is to come."""
    from PIL import Image, ImageDraw

    height, width = SIZE
    picture = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, width, ROWS * TILE - 1), fill=GRASS)
    road = [(cell % COLUMNS * TILE, cell // COLUMNS * TILE) for cell in params.road.tolist()]
    for number, (x, y) in enumerate(road):
        pen.rectangle((x, y, x + TILE - 1, y + TILE - 1), fill=ROAD)
        if number in POSTS:
            pen.rectangle((x + 1, y + 1, x + TILE - 2, y + TILE - 2), outline=SOLDIER_COLOUR)
    for site, (cell, code) in enumerate(
        zip(params.sites.tolist(), state.towers.tolist(), strict=True), 1
    ):
        x, y = cell % COLUMNS * TILE, cell // COLUMNS * TILE
        fill = TOWER_COLOURS[(code - 1) // LEVELS] if code else FREE
        pen.rectangle((x + 3, y + 3, x + TILE - 4, y + TILE - 4), fill=fill, outline=INK)
        name = (
            f"{site}{'ACM'[(code - 1) // LEVELS]}{(code - 1) % LEVELS + 1}" if code else f"{site}"
        )
        pen.text((x + 5, y + 9), name, fill=PAPER, font_size=10)
    corners = [*road, (COLUMNS * TILE, road[-1][1])]
    for kind, distance, health, slow in zip(
        *(column.tolist() for column in (state.kind, state.distance, state.health, state.slow)),
        strict=True,
    ):
        if health:
            x, y = corners[distance // UNIT]
            next_x, next_y = corners[distance // UNIT + 1]
            x += (next_x - x) * (distance % UNIT) // UNIT + TILE // 2
            y += (next_y - y) * (distance % UNIT) // UNIT + TILE // 2
            size = 4 + 5 * health // MAX_HEALTH
            edge = SOLDIER_COLOUR if slow else INK
            pen.ellipse(
                (x - size, y - size, x + size, y + size), fill=ENEMY_COLOURS[kind], outline=edge
            )
            pen.text((x - 3, y - 6), MARKS[kind], fill=PAPER, font_size=9)
    if int(state.soldiers):
        x, y = road[POSTS[int(state.station)]]
        pen.rectangle((x + 2, y + 2, x + 9, y + 9), fill=SOLDIER_COLOUR, outline=INK)
    if int(state.post) < KEEP and not int(state.travel):
        x, y = road[POSTS[int(state.post)]]
        pen.rectangle((x + 20, y + 2, x + 27, y + 9), fill=HERO_COLOUR, outline=INK)
    for line, text in enumerate([*chain(*progress(state, params)), *bodies(state)]):
        pen.text((5, ROWS * TILE + 3 + 13 * line), text, fill=INK, font_size=10)
    return np.asarray(picture)


def _tower(code: int) -> str:
    """Return the name of a code of a site, with its level."""
    return f"{TOWERS[(code - 1) // LEVELS]} {(code - 1) % LEVELS + 1}"


def _enemy(state: State, slot: int) -> str:
    """Return kind, wave, distance and health of the enemy in a slot in words."""
    cell, sixteenths = divmod(int(state.distance[slot]), UNIT)
    slow = f", slow for {int(state.slow[slot])}" if int(state.slow[slot]) else ""
    return (
        f"{ENEMIES[int(state.kind[slot])]}, wave {int(state.group[slot]) + 1}, cell {cell} + "
        f"{sixteenths}/{UNIT}, health {int(state.health[slot])}{slow}"
    )


def _wave(word: int) -> str:
    """Return the enemies of a wave in words."""
    groups = [(word & 3, word >> 2 & 15), (word >> 6 & 3, word >> 8 & 15)]
    phrases = [f"{count} {ENEMIES[kind]}" for kind, count in groups if count]
    return ", ".join(phrases) or "nobody"


@lru_cache(1000)
def _cells(word: int) -> str:
    """Return the numbers of some cells in words."""
    runs: list[list[int]] = []
    for cell in range(LENGTH):
        if word >> cell & 1:
            if runs and runs[-1][1] == cell - 1:
                runs[-1][1] = cell
            else:
                runs.append([cell, cell])
    return ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs)


def rules(growth: int) -> str:
    """Return the rules; health grows by so many 24ths from wave to wave."""
    kinds = "; ".join(
        f"{name}: health {HEALTH[i]}, speed {SPEEDS[i]}/{UNIT} cells a tick, armour {ARMOUR[i]}, "
        f"hits for {BLOWS[i]}, bounty {BOUNTIES[i]}"
        for i, name in enumerate(ENEMIES)
    )
    towers = "; ".join(
        f"{name}: levels cost {', '.join(map(str, COSTS[i]))} and hit for "
        f"{', '.join(map(str, POWERS[i]))}, "
        f"{'every tick' if RELOADS[i] == 1 else f'every {RELOADS[i]} ticks'}"
        for i, name in enumerate(TOWERS)
    )
    return (
        f"Let none of {WAVES} waves through to the castle. Each wave of which nobody gets through "
        "earns 1, when the "
        f"last of it is dead. The {LIVES}th enemy that gets through ends the game. The road (#) "
        f"has {LENGTH} cells, "
        "from 0 at the entrance on the left; digits are sites. A reply is one order, and then "
        f"{TICKS} ticks pass. A "
        f"wave begins every {INTERVAL} ticks. One enemy enters a tick, while fewer than {SLOTS} "
        "are on the road. "
        f"Health grows by {growth}/{GROWTH_UNIT} of the first with every wave.\n"
        f"Enemies: {kinds}. Bats fly.\n"
        f"Towers: {towers}. A tower shoots at the foremost cell in its reach with an enemy. "
        "Archers and mages hit the "
        "one there that is first in the list; cannons hit all there but bats, and do not shoot at "
        "bats. Armour takes "
        "damage off the hits of archers and cannons, which do at least 1. Mages halve the speed, "
        "rounded up, for "
        f"{SLOW_TICKS} ticks. A sale gives half of all costs back.\n"
        f"The hero (health {HERO}, hits for {HERO_POWER}, {WALK} ticks for a way) and "
        "reinforcements (health "
        f"{SOLDIERS}, hit for {SOLDIER_POWER}, at the hero's post for {SERVICE} ticks, once in "
        f"{CALL_AGAIN}) stop all "
        "on the ground in their cell and hit them; these hit back, reinforcements first. Posts 1 "
        "to 4 are in the "
        f"cells {', '.join(map(str, POSTS))}. The hero heals by 1 a tick without a foe; when he "
        "falls he needs "
        f"{RECOVERY} ticks. Calling the next wave early pays a coin for every {TICKS} ticks saved. "
        "An illegal order "
        "lets no tick pass; a reply that is no order is played as wait."
    )
