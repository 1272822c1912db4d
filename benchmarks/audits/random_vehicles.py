"""Fly random plausible quadcopters by the reference player, which designs itself from data sheets.

    python benchmarks/audits/random_vehicles.py 200

Each vehicle is a data sheet as ``context=`` takes it: 0.02 to 3 kg, lengths by the cube root of the
mass, thrust of 1.1 to 5 weights, any lag from 20 to 120 ms, tolerances of 0 to 20 %. A vehicle is
refused with a reason or flown: 64 test episodes of the hover, whose starts are tilted by up to 90
degrees. It counts as stable if 95 % of them end at the goal. All vehicles share one compiled
program.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import Context
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.control.geometric import GeometricControl
from rlbench_suite.envs.quadcopter.physics.data_sheet import DataSheet, sheet_of_context
from rlbench_suite.envs.quadcopter.tasks.hover import arena

EPISODES = 64


class Flights(NamedTuple):
    """Results of the vehicles that were not refused."""

    sheets: list[DataSheet]
    success_rate: np.ndarray
    """Share of the episodes of each vehicle"""
    refused: list[str]
    """Reasons"""


def random_vehicle(rng: np.random.Generator) -> Context:
    """Return the data sheet of a plausible vehicle."""
    mass = 0.02 * 150 ** rng.random()
    size = (mass / 0.027) ** (1 / 3)
    arm = 0.04 * size * rng.uniform(0.8, 1.3)
    tilting, propeller = mass * (arm * rng.uniform(0.3, 0.6)) ** 2, 0.023 * size
    full, speed = rng.uniform(1.1, 5.0) * mass * 9.81 / 4, 2200 / size * rng.uniform(0.7, 1.4)
    middles = {
        "mass": mass,
        "inertia_x": tilting,
        "inertia_y": tilting * rng.uniform(0.9, 1.1),
        "inertia_z": tilting * rng.uniform(1.4, 1.85),
        "thrust_coefficient": full / speed**2,
        "torque_coefficient": propeller * rng.uniform(0.15, 0.4),
        "motor_time_constant": rng.uniform(0.02, 0.12),
    }
    ranges = []
    for name, value in middles.items():
        spread = float(rng.uniform(0.0, 0.2))
        ranges.append((name, (1 - spread) * value, (1 + spread) * value))
    single = {"arm_length": arm, "rotor_speed_limit": speed, "propeller_radius": propeller}
    fixed = [(name, value, value) for name, value in single.items()]
    return Context("random", tuple(sorted([*ranges, *fixed])))


def change_attributes(task: Any, **attributes: Any) -> Any:
    """Return another task with some attributes changed.

    ``copy.copy`` would return the one that all share.
    """
    changed_task = object.__new__(type(task))
    changed_task.__dict__.update(task.__dict__ | attributes)
    return changed_task


def fly(count: int, seed: int = 0) -> Flights:
    """Fly this many random vehicles."""
    rng, sheets, refused = np.random.default_rng(seed), [], []
    for _ in range(count):
        try:
            sheets.append(sheet_of_context(random_vehicle(rng)))
        except ValueError as error:
            refused.append(str(error).partition("cannot fly here: ")[2])
    hover: Any = card("QuadcopterHover-v0").build()
    keys = jax.random.split(jax.random.key(seed), EPISODES)

    def success_rate(sheet: DataSheet, gains: tuple[Any, ...], reach: Any) -> jax.Array:
        task = change_attributes(hover, sheet=sheet, reach=reach)
        player = GeometricControl(*gains, sheet=sheet)

        def episode(key: jax.Array) -> jax.Array:
            params = task.sample_params(jax.random.fold_in(key, 0), 1)
            state = task.initial(jax.random.fold_in(key, 1), params)

            def step(carry: Any, _: None) -> tuple[Any, None]:
                state, over = carry
                action, _ = player.act((), View(None, None, state, params), key)
                next_state = task.transition(state, action, key, params)
                return (next_state, over | task.terminal(next_state, key, params)), None

            (state, over), _ = jax.lax.scan(
                step, (state, jnp.bool_(False)), None, hover.card.horizon
            )
            return task.info(state, params)["success"] & ~over

        return jax.vmap(episode)(keys).mean()

    designs = []
    for sheet in sheets:
        control = GeometricControl.for_vehicle(change_attributes(hover, sheet=sheet))
        designs.append(
            (control.position, control.tilt, control.yaw, control.lean, control.least_thrust)
        )
    stacked = jax.tree.map(lambda *leaves: np.array(leaves, np.float32), *sheets)
    gains = tuple(np.array(designs, np.float32).T)
    reach = np.array([arena(sheet) for sheet in sheets], np.float32)
    with warnings.catch_warnings(
        action="ignore"
    ):  # the data sheet is traced, so that all share one program
        shares = np.asarray(jax.jit(jax.vmap(success_rate))(stacked, gains, reach))
    return Flights(sheets, shares, refused)


def main(count: int) -> None:
    """Print how many vehicles are stable, and what the others are like."""
    flights = fly(count)
    stable = flights.success_rate >= 0.95
    print(
        f"{count} vehicles: {len(flights.refused)} refused, {len(stable)} flown, {stable.sum()} "
        "stable"
    )
    for reason, number in Counter(
        " ".join(reason.split()[:3]) for reason in flights.refused
    ).most_common():
        print(f"  refused {number}: {reason}")
    for sheet, share in zip(flights.sheets, flights.success_rate, strict=True):
        if share < 0.95:
            print(
                f"  {share:.2f} of the episodes: mass {sheet.nominal.inertia.mass:.3g} kg, thrust "
                f"{sheet.thrust_to_weight:.2f} weights, lag "
                f"{sheet.nominal.motor_time_constant:.3f} s, turns by 90 degrees in "
                f"{sheet.righting_time:.2f} s, arena {arena(sheet):.2f} m"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
