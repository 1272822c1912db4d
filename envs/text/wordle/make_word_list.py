"""Rebuild ``word_list.txt`` from a dictionary.

Run it by ``python -m rlbench_suite.envs.text.wordle.make_word_list DICTIONARY``.

The frozen list was made from ``/usr/share/dict/american-english-small`` of Debian's
``wamerican-small`` 2020.12.07-2 (SCOWL, sizes 10 to 35: common words; its licence stands in
``WORD_LIST_LICENSE.txt``). The list is written to standard output, sorted, one word a line.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

ROMAN = re.compile(r"m*(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
UNFIT = {
    "0f28c4960d96",
    "2c32c156cf1a",
    "4140197ec795",
    "63bd9333b1a0",
    "9ae315a94e42",
    "d75a838dc758",
    "e9b6438440bf",
    "f6952d6eef55",
    "f9d0d9b18ae9",
}
"""Slurs and sexual words, by the first twelve digits of their SHA-256.

So nobody need read them here.
"""


def is_inflected(word: str, dictionary: set[str]) -> bool:
    """Say whether a five-letter word is the regular -s, -es, -ies or -ed form of a shorter word."""
    stems = {"s": word[:4]} if word[3] != "s" else {}
    stems |= {
        "es": word[:3],
        "ies": word[:2] + "y",
        "ed": word[:3],
        "d": word[:4] if word[3] == "e" else "",
    }
    return any(word.endswith(ending) and stem in dictionary for ending, stem in stems.items())


def word_list(dictionary: set[str]) -> list[str]:
    """Return the sorted five-letter words a-z that are uninflected and fit to be shown to anyone.

    Roman numerals are left out.
    """
    return sorted(
        word
        for word in dictionary
        if re.fullmatch("[a-z]{5}", word)
        and not ROMAN.fullmatch(word)
        and not is_inflected(word, dictionary)
        and hashlib.sha256(word.encode()).hexdigest()[:12] not in UNFIT
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m rlbench_suite.envs.text.wordle.make_word_list DICTIONARY")
    print("\n".join(word_list(set(Path(sys.argv[1]).read_text("utf-8").splitlines()))))
