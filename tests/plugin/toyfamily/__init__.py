"""A family as a third party would ship it: two tiny tasks, and agents that behave and misbehave."""

from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.task_card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/ToyWalk-v0",
        family="toys",
        summary="Walk right on a line against gusts; standing still is not allowed at the start.",
        source="none: made for the tests",
        entry_point="toyfamily.tasks:Walk",
        reference="toyfamily.tasks:Rightwards",
        horizon=12,
        difficulties={"calm": 0.1, "stormy": 0.4},
    ),
    TaskCard(
        id="rlsuite/ToyDrift-v0",
        family="toys",
        summary="Push a drifting point to the middle, cheaply.",
        source="none: made for the tests",
        entry_point="toyfamily.tasks:Drift",
        reference="toyfamily.tasks:Towards",
        horizon=20,
        contexts=False,
        constraint=Constraint(
            counts="steps faster than 0.2 m/s", limit=9.0, reason="less than half of an episode"
        ),
        objectives=("nearness", "thrift"),
        weights=(0.75, 0.25),
        choices={"friction": ("none", "air"), "push": ("weak", "strong")},
    ),
)
