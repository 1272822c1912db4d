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
        constant="rlbench_suite.envs.operations.standing_orders:StandingOrders",
        horizon=100,
        replay_tolerance=0.02,
        difficulties={"network": 0, "network-backlog": 1, "shop": 2, "shop-backlog": 3},
        chance="the best constant order suits shops whose mean demand is a little above it",
        tags=("discrete", "stochastic", "economic"),
    ),
    TaskCard(
        id="rlsuite/MarketMaking-v0",
        family="operations",
        summary="Quote bid and ask prices, and earn the spread without a large inventory.",
        source=(
            "Avellaneda & Stoikov 2008, doi:10.1080/14697680701381228; Gueant, Lehalle & "
            "Fernandez-Tapia 2013, doi:10.1007/s11579-012-0087-0"
        ),
        entry_point="rlbench_suite.envs.operations.market_making:MarketMaking",
        reference="rlbench_suite.envs.operations.market_making:OptimalQuotes",
        yardsticks={
            "heuristic": "rlbench_suite.envs.operations.market_making:ReservationQuotes",
        },
        horizon=200,
        optimum=62.4395,
        tags=("continuous", "stochastic", "economic"),
    ),
    TaskCard(
        id="rlsuite/Execution-v0",
        family="operations",
        summary="Sell an order over a day, against impact, the risk of waiting and a forecast.",
        source="Almgren & Chriss 2000, doi:10.21314/JOR.2001.041",
        entry_point="rlbench_suite.envs.operations.execution:Execution",
        reference="rlbench_suite.envs.operations.execution:BestSchedule",
        horizon=32,
        optimum=0.124349,
        tags=("continuous", "stochastic", "economic"),
    ),
    TaskCard(
        id="rlsuite/JobShop-v0",
        family="operations",
        summary="Dispatch the operations of jobs to machines, so that the last one ends early.",
        source=(
            "Taillard 1993, doi:10.1016/0377-2217(93)90182-M; Giffler & Thompson 1960, "
            "doi:10.1287/opre.8.4.487"
        ),
        entry_point="rlbench_suite.envs.operations.job_shop:JobShop",
        reference="rlbench_suite.envs.operations.job_shop:Pilot",
        yardsticks={"heuristic": "rlbench_suite.envs.operations.job_shop:MostWork"},
        horizon=100,
        difficulties={"medium": 6, "easy": 4, "hard": 10},
        chance="small shops have few orders to choose from, and active schedules are not bad",
        tags=("discrete", "masked", "planning"),
    ),
    TaskCard(
        id="rlsuite/InventoryNetwork-v0",
        family="operations",
        summary="Order real-valued amounts through a network of stores, warehouses and stages.",
        source="Alvo et al. 2023, arXiv:2306.11246; Zipkin 2008, doi:10.1287/opre.1070.0471",
        entry_point="rlbench_suite.envs.operations.inventory_network:InventoryNetwork",
        reference="rlbench_suite.envs.operations.network_base_stock:NetworkBaseStock",
        constant="rlbench_suite.envs.operations.standing_orders:StandingOrders",
        horizon=100,
        choices={"network": ("lost-sales", "serial", "warehouse", "transshipment")},
        difficulties={"medium": 2, "easy": 1, "hard": 3, "longest": 4},
        tags=("continuous", "stochastic", "economic", "differentiable"),
    ),
    TaskCard(
        id="rlsuite/Queueing-v0",
        family="operations",
        summary="Tell servers which queue to serve, so that waiting costs little.",
        source=(
            "Harrison & Wein 1990, doi:10.1007/BF01225336; Dai & Gluzman 2022, "
            "doi:10.1287/stsy.2021.0081"
        ),
        entry_point="rlbench_suite.envs.operations.queueing:Queueing",
        reference="rlbench_suite.envs.operations.queue_programme:QueueProgramme",
        yardsticks={"heuristic": "rlbench_suite.envs.operations.queue_programme:MaxPressure"},
        horizon=256,
        difficulties={
            "criss-cross": 0,
            "single-server": 1,
            "shared-server": 2,
            "two-stations": 3,
        },
        chance="with a low load and few costly jobs at the start, any work clears the queues",
        hard_for_reference="jobs arrive by chance, and with a high load the start is no backlog",
        open_loop=(
            "servers that take their classes in turn waste only visits to empty queues, and a low "
            "load leaves time for that"
        ),
        tags=("discrete", "stochastic", "economic"),
    ),
    TaskCard(
        id="rlsuite/EnergyStorage-v0",
        family="operations",
        summary="Charge a battery while electricity is cheap, and discharge it while it is dear.",
        source="Sioshansi et al. 2009, doi:10.1016/j.eneco.2008.10.005",
        entry_point="rlbench_suite.envs.operations.energy_storage:EnergyStorage",
        reference="rlbench_suite.envs.operations.energy_storage:BestTrades",
        yardsticks={"heuristic": "rlbench_suite.envs.operations.energy_storage:Thresholds"},
        horizon=168,
        difficulties={"medium": 1, "easy": 0, "hard": 2},
        tags=("continuous", "stochastic", "economic"),
    ),
    TaskCard(
        id="rlsuite/VehicleRouting-v0",
        family="operations",
        summary="Visit all customers by short routes from a depot and back.",
        source="Kool et al. 2019, arXiv:1803.08475; Solomon 1987, doi:10.1287/opre.35.2.254",
        entry_point="rlbench_suite.envs.operations.vehicle_routing:VehicleRouting",
        reference="rlbench_suite.envs.operations.route_players:LocalSearch",
        yardsticks={
            "heuristic": "rlbench_suite.envs.operations.route_players:NearestCustomer",
        },
        horizon=40,
        difficulties={"cvrp": 1, "tsp": 0, "time-windows": 2},
        tags=("discrete", "masked", "planning"),
    ),
)
