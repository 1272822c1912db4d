"""Random numbers on the host that are the same with every version of NumPy.

NumPy keeps the raw output of its bit generators between versions, but not that of its distributions
(NEP 19). Instances of puzzles on a leaderboard must never change, so the few lines below take them
from the raw output of Philox, as whole numbers only. This is also five times as fast as
``numpy.random.Generator`` for one number at a time.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, MutableSequence, Sequence
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")

_BLOCK = 64
"""64-bit words that are made at once."""
_CHUNK = 16
"""Words that are converted to Python's int at once, which takes ten times as long as making them.
"""
_NO_WORDS = np.zeros(0, np.uint64)
_PHILOX = np.random.Philox(0)
_KEY = np.zeros(2, np.uint64)
_COUNTER = np.zeros(4, np.uint64)
_STATE: Any = {
    "bit_generator": "Philox",
    "state": {"counter": _COUNTER, "key": _KEY},
    "buffer": np.zeros(4, np.uint64),
    "buffer_pos": 4,
    "has_uint32": 0,
    "uinteger": 0,
}
_LOCK = threading.Lock()
"""Lock of the shared generator above."""


def stream_of(*names: object) -> int:
    """Hash names into the 64-bit key of a :class:`Dice`."""
    digest = hashlib.blake2b("\0".join(map(str, names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


_SHARES = stream_of("shares")


class Dice:
    """A stream of random numbers that depends on its three keys and on nothing else.

    Args:
        stream: 64-bit key of the purpose of the numbers (:func:`stream_of`).
        seed: 64-bit seed.
        branch: 64-bit key of one of several streams of a seed, such as those of the splits.
    """

    __slots__ = ("_block", "_branch", "_raw", "_seed", "_stream", "_words")

    def __init__(self, stream: int, seed: int, branch: int = 0) -> None:
        self._stream = stream
        self._seed = seed
        self._branch = branch
        self._block = 0
        self._raw = _NO_WORDS
        self._words: list[int] = []

    def _draw_words(self, count: int = _CHUNK) -> list[int]:
        """Return the next ``count`` words in reverse order.

        Return the rest of a block if it has fewer.
        """
        if not len(self._raw):
            with _LOCK:  # making a Philox takes four times as long as setting its state
                _KEY[0], _KEY[1] = self._stream, self._seed
                _COUNTER[1] = self._block
                _COUNTER[2] = self._branch
                _PHILOX.state = _STATE
                self._raw = _PHILOX.random_raw(_BLOCK)
            self._block += 1
        words: list[int] = self._raw[-count:].tolist()
        self._raw = self._raw[:-count]
        return words

    def word(self) -> int:
        """Sample 64 random bits."""
        if not self._words:
            self._words = self._draw_words()
        return self._words.pop()

    def words(self, count: int) -> list[int]:
        """Sample ``count`` times :meth:`word`."""
        ready = self._words
        while len(ready) < count:
            ready[:0] = self._draw_words(max(count - len(ready), _CHUNK))
        first = len(ready) - count
        words = ready[first:]
        del ready[first:]
        return words[::-1]

    def below(self, count: int) -> int:
        """Sample a whole number from 0 to ``count`` - 1, uniform to within ``count`` / 2**64."""
        return (self._words.pop() if self._words else self.word()) * count >> 64

    def between(self, low: int, high: int) -> int:
        """Sample a whole number from ``low`` to ``high``, both included."""
        return low + (self.word() * (high - low + 1) >> 64)

    def share(self, count: int) -> int:
        """Return a whole number from 0 to ``count`` - 1.

        It depends on the keys alone, not on earlier numbers.

        Seeds 0 to ``count`` - 1 have all these numbers, each once and in random order. The same
        holds for the next ``count`` seeds, and so on. Kinds of instances that are chosen by it are
        balanced exactly, however many attempts an instance takes.
        """
        block, position = divmod(self._seed, count)
        return Dice(self._stream ^ _SHARES, block, self._branch).shuffled(range(count))[position]

    def choice(self, items: Sequence[Item]) -> Item:
        """Sample one of the items."""
        return items[(self._words.pop() if self._words else self.word()) * len(items) >> 64]

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put a list into a uniformly random order, in place."""
        last = len(items)
        for word in self.words(last - 1) if last > 1 else ():
            index = word * last >> 64
            last -= 1
            items[last], items[index] = items[index], items[last]

    def shuffled(self, items: Iterable[Item]) -> list[Item]:
        """Return the items in a uniformly random order."""
        order = list(items)
        self.shuffle(order)
        return order

    def sample(self, items: Iterable[Item], count: int) -> list[Item]:
        """Sample ``count`` different items, in random order."""
        order = list(items)
        size = len(order)
        for first, word in enumerate(self.words(count)):
            index = first + (word * (size - first) >> 64)
            order[first], order[index] = order[index], order[first]
        return order[:count]
