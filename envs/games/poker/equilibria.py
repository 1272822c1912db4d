"""Compute the stored equilibria, write them, and print the NashConv of the tables as stored.

    python -m rlbench_suite.envs.games.poker.equilibria

It takes half a minute.
"""

from __future__ import annotations

import json

from rlbench_suite.foundation.atomic_files import replacing

from .betting import RULES, Betting
from .exploitability import equilibrium, nash_conv, normalised
from .players import EQUILIBRIA

ITERATIONS = {"leduc": 1_500, "kuhn": 2_000}
DIGITS = 5


def main() -> None:
    """Write a table for each game."""
    tables = {}
    for name, rules in RULES.items():
        betting = Betting(rules)
        table = equilibrium(betting, ITERATIONS[name]).round(DIGITS)
        print(f"{name}: NashConv {nash_conv(betting, normalised(betting, table)):.6f}")
        tables[name] = table.tolist()
    games = [f'"{name}": [\n{format_rows(table)}\n]' for name, table in tables.items()]
    text = ",\n".join(games)
    with replacing(EQUILIBRIA) as path:
        path.write_text(f"{{{text}}}\n")


def format_rows(table: list[list[float]]) -> str:
    """Return a line of JSON for each row."""
    return ",\n".join(json.dumps(row) for row in table)


if __name__ == "__main__":
    main()
