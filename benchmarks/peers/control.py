"""Compare the speed of our drives and quadcopters with other simulators, in one run on one machine.

    python benchmarks/peers/control.py  # ours only
    # PYTHON: an interpreter with the peers installed
    python benchmarks/peers/control.py --peers PYTHON
    python -m venv peers && peers/bin/pip install exciting-environments==0.2.4 \
        gym-electric-motor==3.0.3 l2f==2.0.18 transforms3d pybullet==3.2.7
    peers/bin/pip install --no-deps git+https://github.com/utiasDSL/gym-pybullet-drones

Peers and our single environments run one process at a time. Figures are steps per second.

* One environment: random actions, drawn in advance on both sides, for every id that both sides
  have, resets included. Ours is made by ``gymnasium.make``, the peer by its own constructor. Ours
  has time limits and trips, the peer only trips.
* Batches, each scanned in one compiled program, in one process for each core (`cores.py`); the size
  is that of one process. ``equations`` computes the equations and the observation, which is all
  that the peers' batches do. ``transition`` also moves a random set point; ``observed`` adds the
  observation to it. ``constant`` and ``reference`` run the whole task, with rewards, ends and
  resets, under constant actions or the reference player. For quadcopters it also prints the time
  flown per second, to compare with the five months of Eschmann et al., "Learning to Fly in Seconds"
  (2024, arXiv:2311.13081), which were measured on a GPU for the equations alone under zero
  commands.
* A swarm of 64 quadcopters in each other's wakes, spaced like the 32 of the registered id. Each
  vehicle's steps count.
"""

import argparse
import math
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import physics
from cores import Cores

from rlbench_suite.cli.task_commands import speed
from rlbench_suite.core.registry import card, cards
from rlbench_suite.envs.quadcopter.physics import dynamics

PEERS = Path(__file__).with_name("control_peers.py")
SECONDS = 1.0
SIZES = 1_024, 4_096, 65_536
ACCELERATOR_SIZE = 1_048_576
"""Additional batch size on an accelerator."""
SWARM = 64
SWARM_SIZES = (16, 64, 256)
PEER_SIZES = {"exciting": (256, 1024, 4096, 16384), "l2f": (512, 1024, 2048, 8192)}
GOALS = {"current": "CC", "torque": "TC", "speed": "SC"}
CONTROLS = {"continuous": "Cont", "finite": "Finite"}


def peer_name(task_id: str) -> tuple[str, str] | None:
    """Return the peer of one of our ids and the id that the peer gives it, or None."""
    if task_id == "rlsuite/QuadcopterHover-v0":
        return "gym-pybullet-drones", "RPM"
    if card(task_id).family != "motor":
        return None
    drive = card(task_id).settings
    if drive["goal"] not in GOALS or drive.get("conditions") != "ideal":
        return None  # the peer lacks this task
    machine = drive["machine"].replace("SixPhasePMSM", "SIXPMSM")
    return "gym-electric-motor", f"{CONTROLS[drive['control']]}-{GOALS[drive['goal']]}-{machine}-v0"


def peer(python: str, name: str, arguments: list[str]) -> list[float]:
    """Measure a peer's steps per second for each argument."""
    run = [python, str(PEERS), str(SECONDS), name, *arguments]
    words = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    return [float(word) for word in words[-len(arguments) :]]  # PyBullet prints other text first


def single_environments(python: str | None) -> None:
    """Print a line for each id that a peer has."""
    pairs = {task_id: names for task_id in cards() if (names := peer_name(task_id))}
    peer_rates: dict[tuple[str, str], float] = {}
    for name in dict.fromkeys(name for name, _ in pairs.values()) if python else ():
        arguments = [argument for owner, argument in pairs.values() if owner == name]
        figures = peer(str(python), name, arguments)
        peer_rates |= {
            (name, argument): figure for argument, figure in zip(arguments, figures, strict=True)
        }
    print(f"\n{'one environment':32s}{'ours':>12s}{'peer':>12s}{'ratio':>8s}")
    ratios = []
    for task_id, names in pairs.items():
        ours = speed.single(card(task_id), SECONDS)
        line = f"{task_id:32s}{ours:12,.0f}"
        if names in peer_rates:
            ratios.append(ours / peer_rates[names])
            line += f"{peer_rates[names]:12,.0f}{ratios[-1]:8.1f}  {' '.join(names)}"
        print(line, flush=True)
    if ratios:
        print(f"{'median':56s}{statistics.median(ratios):8.1f}")


def batches(cores: Cores, python: str | None) -> None:
    """Print the speed of one task of each family, and of the peers, at several batch sizes."""
    for task_id, name in (
        ("rlsuite/PMSMCurrent-v0", "exciting"),
        ("rlsuite/QuadcopterHover-v0", "l2f"),
    ):
        print("\n" + physics.header(f"{task_id}, million"))
        rows = []
        for size in SIZES if cores.count else (*SIZES, ACCELERATOR_SIZE):
            rows.append(cores.sums(task_figures, task_id, size))
            print(f"{size:32,d}" + "".join(f"{value:12.1f}" for value in rows[-1]), flush=True)
        if name == "l2f":
            days = [
                max(column) * 1e6 * dynamics.STEP / 86_400 for column in zip(*rows, strict=True)
            ]
            print(
                f"{'days flown per second, best size':32s}"
                + "".join(f"{value:12.1f}" for value in days),
                flush=True,
            )
        sizes = [str(size) for size in PEER_SIZES[name]]
        for size, figure in zip(sizes, peer(python, name, sizes) if python else (), strict=False):
            print(f"{f'{name}, {size}':32s}{figure / 1e6:12.2f}", flush=True)


def task_figures(task_id: str, size: int) -> list[float]:
    """Measure the columns of a task in this process."""
    return physics.figures(card(task_id).build(), size)


def swarm(cores: Cores) -> None:
    """Print the speed of a swarm at several batch sizes."""
    print("\n" + physics.header(f"{SWARM} quadcopters, million"))
    for size in SWARM_SIZES:
        figures = cores.sums(swarm_figures, size)
        print(f"{size:32,d}" + "".join(f"{value:12.2f}" for value in figures), flush=True)


def swarm_figures(size: int) -> list[float]:
    """Measure the columns of a swarm in this process."""
    swarm_card = card("rlsuite/QuadcopterSwarm32-v0")
    radius = swarm_card.settings["radius"] * math.sqrt(SWARM / swarm_card.agents)
    task = replace(
        swarm_card,
        id=f"QuadcopterSwarm{SWARM}",
        agents=SWARM,
        settings={"vehicles": SWARM, "radius": radius},
    ).build()
    return physics.figures(task, size)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with the peers installed")
    python = parser.parse_args().peers
    print(f"{jax.devices()[0]}, Python {sys.version.split()[0]}")
    cores = Cores()
    batches(cores, python)
    swarm(cores)
    single_environments(python)


if __name__ == "__main__":
    main()
