"""Cards of the family ``locomotion``."""

from rlbench_suite.core.task_card import TaskCard

CARDS = [
    TaskCard(
        id="rlsuite/Hopper-v0",
        family="locomotion",
        summary="Make a one-legged robot hop forward as fast as it can without falling.",
        source="Erez, Tassa & Todorov 2011, doi:10.15607/RSS.2011.VII.010; Gymnasium's Hopper-v5",
        entry_point="rlbench_suite.envs.locomotion.hopper:Hopper",
        reference="rlbench_suite.envs.locomotion.hopper:LinearFeedback",
        horizon=1000,
        contexts=False,
        host=True,
        tags=("continuous", "mujoco"),
    ),
]
