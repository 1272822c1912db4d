"""Check MarsExplorer against episodes of its own program, and its lidar against plain rays.

The episodes were recorded with MarsExplorer's ``Explorer`` (commit 6533a9a) under NumPy 2, where
``np.int`` is ``int``.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.exploration.mars_explorer import (
    GOAL,
    PRIZE,
    STEP_COST,
    WAYS,
    MapFrontier,
    MarsExplorer,
    Params,
    boulders,
    goal_cells,
)
from rlbench_suite.envs.exploration.ray_lidar import INSIDE, MAP, visible_cells

pytestmark = pytest.mark.of_variants
CARD = card("MarsExplorer-v0")

RECORDED = (
    # Rock, a number for each y with bit x; actions; rewards plus 0.2, or 400 and -400 at the end.
    (
        [0, 786432, 983040, 196608, 49344, 442560, 393216, 198, 1734, 1536, 3072, 3072, 0, 197376,
         197376, 0, 98304, 98304, 0, 0, 0],
        "0000010222222000200001002222022212221011211121111103113113330300300003303331",
        [7, 7, 7, 5, 5, 0, 0, 6, 5, 7, 5, 6, 21, 4, 11, 18, 6, 3, 15, 18, 13, 0, 0, 8, 12, 10, 12,
         9, 6, 3, 9, 14, 9, 5, 7, 9, 7, 0, 0, 7, 1, 5, 8, 8, 0, 4, 8, 4, 3, 2, 0, 1, 2, 1, 2, 0, 0,
         1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -400],
    ),
    (
        [0, 3072, 3078, 6, 0, 0, 99072, 99072, 0, 192, 12480, 12288, 55296, 55680, 49536, 0, 96,
         786528, 786432, 0, 0],
        "00000000022202222222221111222000000000003333333330002222222222111221111111",
        [8, 11, 10, 10, 5, 4, 4, 3, 5, 2, 10, 22, 10, 7, 9, 7, 15, 12, 6, 7, 12, 4, 10, 6, 18, 22,
         5, 6, 1, 11, 9, 9, 6, 7, 10, 9, 5, 10, 14, 4, 5, 4, 4, 4, 4, 4, 4, 5, 5, 1, 0, 0, 0, 0, 0,
         0, 0, 0, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 400],
    ),
    (
        [0, 0, 6, 6, 0, 786432, 786480, 54, 30, 3992, 3968, 384, 0, 24, 98328, 104448, 6144, 0, 0,
         0, 0],
        "00022200002122322223220",
        [8, 11, 10, 9, 4, 7, 10, 11, 12, 11, 9, 0, 2, 4, 0, 0, 7, 9, 13, 0, 0, 10, -400],
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def task() -> MarsExplorer:
    return CARD.build()


def as_words(grid: np.ndarray) -> np.ndarray:
    """Return a grid ``[x, y]`` as a set of cells."""
    words = np.zeros(32, np.uint32)
    for x, y in np.argwhere(grid):
        words[y] |= np.uint32(1 << int(x))
    return words


def as_cells(words: Any) -> np.ndarray:
    """Return the map of a set of cells, bool ``[x, y]``."""
    return ((np.asarray(words)[:MAP] >> np.arange(MAP, dtype=np.uint32)[:, None]) & 1).astype(bool)


# -- the program of MarsExplorer -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rock", "actions", "rewards"), RECORDED, ids=["late crash", "goal", "crash"]
)
def test_bugs_are_those_of_the_program(rock: list[int], actions: str, rewards: list[int]) -> None:
    task: MarsExplorer = card("MarsExplorer-v0", bugs=True).build()
    params = Params(jnp.asarray(INSIDE & ~np.array([*rock, *[0] * 11], np.uint32)))
    state = jax.jit(lambda params: task.initial(None, params))(params)
    assert float(task.observation(state, None, params)[0, 0, 0]) == pytest.approx(0.6)

    @jax.jit
    def step(state: Any, action: Any) -> tuple[Any, ...]:
        after = task.transition(state, action, None, params)
        return (
            after,
            task.reward(state, action, after, None, params),
            task.terminal(after, None, params),
        )

    for i, (action, expected) in enumerate(zip(actions, rewards, strict=True)):
        state, reward, over = step(state, jnp.int32(int(action)))
        assert float(reward) == pytest.approx(
            expected if abs(expected) == PRIZE else expected - 0.2, abs=1e-5
        )
        assert bool(over) == (i == len(actions) - 1)
        observation = np.asarray(task.observation(state, None, params))[..., 0]
        assert observation[int(state.x), int(state.y)] == pytest.approx(0.5)
        assert (observation > 0).sum() == as_cells(state.known_cells).sum()
    assert bool(task.info(state, params)["success"]) == (rewards[-1] == PRIZE)


# -- maps ------------------------------------------------------------------------------------------


def test_boulders_are_squares_of_four_at_uniform_corners() -> None:
    bits = jax.random.bits(jax.random.key(0), (4000, 2), jnp.uint32)
    rock = np.stack([as_cells(words) for words in np.asarray(jax.vmap(boulders)(bits))])
    assert (rock.sum((1, 2)) == 4).all()
    corners = [tuple(np.argwhere(grid).min(0)) for grid in rock]
    assert all(grid[x : x + 2, y : y + 2].all() for grid, (x, y) in zip(rock, corners, strict=True))
    for axis in zip(*corners, strict=True):
        counts = np.bincount(axis, minlength=20)
        assert counts[0] == counts[19] == 0
        assert (counts[1:19] > 150).all()  # 222 on average, standard deviation 15


def test_every_map_can_be_covered_and_splits_are_apart() -> None:
    """The cells that can be reached from the corner suffice for the goal.

    With them count the cells beside them.
    """
    keys = jax.random.split(jax.random.key(3), 300)
    for tier in ("medium", "hard"):
        task: MarsExplorer = CARD.build(difficulty=tier)
        for split in Split:
            grounds = np.asarray(
                jax.jit(jax.vmap(partial(task.sample_params, split=jnp.int32(split))))(keys).ground
            )
            for ground in map(as_cells, grounds):
                assert (~ground).sum() <= 4 * task.boulders
                assert (~ground)[::4, ::2].sum() % 2 == split
                labels, _ = ndimage.label(ground)
                assert ndimage.binary_dilation(labels == labels[0, 0]).sum() >= goal_cells()


# -- lidar -----------------------------------------------------------------------------------------


def walk_rays(ground: np.ndarray, x: int, y: int) -> np.ndarray:
    """Walk each ray in small steps up to the first rock or the edge."""
    visible = np.zeros_like(ground)
    for ray in range(32):
        angle = 2 * np.pi * ray / 32
        for distance in np.linspace(0, 6, 200):
            cell = round(x + distance * np.cos(angle)), round(y + distance * np.sin(angle))
            if not (0 <= cell[0] < MAP and 0 <= cell[1] < MAP):
                break
            visible[cell] = True
            if not ground[cell]:
                break
    return visible


def test_rays_end_at_the_first_rock_and_at_the_edge() -> None:
    rng = np.random.default_rng(3)
    look = jax.jit(partial(visible_cells, bugs=False))
    for density in (0.05, 0.2, 0.5):
        for _ in range(10):
            ground = np.pad(rng.random((MAP - 2, MAP - 2)) > density, 1, constant_values=True)
            for x, y in [(0, 0), (MAP - 1, 3), *rng.choice(np.argwhere(ground), 4)]:
                visible = as_cells(look(jnp.asarray(as_words(ground)), jnp.int32(x), jnp.int32(y)))
                np.testing.assert_array_equal(visible, walk_rays(ground, x, y))
                assert visible[max(0, x - 1) : x + 2, y].all()
                assert visible[x, max(0, y - 1) : y + 2].all()


def test_bugs_show_cells_behind_rock_at_the_edge_and_at_every_second_place() -> None:
    """Along the edge behind a rock, and one cell past the rock before the rover where x is even."""
    look = jax.jit(visible_cells, static_argnames="bugs")
    ground = np.ones((MAP, MAP), bool)
    ground[3:5, 1:3] = False
    words = jnp.asarray(as_words(ground))
    there = jnp.int32(2), jnp.int32(1)
    honest, buggy = (as_cells(look(words, *there, bugs=bugs)) for bugs in (False, True))
    assert honest[3, 1]
    assert not honest[4, 1]
    assert buggy[4, 1]
    odd = as_cells(
        look(jnp.asarray(as_words(np.roll(ground, 1, 0))), jnp.int32(3), jnp.int32(1), bugs=True)
    )
    assert not odd[5, 1]
    assert buggy[5, 0] > honest[5, 0] or buggy[:, 0].sum() > honest[:, 0].sum()


# -- episodes --------------------------------------------------------------------------------------


def test_an_episode_by_plain_python(task: MarsExplorer) -> None:
    """Known cells, rewards, ends and observations along random walks that crash in the end."""
    env = TaskEnv(task)
    rng = np.random.default_rng(6)
    crashes = 0
    for seed in range(6):
        observation, _ = env.reset(seed=seed)
        ground = as_cells(env.params.ground)
        x = y = 0
        known_cells, over = walk_rays(ground, x, y), False
        while not over:
            expected = np.where(known_cells, np.where(ground, 0.3, 1.0), 0)
            expected[x, y] = 0.6
            np.testing.assert_allclose(observation[..., 0], expected, atol=1e-6)
            action = int(rng.choice([0, 2, 0, 2, 1, 3]))
            dx, dy = list(WAYS.values())[action]
            free = 0 <= x + dx < MAP and 0 <= y + dy < MAP and ground[x + dx, y + dy]
            x, y = (x + dx, y + dy) if free else (x, y)
            before, known_cells = known_cells.sum(), known_cells | walk_rays(ground, x, y)
            observation, reward, over, _, info = env.step(action)
            won = known_cells.sum() > MAP**2 * GOAL[0] / GOAL[1]
            assert reward == known_cells.sum() - before - STEP_COST + PRIZE * (
                int(won) - (not free)
            )
            assert over == (won or not free)
            assert info["crashed"] == (not free)
            assert info["coverage"] == pytest.approx(known_cells.sum() / MAP**2)
            np.testing.assert_array_equal(as_cells(env.episode.state.known_cells), known_cells)
        crashes += not free
    assert crashes > 3


def test_the_goal_is_419_cells(task: MarsExplorer) -> None:
    assert goal_cells() == 419
    assert 418 <= 0.95 * MAP**2 < 419


@pytest.mark.parametrize("bugs", [False, True])
def test_the_player_reaches_the_goal_on_every_map(bugs: bool) -> None:
    task: MarsExplorer = card("MarsExplorer-v0", bugs=bugs).build()
    record = play(task, MapFrontier.for_task(task), range(200))
    assert record.info["success"].all()
    assert not record.info["crashed"].any()
    assert record.length.max() < 150
    if not bugs:
        start = record.info["coverage"] * MAP**2 + PRIZE - record.length * STEP_COST - record.total
        assert set(start.round()) <= set(range(3, 40)), (
            "what is left was seen at the start, 39 cells if nothing hides any"
        )


def test_nothing_cheap_pays(task: MarsExplorer) -> None:
    """Driving to and fro until time is up earns less than doing nothing.

    Doing nothing drives along the edge into its end.
    """
    scores = CARD.scores()
    env = TaskEnv(task)
    for seed in range(3):
        env.reset(seed=seed)
        total = 0.0
        for t in range(CARD.horizon):
            total += float(env.step(t % 2)[1])
        assert total < scores["noop"].mean
    assert scores["reference"].mean > scores["noop"].mean > scores["random"].mean


def test_it_does_not_look_at_what_it_has_not_seen(task: MarsExplorer) -> None:
    env = TaskEnv(task)
    env.reset(seed=9)
    player = MapFrontier.for_task(task)
    state, params = env.episode.state, env.params
    hidden = ~np.asarray(state.known_cells)
    action = int(player.act((), View(None, None, state, params), None)[0])
    for ground in (
        np.asarray(params.ground) | hidden & INSIDE,
        np.asarray(params.ground) & ~hidden,
    ):
        changed = Params(jnp.asarray(ground))
        assert int(player.act((), View(None, None, state, changed), None)[0]) == action


def test_words_and_choices(task: MarsExplorer) -> None:
    env = TaskEnv(task)
    env.reset(seed=1)
    lines = task.describe(env.episode.state, env.params).splitlines()
    assert lines[MAP][0] == "R"
    assert (
        sum(line.count("?") for line in lines[1:22])
        == MAP**2 - as_cells(env.episode.state.known_cells).sum()
    )
    assert [
        int(task.parse(word, env.episode.state, env.params))
        for word in ("east", "west", "north", "south")
    ] == [
        0,
        1,
        2,
        3,
    ]
    env.step(3)
    info = task.info(env.episode.state, env.params)
    assert (
        task.why_over(env.episode.state, env.params, info)
        == "the rover drove into rock or off the map"
    )
    assert card("MarsExplorer-v0", bugs="True").id == "rlsuite/MarsExplorer-v0?bugs=True"
    with pytest.raises(ValueError, match="boulders"):
        CARD.build(difficulty=0)
