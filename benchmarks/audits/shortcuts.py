"""Measure how far cheap classifiers get on puzzles with few answers, and store their scores.

They are stored beside those of the cards.

    python benchmarks/audits/shortcuts.py [--ids A-v0,B-v0] [--tiers easy,medium] [--train 3000]
    [--test 1000] [--dry]

It needs scikit-learn (extra ``peers``). If the solver gives at most 100 different answers to the
training instances, the whole answer is predicted. If some answers begin with a word such as
``none`` or ``UNSAT`` and others do not, only that kind is predicted. All other puzzles are left
out, because they have too many answers.

A classifier reads the text of the question alone: lengths, counts of each word, sorted counts,
words by their place, words by the order in which they first occur, and degrees of the graph if
edges are told. For TicTacToe it scores each cell by how many X and O its lines have instead.
Logistic regression, a random forest and, for up to eight classes, gradient boosting are fitted to
four fifths of the training instances. The one that predicts the other fifth best is fitted to all
of them, and predicts the test instances.

``one_shot_scores.json`` beside the tasks receives the entry ``classifier`` (score of the predicted
answers) or ``kind`` (how often the prediction of the kind is true). ``rlsuite show`` and the pages
of tasks show it. The table lists, for each tier, the best score without thought on the card, the
classifier's score with its interval, and the share of the most frequent class.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import ONE_SHOT_FILE, Score, TaskCard
from rlbench_suite.evaluation.analysis.calibration import write_scores
from rlbench_suite.evaluation.statistics.wilson import wilson_interval
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.puzzle import Puzzle

FEW = 100
"""Largest number of different answers that are predicted as a whole."""
MIN_KIND_LETTERS = 4
"""Number of letters from which the first word of an answer is its kind."""
KINDS = 3
"""Largest number of kinds of answers."""
PROBE = 200
"""Number of instances that decide whether a puzzle is tried at all."""
VERTICES = 16
"""Largest number of vertices whose degrees are read."""
MAX_BOOSTED_CLASSES = 8
"""Largest number of classes for gradient boosting."""
MAX_WORDS = 300
"""Largest number of words that are counted."""
MAX_PLACES = 600
"""Largest number of places that are read."""


class Examples(NamedTuple):
    """Instances of one split, with the questions and the solver's answers."""

    instances: list[Any]
    questions: list[list[str]]
    answers: list[str]


class TierResult(NamedTuple):
    """Result at one tier."""

    entry: str
    """``classifier`` or ``kind``."""
    score: Score
    commonest: float
    """Share of the most frequent class among the test instances."""


def main() -> None:
    """Print a line for each puzzle and tier that has few answers, and store the scores."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    parser.add_argument("--tiers", default="easy,medium,hard", help="tiers, separated by commas")
    parser.add_argument("--train", type=int, default=3000, help="training instances")
    parser.add_argument("--test", type=int, default=1000, help="test instances")
    parser.add_argument("--dry", action="store_true", help="store nothing")
    options = parser.parse_args()
    puzzle_cards = [card for card in cards().values() if card.puzzle]
    selected_names = options.ids.split(",") if options.ids else [card.name for card in puzzle_cards]
    print(
        "| puzzle | tier | predicted | most frequent | best on the card | classifier | interval |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for card in (card for card in puzzle_cards if card.name in selected_names):
        for tier in options.tiers.split(","):
            if result := measure(puzzle_of(card.id, tier), options.train, options.test):
                print(row(card, tier, result), flush=True)
                if not options.dry:
                    write_scores(card, tier, {result.entry: result.score}, ONE_SHOT_FILE)


def row(card: TaskCard, tier: str, result: TierResult) -> str:
    """Return a line of the table."""
    measured = card.one_shot_scores(tier)
    best = max(
        (measured[name].mean for name in ("guess", "constant", "heuristic") if name in measured),
        default=0.0,
    )
    what, s = {"classifier": "answer", "kind": "kind"}[result.entry], result.score
    numbers = f"{result.commonest:.2f} | {best:.2f} | {s.mean:.2f} | [{s.low:.2f}, {s.high:.2f}]"
    return f"| {card.name} | {tier} | {what} | {numbers} |"


def measure(puzzle: Puzzle[Any], train: int, test: int) -> TierResult | None:
    """Return the score of the best cheap classifier.

    It is None if the puzzle has too many answers at this tier.
    """
    probe = [puzzle.solve(puzzle.generate(seed, "train")) for seed in range(PROBE)]
    kinds = 1 < len(set(map(kind, probe))) <= KINDS
    if len(set(probe)) > FEW and not kinds:
        return None
    learned, test_examples = examples(puzzle, "train", train), examples(puzzle, "test", test)
    if puzzle.name == "TicTacToe":
        return score_answers(puzzle, test_examples, by_cells(puzzle, learned, test_examples))
    classes, truth = learned.answers, test_examples.answers
    if not (predicts_answers := len(set(classes)) <= (KINDS if kinds else FEW)):
        if not kinds:
            return None
        classes, truth = ([kind(answer) for answer in answers] for answers in (classes, truth))
    reader = Reader(learned.questions)
    predicted = predict_classes(reader(learned.questions), classes, reader(test_examples.questions))
    if predicts_answers:
        return score_answers(puzzle, test_examples, predicted)
    score = wilson_interval(
        [float(guess == label) for guess, label in zip(predicted, truth, strict=True)]
    )
    return TierResult("kind", score, share(truth))


def kind(answer: str) -> str:
    """Return the word with which an answer begins.

    It is empty if the answer begins with a number or a short name.
    """
    word = answer.split(" ", 1)[0]
    return word if word.isalpha() and len(word) >= MIN_KIND_LETTERS else ""


def score_answers(
    puzzle: Puzzle[Any], test_examples: Examples, predicted: Sequence[str]
) -> TierResult:
    """Score whole predicted answers by the puzzle's own rules."""
    scores = [
        puzzle.verify(instance, answer).score
        for instance, answer in zip(test_examples.instances, predicted, strict=True)
    ]
    return TierResult("classifier", wilson_interval(scores), share(test_examples.answers))


def share(classes: Sequence[str]) -> float:
    """Return the share of the most frequent class."""
    return Counter(classes).most_common(1)[0][1] / len(classes)


def examples(puzzle: Puzzle[Any], split: str, count: int) -> Examples:
    """Make instances of seeds from 0."""
    instances = [puzzle.generate(seed, split) for seed in range(count)]
    questions = [
        re.findall(r"(?<!\w)-?\w+|[^\w\s]", puzzle.question(instance)) for instance in instances
    ]
    return Examples(instances, questions, [puzzle.solve(instance) for instance in instances])


class Reader:
    """Function from questions, as lists of words, to features ``(questions, features)``."""

    def __init__(self, questions: Sequence[list[str]]) -> None:
        frequent = Counter(word for words in questions for word in set(words))
        self.words = [
            word
            for word, times in frequent.most_common()
            if times < len(questions) or _varies(word)
        ]
        self.words = self.words[:MAX_WORDS]
        self.number = {word: number for number, word in enumerate(frequent, 1)}
        self.start = next(
            (k for k in range(min(map(len, questions))) if len({q[k] for q in questions}) > 1), 0
        )
        """First place at which questions differ: the rules before it tell nothing."""

    def __call__(self, questions: Sequence[list[str]]) -> np.ndarray:
        """Read the questions."""
        return np.array([self._read(words) for words in questions], np.float32)

    def _read(self, words: list[str]) -> list[float]:
        counts = Counter(words)
        window = words[self.start : self.start + MAX_PLACES]
        order: dict[str, int] = {}
        ranks = [order.setdefault(word, len(order) + 1) for word in window]
        numbers = [self.number.get(word, 0) for word in window]
        varying = sorted((counts[word] for word in self.words), reverse=True)
        padding = [0] * (MAX_PLACES - len(window))
        return [
            len(words),
            sum(map(len, words)),
            len(counts),
            *(counts[word] for word in self.words),
            *varying,
            *(varying.count(k) for k in range(12)),
            *(numbers + padding),
            *(ranks + padding),
            *graph(window),
        ]


def graph(words: Sequence[str]) -> list[int]:
    """Return a graph's sorted degrees, and how often each pair of degrees is joined.

    The graph is written with edges such as ``3-7``.
    """
    edges = [(words[k - 1], words[k + 1]) for k in range(1, len(words) - 1) if words[k] == "-"]
    degree = Counter(vertex for edge in edges for vertex in edge)
    joined = Counter(tuple(sorted(degree[vertex] for vertex in edge)) for edge in edges)
    narrow = Counter(
        end for edge in edges for start, end in (edge, edge[::-1]) if degree[start] == 2
    )
    degrees = sorted(degree.values())[:VERTICES]
    pairs = [joined[low, high] for high in range(6) for low in range(high + 1)]
    return [
        *degrees,
        *[0] * (VERTICES - len(degrees)),
        *pairs,
        *(sorted([*narrow.values(), 0, 0, 0])[-3:]),
    ]


def _varies(word: str) -> bool:
    """Return whether a word that every question has may differ in number.

    Any word may, except the long words of the rules.
    """
    return len(word) < 4


def predict_classes(
    features: np.ndarray, classes: Sequence[str], test_features: np.ndarray
) -> list[str]:
    """Fit the classifiers, and return the predictions of the best one.

    The best one is chosen on training instances that it left out.
    """
    varying = features.std(axis=0) > 0
    features, test_features, cut = (
        features[:, varying],
        test_features[:, varying],
        len(features) * 4 // 5,
    )
    labels = np.array(classes)

    def accuracy(make: Callable[[], Any]) -> float:
        return float(
            (
                make().fit(features[:cut], labels[:cut]).predict(features[cut:]) == labels[cut:]
            ).mean()
        )

    tried = (
        _forest,
        _regression,
        *(() if len(set(classes)) > MAX_BOOSTED_CLASSES else (_boosting,)),
    )
    best = max(tried, key=accuracy)
    predicted: list[str] = best().fit(features, labels).predict(test_features).tolist()
    return predicted


def _forest() -> Any:
    return RandomForestClassifier(300, min_samples_leaf=2, random_state=0)


def _boosting() -> Any:
    return HistGradientBoostingClassifier(max_iter=150, learning_rate=0.08, random_state=0)


def _regression() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.03, max_iter=300))


def by_cells(puzzle: Any, learned: Examples, test_examples: Examples) -> list[str]:
    """Answer a TicTacToe position with the empty cell of the best score.

    The score of a cell counts how many X and O its lines have.
    """

    def cells(instance: Any) -> tuple[list[str], list[list[float]]]:
        board = instance.cells.reshape(4, 4)
        lines = [[(r, c) for c in range(4)] for r in range(4)] + [
            [(r, c) for r in range(4)] for c in range(4)
        ]
        lines += [[(k, k) for k in range(4)], [(k, 3 - k) for k in range(4)]]
        look = {}
        kinds = Counter(tuple(sorted(int(board[at]) for at in line)) for line in lines)
        shapes = [tuple(sorted(shape)) for shape in _SHAPES]
        for row, column in zip(*np.nonzero(board == 0), strict=True):
            cell_kinds = Counter(
                tuple(sorted(int(board[at]) for at in line))
                for line in lines
                if (row, column) in line
            )
            look[f"{row + 1} {column + 1}"] = [
                float(c[shape]) for c in (cell_kinds, kinds) for shape in shapes
            ]
        return list(look), list(look.values())

    features, right = [], []
    for instance in learned.instances:
        cell_names, looks = cells(instance)
        features += looks
        right += [puzzle.verify(instance, name).score for name in cell_names]
    forest = _forest().fit(np.array(features), np.array(right) == 1)
    answers = []
    for instance in test_examples.instances:
        cell_names, looks = cells(instance)
        answers.append(cell_names[int(forest.predict_proba(np.array(looks))[:, -1].argmax())])
    return answers


_SHAPES = [
    (a, b, c, d) for a in range(3) for b in range(a, 3) for c in range(b, 3) for d in range(c, 3)
]
"""Contents of a line, sorted: nothing, X or O four times."""


if __name__ == "__main__":
    main()
