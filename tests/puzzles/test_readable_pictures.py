"""Tests of pictures from which a player who sees nothing else can answer.

Every part of the instance is in them and has room.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

from rlbench_suite.core.registry import card, cards
from rlbench_suite.envs.puzzles.formulas.clause_picture import (
    MARGIN,
    MAX_LETTER_SIZE,
    PAPER_COLOUR,
    layout,
    picture_of,
)
from rlbench_suite.envs.puzzles.shared.caption import add_caption
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of

FORMULAS = [
    "SAT-v0",
    "SAT50-v0",
    "UniqueSAT-v0",
    "MaxSAT-v0",
    "Saturn-v0",
    "RefuteSAT-v0",
    "ThresholdSAT-v0",
]


def blank(pixels: np.ndarray) -> bool:
    """Tell whether nothing is drawn."""
    return bool((pixels == [int(PAPER_COLOUR[k : k + 2], 16) for k in (1, 3, 5)]).all())


@pytest.mark.parametrize(
    "size", [(20, 86, (360, 760, 3)), (60, 258, (520, 1100, 3)), (75, 320, (520, 1300, 3))]
)
def test_every_literal_of_a_formula_shows(size: tuple[int, int, tuple[int, int, int]]) -> None:
    variables, count, shape = size
    rng = np.random.default_rng(0)
    clauses = [
        tuple(
            int(v) * int(rng.choice([-1, 1])) for v in rng.choice(variables, 3, replace=False) + 1
        )
        for _ in range(count)
    ]
    values = {v: bool(rng.integers(2)) for v in range(1, variables + 1)}
    picture = picture_of(clauses, values, shape)
    edges = picture[:8], picture[-8:], picture[:, :8], picture[:, -8:]
    assert all(map(blank, edges)), f"letters leave the margin of {MARGIN} pixels"
    for k in rng.choice(count, 12, replace=False):
        absent = next(variable for variable in values if variable not in map(abs, clauses[k]))
        for place, literal in enumerate(clauses[k]):
            for replacement in (-literal, absent):
                clause = (*clauses[k][:place], replacement, *clauses[k][place + 1 :])
                changed = [*clauses[:k], clause, *clauses[k + 1 :]]
                assert (picture_of(changed, values, shape) != picture).any(), (clauses[k], clause)
    for variable, value in values.items():
        assert (picture_of(clauses, values | {variable: not value}, shape) != picture).any()
    assert not blank(picture_of(clauses, dict.fromkeys(values), shape))


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_of_every_difficulty_have_room_for_letters_that_can_be_read(name: str) -> None:
    for tier in card(name).difficulties:
        task, instance = card(name).build(difficulty=tier), puzzle_of(name, tier).generate(0)
        clauses = max(np.shape(field)[0] for field in instance if np.ndim(field) == 2)
        size, _ = layout(clauses, 3, int(task.difficulty or 0), task.picture_shape[:2])
        assert 9 <= size <= MAX_LETTER_SIZE, (name, tier, size)


def test_long_captions_have_room() -> None:
    picture = np.zeros((200, 200, 3), np.uint8)
    for words in (5, 60, 200):
        captioned = add_caption(picture, " ".join(["houses"] * words), (220, 620, 3))
        assert captioned.shape == (220, 620, 3)
        assert (captioned[10:210, :200] == 0).all()
        assert blank(captioned[-4:]), words
        assert blank(captioned[:, -2:]), words
        assert not blank(captioned[:, 205:]), words


@pytest.mark.parametrize("name", ["Zebra", "Geometry", "CheckmateInOne"])
def test_other_instances_have_other_pictures(name: str) -> None:
    [task_card] = [
        task_card for task_card in cards().values() if task_card.name.rpartition("-v")[0] == name
    ]
    for tier in task_card.difficulties:
        env = task_card.build(difficulty=tier)
        puzzle = env.puzzle  # type: ignore[attr-defined]
        pictures = set()
        for seed in range(8):
            params = Params(puzzle.generate(seed), np.zeros(1, np.int16))
            state = jax.device_get(env.initial(jax.random.key(0), params))  # type: ignore[attr-defined]
            picture = env.draw(state, params)
            assert picture.shape == env.picture_shape
            pictures.add(picture.tobytes())
        assert len(pictures) == 8, tier
