"""Cards of the family ``driving``."""

from rlbench_suite.card import TaskCard

DENSITIES = {"medium": 16.0, "easy": 10.0, "hard": 25.0}
"""Vehicles per kilometre and lane."""

CARDS = (
    TaskCard(
        id="rlsuite/Highway-v0",
        family="driving",
        summary="Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by lane and speed commands.",
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805; Kesting et al. 2007, "
        "doi:10.3141/1999-10; Polack et al. 2017, doi:10.1109/IVS.2017.7995816",
        entry_point="rlbench_suite.envs.driving.highway:Highway",
        reference="rlbench_suite.envs.driving.reference_driver:ReferenceDriver",
        horizon=40,
        replay_tolerance=0.0001,
        difficulties=DENSITIES,
        tags=("discrete", "masked", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/HighwayContinuous-v0",
        family="driving",
        summary="Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by pedals and steering.",
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805; Kesting et al. 2007, "
        "doi:10.3141/1999-10; Polack et al. 2017, doi:10.1109/IVS.2017.7995816",
        entry_point="rlbench_suite.envs.driving.highway:HighwayContinuous",
        reference="rlbench_suite.envs.driving.reference_driver:ContinuousReferenceDriver",
        horizon=200,
        replay_tolerance=0.001,
        difficulties=DENSITIES,
        tags=("continuous", "safe", "driving"),
    ),
)
