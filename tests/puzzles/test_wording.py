"""The wording of prompts, where readers stumbled once."""

import re

from rlbench_suite.core.registry import cards
from rlbench_suite.language.rows import puzzle_of

AWKWARD = {
    "a dot among symbols reads as a full stop": r"one of .*[#*\w] \. and|with \. ",
    "counts are digits or words, not both": r"\bone to \d",
    "how things are in a row": r"as many as there are",
    "whose is what": r"is the (drinker|owner|resident|lover|player) of",
    "there are none": r"[Ee]xactly 0 of|at least 0 of",
    "a number of equal rank": r"only the least possible number",
    "chess has words for this": r"captured in passing",
    "what exists": r"not everything that is spoken of",
    "which side": r"at the right\b",
    "four in a row is no tic-tac-toe": r"[Tt]ic-tac-toe",
}
"""Patterns that no prompt has."""
KEEP_GIVENS = "the given symbols unchanged"


def test_prompts_read_naturally() -> None:
    for card in cards().values():
        if not card.puzzle:
            continue
        puzzle = puzzle_of(card.id)
        for seed in range(2):
            instance = puzzle.generate(seed, "test")
            question = puzzle.question(instance)
            for why, pattern in AWKWARD.items():
                assert not re.search(pattern, question), (card.id, why)
            for speaker, sentence in re.findall(r"^(\w+) says: (.*)$", question, re.MULTILINE):
                assert speaker not in sentence, (card.id, "people say I of themselves")
            assert KEEP_GIVENS not in question or instance.givens.any(), (
                card.id,
                "some symbol is given",
            )
