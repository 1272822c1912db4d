"""Fictional corpora: facts about people who do not exist, in documents of several years.

32 people stand in four relations to one another. Each relation of a person was reported one to
three times, in different years and with different values; the latest report is true today. A corpus
is a function of its seed: every value below is a hash, computed where it is needed, so that an
episode begins without writing a corpus first.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PEOPLE = 32
REPORTS = 3
"""Most reports of a fact."""
LISTED = 6
"""Documents that a search finds."""
PER_PAGE = 2
"""Documents on a page."""
FIRST_YEAR = 1000
"""First year of a report."""
YEARS = 1000
"""Years from which that of a report is drawn."""
RELATIONS = ("mentor", "neighbour", "heir", "rival")
FACTS = PEOPLE * len(RELATIONS)
"""Fact ``4 person + relation``."""
_FIRST = ("Bar", "Cel", "Dov", "Fen", "Gal", "Hul", "Jor", "Kes")
_LAST = ("ano", "ebik", "imu", "orin", "ulda", "ystra", "ephon", "awen")
_ALL = [
    (first + last, (i + j) % 2) for i, first in enumerate(_FIRST) for j, last in enumerate(_LAST)
]
NAMES = tuple(tuple(name for name, split in _ALL if split == which) for which in (0, 1))
"""Names of the people, for each split."""


def hash_with_seed(seed: Any, *numbers: Any) -> jax.Array:
    """Hash whole numbers with a seed, uint32 ``(2,)``.

    The mixing is MurmurHash3's (Appleby 2011).
    """
    word = jnp.uint32(0)
    for number in (seed[0], seed[1], *numbers):
        word = (word ^ jnp.asarray(number, jnp.uint32)) * np.uint32(0x9E3779B1)
        word = (word ^ (word >> 16)) * np.uint32(0x85EBCA6B)
        word = (word ^ (word >> 13)) * np.uint32(0xC2B2AE35)
        word = word ^ (word >> 16)
    return word


def _below(count: int, word: jax.Array) -> jax.Array:
    return (word % np.uint32(count)).astype(jnp.int32)


def reports(seed: Any, fact: Any) -> jax.Array:
    """Return how often a fact was reported, 1 to 3."""
    return 1 + _below(REPORTS, hash_with_seed(seed, 1, fact))


def person_in(seed: Any, fact: Any, report: Any) -> jax.Array:
    """Return the person whom a report names; report 0 is the latest.

    Reports of a fact name different people.

    Nobody stands in a relation to themselves.
    """
    person = fact // len(RELATIONS)
    first, second, third = (
        _below(PEOPLE - 1 - number, hash_with_seed(seed, 2 + number, fact))
        for number in range(REPORTS)
    )
    second = second + (second >= first)  # the next of those that are left
    low = jnp.minimum(first, second)
    high = jnp.maximum(first, second)
    third = third + (third >= low)
    third = third + (third >= high)
    offset = jnp.where(report == 0, first, jnp.where(report == 1, second, third))
    return (person + 1 + offset) % PEOPLE


def year(seed: Any, fact: Any, report: Any) -> jax.Array:
    """Return the year of a report, 1000 to 1999.

    Reports of a fact are few years apart, and facts many, so that a year alone does not tell
    whether its report is the latest one.
    """
    word = hash_with_seed(seed, 8, fact)
    gaps = 1 + _below(3, word), 1 + _below(3, word >> 2)
    latest = FIRST_YEAR + 6 + _below(YEARS - 6, word >> 4)
    return latest - (report > 0) * gaps[0] - (report > 1) * gaps[1]


def list_documents(seed: Any, fact: Any, boost: float) -> tuple[jax.Array, jax.Array]:
    """Return the documents that a search for a fact lists, best first.

    They are given by their facts and reports, int32 ``(6,)`` each.

    All reports of the fact are among them; the others are about somebody else or about another
    relation.

    Args:
        seed: seed of the corpus.
        fact: fact that is searched for.
        boost: quality of the ranking: with 1 the fact's own reports come first, with 0 the order is
            random.
    """
    rank = jnp.arange(LISTED)
    is_report = rank < reports(seed, fact)
    word = hash_with_seed(seed, 5, fact, rank)
    person = fact // len(RELATIONS)
    relation = fact % len(RELATIONS)
    nearby = len(RELATIONS) * person + (relation + 1 + _below(3, word >> 8)) % len(RELATIONS)
    elsewhere = len(RELATIONS) * ((person + 1 + _below(PEOPLE - 1, word >> 8)) % PEOPLE) + relation
    other_fact = jnp.where(word & 1 == 1, nearby, elsewhere)
    about = jnp.where(is_report, fact, other_fact).astype(jnp.int32)
    report = jnp.where(
        is_report,
        rank,
        (hash_with_seed(seed, 6, fact, rank) % reports(seed, other_fact).astype(jnp.uint32)),
    )
    score = (hash_with_seed(seed, 7, fact, rank) >> 9).astype(jnp.int32) + is_report * int(
        boost * 2**23
    )
    # Comparisons of six numbers are much faster than XLA's sort.
    before = (score[None] > score[:, None]) | (
        (score[None] == score[:, None]) & (rank[None] < rank[:, None])
    )
    here = before.sum(1)[None] == rank[:, None]
    listed = [jnp.where(here, array[None], 0).sum(1).astype(jnp.int32) for array in (about, report)]
    return listed[0], listed[1]


def all_reports(seed: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return people and years of the reports of every fact, and how many reports it has.

    The first two are ``(128, 3)``; reports beyond the number do not count.
    """
    facts = jnp.arange(FACTS)[:, None]
    numbers = jnp.arange(REPORTS)[None]
    return person_in(seed, facts, numbers), year(seed, facts, numbers), reports(seed, facts[:, 0])
