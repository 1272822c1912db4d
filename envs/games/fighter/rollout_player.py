"""The reference fighter: it tries every action in its head, against the style of its opponent.

It samples how a match may go on after each action (a rollout): its opponent plays by its script,
and itself goes on as the strongest script does. It leaves that script for an action that ends
clearly better (Tesauro & Galperin 1996, "On-line policy improvement using Monte-Carlo search"). It
knows the opponent's script, which an agent learns by playing. It knows no more than an agent about
what happens now: an attack that does not show yet is sampled.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int
from rlbench_suite.core.policy import View, no_memory, privileged_player

from .fighter import FighterAgainst, FightingGame, lead_of
from .opponents import CERTAIN, WORDS_PER_CHOICE, Reader, Rolls, Style, choose
from .rules import (
    ACTIONS,
    HEALTH,
    JAB,
    Fighter,
    Params,
    State,
    advance_tick,
    distance_between,
    is_over,
    is_revealed,
    startups,
)

ROLLOUTS = 4
"""Rollouts of each action."""
ROLLOUT_TICKS = 16
HEALTH_WEIGHT = 8
"""Points of stamina that one point of health is worth."""
MARGIN = 2
"""Points of health in a rollout by which an action has to be better than the script's."""
STYLE_WEIGHT = 8
"""Weight of the style's own weights of attacks in a guess; each attack has 1 beside it."""


@privileged_player
class RolloutPlayer(eqx.Module):
    """The player of one seat; see the module's docstring."""

    style: Style = eqx.field(static=True)
    """Style of the opponent."""
    game: FightingGame = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: FighterAgainst) -> RolloutPlayer:
        """Return the player against the opponent of a task."""
        opponent: Any = task.opponent
        return cls(opponent.style, task.game)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action whose rollouts end best, int32 scalar."""
        state = in_front(view.state.game, view.state.seat)
        size = ROLLOUTS * (1 + ROLLOUT_TICKS * 2 * WORDS_PER_CHOICE)
        bits = self.game.bits(key, WORDS_PER_CHOICE + size)
        words = bits[WORDS_PER_CHOICE:].reshape(ROLLOUTS, -1)
        fighter, rival = state.sides
        distance = distance_between(state, view.params)
        rolls = Rolls.of(bits[:WORDS_PER_CHOICE])
        script = choose(Reader.style, fighter, rival, distance, rolls, view.params)
        # All actions are tried with the same random words.
        actions = np.repeat(np.arange(len(ACTIONS), dtype=np.int32), ROLLOUTS)
        all_words = jnp.tile(words, (len(ACTIONS), 1))
        worths = jax.vmap(lambda action, row: self.rollout(state, action, row, view.params))(
            actions, all_words
        )
        total_worths = worths.reshape(len(ACTIONS), ROLLOUTS).sum(1)
        # A few rollouts are noisy: small differences are no reason to leave the script.
        is_script = np.arange(len(ACTIONS), dtype=np.int32) == script
        total_worths = total_worths + jnp.where(is_script, MARGIN * HEALTH_WEIGHT * ROLLOUTS, 0)
        return jnp.argmax(total_worths).astype(jnp.int32), memory

    def rollout(self, state: State, action: Int, words: jax.Array, params: Params) -> Int:
        """Return the worth of the state in which a sampled match is after some ticks."""
        fighter, rival = state.sides
        start = state._replace(sides=(fighter, imagined(rival, self.style, words[0], params)))

        def play(state: State, inputs: tuple[jax.Array, jax.Array]) -> tuple[State, None]:
            tick, words = inputs
            fighter, rival = state.sides
            distance = distance_between(state, params)
            own_rolls, rival_rolls = (Rolls.of(pair) for pair in words)
            reply = choose(Reader.style, fighter, rival, distance, own_rolls, params)
            own_action = jnp.where(tick == 0, action, reply)
            rival_action = choose(self.style, rival, fighter, distance, rival_rolls, params)
            next_state = advance_tick(state, (own_action, rival_action), params)
            has_ended = is_over(state)
            return jax.tree.map(
                lambda last, new: jnp.where(has_ended, last, new), state, next_state
            ), None

        ticks = jnp.arange(ROLLOUT_TICKS, dtype=jnp.int32)
        tick_words = words[1:].reshape(ROLLOUT_TICKS, 2, WORDS_PER_CHOICE)
        end, _ = jax.lax.scan(play, start, (ticks, tick_words))
        return worth(end)


def in_front(state: State, seat: Int) -> State:
    """Return the match with the fighter of a seat as its first side."""
    first, second = state.sides
    is_first = seat == 0
    fighter = jax.tree.map(lambda a, b: jnp.where(is_first, a, b), first, second)
    rival = jax.tree.map(lambda a, b: jnp.where(is_first, b, a), first, second)
    return state._replace(sides=(fighter, rival))


def imagined(rival: Fighter, style: Style, word: jax.Array, params: Params) -> Fighter:
    """Return a fighter whose attack, if it does not show yet, is sampled by its style."""
    weights = [
        jnp.where(startup >= rival.age, 1 + STYLE_WEIGHT * weight, 0)
        for startup, weight in zip(startups(params), style.attacks, strict=True)
    ]
    share = (word & np.uint32(CERTAIN - 1)).astype(jnp.int32) * sum(weights) // CERTAIN
    attack: Any = jnp.int32(JAB)
    threshold: Any = 0
    for move, weight in enumerate(weights[:-1], start=JAB):
        threshold = threshold + weight
        attack = jnp.where(share >= threshold, move + 1, attack)
    return rival._replace(move=jnp.where(is_revealed(rival, params), rival.move, attack))


def worth(state: State) -> Int:
    """Return what a state is worth to its first side, in points of stamina."""
    fighter, rival = state.sides
    verdict = jnp.where(is_over(state), HEALTH * jnp.sign(lead_of(state)), 0)
    return HEALTH_WEIGHT * (lead_of(state) + verdict) + fighter.stamina - rival.stamina
