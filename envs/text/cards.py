"""Cards of the family ``text``."""

from rlbench_suite.core.task_card import JointGame, TaskCard


def _maze(
    name: str, summary: str, observed: str, difficulties: dict[str, float], chance: str = ""
) -> TaskCard:
    """Make the card of a maze of which so much is observed."""
    return TaskCard(
        id=f"rlsuite/{name}",
        family="text",
        summary=summary,
        source="Abdulhai et al. 2023, arXiv:2311.18232 (LMRL-Gym)",
        entry_point="rlbench_suite.envs.text.maze.task:TextMaze",
        reference="rlbench_suite.envs.text.maze.players:ShortestWay",
        yardsticks={"heuristic": "rlbench_suite.envs.text.maze.players:WallFollower"},
        horizon=100,
        settings={"observed": observed},
        choices={"layout": ("drawn", "double_t", "umaze")},
        variant=True,
        difficulties=difficulties,
        partially_observed=observed == "partially",
        chance=chance,
        tags=("discrete", "text", "navigation"),
    )


CARDS = (
    TaskCard(
        id="rlsuite/Wordle-v0",
        family="text",
        summary="Guess a committed five-letter word in six tries from coloured feedback.",
        source="Wardle 2021; player by expected information: Shannon 1948",
        entry_point="rlbench_suite.envs.text.wordle.task:Wordle",
        reference="rlbench_suite.envs.text.wordle.players:MaximumEntropy",
        yardsticks={"heuristic": "rlbench_suite.envs.text.wordle.players:ConsistentGuess"},
        generalization=(
            "the test split hides words that training never hides, so an agent must play by the "
            "marks, not by the words it has found before. The reference takes all words as equally "
            "likely, as the rules say, and knows neither split. A player that uses the rule of the "
            "split knows more than the game tells, and is privileged"
        ),
        horizon=12,  # six guesses end the game
        replay_tolerance=1e-06,
        tags=("discrete", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/TwentyQuestions-v0",
        family="text",
        summary=(
            "Find a hidden thing by yes/no questions, on tables that are made up anew or of the "
            "real world."
        ),
        source="Abdulhai et al. 2023, arXiv:2311.18232 (LMRL-Gym); the parlour game",
        entry_point="rlbench_suite.envs.text.guessing.twenty_questions:TwentyQuestions",
        reference="rlbench_suite.envs.text.guessing.players:OptimalQuestions",
        yardsticks={"heuristic": "rlbench_suite.envs.text.guessing.players:QuestionsInOrder"},
        horizon=30,  # twenty turns end the game; the rest is for masked questions and guesses
        difficulties={"medium": 32, "easy": 16, "real": 64},
        optima={
            "medium": 0.775
        },  # no table allows more, and each of many thousand drawn tables allows it
        chance=(
            "success leaves seven turns, and one of the 42 actions that may be taken once each is "
            "the right guess"
        ),
        generalization=(
            "real tables: the things of the test split are never hidden in training, but listed "
            "from the start. The reference knows the whole table, which the text view leaves to "
            "knowledge of the world and which an agent that has trained on the structured view "
            "alone cannot know; fictional tables are shown whole"
        ),
        open_loop=(
            "with `easy`, the sixteen things can be guessed one after another within the twenty "
            "turns"
        ),
        tags=("discrete", "masked", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/Diagnosis-v0",
        family="text",
        summary="Ask for symptoms and order tests, each at a cost, then name the disease.",
        source=(
            "Gorry and Barnett 1968, doi:10.1016/0010-4809(68)90016-5 (sequential diagnosis); "
            "naive Bayes model"
        ),
        entry_point="rlbench_suite.envs.text.diagnosis.task:Diagnosis",
        # Bayes-optimal by dynamic programming up to six diseases; two questions of look-ahead in
        # the hard tier.
        reference="rlbench_suite.envs.text.diagnosis.players:BayesOptimal",
        yardsticks={"heuristic": "rlbench_suite.envs.text.diagnosis.players:SymptomsFirst"},
        horizon=30,  # a conclusion ends the episode; the rest is for masked questions
        variant=True,
        difficulties={"medium": 6, "easy": 4, "hard": 12},
        chance="one conclusion in as many as there are diseases is right by chance",
        tags=("discrete", "masked", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/CarDealer-v0",
        family="text",
        summary=(
            "Haggle over a car by alternating offers with somebody of unknown limit and temper."
        ),
        source="Abdulhai et al. 2023, arXiv:2311.18232 (scene); Faratin et al. 1998, "
        "doi:10.1016/S0921-8890(98)00029-3 (tactics)",
        entry_point="rlbench_suite.envs.text.car_dealer.task:CarDealer",
        reference="rlbench_suite.envs.text.car_dealer.players:Haggler",
        yardsticks={"heuristic": "rlbench_suite.envs.text.car_dealer.players:Demands"},
        horizon=12,  # ten rounds end the talks
        variant=True,
        difficulties={"medium": 64, "easy": 48, "hard": 96},
        optima={
            "medium": 0.4585570042987816
        },  # of a player who knows the population of the test split
        hard_for_reference="some leave before their offers tell how much there is to share",
        generalization=(
            "surpluses, tempers and levels of firmness are as frequent on both splits (levels "
            "within 5 %), but no combination of all three is in both. The reference knows these "
            "frequencies and neither split"
        ),
        tags=("discrete", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/Recommend-v0",
        family="text",
        summary="Ask a customer about attributes, each question at a cost, then recommend an item.",
        source="Boutilier 2002, AAAI-02, A POMDP formulation of preference elicitation problems",
        entry_point="rlbench_suite.envs.text.recommend.task:Recommend",
        # Bayes-optimal by dynamic programming up to six attributes; two questions of look-ahead in
        # the hard tier.
        reference="rlbench_suite.envs.text.recommend.players:Elicitor",
        yardsticks={"heuristic": "rlbench_suite.envs.text.recommend.players:EveryQuestion"},
        horizon=20,  # a recommendation ends the episode; the rest is for masked questions
        variant=True,
        difficulties={"medium": 6, "easy": 4, "hard": 10},
        chance="one item in nine or so is the best one or as good",
        hard_for_reference=(
            "with ten attributes, questions that would tell the best item from nearly as good ones "
            "cost more than they gain"
        ),
        tags=("discrete", "masked", "text", "partially-observed"),
    ),
    _maze(
        "TextMaze-v0",
        "Walk the shortest way through a maze that is shown.",
        "fully",
        {"medium": 5, "easy": 3, "hard": 7},
        chance="the no-op action goes left, and some goals lie straight to the left",
    ),
    _maze(
        "TextMazePartial-v0",
        "Find the goal of a maze of which only the walls beside the walker are seen.",
        "partially",
        {"medium": 4, "easy": 3, "hard": 5},
        chance=(
            "a random walk in a small maze now and then comes by the goal in at most twice the "
            "shortest way, and the no-op action goes left, where some goals lie"
        ),
    ),
    TaskCard(
        id="rlsuite/Endgame-v0",
        family="text",
        summary="Mate a perfect defender with a king and queen, rook, pawn or two bishops.",
        source=(
            "Abdulhai et al. 2023, arXiv:2311.18232 (LMRL-Gym); tables: Thompson 1986, ICCA "
            "Journal 9:3"
        ),
        entry_point="rlbench_suite.envs.text.chess.endgame.task:Endgame",
        reference="rlbench_suite.envs.text.chess.endgame.players:TablePlayer",
        yardsticks={"heuristic": "rlbench_suite.envs.text.chess.endgame.players:Confiner"},
        horizon=60,  # fifty moves end the game; the rest is for moves that are not legal
        variant=True,
        difficulties={"easy": 1, "medium": 2, "hard": 3, "bishops": 4},
        optima={
            "easy": 0.9074636441402908,
            "medium": 0.8221190644932672,
            "hard": 0.7955627664312528,
            "bishops": 0.7703199723654415,
        },
        tags=("discrete", "masked", "text", "game"),
    ),
    TaskCard(
        id="rlsuite/Chess-v0",
        family="text",
        summary="Win a game of chess against an opponent of graded strength.",
        source="Abdulhai et al. 2023, arXiv:2311.18232 (LMRL-Gym); FIDE Laws of Chess",
        entry_point="rlbench_suite.envs.text.chess.task:Chess",
        reference="rlbench_suite.envs.text.chess.players:ThreePlies",
        yardsticks={"heuristic": "rlbench_suite.envs.text.chess.players:Captures"},
        game=JointGame(
            entry_point="rlbench_suite.envs.text.chess.two_sides:ChessGame", agents=2, horizon=400
        ),
        horizon=200,
        variant=True,
        difficulties={"medium": 1, "easy": 0, "hard": 2},
        tags=("discrete", "masked", "text", "game"),
    ),
    TaskCard(
        id="rlsuite/GuessMyCity-v0",
        family="text",
        summary="Find a hidden city of 100 by yes/no questions, or one of a fictional country.",
        source="Abdulhai et al. 2023, arXiv:2311.18232 (LMRL-Gym)",
        entry_point="rlbench_suite.envs.text.guessing.guess_my_city:GuessMyCity",
        reference="rlbench_suite.envs.text.guessing.players:OptimalQuestions",
        yardsticks={"heuristic": "rlbench_suite.envs.text.guessing.players:QuestionsInOrder"},
        horizon=30,  # as in Twenty Questions
        variant=True,
        difficulties={"real": 100, "medium": 32, "easy": 16},
        optima={"real": 0.7361111111111112},  # 339 turns for the 54 cities of the test split
        chance=(
            "success leaves eight turns, and one of the 82 actions that may be taken once each is "
            "the right guess"
        ),
        generalization=(
            "real tables: the cities of the test split are never hidden in training, but listed "
            "from the start. The reference knows the whole table, which the text view leaves to "
            "knowledge of the world and which an agent that has trained on the structured view "
            "alone cannot know; fictional tables are shown whole"
        ),
        open_loop=(
            "with `easy`, the sixteen cities can be guessed one after another within the twenty "
            "turns"
        ),
        tags=("discrete", "masked", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/Household-v0",
        family="text",
        summary=(
            "Find things in a house, heat, cool, clean or slice them, and put them where they "
            "belong."
        ),
        source=(
            "Shridhar et al. 2021, arXiv:2010.03768 (ALFWorld's six kinds of tasks); rules of our "
            "own"
        ),
        entry_point="rlbench_suite.envs.text.household.task:Household",
        reference="rlbench_suite.envs.text.household.players:Planner",
        yardsticks={"heuristic": "rlbench_suite.envs.text.household.players:RoomByRoom"},
        horizon=60,
        variant=True,
        difficulties={"medium": 2, "easy": 1, "hard": 3},
        tags=("discrete", "masked", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/TextNav-v0",
        family="text",
        summary="Find a thing in a house of rooms and closed containers, and take it.",
        source="Abdulhai et al. 2023, arXiv:2311.18232 (Text-Nav); rules of our own",
        entry_point="rlbench_suite.envs.text.household.task:TextNav",
        reference="rlbench_suite.envs.text.household.players:Planner",
        yardsticks={"heuristic": "rlbench_suite.envs.text.household.players:RoomByRoom"},
        horizon=20,
        variant=True,
        chance="a random walk through the rooms comes by many places in time",
        tags=("discrete", "masked", "text", "partially-observed"),
    ),
    TaskCard(
        id="rlsuite/Survival-v0",
        family="text",
        summary=(
            "Survive in an open world of needs, creatures and nights, and work through its 22 "
            "achievements."
        ),
        source=(
            "Hafner 2021, arXiv:2109.06780 (Crafter); Tang et al. 2024, arXiv:2410.08126 (Mars: "
            "permuted rules)"
        ),
        entry_point="rlbench_suite.envs.text.survival.task:Survival",
        reference="rlbench_suite.envs.text.survival.settler:Settler",
        yardsticks={"heuristic": "rlbench_suite.envs.text.survival.newcomer:Newcomer"},
        horizon=1000,
        variant=True,
        difficulties={"medium": 0, "hard": 3},
        partially_observed=True,
        hard_for_reference=(
            "where rules are permuted, 1,000 steps are few; it succeeds in 81 % of episodes of "
            "2,000"
        ),
        tags=("discrete", "text", "open-world"),
    ),
    TaskCard(
        id="rlsuite/TowerDefence-v0",
        family="text",
        summary=(
            "Defend a castle with towers, a hero and reinforcements against twelve waves that are "
            "announced."
        ),
        source="TowerMind (github.com/tb6147877/TowerMind; closed rules); rules of our own",
        entry_point="rlbench_suite.envs.text.tower_defence.task:TowerDefence",
        reference="rlbench_suite.envs.text.tower_defence.players:Routine",
        yardsticks={
            "heuristic": "rlbench_suite.envs.text.tower_defence.players:Archers",
            "planner": "rlbench_suite.envs.text.tower_defence.players:Planner",
        },
        # A game has 140 steps at most, unless the hero stops somebody; the rest is for illegal
        # orders.
        horizon=200,
        variant=True,
        difficulties={"medium": 2, "easy": 1, "hard": 3},
        partially_observed=True,  # later waves
        open_loop=(
            "the best player known is a list of orders, of which it gives the first legal one; "
            "orders at fixed times stop two waves of three, and hardly ever keep the castle"
        ),
        tags=("discrete", "masked", "text", "game"),
    ),
)
