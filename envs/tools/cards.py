"""Cards of the family ``tools``."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/OfficeApps-v0",
        family="tools",
        summary="Carry out an instruction by API calls to a phone book, a calendar and a payment account.",
        source="State-based judging after AppWorld: Trivedi et al. 2024, arXiv:2407.18901",
        entry_point="rlbench_suite.envs.tools.office_apps:OfficeApps",
        reference="rlbench_suite.envs.tools.oracle:Oracle",
        horizon=20,
        difficulties={"easy": 1.0, "medium": 2.0, "hard": 3.0},
        optimum=1.0,
        tags=("multi-discrete", "text", "tool-use", "partially-observed"),
    ),
)
