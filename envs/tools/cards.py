"""Cards of the family ``tools``."""

from rlbench_suite.core.task_card import TaskCard

MANY_WAYS = (
    "One meaning has many programs, queries and searches, so that no list of calls is the right "
    "one."
)
LAST_CALL = "Only the last call changes anything, so that there is no progress to pay for."
EACH_QUERY = "Each query pays for itself already."
CHANCES = "Experts are right by chance, so that no list of calls is the right one."

CARDS = (
    TaskCard(
        id="rlsuite/OfficeApps-v0",
        family="tools",
        summary=(
            "Carry out an instruction by API calls to a phone book, a calendar and a payment "
            "account."
        ),
        source="State-based judging after AppWorld: Trivedi et al. 2024, arXiv:2407.18901",
        entry_point="rlbench_suite.envs.tools.office.office_apps:OfficeApps",
        reference="rlbench_suite.envs.tools.office.players:Oracle",
        yardsticks={"heuristic": "rlbench_suite.envs.tools.office.players:Hasty"},
        horizon=20,
        choices={"reward": ("success", "thrifty", "matched", "dense")},
        difficulties={"easy": 1.0, "medium": 2.0, "hard": 3.0},
        optimum=1.0,
        tags=("multi-discrete", "text", "tool-use", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/OfficeAppsLarge-v0",
        family="tools",
        summary=(
            "Carry out an instruction by calls of 131 APIs of nine apps, and change nothing else."
        ),
        source="State-based judging after AppWorld: Trivedi et al. 2024, arXiv:2407.18901",
        entry_point="rlbench_suite.envs.tools.office.office_apps_large:OfficeAppsLarge",
        reference="rlbench_suite.envs.tools.office.players:LargeOracle",
        yardsticks={"heuristic": "rlbench_suite.envs.tools.office.players:LargeHasty"},
        horizon=30,
        choices={
            "reward": ("success", "thrifty", "matched", "dense"),
            "injection": ("none", "remarks"),
        },
        variant=True,
        difficulties={"easy": 1.0, "medium": 2.0, "hard": 3.0},
        host=True,
        partially_observed=True,
        optimum=1.0,
        tags=("multi-discrete", "text", "tool-use", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/Routing-v0",
        family="tools",
        summary=(
            "Send each query of a stream to one of several experts, or answer it yourself, within "
            "a budget."
        ),
        source="Zhang, Feng & You 2025, arXiv:2506.09033 (Router-R1: price against accuracy)",
        entry_point="rlbench_suite.envs.tools.routing.routing:Routing",
        reference="rlbench_suite.envs.tools.routing.routing:Planner",
        yardsticks={"heuristic": "rlbench_suite.envs.tools.routing.routing:PriceWatcher"},
        horizon=24,
        choices={"reward": ("success", "thrifty")},
        meaningless={"reward=matched": CHANCES, "reward=dense": EACH_QUERY},
        variant=True,
        difficulties={"medium": 4, "easy": 2, "hard": 8},
        tags=("discrete", "text", "tool-use", "planning"),
    ),
    TaskCard(
        id="rlsuite/SQL-v0",
        family="tools",
        summary=(
            "Answer a question about a database with an SQL query that is right on other rows, too."
        ),
        source="Yu et al. 2018, arXiv:1809.08887 ; Zhong, Yu & Klein 2020, arXiv:2010.02840",
        entry_point="rlbench_suite.envs.tools.sql.sql:SQL",
        reference="rlbench_suite.envs.tools.sql.sql:Expert",
        yardsticks={"heuristic": "rlbench_suite.envs.tools.sql.sql:Keywords"},
        horizon=12,
        choices={"reward": ("success", "thrifty")},
        meaningless={"reward=matched": MANY_WAYS, "reward=dense": LAST_CALL},
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
        entry_point="rlbench_suite.envs.tools.interpreter.interpreter:Interpreter",
        reference="rlbench_suite.envs.tools.interpreter.interpreter:Programmer",
        yardsticks={"heuristic": "rlbench_suite.envs.tools.interpreter.interpreter:FirstThatFits"},
        horizon=10,
        choices={"reward": ("success", "thrifty", "dense")},
        meaningless={"reward=matched": MANY_WAYS},
        variant=True,
        difficulties={"easy": 1.0, "medium": 2.0, "hard": 3.0},
        optimum=1.0,
        tags=("multi-discrete", "text", "tool-use", "programs"),
    ),
    TaskCard(
        id="rlsuite/Search-v0",
        family="tools",
        summary=(
            "Answer a question of several look-ups from a corpus about fictional people, some of "
            "it outdated."
        ),
        source=(
            "Jin et al. 2025, arXiv:2503.09516 (Search-R1); Ho et al. 2020, arXiv:2011.01060 "
            "(several look-ups)"
        ),
        entry_point="rlbench_suite.envs.tools.search.search:Search",
        reference="rlbench_suite.envs.tools.search.search:Reader",
        yardsticks={"heuristic": "rlbench_suite.envs.tools.search.search:FirstPages"},
        horizon=20,
        choices={
            "reward": ("success", "thrifty", "dense", "judged"),
            "retrieval": ("fair", "good", "poor"),
            "search_cost": ("free", "low", "high"),
        },
        meaningless={"reward=matched": MANY_WAYS},
        variant=True,
        difficulties={"medium": 2.0, "easy": 1.0, "hard": 3.0},
        optimum=1.0,
        generalization=(
            "other corpora, other names, and questions whose first look-up is never asked in "
            "training; the rules and all distributions are equal"
        ),
        tags=("multi-discrete", "text", "tool-use"),
    ),
    TaskCard(
        id="rlsuite/ServiceDesk-v0",
        family="tools",
        summary=(
            "Help a customer of a shop by its policy, with a database, and with a customer who can "
            "act."
        ),
        source=(
            "Yao et al. 2024, arXiv:2406.12045; Barres et al. 2025, arXiv:2506.07982 (customers "
            "who act)"
        ),
        entry_point="rlbench_suite.envs.tools.service_desk.service_desk:ServiceDesk",
        reference="rlbench_suite.envs.tools.service_desk.clerk:Clerk",
        yardsticks={"heuristic": "rlbench_suite.envs.tools.service_desk.clerk:YesClerk"},
        horizon=20,
        choices={"reward": ("success", "thrifty", "matched", "dense")},
        variant=True,
        difficulties={"medium": 2.0, "easy": 1.0},
        optimum=1.0,
        generalization=(
            "other lists of orders and other PINs; wishes, policy and all other distributions are "
            "equal"
        ),
        tags=("discrete", "text", "tool-use", "partially-observed"),
    ),
)
