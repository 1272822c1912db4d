"""Time one step of policies as C, compiled with cc -O2.

On each task it is an untrained policy of PPO's smoke budget.

python benchmarks/speed/c_step.py  # a drive by voltages, by switch states, and without a speed
sensor python benchmarks/speed/c_step.py rlsuite/QuadcopterHover-v0

A step's time does not depend on the weights. The table also shows the bytes of its constants with
weights of 32 and of 8 bits, and the multiplications with an addition.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core import registry
from rlbench_suite.evaluation.deploy import policy_export
from rlbench_suite.evaluation.deploy.network import (
    NetworkPolicy,
    multiply_adds,
    parameters,
    weights,
)
from rlbench_suite.evaluation.trajectory import play

TASKS = ("rlsuite/PMSMSpeed-v0", "rlsuite/PMSMCurrentFinite-v0", "rlsuite/PMSMSpeedSensorless-v0")
STEPS = 20_000
DRIVER = r"""
#include "timed.h"
#include <stdio.h>
#include <time.h>
int main(void)
{
    static float seen[1000][TIMED_INPUTS];
    timed_state state;
    RESULT result[TIMED_OUTPUTS];
    double best = 1e9, sum = 0;
    int run, t, i;
    for (t = 0; t < 1000; t++) {
        for (i = 0; i < TIMED_INPUTS; i++) {
            seen[t][i] = 1e-3f * (float)((t * 37 + i * 11) % 2000 - 1000);
        }
    }
    for (run = 0; run < 7; run++) {
        clock_t begun = clock();
        timed_reset(&state);
        for (t = 0; t < STEPS; t++) {
            timed_step(&state, seen[t % 1000], GIVEN result);
            sum += (double)result[0];
        }
        double each = (double)(clock() - begun) / CLOCKS_PER_SEC / STEPS * 1e6;
        best = each < best ? each : best;
    }
    printf("%.3f %g\n", best, sum);
    return 0;
}
"""


def microseconds(header: str, discrete: bool) -> float:
    """Return the microseconds of a step, the best of seven runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "timed.h").write_text(header)
        (folder / "driver.c").write_text(DRIVER)
        kind = ["-DRESULT=int", "-DGIVEN=0,"] if discrete else ["-DRESULT=float", "-DGIVEN="]
        command = [
            "cc",
            "-std=c99",
            "-O2",
            f"-DSTEPS={STEPS}",
            *kind,
            "driver.c",
            "-o",
            "driver",
            "-lm",
        ]
        subprocess.run(command, cwd=folder, check=True)
        return float(
            subprocess.run(
                [folder / "driver"], capture_output=True, text=True, check=True
            ).stdout.split()[0]
        )


def main() -> None:
    """Print a line for each task."""
    heads = ("us a step", "us, int8", "bytes", "bytes, int8", "multiply-adds")
    print(f"{'task':36}" + "".join(f"{head:>15}" for head in heads))
    for task_id in sys.argv[1:] or TASKS:
        task, agent = registry.card(task_id).build(), PPO()
        network = policy_export.network_of(
            agent.untrained_policy(task, agent.config(task, "smoke")), "ppo"
        )
        times = []
        for loss in (None, 0.0):
            used = network if loss is None else network.quantise()
            episodes = play(task, NetworkPolicy(used, task), range(1))
            export = policy_export.Export(task, "ppo", used, episodes, 0.0, loss)
            times.append(microseconds(policy_export.c(export, "timed"), bool(network.choices)))
        numbers, (products, _) = parameters(network), multiply_adds(network)
        int8_weights, outputs = weights(network)
        row = [
            f"{times[0]:.2f}",
            f"{times[1]:.2f}",
            f"{4 * numbers:,}",
            f"{4 * (numbers + outputs) - 3 * int8_weights:,}",
        ]
        print(
            f"{task_id:36}" + "".join(f"{cell:>15}" for cell in [*row, f"{products:,}"]), flush=True
        )


if __name__ == "__main__":
    main()
