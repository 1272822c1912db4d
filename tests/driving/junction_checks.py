"""Checks of tasks at junctions against plain Python at float64.

They look at every second of many hostile episodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import plain_junction
from plain_junction import body, overlap

from rlbench_suite.numerics.process import precision


class Record(NamedTuple):
    """Episodes under random actions at float64.

    The first axis of params is the episode. The first axes of states are step and episode.
    """

    params: Any
    states: Any
    next_states: Any

    def step(self, t: int, e: int) -> tuple[Any, Any]:
        """Return the states before and after a step."""
        return jax.tree.map(lambda leaf: leaf[t, e], (self.states, self.next_states))

    def steps(self) -> Iterator[tuple[int, int]]:
        """Return step and episode of each step."""
        return iter(np.ndindex(*self.states.steps.shape))


def play(
    task: Any, episodes: int, steps: int, shares: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)
) -> Record:
    """Play episodes under random actions, drawn with these shares, in one program."""

    @jax.jit
    def play_all(keys: Any, actions: Any) -> Any:
        params = jax.vmap(lambda key: task.sample_params(key, jnp.int32(1)))(keys)

        def step(state: Any, row: Any) -> Any:
            moved = jax.vmap(lambda key: jax.random.fold_in(key, row[1]))(keys)
            next_state = jax.vmap(task.transition)(state, row[0], moved, params)
            return next_state, (state, next_state)

        return params, *jax.lax.scan(
            step, jax.vmap(task.initial)(keys, params), (actions, np.arange(steps))
        )[1]

    with precision(task):
        actions = np.random.default_rng(0).choice(
            np.arange(3, dtype=np.int32), (steps, episodes), p=shares
        )
        return Record(
            *jax.tree.map(
                np.asarray, play_all(jax.random.split(jax.random.key(5), episodes), actions)
            )
        )


def check_seconds(junction: Any, record: Record) -> None:
    """Compare places and speeds to a nanometre.

    An overlap of bodies is a crash, and a crash leaves no room for a body.
    """
    compared = crashes = 0
    for t, e in record.steps():
        old, new = record.step(t, e)
        if old.crashed or old.arrived:
            continue
        cars = old.cars
        driver = [value[e] for value in record.params.driver]
        state = cars.route.tolist(), cars.s.tolist(), cars.speed.tolist(), cars.present.tolist()
        s, v, touched = plain_junction.drive_second(junction, *state, driver, int(new.level))
        assert new.crashed or not touched
        # The margin of the test for collisions, and the way of two cars in a sub-step, are less
        # than 1.5 m.
        last = new.cars.route.tolist(), new.cars.s.tolist(), cars.present.tolist()
        assert not new.crashed or plain_junction.ego_overlaps(junction, *last, 1.5)
        crashes += int(touched)
        if not (new.crashed or new.arrived):
            stays = cars.present & new.cars.present & (new.cars.s > 0)
            np.testing.assert_allclose(new.cars.s[stays], np.array(s)[stays], rtol=0, atol=1e-9)
            np.testing.assert_allclose(new.cars.speed[stays], np.array(v)[stays], rtol=0, atol=1e-9)
            compared += 1
    assert compared > 100
    assert crashes > 3


def check_near_misses(junction: Any, record: Record) -> None:
    """Check that overlaps within 1.5 s, tested every 0.05 s, are all near misses.

    Bodies of a near miss come within 1.3 m, because they may turn in 0.25 s.
    """
    num_near_misses = 0
    for t, e in record.steps():
        old, new = record.step(t, e)
        if old.crashed or old.arrived or new.arrived:
            continue
        route, stays = new.cars.route.tolist(), (old.cars.present & new.cars.present).tolist()
        ways = [(new.cars.s + new.cars.speed * k * 0.05).tolist() for k in range(31)]
        wider = 1.3 if new.near_miss else 0.0
        comes = any(plain_junction.ego_overlaps(junction, route, s, stays, wider) for s in ways)
        assert comes == new.near_miss
        num_near_misses += int(new.near_miss)
    assert num_near_misses > 20


def check_others(junction: Any, record: Record, platoons: tuple[int, ...]) -> None:
    """Check that others never touch, and that they come and go where they should.

    Those of arms with traffic lights come while these are green. Who goes has left by 30 m.
    """
    params, came = record.params, 0
    for t, e in record.steps():
        old, new = (state.cars for state in record.step(t, e))
        fresh = new.present & (~old.present | (new.s < old.s))
        assert (new.s[fresh] == 0).all()
        red = (params.phase[e] + t) % params.cycle[e] > params.cycle[e] - params.gap[e]
        assert not (red and (fresh & np.isin(new.route // 3, platoons)).any())
        for i in np.flatnonzero(old.present & ~new.present).tolist():
            assert new.s[i] > junction.out(int(new.route[i])) + 30
        came += int(fresh.sum())
        present = np.flatnonzero(new.present)[1:].tolist()
        place = {i: junction.pose(int(new.route[i]), float(new.s[i])) for i in present}
        for i, j in combinations(present, 2):
            if math.dist(place[i][:2], place[j][:2]) < 6:
                assert not overlap(body(place[i]), body(place[j]))
    assert came > 50


def check_rewards(task: Any, record: Record, end: float) -> None:
    """Check that arrival after t s pays 100 - t / 4 and ends the episode.

    The ego has arrived ``end`` m along the route. A crash ends the episode unpaid.
    """
    params, states, next_states = record
    running = ~(states.crashed | states.arrived)
    with precision(task):
        pays = task.reward(states, None, next_states, None, params)
        over = task.terminal(next_states, None, params)
    np.testing.assert_array_equal(over, next_states.crashed | next_states.arrived)
    assert not (next_states.crashed & next_states.arrived).any()
    arrives = running & next_states.arrived
    assert arrives.sum() > 3
    np.testing.assert_array_equal(
        arrives, running & ~next_states.crashed & (next_states.cars.s[..., 0] >= end)
    )
    np.testing.assert_array_equal(
        np.asarray(pays)[running], np.where(arrives, 100 - next_states.steps / 4, 0)[running]
    )
