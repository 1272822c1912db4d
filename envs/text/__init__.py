"""Text games whose structured core and text view are one and the same instance."""

from rlbench_suite.card import TaskCard

CARDS = (
    TaskCard(
        id="rlsuite/Wordle-v0",
        family="text",
        summary="Guess a committed five-letter word in six tries from coloured feedback.",
        source="Wardle 2021; player by expected information: Shannon 1948",
        entry_point="rlbench_suite.envs.text.wordle:Wordle",
        reference="rlbench_suite.envs.text.maximum_entropy:MaximumEntropy",
        horizon=12,  # six guesses end the game; the rest is for text that was no word
        tags=("discrete", "text", "partially-observed"),
    ),
)
