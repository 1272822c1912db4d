"""Control random plausible machines by the reference player that their data sheets design.

    python benchmarks/audits/random_plants.py  # 20 machines of each kind, about 7 s each
    python benchmarks/audits/random_plants.py SCIM --machines 5

A machine is drawn in per-unit values that data books have (Binder, Elektrische Maschinen und
Antriebe, 2017): its link, current and speed anywhere over two decades, its inductances, resistances
and inertia about the usual ones of its kind. Each parameter is within 10 % of the data sheet in an
episode. A line tells whether the data sheet is refused, and otherwise in how many of 16 test
episodes of speed control the drive trips, and the mean reward of a step. A machine is stable if no
episode trips and the reward is at least one half: the mean error is then below a halving error.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card

TOLERANCE = 0.1
EPISODES = range(2**32, 2**32 + 16)
Sheet = dict[str, Any]


def _sample_log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Sample a number, uniform in its logarithm."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _ratings(rng: np.random.Generator) -> tuple[float, float, float, Sheet]:
    """Sample voltage (V), current (A) and speed (rad/s) of a machine, and their consequences."""
    volts, amperes, speed = (
        _sample_log_uniform(rng, 24, 700),
        _sample_log_uniform(rng, 2, 300),
        _sample_log_uniform(rng, 80, 600),
    )
    return (
        volts,
        amperes,
        speed,
        {
            "link_voltage": volts,
            "nominal_current": amperes,
            "current_limit": amperes * rng.uniform(1.6, 3),
            "speed_limit": speed * rng.uniform(1.3, 1.8),
        },
    )


def _three_phase(rng: np.random.Generator) -> tuple[float, float, int, float, Sheet]:
    """Sample base impedance (Ohm) and flux (V s), pole pairs, their torque and the ratings.

    The torque (N m) is that of base impedance and base flux.
    """
    volts, amperes, speed, sheet = _ratings(rng)
    pairs, phase = int(rng.integers(1, 6)), volts / math.sqrt(3)
    torque = 1.5 * phase * amperes / speed
    sheet |= {"pole_pairs": pairs, "inertia": torque / speed * _sample_log_uniform(rng, 0.03, 0.5)}
    return phase / amperes, phase / (pairs * speed), pairs, torque, sheet


def pmsm(rng: np.random.Generator) -> Sheet:
    """Sample a machine with magnets, with saliency or without."""
    ohm, flux, *_, sheet = _three_phase(rng)
    henry = ohm * flux / (ohm * sheet["nominal_current"])
    d = henry * _sample_log_uniform(rng, 0.1, 0.5)
    return sheet | {
        "resistance": ohm * _sample_log_uniform(rng, 0.01, 0.08),
        "inductance_d": d,
        "inductance_q": d * rng.uniform(1, 2.5),
        "magnet_flux": flux * rng.uniform(0.6, 0.85),
    }


def synrm(rng: np.random.Generator) -> Sheet:
    """Sample a reluctance machine."""
    ohm, flux, *_, sheet = _three_phase(rng)
    d = flux / sheet["nominal_current"] * rng.uniform(0.9, 1.3)
    return sheet | {
        "resistance": ohm * _sample_log_uniform(rng, 0.02, 0.1),
        "inductance_d": d,
        "inductance_q": d / rng.uniform(2.5, 7),
    }


def scim(rng: np.random.Generator) -> Sheet:
    """Sample an induction machine, whose flux takes nine tenths of the voltage at its speed."""
    ohm, flux, *_, sheet = _three_phase(rng)
    henry = flux / sheet["nominal_current"]
    mutual, leakage = henry * rng.uniform(1.4, 3.0), henry * rng.uniform(0.05, 0.1)
    return sheet | {
        "stator_resistance": ohm * _sample_log_uniform(rng, 0.02, 0.06),
        "rotor_resistance": ohm * _sample_log_uniform(rng, 0.015, 0.05),
        "mutual_inductance": mutual,
        "stator_leakage": leakage,
        "rotor_leakage": leakage * rng.uniform(0.7, 1.4),
        "magnetising_current": 0.85 * flux / (mutual + leakage),
    }


def perm_ex_dc(rng: np.random.Generator) -> Sheet:
    """Sample a direct-current machine with magnets."""
    volts, amperes, speed, sheet = _ratings(rng)
    resistance = volts / amperes * _sample_log_uniform(rng, 0.03, 0.15)
    return sheet | {
        "resistance": resistance,
        "inductance": resistance * _sample_log_uniform(rng, 0.5e-3, 10e-3),
        "magnet_flux": (volts - resistance * amperes) / speed,
        "inertia": volts * amperes / speed**2 * _sample_log_uniform(rng, 0.03, 0.5),
    }


def series_dc(rng: np.random.Generator) -> Sheet:
    """Sample a series-wound machine."""
    volts, amperes, speed, sheet = _ratings(rng)
    armature = volts / amperes * _sample_log_uniform(rng, 0.02, 0.08)
    field = armature * rng.uniform(0.5, 2)
    return sheet | {
        "armature_resistance": armature,
        "field_resistance": field,
        "armature_inductance": armature * _sample_log_uniform(rng, 0.5e-3, 5e-3),
        "field_inductance": field * _sample_log_uniform(rng, 5e-3, 50e-3),
        "rotation_inductance": (volts - (armature + field) * amperes) / (speed * amperes),
        "inertia": volts * amperes / speed**2 * _sample_log_uniform(rng, 0.03, 0.5),
    }


DRAWS: dict[str, Callable[[np.random.Generator], Sheet]] = {
    "PMSM": pmsm,
    "SynRM": synrm,
    "SCIM": scim,
    "PermExDc": perm_ex_dc,
    "SeriesDc": series_dc,
}
RATINGS = "link_voltage", "nominal_current", "current_limit", "speed_limit", "magnetising_current"
EXACT_CONSTANTS = *RATINGS, "pole_pairs", "inertia"


def data_sheet(machine: str, seed: int) -> Sheet:
    """Return the data sheet of a random machine.

    Constants that vary between machines of one type are ranges.
    """
    sheet = DRAWS[machine](np.random.default_rng([seed, *machine.encode()]))
    return {
        name: value
        if name in EXACT_CONSTANTS
        else [value * (1 - TOLERANCE), value * (1 + TOLERANCE)]
        for name, value in sheet.items()
    }


def judge_plant(machine: str, seed: int, goal: str = "Speed") -> tuple[float, float] | str:
    """Return the share of episodes that trip and the mean reward of a step.

    A data sheet that is refused gives the reason instead.
    """
    try:
        task = card(f"{machine}{goal}-v0", context=data_sheet(machine, seed)).build()
    except ValueError as refusal:
        return str(refusal)
    record = play(task, reference_player(task), EPISODES)
    return float(record.terminated.mean()), float(record.total.mean()) / task.card.horizon


def stable(result: tuple[float, float] | str) -> bool:
    """Tell whether the reference player controls the machine."""
    return not isinstance(result, str) and result[0] == 0 and result[1] >= 0.5


def main() -> None:
    """Print a line for each machine and a summary for each kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", default=list(DRAWS), help=f"of {', '.join(DRAWS)}")
    parser.add_argument("--machines", type=int, default=20, help="of each kind")
    parser.add_argument("--goal", default="Speed", help="Speed, Torque or Current")
    options = parser.parse_args()
    for machine in options.kinds:
        results = []
        for seed in range(options.machines):
            results.append(judge_plant(machine, seed, options.goal))
            print(
                machine,
                seed,
                *(results[-1:] if isinstance(results[-1], str) else results[-1]),
                flush=True,
            )
        refused = sum(isinstance(result, str) for result in results)
        print(
            f"{machine}: {sum(map(stable, results))} stable, {refused} refused, of {len(results)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
