"""Cheap classifiers find what is there, and nothing else."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="needs the extra peers")
import shortcuts


def questions(count: int, seed: int) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [
        ["Name", "it", ":", *(str(number) for number in random.integers(0, 5, 12))]
        for _ in range(count)
    ]


def test_a_planted_shortcut_is_found() -> None:
    learned, test_questions = questions(400, 0), questions(200, 1)

    def kinds(words: list[list[str]]) -> list[str]:
        return ["none" if each.count("3") > 2 else "some" for each in words]

    reader = shortcuts.Reader(learned)
    predicted = shortcuts.predict_classes(reader(learned), kinds(learned), reader(test_questions))
    assert (
        np.mean(
            [guess == label for guess, label in zip(predicted, kinds(test_questions), strict=True)]
        )
        > 0.95
    )


def test_nothing_is_found_in_random_labels() -> None:
    learned, test_questions = questions(400, 0), questions(400, 1)
    random = np.random.default_rng(2)
    labels, truth = (random.choice(["none", "some"], 400).tolist() for _ in range(2))
    reader = shortcuts.Reader(learned)
    predicted = shortcuts.predict_classes(reader(learned), labels, reader(test_questions))
    assert (
        abs(np.mean([guess == label for guess, label in zip(predicted, truth, strict=True)]) - 0.5)
        < 0.1
    )


def test_degrees_of_a_graph() -> None:
    """The path 1-2-3 with the edge 3-4: degrees 1, 2, 2, 1."""
    words = ["The", "edges", ":", "1", "-", "2", "2", "-", "3", "3", "-", "4"]
    features = shortcuts.graph(words)
    assert features[:5] == [1, 1, 2, 2, 0]
    assert sum(features[shortcuts.VERTICES : -3]) == 3


def test_kinds_of_answers() -> None:
    assert [
        shortcuts.kind(answer) for answer in ("none", "1 2 3", "UNSAT 1 #2", "K N", "e2e4")
    ] == [
        "none",
        "",
        "UNSAT",
        "",
        "",
    ]
