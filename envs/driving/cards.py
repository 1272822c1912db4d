"""Cards of the family ``driving``."""

from rlbench_suite.card import Constraint, TaskCard

DENSITIES = {"medium": 16.0, "easy": 10.0, "hard": 25.0}
"""Vehicles per kilometre and lane."""


def _constraint(step: float) -> Constraint:
    """Return the limit of near misses for a step of so many seconds."""
    return Constraint(
        counts=f"steps of {step:g} s that end in a crash or with less than 1.5 s to a collision",
        limit=0.2 / step,
        reason="a fifth of a second in 40 s of driving: one second of near miss in every fifth episode",
    )


CARDS = (
    TaskCard(
        id="rlsuite/Highway-v1",
        family="driving",
        summary="Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by lane and speed commands.",
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805; Kesting et al. 2007, "
        "doi:10.3141/1999-10; Polack et al. 2017, doi:10.1109/IVS.2017.7995816",
        entry_point="rlbench_suite.envs.driving.highway:Highway",
        reference="rlbench_suite.envs.driving.reference_driver:ReferenceDriver",
        horizon=40,
        replay_tolerance=0.0001,
        difficulties=DENSITIES,
        constraint=_constraint(1.0),
        tags=("discrete", "masked", "safe", "driving"),
    ),
    TaskCard(
        id="rlsuite/HighwayContinuous-v1",
        family="driving",
        summary="Drive fast and keep right among 49 IDM and MOBIL drivers on four lanes, by pedals and steering.",
        source="Leurent 2018, highway-env; Treiber et al. 2000, doi:10.1103/PhysRevE.62.1805; Kesting et al. 2007, "
        "doi:10.3141/1999-10; Polack et al. 2017, doi:10.1109/IVS.2017.7995816",
        entry_point="rlbench_suite.envs.driving.highway:HighwayContinuous",
        reference="rlbench_suite.envs.driving.reference_driver:ContinuousReferenceDriver",
        horizon=200,
        replay_tolerance=0.001,
        difficulties=DENSITIES,
        constraint=_constraint(0.2),
        tags=("continuous", "safe", "driving"),
    ),
)
