"""Cards of the family ``morl``."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/DeepSeaTreasure-v0",
        family="morl",
        summary="Steer a submarine to treasures that are worth more the farther away they lie.",
        source="Vamplew et al. 2011, doi:10.1007/s10994-010-5232-5; convex front: Yang et al. 2019, arXiv:1908.08342",
        entry_point="rlbench_suite.envs.morl.deep_sea_treasure:DeepSeaTreasure",
        reference="rlbench_suite.envs.morl.deep_sea_treasure:ShortestPath",
        horizon=100,
        contexts=False,
        objectives=("treasure", "time"),
        weights=(0.5, 0.5),
        hypervolume_reference=(0.0, -50.0),
        optimum=3.55,
        tags=("discrete", "multi-objective"),
    ),
)
