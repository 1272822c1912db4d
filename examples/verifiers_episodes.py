r"""A taskset of verifiers: episodes that are played turn by turn.

cd examples; PYTHONPATH=. vf-eval verifiers_episodes --env.taskset.ids '["Wordle-v0"]'
--env.taskset.size 20 \
    --model MODEL --client.base-url http://localhost:8000/v1 --client.api-key-var KEY --no-push
"""

from rlbench_suite.language.verifiers import Chat, Episodes, Play

__all__ = ["Chat", "Episodes", "Play"]
