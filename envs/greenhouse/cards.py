"""Cards of the family ``greenhouse``."""

from rlbench_suite.card import Constraint, TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/Lettuce-v0",
        family="greenhouse",
        summary="Earn the most from forty days of lettuce in a greenhouse: heat, vent, dose carbon dioxide.",
        source="van Henten 1994, thesis Wageningen; van Henten 2003, doi:10.1016/S1537-5110(03)00068-0",
        entry_point="rlbench_suite.envs.greenhouse.lettuce:Lettuce",
        reference="rlbench_suite.envs.greenhouse.grower:Grower",
        horizon=1920,
        replay_tolerance=0.0001,
        difficulties={"medium": 0.1, "easy": 0.0, "hard": 0.25},
        partially_observed=True,
        constraint=Constraint(
            counts="violation of the climate's bounds in units of 10 K, 1000 ppm or 10 % of humidity, over all steps",
            limit=192.0,
            reason="0.1 a step over the season, which a harvest that counts as success may cost too",
        ),
        chance="a crop grows by itself in every season in which random heating and venting keep it from frost and heat",
        settings={"peer_compat": False},
        choices={"leakage": ("0.75e-4", "0.75e-5")},
        tags=("continuous", "constrained", "economic"),
    ),
    TaskCard(
        id="rlsuite/LettucePeer-v0",
        family="greenhouse",
        summary="Earn the most from forty days of lettuce in a greenhouse, as in lettuce-greenhouse-gym 0.1.3.",
        source="lettuce-greenhouse-gym 0.1.3; van Henten 2003, doi:10.1016/S1537-5110(03)00068-0",
        entry_point="rlbench_suite.envs.greenhouse.peer_lettuce:PeerLettuce",
        reference="",
        horizon=1920,
        settings={"peer_compat": True},
        choices={"leakage": ("0.75e-5", "0.75e-4")},
        listed=False,
        partially_observed=True,
        tags=("continuous", "economic"),
    ),
)
