"""Defend a castle: build towers beside a road, lead a hero, and let none of twelve waves through.

Waves of goblins, wolves, ogres and bats come along a road of 32 cells. Three kinds of towers on
eight sites shoot at them; a hero and reinforcements stop those on the ground. The two next waves
are announced. Chance plays no part once a game has begun.

=============  =====================================================================================
action         ``Discrete(47)``: wait; build an archer, a cannon, a mage at one of eight sites;
               upgrade or sell a tower; send the hero to one of four posts; call reinforcements;
               call the next wave. The mask holds the legal ones. A step is an order and two ticks
observation    ``Box(0, 1, (774,))``: coins, lives, time; sites and their reach; hero and
               reinforcements; each enemy on the road; what is left of the wave and the two next
               ones
reward         1 for each wave of which nobody got through, when the last of it is dead
termination    the tenth enemy got through, or all waves have come and gone
success        all waves have come and gone, and the castle stands
difficulty     1, 2, 3: health of enemies grows by 2, 3 or 5 24ths of that in the first wave with
               each wave
context        road and waves. Every second of 256 roads is for test
=============  =====================================================================================

**Rules.** A tick goes in this order; everything within a line happens at once. ``rules.py`` has the
numbers.

1. If the time to the next wave is 0 and all of the last one have entered, a wave begins, and the
   time is 16 ticks. One enemy of the wave enters, into the lowest free slot of 16; with none free
   it waits.
2. Every enemy walks as far as its speed. A slow one goes half as far, rounded up. One on the ground
   does not walk while it is in the cell of the hero or of reinforcements. Whoever reaches the end
   costs a life.
3. Every tower that is ready shoots at the foremost cell in its reach with an enemy (a cannon: on
   the ground). Archers and mages hit the one in the lowest slot there; cannons hit all there but
   bats. Armour takes damage off the hits of archers and cannons, which do at least 1. Mages slow
   for four ticks.
4. The hero and the reinforcements hit all on the ground in their cell, without regard to armour.
   All there hit back, reinforcements before the hero. The hero heals by 1 in a tick without a foe.
   When he falls he is back in the keep and needs 30 ticks to be well.
5. The dead are removed and their bounties paid. They have hit in their last tick.

An upgrade raises a tower by a level; half of all costs come back at a sale. A way of the hero takes
4 ticks. Reinforcements come to the post where he stands, stay for 30 ticks, and can be called again
after 60. Calling a wave early pays a coin for every two ticks saved. Neither sales nor calls earn
reward.

**Deliberate differences from TowerMind** (github.com/tb6147877/TowerMind; its rules are closed):
sites and posts in place of coordinates; coins need no collecting; no skills; an illegal order lets
no tick pass, and ``info`` says why.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.bitset import flags_and_numbers, join_bits
from rlbench_suite.numerics.reductions import sum_in_order

from .maps import (
    LENGTH,
    MAPS,
    SITES,
    maps,
)
from .orders import legal_orders, play_step
from .rules import (
    ACTIONS,
    BOUNTIES,
    CALL_AGAIN,
    COINS,
    ENEMIES,
    GROWTHS,
    HERO,
    INTERVAL,
    KEEP,
    KINDS,
    LIVES,
    MAX_ENEMIES,
    MAX_HEALTH,
    RECOVERY,
    RELOADS,
    SERVICE,
    SLOTS,
    SLOW_TICKS,
    SOLDIERS,
    TICKS,
    TOWERS,
    UNIT,
    WAVES,
    Params,
    State,
    count_clean_waves,
    draw_waves,
    first_state,
    is_finished,
    unpack_wave,
)
from .words import ORDERS, SIZE, describe_state, draw_map, refusal, rules

MAX_COINS = COINS + WAVES * (MAX_ENEMIES * max(BOUNTIES) + INTERVAL // TICKS)
"""More coins than anybody can have."""
SCALARS = (MAX_COINS, LIVES, WAVES, INTERVAL)
"""Largest coins, lives, waves and ticks to the next wave."""
BODIES = (RECOVERY, HERO, SOLDIERS, SERVICE, CALL_AGAIN)
"""Largest values of the hero and the reinforcements.

They are the hero's travel and health, and the reinforcements' health, service and cooldown.
"""
ENEMY = (LENGTH * UNIT, MAX_HEALTH, SLOW_TICKS, WAVES)
"""Largest values of an enemy's distance, health, ticks of being slow, and wave."""


class TowerDefence(Task[Params, State]):
    """The task; see the module's docstring.

    Attributes:
        growth: growth of health from wave to wave, in 24ths of that in the first wave.
    """

    measures: ClassVar[dict[str, str]] = {
        "clean": "waves that have come and gone without a leak",
        "wave": "waves that have begun",
        "killed": "enemies that were killed",
        "leaked": "enemies that got through",
        "enemies": "enemies on the road",
        "coins": "coins",
    }
    picture_shape = (*SIZE, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 2.0 if difficulty is None else difficulty
        if number not in (1, 2, 3):
            raise ValueError(
                f"A difficulty of {card.id} is how fast enemies grow: 1, 2 or 3; got "
                f"{difficulty!r}."
            )
        self.growth = GROWTHS[int(number) - 1]
        entries = sum(component.size for component in self.observation_components())
        self.observation_space = self.box(0.0, 1.0, (entries,))
        self.action_space = spaces.Discrete(ACTIONS)
        self.reward_space = self.box(0.0, float(WAVES), ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a road and the waves."""
        bits = self.bits(key, WAVES + 1)
        index = 2 * (bits[WAVES] % (MAPS // 2)).astype(jnp.int32) + split
        roads, sites, reach = (jnp.asarray(table)[index] for table in maps())
        return Params(roads, sites, reach, jnp.int32(self.growth), draw_waves(bits[:WAVES]))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin with free sites, the hero in the keep, and nobody on the road."""
        return first_state()

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Carry out the order, then let the ticks of a step pass."""
        return play_step(state, action, params)

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark the legal orders, bool ``(47,)``."""
        return legal_orders(state)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return everything but waves that are not announced; see the module's docstring."""
        alive = state.health > 0
        coming = [
            jnp.where(
                state.wave + i < WAVES, params.waves[jnp.minimum(state.wave + i, WAVES - 1)], 0
            )
            for i in (0, 1)
        ]
        announced = []
        for word in (state.queue, *coming):
            first, number, second, further = unpack_wave(word)
            announced += [
                jnp.where(np.arange(4) == first, number, 0),
                jnp.where(np.arange(4) == second, further, 0),
            ]
        stands = state.soldiers > 0
        bit = lambda index, when=True: jnp.where(when, jnp.uint32(1) << index.astype(jnp.uint32), 0)  # noqa: E731
        # Bit 0 of a site's set stands for no tower.
        sites = bit(state.towers) >> 1
        kinds = bit(state.kind, alive)
        fields = [(word, LENGTH) for word in params.reach.reshape(-1)]
        fields += [(sites[site], KINDS - 1) for site in range(SITES)]
        fields += [(bit(state.post), KEEP + 1), (bit(state.station, stands), KEEP)]
        fields += [(kinds[slot], len(ENEMIES)) for slot in range(SLOTS)]
        fields += [(state.breached, WAVES)]
        enemies = (state.distance, state.health, state.slow, state.group + 1)
        numbers = (
            ((state.coins, jnp.maximum(LIVES - state.leaked, 0), state.wave, state.timer), SCALARS),
            ((state.reloads,), (max(RELOADS),)),
            (
                (state.travel, state.hero, state.soldiers, state.service * stands, state.cooldown),
                BODIES,
            ),
            ((jnp.where(alive, quantity, 0) for quantity in enemies), ENEMY),
            (announced, (MAX_ENEMIES // 2,) * len(announced)),
        )
        blocks = [
            (jnp.atleast_1d(value), scale)
            for group, scales in numbers
            for value, scale in zip(group, scales, strict=True)
        ]
        scales = np.concatenate(
            [np.full(value.shape, scale, self.dtype) for value, scale in blocks]
        )
        joined = computed_once(jnp.concatenate)([value for value, _ in blocks]).astype(self.dtype)
        return flags_and_numbers(
            join_bits(fields), sum(width for _, width in fields), joined / scales
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        kinds = ", ".join(ENEMIES)
        return (
            Component(
                "reach",
                "[near or far, site, cell]: cells of the road in reach",
                shape=(2, SITES, LENGTH),
            ),
            Component(
                "towers", "[site, tower and level]: what each site has", shape=(SITES, KINDS - 1)
            ),
            Component("post", "post of the hero; the last is the keep", shape=(KEEP + 1,)),
            Component("station", "post of the reinforcements", shape=(KEEP,)),
            Component(
                "kinds", f"[slot, kind]: enemies on the road: {kinds}", shape=(SLOTS, len(ENEMIES))
            ),
            Component("breached", "whether an enemy of each wave got through", shape=(WAVES,)),
            Component(
                "time", "coins, lives, waves that have begun, ticks to the next", f"{SCALARS}", (4,)
            ),
            Component("reloads", "ticks until each tower is ready", f"{max(RELOADS)}", (SITES,)),
            Component(
                "bodies",
                (
                    "ticks of the hero's way, his health; reinforcements: health, ticks of stay, "
                    "ticks to the next call"
                ),
                f"{BODIES}",
                (5,),
            ),
            Component(
                "enemies",
                "[quantity, slot]: place, health, ticks of being slow, wave",
                shape=(4, SLOTS),
            ),
            Component(
                "waves",
                (
                    f"[wave, group, kind]: {kinds} still to enter, of the next wave, of the one "
                    "after it"
                ),
                f"{MAX_ENEMIES // 2}",
                (3, 2, len(ENEMIES)),
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the orders."""
        builds = tuple(
            Component(f"build_{tower}", f"build a tower, the {tower}, at a site", shape=(SITES,))
            for tower in TOWERS
        )
        return (
            Component("wait", "give no order"),
            *builds,
            Component("upgrade", "raise the level of a site's tower", shape=(SITES,)),
            Component("sell", "sell a site's tower for half its cost", shape=(SITES,)),
            Component("hero", "send the hero to a post", shape=(KEEP,)),
            Component("reinforce", "call reinforcements to the hero's post"),
            Component("call", "let the next wave begin now"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the number of waves that have ended in this step without a leak."""
        return (count_clean_waves(next_state) - count_clean_waves(state)).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the castle has fallen, or all waves have come and gone."""
        return is_finished(state)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, all waves over and the castle standing, and the measures."""
        return {
            "success": is_finished(state) & (state.leaked < LIVES),
            "clean": count_clean_waves(state),
            "wave": state.wave,
            "killed": state.killed,
            "leaked": state.leaked,
            "enemies": sum_in_order((state.health > 0).astype(jnp.int32)),
            "coins": state.coins,
        }

    # -- host side: no more than the observation shows ---------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe the road once, then everything that changes."""
        return describe_state(state, params)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the map with towers, enemies, hero and reinforcements, and the next waves below."""
        return draw_map(state, params)

    def rules(self) -> str:
        """Return the rules."""
        return rules(self.growth)

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say in words why an order cannot be carried out."""
        return refusal(int(action), state)

    def how_to_act(self) -> str:
        """Tell a text player the orders."""
        towers = "|".join(TOWERS)
        return (
            f"Answer with one order: wait, build {towers} SITE, upgrade SITE, sell SITE, hero "
            "POST, reinforce, call; "
            "for example 'build archer 3'."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of an order.

        Raises:
            ValueError: the text is no order; the message names the nearest one.
        """
        name = " ".join(text.lower().split())
        if name not in ORDERS:
            raise ValueError(unknown("order", text, ORDERS))
        return np.array(ORDERS.index(name), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the order of an action."""
        return ORDERS[int(action)]

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the castle stands."""
        return (
            "the castle has fallen"
            if int(state.leaked) >= LIVES
            else "all waves have come and gone"
        )
