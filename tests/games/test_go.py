"""Go against OpenSpiel's records, counts of legal positions, and rules written out plainly."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test

from rlbench_suite.adapters.rollout import play
from rlbench_suite.checking.checks import findings
from rlbench_suite.core.game import SeatPlayer
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.games.go.go import KOMI, Go
from rlbench_suite.envs.games.go.players import Material, MonteCarlo, useful_points
from rlbench_suite.envs.games.go.rules import BLACK, WHITE, Rules, State

ID = "rlsuite/Go-v0"
RECORDS = json.loads(Path(__file__).with_name("go_records.json").read_text())["games"]
OPEN_SPIEL_KOMI = 7.5
LEGAL_POSITIONS = {1: 1, 2: 57, 3: 12_675}
"""Tromp & Farneback 2007, "Combinatorics of Go", table of legal positions; OEIS A094777."""


def game_on(board: str) -> Go:
    return card(ID, board=board).joint().build()


class Board:
    """The rules written out: a dictionary of stones, whose chains are searched for at each move."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.stones: dict[int, int] = {}
        self.mover = BLACK
        self.ko: int | None = None
        self.passes = 0
        self.captured_stones = 0

    def neighbours(self, point: int) -> list[int]:
        row, column = divmod(point, self.size)
        around = [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
        return [r * self.size + c for r, c in around if min(r, c) >= 0 and max(r, c) < self.size]

    def chain(self, point: int, stones: dict[int, int]) -> tuple[set[int], set[int]]:
        """Return the chain of a stone, and its liberties."""
        chain = {point}
        liberties = set()
        waiting = [point]
        while waiting:
            for neighbour in self.neighbours(waiting.pop()):
                if neighbour not in stones:
                    liberties.add(neighbour)
                elif stones[neighbour] == stones[point] and neighbour not in chain:
                    chain.add(neighbour)
                    waiting.append(neighbour)
        return chain, liberties

    def after(self, point: int) -> tuple[dict[int, int], int | None, int] | None:
        """Return stones, the point of ko and the number captured; None for an illegal move."""
        if point in self.stones or point == self.ko:
            return None
        stones = {**self.stones, point: self.mover}
        captured: set[int] = set()
        for neighbour in self.neighbours(point):
            if stones.get(neighbour) == 1 - self.mover:
                chain, liberties = self.chain(neighbour, stones)
                if not liberties:
                    captured |= chain
        for stone in captured:
            del stones[stone]
        chain, liberties = self.chain(point, stones)
        if not liberties:
            return None
        is_ko = len(captured) == len(chain) == len(liberties) == 1
        return stones, min(captured) if is_ko else None, len(captured)

    def legal_points(self) -> list[int]:
        return [point for point in range(self.size**2) if self.after(point)]

    def move(self, point: int) -> None:
        if point == self.size**2:
            self.passes += 1
            self.ko = None
        else:
            after = self.after(point)
            assert after
            self.stones, self.ko, captured = after
            self.captured_stones += captured
            self.passes = 0
        self.mover = 1 - self.mover

    def margin(self) -> int:
        """Return stones and empty regions of Black less those of White."""
        areas = [sum(colour == side for colour in self.stones.values()) for side in range(2)]
        counted: set[int] = set()
        for point in range(self.size**2):
            if point in self.stones or point in counted:
                continue
            region = {point}
            waiting = [point]
            borders = set()
            while waiting:
                for neighbour in self.neighbours(waiting.pop()):
                    if neighbour in self.stones:
                        borders.add(self.stones[neighbour])
                    elif neighbour not in region:
                        region.add(neighbour)
                        waiting.append(neighbour)
            counted |= region
            if len(borders) == 1:
                areas[borders.pop()] += len(region)
        return areas[BLACK] - areas[WHITE]


def points_of(bits: str) -> list[int]:
    number = int(bits, 16)
    return [point for point in range(number.bit_length()) if number >> point & 1]


# -- the rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record['size']}x{record['size']}")
def test_a_game_of_open_spiel(record: dict[str, Any]) -> None:
    rules = Rules(record["size"])
    state = rules.empty_board()
    place = jax.jit(rules.place)
    legal = jax.jit(lambda state: rules.flags(rules.legal_points(state)))
    for move, bits in zip(record["moves"], record["legal"], strict=True):
        assert not rules.is_over(state)
        assert np.flatnonzero(legal(state)).tolist() == points_of(bits)
        state = place(state, jnp.int32(move))
    assert rules.is_over(state)
    assert (int(state.margin) > OPEN_SPIEL_KOMI) == record["black_wins"]


@pytest.mark.parametrize("size", [2, 3])
def test_legal_positions_are_as_many_as_published(size: int) -> None:
    """Walk through all positions of the game, breadth first, with ko and the side to move."""
    rules = Rules(size)

    @jax.jit
    def children(states: State) -> tuple[State, jax.Array]:
        moves = np.arange(rules.points + 1, dtype=np.int32)
        legal = jax.vmap(lambda state: rules.flags(rules.legal_points(state)))(states)
        legal = jnp.concatenate([legal, jnp.ones((len(legal), 1), bool)], axis=1)
        place = jax.vmap(jax.vmap(rules.place_uncounted, (None, 0)), (0, None))
        return place(states, moves), legal

    reached: set[tuple[int, int, int, int]] = set()
    width = 256
    frontier = jax.tree.map(lambda leaf: np.asarray(leaf)[None], rules.empty_board())
    while len(frontier.ply):
        batches = []
        for start in range(0, len(frontier.ply), width):
            batch = jax.tree.map(lambda leaf, i=start: leaf[i : i + width], frontier)
            lacking = width - len(batch.ply)
            batch = jax.tree.map(
                lambda leaf, n=lacking: np.concatenate([leaf, np.repeat(leaf[:1], n, 0)]), batch
            )
            states, legal = jax.device_get(children(batch))
            batches.append(jax.tree.map(lambda leaf, ok=legal: leaf[ok], states))
        candidates = jax.tree.map(lambda *leaves: np.concatenate(leaves), *batches)
        fresh = []
        words = zip(
            candidates.stones[:, BLACK, 0].tolist(), candidates.stones[:, WHITE, 0].tolist(),
            candidates.ko[:, 0].tolist(), (candidates.ply % 2).tolist(), strict=True,
        )  # fmt: skip
        for index, position in enumerate(words):
            if position not in reached:
                reached.add(position)
                fresh.append(index)
        frontier = jax.tree.map(lambda leaf, rows=fresh: leaf[rows], candidates)
    boards = {(black, white) for black, white, _, _ in reached}
    assert len(boards) == LEGAL_POSITIONS[size]


@pytest.mark.parametrize(("size", "count"), [(3, 400), (5, 600), (9, 40)])
def test_random_games_go_as_the_rules_written_out(size: int, count: int) -> None:
    """Games side by side: stones, legal points and ko after each move, and the area at the end.

    Every second game fills no eyes, and so has larger captures.
    """
    rules = Rules(size)
    rng = np.random.default_rng(size)
    boards = [Board(size) for _ in range(count)]
    states: State = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), rules.empty_board()
    )
    place = jax.jit(jax.vmap(rules.place))
    is_over = jax.jit(jax.vmap(rules.is_over))

    @jax.jit
    @jax.vmap
    def look(state: State) -> tuple[jax.Array, ...]:
        sets = (
            rules.legal_points(state),
            useful_points(rules, state),
            state.stones[BLACK],
            state.stones[WHITE],
        )
        return tuple(rules.flags(points) for points in sets)

    ends = [False] * count
    kos = 0
    for ply in range(rules.limit):
        legal, useful, black, white = map(np.asarray, look(states))
        moves = np.full(count, rules.points, np.int32)
        for i, board in enumerate(boards):
            if ends[i]:
                continue
            points = np.flatnonzero(legal[i]).tolist()
            assert points == board.legal_points()
            colours = {int(p): BLACK for p in np.flatnonzero(black[i])}
            colours |= {int(p): WHITE for p in np.flatnonzero(white[i])}
            assert colours == board.stones
            kos += board.ko is not None
            if i % 2:
                points = np.flatnonzero(useful[i]).tolist()
            if points and rng.random() < 0.97:
                moves[i] = rng.choice(points)
            board.move(int(moves[i]))
        states = place(states, jnp.asarray(moves))
        margins = np.asarray(states.margin)
        game_ends = np.asarray(is_over(states))
        for i, board in enumerate(boards):
            if not ends[i]:
                ends[i] = board.passes >= 2 or ply + 1 == rules.limit
                assert game_ends[i] == ends[i]
                assert margins[i] == (board.margin() if ends[i] else 0)
        if all(ends):
            break
    assert all(ends)
    assert sum(board.captured_stones for board in boards) > count
    assert kos > 0


def test_a_single_stone_may_not_be_taken_back_at_once() -> None:
    """White takes Black's stone on 7; Black may take back after two other moves."""
    rules = Rules(5)
    state = rules.empty_board()
    for move in (1, 2, 5, 8, 11, 12, 7, 6):
        state = rules.place(state, jnp.int32(move))
    assert np.flatnonzero(rules.flags(state.ko)).tolist() == [7]
    assert not bool(rules.flags(rules.legal_points(state))[7])
    for move in (24, 23):
        state = rules.place(state, jnp.int32(move))
    assert not np.asarray(rules.flags(state.ko)).any()
    assert bool(rules.flags(rules.legal_points(state))[7])


# -- openings and seats ----------------------------------------------------------------------------


@pytest.mark.parametrize("board", ["5x5", "9x9"])
def test_openings_of_the_splits_are_apart_and_so_are_their_images(board: str) -> None:
    game = game_on(board)
    train, test = ({*map(tuple, game.openings[split].tolist())} for split in Split)
    assert not train & test
    assert len(train | test) == game.points * (game.points - 1)
    assert 0.15 < len(test) / len(train | test) < 0.35

    def turned(point: int) -> int:
        row, column = divmod(point, game.size)
        return column * game.size + game.size - 1 - row

    def reflected(point: int) -> int:
        row, column = divmod(point, game.size)
        return row * game.size + game.size - 1 - column

    for image in (turned, reflected):
        assert {(image(black), image(white)) for black, white in test} == test


def test_both_seats_come_up_and_the_opening_is_on_the_board() -> None:
    envs: Any = gymnasium.make_vec(ID, 200, split="test", difficulty="easy")
    envs.reset(seed=0)
    game_state = envs.episodes.state.game
    seats = np.asarray(envs.episodes.state.seat)
    assert 0.4 < seats.mean() < 0.6
    np.testing.assert_array_equal(game_state.ply, 2 + seats)


# -- players ---------------------------------------------------------------------------------------


def score(player_class: Any, difficulty: str, count: int) -> float:
    task = card(ID).build(difficulty=difficulty)
    record = play(task, SeatPlayer(player_class(task.game)), range(count))
    return float(record.total.mean())


def test_playouts_beat_material() -> None:
    assert score(Material, "medium", 50) < -0.4


def test_the_reference_beats_the_hardest_opponent() -> None:
    task = card(ID).build(difficulty="hard")
    record = play(task, reference_player(task), range(24))
    assert record.total.mean() > 0.4


def test_komi_makes_the_games_of_equal_players_even() -> None:
    game = game_on("5x5")
    record = play(game, MonteCarlo(game), range(64))
    # Two standard errors of 64 even games are 0.12.
    assert 0.35 < record.info["success"].mean() < 0.65


def test_material_takes_the_larger_chain() -> None:
    """White's chains of two and of one stone stand in atari; Black takes the two, in any game."""
    game = game_on("5x5")
    state = game.go.empty_board()
    pass_move = game.pass_move
    for move in (5, 0, 6, 1, 24, 20, 21, pass_move):
        state = game.go.place(state, jnp.int32(move))
    player = Material(game)
    act = jax.jit(lambda key: player.act((), View(None, None, state, None), key)[0])
    for seed in range(5):
        assert act(jax.random.key(seed)).tolist() == [2, 2]


def test_players_pass_where_that_wins_at_once() -> None:
    game = game_on("5x5")
    state = game.go.empty_board()
    for move in (12, game.pass_move):
        state = game.go.place(state, jnp.int32(move))
    actions, _ = Material(game).act((), View(None, None, state, None), jax.random.key(0))
    assert actions.tolist() == [game.pass_move] * 2


def test_who_only_passes_loses_as_black() -> None:
    env: Any = gymnasium.make(ID, difficulty="easy")
    totals = []
    for seed in range(10):
        env.reset(seed=seed)
        over = False
        while not over:
            _, reward, over, _, info = env.step(25)
        totals.append(float(reward))
        assert info["success"] == (reward > 0)
    assert np.mean(totals) < -0.5


def test_illegal_moves_lose_and_say_why() -> None:
    env: Any = gymnasium.make(ID, difficulty="easy")
    env.reset(seed=0)
    opening = int(env.unwrapped.params.opening[0])
    _, reward, over, _, info = env.step(opening)
    assert (float(reward), over, info["success"]) == (-1, True, False)
    assert "has a stone" in info["invalid_reason"]


# -- all sides as agents ---------------------------------------------------------------------------


def test_the_game_of_both_sides_keeps_the_contract() -> None:
    faults = {f.check: f.faults for f in findings(game_on("5x5")) if f.faults}
    faults.pop("train and test apart", None)  # there are fewer openings than it samples
    assert not faults


def test_pettingzoos_own_test_passes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Observation")
        api_test(pettingzoo.make("aec", ID), num_cycles=100)


def test_one_side_wins_what_the_other_loses_and_komi_decides() -> None:
    env: Any = pettingzoo.make("aec", ID)
    env.reset(seed=3)
    rewards: dict[str, float] = {}
    for agent in env.agent_iter():
        _, reward, terminated, truncated, _ = env.last()
        over = terminated or truncated
        if over:
            rewards[agent] = reward
        env.step(None if over else 25)
    # One stone each: the margin is 0, and komi makes it White's game.
    assert rewards == {"agent_0": -1, "agent_1": 1}
    assert KOMI[5] > 0
