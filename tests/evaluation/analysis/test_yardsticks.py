"""Test the audit of reference players: it beats a weak one, and lets a strong one stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import yardsticks
from yardsticks import Arena, Cheap, EpisodeResults, Factors, Law, Laws, Line

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core import registry
from rlbench_suite.core.registry import card

MAZE = card("PointMaze-v0").build(difficulty="umaze-dense")


@pytest.fixture(scope="module")
def laws() -> Arena:
    return Arena(MAZE, Laws(MAZE))


class Timid(NamedTuple):
    """A reference player with a gain that is far too low."""

    gain: Any = 0.05

    @classmethod
    def for_task(cls, task: Any) -> Timid:
        return cls()

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: Any, key: Any) -> Any:
        observation = view.observation
        return jnp.clip(
            self.gain * (observation[4:] - observation[:2]) - 0.1 * observation[2:4], -1, 1
        ), memory


def test_a_weak_reference_is_beaten_by_cheap_policies_and_by_itself_retuned(
    laws: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yardsticks, "reference_player", Timid.for_task)
    rng = np.random.default_rng(0)
    retuned = Arena(MAZE, Factors(MAZE))
    weak = retuned.all_alike(np.ones(1, np.float32), 0, 512, "test").total
    better = retuned.best(1.0, np.inf, rng)
    assert retuned.all_alike(better.numbers, 0, 512, "test").total.mean() > weak.mean() + 10
    cheap = laws.best(1.0, np.inf, rng)
    assert laws.all_alike(cheap.numbers, 0, 512, "test").total.mean() > weak.mean() + 10


def test_a_law_plays_as_its_policy_does_in_the_ordinary_rollout(laws: Arena) -> None:
    """Push towards the goal and against the speed: a difference of two parts, written by hand."""
    weights = np.zeros((2, 7), np.float32)
    for axis in range(2):
        weights[axis, [axis, 2 + axis, 4 + axis]] = -3, -0.5, 3
    law = Law(weights, np.zeros(2, np.float32), np.float32(np.inf), np.bool_(False))
    audited = laws.all_alike(law, 0, 512, "test")
    record = play(MAZE, Cheap(law, MAZE.action_space, 1), range(64))
    np.testing.assert_allclose(audited.total[:64], record.total, rtol=0.01, atol=0.5)
    np.testing.assert_array_equal(audited.success[:64], record.info["success"])


@pytest.mark.parametrize(
    ("lead", "verdict"), [(0.0, "stands"), (0.02, "stands"), (0.031, "beaten?"), (0.2, "beaten")]
)
def test_verdicts(lead: float, verdict: str) -> None:
    rng = np.random.default_rng(1)
    base = 1 + rng.normal(0, 0.3, 400)
    nothing = np.zeros(400)
    better = base + lead + rng.normal(0, 0.05, 400)
    better += base.mean() + lead - better.mean()
    line = Line(
        "x",
        0.0,
        EpisodeResults(base, nothing, nothing),
        EpisodeResults(better, nothing, nothing),
        "constant",
    )
    assert line.verdict == verdict


def test_the_claim_of_the_audit_counts_its_rows() -> None:
    """README and the docs say how many ids were audited, and for how long."""
    root = Path(__file__).parents[3]
    results = (
        (root / "docs" / "audits" / "yardsticks.md")
        .read_text()
        .partition("## One step of look-ahead")[0]
    )
    audited = set(re.findall(r"^\| (\w+-v\d+) \|", results, re.MULTILINE))
    claim = f"{len(audited)} of the {len(registry.cards())} ids, 2 to 60 seconds each"
    for page in ("README.md", "docs/index.md"):
        assert claim in " ".join((root / page).read_text().split()), page
