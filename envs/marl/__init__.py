"""Multi-agent tasks: many agents, one world."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/Vicsek-v0",
        family="marl",
        summary="Self-propelled particles learn to align their headings from what they see nearby, under noise.",
        source="Vicsek et al. 1995, doi:10.1103/PhysRevLett.75.1226",
        entry_point="rlbench_suite.envs.marl.vicsek:Vicsek",
        reference="rlbench_suite.envs.marl.vicsek:NeighbourAveraging",
        horizon=100,
        difficulties={"medium": 1.0, "easy": 0.3, "hard": 2.0},
        agents=16,
        tags=("continuous", "multi-agent", "partially-observed"),
    ),
)
