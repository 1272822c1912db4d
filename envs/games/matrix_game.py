"""Matrix games: two agents choose at once, and a table says what each of them earns.

The games that every text on learning in games begins with: whether agents cooperate, coordinate,
share or mix. All equilibria are known exactly (``tests/games/test_matrix_game.py`` enumerates
them), so they are the first test of an algorithm for many agents. The default is the climbing game,
whose best joint action lies beside the worst one: independent learners end at 5 or 7 instead of 11
(Claus & Boutilier 1998, AAAI-98).

===============  ==================================================================================
action           ``MultiDiscrete([n, n])``: one of two or three actions for each agent
observation      ``Box(0, 1, (2, 2 n + 1))``: one's own last action and the other's, zeros in the
                 first round; whether one is agent 0
reward           payoff of each agent; scores take the mean of both
termination      after the last round: a hundred, or one with ``rounds="1"``
success          the joint action of the last round has the largest sum of payoffs
context          none: the table is that of the game
===============  ==================================================================================
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

CELL = (100, 60)  # pixels


class Table(NamedTuple):
    """Actions and payoffs of a game; agent 0 chooses the row."""

    actions: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    """Payoffs of agent 0, by its own action and the other's."""
    columns: tuple[tuple[float, ...], ...] | str
    """Payoffs of agent 1 by the same; ``symmetric``, ``common`` or ``opposite`` to agent 0's."""

    @property
    def payoffs(self) -> np.ndarray:
        """Payoffs of both agents, ``(2, n, n)``."""
        rows = np.array(self.rows, float)
        by_name = {"symmetric": rows.T, "common": rows, "opposite": -rows}
        columns = by_name[self.columns] if isinstance(self.columns, str) else self.columns
        return np.array([rows, columns], float)


TABLES = {
    "climbing": Table(("a", "b", "c"), ((11, -30, 0), (-30, 7, 6), (0, 0, 5)), "common"),
    "penalty": Table(("a", "b", "c"), ((10, 0, -10), (0, 2, 0), (-10, 0, 10)), "common"),
    "prisoners-dilemma": Table(("cooperate", "defect"), ((3, 0), (5, 1)), "symmetric"),
    "stag-hunt": Table(("stag", "hare"), ((4, 0), (3, 3)), "symmetric"),
    "chicken": Table(("swerve", "straight"), ((3, 1), (4, 0)), "symmetric"),
    "battle-of-the-sexes": Table(("opera", "football"), ((3, 0), (0, 2)), ((2, 0), (0, 3))),
    "matching-pennies": Table(("heads", "tails"), ((1, -1), (-1, 1)), "opposite"),
    "rock-paper-scissors": Table(
        ("rock", "paper", "scissors"), ((0, -1, 1), (1, 0, -1), (-1, 1, 0)), "opposite"
    ),
    "shapley": Table(
        ("a", "b", "c"),
        ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        ((0, 1, 0), (0, 0, 1), (1, 0, 0)),
    ),
}
"""The games by the value of the setting ``game``."""


class State(NamedTuple):
    """The moves of a match so far."""

    last: IntArray
    """Last action of each agent, int32 ``(2,)``; -1 in the first round."""
    round: Int
    """Number of rounds that are over."""


class MatrixGame(Task[tuple[()], State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {"welfare": "mean payoff of the last round"}

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.table = TABLES[card.settings["game"]]
        self.rounds = int(card.settings["rounds"])
        self.payoffs = self.table.payoffs.astype(self.dtype)
        self.size = len(self.table.actions)
        self.observation_space = self.box(0.0, 1.0, (2, 2 * self.size + 1))
        self.action_space = spaces.MultiDiscrete([self.size] * 2)
        self.reward_space = self.box(self.payoffs.min(axis=(1, 2)), self.payoffs.max(axis=(1, 2)))

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> tuple[()]:
        """Return nothing: there is one context."""
        return ()

    def initial(self, key: jax.Array, params: tuple[()]) -> State:
        """Begin the first round."""
        return State(jnp.full(2, -1, jnp.int32), jnp.int32(0))

    def transition(
        self, state: State, action: jax.Array, key: jax.Array, params: tuple[()]
    ) -> State:
        """Note the actions of both."""
        return State(action.astype(jnp.int32), state.round + 1)

    def observation(self, state: State, key: jax.Array, params: tuple[()]) -> jax.Array:
        """Return the last actions as each agent sees them, ``(2, n)``."""
        last_choices = (np.arange(self.size) == state.last[:, None]).astype(self.dtype)
        rows = [
            jnp.concatenate([last_choices[agent], last_choices[1 - agent], self.stack(agent == 0)])
            for agent in range(2)
        ]
        return jnp.stack(rows)

    def reward(
        self,
        state: State,
        action: jax.Array,
        next_state: State,
        key: jax.Array,
        params: tuple[()],
    ) -> jax.Array:
        """Return the payoffs, ``(2,)``."""
        return jnp.asarray(self.payoffs)[:, action[0], action[1]]

    def terminal(self, state: State, key: jax.Array, params: tuple[()]) -> jax.Array:
        """Return whether the last round is over."""
        return state.round == self.rounds

    def info(self, state: State, params: tuple[()]) -> dict[str, jax.Array]:
        """Return the mean payoff, and whether no joint action has a larger one."""
        welfare = self.payoffs.sum(0) * np.asarray(0.5, self.dtype)
        mean = jnp.asarray(welfare)[state.last[0], state.last[1]]
        has_played = state.round > 0
        return {
            "success": has_played & (mean == welfare.max()),
            "welfare": jnp.where(has_played, mean, 0).astype(self.dtype),
        }

    def noop_action(self) -> np.ndarray:
        """Return the last action for both, the safe one of the climbing game."""
        return np.full(2, self.size - 1, self.action_space.dtype)

    # -- names, text and pixels --------------------------------------------------------------------

    def observation_components(self) -> tuple[Component, ...]:
        """Name the last actions of both."""
        sides = (("own", "one's own"), ("other", "the other's"))
        last = {
            f"{side}_{name}": f"1 if {whose} last action was {name}"
            for side, whose in sides
            for name in self.table.actions
        }
        return singles(last | {"is_agent_0": "1 for agent 0, 0 for agent 1"})

    def action_components(self) -> tuple[Component, ...]:
        """List the actions; a joint action has one entry an agent."""
        names = ", ".join(f"{number} {name}" for number, name in enumerate(self.table.actions))
        return (Component("action", f"[agent]: {names}", shape=(self.card.agents,)),)

    def describe(self, state: State, params: tuple[()]) -> str:
        """Say what was played last."""
        count = f"Round {int(state.round) + 1} of {self.rounds}."
        if int(state.round) == 0:
            return f"{count} Nothing was played yet."
        names = [self.table.actions[int(action)] for action in state.last]
        return f"{count} Last round: agent 0 {names[0]}, agent 1 {names[1]}."

    def rules(self) -> str:
        """Say the payoffs of each pair of actions."""
        lines = [
            f"{row} and {column}: {self.payoffs[0, i, j]:g} and {self.payoffs[1, i, j]:g}"
            for i, row in enumerate(self.table.actions)
            for j, column in enumerate(self.table.actions)
        ]
        text = "\n".join(lines)
        return f"Two agents choose at once. Payoffs of agent 0 and agent 1:\n{text}"

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Read the names of two actions.

        Raises:
            ValueError: there are not two, or one is no action.
        """
        words = text.lower().split()
        if len(words) != 2:
            raise ValueError(f"expected two actions of {', '.join(self.table.actions)}, {text!r}")
        for word in words:
            if word not in self.table.actions:
                raise ValueError(unknown("action", word, self.table.actions))
        return np.array([self.table.actions.index(word) for word in words])

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the names of both actions."""
        return " ".join(self.table.actions[int(choice)] for choice in action)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with the actions of both agents, each of {', '.join(self.table.actions)}."

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Say that the last round is over."""
        return f"the last round is over; its mean payoff was {float(info['welfare']):g}"

    def draw(self, state: State, params: tuple[()]) -> np.ndarray:
        """Draw the table, with the cell of the last round marked."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        cell_width, cell_height = CELL
        for i in range(self.size):
            for j in range(self.size):
                x, y = j * cell_width, i * cell_height
                is_last = [int(action) for action in state.last] == [i, j]
                canvas.rectangle(
                    (x, y, x + cell_width - 1, y + cell_height - 1),
                    fill=(250, 220, 120) if is_last else "white",
                    outline="black",
                )
                text = f"{self.payoffs[0, i, j]:g}, {self.payoffs[1, i, j]:g}"
                canvas.text((x + 10, y + 22), text, fill="black")
        return np.asarray(image)


class BestTogether(eqx.Module):
    """Plays the joint action with the largest sum of payoffs."""

    row: int = eqx.field(static=True)
    column: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: MatrixGame) -> BestTogether:
        """Return the player."""
        best = int(task.payoffs.sum(0).argmax())
        return cls(*divmod(best, task.size))

    def initial(self, params: Any) -> tuple[()]:
        """Return nothing: the player has no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the joint action, ``(2,)``."""
        return jnp.array([self.row, self.column], jnp.int32), memory
