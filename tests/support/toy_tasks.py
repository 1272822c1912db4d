"""Decision problems whose solutions are known by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard


class Clock(NamedTuple):
    place: Any


def card(horizon: int, **more: Any) -> TaskCard:
    return TaskCard(
        id="rlsuite/Toy-v0", family="toy", summary="A toy.", source="by hand",
        entry_point="toy_tasks:Toy", reference="toy_tasks:Toy", horizon=horizon, **more,
    )  # fmt: skip


class Toy(Task[Any, Clock]):
    """One state; what it pays is for the subclass to say."""

    picture_shape = (8, 8, 3)

    def __init__(self, horizon: int = 8, **more: Any) -> None:
        super().__init__(card(horizon, **more), difficulty=None, dtype="float32")
        self.observation_space = self.box(0.0, 1.0, (1,))
        self.action_space: spaces.Space[Any] = spaces.Discrete(2)
        self.reward_space = self.box(-20.0, 10.0)

    def sample_params(self, key, split):
        return Clock(jnp.float32(0))

    def initial(self, key, params):
        return Clock(jnp.int32(0))

    def transition(self, state, action, key, params):
        return state

    def observation(self, state, key, params):
        return jnp.ones(self.observation_space.shape)

    def reward(self, state, action, next_state, key, params):
        return jnp.float32(1)

    def terminal(self, state, key, params):
        return jnp.bool_(False)

    def info(self, state, params):
        return {"success": jnp.bool_(True)}

    def describe(self, state, params):
        return "a toy"

    def draw(self, state, params):
        return np.zeros(self.picture_shape, np.uint8)


class Bandit(Toy):
    """Arm i of five pays i; the best may be masked."""

    def __init__(self, masked: bool, **more: Any) -> None:
        super().__init__(horizon=4, **more)
        self.masked = masked
        self.action_space = spaces.Discrete(5)

    def action_mask(self, state, params):
        return jnp.arange(5) < (4 if self.masked else 5)

    def reward(self, state, action, next_state, key, params):
        return action.astype(jnp.float32)


class Pole(NamedTuple):
    place: Any
    speed: Any
    angle: Any
    rate: Any


class CartPole(Toy):
    """The cart and pole of Barto, Sutton & Anderson 1983.

    The constants are those of Gymnasium's CartPole-v1: 500 steps, each of which pays 1.
    """

    def __init__(self) -> None:
        super().__init__(horizon=500)
        self.observation_space = self.box(-1e6, 1e6, (4,))

    def initial(self, key, params):
        return Pole(*jax.random.uniform(key, (4,), jnp.float32, -0.05, 0.05))

    def transition(self, state, action, key, params):
        cosine = jnp.cos(state.angle)
        sine = jnp.sin(state.angle)
        push = (jnp.where(action == 1, 10.0, -10.0) + 0.05 * state.rate**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        acceleration = push - 0.05 * turn * cosine / 1.1
        return Pole(
            state.place + 0.02 * state.speed,
            state.speed + 0.02 * acceleration,
            state.angle + 0.02 * state.rate,
            state.rate + 0.02 * turn,
        )

    def observation(self, state, key, params):
        return jnp.stack(state)

    def terminal(self, state, key, params):
        return (jnp.abs(state.place) > 2.4) | (jnp.abs(state.angle) > np.deg2rad(12))


class CostlyBandit(Bandit):
    """A bandit whose best arm costs 2."""

    def __init__(self) -> None:
        limit = Constraint(counts="twice the pulls of the best arm", limit=0.0, reason="toy")
        super().__init__(masked=False, constraint=limit)

    def cost(self, state, action, next_state, params):
        return jnp.where(action == 4, 2, 0).astype(jnp.float32)


class Weather(Toy):
    """Every step of an episode pays 1, or every one costs 1; only what is privileged says which."""

    def __init__(self) -> None:
        super().__init__(horizon=4)
        self.privileged_space = self.box(-1.0, 1.0, (1,))

    def sample_params(self, key, split):
        return Clock(jnp.where(jax.random.bernoulli(key), 1.0, -1.0))

    def privileged(self, state, params):
        return params.place[None]

    def reward(self, state, action, next_state, key, params):
        return params.place


class Chain(Toy):
    """Five places in a row; the right end pays one and ends it.

    The best return is one in four steps.
    """

    def __init__(self) -> None:
        super().__init__(horizon=20)
        self.observation_space = self.box(0.0, 1.0, (5,))

    def transition(self, state, action, key, params):
        return Clock(jnp.clip(state.place + jnp.where(action == 1, 1, -1), 0, 4))

    def observation(self, state, key, params):
        return (jnp.arange(5) == state.place).astype(jnp.float32)

    def reward(self, state, action, next_state, key, params):
        return (next_state.place == 4).astype(jnp.float32)

    def terminal(self, state, key, params):
        return state.place == 4


class Digits(Toy):
    """Three choices at once; each right one pays."""

    def __init__(self) -> None:
        super().__init__(horizon=4)
        self.action_space = spaces.MultiDiscrete([3, 4, 2])

    def reward(self, state, action, next_state, key, params):
        return (action == np.array([2, 0, 1])).sum().astype(jnp.float32)


class Target(Toy):
    """A continuous action should be (3, -1) in [0, 4] x [-2, 2]."""

    def __init__(self) -> None:
        super().__init__(horizon=4)
        self.action_space = self.box([0.0, -2.0], [4.0, 2.0])

    def reward(self, state, action, next_state, key, params):
        return -((action - np.array([3.0, -1.0], np.float32)) ** 2).sum()


class TwoObjectives(Toy):
    """Arm 0 pays (1, 0), arm 1 pays (0, 1): the card's weights decide."""

    def __init__(self, weights: tuple[float, float]) -> None:
        super().__init__(horizon=4, objectives=("left", "right"), weights=weights)
        self.reward_space = self.box(0.0, 1.0, (2,))

    def reward(self, state, action, next_state, key, params):
        return jnp.stack([action == 0, action == 1]).astype(jnp.float32)


class TwoAgents(Toy):
    """Each agent sees its own number and should say it."""

    def __init__(self) -> None:
        super().__init__(horizon=4, agents=2)
        self.observation_space = self.box(0.0, 1.0, (2, 1))
        self.action_space = spaces.MultiDiscrete([2, 2])
        self.reward_space = self.box(0.0, 1.0, (2,))

    def observation(self, state, key, params):
        return np.array([[0.0], [1.0]], np.float32)

    def reward(self, state, action, next_state, key, params):
        return (action == jnp.arange(2)).astype(jnp.float32)


class TwoAgentsTwoObjectives(TwoAgents):
    """Two agents; what one earns by its own number is an objective, and what it costs another."""

    def __init__(self) -> None:
        Toy.__init__(self, horizon=4, agents=2, objectives=("own", "cost"), weights=(1.0, 0.5))
        self.observation_space = self.box(0.0, 1.0, (2, 1))
        self.action_space = spaces.MultiDiscrete([2, 2])
        self.reward_space = self.box([[0.0, -2.0]] * 2, [[1.0, 0.0]] * 2)

    def reward(self, state, action, next_state, key, params):
        is_right = (action == jnp.arange(2)).astype(jnp.float32)
        return jnp.stack([is_right, -2 * action.astype(jnp.float32)], 1)


class Mortals(Toy):
    """Three agents: the first dies in step 2, the last joins in step 3; a choice of 1 pays 1."""

    def __init__(self, **more: Any) -> None:
        super().__init__(horizon=6, agents=3, **more)
        self.observation_space = self.box(0.0, 1.0, (3, 1))
        self.action_space = spaces.MultiDiscrete([2, 2, 2])
        self.reward_space = self.box(0.0, 1.0, (3,))

    def transition(self, state, action, key, params):
        return Clock(state.place + 1)

    def alive(self, state, params):
        return jnp.stack([state.place < 2, jnp.bool_(True), state.place >= 3])

    def reward(self, state, action, next_state, key, params):
        return action.astype(jnp.float32)


class Cued(NamedTuple):
    place: Any
    cue: Any


class Cue(Toy):
    """A cue, one of two, is shown at first and asked for ``delay`` steps later.

    Without a memory half is chance.
    """

    def __init__(self, delay: int = 5, partially_observed: bool = True) -> None:
        super().__init__(horizon=delay + 3, partially_observed=partially_observed)
        self.delay = delay
        self.observation_space = self.box(-1.0, 1.0, (2,))

    def initial(self, key, params):
        return Cued(jnp.int32(0), jnp.int32(self.uniform(key, 1)[0] < 0.5))

    def transition(self, state, action, key, params):
        return state._replace(place=state.place + 1)

    def observation(self, state, key, params):
        return self.stack(
            jnp.where(state.place == 0, 2.0 * state.cue - 1, 0.0), state.place == self.delay
        )

    def reward(self, state, action, next_state, key, params):
        return ((state.place == self.delay) & (action == state.cue)).astype(jnp.float32)

    def terminal(self, state, key, params):
        return state.place > self.delay


class Spots(NamedTuple):
    colour: Any
    places: Any


class Picture(Toy):
    """A picture with a question: in which quarter is the spot of the colour asked for?

    Both spots, red and blue, are always there, so that the mean of the pixels is always the same:
    by it one answer in four is right.
    """

    side = 14

    def __init__(self) -> None:
        super().__init__(horizon=4)
        picture = spaces.Box(0, 255, (self.side, self.side, 3), np.uint8)
        self.observation_space = spaces.Dict(
            {"asked": self.box(0.0, 1.0, (1,)), "picture": picture}
        )
        self.action_space = spaces.Discrete(4)

    def initial(self, key, params):
        u = self.uniform(key, 5)
        # Upper left corners of spots three pixels wide, none across the middle: rows, then columns,
        # of red and blue.
        half = self.side // 2
        places = [(jnp.floor(10 * value)).astype(jnp.int32) for value in u[:4]]
        return Spots(
            (u[4] < 0.5).astype(jnp.int32),
            jnp.stack([place + (place > half - 3) * 2 for place in places]),
        )

    def transition(self, state, action, key, params):
        return self.initial(key, params)

    def observation(self, state, key, params):
        pixels = np.arange(self.side)
        along = (pixels >= state.places[:, None]) & (pixels < state.places[:, None] + 3)
        red, blue = (along[i][:, None] & along[i + 2] for i in (0, 1))
        picture = jnp.stack([red, jnp.zeros_like(red), blue], -1).astype(jnp.uint8) * 255
        return {"asked": state.colour[None].astype(jnp.float32), "picture": picture}

    def quarter(self, state):
        lower, right = (state.places[state.colour + i] >= self.side // 2 for i in (0, 2))
        return 2 * lower + right

    def reward(self, state, action, next_state, key, params):
        return (action == self.quarter(state)).astype(jnp.float32)


class Wind(NamedTuple):
    strength: Any


class Place(NamedTuple):
    place: Any


class TwoAims(Toy):
    """A ball that is blown about should lie at 1, and also at -1: no place is best for both."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(horizon=6)
        self.card = card
        self.observation_space: spaces.Space[Any] = self.box(-10.0, 10.0, (2,))
        self.action_space = self.box(-1.0, 1.0, (1,))
        self.reward_space = self.box(-200.0, 0.0, (2,))

    def sample_params(self, key, split):
        return Wind(0.1 * self.uniform(key, 1)[0])

    def initial(self, key, params):
        return Place(self.uniform(key, 1)[0])

    def transition(self, state, action, key, params):
        return Place(0.9 * state.place + 0.3 * action[0] + params.strength)

    def observation(self, state, key, params):
        return self.stack(state.place, params.strength)

    def reward(self, state, action, next_state, key, params):
        right, left = next_state.place - 1.0, next_state.place + 1.0
        return self.stack(-right * right, -left * left - 0.1 * action[0] * action[0])

    def describe(self, state, params):
        return f"The ball lies at {float(state.place):.3f}."

    def why_over(self, state, params, info):
        return "never"


class TwoAimsInParts(TwoAims):
    """The same with an observation of two parts."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = self.box(-10.0, 10.0, (1,))
        self.observation_space = spaces.Dict({"place": number, "wind": number})

    def observation(self, state, key, params):
        return {"place": self.stack(state.place), "wind": self.stack(params.strength)}


class Exit(NamedTuple):
    place: Any
    out: Any


class Exits(Toy):
    """A row of three exits, which pay more the farther away they are: a concave front.

    Action 0 leaves by the exit of a place, action 1 goes on.
    """

    values = (1.0, 1.2, 3.0)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(horizon=6)
        self.card = card
        self.observation_space = self.box(0.0, 2.0, (2,))
        self.reward_space = self.box([0.0, -1.0], [3.0, -1.0])

    def initial(self, key, params):
        return Exit(jnp.int32(0), jnp.bool_(False))

    def transition(self, state, action, key, params):
        return Exit(
            jnp.where(action == 1, jnp.minimum(state.place + 1, 2), state.place), action == 0
        )

    def observation(self, state, key, params):
        return self.stack(state.place, state.out)

    def reward(self, state, action, next_state, key, params):
        value = jnp.asarray(self.values, self.dtype)[next_state.place]
        return self.stack(jnp.where(next_state.out, value, 0), -1)

    def terminal(self, state, key, params):
        return state.out

    def why_over(self, state, params, info):
        return "out"

    def pareto_front(self, gamma=1.0):
        assert gamma == 1.0
        return np.array([[value, -1.0 - place] for place, value in enumerate(self.values)])


class SlipperyExits(Exits):
    """Exits that are missed in half of all attempts."""

    def transition(self, state, action, key, params):
        moved = super().transition(state, action, key, params)
        return moved._replace(out=moved.out & (self.uniform(key, 1)[0] < 0.5))


EXITS = {"contexts": False, "hypervolume_reference": (0.0, -5.0)}
"""Fields of the card of :class:`Exits`."""


def card_of(toy: type[Toy], **more: Any) -> TaskCard:
    """Return a card that builds a toy with two objectives."""
    aims = card(6, objectives=("right", "left"), weights=(0.5, 0.5), **more)
    return replace(
        aims, id=f"rlsuite/{toy.__name__}-v0", entry_point=f"toy_tasks:{toy.__name__}", reference=""
    )
