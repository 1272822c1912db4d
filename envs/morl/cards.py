"""Cards of the family ``morl``."""

from typing import Any

from rlbench_suite.core.task_card import TaskCard


def _car_objectives(*names: str) -> dict[str, Any]:
    """Return the fields of these objectives of ``MOMountainCar-v0``."""
    return {
        "objectives": names,
        "weights": (1.0,) * len(names),
        "hypervolume_reference": tuple(0.0 if name == "speed" else -200.0 for name in names),
    }


def _reservoir_objectives(count: int) -> dict[str, Any]:
    """Return the fields of the first objectives of ``WaterReservoir-v0``."""
    return {
        "objectives": ("flood", "irrigation", "energy", "downstream")[:count],
        "weights": (1.0,) * count,
        "hypervolume_reference": (-12000.0, -5000.0, -4200.0, -5400.0)[:count],
    }


CARDS = (
    TaskCard(
        id="rlsuite/TreasureMaps-v0",
        family="morl",
        summary=(
            "Choose among treasures in eight dives, each with a map and weights of treasure and "
            "time of its own."
        ),
        source=(
            "after Vamplew et al. 2011, doi:10.1007/s10994-010-5232-5; weights as input: Abels et "
            "al. 2019, arXiv:1809.07803"
        ),
        entry_point="rlbench_suite.envs.morl.treasure_maps:TreasureMaps",
        reference="rlbench_suite.envs.morl.treasure_maps:BestTreasure",
        horizon=192,
        difficulties={"medium": 6, "easy": 4, "hard": 10},
        objectives=("treasure", "time"),
        weights=(1.0, 1.0),
        hypervolume_reference=(0.0, -175.0),
        tags=("discrete", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/DeepSeaTreasure-v0",
        family="morl",
        summary="Steer a submarine to treasures that are worth more the farther away they lie.",
        source=(
            "Vamplew et al. 2011, doi:10.1007/s10994-010-5232-5; convex front: Yang et al. 2019, "
            "arXiv:1908.08342; mirrored map: MO-Gymnasium 1.3.2, after Felten et al. 2022"
        ),
        entry_point="rlbench_suite.envs.morl.deep_sea_treasure:DeepSeaTreasure",
        reference="rlbench_suite.envs.morl.deep_sea_treasure:ShortestPath",
        horizon=100,
        choices={"map": ("convex", "concave", "mirrored")},
        contexts=False,
        variant=True,
        objectives=("treasure", "time"),
        weights=(0.5, 0.5),
        hypervolume_reference=(0.0, -50.0),
        optimum=3.55,
        open_loop=(
            "it is the published problem, with one map and no chance: a plan made beforehand is as "
            "good as a policy. TreasureMaps-v0 asks for a policy that reads the map and the weights"
        ),
        tags=("discrete", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/ResourceGathering-v0",
        family="morl",
        summary="Bring gold and a gem home before dusk, past enemies that may kill.",
        source=(
            "Barrett & Narayanan 2008, doi:10.1145/1390156.1390162; rules: MO-Gymnasium 1.3.2, "
            "resource-gathering-v0; sampled maps, weights and dusk are ours"
        ),
        entry_point="rlbench_suite.envs.morl.resource_gathering:make",
        reference="rlbench_suite.envs.morl.gathering_planner:Planner",
        horizon=100,
        choices={"map": ("sampled", "published")},
        objectives=("death", "gold", "gem"),
        weights=(1.0, 1.0, 1.0),
        hypervolume_reference=(-1.0, -1.0, -2.0),
        tags=("discrete", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/FruitTree-v0",
        family="morl",
        summary="Go down a binary tree to the fruit that is best for the weights of six nutrients.",
        source=(
            "Yang, Sun & Narasimhan 2019, arXiv:1908.08342; rules and values: MO-Gymnasium 1.3.2, "
            "fruit-tree-v0"
        ),
        entry_point="rlbench_suite.envs.morl.fruit_tree:make",
        reference="rlbench_suite.envs.morl.fruit_tree:BestFruit",
        horizon=8,
        choices={"preference": ("sampled", "none")},
        difficulties={"medium": 6, "easy": 5, "hard": 7},
        objectives=("protein", "carbs", "fats", "vitamins", "minerals", "water"),
        weights=(1.0,) * 6,
        hypervolume_reference=(0.0,) * 6,
        chance=(
            "doing nothing goes left, to a fruit with much protein, which is the best of the "
            "deepest tree for a tenth of all weights"
        ),
        tags=("discrete", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/FishWood-v0",
        family="morl",
        summary=(
            "Share the time between fishing and chopping wood, for meals that need both; the "
            "expected utility of the return counts."
        ),
        source=(
            "Roijers, Steckelmacher & Nowe 2018, Multi-objective reinforcement learning for the "
            "utility of the return (ALA workshop); MO-Gymnasium 1.3.2, fishwood-v0"
        ),
        entry_point="rlbench_suite.envs.morl.fish_wood:FishWood",
        reference="rlbench_suite.envs.morl.fish_wood:BalancedBasket",
        horizon=200,
        objectives=("fish", "wood", "meals"),
        weights=(0.0, 0.0, 1.0),
        hypervolume_reference=(0.0, 0.0, 0.0),
        optimum=21.25250573215648,
        tags=("discrete", "multi-objective", "stochastic"),
    ),
    TaskCard(
        id="rlsuite/BreakableBottles-v0",
        family="morl",
        summary="Bring two bottles home fast, without breaking one on the way, a side effect.",
        source=(
            "Vamplew et al. 2021, doi:10.1016/j.engappai.2021.104186; MO-Gymnasium 1.3.2, "
            "breakable-bottles-v0"
        ),
        entry_point="rlbench_suite.envs.morl.breakable_bottles:BreakableBottles",
        reference="rlbench_suite.envs.morl.breakable_bottles:CarefulCarrier",
        horizon=100,
        choices={"bottles": ("breakable", "unbreakable")},
        contexts=False,
        variant=True,
        objectives=("time", "bottles", "litter"),
        weights=(1.0, 1.0, 25.0),
        hypervolume_reference=(-100.0, 0.0, -1.0),
        optimum=32.0,
        open_loop=(
            "it is the published problem, with one way and no context: the safest play is a plan "
            "made beforehand. FishWood-v0 and TreasureMaps-v0 ask for a policy that observes"
        ),
        tags=("discrete", "multi-objective", "stochastic", "safety"),
    ),
    TaskCard(
        id="rlsuite/FourRoom-v0",
        family="morl",
        summary=(
            "Collect the shapes that count in four rooms and avoid the others, for weights that "
            "each episode samples."
        ),
        source="Barreto et al. 2017, arXiv:1606.05312; MO-Gymnasium 1.3.2, four-room-v0",
        entry_point="rlbench_suite.envs.morl.four_room:FourRoom",
        reference="rlbench_suite.envs.morl.four_room:ShapeCollector",
        horizon=200,
        objectives=("squares", "triangles", "circles"),
        weights=(1.0, 1.0, 1.0),
        hypervolume_reference=(-5.0, -5.0, -5.0),
        chance=(
            "in an eighth of the episodes all three weights are negative, and it is best to stay "
            "at the start and collect nothing"
        ),
        tags=("discrete", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/MOMountainCar-v0",
        family="morl",
        summary="Swing a weak car out of a valley soon, with few pushes back and few forth.",
        source=(
            "Moore 1990, doi:10.48456/tr-209; rules: MO-Gymnasium 1.3.2, mo-mountaincar-v0; "
            "sampled gravity and weights are ours"
        ),
        entry_point="rlbench_suite.envs.morl.mountain_car:make",
        reference="rlbench_suite.envs.morl.mountain_car_planner:RolloutPlanner",
        horizon=200,
        choices={"rewards": ("weighted", "pushes", "moves", "speed", "moves-speed")},
        fields_by_choice={
            "rewards=weighted": _car_objectives("time", "reverse", "forward"),
            "rewards=pushes": _car_objectives("time", "reverse", "forward"),
            "rewards=moves": _car_objectives("time", "move"),
            "rewards=speed": _car_objectives("time", "speed"),
            "rewards=moves-speed": _car_objectives("time", "move", "speed"),
        },
        **_car_objectives("time", "reverse", "forward"),
        tags=("discrete", "multi-objective"),
    ),
    TaskCard(
        id="rlsuite/Minecart-v0",
        family="morl",
        summary="Fetch the ore that is wanted from one of five mines, with little fuel.",
        source=(
            "Abels et al. 2019, arXiv:1809.07803; rules: MO-Gymnasium 1.3.2, minecart-v0; sampled "
            "mines and weights are ours"
        ),
        entry_point="rlbench_suite.envs.morl.minecart:make",
        reference="rlbench_suite.envs.morl.minecart_planner:RoutePlanner",
        horizon=60,
        choices={"mines": ("sampled", "published", "deterministic")},
        fields_by_choice={
            "mines=sampled": {"horizon": 60, "hypervolume_reference": (-1.5, -1.5, -3.0)},
            "mines=published": {"horizon": 1000, "hypervolume_reference": (-1.0, -1.0, -220.0)},
            "mines=deterministic": {"horizon": 1000, "hypervolume_reference": (-1.0, -1.0, -220.0)},
        },
        objectives=("first_ore", "second_ore", "fuel"),
        weights=(1.0, 1.0, 1.0),
        hypervolume_reference=(-1.5, -1.5, -3.0),
        tags=("discrete", "multi-objective", "stochastic"),
    ),
    TaskCard(
        id="rlsuite/WaterReservoir-v0",
        family="morl",
        summary=(
            "Release water from a reservoir for fields and turbines, without a flood above or "
            "below the dam."
        ),
        source=(
            "Castelletti, Pianosi & Restelli 2012, doi:10.1109/IJCNN.2012.6252759; rules: "
            "MO-Gymnasium 1.3.2, water-reservoir-v0; seasons and sampled weights are ours"
        ),
        entry_point="rlbench_suite.envs.morl.water_reservoir:make",
        reference="rlbench_suite.envs.morl.reservoir_programme:ReservoirProgramme",
        constant="rlbench_suite.envs.morl.reservoir_programme:SteadySluice",
        yardsticks={
            "heuristic": "rlbench_suite.envs.morl.reservoir_programme:SteadyRelease",
            "demand": "rlbench_suite.envs.morl.reservoir_programme:DemandRelease",
        },
        horizon=96,
        choices={"aims": ("4", "3", "2"), "inflow": ("seasonal", "published")},
        fields_by_choice={
            "aims=4": _reservoir_objectives(4),
            "aims=3": _reservoir_objectives(3),
            "aims=2": _reservoir_objectives(2),
            "inflow=seasonal": {"horizon": 96},
            "inflow=published": {"horizon": 100},
        },
        **_reservoir_objectives(4),
        tags=("continuous", "multi-objective", "stochastic", "differentiable"),
    ),
)
