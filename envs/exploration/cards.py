"""Cards of the family ``exploration``."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/MarsCoverage-v1",
        family="exploration",
        summary="Drive a rover over unknown terrain until its lidar has seen 95 % of the ground.",
        source="Koutras, Kapoutsis, Amanatiadis & Kosmatopoulos 2021 (MarsExplorer), arXiv:2107.09996",
        entry_point="rlbench_suite.envs.exploration.mars_coverage:MarsCoverage",
        reference="rlbench_suite.envs.exploration.mars_coverage:FrontierUtility",
        horizon=400,
        difficulties={"medium": 6, "easy": 5, "hard": 7},
        partially_observed=True,
        tags=("discrete", "masked", "navigation", "partially-observed"),
    ),
)
