"""A curriculum climbs by success, and by nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from rlbench_suite.adapters.curriculum import Curriculum

ID = "rlsuite/Sudoku4-v0"
pytestmark = pytest.mark.of_variants


def play(env: Curriculum, *, solve: bool) -> None:
    """Play an episode by the exact solver's moves or by a move that is soon refused.

    The move that is played again and again is refused once it is made.
    """
    env.reset()
    core: Any = env._envs[env.number].unwrapped
    actions = [int(a) for a in core.params.plan if a >= 0]
    for action in actions if solve else [actions[0]] * 100:
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    assert info["success"] == solve
    assert info["tier"] == env.tier


def test_it_climbs_when_enough_is_solved_and_never_falls() -> None:
    env = Curriculum(ID, threshold=0.75, window=4, split="test")
    assert env.reset(seed=0)[1]["tier"] == "easy"
    for solve in (True, False, True, False, True, True):  # three of the last four
        assert env.tier == "easy"
        play(env, solve=solve)
    play(env, solve=False)
    assert env.tier == "medium"
    for _ in range(6):
        play(env, solve=False)
    assert env.tier == "medium"
    for _ in range(9):
        play(env, solve=True)
    assert env.tier == "hard"


def test_spaces_must_agree() -> None:
    with pytest.raises(ValueError, match="has other spaces than easy; use view='text'"):
        Curriculum("SAT-v0")
    env = Curriculum("SAT-v0", view="text", window=1)
    assert "DIMACS" in env.reset(seed=1)[0] or "p cnf 10" in env.reset(seed=1)[0]
    env.recent.append(True)
    assert "p cnf 20" in env.reset(seed=1)[0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tiers": ["easy", "heard"]}, "Did you mean 'hard'"),
        ({"tiers": []}, "needs a tier"),
        ({"threshold": 0}, "threshold in"),
        ({"window": 0}, "at least 1 episode"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Curriculum(ID, **wrong)
