"""Check MarsCoverage against plain Python's line of sight, SciPy, and breadth-first search.

SciPy's components and filters check the terrain.
"""

from collections import deque
from fractions import Fraction
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
from rlbench_suite.envs.exploration import terrain
from rlbench_suite.envs.exploration.compass import MOVES
from rlbench_suite.envs.exploration.mars_coverage import (
    GOAL,
    MAX_DETOUR,
    STEP_COST,
    FrontierUtility,
    MarsCoverage,
    Params,
    State,
    neighbours_in,
)
from rlbench_suite.envs.exploration.terrain import RANGE, WINDOW
from rlbench_suite.envs.shared.grid_bits import SIDE, majority

CARD = card("MarsCoverage-v0")
MAKE = jax.jit(terrain.random_ground)


@pytest.fixture(scope="module")
def task() -> MarsCoverage:
    return CARD.build()


def cells(words: jax.Array | np.ndarray) -> np.ndarray:
    """bool ``(32, 32)``, [y, x]."""
    return (np.asarray(words)[..., None] >> np.arange(SIDE, dtype=np.uint32) & 1).astype(bool)


def words(grid: np.ndarray) -> np.ndarray:
    return np.array([sum(1 << int(x) for x in np.flatnonzero(row)) for row in grid], np.uint32)


def random_rock(rng: np.random.Generator, density: float) -> np.ndarray:
    rock = rng.random((SIDE, SIDE)) < density
    rock[[0, -1]] = rock[:, [0, -1]] = True
    return rock


@jax.jit
def grounds(keys: jax.Array, density: int, odd: bool) -> jax.Array:
    """uint32 ``(keys, 32)``."""
    draw = partial(jax.random.bits, shape=(4, SIDE), dtype=jnp.uint32)
    return jax.vmap(lambda key: terrain.random_ground(draw(key), density, odd))(keys)


# -- terrain ---------------------------------------------------------------------------------------


def test_automaton_counts_nine_cells() -> None:
    rng = np.random.default_rng(0)
    for density in (0.3, 0.5, 0.7):
        rock = rng.random((SIDE, SIDE)) < density
        expected = ndimage.convolve(rock.astype(int), np.ones((3, 3), int), mode="constant") >= 5
        np.testing.assert_array_equal(cells(majority(words(rock))), expected)


def test_largest_region_is_that_of_scipy() -> None:
    """Its size; and it is one of the components. Mazy grounds, so that floods wind."""
    rng = np.random.default_rng(1)
    largest = jax.jit(terrain.largest_region)
    for density in (0.2, 0.35, 0.4, 0.45, 0.6, 0.97):
        for _ in range(8):
            ground = ~random_rock(rng, density)
            labels, number = ndimage.label(ground)
            sizes = np.bincount(labels.ravel())[1:]
            region = cells(largest(words(ground)))
            assert region.sum() == sizes.max()
            assert len(set(labels[region])) == 1
            assert number > 1 or density < 0.4


@pytest.mark.parametrize("density", [4, 6, 8])
def test_every_terrain_is_one_piece_of_the_asked_parity(density: int) -> None:
    for odd in (False, True):
        for ground in cells(grounds(jax.random.split(jax.random.key(density), 150), density, odd)):
            assert ndimage.label(ground)[1] == 1
            assert ground.sum() % 2 == odd
            assert not ground[[0, -1]].any()
            assert not ground[:, [0, -1]].any()
            assert ground.sum() > 25


def test_terrain_of_random_bits_is_the_plain_one() -> None:
    """Densities before smoothing by comparison of integers; parity by one cell more at most."""
    rng = np.random.default_rng(2)
    for density in range(4, 9):
        bits = rng.integers(0, 2**32, (4, SIDE), dtype=np.uint32)
        number = sum(cells(plane).astype(int) << (3 - i) for i, plane in enumerate(bits))
        rock = number < density
        ring = np.ones((SIDE, SIDE), bool)
        ring[1:-1, 1:-1] = False
        rock |= ring
        for _ in range(3):
            rock = (
                ndimage.convolve(rock.astype(int), np.ones((3, 3), int), mode="constant") >= 5
            ) | ring
        plain = cells(terrain.largest_region(words(~rock)))
        grounds = [cells(MAKE(bits, density, jnp.bool_(odd))) for odd in (False, True)]
        assert sorted((ground ^ plain).sum() for ground in grounds) == [0, 1]
        assert all((ground >= plain).all() for ground in grounds)


def test_no_ground_at_all_becomes_some() -> None:
    bits = np.zeros((4, SIDE), np.uint32)  # every number is below any density
    for odd in (False, True):
        ground = cells(MAKE(bits, 8, jnp.bool_(odd)))
        assert ground.sum() == 2 - odd


def test_splits_differ_in_parity(task: MarsCoverage) -> None:
    keys = jax.random.split(jax.random.key(5), 200)
    sample = jax.jit(jax.vmap(task.sample_params, (0, None)))
    for split in Split:
        params = sample(keys, jnp.int32(split))
        sizes = cells(params.ground).sum((1, 2))
        np.testing.assert_array_equal(sizes, params.size)
        assert (sizes % 2 == split).all()


def test_harder_is_rockier() -> None:
    keys = jax.random.split(jax.random.key(6), 100)
    sizes = [cells(grounds(keys, density, False)).sum() / 100 for density in (4, 6, 8)]
    assert sizes[0] > sizes[1] + 50 > sizes[2] + 100


# -- lidar -----------------------------------------------------------------------------------------


def is_visible(rock: np.ndarray, x: int, y: int, tx: int, ty: int) -> bool:
    """Walk the line in exact fractions.

    Each column (or row) is crossed at the nearest cell; ties go away from the axis.
    """
    dx, dy = tx - x, ty - y
    if dx * dx + dy * dy > RANGE**2:
        return False
    length = max(abs(dx), abs(dy))
    for i in range(1, length):
        place = []
        for d in (dx, dy):
            exact = Fraction(abs(d) * i, length)
            rounded = int(exact + Fraction(1, 2))
            place.append(rounded if d >= 0 else -rounded)
        if rock[y + place[1], x + place[0]]:
            return False
    return True


def test_lidar_sees_what_a_walk_along_every_line_sees() -> None:
    """Random rocks of all densities, from every kind of place, the map's edges too."""
    rng = np.random.default_rng(3)
    look = jax.jit(terrain.visible_cells)
    for density in (0.05, 0.15, 0.3, 0.5):
        for _ in range(12):
            rock = random_rock(rng, density)
            y, x = rng.choice(np.argwhere(~rock))
            if rng.random() < 0.3:
                x, y = rng.choice([1, 2, SIDE - 2], 2)
            expected = np.array(
                [[is_visible(rock, x, y, tx, ty) for tx in range(SIDE)] for ty in range(SIDE)]
            )
            np.testing.assert_array_equal(
                cells(look(words(~rock), jnp.int32(x), jnp.int32(y))), expected
            )


def test_open_ground_is_a_full_disc_and_a_wall_casts_its_shadow() -> None:
    """113 lattice points lie within 6 of the origin (OEIS A000328).

    Behind a wall nothing is seen.
    """
    open_ground = np.ones((SIDE, SIDE), bool)
    open_ground[[0, -1]] = open_ground[:, [0, -1]] = False
    assert (
        cells(terrain.visible_cells(words(open_ground), jnp.int32(15), jnp.int32(15))).sum() == 113
    )
    walled = open_ground.copy()
    walled[:, 17] = False
    visible = cells(terrain.visible_cells(words(walled), jnp.int32(15), jnp.int32(15)))
    assert visible[:, 17].any()
    assert not visible[:, 18:].any()


def test_the_lidar_treats_all_directions_alike() -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        rock = random_rock(rng, 0.2)
        y, x = 13, 9
        rock[y, x] = False
        visible = cells(terrain.visible_cells(words(~rock), jnp.int32(x), jnp.int32(y)))
        mirrored = cells(
            terrain.visible_cells(words(~rock[:, ::-1]), jnp.int32(SIDE - 1 - x), jnp.int32(y))
        )
        turned = cells(terrain.visible_cells(words(~rock.T), jnp.int32(y), jnp.int32(x)))
        np.testing.assert_array_equal(mirrored, visible[:, ::-1])
        np.testing.assert_array_equal(turned, visible.T)


# -- episodes --------------------------------------------------------------------------------------


def test_an_episode_by_plain_python(task: MarsCoverage) -> None:
    """Known cells, mask, reward, end and every number of the observation, along random walks."""
    env = TaskEnv(task)
    rng = np.random.default_rng(6)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        ground = cells(env.params.ground)
        x, y = int(env.episode.state.x), int(env.episode.state.y)
        known_cells = np.zeros_like(ground)
        covered, reward = 0, None
        for _ in range(60):
            for ty in range(max(0, y - RANGE), min(SIDE, y + RANGE + 1)):
                for tx in range(max(0, x - RANGE), min(SIDE, x + RANGE + 1)):
                    known_cells[ty, tx] |= is_visible(~ground, x, y, tx, ty)
            before, covered = covered, int((known_cells & ground).sum())
            np.testing.assert_array_equal(cells(env.episode.state.known_cells), known_cells)
            np.testing.assert_array_equal(
                info["action_mask"], [ground[y + dy, x + dx] for dx, dy in MOVES.values()]
            )
            if reward is not None:
                assert reward == pytest.approx(
                    (covered - before) / ground.sum() - STEP_COST, abs=1e-6
                )
            np.testing.assert_allclose(
                observation, plain_observation(ground, known_cells, x, y), atol=1e-6
            )
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            dx, dy = list(MOVES.values())[action]
            x, y = x + dx, y + dy
            observation, reward, terminated, _, info = env.step(action)
            assert (int(env.episode.state.x), int(env.episode.state.y)) == (x, y)
            assert not terminated


def plain_observation(ground: np.ndarray, known_cells: np.ndarray, x: int, y: int) -> np.ndarray:
    def window_around(grid: np.ndarray) -> np.ndarray:
        return np.pad(grid, RANGE)[y : y + WINDOW, x : x + WINDOW].ravel()

    blocks = np.zeros((8, 8))
    for fy, fx in np.argwhere(known_cells & ground):
        if not (
            known_cells[fy + 1, fx]
            and known_cells[fy - 1, fx]
            and known_cells[fy, fx + 1]
            and known_cells[fy, fx - 1]
        ):
            blocks[(fy - y + 32) // 8, (fx - x + 32) // 8] += 1
    covered = (known_cells & ground).sum() / ground.sum()
    coarse = np.minimum(blocks, 16).ravel() / 16
    return np.concatenate(
        [
            window_around(known_cells & ground),
            window_around(known_cells & ~ground),
            coarse,
            [x / 31, y / 31, covered],
        ]
    )


def test_rock_is_refused_and_costs_a_step(task: MarsCoverage) -> None:
    ground = np.zeros((SIDE, SIDE), bool)
    ground[10, 10:15] = True
    params = Params(jnp.asarray(words(ground)), jnp.int32(5))
    state = State(jnp.int32(10), jnp.int32(10), jnp.asarray(words(ground)))
    np.testing.assert_array_equal(task.action_mask(state, params), [True, False, False, False])
    assert float(task.reward(state, jnp.int32(1), state, None, params)) == pytest.approx(-STEP_COST)
    assert task.why_illegal(np.array(3), state, params) == "there is rock to the south"


def test_the_goal_is_95_percent_to_the_cell(task: MarsCoverage) -> None:
    """Forty cells of ground: 38 are enough, 37 are not."""
    ground = np.zeros((SIDE, SIDE), bool)
    ground[5:7, 5:25] = True
    params = Params(jnp.asarray(words(ground)), jnp.int32(40))
    known_cells = ground.copy()
    known_cells[5, 5:7] = False
    enough = State(jnp.int32(9), jnp.int32(5), jnp.asarray(words(known_cells)))
    known_cells[5, 7] = False
    short = enough._replace(known_cells=jnp.asarray(words(known_cells)))
    assert bool(task.terminal(enough, None, params))
    assert not bool(task.terminal(short, None, params))
    assert float(task.reward(short, jnp.int32(0), enough, None, params)) == pytest.approx(
        1 + 1 / 40 - STEP_COST
    )
    assert Fraction(*GOAL) == Fraction(95, 100)


# -- the reference player --------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_player_covers_every_terrain(tier: str) -> None:
    """400 terrains of each tier, all within the time limit, each with a return that adds up."""
    task: MarsCoverage = CARD.build(difficulty=tier)
    record = play(task, FrontierUtility.for_task(task), range(400))
    assert record.terminated.all()
    assert record.info["success"].all()
    assert record.length.max() < CARD.horizon
    assert (record.info["coverage"] >= 0.95).all()
    start = record.info["coverage"] - (record.total - 1 + record.length * STEP_COST)
    assert (start > 0).all(), "what is left is the part seen at the start"
    assert (start <= 113 / 150).all()


def test_its_moves_are_first_steps_to_the_frontier_worth_most(task: MarsCoverage) -> None:
    """Compare with breadth-first search from every frontier at every step of a whole episode.

    The search leads over the cells that the player knows.
    """
    env = TaskEnv(task)
    env.reset(seed=8)
    player = FrontierUtility.for_task(task)
    act = jax.jit(lambda state, params: player.act((), View(None, None, state, params), None)[0])
    over, farther = False, 0
    while not over:
        state, params = env.episode.state, env.params
        known_cells, ground = cells(state.known_cells), cells(params.ground)
        here = int(state.x), int(state.y)
        ways = {
            cell: walk(known_cells & ground, *cell)
            for cell in (here, *neighbours(known_cells & ground, *here))
        }
        worth = {}
        for y, x in np.argwhere(known_cells & ground):
            if not all(known_cells[y + dy, x + dx] for dx, dy in MOVES.values()):
                unknown = int((~known_cells[max(0, y - 3) : y + 4, max(0, x - 3) : x + 4]).sum())
                worth[x, y] = int(min(player.weight * unknown**player.power, MAX_DETOUR))
        action = int(act(state, params))
        dx, dy = list(MOVES.values())[action]

        def min_cost(cell: tuple[int, int], ways: Any = ways, worth: Any = worth) -> int:
            return min(
                ways[cell][goal] - gain for goal, gain in worth.items() if goal in ways[cell]
            )

        assert min_cost((here[0] + dx, here[1] + dy)) == min_cost(here) - 1
        farther += min(ways[here][goal] for goal in worth if goal in ways[here]) < min(
            ways[here][goal]
            for goal in worth
            if ways[here].get(goal, 999) - worth[goal] == min_cost(here)
        )
        over = env.step(action)[2]
    assert farther > 3, "it does not always choose the nearest"


def neighbours(free: np.ndarray, x: int, y: int) -> list[tuple[int, int]]:
    return [(x + dx, y + dy) for dx, dy in MOVES.values() if free[y + dy, x + dx]]


def walk(free: np.ndarray, x: int, y: int) -> dict[tuple[int, int], int]:
    """Steps from a cell to every cell that can be reached."""
    distance = {(x, y): 0}
    queue = deque(distance)
    while queue:
        here = queue.popleft()
        for cell in neighbours(free, *here):
            if cell not in distance:
                distance[cell] = distance[here] + 1
                queue.append(cell)
    return distance


def test_counts_in_squares_are_those_of_a_convolution() -> None:
    rng = np.random.default_rng(7)
    for radius in (1, 3):
        grid = rng.random((SIDE, SIDE)) < 0.6
        planes = [
            cells(plane).astype(int)
            for plane in terrain.box_counts(jnp.asarray(words(grid)), radius)
        ]
        counted = sum(plane << i for i, plane in enumerate(planes))
        side = 2 * radius + 1
        np.testing.assert_array_equal(
            counted, ndimage.convolve(grid.astype(int), np.ones((side, side), int), mode="constant")
        )
        for number in (0, 1, 5, side**2, side**2 + 9):
            bits = terrain.select_at_least(
                terrain.box_counts(jnp.asarray(words(grid)), radius), jnp.int32(number)
            )
            np.testing.assert_array_equal(cells(bits), counted >= number)


def test_it_does_not_look_at_what_it_has_not_seen(task: MarsCoverage) -> None:
    env = TaskEnv(task)
    env.reset(seed=9)
    state, params = env.episode.state, env.params
    player = FrontierUtility.for_task(task)
    hidden = ~np.asarray(state.known_cells)
    for ground in (np.asarray(params.ground) | hidden, np.asarray(params.ground) & ~hidden):
        action = player.act(
            (), View(None, None, state, params._replace(ground=jnp.asarray(ground))), None
        )[0]
        assert int(action) == int(player.act((), View(None, None, state, params), None)[0])


def test_words_and_picture(task: MarsCoverage) -> None:
    env = TaskEnv(task)
    env.reset(seed=1)
    state, params = env.episode.state, env.params
    lines = task.describe(state, params).splitlines()
    assert lines[SIDE - int(state.y)][int(state.x)] == "R"
    assert sum(line.count("?") for line in lines[1:33]) == SIDE**2 - cells(state.known_cells).sum()
    names = [
        name
        for name, legal in zip(MOVES, neighbours_in(params.ground, state), strict=True)
        if legal
    ]
    assert lines[-1].endswith(f"Open ways: {', '.join(names)}.")
    assert task.parse(" North", state, params) == 1
    assert task.parse("2", state, params) == 2
    with pytest.raises(ValueError, match="east, north, west, south"):
        task.parse("up", state, params)
    picture = task.draw(state, params)
    assert picture.shape == task.picture_shape
    blue = np.argwhere((picture == (65, 105, 225)).all(-1)).mean(0)
    np.testing.assert_allclose(
        blue, [12 * (31.5 - int(state.y)), 12 * (int(state.x) + 0.5)], atol=1
    )
    hidden = params._replace(ground=np.asarray(params.ground) & np.asarray(state.known_cells))
    np.testing.assert_array_equal(
        task.draw(state, hidden), picture, "a picture shows nothing unseen"
    )


def test_a_density_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="sixteenths"):
        CARD.build(difficulty=15)
