"""Cards of the family ``exploration``."""

from rlbench_suite.core.task_card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/MarsCoverage-v0",
        family="exploration",
        summary="Drive a rover over unknown terrain until its lidar has seen 95 % of the ground.",
        source=(
            "Koutras, Kapoutsis, Amanatiadis & Kosmatopoulos 2021 (MarsExplorer), arXiv:2107.09996"
        ),
        entry_point="rlbench_suite.envs.exploration.mars_coverage:MarsCoverage",
        reference="rlbench_suite.envs.exploration.mars_coverage:FrontierUtility",
        horizon=400,
        difficulties={"medium": 6, "easy": 5, "hard": 7},
        partially_observed=True,
        open_loop=(
            "the action mask shows rock beside the rover, and a long drive that turns at rock "
            "covers half of the caves"
        ),
        tags=("discrete", "masked", "navigation", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/MarsExplorer-v0",
        family="exploration",
        summary=(
            "Drive a rover past boulders until its lidar has seen 95 % of the map: MarsExplorer's "
            "default."
        ),
        source=(
            "Koutras, Kapoutsis, Amanatiadis & Kosmatopoulos 2021 (MarsExplorer), arXiv:2107.09996"
        ),
        entry_point="rlbench_suite.envs.exploration.mars_explorer:MarsExplorer",
        reference="rlbench_suite.envs.exploration.mars_explorer:MapFrontier",
        horizon=400,
        difficulties={"medium": 12, "easy": 6, "hard": 24},
        choices={"bugs": ("False", "True")},
        partially_observed=True,
        variant=True,
        tags=("discrete", "navigation", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/MarsFleet-v0",
        family="exploration",
        summary=(
            "Explore hills with three rovers that share a map, before their batteries are empty."
        ),
        source=(
            "Burgard, Moors, Stachniss & Schneider 2005, doi:10.1109/TRO.2004.839232; Koutras et "
            "al. 2021 (MarsExplorer), arXiv:2107.09996"
        ),
        entry_point="rlbench_suite.envs.exploration.mars_fleet:MarsFleet",
        reference="rlbench_suite.envs.exploration.mars_fleet:CoordinatedFrontiers",
        horizon=200,
        difficulties={"medium": 12, "easy": 8, "hard": 16},
        agents=3,
        partially_observed=True,
        variant=True,
        tags=("discrete", "masked", "multi-agent", "navigation", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/InformativePath-v0",
        family="exploration",
        summary=(
            "Walk a grid on a budget and measure a random field where that tells the most about it."
        ),
        source=(
            "Krause, Singh & Guestrin 2008, JMLR 9; Nemhauser et al. 1978, doi:10.1007/BF01588971; "
            "Cao et al. 2022 (CAtNIPP), arXiv:2205.13089"
        ),
        entry_point="rlbench_suite.envs.exploration.informative_path:InformativePath",
        reference="rlbench_suite.envs.exploration.informative_path:BeamPlanner",
        horizon=24,
        replay_tolerance=0.001,
        variant=True,
        tags=("discrete", "masked", "navigation"),
    ),
    TaskCard(
        id="rlsuite/TemporalLogic-v0",
        family="exploration",
        summary=(
            "Drive a car so that a specification in signal temporal logic holds: reach, avoid, "
            "order, stay."
        ),
        source="Donze & Maler 2010, doi:10.1007/978-3-642-15297-9_9; Maler & Nickovic 2004, "
        "doi:10.1007/978-3-540-30206-3_12; Kurtz & Lin 2022, doi:10.1109/LCSYS.2022.3172857",
        entry_point="rlbench_suite.envs.exploration.temporal_logic:TemporalLogic",
        reference="rlbench_suite.envs.exploration.specification_driver:SpecificationDriver",
        horizon=150,
        replay_tolerance=1.0,
        variant=True,
        tags=("continuous", "navigation", "temporal-logic"),
    ),
)
