"""Check MarsFleet against breadth-first search, sums of energy, and SciPy's cheapest ways."""

from collections import deque
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.exploration import relief, terrain
from rlbench_suite.envs.exploration.compass import MOVES
from rlbench_suite.envs.exploration.mars_fleet import (
    CHARGE,
    STEP_COST,
    UNREACHABLE,
    WAYS,
    CoordinatedFrontiers,
    MarsFleet,
    Params,
    cheapest_ways,
)
from rlbench_suite.envs.shared.grid_bits import SIDE

pytestmark = pytest.mark.of_variants
CARD = card("MarsFleet-v0")


@pytest.fixture(scope="module")
def task() -> MarsFleet:
    return CARD.build(difficulty="hard")


def cells(words: Any) -> np.ndarray:
    """Return a set as bool ``[y, x]``."""
    return (np.asarray(words)[:, None] >> np.arange(SIDE, dtype=np.uint32) & 1).astype(bool)


def steps(free: np.ndarray, heights: np.ndarray, x: int, y: int) -> dict[str, int]:
    """Map the ways from a cell that are not too steep to their energy."""
    energies = {}
    for name, (dx, dy) in MOVES.items():
        if free[y + dy, x + dx] and abs(int(heights[y + dy, x + dx]) - int(heights[y, x])) <= 2:
            energies[name] = 2 + max(0, int(heights[y + dy, x + dx]) - int(heights[y, x]))
    return energies


def walk(free: np.ndarray, heights: np.ndarray, x: int, y: int) -> set[tuple[int, int]]:
    """Return every cell that can be reached."""
    reached = {(x, y)}
    queue = deque(reached)
    while queue:
        x, y = queue.popleft()
        for name in steps(free, heights, x, y):
            cell = x + MOVES[name][0], y + MOVES[name][1]
            if cell not in reached:
                reached.add(cell)
                queue.append(cell)
    return reached


# -- terrain ---------------------------------------------------------------------------------------


def test_all_ground_can_be_reached_and_no_region_is_larger(task: MarsFleet) -> None:
    """Compare with breadth-first search on heights; in some terrains slopes cut something off."""
    keys = jax.random.split(jax.random.key(1), 30)
    sample = jax.jit(jax.vmap(task.sample_params, (0, None)))
    cut_off = 0
    for split in Split:
        terrains = sample(keys, jnp.int32(split))
        for i in range(len(keys)):
            free = cells(terrains.open[i])
            ground = cells(terrains.ground[i])
            heights = np.asarray(terrains.heights[i])
            assert free.sum() % 2 == split
            assert ground.sum() == terrains.size[i]
            unvisited = {(int(x), int(y)) for y, x in np.argwhere(free)}
            regions = []
            while unvisited:
                regions.append(walk(free, heights, *next(iter(unvisited))))
                unvisited -= regions[-1]
            largest = max(map(len, regions))
            assert {(int(x), int(y)) for y, x in np.argwhere(ground)} in regions
            assert ground.sum() == largest
            cut_off += len(regions) > 1
            assert heights.min() >= 0
            assert heights.max() < 36  # a digit of the text
    assert cut_off > 10


def test_heights_are_those_of_interpolated_lattices() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, sum(relief.NODES), dtype=np.uint32)
    number = (bits >> 24).astype(float)
    coarse, fine = number[:25].reshape(5, 5), number[25:].reshape(9, 9)

    def interpolate(nodes: np.ndarray, spacing: int) -> np.ndarray:
        at, nodes_at = np.arange(SIDE), spacing * np.arange(len(nodes))
        columns = np.stack([np.interp(at, nodes_at, row) for row in nodes])
        return np.stack([np.interp(at, nodes_at, column) for column in columns.T], 1)

    expected = np.floor(12 * (interpolate(coarse, 8) + interpolate(fine, 4)) / 256 + 1e-9)
    np.testing.assert_array_equal(relief.random_heights(jnp.asarray(bits), 12), expected)


# -- episodes --------------------------------------------------------------------------------------


def test_an_episode_by_plain_python(task: MarsFleet) -> None:
    """Replay places, batteries, masks, views, rewards and energy until batteries are empty."""
    look = jax.jit(terrain.visible_cells)
    env = TaskEnv(task)
    rng = np.random.default_rng(2)
    observation, info = env.reset(seed=3)
    params: Params = env.params
    free, ground, heights = cells(params.open), cells(params.ground), np.asarray(params.heights)
    place = [
        (int(env.episode.state.rovers.x[i]), int(env.episode.state.rovers.y[i])) for i in range(3)
    ]
    assert len(set(place)) == 1
    battery, energy = [CHARGE] * 3, 0
    known_cells = cells(look(params.open, *map(jnp.int32, place[0])))
    for _ in range(150):
        np.testing.assert_array_equal(cells(env.episode.state.known_cells), known_cells)
        open_ways = [
            {"stay": 0}
            | {
                name: cost
                for name, cost in steps(free, heights, *place[i]).items()
                if cost <= battery[i]
            }
            for i in range(3)
        ]
        mask = np.array([[name in ways for name in WAYS] for ways in open_ways])
        np.testing.assert_array_equal(info["action_mask"], mask.ravel())
        for i in range(3):
            check_observation(observation[i], i, place, battery, free, known_cells, heights)
            assert observation[i][574] == pytest.approx((known_cells & ground).sum() / ground.sum())
        # One rover stands at times, so that batteries differ.
        names = [
            rng.choice(
                [
                    name
                    for name in ways
                    if name != "stay" or rng.random() < 0.2 * i or len(ways) == 1
                ]
            )
            if len(ways) > 1
            else "stay"
            for i, ways in enumerate(open_ways)
        ]
        observation, reward, over, _, info = env.step(
            np.array([list(WAYS).index(name) for name in names])
        )
        before = known_cells.copy()
        for i, name in enumerate(names):
            place[i] = place[i][0] + WAYS[name][0], place[i][1] + WAYS[name][1]
            battery[i] -= open_ways[i][name]
            energy += open_ways[i][name]
            known_cells |= cells(look(params.open, *map(jnp.int32, place[i])))
        assert not over
        new = (known_cells & ground).sum() - (before & ground).sum()
        assert reward == pytest.approx(new / ground.sum() - STEP_COST, abs=1e-6)
        assert info["energy"] == pytest.approx(energy * 185 * 3.71 * 0.4 / 1000)
        assert info["stranded"] == sum(each < 2 for each in battery)
    assert info["stranded"] == 3
    assert energy == 3 * CHARGE - sum(battery)


def check_observation(
    observation: np.ndarray,
    i: int,
    place: list[tuple[int, int]],
    battery: list[int],
    free: np.ndarray,
    known_cells: np.ndarray,
    heights: np.ndarray,
) -> None:
    x, y = place[i]

    def window_around(grid: np.ndarray) -> np.ndarray:
        return np.pad(grid, 6)[y : y + 13, x : x + 13].ravel()

    rise = np.clip(heights - heights[y, x], -16, 16) / 16
    expected = [
        *window_around(known_cells & free),
        *window_around(known_cells & ~free),
        *window_around(np.where(known_cells, rise, 0)),
    ]
    np.testing.assert_allclose(observation[:507], expected, atol=1e-6)
    np.testing.assert_allclose(
        observation[571:574], [x / 31, y / 31, battery[i] / CHARGE], atol=1e-6
    )
    for k, teammate in enumerate([(i + 1) % 3, (i + 2) % 3]):
        expected = [
            (place[teammate][0] - x) / 31,
            (place[teammate][1] - y) / 31,
            battery[teammate] / CHARGE,
        ]
        np.testing.assert_allclose(observation[575 + 3 * k : 578 + 3 * k], expected, atol=1e-6)


def test_one_illegal_action_stops_all_and_costs_a_step(task: MarsFleet) -> None:
    env = TaskEnv(task)
    _, info = env.reset(seed=5)
    mask = info["action_mask"].reshape(3, 5) == 1
    while mask[0].all():
        env.step(np.array([1, 1, 1]))
        mask = env.action_masks().reshape(3, 5) == 1
    before = env.episode.state
    illegal = int(np.flatnonzero(~mask[2])[0])
    _, reward, _, _, info = env.step(np.array([0, int(np.flatnonzero(mask[1])[-1]), illegal]))
    assert reward == pytest.approx(-STEP_COST)
    assert jax.tree.all(
        jax.tree.map(
            lambda a, b: bool((np.asarray(a) == np.asarray(b)).all()), before, env.episode.state
        )
    )
    why = task.why_illegal(np.array([0, 0, illegal]), env.episode.state, env.params)
    assert why.startswith(f"rover 3 cannot go {list(WAYS)[illegal]}")


# -- the reference player --------------------------------------------------------------------------


def test_ways_are_as_cheap_as_those_of_dijkstra(task: MarsFleet) -> None:
    """Costs from each rover over known ground agree, and the first action leads onto such a way."""
    env = TaskEnv(task)
    player = CoordinatedFrontiers.for_task(task)
    act = jax.jit(lambda state, params: player.act((), View(None, None, state, params), None)[0])
    env.reset(seed=8)
    for t in range(12):
        state, params = env.episode.state, env.params
        if t % 4 == 3:
            known_cells = cells(state.known_cells & params.open)
            heights = np.asarray(params.heights)
            cost, first = map(
                np.asarray, cheapest_ways(state.rovers, state.known_cells & params.open, params)
            )
            links = {
                (SIDE * y + x, SIDE * (y + MOVES[name][1]) + x + MOVES[name][0]): energy
                for y, x in np.argwhere(known_cells)
                for name, energy in steps(known_cells, heights, x, y).items()
            }
            rows, columns = zip(*links, strict=True)
            graph = csr_array((list(links.values()), (rows, columns)), (SIDE**2, SIDE**2))
            for i in range(3):
                here = SIDE * int(state.rovers.y[i]) + int(state.rovers.x[i])
                exact_costs = dijkstra(graph, indices=here)
                np.testing.assert_array_equal(
                    np.where(np.isinf(exact_costs), UNREACHABLE / 8, exact_costs), cost[i].ravel()
                )
                for cell in np.flatnonzero(np.isfinite(exact_costs) & (np.arange(SIDE**2) != here))[
                    ::17
                ]:
                    dx, dy = list(WAYS.values())[first[i].ravel()[cell]]
                    beside = here + dx + SIDE * dy
                    assert (
                        links[here, beside] + dijkstra(graph, indices=beside)[cell]
                        == exact_costs[cell]
                    )
        env.step(np.asarray(act(state, params)))


def test_the_player_covers_terrains_before_batteries_are_empty(task: MarsFleet) -> None:
    """Play 24 terrains of the hardest kind.

    Rovers that all drive to the nearest frontier use them up together.
    """
    player = CoordinatedFrontiers.for_task(task)
    record = play(task, player, range(24))
    assert record.info["success"].all()
    start = record.info["coverage"] - (
        record.total[..., 0] - record.info["success"] + record.length * STEP_COST
    )
    assert (start > 0).all(), "what is left is the part seen at the start"
    assert (start < 113 / 500).all()
    together = play(task, player._replace(weight=0.0), range(24))
    assert together.info["success"].mean() < 0.2
    assert together.info["energy"].mean() > 1.5 * record.info["energy"].mean()


def test_it_does_not_look_at_what_it_has_not_seen(task: MarsFleet) -> None:
    env = TaskEnv(task)
    env.reset(seed=9)
    player = CoordinatedFrontiers.for_task(task)
    state, params = env.episode.state, env.params
    hidden = ~np.asarray(state.known_cells)
    action = player.act((), View(None, None, state, params), None)[0]
    for value in (0, 2**32 - 1):
        changed = {
            name: jnp.asarray(
                np.where(hidden, np.uint32(value), 0) | np.asarray(getattr(params, name)) & ~hidden
            )
            for name in ("open", "ground")
        }
        heights = jnp.where(cells(state.known_cells), params.heights, value % 7)
        changed_params = params._replace(**changed, heights=heights)
        np.testing.assert_array_equal(
            player.act((), View(None, None, state, changed_params), None)[0], action
        )


def test_words_and_picture(task: MarsFleet) -> None:
    env = TaskEnv(task)
    env.reset(seed=1)
    env.step(np.array([int(np.flatnonzero(env.action_masks()[:5])[1]), 0, 0]))
    state, params = env.episode.state, env.params
    lines = task.describe(state, params).splitlines()
    x, y = (int(coordinates[0]) for coordinates in state.rovers[:2])
    assert lines[SIDE - y][x] == "1"
    assert int(lines[1 + SIDE + SIDE - y][x], 36) == int(params.heights[y, x])
    assert (
        sum(line.count("?") for line in lines[2 + SIDE : 2 + 2 * SIDE])
        == SIDE**2 - cells(state.known_cells).sum()
    )
    assert task.parse("east, Stay 4", state, params).tolist() == [1, 0, 4]
    with pytest.raises(ValueError, match="expected 3 words"):
        task.parse("east", state, params)
    hidden = params._replace(
        heights=np.where(cells(state.known_cells), np.asarray(params.heights), 0)
    )
    np.testing.assert_array_equal(
        task.draw(state, hidden), task.draw(state, params), "a picture shows nothing unseen"
    )
    with pytest.raises(ValueError, match="height in steps"):
        CARD.build(difficulty=99)
