"""Check PointMaze against fine geometry, brute-force contact, SciPy's paths and closed forms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.episode import ContextSource
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.offline.maze import LAYOUTS, UNREACHED, Maze, Motion, move
from rlbench_suite.envs.offline.point_maze import (
    CLEARANCE,
    GOAL_RADIUS,
    MASS,
    RADIUS,
    SCATTER,
    STEP,
    Ball,
    Params,
    PointMaze,
    State,
    WaypointPD,
)
from rlbench_suite.numerics.process import precision

CARD = card("PointMaze-v0")
MAX_SPEED = Ball().max_speed
SPARSE = ("umaze", "medium", "large")

every_maze = pytest.mark.parametrize("name", LAYOUTS)


# -- layouts and plans -----------------------------------------------------------------------------


def test_mazes_are_those_of_d4rl() -> None:
    """Rows of d4rl/pointmaze/maze_model.py as bits from the left; O and G are free cells."""
    published = {
        "umaze": ("#GOO#", "###O#", "#OOO#"),
        "medium": ("#OO##OO#", "#OO#OOO#", "##OOO###", "#OO#OOO#", "#O#OO#O#", "#OOO#OG#"),
        "large": (
            "#OOOO#OOOOO#",
            "#O##O#O#O#O#",
            "#OOOOOO#OOO#",
            "#O####O###O#",
            "#OO#O#OOOOO#",
            "##O#O#O#O###",
            "#OO#OOO#OGO#",
        ),
    }
    for name, inner in published.items():
        rows = ["#" * len(inner[0]), *inner, "#" * len(inner[0])]
        expected = [
            sum(1 << i for i, sign in enumerate(row) if sign == "#") for row in reversed(rows)
        ]
        assert Maze(LAYOUTS[name]).rows.tolist() == expected


@every_maze
def test_paths_are_shortest(name: str) -> None:
    maze = Maze(LAYOUTS[name])
    cells = maze.width * maze.height
    graph = np.zeros((cells, cells))
    for row in range(maze.height):
        for column in range(maze.width):
            for c, r in ((column + 1, row), (column, row + 1)):
                if (
                    c < maze.width
                    and r < maze.height
                    and not maze.wall[row, column]
                    and not maze.wall[r, c]
                ):
                    graph[row * maze.width + column, r * maze.width + c] = 1
    distance = shortest_path(csr_matrix(graph), directed=False, unweighted=True)
    free = ~maze.wall.ravel()
    assert np.isfinite(distance[np.ix_(free, free)]).all(), "a maze is in one piece"
    np.testing.assert_array_equal(maze.steps[np.ix_(free, free)], distance[np.ix_(free, free)])
    assert (maze.steps[~free] == UNREACHED).all()
    for goal in np.flatnonzero(free):
        for here in np.flatnonzero(free):
            there = maze.next_cell[goal, here]
            assert distance[here, there] == (here != goal)
            assert distance[there, goal] == max(distance[here, goal] - 1, 0)


@every_maze
def test_training_and_test_pairs_share_nothing_and_are_all(name: str) -> None:
    maze = Maze(LAYOUTS[name])
    train, test = ({tuple(pair) for pair in table.tolist()} for table in maze.pairs)
    assert not train & test
    expected = {
        (*a, *b)
        for a in maze.free
        for b in maze.free
        if abs(a[0] - b[0]) + abs(a[1] - b[1]) >= 2
        or maze.steps[maze.number(*a), maze.number(*b)] >= 2
    }
    assert train | test == expected
    assert len(test) / len(expected) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("split", Split)
def test_contexts_come_from_their_split(split: Split) -> None:
    """Every pair of the split is drawn, no other; goals fill their square."""
    task: PointMaze = CARD.build(difficulty="umaze")
    keys = jax.random.split(jax.random.key(1), 4000)
    params = jax.tree.map(
        np.asarray, jax.vmap(partial(task.sample_params, split=jnp.int32(split)))(keys)
    )
    squares = {
        tuple(map(int, np.floor(pair)))
        for pair in zip(params.start_x, params.start_y, params.goal_x, params.goal_y, strict=True)
    }
    assert squares == {tuple(pair) for pair in task.maze.pairs[split].tolist()}
    for goal in (params.goal_x, params.goal_y):
        off_centre = goal % 1 - 0.5
        assert np.abs(off_centre).max() <= SCATTER + 1e-5
        assert off_centre.std() == pytest.approx(SCATTER / np.sqrt(3), rel=0.05)


# -- walls -----------------------------------------------------------------------------------------


def clearance(maze: Maze, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distance of points from the nearest wall cell, 0 inside one.

    It is at float64 and over all wall cells, without tricks of the grid.
    """
    nearest = np.full(x.shape, np.inf)
    for row, column in np.argwhere(maze.wall):
        dx = np.maximum(np.maximum(column - x, x - column - 1), 0)
        dy = np.maximum(np.maximum(row - y, y - row - 1), 0)
        nearest = np.minimum(nearest, np.hypot(dx, dy))
    return nearest


def random_force(observation: jax.Array, key: jax.Array) -> jax.Array:
    return jax.random.uniform(key, (2,), minval=-1, maxval=1)


def corner_force(observation: jax.Array, key: jax.Array) -> jax.Array:
    """Corners of the action square, changed every step."""
    return jnp.where(jax.random.bernoulli(key, 0.5, (2,)), 1.0, -1.0)


def force_along_velocity(observation: jax.Array, key: jax.Array) -> jax.Array:
    """Along the velocity, and now and then somewhere else: top speed into whatever comes."""
    velocity = observation[2:4]
    turn = jax.random.bernoulli(key, 0.05, (2,))
    return jnp.where(turn | (velocity == 0), corner_force(observation, key), jnp.sign(velocity))


def force_to_corners(observation: jax.Array, key: jax.Array) -> jax.Array:
    """At the nearest corner of the grid."""
    place = observation[:2]
    return jnp.clip(20 * (jnp.round(place) - place) + 0.3 * random_force(observation, key), -1, 1)


def round_corners(observation: jax.Array, key: jax.Array) -> jax.Array:
    """Circling the nearest corner of the grid while pressed against it."""
    offset = observation[:2] - jnp.round(observation[:2])
    across = jnp.stack([-offset[1], offset[0]])
    return jnp.clip(20 * (across - offset), -1, 1)


HOSTILE = (random_force, corner_force, force_along_velocity, force_to_corners, round_corners)


@every_maze
def test_the_ball_never_overlaps_a_wall(name: str) -> None:
    """32 balls a policy for 600 steps, ended by nothing.

    Between two steps the ball slides round corners along an arc: the straight line between its ends
    cuts the arc by at most r - sqrt(r^2 - (step / 2)^2) = 7.2 mm at the greatest step, sqrt(2) *
    MAX_SPEED * STEP. So the fine resolution below allows for that and nothing else; at the ends
    nothing is allowed.
    """
    task: PointMaze = CARD.build(difficulty=f"{name}-dense")

    @jax.jit
    @jax.vmap
    def trace(key: jax.Array, policy: jax.Array) -> Motion:
        params = task.sample_params(key, jnp.int32(0))

        def step(state: State, key: jax.Array) -> tuple[State, Motion]:
            observation = task.observation(state, key, params)
            action = jnp.stack([hostile(observation, key) for hostile in HOSTILE])[policy]
            after = task.transition(state, action, key, params)
            return after, after.ball

        return jax.lax.scan(step, task.initial(key, params), jax.random.split(key, 600))[1]

    policies = jnp.arange(32 * len(HOSTILE)) % len(HOSTILE)
    states = trace(jax.random.split(jax.random.key(3), policies.size), policies)
    x, y, vx, vy = (np.asarray(values, np.float64) for values in states)
    gap = clearance(task.maze, x, y)
    assert gap.min() >= RADIUS
    for policy in range(len(HOSTILE)):
        assert gap[policy :: len(HOSTILE)].min() < RADIUS + 1e-3, "every policy met walls"
    assert np.hypot(vx, vy).max() <= np.sqrt(2) * MAX_SPEED * (1 + 1e-6)
    longest = np.sqrt(2) * MAX_SPEED * STEP
    cut = RADIUS - np.sqrt(RADIUS**2 - longest**2 / 4)
    for values in np.linspace(0, 1, 10)[1:-1]:
        between = [
            before + values * (after - before)
            for before, after in ((x[:, :-1], x[:, 1:]), (y[:, :-1], y[:, 1:]))
        ]
        assert clearance(task.maze, *between).min() >= RADIUS - cut
    for place in (x, y):
        assert np.abs(np.diff(place, axis=1)).max() <= longest + 1e-5


def contact_by_force(
    maze: Maze, x: float, y: float, vx: float, vy: float
) -> tuple[float, float, float, float]:
    """Make the same step by 1,000 small ones.

    Each moves, pushes out of the nearest wall, and drops the velocity into it.
    """
    radius, substeps = RADIUS + CLEARANCE, 1000
    walls = np.argwhere(maze.wall)
    walls = walls[(np.abs(walls + 0.5 - (y, x)) < 1.2).all(1)]
    for _ in range(substeps):
        x, y = x + STEP / substeps * vx, y + STEP / substeps * vy
        for row, column in walls:
            dx, dy = x - min(max(x, column), column + 1), y - min(max(y, row), row + 1)
            distance = np.hypot(dx, dy)
            if distance < radius:
                nx, ny = dx / distance, dy / distance
                x, y = x + (radius - distance) * nx, y + (radius - distance) * ny
                inward = min(vx * nx + vy * ny, 0.0)
                vx, vy = vx - inward * nx, vy - inward * ny
    return x, y, vx, vy


def convex_corners(maze: Maze) -> list[tuple[int, int]]:
    """Corners of the grid that touch one wall cell and three free ones."""
    around = (
        maze.wall[:-1, :-1].astype(int)
        + maze.wall[1:, :-1]
        + maze.wall[:-1, 1:]
        + maze.wall[1:, 1:]
    )
    return [(int(column) + 1, int(row) + 1) for row, column in np.argwhere(around == 1)]


def test_contact_equals_a_brute_force_simulation() -> None:
    """Near walls anywhere, and near convex corners, at any velocity.

    On an arc the small steps follow the circle where one step leaves along the tangent. Both keep
    the tangential speed, to first order in the angle s / r that is turned on the arc in the way s
    left after contact, and part by s^2 / 2 r in place.
    """
    rng = np.random.default_rng(0)
    stepped = jax.jit(move, static_argnums=(2, 3))
    radius = RADIUS + CLEARANCE
    sides = arcs = 0
    for layout in LAYOUTS.values():
        maze = Maze(layout)
        corners = convex_corners(maze)
        places: list[np.ndarray] = []
        while len(places) < 80:
            if len(places) % 2 and corners:
                place = np.array(corners[rng.integers(len(corners))]) + rng.uniform(-0.15, 0.15, 2)
            else:
                place = rng.uniform(1, (maze.width - 1, maze.height - 1))
            if radius < clearance(maze, *place[:, None])[0] < RADIUS + 0.05:
                places.append(place)
        for place in places:
            velocity = rng.uniform(-MAX_SPEED, MAX_SPEED, 2)
            with jax.enable_x64(True):
                got = np.array(
                    stepped(
                        jnp.asarray(maze.rows),
                        Motion(*map(jnp.asarray, (*place, *velocity))),
                        STEP,
                        radius,
                    )
                )
            expected = np.array(contact_by_force(maze, *place, *velocity))
            change = expected[2:] - velocity
            if np.abs(change).min() < 1e-12:
                sides += np.abs(change).max() > 0
                np.testing.assert_allclose(got, expected, atol=1e-4)
            elif (expected[2:] == 0).any():  # one side after the other
                np.testing.assert_allclose(got, expected, atol=1e-4)
            else:
                arcs += 1
                slid = np.hypot(*(expected[:2] - place))
                speed = np.hypot(*velocity)
                np.testing.assert_allclose(
                    got[:2], expected[:2], atol=slid**2 / (2 * radius) + 1e-4
                )
                np.testing.assert_allclose(got[2:], expected[2:], atol=speed * slid / radius + 1e-2)
                assert np.hypot(*got[2:]) <= speed + 1e-12
    assert sides > 40
    assert arcs > 10


@pytest.mark.parametrize("angle", np.radians([100, 135, 170, 181, 200, 225, 250, 269]))
def test_a_head_on_corner_stops_and_a_glancing_one_deflects(angle: float) -> None:
    """From every direction the ball ends on the tangent of a wall cell's circle.

    Its tangential velocity is kept.
    """
    rows = np.array([0, 0b10, 0], np.uint32)  # the wall covers [1, 2] x [1, 2]; corner (1, 1)
    radius, normal = 0.1, np.array([np.cos(angle), np.sin(angle)])
    if not (normal < 0).all():
        normal = np.array([-1.0, 0.0]) if normal[1] >= 0 else np.array([0.0, -1.0])
    contact = np.array([1.0, 1.0]) + radius * normal
    velocity = -3.0 * normal + 2.0 * np.array([-normal[1], normal[0]])
    with jax.enable_x64(True):
        start = contact - 0.004 * velocity
        after = move(rows, Motion(*start, *velocity), 0.01, radius)
    tangent = np.array([-normal[1], normal[0]])
    np.testing.assert_allclose([after.x, after.y], contact + 0.006 * 2.0 * tangent, atol=1e-12)
    np.testing.assert_allclose([after.vx, after.vy], 2.0 * tangent, atol=1e-12)


# -- dynamics, rewards, ends -----------------------------------------------------------------------


def test_free_flight_is_the_closed_form() -> None:
    """Velocity along a corridor is v_n = (F / b) (1 - q^n) with q = m / (m + b dt).

    The place is its sum.
    """
    task: PointMaze = CARD.build(dtype="float64")
    with precision(task):
        zero = jnp.zeros(())
        state = State(Motion(jnp.asarray(1.2), jnp.asarray(1.5), zero, zero), jnp.int32(0))
        params = Params(zero, zero, zero, zero)
        step = jax.jit(task.transition)
        n = 20
        for _ in range(n):
            state = step(state, jnp.array([0.5, 0.0]), None, params)
    q = MASS / (MASS + 0.01)
    assert pytest.approx(4.18879, rel=1e-6) == MASS
    ball = state.ball
    assert float(ball.vx) == pytest.approx(50 * (1 - q**n), rel=1e-12)
    assert float(ball.x) == pytest.approx(
        1.2 + 0.01 * 50 * (n - q * (1 - q**n) / (1 - q)), rel=1e-12
    )
    assert (float(ball.y), float(ball.vy)) == (1.5, 0.0)


@pytest.mark.parametrize("name", SPARSE)
def test_the_planner_solves_every_pair_in_time(name: str) -> None:
    """Every pair of cells of both splits, from the centres: 1,481 and 493 of the large maze."""
    task: PointMaze = CARD.build(difficulty=name)
    player = WaypointPD.for_task(task)
    pairs = np.concatenate(task.maze.pairs)

    @jax.jit
    @jax.vmap
    def arrival(pair: jax.Array) -> jax.Array:
        params = Params(*(pair + 0.5))
        zero = jnp.zeros(())

        def step(
            carry: tuple[State, jax.Array], t: jax.Array
        ) -> tuple[tuple[State, jax.Array], None]:
            state, when = carry
            observation = task.observation(state, None, params)
            action, _ = player.act((), type("View", (), {"observation": observation}), None)
            state = task.transition(state, action, None, params)
            return (
                state,
                jnp.where(task.terminal(state, None, params), jnp.minimum(when, t), when),
            ), None

        start = State(Motion(params.start_x, params.start_y, zero, zero), jnp.int32(0))
        return jax.lax.scan(step, (start, jnp.int32(10_000)), jnp.arange(1, CARD.horizon + 1))[0][1]

    steps = np.asarray(arrival(pairs.astype(np.float32)))
    assert steps.max() <= 400
    # No path is shorter than the straight line, and no axis faster than MAX_SPEED.
    span = np.abs(pairs[:, :2] - pairs[:, 2:]).max(1) - GOAL_RADIUS
    assert (steps * STEP * MAX_SPEED >= span).all()


def test_sparse_returns_count_time() -> None:
    """The goal pays 1, each step costs 1/600.

    Who comes too late has no success, and noop loses the time.
    """
    for name in SPARSE:
        task: PointMaze = CARD.build(difficulty=name)
        record = play(task, WaypointPD.for_task(task), range(50))
        np.testing.assert_allclose(record.total, 1 - record.length / 600, atol=1e-5)
        assert record.terminated.all()
        assert record.info["success"].all()
        assert (record.info["distance"] <= GOAL_RADIUS).all()
    # Six cells about the wall of the U.
    params = Params(*np.array([1.5, 1.5, 1.5, 3.5], np.float32))
    assert int(CARD.build(difficulty="umaze").deadline(params)) == 6 * 50
    there = State(Motion(*np.array([1.5, 3.5, 0.0, 0.0], np.float32)), np.int32(300))
    task = CARD.build(difficulty="umaze")
    assert bool(task.info(there, params)["success"])
    assert not bool(task.info(there._replace(steps=np.int32(301)), params)["success"])
    assert float(task.reward(there, None, there, None, params)) == pytest.approx(1 - 1 / 600)


def test_dense_reward_is_the_distance_and_never_ends() -> None:
    env = TaskEnv(CARD.build(difficulty="medium-dense"))
    _, info = env.reset(seed=4)
    action = np.array([0.7, -0.4], np.float32)
    for _ in range(30):
        observation, reward, terminated, _, info = env.step(action)
        distance = np.hypot(*(observation[:2] - observation[4:]).astype(float))
        assert info["distance"] == pytest.approx(distance, rel=1e-5)
        assert reward == pytest.approx(np.exp(-distance), rel=1e-5)
        assert not terminated
    task: PointMaze = CARD.build(difficulty="umaze-dense")
    record = play(task, WaypointPD.for_task(task), range(20))
    assert not record.terminated.any()
    assert (record.length == CARD.horizon).all()
    assert record.info["success"].all()
    assert (record.info["distance"] < 0.01).all(), "the controller comes to rest on the goal"


def test_a_fixed_context_is_a_training_pair() -> None:
    task: PointMaze = CARD.build(difficulty="large")
    train = {tuple(pair) for pair in task.maze.pairs[0].tolist()}
    env = TaskEnv(task, split=17)
    for seed in range(3):
        env.reset(seed=seed)
        p = env.params
        assert tuple(int(np.floor(v)) for v in (p.start_x, p.start_y, p.goal_x, p.goal_y)) in train
    assert ContextSource.parse(17, task).split == Split.TRAIN


def test_words_and_picture() -> None:
    task: PointMaze = CARD.build(difficulty="umaze")
    params = Params(*np.array([1.5, 3.5, 1.5, 1.5], np.float32))
    state = State(Motion(*np.array([3.5, 2.5, 0.0, 2.0], np.float32)), np.int32(0))
    text = task.describe(state, params)
    assert text.splitlines()[1:6] == ["#####", "#...#", "###B#", "#G..#", "#####"]
    assert "2.236 m away" in text
    picture = task.draw(state, params)
    assert picture.shape == task.picture_shape
    blue = np.argwhere((picture == (65, 105, 225)).all(-1)).mean(0)
    # Cells of 72 pixels about the middle of the picture.
    np.testing.assert_allclose(blue, [180, 240 + 72], atol=3)
    assert (
        task.draw(state._replace(ball=state.ball._replace(x=np.float32(2.5))), params) != picture
    ).any()


def test_a_difficulty_that_is_no_maze_is_refused() -> None:
    with pytest.raises(ValueError, match="difficulty"):
        CARD.build(difficulty=3)
