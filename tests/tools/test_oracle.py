"""The reference solves everything, and sees only what it was shown."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from plays import TIERS, play, task_of

from rlbench_suite.core.task import Split
from rlbench_suite.envs.tools.office.apps.kinds import Reason
from rlbench_suite.envs.tools.office.columns import World
from rlbench_suite.envs.tools.office.templates.column_template import sight_of

KEY = np.zeros(2, np.uint32)
"""Observations draw nothing."""


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("tier", TIERS)
def test_the_oracle_solves_every_template_and_every_refusal(tier: str, split: Split) -> None:
    task = task_of(tier)
    record = play(tier, 8, split=split)
    assert (record.total == 1).all()
    pairs = {
        (int(t), int(r))
        for t, r in zip(record.params.ask.template, record.params.reason, strict=True)
    }
    for number, template in enumerate(task.templates):
        assert pairs >= {(number, 0)}
        assert {r for t, r in pairs if t == number} - {0} <= set(template.reasons)
    assert {Reason(r) for _, r in pairs} - {Reason.NONE} == {
        reason for template in task.templates for reason in template.reasons
    }
    assert (record.params.reason > 0).mean() < 0.15


@pytest.mark.parametrize("tier", TIERS)
def test_hidden_cells_change_neither_the_observation_nor_the_oracle(tier: str) -> None:
    """All that was never shown is replaced by other values.

    Nothing a player is given may differ.
    """
    task = task_of(tier)
    record = play(tier, 1, seed=3, noise=0.3)
    rng = np.random.default_rng(1)
    step = rng.integers(0, 6, 256)
    states = jax.tree.map(lambda leaf: leaf[np.arange(256), step], record.states)

    @jax.jit
    @jax.vmap
    def look(state, params):
        see = sight_of(state, params.ask)
        return see.world, task.observation(state, KEY, params), task.oracle_call(see)

    world, *outputs = jax.tree.map(np.asarray, look(states, record.params))
    notebook = states.notebook
    visible = {
        **dict.fromkeys(("name", "city"), notebook.entries), "relation": notebook.relations,
        "phone": notebook.phones, **dict.fromkeys(("title", "place"), notebook.events),
        "guests": notebook.guests,
        **dict.fromkeys([f for f in World._fields if f.startswith("request_")], notebook.requests),
        **dict.fromkeys(
            [f for f in World._fields if f.startswith("transfer_")], notebook.transfers
        ),
    }  # fmt: skip
    changed = 0
    worlds = states.world._asdict()
    for name, mask in visible.items():
        column = worlds[name]
        is_visible = mask[:, None] >> np.arange(column.shape[1], dtype=np.uint32) & 1 == 1
        # Other rows' values.
        column_elsewhere = np.where(is_visible, column, rng.permuted(column, axis=1))
        changed += (column_elsewhere != column).sum()
        worlds[name] = column_elsewhere.astype(column.dtype)
    secret = notebook.accounts == 0
    for name in ("balance", "savings"):
        worlds[name] = np.where(secret, worlds[name] + 7, worlds[name])
    assert changed > 1000
    assert secret.any()
    world_again, *outputs_again = jax.tree.map(
        np.asarray, look(states._replace(world=World(**worlds)), record.params)
    )
    for a, b in zip(
        jax.tree.leaves((world, outputs)),
        jax.tree.leaves((world_again, outputs_again)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("tier", TIERS)
def test_train_and_test_share_no_person(tier: str) -> None:
    people = []
    for split in Split:
        world = play(tier, 4, split=split).params.start
        there = world.name > 0
        people.append(set(zip(world.name[there].tolist(), world.city[there].tolist(), strict=True)))
    assert not people[0] & people[1]
    assert len(people[0]) == len(people[1]) == 16 * 3
