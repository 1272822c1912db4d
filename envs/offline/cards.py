"""Cards of the family ``offline``."""

from rlbench_suite.core.task_card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/PointMaze-v0",
        family="offline",
        summary=(
            "Push a ball through a maze to a goal, with forces, as fast as you can; sparse or "
            "dense reward."
        ),
        source="Fu et al. 2020 (D4RL), arXiv:2004.07219, section 5 (Maze2D)",
        entry_point="rlbench_suite.envs.offline.point_maze:PointMaze",
        reference="rlbench_suite.envs.offline.point_maze:WaypointPD",
        horizon=600,
        difficulties={
            "umaze": 0,
            "medium": 1,
            "large": 2,
            "umaze-dense": 10,
            "medium-dense": 11,
            "large-dense": 12,
        },
        chance=(
            "with dense rewards nothing ends the episode, and the ball may roll by the goal of the "
            "smallest maze"
        ),
        open_loop=(
            "the smallest maze is one corridor: a ball that is pushed along all of it passes every "
            "goal, late. Success asks for the short way, which no blind player goes"
        ),
        choices={"goal": ("False", "True")},
        tags=("continuous", "navigation", "goal-conditioned", "sparse"),
    ),
)
