"""Twenty Questions for players that read no answer.

Chance earns no more than it should, and the mask tells nothing more.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.guessing.twenty_questions import TURNS

CARD = card("TwentyQuestions-v0")


@pytest.mark.parametrize("tier", CARD.difficulties)
def test_random_play_earns_what_a_random_order_of_all_actions_does(tier: str) -> None:
    """The right guess is in any place of a random order of questions and guesses.

    So the mask tells nothing more.
    """
    task = CARD.build(difficulty=tier)
    actions = task.properties + len(task.by_split[Split.TEST])
    random = CARD.scores(tier)["random"]
    exact = sum(1 - (turn - 1) / TURNS for turn in range(1, TURNS + 1)) / actions
    assert random.mean == pytest.approx(exact, abs=4 * random.standard_error)
    error = (random.success * (1 - random.success) / random.episodes) ** 0.5
    assert random.success == pytest.approx(task.few / actions, abs=4 * error)


def test_a_fixed_list_of_questions_and_legal_guesses_earns_no_more_than_guesses_alone() -> None:
    """The mask must not leave only what fits the answers.

    It once did, and half a dozen questions sufficed without reading the answers.
    """
    task = CARD.build()

    class Blind(eqx.Module):
        questions: int = eqx.field(static=True)

        def initial(self, params: Any) -> jax.Array:
            return jnp.int32(0)

        def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            guess = task.properties + jnp.argmax(view.action_mask[task.properties :])
            return jnp.where(memory < self.questions, memory, guess).astype(jnp.int32), memory + 1

    score = CARD.scale().score
    for questions in (0, 4, 6):
        record = play(task, Blind(questions), range(2_000), split="test")
        assert score(record.total.mean()) < 0.25, questions
