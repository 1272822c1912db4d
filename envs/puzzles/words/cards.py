"""Cards of the puzzles in ``words``."""

from functools import partial

from ..shared.card import puzzle_card

_card = partial(puzzle_card, __name__)

# fmt: off
CARDS = (
    _card(
        "SymbolicManipulation", "symbolic_manipulation:SymbolicManipulation",
        "symbolic_manipulation:SymbolicManipulationPuzzle", "text", "sequence", "writing",
        summary=(
            "Carry out a program of operations on a sequence of symbols, writing what each makes."
        ),
        source=(
            "task: Srivastava et al. 2023, arXiv:2206.04615; rewriting with ordered rules: Markov "
            "1954"
        ),
        horizon=102, optimum=2.0, variant=True,
        difficulties={"medium": 4, "easy": 2, "hard": 6},
    ),
    _card(
        "CipherKnownKey", "cipher_known_key:CipherKnownKey",
        "cipher_known_key:CipherKnownKeyPuzzle", "text", "cipher",
        summary=(
            "Encrypt or decrypt a text with a classical cipher whose key is told, a letter a step."
        ),
        source=(
            "Menezes, van Oorschot & Vanstone 1996, Handbook of Applied Cryptography, section 7.3"
        ),
        horizon=24, optimum=1.0, variant=True,
        difficulties={"medium": 12, "easy": 8, "hard": 24},
    ),
    _card(
        "CipherKnownPlaintext", "cipher_known_plaintext:CipherKnownPlaintext",
        "cipher_known_plaintext:CipherKnownPlaintextPuzzle", "text", "cipher",
        summary=(
            "Decrypt a text by what a cipher of unknown key has made of other texts, a letter a "
            "step."
        ),
        source=(
            "Menezes, van Oorschot & Vanstone 1996, sections 1.13 and 7.3; one answer by going "
            "through all keys"
        ),
        horizon=12, optimum=1.0, variant=True,
        difficulties={"medium": 10, "easy": 4, "hard": 12},
    ),
    _card(
        "Crossword", "crossword:Crossword", "crossword:CrosswordPuzzle", "masked", "text", "grid",
        summary="Fill a crossword with the words of a list, a word a step.",
        source=(
            "one solution by construction; filling grids is NP-complete: Garey & Johnson 1979, "
            "problem GP14"
        ),
        horizon=12, optimum=2.0, variant=True,
        chance=(
            "an easy crossword has few words, and the mask forbids visible errors, so that little "
            "is left to chance"
        ),
        difficulties={"medium": 5, "easy": 4, "hard": 6},
    ),
)
