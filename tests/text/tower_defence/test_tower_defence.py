"""TowerDefence against its rules in plain Python.

Maps are compared with their promises, words and pictures with the state.
"""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import pairwise
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split

pytestmark = pytest.mark.of_variants

# -- the rules, written out ------------------------------------------------------------------------

ENEMIES = {  # health at first, speed, armour, blow, bounty
    "goblin": (10, 9, 2, 2, 4), "wolf": (8, 14, 1, 2, 4), "ogre": (30, 6, 7, 5, 10),
    "bat": (11, 9, 0, 0, 5),
}  # fmt: skip
TOWERS = {  # prices, hits, ticks between shots, reach
    "archer": ((50, 60, 90), (4, 7, 11), 1, 3.0),
    "cannon": ((70, 80, 110), (10, 17, 27), 3, 5**0.5),
    "mage": ((70, 80, 110), (7, 12, 19), 2, 5**0.5),
}
POSTS = {1: 7, 2: 13, 3: 19, 4: 25}
ORDERS = [
    "wait", *(f"build {tower} {site}" for tower in TOWERS for site in range(1, 9)),
    *(f"{verb} {site}" for verb in ("upgrade", "sell") for site in range(1, 9)),
    *(f"hero {post}" for post in POSTS), "reinforce", "call",
]  # fmt: skip
Wave = list[str]


class Enemy:
    """Somebody on the road."""

    def __init__(self, kind: str, wave: int, health: int) -> None:
        self.kind = kind
        self.wave = wave
        self.health = health
        self.distance = 0
        self.slow = 0

    @property
    def cell(self) -> int:
        return self.distance // 16

    def facts(self) -> tuple[int, ...]:
        """Return health, distance, kind, wave and slowness as the task would have them."""
        return (self.health, self.distance, [*ENEMIES].index(self.kind), self.wave - 1, self.slow)


class Plain:
    """The game, one thing at a time."""

    def __init__(
        self,
        road: list[tuple[int, int]],
        sites: list[tuple[int, int]],
        waves: list[Wave],
        growth: int,
    ) -> None:
        self.reach = {
            (site, tower): {
                n for n, cell in enumerate(road) if math.dist(cell, site_cell) <= facts[3] + 1e-9
            }
            for site, site_cell in enumerate(sites, 1)
            for tower, facts in TOWERS.items()
        }
        self.waves = waves
        self.growth = growth
        self.coins = 120
        self.waves_begun = 0
        self.until_next = 16
        self.coming = list[str]()
        self.towers = dict[int, list[Any]]()  # site: kind, level, ticks until ready
        # 0 is the keep
        self.post = 0
        self.travel = 0
        self.health = 60
        self.band = {"post": 0, "health": 0, "stay": 0, "again": 0}
        self.slots: list[Enemy | None] = [None] * 16
        self.killed = 0
        self.leaked = 0
        self.spawned = 0
        self.spoilt = set[int]()
        self.coins_earned = self.coins_spent = 0

    # -- orders

    def legal(self, order: str) -> bool:
        verb, *what = order.split()
        site = int(what[-1]) if what else 0
        kind, level, _ = self.towers.get(site, ("", 3, 0))
        price = TOWERS[what[0]][0][0] if verb == "build" else 0
        return {
            "wait": True,
            "build": not kind and self.coins >= price,
            "upgrade": level < 3 and self.coins >= TOWERS[kind][0][level],
            "sell": bool(kind),
            "hero": self.health > 0 and self.post != site,
            "reinforce": self.band["again"] == 0 and self.post > 0 and self.travel == 0,
            "call": self.waves_begun < 12 and not self.coming and self.until_next > 0,
        }[verb]

    def pay(self, coins: int) -> None:
        self.coins -= coins
        self.coins_spent += coins

    def earn(self, coins: int) -> None:
        self.coins += coins
        self.coins_earned += coins

    def step(self, order: str) -> bool:
        """Return whether the order was legal; if not, nothing happens."""
        if not self.legal(order):
            return False
        verb, *what = order.split()
        site = int(what[-1]) if what else 0
        if verb == "build":
            self.pay(TOWERS[what[0]][0][0])
            self.towers[site] = [what[0], 1, 0]
        elif verb == "upgrade":
            self.pay(TOWERS[self.towers[site][0]][0][self.towers[site][1]])
            self.towers[site][1] += 1
        elif verb == "sell":
            kind, level, _ = self.towers.pop(site)
            self.earn(sum(TOWERS[kind][0][:level]) // 2)
        elif verb == "hero":
            self.post = site
            self.travel = 4
        elif verb == "reinforce":
            self.band = {"post": self.post, "health": 40, "stay": 30, "again": 60}
        elif verb == "call":
            self.earn(self.until_next // 2)
            self.until_next = 0
        self.tick()
        self.tick()
        return True

    # -- ticks

    def on_road(self) -> list[Enemy]:
        return [enemy for enemy in self.slots if enemy]

    def tick(self) -> None:
        self.enter()
        hero = POSTS[self.post] if self.post and self.travel == 0 else None
        band = POSTS[self.band["post"]] if self.band["health"] else None
        self.walk({hero, band} - {None})
        hurt = self.shoot()
        self.fight(hero, band, hurt)
        for slot, enemy in enumerate(self.slots):
            if enemy and enemy.health <= 0:
                self.earn(ENEMIES[enemy.kind][4])
                self.killed += 1
                self.slots[slot] = None

    def enter(self) -> None:
        if self.until_next == 0 and not self.coming and self.waves_begun < 12:
            self.coming = list(self.waves[self.waves_begun])
            self.waves_begun += 1
            self.until_next = 16
        if self.until_next:
            self.until_next -= 1
        if self.coming and None in self.slots:
            kind = self.coming.pop(0)
            health = ENEMIES[kind][0] * (24 + self.growth * (self.waves_begun - 1)) // 24
            self.slots[self.slots.index(None)] = Enemy(kind, self.waves_begun, health)
            self.spawned += 1

    def walk(self, stops: set[Any]) -> None:
        for slot, enemy in enumerate(self.slots):
            if not enemy:
                continue
            speed = ENEMIES[enemy.kind][1]
            if enemy.kind == "bat" or enemy.cell not in stops:
                enemy.distance += -(-speed // 2) if enemy.slow else speed
            enemy.slow = max(0, enemy.slow - 1)
            if enemy.distance >= 512:
                self.slots[slot] = None
                self.leaked += 1
                self.spoilt.add(enemy.wave)

    def shoot(self) -> dict[int, int]:
        hurt: dict[int, int] = {}
        chilled: list[Enemy] = []
        for site, tower in self.towers.items():
            kind, level, wait = tower
            tower[2] = max(0, wait - 1)
            targets = [
                enemy
                for enemy in self.on_road()
                if enemy.cell in self.reach[site, kind]
                and (kind != "cannon" or enemy.kind != "bat")
            ]
            if wait or not targets:
                continue
            foremost = max(enemy.cell for enemy in targets)
            targets = [enemy for enemy in targets if enemy.cell == foremost]
            for enemy in targets if kind == "cannon" else targets[:1]:
                hit = TOWERS[kind][1][level - 1]
                hit = hit if kind == "mage" else max(1, hit - ENEMIES[enemy.kind][2])
                hurt[id(enemy)] = hurt.get(id(enemy), 0) + hit
                if kind == "mage":
                    chilled.append(enemy)
            tower[2] = TOWERS[kind][2] - 1
        for enemy in chilled:
            enemy.slow = 4
        return hurt

    def fight(self, hero: int | None, band: int | None, hurt: dict[int, int]) -> None:
        foes = [enemy for enemy in self.on_road() if enemy.kind != "bat"]
        at_band = [enemy for enemy in foes if enemy.cell == band]
        at_hero = [enemy for enemy in foes if enemy.cell == hero]
        for enemy in self.on_road():
            enemy.health -= hurt.get(id(enemy), 0) + 4 * (enemy in at_hero) + 2 * (enemy in at_band)
        if at_band:
            self.band["health"] = max(
                0, self.band["health"] - sum(ENEMIES[enemy.kind][3] for enemy in at_band)
            )
        self.band["stay"] = max(0, self.band["stay"] - 1)
        self.band["again"] = max(0, self.band["again"] - 1)
        if self.band["stay"] == 0:
            self.band["health"] = 0
        self.travel = max(0, self.travel - 1)
        if self.health == 0:
            self.health = 60 if self.travel == 0 else 0
        elif at_hero:
            blows = [ENEMIES[enemy.kind][3] for enemy in at_hero if enemy not in at_band]
            self.health = max(0, self.health - sum(blows))
            if self.health == 0:
                self.post = 0
                self.travel = 30
        else:
            self.health = min(60, self.health + 1)

    # -- outcomes

    def over_waves(self) -> set[int]:
        """Return the waves that have come and gone."""
        alive = {enemy.wave for enemy in self.on_road()} | (
            {self.waves_begun} if self.coming else set()
        )
        return {*range(1, self.waves_begun + 1)} - alive

    def score(self) -> int:
        return len(self.over_waves() - self.spoilt)

    def over(self) -> bool:
        return self.leaked >= 10 or len(self.over_waves()) == 12

    def facts(self) -> dict[str, Any]:
        """Return the state as the task would have it."""
        tower = {"archer": 0, "cannon": 3, "mage": 6}
        sites = [self.towers.get(site) for site in range(1, 9)]
        return {
            "coins": self.coins, "wave": self.waves_begun, "timer": self.until_next,
            "left": len(self.coming),
            "towers": [tower[site[0]] + site[1] if site else 0 for site in sites],
            "reloads": [site[2] if site else 0 for site in sites], "post": (self.post - 1) % 5,
            "travel": self.travel, "hero": self.health, "soldiers": self.band["health"],
            "service": self.band["stay"], "cooldown": self.band["again"], "killed": self.killed,
            "leaked": self.leaked, "breached": sum(1 << wave - 1 for wave in self.spoilt),
            "enemies": [enemy.facts() if enemy else None for enemy in self.slots],
        }  # fmt: skip


def facts_of(state: Any) -> dict[str, Any]:
    """Return the same of the task's state."""
    queue = int(state.queue)
    enemies = zip(state.health, state.distance, state.kind, state.group, state.slow, strict=True)
    numbers = [
        "coins",
        "wave",
        "timer",
        "post",
        "travel",
        "hero",
        "soldiers",
        "service",
        "cooldown",
        "killed",
        "leaked",
        "breached",
    ]
    return {
        **{name: int(getattr(state, name)) for name in numbers},
        "left": (queue >> 2 & 15) + (queue >> 8 & 15),
        "towers": state.towers, "reloads": state.reloads,
        "enemies": [enemy if enemy[0] else None for enemy in enemies],
    }  # fmt: skip


def wave_of(word: int) -> Wave:
    """Return the enemies of a packed wave, in order."""
    kinds = [*ENEMIES]
    return [kinds[word & 3]] * (word >> 2 & 15) + [kinds[word >> 6 & 3]] * (word >> 8 & 15)


def plain_game(params: Any) -> Plain:
    """Return the game of a context."""
    road, sites = (
        [divmod(cell, 12) for cell in cells.tolist()] for cells in (params.road, params.sites)
    )
    return Plain(road, sites, [wave_of(word) for word in params.waves.tolist()], int(params.growth))


EPISODES = 200
STEPS = 140


def sound_orders(kind: int) -> list[int]:
    """Return orders of a player who holds out for long.

    They are: hero, reinforcements, upgrades, a tower of a kind, archers.
    """
    return [43, 45, 28, 4 + 8 * (kind % 3), 29, 5, 3, 0]


@cache
def compile_games() -> tuple[Any, Any, Any]:
    """Return the task, and programs that draw contexts and play orders, both in a batch."""
    task: Any = card("TowerDefence-v0").build()

    def game(params: Any, orders: jax.Array) -> Any:
        def step(state: Any, order: jax.Array) -> Any:
            after = task.transition(state, order, None, params)
            legal = task.action_mask(state, params)
            state = jax.tree.map(
                lambda new, old: jax.numpy.where(legal[order], new, old), after, state
            )
            return state, (state, legal, task.info(state, params))

        return jax.lax.scan(step, task.initial(None, params), orders)[1]

    return task, jax.jit(jax.vmap(task.sample_params, in_axes=(0, None))), jax.jit(jax.vmap(game))


def test_every_step_is_that_of_the_rules() -> None:
    """Orders are random, legal and illegal, or those of a builder or of a sound player who errs."""
    _, draw, run = compile_games()
    params = jax.tree.map(
        np.asarray, draw(jax.random.split(jax.random.key(3), EPISODES), Split.TEST)
    )
    params = params._replace(growth=np.arange(EPISODES, dtype=np.int32) % 5)
    rng = np.random.default_rng(0)
    orders = np.zeros((EPISODES, STEPS), np.int32)
    expected = []
    events: set[str] = set()
    for episode in range(EPISODES):
        plain = plain_game(jax.tree.map(lambda leaf, i=episode: leaf[i], params))
        steps = []
        while len(steps) < STEPS and not plain.over():
            if episode % 8 == 0 and rng.random() < 0.95:
                order = next(n for n in sound_orders(episode // 8) if plain.legal(ORDERS[n]))
            else:
                order = int(rng.integers(47))
                while episode % 3 and not plain.legal(ORDERS[order]):
                    order = int(rng.integers(47))
            mask = [plain.legal(name) for name in ORDERS] if len(steps) % 8 == 0 else []
            orders[episode, len(steps)] = order
            if not plain.step(ORDERS[order]):
                events.add("an illegal order")
            over = plain.over()
            steps.append((mask, plain.facts(), plain.score(), over and plain.leaked < 10))
            # Nothing is lost: neither coins nor enemies.
            assert plain.coins == 120 + plain.coins_earned - plain.coins_spent
            assert plain.coins >= 0
            assert plain.spawned == plain.killed + plain.leaked + len(plain.on_road())
            events |= {"the hero falls"} if plain.health == 0 else set()
            events |= {"a full road"} if None not in plain.slots else set()
            events |= {f"{kind} {level}" for kind, level, _ in plain.towers.values()}
        if plain.over():
            events.add("success" if plain.leaked < 10 else "a fall")
        expected.append(steps)
    # Random play is poor, in these easier games too.
    assert np.mean([steps[-1][2] for i, steps in enumerate(expected) if i % 8]) < 3
    states, masks, infos = jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), run(params, orders))
    for episode, steps in enumerate(expected):
        for t, (mask, facts, score, success) in enumerate(steps):
            assert masks[episode][t] == mask or not mask
            state = type(states)(*(field[episode][t] for field in states))
            assert facts_of(state) == facts, (episode, t, ORDERS[orders[episode, t]])
            assert infos["clean"][episode][t] == score
            assert infos["success"][episode][t] == success
            assert infos["enemies"][episode][t] == sum(
                enemy is not None for enemy in facts["enemies"]
            )
    rules = {"an illegal order", "a full road", "the hero falls", "success", "a fall"}
    assert events >= rules | {f"{tower} {level}" for tower in TOWERS for level in (1, 2, 3)}, (
        events
    )  # so most were at work


def test_episodes_are_those_of_the_rules_and_the_reference_holds() -> None:
    """The environment ends, pays and refuses as the rules do.

    Random play and the reference player are both tried.

    Random play meets the enemies of the hardest tier. How they grow is a part of the context, so
    one environment plays both.
    """
    env: Any = gymnasium.make("rlsuite/TowerDefence-v0", split="test")
    player = reference_player(env.unwrapped.task)
    choose: Any = jax.jit(
        lambda state, params, mask: player.act((), View(None, mask, state, params), None)[0]
    )
    rng = np.random.default_rng(5)
    successes = []
    totals = []
    for seed in range(6):
        _, info = env.reset(seed=seed)
        params = env.unwrapped.params
        careful = seed < 4
        if not careful:
            params = params._replace(growth=np.int32(5))
            env.unwrapped.episode = env.unwrapped.episode._replace(params=params)
        plain = plain_game(params)
        over = False
        total = 0.0
        while not over:
            mask = info["action_mask"]
            assert mask.tolist() == [plain.legal(order) for order in ORDERS]
            order = (
                int(choose(env.unwrapped.episode.state, params, mask == 1))
                if careful
                else int(rng.integers(47))
            )
            legal = plain.step(ORDERS[order])
            before = plain.score()
            _, reward, terminated, truncated, info = env.step(order)
            assert ("invalid_reason" in info) == (not legal)
            assert terminated == plain.over()
            total = total + reward
            over = terminated or truncated
            assert total == plain.score() >= before
        assert info["success"] == (plain.over() and plain.leaked < 10)
        if careful:
            successes.append(info["success"])
            totals.append(total)
    assert np.mean(successes) >= 0.75
    assert min(totals) >= 10


# -- maps and waves --------------------------------------------------------------------------------


def test_roads_lead_to_the_castle_and_splits_share_none() -> None:
    _, draw, _ = compile_games()
    params_by_split = {
        split: jax.tree.map(np.asarray, draw(jax.random.split(jax.random.key(1), 600), split))
        for split in Split
    }
    for params in params_by_split.values():
        for cells, site_cells in zip(params.road.tolist(), params.sites.tolist(), strict=True):
            road = [divmod(cell, 12) for cell in cells]
            sites = [divmod(cell, 12) for cell in site_cells]
            assert (road[0][1], road[-1][1], len({*road}), len({*road, *sites})) == (0, 11, 32, 40)
            assert all(abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1 for a, b in pairwise(road))
            assert all(0 <= row < 8 and 0 <= column < 12 for row, column in (*road, *sites))
            assert all(min(math.dist(site, cell) for cell in road) == 1 for site in sites)
    roads = [{tuple(road) for road in params.road.tolist()} for params in params_by_split.values()]
    assert not roads[0] & roads[1]
    assert min(map(len, roads)) > 120


def test_waves_grow_and_fit() -> None:
    _, draw, _ = compile_games()
    waves = np.asarray(draw(jax.random.split(jax.random.key(2), 600), Split.TRAIN).waves)
    strength = {"goblin": 2, "wolf": 2, "ogre": 6, "bat": 3}
    sizes = np.array([[len(wave_of(word)) for word in game] for game in waves.tolist()])
    powers = np.array(
        [
            [sum(map(strength.__getitem__, wave_of(word))) for word in game]
            for game in waves.tolist()
        ]
    )
    assert (sizes >= 1).all()
    assert (sizes <= 12).all()
    assert (powers <= 8 + 3 * np.arange(12)).all()
    assert (np.diff(powers.mean(0)) > 0).all()
    assert {kind for game in waves.tolist() for word in game for kind in wave_of(word)} == {
        *ENEMIES
    }


# -- words and pictures ----------------------------------------------------------------------------


def test_words_numbers_and_pictures_show_the_same() -> None:
    env: Any = gymnasium.make("rlsuite/TowerDefence-v0", view="text")
    numbers: Any = gymnasium.make("rlsuite/TowerDefence-v0")
    pixels: Any = gymnasium.make("rlsuite/TowerDefence-v0", view="pixels")
    text, _ = env.reset(seed=4)
    observation, _ = numbers.reset(seed=4)
    picture, _ = pixels.reset(seed=4)
    rng = np.random.default_rng(2)
    for t in range(60):
        entries = numbers.unwrapped.task.named(observation)
        wave, coins, lives = (
            int(re.search(pattern, text)[1])
            for pattern in (r"Wave (\d+)", r"Coins (\d+)", r"lives (\d+)")
        )
        assert entries["time"][:3] == pytest.approx(
            np.array([coins / max_coins(numbers), lives / 10, wave / 12])
        )
        listed = re.findall(r"(\w+), wave (\d+), cell (\d+) \+ (\d+)/16, health (\d+)", text)
        there = entries["kinds"].any(1)
        assert [[*ENEMIES].index(kind) for kind, *_ in listed] == entries["kinds"][there].argmax(
            1
        ).tolist()
        distances = [16 * int(cell) + int(sixteenths) for _, _, cell, sixteenths, _ in listed]
        assert entries["enemies"][0, there] * 512 == pytest.approx(distances)
        sites = re.findall(
            r"(\d) (free|archer \d|cannon \d|mage \d)", text.split("Sites: ")[1].split("\n")[0]
        )
        codes = [
            [*TOWERS].index(name.split()[0]) * 3 + int(name[-1]) if name != "free" else 0
            for _, name in sites
        ]
        assert codes == (entries["towers"].argmax(1) + entries["towers"].any(1)).tolist()
        for cell, code in zip(numbers.unwrapped.params.sites.tolist(), codes, strict=True):
            colour = ((170, 160, 150), (90, 120, 60), (90, 90, 96), (120, 80, 170))[(code + 2) // 3]
            assert tuple(picture[cell // 12 * 30 + 5, cell % 12 * 30 + 5]) == colour
        action = int(rng.integers(47)) if t % 3 else int(rng.integers(1, 25))
        text, *_, info = env.step(env.unwrapped.task.spell(np.int32(action), None, None))
        observation, _, terminated, _, number_info = numbers.step(action)
        picture, *_ = pixels.step(action)
        assert info.get("invalid_reason") == number_info.get("invalid_reason")
        if terminated:
            break


def max_coins(env: Any) -> float:
    """Return the coins that an observation of 1 would mean."""
    time = next(
        component
        for component in env.unwrapped.task.observation_components()
        if component.name == "time"
    )
    return float(re.findall(r"\d+", time.unit)[0])


@pytest.mark.parametrize(("orders", "reason"), [
    (["build cannon 2", "build cannon 2"], "has cannon 1; sell it first"),
    (["build cannon 2", "build mage 3"], "mage 1 costs 70 coins, and you have 50"),
    (["upgrade 4"], "site 4 has no tower"), (["sell 4"], "site 4 has no tower"),
    (["hero 2", "hero 2"], "on his way"), (["reinforce"], "he stands at none"),
    (["build cannon 2", "upgrade 2"], "costs 80 coins, and you have 50"),
    (["hero 1", "wait", "reinforce", "reinforce"], "called in 58 ticks"), (["dance"], "Nearest"),
])  # fmt: skip
def test_refusals_say_why(orders: list[str], reason: str) -> None:
    env: Any = gymnasium.make("rlsuite/TowerDefence-v0", view="text")
    env.reset(seed=0)
    for order in orders:
        *_, info = env.step(order)
    assert reason in info["invalid_reason"]


def test_wrong_difficulties_are_refused() -> None:
    with pytest.raises(ValueError, match="1, 2 or 3"):
        gymnasium.make("rlsuite/TowerDefence-v0", difficulty=4)
