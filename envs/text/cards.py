"""Cards of the family ``text``."""

from rlbench_suite.card import TaskCard


def _maze(name: str, summary: str, observed: str, difficulties: dict[str, float]) -> TaskCard:
    """Make the card of a maze of which so much is observed."""
    return TaskCard(
        id=f"rlsuite/{name}",
        family="text",
        summary=summary,
        source="Abdulhai et al. 2023, arXiv:2311.18232 (LMRL-Gym)",
        entry_point="rlbench_suite.envs.text.text_maze:TextMaze",
        reference="rlbench_suite.envs.text.text_maze:ShortestWay",
        horizon=100,
        settings={"observed": observed},
        choices={"layout": ("drawn", "double_t", "umaze")},
        variant=True,
        difficulties=difficulties,
        partially_observed=observed == "partially",
        tags=("discrete", "text", "navigation"),
    )


CARDS = (
    TaskCard(
        id="rlsuite/Wordle-v0",
        family="text",
        summary="Guess a committed five-letter word in six tries from coloured feedback.",
        source="Wardle 2021; player by expected information: Shannon 1948",
        entry_point="rlbench_suite.envs.text.wordle:Wordle",
        reference="rlbench_suite.envs.text.maximum_entropy:MaximumEntropy",
        horizon=12,  # six guesses end the game
        replay_tolerance=1e-06,
        tags=("discrete", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/TwentyQuestions-v0",
        family="text",
        summary="Find a hidden thing by yes/no questions, on tables that are made up anew or of the real world.",
        source="Abdulhai et al. 2023, arXiv:2311.18232 (LMRL-Gym); the parlour game",
        entry_point="rlbench_suite.envs.text.twenty_questions:TwentyQuestions",
        reference="rlbench_suite.envs.text.optimal_questions:OptimalQuestions",
        horizon=30,  # twenty turns end the game; the rest is for masked questions and guesses
        difficulties={"medium": 32, "easy": 16, "real": 64},
        optimum=0.775,  # no table allows more, and each of many thousand drawn tables allows it
        tags=("discrete", "masked", "text", "partially-observed"),
    ),
    _maze(
        "TextMaze-v0",
        "Walk the shortest way through a maze that is shown.",
        "fully",
        {"medium": 5, "easy": 3, "hard": 7},
    ),
    _maze(
        "TextMazePartial-v0",
        "Find the goal of a maze of which only the walls beside the walker are seen.",
        "partially",
        {"medium": 4, "easy": 3, "hard": 5},
    ),
)
