"""Arithmetic written as text: whole numbers, + - * / and parentheses, read by a grammar of its own.

Reading takes time linear in the text and does not recurse; values are exact fractions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from rlbench_suite.puzzle.puzzle import Malformed

Tree = int | tuple[str, "Tree", "Tree"]
"""The place of a number among those given, or an operator and its two operands."""

OPERATORS = "+-*/"
_TOKEN = re.compile(r" *([0-9]{1,6}(?![0-9])|[-+*/()])")
_SIGNS = (("*", "\u00d7\u22c5\u00b7\u2219\u2217"), ("/", "\u00f7\u2215\u2044"))
_ASCII = str.maketrans({sign: operator for operator, signs in _SIGNS for sign in signs})
_LATEX = ((r"\times", "*"), (r"\cdot", "*"), (r"\div", "/"), (r"\left", ""), (r"\right", ""))
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2}


def to_ascii(text: str) -> str:
    """Replace the signs of Unicode and the commands of LaTeX by ASCII's operators."""
    for command, operator in _LATEX:
        text = text.replace(command, operator)
    return text.translate(_ASCII)


def read(text: str, max_numbers: int) -> list[int | str]:
    """Return an expression of at most ``max_numbers`` numbers, in reverse Polish order.

    There are no signs: ``-`` only subtracts.

    Raises:
        Malformed: anything else.
    """
    output: list[int | str] = []
    waiting: list[str] = []
    numbers = at = 0
    value_next = True  # whether a number or "(" has to come next, rather than an operator or ")"
    end = len(text.rstrip(" "))
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None:
            raise Malformed(
                "expected a number of at most 6 digits, an operator or a parenthesis, got "
                f"{text[at]!r}"
            )
        at, word = token.end(), token[1]
        if value_next != (word == "(" or word.isdigit()):
            raise Malformed(
                f"expected {'a number or (' if value_next else 'an operator or )'}, got {word!r}"
            )
        if word == "(":
            waiting.append(word)
        elif word == ")":
            _settle(waiting, output, 1)
            if not waiting:
                raise Malformed("a parenthesis is closed that was not opened")
            waiting.pop()
        elif word in _BINDS:
            _settle(waiting, output, _BINDS[word])
            waiting.append(word)
            value_next = True
        else:
            output.append(int(word))
            value_next = False
            numbers += 1
            if numbers > max_numbers:
                raise Malformed(f"there are more than {max_numbers} numbers")
    if value_next:
        raise Malformed(
            "the expression ends where a number is due" if text else "there is no expression"
        )
    if "(" in waiting:
        raise Malformed("a parenthesis is not closed")
    return output + waiting[::-1]


def _settle(waiting: list[str], output: list[int | str], binds: int) -> None:
    """Output the operators since the last open parenthesis that bind at least this strongly."""
    while waiting and _BINDS.get(waiting[-1], 0) >= binds:
        output.append(waiting.pop())


def operations(expression: list[int | str]) -> Iterator[tuple[str, Fraction, Fraction]]:
    """Return the operations of an expression in the order of execution: operator and operands.

    A caller that requests the next operation has found the last one possible, so no division by
    zero needs a check.
    """
    values: list[Fraction] = []
    for token in expression:
        if isinstance(token, int):
            values.append(Fraction(token))
        else:
            second, first = values.pop(), values.pop()
            yield token, first, second
            values.append(apply_operator(token, first, second))


def value_of(text: str, max_numbers: int) -> Fraction | None:
    """Return the value of an expression of at most ``max_numbers`` numbers; None if it has none."""
    try:
        *_, last = operations(read(text, max_numbers))
        return apply_operator(*last)
    except (ValueError, ZeroDivisionError):  # malformed, a number alone, or a division by zero
        return None


def apply_operator(operator: str, first: Fraction, second: Fraction) -> Fraction:
    """Return the result of one operation."""
    if operator == "+":
        return first + second
    if operator == "-":
        return first - second
    return first * second if operator == "*" else first / second


def write_tree(tree: Tree, numbers: list[int], *, inner: bool = False) -> str:
    """Return a tree as text, every operation but the outermost in parentheses."""
    if isinstance(tree, int):
        return str(numbers[tree])
    operator, first, second = tree
    left, right = (write_tree(side, numbers, inner=True) for side in (first, second))
    text = f"{left} {operator} {right}"
    return f"({text})" if inner else text
