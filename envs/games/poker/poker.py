"""Kuhn and Leduc poker: bet on a card that the other side does not see.

A match has a hundred hands between two players, who take turns to move first, or one hand as in
OpenSpiel (``hands="1"``). ``betting.py`` has the rules. Who ends with more chips wins the match.
What a player sees is its whole information in a hand, so a policy needs no memory. Deals are drawn
from one deck in every episode, so the train and the test split have the same rules: there is one
context.

===============  ==================================================================================
action           Leduc: ``Discrete(3)``: fold, call (or check), raise; Kuhn: ``Discrete(2)``: pass
                 (check or fold), bet (or call). Illegal ones are masked.
observation      Leduc: ``Box(0, 1, (25,))``, Kuhn ``(12,)``: whether one moves first in this hand,
                 one's own card, the public card (Leduc), calls and raises of each round in their
                 order, and the chips that each side has paid
reward           chips won in the hand that ends, negative if lost; else 0
illegal action   costs as much as the dearest hand, 13 chips in Leduc and 2 in Kuhn, each time
termination      after the last hand
success          the match is won: more chips won than lost
context          none
===============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Int, IntArray
from rlbench_suite.core.component import Component, scaled_component, singles
from rlbench_suite.core.game import AgainstOpponent, Game, SeatState
from rlbench_suite.core.policy import Policy, player_for
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

from .betting import RANKS, RULES, Betting
from .exploitability import nash_conv
from .tabulate import table_of_policy

CARD_SIZE = (60, 90)  # pixels
CHIP_COLOURS = ((200, 60, 50), (60, 90, 180))


class State(NamedTuple):
    """A hand of a match. The first side of a hand is agent 0 in hands of even number."""

    cards: IntArray
    """Cards of the first side, of the second side, and face down, int32 ``(3,)``."""
    node: Int
    """Node of the betting tree."""
    hand: Int
    """Number of the hand, from 0."""
    chips: Int
    """Chips that agent 0 has won in the match so far, and agent 1 lost."""


class Poker(Game[tuple[()], State]):
    """The game; see the module's docstring."""

    measures: ClassVar[dict[str, str]] = {"hands": "hands that are over"}
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.betting = Betting(RULES[card.settings["game"]])
        self.hands = self.repeats = int(card.settings["hands"])
        self.has_public = len(self.betting.rules.bets) > 1
        self.action_names = self.betting.rules.actions
        rounds = len(self.betting.rules.bets)
        self.move_size = rounds * self.betting.slots * 2
        size = 1 + len(RANKS) * (2 if self.has_public else 1) + self.move_size + 2
        self.observation_space = self.box(0.0, 1.0, (2, size))
        self.action_space = spaces.MultiDiscrete([len(self.action_names)] * 2)
        self.reward_space = self.box(-self.betting.max_paid, self.betting.max_paid, (2,))

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> tuple[()]:
        """Return nothing: there is one context."""
        return ()

    def initial(self, key: jax.Array, params: tuple[()]) -> State:
        """Deal the first hand."""
        return State(self.deal(key), jnp.int32(0), jnp.int32(0), jnp.int32(0))

    def deal(self, key: jax.Array) -> jax.Array:
        """Draw three cards, int32 ``(3,)``."""
        deals = self.betting.deals
        return jnp.asarray(deals)[(self.bits(key, 1)[0] % np.uint32(len(deals))).astype(jnp.int32)]

    def transition(
        self, state: State, action: jax.Array, key: jax.Array, params: tuple[()]
    ) -> State:
        """Make the move of the agent whose turn it is; deal the next hand if this one is over."""
        mover = self.mover(state)
        node = jnp.asarray(self.betting.children)[state.node, action[mover]]
        chips = state.chips + self.payoff(state._replace(node=node)) * (1 - 2 * (state.hand % 2))
        deals_next = jnp.asarray(self.betting.is_over)[node] & (state.hand < self.hands - 1)
        return State(
            jnp.where(deals_next, self.deal(key), state.cards),
            jnp.where(deals_next, 0, node),
            state.hand + deals_next,
            chips,
        )

    def mover(self, state: State) -> jax.Array:
        """Return the agent that moves next."""
        return (jnp.asarray(self.betting.side)[state.node] + state.hand) % 2

    def payoff(self, state: State) -> jax.Array:
        """Return the chips that the first side wins at this node, 0 while the hand goes on."""
        ranks = self.ranks(state)
        first, second = ranks[0], ranks[1]
        if self.has_public:
            first = first + jnp.where(ranks[0] == ranks[2], len(RANKS), 0)
            second = second + jnp.where(ranks[1] == ranks[2], len(RANKS), 0)
        paid = jnp.asarray(self.betting.paid)[state.node]
        folded = jnp.asarray(self.betting.folded)[state.node]
        showdown = paid[0] * jnp.sign(first - second)
        won = jnp.where(folded == 0, -paid[0], jnp.where(folded == 1, paid[1], showdown))
        return jnp.where(jnp.asarray(self.betting.is_over)[state.node], won, 0).astype(jnp.int32)

    def ranks(self, state: State) -> jax.Array:
        """Return the ranks of the three cards, int32 ``(3,)``."""
        return jnp.asarray(np.array(self.betting.rules.deck, np.int32))[state.cards]

    def acting(self, state: State, params: tuple[()]) -> jax.Array:
        """Return whose turn it is."""
        return np.arange(2) == self.mover(state)

    def action_mask(self, state: State, params: tuple[()]) -> jax.Array:
        """Return the legal actions of who moves, and all for who waits."""
        legal = jnp.asarray(self.betting.legal)[state.node]
        return jnp.concatenate([legal | ~acts for acts in self.acting(state, params)])

    def observation(self, state: State, key: jax.Array, params: tuple[()]) -> jax.Array:
        """Return what each agent sees, ``(2, n)``."""
        ranks = self.ranks(state)
        rows = [self.side_observation(side, state.node, ranks[side], ranks[2]) for side in range(2)]
        first_is_agent_0 = state.hand % 2 == 0
        return jnp.where(first_is_agent_0, jnp.stack(rows), jnp.stack(rows[::-1]))

    def side_observation(self, side: Any, node: Any, own_rank: Any, public: Any) -> jax.Array:
        """Return the observation of a side at a node with its rank and the public one, ``(n,)``.

        The public card is left out while it lies face down.
        """
        rank = np.arange(len(RANKS))
        card_flags = [jnp.asarray(side == 0)[None], rank == own_rank]
        if self.has_public:
            is_shown = jnp.asarray(self.betting.stage)[node] == 1
            card_flags.append((rank == public) & is_shown)
        moves = self.betting.moves.reshape(len(self.betting.nodes), -1)
        paid = jnp.asarray(self.betting.paid)[node]
        shares = jnp.stack([paid[side], paid[1 - side]]).astype(self.dtype)
        flags = [jnp.asarray(flag).astype(self.dtype) for flag in card_flags]
        scale = np.asarray(1 / self.betting.max_paid, self.dtype)
        return jnp.concatenate(
            [*flags, jnp.asarray(moves)[node].astype(self.dtype), shares * scale]
        )

    def information_of(self, observation: jax.Array) -> jax.Array:
        """Return the information set of an observation ``(n,)``, an int32 number."""
        ranks = len(RANKS)
        own_rank = jnp.argmax(observation[1 : 1 + ranks])
        start = 1 + ranks * (2 if self.has_public else 1)
        public = jnp.argmax(observation[1 + ranks : start]) if self.has_public else 0
        # The moves as bits of a number, which is exact in any order of the sum. A fold leaves no
        # mark; the first of equal nodes is the one before it.
        bits = 1 << np.arange(self.move_size, dtype=np.int32)
        code = jnp.where(observation[start : start + self.move_size] > 0.5, bits, 0).sum()
        codes = (self.betting.moves.reshape(len(self.betting.nodes), -1) * bits).sum(1)
        node = jnp.argmax(codes.astype(np.int32) == code)
        return jnp.asarray(self.betting.information)[node, own_rank, public]

    def reward(
        self,
        state: State,
        action: jax.Array,
        next_state: State,
        key: jax.Array,
        params: tuple[()],
    ) -> jax.Array:
        """Return the chips that each agent wins with this move, ``(2,)``."""
        won = next_state.chips - state.chips
        return jnp.stack([won, -won]).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: tuple[()]) -> jax.Array:
        """Return whether the last hand is over."""
        return jnp.asarray(self.betting.is_over)[state.node]

    def won(self, state: State, params: tuple[()]) -> jax.Array:
        """Return which agent is ahead, bool ``(2,)``."""
        return jnp.stack([state.chips > 0, state.chips < 0])

    def info(self, state: State, params: tuple[()]) -> dict[str, jax.Array]:
        """Return ``success``, whether agent 0 is ahead, and the number of hands that are over."""
        is_over = jnp.asarray(self.betting.is_over)[state.node]
        return {"success": state.chips > 0, "hands": state.hand + is_over}

    def exploitability(self, policy: Policy) -> float | None:
        """Return what a best response wins a hand; None for a policy with a memory."""
        table = table_of_policy(self, policy)
        return None if table is None else nash_conv(self.betting, table) / 2

    def noop_action(self) -> np.ndarray:
        """Return check or call in Leduc, check or fold in Kuhn, which are always legal."""
        return np.full(2, len(self.action_names) - 2, self.action_space.dtype)

    # -- names, text and pixels --------------------------------------------------------------------

    def observation_components(self) -> tuple[Component, ...]:
        """Name the cards, the moves in their order, and the chips."""
        cards = {f"own_{rank}": f"1 if one's own card is a {rank}" for rank in RANKS}
        if self.has_public:
            cards |= {
                f"public_{rank}": f"1 if the public card is shown and is a {rank}" for rank in RANKS
            }
        moves = {
            f"round_{stage}_move_{slot}_{kind}": f"1 if move {slot} of round {stage} was a {kind}"
            for stage in range(len(self.betting.rules.bets))
            for slot in range(self.betting.slots)
            for kind in ("call", "raise")
        }
        return (
            Component("moves_first", "1 if one moves first in this hand"),
            *singles(cards | moves),
            *(
                scaled_component(f"{side}_paid", f"chips that {whose} paid", scale, "chips")
                for scale in [self.betting.max_paid]
                for side, whose in (("own", "one has"), ("other", "the other side has"))
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Name the actions."""
        meanings = {
            "fold": "give the hand up, facing a bet",
            "call": "pay what the other side has paid; check if that is nothing",
            "raise": "pay more than the other side has",
            "pass": "check, or give the hand up if facing a bet",
            "bet": "bet a chip, or pay the other side's bet",
        }
        return singles({name: meanings[name] for name in self.action_names})

    def describe(self, state: State, params: tuple[()]) -> str:
        """Say all of the hand, with the cards of both agents."""
        ranks = [RANKS[rank] for rank in np.asarray(self.ranks(state)).tolist()]
        holders = [int(state.hand) % 2, 1 - int(state.hand) % 2]
        cards = ", ".join(f"agent {holders[side]} holds the {ranks[side]}" for side in range(2))
        return f"Hand {int(state.hand) + 1} of {self.hands}: {cards}.\n{self._betting(state)}"

    def describe_seat(self, state: State, params: tuple[()], seat: int) -> str:
        """Say what one side knows: its card, the public card and the moves."""
        side = (seat + int(state.hand)) % 2
        rank = RANKS[int(self.ranks(state)[side])]
        order = "first" if side == 0 else "second"
        paid = self.betting.paid[int(state.node)]
        return (
            f"Hand {int(state.hand) + 1} of {self.hands}. You move {order} and hold the {rank}.\n"
            f"{self._betting(state)}\n"
            f"You have paid {paid[side]}, the other side {paid[1 - side]}."
        )

    def _betting(self, state: State) -> str:
        """Say the public card and the moves of each round."""
        number = int(state.node)
        lines = []
        if self.has_public:
            is_shown = self.betting.stage[number] == 1
            public = RANKS[int(self.ranks(state)[2])] if is_shown else "face down"
            lines.append(f"Public card: {public}.")
        for stage, kinds in enumerate(
            self.betting.nodes[number].moves[: self.betting.stage.max() + 1]
        ):
            lines.append(f"Round {stage + 1}: {', '.join(kinds) or 'no move yet'}.")
        return "\n".join(lines)

    def rules(self) -> str:
        """Say how the game goes."""
        if self.has_public:
            return (
                f"Leduc poker, {self.hands} hand(s). The deck has two jacks, two queens and two "
                "kings. Each of two players pays 1 chip and gets a card. There are two rounds of "
                "betting; a public card is shown before the second. A raise is 2 chips in the "
                "first round and 4 in the second, with at most two raises in a round. Who has the "
                "rank of the public card wins, else the higher card does. The players take turns "
                "to move first. Win more chips than you lose."
            )
        return (
            f"Kuhn poker, {self.hands} hand(s). The deck has a jack, a queen and a king. Each of "
            "two players pays 1 chip and gets a card. Pass checks, or folds if the other has bet; "
            "bet bets 1 chip, or calls a bet. The higher card wins. The players take turns to move "
            "first. Win more chips than you lose."
        )

    def draw(self, state: State, params: tuple[()]) -> np.ndarray:
        """Draw the cards of both sides, the public card and the chips paid."""
        return self.draw_seat(state, None)

    def draw_seat(self, state: State, seat: int | None) -> np.ndarray:
        """Draw what one side sees, that side below; both cards for None, agent 0 below."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), (50, 110, 70))
        canvas = ImageDraw.Draw(image)
        ranks = np.asarray(self.ranks(state)).tolist()
        number = int(state.node)
        own_side = ((seat or 0) + int(state.hand)) % 2
        for side, top in ((own_side, 140), (1 - own_side, 10)):
            is_shown = seat is None or side == own_side
            self._draw_card(canvas, (60, top), ranks[side] if is_shown else None)
            for chip in range(int(self.betting.paid[number, side])):
                x = 130 + 12 * chip
                canvas.ellipse((x, top + 60, x + 10, top + 70), fill=CHIP_COLOURS[side])
            moves = [kind for kinds in self.betting.nodes[number].moves for kind in kinds[side::2]]
            canvas.text((130, top + 20), " ".join(moves), fill="white")
        if self.has_public:
            is_shown = self.betting.stage[number] == 1
            self._draw_card(canvas, (240, 75), ranks[2] if is_shown else None)
        return np.asarray(image)

    def _draw_card(
        self, canvas: ImageDraw.ImageDraw, corner: tuple[int, int], rank: int | None
    ) -> None:
        """Draw a card; None is one that lies face down."""
        x, y = corner
        width, height = CARD_SIZE
        canvas.rectangle(
            (x, y, x + width, y + height), fill="white" if rank is not None else (120, 40, 40)
        )
        if rank is not None:
            canvas.text((x + 8, y + 8), RANKS[rank], fill="black")


class PokerAgainst(AgainstOpponent):
    """One player of the match; see the module's docstring."""

    game: Poker
    opponent: Any
    """A :class:`~.players.TablePlayer`."""
    opponents: ClassVar[Mapping[float | None, str]] = {
        0: "rlbench_suite.envs.games.poker.players:AlwaysCalls",
        1: "rlbench_suite.envs.games.poker.players:Aggressive",
        2: "rlbench_suite.envs.games.poker.players:Equilibrium",
    }

    def player(self, name: str) -> Policy:
        """Return a player of both sides."""
        return player_for(self.game, name)

    def noop_action(self) -> np.ndarray:
        """Return check or call in Leduc, check or fold in Kuhn, which are always legal."""
        return self.game.noop_action()[0]

    def after_illegal_action(self, state: SeatState, params: Any) -> SeatState:
        """Lose as much as in the dearest hand; the hand goes on."""
        worst = jnp.asarray(self.reward_space.low, self.dtype)
        return state._replace(earned=state.earned + worst)

    def info(self, state: SeatState, params: Any) -> dict[str, jax.Array]:
        """Return the measures of the game, and whether one is ahead."""
        return self.game.info(state.game, params) | {"success": state.earned > 0}

    # -- text and pixels ---------------------------------------------------------------------------

    def draw(self, state: SeatState, params: Any) -> np.ndarray:
        """Draw the hand with the other side's card face down."""
        return self.game.draw_seat(state.game, int(state.seat))

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Read the name of an action.

        Raises:
            ValueError: it is none.
        """
        word = text.strip().lower()
        if word not in self.game.action_names:
            raise ValueError(unknown("action", text, self.game.action_names))
        return np.array(self.game.action_names.index(word))

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the name of an action."""
        return self.game.action_names[int(action)]

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with one of {', '.join(self.game.action_names)}."

    def why_illegal(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Say that there is nothing to fold to, or that no raise is left."""
        if self.game.action_names[int(action)] == "fold":
            return "there is no bet to fold to; call, which checks"
        return f"a round has at most {self.game.betting.rules.max_raises} raises"

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Say how the match ended."""
        return f"the last hand is over; you have won {float(state.earned):+.0f} chips"
