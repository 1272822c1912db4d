"""rlsuite/RuleInduction-v0: find the rule behind examples in a small world of relations.

This is inductive logic programming (Muggleton 1991, doi:10.1007/BF03037089). A world is a family
(parents, women, men) or a coloured graph (edges, red and blue nodes). A hidden Horn clause decides
for which pairs a target holds, and some examples are shown. The answer is a clause. It is right if
it agrees with the hidden one on every example and on every pair of unseen worlds: some of the size
of the one shown, and some larger.

That is fair, because the shown examples are enough. All clauses up to the largest size of a hidden
clause are enumerated. Those that agree with the examples agree with the hidden clause on every pair
of the shown world and of the unseen ones, and none of them has fewer literals than the hidden one.
Longer answers are allowed too; some of them fit the examples and are wrong elsewhere.

``difficulty`` is the number of literals of the hidden clause: 2 and 3 with one variable beside X
and Y, 4 with two.

See :mod:`.rule_building` for the interactive form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, wrong

from ..shared.naming import least_naming
from .horn_rules import (
    OBJECTS,
    SIDE,
    Literal,
    Vocabulary,
    World,
    bodies,
    connected_bodies,
    extension,
    extensions,
    literals,
    read,
    rule_text,
    truths,
)

FAMILY, GRAPH = range(2)
VOCABULARIES = (Vocabulary("parent", "female", "male"), Vocabulary("edge", "red", "blue"))
LARGE_SIDE = 12
"""Number of objects of the larger unseen worlds."""
UNSEEN_WORLDS = 2
"""Number of unseen worlds of either size."""
MAX_LITERALS = 4
"""Largest number of literals in an answer."""
MAX_FRESH_VARIABLES = 3
"""Largest number of variables in an answer besides X and Y."""
_SIZES = {2: (1, 10), 3: (1, 14), 4: (2, 20)}
"""Number of fresh variables in the hidden rule and largest number of shown examples.

The keys are numbers of literals.
"""
_TRIES = 20
UNSHOWN = -1


class Instance(NamedTuple):
    """A world, examples in it, and unseen worlds."""

    kind: np.int8
    """``FAMILY`` or ``GRAPH``."""
    relation: np.ndarray
    """int8 ``(8, 8)``: 1 where the first object is related to the second."""
    marked: np.ndarray
    """int8 ``(8,)``: 1 for the women, and for the red nodes."""
    examples: np.ndarray
    """int8 ``(num_literals, 3)``: two objects, and 1 if the target holds for them.

    Rows of -1 stand behind the last example.
    """
    same_relation: np.ndarray
    """int8 ``(2, 8, 8)``: unseen worlds of the same size."""
    same_marked: np.ndarray
    """int8 ``(2, 8)``."""
    same_target: np.ndarray
    """int8 ``(2, 8, 8)``: 1 where the target holds. It is for the verifier; no solver reads it."""
    larger_relation: np.ndarray
    """int8 ``(2, 12, 12)``: the larger unseen worlds."""
    larger_marked: np.ndarray
    """int8 ``(2, 12)``."""
    larger_target: np.ndarray
    """int8 ``(2, 12, 12)``."""


def family(dice: Dice, people: int) -> World:
    """Return a random family: one couple's descendants, and those who marry them.

    Women are marked.
    """
    female = [True, False, *(dice.below(2) == 1 for _ in range(people - 2))]
    related = np.zeros((people, people), bool)
    generation: list[int | None] = [0, 0]
    """None for who has not married into the family."""
    spouse = {0: 1, 1: 0}
    for person in range(2, people):
        if dice.below(4) == 0:
            generation.append(None)
            continue
        parent = dice.choice([member for member in range(person) if generation[member] is not None])
        suitors = [
            s for s in range(person) if generation[s] is None and female[s] != female[parent]
        ]
        if parent not in spouse and suitors:
            suitor = dice.choice(suitors)
            spouse |= {parent: suitor, suitor: parent}
            generation[suitor] = generation[parent]
        generation.append((generation[parent] or 0) + 1)
        related[parent, person] = True
        if parent in spouse:
            related[spouse[parent], person] = True
    order = dice.shuffled(range(people))
    return World(related[np.ix_(order, order)], np.array(female)[order])


def graph(dice: Dice, nodes: int) -> World:
    """Return a random directed graph without loops that has a quarter of all edges.

    Half of the nodes are marked, on average.
    """
    related = [
        [source != target and dice.below(4) == 0 for target in range(nodes)]
        for source in range(nodes)
    ]
    return World(np.array(related), np.array([dice.below(2) == 1 for _ in range(nodes)]))


def shown_world(instance: Any) -> World:
    """Return the world that the prompt shows."""
    return World(np.asarray(instance.relation) != 0, np.asarray(instance.marked) != 0)


def pairs_as_bits(pairs: np.ndarray) -> np.uint64:
    """Return pairs of objects, bool ``(8, 8)``, as the bits 8 x + y of a word."""
    word: np.uint64 = np.packbits(pairs, bitorder="little").view("<u8")[0]
    return word


def describe_examples(instance: Any) -> str:
    """State the facts and examples of an instance, in words."""
    kind, world = int(instance.kind), shown_world(instance)
    vocabulary, names = VOCABULARIES[kind], OBJECTS[:SIDE]
    facts = [
        f"{vocabulary.relation}({names[first]},{names[second]})."
        for first, second in np.argwhere(world.relation)
    ]
    marks = [
        f"{vocabulary[1 if mark else 2]}({name})."
        for name, mark in zip(names, world.marked, strict=True)
    ]
    pairs_by_label: list[list[str]] = [[], []]
    for first, second, holds in np.asarray(instance.examples).tolist():
        if holds != UNSHOWN:
            pairs_by_label[holds].append(f"target({names[first]},{names[second]})")
    things = (
        f"The people {names[0]} to {names[-1]} are a family. parent(A,B): A is a parent of B. "
        "female(A), male(A): A is female, male."
        if kind == FAMILY
        else f"The nodes {names[0]} to {names[-1]} form a directed graph. edge(A,B): there is an "
        "edge from A to B. red(A), blue(A): the colour of A."
    )
    return (
        f"{things} These are all the facts; everything else is "
        f"false:\n{' '.join(facts)}\n{' '.join(marks)}\n\nSome of which the target holds: "
        f"{', '.join(pairs_by_label[1])}\nSome of which it does not hold: "
        f"{', '.join(pairs_by_label[0])}"
    )


class RuleInductionPuzzle(Puzzle[Instance]):
    """``tier`` is the number of literals of the hidden rule, 2 to 4."""

    name = "RuleInduction"
    difficulty_is = "log2 of the rules tried, shorter ones first, until one fits the examples"
    tier_is = "the number of literals of the rule"
    tiers = range(2, 5)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.num_literals = int(tier)
        self.fresh, self.max_examples = _SIZES[self.num_literals]

    # -- the generator -----------------------------------------------------------------------------

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a random rule in random worlds. Return None if few examples cannot single it out."""
        kind = dice.below(2)
        worlds = [
            (family, graph)[kind](dice, n)
            for n in (SIDE, *[SIDE] * UNSEEN_WORLDS, *[LARGE_SIDE] * UNSEEN_WORLDS)
        ]
        first_world, *unseen = worlds
        pairs_by_rule = extensions(truths(first_world, self.fresh), self.num_literals, self.fresh)
        shorter = len(bodies(self.num_literals - 1, self.fresh))
        for _ in range(_TRIES):
            rule = dice.choice(connected_bodies(self.num_literals, self.fresh))
            equal_rules = np.flatnonzero(pairs_by_rule == pairs_by_rule[rule])
            if (
                not 3 <= int(pairs_by_rule[rule]).bit_count() <= SIDE * SIDE // 2
                or equal_rules[0] < shorter
            ):
                continue
            targets = self._targets(equal_rules.tolist(), unseen)
            if targets is None or any(target.all() or not target.any() for target in targets):
                continue
            examples = self._examples(dice, pairs_by_rule, rule)
            if examples is not None:
                return _instance(kind, worlds, targets, examples)
        return None

    def _targets(self, rules: Sequence[int], worlds: Sequence[World]) -> list[np.ndarray] | None:
        """Return the pairs for which the rules hold in each world; None unless all rules agree."""
        first, *other_bodies = (
            self.body(bodies(self.num_literals, self.fresh)[rule]) for rule in rules
        )
        targets = [extension(first, world) for world in worlds]
        for target, world in zip(targets[::-1], worlds[::-1], strict=True):
            if any((extension(body, world) != target).any() for body in other_bodies):
                return None
        return targets

    def _examples(self, dice: Dice, pairs_by_rule: np.ndarray, rule: int) -> np.ndarray | None:
        """Draw two pairs of either kind, then pairs that refute wrong rules.

        One pair is drawn for each rule that fits all earlier pairs but is wrong on another.

        Return None if there are too many.
        """
        target = int(pairs_by_rule[rule])
        order = dice.shuffled(range(SIDE * SIDE))
        pairs = [
            *[p for p in order if target >> p & 1][:2],
            *[p for p in order if not target >> p & 1][:2],
        ]
        wrong_rules = pairs_by_rule[pairs_by_rule != pairs_by_rule[rule]]
        for pair in pairs:
            wrong_rules = _agreeing_rules(wrong_rules, pair, target)
        while len(wrong_rules):
            pair = next(p for p in order if (int(wrong_rules[0]) ^ target) >> p & 1)
            pairs.append(pair)
            wrong_rules = _agreeing_rules(wrong_rules, pair, target)
        if len(pairs) > self.max_examples:
            return None
        rows = np.full((self.max_examples, 3), UNSHOWN, np.int8)
        rows[: len(pairs)] = [
            (*divmod(pair, SIDE), target >> pair & 1) for pair in dice.shuffled(pairs)
        ]
        return rows

    def body(self, numbers: Sequence[int]) -> list[Literal]:
        """Return the literals at some places in :func:`.horn_rules.literals`."""
        return [literals(self.fresh)[number] for number in numbers]

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the instance.

        Forms rename the objects, exchange the marks, and exchange X and Y. In graphs they also
        reverse the edges.
        """
        world = shown_world(instance)
        labels = np.full((SIDE, SIDE), 2, np.int8)
        for first, second, holds in instance.examples.tolist():
            if holds != UNSHOWN:
                labels[first, second] = holds
        relations = (
            (world.relation,) if instance.kind == FAMILY else (world.relation, world.relation.T)
        )
        forms = (
            _smallest_naming(
                relation.tolist(), (world.marked ^ mark).tolist(), turned_labels.tolist()
            )
            for relation in relations
            for mark in (False, True)
            for turned_labels in (labels, labels.T)
        )
        return bytes([int(instance.kind)]) + min(forms)

    # -- one-shot ----------------------------------------------------------------------------------

    def question(self, instance: Instance) -> str:
        """State the world, the examples, the form of the rule and the format."""
        vocabulary = VOCABULARIES[int(instance.kind)]
        fresh_variables = "one variable" if self.fresh == 1 else f"{self.fresh} variables"
        return (
            f"{describe_examples(instance)}\n\nFind the rule of the target. A rule says that "
            "target(X,Y) holds exactly "
            "if there are objects for the other variables such that all literals to the right of "
            "':-' are true. "
            "Different variables may stand for the same object. If X or Y is not on the right, it "
            "may be any object. "
            f"The hidden rule has at most {self.num_literals} literals, with the predicates "
            f"{', '.join(vocabulary)}, "
            f"and at most {fresh_variables} besides X and Y. Your rule must agree with it on every "
            "pair of objects in other "
            "worlds of this kind, some of them larger; every rule of at most that size that fits "
            "the examples does.\n\n"
            f"Answer with one rule: 'target(X,Y) :-', 1 to {MAX_LITERALS} literals separated by "
            "commas, and a full stop. Variables are capital letters, at most "
            f"{MAX_FRESH_VARIABLES} of them besides X and Y."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a rule over the predicates of the world."""
        rule = rule_text(
            [(0, 2, 0), (0, 3, 1), (1, 2, 2), (2, 3, 3)], VOCABULARIES[int(instance.kind)]
        )
        return [Example("For example, another rule would be written:", rule)]

    def mend(self, answer: str) -> str:
        """End the rule with one full stop.

        Commas, brackets and the case of letters have a meaning.
        """
        return " ".join(answer.rstrip(" .\n").split()) + "."

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Check the rule on the examples, then on the unseen worlds."""
        body = read(answer, VOCABULARIES[int(instance.kind)], MAX_LITERALS, MAX_FRESH_VARIABLES)
        says = extension(body, shown_world(instance))
        for first, second, holds in instance.examples.tolist():
            if holds != UNSHOWN and says[first, second] != holds:
                pair = f"target({OBJECTS[first]},{OBJECTS[second]})"
                return wrong(
                    f"the example {pair} "
                    f"{'is not covered' if holds else 'must not hold, and it does'}"
                )
        for what, relations, marks, targets in (
            (
                "of the same size",
                instance.same_relation,
                instance.same_marked,
                instance.same_target,
            ),
            (
                "that are larger",
                instance.larger_relation,
                instance.larger_marked,
                instance.larger_target,
            ),
        ):
            for relation, marked, target in zip(relations, marks, targets, strict=True):
                if (extension(body, World(relation != 0, marked != 0)) != (target != 0)).any():
                    return wrong(f"it fits the examples, but it is wrong in unseen worlds {what}")
        return RIGHT

    def _fitting_rules(self, instance: Instance) -> np.ndarray:
        """Return the places in :func:`.horn_rules.bodies` of the rules that fit the examples."""
        pairs_by_rule = extensions(
            truths(shown_world(instance), self.fresh), self.num_literals, self.fresh
        )
        positive, negative = example_words(instance.examples)
        return np.flatnonzero(
            (pairs_by_rule & positive == positive) & (pairs_by_rule & negative == 0)
        )

    def plan(self, instance: Instance) -> list[int]:
        """Return the literals of the first rule that fits."""
        return list(bodies(self.num_literals, self.fresh)[self._fitting_rules(instance)[0]])

    def solve(self, instance: Instance) -> str:
        """Return the first rule that fits, by trying all of them."""
        return rule_text(self.body(self.plan(instance)), VOCABULARIES[int(instance.kind)])

    def difficulty(self, instance: Instance) -> float:
        """Return log2 of the place of the first rule that fits, counted from 1."""
        return math.log2(1 + int(self._fitting_rules(instance)[0]))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Draw any rule of the hidden one's size that links its variables."""
        rule = dice.choice(connected_bodies(self.num_literals, self.fresh))
        return rule_text(
            self.body(bodies(self.num_literals, self.fresh)[rule]), VOCABULARIES[int(instance.kind)]
        )

    def heuristic(self, instance: Instance) -> str:
        """Add literal by literal the one that tells the examples apart best."""
        tables = truths(shown_world(instance), self.fresh)
        positive, negative = (int(word) for word in example_words(instance.examples))
        cases = np.full(tables.shape[1], ~np.uint64(0))
        body: list[int] = []
        while len(body) < self.num_literals:
            covered = np.bitwise_or.reduce(tables & cases, axis=1).tolist()
            index = [
                (some & positive).bit_count() / positive.bit_count()
                - (some & negative).bit_count() / negative.bit_count()
                for some in covered
            ]
            best = max(
                (number for number in range(len(tables)) if number not in body),
                key=index.__getitem__,
            )
            body.append(best)
            cases &= tables[best]
            if index[best] == 1:
                break
        return rule_text(self.body(body), VOCABULARIES[int(instance.kind)])

    def constants(self) -> Sequence[str]:
        """Return each relation as it is."""
        return [rule_text([(0, 0, 1)], vocabulary) for vocabulary in VOCABULARIES]


def _agreeing_rules(rules: np.ndarray, pair: int, target: int) -> np.ndarray:
    """Return the rules that agree with the target about a pair."""
    return rules[(rules >> np.uint64(pair) & np.uint64(1)) == np.uint64(target >> pair & 1)]


def _instance(
    kind: int, worlds: Sequence[World], targets: Sequence[np.ndarray], examples: np.ndarray
) -> Instance:
    """Stack the shown world, then the other worlds of the same size, then the larger ones."""
    same_size, larger = slice(1, 1 + UNSEEN_WORLDS), slice(1 + UNSEEN_WORLDS, None)

    def stack_int8(arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack(arrays).astype(np.int8)

    return Instance(
        np.int8(kind),
        worlds[0].relation.astype(np.int8),
        worlds[0].marked.astype(np.int8),
        examples,
        stack_int8([world.relation for world in worlds[same_size]]),
        stack_int8([world.marked for world in worlds[same_size]]),
        stack_int8(targets[:UNSEEN_WORLDS]),
        stack_int8([world.relation for world in worlds[larger]]),
        stack_int8([world.marked for world in worlds[larger]]),
        stack_int8(targets[UNSEEN_WORLDS:]),
    )


def example_words(examples: np.ndarray) -> tuple[np.uint64, np.uint64]:
    """Return the pairs for which the target holds, and those for which it does not, as bits.

    :func:`pairs_as_bits` tells which bit is which.
    """
    positive, negative = (np.zeros((SIDE, SIDE), bool) for _ in range(2))
    for first, second, holds in examples.tolist():
        if holds != UNSHOWN:
            (positive if holds else negative)[first, second] = True
    return pairs_as_bits(positive), pairs_as_bits(negative)


def _smallest_naming(
    relation: list[list[bool]], marked: list[bool], labels: list[list[int]]
) -> bytes:
    """Return the least form of a world with examples over all names of its objects."""
    every = range(SIDE)

    def look(colours: Sequence[int]) -> list[Any]:
        def look_from(item: int, neighbour: int) -> tuple[int, ...]:
            return (
                relation[item][neighbour],
                relation[neighbour][item],
                labels[item][neighbour],
                labels[neighbour][item],
                colours[neighbour],
            )

        return [
            (
                marked[centre],
                labels[centre][centre],
                tuple(sorted(look_from(centre, rim) for rim in every)),
            )
            for centre in every
        ]

    def form(names: Sequence[int]) -> bytes:
        order = sorted(every, key=names.__getitem__)
        matrix = bytes(
            2 * labels[first][second] + relation[first][second]
            for first in order
            for second in order
        )
        return bytes(marked[first] for first in order) + matrix

    return least_naming(SIDE, look, form)
