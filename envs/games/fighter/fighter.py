"""A fighting game: two fighters with guards, combinations and throws, who act at once.

It asks what FightLadder asks (Li et al. 2024, arXiv:2406.02081), with rules of its own in whole
numbers (``rules.py``), so that no emulator is needed: distance, guards of two heights, stamina,
attacks with startup, active and recovery ticks, stun after hits, throws against guards, jumps and
dashes. A low guard stops all but overheads and throws. An attack shows which one it is from its
fourth tick on, so that defence against fast ones is a guess. Both fighters obey the same rules.
Twelve scripted opponents make a ladder (``opponents.py``); a difficulty is a rung, 1 to 12.

===============  ==================================================================================
action           ``Discrete(12)``: wait, advance, retreat, guard high or low, jab, sweep, overhead,
                 thrust, throw, jump, dash back. A fighter without control, or too tired, waits.
observation      ``Box(0, 1, (52,))``: health, stamina, place, move with its ticks, guard and stun
                 of both, of the rival only as far as it shows; distance, time and the context
reward           health that the rival loses less what one loses, in parts of the full health; 1
                 more for a win, -1 for a loss
termination      a fighter is beaten, or after 240 ticks of 50 ms, when more health wins
success          the match is won
context          width of the arena and first distance, damage of each attack, startup of sweep and
                 overhead, reach of the thrust; bands of train and test alternate
===============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Int
from rlbench_suite.core.component import Component, scaled_component, singles
from rlbench_suite.core.game import AgainstOpponent, Game, SeatState
from rlbench_suite.core.policy import Policy, player_for
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ...shared.named_actions import NamedActions
from .opponents import LADDER
from .picture import PICTURE_SHAPE, draw_match
from .rules import (
    ACTIONS,
    ATTACKS,
    BLOCKING,
    DOWN,
    FREE,
    GUARD_HIGH,
    GUARD_LOW,
    HEALTH,
    HIT,
    MATCH_TICKS,
    MOVES,
    POSTURES,
    REELING,
    STAMINA,
    Fighter,
    Params,
    State,
    advance_tick,
    damages,
    distance_between,
    first_state,
    is_over,
    is_revealed,
)

RANGES = {
    "width": (56, 88, 8),
    "distance": (16, 40, 8),
    "jab_damage": (4, 8, 4),
    "sweep_damage": (6, 14, 4),
    "overhead_damage": (10, 22, 4),
    "thrust_damage": (6, 14, 4),
    "throw_damage": (10, 18, 4),
    "thrust_reach": (12, 20, 4),
}
"""Lowest value of each part of the context, the first beyond the highest, and its bands."""
STARTUPS = {"sweep_startup": (3, 4), "overhead_startup": (5, 6)}
"""Startups in ticks, on both splits."""
MAX_AGE = 16
MAX_STUN = 8
MAX_COMBO = 4
MAX_ROOM = RANGES["width"][1] - 1


class FightingGame(Game[Params, State]):
    """The game; see the module's docstring. Agent 0 stands on the left."""

    measures: ClassVar[dict[str, str]] = {
        "health": "health of agent 0",
        "rival_health": "health of agent 1",
    }
    period = 0.05
    picture_shape = PICTURE_SHAPE

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        size = len(self.observation_components())
        self.observation_space = self.box(0.0, 1.0, (2, size))
        self.action_space = spaces.MultiDiscrete([len(ACTIONS)] * 2)
        self.reward_space = self.box(-2.0, 2.0, (2,))

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the context. The bands of train and test alternate."""
        units = self.uniform(key, len(RANGES) + len(STARTUPS))
        numbers = {}
        for unit, (name, (low, high, bands)) in zip(units, RANGES.items(), strict=False):
            value = alternating_bands(unit, split, low, high, bands)
            numbers[name] = jnp.floor(value).astype(jnp.int32)
        for unit, (name, (short, long)) in zip(units[len(RANGES) :], STARTUPS.items(), strict=True):
            numbers[name] = jnp.where(unit < 0.5, short, long)
        return Params(**numbers)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Put both fighters at equal distances from the middle."""
        return first_state(params)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Return the state after a tick in which both act at once."""
        return advance_tick(state, action.astype(jnp.int32), params)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each fighter sees, ``(2, n)``."""
        context = [
            getattr(params, name) / scale
            for name, scale in zip(CONTEXT_MEANINGS, CONTEXT_SCALES, strict=True)
        ]
        rows = []
        for seat in range(2):
            fighter, rival = state.sides[seat], state.sides[1 - seat]
            entries = [
                *fighter_entries(fighter, jnp.bool_(True)),
                *fighter_entries(rival, is_revealed(rival, params)),
                ~is_revealed(rival, params),
                distance_between(state, params) / MAX_ROOM,
                (MATCH_TICKS - state.tick) / MATCH_TICKS,
                *context,
            ]
            rows.append(self.stack(*entries))
        return jnp.stack(rows)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the health that the rival lost less one's own loss, and the verdict, ``(2,)``."""
        gain = lead_of(next_state) - lead_of(state)
        has_ended = is_over(next_state) & ~is_over(state)
        verdict = jnp.where(has_ended, jnp.sign(lead_of(next_state)), 0)
        earned = (gain * (1 / HEALTH) + verdict).astype(self.dtype)
        return jnp.stack([earned, -earned])

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether a fighter is beaten or time is up."""
        return is_over(state)

    def won(self, state: State, params: Params) -> jax.Array:
        """Return which fighter has won, bool ``(2,)``."""
        lead = lead_of(state)
        return is_over(state) & jnp.stack([lead > 0, lead < 0])

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, whether agent 0 has won, and the health of both."""
        return {
            "success": self.won(state, params)[0],
            "health": state.sides[0].health,
            "rival_health": state.sides[1].health,
        }

    # -- names, text and pixels --------------------------------------------------------------------

    def observation_components(self) -> tuple[Component, ...]:
        """Name what is seen of both fighters, and the context."""
        context = [
            scaled_component(name, meaning, scale, unit)
            for (name, meaning), scale, unit in zip(
                CONTEXT_MEANINGS.items(), CONTEXT_SCALES, CONTEXT_UNITS, strict=True
            )
        ]
        return (
            *fighter_components("own", "one's own"),
            *fighter_components("rival", "the rival's"),
            *singles({"rival_unrevealed": "1 if the rival begins an attack not shown yet"}),
            scaled_component("distance", "distance between the fighters", MAX_ROOM, "units"),
            scaled_component("time", "remaining time", MATCH_TICKS, "ticks"),
            *context,
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the actions."""
        return singles(ACTION_MEANINGS)

    def describe(self, state: State, params: Params) -> str:
        """Say everything of both fighters."""
        return self._describe(state, params, None)

    def describe_seat(self, state: State, params: Params, seat: int) -> str:
        """Say what one fighter sees."""
        return self._describe(state, params, seat)

    def _describe(self, state: State, params: Params, seat: int | None) -> str:
        """Say what a fighter sees; everything, with agent 0 first, for None."""
        first = seat or 0
        names = ("Agent 0", "Agent 1") if seat is None else ("You", "The rival")
        damage = ", ".join(
            f"{attack} {int(points)}"
            for attack, points in zip(ATTACKS, damages(params), strict=True)
        )
        lines = [
            f"Arena of {int(params.width)} units. Damage: {damage}. Startup: sweep "
            f"{int(params.sweep_startup)}, overhead {int(params.overhead_startup)} ticks. "
            f"Reach of the thrust: {int(params.thrust_reach)} units.",
            "",
            f"{MATCH_TICKS - int(state.tick)} ticks remain. "
            f"Distance {int(distance_between(state, params))}.",
        ]
        for name, side in zip(names, (first, 1 - first), strict=True):
            fighter = state.sides[side]
            is_shown = seat in (None, side) or bool(is_revealed(fighter, params))
            lines.append(f"{name}: {fighter_in_words(fighter, is_shown)}")
        return "\n".join(lines)

    def rules(self) -> str:
        """Say how the game goes."""
        return (
            f"Two fighters act at once, in ticks of 50 ms. The attacks {', '.join(ATTACKS)} have "
            "a startup, active ticks and a recovery; one that hits stuns. A jab that hits can be "
            "cancelled into sweep, thrust or overhead, those two into overhead. guard-low stops "
            "all but overhead and throw, guard-high all but sweep and throw; a block costs "
            "stamina. A throw needs a rival close by, on the ground and in control, that does "
            "not strike. A jump passes over sweeps and throws; nothing touches the first ticks "
            "of dash-back. A hit during an attack of the rival does half as much damage again. "
            "Take all of the rival's health, or have more when time is up."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw both fighters, with their health and stamina."""
        return draw_match(state, params)


def lead_of(state: State) -> Int:
    """Return the health of agent 0 less that of agent 1."""
    return state.sides[0].health - state.sides[1].health


def fighter_entries(fighter: Fighter, is_shown: Flag) -> list[Any]:
    """Return what is seen of a fighter, without its move if that is not shown."""
    moves = [is_shown & (fighter.move == move) for move in range(len(MOVES))]
    return [
        fighter.health / HEALTH,
        fighter.stamina / STAMINA,
        fighter.room / MAX_ROOM,
        *moves,
        fighter.age / MAX_AGE,
        fighter.contact == HIT,
        fighter.guard == GUARD_HIGH,
        fighter.guard == GUARD_LOW,
        fighter.posture == REELING,
        fighter.posture == BLOCKING,
        fighter.posture == DOWN,
        fighter.stun / MAX_STUN,
        jnp.minimum(fighter.combo, MAX_COMBO) / MAX_COMBO,
    ]


def fighter_components(side: str, whose: str) -> list[Component]:
    """Name the entries of :func:`fighter_entries`."""
    moves = {f"{side}_{move}": f"1 if {whose} move is {move}" for move in MOVES}
    flags = {
        f"{side}_hits": f"1 if {whose} attack has hit, so that it may be cancelled",
        f"{side}_guards_high": f"1 if {whose} high guard is up",
        f"{side}_guards_low": f"1 if {whose} low guard is up",
    }
    postures = {
        f"{side}_{posture}": f"1 if {whose} fighter is {posture}" for posture in POSTURES[REELING:]
    }
    return [
        scaled_component(f"{side}_health", f"{whose} health", HEALTH, "points"),
        scaled_component(f"{side}_stamina", f"{whose} stamina", STAMINA, "points"),
        scaled_component(f"{side}_room", f"distance to {whose} wall", MAX_ROOM, "units"),
        *singles(moves),
        scaled_component(f"{side}_age", f"ticks of {whose} move so far", MAX_AGE, "ticks"),
        *singles(flags | postures),
        scaled_component(f"{side}_stun", f"ticks until {whose} control is back", MAX_STUN, "ticks"),
        scaled_component(
            f"{side}_combo", f"hits in a row that {whose} fighter took", MAX_COMBO, "hits"
        ),
    ]


def fighter_in_words(fighter: Fighter, is_shown: bool) -> str:
    """Return health, stamina, place and what a fighter is doing."""
    health, stamina, room, move, age, contact, guard, posture, stun, combo = map(int, fighter)
    name = MOVES[move] if is_shown else "an attack that does not show yet which"
    phrases = [
        f"health {health}",
        f"stamina {stamina}",
        f"{room} units to the wall",
        f"{name} for {age} ticks" if move != FREE else "no move",
    ]
    if contact == HIT:
        phrases.append("which has hit")
    if guard:
        phrases.append(ACTIONS[guard])
    if stun:
        phrases.append(f"{POSTURES[posture]} for {stun} more ticks")
    if combo:
        phrases.append(f"{combo} hits in a row taken")
    return ", ".join(phrases) + "."


CONTEXT_MEANINGS = {
    "width": "width of the arena",
    "jab_damage": "damage of the jab",
    "sweep_damage": "damage of the sweep",
    "overhead_damage": "damage of the overhead",
    "thrust_damage": "damage of the thrust",
    "throw_damage": "damage of the throw",
    "sweep_startup": "startup of the sweep",
    "overhead_startup": "startup of the overhead",
    "thrust_reach": "reach of the thrust",
}
"""Observed parts of the context; the first distance shows by itself."""
CONTEXT_SCALES = [
    RANGES[name][1] - 1 if name in RANGES else STARTUPS[name][-1] for name in CONTEXT_MEANINGS
]
CONTEXT_UNITS = ["units", *["points"] * len(ATTACKS), "ticks", "ticks", "units"]
ACTION_MEANINGS = {
    "wait": "stand still and recover stamina",
    "advance": "walk towards the other fighter",
    "retreat": "walk back",
    "guard-high": "stop jab, thrust and overhead",
    "guard-low": "stop jab, thrust and sweep",
    "jab": "fast attack of short reach",
    "sweep": "low attack, which a high guard does not stop",
    "overhead": "slow attack that knocks down, which a low guard does not stop",
    "thrust": "attack of long reach",
    "throw": "seize a fighter close by, on guard or not",
    "jump": "leap forward, over sweeps and throws",
    "dash-back": "leap back, safe in the first ticks",
}


class FighterAgainst(NamedActions, AgainstOpponent):
    """One fighter, whose side is sampled; see the module's docstring."""

    game: FightingGame
    action_names = ACTIONS
    period = 0.05
    opponents: ClassVar[Mapping[float | None, str]] = {
        rung: f"{fighter.__module__}:{fighter.__name__}"
        for rung, fighter in enumerate(LADDER, start=1)
    }

    def player(self, name: str) -> Policy:
        """Return a player of both fighters."""
        return player_for(self.game, name)

    def info(self, state: SeatState, params: Any) -> dict[str, jax.Array]:
        """Return whether one has won, and one's own health and the other's."""
        won = self.game.won(state.game, params)[state.seat]
        first, second = (fighter.health for fighter in state.game.sides)
        is_first = state.seat == 0
        return {
            "success": won,
            "health": jnp.where(is_first, first, second),
            "rival_health": jnp.where(is_first, second, first),
        }

    def draw(self, state: SeatState, params: Any) -> np.ndarray:
        """Draw the match with one's own fighter in red; the rival's attack as far as it shows."""
        return draw_match(state.game, params, int(state.seat))

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Say who won, and how."""
        health, rival_health = int(info["health"]), int(info["rival_health"])
        if min(health, rival_health) > 0:
            return f"time is up; you have {health} health, the other fighter {rival_health}"
        if health == rival_health:
            return "both fighters are beaten"
        return "the other fighter is beaten" if health > 0 else "you are beaten"
