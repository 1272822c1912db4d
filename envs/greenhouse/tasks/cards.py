"""Cards of the family ``greenhouse``."""

from dataclasses import replace

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard

_TOMATO = TaskCard(
    id="rlsuite/Tomato-v0",
    family="greenhouse",
    summary=(
        "Earn the most from 160 days of tomatoes under glass: heat, open the vents, dose carbon "
        "dioxide."
    ),
    source=(
        "Vanthoor 2011, thesis Wageningen; Vanthoor et al. 2011, "
        "doi:10.1016/j.biosystemseng.2011.08.005"
    ),
    entry_point="rlbench_suite.envs.greenhouse.tasks.tomato:Tomato",
    reference="rlbench_suite.envs.greenhouse.players.tomato_grower:TomatoGrower",
    horizon=7680,
    variant=True,
    replay_tolerance=0.001,
    difficulties={"medium": 0.1, "easy": 0.0, "hard": 0.25},
    partially_observed=True,
    constraint=Constraint(
        counts=(
            "violation of the climate's bounds in units of 10 K, 1000 ppm or 10 % of humidity, "
            "over all steps"
        ),
        limit=1536.0,
        reason=(
            "0.2 a step over the season; humid seasons differ, and one that counts as success may "
            "cost 0.25"
        ),
    ),
    choices={"climate": ("maritime", "mediterranean", "continental", "boreal")},
    tags=("continuous", "constrained", "economic"),
)

_OBJECTIVES = replace(
    _TOMATO,
    id="rlsuite/TomatoObjectives-v0",
    summary=(
        "Grow 160 days of tomatoes for profit, with little heat and little carbon dioxide: three "
        "objectives."
    ),
    entry_point="rlbench_suite.envs.greenhouse.tasks.tomato_objectives:TomatoObjectives",
    objectives=("profit", "heat", "co2"),
    weights=(1.0, 0.0, 0.0),
    hypervolume_reference=(-65.0, -580.0, -70.0),
    tags=(*_TOMATO.tags, "multi-objective"),
)
"""Card with three objectives, whose reference point is below the worst season.

All heat and all carbon dioxide of a season are 576 kWh and 69 kg a m2; at the highest prices they
cost 63 EUR.
"""

_FAULTY = replace(
    _TOMATO,
    id="rlsuite/TomatoFaulty-v0",
    summary=(
        "Earn the most from 160 days of tomatoes under glass while sensors stop, stick or drift."
    ),
    entry_point="rlbench_suite.envs.greenhouse.tasks.tomato_faulty:TomatoFaulty",
    reference="rlbench_suite.envs.greenhouse.players.doubtful_grower:DoubtfulGrower",
    tags=(*_TOMATO.tags, "failure"),
)

_DISEASE = replace(
    _TOMATO,
    id="rlsuite/TomatoDisease-v0",
    summary="Earn the most from 160 days of tomatoes under glass, with an outbreak of grey mould.",
    entry_point="rlbench_suite.envs.greenhouse.tasks.tomato_disease:TomatoDisease",
    reference="rlbench_suite.envs.greenhouse.players.drying_grower:DryingGrower",
    tags=(*_TOMATO.tags, "failure"),
)

_HIGH_TECH = replace(
    _TOMATO,
    id="rlsuite/TomatoHighTech-v0",
    summary=(
        "Earn the most from 160 days of tomatoes in a high-tech glasshouse: screen, lamps, heat "
        "store, irrigation."
    ),
    source=(
        "Vanthoor 2011, thesis Wageningen; Katzin et al. 2020, "
        "doi:10.1016/j.biosystemseng.2020.03.010"
    ),
    entry_point="rlbench_suite.envs.greenhouse.tasks.tomato_high_tech:TomatoHighTech",
    reference="rlbench_suite.envs.greenhouse.players.high_tech_grower:HighTechGrower",
)

CARDS = (
    TaskCard(
        id="rlsuite/Lettuce-v0",
        family="greenhouse",
        summary=(
            "Earn the most from forty days of lettuce in a greenhouse: heat, vent, dose carbon "
            "dioxide."
        ),
        source=(
            "van Henten 1994, thesis Wageningen; van Henten 2003, doi:10.1016/S1537-5110(03)00068-0"
        ),
        entry_point="rlbench_suite.envs.greenhouse.tasks.lettuce:Lettuce",
        reference="rlbench_suite.envs.greenhouse.players.lettuce_grower:Grower",
        horizon=1920,
        replay_tolerance=0.0001,
        difficulties={"medium": 0.1, "easy": 0.0, "hard": 0.25},
        partially_observed=True,
        constraint=Constraint(
            counts=(
                "violation of the climate's bounds in units of 10 K, 1000 ppm or 10 % of humidity, "
                "over all steps"
            ),
            limit=192.0,
            reason=(
                "0.1 a step over the season, which a harvest that counts as success may cost too"
            ),
        ),
        chance=(
            "a crop grows by itself in every season in which random heating and venting keep it "
            "from frost and heat"
        ),
        settings={"peer_compat": False},
        choices={"leakage": ("0.75e-4", "0.75e-5")},
        open_loop=(
            "a fixed programme of heat, vents and carbon dioxide grows a crop in most weather; "
            "without it, hardly anything grows"
        ),
        tags=("continuous", "constrained", "economic"),
    ),
    TaskCard(
        id="rlsuite/LettucePeer-v0",
        family="greenhouse",
        summary=(
            "Earn the most from forty days of lettuce in a greenhouse, as in "
            "lettuce-greenhouse-gym 0.1.3."
        ),
        source="lettuce-greenhouse-gym 0.1.3; van Henten 2003, doi:10.1016/S1537-5110(03)00068-0",
        entry_point="rlbench_suite.envs.greenhouse.tasks.peer_lettuce:PeerLettuce",
        reference="",
        horizon=1920,
        settings={"peer_compat": True},
        choices={"leakage": ("0.75e-5", "0.75e-4")},
        listed=False,
        partially_observed=True,
        tags=("continuous", "economic"),
    ),
    _TOMATO,
    _OBJECTIVES,
    _FAULTY,
    _DISEASE,
    _HIGH_TECH,
)
