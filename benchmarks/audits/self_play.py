"""Measure how far agents come from an equilibrium of poker, and what they win.

    python benchmarks/audits/self_play.py [--games kuhn,leduc] [--steps 1000000] [--seeds 3]
        [--agents self-play,fictitious-play,psro]

It prints the exploitability of policies in chips a hand (half of NashConv), and the chips a hand
that they win from each opponent of the card, all exact: first of known players, then of what the
agents have learnt with each seed.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np

from rlbench_suite.core.registry import AGENTS, card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.games.poker.betting import Betting
from rlbench_suite.envs.games.poker.exploitability import (
    best_responses,
    nash_conv,
    normalised,
    table_of,
    uniform_table,
    value,
)
from rlbench_suite.envs.games.poker.players import (
    action_by_kind,
    aggressive_table,
    equilibrium_table,
)
from rlbench_suite.envs.games.poker.tabulate import table_of_policy

OPPONENTS = ("easy", "medium", "hard")


def always(betting: Betting, kind: str) -> np.ndarray:
    """Return the table of a player that makes one kind of move, and calls where it is illegal."""

    def rule(number: int, own_rank: int, public: int) -> int:
        actions = action_by_kind(betting, number)
        return actions.get(kind, actions["call"])

    return table_of(betting, rule)


def known_tables(name: str, betting: Betting) -> dict[str, np.ndarray]:
    """Return the tables of players that do not learn."""
    return {
        "uniform": uniform_table(betting),
        "always call": always(betting, "call"),
        "always raise": always(betting, "raise"),
        "aggressive": aggressive_table(betting),
        "equilibrium": normalised(betting, equilibrium_table(name)),
    }


def print_row(name: str, player: str, table: np.ndarray | None, opponents: list[Any]) -> None:
    """Print the results of a table; None is the best response to each opponent."""
    betting = opponents[0].game.betting
    cells = ["" if table is None else f"{nash_conv(betting, table) / 2:.3f}"]
    for opponent in opponents:
        opponent_table = np.asarray(opponent.table, float)
        response = best_responses(betting, opponent_table)[1] if table is None else table
        won = value(betting, response, opponent_table)
        won = (won - value(betting, opponent_table, response)) / 2
        cells.append(f"{won:+.3f}")
    print(f"| {name} | {player} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--games", default="kuhn,leduc")
    parser.add_argument(
        "--steps", type=int, default=1_000_000, help="moves of both sides, or of the seat"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", default="smoke", help="chooses hyperparameters")
    parser.add_argument("--agents", default="self-play")
    parser.add_argument("--entropy", type=float, help="weight of the bonus; default: the agent's")
    options = parser.parse_args()
    names = options.agents.split(",")
    changes = {} if options.entropy is None else {"entropy": options.entropy}
    agents = [load(AGENTS[name])(total_steps=options.steps, **changes) for name in names]
    print(f"| game | player | exploitability | {' | '.join(OPPONENTS)} |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in options.games.split(","):
        task = card("Poker-v0", game=name).build()
        betting = task.game.betting
        opponents = [card("Poker-v0", game=name).build(difficulty=d).opponent for d in OPPONENTS]
        for player, table in known_tables(name, betting).items():
            print_row(name, player, table, opponents)
        print_row(name, "best response", None, opponents)
        for agent, seed in itertools.product(agents, range(options.seeds)):
            start = time.perf_counter()
            *_, policy = agent.train(task, seed=seed, budget=options.budget)
            seconds = time.perf_counter() - start
            player = f"{agent.name}, seed {seed} ({seconds:.0f} s)"
            print_row(name, player, table_of_policy(task.game, policy), opponents)


if __name__ == "__main__":
    main()
