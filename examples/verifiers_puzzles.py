r"""A taskset of verifiers: puzzles, with the environment and the harness that ask them.

cd examples; PYTHONPATH=. vf-eval verifiers_puzzles --env.taskset.ids '["Game24-v0", "Sudoku4-v0"]'
\
    --env.taskset.size 20 --model MODEL --client.base-url http://localhost:8000/v1
    --client.api-key-var KEY --no-push
"""

from rlbench_suite.language.verifiers import Chat, Play, Puzzles

__all__ = ["Chat", "Play", "Puzzles"]
