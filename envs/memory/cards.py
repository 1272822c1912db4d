"""Cards of the family ``memory``."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/TMaze-v0",
        family="memory",
        summary="Walk an endless chain of T-mazes; at each junction turn as a sign said at the corridor's start.",
        source="Shchendrigin et al. 2026, arXiv:2601.15086 (endless); Bakker 2001, NIPS 14 (T-maze)",
        entry_point="rlbench_suite.envs.memory.t_maze:TMaze",
        reference="rlbench_suite.envs.memory.t_maze:RememberTheSign",
        horizon=200,
        # Positive: rewriting; negative: retention. The size is the longest corridor; a half more: all are that long.
        difficulties={
            "rewriting-medium": 10,
            "rewriting-short": 3,
            "rewriting-long": 30,
            "rewriting-fixed": 10.5,
            "retention-medium": -10,
            "retention-short": -3,
            "retention-long": -30,
            "retention-fixed": -10.5,
        },
        contexts=False,
        partially_observed=True,
        optimum=30.443786982248522,
        tags=("discrete", "memory", "partially-observed", "text"),
    ),
)
