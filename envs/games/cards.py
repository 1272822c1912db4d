"""Cards of the family ``games``."""

from rlbench_suite.core.task_card import JointGame, TaskCard

# Three moves a point, less the two of the opening.
GO_ON_5X5 = JointGame(entry_point="rlbench_suite.envs.games.go.go:Go", agents=2, horizon=73)
GO_ON_9X9 = JointGame(entry_point="rlbench_suite.envs.games.go.go:Go", agents=2, horizon=241)

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
        chance="an opponent that moves at random, on easy, loses half of the games to random play",
        hard_for_reference=(
            "the opponent moves first in half of the games, and looks nearly as far ahead: "
            "`medium` loses 78 % of its games to the reference, `hard` 56 %"
        ),
        difficulties={"medium": 1, "easy": 0, "hard": 2},
        tags=("discrete", "game", "masked"),
    ),
    TaskCard(
        id="rlsuite/Go-v0",
        family="games",
        summary="Surround more of a small board than an opponent, at Go on 5 x 5 or 9 x 9 points.",
        source=(
            "Captures, ko and area scoring of OpenSpiel 2.0, arXiv:1908.09453; Monte Carlo players "
            "by Bruegmann 1993, Monte Carlo Go"
        ),
        entry_point="rlbench_suite.envs.games.go.go:GoAgainst",
        reference="rlbench_suite.envs.games.go.players:Reference",
        game=GO_ON_5X5,
        horizon=37,
        choices={"board": ("5x5", "9x9")},
        fields_by_choice={
            "board=5x5": {"horizon": 37, "game": GO_ON_5X5},
            "board=9x9": {"horizon": 121, "game": GO_ON_9X9},
        },
        difficulties={"medium": 1, "easy": 0, "hard": 2},
        tags=("discrete", "game", "masked"),
    ),
    TaskCard(
        id="rlsuite/Poker-v0",
        family="games",
        summary="Win chips at Leduc or Kuhn poker, against opponents up to an equilibrium.",
        source=(
            "Southey et al. 2005, arXiv:1207.1411 (Leduc); Kuhn 1950, Contributions to the Theory "
            "of Games 1, 97-103; rules of OpenSpiel 2.0, arXiv:1908.09453"
        ),
        entry_point="rlbench_suite.envs.games.poker.poker:PokerAgainst",
        reference="rlbench_suite.envs.games.poker.players:BestResponse",
        game=JointGame(
            entry_point="rlbench_suite.envs.games.poker.poker:Poker", agents=2, horizon=800
        ),
        horizon=400,
        choices={"game": ("leduc", "kuhn"), "hands": ("100", "1")},
        difficulties={"medium": 1, "easy": 0, "hard": 2},
        contexts=False,
        # A hundred hands of the best response, by the tree of a hand: exploitability.py.
        optima={"medium": 190.0, "easy": 440 / 3, "hard": 0.013},
        chance=(
            "who always calls breaks even with easy and medium, and so wins half of the matches; a "
            "few matches against an equilibrium are luck"
        ),
        hard_for_reference=(
            "the equilibrium of hard loses nothing, so that even the best response wins no more "
            "than half of the matches"
        ),
        tags=("discrete", "game", "hidden-information", "masked"),
    ),
    TaskCard(
        id="rlsuite/Fighter-v0",
        family="games",
        summary="Win a fight by distance, guard, stamina and combinations, against twelve styles.",
        source="rules of its own; the questions of FightLadder, Li et al. 2024, arXiv:2406.02081",
        entry_point="rlbench_suite.envs.games.fighter.fighter:FighterAgainst",
        reference="rlbench_suite.envs.games.fighter.rollout_player:RolloutPlayer",
        game=JointGame(
            entry_point="rlbench_suite.envs.games.fighter.fighter:FightingGame",
            agents=2,
            horizon=240,
        ),
        horizon=240,
        difficulties={"medium": 11, "easy": 10, "hard": 12},
        tags=("discrete", "game", "hidden-information", "simultaneous"),
    ),
    TaskCard(
        id="rlsuite/MatrixGame-v0",
        family="games",
        summary="Choose at once with another agent from a table of payoffs; nine classic games.",
        source="Claus & Boutilier 1998, AAAI-98 (climbing, penalty); Shapley 1964; folklore",
        entry_point="rlbench_suite.envs.games.matrix_game:MatrixGame",
        reference="rlbench_suite.envs.games.matrix_game:BestTogether",
        horizon=100,
        choices={
            "game": (
                "climbing",
                "penalty",
                "prisoners-dilemma",
                "stag-hunt",
                "chicken",
                "battle-of-the-sexes",
                "matching-pennies",
                "rock-paper-scissors",
                "shapley",
            ),
            "rounds": ("100", "1"),
        },
        variant=True,
        contexts=False,
        agents=2,
        optimum=1100.0,
        chance="one of nine joint actions is the best one, which random play meets",
        open_loop=(
            "nothing is to be observed: the best joint action is always the same, and finding it "
            "by two agents that explore independently is the difficulty"
        ),
        tags=("discrete", "multi-agent", "simultaneous"),
    ),
)
