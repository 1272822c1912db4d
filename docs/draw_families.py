"""Draw docs/families/FAMILY.gif, the pictures of README.md.

Each shows an episode of a reference player on a task of the family.

python docs/draw_families.py
"""

from __future__ import annotations

from pathlib import Path

from animations import animations

from rlbench_suite.core.registry import card

TASK_NAMES = (
    "QuadcopterGates-v0",
    "PMSMCurrent-v0",
    "LightUp-v0",
    "Highway-v0",
    "Hopper-v0",
    "Vicsek-v0",
    "TreasureMaps-v0",
    "ConnectFour-v0",
    "PointMaze-v0",
    "MarsCoverage-v0",
    "TMaze-v0",
    "Lettuce-v0",
    "Inventory-v0",
    "Wordle-v0",
    "OfficeApps-v0",
)


def main() -> None:
    """Draw the pictures."""
    folder = Path(__file__).parent / "families"
    folder.mkdir(exist_ok=True)
    cards = [card(name) for name in TASK_NAMES]
    pictures = animations(cards)
    for task in cards:
        (folder / f"{task.family}.gif").write_bytes(pictures[task.id])


if __name__ == "__main__":
    main()
