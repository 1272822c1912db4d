"""Cards of the family ``games``."""

from rlbench_suite.core.task_card import JointGame, TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/ConnectFour-v0",
        family="games",
        summary="Be the first with four pieces in a line, against opponents that look ahead.",
        source="the game of Wexler and Strongin 1974; solved by Allis 1988",
        entry_point="rlbench_suite.envs.games.connect_four:ConnectFourAgainst",
        reference="rlbench_suite.envs.games.connect_four:Reference",
        game=JointGame(
            entry_point="rlbench_suite.envs.games.connect_four:ConnectFour", agents=2, horizon=42
        ),
        horizon=21,
        choices={"board": ("7x6", "4x4", "5x4", "4x5", "5x5", "6x4")},
        hard_for_reference=(
            "the opponent moves first in half of the games, and looks nearly as far ahead: "
            "`medium` loses 78 % of its games to the reference, `hard` 56 %"
        ),
        difficulties={"medium": 1, "easy": 0, "hard": 2},
        tags=("discrete", "game", "masked"),
    ),
)
