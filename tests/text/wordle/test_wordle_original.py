"""The original Wordle's best play: 7,920 guesses for 2,315 hidden words.

It is checked by our rules and with lists of the user's.

The original's lists have no licence that lets us ship them (docs/details/text_games.md). What is
best was proven by exhaustive search (Bertsimas and Paskov 2022, An exact and interpretable solution
to Wordle; Selby 2022, The best strategies for Wordle), which takes a core a day or two. The test
therefore checks a published strategy: it is one by our rules, and needs as many guesses as were
proven to be the fewest. That the check counts right is proven on a small list, for which exhaustive
search takes a moment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rlbench_suite.envs.text.wordle.task import SOLVED, TRIES, encode, feedback

FILES = ("RLSUITE_WORDLE_ANSWERS", "RLSUITE_WORDLE_GUESSES", "RLSUITE_WORDLE_STRATEGY")
"""Environment variables with the paths of the user's files.

The first has the words that may be hidden, the second the others that may be guessed. The third has
a strategy, a line for each hidden word: the guesses, in lower case, up to that word. Other text is
not read.
"""

ANSWERS = ("eight", "fight", "light", "might", "night", "right", "sight", "tight")
GUESSES_ONLY = (
    "about", "flame", "frame", "frost", "games", "lemon", "metal", "minor", "month", "films",
    "stern", "storm", "terms",
)  # fmt: skip
Game = tuple[str, ...]


def letters(word: str) -> np.ndarray:
    return np.frombuffer(word.encode(), np.uint8) - ord("a")


@cache
def marks(guess: str, hidden: str) -> int:
    return int(encode(feedback(letters(guess), letters(hidden))))


def guesses_needed(
    games: Sequence[Game], answers: Collection[str], guesses_only: Collection[str]
) -> int:
    """Return the number of guesses of all games of a strategy, one for each answer.

    Raises:
        ValueError: the games are not those of one player who sees the marks and nothing else.
    """
    if sorted(game[-1] for game in games) != sorted(answers):
        raise ValueError("expected one game for each answer, which is its last guess")
    allowed = {*answers, *guesses_only}
    choice = dict[tuple[tuple[str, int], ...], str]()
    for *earlier, hidden in games:
        if not {*earlier} <= allowed or hidden in earlier or len(earlier) >= TRIES:
            raise ValueError(
                f"no game of at most {TRIES} guesses of the lists: {earlier}, {hidden}"
            )
        board: tuple[tuple[str, int], ...] = ()
        for guess in (*earlier, hidden):
            if choice.setdefault(board, guess) != guess:
                raise ValueError(f"both {choice[board]} and {guess} follow {board}")
            board += ((guess, marks(guess, hidden)),)
    return sum(map(len, games))


@cache
def best_games(candidates: frozenset[str]) -> tuple[Game, ...]:
    """Return the games of a strategy with the fewest guesses.

    Every guess is tried for every set of candidates.
    """
    strategies: list[tuple[Game, ...]] = []
    for guess in (*ANSWERS, *GUESSES_ONLY):
        classes: dict[int, set[str]] = {}
        for hidden in candidates:
            classes.setdefault(marks(guess, hidden), set()).add(hidden)
        if len(classes) > 1 or SOLVED in classes:
            after = [
                best_games(frozenset(words)) for code, words in classes.items() if code != SOLVED
            ]
            solved = [(guess,)] if SOLVED in classes else []
            strategies.append((*solved, *((guess, *game) for games in after for game in games)))
    return min(strategies, key=lambda games: sum(map(len, games)))


def test_the_fewest_guesses_of_a_small_list_are_counted() -> None:
    """The guesses are counted by hand.

    "terms" leaves f, l and n, which take 2, 3 and 4 guesses, and the five others 2 each.
    """
    games = best_games(frozenset(ANSWERS))
    assert (
        guesses_needed(games, ANSWERS, GUESSES_ONLY)
        == guesses_needed(games[::-1], ANSWERS, GUESSES_ONLY)
        == 19
    )
    one_by_one = [ANSWERS[: i + 1] for i in range(TRIES)]
    assert guesses_needed(one_by_one, ANSWERS[:TRIES], ()) == 1 + 2 + 3 + 4 + 5 + 6
    assert guesses_needed(by_alphabet(), ANSWERS, GUESSES_ONLY) == 22


def by_alphabet() -> list[Game]:
    """Return the games of a player who first guesses "films", and then the candidates in order."""
    games = []
    for hidden in ANSWERS:
        candidates = [word for word in ANSWERS if marks("films", word) == marks("films", hidden)]
        games.append(("films", *candidates[: candidates.index(hidden) + 1]))
    return games


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda games: games[1:], "one game for each answer"),
        (lambda games: [*games[:-1], games[0]], "one game for each answer"),
        (lambda games: [(hidden,) for *_, hidden in games], "follow"),  # it knows the hidden word
        (lambda games: [("zzzzz", *game) for game in games], "of the lists"),
        (lambda games: [(*["about"] * TRIES, *game) for game in games], "at most 6"),
        (lambda games: [(game[-1], *game) for game in games], "no game"),
    ],
)
def test_what_is_no_strategy_is_refused(change: object, words: str) -> None:
    assert callable(change)
    with pytest.raises(ValueError, match=words):
        guesses_needed(change(by_alphabet()), ANSWERS, GUESSES_ONLY)


@pytest.mark.skipif(
    not all(map(os.environ.get, FILES)), reason=f"no licence to ship the lists: {', '.join(FILES)}"
)
def test_a_published_strategy_needs_the_fewest_guesses_that_were_proven() -> None:
    answers, guesses_only, strategy = (Path(os.environ[name]).read_text() for name in FILES)
    hidden = answers.split()
    guessed = {*guesses_only.split()} - {*answers.split()}
    assert (len(hidden), len(hidden) + len(guessed)) == (2_315, 12_972)
    games = [tuple(re.findall(r"\b[a-z]{5}\b", line)) for line in strategy.splitlines()]
    needed = guesses_needed([game for game in games if game], hidden, guessed)
    assert needed == 7_920
    assert needed / len(hidden) == pytest.approx(3.4212, abs=5e-5)
