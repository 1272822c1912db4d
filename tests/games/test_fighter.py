"""The fighting game against its rules written out once more, and what follows from them."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.checking.checks import findings
from rlbench_suite.core.game import SeatState
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.games.fighter.fighter import FightingGame
from rlbench_suite.envs.games.fighter.opponents import (
    LADDER,
    WORDS_PER_CHOICE,
    Rolls,
    Style,
    choose,
)
from rlbench_suite.envs.games.fighter.round_robin import round_robin
from rlbench_suite.envs.games.fighter.rules import (
    ACTIONS,
    JAB,
    MATCH_TICKS,
    MOVES,
    POSTURES,
    THROW,
    Fighter,
    Params,
    State,
    advance_tick,
    distance_between,
    first_state,
    is_over,
)

ID = "rlsuite/Fighter-v0"
GAME: FightingGame = card(ID).joint().build()

# -- the rules written out -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Strike:
    """An attack: the ticks in which it can touch, and the tick with which it ends."""

    first_tick: int
    last_tick: int
    end: int
    reach: int
    damage: int
    stun: int
    block_stun: int
    stamina: int
    push: int


def strikes_of(context: dict[str, int]) -> dict[str, Strike]:
    """Return all attacks, by the sheet of the game."""
    sweep, overhead = context["sweep_startup"], context["overhead_startup"]
    reach = context["thrust_reach"]
    damage = {name: context[f"{name}_damage"] for name in MOVES[JAB : THROW + 1]}
    return {
        "jab": Strike(3, 3, 8, 7, damage["jab"], 5, 2, 6, 2),
        "sweep": Strike(sweep + 1, sweep + 2, sweep + 9, 9, damage["sweep"], 6, 3, 8, 3),
        "overhead": Strike(
            overhead + 1, overhead + 1, overhead + 10, 8, damage["overhead"], 8, 4, 14, 4
        ),
        "thrust": Strike(5, 6, 13, reach, damage["thrust"], 6, 3, 10, 4),
        "throw": Strike(3, 3, 10, 4, damage["throw"], 8, 0, 8, 6),
    }


CANCELS = {
    "jab": {"sweep", "thrust", "overhead"},
    "sweep": {"overhead"},
    "thrust": {"overhead"},
}
STAMINA_OF_LEAPS = {"jump": 8, "dash-back": 14}
ENDS_OF_LEAPS = {"jump": 6, "dash-back": 5}


@dataclasses.dataclass
class Body:
    """One fighter."""

    room: int
    health: int = 100
    stamina: int = 100
    move: str = "free"
    age: int = 0
    touched: str = ""
    guard: str = ""
    posture: str = "steady"
    stun: int = 0
    combo: int = 0

    @property
    def flies(self) -> bool:
        return self.move == "jump" and self.age in (2, 3, 4, 5)

    @property
    def evades_all(self) -> bool:
        return self.move == "dash-back" and self.age in (1, 2)


class Fight:
    """A match, whose bodies change in place."""

    def __init__(self, context: dict[str, int]) -> None:
        self.width = context["width"]
        self.strikes = strikes_of(context)
        room = (self.width - context["distance"]) // 2
        self.bodies = [Body(room), Body(room)]

    @property
    def distance(self) -> int:
        return self.width - sum(body.room for body in self.bodies)

    def stamina_of(self, move: str) -> int:
        leap = STAMINA_OF_LEAPS.get(move)
        return self.strikes[move].stamina if leap is None else leap

    def tick(self, actions: tuple[str, str]) -> None:
        helpless = [body.stun > 0 for body in self.bodies]
        steps = [self.act(body, action) for body, action in zip(self.bodies, actions, strict=True)]
        self.walk(steps)
        gap = self.distance
        ready = [self.can_touch(body) for body in self.bodies]
        results = [self.result(i, gap, ready, helpless) for i in range(2)]
        blows = [self.strikes.get(body.move) for body in self.bodies]
        moves = [body.move for body in self.bodies]
        for i, body in enumerate(self.bodies):
            strike = blows[i]
            if strike and body.age == strike.first_tick:
                body.stamina -= strike.stamina
            body.touched = results[i] or body.touched
        pushes = [0, 0]
        for i, result in enumerate(results):
            if result:
                victim, strike = self.bodies[1 - i], blows[i]
                assert strike is not None
                self.suffer(victim, result, strike, moves[i], is_counter=blows[1 - i] is not None)
                pushes[1 - i] = strike.push
        rooms = [body.room for body in self.bodies]
        for i, body in enumerate(self.bodies):
            thrown_back = max(pushes[1 - i] - rooms[1 - i], 0)
            body.room = max(rooms[i] - pushes[i] - thrown_back, 0)
            end = ENDS_OF_LEAPS.get(body.move, 0) or (
                self.strikes[body.move].end if body.move != "free" else 0
            )
            if body.move != "free" and body.age >= end:
                body.move, body.age, body.touched = "free", 0, ""

    def act(self, body: Body, action: str) -> int:
        """Begin an action, and return the units that the fighter wants to go."""
        helpless = body.stun > 0
        free = not helpless and body.move == "free"
        cancels = body.touched == "hit" and action in CANCELS.get(body.move, ())
        body.guard = ""
        step = 0
        if not helpless:
            body.posture, body.combo = "steady", 0
        if action in MOVES and (free or cancels) and body.stamina >= self.stamina_of(action):
            body.move, body.age, body.touched = action, 1, ""
            body.stamina -= STAMINA_OF_LEAPS.get(action, 0)
        elif body.move != "free":
            body.age += 1
        elif action.startswith("guard") and (free or body.posture == "blocking"):
            body.guard = action
        elif free:
            body.stamina = min(body.stamina + 1, 100)
            step = {"advance": 2, "retreat": -2}.get(action, 0)
        body.stun = max(body.stun - 1, 0)
        if body.move == "dash-back" and body.age <= 3:
            step = -4
        return 3 if body.flies else step

    def walk(self, steps: list[int]) -> None:
        gap = self.distance
        wishes = [min(step, gap) if step > 0 else step for step in steps]
        too_far = max(wishes[0], 0) + max(wishes[1], 0) - gap
        for body, wish in zip(self.bodies, wishes, strict=True):
            back = -(-too_far // 2) if wish > 0 and too_far > 0 else 0
            body.room = max(body.room + wish - back, 0)

    def can_touch(self, body: Body) -> bool:
        strike = self.strikes.get(body.move)
        if strike is None or body.touched:
            return False
        return strike.first_tick <= body.age <= strike.last_tick

    def result(self, side: int, gap: int, ready: list[bool], helpless: list[bool]) -> str:
        """Return ``hit``, ``blocked`` or nothing for the attack of a side."""
        body, victim = self.bodies[side], self.bodies[1 - side]
        if not ready[side]:
            return ""
        strike = self.strikes[body.move]
        lies = helpless[1 - side] and victim.posture == "down"
        if gap > strike.reach or lies or victim.evades_all:
            return ""
        if body.move == "throw":
            escapes = victim.flies or helpless[1 - side] or ready[1 - side]
            return "" if escapes else "hit"
        if body.move == "sweep" and victim.flies:
            return ""
        stopped_by = {"sweep": {"guard-low"}, "overhead": {"guard-high"}}
        guards = stopped_by.get(body.move, {"guard-low", "guard-high"})
        return (
            "blocked" if victim.guard in guards and victim.stamina >= strike.damage // 2 else "hit"
        )

    def suffer(
        self, victim: Body, result: str, strike: Strike, move: str, *, is_counter: bool
    ) -> None:
        victim.move, victim.age, victim.touched = "free", 0, ""
        if result == "blocked":
            victim.health -= strike.damage // 5
            victim.stamina -= strike.damage // 2
            victim.stun, victim.posture = strike.block_stun, "blocking"
        else:
            victim.health -= strike.damage + (strike.damage // 2 if is_counter else 0)
            falls = move in ("overhead", "throw")
            victim.posture = "down" if falls else "reeling"
            victim.stun = strike.stun if falls else max(strike.stun - victim.combo, 0)
            victim.combo += 1
        victim.health = max(victim.health, 0)


def as_numbers(body: Body) -> tuple[int, ...]:
    """Return a fighter as the task has it."""
    guard = ACTIONS.index(body.guard) if body.guard else 0
    contact = ["", "hit", "blocked"].index(body.touched)
    return (
        body.health, body.stamina, body.room, MOVES.index(body.move), body.age,
        contact, guard, POSTURES.index(body.posture), body.stun, body.combo,
    )  # fmt: skip


# -- the task against them -------------------------------------------------------------------------


@cache
def contexts_of(count: int) -> Params:
    """Return contexts of both splits in turn."""
    keys = jax.random.split(jax.random.key(1), count)
    splits = jnp.arange(count) % 2
    return jax.jit(jax.vmap(GAME.sample_params))(keys, splits)


@cache
def recorded_matches(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return actions ``(ticks, matches, 2)``, and the states after them.

    States have shape ``(ticks, matches, 2, fields)``. Fighters advance often, so that they meet.
    """
    rng = np.random.default_rng(0)
    weights = np.array([1, 5, 1, 2, 2, 2, 2, 2, 2, 2, 1, 1], float)
    actions = rng.choice(len(ACTIONS), (240, count, 2), p=weights / weights.sum())
    params = contexts_of(count)

    def step(states: State, actions: jax.Array) -> tuple[State, jax.Array]:
        states = jax.vmap(advance_tick)(states, actions, params)
        sides = [jnp.stack(side, axis=-1) for side in states.sides]
        return states, jnp.stack(sides, axis=1)

    start = jax.vmap(first_state)(params)
    _, states = jax.jit(lambda start, actions: jax.lax.scan(step, start, actions))(
        start, jnp.asarray(actions, jnp.int32)
    )
    return actions, np.asarray(states)


def test_matches_go_as_the_rules_written_out() -> None:
    """A thousand matches of random actions, tick by tick."""
    count = 1024
    actions, states = recorded_matches(count)
    params = jax.tree.map(np.asarray, contexts_of(count))
    beaten = blocked = knocked_down = combos = 0
    for match in range(count):
        context = {name: int(values[match]) for name, values in params._asdict().items()}
        fight = Fight(context)
        for tick in range(len(actions)):
            first, second = actions[tick, match]
            fight.tick((ACTIONS[first], ACTIONS[second]))
            for side, body in enumerate(fight.bodies):
                assert as_numbers(body) == tuple(states[tick, match, side]), (match, tick, side)
                blocked += body.posture == "blocking"
                knocked_down += body.posture == "down"
                combos += body.combo > 1
            if min(body.health for body in fight.bodies) == 0:
                beaten += 1
                break
    assert min(beaten, blocked, knocked_down, combos) > 30  # the random actions meet all rules


def test_exchanged_fighters_play_the_mirrored_match_to_the_bit() -> None:
    actions, states = recorded_matches(1024)
    params = contexts_of(1024)
    mirrored = jax.vmap(first_state)(params)
    step = jax.jit(jax.vmap(advance_tick))
    for tick in range(60):
        mirrored = step(mirrored, jnp.asarray(actions[tick, :, ::-1], jnp.int32), params)
        for side in range(2):
            fighter = np.stack(mirrored.sides[1 - side], axis=-1)
            np.testing.assert_array_equal(fighter, states[tick, :, side])


def test_bounds_hold_and_fighters_never_pass_each_other() -> None:
    _, states = recorded_matches(1024)
    width = np.asarray(contexts_of(1024).width)
    fields = {name: states[..., i] for i, name in enumerate(Fighter._fields)}
    assert fields["health"].min() == 0
    assert fields["health"].max() == 100
    assert fields["stamina"].min() >= 0
    assert fields["stamina"].max() == 100
    assert fields["room"].min() == 0
    assert (fields["room"].sum(-1) <= width).all()


def test_the_game_is_zero_sum_and_pays_health_and_the_verdict() -> None:
    game = GAME
    transition, reward = jax.jit(game.transition), jax.jit(game.reward)
    rng = np.random.default_rng(1)
    key = jax.random.key(0)
    for seed in range(8):
        params = game.sample_params(jax.random.key(seed), jnp.int32(seed % 2))
        state = game.initial(key, params)
        total = np.zeros(2)
        while not game.terminal(state, key, params):
            action = jnp.asarray(rng.choice([1, 5, 6, 7, 8, 9], 2))
            next_state = transition(state, action, key, params)
            rewards = np.asarray(reward(state, action, next_state, key, params))
            assert rewards[0] == -rewards[1]
            total += rewards
            state = next_state
        lead = int(state.sides[0].health - state.sides[1].health)
        assert total[0] == pytest.approx(lead / 100 + np.sign(lead), abs=1e-5)  # sums of float32
        assert game.won(state, params).tolist() == [lead > 0, lead < 0]


# -- combinations ----------------------------------------------------------------------------------

STRONGEST = {
    "width": 56, "distance": 16, "jab_damage": 7, "sweep_damage": 13, "overhead_damage": 21,
    "thrust_damage": 13, "throw_damage": 17, "sweep_startup": 3, "overhead_startup": 5,
    "thrust_reach": 19,
}  # fmt: skip
"""The context in which combinations are longest and hurt most."""


def longest_combo(fight: Fight, memory: dict[Any, tuple[int, int]]) -> tuple[int, int]:
    """Return the most hits, and the most damage, before the second fighter has control again."""
    attacker, victim = fight.bodies
    if victim.stun == 0 or victim.posture == "blocking":
        return 0, 0
    situation = (as_numbers(attacker), as_numbers(victim)[1:])
    if situation not in memory:
        hits, damage = 0, 0
        for action in ACTIONS:
            later = Fight(STRONGEST)
            later.bodies = [dataclasses.replace(attacker), dataclasses.replace(victim, health=100)]
            later.tick((action, "wait"))
            lost = 100 - later.bodies[1].health
            more_hits, more_damage = longest_combo(later, memory)
            hits = max(hits, (lost > 0) + more_hits)
            damage = max(damage, lost + more_damage)
        memory[situation] = hits, damage
    return memory[situation]


def test_no_combination_goes_on_for_ever() -> None:
    """Search all that an attacker can do from each first hit, near and far from the wall."""
    memory: dict[Any, tuple[int, int]] = {}
    hits, damage = 0, 0
    for name, strike in strikes_of(STRONGEST).items():
        for distance in range(strike.reach + 1):
            for room in (0, 4, 20):
                fight = Fight(STRONGEST)
                attacker = Body(fight.width - distance - room, move=name, age=strike.first_tick - 1)
                # The hit is a counter hit, which hurts most.
                victim = Body(room, move="overhead", age=1)
                fight.bodies = [attacker, victim]
                fight.tick(("wait", "wait"))
                if victim.health == 100:
                    continue
                more_hits, more_damage = longest_combo(fight, memory)
                hits = max(hits, 1 + more_hits)
                damage = max(damage, 100 - victim.health + more_damage)
    assert hits == 2
    assert damage < 50


@pytest.mark.parametrize("name", ["jab", "sweep", "overhead", "thrust"])
@pytest.mark.parametrize("guard", ["guard-low", "guard-high"])
def test_a_blocked_attack_can_be_punished_at_close_range(name: str, guard: str) -> None:
    """A jab of who blocked lands, although the attacker guards from its first free tick on."""
    fight = Fight(STRONGEST)
    strike = fight.strikes[name]
    fight.bodies = [Body(24, move=name, age=strike.first_tick - 1), Body(30)]
    fight.tick(("wait", "guard-high" if name == "overhead" else "guard-low"))
    attacker, defender = fight.bodies
    assert attacker.touched == "blocked"
    while defender.stun:
        fight.tick((guard, "wait"))
    health = attacker.health
    for _ in range(fight.strikes["jab"].first_tick):
        fight.tick((guard, "jab"))
    assert attacker.health == health - STRONGEST["jab_damage"] * 3 // 2
    assert attacker.posture == "reeling"


# -- views -----------------------------------------------------------------------------------------


def situation_of(move: int, age: int) -> tuple[State, Params]:
    """Return a match in which the second fighter is in a move."""
    params = Params(**{name: jnp.int32(value) for name, value in STRONGEST.items()})
    state = first_state(params)
    fighter = state.sides[0]._replace(room=jnp.int32(25))
    rival = fighter._replace(move=jnp.int32(move), age=jnp.int32(age))
    return State((fighter, rival), jnp.int32(10)), params


def test_an_attack_does_not_show_before_its_time() -> None:
    task = card(ID).build()
    views = []
    for move in range(JAB, THROW + 1):
        state, params = situation_of(move, 2)
        seat = SeatState(state, jnp.int32(0), (), jnp.float32(0), jnp.bool_(False))
        observation = task.observation(seat, jax.random.key(0), params)
        views.append((
            np.asarray(observation).tobytes(), task.describe(seat, params),
            task.draw(seat, params).tobytes(),
        ))  # fmt: skip
    assert len(set(views)) == 1
    sweep, overhead = (situation_of(MOVES.index(name), 4) for name in ("sweep", "overhead"))
    rows = [
        GAME.observation(state, jax.random.key(0), params) for state, params in (sweep, overhead)
    ]
    assert (np.asarray(rows[0][0]) != np.asarray(rows[1][0])).sum() == 2


def test_the_reference_does_not_know_an_attack_that_does_not_show() -> None:
    task = card(ID).build()
    player = reference_player(task)
    act = jax.jit(player.act)
    actions = []
    for move in range(JAB, THROW + 1):
        state, params = situation_of(move, 2)
        seat = SeatState(state, jnp.int32(0), (), jnp.float32(0), jnp.bool_(False))
        keys = jax.random.split(jax.random.key(0), 8)
        actions.append([int(act((), View(None, None, seat, params), key)[0]) for key in keys])
    assert all(row == actions[0] for row in actions)


def test_contexts_of_the_splits_are_apart() -> None:
    keys = jax.random.split(jax.random.key(0), 500)
    sample = jax.jit(jax.vmap(GAME.sample_params, (0, None)))
    train, test = (sample(keys, jnp.int32(split == Split.TEST)) for split in Split)
    for name in ("width", "jab_damage", "sweep_damage", "overhead_damage", "throw_damage"):
        assert not {*getattr(train, name).tolist()} & {*getattr(test, name).tolist()}, name


# -- players ---------------------------------------------------------------------------------------


def test_each_rung_of_the_ladder_beats_all_below() -> None:
    """Each rung wins more than it loses, by more than 2.58 standard errors (99 %)."""
    results = round_robin(512)
    means = results.mean(2)
    errors = results.std(2) / np.sqrt(results.shape[2])
    for rung in range(len(LADDER)):
        for lower in range(rung):
            lead, error = means[rung, lower], errors[rung, lower]
            assert lead > 2.58 * error, (LADDER[rung].__name__, LADDER[lower].__name__, lead)


@pytest.mark.parametrize("rung", [10, 11, 12])
@pytest.mark.parametrize(
    "rhythm", [("jab", "retreat", "guard-high"), ("advance", "advance", "jab"), ("guard-low",)]
)
def test_a_blind_rhythm_rarely_wins(rung: int, rhythm: tuple[str, ...]) -> None:
    """A short guard once lured the strongest scripts into a slow attack, which a jab countered."""
    actions = jnp.array([ACTIONS.index(rhythm[i % len(rhythm)]) for i in range(MATCH_TICKS)])
    leads = leads_of_blind_play(actions, LADDER[rung - 1].style)
    assert (leads > 0).mean() < 0.2


@jax.jit
def leads_of_blind_play(actions: jax.Array, style: Style) -> jax.Array:
    """Return the leads of fixed actions over a script, by match."""
    params = contexts_of(512)
    words = jax.random.bits(jax.random.key(2), (MATCH_TICKS, 512, WORDS_PER_CHOICE), jnp.uint32)

    def play(states: State, inputs: tuple[jax.Array, jax.Array]) -> tuple[State, None]:
        action, words = inputs

        def go_on(state: State, words: jax.Array, params: Params) -> State:
            fighter, rival = state.sides
            distance = distance_between(state, params)
            reply = choose(style, rival, fighter, distance, Rolls.of(words), params)
            later = advance_tick(state, [action, reply], params)
            return jax.tree.map(
                lambda last, new: jnp.where(is_over(state), last, new), state, later
            )

        return jax.vmap(go_on)(states, words, params), None

    states, _ = jax.lax.scan(play, jax.vmap(first_state)(params), (actions, words))
    return states.sides[0].health - states.sides[1].health


def test_every_rung_is_an_opponent() -> None:
    for rung, fighter in enumerate(LADDER, start=1):
        assert type(card(ID).build(difficulty=rung).opponent) is fighter
    with pytest.raises(ValueError, match="is one of"):
        card(ID).build(difficulty=13)


def test_the_game_of_both_sides_keeps_the_contract() -> None:
    assert not [finding.faults for finding in findings(GAME) if finding.faults]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Observation")
        parallel_api_test(TaskParallelEnv(GAME), num_cycles=100)
