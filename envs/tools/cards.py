"""Cards of the family ``tools``."""

from rlbench_suite.card import TaskCard

REWARDS = ("success", "thrifty")
"""Values of the setting ``reward``: what the card's page says, or that with a price on calls of tools."""

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
    TaskCard(
        id="rlsuite/Routing-v0",
        family="tools",
        summary="Send each query of a stream to one of several experts, or answer it yourself, within a budget.",
        source="Zhang, Feng & You 2025, arXiv:2506.09033 (Router-R1: price against accuracy)",
        entry_point="rlbench_suite.envs.tools.routing:Routing",
        reference="rlbench_suite.envs.tools.routing:Planner",
        horizon=24,
        choices={"reward": REWARDS},
        variant=True,
        difficulties={"medium": 4, "easy": 2, "hard": 8},
        tags=("discrete", "text", "tool-use", "planning"),
    ),
    TaskCard(
        id="rlsuite/SQL-v0",
        family="tools",
        summary="Answer a question about a database with an SQL query that is right on other rows, too.",
        source="Yu et al. 2018, arXiv:1809.08887 ; Zhong, Yu & Klein 2020, arXiv:2010.02840",
        entry_point="rlbench_suite.envs.tools.sql:SQL",
        reference="rlbench_suite.envs.tools.sql:Expert",
        horizon=12,
        choices={"reward": REWARDS},
        variant=True,
        difficulties={"easy": 1.0, "medium": 2.0, "hard": 3.0},
        host=True,
        optimum=1.0,
        tags=("multi-discrete", "text", "tool-use"),
    ),
    TaskCard(
        id="rlsuite/Interpreter-v0",
        family="tools",
        summary="Write a program in a small language that turns lists into the wanted lists.",
        source="Balog et al. 2017, arXiv:1611.01989 (DeepCoder: programs on lists from examples)",
        entry_point="rlbench_suite.envs.tools.interpreter:Interpreter",
        reference="rlbench_suite.envs.tools.interpreter:Programmer",
        horizon=10,
        choices={"reward": REWARDS},
        variant=True,
        difficulties={"easy": 1.0, "medium": 2.0, "hard": 3.0},
        optimum=1.0,
        tags=("multi-discrete", "text", "tool-use", "programs"),
    ),
)
