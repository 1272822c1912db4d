"""Wordle against its rules, counted out in plain Python, and against every word of the list."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.wordle import make_word_list
from rlbench_suite.envs.text.wordle.players import MaximumEntropy, feedback_matrix
from rlbench_suite.envs.text.wordle.task import (
    LENGTH,
    LETTERS,
    MARKS,
    MAX_COPIES,
    TRIES,
    Params,
    State,
    Wordle,
    decode,
    encode,
    feedback,
    split_of,
)

WORDS_SHA256 = "0aeb14efd4508683c0609b0fd5d7e5053958b55b48ecada7e1e8af26d73089c9"
DICTIONARY = Path("/usr/share/dict/american-english-small")
DICTIONARY_SHA256 = "a6e2bc32526c38fa082ffbdb527ad9999e41b0a712d06e8415244068454d4d55"
KEY = np.zeros(2, np.uint32)
"""The rules of the game draw nothing."""

# Worked out by hand.
HAND_CHECKED = """
speed abide --Y-Y   speed erase Y-YY-   speed steal G-G--   speed crepe -YGY-   speed creed --GGG
allay llama YGYY-   llama allay YGY-Y   geese there --G-G   geese eerie -GY-G   eerie geese YG--G
mummy mamma G-GG-   mamma mummy G-GG-   error rarer YYG-G   rarer error Y-GYG   tepee peeve -GYYG
daddy added YYGY-   added daddy YYG-Y   fluff flaky GG---   puppy apple Y-G--   poppy popup GGGY-
sissy basis YYG--   sassy asset YYG--   about tenth ----Y   tenth about Y----   array radar YYYG-
ninny onion YYY--   crane crane GGGGG   crane moist -----
"""


@pytest.fixture(scope="module")
def task() -> Wordle:
    return card("Wordle-v0").build()


def observe(task: Wordle, state: State) -> np.ndarray:
    """Return the observations of a batch of boards, fields ``(n, ...)``."""
    return np.asarray(
        jax.jit(jax.vmap(lambda board: task.observation(board, KEY, Params(0))))(state)
    )


@cache
def matrix() -> np.ndarray:
    return feedback_matrix(card("Wordle-v0").build().letters)


def index(task: Wordle, word: str) -> int:
    return int(task.parse(word, None, None))


def marks_by_the_rules(guess: str, hidden: str) -> str:
    """Return the marks: greens first, which leave the pool.

    Then letters are yellow from the left while the pool has the letter.
    """
    pool = Counter(h for g, h in zip(guess, hidden, strict=True) if g != h)
    marks = ""
    for g, h in zip(guess, hidden, strict=True):
        if g == h:
            marks += "G"
        elif pool[g]:
            pool[g] -= 1
            marks += "Y"
        else:
            marks += "-"
    return marks


def in_letters(code: Any) -> str:
    return "".join(MARKS[mark] for mark in decode(code))


@partial(jax.jit, static_argnums=0)
def boards(task: Wordle, hidden: jax.Array, guesses: jax.Array) -> State:
    """Return all boards of games with given words.

    Guesses are ``(n, turns)``; fields of the boards are ``(n, turns + 1, ...)``.
    """

    def game(hidden: jax.Array, guesses: jax.Array) -> State:
        states = [task.initial(KEY, Params(hidden))]
        for turn in range(guesses.shape[0]):
            states.append(task.transition(states[-1], guesses[turn], KEY, Params(hidden)))
        return jax.tree.map(lambda *fields: jnp.stack(fields), *states)

    return jax.vmap(game)(hidden, guesses)


# -- the words -------------------------------------------------------------------------------------


def test_the_word_list_is_frozen_and_clean(task: Wordle) -> None:
    words = task.words
    assert hashlib.sha256(("\n".join(words) + "\n").encode()).hexdigest() == WORDS_SHA256
    assert list(words) == sorted(set(words))
    assert all(re.fullmatch("[a-z]{5}", word) for word in words)
    assert len(words) == task.action_space.n == 2131
    assert max(max(Counter(word).values()) for word in words) == MAX_COPIES
    licence = Path(make_word_list.__file__).with_name("WORD_LIST_LICENSE.txt").read_text()
    assert "Copyright 2000-2011 by Kevin Atkinson" in licence


@pytest.mark.skipif(
    not DICTIONARY.exists()
    or hashlib.sha256(DICTIONARY.read_bytes()).hexdigest() != DICTIONARY_SHA256,
    reason="needs the dictionary of Debian's wamerican-small 2020.12.07-2",
)
def test_the_word_list_can_be_rebuilt(task: Wordle) -> None:
    assert (
        tuple(make_word_list.word_list(set(DICTIONARY.read_text("utf-8").splitlines())))
        == task.words
    )


def test_inflected_forms_are_told_from_others() -> None:
    words = {"word", "box", "fly", "bake", "talk", "bras", "gree"}
    for inflected in ("words", "boxes", "flies", "baked"):
        assert make_word_list.is_inflected(inflected, words)
    for base_word in ("brass", "atlas", "sword"):
        assert not make_word_list.is_inflected(base_word, words)


def test_splits_are_disjoint_and_hide_their_own_words_only(task: Wordle) -> None:
    words_of_split = {split: {w for w in task.words if split_of(w) == split} for split in Split}
    assert len(words_of_split[Split.TRAIN]) == 1709
    assert len(words_of_split[Split.TEST]) == 422
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    keys = jax.random.split(jax.random.key(0), 40_000)
    for split in Split:
        counts = Counter(task.words[i] for i in np.asarray(draw(keys, split).hidden))
        # Every word of the split turns up, and no other.
        assert set(counts) == words_of_split[split]
        expected = len(keys) / len(words_of_split[split])
        chi2 = sum((n - expected) ** 2 / expected for n in counts.values())
        freedom = len(words_of_split[split]) - 1
        # uniform: five standard deviations of chi-squared.
        assert abs(chi2 - freedom) < 5 * (2 * freedom) ** 0.5


# -- the marks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", re.findall(r"\w{5} \w{5} [-YG]{5}", HAND_CHECKED))
def test_duplicate_letters_are_marked_as_worked_out_by_hand(case: str) -> None:
    guess, hidden, marks = case.split()
    assert marks_by_the_rules(guess, hidden) == marks
    letters = [jnp.array([ord(letter) for letter in word]) for word in (guess, hidden)]
    assert in_letters(encode(feedback(*letters))) == marks


def test_marks_equal_an_independent_count_on_every_kind_of_pair(task: Wordle) -> None:
    rng = np.random.default_rng(0)
    guesses, hidden = rng.integers(len(task.words), size=(2, 30_000))
    doubled = np.array([i for i, word in enumerate(task.words) if len(set(word)) < LENGTH])
    guesses[:15_000] = rng.choice(doubled, 15_000)
    hidden[:10_000] = rng.choice(doubled, 10_000)
    codes = boards(task, hidden, guesses[:, None]).codes[:, 1, 0]
    assert (np.asarray(codes) == matrix()[guesses, hidden]).all()
    for guess, word, code in zip(guesses, hidden, np.asarray(codes), strict=True):
        assert in_letters(code) == marks_by_the_rules(task.words[guess], task.words[word])


def test_codes_round_trip() -> None:
    assert encode(decode(np.arange(3**LENGTH))).tolist() == list(range(3**LENGTH))


# -- the board -------------------------------------------------------------------------------------


def test_the_observation_is_what_the_marks_prove_no_more_no_less(task: Wordle) -> None:
    """Words consistent with the knowledge are those that would have marked all guesses alike."""
    rng = np.random.default_rng(1)
    games = 600
    hidden = rng.integers(len(task.words), size=games)
    guesses = rng.integers(len(task.words), size=(games, TRIES))
    # Random guesses leave few words soon; guesses like the hidden word test knowledge of copies and
    # positions.
    near = np.argsort(-(matrix()[:, hidden[: games // 2]] % 5).T, axis=1)[:, :400]
    guesses[: games // 2] = rng.permuted(near, axis=1)[:, :TRIES]
    end = boards(task, hidden, guesses)
    consistent = np.asarray(jax.jit(jax.vmap(jax.vmap(task.consistent_words)))(end.knowledge))
    expected = np.ones((games, TRIES + 1, len(task.words)), bool)
    for turn in range(TRIES):
        same_marks = matrix()[guesses[:, turn]] == matrix()[guesses[:, turn], hidden][:, None]
        expected[:, turn + 1] = expected[:, turn] & same_marks
    assert (consistent == expected).all()
    assert expected[:, 1:].sum(-1).min() == 1

    # The observation shows that knowledge: read back from it, the same words are consistent.
    observations = observe(
        task, jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), end)
    )
    assert observations.dtype == np.float32
    assert (observations >= task.observation_space.low).all()
    assert (observations <= task.observation_space.high).all()
    positions, copies, capped, fraction_left = np.split(
        observations.reshape(-1, observations.shape[-1]), [130, 208, 234], axis=1
    )
    np.testing.assert_allclose(
        fraction_left.reshape(games, -1), [np.arange(TRIES, -1, -1) / TRIES] * games, rtol=1e-6
    )
    at_least = copies.reshape(-1, MAX_COPIES, LETTERS).sum(1)
    fits = np.ones((len(observations), len(task.words)), bool)
    for number, letters in enumerate(task.letters):
        counts = np.bincount(letters, minlength=LETTERS)
        here = (positions.reshape(-1, LENGTH, LETTERS)[:, np.arange(LENGTH), letters] >= 0).all(1)
        enough = ((counts >= at_least) & ((capped == 0) | (counts == at_least))).all(1)
        fits[:, number] = here & enough
    assert (fits == expected.reshape(fits.shape)).all()
    # 1 means proven: all other letters of the position are impossible.
    by_position = positions.reshape(-1, LETTERS)
    assert ((by_position == 1).any(1) == ((by_position >= 0).sum(1) == 1)).all()


def test_action_features_prefer_consistent_words_linearly(task: Wordle) -> None:
    """A consistent word reaches the best product of features and observation.

    That holds wherever two copies suffice.
    """
    rng = np.random.default_rng(2)
    hidden = rng.integers(len(task.words), size=300)
    guesses = rng.integers(len(task.words), size=(300, 3))
    end = boards(task, hidden, guesses)
    last = jax.tree.map(lambda field: field[:, -1], end)
    observations = observe(task, last)
    consistent = np.asarray(jax.jit(jax.vmap(task.consistent_words))(last.knowledge))
    weights = observations[:, :208].copy()
    # No more than the cap.
    weights[:, 130:] -= np.tile(observations[:, 208:234], MAX_COPIES) * (weights[:, 130:] == 0)
    logits = weights @ task.action_features.T
    assert (consistent == (logits == logits.max(1, keepdims=True))).all()


class Linear(NamedTuple):
    """Draws among the words with the greatest product of features and observation."""

    features: np.ndarray

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        logits = self.features @ view.observation[:208]
        return jax.random.categorical(key, jnp.where(logits == logits.max(), 0.0, -jnp.inf)), memory


def test_the_observation_suffices_to_play_well(task: Wordle) -> None:
    record = play(task, Linear(task.action_features), range(1000), split="test")
    assert record.info["success"].mean() == pytest.approx(0.985, abs=0.012)  # three standard errors
    assert record.total.mean() > 0.67


def test_float64_is_the_same_game(task: Wordle) -> None:
    envs = [gymnasium.make("rlsuite/Wordle-v0", dtype=dtype) for dtype in ("float32", "float64")]
    for seed in range(5):
        single, double = (env.reset(seed=seed)[0] for env in envs)
        for word in (3, 500, 1400):
            assert double.dtype == np.float64
            np.testing.assert_allclose(single, double, rtol=1e-6)
            (single, reward, *_), (double, double_reward, *_) = (env.step(word) for env in envs)
            assert reward == pytest.approx(double_reward, abs=1e-6)
        assert envs[0].unwrapped.params == envs[1].unwrapped.params


def test_the_hidden_word_is_committed_and_decides_everything(task: Wordle) -> None:
    env = gymnasium.make("rlsuite/Wordle-v0", split="test")
    rng = np.random.default_rng(3)
    for seed in range(20):
        words = rng.integers(len(task.words), size=TRIES)
        runs = []
        for _ in range(2):
            env.reset(seed=seed)
            hidden = int(env.unwrapped.params.hidden)
            assert split_of(task.words[hidden]) == Split.TEST
            run = []
            for word in words:
                observation, reward, terminated, truncated, _ = env.step(word)
                run.append((observation.tobytes(), reward, terminated, truncated))
                assert int(env.unwrapped.params.hidden) == hidden
                if terminated:
                    break
            codes = env.unwrapped.episode.state.codes[: len(run)]
            assert (codes == matrix()[words[: len(run)], hidden]).all()
            assert run[-1][2] is True  # six guesses used is an end by the rules
            runs.append(run)
        assert runs[0] == runs[1]


def test_the_return_is_the_score_of_the_last_board(task: Wordle) -> None:
    """Solved with guess k: 1.1 - 0.1 k. Not solved: 0.05 for each green of the best guess."""
    rng = np.random.default_rng(4)
    env = gymnasium.make("rlsuite/Wordle-v0")
    for game in range(24):
        env.reset(seed=game)
        hidden = int(env.unwrapped.params.hidden)
        words = rng.integers(len(task.words), size=TRIES)
        words[words == hidden] -= 1
        if solving := game % 4:
            words[2 * solving - 1] = hidden  # with guess 2, 4 or 6
        total = 0.0
        terminated = False
        used = 0
        while not terminated:
            _, reward, terminated, _, info = env.step(words[used])
            total = total + reward
            used = used + 1
        best = max(marks_by_the_rules(task.words[w], task.words[hidden]).count("G") for w in words)
        # Six float32 rewards, each within 2**-25 of a multiple of 0.05.
        assert total == pytest.approx(1.1 - 0.1 * used if solving else 0.05 * best, abs=1e-6)
        assert used == (2 * solving or TRIES)
        assert info["success"] is bool(solving)
        assert info["guesses"] == used
        assert info["greens"] == best
        assert info["end_reason"].startswith(
            "the word was found" if solving else "six guesses are used"
        )


# -- attacks and players ---------------------------------------------------------------------------


def exact_mean_return(task: Wordle, guesses: np.ndarray) -> float:
    """Return the mean return of a fixed sequence of guesses over all hidden words."""
    codes = matrix()[guesses]
    greens = (decode(codes) == 2).sum(-1)
    turn = np.where((greens == LENGTH).any(0), (greens == LENGTH).argmax(0) + 1, 0)
    return float(np.where(turn > 0, 1.1 - 0.1 * turn, 0.05 * greens.max(0)).mean())


def test_a_player_that_ignores_the_marks_gets_next_to_nothing(task: Wordle) -> None:
    """Exact figures over all words; the reference gets 0.753."""
    rng = np.random.default_rng(5)
    chance = [
        exact_mean_return(task, rng.integers(len(task.words), size=TRIES)) for _ in range(500)
    ]
    assert np.mean(chance) == pytest.approx(0.0655, abs=0.001)  # standard error 0.0002
    repeated = [exact_mean_return(task, np.full(TRIES, word)) for word in range(len(task.words))]
    assert max(repeated) == pytest.approx(0.0354, abs=1e-4)  # the best constant word
    # Built up greedily.
    fixed = [index(task, word) for word in ("saree", "briny", "coast", "finer", "share", "dully")]
    assert exact_mean_return(task, np.array(fixed)) == pytest.approx(0.0832, abs=1e-4)
    # All but s.
    letters = [index(task, word) for word in ("judge", "waltz", "nymph", "quick", "favor", "boxer")]
    assert exact_mean_return(task, np.array(letters)) < np.mean(chance)


@partial(jax.jit, static_argnums=0)
def play_every_word(task: Wordle, player: MaximumEntropy) -> tuple[State, jax.Array]:
    def game(hidden: jax.Array) -> tuple[State, jax.Array]:
        params = Params(hidden)

        def turn(carry: Any, _: None) -> Any:
            state, memory, total = carry
            view = View(None, None, state, None)  # no params: the board is all that it can see
            word, memory = player.act(memory, view, KEY)
            after = task.transition(state, word, KEY, params)
            over = task.terminal(state, KEY, params)
            total += jnp.where(over, 0, task.reward(state, word, after, KEY, params))
            return (
                jax.tree.map(lambda old, new: jnp.where(over, old, new), state, after),
                memory,
                total,
            ), None

        start = task.initial(KEY, params), player.initial(None), jnp.zeros(())
        (state, _, total), _ = jax.lax.scan(turn, start, length=TRIES)
        return state, total

    return jax.vmap(game)(jnp.arange(len(task.words)))


def test_the_reference_solves_every_word(task: Wordle) -> None:
    """The figures of the player's docstring, by playing each word of the list once."""
    end, total = play_every_word(task, MaximumEntropy.for_task(task))
    assert (np.asarray(end.greens) == LENGTH).all()
    guesses = np.asarray(end.tries)
    assert np.bincount(guesses, minlength=TRIES + 1)[1:].tolist() == [1, 58, 1071, 945, 56, 0]
    assert float(np.mean(total)) == pytest.approx(1.1 - 0.1 * guesses.mean(), abs=1e-6)


def test_the_reference_plays_on_from_boards_that_are_not_its_own(task: Wordle) -> None:
    player = MaximumEntropy.for_task(task)
    hidden = index(task, "crane")
    guesses = np.array([[index(task, "fluff"), index(task, "train")]])
    board = jax.tree.map(lambda field: field[0, -1], boards(task, np.array([hidden]), guesses))
    word, _ = player.act((), View(None, None, board, None), KEY)
    assert word == np.asarray(task.consistent_words(board.knowledge)).argmax()


def test_the_reference_runs_in_the_common_episode_loop(task: Wordle) -> None:
    record = play(task, MaximumEntropy.for_task(task), range(200), split="test")
    assert record.info["success"].all()
    assert record.terminated.all()
    np.testing.assert_allclose(record.total, 1.1 - 0.1 * record.length, atol=1e-6)


# -- words and pictures ----------------------------------------------------------------------------


def test_text_names_every_word_and_nothing_else(task: Wordle) -> None:
    for i, word in enumerate(task.words):
        assert task.parse(f" {word.upper()}\n", None, None) == i
    for text, complaint in {
        "": "five letters",
        "cranes": "five letters",
        "cran": "five letters",
        "cr ne": "five letters",
        "cr4ne": "five letters",
        "crané": "five letters",
        "ſtate": "five letters",
        "crane crane": "five letters",
        "17": "five letters",
        "zzzzz": "not in the game's list",
        "aaaaa": "not in the game's list",
        "zebrq": "the nearest that are: zebra, ",
    }.items():
        with pytest.raises(ValueError, match=re.escape(complaint)):
            task.parse(text, None, None)


def test_the_same_game_in_words(task: Wordle) -> None:
    structured, text = (
        gymnasium.make("rlsuite/Wordle-v0", view=view) for view in ("structured", "text")
    )
    structured.reset(seed=7)
    first, _ = text.reset(seed=7)
    assert "guess 0 of 6" in first
    assert str(len(task.words)) in first
    for word in ("crane", "moist", "crane"):
        _, reward, terminated, _, _ = structured.step(index(task, word))
        board, *outcome = text.step(word)
        assert outcome[:2] == [reward, terminated]
    hidden = task.words[int(structured.unwrapped.params.hidden)]
    for word in ("crane", "moist"):
        assert f"{' '.join(word.upper())}\n   {' '.join(marks_by_the_rules(word, hidden))}" in board
    board, reward, terminated, *_ = text.step("zzzzz")
    assert reward == 0
    assert not terminated
    assert "Not understood" in board


def test_the_hidden_word_shows_nowhere_before_the_end(task: Wordle) -> None:
    """Two hidden words that mark the guesses alike look alike.

    They are compared in state, observation, info, text and picture.
    """
    rng = np.random.default_rng(6)
    words, first_hidden, second_hidden = (
        rng.integers(len(task.words), size=size) for size in ((4000, 2), 4000, 4000)
    )
    alike = (matrix()[words, first_hidden[:, None]] == matrix()[words, second_hidden[:, None]]).all(
        1
    ) & (first_hidden != second_hidden)
    words, first_hidden, second_hidden = words[alike], first_hidden[alike], second_hidden[alike]
    assert len(words) > 50
    first_states, second_states = (
        jax.tree.map(lambda field: np.asarray(field[:, -1]), boards(task, hidden, words))
        for hidden in (first_hidden, second_hidden)
    )
    jax.tree.map(np.testing.assert_array_equal, first_states, second_states)
    assert (observe(task, first_states) == observe(task, second_states)).all()
    for i in range(50):
        board = jax.tree.map(lambda field, i=i: field[i], first_states)
        assert task.describe(board, Params(first_hidden[i])) == task.describe(
            board, Params(second_hidden[i])
        )
        assert task.info(board, Params(first_hidden[i])) == task.info(
            board, Params(second_hidden[i])
        )
        assert (
            task.draw(board, Params(first_hidden[i])) == task.draw(board, Params(second_hidden[i]))
        ).all()


def test_the_picture_shows_letters_in_their_colours(task: Wordle) -> None:
    state = jax.tree.map(
        lambda field: np.asarray(field[0, -1]),
        boards(task, np.array([index(task, "abide")]), np.array([[index(task, "speed")]])),
    )
    picture = task.draw(state, Params(0))
    assert picture.shape == task.picture_shape
    assert picture.dtype == np.uint8
    corners = picture[8, [8 + 54 * i for i in range(LENGTH)]]  # inside the tiles of the first row
    grey, yellow = (120, 124, 126), (201, 180, 88)
    assert [tuple(int(c) for c in corner) for corner in corners] == [
        grey,
        grey,
        yellow,
        grey,
        yellow,
    ]
