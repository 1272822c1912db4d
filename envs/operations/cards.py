"""Cards of the family ``operations``."""

from rlbench_suite.core.task_card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/Inventory-v0",
        family="operations",
        summary=(
            "Order stock for three shops and the warehouse that supplies them, before demand is "
            "known."
        ),
        source="Zipkin 2008, doi:10.1287/opre.1070.0471; Alvo et al. 2023, arXiv:2306.11246",
        entry_point="rlbench_suite.envs.operations.inventory:Inventory",
        reference="rlbench_suite.envs.operations.base_stock:BaseStock",
        horizon=100,
        replay_tolerance=0.02,
        difficulties={"network": 0, "network-backlog": 1, "shop": 2, "shop-backlog": 3},
        open_loop=(
            "a constant order near the mean demand is known to be good where sales are lost and "
            "lead times are long (Goldberg et al. 2016, doi:10.1287/moor.2015.0760), and random "
            "orders, the zero, are very bad"
        ),
        tags=("discrete", "stochastic", "economic"),
    ),
)
